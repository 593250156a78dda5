//! `ptcl prompt`: prints a language reference for a model's system prompt.

use crate::exit::{Exit, Failure};
use crate::output;
use crate::tools::ToolsOption;
use lisp_runtime::{Engine, Keys};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    tools: ToolsOption,
    /// Describe the keys of JSON objects as keywords, for runs with --keywords
    #[arg(long)]
    keywords: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let keys = if arguments.keywords { Keys::Keywords } else { Keys::Strings };
    let tools = arguments.tools.tools()?;
    let builder = tools.into_iter().fold(Engine::builder().json_keys(keys), |builder, tool| builder.grant(tool));
    let engine = builder.build().map_err(|error| Failure::Usage(format!("--tools: {error}")))?;
    output::print(&engine.prompt())?;
    Ok(Exit::Ok)
}
