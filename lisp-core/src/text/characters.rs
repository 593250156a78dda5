//! The characters of a text as a person counts them: extended grapheme clusters, except that a carriage return and a
//! newline are two characters, so that in ASCII every byte is one. A character may be as long as the text (a letter
//! with a million accents), so long ones are charged and scanned in pieces.

use crate::cost;
use crate::heap::{Heap, Res};
use crate::sizes::{CHARACTER_PIECE, USUAL_CHARACTER};
use unicode_segmentation::{GraphemeCursor, GraphemeIncomplete, UnicodeSegmentation};

/// Returns true if each byte of the text is one character.
#[inline]
pub(crate) fn are_bytes(text: &str) -> bool {
    text.is_ascii()
}

/// Returns the number of characters of a text. The caller has charged for its length.
pub(crate) fn count(h: &Heap, text: &str) -> Res<usize> {
    if are_bytes(text) {
        return Ok(text.len());
    }
    let mut characters = Characters::new(h, text);
    while characters.step()?.is_some() {}
    Ok(characters.seen)
}

/// Returns the number of bytes of the first `count` characters of a text, or of all if there are fewer. The caller has
/// charged.
pub(crate) fn bytes_of_first(h: &Heap, text: &str, count: usize) -> Res<usize> {
    if are_bytes(text) {
        return Ok(count.min(text.len()));
    }
    let mut characters = Characters::new(h, text);
    while characters.seen < count && characters.step()?.is_some() {}
    Ok(characters.place)
}

/// Returns the first `count` characters of a text. The caller has charged.
pub(crate) fn first<'t>(h: &Heap, text: &'t str, count: usize) -> Res<&'t str> {
    Ok(text.get(..bytes_of_first(h, text, count)?).unwrap_or_default())
}

/// Returns true if a text is one character. Charges for it.
pub(crate) fn is_one(h: &Heap, text: &str) -> Res<bool> {
    h.charge_copy(text.len())?;
    Ok(Characters::new(h, text).step()?.is_some_and(|first| first.len() == text.len()))
}

/// Iterates over the characters of a text that is too short to need interruption.
pub(crate) fn of_short(text: &str) -> impl Iterator<Item = &str> {
    text.graphemes(true).flat_map(|cluster| {
        let (first, second) = if cluster == "\r\n" { cluster.split_at(1) } else { (cluster, "") };
        std::iter::once(first).chain((!second.is_empty()).then_some(second))
    })
}

/// Returns the number of characters of a short text.
pub(crate) fn count_short(text: &str) -> usize {
    if are_bytes(text) { text.len() } else { of_short(text).count() }
}

/// Returns true if the first byte is a character, whatever precedes it.
#[inline]
fn stands_alone(bytes: &[u8]) -> bool {
    match *bytes {
        [first, second, ..] => first.is_ascii() && second.is_ascii(),
        [only] => only.is_ascii(),
        [] => false,
    }
}

/// The index of the first character that starts at a byte or after it, and the byte at which it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) byte: usize,
}

/// The characters of a text, one after the other.
pub(crate) struct Characters<'h, 't> {
    heap: &'h Heap,
    text: &'t str,
    /// It starts over after characters of one byte: what precedes a character does not change its end.
    cursor: GraphemeCursor,
    /// Where the cursor's text starts.
    base: usize,
    place: usize,
    seen: usize,
}

impl<'h, 't> Characters<'h, 't> {
    /// Starts at the beginning of a text. The caller charges for the length that it scans; characters of several bytes
    /// are charged in addition.
    pub(crate) fn new(heap: &'h Heap, text: &'t str) -> Self {
        Characters { heap, text, cursor: GraphemeCursor::new(0, text.len(), true), base: 0, place: 0, seen: 0 }
    }

    /// Advances to the first character that starts at a byte or after it. Returns its place and that of the one before.
    pub(crate) fn go_to(&mut self, byte: usize) -> Res<(Place, Place)> {
        let here = |walk: &Self| Place { index: walk.seen, byte: walk.place };
        // The last byte before may start a longer character.
        let plain = self.text.get(self.place..byte).filter(|text| are_bytes(text)).map_or(0, str::len);
        self.seen += plain.saturating_sub(1);
        self.place += plain.saturating_sub(1);
        let mut before = here(self);
        while self.place < byte {
            before = here(self);
            self.step()?;
        }
        Ok((before, here(self)))
    }

