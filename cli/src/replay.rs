//! `ptcl replay`: runs a recorded run again, without its tools.

use crate::exit::{Exit, Failure};
use crate::output;
use crate::render::errors::{self, Text};
use crate::render::values;
use lisp_runtime::internal::visible;
use lisp_runtime::language::COST_SCHEDULE_VERSION;
use lisp_runtime::outcome::OutcomeKind;
use lisp_runtime::{Answer, Engine, Limits, LimitsRequest, Outcome, Progress, Reason, Record};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A record written by `ptcl run --record`
    file: PathBuf,
    /// Print the whole answer as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("{}: {why}", arguments.file.display()));
    let record = Record::parse_bytes(read(&arguments.file)?).map_err(|error| wrong(&error))?;
    let mut builder = Engine::builder().ceiling(Limits::unlimited());
    for tool in record.external_tools().map_err(|error| wrong(&error))? {
        builder = builder.grant(tool);
    }
    let engine = builder.build().map_err(|error| wrong(&error))?;
    let (program, input, _) = engine.open_record(&record, &[]).map_err(|error| wrong(&error))?;
    // Everything is computed again, at the speed of this machine: no deadline.
    let mut no_deadline = LimitsRequest::default();
    (no_deadline.timeout_ms, no_deadline.parallel_timeout_ms) = (Some(u64::MAX), Some(u64::MAX));
    let outcome = match engine.start(&program, input.limits_over(&no_deadline)) {
        Progress::Done(outcome) => outcome,
        Progress::ToolCall(waiting) | Progress::Approval(waiting) => {
            let call = waiting.call();
            let (name, place) = (call.name().to_owned(), call.place().to_string());
            if record.answer().is_none() && record.open_calls().iter().any(|open| open.name == place) {
                return Err(wrong(&format_args!(
                    "the record has no answer: its run was interrupted while it waited for tool/{name}, call {place}"
                )));
            }
            tell_line!("replay_diverged: the run calls tool/{name} at {place}, and its record does not");
            return Ok(Exit::Error);
        }
    };
    let mut answer = Answer::new(None, &outcome);
    record.run_id().clone_into(&mut answer.run_id);
    let json = answer.to_json();
    match arguments.json {
        true => output::print(&format!("{json}\n"))?,
        false => show(&outcome, &record)?,
    }
    if outcome.problem().is_some_and(|problem| problem.reason() == Reason::ReplayDiverged) {
        return Ok(Exit::Error);
    }
    let Some(recorded) = record.answer() else {
        return Err(wrong(&"the record has no answer: its run was interrupted before its end"));
    };
    let old = record.cost_schedule() != COST_SCHEDULE_VERSION;
    if old {
        tell_line!(
            "ptcl: the record is of cost schedule {}; this is {COST_SCHEDULE_VERSION}: fuel is not compared",
            record.cost_schedule()
        );
    }
    match difference(recorded, &json, old) {
        None => Ok(Exit::Ok),
        Some(parts) => {
            tell_line!("replay_diverged: the answer differs from the recorded one in {}", visible(&parts));
            Ok(Exit::Error)
        }
    }
}

/// Writes what the run printed, and its value or error, as `ptcl run` does.
fn show(outcome: &Outcome, record: &Record) -> Result<(), Failure> {
    let text = outcome.text().unwrap_or_default();
    let value = outcome.is_success().then_some(text);
    let lines = outcome.prints.iter().map(String::as_str).chain(value);
    output::print(&lines.flat_map(|line| [line, "\n"]).collect::<String>())?;
    match outcome.problem() {
        Some(problem) => tell!("{}", errors::draw_in(problem, &Recorded(record))),
        None if outcome.kind() == Some(OutcomeKind::Fail) => tell_line!("failed: {}", visible(text)),
        None => {}
    }
    Ok(())
}

/// The programs of a record.
struct Recorded<'a>(&'a Record);

