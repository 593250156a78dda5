//! Values laid out over several lines, with colours. Works on the text of a value, in Clojure syntax or JSON; nothing recurses,
//! however deep the value is.

use super::colour::{FAINT, KEYWORD, NUMBER, STRING, in_colour};
use std::ops::Range;
use unicode_width::UnicodeWidthStr;

/// How a text is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// A collection that fits in so many columns stays on one line. With 0, every part has a line of its own.
    pub(crate) columns: usize,
    pub(crate) is_json: bool,
    pub(crate) has_colours: bool,
}

/// The indentation of what is nested more deeply: a text has at most so many columns more a part.
const MAX_INDENT: usize = 120;

/// A part of the text.
#[derive(Debug)]
enum Token {
    /// The beginning of a collection, such as `#{`, and its width on one line.
    Open(Range<usize>, usize),
    /// The end of a collection.
    Close(Range<usize>),
    /// Anything else, with what belongs to it: `#inst "2020-01-01"`.
    Atom(Range<usize>),
}

/// Lays a value out. Text with brackets that do not match stays as it is.
pub(crate) fn lay_out(text: &str, layout: Layout) -> String {
    let Some(tokens) = tokens(text, layout.is_json) else { return text.to_owned() };
    let mut writer = Writer { text, layout, out: String::with_capacity(text.len() * 2), column: 0, open: Vec::new() };
    let mut tokens = tokens.iter().peekable();
    while let Some(token) = tokens.next() {
        writer.token(token, matches!(tokens.peek(), Some(Token::Close(_))));
    }
    writer.out
}

/// Returns the tokens of a text; `None` if its brackets do not match.
fn tokens(text: &str, is_json: bool) -> Option<Vec<Token>> {
    let bytes = text.as_bytes();
    let (mut tokens, mut open, mut at): (Vec<Token>, Vec<(usize, usize)>, usize) = (Vec::new(), Vec::new(), 0);
    // The width of everything so far on one line, with what separates it from the next part.
    let (mut width, between) = (0_usize, if is_json { 2 } else { 1 });
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            byte if byte.is_ascii_whitespace() || byte == b',' || (is_json && byte == b':') => at += 1,
            b'[' | b'{' | b'(' => at += 1,
            b'#' if matches!(bytes.get(at + 1), Some(b'{' | b'(')) => at += 2,
            b']' | b'}' | b')' => at += 1,
            _ => at = end_of_atom(text, at),
        }
        match bytes[start] {
            byte if byte.is_ascii_whitespace() || byte == b',' || (is_json && byte == b':') => {}
            b']' | b'}' | b')' => {
                let (begin, before) = open.pop()?;
                let is_empty = begin + 1 == tokens.len();
                width = if is_empty { width + 1 } else { width - between + 1 };
                let Token::Open(_, wide) = &mut tokens[begin] else { return None };
                *wide = width - before;
                width += between;
                tokens.push(Token::Close(start..at));
            }
            b'[' | b'{' | b'(' | b'#' if matches!(bytes[at - 1], b'[' | b'{' | b'(') && at - start <= 2 => {
                open.push((tokens.len(), width));
                width += at - start;
                tokens.push(Token::Open(start..at, 0));
            }
            _ => {
                width += text[start..at].width() + between;
                tokens.push(Token::Atom(start..at));
            }
        }
    }
    open.is_empty().then_some(tokens)
}

/// Returns where an atom ends: a string, or everything up to a space, a comma or a bracket. A tag has its string.
fn end_of_atom(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let is_tag = bytes[start] == b'#' && bytes.get(start + 1) != Some(&b'#');
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return end_of_string(bytes, at),
            // A character such as `\)`.
            b'\\' => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            b' ' if is_tag && bytes.get(at + 1) == Some(&b'"') => return end_of_string(bytes, at + 1),
            byte if at > start && (byte.is_ascii_whitespace() || b",[]{}()".contains(&byte)) => return at,
            _ => at += 1,
        }
    }
    at
}

fn end_of_string(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A collection that is being written.
struct Open {
    is_map: bool,
    /// Whether all of it is on one line.
    is_flat: bool,
    indent: usize,
    /// The number of parts written; keys and values both count.
    parts: usize,
    /// Whether the last part was no collection.
    is_plain: bool,
}

struct Writer<'t> {
    text: &'t str,
    layout: Layout,
    out: String,
    column: usize,
    open: Vec<Open>,
}

