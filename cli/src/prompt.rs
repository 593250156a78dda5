//! `ptcl prompt`: the reference card for a model's system prompt.

use crate::exit::{Exit, Failure};
use crate::options;
use lisp_runtime::{Engine, Tool};
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A JSON object: the tools' names, each with its signature or with the tool as a request describes it
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut builder = Engine::builder();
    if let Some(path) = &arguments.tools {
        let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("--tools {}: {why}", path.display()));
        let tools: serde_json::Map<String, Value> =
            serde_json::from_str(&options::read_file(path)?).map_err(|error| wrong(&error))?;
        for (name, tool) in tools {
            let granted = Tool::external(&name);
            builder = builder.grant(match tool.as_str().or_else(|| tool.get("signature")?.as_str()) {
                Some(signature) => granted.signature(signature),
                None if tool.is_object() => granted,
                None => return Err(wrong(&format!("{name} needs a signature, such as \"(n :int) -> :string\""))),
            });
        }
    }
    let engine = builder.build().map_err(|error| Failure::Usage(format!("--tools: {error}")))?;
    std::io::stdout().lock().write_all(engine.prompt().as_bytes())?;
    Ok(Exit::Ok)
}
