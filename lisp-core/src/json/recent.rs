//! Short strings that came lately in a text: data has the same few in record after record, and one object stands for all.

use crate::heap::{Heap, Res, Str};

/// Strings up to this length, in bytes, are looked for.
const LONGEST: usize = 16;
/// How many are remembered, each in the slot of its bytes.
const SLOTS: usize = 256;
/// In a shorter text few strings repeat.
const WORTH_WHILE: usize = 2_048;

/// The strings that came lately.
#[derive(Default)]
pub(super) struct RecentTexts<'h>(Vec<Slot<'h>>);

#[derive(Clone, Copy)]
struct Slot<'h> {
    bytes: Bytes,
    text: Option<&'h Str<'h>>,
}

/// The bytes of a short string, all of them: its ends, which meet or overlap, and its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bytes {
    ends: [u64; 2],
    len: usize,
}

impl Bytes {
    const NONE: Bytes = Bytes { ends: [0; 2], len: 0 };

    /// `None` for a string that is not short.
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
    /// A text of `len` bytes is going to be read.
    pub(super) fn expect(&mut self, h: &Heap, len: usize) -> Res<()> {
        if len >= WORTH_WHILE && self.0.is_empty() {
            h.check_available(SLOTS * size_of::<Slot<'_>>())?;
            self.0.resize(SLOTS, Slot { bytes: Bytes::NONE, text: None });
        }
        Ok(())
    }

    /// The string object that came lately with this text, if there is one; else a new one.
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
