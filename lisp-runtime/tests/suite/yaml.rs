//! Descriptions of APIs in YAML: the same tools as of JSON, and hostile texts are errors that say where.

use lisp_runtime::Tools;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write;

/// The tools of a description: their lines, operations and refusals.
fn tools(description: &str) -> Vec<String> {
    let imported = Tools::from_openapi(description).unwrap_or_else(|error| panic!("{error}\n{description}"));
    let line = |tool: &std::sync::Arc<lisp_runtime::Tool>| {
        format!("{} {} {:?}", tool.name(), tool.signature_text(), tool.operation())
    };
    let refused = imported.refused.iter().map(|(name, error)| format!("refused {name}: {error}"));
    imported.tools.all().map(line).chain(refused).collect()
}

/// What is written in YAML as people write it: numbers as keys, words that older versions take for other values, anchors, merge keys and texts over
/// several lines.
const YAML: &str = r#"%YAML 1.2
---
# A comment.
openapi: 3.1.0
info: {title: Pets, version: 1.0}
servers:
  - url: https://pets.example.com/v1
x-common: &common
  limit:
    name: limit
    in: query
    schema: &limit {type: integer, minimum: 1, maximum: 0x64}
paths:
  /pets:
    parameters:
      - $ref: '#/components/parameters/Tenant'
    get:
      operationId: listPets
      summary: >-
        Lists pets,
        page by page.
      description: |
        A page has *some* pets: "a", 'b' & c.
      parameters:
        - name: on
          in: query
          schema: {type: string, enum: [yes, no, on, off, 'null', 2024-01-01, 12:30, 1_000]}
        - name: y
          in: query
          schema: {type: boolean, default: true}
        - name: limit
          in: query
          schema: *limit
      responses:
        200:
          description: Pets
          content:
            application/json:
              schema:
                type: array
                items: {$ref: '#/components/schemas/Pet'}
        default: {description: "An error\u2026"}
  ? /pets/{id}
  : delete:
      operationId: deletePet
      parameters:
        - {name: id, in: path, required: true, schema: {type: integer, format: int64}}
      responses:
        204: {description: ~}
components:
  parameters:
    Tenant:
      name: X-Tenant
      in: header
      required: true
      schema:
        <<: *limit
        type: string
        minLength: 1
  schemas:
    Pet:
      type: object
      required: [id]
      properties:
        id: {type: integer}
        no: {type: string}
        200: {type: number, maximum: 1.5e3}
"#;

fn json_of_it() -> Value {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": 100});
    json!({
        "openapi": "3.1.0", "info": {"title": "Pets", "version": 1.0}, "servers": [{"url": "https://pets.example.com/v1"}],
        "paths": {
            "/pets": {
                "parameters": [{"$ref": "#/components/parameters/Tenant"}],
                "get": {
                    "operationId": "listPets", "summary": "Lists pets, page by page.", "description": "A page has *some* pets: \"a\", 'b' & c.\n",
                    "parameters": [
                        {"name": "on", "in": "query",
                            "schema": {"type": "string", "enum": ["yes", "no", "on", "off", "null", "2024-01-01", "12:30", "1_000"]}},
                        {"name": "y", "in": "query", "schema": {"type": "boolean", "default": true}},
                        {"name": "limit", "in": "query", "schema": limit},
                    ],
                    "responses": {
                        "200": {"description": "Pets", "content": {"application/json": {"schema":
                            {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}}}},
                        "default": {"description": "An error…"},
                    },
                },
            },
            "/pets/{id}": {"delete": {
                "operationId": "deletePet",
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer", "format": "int64"}}],
                "responses": {"204": {"description": null}},
            }},
        },
        "components": {
            "parameters": {"Tenant": {"name": "X-Tenant", "in": "header", "required": true,
                "schema": {"type": "string", "minimum": 1, "maximum": 100, "minLength": 1}}},
            "schemas": {"Pet": {"type": "object", "required": ["id"],
                "properties": {"id": {"type": "integer"}, "no": {"type": "string"}, "200": {"type": "number", "maximum": 1.5e3}}}},
        },
    })
}

