//! Whether compiling may go on.

use crate::error::{Error, Reason};
use std::cell::Cell;
use std::fmt;

/// Asks somebody now and then whether to go on.
pub(crate) struct Pace<'a> {
    stop: &'a dyn Fn() -> bool,
    steps: Cell<u32>,
}

impl fmt::Debug for Pace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl<'a> Pace<'a> {
    /// Goes on until `stop` says yes.
    pub(crate) fn new(stop: &'a dyn Fn() -> bool) -> Self {
        Pace { stop, steps: Cell::new(0) }
    }

    /// Goes on to the end.
    pub(crate) fn to_the_end() -> Pace<'static> {
        Pace::new(&|| false)
    }

    /// Counts a step of well under a microsecond, such as a form or a node.
    #[inline]
    pub(crate) fn step(&self) -> Result<(), Error> {
        const BETWEEN: u32 = 1_024;
        self.steps.set(self.steps.get().wrapping_add(1));
        if self.steps.get().is_multiple_of(BETWEEN) { self.ask() } else { Ok(()) }
    }

    /// The same before a step that takes longer.
    #[cold]
    pub(crate) fn ask(&self) -> Result<(), Error> {
        match (self.stop)() {
            true => Err(Error::new(Reason::Timeout, "the program was not compiled to its end")),
            false => Ok(()),
        }
    }
}
