//! Classes of characters.

use regex_syntax::hir::{Class as HirClass, HirKind};

/// A set of characters.
#[derive(Debug)]
pub(super) struct Class {
    /// A bit for each character of ASCII.
    ascii: u128,
    /// Ranges of characters, ends included, in ascending order.
    ranges: Box<[(char, char)]>,
}

impl Class {
    /// The class that a notation such as `[a-z]`, `\d` or one character stands for.
    pub(super) fn parse(notation: &str, any_case: bool) -> Option<Class> {
        let hir = regex_syntax::ParserBuilder::new().case_insensitive(any_case).build().parse(notation).ok()?;
        let ranges: Box<[(char, char)]> = match hir.kind() {
            HirKind::Class(HirClass::Unicode(class)) => class.ranges().iter().map(|r| (r.start(), r.end())).collect(),
            HirKind::Class(HirClass::Bytes(class)) => {
                class.ranges().iter().map(|r| (char::from(r.start()), char::from(r.end()))).collect()
            }
            HirKind::Literal(literal) => {
                let mut chars = std::str::from_utf8(&literal.0).ok()?.chars();
                let only = chars.next().filter(|_| chars.as_str().is_empty())?;
                Box::new([(only, only)])
            }
            _ => return None,
        };
        let mut class = Class { ascii: 0, ranges };
        class.ascii = (0..128).filter(|&b| class.in_ranges(char::from(b))).fold(0, |set, b| set | 1 << b);
        Some(class)
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
