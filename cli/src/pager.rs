//! The pager for values that are longer than the window: `$PAGER`, or `less`, as git uses it.

use crate::output;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use unicode_width::UnicodeWidthStr;

/// Whether a pager is open. Ctrl-C is for the pager then.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Returns whether a pager is open.
pub(crate) fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// What a pager shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paged {
    /// Text whose lines are folded at the window.
    Text,
    /// A table: its lines stay whole, and the pager moves sideways.
    Table,
}

impl Paged {
    /// The options of `less`. Without F it stays open: a table that is wide, but not long, has more to show.
    fn options(self, text: &str) -> &'static str {
        match self {
            Paged::Text => "FRX",
            Paged::Table if is_wider_than_window(text) => "RSX",
            Paged::Table => "FRSX",
        }
    }
}

/// Returns whether a line is wider than the window.
pub(crate) fn is_wider_than_window(text: &str) -> bool {
    text.lines().any(|line| without_colours(line).width() > output::columns())
}

/// Returns whether a text takes more lines than the window has.
pub(crate) fn is_longer_than_window(text: &str) -> bool {
    let (columns, rows) = (output::columns(), output::rows());
    let lines = text.lines().map(|line| without_colours(line).width().max(1).div_ceil(columns));
    let mut sum = 0_usize;
    // The prompt of the shell takes one.
    lines.into_iter().any(|lines| {
        sum += lines;
        sum >= rows
    })
}

/// Removes what colours text.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut parts = line.split("\u{1b}[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        plain.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

/// Shows a text in the pager, and waits until that ends. Returns whether there was one: `PAGER` may be empty or `cat`, and a pager
/// may be missing.
pub(crate) fn show(text: &str, what: Paged) -> io::Result<bool> {
    /// Where there is no `less`, nobody has asked for it.
    const LESS: &str = "command -v less >/dev/null || exit 127; less";
    // As an option it counts also where LESS has others.
    const LESS_SIDEWAYS: &str = "command -v less >/dev/null || exit 127; less -S";
    let named = std::env::var("PAGER").ok();
    let less = if what == Paged::Table { LESS_SIDEWAYS } else { LESS };
    let pager = named.as_deref().map_or(less, str::trim);
    if pager.is_empty() || pager == "cat" {
        return Ok(false);
    }
    let mut command = Command::new("sh");
    command.args(["-c", pager]);
    for (name, value) in [("LESS", what.options(text)), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else { return Ok(false) };
    OPEN.store(true, Ordering::Relaxed);
    // The pager may end before it has read everything.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let ended = child.wait();
    OPEN.store(false, Ordering::Relaxed);
    match (ended?.code(), written) {
        // The shell found no such command, and nothing was shown.
        (Some(127), _) => Ok(false),
        (_, Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::{Paged, without_colours};

    #[test]
    fn colours_take_no_room() {
        assert_eq!(without_colours("{\u{1b}[36m:a\u{1b}[0m 1}"), "{:a 1}");
        assert_eq!(without_colours("plain"), "plain");
    }

    #[test]
    fn tables_are_not_folded() {
        let wide = "x".repeat(10_000);
        assert_eq!([Paged::Text.options(&wide), Paged::Table.options(&wide)], ["FRX", "RSX"]);
        assert_eq!(Paged::Table.options("a  b"), "FRSX");
    }
}
