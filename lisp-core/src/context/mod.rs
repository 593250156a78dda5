//! What built-in functions work with: the heap of the run, the prints, the clock and the compiled regular expressions.
//! A function with a `&Heap` only creates and reads values; one with a `&Ctx` can also print, request the time, or
//! match patterns.

mod clock;
mod patterns;
mod prints;

use crate::heap::Heap;
use clock::Clock;
pub(crate) use patterns::InheritedPatterns;
use patterns::Patterns;
pub use prints::Prints;
use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The context of a run. It dereferences to the heap.
pub(crate) struct Ctx {
    heap: Heap,
    /// The lines that the program printed.
    pub(crate) prints: RefCell<Prints>,
    pub(crate) clock: Clock,
    patterns: Patterns,
    /// The fuel spent when a native frame was told to make its next call through the machine, because the built-in that
    /// it calls needs a frame for its arguments.
    pub(crate) framed_at: Cell<Option<u64>>,
}

impl Ctx {
    /// Creates the context of a run, without compiled regular expressions.
    pub(crate) fn new(heap: Heap) -> Self {
        Ctx {
            heap,
            prints: RefCell::default(),
            clock: Clock::default(),
            patterns: Patterns::default(),
            framed_at: Cell::default(),
        }
    }

    /// Creates the context of a worker, with its caller's regular expressions.
    pub(crate) fn of_worker(heap: Heap, inherited: &Arc<InheritedPatterns>) -> Self {
        Ctx { patterns: Patterns::of_worker(inherited), ..Ctx::new(heap) }
    }
}

impl Deref for Ctx {
    type Target = Heap;

    #[inline(always)]
    fn deref(&self) -> &Heap {
        &self.heap
    }
}

impl DerefMut for Ctx {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Heap {
        &mut self.heap
    }
}
