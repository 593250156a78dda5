//! Recent short strings of a text. Records often repeat the same few strings, which can then share one object.

use crate::heap::{Heap, Res, Str};

/// The maximum length of a shared string, in bytes.
const LONGEST: usize = 16;
/// The number of strings kept, each in a slot given by its bytes.
const SLOTS: usize = 256;
/// The minimum length of a text for this to pay off, in bytes. In shorter texts few strings repeat.
const WORTH_WHILE: usize = 2_048;

/// The recent short strings.
#[derive(Default)]
pub(super) struct RecentTexts<'h>(Vec<Slot<'h>>);

#[derive(Clone, Copy)]
struct Slot<'h> {
    bytes: Bytes,
    text: Option<&'h Str<'h>>,
}

/// The complete contents of a short string: its first and last bytes, which together cover it, and its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bytes {
    ends: [u64; 2],
    len: usize,
}

impl Bytes {
    const NONE: Bytes = Bytes { ends: [0; 2], len: 0 };

    /// Returns `None` for a string longer than [`LONGEST`].
    #[inline(always)]
    fn of(bytes: &[u8]) -> Option<Bytes> {
        let ends = match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
            _ if bytes.len() > LONGEST => return None,
            (Some(first), _) => {
                [u64::from_le_bytes(*first), bytes.last_chunk::<8>().map_or(0, |c| u64::from_le_bytes(*c))]
            }
            (_, Some(first)) => {
                let last = bytes.last_chunk::<4>().map_or(0, |c| u32::from_le_bytes(*c));
                [u32::from_le_bytes(*first).into(), last.into()]
            }
            _ => {
                let at = |i: usize| u64::from(bytes.get(i).copied().unwrap_or(0));
                [at(0) << 16 | at(1) << 8 | at(2), 0]
            }
        };
        Some(Bytes { ends, len: bytes.len() })
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it is one of the slots")]
    fn slot(self) -> usize {
        let [first, last] = self.ends;
        let mixed = (first ^ last.rotate_left(32) ^ self.len as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - SLOTS.trailing_zeros())) as usize
    }
}

impl<'h> RecentTexts<'h> {
    /// Prepares for a text of `len` bytes.
    pub(super) fn expect(&mut self, h: &Heap, len: usize) -> Res<()> {
        if len >= WORTH_WHILE && self.0.is_empty() {
            h.check_available(SLOTS * size_of::<Slot<'_>>())?;
            self.0.resize(SLOTS, Slot { bytes: Bytes::NONE, text: None });
        }
        Ok(())
    }

    /// Returns a recent string object with this text, or creates one.
    #[inline(always)]
    pub(super) fn text(&mut self, h: &'h Heap, text: &str) -> Res<&'h Str<'h>> {
        let Some(bytes) = Bytes::of(text.as_bytes()) else { return h.text(text) };
        let Some(slot) = self.0.get_mut(bytes.slot()) else { return h.text(text) };
        if let Slot { bytes: known, text: Some(text) } = *slot
            && known == bytes
        {
            return Ok(text);
        }
        let text = h.text(text)?;
        *slot = Slot { bytes, text: Some(text) };
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bytes_of_a_string_say_which_it_is(a in "[ab\\x00é]{0,18}", b in "[ab\\x00é]{0,18}") {
            let [x, y] = [&a, &b].map(|text| Bytes::of(text.as_bytes()));
            prop_assert_eq!(x.is_some(), a.len() <= LONGEST);
            if x.is_some() && y.is_some() {
                prop_assert_eq!(x == y, a == b);
            }
        }
    }

    #[test]
    fn strings_are_what_they_were() {
        let h = Heap::new(1, 1 << 20);
        let mut recent = RecentTexts::default();
        recent.expect(&h, WORTH_WHILE).expect("room");
        for i in (0..2_000).chain(0..2_000) {
            for text in [format!("{i}"), format!("k{}", i % 7), format!("a string of {i}"), String::new()] {
                assert_eq!(recent.text(&h, &text).expect("room").text(), text);
            }
        }
    }
}
