//! Formats of data that is read. Data of every format becomes JSON, which the engine imports.

#[cfg(feature = "json-schema")]
mod yaml;

use clap::{Args, ValueEnum};
use csv::{ByteRecord, Reader, ReaderBuilder};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataFormat {
    /// One JSON value
    Json,
    /// JSON values, one on each line
    Ndjson,
    /// CSV with a header (RFC 4180): each row is a map of strings
    Csv,
    /// Tab-separated values with a header; \t, \n, \r and \\ in a cell stand for these characters
    Tsv,
    /// Text: one string, or with --lines or --slurp one string a line
    Text,
    /// YAML 1.2
    #[cfg(feature = "json-schema")]
    Yaml,
    /// TOML
    #[cfg(feature = "toml")]
    Toml,
}

/// JSON values on lines of their own, as they come.
pub(crate) type JsonLines = Box<dyn Read + Send>;

/// How rows of CSV and TSV are read.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct RowOptions {
    /// In CSV and TSV, read cells that are JSON numbers, true or false as such, and empty cells as nil
    #[arg(long)]
    typed: bool,
    /// The first row of CSV and TSV is no header: each row is a vector
    #[arg(long)]
    no_header: bool,
}

impl DataFormat {
    /// Returns the format that the name of a file says.
    pub(crate) fn of_file(path: &Path) -> DataFormat {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        match ending.as_str() {
            "ndjson" | "jsonl" => DataFormat::Ndjson,
            "csv" => DataFormat::Csv,
            "tsv" | "tab" => DataFormat::Tsv,
            "txt" => DataFormat::Text,
            #[cfg(feature = "json-schema")]
            "yaml" | "yml" => DataFormat::Yaml,
            #[cfg(feature = "toml")]
            "toml" => DataFormat::Toml,
            _ => DataFormat::Json,
        }
    }

    /// Returns data as one JSON value.
    ///
    /// # Errors
    /// Why it is not data of this format. JSON is not read here: the engine reads it, and reports its errors.
    pub(crate) fn value(self, text: String, rows: RowOptions) -> Result<String, String> {
        match self {
            DataFormat::Json => Ok(text),
            DataFormat::Text => Ok(quoted(&text)),
            #[cfg(feature = "json-schema")]
            DataFormat::Yaml => yaml::value(&text),
            #[cfg(feature = "toml")]
            DataFormat::Toml => of_toml(&text),
            DataFormat::Ndjson | DataFormat::Csv | DataFormat::Tsv => vector(&self.values(text, rows)?),
        }
    }

    /// Returns data as JSON values one after the other.
    ///
    /// # Errors
    /// Those of [`DataFormat::value`].
    pub(crate) fn values(self, text: String, rows: RowOptions) -> Result<String, String> {
        match self {
            DataFormat::Json | DataFormat::Ndjson => Ok(text),
            DataFormat::Csv | DataFormat::Tsv | DataFormat::Text => {
                let mut values = String::new();
                let lines = self.lines(io::Cursor::new(text), rows, usize::MAX)?;
                BufReader::new(lines).read_to_string(&mut values).map_err(|error| error.to_string())?;
                Ok(values)
            }
            #[cfg(feature = "json-schema")]
            DataFormat::Yaml => yaml::values(&text),
            #[cfg(feature = "toml")]
            DataFormat::Toml => self.value(text, rows),
        }
    }

    /// Returns data, as it comes, as JSON values on lines of their own.
    ///
    /// # Errors
    /// If the format has no lines. What is wrong with the data, or a line or row of more than `max` bytes, is an error of the
    /// reader.
    pub(crate) fn lines(
        self,
        input: impl Read + Send + 'static,
        rows: RowOptions,
        max: usize,
    ) -> Result<JsonLines, String> {
        match self {
            // The reader of the lines bounds them.
            DataFormat::Json | DataFormat::Ndjson => Ok(Box::new(input)),
            DataFormat::Text => Ok(Box::new(Made::by(TextLines { input: BufReader::new(input), line: 0, max }))),
            DataFormat::Csv => Ok(Box::new(Made::by(Rows::new(input, b',', rows, max)))),
            DataFormat::Tsv => Ok(Box::new(Made::by(Rows::new(input, b'\t', rows, max)))),
            #[cfg(feature = "json-schema")]
            DataFormat::Yaml => Ok(Box::new(Made::by(yaml::Documents::new(input, max)))),
            #[cfg(feature = "toml")]
            DataFormat::Toml => Err("TOML is one value and has no lines: leave --lines out".to_owned()),
        }
    }
}

