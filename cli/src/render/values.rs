//! Formats of values: Clojure syntax, JSON, text, YAML, CSV and tables.

use super::fields::Fields;
use super::pretty::{Layout, lay_out};
use super::table::Table;
use crate::exit::Exit;
use clap::{Args, ValueEnum};
use lisp_runtime::Outcome;
use lisp_runtime::outcome::{Warning, WarningKind};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// The ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Clojure syntax; on a terminal over several lines
    #[default]
    Clojure,
    /// JSON; on a terminal over several lines
    Json,
    /// JSON with every part on a line of its own
    Pretty,
    /// JSON, each element of a vector on a line of its own
    Ndjson,
    /// Strings as they are, anything else as JSON
    Raw,
    /// CSV, for a vector of maps or vectors
    Csv,
    /// Tab-separated values, for a vector of maps or vectors; \t, \n, \r and \\ stand for these characters in a cell
    Tsv,
    /// A table, for a vector of maps or vectors
    Table,
    /// YAML 1.2; with --lines each value is a document
    #[cfg(feature = "json-schema")]
    Yaml,
}

impl Format {
    /// Returns what is written before each of several values.
    pub(crate) fn separator(self) -> &'static [u8] {
        #[cfg(feature = "json-schema")]
        if self == Format::Yaml {
            return b"---\n";
        }
        b""
    }
}

/// The options.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OutputOptions {
    /// The output format of the value
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    out: Format,
    /// Write strings as they are, anything else as JSON; same as --out raw
    #[arg(short, long, conflicts_with_all = ["out", "csv", "table"])]
    raw: bool,
    /// Write CSV; same as --out csv
    #[arg(long, conflicts_with_all = ["out", "table"])]
    csv: bool,
    /// Write a table; same as --out table
    #[arg(long, conflicts_with = "out")]
    table: bool,
}

impl OutputOptions {
    pub(crate) fn format(self) -> Format {
        match self {
            OutputOptions { raw: true, .. } => Format::Raw,
            OutputOptions { csv: true, .. } => Format::Csv,
            OutputOptions { table: true, .. } => Format::Table,
            OutputOptions { out, .. } => out,
        }
    }
}

/// Why a value cannot be written in a format.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("{0}; use --out clojure")]
    NoJson(String),
    #[error(
        "the value has {0} bytes, more than the limit result_bytes: raise it, such as with --limits result_bytes=1GB"
    )]
    Cut(usize),
    #[error("{0} takes a vector of maps or of vectors; this value is {1}: write it with --out json")]
    NoRows(&'static str, &'static str),
    #[error(
        "row {0} has the key {1:?}, which the first row does not have: give every row the same keys, or leave --lines out"
    )]
    NewColumn(u64, String),
    #[error("row {0} is a vector and earlier rows are maps, or vice versa: make all rows the same kind")]
    Mixed(u64),
    #[cfg(feature = "json-schema")]
    #[error("the value cannot be written as YAML: {0}; write it with --out json")]
    NoYaml(String),
    #[error("a row cannot be written as CSV: {0}")]
    Csv(#[from] csv::Error),
}

impl Unfit {
    pub(crate) fn exit(&self) -> Exit {
        if matches!(self, Unfit::Cut(_)) { Exit::Limit } else { Exit::Error }
    }

    /// The message for the REPL, which has no options.
    pub(crate) fn at_prompt(&self) -> String {
        match self {
            Unfit::NoRows(name, kind) => format!("{name} takes a vector of maps or of vectors; this value is {kind}"),
            Unfit::NoJson(why) => why.clone(),
            other => other.to_string(),
        }
    }
}

/// Writes a value in Clojure syntax or as JSON, with a newline.
pub(crate) fn line(outcome: &Outcome, format: Format, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let text = match format {
        Format::Clojure => outcome.text().unwrap_or_default(),
        Format::Json | Format::Csv | Format::Tsv | Format::Table => json(outcome)?,
        Format::Pretty => {
            let layout = Layout { columns: 0, is_json: true, has_colours: false };
            out.extend_from_slice(lay_out(json(outcome)?, layout).as_bytes());
            ""
        }
        Format::Ndjson => return ndjson(json(outcome)?, out),
        #[cfg(feature = "json-schema")]
        Format::Yaml => {
            out.extend_from_slice(super::yaml::document(json(outcome)?).map_err(Unfit::NoYaml)?.as_bytes());
            return Ok(());
        }
        Format::Raw => match serde_json::from_str::<String>(json(outcome)?) {
            Ok(text) => {
                out.extend_from_slice(text.as_bytes());
                ""
            }
            Err(_) => json(outcome)?,
        },
    };
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
    Ok(())
}

