//! Standard output.

use crate::exit::Failure;
use lisp_runtime::{Outcome, visible};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// A text for standard output. On a terminal it is for a person: nothing in it steers the terminal or hides.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { visible(text) } else { Cow::Borrowed(text) }
}

/// Writes a text, which is all that the command is for.
pub(crate) fn print(text: &[u8]) -> Result<(), Failure> {
    is_open()?;
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    Ok(out.flush()?)
}

/// Refuses to begin where standard output is closed: what is written would be lost, and nobody would be told.
pub(crate) fn is_open() -> Result<(), Failure> {
    if was_closed() {
        let why = "standard output is closed; to drop what is written, write >/dev/null";
        return Err(Failure::Stream(io::Error::other(why)));
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn was_closed() -> bool {
    lisp_sandbox::output_was_closed()
}

/// Elsewhere it is not known.
#[cfg(not(target_os = "linux"))]
fn was_closed() -> bool {
    false
}

/// What of the printed lines is not there, because the person set a limit on them.
pub(crate) fn lost_prints(outcome: &Outcome) -> Option<String> {
    let lines =
        |count: u64| if count == 1 { "1 printed line is".to_owned() } else { format!("{count} printed lines are") };
    match (outcome.prints_dropped, outcome.prints_cut) {
        (0, 0) => None,
        (0, cut) => Some(format!("{} cut: raise the limit print_chars, or set it to 0", lines(cut))),
        (dropped, _) => Some(format!("{} left out: raise the limit prints_bytes, or set it to 0", lines(dropped))),
    }
}
