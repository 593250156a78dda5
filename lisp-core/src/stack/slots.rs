//! The numbers of slots of the value stack.

use crate::error::{Error, Reason};
use crate::heap::{Fault, Res};

/// The maximum number of slots of a stack: frames store slot numbers in 32 bits.
pub(super) const MAX_SLOTS: usize = u32::MAX as usize;

/// Converts a slot number, or a number of slots, for frames. The stack never has more slots than this can hold, so a
/// number that does not fit is rejected before anything is written.
#[inline]
pub(crate) fn slot(at: usize) -> Res<u32> {
    u32::try_from(at).map_err(|_| too_many_slots())
}

/// Converts the number of a slot that is on the stack.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the stack has no more than MAX_SLOTS slots")]
pub(crate) fn slot_on_stack(at: usize) -> u32 {
    debug_assert!(at <= MAX_SLOTS);
    at as u32
}

#[cold]
pub(super) fn too_many_slots() -> Fault {
    Error::new(Reason::MemoryExceeded, format!("the stack has more than {MAX_SLOTS} slots"))
        .hint("recur less deeply, or call with fewer arguments")
        .into()
}
