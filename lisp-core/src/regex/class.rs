//! Character classes, compiled for membership tests.

use super::sets;
use regex_syntax::hir::ClassUnicodeRange;
use std::sync::LazyLock;

#[derive(Debug)]
pub(super) struct Class {
    /// One bit for each ASCII character.
    ascii: u128,
    /// Ranges of characters with inclusive ends, in ascending order.
    ranges: Box<[(char, char)]>,
}

impl Class {
    /// Creates the class of these ranges, which must be in ascending order without overlap.
    pub(super) fn new(ranges: &[ClassUnicodeRange]) -> Class {
        let mut class = Class { ascii: 0, ranges: ranges.iter().map(|range| (range.start(), range.end())).collect() };
        class.ascii = (0..128).filter(|&b| class.in_ranges(char::from(b))).fold(0, |set, b| set | 1 << b);
        class
    }

    /// Returns whether the character is in the class.
    #[inline]
    pub(super) fn contains(&self, c: char) -> bool {
        let code = u32::from(c);
        if code < 128 { self.ascii >> code & 1 == 1 } else { self.in_ranges(c) }
    }

    fn in_ranges(&self, c: char) -> bool {
        let after = self.ranges.partition_point(|&(first, _)| first <= c);
        after.checked_sub(1).and_then(|i| self.ranges.get(i)).is_some_and(|&(_, last)| c <= last)
    }

    /// Returns the length in bytes of the first character of a text, if that is in the class.
    #[inline]
    pub(super) fn first(&self, rest: &str) -> Option<usize> {
        match rest.as_bytes().first()? {
            &b if b < 128 => (self.ascii >> b & 1 == 1).then_some(1),
            _ => rest.chars().next().filter(|&c| self.in_ranges(c)).map(char::len_utf8),
        }
    }

    /// Returns the bytes of memory the class takes.
    pub(super) fn bytes(&self) -> usize {
        std::mem::size_of::<Class>() + std::mem::size_of_val(&*self.ranges)
    }
}

/// The word characters that `\b` uses, as in Java 17: letters and digits with their combining marks, and `_`.
pub(super) static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

pub(super) struct Words {
    letters: Class,
    /// Combining marks on the letter before them.
    marks: Class,
    /// The meaning of `\w` with the flag `U`.
    unicode: Class,
}

impl Words {
    fn new() -> Words {
        let class = |notation: &str| Class::new(sets::read(notation).as_ref().map_or(&[], |set| set.ranges()));
        Words { letters: class(r"[\p{L}\p{Nd}]"), marks: class(r"\p{Mn}"), unicode: class(r"\w") }
    }

    /// Returns whether the last character of a text is part of a word. Characters before it are read only to find the
    /// letter under combining marks; `seen` is called for each of them.
    pub(super) fn has_last<E>(
        &self,
        text: &str,
        unicode: bool,
        mut seen: impl FnMut() -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut before = text.chars().rev();
        let Some(last) = before.next() else { return Ok(false) };
        if unicode {
            return Ok(self.unicode.contains(last));
        }
        if last == '_' || self.letters.contains(last) {
            return Ok(true);
        }
        if !self.marks.contains(last) {
            return Ok(false);
        }
        for c in before {
            seen()?;
            if !self.marks.contains(c) {
                return Ok(self.letters.contains(c));
            }
        }
        Ok(false)
    }
}
