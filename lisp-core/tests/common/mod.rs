//! A program on a bare machine: no data, no tools, the usual limits.

use lisp_core::builtins::print::pr_str;
use lisp_core::compile::Program;
use lisp_core::heap::TextBuf;
use lisp_core::machine::{Ending, Grant, Machine, Settings, Step};
use lisp_core::syntax::ReadLimits;
use std::sync::Arc;

/// What a program answers, readable, or the reason and message of its error.
pub(crate) fn answer(source: &str) -> Result<String, (&'static str, String)> {
    let error = |e: lisp_core::Error| (e.reason.name(), e.to_string());
    let program = Program::compile(source, &ReadLimits::default()).map_err(error)?;
    let settings = Settings { now_ms: Some(1_700_000_000_000), ..Settings::default() };
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
    machine.load(Arc::new(program)).map_err(error)?;
    loop {
        match machine.resume(10_000) {
            Step::Paused => {}
            Step::ToolCall => return Err(("tool_call", "the program calls a tool".to_owned())),
            Step::Done(Ending::Error(e)) => return Err(error(*e)),
            Step::Done(_) => {
                return machine.with_result(|h, v| {
                    let mut out = TextBuf::new(h);
                    match pr_str(h, v, &mut out) {
                        Ok(()) => Ok(out.into_string()),
                        Err(_) => Err(("memory_exceeded", "no room for the answer's text".to_owned())),
                    }
                });
            }
        }
    }
}

/// How the answer differs from what is wanted: a printed value, or a reason behind `!`.
pub(crate) fn difference(source: &str, want: &str) -> Option<String> {
    let got = answer(source);
    let same = match (&got, want.strip_prefix('!')) {
        (Ok(text), None) => text == want,
        (Err((reason, _)), Some(wanted)) => *reason == wanted,
        _ => false,
    };
    if same {
        return None;
    }
    let got = got.unwrap_or_else(|(reason, message)| format!("!{reason} ({message})"));
    Some(format!("{source}\n  wanted {want}\n  got    {got}"))
}