/// Writes each element of a JSON array on a line of its own; any other value is one line.
fn ndjson(json: &str, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let values: Vec<&RawValue> = match json.starts_with('[') {
        true => serde_json::from_str(json)
            .map_err(|error| Unfit::NoJson(format!("the value cannot be written as JSON: {error}")))?,
        false => {
            out.extend_from_slice(json.as_bytes());
            out.push(b'\n');
            return Ok(());
        }
    };
    for value in values {
        out.extend_from_slice(value.get().as_bytes());
        out.push(b'\n');
    }
    Ok(())
}

/// The complete value as JSON text.
pub(crate) fn json(outcome: &Outcome) -> Result<&str, Unfit> {
    outcome.json().ok_or_else(|| {
        let error = outcome.json_error().map(|error| error.message.clone());
        Unfit::NoJson(error.unwrap_or_else(|| "the value cannot be written as JSON".to_owned()))
    })
}

/// Notes about JSON that has null in place of a number.
pub(crate) fn notes(outcome: &Outcome) -> impl Iterator<Item = &str> {
    let of_value = outcome.warnings().iter().filter(|warning| warning.kind == WarningKind::NullInValue);
    of_value.map(|warning| warning.message.as_str())
}

/// Notes about the text of a program, one per line.
pub(crate) fn notes_on_program(warnings: &[Warning]) -> impl Iterator<Item = String> {
    let of_program = warnings.iter().filter(|warning| warning.kind.is_of_program());
    of_program.map(|Warning { message, position, repair, .. }| {
        let place = position.map(|at| format!(" at line {}, column {}", at.line, at.column)).unwrap_or_default();
        let repair = repair.as_ref().map(|repair| format!("; {repair}")).unwrap_or_default();
        format!("warning{place}: {message}{repair}")
    })
}

/// The value as a table or CSV.
pub(crate) fn rows(json: &str, format: Format) -> Result<Vec<u8>, Unfit> {
    match format {
        Format::Csv => Sheet::of_json("CSV", json)?.lines(CsvLines::of(format)),
        Format::Tsv => Sheet::of_json("TSV", json)?.lines(CsvLines::of(format)),
        _ => Ok(table(json)?.whole().into_bytes()),
    }
}

/// The value as a table.
pub(crate) fn table(json: &str) -> Result<Table, Unfit> {
    let sheet = Sheet::of_json("a table", json)?;
    Ok(Table::new(sheet.columns.as_deref(), &sheet.cells))
}
fn kind(json: &str) -> &'static str {
    match json.bytes().next() {
        Some(b'[') => "a vector of something else",
        Some(b'"') => "a string",
        Some(b'{') => "a map",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "nil",
        _ => "a number",
    }
}

