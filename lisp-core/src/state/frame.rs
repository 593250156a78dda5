//! Frames: the calls in progress.

use super::{NativeFn, Unit};
use crate::code::Proto;
use crate::error::{Error, Reason};
use crate::heap::{Closure, Fault, Res};

/// What a frame runs.
#[derive(Clone, Copy)]
pub(crate) enum Code<'h> {
    /// Instructions.
    Lisp { unit: &'h Unit, proto: &'h Proto, closure: Option<&'h Closure<'h>>, pc: u32 },
    /// A function that calls functions, with `size` registers. `called` says that it has made a call, whose result is in
    /// the first register when the frame goes on; `index` counts.
    Native { native: &'static NativeFn, called: bool, index: usize, size: u32 },
}

/// A call in progress: its registers begin at `base`, its value goes to stack slot `dst`.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'h> {
    pub(crate) code: Code<'h>,
    pub(crate) base: u32,
    pub(crate) dst: u32,
}

const _: () = assert!(std::mem::size_of::<Frame<'_>>() == 40, "a frame is five words");

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
