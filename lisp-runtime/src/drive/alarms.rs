//! Alarms for runs that wait without a thread: the watchdog wakes them at a moment, and when a handle has cancelled them.

use super::watchdog::Watchdog;
use crate::terms::cancel::Cancel;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::{Duration, Instant};

/// How often handles that cancel are looked at.
const CANCEL_STEP: Duration = Duration::from_millis(5);

/// The alarms that are set.
#[derive(Default)]
pub(super) struct Alarms {
    last: u64,
    all: BTreeMap<u64, Set>,
    by_time: BTreeSet<(Instant, u64)>,
    /// Those that a handle can ring before their time.
    cancellable: BTreeSet<u64>,
}

struct Set {
    at: Option<Instant>,
    cancel: Option<Cancel>,
    waker: Waker,
}

impl Alarms {
    fn set(&mut self, set: Set) -> u64 {
        self.last += 1;
        let number = self.last;
        self.by_time.extend(set.at.map(|at| (at, number)));
        self.cancellable.extend(set.cancel.as_ref().map(|_| number));
        self.all.insert(number, set);
        number
    }

    fn remove(&mut self, number: u64) -> Option<Set> {
        let set = self.all.remove(&number)?;
        if let Some(at) = set.at {
            self.by_time.remove(&(at, number));
        }
        self.cancellable.remove(&number);
        Some(set)
    }

    /// Takes the alarms that ring.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Waker> {
        let mut due: Vec<u64> = self.by_time.iter().take_while(|(at, _)| *at <= now).map(|&(_, number)| number).collect();
        let cancelled = |number: &&u64| {
            self.all.get(*number).and_then(|set| set.cancel.as_ref()).is_some_and(Cancel::is_cancelled)
        };
        due.extend(self.cancellable.iter().filter(cancelled));
        due.into_iter().filter_map(|number| self.remove(number)).map(|set| set.waker).collect()
    }

    /// How long until it is to be looked again.
    pub(super) fn next(&self, now: Instant) -> Option<Duration> {
        let first = self.by_time.first().map(|(at, _)| at.saturating_duration_since(now));
        let step = (!self.cancellable.is_empty()).then_some(CANCEL_STEP);
        [first, step].into_iter().flatten().min()
    }
}

/// Wakes somebody, whose panic must not end the thread.
pub(super) fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

/// Wakes a task once, for as long as it is kept.
#[derive(Debug)]
pub struct Alarm {
    number: u64,
    at: Option<Instant>,
}

impl Alarm {
    /// An alarm for this moment, or before that when the handle cancels, within 5 ms. `None` when there is no thread for
    /// alarms, or nothing to wait for.
    pub fn set(at: Option<Instant>, cancel: Option<&Cancel>, waker: &Waker) -> Option<Alarm> {
        if at.is_none() && cancel.is_none() {
            return None;
        }
        let watchdog = Watchdog::of_process()?;
        let mut state = watchdog.state();
        let before = (state.alarms.by_time.first().copied(), state.alarms.cancellable.is_empty());
        let number = state.alarms.set(Set { at, cancel: cancel.cloned(), waker: waker.clone() });
        let is_news = before != (state.alarms.by_time.first().copied(), state.alarms.cancellable.is_empty());
        drop(state);
        if is_news {
            watchdog.rouse();
        }
        Some(Alarm { number, at })
    }

    /// The moment that it is set for.
    pub fn at(&self) -> Option<Instant> {
        self.at
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // What the waker leaves is the executor's: it goes when the lock has gone.
        let removed = Watchdog::of_process().and_then(|watchdog| watchdog.state().alarms.remove(self.number));
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};
    use std::task::Wake;

    struct Tells(Sender<Instant>);

    impl Wake for Tells {
        fn wake(self: Arc<Self>) {
            self.0.send(Instant::now()).unwrap();
            panic!("a test's panic");
        }
    }

    #[test]
    fn an_alarm_rings_once_at_its_time_or_when_cancelled_and_not_when_it_is_gone() {
        let (sender, rung) = channel();
        let waker = Waker::from(Arc::new(Tells(sender)));
        let begun = Instant::now();
        let at = |ms| Some(begun + Duration::from_millis(ms));
        let cancel = Cancel::new();
        let late = Alarm::set(at(60), None, &waker).unwrap();
        let early = Alarm::set(at(20), Some(&cancel), &waker).unwrap();
        drop(Alarm::set(at(10), None, &waker));
        assert!(Alarm::set(None, None, &waker).is_none());
        let first = rung.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(first >= begun + Duration::from_millis(20) && early.at() == at(20));
        let second = rung.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(second >= begun + Duration::from_millis(60));
        drop((late, early));
        let _kept = Alarm::set(at(60_000), Some(&cancel), &waker);
        cancel.cancel();
        rung.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(rung.recv_timeout(Duration::from_millis(20)).is_err());
    }
}
