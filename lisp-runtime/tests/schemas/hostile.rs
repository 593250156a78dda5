//! Schemas that want to hang or crash their reader: each is refused or used, in no time, on a thread with a small stack.

use crate::cpu::thread_time;
use lisp_runtime::{Tool, Tools};
use serde_json::{Value, json};
use std::time::Duration;

/// The maximum processor time for one schema, to be read, and for each value that is checked. It takes 2 s in a debug build on a slow machine.
const MAX: Duration = Duration::from_secs(8);

fn nested(depth: usize, open: &str, core: &str, close: &str) -> String {
    format!("{}{core}{}", open.repeat(depth), close.repeat(depth))
}

/// Definitions of which each is made from the next, the last one from `last`.
fn ladder(steps: usize, step: impl Fn(&str) -> Value, last: &Value) -> String {
    let mut all = serde_json::Map::new();
    for n in 0..steps {
        let next = format!("#/$defs/n{}", n + 1);
        all.insert(format!("n{n}"), step(&next));
    }
    all.insert(format!("n{steps}"), last.clone());
    json!({"$ref": "#/$defs/n0", "$defs": all}).to_string()
}

fn schemas() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: String, schema: String| all.push((name, schema));
    for depth in [30, 60, 100, 126, 127, 128, 1_000, 100_000] {
        add(format!("deep items {depth}"), nested(depth, "{\"items\":", "true", "}"));
        add(format!("deep fields {depth}"), nested(depth, "{\"properties\":{\"x\":", "true", "}}"));
        add(format!("deep allOf {depth}"), nested(depth, "{\"allOf\":[", "true", "]}"));
        add(format!("deep not {depth}"), nested(depth, "{\"not\":", "true", "}"));
        add(format!("deep default {depth}"), format!("{{\"default\":{}}}", nested(depth, "[", "", "]")));
    }
    for width in [1_000, 19_000, 100_000] {
        let fields: Vec<String> = (0..width).map(|n| format!("\"f{n}\":{{\"type\":\"string\"}}")).collect();
        add(format!("wide fields {width}"), format!("{{\"properties\":{{{}}}}}", fields.join(",")));
        let values: Vec<String> = (0..width).map(|n| n.to_string()).collect();
        add(format!("wide enum {width}"), format!("{{\"enum\":[{}]}}", values.join(",")));
        add(format!("wide required {width}"), format!("{{\"required\":[\"{}\"]}}", values.join("\",\"")));
        let forms: Vec<String> = (0..width).map(|n| format!("{{\"const\":{n}}}")).collect();
        add(format!("wide anyOf {width}"), format!("{{\"anyOf\":[{}]}}", forms.join(",")));
        add(format!("wide allOf {width}"), format!("{{\"allOf\":[{}]}}", vec!["{\"minLength\":1}"; width].join(",")));
        add(format!("wide not {width}"), format!("{{\"items\":{{\"not\":{{\"enum\":[{}]}}}}}}", values.join(",")));
    }
    for steps in [5, 20, 30, 31, 32, 40, 1_000, 9_000] {
        add(format!("chain {steps}"), ladder(steps, |next| json!({"$ref": next}), &json!({"type": "string"})));
        add(
            format!("twofold {steps}"),
            ladder(steps, |next| json!({"allOf": [{"$ref": next}, {"$ref": next}]}), &json!({"type": "string"})),
        );
        add(
            format!("fourfold {steps}"),
            ladder(
                steps,
                |next| json!({"anyOf": [{"$ref": next}, {"$ref": next}, {"$ref": next}, {"$ref": next}]}),
                &json!({"type": "string"}),
            ),
        );
        add(
            format!("fields {steps}"),
            ladder(
                steps,
                |next| json!({"properties": {"x": {"$ref": next}, "y": {"$ref": next}}}),
                &json!({"type": "string"}),
            ),
        );
        add(
            format!("one field {steps}"),
            ladder(steps, |next| json!({"properties": {"x": {"$ref": next}}}), &json!({"type": "string"})),
        );
        add(
            format!("twofold fields {steps}"),
            ladder(
                steps,
                |next| json!({"anyOf": [{"properties": {"x": {"$ref": next}}}, {"properties": {"x": {"$ref": next}}}]}),
                &json!({"type": "string"}),
            ),
        );
        add(format!("not {steps}"), ladder(steps, |next| json!({"not": {"$ref": next}}), &json!({"type": "string"})));
        add(
            format!("if {steps}"),
            ladder(
                steps,
                |next| json!({"if": {"$ref": next}, "then": {"$ref": next}, "else": {"$ref": next}}),
                &json!({"type": "string"}),
            ),
        );
        add(
            format!("unevaluated {steps}"),
            ladder(
                steps,
                |next| json!({"allOf": [{"$ref": next}], "unevaluatedProperties": {"$ref": next}}),
                &json!({"type": "string"}),
            ),
        );
    }
    let recursive = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"if": {"$ref": "#"}, "then": {"$ref": "#"}}),
        json!({"$dynamicRef": "#a", "$dynamicAnchor": "a"}),
        json!({"$recursiveRef": "#", "$recursiveAnchor": true, "$schema": "https://json-schema.org/draft/2019-09/schema"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"properties": {"x": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}}),
        json!({"items": {"$ref": "#"}, "contains": {"$ref": "#"}, "minContains": 0}),
        json!({"anyOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}, {"type": "string"}]}),
        json!({"oneOf": [{"properties": {"x": {"$ref": "#"}}, "required": ["x"]}, {"properties": {"x": {"$ref": "#"}}, "required": ["x", "y"]}]}),
        json!({"allOf": [{"additionalProperties": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}], "items": {"type": "string"}}),
        json!({"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}], "type": ["array", "object"]}),
        json!({"allOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}], "unevaluatedProperties": {"$ref": "#"}}),
        json!({"anyOf": [{"properties": {"x": {"$ref": "#"}}}, {"patternProperties": {"x": {"$ref": "#"}}}], "unevaluatedProperties": false, "required": ["y"]}),
        json!({"propertyNames": {"$ref": "#"}}),
        json!({"dependentSchemas": {"x": {"$ref": "#"}}}),
        json!({"patternProperties": {"^x$": {"$ref": "#"}, "^.$": {"$ref": "#"}}, "required": ["nowhere"]}),
        json!({"$id": "http://a/", "$defs": {"b": {"$id": "b", "allOf": [{"$ref": "/"}]}}, "allOf": [{"$ref": "b"}]}),
    ];
    for schema in recursive {
        add(format!("recursive {schema}"), schema.to_string());
    }
    // As many schemas for each value as there may be, on values as deep as they may be: the deepest recursion.
    for (name, step) in [
        ("allOf", (|next: &str| json!({"allOf": [{"$ref": next}]})) as fn(&str) -> Value),
        ("anyOf", |next| json!({"anyOf": [{"$ref": next}]})),
        ("oneOf", |next| json!({"oneOf": [{"$ref": next}]})),
        ("not", |next| json!({"not": {"$ref": next}})),
        ("if", |next| json!({"if": {"$ref": next}})),
        ("$ref", |next| json!({"$ref": next})),
        ("dependentSchemas", |next| json!({"dependentSchemas": {"x": {"$ref": next}}})),
        ("unevaluated", |next| json!({"allOf": [{"$ref": next}], "unevaluatedProperties": false})),
    ] {
        for steps in [14, 29] {
            let last = json!({"properties": {"x": {"$ref": "#"}}, "items": {"$ref": "#"}, "type": ["object", "array"]});
            add(format!("deepest {name} {steps}"), ladder(steps, step, &last));
        }
    }
    let patterns = [
        "(a+)+$",
        "^(a|aa)+$",
        "^(a|a)*b",
        "(.*)*(.*)*(.*)*x",
        "^(?=(a+)+b)",
        "^(a*)*\\1b",
        "^((a*)*)*\\2c",
        "(?<=a+)b",
        "(?!.*(a+)+c)a*$",
        "(x{1000}){1000}",
        "\\w{1000}{1000}",
        "((((a{50}){50}){50}){50})",
        "[\\s\\S]{0,100000}",
        "(?:a?){500}a{500}",
        "(",
        "[",
        "*",
        "\\",
        "\\p{Foo}",
        "(?P<n>a)",
        "\\u{110000}",
        "(?:(?:(?:(?:a))))",
        "^\\p{L}{1,60}$",
        "(?=a)(?=a)(?=a)a*\\1",
        "(a)(b)(c)\\3\\2\\1",
    ];
    for pattern in patterns {
        add(format!("pattern {pattern}"), json!({"items": {"pattern": pattern}, "pattern": pattern}).to_string());
        add(format!("patterns of names {pattern}"), json!({"patternProperties": {pattern: false}}).to_string());
    }
    add("a long pattern".to_owned(), json!({"pattern": "(a|b)".repeat(10_000)}).to_string());
    add("nested groups".to_owned(), json!({"pattern": nested(900, "(", "a", ")")}).to_string());
    let many: Vec<Value> = (0..290).map(|n| json!({"pattern": format!("^\\p{{L}}{{{n},90}}x$")})).collect();
    add("many patterns".to_owned(), json!({"anyOf": many}).to_string());
    let numbers = [
        "{\"minLength\":1e300}",
        "{\"maxLength\":-1}",
        "{\"minLength\":1.5}",
        "{\"minItems\":18446744073709551616}",
        "{\"multipleOf\":0}",
        "{\"multipleOf\":1e-300}",
        "{\"multipleOf\":5e-324}",
        "{\"multipleOf\":1e308}",
        "{\"minimum\":1e308,\"maximum\":-1e308}",
        "{\"minimum\":1e999}",
        "{\"multipleOf\":0.000000000000000000000000001}",
        "{\"minContains\":99999999999999999999,\"contains\":{}}",
        "{\"const\":123456789012345678901234567890}",
        "{\"type\":\"integer\",\"maximum\":9007199254740993}",
        "{\"enum\":[1e400]}",
        "{\"maxProperties\":-0.0}",
    ];
    for text in numbers {
        add(text.to_owned(), text.to_owned());
    }
    let none = [
        "",
        "null",
        "5",
        "[]",
        "\"x\"",
        "{",
        "{\"type\":5}",
        "{\"type\":\"foo\"}",
        "{\"properties\":[]}",
        "{\"required\":{\"a\":1}}",
        "{\"enum\":{}}",
        "{\"items\":3}",
        "{\"$ref\":5}",
        "{\"$ref\":\"\"}",
        "{\"$ref\":\"#/\"}",
        "{\"$ref\":\"#/%FF\"}",
        "{\"$ref\":\"#/~2\"}",
        "{\"$ref\":\"file:///etc/passwd\"}",
        "{\"$ref\":\"http://169.254.169.254/\"}",
        "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":7}}",
        "{\"$schema\":\"http://evil/schema\"}",
        "{\"$schema\":7}",
        "{\"$id\":\"::::\"}",
        "{\"$id\":\"http://[\"}",
        "{\"$anchor\":\"\\u0000\"}",
        "{\"allOf\":{}}",
        "{\"properties\":{\"a\":null}}",
        "true",
        "false",
        "{\"properties\":{\"\":true,\"\\u0000\":true,\"a\\nb\":{\"type\":\"string\"},\"\u{202e}\":{\"default\":\"\\n\"}}}",
        "{\"$vocabulary\":{\"http://x/\":true}}",
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}",
    ];
    for text in none {
        add(format!("none {text}"), text.to_owned());
    }
    add(
        "a long name".to_owned(),
        json!({"properties": {"x".repeat(500_000): {"type": "string"}}, "required": ["x".repeat(400_000)]}).to_string(),
    );
    add("too long".to_owned(), json!({"description": "x".repeat(2_000_000)}).to_string());
    add("items that differ".to_owned(), json!({"uniqueItems": true, "items": {"uniqueItems": true}}).to_string());
    all
}

fn values() -> Vec<(String, String)> {
    let mut all = vec![("an empty map".to_owned(), "{}".to_owned())];
    for depth in [1, 20, 60, 63, 100] {
        all.push((format!("maps {depth}"), nested(depth, "{\"x\":", "1", "}")));
        all.push((format!("vectors {depth}"), nested(depth, "[", "1", "]")));
    }
    all.push(("a long text".to_owned(), format!("\"{}!\"", "a".repeat(100_000))));
    all.push(("long texts".to_owned(), format!("[{}]", vec![format!("\"{}!\"", "a".repeat(2_000)); 20].join(","))));
    all.push((
        "a long vector".to_owned(),
        format!("[{}]", (0..20_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",")),
    ));
    all.push(("maps that are equal".to_owned(), format!("[{}]", vec!["{\"x\":{\"x\":[1]}}"; 10_000].join(","))));
    let keys: Vec<String> = (0..5_000).map(|n| format!("\"{}{n}\":1", "a".repeat(20))).collect();
    all.push(("a wide map".to_owned(), format!("{{{}}}", keys.join(","))));
    for number in ["1e308", "-0.0", "123456789012345678901234567890", "0.1", "5e-324"] {
        all.push((number.to_owned(), number.to_owned()));
    }
    all
}

#[test]
fn hostile_schemas_neither_hang_nor_crash() {
    let (schemas, values) = (schemas(), values());
    assert!(schemas.len() >= 200, "{}", schemas.len());
    let (mut used, mut slowest) = (0, (Duration::ZERO, String::new()));
    let mut told = |since: Duration, what: String| {
        let took = thread_time() - since;
        if took > Duration::from_millis(300) {
            println!("{took:?}: {what}");
        }
        if took > slowest.0 {
            slowest = (took, what);
        }
    };
    for (name, schema) in &schemas {
        let begun = thread_time();
        let made = Tool::from_json_schema("t", "", schema, Some(schema));
        told(begun, format!("reading {name}"));
        let tool = match made {
            Ok(tool) => tool,
            Err(error) => {
                let error = error.to_string();
                assert!(error.len() < 700, "{name}: {error}");
                continue;
            }
        };
        used += 1;
        assert!(tool.signature_text().len() <= 1_000 && !tool.describe().is_empty(), "{name}");
        for (what, value) in &values {
            let begun = thread_time();
            if let Err(error) = tool.validate_arguments(value) {
                assert!(error.message.len() < 2_200, "{name}: {}", error.message);
            }
            told(begun, format!("{name} on {what}"));
        }
    }
    println!("{} schemas, {used} used; slowest {slowest:?}", schemas.len());
    assert!(slowest.0 < MAX, "{slowest:?}");
}

#[test]
fn hostile_lists_are_refused() {
    let one = |name: &str, schema: &Value| json!({"name": name, "inputSchema": schema});
    let many: Vec<Value> = (0..10_001).map(|n| one(&n.to_string(), &json!({}))).collect();
    assert!(Tools::from_mcp_list(&json!(many).to_string()).is_err());
    assert!(Tools::from_mcp_list(&" ".repeat(17 << 20)).is_err());
    for none in ["", "5", "{}", "{\"tools\":{}}", "{\"result\":null}", &"[".repeat(100_000)] {
        assert!(Tools::from_mcp_list(none).is_err(), "{none}");
        assert!(Tools::from_openapi(none).is_err(), "{none}");
    }
    let odd = json!([
        5,
        null,
        {},
        one("", &json!({})),
        one(&"x".repeat(300), &json!({})),
        one("a", &json!({})),
        one("a", &json!({})),
        one("b", &json!(7))
    ]);
    let imported = Tools::from_mcp_list(&odd.to_string()).expect("a list");
    assert_eq!(imported.tools.names().collect::<Vec<_>>(), ["a"]);
    assert_eq!(imported.refused.len(), 7, "{:?}", imported.refused);
    // An API in which each of many operations refers to all of many schemas.
    let values: Vec<u32> = (0..300).collect();
    let schema = |n: usize| {
        let next = format!("#/components/schemas/s{}", (n + 1) % 100);
        (format!("s{n}"), json!({"properties": {"x": {"$ref": next}}, "enum": values}))
    };
    let schemas: serde_json::Map<String, Value> = (0..100).map(schema).collect();
    let body = json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/s0"}}}});
    let paths: serde_json::Map<String, Value> = (0..5_000)
        .map(|n| (format!("/p{n}"), json!({"post": {"requestBody": body, "parameters": [{"$ref": "#/paths"}]}})))
        .collect();
    let api = json!({"openapi": "3.1.0", "paths": paths, "components": {"schemas": schemas}}).to_string();
    let begun = thread_time();
    let error = Tools::from_openapi(&api).expect_err("too much");
    assert!(error.to_string().contains("2000000 values"), "{error}");
    println!("an API that is too large: {:?}", thread_time() - begun);
}