    /// Returns the next character.
    fn step(&mut self) -> Res<Option<&'t str>> {
        let start = self.place;
        if start == self.text.len() {
            return Ok(None);
        }
        self.heap.poll_every(1)?;
        self.seen += 1;
        if stands_alone(&self.text.as_bytes()[start..]) {
            self.place = start + 1;
            return Ok(self.text.get(start..self.place));
        }
        self.heap.charge(cost::CHARACTER)?;
        if self.base + self.cursor.cur_cursor() != start {
            self.base = start;
            self.cursor = GraphemeCursor::new(0, self.text.len() - start, true);
        }
        let (mut from, mut to) = (start, self.end_of_piece(start, USUAL_CHARACTER));
        let end = loop {
            let piece = self.text.get(from..to).unwrap_or_default();
            match self.cursor.next_boundary(piece, from - self.base) {
                Ok(Some(end)) => break self.base + end,
                Err(GraphemeIncomplete::NextChunk) => {
                    (from, to) = (to, self.end_of_piece(to, CHARACTER_PIECE));
                    self.heap.charge((to - from) as u64)?;
                }
                Err(GraphemeIncomplete::PreContext(end)) => {
                    let end = self.base + end;
                    let from = self.text.floor_char_boundary(end.saturating_sub(USUAL_CHARACTER)).max(self.base);
                    self.heap.charge((end - from) as u64)?;
                    self.cursor.provide_context(self.text.get(from..end).unwrap_or_default(), from - self.base);
                }
                // These cannot occur for a cursor inside its text.
                Ok(None) | Err(GraphemeIncomplete::PrevChunk | GraphemeIncomplete::InvalidOffset) => {
                    break self.text.len();
                }
            }
        };
        self.place = end;
        Ok(self.text.get(start..end))
    }

    /// Returns the end of a piece that starts at `from` and should have `bytes` bytes: between two code points, and not
    /// after a regional indicator, which the cursor would count twice there.
    fn end_of_piece(&self, from: usize, bytes: usize) -> usize {
        let end = self.text.floor_char_boundary(from + bytes);
        let piece = self.text.get(from..end).unwrap_or_default();
        // Of many, the first two end the character.
        match piece.trim_end_matches(|c| matches!(c, '\u{1F1E6}'..='\u{1F1FF}')) {
            head if end < self.text.len() && !head.is_empty() => from + head.len(),
            _ => end,
        }
    }
}

impl<'t> Iterator for Characters<'_, 't> {
    type Item = Res<&'t str>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Code points that create and break clusters: controls, marks, joiners, pictures, flags, prepended marks, Hangul,
    /// conjuncts.
    const CODE_POINTS: &[char] = &[
        'a',
        ' ',
        '\r',
        '\n',
        '\u{301}',
        '\u{903}',
        '\u{200D}',
        '\u{1F468}',
        '\u{2764}',
        '\u{FE0F}',
        '\u{1F3FD}',
        '\u{1F1E6}',
        '\u{1F1FF}',
        '\u{600}',
        '\u{1100}',
        '\u{1161}',
        '\u{11A8}',
        '\u{AC00}',
        '\u{915}',
        '\u{94D}',
        '\u{93C}',
        '\u{E01}',
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn characters_do_not_depend_on_the_pieces(
            runs in prop::collection::vec((prop::sample::select(CODE_POINTS), prop_oneof![5 => 1_usize..3, 1 => 1_usize..40]), 0..24),
        ) {
            let text: String = runs.iter().map(|&(c, times)| c.to_string().repeat(times)).collect();
            let expected: Vec<&str> = of_short(&text).collect();
            prop_assert_eq!(expected.join("|"), text.graphemes(true).collect::<Vec<_>>().join("|").replace("\r\n", "\r|\n"));
            let heap = Heap::new(1, usize::MAX / 2);
            let found: Vec<&str> = Characters::new(&heap, &text).collect::<Res<_>>().expect("no limit is reached");
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(count(&heap, &text).expect("no limit is reached"), expected.len());
            prop_assert_eq!(is_one(&heap, &text).expect("no limit is reached"), expected.len() == 1);
            let starts = expected.iter().scan(0, |end, c| { let start = *end; *end += c.len(); Some(start) });
            let places: Vec<Place> = starts.chain([text.len()]).enumerate().map(|(index, byte)| Place { index, byte }).collect();
            for byte in 1..=text.len() {
                let found = Characters::new(&heap, &text).go_to(byte).expect("no limit is reached");
                let after = places.iter().position(|place| place.byte >= byte).expect("the end is behind all");
                prop_assert_eq!(found, (places[after - 1], places[after]));
            }
            let some = expected.len() / 2;
            prop_assert_eq!(first(&heap, &text, some).expect("no limit is reached"), expected[..some].concat());
        }
    }
}