/// Returns JSON values, given one after the other, as a JSON array.
///
/// # Errors
/// Why one of them is no JSON.
pub(crate) fn vector(values: &str) -> Result<String, String> {
    let mut read = serde_json::Deserializer::from_str(values).into_iter::<serde::de::IgnoredAny>();
    let mut all = String::with_capacity(values.len() + 2);
    loop {
        let before = read.byte_offset();
        match read.next() {
            None => break,
            Some(Ok(_)) => {
                all.push(if all.is_empty() { '[' } else { ',' });
                all.push_str(&values[before..read.byte_offset()]);
            }
            Some(Err(error)) => return Err(not_json(values, &error)),
        }
    }
    all.push_str(if all.is_empty() { "[]" } else { "]" });
    Ok(all)
}

/// Says where values are no JSON. If most lines are one value each, the first other line is at fault: the error itself may be
/// lines below it.
fn not_json(values: &str, error: &serde_json::Error) -> String {
    let is_value = |line: &str| serde_json::from_str::<serde::de::IgnoredAny>(line);
    let lines = || values.lines().enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
    let good = lines().filter(|(_, line)| is_value(line).is_ok()).count();
    let first = lines().find_map(|(number, line)| is_value(line).err().map(|error| (number + 1, error)));
    let (line, error) = match &first {
        Some((line, error)) if 2 * good > lines().count() => (*line, error),
        _ => (error.line(), error),
    };
    let text = error.to_string();
    let message = in_plain_words(text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message));
    // The column after the last character, as the engine counts it.
    let column = error.column() + usize::from(error.is_eof());
    format!("invalid JSON at line {line}, column {column}: {message}; correct it there")
}

fn quoted(text: &str) -> String {
    // A string always has a JSON text.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(feature = "toml")]
fn of_toml(text: &str) -> Result<String, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let message = error.message();
        // The crate says this of a missing value too.
        let is_missing = message.starts_with("string values must be quoted");
        let hint = if is_missing { ": write a value after `=`, a string in quotes" } else { "" };
        format!("invalid TOML in line {line}: {message}{hint}")
    })?;
    serde_json::to_string(&JsonOf(&toml::Value::Table(table))).map_err(|error| error.to_string())
}

/// A TOML value as JSON: dates and times are strings.
#[cfg(feature = "toml")]
struct JsonOf<'a>(&'a toml::Value);

#[cfg(feature = "toml")]
impl serde::Serialize for JsonOf<'_> {
    // The reader of TOML bounds the depth.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        match self.0 {
            toml::Value::Datetime(when) => serializer.collect_str(when),
            toml::Value::Array(items) => serializer.collect_seq(items.iter().map(JsonOf)),
            toml::Value::Table(table) => serializer.collect_map(table.iter().map(|(key, value)| (key, JsonOf(value)))),
            toml::Value::Float(number) if !number.is_finite() => {
                Err(S::Error::custom(format!("JSON does not have the number {number}")))
            }
            plain => serde::Serialize::serialize(plain, serializer),
        }
    }
}

/// Makes JSON lines, one after the other.
trait Makes {
    /// Appends the next line to `line`. Returns whether there was one.
    fn make(&mut self, line: &mut Vec<u8>) -> io::Result<bool>;
}

/// Reads the lines that are made.
struct Made<M> {
    makes: M,
    line: Vec<u8>,
    /// The number of bytes of the line that were read.
    read: usize,
    /// Why no further line can be made. What was made before is read first.
    failed: Option<io::Error>,
}

impl<M: Makes> Made<M> {
    fn by(makes: M) -> Self {
        Made { makes, line: Vec::new(), read: 0, failed: None }
    }
}

impl<M: Makes> Read for Made<M> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut count = 0;
        while count < into.len() {
            if self.read == self.line.len() {
                self.line.clear();
                self.read = 0;
                match self.makes.make(&mut self.line) {
                    Ok(true) => self.line.push(b'\n'),
                    Ok(false) => break,
                    Err(error) if count == 0 => return Err(error),
                    Err(error) => {
                        (self.line, self.failed) = (Vec::new(), Some(error));
                        break;
                    }
                }
            }
            let now = (into.len() - count).min(self.line.len() - self.read);
            into[count..count + now].copy_from_slice(&self.line[self.read..self.read + now]);
            (count, self.read) = (count + now, self.read + now);
        }
        Ok(count)
    }
}

