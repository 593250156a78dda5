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

/// The position of a name in a key array.
#[derive(Clone, Copy)]
pub(super) enum Place {
    At(u8),
    Absent,
    /// Absent, while there is a similar name.
    Near,
}

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
    /// Absent, while the key array has a similar name.
    const NEAR: u8 = u8::MAX - 1;

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
        search: impl FnOnce() -> (Place, u8),
    ) -> (Option<usize>, u8) {
        let Known { place, units, .. } = match self.entry(keys, name) {
            Some(known) => known,
            None => self.remember(keys, name, search()),
        };
        ((place < Self::NEAR).then_some((place % Self::COSTS).into()), units)
    }

    /// Returns whether the key array is remembered to have a name similar to this one only.
    pub(super) fn is_near(&self, keys: Address, name: Address) -> bool {
        self.entry(keys, name).is_some_and(|known| known.place == Self::NEAR)
    }

    /// Remembers a position before the others of its set, and drops the last one.
    #[cold]
    fn remember(&self, keys: Address, name: Address, (found, units): (Place, u8)) -> Known {
        let place = match found {
            Place::At(i) if units > 0 => i | Self::COSTS,
            Place::At(i) => i,
            Place::Absent => Self::ABSENT,
            Place::Near => Self::NEAR,
        };
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

    /// Forgets the positions of names.
    pub(super) fn clear_known(&self) {
        for slot in self.known.get().into_iter().flat_map(|known| known.as_flattened()) {
            slot.set(Known::NONE);
        }
    }

    pub(super) fn clear(&self) {
        self.clear_known();
        for step in self.steps.get().into_iter().flat_map(|steps| &steps.grown) {
            step.set(Grown::NONE);
        }
    }
}