/// A row: a map with its keys in order, or a vector. Cells stay JSON text, so that no number changes.
enum Row<'j> {
    Fields(Vec<(String, &'j RawValue)>),
    Cells(Vec<&'j RawValue>),
}

impl<'j> Row<'j> {
    /// Returns `None` if the JSON is neither an object nor an array.
    fn of(json: &'j str) -> Option<Row<'j>> {
        match json.trim_start().bytes().next()? {
            b'{' => serde_json::from_str::<Fields<'j>>(json).ok().map(|fields| Row::Fields(fields.0)),
            b'[' => serde_json::from_str(json).ok().map(Row::Cells),
            _ => None,
        }
    }
}

/// Rows with their columns.
struct Sheet {
    /// `None` if the rows are vectors.
    columns: Option<Vec<String>>,
    cells: Vec<Vec<String>>,
}

impl Sheet {
    /// Returns the rows of a value, for the format of this name.
    fn of_json(name: &'static str, json: &str) -> Result<Sheet, Unfit> {
        let no_rows = || Unfit::NoRows(name, kind(json));
        let rows: Vec<Row<'_>> = match Row::of(json).ok_or_else(no_rows)? {
            fields @ Row::Fields(_) => vec![fields],
            Row::Cells(rows) => {
                rows.into_iter().map(|row| Row::of(row.get())).collect::<Option<_>>().ok_or_else(no_rows)?
            }
        };
        Sheet::of(rows)
    }

    fn of(rows: Vec<Row<'_>>) -> Result<Sheet, Unfit> {
        let mut columns: Option<Vec<String>> = None;
        let mut known = BTreeSet::new();
        for row in &rows {
            if let Row::Fields(fields) = row {
                let columns = columns.get_or_insert_default();
                for (key, _) in fields {
                    if known.insert(key.clone()) {
                        columns.push(key.clone());
                    }
                }
            }
        }
        let mut cells = Vec::with_capacity(rows.len());
        for (row, number) in rows.into_iter().zip(1..) {
            cells.push(match (row, &columns) {
                (Row::Fields(fields), Some(columns)) => of_columns(fields, columns),
                (Row::Cells(values), None) => values.into_iter().map(cell).collect(),
                _ => return Err(Unfit::Mixed(number)),
            });
        }
        Ok(Sheet { columns, cells })
    }

    fn lines(&self, lines: CsvLines) -> Result<Vec<u8>, Unfit> {
        let mut out = Vec::new();
        if let Some(columns) = &self.columns {
            lines.record(columns, &mut out)?;
        }
        for cells in &self.cells {
            lines.record(cells, &mut out)?;
        }
        Ok(out)
    }
}

fn of_columns(fields: Vec<(String, &RawValue)>, columns: &[String]) -> Vec<String> {
    let values: BTreeMap<&str, &RawValue> = fields.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    columns.iter().map(|column| values.get(column.as_str()).map(|value| cell(value)).unwrap_or_default()).collect()
}

/// The text of a cell: empty for nil, a string as it is, JSON for anything else.
fn cell(value: &RawValue) -> String {
    match value.get() {
        "null" => String::new(),
        text => serde_json::from_str(text).unwrap_or_else(|_| without_space(text)),
    }
}

/// Removes whitespace between the tokens of JSON text.
pub(crate) fn without_space(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if in_string || !c.is_ascii_whitespace() {
            text.push(c);
        }
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    text
}

/// Writes rows of CSV or TSV one by one. The first row sets the columns.
#[derive(Default)]
pub(crate) struct CsvLines {
    columns: Option<Vec<String>>,
    rows: u64,
    is_tsv: bool,
}

impl CsvLines {
    pub(crate) fn of(format: Format) -> Self {
        CsvLines { is_tsv: format == Format::Tsv, ..CsvLines::default() }
    }

    /// Writes one row, given as the JSON text of a map or a vector.
    pub(crate) fn row(&mut self, json: &str, out: &mut Vec<u8>) -> Result<(), Unfit> {
        let row = Row::of(json).ok_or_else(|| {
            Unfit::NoRows(if self.is_tsv { "TSV with --lines" } else { "CSV with --lines" }, kind(json))
        })?;
        self.rows += 1;
        match row {
            Row::Cells(cells) if self.columns.is_none() => {
                self.record(&cells.into_iter().map(cell).collect::<Vec<_>>(), out)
            }
            Row::Cells(_) => Err(Unfit::Mixed(self.rows)),
            Row::Fields(fields) => {
                if self.columns.is_none() {
                    if self.rows > 1 {
                        return Err(Unfit::Mixed(self.rows));
                    }
                    let columns: Vec<String> = fields.iter().map(|(key, _)| key.clone()).collect();
                    self.record(&columns, out)?;
                    self.columns = Some(columns);
                }
                let columns = self.columns.take().unwrap_or_default();
                let known: BTreeSet<&String> = columns.iter().collect();
                let new = fields.iter().find(|(key, _)| !known.contains(key));
                let written = match new {
                    Some((key, _)) => Err(Unfit::NewColumn(self.rows, key.clone())),
                    None => self.record(&of_columns(fields, &columns), out),
                };
                self.columns = Some(columns);
                written
            }
        }
    }

    fn record(&self, cells: &[String], out: &mut Vec<u8>) -> Result<(), Unfit> {
        if self.is_tsv {
            let cells: Vec<String> = cells.iter().map(|cell| tsv_cell(cell)).collect();
            out.extend_from_slice(cells.join("\t").as_bytes());
            out.push(b'\n');
            return Ok(());
        }
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(out);
        writer.write_record(cells)?;
        writer.flush().map_err(csv::Error::from)?;
        Ok(())
    }
}

fn tsv_cell(cell: &str) -> String {
    let mut text = String::with_capacity(cell.len());
    for c in cell.chars() {
        match c {
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\\' => text.push_str("\\\\"),
            plain => text.push(plain),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(json: &str) -> Result<String, String> {
        rows(json, Format::Csv).map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn csv_of_maps_has_a_header_in_the_order_of_the_keys() {
        let rows = r#"[{"b": 1, "a": "x,y"}, {"a": null, "c": [1, {"z": 2}]}, {}]"#;
        assert_eq!(csv(rows).unwrap(), "b,a,c\n1,\"x,y\",\n,,\"[1,{\"\"z\"\":2}]\"\n,,\n");
        assert_eq!(csv(r#"{"b": "say \"hi\"", "a": true}"#).unwrap(), "b,a\n\"say \"\"hi\"\"\",true\n");
        assert_eq!(csv("[[1, \"a\\nb\"], [2.5]]").unwrap(), "1,\"a\nb\"\n2.5\n");
        assert_eq!(csv("[]").unwrap(), "");
        assert_eq!(csv(r#"[{"a": 1, "c": 2}, {"b": 3, "c": 4}]"#).unwrap(), "a,c,b\n1,2,\n,4,3\n");
        let tsv = super::rows(r#"[{"b": "x\ty\\", "a": "\n\""}]"#, Format::Tsv).unwrap();
        assert_eq!(String::from_utf8(tsv).unwrap(), "b\ta\nx\\ty\\\\\t\\n\"\n");
        // Numbers do not change, and any depth is accepted.
        assert_eq!(
            csv("[[123456789012345678901234567890, 1.50, -0.0]]").unwrap(),
            "123456789012345678901234567890,1.50,-0.0\n"
        );
        let deep = "[".repeat(5_000) + &"]".repeat(5_000);
        assert_eq!(csv(&format!("[{{\"a\": {deep}}}]")).unwrap(), format!("a\n{deep}\n"));
        assert_eq!(without_space(r#"{ "a \\": [ 1, "\" b" ] }"#), r#"{"a \\":[1,"\" b"]}"#);
    }

    #[test]
    fn what_has_no_rows_is_refused() {
        for (json, says) in [("1", "a number"), ("\"a\"", "a string"), ("[1]", "something else"), ("null", "nil")] {
            let error = csv(json).unwrap_err();
            assert!(error.contains(says) && error.contains("--out json"), "{error}");
        }
        assert!(csv("[[1], {\"a\": 1}]").unwrap_err().starts_with("row 1 is a vector"));
    }

    #[test]
    fn rows_that_come_one_by_one_keep_the_first_ones_columns() {
        let (mut lines, mut out) = (CsvLines::default(), Vec::new());
        lines.row(r#"{"b": 1, "a": 2}"#, &mut out).unwrap();
        lines.row(r#"{"a": 3}"#, &mut out).unwrap();
        assert_eq!(String::from_utf8(out.clone()).unwrap(), "b,a\n1,2\n,3\n");
        // Values that are not rows do not count.
        let (mut late, mut written) = (CsvLines::default(), Vec::new());
        assert!(matches!(late.row("5", &mut written), Err(Unfit::NoRows(..))));
        late.row(r#"{"a": 1}"#, &mut written).unwrap();
        assert_eq!(written, b"a\n1\n");
        let error = lines.row(r#"{"a": 3, "c": 1}"#, &mut out).unwrap_err().to_string();
        assert!(error.starts_with("row 3 has the key \"c\""), "{error}");
        assert!(matches!(lines.row("[1]", &mut out), Err(Unfit::Mixed(4))));
    }
}
