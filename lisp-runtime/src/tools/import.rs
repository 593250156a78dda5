//! Tools as they come: from JSON Schema, and from the list of an MCP server.

use super::document::{LIST_BYTES, read};
use super::json_contract::JsonContract;
use super::naming::symbol;
use super::schema::{Of, Schema};
use super::schema_error::SchemaError;
use super::tool::{Effect, Tool, Tools};
use super::words::cut;
use serde_json::{Value, json};
use std::sync::Arc;

/// The longest name of a tool.
const NAME_BYTES: usize = 200;
/// The most bytes of a description that are kept.
const DESCRIPTION_BYTES: usize = 10_000;
/// The most tools of one list.
pub(super) const TOOLS: usize = 10_000;
/// The most values that the schemas of one API's tools may have together: each has its own copy of what it refers to.
pub(super) const VALUES: usize = 2_000_000;

/// What came of a list of tools.
#[derive(Debug, Default)]
pub struct Imported {
    /// The tools: external ones, until [`Tools::served_by`] says otherwise.
    pub tools: Tools,
    /// The names of those that cannot be used, and why.
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
    /// A tool as function-calling APIs describe it: a name, a description, the JSON Schema of its arguments, and perhaps that of
    /// its results. Arguments and results are checked against the schemas; a line in the notation of signatures is made of them
    /// for models. The tool is external until [`Tool::served_by`] gives it a function.
    ///
    /// A name that no program can write is written with `%XX` for its bytes: `issues/list` is `tool/issues%2Flist`. What the host
    /// sees in [`ToolCall::name`](crate::ToolCall::name) is the name as it is given here.
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
            return Err(SchemaError::new("it is not a list of tools: {\"tools\": [..]} is one"));
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
}
