//! Tools as they come: from JSON Schema, from the list of an MCP server, from the description of an HTTP API.

use super::document::{LIST_BYTES, read};
use super::json_contract::JsonContract;
use super::naming::symbol;
use super::operation::{Operation, OperationParameter};
use super::schema::{Of, Schema};
use super::schema_error::SchemaError;
use super::tool::{Effect, Tool, Tools};
use super::words::cut;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest name of a tool.
const NAME_BYTES: usize = 200;
/// The most bytes of a description that are kept.
const DESCRIPTION_BYTES: usize = 10_000;
/// The most tools of one list.
const TOOLS: usize = 10_000;
/// The most values that the schemas of one API's tools may have together: each has its own copy of what it refers to.
const VALUES: usize = 2_000_000;

/// What came of a list of tools.
#[derive(Debug, Default)]
pub struct Imported {
    /// The tools: external ones, until [`Tools::served_by`] says otherwise.
    pub tools: Tools,
    /// The names of those that cannot be used, and why.
    pub refused: Vec<(String, SchemaError)>,
}

impl Imported {
    fn take(&mut self, name: &str, tool: Result<Tool, SchemaError>) {
        let added = tool.and_then(|tool| self.tools.add(tool).map_err(|error| SchemaError::new(error.to_string())));
        if let Err(error) = added {
            self.refused.push((cut(name, NAME_BYTES), error));
        }
    }
}

impl Tool {
    /// A tool as function-calling APIs describe it: a name, a description, the JSON Schema of its arguments, and perhaps that of
    /// its results. Arguments and results are checked against the schemas; a line in the notation of signatures is made of them
    /// for models. The tool is external until [`Tool::served_by`] gives it a function.
    ///
    /// A name that no program can write is written with `%XX` for its bytes: `issues/list` is `tool/issues%2Flist`. What the host
    /// sees in [`ToolCall::name`] is the name as it is given here.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool};
    /// let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    ///                  "additionalProperties": false}"#;
    /// let tool = Tool::from_json_schema("double", "Doubles a number.", schema, None)?
    ///     .served_by(|call| Ok(2 * call.get::<i64>("n")?));
    /// assert_eq!(tool.shown(), "(n :int) -> :any");
    /// let engine = Engine::builder().grant(tool).build()?;
    /// assert_eq!(engine.eval("(tool/double {:n 21})", Input::new()).value::<i64>()?, 42);
    /// let refused = engine.eval("(tool/double {:n \"21\"})", Input::new());
    /// let message = &refused.problem().unwrap().error.message;
    /// assert_eq!(message, "tool/double: n: expected an integer, got the string \"21\"; write 21, without quotes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A schema that is none, that refers to another document, or that is beyond the limits in `docs/tools.md`.
    pub fn from_json_schema(
        name: &str,
        description: &str,
        input: &str,
        output: Option<&str>,
    ) -> Result<Self, SchemaError> {
        Tool::of_contract(name, description, JsonContract::read(input, output)?)
    }

    /// Returns the tool of a record, by the texts of its schemas.
    pub(crate) fn of_schemas(name: &str, input: &str, output: Option<&str>) -> Result<Self, SchemaError> {
        Tool::from_json_schema(name, "", input, output)
    }

    fn of_contract(name: &str, description: &str, contract: JsonContract) -> Result<Self, SchemaError> {
        if name.is_empty() || name.len() > NAME_BYTES {
            return Err(SchemaError::new(format!(
                "a tool's name has 1 to {NAME_BYTES} bytes, and this has {}",
                name.len()
            )));
        }
        let symbol = symbol(name);
        let mut tool = Tool::external(symbol.as_str())
            .described(contract.line.text.clone())
            .about(&cut(description, DESCRIPTION_BYTES));
        if symbol != name {
            tool.given_name = Some(name.to_owned());
        }
        tool.hyphenated = contract.hyphenated().into();
        tool.json_contract = Some(Arc::new(contract));
        Ok(tool)
    }

