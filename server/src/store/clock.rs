//! The two clocks of a store in this process.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Tells the time for people, and the time by which leases expire.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    start_ms: i64,
}

impl Clock {
    pub(super) fn new() -> Self {
        Clock { start: Instant::now(), start_ms: unix_ms() }
    }

    /// Returns the milliseconds since 1970-01-01T00:00:00Z.
    pub(super) fn wall_ms(&self) -> i64 {
        unix_ms()
    }

    /// Returns the same at the start of the clock, and goes on steadily from there: leases do not expire because somebody
    /// sets the time.
    pub(super) fn steady_ms(&self) -> i64 {
        self.start_ms.saturating_add(millis(self.start.elapsed()))
    }
}

/// Returns a duration in milliseconds.
pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn unix_ms() -> i64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