#[test]
fn a_description_in_yaml_is_the_same_tools_as_in_json() {
    let (yaml, json) = (tools(YAML), tools(&json_of_it().to_string()));
    assert_eq!(yaml, json);
    assert_eq!(yaml.len(), 2, "{yaml:?}");
    assert!(yaml[1].contains(r#"on? "yes"|"no"|"on"|"off"|"null"|"2024-01-01"|"12:30"|"1_000""#), "{yaml:?}");
    // A byte order mark, and ends of lines as Windows has them.
    assert_eq!(tools(&format!("\u{feff}{}", YAML.replace('\n', "\r\n"))), json);
}

/// A value in block style, with strings and keys in quotes where they need them, which JSON's are.
fn block(value: &Value, indent: usize, out: &mut String) {
    let inner = " ".repeat(indent + 2);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let _ = write!(out, "\n{inner}{}:", Value::from(key.as_str()));
                block(value, indent + 2, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let _ = write!(out, "\n{inner}-");
                block(item, indent + 2, out);
            }
        }
        other => {
            let _ = write!(out, " {other}");
        }
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop_oneof![Just("yes"), Just("on"), Just("~"), Just("010"), Just("1e3"), Just("<<"), Just("")]
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z0-9 :#]{1,8}", inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    /// Whatever stands in a description comes through YAML as through JSON: here as the alternatives of a parameter.
    #[test]
    fn values_are_the_same_in_yaml_and_in_json(values in prop::collection::vec(values(), 1..5)) {
        let api = json!({"openapi": "3.1.0", "paths": {"/a": {"get": {"operationId": "a",
            "parameters": [{"name": "x", "in": "query", "schema": {"enum": values}}]}}}});
        let mut yaml = String::from("---");
        block(&api, 0, &mut yaml);
        prop_assert_eq!(tools(&yaml), tools(&api.to_string()), "{}", yaml);
    }
}

#[test]
fn hostile_yaml_is_an_error_with_a_place() {
    let bomb = |first: &str, next: &dyn Fn(char) -> String| {
        let mut text = format!("a: &a {first}\n");
        for name in 'b'..'j' {
            let before = char::from(name as u8 - 1);
            let _ = writeln!(text, "{name}: &{name} {}", next(before));
        }
        text
    };
    let ten = |name: char| vec![format!("*{name}"); 10].join(",");
    let deep: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    for (text, wanted, place) in [
        (bomb("[x,x,x,x,x,x,x,x,x,x]", &|name| format!("[{}]", ten(name))), "100000 values under anchors", "line 5"),
        (bomb("{k: 1}", &|name| format!("{{<<: [{}]}}", ten(name))), "100000 values under anchors", "line "),
        (
            format!("a: &a {}\nb: [{}]", "x".repeat(1_000_000), vec!["*a"; 100].join(",")),
            "67108864 bytes of keys and scalars",
            "line 2",
        ),
        (format!("a: &a 1\nb: [{}]", vec!["*a"; 60_000].join(",")), "50000 aliases", "line 2"),
        (format!("a: [{}]", "1,".repeat(2_000_001)), "2000000 values", "line 1"),
        (deep, "127 levels deep", "line 128"),
        (format!("{}a", "- ".repeat(100_000)), "127 levels deep", "line 1"),
        (format!("a: {}", "[".repeat(1_000_000)), "127 levels deep", "line 1"),
        ("a: *nope".to_owned(), "names no anchor", "line 1 column 4"),
        ("a: &a [*a]".to_owned(), "ecursive", "line 1"),
        ("a: 1\nb: 2\na: 3".to_owned(), "the key a occurs twice", "line 3 column 1"),
        ("x:\n  200: 1\n  \"200\": 2".to_owned(), "the key 200 occurs twice", "line 3 column"),
        ("a: 1\n---\nb: 2".to_owned(), "more than one document", "line 3"),
        ("a: !include /etc/passwd".to_owned(), "unsupported tag `!include`", "line 1"),
        ("a: .inf".to_owned(), "`.inf` is not a finite number", "line 1 column 4"),
        ("a:\n\tb: 1".to_owned(), "tabs", "line 2"),
        ("a: \"x\nb: 1".to_owned(), "unclosed quote", "line 1"),
        ("a: b: c".to_owned(), "mapping values", "line 1 column 5"),
        ("? [a]\n: 1".to_owned(), "expected string scalar", "line 1"),
    ] {
        let error = Tools::from_openapi(&text).expect_err(wanted).to_string();
        assert!(error.starts_with("the description of the API cannot be read as YAML: "), "{error}");
        assert!(error.contains(wanted) && error.contains(&format!(" at {place}")), "{wanted}, {place}: {error}");
        assert!(error.len() < 500 && !error.contains('\n'), "{error}");
    }
}

/// Scalars as the core schema of YAML 1.2 reads them, in block and flow style, by alias and through a merge key.
#[test]
fn scalars_follow_the_core_schema() {
    for (scalar, json) in [
        ("010", "10"),
        ("-007", "-7"),
        ("00", "0"),
        ("-00", "0"),
        ("+12", "12"),
        ("0o17", "15"),
        ("0x1F", "31"),
        ("0b11", "\"0b11\""),
        ("-0b11", "\"-0b11\""),
        ("-0x1F", "\"-0x1F\""),
        ("+0o7", "\"+0o7\""),
        ("1_000", "\"1_000\""),
        ("0o9", "\"0o9\""),
        ("18446744073709551616", "18446744073709551616"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("+00123456789012345678901234567890", "123456789012345678901234567890"),
        ("1.", "1.0"),
        (".5", "0.5"),
        ("01.5", "1.5"),
        ("1e3", "1000.0"),
        ("!!float 1", "1.0"),
        ("!!int \"7\"", "7"),
        ("!!str 010", "\"010\""),
        ("\"010\"", "\"010\""),
        ("yes", "\"yes\""),
        ("2020-01-01", "\"2020-01-01\""),
        ("True", "true"),
        ("~", "null"),
    ] {
        for (text, wanted) in [
            (scalar.to_owned(), json.to_owned()),
            (format!("é: [x, {scalar}]"), format!(r#"{{"é":["x",{json}]}}"#)),
            (format!("a: &a {scalar}\nb: *a # {scalar}\n"), format!(r#"{{"a":{json},"b":{json}}}"#)),
            (format!("a: &a\n  k: {scalar}\nb: {{<<: *a}}\n"), format!(r#"{{"a":{{"k":{json}}},"b":{{"k":{json}}}}}"#)),
        ] {
            assert_eq!(lisp_runtime::internal::yaml(&text).as_deref(), Ok(wanted.as_str()), "{text}");
        }
    }
}

#[test]
fn what_is_no_description_says_so() {
    for (text, wanted) in [
        ("openapi: 2\npaths: {}", "not an OpenAPI 3 description"),
        ("swagger: 2.0", "it is Swagger 2.0: convert it"),
        ("hello", "not an OpenAPI 3 description"),
        ("# nothing", "not an OpenAPI 3 description"),
        ("", "cannot be read: EOF"),
        ("{\"openapi\": \"3.1.0\",}", "cannot be read: trailing comma at line 1 column 21"),
    ] {
        let error = Tools::from_openapi(text).expect_err(text).to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
    // A version without quotes is a number.
    assert!(Tools::from_openapi("openapi: 3.1\npaths: {}").is_ok());
}
