//! Where names stand in the key arrays of records: looked for once, remembered by address.

use super::map::Keys;
use super::string::Str;
use std::cell::Cell;

/// Remembers where names stand in key arrays. It holds addresses, so a compaction empties it; what it answers does not
/// depend on what it holds.
pub(super) struct Shapes(Box<[Cell<Known>; Shapes::SIZE]>);

/// A key array, a name, and where the name stands in it.
#[derive(Clone, Copy, Default)]
struct Known {
    keys: usize,
    name: usize,
    place: u8,
}

impl Shapes {
    const SIZE: usize = 64;
    const ABSENT: u8 = u8::MAX;

    pub(super) fn new() -> Self {
        Shapes(Box::new([const { Cell::new(Known { keys: 0, name: 0, place: 0 }) }; Self::SIZE]))
    }

    #[inline]
    pub(super) fn find<'h>(
        &self,
        keys: &'h Keys<'h>,
        name: &'h Str<'h>,
        search: impl FnOnce() -> Option<usize>,
    ) -> Option<usize> {
        let (keys, name) = (std::ptr::from_ref(keys) as usize, std::ptr::from_ref(name) as usize);
        let slot = &self.0[((keys >> 4) ^ (name >> 3)) % Self::SIZE];
        let known = slot.get();
        let place = if known.keys == keys && known.name == name {
            known.place
        } else {
            let place = search().map_or(Self::ABSENT, |i| i as u8);
            slot.set(Known { keys, name, place });
            place
        };
        (place != Self::ABSENT).then_some(place as usize)
    }

    pub(super) fn clear(&self) {
        for slot in self.0.iter() {
            slot.set(Known::default());
        }
    }
}
