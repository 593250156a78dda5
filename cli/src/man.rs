//! `ptcl man`: manual pages.

use crate::exit::{Exit, Failure};
use crate::output;
use std::fs;
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Directory for ptcl.1 and a page per command; without it, prints ptcl.1
    dir: Option<PathBuf>,
}

/// Runs the command for the commands of a parser.
pub(crate) fn run(arguments: &Arguments, parser: clap::Command) -> Result<Exit, Failure> {
    // The command `help` gets no page: `--help` says the same.
    let parser = parser.disable_help_subcommand(true);
    match &arguments.dir {
        Some(dir) => fs::create_dir_all(dir)
            .and_then(|()| clap_mangen::generate_to(parser, dir))
            .map_err(|error| Failure::File { path: dir.clone(), error })?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(parser).render(&mut page)?;
            output::print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(Exit::Ok)
}
