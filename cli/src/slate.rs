//! `ptcl slate`: runs programs one after the other, each in a fresh process.

use crate::exit::{Exit, Failure};
use crate::limits::LimitOptions;
use crate::options;
use crate::output::shown;
use crate::render::errors;
use lisp_runtime::Outcome;
use lisp_runtime::internal::visible;
use lisp_sandbox::{CleanSlate, Sandbox, SlateFailure, SlateRun};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The programs, in order
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Program to run before each of them; its output is not shown
    #[arg(long, value_name = "FILE")]
    setup: Vec<PathBuf>,
    /// Cut longer printed output, with a mark; the exit code is 5. The value is never cut
    #[arg(long, value_name = "N", default_value_t = CleanSlate::OUTPUT_BYTES)]
    output_bytes: usize,
    #[command(flatten)]
    limits: LimitOptions,
    /// Print one JSON object per program
    #[arg(long)]
    json: bool,
}

/// Runs the command. Each program may take 60 seconds, unless `--limits` says otherwise. The exit code is that of the
/// first program that failed.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let engine = arguments.limits.engine()?;
    let sandbox = Sandbox::builder().engine(engine).build().map_err(|error| Failure::Isolation(error.to_string()))?;
    let mut slate = CleanSlate::new(&sandbox).output_bytes(arguments.output_bytes);
    if let Some(ms) = arguments.limits.asked()?.timeout_ms {
        slate = slate.timeout(Duration::from_millis(ms));
    }
    let mut setups = Vec::new();
    for path in &arguments.setup {
        let source = options::read_file(path)?;
        setups.push((path.display().to_string(), source.clone()));
        slate = match slate.setup(&source) {
            Ok(slate) => slate,
            Err(problem) => {
                tell!("{}", errors::draw(&problem, &path.display().to_string(), &source));
                return Ok(Exit::of_problem(&problem));
            }
        };
    }
    let mut exit = Exit::Ok;
    for path in &arguments.files {
        let (name, source) = (path.display().to_string(), options::read_file(path)?);
        let run = slate.run(&source);
        if exit == Exit::Ok {
            exit = Exit::of(&run.outcome);
        }
        let mut out = std::io::stdout().lock();
        if arguments.json {
            writeln!(out, "{}", shown(&as_json(&name, &run).to_string()))?;
            continue;
        }
        write!(out, "{}", shown(&run.output))?;
        match (&run.text, &run.failure) {
            (Some(text), _) => writeln!(out, "{}", shown(text))?,
            (None, Some(failure)) => complain((&name, &source), &setups, &run.outcome, failure),
            (None, None) => {}
        }
        if run.output_bytes > arguments.output_bytes {
            let (all, cut) = (run.output_bytes, arguments.output_bytes);
            tell_line!("ptcl: {}: {all} bytes printed, cut to {cut}: raise --output-bytes", visible(&name));
            exit = if exit == Exit::Ok { Exit::Limit } else { exit };
        }
    }
    Ok(exit)
}

fn as_json(file: &str, run: &SlateRun) -> serde_json::Value {
    let failure = run.failure.as_ref().map(|failure| match failure {
        SlateFailure::Error { kind, reason, trace } => json!({"kind": kind, "reason": reason, "trace": trace}),
        SlateFailure::ConnectionLost(reason) => json!({"kind": "connection_lost", "reason": reason, "trace": []}),
        other => json!({"kind": other.to_string(), "reason": other.to_string(), "trace": []}),
    });
    let value = run.value::<serde_json::Value>().ok();
    json!({"file": file, "output": run.output, "output_bytes": run.output_bytes, "value": value, "text": run.text, "failure": failure})
}

/// Reports an error of the program, or of a setup program, under its source line, with its hint.
fn complain(program: (&str, &str), setups: &[(String, String)], outcome: &Outcome, failure: &SlateFailure) {
    let drawn = outcome.problem();
    let setup = drawn.and_then(|problem| setups.get(problem.setup?));
    let (file, source) = setup.map_or(program, |(name, text)| (name.as_str(), text.as_str()));
    match drawn {
        Some(problem) => tell!("{}", errors::draw(problem, file, source)),
        None => tell_line!("{}", visible(&format!("{file}: {failure}"))),
    }
    if let SlateFailure::Error { trace, .. } = failure {
        // The first line is the position of the error, which a drawn error shows.
        let shown = usize::from(drawn.is_some_and(|problem| problem.position.is_some()));
        trace.iter().skip(shown).for_each(|line| tell_line!("  {}", visible(line)));
    }
}
