//! How the value of a program is written: as Clojure would print it, as JSON, as text, as CSV, or as a table.

use super::table;
use clap::{Args, ValueEnum};
use lisp_runtime::Outcome;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// As Clojure prints it
    #[default]
    Clojure,
    /// JSON on one line
    Json,
    /// A string as it is, anything else as JSON
    Raw,
    /// CSV, of a vector of maps or of vectors
    Csv,
    /// A table, of a vector of maps or of vectors
    Table,
}

/// The options.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OutputOptions {
    /// How the value is written
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    out: Format,
    /// Write a string as it is, anything else as JSON: --out raw
    #[arg(short, long, conflicts_with_all = ["out", "csv", "table"])]
    raw: bool,
    /// Write CSV: --out csv
    #[arg(long, conflicts_with_all = ["out", "table"])]
    csv: bool,
    /// Write a table: --out table
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

/// Why a value cannot be written so.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("the value has no JSON text: {0}")]
    NoJson(String),
    #[error("the value is cut; the whole of it has {0} bytes: raise the limit result_bytes")]
    Cut(usize),
    #[error("{0} takes a vector of maps or of vectors; this value is {1}: write it with --out json")]
    NoRows(&'static str, &'static str),
    #[error(
        "row {0} has the key {1:?}, which the first row does not have: give every row the same keys, or leave --lines out"
    )]
    NewColumn(u64, String),
    #[error("row {0} is a vector, and rows before it are maps; or the other way round: make all rows alike")]
    Mixed(u64),
    #[error("a row cannot be written as CSV: {0}")]
    Csv(#[from] csv::Error),
}

