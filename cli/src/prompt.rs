//! `ptcl prompt`: the reference card for a model's system prompt.

use crate::exit::{Exit, Failure};
use crate::options;
use lisp_runtime::{Engine, Keys, ScriptedTool, Tool};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A JSON object: the tools' names, each with its signature or with the tool as a request describes it
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Say that the keys of JSON objects are keywords, as `--keywords` of `ptcl run` makes them; strings without this option
    #[arg(long)]
    keywords: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let keys = if arguments.keywords { Keys::Keywords } else { Keys::Strings };
    let mut builder = Engine::builder().json_keys(keys);
    if let Some(path) = &arguments.tools {
        let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("--tools {}: {why}", path.display()));
        let tools: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(&options::read_file(path)?).map_err(|error| wrong(&error))?;
        for (name, tool) in tools {
            let granted = Tool::external(&name);
            builder = builder.grant(match signature(tool.get()) {
                Ok(Some(signature)) => granted.signature(signature),
                Ok(None) => granted,
                Err(why) => return Err(wrong(&format!("{name}: {why}"))),
            });
        }
    }
    let engine = builder.build().map_err(|error| Failure::Usage(format!("--tools: {error}")))?;
    std::io::stdout().lock().write_all(engine.prompt().as_bytes())?;
    Ok(Exit::Ok)
}

/// The signature of a tool that is given as a text or as a request describes it, if it has one.
fn signature(tool: &str) -> Result<Option<String>, String> {
    if let Ok(signature) = serde_json::from_str(tool) {
        return Ok(Some(signature));
    }
    let described: Result<ScriptedTool, _> = serde_json::from_str(tool);
    described.map(|tool| tool.signature).map_err(|error| match tool.starts_with('{') {
        true => error.to_string(),
        false => "it needs a signature, such as \"(n :int) -> :string\"".to_owned(),
    })
}
