//! Classes of characters, to ask whether one is in them.

use super::sets;
use regex_syntax::hir::ClassUnicodeRange;
use std::sync::LazyLock;

/// A set of characters.
#[derive(Debug)]
pub(super) struct Class {
    /// A bit for each character of ASCII.
    ascii: u128,
    /// Ranges of characters, ends included, in ascending order.
    ranges: Box<[(char, char)]>,
}

impl Class {
    /// The class of these ranges, which are in ascending order and do not overlap.
    pub(super) fn new(ranges: &[ClassUnicodeRange]) -> Class {
        let mut class = Class { ascii: 0, ranges: ranges.iter().map(|range| (range.start(), range.end())).collect() };
        class.ascii = (0..128).filter(|&b| class.in_ranges(char::from(b))).fold(0, |set, b| set | 1 << b);
        class
    }

    /// Is it a character of the class?
    #[inline]
    pub(super) fn contains(&self, c: char) -> bool {
        let code = u32::from(c);
        if code < 128 { self.ascii >> code & 1 == 1 } else { self.in_ranges(c) }
    }

    fn in_ranges(&self, c: char) -> bool {
        let after = self.ranges.partition_point(|&(first, _)| first <= c);
        after.checked_sub(1).and_then(|i| self.ranges.get(i)).is_some_and(|&(_, last)| c <= last)
    }

    /// The bytes of the first character of a text, when it is one of the class.
    #[inline]
    pub(super) fn first(&self, rest: &str) -> Option<usize> {
        match rest.as_bytes().first()? {
            &b if b < 128 => (self.ascii >> b & 1 == 1).then_some(1),
            _ => rest.chars().next().filter(|&c| self.in_ranges(c)).map(char::len_utf8),
        }
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        std::mem::size_of::<Class>() + std::mem::size_of_val(&*self.ranges)
    }
}

/// What makes words, as Java 17 has it: letters and digits with the marks on them, and `_`.
pub(super) static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

/// The classes that words are made of.
pub(super) struct Words {
    letters: Class,
    /// What stands on the letter before it.
    marks: Class,
    /// With the flag `U`: what `\w` is.
    unicode: Class,
}

impl Words {
    fn new() -> Words {
        let class = |notation: &str| Class::new(sets::read(notation).as_ref().map_or(&[], |set| set.ranges()));
        Words { letters: class(r"[\p{L}\p{Nd}]"), marks: class(r"\p{Mn}"), unicode: class(r"\w") }
    }

    /// Is a character that ends a text part of a word? The text before is only looked at for the letter under a mark;
    /// `seen` is called for each mark.
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
