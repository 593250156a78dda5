//! How values are shown in the REPL: whole, or the part of them that fits the window.

use crate::output::{self, columns};
use crate::render::colour;
use crate::render::pretty::{Layout, lay_out};
use crate::render::table::{Fitted, Table};
use crate::render::values::{self, Unfit};
use lisp_runtime::Outcome;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a value is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum View {
    /// In Clojure syntax; at a terminal, a vector of maps is a table.
    #[default]
    Clojure,
    Json,
    Table,
}

/// Settings for showing values.
pub(super) struct Shown {
    pub(super) view: View,
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
    /// What of the lines is cut to the window; empty if nothing is.
    cut: String,
}

impl Shown {
    /// The text of a value, with a final newline, and the lines of it that do not fit.
    pub(super) fn value(&self, outcome: &Outcome) -> Result<(String, Rest), Unfit> {
        let notes: String = match self.view {
            View::Json => values::notes(outcome).map(|note| format!("; {}\n", output::shown(note))).collect(),
            View::Clojure | View::Table => String::new(),
        };
        if !self.fits {
            return Ok((self.whole(outcome)? + "\n" + &notes, Rest::default()));
        }
        let mut rest = match self.table(outcome) {
            Some(table) => Rest::of_table(table?.within(columns())),
            None => Rest::of(&self.whole(outcome)?, columns()),
        };
        Ok((rest.next(output::rows()) + &notes, rest))
    }

    /// The whole text of a value, laid out for the window, without a final newline.
    pub(super) fn whole(&self, outcome: &Outcome) -> Result<String, Unfit> {
        if let Some(table) = self.table(outcome) {
            return Ok(table?.whole().trim_end_matches('\n').to_owned());
        }
        let is_json = self.view == View::Json;
        let text = if is_json { values::json(outcome)? } else { outcome.text().unwrap_or_default() };
        let text = output::shown(text);
        if !self.fits {
            return Ok(text.into_owned());
        }
        let layout = |has_colours| Layout { columns: columns(), is_json, has_colours };
        let plain = lay_out(&text, layout(false));
        // Lines with colours are not folded.
        let fits = plain.lines().all(|line| line.width() <= columns());
        Ok(if fits && colour::is_wanted(true) { lay_out(&text, layout(true)) } else { plain })
    }

    /// Returns the table of a value that is shown as one: where that is asked for, and for a vector of maps.
    pub(super) fn table(&self, outcome: &Outcome) -> Option<Result<Table, Unfit>> {
        match self.view {
            View::Table => Some(values::json(outcome).and_then(values::table)),
            View::Clojure if self.fits => {
                let json =
                    outcome.json().filter(|json| json.starts_with("[{") && values::notes(outcome).next().is_none());
                json.and_then(|json| values::table(json).ok()).map(Ok)
            }
            View::Clojure | View::Json => None,
        }
    }
}

impl Rest {
    /// Folds text at so many columns.
    fn of(text: &str, columns: usize) -> Self {
        let mut rest = Rest::default();
        for line in text.lines() {
            // Colours are there only if every line fits.
            if line.contains('\u{1b}') || line.width() <= columns {
                rest.lines.push(line.to_owned());
            } else {
                rest.lines.extend(parts(line, columns));
            }
        }
        rest
    }

    /// The lines of a table.
    fn of_table(table: Fitted) -> Self {
        let hidden = match table.hidden_columns {
            0 => None,
            1 => Some("1 column is left out".to_owned()),
            count => Some(format!("{count} columns are left out")),
        };
        let cells = table.has_cut_cells.then(|| "wide cells are cut".to_owned());
        let cut: Vec<String> = cells.into_iter().chain(hidden).collect();
        Rest { lines: table.lines, shown: 0, cut: cut.join(", ") }
    }

    /// Returns the next lines for a window with so many, and says how to see the others.
    pub(super) fn next(&mut self, rows: usize) -> String {
        // The form and the notes take lines too.
        let notes = if self.cut.is_empty() { 1 } else { 2 };
        let room = rows.saturating_sub(2 + notes).max(5);
        let left = self.lines.len() - self.shown;
        let count = if left <= room + 1 { left } else { room };
        let mut text: String =
            self.lines[self.shown..self.shown + count].iter().flat_map(|line| [line, "\n"]).collect();
        self.shown += count;
        if !self.cut.is_empty() {
            text.push_str(&format!("... ({}: :page shows all)\n", self.cut));
        }
        if left > count {
            text.push_str(&format!("... ({} more lines: :more shows them, :page shows all)\n", left - count));
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
        assert_eq!(Rest::of("[1 2]", 20).next(24), "[1 2]\n");
        assert_eq!(Rest::of(&"é".repeat(45), 20).lines, ["é".repeat(20), "é".repeat(20), "é".repeat(5)]);
        assert_eq!(Rest::of("名前名", 5).lines, ["名前", "名"]);
        let mut rest = Rest::of(&"x\n".repeat(30), 20);
        let first = rest.next(20);
        assert!(
            first.lines().count() == 18 && first.ends_with("... (13 more lines: :more shows them, :page shows all)\n")
        );
        assert_eq!((rest.is_empty(), rest.next(20), rest.is_empty()), (false, "x\n".repeat(13), true));
        // A note in place of one line would say nothing.
        assert_eq!(Rest::of(&"x\n".repeat(18), 20).next(20), "x\n".repeat(18));
        let lines = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        let fitted = Fitted { lines: lines(2), has_cut_cells: true, hidden_columns: 0 };
        assert_eq!(Rest::of_table(fitted).next(24), "0\n1\n... (wide cells are cut: :page shows all)\n");
        let fitted = Fitted { lines: lines(100), has_cut_cells: true, hidden_columns: 3 };
        let said = Rest::of_table(fitted).next(24);
        let notes: Vec<&str> = said.lines().skip(20).collect();
        assert_eq!(
            notes,
            [
                "... (wide cells are cut, 3 columns are left out: :page shows all)",
                "... (80 more lines: :more shows them, :page shows all)"
            ]
        );
        assert_eq!(Rest::of_table(Fitted { lines: lines(1), ..Fitted::default() }).next(24), "0\n");
    }
}
