//! Runs that may suspend: tools with a function are called, and the run stops when only replies or approvals from outside
//! are missing. What is kept of it is its record.

use crate::engine::Place;
use crate::outcome::Outcome;
use crate::record::Record;
use ptc_lisp::progress::Waiting;
use ptc_lisp::{Answer, Engine, Input, Progress, Recording};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::collections::BTreeSet;

/// How far a run has come.
#[derive(IntoPyObject)]
pub(crate) enum Progressed {
    Done(Outcome),
    Suspended(Record),
}

/// Drives a run until it ends or suspends.
pub(crate) fn drive(
    place: &Place,
    external: &BTreeSet<String>,
    source: &str,
    input: Input<'static>,
    recording: &Recording,
) -> PyResult<Progressed> {
    let outcome = match place {
        Place::InProcess(engine) => match in_process(engine, external, source, input) {
            Some(outcome) => outcome,
            None => return suspended(recording),
        },
        #[cfg(target_os = "linux")]
        Place::Process(sandbox) => sandbox.eval(source, &input),
    };
    let reason = outcome.problem().map(|problem| problem.reason().name());
    if reason == Some("approval_required") {
        return suspended(recording);
    }
    if recording.text().is_empty() {
        // The run did not begin.
        return Ok(Progressed::Done(Outcome::new(outcome, source.into())));
    }
    let recorded = recording.answer(&Answer::new(None, &outcome).to_json());
    recorded.map_err(|error| PyRuntimeError::new_err(format!("the recorder failed: {error}")))?;
    Ok(Progressed::Done(Outcome::new(outcome, source.into())))
}

fn suspended(recording: &Recording) -> PyResult<Progressed> {
    Ok(Progressed::Suspended(Record::parse(recording.text())?))
}

/// Returns the outcome, or `None` if the run waits for the world outside.
fn in_process(
    engine: &Engine,
    external: &BTreeSet<String>,
    source: &str,
    input: Input<'static>,
) -> Option<ptc_lisp::Outcome> {
    let program = match engine.compile(source) {
        Ok(program) => program,
        // The run itself reports the error, in its outcome.
        Err(_) => return Some(engine.eval(source, input)),
    };
    let mut progress = engine.start(&program, input);
    loop {
        progress = match progress {
            Progress::Done(outcome) => return Some(*outcome),
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => {
                let served = served(&waiting, external)?;
                waiting.serve(served)
            }
        }
    }
}

/// Returns the first call that a function of the host serves.
fn served(waiting: &Waiting, external: &BTreeSet<String>) -> Option<ptc_lisp::progress::CallId> {
    waiting.calls().find(|(_, call)| !external.contains(call.name())).map(|(id, _)| id)
}
