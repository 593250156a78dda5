//! `ptcl doc`: shows the documentation of a function or special form.

use crate::exit::{Exit, Failure};
use crate::names::described;
use crate::output;
use lisp_runtime::language::functions_markdown;

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
        Some(name) => described(name).map_err(Failure::Usage)?,
        None => functions_markdown(),
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}
