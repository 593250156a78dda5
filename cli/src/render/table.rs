//! Text tables for terminals.

use lisp_runtime::internal::visible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The mark of a cell that is cut.
const CUT: char = '…';
/// The space between two columns.
const GAP: usize = 2;

/// Rows whose cells are one line each, and how wide their columns are.
#[derive(Debug)]
pub(crate) struct Table {
    header: Option<Vec<String>>,
    body: Vec<Vec<String>>,
    widths: Vec<usize>,
    /// Whether a column has only numbers, which are aligned right.
    numbers: Vec<bool>,
}

/// The lines of a table that fits a window.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fitted {
    pub(crate) lines: Vec<String>,
    /// Whether cells are cut.
    pub(crate) has_cut_cells: bool,
    /// The number of columns that are left out.
    pub(crate) hidden_columns: usize,
}

impl Table {
    /// Makes a table of rows, with column names if there are any. Numbers are aligned right.
    pub(crate) fn new(columns: Option<&[String]>, rows: &[Vec<String>]) -> Self {
        let count = rows.iter().map(Vec::len).chain(columns.map(<[String]>::len)).max().unwrap_or(0);
        let body: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| on_one_line(cell)).collect()).collect();
        let header: Option<Vec<String>> = columns.map(|columns| columns.iter().map(|name| on_one_line(name)).collect());
        let column = |at: usize| body.iter().chain(&header).filter_map(move |row| row.get(at));
        let widths = (0..count).map(|at| column(at).map(|text| text.width()).max().unwrap_or(0)).collect();
        let is_number = |text: &String| text.is_empty() || text.parse::<f64>().is_ok();
        let numbers = (0..count)
            .map(|at| {
                let mut cells = body.iter().filter_map(|row| row.get(at));
                cells.clone().any(|text| !text.is_empty()) && cells.all(is_number)
            })
            .collect();
        Table { header, body, widths, numbers }
    }

    /// Returns the table as it is, however wide.
    pub(crate) fn whole(&self) -> String {
        self.lines(&self.widths).into_iter().fold(String::new(), |text, line| text + &line + "\n")
    }

    /// Returns the table for a window with so many columns: wide cells are cut, and if not even the names of the columns fit, the
    /// last ones are left out.
    pub(crate) fn within(&self, columns: usize) -> Fitted {
        let mut widths = self.fitting(columns);
        if widths.len() == 1 && widths[0] > columns {
            widths[0] = columns;
        }
        let has_cut_cells = widths.iter().zip(&self.widths).any(|(width, whole)| width < whole);
        Fitted { lines: self.lines(&widths), has_cut_cells, hidden_columns: self.widths.len() - widths.len() }
    }

    /// Returns the widths of as many columns as fit, at least one.
    fn fitting(&self, columns: usize) -> Vec<usize> {
        let named = self.narrowest();
        // Numbers are cut last: a part of one looks like another one.
        let uncut = named.iter().zip(&self.widths).zip(&self.numbers);
        let uncut: Vec<usize> =
            uncut.map(|((narrow, whole), is_number)| if *is_number { *whole } else { *narrow }).collect();
        for floors in [&uncut, &named] {
            if with_gaps(floors) <= columns {
                return self.spread(floors, columns);
            }
        }
        let mut count = named.len();
        while count > 1 && with_gaps(&named[..count]) > columns {
            count -= 1;
        }
        self.spread(&named[..count], columns)
    }

    /// Returns the least width of each column: its name, and a few characters of its cells.
    fn narrowest(&self) -> Vec<usize> {
        /// The width of a column without a name or with a short one.
        const CELL: usize = 5;
        let name = |at: usize| self.header.as_ref().and_then(|header| header.get(at)).map_or(0, |name| name.width());
        self.widths.iter().enumerate().map(|(at, width)| name(at).max(CELL).min(*width)).collect()
    }

    /// Returns these widths, with what is left of the window given to the columns that need more, up to one width for all.
    fn spread(&self, floors: &[usize], columns: usize) -> Vec<usize> {
        let capped = |cap: usize| -> Vec<usize> {
            floors.iter().zip(&self.widths).map(|(floor, whole)| *floor.max(whole.min(&cap))).collect()
        };
        let (mut fits, mut beyond) = (0, columns + 1);
        while beyond - fits > 1 {
            let cap = fits.midpoint(beyond);
            if with_gaps(&capped(cap)) <= columns { fits = cap } else { beyond = cap }
        }
        capped(fits)
    }

    /// Returns the lines of the first columns, with these widths.
    fn lines(&self, widths: &[usize]) -> Vec<String> {
        let line = |row: &[String]| {
            let mut line = String::new();
            for (at, width) in widths.iter().enumerate() {
                let text = cut(row.get(at).map_or("", String::as_str), *width);
                let gap = " ".repeat(width.saturating_sub(text.width()));
                let (before, after) = if self.numbers[at] { (gap.as_str(), "") } else { ("", gap.as_str()) };
                line.extend([if at > 0 { "  " } else { "" }, before, &text, after]);
            }
            line.truncate(line.trim_end().len());
            line
        };
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let head = self.header.iter().flat_map(|header| [line(header), line(&rule)]);
        head.chain(self.body.iter().map(|row| line(row))).collect()
    }
}

