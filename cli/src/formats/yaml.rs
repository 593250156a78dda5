//! YAML with several documents.
//!
//! A line that begins with `---` or `...` is a mark wherever it is, also in a block of text: no document has it inside.

use super::{Makes, invalid, too_long};
use std::io::{self, BufRead, BufReader, Read};

/// Returns the only document as JSON.
pub(super) fn value(text: &str) -> Result<String, String> {
    let mut documents = Documents::new(text.as_bytes(), usize::MAX);
    let (mut first, mut count) = (None, 0_usize);
    while let Some((lines, document)) = documents.next().map_err(|error| error.to_string())? {
        count += 1;
        if count == 1 {
            first = Some((lines, document));
        }
    }
    match (first, count) {
        (Some((lines, document)), 1) => as_json(&document, lines),
        (None, _) => lisp_runtime::internal::yaml(text),
        (_, count) => Err(format!(
            "the YAML has {count} documents, not one: for data/in, --slurp reads them as a vector, --lines one after the other"
        )),
    }
}

/// Returns the documents as JSON, each on a line of its own.
pub(super) fn values(text: &str) -> Result<String, String> {
    let mut documents = Documents::new(text.as_bytes(), usize::MAX);
    let mut values = String::new();
    while let Some((lines, document)) = documents.next().map_err(|error| error.to_string())? {
        values.push_str(&as_json(&document, lines)?);
        values.push('\n');
    }
    Ok(values)
}

/// Returns a document as JSON. An error counts the lines before it.
fn as_json(document: &str, lines: u64) -> Result<String, String> {
    const PLACE: &str = " at line ";
    lisp_runtime::internal::yaml(document).map_err(|error| {
        let moved = error.rsplit_once(PLACE).and_then(|(message, place)| {
            let (line, rest) = place.split_once(' ').unwrap_or((place, ""));
            let line = line.parse::<u64>().ok()? + lines;
            Some(format!("{message}{PLACE}{line}{}{rest}", if rest.is_empty() { "" } else { " " }))
        });
        moved.unwrap_or(error)
    })
}

/// Splits a text into its documents as it comes.
pub(super) struct Documents<R> {
    input: BufReader<R>,
    /// The lines that were read.
    lines: u64,
    /// The first line of the next document, its mark.
    mark: Option<String>,
    /// The maximum bytes of a document.
    max: usize,
}

impl<R: Read> Documents<R> {
    pub(super) fn new(input: R, max: usize) -> Self {
        Documents { input: BufReader::new(input), lines: 0, mark: None, max }
    }

    /// Returns the next document, and the number of lines before it.
    fn next(&mut self) -> io::Result<Option<(u64, String)>> {
        let mut text = self.mark.take().unwrap_or_default();
        let before = self.lines - u64::from(!text.is_empty());
        // Comments and directives before a mark belong to the document after it.
        let mut has_content = !text.is_empty();
        while let Some(line) = self.line(text.len())? {
            if is_mark(&line, "---") && has_content {
                self.mark = Some(line);
                return Ok(Some((before, text)));
            }
            if is_mark(&line, "...") {
                if has_content {
                    return Ok(Some((before, text)));
                }
                // The number of the lines is kept.
                text.push('\n');
                continue;
            }
            let start = line.trim_start();
            has_content |= !start.is_empty() && !start.starts_with('#') && !line.starts_with('%');
            text.push_str(&line);
        }
        Ok(has_content.then_some((before, text)))
    }

    fn line(&mut self, before: usize) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let room = self.max.saturating_sub(before);
        let max = u64::try_from(room).unwrap_or(u64::MAX).saturating_add(1);
        if (&mut self.input).take(max).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        self.lines += 1;
        if line.len() > room {
            return Err(invalid(format!("line {}: the document {}", self.lines, too_long(self.max))));
        }
        let line = String::from_utf8(line).map_err(|_| invalid(format!("line {} is not UTF-8", self.lines)))?;
        Ok(Some(match line.strip_prefix('\u{feff}') {
            Some(rest) if self.lines == 1 => rest.to_owned(),
            _ => line,
        }))
    }
}

fn is_mark(line: &str, mark: &str) -> bool {
    line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

impl<R: Read> Makes for Documents<R> {
    fn make(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let Some((lines, document)) = self.next()? else { return Ok(false) };
        out.extend_from_slice(as_json(&document, lines).map_err(invalid)?.as_bytes());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_apart() {
        for (text, wanted) in [
            ("a: 1\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n"),
            ("# first\n---\na: 1\n...\n# then\n---\n- x\n", "{\"a\":1}\n[\"x\"]\n"),
            ("---\na: |\n  ----\n  ---x\n--- 5\n", "{\"a\":\"----\\n---x\\n\"}\n5\n"),
            ("---\n---\n1\n", "null\n1\n"),
            ("%YAML 1.2\n---\n1\n...\n%YAML 1.2\n---\n2\n", "1\n2\n"),
            ("\u{feff}---\r\na: 1\r\n---\r\n2\r\n", "{\"a\":1}\n2\n"),
            ("a: 1", "{\"a\":1}\n"),
            ("", ""),
            ("# nothing\n", ""),
        ] {
            assert_eq!(values(text).unwrap(), wanted, "{text}");
        }
        assert_eq!(value("---\na: 1\n...\n").unwrap(), "{\"a\":1}");
        let several = value("1\n---\n2\n---\n3\n").unwrap_err();
        assert!(several.contains("3 documents") && several.contains("--slurp"), "{several}");
    }

    #[test]
    fn errors_count_the_lines_of_earlier_documents() {
        let error = values("# a\na: 1\n---\nb: 1\nb: 2\n").unwrap_err();
        assert!(error.contains("occurs twice") && error.contains("at line 5"), "{error}");
        let mut long = Documents::new(&b"a: 1\n---\nb: 123456789\n"[..], 10);
        assert!(long.next().unwrap().is_some());
        let error = long.next().unwrap_err().to_string();
        assert!(error.starts_with("line 3: the document has more than 10 bytes"), "{error}");
    }
}