/// The text of a value as it is, or as JSON, with the end of its line.
pub(crate) fn line(outcome: &Outcome, format: Format, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let text = match format {
        Format::Clojure => outcome.text().unwrap_or_default(),
        Format::Json | Format::Csv | Format::Table => json(outcome)?,
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

/// The value as JSON text, whole.
pub(crate) fn json(outcome: &Outcome) -> Result<&str, Unfit> {
    outcome
        .json()
        .ok_or_else(|| Unfit::NoJson(outcome.json_error().map_or_else(String::new, |error| error.message.clone())))
}

/// The value as a table or as CSV.
pub(crate) fn rows(json: &str, format: Format) -> Result<Vec<u8>, Unfit> {
    let name = if format == Format::Csv { "CSV" } else { "a table" };
    let row = match serde_json::from_str::<Shape>(json) {
        Ok(Shape::Array(cells)) => cells.into_iter().map(Row::of).collect::<Option<Vec<Row>>>(),
        Ok(Shape::Object(fields)) => Some(vec![Row::Fields(fields)]),
        Ok(Shape::Other(_)) | Err(_) => None,
    };
    let rows = row.ok_or_else(|| Unfit::NoRows(name, kind(json)))?;
    let sheet = Sheet::of(rows)?;
    match format {
        Format::Csv => sheet.csv(),
        _ => Ok(table::draw(sheet.columns.as_deref(), &sheet.cells).into_bytes()),
    }
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

/// A row: a map, or a vector.
enum Row {
    Fields(Vec<(String, Value)>),
    Cells(Vec<Value>),
}

impl Row {
    fn of(shape: Shape) -> Option<Row> {
        match shape {
            Shape::Object(fields) => Some(Row::Fields(fields)),
            Shape::Array(cells) => cells.into_iter().map(Shape::into_value).collect::<Option<_>>().map(Row::Cells),
            Shape::Other(_) => None,
        }
    }
}

/// Rows with their columns.
struct Sheet {
    /// `None` when the rows are vectors.
    columns: Option<Vec<String>>,
    cells: Vec<Vec<String>>,
}

impl Sheet {
    fn of(rows: Vec<Row>) -> Result<Sheet, Unfit> {
        let mut columns: Option<Vec<String>> = None;
        for row in &rows {
            if let Row::Fields(fields) = row {
                let columns = columns.get_or_insert_default();
                for (key, _) in fields {
                    if !columns.contains(key) {
                        columns.push(key.clone());
                    }
                }
            }
        }
        let mut cells = Vec::with_capacity(rows.len());
        for (row, number) in rows.into_iter().zip(1..) {
            cells.push(match (row, &columns) {
                (Row::Fields(fields), Some(columns)) => of_columns(fields, columns),
                (Row::Cells(values), None) => values.iter().map(cell).collect(),
                _ => return Err(Unfit::Mixed(number)),
            });
        }
        Ok(Sheet { columns, cells })
    }

    fn csv(&self) -> Result<Vec<u8>, Unfit> {
        let mut lines = CsvLines::default();
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

fn of_columns(fields: Vec<(String, Value)>, columns: &[String]) -> Vec<String> {
    let value = |column: &String| fields.iter().find(|(key, _)| key == column).map(|(_, value)| cell(value));
    columns.iter().map(|column| value(column).unwrap_or_default()).collect()
}

/// What stands in a cell: nothing for nil, a string as it is, the JSON of anything else.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// CSV of rows that come one by one: the first one says which columns there are.
#[derive(Default)]
pub(crate) struct CsvLines {
    columns: Option<Vec<String>>,
    rows: u64,
}

impl CsvLines {
    /// Writes one row, which is the JSON text of a map or a vector.
    pub(crate) fn row(&mut self, json: &str, out: &mut Vec<u8>) -> Result<(), Unfit> {
        self.rows += 1;
        let row = serde_json::from_str::<Shape>(json).ok().and_then(Row::of);
        match row.ok_or_else(|| Unfit::NoRows("CSV with --lines", kind(json)))? {
            Row::Cells(cells) if self.columns.is_none() => {
                self.record(&cells.iter().map(cell).collect::<Vec<_>>(), out)
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
                let new = fields.iter().find(|(key, _)| !columns.contains(key));
                let written = match new {
                    Some((key, _)) => Err(Unfit::NewColumn(self.rows, key.clone())),
                    None => self.record(&of_columns(fields, &columns), out),
                };
                self.columns = Some(columns);
                written
            }
        }
    }

    fn record(&mut self, cells: &[String], out: &mut Vec<u8>) -> Result<(), Unfit> {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(out);
        writer.write_record(cells)?;
        writer.flush().map_err(csv::Error::from)?;
        Ok(())
    }
}

/// A JSON value whose objects keep the order of their keys, at the depths where columns and rows are.
enum Shape {
    Object(Vec<(String, Value)>),
    Array(Vec<Shape>),
    Other(Value),
}

impl Shape {
    fn into_value(self) -> Option<Value> {
        match self {
            Shape::Object(fields) => Some(Value::Object(fields.into_iter().collect())),
            // Nothing nests deeper than the text that it was read from, whose reader has a ceiling.
            Shape::Array(parts) => parts.into_iter().map(Shape::into_value).collect::<Option<_>>().map(Value::Array),
            Shape::Other(value) => Some(value),
        }
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfShape;
        impl<'de> Visitor<'de> for OfShape {
            type Value = Shape;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Shape::Object(fields))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Shape, A::Error> {
                let mut all = Vec::new();
                while let Some(part) = parts.next_element()? {
                    all.push(part);
                }
                Ok(Shape::Array(all))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Shape, E> {
                Ok(Shape::Other(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Shape, E> {
                Ok(Shape::Other(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Shape, E> {
                Ok(Shape::Other(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Shape, E> {
                Ok(Shape::Other(value.into()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Shape, E> {
                Ok(Shape::Other(value.into()))
            }
            fn visit_unit<E>(self) -> Result<Shape, E> {
                Ok(Shape::Other(Value::Null))
            }
        }
        deserializer.deserialize_any(OfShape)
    }
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
        let error = lines.row(r#"{"a": 3, "c": 1}"#, &mut out).unwrap_err().to_string();
        assert!(error.starts_with("row 3 has the key \"c\""), "{error}");
        assert!(matches!(lines.row("[1]", &mut out), Err(Unfit::Mixed(4))));
    }
}
