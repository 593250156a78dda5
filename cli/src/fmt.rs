//! `ptcl fmt`: formats programs.

use crate::exit::{Exit, Failure};
use crate::layout::{LayoutError, lay_out};
use crate::options;
use crate::output;
use crate::render::errors;
use crate::replace;
use std::path::{Path, PathBuf};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Programs to format in place; without any, formats standard input to standard output
    files: Vec<PathBuf>,
    /// Write nothing; list the programs that would change, and exit with 1 if there are any
    #[arg(long)]
    check: bool,
}

/// Runs the command. A program that cannot be read is left unchanged; the others are still formatted.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.files.is_empty() {
        return file(Path::new("-"), arguments.check);
    }
    let mut exit = Exit::Ok;
    for path in &arguments.files {
        match file(path, arguments.check)? {
            Exit::Compile => exit = Exit::Compile,
            Exit::Ok => {}
            other if exit == Exit::Ok => exit = other,
            _ => {}
        }
    }
    Ok(exit)
}

fn file(path: &Path, check: bool) -> Result<Exit, Failure> {
    let is_stream = path == Path::new("-");
    let (name, source) = options::read_program(Some(path), None)?;
    let laid_out = match lay_out(&source) {
        Ok(laid_out) => laid_out,
        Err(LayoutError::Unreadable(error)) => {
            let problem = errors::unreadable(error, &source);
            tell!("{}", errors::draw(&problem, &name, &source));
            return Ok(Exit::Compile);
        }
        Err(LayoutError::Changed) => {
            let what = "left unchanged: formatting would change the program; please report this program as a bug";
            return Err(Failure::Bug(format!("{name}: it {what}")));
        }
    };
    match check {
        true if laid_out == source => {}
        true => {
            output::print(&format!("{name}\n"))?;
            return Ok(Exit::Fail);
        }
        false if is_stream => output::print(&laid_out)?,
        false if laid_out == source => {}
        false => replace::replace(path, laid_out.as_bytes())
            .map_err(|error| Failure::File { path: path.to_owned(), error })?,
    }
    Ok(Exit::Ok)
}
