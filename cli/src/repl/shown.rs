//! How values are shown in the REPL.

use crate::output::columns;
use crate::render::values::{self, Format};
use lisp_runtime::Outcome;

/// The maximum number of lines shown of a value on a terminal.
const LINES: usize = 40;

/// Settings for showing values.
pub(super) struct Shown {
    /// Show JSON.
    pub(super) json: bool,
    /// Show time and fuel after each value.
    pub(super) time: bool,
    /// Fit values to the window, and show vectors of maps as tables.
    pub(super) fits: bool,
}

impl Shown {
    /// The text of a value, with a final newline.
    pub(super) fn value(&self, outcome: &Outcome) -> String {
        if self.json {
            return match values::json(outcome) {
                Ok(json) => {
                    let notes: String = values::notes(outcome).map(|note| format!("; {note}\n")).collect();
                    self.cut(json) + &notes
                }
                Err(unfit) => format!("{unfit}\n"),
            };
        }
        if self.fits
            && let Some(json) = outcome.json().filter(|json| is_rows(json) && values::notes(outcome).next().is_none())
            && let Ok(table) = values::rows(json, Format::Table)
        {
            return self.cut(&String::from_utf8_lossy(&table));
        }
        self.cut(outcome.text().unwrap_or_default())
    }

    /// Cuts text to the window, with a note on how to see the rest.
    fn cut(&self, text: &str) -> String {
        let text = text.trim_end_matches('\n');
        if !self.fits {
            return format!("{text}\n");
        }
        cut_to(text, columns())
    }
}

/// Returns whether the JSON is an array of objects.
fn is_rows(json: &str) -> bool {
    json.starts_with("[{")
}

fn cut_to(text: &str, columns: usize) -> String {
    let is_table = text.lines().count() > 1;
    let max = if is_table { columns } else { columns * LINES / 2 };
    let (mut shown, mut is_cut) = (String::new(), text.lines().count() > LINES);
    for line in text.lines().take(LINES) {
        let mut end = line.char_indices().map(|(at, _)| at).chain([line.len()]);
        match end.nth(max) {
            Some(at) if at < line.len() => {
                shown.push_str(&line[..at]);
                is_cut = true;
            }
            _ => shown.push_str(line),
        }
        shown.push('\n');
    }
    if is_cut {
        shown.push_str(&format!("... (cut to the window; {} bytes in all: :page shows them)\n", text.len()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_say_so() {
        assert_eq!(cut_to("[1 2]", 20), "[1 2]\n");
        let long = cut_to(&"é".repeat(401), 20);
        assert_eq!(long, format!("{}\n... (cut to the window; 802 bytes in all: :page shows them)\n", "é".repeat(400)));
        let wide = cut_to(&format!("{}\nb", "a".repeat(30)), 20);
        assert!(wide.starts_with(&format!("{}\nb\n...", "a".repeat(20))), "{wide}");
        let many = cut_to(&"x\n".repeat(50), 20);
        assert_eq!(many.lines().count(), LINES + 1);
    }
}
