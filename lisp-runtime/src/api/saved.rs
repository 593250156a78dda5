//! The text of a saved session: its first line, the definitions, and the results of the last turns.

use lisp_core::cost::COST_SCHEDULE_VERSION;
use lisp_core::{Error, Reason};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The name of the format of a saved session, in its first line.
///
/// It changes when the lines after the first one change, or the compiler's numbering of functions and their captures.
pub const SESSION_SCHEMA: &str = "ptc-session/3";

/// The line between the definitions and the results of the last turns.
const HISTORY: &str = "history";
/// The last line.
const END: &str = "end";

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    schema: Cow<'a, str>,
    /// The version of this crate that wrote it.
    version: Cow<'a, str>,
    cost_schedule: u32,
    /// The number of turns so far: errors refer to turns by number.
    turns: u64,
    /// The number of set-up programs before them.
    set_ups: usize,
}

/// The parts of a saved session.
#[derive(Debug)]
pub(crate) struct SavedText<'t> {
    pub(crate) turns: u64,
    pub(crate) set_ups: usize,
    /// Lines, and the number of the first one.
    pub(crate) definitions: (&'t str, usize),
    pub(crate) history: (&'t str, usize),
}

/// Returns the whole text of a saved session.
pub(crate) fn text_of(turns: u64, set_ups: usize, definitions: &str, history: &str) -> String {
    let header = Header {
        schema: Cow::Borrowed(SESSION_SCHEMA),
        version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
        cost_schedule: COST_SCHEDULE_VERSION,
        turns,
        set_ups,
    };
    // A struct of numbers and short texts: this cannot fail.
    let mut text = serde_json::to_string(&header).unwrap_or_default();
    text.push('\n');
    text.push_str(definitions);
    text.push_str(HISTORY);
    text.push('\n');
    text.push_str(history);
    text.push_str(END);
    text.push('\n');
    text
}

impl<'t> SavedText<'t> {
    /// Splits the text of a saved session.
    ///
    /// # Errors
    /// `parse_error` with the line, if it does not have the lines of a saved session; `session_limit_exceeded` if it
    /// has more than `max` bytes, the limit `session_bytes`.
    pub(crate) fn parse(text: &'t str, max: usize) -> Result<Self, Error> {
        /// Bytes of the text that the limit does not count.
        const REST: usize = 1_000;
        if text.len() > max.saturating_mul(2).saturating_add(REST) {
            let message = format!(
                "the saved session has {} bytes; the limit session_bytes is {max}, for the definitions and for the results of the last turns",
                text.len()
            );
            return Err(Error::new(Reason::SessionLimitExceeded, message)
                .hint("raise the limit session_bytes")
                .detail("limit_bytes", max));
        }
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let header: Header<'_> = serde_json::from_str(first)
            .map_err(|error| broken(1, &format!("it is not the first line of a saved session: {error}")))?;
        if header.schema != SESSION_SCHEMA {
            let schema: String = header.schema.chars().take(40).collect();
            return Err(broken(1, &format!("it says {schema:?}, where this version reads {SESSION_SCHEMA}")));
        }
        let lines = |text: &str| text.bytes().filter(|&b| b == b'\n').count();
        let cut = || broken(lines(text).max(1), "the text ends here, and it is not the last line of a saved session");
        let ended = rest.strip_suffix('\n').unwrap_or(rest).strip_suffix(END).ok_or_else(cut)?;
        let (definitions, history) = match ended.strip_prefix("history\n") {
            Some(history) => ("", history),
            None => {
                let at = ended.find("\nhistory\n").ok_or_else(cut)?;
                (&ended[..=at], &ended[at + HISTORY.len() + 2..])
            }
        };
        if !history.is_empty() && !history.ends_with('\n') {
            return Err(cut());
        }
        let behind = 3 + lines(definitions);
        let Header { turns, set_ups, .. } = header;
        Ok(SavedText { turns, set_ups, definitions: (definitions, 2), history: (history, behind) })
    }
}

#[cold]
fn broken(line: usize, why: &str) -> Error {
    Error::new(Reason::ParseError, format!("line {line} of the saved session: {why}"))
        .hint("load the text as it was saved, whole and unchanged")
        .detail("line", line)
}
