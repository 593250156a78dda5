//! Input over several lines: how a line that continues a form begins, and where the forms of a block are.

use super::words::{end_of_string, words_of};
use lisp_core::syntax::lexer::{Token, tokens};
use lisp_core::syntax::{ReadLimits, read};
use unicode_width::UnicodeWidthStr;

/// What a line that continues a form begins with; it is shown as [`CONTINUED`].
pub(super) const PADDING: &str = "     ";
/// The prompt of such a line, as wide as that of the first one.
pub(super) const CONTINUED: &str = "...> ";

/// Returns what the next line begins with after this text: as many spaces as bring it under the form that is open. `None` inside a
/// string, whose text it would change.
pub(super) fn indentation(text: &str) -> Option<String> {
    let (words, pairs) = words_of(text);
    if words.last().is_some_and(|(_, word)| word.starts_with('"') && end_of_string(word).is_none()) {
        return None;
    }
    let is_open = |at: usize, word: &str| matches!(word, "(" | "[" | "{") && pairs.iter().all(|(open, _)| *open != at);
    let open = words.iter().rev().find(|(at, word)| is_open(*at, word));
    let column = open.map_or(PADDING.len(), |(at, word)| column(&text[..*at]) + if *word == "(" { 2 } else { 1 });
    Some(" ".repeat(column.max(PADDING.len())))
}

/// Returns the column after a text, whose first line is after the prompt.
fn column(before: &str) -> usize {
    match before.rsplit_once('\n') {
        Some((_, line)) => line.width(),
        None => PADDING.len() + before.width(),
    }
}

/// Returns the text without what its lines begin with, outside of strings.
pub(super) fn without_padding(text: &str) -> String {
    let inside: Vec<_> = tokens(text)
        .filter(|(token, _)| !matches!(token, Ok(Token::Space | Token::Comment)))
        .map(|(_, span)| span.start as usize..span.end as usize)
        .collect();
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(&format!("\n{PADDING}")) {
        let next = inside.partition_point(|range| range.end <= at);
        if inside.get(next).is_none_or(|range| at < range.start) {
            out.push_str(&text[from..=at]);
            from = at + 1 + PADDING.len();
        }
    }
    out + &text[from..]
}

/// The brackets, and perhaps the string, that are open after some lines.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// The brackets that would close those that are open.
    closing: Vec<u8>,
    in_string: bool,
    /// Whether a bracket closed what it does not belong to: the text cannot be completed.
    is_wrong: bool,
}

impl Open {
    /// Takes one more line, and returns whether something is open for certain. Otherwise the reader has to tell.
    pub(super) fn after(&mut self, line: &str) -> bool {
        let mut bytes = line.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                // The next one is part of a string, or a character such as `\(`.
                b'\\' => drop(bytes.next()),
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b';' => break,
                b'(' => self.closing.push(b')'),
                b'[' => self.closing.push(b']'),
                b'{' => self.closing.push(b'}'),
                b')' | b']' | b'}' => self.is_wrong |= self.closing.pop() != Some(byte),
                _ => {}
            }
        }
        !self.is_wrong && (self.in_string || !self.closing.is_empty())
    }
}

/// Returns the forms of a text, each with the comments before it; the whole text if it cannot be read.
pub(super) fn forms(text: &str) -> Vec<&str> {
    let limits = ReadLimits { source_bytes: 0, names: 0, ..ReadLimits::default() };
    let Ok(source) = read(text, &limits) else { return vec![text] };
    if source.forms.len() < 2 {
        return vec![text];
    }
    let mut before = 0;
    let part = |form: &lisp_core::syntax::Form| {
        let end = form.span.end as usize;
        text.get(std::mem::replace(&mut before, end)..end).unwrap_or_default().trim_start()
    };
    source.forms.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_continues_under_the_open_form() {
        for (text, column) in [
            ("(let [x 1", Some(11)),
            ("(let [x 1]", Some(7)),
            ("(let [x 1\n           y 2]", Some(7)),
            ("(f {:a \"(\" ", Some(9)),
            ("(größe", Some(7)),
            ("(f \"名\" [", Some(14)),
            ("#_", Some(5)),
            ("(f \"a", None),
            ("(f \"a\\\"", None),
        ] {
            assert_eq!(indentation(text).map(|spaces| spaces.len()), column, "{text}");
        }
    }

    #[test]
    fn what_is_open_is_known_from_line_to_line() {
        for (text, is_open) in [
            ("(a\n(b)\n", true),
            ("(a\n(b))\n", false),
            ("(a ; )\n", true),
            ("(a \\)\n", true),
            ("(a \"x)\n", true),
            ("(a \"x\n)\\\"\n", true),
            ("(a \"x\n)\\\" ; \")\n", false),
            ("(a #\"[(\\d\" {\n})\n", false),
            ("((a\n]\n", false),
            ("a\n", false),
        ] {
            let mut open = Open::default();
            let last = text.split_inclusive('\n').map(|line| open.after(line)).last();
            assert_eq!(last, Some(is_open), "{text}");
            // It never waits for more of a text that is complete.
            assert!(!is_open || lisp_runtime::language::is_incomplete(text), "{text}");
        }
    }

    #[test]
    fn padding_is_no_part_of_the_text() {
        assert_eq!(without_padding("(let [x 1\n           y 2]\n       x)"), "(let [x 1\n      y 2]\n  x)");
        assert_eq!(without_padding("(f \"a\n     b\"\n     c) ; d\n     e"), "(f \"a\n     b\"\nc) ; d\ne");
        assert_eq!(without_padding("(a\n b)"), "(a\n b)");
        assert_eq!(without_padding("\"a\n     b"), "\"a\n     b");
    }

    #[test]
    fn a_block_has_its_forms() {
        assert_eq!(
            forms("(def a 1) ; one\n; two\n#_x (def b 2)\na b"),
            ["(def a 1)", "; one\n; two\n#_x (def b 2)", "a", "b"]
        );
        assert_eq!(forms(" (def a 1) "), [" (def a 1) "]);
        assert_eq!(forms("(a) (b"), ["(a) (b"]);
        assert_eq!(forms("; nothing"), ["; nothing"]);
    }
}
