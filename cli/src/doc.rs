//! `ptcl doc`: shows the documentation of a function or special form.

use crate::exit::{Exit, Failure};
use crate::output;
use lisp_runtime::language::{describe_name, functions_markdown};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A function, special form or constant; required without --markdown
    #[arg(required_unless_present = "markdown", allow_hyphen_values = true)]
    name: Option<String>,
    /// Print a page of all functions
    #[arg(long, conflicts_with = "name")]
    markdown: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let text = match &arguments.name {
        Some(name) => describe_name(name).map_err(|hint| {
            let hint = hint.map_or(String::new(), |hint| format!(": {hint}"));
            Failure::Usage(format!("unknown function or form {name}{hint}"))
        })?,
        None => functions_markdown(),
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}
