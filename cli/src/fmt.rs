//! `ptcl fmt`: formats programs.

use crate::exit::{Exit, Failure};
use crate::layout::{LayoutError, lay_out};
use crate::options;
use crate::output;
use crate::render::errors;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
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
        false => replace(path, &laid_out).map_err(|error| Failure::File { path: path.to_owned(), error })?,
    }
    Ok(Exit::Ok)
}

/// Replaces a file atomically: readers see the old text or the new text, whole.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Replace the target of a link, not the link.
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let permissions = metadata.permissions();
    // A new file would replace one that must not be written.
    if permissions.readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.ptcl", std::process::id()));
    let beside = path.with_file_name(name);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written = file
        .set_permissions(permissions)
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // Report the first error, why it was not written.
        let _ = fs::remove_file(&beside);
    }
    written
}
