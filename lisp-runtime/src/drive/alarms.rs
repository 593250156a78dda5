//! Alarms for runs that wait without a thread: the watchdog wakes them at a given time, and when they are cancelled.

use crate::terms::cancel::Cancel;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::{Duration, Instant};

/// How often cancel handles are checked.
const CANCEL_STEP: Duration = Duration::from_millis(5);

/// The alarms that are set.
#[derive(Default)]
pub(super) struct Alarms {
    last: u64,
    all: BTreeMap<u64, Set>,
    by_time: BTreeSet<(Instant, u64)>,
    /// Alarms that a cancel handle can trigger early.
    cancellable: BTreeSet<u64>,
}

/// An alarm: when it is due, and what it wakes.
pub(super) struct Set {
    pub(super) at: Option<Instant>,
    pub(super) cancel: Option<Cancel>,
    pub(super) waker: Waker,
}

impl Alarms {
    /// Sets an alarm. Returns its number.
    pub(super) fn set(&mut self, set: Set) -> u64 {
        self.last += 1;
        let number = self.last;
        self.by_time.extend(set.at.map(|at| (at, number)));
        self.cancellable.extend(set.cancel.as_ref().map(|_| number));
        self.all.insert(number, set);
        number
    }

    /// Removes an alarm that was not triggered.
    pub(super) fn remove(&mut self, number: u64) -> Option<Set> {
        let set = self.all.remove(&number)?;
        if let Some(at) = set.at {
            self.by_time.remove(&(at, number));
        }
        self.cancellable.remove(&number);
        Some(set)
    }

    /// Returns whether an alarm is still set.
    pub(super) fn is_set(&self, number: u64) -> bool {
        self.all.contains_key(&number)
    }

    /// Returns what the thread waits for. If this changes, the thread must check again.
    pub(super) fn first(&self) -> (Option<(Instant, u64)>, bool) {
        (self.by_time.first().copied(), self.cancellable.is_empty())
    }

    /// Removes the alarms that are due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Waker> {
        let mut due: Vec<u64> =
            self.by_time.iter().take_while(|(at, _)| *at <= now).map(|&(_, number)| number).collect();
        let cancelled =
            |number: &&u64| self.all.get(*number).and_then(|set| set.cancel.as_ref()).is_some_and(Cancel::is_cancelled);
        due.extend(self.cancellable.iter().filter(cancelled));
        due.into_iter().filter_map(|number| self.remove(number)).map(|set| set.waker).collect()
    }

    /// Returns the time until the next check.
    pub(super) fn next(&self, now: Instant) -> Option<Duration> {
        let first = self.by_time.first().map(|(at, _)| at.saturating_duration_since(now));
        let step = (!self.cancellable.is_empty()).then_some(CANCEL_STEP);
        [first, step].into_iter().flatten().min()
    }
}

/// Wakes a task. A panic of its waker does not end the thread.
pub(super) fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
