//! Deadlines: when they are, whether they have passed, and the errors that say so.

use super::cancel::Cancel;
use super::limits::Limits;
use lisp_core::{Error, Reason};
use std::time::{Duration, Instant};

/// The moment a number of milliseconds later; `None` is never.
pub(crate) fn deadline(from: Instant, ms: u64) -> Option<Instant> {
    from.checked_add(Duration::from_millis(ms))
}

/// The error of a run past its deadline.
pub(crate) fn run_timeout(limits: &Limits) -> Error {
    let limit = limits.timeout_ms;
    Error::new(Reason::Timeout, format!("the run takes longer than {limit} ms"))
        .hint("do less work, for example on fewer rows, or raise the limit timeout_ms")
        .detail("limit_ms", limit)
}

/// Whether compiling, which begins now, is to stop. What it has made must be dropped then, which takes up to a third of
/// the time that it took: that time is kept free before the deadline.
pub(crate) fn stop_of_compiling<'a>(
    limits: &'a Limits,
    cancel: Option<&'a Cancel>,
    deadline: Option<Instant>,
) -> impl Fn() -> bool + 'a {
    let begun = Instant::now();
    move || {
        let until = deadline.map(|deadline| deadline.checked_sub(begun.elapsed() / 3).unwrap_or(deadline));
        expired(limits, cancel, until).is_some()
    }
}

/// The error of a run past its deadline or cancelled, while it is compiled or set up.
pub(crate) fn expired(limits: &Limits, cancel: Option<&Cancel>, deadline: Option<Instant>) -> Option<Error> {
    if cancel.is_some_and(Cancel::is_cancelled) {
        return Some(Error::new(Reason::Cancelled, "the run was cancelled from outside"));
    }
    deadline.is_some_and(|deadline| Instant::now() >= deadline).then(|| run_timeout(limits))
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