    fn of_values(name: &str, about: &str, input: Value, output: Option<Value>) -> Result<Self, SchemaError> {
        let input = Schema::new(input, Of::Arguments).map_err(|error| error.at("the schema of its arguments"))?;
        let output = output
            .map(|output| Schema::new(output, Of::Results))
            .transpose()
            .map_err(|error| error.at("the schema of its results"))?;
        Tool::of_contract(name, about, JsonContract::new(input, output))
    }
}

impl Tools {
    /// The tools of an MCP server: the result of `tools/list`, its list alone, or the whole response. What a server says of the
    /// effects of a tool (`readOnlyHint`, `destructiveHint`, `idempotentHint`) becomes [`Effect`]; it is the server's word.
    ///
    /// ```
    /// use lisp_runtime::{Effect, Tools};
    /// let list = r#"{"tools": [{"name": "issues/list", "description": "Lists issues.",
    ///     "inputSchema": {"type": "object", "properties": {"state": {"enum": ["open", "closed"]}}},
    ///     "annotations": {"readOnlyHint": true}}]}"#;
    /// let imported = Tools::from_mcp_list(list)?;
    /// let tool = imported.tools.all().next().unwrap();
    /// assert_eq!((tool.name(), tool.given_name()), ("issues%2Flist", "issues/list"));
    /// assert_eq!(tool.shown(), r#"(state? "open"|"closed", ...) -> :any"#);
    /// assert_eq!(tool.effect_of(), Effect::Read);
    /// # Ok::<(), lisp_runtime::SchemaError>(())
    /// ```
    ///
    /// # Errors
    /// The text is no such list. Of single tools [`Imported::refused`] says what is wrong.
    pub fn from_mcp_list(list: &str) -> Result<Imported, SchemaError> {
        let mut list = read(list, LIST_BYTES, "the list of tools")?;
        if let Some(result) = list.get_mut("result") {
            list = result.take();
        }
        if let Some(tools) = list.get_mut("tools") {
            list = tools.take();
        }
        let Value::Array(list) = list else {
            return Err(SchemaError::new("it is no list of tools: {\"tools\": [..]} is one"));
        };
        if list.len() > TOOLS {
            return Err(SchemaError::new(format!("the list has {} tools, and may have {TOOLS}", list.len())));
        }
        let mut imported = Imported::default();
        for (index, mut tool) in list.into_iter().enumerate() {
            let text = |keyword: &str| tool.get(keyword).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (name, description) = (text("name"), text("description"));
            let hint = |keyword: &str| tool.get("annotations")?.get(keyword)?.as_bool();
            let effect = match (hint("readOnlyHint"), hint("destructiveHint")) {
                (Some(true), _) => Effect::Read,
                (Some(false), _) | (None, Some(true)) => Effect::Write,
                _ => Effect::Unknown,
            };
            let idempotent = hint("idempotentHint") == Some(true);
            let input = match tool.get_mut("inputSchema").map(Value::take) {
                Some(Value::Null) => Err(SchemaError::new("inputSchema: it is null, and has to be a JSON Schema")),
                input => Ok(input.unwrap_or_else(|| json!({}))),
            };
            let output = tool.get_mut("outputSchema").map(Value::take).filter(|schema| !schema.is_null());
            let tool = input.and_then(|input| Tool::of_values(&name, &description, input, output));
            let label = if name.is_empty() { format!("(entry {index} of the list)") } else { name };
            imported.take(
                &label,
                tool.map(|tool| if idempotent { tool.effect(effect).idempotent() } else { tool.effect(effect) }),
            );
        }
        Ok(imported)
    }

