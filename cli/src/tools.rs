//! Tools that a file describes.

use crate::exit::Failure;
use crate::options;
use lisp_runtime::Tool;
use lisp_runtime::request::ScriptedTool;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The option.
#[derive(Debug, clap::Args)]
pub(crate) struct ToolsOption {
    /// JSON file of tools: an object from tool names to signatures or to tools as in requests, or a list of tools with
    /// name, description and JSON Schema (as in MCP or function calling)
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

impl ToolsOption {
    /// Returns the tools.
    pub(crate) fn tools(&self) -> Result<Vec<Tool>, Failure> {
        let Some(path) = &self.tools else { return Ok(Vec::new()) };
        let text = options::read_file(path)?;
        tools(&text).map_err(|why| Failure::Usage(format!("--tools {}: {why}", path.display())))
    }
}

/// Parses the tools that a text describes.
fn tools(text: &str) -> Result<Vec<Tool>, String> {
    if let Some(list) = listed(text) {
        return list.iter().map(Function::tool).collect();
    }
    let form = "{\"price\": \"(sku :string) -> :float\"}, or a list of tools with name, description and JSON Schema";
    let tools: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(text).map_err(|error| format!("{error}; write {form}"))?;
    let read = |(name, tool): (String, Box<RawValue>)| {
        if let Ok(signature) = serde_json::from_str::<String>(tool.get()) {
            return Ok(Tool::external(&name).signature(signature));
        }
        let described: Result<ScriptedTool, _> = serde_json::from_str(tool.get());
        described.map(|described| described.tool(&name)).map_err(|error| match tool.get().starts_with('{') {
            true => format!("{name}: {error}"),
            false => format!("{name}: it needs a signature, such as \"(n :int) -> :string\""),
        })
    };
    tools.into_iter().map(read).collect()
}

/// Parses a list of tools: an array, or an object with an array in `tools`. `None` for other JSON.
fn listed(text: &str) -> Option<Vec<Function<'_>>> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        tools: Vec<Function<'a>>,
    }
    let list: Option<List<'_>> = serde_json::from_str(text).ok();
    list.map(|list| list.tools).or_else(|| serde_json::from_str(text).ok())
}

/// A tool as function-calling APIs and MCP servers describe it.
#[derive(Deserialize)]
struct Function<'a> {
    name: Option<String>,
    #[cfg_attr(not(feature = "json-schema"), expect(dead_code, reason = "only a tool with schemas has it"))]
    #[serde(default)]
    description: String,
    #[serde(borrow, alias = "inputSchema", alias = "input_schema")]
    parameters: Option<&'a RawValue>,
    #[cfg_attr(not(feature = "json-schema"), expect(dead_code, reason = "only a tool with schemas has it"))]
    #[serde(borrow, rename = "outputSchema")]
    results: Option<&'a RawValue>,
    /// Set if the tool is in an envelope.
    #[serde(borrow)]
    function: Option<Box<Function<'a>>>,
}

impl Function<'_> {
    fn tool(&self) -> Result<Tool, String> {
        if let Some(inside) = &self.function {
            return inside.tool();
        }
        let name = self.name.as_deref().ok_or("a tool of the list has no name: add \"name\" to it")?;
        let input = self.parameters.map_or("{}", RawValue::get);
        self.with_schemas(name, input).map_err(|error| format!("{name}: {error}"))
    }

    #[cfg(feature = "json-schema")]
    fn with_schemas(&self, name: &str, input: &str) -> Result<Tool, String> {
        let tool = Tool::from_json_schema(name, &self.description, input, self.results.map(RawValue::get));
        tool.map_err(|error| error.to_string())
    }

    #[cfg(not(feature = "json-schema"))]
    fn with_schemas(&self, _: &str, _: &str) -> Result<Tool, String> {
        Err("it has a JSON Schema: build ptcl with the feature json-schema, or give its signature".to_owned())
    }
}
