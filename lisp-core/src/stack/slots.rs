//! The numbers of slots of the value stack.

use crate::error::{Error, Reason};
use crate::heap::{Fault, Res};

/// The most slots of a stack: frames keep the numbers of slots in 32 bits.
pub(super) const MOST_SLOTS: usize = u32::MAX as usize;

/// The number of a slot, or of slots, as frames keep it. The stack never has more than this can hold, so a number that
/// does not fit is refused before anything is written.
#[inline]
pub(crate) fn slot(at: usize) -> Res<u32> {
    u32::try_from(at).map_err(|_| too_many_slots())
}

/// The number of a slot that is on the stack.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the stack has no more than MOST_SLOTS slots")]
pub(crate) fn slot_on_stack(at: usize) -> u32 {
    debug_assert!(at <= MOST_SLOTS);
    at as u32
}

#[cold]
pub(super) fn too_many_slots() -> Fault {
    Error::new(Reason::MemoryExceeded, format!("the stack has more than {MOST_SLOTS} slots"))
        .hint("recur less deeply, or call with fewer arguments")
        .into()
}