    /// The operations of an HTTP API, by its OpenAPI description (3.0 or 3.1, as JSON). A tool has the name of the operation's
    /// `operationId`, or without one its method and path with `_` for all but ASCII letters and digits, as in `get_pets__id_`; its
    /// arguments are the operation's parameters, and `body`. [`Tool::operation`] says which request it is; the
    /// host makes it.
    ///
    /// ```
    /// use lisp_runtime::Tools;
    /// let api = r##"{"openapi": "3.1.0", "paths": {"/pets/{id}": {"get": {"operationId": "getPet", "summary": "Gets a pet.",
    ///     "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
    ///     "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}}}},
    ///   "components": {"schemas": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}}}}"##;
    /// let imported = Tools::from_openapi(api)?;
    /// let tool = imported.tools.all().next().unwrap();
    /// assert_eq!(tool.shown(), "(id :int) -> {name? :string}");
    /// assert_eq!(tool.operation().unwrap().path, "/pets/{id}");
    /// # Ok::<(), lisp_runtime::SchemaError>(())
    /// ```
    ///
    /// # Errors
    /// The text is no such description. Of single operations [`Imported::refused`] says what is wrong.
    pub fn from_openapi(description: &str) -> Result<Imported, SchemaError> {
        let api = read(description, LIST_BYTES, "the description of the API")?;
        let version = api.get("openapi").and_then(Value::as_str).unwrap_or_default();
        if !version.starts_with("3.") {
            return Err(SchemaError::new("it is no OpenAPI description of version 3, as JSON"));
        }
        // Schemas of 3.0 are of an older draft, whose exclusive limits are flags.
        let mut reader = ApiReader { api: &api, is_old: version.starts_with("3.0"), values: 0 };
        let mut imported = Imported::default();
        let paths = api.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            let item = reader.resolved(item);
            for method in ["get", "put", "post", "delete", "options", "head", "patch", "trace"] {
                let Some(operation) = item.get(method) else { continue };
                let name = match operation.get("operationId").and_then(Value::as_str) {
                    Some(id) => id.to_owned(),
                    None => format!("{method}{}", path.replace(|c: char| !c.is_ascii_alphanumeric(), "_")),
                };
                if imported.tools.names().count() + imported.refused.len() >= TOOLS {
                    return Err(SchemaError::new(format!("the API has more than {TOOLS} operations")));
                }
                let tool = reader.tool(&name, method, path, item, operation);
                imported.take(&name, tool);
                if reader.values > VALUES {
                    let message = format!("its operations have schemas of more than {VALUES} values together");
                    return Err(SchemaError::new(message));
                }
            }
        }
        Ok(imported)
    }
}

/// Reads the description of an API.
struct ApiReader<'a> {
    api: &'a Value,
    is_old: bool,
    /// The values of the schemas so far.
    values: usize,
}

impl<'a> ApiReader<'a> {
    /// What stands at the place that a part of the description refers to.
    fn resolved(&self, mut part: &'a Value) -> &'a Value {
        for _ in 0..8 {
            let Some(pointer) = part.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix('#')) else {
                break;
            };
            match self.api.pointer(pointer) {
                Some(next) => part = next,
                None => break,
            }
        }
        part
    }