/// The bytes that the reader of rows reads beyond a row.
const READ_AHEAD: usize = 64 << 10;

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Makes a string of each line of text.
struct TextLines<R> {
    input: BufReader<R>,
    line: u64,
    /// The maximum bytes of a line.
    max: usize,
}

impl<R: Read> Makes for TextLines<R> {
    fn make(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let mut line = Vec::new();
        let max = u64::try_from(self.max).unwrap_or(u64::MAX).saturating_add(1);
        if (&mut self.input).take(max).read_until(b'\n', &mut line)? == 0 {
            return Ok(false);
        }
        self.line += 1;
        if line.len() > self.max {
            return Err(invalid(format!("line {} {}", self.line, too_long(self.max))));
        }
        let text = std::str::from_utf8(&line).map_err(|_| invalid(format!("line {} is not UTF-8", self.line)))?;
        let text = if self.line == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
        serde_json::to_writer(out, text)?;
        Ok(true)
    }
}

fn too_long(max: usize) -> String {
    format!("has more than {max} bytes: raise --line-bytes")
}

/// Reads what a row may have, and not more, and counts lines.
struct Rationed<R> {
    input: R,
    left: Arc<AtomicUsize>,
    max: usize,
    /// What was read last, and the number of bytes before it.
    last: Vec<u8>,
    before: u64,
    /// The number of line feeds before it, and the byte before it.
    lines_before: u64,
    byte_before: Option<u8>,
}

fn line_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

impl<R> Rationed<R> {
    fn new(input: R, left: Arc<AtomicUsize>, max: usize) -> Self {
        Rationed { input, left, max, last: Vec::new(), before: 0, lines_before: 0, byte_before: None }
    }

    /// Returns the number of line feeds up to `end`, which is in what was read last, and the byte before it.
    fn before(&self, end: u64) -> (u64, Option<u8>) {
        let there = usize::try_from(end.saturating_sub(self.before)).unwrap_or(usize::MAX).min(self.last.len());
        let there = &self.last[..there];
        (self.lines_before + line_feeds(there), there.last().copied().or(self.byte_before))
    }

    fn note(&mut self, bytes: &[u8]) {
        self.before += self.last.len() as u64;
        self.lines_before += line_feeds(&self.last);
        self.byte_before = self.last.last().copied().or(self.byte_before);
        self.last.clear();
        self.last.extend_from_slice(bytes);
    }
}

impl<R: Read> Read for Rationed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.left.load(Relaxed);
        if left == 0 {
            return Err(invalid(format!("a row {}; does the quote of a cell not end?", too_long(self.max))));
        }
        let fits = into.len().min(left);
        let read = self.input.read(&mut into[..fits])?;
        self.left.store(left - read, Relaxed);
        self.note(&into[..read]);
        Ok(read)
    }
}

/// Makes a map or a vector of each row.
struct Rows<R> {
    reader: Reader<Rationed<io::Chain<R, io::Cursor<String>>>>,
    /// The only cell of a row behind the last one: where it is part of another cell, the quote of that is never closed. It is a random
    /// text, which no data has. TSV has no quotes, and no such row.
    end: Option<String>,
    /// The bytes that may be read before the next row must be whole.
    left: Arc<AtomicUsize>,
    max: usize,
    /// The column names as JSON; empty before the header was read, and without one.
    columns: Vec<String>,
    has_header: bool,
    typed: bool,
    is_tsv: bool,
    row: ByteRecord,
}

impl<R: Read> Rows<R> {
    fn new(input: R, delimiter: u8, rows: RowOptions, max: usize) -> Self {
        let (is_tsv, left) = (delimiter == b'\t', Arc::<AtomicUsize>::default());
        let end = (!is_tsv).then(|| format!("\u{1}end of {:016x}\u{1}", RandomState::new().hash_one(0)));
        let last_row = end.as_ref().map_or_else(String::new, |end| format!("\n{end}\n"));
        let input = Rationed::new(input.chain(io::Cursor::new(last_row)), left.clone(), max);
        let mut builder = ReaderBuilder::new();
        let reader = builder.delimiter(delimiter).quoting(!is_tsv).has_headers(false).flexible(true).from_reader(input);
        let (has_header, typed) = (!rows.no_header, rows.typed);
        Rows { reader, end, left, max, columns: Vec::new(), has_header, typed, is_tsv, row: ByteRecord::new() }
    }

