//! Standard output.

use crate::exit::Failure;
use lisp_runtime::{Outcome, visible};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

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
    if stands_in_for_closed_output() {
        let why = "standard output is closed; to drop what is written, write >/dev/null";
        return Err(Failure::Stream(io::Error::other(why)));
    }
    Ok(())
}

/// Is standard output what the standard library opens where it finds it closed: `/dev/null`, for reading too? A shell that
/// redirects to `/dev/null` opens it for writing only.
fn stands_in_for_closed_output() -> bool {
    let is_null = std::fs::read_link("/proc/self/fd/1").is_ok_and(|path| path == Path::new("/dev/null"));
    // Flags are octal; the last digit is the access mode, 2 for both.
    let both = |info: String| info.lines().any(|line| line.starts_with("flags:") && line.ends_with('2'));
    is_null && std::fs::read_to_string("/proc/self/fdinfo/1").is_ok_and(both)
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
