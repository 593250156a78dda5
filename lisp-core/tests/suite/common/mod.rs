//! A program on a bare machine: no data, no tools, the usual limits.

#![allow(dead_code, reason = "every test file takes what it needs")]

use lisp_core::compile::Program;
use lisp_core::heap::{Res, TextBuf};
use lisp_core::syntax::ReadLimits;
use lisp_core::text::pr_str;
use lisp_core::vm::{Ending, Grant, Machine, Settings};
use lisp_core::{Error, Reason};
use std::sync::Arc;

/// What a program answers, readable, or the reason and message of its error.
pub(crate) type Answer = Result<String, (&'static str, String)>;

/// Runs a program in slices of so much fuel. Gives what it answers and the lines it printed.
pub(crate) fn run(source: &str, slice: u64) -> (Answer, Vec<String>) {
    let settings = Settings { now_ms: Some(1_700_000_000_000), ..Settings::default() };
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
    let answer = answer(&mut machine, source, slice);
    (answer, machine.take_prints())
}

/// Loads a program into a machine, and runs it to its end without tools.
pub(crate) fn answer(machine: &mut Machine, source: &str, slice: u64) -> Answer {
    answer_with_tools(machine, source, slice, |machine| {
        machine.reply_error(Error::new(Reason::ToolError, "there are no tools here"));
    })
}

/// Loads a program into a machine, and runs it to its end; `reply` answers a tool call, or ends the run.
pub(crate) fn answer_with_tools(
    machine: &mut Machine,
    source: &str,
    slice: u64,
    reply: impl Fn(&mut Machine),
) -> Answer {
    let error = |e: lisp_core::Error| (e.reason.name(), e.to_string());
    let program = Program::compile(source, &ReadLimits::default()).map_err(error)?;
    machine.load(Arc::new(program)).map_err(error)?;
    match crate::workers::to_end(machine, &Settings::default(), slice, &reply) {
        Ending::Error(e) => Err(error(*e)),
        _ => {
            let printed: Res<String> = machine.with_result(|h, v| {
                h.unmetered(20_000_000, u64::MAX, || {
                    let mut out = TextBuf::new(h);
                    pr_str(h, v, &mut out)?;
                    Ok(out.into_string())
                })
            });
            printed.map_err(|_| ("result_limit_exceeded", "the answer is too large".to_owned()))
        }
    }
}

/// The error in which a program ends, if it does.
pub(crate) fn refusal(source: &str) -> Option<Error> {
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), Settings::default());
    let mut ending = || -> Result<Ending, Error> {
        machine.load(Arc::new(Program::compile(source, &ReadLimits::default())?))?;
        Ok(crate::workers::to_end(&mut machine, &Settings::default(), 100_000, &|_| {}))
    };
    match ending() {
        Err(error) => Some(error),
        Ok(Ending::Error(error)) => Some(*error),
        Ok(_) => None,
    }
}

/// How an answer differs from what is wanted: a printed value, or a reason behind `!`.
pub(crate) fn difference(got: &Answer, want: &str) -> Option<String> {
    let same = match (got, want.strip_prefix('!')) {
        (Ok(text), None) => text == want,
        (Err((reason, _)), Some(wanted)) => *reason == wanted,
        _ => false,
    };
    let got = match got {
        Ok(text) => text.clone(),
        Err((reason, message)) => format!("!{reason} ({message})"),
    };
    (!same).then(|| format!("  wanted {want}\n  got    {got}"))
}
