//! Bytes to lines and columns.

use super::lexer::BYTE_ORDER_MARK;

/// Finds the line and column of a byte. It does not borrow the text.
#[derive(Clone, Debug)]
pub struct LineIndex {
    /// One past the last byte.
    length: u32,
    /// The first byte of each line.
    lines: Vec<u32>,
    /// The characters of more than one byte, in order: columns count characters, and most texts have few of these.
    wide: Vec<Wide>,
}

/// A character of more than one byte.
#[derive(Clone, Copy, Debug)]
struct Wide {
    start: u32,
    /// The number of bytes of this character after the first.
    extra: u32,
    /// The number of such bytes in all wide characters before this one.
    before: u32,
}

impl LineIndex {
    /// Creates the index of a text. Lines end with `\n`; a byte order mark at the start takes no column.
    pub fn new(text: &str) -> Self {
        let mark = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let mut index = LineIndex { length: position(text.len()), lines: vec![position(mark)], wide: Vec::new() };
        let mut before = 0;
        for (at, character) in text.char_indices().skip_while(|(at, _)| *at < mark) {
            if character == '\n' {
                index.lines.push(position(at + 1));
            } else if character.len_utf8() > 1 {
                let extra = position(character.len_utf8() - 1);
                index.wide.push(Wide { start: position(at), extra, before });
                before += extra;
            }
        }
        index
    }

    /// Returns the line and the column of a byte, both counted from 1, columns in characters. A byte inside a character
    /// counts as its first byte, a byte beyond the text as the end of the text.
    pub fn position(&self, byte: u32) -> (u32, u32) {
        let byte = byte.min(self.length);
        let line = self.lines.partition_point(|&start| start <= byte).saturating_sub(1);
        let start = self.lines.get(line).copied().unwrap_or(0);
        let width = byte.saturating_sub(start);
        let column = width - (self.extra(byte) - self.extra(start)).min(width);
        (position(line + 1), column + 1)
    }

    /// Returns how many of the bytes before this one are not the first of their character.
    fn extra(&self, byte: u32) -> u32 {
        let after = self.wide.partition_point(|wide| wide.start < byte);
        let Some(wide) = after.checked_sub(1).and_then(|last| self.wide.get(last)) else { return 0 };
        wide.before + (byte - wide.start).min(wide.extra)
    }
}

/// The reader rejects texts whose bytes u32 cannot number, so this saturates only for texts that were never read.
fn position(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn positions() {
        let cases: &[(&str, u32, (u32, u32))] = &[
            ("", 0, (1, 1)),
            ("", 9, (1, 1)),
            ("abc", 0, (1, 1)),
            ("abc", 2, (1, 3)),
            ("abc", 3, (1, 4)),
            ("abc", 99, (1, 4)),
            ("a\nb", 1, (1, 2)),
            ("a\nb", 2, (2, 1)),
            ("a\n", 2, (2, 1)),
            ("\n\n\n", 3, (4, 1)),
            ("a\r\nb", 2, (1, 3)),
            ("a\r\nb", 3, (2, 1)),
            ("λx", 2, (1, 2)),
            ("λx", 1, (1, 1)),
            ("🚀λx", 4, (1, 2)),
            ("🚀λx", 6, (1, 3)),
            ("🚀\nλx", 5, (2, 1)),
            ("🚀\nλx", 7, (2, 2)),
            ("\u{feff}x", 0, (1, 1)),
            ("\u{feff}x", 3, (1, 1)),
            ("\u{feff}λx", 5, (1, 2)),
        ];
        for &(text, byte, expected) in cases {
            assert_eq!(LineIndex::new(text).position(byte), expected, "{text:?} at {byte}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_counting(text in "[ab\nλ🚀\r]{0,40}") {
            let index = LineIndex::new(&text);
            for (at, _) in text.char_indices() {
                let before = &text[..at];
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
                prop_assert_eq!(index.position(at as u32), (line as u32, column as u32));
            }
        }
    }
}
