//! The first word of every object in an arena.

use std::cell::Cell;
use std::ptr::without_provenance;

/// Names the arena of an object and, during a compaction, where the object was moved.
///
/// If the low bit is 1, the object has not moved; the second bit is the flag of [`Header::sees_foreign`], the highest
/// the one of [`Header::sees_constants`], and the bits between them are its region. If the low bit is 0, the object has moved, and the word is the address of its copy. Only objects of
/// the region under compaction are ever written. The word is a pointer, so that the address of the copy stays a
/// pointer.
#[repr(align(8))]
pub(super) struct Header(Cell<*const ()>);

/// The region of the constants of programs. They are frozen, like the host's grants, but a machine can forget its
/// programs.
pub(super) const CONSTANTS: u32 = (1 << 29) - 1;

/// The flag of [`Header::sees_constants`], above all regions.
const CONSTANTS_SEEN: usize = 1 << (usize::BITS - 1);

impl Header {
    pub(super) fn new(region: u32) -> Self {
        Header(Cell::new(without_provenance((region as usize) << 2 | 1)))
    }

    /// Returns the region in which the object was created.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "regions have fewer than 32 bits")]
    pub(super) fn region(&self) -> u32 {
        ((self.0.get().addr() & !CONSTANTS_SEEN) >> 2) as u32
    }

    /// Returns this header for a vector whose cells belong to another region: that of another vector, or of the cells
    /// that it sees.
    pub(super) fn seeing_foreign(self, of: &Header) -> Self {
        let constants = if of.region() == CONSTANTS || of.sees_constants() { CONSTANTS_SEEN } else { 0 };
        Header(Cell::new(self.0.get().map_addr(|word| word | 2 | constants)))
    }

    /// Returns true if the cells that belong to another region are constants of a program.
    pub(super) fn sees_constants(&self) -> bool {
        self.0.get().addr() & CONSTANTS_SEEN != 0
    }

    /// Returns true if the vector's cells belong to another region.
    pub(super) fn sees_foreign(&self) -> bool {
        self.0.get().addr() & 2 != 0
    }

    /// Returns the address of the copy, if the object has moved.
    #[inline]
    pub(super) fn moved(&self) -> Option<*const ()> {
        let word = self.0.get();
        (word.addr() & 1 == 0).then_some(word)
    }

    pub(super) fn set_moved(&self, to: *const ()) {
        debug_assert_eq!(to.addr() & 3, 0, "objects are aligned to 8 bytes");
        self.0.set(to);
    }
}
