//! How values are shown in the REPL: whole, or the part of them that fits the window.

use crate::output::{self, columns};
use crate::render::colour;
use crate::render::pretty::{Layout, lay_out};
use crate::render::values::{self, Format};
use lisp_runtime::Outcome;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Settings for showing values.
pub(super) struct Shown {
    /// Show JSON.
    pub(super) json: bool,
    /// Show time and fuel after each value.
    pub(super) time: bool,
    /// Fit values to the window, and show vectors of maps as tables.
    pub(super) fits: bool,
}

/// Lines that were not shown yet, as wide as the window at most.
#[derive(Debug, Default)]
pub(super) struct Rest {
    lines: Vec<String>,
    /// The number of lines that were shown.
    shown: usize,
    /// Whether lines were cut, such as the rows of a table.
    is_cut: bool,
}

impl Shown {
    /// The text of a value, with a final newline, and the lines of it that do not fit.
    pub(super) fn value(&self, outcome: &Outcome) -> (String, Rest) {
        let notes: String = match self.json {
            true => values::notes(outcome).map(|note| format!("; {}\n", output::shown(note))).collect(),
            false => String::new(),
        };
        let text = match self.whole(outcome) {
            Ok(text) => text,
            Err(unfit) => return (format!("{}\n", output::shown(&unfit.to_string())), Rest::default()),
        };
        if !self.fits {
            return (text + "\n" + &notes, Rest::default());
        }
        let mut rest = Rest::of(&text, columns(), self.is_table(outcome));
        (rest.next(output::rows()) + &notes, rest)
    }

    /// The whole text of a value, laid out for the window, without a final newline.
    pub(super) fn whole(&self, outcome: &Outcome) -> Result<String, values::Unfit> {
        if self.is_table(outcome) {
            let table = values::rows(values::json(outcome)?, Format::Table)?;
            return Ok(output::shown(String::from_utf8_lossy(&table).trim_end_matches('\n')).into_owned());
        }
        let text = if self.json { values::json(outcome)? } else { outcome.text().unwrap_or_default() };
        let text = output::shown(text);
        if !self.fits {
            return Ok(text.into_owned());
        }
        let layout = |has_colours| Layout { columns: columns(), is_json: self.json, has_colours };
        let plain = lay_out(&text, layout(false));
        // Lines with colours are not folded.
        let fits = plain.lines().all(|line| line.width() <= columns());
        Ok(if fits && colour::is_wanted(true) { lay_out(&text, layout(true)) } else { plain })
    }

    /// Returns whether a value is shown as a table: a vector of maps.
    fn is_table(&self, outcome: &Outcome) -> bool {
        let json = outcome.json().filter(|json| json.starts_with("[{") && values::notes(outcome).next().is_none());
        self.fits && !self.json && json.is_some_and(|json| values::rows(json, Format::Table).is_ok())
    }
}

impl Rest {
    /// Folds text at so many columns; lines of a table are cut.
    fn of(text: &str, columns: usize, is_table: bool) -> Self {
        let mut rest = Rest::default();
        for line in text.lines() {
            // Colours are there only if every line fits.
            if line.contains('\u{1b}') || line.width() <= columns {
                rest.lines.push(line.to_owned());
                continue;
            }
            let mut parts = parts(line, columns);
            if is_table {
                rest.is_cut = true;
                rest.lines.extend(parts.next());
            } else {
                rest.lines.extend(parts);
            }
        }
        rest
    }

    /// Returns the next lines for a window with so many, and says how to see the others.
    pub(super) fn next(&mut self, rows: usize) -> String {
        // The form and the note take lines too.
        let room = rows.saturating_sub(3).max(5);
        let left = self.lines.len() - self.shown;
        let count = if left <= room + 1 { left } else { room };
        let mut text: String =
            self.lines[self.shown..self.shown + count].iter().flat_map(|line| [line, "\n"]).collect();
        self.shown += count;
        match (left - count, self.is_cut) {
            (0, false) => {}
            (0, true) => text.push_str("... (lines are cut to the window: :page shows them)\n"),
            (more, _) => text.push_str(&format!("... ({more} more lines: :more shows them, :page shows all)\n")),
        }
        text
    }

    /// Returns whether everything was shown.
    pub(super) fn is_empty(&self) -> bool {
        self.shown == self.lines.len()
    }
}

/// Splits a line into parts of at most so many columns.
fn parts(line: &str, columns: usize) -> impl Iterator<Item = String> {
    let mut chars = line.chars().peekable();
    std::iter::from_fn(move || {
        let (mut part, mut width) = (String::new(), 0);
        while let Some(c) = chars.peek() {
            width += c.width().unwrap_or(0);
            if width > columns && !part.is_empty() {
                break;
            }
            part.extend(chars.next());
        }
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_folded_and_shown_part_by_part() {
        assert_eq!(Rest::of("[1 2]", 20, false).next(24), "[1 2]\n");
        assert_eq!(Rest::of(&"é".repeat(45), 20, false).lines, ["é".repeat(20), "é".repeat(20), "é".repeat(5)]);
        assert_eq!(Rest::of("名前名", 5, false).lines, ["名前", "名"]);
        let mut rest = Rest::of(&"x\n".repeat(30), 20, false);
        let first = rest.next(20);
        assert!(
            first.lines().count() == 18 && first.ends_with("... (13 more lines: :more shows them, :page shows all)\n")
        );
        assert_eq!((rest.is_empty(), rest.next(20), rest.is_empty()), (false, "x\n".repeat(13), true));
        // A note in place of one line would say nothing.
        assert_eq!(Rest::of(&"x\n".repeat(18), 20, false).next(20), "x\n".repeat(18));
        let mut table = Rest::of(&format!("a\n{}\nb", "-".repeat(30)), 20, true);
        assert_eq!(
            table.next(24),
            format!("a\n{}\nb\n... (lines are cut to the window: :page shows them)\n", "-".repeat(20))
        );
    }
}
