//! Frames: the calls in progress.

use super::{NativeFn, Unit};
use crate::code::Proto;
use crate::heap::Closure;

/// What a frame runs.
#[derive(Clone, Copy)]
pub(crate) enum Code<'h> {
    /// Instructions.
    Lisp { unit: &'h Unit, proto: &'h Proto, closure: Option<&'h Closure<'h>>, pc: u32 },
    /// A function that calls functions, with `size` registers. `called` means that it has made a call, whose result is
    /// in the first register when the frame continues; `index` counts.
    Native { native: &'static NativeFn, called: bool, index: usize, size: u32 },
}

/// A call in progress: its registers start at `base`, its value goes to stack slot `dst`.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'h> {
    pub(crate) code: Code<'h>,
    pub(crate) base: u32,
    pub(crate) dst: u32,
}

const _: () = assert!(std::mem::size_of::<Frame<'_>>() == 40, "a frame is five words");