fn with_gaps(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Returns a text of at most so many columns, with a mark if it is cut.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let (mut part, mut width) = (String::new(), 1);
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width > columns {
            break;
        }
        part.push(c);
    }
    part.push(CUT);
    part
}

/// Returns the text of a cell with escapes for what is not visible, or would be another line.
fn on_one_line(text: &str) -> String {
    let text = text.replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r");
    visible(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|&cell| cell.to_owned()).collect()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let columns = ["name".to_owned(), "n".to_owned()];
        let table = Table::new(Some(&columns), &rows(&[&["Ann", "7"], &["日本", "1200"], &["a\nb"]])).whole();
        assert_eq!(table, "name     n\n----  ----\nAnn      7\n日本  1200\na\\nb\n");
        assert_eq!(Table::new(None, &rows(&[&["a"], &["b", "c"]])).whole(), "a\nb  c\n");
        assert_eq!(Table::new(None, &[]).whole(), "");
        assert_eq!(Table::new(None, &rows(&[&["\t\r\u{7}\u{202e}"]])).whole(), "\\t\\r\\u0007\\u202e\n");
    }

    #[test]
    fn wide_cells_are_cut_before_columns_are_left_out() {
        let columns = ["id", "note", "amount"].map(str::to_owned);
        let table = Table::new(Some(&columns), &rows(&[&["a", &"x".repeat(40), "1234567"], &["b", "short", "1"]]));
        let fitted = table.within(30);
        let expected =
            ["id  note                amount", "--  -----------------  -------", "a   xxxxxxxxxxxxxxxx…  1234567"];
        assert_eq!(fitted.lines[..3], expected);
        assert_eq!((fitted.has_cut_cells, fitted.hidden_columns), (true, 0));
        let whole = table.within(80);
        assert_eq!((whole.lines.join("\n") + "\n", whole.has_cut_cells), (table.whole(), false));
        // Not even the names fit.
        let narrow = table.within(10);
        assert_eq!(narrow.lines, ["id  note", "--  ------", "a   xxxxx…", "b   short"]);
        assert_eq!((narrow.has_cut_cells, narrow.hidden_columns), (true, 1));
        let one = Table::new(Some(&["a-long-name".to_owned()]), &rows(&[&["1"]])).within(5);
        assert_eq!((one.lines[0].as_str(), one.has_cut_cells, one.hidden_columns), ("a-lo…", true, 0));
    }

    /// Every line fits the window, and what is not shown is told.
    #[test]
    fn any_table_fits_any_window() {
        for count in 1..12 {
            let names: Vec<String> = (0..count).map(|at| "n".repeat(1 + at * 3 % 9)).collect();
            let row: Vec<String> = (0..count).map(|at| "日".repeat(at * 7 % 25)).collect();
            let table = Table::new(Some(&names), &[row]);
            for columns in 1..120 {
                let fitted = table.within(columns);
                assert!(fitted.lines.iter().all(|line| line.width() <= columns.max(2)), "{count} {columns} {fitted:?}");
                let is_whole = fitted.lines.join("\n") + "\n" == table.whole();
                assert_eq!(is_whole, !fitted.has_cut_cells && fitted.hidden_columns == 0, "{count} {columns}");
            }
        }
    }
}
