//! `ptcl sandbox`: what the process layer can do here, and a program that is watched through named pipes.

use crate::exit::{Exit, Failure};
use crate::options::{Grant, LimitOptions};
use crate::report;
use lisp_runtime::Answer;
use lisp_sandbox::{Managed, Sandbox};
use std::io::Write;
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The program to run until it is terminated through the pipes
    #[arg(required_unless_present = "capabilities", requires = "dir")]
    file: Option<PathBuf>,
    /// Where the pipes `wait` and `status` are made
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    grant: Grant,
    #[command(flatten)]
    limits: LimitOptions,
    /// Say what this system gives to the process layer, found out by doing it
    #[arg(long, conflicts_with_all = ["file", "dir"])]
    capabilities: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let no_layer = |error: lisp_sandbox::SetupError| Failure::Door(error.to_string());
    let mut out = std::io::stdout().lock();
    let (Some(file), Some(dir)) = (&arguments.file, &arguments.dir) else {
        let capabilities = lisp_sandbox::capabilities().map_err(no_layer)?;
        match arguments.json {
            true => writeln!(out, "{}", serde_json::to_string(&capabilities).unwrap_or_default())?,
            false => write!(out, "{capabilities}")?,
        }
        let good = capabilities.missing.is_empty() && capabilities.trouble.is_none();
        return Ok(if good { Exit::Ok } else { Exit::HostFault });
    };
    let engine = arguments.limits.engine()?;
    let source = crate::options::read_file(file)?;
    let input = match arguments.grant.input(&engine)? {
        Ok(input) => input,
        Err(setup) => {
            eprint!("{}", report::draw(&setup.problem, &setup.file, &setup.source));
            return Ok(Exit::of_problem(&setup.problem));
        }
    };
    let sandbox = Sandbox::builder().engine(engine).build().map_err(no_layer)?;
    let pipes = |error| Failure::File { path: dir.clone(), error };
    let managed = Managed::start(&sandbox, dir, source.clone(), input).map_err(pipes)?;
    let Some(outcome) = managed.wait() else {
        return Err(Failure::Door("the program's process did not end".to_owned()));
    };
    if arguments.json {
        writeln!(out, "{}", Answer::new(None, &outcome).to_json())?;
        return Ok(Exit::of(&outcome));
    }
    for line in &outcome.prints {
        writeln!(out, "{line}")?;
    }
    match outcome.problem() {
        Some(problem) => eprint!("{}", report::draw(problem, &file.display().to_string(), &source)),
        None => writeln!(out, "{}", outcome.text().unwrap_or_default())?,
    }
    Ok(Exit::of(&outcome))
}
