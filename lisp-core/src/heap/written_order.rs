//! The order in which the keys of a small map were written.

use super::SMALL;

const _: () = assert!(SMALL <= u8::MAX as usize, "positions are bytes");

/// Which key was written first, which second, and so on: each is told by its position in key order. Keys that were
/// written in key order have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenOrder([u8; SMALL]);

impl WrittenOrder {
    /// Returns the order of keys that were written one after the other; `came` has, for each key in key order, its
    /// number among them.
    pub(super) fn of(came: &[u8]) -> Option<Self> {
        let mut order = [0; SMALL];
        for (place, &number) in (0..).zip(came) {
            order[usize::from(number)] = place;
        }
        Self::unless_sorted(order, came.len())
    }

    /// Returns the position in key order of the key that was written as number `i`.
    #[inline]
    pub(super) fn place(&self, i: usize) -> usize {
        self.0[i].into()
    }

    /// Returns the order of `len` keys and one more, which is written last and comes to `at` in key order.
    #[expect(clippy::cast_possible_truncation, reason = "small maps have few keys")]
    pub(super) fn with(order: Option<&Self>, len: usize, at: usize) -> Option<Self> {
        if order.is_none() && at == len {
            return None;
        }
        let mut with = [0; SMALL];
        for (i, new) in with.iter_mut().enumerate().take(len) {
            let place = order.map_or(i, |order| order.place(i));
            *new = (place + usize::from(place >= at)) as u8;
        }
        with[len] = at as u8;
        Some(WrittenOrder(with))
    }

    /// Returns the order of `len` keys without the one at `at` in key order.
    #[expect(clippy::cast_possible_truncation, reason = "small maps have few keys")]
    pub(super) fn without(order: Option<&Self>, len: usize, at: usize) -> Option<Self> {
        let order = order?;
        let mut without = [0; SMALL];
        let kept = (0..len).map(|i| order.place(i)).filter(|&place| place != at);
        for (new, place) in without.iter_mut().zip(kept) {
            *new = (place - usize::from(place > at)) as u8;
        }
        Self::unless_sorted(without, len - 1)
    }

    fn unless_sorted(order: [u8; SMALL], len: usize) -> Option<Self> {
        (!order[..len].is_sorted()).then_some(WrittenOrder(order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Adding and removing keys is what it is for a list of them.
        #[test]
        fn it_is_that_of_a_list(steps in prop::collection::vec(0_u8..40, 0..80)) {
            let (mut written, mut order): (Vec<u8>, Option<WrittenOrder>) = (Vec::new(), None);
            for key in steps {
                let mut sorted = written.clone();
                sorted.sort_unstable();
                match sorted.binary_search(&key) {
                    Ok(at) => {
                        order = WrittenOrder::without(order.as_ref(), written.len(), at);
                        written.retain(|&other| other != key);
                    }
                    Err(_) if written.len() == SMALL => continue,
                    Err(at) => {
                        order = WrittenOrder::with(order.as_ref(), written.len(), at);
                        written.push(key);
                    }
                }
                sorted.clone_from(&written);
                sorted.sort_unstable();
                let place = |i| order.map_or(i, |order| order.place(i));
                let read: Vec<u8> = (0..sorted.len()).map(|i| sorted[place(i)]).collect();
                prop_assert_eq!(&read, &written);
                prop_assert_eq!(order.is_none(), written.is_sorted());
                let number = |key| u8::try_from(written.iter().position(|other| other == key).unwrap()).unwrap();
                let came: Vec<u8> = sorted.iter().map(number).collect();
                prop_assert_eq!(WrittenOrder::of(&came), order);
            }
        }
    }
}
