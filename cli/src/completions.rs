//! `ptcl completions`: shell completions for commands and options.

use crate::exit::{Exit, Failure};
use crate::output;
use clap_complete::Shell;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

/// Runs the command for the commands of a parser.
pub(crate) fn run(arguments: &Arguments, mut parser: clap::Command) -> Result<Exit, Failure> {
    // The generator panics on write errors, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut parser, "ptcl", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
