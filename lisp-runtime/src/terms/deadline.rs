//! Deadlines: when they are, whether they have passed, and their errors.

use super::cancel::Cancel;
use super::limits::Limits;
use lisp_core::{Error, Reason};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Returns the moment `ms` milliseconds after `from`; `None` is never.
pub(crate) fn deadline(from: Instant, ms: u64) -> Option<Instant> {
    from.checked_add(Duration::from_millis(ms))
}

/// The moment when a resumed run has replayed its record. Its time counts from then on.
#[derive(Debug, Default)]
pub struct ReplayEnd(OnceLock<Instant>);

impl ReplayEnd {
    /// Notes that the record is replayed. Only the first call counts.
    pub fn reach(&self, at: Instant) {
        self.0.get_or_init(|| at);
    }

    /// Returns the moment, if it has been reached.
    pub(crate) fn reached(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}

/// The time of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunTime {
    started: Instant,
    limit_ms: u64,
    /// Present for a resumed run.
    replay: Option<Arc<ReplayEnd>>,
}

impl RunTime {
    /// The maximum time of a replay, in timeouts of the run. Each earlier attempt had one timeout, and fuel bounds a
    /// replay; this ends the replay of a record that leads nowhere.
    pub(crate) const REPLAYS: u64 = 100;

    pub(crate) fn new(started: Instant, limits: &Limits, replay: Option<Arc<ReplayEnd>>) -> Self {
        RunTime { started, limit_ms: limits.timeout_ms, replay }
    }

    /// Returns the maximum time of a replay, in milliseconds.
    pub(crate) fn replay_ms(limit_ms: u64) -> u64 {
        limit_ms.saturating_mul(Self::REPLAYS)
    }

    /// Returns the deadline of the run as far as it is known now; `None` is never.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.replay.as_ref().map(|replay| replay.reached()) {
            None => deadline(self.started, self.limit_ms),
            Some(None) => deadline(self.started, Self::replay_ms(self.limit_ms)),
            Some(Some(at)) => deadline(at, self.limit_ms),
        }
    }

    /// Returns the deadline of something that started at `started` and may take `ms`; it counts like the time of the run.
    pub(crate) fn deadline_of(&self, started: Instant, ms: u64) -> Option<Instant> {
        match self.replay.as_ref().map(|replay| replay.reached()) {
            None => deadline(started, ms),
            Some(None) => None,
            Some(Some(at)) => deadline(started.max(at), ms),
        }
    }

    /// Returns the error of a run past its deadline.
    pub(crate) fn error(&self, limits: &Limits) -> Error {
        if self.replay.as_ref().is_none_or(|replay| replay.reached().is_some()) {
            return run_timeout(limits);
        }
        let (times, max) = (Self::REPLAYS, Self::replay_ms(self.limit_ms));
        Error::new(
            Reason::Timeout,
            format!("replaying the record takes longer than {times} times timeout_ms, {max} ms"),
        )
        .hint("raise the limit timeout_ms for the resumed run (Input::limits_over), or find out why the replay is slow")
        .detail("limit_ms", max)
    }
}

/// Returns the error of a run past its deadline.
pub(crate) fn run_timeout(limits: &Limits) -> Error {
    let limit = limits.timeout_ms;
    Error::new(Reason::Timeout, format!("the run takes longer than {limit} ms"))
        .hint("do less work, for example on fewer rows, or raise the limit timeout_ms")
        .detail("limit_ms", limit)
}

/// Returns a check for whether compiling, which starts now, must stop. Dropping its work takes up to a third of the
/// time spent so far: that time is kept free before the deadline.
pub(crate) fn stop_of_compiling<'a>(
    limits: &'a Limits,
    cancel: Option<&'a Cancel>,
    deadline: Option<Instant>,
) -> impl Fn() -> bool + 'a {
    let started = Instant::now();
    move || {
        let until = deadline.map(|deadline| deadline.checked_sub(started.elapsed() / 3).unwrap_or(deadline));
        expired(limits, cancel, until).is_some()
    }
}

/// Returns the error of a run that is past its deadline or cancelled during compilation or set-up.
pub(crate) fn expired(limits: &Limits, cancel: Option<&Cancel>, deadline: Option<Instant>) -> Option<Error> {
    if cancel.is_some_and(Cancel::is_cancelled) {
        return Some(Error::new(Reason::Cancelled, "the run was cancelled from outside"));
    }
    deadline.is_some_and(|deadline| Instant::now() >= deadline).then(|| run_timeout(limits))
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