    /// Reads the next row. Returns whether there was one.
    fn next(&mut self) -> io::Result<bool> {
        // The reader reads ahead.
        self.left.store(self.max.saturating_add(READ_AHEAD), Relaxed);
        let is_row = self.reader.read_byte_record(&mut self.row).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            kind => invalid(format!("{kind:?}")),
        })?;
        if !is_row {
            return Ok(false);
        }
        let (Some(end), Some(last)) = (&self.end, self.row.iter().next_back()) else { return Ok(true) };
        match (last.trim_ascii_end().ends_with(end.as_bytes()), self.row.len(), last.len() == end.len()) {
            (false, ..) => Ok(true),
            (true, 1, true) => Ok(false),
            _ => Err(invalid(format!(
                "line {}: the quote of a cell is never closed; close it, or write a quote that is text twice",
                self.first_line(false)
            ))),
        }
    }

    /// Returns the number of the first line of the row. The reader does not know it: it finds the line feed after a carriage
    /// return, and empty lines, only with the next row.
    fn line(&self) -> u64 {
        self.first_line(true)
    }

    /// Returns the number of the first line of the row. A row whose quote does not end has the last line feed in its cell.
    fn first_line(&self, has_end: bool) -> u64 {
        let (lines, end) = self.reader.get_ref().before(self.reader.position().byte());
        1 + lines - u64::from(has_end && end == Some(b'\n')) - line_feeds(self.row.as_slice())
    }

    fn cell(&self, at: usize) -> io::Result<Cow<'_, str>> {
        let text = std::str::from_utf8(&self.row[at])
            .map_err(|_| invalid(format!("line {}: cell {} is not UTF-8", self.line(), at + 1)))?;
        if !self.is_tsv || !text.contains('\\') {
            return Ok(Cow::Borrowed(text));
        }
        let mut plain = String::with_capacity(text.len());
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            let escaped = if c == '\\' { rest.clone().next() } else { None };
            let stands_for = match escaped {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('\\') => '\\',
                _ => {
                    plain.push(c);
                    continue;
                }
            };
            plain.push(stands_for);
            rest.next();
        }
        Ok(Cow::Owned(plain))
    }

    /// Writes a cell as JSON.
    fn write(&self, at: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let cell = self.cell(at)?;
        let is_number = || cell.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        match &*cell {
            "" if self.typed => out.extend_from_slice(b"null"),
            "true" | "false" if self.typed => out.extend_from_slice(cell.as_bytes()),
            text if self.typed && is_number() && serde_json::from_str::<&RawValue>(text).is_ok() => {
                out.extend_from_slice(text.trim_end().as_bytes());
            }
            text => serde_json::to_writer(out, text)?,
        }
        Ok(())
    }

    fn read_header(&mut self) -> io::Result<bool> {
        if !self.next()? {
            return Ok(false);
        }
        let mut seen = HashSet::new();
        for at in 0..self.row.len() {
            let name = self.cell(at)?.into_owned();
            if !seen.insert(name.clone()) {
                let why = "rename one, or read rows as vectors with --no-header";
                return Err(invalid(format!("the header has the column {name:?} twice: {why}")));
            }
            self.columns.push(quoted(&name));
        }
        Ok(true)
    }
}

impl<R: Read> Makes for Rows<R> {
    fn make(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        if self.has_header && self.columns.is_empty() && !self.read_header()? {
            return Ok(false);
        }
        if !self.next()? {
            return Ok(false);
        }
        if self.has_header && self.row.len() != self.columns.len() {
            let (line, cells, columns) = (self.line(), self.row.len(), self.columns.len());
            let hint = match (cells < columns, self.is_tsv) {
                (true, _) => "add the missing cells, which may be empty",
                (false, true) => "write \\t for a tab in a cell",
                (false, false) => "quote a cell that has a comma, and close each quote",
            };
            let noun = if cells == 1 { "cell" } else { "cells" };
            return Err(invalid(format!(
                "line {line}: the row has {cells} {noun}, and the header has {columns}: {hint}"
            )));
        }
        out.push(if self.has_header { b'{' } else { b'[' });
        for at in 0..self.row.len() {
            if at > 0 {
                out.push(b',');
            }
            if let Some(column) = self.columns.get(at) {
                out.extend_from_slice(column.as_bytes());
                out.push(b':');
            }
            self.write(at, out)?;
        }
        out.push(if self.has_header { b'}' } else { b']' });
        Ok(true)
    }
}

