//! Moments of a run, by the monotonic clock.

use lisp_runtime::remote::HostHalf;
use std::time::{Duration, Instant};

/// Converts a moment to the monotonic clock.
pub(crate) fn monotonic(at: Instant) -> u64 {
    let left = at.saturating_duration_since(Instant::now());
    let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    crate::kernel::sys::monotonic_ns().saturating_add(left).max(1)
}

/// Returns when a run is killed; `None` means never.
pub(crate) fn hard_deadline(host: &HostHalf, grace: Duration) -> Option<Instant> {
    host.deadline()?.checked_add(grace)
}
