//! `ptcl check`: reads and analyzes a program without running it.

use crate::exit::{Exit, Failure};
use crate::options::{self, LimitOptions};
use crate::output;
use crate::render::{errors, values};
use lisp_runtime::Input;
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The program; - reads it from standard input
    file: PathBuf,
    /// Definitions that the program may use, a JSON object
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let engine = arguments.limits.engine()?;
    let (name, source) = options::read_program(Some(&arguments.file), None)?;
    let mut input = Input::new();
    if let Some(path) = &arguments.memory {
        input = input.memory(options::read_file(path)?);
    }
    let checked = engine.compile(&source).and_then(|program| engine.check(&program, &input).map(|()| program));
    match checked {
        Ok(program) => {
            values::notes_on_program(&program.warnings()).for_each(|note| tell_line!("ptcl: {note}"));
            let tools: Vec<String> = program.tool_names().map(|tool| format!(" tool/{tool}")).collect();
            let data: Vec<String> = program.data_names().map(|data| format!(" data/{data}")).collect();
            let uses = if tools.len() + data.len() > 0 { "; it uses" } else { "" };
            output::print(&format!("{name}: no faults{uses}{}{}\n", data.concat(), tools.concat()))?;
            Ok(Exit::Ok)
        }
        Err(problem) => {
            tell!("{}", errors::draw(&problem, &name, &source));
            Ok(Exit::of_problem(&problem))
        }
    }
}
