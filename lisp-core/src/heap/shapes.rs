//! The positions of names in the key arrays of records: searched for once, and remembered by address. The caller
//! ensures that the addresses are valid.

use std::cell::{Cell, OnceCell};

/// Remembers where names are in key arrays, and which key array has one more name than another. It holds addresses, so
/// a compaction clears it.
pub(super) struct Shapes {
    /// By addresses. Results do not depend on what is remembered. Allocated on first use, because many runs read no
    /// record.
    known: OnceCell<Box<[[Cell<Known>; Shapes::WAYS]; Shapes::SETS]>>,
    /// The last few steps from shape to shape. What a program holds depends on them, so which are kept must not depend
    /// on addresses.
    steps: OnceCell<Box<Steps>>,
}

struct Steps {
    grown: [Cell<Grown>; Shapes::STEPS],
    oldest: Cell<usize>,
}

/// The address of a key array or a name.
type Address = *const ();

/// A key array, a name, and the position of the name in it.
#[derive(Clone, Copy)]
struct Known {
    keys: Address,
    name: Address,
    /// Below [`Shapes::COSTS`] if reading is free, otherwise if it costs `units`.
    place: u8,
    units: u8,
}

impl Known {
    const NONE: Known = Known { keys: std::ptr::null(), name: std::ptr::null(), place: 0, units: 0 };
}

/// Adding the name to the key array `keys`, at `place`, gives `to`.
#[derive(Clone, Copy)]
struct Grown {
    keys: Address,
    name: Address,
    to: Address,
    place: usize,
}

impl Grown {
    const NONE: Grown = Grown { keys: std::ptr::null(), name: std::ptr::null(), to: std::ptr::null(), place: 0 };
}

impl Shapes {
    const STEPS: usize = 4;
    const SETS: usize = 32;
    /// The number of pairs of addresses that can share a set.
    const WAYS: usize = 2;
    /// Added to a position that is not free to read: no key array has that many keys.
    const COSTS: u8 = 1 << 7;
    const ABSENT: u8 = u8::MAX;

    pub(super) fn new() -> Self {
        Shapes { known: OnceCell::new(), steps: OnceCell::new() }
    }

    /// Returns the set in which this pair is remembered.
    #[inline(always)]
    fn set(keys: Address, name: Address) -> usize {
        ((keys as usize >> 4) ^ (name as usize >> 3)) % Self::SETS
    }

    /// Returns the position of the name in the key array, if that is remembered and free to read. Otherwise returns a
    /// position beyond its end, or none.
    #[inline(always)]
    pub(super) fn known(&self, keys: Address, name: Address) -> Option<usize> {
        Some(self.entry(keys, name)?.place.into())
    }

    #[inline(always)]
    fn entry(&self, keys: Address, name: Address) -> Option<Known> {
        let set = &self.known.get()?[Self::set(keys, name)];
        set.iter().map(Cell::get).find(|known| known.keys == keys && known.name == name)
    }

    /// Returns the position of the name in the key array, and the units that finding it costs: by `search` the first
    /// time.
    #[inline]
    pub(super) fn find(
        &self,
        keys: Address,
        name: Address,
        search: impl FnOnce() -> (Option<usize>, u8),
    ) -> (Option<usize>, u8) {
        let Known { place, units, .. } = match self.entry(keys, name) {
            Some(known) => known,
            None => self.remember(keys, name, search()),
        };
        ((place != Self::ABSENT).then_some((place % Self::COSTS).into()), units)
    }

    /// Remembers a position before the others of its set, and drops the last one.
    #[cold]
    fn remember(&self, keys: Address, name: Address, (found, units): (Option<usize>, u8)) -> Known {
        let mut place = found.and_then(|i| u8::try_from(i).ok()).unwrap_or(Self::ABSENT);
        if units > 0 {
            place |= Self::COSTS;
        }
        let known = Known { keys, name, place, units };
        let [first, second] = &self.known.get_or_init(Self::none_known)[Self::set(keys, name)];
        second.set(first.replace(known));
        known
    }

    /// Returns the key array made by adding this name to these keys, and the name's position in it, if that was noted
    /// recently by [`Shapes::note_grown`], and since the arena was replaced.
    #[inline]
    pub(super) fn grown(&self, keys: Address, name: Address) -> Option<(Address, usize)> {
        let step = self.steps.get()?.grown.iter().map(Cell::get).find(|g| g.keys == keys && g.name == name)?;
        Some((step.to, step.place))
    }

    /// Remembers a step.
    pub(super) fn note_grown(&self, keys: Address, name: Address, to: Address, place: usize) {
        let steps = self.steps.get_or_init(Self::no_steps);
        let oldest = steps.oldest.get() % Self::STEPS;
        steps.grown[oldest].set(Grown { keys, name, to, place });
        steps.oldest.set(oldest + 1);
    }

    #[cold]
    fn none_known() -> Box<[[Cell<Known>; Self::WAYS]; Self::SETS]> {
        Box::new([const { [const { Cell::new(Known::NONE) }; Self::WAYS] }; Self::SETS])
    }

    #[cold]
    fn no_steps() -> Box<Steps> {
        Box::new(Steps { grown: [const { Cell::new(Grown::NONE) }; Self::STEPS], oldest: Cell::new(0) })
    }

    pub(super) fn clear(&self) {
        for slot in self.known.get().into_iter().flat_map(|known| known.as_flattened()) {
            slot.set(Known::NONE);
        }
        for step in self.steps.get().into_iter().flat_map(|steps| &steps.grown) {
            step.set(Grown::NONE);
        }
    }
}
