//! The time, which is an effect: the driver supplies it.

use super::Ctx;
use crate::heap::{Fault, Res};
use std::cell::Cell;

/// The time of a run, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Default)]
pub(crate) struct Clock {
    /// A fixed time for the whole run.
    fixed: Cell<Option<i64>>,
    /// The last reading, and the fuel spent when it was requested.
    reading: Cell<Option<(u64, i64)>>,
}

impl Clock {
    /// Sets a fixed time for the whole run; without one the driver is asked.
    pub(crate) fn fix(&self, time: Option<i64>) {
        self.fixed.set(time);
    }

    /// Sets the time that was requested when `asked` units of fuel had been spent.
    pub(crate) fn tell(&self, asked: u64, time: i64) {
        self.reading.set(Some((asked, time)));
    }
}

impl Ctx {
    /// Returns the time.
    ///
    /// # Errors
    /// Returns [`Fault::Clock`] the first time; then the driver supplies the time and the instruction is run again. If
    /// it is run once more, it gets the same time, because it has spent the same fuel.
    pub(crate) fn now(&self) -> Res<i64> {
        match (self.clock.fixed.get(), self.clock.reading.get()) {
            (Some(fixed), _) => Ok(fixed),
            (None, Some((asked, time))) if asked == self.spent() => Ok(time),
            _ => Err(Fault::Clock),
        }
    }
}
