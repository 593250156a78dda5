//! `ptcl replay`: a recorded run again, without its tools.

use crate::exit::{Exit, Failure};
use crate::options;
use crate::render::errors;
use lisp_runtime::{Answer, COST_SCHEDULE_VERSION, Engine, Limits, LimitsRequest, Progress, Reason, Record, Tool};
use std::io::Write;
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The record, as `ptcl run --record` writes it
    file: PathBuf,
    /// Print the whole answer as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("{}: {why}", arguments.file.display()));
    let record = Record::parse(options::read_file(&arguments.file)?).map_err(|error| wrong(&error))?;
    let mut builder = Engine::builder().ceiling(Limits::unlimited());
    for (name, signature) in record.tools() {
        let tool = Tool::external(name);
        builder = builder.grant(match signature {
            Some(text) => tool.signature(text),
            None => tool,
        });
    }
    let engine = builder.build().map_err(|error| wrong(&error))?;
    let (program, input, _) = engine.open_record(&record, &[]).map_err(|error| wrong(&error))?;
    // What was computed is computed again, at the pace of this machine.
    let mut no_deadline = LimitsRequest::default();
    (no_deadline.timeout_ms, no_deadline.parallel_timeout_ms) = (Some(u64::MAX), Some(u64::MAX));
    let outcome = match engine.start(&program, input.limits_over(&no_deadline)) {
        Progress::Done(outcome) => outcome,
        Progress::ToolCall(waiting) | Progress::Approval(waiting) => {
            let call = waiting.call();
            let (name, place) = (call.name().to_owned(), call.place().to_string());
            if record.answer().is_none() && record.open_calls().iter().any(|open| open.name == place) {
                return Err(wrong(&format_args!(
                    "the record has no answer: its run was broken off while it waited for tool/{name}, call {place}"
                )));
            }
            eprintln!("replay_diverged: the run calls tool/{name} at {place}, and its record does not");
            return Ok(Exit::Error);
        }
    };
    let mut answer = Answer::new(None, &outcome);
    record.run_id().clone_into(&mut answer.run_id);
    let json = answer.to_json();
    let mut out = std::io::stdout().lock();
    if arguments.json {
        writeln!(out, "{json}")?;
    } else if outcome.is_success() {
        for line in &outcome.prints {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "{}", outcome.text().unwrap_or_default())?;
    }
    out.flush()?;
    if let Some(problem) = outcome.problem().filter(|_| !arguments.json) {
        eprint!("{}", errors::draw(problem, "record", &record.program()));
    }
    if outcome.problem().is_some_and(|problem| problem.reason() == Reason::ReplayDiverged) {
        return Ok(Exit::Error);
    }
    let Some(recorded) = record.answer() else {
        return Err(wrong(&"the record has no answer: its run was broken off before its end"));
    };
    let old = record.cost_schedule() != COST_SCHEDULE_VERSION;
    if old {
        eprintln!(
            "ptcl: the record is of cost schedule {}; this is {COST_SCHEDULE_VERSION}: fuel is not compared",
            record.cost_schedule()
        );
    }
    match difference(recorded, &json, old) {
        None => Ok(Exit::Ok),
        Some(part) => {
            eprintln!("replay_diverged: the answer differs from the recorded one in {part}");
            Ok(Exit::Error)
        }
    }
}

/// The first part in which two answers differ; what depends on the machine and on time is not looked at.
fn difference(recorded: &str, again: &str, without_fuel: bool) -> Option<String> {
    let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap_or_default();
    let (mut recorded, mut again) = (read(recorded), read(again));
    for answer in [&mut recorded, &mut again] {
        let Some(parts) = answer.as_object_mut() else { continue };
        for part in ["id", "run_id", "usage", "limits"] {
            let fuel = parts.remove(part).filter(|_| part == "usage").and_then(|usage| usage.get("fuel").cloned());
            if let Some(fuel) = fuel.filter(|_| !without_fuel) {
                parts.insert("fuel".to_owned(), fuel);
            }
        }
        for call in parts.get_mut("ledger").and_then(|ledger| ledger.as_array_mut()).into_iter().flatten() {
            if let Some(call) = call.as_object_mut() {
                call.remove("duration_us");
            }
        }
    }
    let (recorded, again) = (recorded.as_object()?, again.as_object()?);
    let mut names: Vec<&String> = recorded.keys().chain(again.keys()).collect();
    names.sort_unstable();
    names.into_iter().find(|name| recorded.get(*name) != again.get(*name)).map(ToString::to_string)
}
