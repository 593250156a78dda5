//! The time, which is an effect: the driver tells it.

use super::Ctx;
use crate::heap::{Fault, Res};
use std::cell::Cell;

/// What a run knows of the time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Default)]
pub(crate) struct Clock {
    /// The time through the whole run, if it stands still.
    fixed: Cell<Option<i64>>,
    /// The last reading, and the fuel spent when it was asked for.
    reading: Cell<Option<(u64, i64)>>,
}

impl Clock {
    /// Sets the time for the whole run; without one the driver is asked.
    pub(crate) fn fix(&self, time: Option<i64>) {
        self.fixed.set(time);
    }

    /// Notes the time that was asked for when `asked` units of fuel had been spent.
    pub(crate) fn tell(&self, asked: u64, time: i64) {
        self.reading.set(Some((asked, time)));
    }
}

impl Ctx {
    /// The time.
    ///
    /// # Errors
    /// [`Fault::Clock`] the first time: then the driver tells the time and the instruction is run again. It gets the same
    /// time if it is run once more, because it has spent the same fuel.
    pub(crate) fn now(&self) -> Res<i64> {
        match (self.clock.fixed.get(), self.clock.reading.get()) {
            (Some(fixed), _) => Ok(fixed),
            (None, Some((asked, time))) if asked == self.spent() => Ok(time),
            _ => Err(Fault::Clock),
        }
    }
}
