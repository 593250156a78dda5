//! Standard output.

use crate::exit::Failure;
use lisp_runtime::Outcome;
use lisp_runtime::internal::visible;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Prepares text for standard output. On a terminal, characters that control the terminal or are invisible are escaped.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { visible(text) } else { Cow::Borrowed(text) }
}

/// Returns the width of the terminal.
pub(crate) fn columns() -> usize {
    /// The width if the terminal does not tell it.
    const COLUMNS: usize = 100;
    let of_terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    from_environment("COLUMNS").or_else(of_terminal).map_or(COLUMNS, |width| width.max(20))
}

/// Returns the number of lines of the terminal.
pub(crate) fn rows() -> usize {
    /// The number if the terminal does not tell it.
    const ROWS: usize = 24;
    let of_terminal = || terminal_size::terminal_size().map(|(_, height)| usize::from(height.0));
    from_environment("LINES").or_else(of_terminal).map_or(ROWS, |height| height.max(8))
}

/// Returns a size of the terminal that the user sets, as POSIX says: it counts more than the size that the terminal tells.
fn from_environment(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok().filter(|size| *size > 0)
}

/// Writes the main output of a command, as [`shown`] prepares it.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    is_open()?;
    let mut out = io::stdout().lock();
    out.write_all(shown(text).as_bytes())?;
    Ok(out.flush()?)
}

/// Fails if standard output was closed at the start: the output would be lost without notice.
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

/// Not known on other systems.
#[cfg(not(target_os = "linux"))]
fn was_closed() -> bool {
    false
}

/// A note about printed lines that were cut or left out because of limits.
pub(crate) fn lost_prints(outcome: &Outcome) -> Option<String> {
    lost_lines((outcome.prints_dropped, outcome.prints_cut))
}

/// A note about so many printed lines that were left out, and so many that were cut.
pub(crate) fn lost_lines(dropped_and_cut: (u64, u64)) -> Option<String> {
    let lines =
        |count: u64| if count == 1 { "1 printed line is".to_owned() } else { format!("{count} printed lines are") };
    match dropped_and_cut {
        (0, 0) => None,
        (0, cut) => Some(format!("{} cut: raise the limit print_chars, or set it to 0", lines(cut))),
        (dropped, _) => Some(format!("{} left out: raise the limit prints_bytes, or set it to 0", lines(dropped))),
    }
}
