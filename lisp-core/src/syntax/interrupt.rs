//! Interrupting the compiler.

use crate::error::{Error, Reason};
use std::cell::Cell;
use std::fmt;

/// Asks the caller of the compiler at intervals whether to continue.
pub(crate) struct Interrupt<'a> {
    stop: &'a dyn Fn() -> bool,
    steps: Cell<u32>,
}

impl fmt::Debug for Interrupt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl<'a> Interrupt<'a> {
    /// Ends the compilation when `stop` returns true.
    pub(crate) fn new(stop: &'a dyn Fn() -> bool) -> Self {
        Interrupt { stop, steps: Cell::new(0) }
    }

    /// Never ends the compilation.
    pub(crate) fn never() -> Interrupt<'static> {
        Interrupt::new(&|| false)
    }

    /// Counts a step of well under a microsecond, such as a form or a node.
    ///
    /// # Errors
    /// Returns `timeout` if the compilation must end.
    #[inline]
    pub(crate) fn tick(&self) -> Result<(), Error> {
        const BETWEEN: u32 = 1_024;
        self.steps.set(self.steps.get().wrapping_add(1));
        if self.steps.get().is_multiple_of(BETWEEN) { self.check() } else { Ok(()) }
    }

    /// Asks at once, before a step that takes longer.
    #[cold]
    pub(crate) fn check(&self) -> Result<(), Error> {
        match (self.stop)() {
            true => Err(Error::new(Reason::Timeout, "timed out while compiling the program")),
            false => Ok(()),
        }
    }
}