/// Returns a message about JSON, with words of the reader's library replaced by plain ones.
pub(crate) fn in_plain_words(message: &str) -> String {
    const PLAIN: [(&str, &str); 4] = [
        ("EOF while parsing a list", "the text ends inside a list"),
        ("EOF while parsing an object", "the text ends inside an object"),
        ("EOF while parsing a string", "the text ends inside a string"),
        ("EOF while parsing a value", "the text ends where a value must be"),
    ];
    PLAIN.iter().fold(message.to_owned(), |message, (words, plain)| message.replace(words, plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: RowOptions = RowOptions { typed: false, no_header: false };
    const TYPED: RowOptions = RowOptions { typed: true, no_header: false };

    fn value(format: DataFormat, text: &str, rows: RowOptions) -> Result<String, String> {
        format.value(text.to_owned(), rows).map(|json| json.replace('\n', ""))
    }

    proptest! {
        /// A row at fault is told by its first line, whatever ends the lines, and however many there are.
        #[test]
        fn the_line_of_a_row_is_its_first(
            rows in prop::collection::vec(
                (prop::sample::select(vec!["1,2", "\"a\nb\",2", "\"a\r\n\r\nb\",2"]),
                 prop::sample::select(vec!["\n", "\r\n", "\n\n", "\r\n\r\n", "\n\r\n"])),
                0..40,
            ),
            times in prop::sample::select(vec![1, 200]),
            end in prop::sample::select(vec!["", "\n", "\r\n"]),
            mark in prop::sample::select(vec!["", "\u{feff}"]),
        ) {
            let rows: String = rows.iter().map(|(row, end)| format!("{row}{end}")).collect();
            let before = format!("{mark}a,b\r\n{}", rows.repeat(times));
            let text = format!("{before}1,2,3{end}");
            let mut rows = Rows::new(text.as_bytes(), b',', PLAIN, 1 << 20);
            let mut line = Vec::new();
            let error = loop {
                match rows.make(&mut line) {
                    Ok(true) => {}
                    Ok(false) => panic!("no row has three cells"),
                    Err(error) => break error.to_string(),
                }
            };
            let expected = format!("line {}: the row has 3 cells", line_feeds(before.as_bytes()) + 1);
            prop_assert!(error.starts_with(&expected), "{error}, not {expected}");
        }
    }

    #[test]
    fn rows_are_maps_of_their_header() {
        let text = "\u{feff}id,na me,note\r\n1,\"a,\"\"b\"\"\",\"x\ny\"\r\n007,,true\r\n";
        let rows = r#"[{"id":"1","na me":"a,\"b\"","note":"x\ny"},{"id":"007","na me":"","note":"true"}]"#;
        assert_eq!(value(DataFormat::Csv, text, PLAIN).unwrap(), rows);
        let typed = r#"[{"id":1,"na me":"a,\"b\"","note":"x\ny"},{"id":"007","na me":null,"note":true}]"#;
        assert_eq!(value(DataFormat::Csv, text, TYPED).unwrap(), typed);
        let numbers = "-1.50,1e400,+1,1.,- 1,123456789012345678901234567890,NaN";
        let vectors = RowOptions { typed: true, no_header: true };
        let read = r#"[[-1.50,1e400,"+1","1.","- 1",123456789012345678901234567890,"NaN"]]"#;
        assert_eq!(value(DataFormat::Csv, numbers, vectors).unwrap(), read);
        assert_eq!(value(DataFormat::Csv, "", PLAIN).unwrap(), "[]");
        assert_eq!(value(DataFormat::Csv, "a,b\n", PLAIN).unwrap(), "[]");
    }

    #[test]
    fn cells_of_tsv_have_escapes_and_no_quotes() {
        let text = "a\tb\n\"x\ty\\tz\\\\n\\q\n";
        assert_eq!(value(DataFormat::Tsv, text, PLAIN).unwrap(), r#"[{"a":"\"x","b":"y\tz\\n\\q"}]"#);
    }

    #[test]
    fn rows_that_do_not_fit_are_named() {
        for (text, says) in [
            ("a,b\n1,2\n1\n", "line 3: the row has 1 cell, and the header has 2"),
            ("a,b\n\"x,1\n", "line 2: the quote of a cell is never closed"),
            ("a,b\n1,\"2\n3,4\n5,6", "line 2: the quote of a cell is never closed"),
            ("a,b\n1,\"2\"\"", "line 2: the quote of a cell is never closed"),
            ("\"a,b\n1,2\n", "line 1: the quote of a cell is never closed"),
            ("a,a\n1,2\n", "the column \"a\" twice"),
        ] {
            let error = value(DataFormat::Csv, text, PLAIN).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_row_without_an_end_is_not_read_to_the_end_of_the_input() {
        let endless = io::Cursor::new(b"a,b\n1,\"").chain(io::repeat(b'x'));
        let mut read = Vec::new();
        let error = DataFormat::Csv.lines(endless, PLAIN, 1_000).unwrap().read_to_end(&mut read).unwrap_err();
        assert!(error.to_string().contains("more than 1000 bytes") && error.to_string().contains("quote"), "{error}");
        let mut lines = DataFormat::Text.lines(io::Cursor::new(b"ab\n").chain(io::repeat(b'x')), PLAIN, 3).unwrap();
        let error = lines.read_to_end(&mut read).unwrap_err();
        assert!(error.to_string().starts_with("line 2 has more than 3 bytes"), "{error}");
        assert_eq!(read, b"\"ab\"\n");
    }

    #[test]
    fn text_is_one_string_or_one_a_line() {
        let text = "a \"b\"\r\n\nc";
        assert_eq!(value(DataFormat::Text, text, PLAIN).unwrap(), r#""a \"b\"\r\n\nc""#);
        assert_eq!(DataFormat::Text.values(text.to_owned(), PLAIN).unwrap(), "\"a \\\"b\\\"\"\n\"\"\n\"c\"\n");
    }

    #[cfg(all(feature = "json-schema", feature = "toml"))]
    #[test]
    fn documents_become_objects() {
        let yaml = "a: [1, x]\nb: {c: 2020-01-01, d: ~}\n";
        assert_eq!(value(DataFormat::Yaml, yaml, PLAIN).unwrap(), r#"{"a":[1,"x"],"b":{"c":"2020-01-01","d":null}}"#);
        // Keys keep their order.
        assert_eq!(value(DataFormat::Yaml, "b: 1\na: {z: 1, y: 2}\n", PLAIN).unwrap(), r#"{"b":1,"a":{"z":1,"y":2}}"#);
        assert_eq!(
            value(DataFormat::Toml, "b = 1\n[a]\nz = 1\ny = 2\n", PLAIN).unwrap(),
            r#"{"b":1,"a":{"z":1,"y":2}}"#
        );
        let toml = "a = [1, 2.5]\n[b]\nc = 2020-01-01\n";
        assert_eq!(value(DataFormat::Toml, toml, PLAIN).unwrap(), r#"{"a":[1,2.5],"b":{"c":"2020-01-01"}}"#);
        let missing = value(DataFormat::Toml, "a = 1\nb = ", PLAIN).unwrap_err();
        assert!(missing.starts_with("invalid TOML in line 2") && missing.contains("write a value"), "{missing}");
        assert!(value(DataFormat::Toml, "a = nan", PLAIN).unwrap_err().contains("NaN"));
        let deep = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
        assert!(value(DataFormat::Toml, &format!("a = {}", deep("[", "]")), PLAIN).is_err());
        assert!(value(DataFormat::Yaml, &deep("[", "]"), PLAIN).is_err());
    }

    /// The lines do not depend on how many bytes are read at a time.
    #[test]
    fn pieces_of_any_size_are_the_same_lines() {
        let text = "a,b\n1,2\n3,4\n5\n";
        for size in 1..40 {
            let mut lines = DataFormat::Csv.lines(io::Cursor::new(text), PLAIN, 100).unwrap();
            let (mut all, mut piece) = (Vec::new(), vec![0; size]);
            let error = loop {
                match lines.read(&mut piece) {
                    Ok(read) => all.extend_from_slice(&piece[..read]),
                    Err(error) => break error.to_string(),
                }
            };
            assert_eq!(
                String::from_utf8(all).unwrap(),
                "{\"a\":\"1\",\"b\":\"2\"}\n{\"a\":\"3\",\"b\":\"4\"}\n",
                "{size}"
            );
            assert!(error.starts_with("line 4: the row has 1 cell"), "{error}");
        }
    }
}
