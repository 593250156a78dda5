//! Where names stand in the key arrays of records: looked for once, remembered by address.

use super::map::Keys;
use super::string::Str;
use std::cell::{Cell, OnceCell};

/// Remembers where names stand in key arrays, and which key array has one more name than another. It holds addresses, so
/// a compaction empties it.
pub(super) struct Shapes {
    /// By the addresses; its results do not depend on what it holds. Many runs read no record.
    known: OnceCell<Box<[Cell<Known>; Shapes::SIZE]>>,
    /// The last few steps from shape to shape. What a program holds depends on them, so which are kept must not depend on
    /// the addresses.
    grown: [Cell<Grown>; Shapes::STEPS],
    oldest: Cell<usize>,
}

/// A key array, a name, and where the name stands in it.
#[derive(Clone, Copy, Default)]
struct Known {
    keys: usize,
    name: usize,
    place: u8,
}

/// The key array `keys` with the name as one more key, at `place`, is `to`.
#[derive(Clone, Copy)]
struct Grown {
    keys: *const (),
    name: *const (),
    to: *const (),
    place: usize,
}

impl Grown {
    const NONE: Grown = Grown { keys: std::ptr::null(), name: std::ptr::null(), to: std::ptr::null(), place: 0 };
}

impl Shapes {
    const STEPS: usize = 4;
    const SIZE: usize = 64;
    const ABSENT: u8 = u8::MAX;

    pub(super) fn new() -> Self {
        Shapes { known: OnceCell::new(), grown: [const { Cell::new(Grown::NONE) }; Self::STEPS], oldest: Cell::new(0) }
    }

    #[inline]
    pub(super) fn find<'h>(
        &self,
        keys: &'h Keys<'h>,
        name: &'h Str<'h>,
        search: impl FnOnce() -> Option<usize>,
    ) -> Option<usize> {
        let (keys, name) = (std::ptr::from_ref(keys) as usize, std::ptr::from_ref(name) as usize);
        let slot = &self.known.get_or_init(Self::none_known)[((keys >> 4) ^ (name >> 3)) % Self::SIZE];
        let known = slot.get();
        let place = if known.keys == keys && known.name == name {
            known.place
        } else {
            let place = search().and_then(|i| u8::try_from(i).ok()).unwrap_or(Self::ABSENT);
            slot.set(Known { keys, name, place });
            place
        };
        (place != Self::ABSENT).then_some(place as usize)
    }

    /// The key array that came of adding this name to these keys, and the name's place in it, when that was done lately.
    #[inline]
    pub(super) fn grown<'h>(&self, keys: &'h Keys<'h>, name: &'h Str<'h>) -> Option<(&'h Keys<'h>, usize)> {
        let (keys, name) = (std::ptr::from_ref(keys).cast(), std::ptr::from_ref(name).cast());
        let step = self.grown.iter().map(Cell::get).find(|g| g.keys == keys && g.name == name)?;
        // SAFETY: `note_grown` got the address from a key array of this heap's arena. The arena frees nothing until it is
        // replaced, and then this is emptied.
        Some((unsafe { &*step.to.cast::<Keys<'h>>() }, step.place))
    }

    /// Remembers a step. `to` must be a key array of the arena that these shapes belong to.
    pub(super) fn note_grown<'h>(&self, keys: &'h Keys<'h>, name: &'h Str<'h>, to: &'h Keys<'h>, place: usize) {
        let (keys, name) = (std::ptr::from_ref(keys).cast(), std::ptr::from_ref(name).cast());
        let oldest = self.oldest.get() % Self::STEPS;
        self.grown[oldest].set(Grown { keys, name, to: std::ptr::from_ref(to).cast(), place });
        self.oldest.set(oldest + 1);
    }

    #[cold]
    fn none_known() -> Box<[Cell<Known>; Self::SIZE]> {
        Box::new([const { Cell::new(Known { keys: 0, name: 0, place: 0 }) }; Self::SIZE])
    }

    pub(super) fn clear(&self) {
        for slot in self.known.get().into_iter().flat_map(|known| known.iter()) {
            slot.set(Known::default());
        }
        for step in &self.grown {
            step.set(Grown::NONE);
        }
    }
}