    fn tool(
        &mut self,
        name: &str,
        method: &str,
        path: &str,
        item: &'a Value,
        operation: &'a Value,
    ) -> Result<Tool, SchemaError> {
        let mut fields = Map::new();
        let mut required = Vec::new();
        let mut parameters: Vec<OperationParameter> = Vec::new();
        let mut seen = BTreeSet::new();
        // Those of the operation come first, and take the place of those of the path.
        let lists = [operation, item].into_iter().filter_map(|of| of.get("parameters")?.as_array());
        for parameter in lists.flatten().map(|parameter| self.resolved(parameter)) {
            let text = |keyword: &str| parameter.get(keyword).and_then(Value::as_str).unwrap_or_default();
            let (name, location) = (text("name"), text("in"));
            if name.is_empty() || !seen.insert((name, location)) {
                continue;
            }
            let argument = if fields.contains_key(name) { format!("{location}_{name}") } else { name.to_owned() };
            let mut schema = self.schema_of(parameter).cloned().unwrap_or_else(|| json!({}));
            if let (Value::Object(schema), false) = (&mut schema, text("description").is_empty()) {
                schema.insert("description".to_owned(), text("description").into());
            }
            if parameter.get("required") == Some(&Value::Bool(true)) {
                required.push(argument.clone());
            }
            fields.insert(argument.clone(), schema);
            parameters.push(OperationParameter { argument, name: name.to_owned(), location: location.to_owned() });
        }
        let mut body = None;
        if let Some(request) = operation.get("requestBody").map(|request| self.resolved(request))
            && let Some((media, content)) = content_of(request)
        {
            let argument = if fields.contains_key("body") { "request_body" } else { "body" };
            fields.insert(argument.to_owned(), content.get("schema").cloned().unwrap_or_else(|| json!({})));
            if request.get("required") == Some(&Value::Bool(true)) {
                required.push(argument.to_owned());
            }
            body = Some((argument.to_owned(), media.to_owned()));
        }
        let mut input = json!({"type": "object", "properties": fields, "additionalProperties": false});
        if !required.is_empty() {
            input["required"] = required.into();
        }
        let responses = operation.get("responses").and_then(Value::as_object);
        let success = responses.into_iter().flatten().find(|(status, _)| status.starts_with('2'));
        let output = success.map(|(_, response)| self.resolved(response)).and_then(content_of);
        let output = output.filter(|(media, _)| media.contains("json")).and_then(|(_, content)| content.get("schema"));
        let input = self.whole(input)?;
        let output = output.map(|output| self.whole(json!({"allOf": [output]}))).transpose()?;
        let text = |keyword: &str| operation.get(keyword).and_then(Value::as_str).filter(|text| !text.is_empty());
        let about = [text("summary"), text("description")].into_iter().flatten().collect::<Vec<_>>().join("\n");
        let mut tool = Tool::of_values(name, &about, input, output)?;
        tool = tool.effect(if matches!(method, "get" | "head" | "options" | "trace") {
            Effect::Read
        } else {
            Effect::Write
        });
        if !matches!(method, "post" | "patch") {
            tool = tool.idempotent();
        }
        let (method, path) = (method.to_uppercase(), path.to_owned());
        tool.operation = Some(Arc::new(Operation { method, path, parameters, body }));
        Ok(tool)
    }

    fn schema_of(&self, parameter: &'a Value) -> Option<&'a Value> {
        parameter.get("schema").or_else(|| content_of(parameter)?.1.get("schema"))
    }

    /// A schema with all of the description's schemas that it refers to, at the places where it looks for them.
    fn whole(&mut self, mut schema: Value) -> Result<Value, SchemaError> {
        let known = self.api.pointer("/components/schemas").and_then(Value::as_object);
        let mut kept = Map::new();
        let mut left = Vec::new();
        self.values += references(&schema, &mut left);
        while let Some(reference) = left.pop() {
            let Some(name) = reference.strip_prefix("#/components/schemas/") else { continue };
            let name = name.split('/').next().unwrap_or_default();
            let name = super::naming::percent_decoded(name).replace("~1", "/").replace("~0", "~");
            if kept.contains_key(&name) {
                continue;
            }
            if let Some(found) = known.and_then(|known| known.get(&name)) {
                self.values += references(found, &mut left);
                if self.values > VALUES {
                    return Err(SchemaError::new(format!("the schemas have more than {VALUES} values together")));
                }
                kept.insert(name, found.clone());
            }
        }
        if let Value::Object(map) = &mut schema {
            if !kept.is_empty() {
                map.insert("components".to_owned(), json!({"schemas": kept}));
            }
            let draft = "http://json-schema.org/draft-04/schema#";
            if self.is_old {
                map.insert("$schema".to_owned(), draft.into());
            }
        }
        Ok(schema)
    }
}

/// Lists the references in a schema; returns the number of values in it. The recursion is as deep as the text, which its reader
/// bounds.
fn references(value: &Value, found: &mut Vec<String>) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(|item| references(item, found)).sum::<usize>(),
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                found.push(reference.clone());
            }
            1 + map.values().map(|value| references(value, found)).sum::<usize>()
        }
        _ => 1,
    }
}

/// The content of a request or response that is JSON, or its first, with the media type.
fn content_of(part: &Value) -> Option<(&str, &Value)> {
    let all = part.get("content")?.as_object()?;
    let json = all.iter().find(|(media, _)| media.starts_with("application/json"));
    let json = json.or_else(|| all.iter().find(|(media, _)| media.contains("json")));
    json.or_else(|| all.iter().next()).map(|(media, content)| (media.as_str(), content))
}
