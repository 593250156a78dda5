//! Text tables for terminals.

use lisp_runtime::internal::visible_in_place;
use unicode_width::UnicodeWidthStr;

/// Formats rows as a table, with column names if there are any. Numbers are aligned right.
pub(crate) fn draw(columns: Option<&[String]>, rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).chain(columns.map(<[String]>::len)).max().unwrap_or(0);
    let shown = |text: &String| visible_in_place(&text.replace(|c: char| c.is_control(), "\u{fffd}")).into_owned();
    let body: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let header: Option<Vec<String>> = columns.map(|columns| columns.iter().map(shown).collect());
    let column = |at: usize| body.iter().chain(&header).filter_map(move |row| row.get(at));
    let widths: Vec<usize> = (0..count).map(|at| column(at).map(|text| text.width()).max().unwrap_or(0)).collect();
    let is_number = |text: &String| text.is_empty() || text.parse::<f64>().is_ok();
    let right: Vec<bool> = (0..count)
        .map(|at| {
            let mut cells = body.iter().filter_map(|row| row.get(at));
            cells.clone().any(|text| !text.is_empty()) && cells.all(is_number)
        })
        .collect();
    let line = |row: &[String]| {
        let mut line = String::new();
        for (at, width) in widths.iter().enumerate() {
            let text = row.get(at).map_or("", String::as_str);
            let gap = " ".repeat(width.saturating_sub(text.width()));
            let (before, after) = if right[at] { (gap.as_str(), "") } else { ("", gap.as_str()) };
            line.extend([if at > 0 { "  " } else { "" }, before, text, after]);
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let head = header.map(|header| line(&header) + &line(&rule)).unwrap_or_default();
    body.iter().fold(head, |text, row| text + &line(row))
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
        let table = draw(Some(&columns), &rows(&[&["Ann", "7"], &["日本", "1200"], &["a\nb"]]));
        assert_eq!(table, "name     n\n----  ----\nAnn      7\n日本  1200\na\u{fffd}b\n");
        assert_eq!(draw(None, &rows(&[&["a"], &["b", "c"]])), "a\nb  c\n");
        assert_eq!(draw(None, &[]), "");
    }
}
