//! Searches and scans of long texts in pieces; in between the flag that ends a run is polled. The callers charge.

use crate::cost;
use crate::heap::{Heap, Res};
use crate::sizes::SCANNED_AT_ONCE;
use memchr::memmem::{Finder, FinderRev};

/// Returns a text in pieces of whole code points.
pub(crate) fn pieces<'t>(h: &Heap, text: &'t str) -> impl Iterator<Item = Res<&'t str>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(SCANNED_AT_ONCE));
        rest = after;
        match piece {
            "" => None,
            piece if after.is_empty() => Some(Ok(piece)),
            piece => Some(h.poll_interrupt().map(|()| piece)),
        }
    })
}

/// Returns a text in pieces of whole code points, the last one first.
pub(crate) fn pieces_from_end<'t>(h: &Heap, text: &'t str) -> impl Iterator<Item = Res<&'t str>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (before, piece) = rest.split_at(rest.floor_char_boundary(rest.len().saturating_sub(SCANNED_AT_ONCE)));
        rest = before;
        match piece {
            "" => None,
            piece if before.is_empty() => Some(Ok(piece)),
            piece => Some(h.poll_interrupt().map(|()| piece)),
        }
    })
}

/// A text to search for. Preparing it takes time.
pub(crate) struct Search<'p>(Finder<'p>);

impl<'p> Search<'p> {
    /// Prepares the search for a text.
    pub(crate) fn new(h: &Heap, part: &'p str) -> Res<Self> {
        h.charge(cost::sought(part.len()))?;
        Ok(Search(Finder::new(part)))
    }

    /// Returns the byte where the part first occurs in a text.
    pub(crate) fn find(&self, h: &Heap, text: &str) -> Res<Option<usize>> {
        let part = self.0.needle().len();
        let mut from = 0;
        loop {
            let to = text.len().min(from + SCANNED_AT_ONCE.max(2 * part));
            if let Some(at) = self.0.find(&text.as_bytes()[from..to]) {
                return Ok(Some(from + at));
            }
            if to == text.len() {
                return Ok(None);
            }
            h.poll_interrupt()?;
            // What starts in this piece may end in the next one.
            from = to + 1 - part.max(1);
        }
    }
}

/// Returns the byte where a part first occurs in a text.
pub(crate) fn find(h: &Heap, text: &str, part: &str) -> Res<Option<usize>> {
    if part.len() > text.len() { Ok(None) } else { Search::new(h, part)?.find(h, text) }
}

/// Returns the byte where a part last occurs in a text.
pub(crate) fn rfind(h: &Heap, text: &str, part: &str) -> Res<Option<usize>> {
    if part.len() > text.len() {
        return Ok(None);
    }
    h.charge(cost::sought(part.len()))?;
    let search = FinderRev::new(part);
    let mut to = text.len();
    loop {
        let from = to.saturating_sub(SCANNED_AT_ONCE.max(2 * part.len()));
        if let Some(at) = search.rfind(&text.as_bytes()[from..to]) {
            return Ok(Some(from + at));
        }
        if from == 0 {
            return Ok(None);
        }
        h.poll_interrupt()?;
        to = from + part.len().max(1) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn searches_do_not_depend_on_the_pieces(text in "[aé𝒜]{0,60}", part in "[aé𝒜]{0,40}", place in any::<prop::sample::Index>()) {
            let heap = Heap::new(1, usize::MAX / 2);
            let begin = text.floor_char_boundary(place.index(text.len() + 1));
            let inside = &text[begin..text.floor_char_boundary(begin + part.len())];
            for part in [part.as_str(), inside] {
                prop_assert_eq!(find(&heap, &text, part).expect("no limit is reached"), text.find(part));
                prop_assert_eq!(rfind(&heap, &text, part).expect("no limit is reached"), text.rfind(part));
            }
            let all = pieces(&heap, &text).collect::<Res<Vec<_>>>().expect("no limit is reached");
            prop_assert!(all.iter().all(|piece| piece.len() <= SCANNED_AT_ONCE && !piece.is_empty()));
            prop_assert_eq!(all.concat(), text);
        }
    }
}
