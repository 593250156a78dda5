//! Tools from JSON Schema, and from the tool list of an MCP server.

use super::contract::Effect;
use super::document::{LIST_BYTES, read};
use super::json_contract::JsonContract;
use super::schema::{Of, Schema};
use super::schema_error::SchemaError;
use super::tool::Tool;
use super::tool_set::Tools;
use super::words::cut;
use serde_json::{Value, json};
use std::sync::Arc;

/// The maximum length of a tool's name, in bytes.
const NAME_BYTES: usize = 200;
/// The maximum number of tools in one list.
pub(super) const TOOLS: usize = 10_000;
/// The maximum number of values in the schemas of one API's tools together: each has its own copy of what it refers to.
pub(super) const VALUES: usize = 2_000_000;

/// The result of importing a list of tools.
#[derive(Debug, Default)]
pub struct Imported {
    /// The tools. They are external until [`Tools::with_handler`] sets a handler.
    pub tools: Tools,
    /// The names of tools that cannot be used, and why.
    pub refused: Vec<(String, SchemaError)>,
}

impl Imported {
    pub(super) fn take(&mut self, name: &str, tool: Result<Tool, SchemaError>) {
        let added = tool.and_then(|tool| self.tools.add(tool).map_err(|error| SchemaError::new(error.to_string())));
        if let Err(error) = added {
            self.refuse(name, error);
        }
    }

    pub(super) fn refuse(&mut self, name: &str, error: SchemaError) {
        self.refused.push((cut(name, NAME_BYTES), error));
    }
}

impl Tool {
    /// Creates a tool from a name, a description and JSON Schemas, as function-calling APIs describe it.
    ///
    /// Arguments, and results if there is a schema for them, are checked against the schemas. Models see a line derived
    /// from the schemas. The tool is external until [`Tool::with_handler`] sets a handler.
    ///
    /// If programs cannot write the name, they use it with `%XX` for its special bytes: `issues/list` is
    /// `tool/issues%2Flist`. [`ToolCall::name`](crate::ToolCall::name) returns the name as given here.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool};
    /// let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    ///                  "additionalProperties": false}"#;
    /// let tool = Tool::from_json_schema("double", "Doubles a number.", schema, None)?
    ///     .with_handler(|call| Ok(2 * call.get::<i64>("n")?));
    /// assert_eq!(tool.signature_text(), "(n :int) -> :any");
    /// let engine = Engine::builder().grant(tool).build()?;
    /// assert_eq!(engine.eval("(tool/double {:n 21})", Input::new()).value::<i64>()?, 42);
    /// let refused = engine.eval("(tool/double {:n \"21\"})", Input::new());
    /// let message = &refused.problem().unwrap().error.message;
    /// assert_eq!(message, "tool/double: n: expected an integer, got the string \"21\"; write 21, without quotes");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A schema is not valid, refers to another document, or exceeds the limits in `docs/tools.md`.
    pub fn from_json_schema(
        name: &str,
        description: &str,
        input: &str,
        output: Option<&str>,
    ) -> Result<Self, SchemaError> {
        Tool::of_contract(name, description, JsonContract::read(input, output)?)
    }

    /// Returns the tool of a record, from the texts of its schemas.
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
        Ok(Tool::external("").renamed(name).about(description).checked_by(Arc::new(contract)))
    }

    pub(super) fn of_values(name: &str, about: &str, input: Value, output: Option<Value>) -> Result<Self, SchemaError> {
        let input = Schema::new(input, Of::Arguments).map_err(|error| error.at("the schema of its arguments"))?;
        let output = output
            .map(|output| Schema::new(output, Of::Results))
            .transpose()
            .map_err(|error| error.at("the schema of its results"))?;
        Tool::of_contract(name, about, JsonContract::new(input, output))
    }
}

impl Tools {
    /// Creates tools from the result of an MCP server's `tools/list`: the result, its list alone, or the whole
    /// response.
    ///
    /// The annotations `readOnlyHint`, `destructiveHint` and `idempotentHint` set the [`Effect`]. They are claims of
    /// the server.
    ///
    /// ```
    /// use lisp_runtime::Tools;
    /// use lisp_runtime::tools::Effect;
    /// let list = r#"{"tools": [{"name": "issues/list", "description": "Lists issues.",
    ///     "inputSchema": {"type": "object", "properties": {"state": {"enum": ["open", "closed"]}}},
    ///     "annotations": {"readOnlyHint": true}}]}"#;
    /// let imported = Tools::from_mcp_list(list)?;
    /// let tool = imported.tools.all().next().unwrap();
    /// assert_eq!((tool.name(), tool.given_name()), ("issues%2Flist", "issues/list"));
    /// assert_eq!(tool.signature_text(), r#"(state? "open"|"closed", ...) -> :any"#);
    /// assert_eq!(tool.effect(), Effect::Read);
    /// # Ok::<(), lisp_runtime::tools::SchemaError>(())
    /// ```
    ///
    /// # Errors
    /// The text is not such a list. For errors in single tools, see [`Imported::refused`].
    pub fn from_mcp_list(list: &str) -> Result<Imported, SchemaError> {
        let mut list = read(list, LIST_BYTES, "the list of tools")?;
        if let Some(result) = list.get_mut("result") {
            list = result.take();
        }
        if let Some(tools) = list.get_mut("tools") {
            list = tools.take();
        }
        let Value::Array(list) = list else {
            return Err(SchemaError::new("it is not a list of tools: {\"tools\": [..]} is one"));
        };
        if list.len() > TOOLS {
            return Err(SchemaError::new(format!("the list has {} tools; the maximum is {TOOLS}", list.len())));
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
                Some(Value::Null) => Err(SchemaError::new("inputSchema: it is null, and must be a JSON Schema")),
                input => Ok(input.unwrap_or_else(|| json!({}))),
            };
            let output = tool.get_mut("outputSchema").map(Value::take).filter(|schema| !schema.is_null());
            let tool = input.and_then(|input| Tool::of_values(&name, &description, input, output));
            let label = if name.is_empty() { format!("(entry {index} of the list)") } else { name };
            let treated = |tool: Tool| tool.treat(|it| (it.effect, it.idempotent) = (effect, idempotent));
            imported.take(&label, tool.map(treated));
        }
        Ok(imported)
    }
}
