//! `ptcl run`: one program, its value on standard output.

use crate::door::DoorOption;
use crate::exit::{Exit, Failure, input_of};
use crate::options::{self, Grant, LimitOptions};
use crate::report;
use lisp_runtime::{Answer, Outcome, OutcomeKind};
use std::io::Write;
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The program; - is standard input
    file: Option<PathBuf>,
    /// A program as it is
    #[arg(short, value_name = "EXPR", conflicts_with = "file")]
    expression: Option<String>,
    #[command(flatten)]
    grant: Grant,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    door: DoorOption,
    /// Print the whole answer as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let engine = arguments.limits.engine()?;
    let (name, source) = options::read_program(arguments.file.as_deref(), arguments.expression.as_deref())?;
    let input = match arguments.grant.input(&engine)? {
        Ok(input) => input,
        Err(setup) => {
            eprint!("{}", report::draw(&setup.problem, &setup.file, &setup.source));
            return Ok(Exit::of_problem(&setup.problem));
        }
    };
    let outcome = arguments.door.open(engine, 1)?.eval(&source, input)?;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", Answer::new(None, &outcome).to_json())?;
        out.flush()?;
        return Ok(Exit::of(&outcome));
    }
    for line in &outcome.prints {
        writeln!(out, "{line}")?;
    }
    if outcome.is_success() {
        writeln!(out, "{}", outcome.text().unwrap_or_default())?;
    }
    out.flush()?;
    complain(&outcome, arguments, &name, &source);
    Ok(Exit::of(&outcome))
}

/// Says on standard error what is wrong or left out.
fn complain(outcome: &Outcome, arguments: &Arguments, name: &str, source: &str) {
    if let Some(total) = outcome.text_cut() {
        eprintln!("ptcl: the value is cut; the whole of it has {total} bytes");
    }
    if outcome.kind() == Some(OutcomeKind::Fail) {
        eprintln!("failed: {}", outcome.text().unwrap_or_default());
    }
    let Some(problem) = outcome.problem() else { return };
    if let Some(option) = input_of(problem).and_then(|number| arguments.grant.input_option(number)) {
        return eprintln!("ptcl: {option}: {}", problem.error.message);
    }
    match problem.setup.and_then(|index| arguments.grant.setup_source(index)) {
        Some((name, source)) => eprint!("{}", report::draw(problem, &name, &source)),
        None => eprint!("{}", report::draw(problem, name, source)),
    }
}
