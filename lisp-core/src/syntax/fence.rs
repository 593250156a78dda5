//! Programs as they appear in messages: between two lines of a Markdown fence.

use crate::error::Span;
use std::ops::Range;

/// Some editors write this character at the start of UTF-8 text. It is skipped there, and an error anywhere else.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Returns the range of the program in a text: everything except a byte order mark at the start, and the lines of a
/// fence around it.
pub(super) fn program_of(text: &str) -> Range<usize> {
    match fenced(text) {
        Some((_, program)) => program,
        None if text.starts_with(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len()..text.len(),
        None => 0..text.len(),
    }
}

/// Returns the opening line of the Markdown fence around a program, if there is one.
pub fn fence_of(text: &str) -> Option<Span> {
    let (opening, _) = fenced(text)?;
    Some(Span::new(u32::try_from(opening.start).ok()?, u32::try_from(opening.end).ok()?))
}

/// Returns the ranges of the opening line of a fence, and of its contents. The closing line may be missing, as in a
/// truncated message.
fn fenced(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    let blank = |c: char| c.is_ascii_whitespace() || c == '\u{feff}';
    let opening = text.trim_start_matches(blank);
    let start = text.len() - opening.len();
    let mark = fence_mark(opening)?;
    let (line, rest) = opening.split_once('\n').unwrap_or((opening, ""));
    let language = line[mark.len()..].trim();
    if language.contains(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '_' | '.')) {
        return None;
    }
    let from = text.len() - rest.len();
    let end = text.trim_end();
    let closing = end.rfind('\n').map_or(0, |at| at + 1);
    let is_closing = |line: &str| line.starts_with(mark) && line.trim_matches(mark.as_bytes()[0] as char).is_empty();
    let to = if closing >= from && is_closing(end[closing..].trim()) { closing } else { text.len() };
    Some((start..start + line.trim_end().len(), from..to))
}

/// Returns the mark at the start of a fence line.
fn fence_mark(line: &str) -> Option<&str> {
    let mark = line.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = line.bytes().take_while(|byte| byte == mark).count();
    line.get(..length).filter(|mark| mark.len() >= 3)
}

/// Returns true if one of the lines is a fence line.
pub(super) fn has_fence_line(text: &str) -> bool {
    text.lines().any(|line| fence_mark(line.trim_start()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_fence_encloses() {
        for (text, program) in [
            ("```clojure\n(+ 1 2)\n```", "(+ 1 2)\n"),
            ("```\n1\n```\n", "1\n"),
            ("\u{feff}\n ```lisp \r\n1\r\n```\r\n\n", "1\r\n"),
            ("~~~~clj\n1\n~~~~", "1\n"),
            ("````\n\"\n```\n\"\n````", "\"\n```\n\"\n"),
            ("```\n1", "1"),
            ("```\n```", ""),
            ("```", ""),
            ("```\n1\n``", "1\n``"),
        ] {
            assert_eq!(&text[program_of(text)], program, "{text:?}");
            assert!(fence_of(text).is_some(), "{text:?}");
        }
        for text in ["1", "", "`a", "``\n1\n``", "```(+ 1 2)```", "```clojure (+ 1 2)\n```", "a\n```\n1\n```"] {
            assert_eq!((program_of(text), fence_of(text)), (0..text.len(), None), "{text:?}");
        }
        assert_eq!(program_of("\u{feff}1"), 3..4);
        assert_eq!(fence_of(" ```clj \n1\n```"), Some(Span::new(1, 7)));
        assert!(has_fence_line("a\n  ```clj\n1") && !has_fence_line("a ```\n`` b"));
    }
}
