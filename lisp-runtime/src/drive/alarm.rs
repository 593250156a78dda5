//! An alarm for a task that waits within a run.

use super::alarms::Set;
use super::watchdog::Watchdog;
use crate::terms::cancel::Cancel;
use std::task::Waker;
use std::time::Instant;

/// Wakes a task once, while it is held.
#[derive(Debug)]
pub struct Alarm {
    number: u64,
    at: Option<Instant>,
}

impl Alarm {
    /// Sets an alarm for a moment, or earlier when the handle is cancelled, within 5 ms. Returns `None` if there is no
    /// thread for alarms, or nothing to wait for.
    pub fn set(at: Option<Instant>, cancel: Option<&Cancel>, waker: &Waker) -> Option<Alarm> {
        if at.is_none() && cancel.is_none() {
            return None;
        }
        let watchdog = Watchdog::of_process()?;
        let mut state = watchdog.state();
        let before = state.alarms.first();
        let number = state.alarms.set(Set { at, cancel: cancel.cloned(), waker: waker.clone() });
        let is_news = before != state.alarms.first();
        drop(state);
        if is_news {
            watchdog.rouse();
        }
        Some(Alarm { number, at })
    }

    /// Returns whether the alarm is still set.
    pub fn is_set(&self) -> bool {
        Watchdog::of_process().is_some_and(|watchdog| watchdog.state().alarms.is_set(self.number))
    }

    /// Returns the moment for which it is set.
    pub fn at(&self) -> Option<Instant> {
        self.at
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // Dropping the waker may run code of the executor, so it happens after the lock is released.
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
    use std::time::Duration;

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
        let started = Instant::now();
        let at = |ms| Some(started + Duration::from_millis(ms));
        let cancel = Cancel::new();
        let late = Alarm::set(at(60), None, &waker).unwrap();
        let early = Alarm::set(at(20), Some(&cancel), &waker).unwrap();
        drop(Alarm::set(at(10), None, &waker));
        assert!(Alarm::set(None, None, &waker).is_none());
        let first = rung.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(first >= started + Duration::from_millis(20) && early.at() == at(20));
        assert!(!early.is_set());
        let second = rung.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(second >= started + Duration::from_millis(60));
        drop((late, early));
        let _kept = Alarm::set(at(60_000), Some(&cancel), &waker);
        cancel.cancel();
        rung.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(rung.recv_timeout(Duration::from_millis(20)).is_err());
    }
}