impl errors::Texts for Recorded<'_> {
    fn text(&self, setup: Option<usize>, _: Option<u64>) -> Option<Text> {
        /// What the first line of a record has.
        #[derive(serde::Deserialize)]
        struct Header {
            #[serde(default)]
            setup: Vec<String>,
        }
        let Some(index) = setup else {
            return Some(Text { name: "record".to_owned(), source: self.0.program() });
        };
        let header: Header = serde_json::from_str(self.0.text().lines().next()?).ok()?;
        let source = header.setup.into_iter().nth(index)?;
        Some(Text { name: format!("setup program {} of the record", index + 1), source })
    }
}

/// Reads a record. Of a file that is too large, reads only enough to detect it.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |error| Failure::File { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    let max = Record::MAX_BYTES as u64;
    File::open(path).map_err(failure)?.take(max + 1).read_to_end(&mut bytes).map_err(failure)?;
    match bytes.len() as u64 > max {
        true => Err(Failure::Usage(format!("{}: a record may have {max} bytes, and it has more", path.display()))),
        false => Ok(bytes),
    }
}

/// The sections in which two answers differ: first the value, the error and the prints with both texts, then the names
/// of the others. Sections that depend on the machine or on time are not compared.
fn difference(recorded: &str, again: &str, without_fuel: bool) -> Option<String> {
    /// The sections whose texts are shown, in this order.
    const SHOWN: [&str; 4] = ["value", "failed", "error", "prints"];
    let (Some(recorded), Some(again)) = (parts(recorded, without_fuel), parts(again, without_fuel)) else {
        return Some("its form".to_owned());
    };
    let differs = |name: &str| match (recorded.get(name), again.get(name)) {
        (Some(recorded), Some(again)) => !is_same(recorded, again),
        (recorded, again) => recorded.is_some() || again.is_some(),
    };
    let names: BTreeSet<&str> = recorded.keys().chain(again.keys()).map(String::as_str).collect();
    let both = |name: &&str| format!("{name} ({}, now {})", start(recorded.get(*name)), start(again.get(*name)));
    let mut found: Vec<String> = SHOWN.iter().filter(|name| differs(name)).map(both).collect();
    // The text of a value differs with it.
    let follows = |name: &str| name == "text" && found.iter().any(|part| part.starts_with("value "));
    let others = names.into_iter().filter(|name| !SHOWN.contains(name) && !follows(name) && differs(name));
    let others: Vec<String> = others.map(str::to_owned).collect();
    found.extend(others);
    let last = found.pop()?;
    Some(if found.is_empty() { last } else { format!("{} and {last}", found.join(", ")) })
}

/// The start of the JSON text of a section.
fn start(text: Option<&String>) -> String {
    const CHARS: usize = 80;
    match text {
        None => "none".to_owned(),
        Some(text) => match text.char_indices().nth(CHARS) {
            Some((at, _)) => format!("{}...", &text[..at]),
            None => text.clone(),
        },
    }
}

/// The reproducible sections of an answer, as JSON text; `None` if it is not an answer.
fn parts(answer: &str, without_fuel: bool) -> Option<BTreeMap<String, String>> {
    let parts: BTreeMap<String, &RawValue> = serde_json::from_str(answer).ok()?;
    let mut out = BTreeMap::new();
    for (name, text) in parts {
        let text = text.get();
        match &*name {
            "id" | "run_id" | "limits" | "given_up" => {}
            "usage" => {
                let usage: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
                if !without_fuel {
                    out.insert("fuel".to_owned(), usage.get("fuel")?.get().to_owned());
                }
            }
            "ledger" => {
                let mut calls: Vec<BTreeMap<String, &RawValue>> = serde_json::from_str(text).ok()?;
                for call in &mut calls {
                    call.remove("duration_us");
                }
                out.insert(name, serde_json::to_string(&calls).ok()?);
            }
            _ => drop(out.insert(name, text.to_owned())),
        }
    }
    Some(out)
}

/// Returns whether two JSON texts are equal apart from whitespace.
fn is_same(one: &str, other: &str) -> bool {
    one == other || values::without_space(one) == values::without_space(other)
}
