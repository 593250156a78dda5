//! How values are shown in the REPL.

use crate::output::{self, columns};
use crate::render::colour;
use crate::render::pretty::{Layout, lay_out};
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
                    self.laid_out(json, true) + &notes
                }
                Err(unfit) => format!("{unfit}\n"),
            };
        }
        if self.fits
            && let Some(json) = outcome.json().filter(|json| is_rows(json) && values::notes(outcome).next().is_none())
            && let Ok(table) = values::rows(json, Format::Table)
        {
            let table = String::from_utf8_lossy(&table);
            return cut_to(output::shown(&table).trim_end_matches('\n'), columns(), table.len());
        }
        self.laid_out(outcome.text().unwrap_or_default(), false)
    }

    /// Lays a value out for the window. One that is too long is cut, and has no colours.
    fn laid_out(&self, text: &str, is_json: bool) -> String {
        if !self.fits {
            return format!("{}\n", output::shown(text));
        }
        let layout = |has_colours| Layout { columns: columns(), is_json, has_colours };
        let text = output::shown(text);
        let plain = lay_out(&text, layout(false));
        let cut = cut_to(&plain, columns(), text.len());
        match cut.len() == plain.len() + 1 && colour::is_wanted(true) {
            true => lay_out(&text, layout(true)) + "\n",
            false => cut,
        }
    }
}

/// Returns whether the JSON is an array of objects.
fn is_rows(json: &str) -> bool {
    json.starts_with("[{")
}

/// Cuts text to the window, with a note on how to see the rest: the whole value has `total` bytes.
fn cut_to(text: &str, columns: usize, total: usize) -> String {
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
        shown.push_str(&format!("... (cut to the window; {total} bytes in all: :page shows them)\n"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_say_so() {
        assert_eq!(cut_to("[1 2]", 20, 5), "[1 2]\n");
        let long = cut_to(&"é".repeat(401), 20, 802);
        assert_eq!(long, format!("{}\n... (cut to the window; 802 bytes in all: :page shows them)\n", "é".repeat(400)));
        let wide = cut_to(&format!("{}\nb", "a".repeat(30)), 20, 32);
        assert!(wide.starts_with(&format!("{}\nb\n...", "a".repeat(20))), "{wide}");
        let many = cut_to(&"x\n".repeat(50), 20, 100);
        assert_eq!(many.lines().count(), LINES + 1);
    }
}