impl Writer<'_> {
    fn token(&mut self, token: &Token, is_last: bool) {
        match token {
            Token::Open(range, width) => {
                // It begins a line, even if it would fit on this one.
                self.before(usize::MAX);
                let bracket = &self.text[range.clone()];
                let is_empty = is_last;
                let fits = self.layout.columns > 0 && self.column + width <= self.layout.columns;
                let is_flat = is_empty || fits || self.open.last().is_some_and(|outer| outer.is_flat);
                let indent = match self.layout.is_json {
                    true => self.open.last().map_or(0, |outer| outer.indent) + 2,
                    false => self.column + bracket.len(),
                };
                let indent = indent.min(MAX_INDENT);
                self.put(bracket, "");
                self.open.push(Open { is_map: bracket == "{", is_flat, indent, parts: 0, is_plain: false });
            }
            Token::Close(range) => {
                let Some(closed) = self.open.pop() else { return };
                if self.layout.is_json && !closed.is_flat && closed.parts > 0 {
                    self.line(self.open.last().map_or(0, |outer| outer.indent));
                }
                self.put(&self.text[range.clone()], "");
            }
            Token::Atom(range) => {
                let is_key = self.open.last().is_some_and(|open| open.is_map && open.parts % 2 == 0);
                let atom = &self.text[range.clone()];
                self.before(atom.width());
                self.put(atom, if self.layout.has_colours { colour(atom, is_key) } else { "" });
            }
        }
    }

    /// Writes what comes before a part of this width: a separator, and a new line unless it is another plain part that fits.
    fn before(&mut self, width: usize) {
        let is_json = self.layout.is_json;
        let fits = width < self.layout.columns.saturating_sub(self.column + 2);
        let Some(open) = self.open.last_mut() else {
            if !self.out.is_empty() {
                self.put(" ", "");
            }
            return;
        };
        let (is_value, is_first) = (open.is_map && open.parts % 2 == 1, open.parts == 0);
        let (is_flat, indent) = (open.is_flat || (fits && !open.is_map && open.is_plain), open.indent);
        open.is_plain = width < usize::MAX;
        open.parts += 1;
        if is_value {
            return self.put(if is_json { ": " } else { " " }, "");
        }
        if !is_first && is_json {
            self.put(",", "");
        }
        match (is_flat, is_first) {
            (true, true) => {}
            (true, false) => self.put(" ", ""),
            // In Clojure the first part follows the bracket.
            (false, true) if !is_json => {}
            (false, _) => self.line(indent),
        }
    }

    fn line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    fn put(&mut self, text: &str, colour: &str) {
        self.column += text.width();
        self.out.push_str(&in_colour(text, colour));
    }
}

/// Returns the colour of an atom.
fn colour(atom: &str, is_key: bool) -> &'static str {
    match atom.as_bytes() {
        [b':', ..] => KEYWORD,
        _ if is_key => KEYWORD,
        [b'"', ..] | [b'\\', ..] => STRING,
        b"nil" | b"null" => FAINT,
        b"true" | b"false" => NUMBER,
        [b'-' | b'+', digit, ..] | [digit, ..] if digit.is_ascii_digit() => NUMBER,
        [b'#', ..] => NUMBER,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clojure(text: &str, columns: usize) -> String {
        lay_out(text, Layout { columns, is_json: false, has_colours: false })
    }

    fn json(text: &str, columns: usize) -> String {
        lay_out(text, Layout { columns, is_json: true, has_colours: false })
    }

    #[test]
    fn what_fits_is_on_one_line() {
        for text in
            ["1", "nil", "\"a [b\"", "[1 2]", "{:a 1 :b [2 {}]}", "#{1 \"}\"}", "#inst \"2020-01-01\"", "(\\( \\])"]
        {
            assert_eq!(clojure(text, 80), text);
            let tight = clojure(text, 1).split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(tight, text);
        }
        assert_eq!(json(r#"{"a":1,"b":[true,{}],"c: [":""}"#, 80), r#"{"a": 1, "b": [true, {}], "c: [": ""}"#);
    }

    #[test]
    fn what_does_not_fit_has_lines_of_its_own() {
        let rows = "[{:id 1 :name \"Ann\"} {:id 2 :tags [1 2 3]}]";
        assert_eq!(clojure(rows, 24), "[{:id 1 :name \"Ann\"}\n {:id 2 :tags [1 2 3]}]");
        assert_eq!(clojure(rows, 19), "[{:id 1\n  :name \"Ann\"}\n {:id 2\n  :tags [1 2 3]}]");
        assert_eq!(
            json(r#"{"a":[1,{"b":[]}],"c":{}}"#, 0),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}"
        );
    }

    #[test]
    fn plain_parts_fill_lines() {
        assert_eq!(clojure("[1 22 333 4444 {:a 1} 5 6]", 12), "[1 22 333\n 4444\n {:a 1}\n 5 6]");
        assert_eq!(json("[1,22,333,4444]", 12), "[\n  1, 22,\n  333, 4444\n]");
    }

    #[test]
    fn text_that_is_no_value_stays() {
        for text in ["[1", "a]", "\"abc", "#<fn [x>"] {
            assert_eq!(clojure(text, 5), text);
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(clojure(&deep, 1_000_000), deep);
    }

    #[test]
    fn colours_are_those_of_the_terminal() {
        let text = lay_out("{:a \"x\" \"b\" 1}", Layout { columns: 80, is_json: false, has_colours: true });
        assert_eq!(
            text,
            "{\u{1b}[36m:a\u{1b}[0m \u{1b}[32m\"x\"\u{1b}[0m \u{1b}[36m\"b\"\u{1b}[0m \u{1b}[35m1\u{1b}[0m}"
        );
    }
}
