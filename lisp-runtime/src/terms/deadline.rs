//! Deadlines: when they are, whether they have passed, and the errors that say so.

use super::cancel::Cancel;
use super::limits::Limits;
use lisp_core::{Error, Reason};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The moment a number of milliseconds later; `None` is never.
pub(crate) fn deadline(from: Instant, ms: u64) -> Option<Instant> {
    from.checked_add(Duration::from_millis(ms))
}

/// Where a run that goes on from a record has done again what the record has: from there on its time counts.
#[derive(Debug, Default)]
pub struct ReplayEnd(OnceLock<Instant>);

impl ReplayEnd {
    /// What the record has is done again since this moment. Only the first of several counts.
    pub fn reach(&self, at: Instant) {
        self.0.get_or_init(|| at);
    }

    /// The moment, when it is past.
    pub(crate) fn reached(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}

/// The time of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunTime {
    started: Instant,
    limit_ms: u64,
    /// Of a run that goes on from a record.
    replay: Option<Arc<ReplayEnd>>,
}

impl RunTime {
    /// A replay computes what earlier lives computed within the limit each, and fuel bounds it; this ends one of a record that leads
    /// nowhere.
    pub(crate) const REPLAYS: u64 = 100;

    pub(crate) fn new(started: Instant, limits: &Limits, replay: Option<Arc<ReplayEnd>>) -> Self {
        RunTime { started, limit_ms: limits.timeout_ms, replay }
    }

    /// The most milliseconds that doing again what a record has may take.
    pub(crate) fn replay_ms(limit_ms: u64) -> u64 {
        limit_ms.saturating_mul(Self::REPLAYS)
    }

    /// The moment at which the run is over, as far as is known now; `None` is never.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.replay.as_ref().map(|replay| replay.reached()) {
            None => deadline(self.started, self.limit_ms),
            Some(None) => deadline(self.started, Self::replay_ms(self.limit_ms)),
            Some(Some(at)) => deadline(at, self.limit_ms),
        }
    }

    /// The moment at which what began then is over that may take so long; it counts like the run's own time.
    pub(crate) fn deadline_of(&self, begun: Instant, ms: u64) -> Option<Instant> {
        match self.replay.as_ref().map(|replay| replay.reached()) {
            None => deadline(begun, ms),
            Some(None) => None,
            Some(Some(at)) => deadline(begun.max(at), ms),
        }
    }

    /// The error of a run that is past it.
    pub(crate) fn error(&self, limits: &Limits) -> Error {
        if self.replay.as_ref().is_none_or(|replay| replay.reached().is_some()) {
            return run_timeout(limits);
        }
        let (times, most) = (Self::REPLAYS, Self::replay_ms(self.limit_ms));
        Error::new(
            Reason::Timeout,
            format!("doing again what the record has takes longer than {times} times timeout_ms, {most} ms"),
        )
        .hint("raise the limit timeout_ms for the resumed run (Input::limits_over), or find out why the replay is slow")
        .detail("limit_ms", most)
    }
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
