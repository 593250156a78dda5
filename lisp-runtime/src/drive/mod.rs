//! Drives one machine: the driver that resumes it and serves its effects, what all machines of a run share, and the
//! watchdog.

/// The model checker replaces this module with its own.
mod atomic {
    pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
}
#[cfg(feature = "async")]
pub(crate) mod alarm;
#[cfg(feature = "async")]
mod alarms;
pub(crate) mod budget;
pub(crate) mod driver;
pub(crate) mod sampler;
pub(crate) mod setting;
pub(crate) mod shared;
mod tagged;
#[cfg(feature = "async")]
pub(crate) mod wake;
pub(crate) mod watchdog;
