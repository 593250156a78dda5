//! The clock that programs can read.

use super::place::Place;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of time. The default is the system clock.
#[derive(Clone, Default)]
pub(crate) struct Clock(Option<Arc<Read>>);

/// Returns the time for an effect of a run.
type Read = dyn Fn(&Place) -> i64 + Send + Sync;

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock(host)" } else { "Clock(system)" })
    }
}

impl Clock {
    /// Creates a clock that knows the effect that reads it.
    pub(crate) fn of_place(read: impl Fn(&Place) -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Some(Arc::new(read)))
    }

    /// Creates a clock from the host's closure.
    pub(crate) fn of_host(read: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Some(Arc::new(move |_| read())))
    }

    /// Returns whether the clock was set by the host.
    pub(crate) fn is_of_host(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the time in milliseconds since 1970-01-01T00:00:00Z, or `None` if the clock panics.
    pub(crate) fn read(&self, place: &Place) -> Option<i64> {
        match &self.0 {
            Some(read) => catch_unwind(AssertUnwindSafe(|| read(place))).ok(),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Some(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
        }
    }
}

/// A clock reading of a run: the time, and how many times in a row it was returned.
pub type Reading = (i64, u64);

/// The clock of one run. It never goes back, and keeps its readings.
#[derive(Debug)]
pub(crate) struct RunClock {
    clock: Clock,
    readings: Mutex<Readings>,
}

#[derive(Debug, Default)]
struct Readings {
    /// Readings to replay; the next one is last.
    replay: Vec<Reading>,
    made: Vec<Reading>,
}

impl RunClock {
    /// The maximum number of readings that are kept. After that the time is fixed, so that a replay is the same.
    pub(crate) const MAX: usize = 100_000;

    /// Creates a clock that first replays the readings of an earlier run.
    pub(crate) fn new(clock: Clock, replay: &[Reading]) -> RunClock {
        let replay = replay.iter().rev().copied().collect();
        RunClock { clock, readings: Mutex::new(Readings { replay, made: Vec::new() }) }
    }

    /// Returns the time in milliseconds since 1970-01-01T00:00:00Z, or `None` if the host's clock panics.
    pub(crate) fn tell(&self, place: &Place) -> Option<i64> {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let last = readings.made.last().map(|&(time, _)| time);
        let time = match readings.replay.last_mut() {
            Some((time, times)) => {
                let time = *time;
                *times = times.saturating_sub(1);
                if *times == 0 {
                    readings.replay.pop();
                }
                time
            }
            None => match last {
                Some(last) if readings.made.len() >= Self::MAX => last,
                last => self.clock.read(place)?.max(last.unwrap_or(i64::MIN)),
            },
        };
        match readings.made.last_mut() {
            Some((last, times)) if *last == time => *times += 1,
            _ => readings.made.push((time, 1)),
        }
        Some(time)
    }

    /// Takes the readings so far.
    pub(crate) fn take(&self) -> Vec<Reading> {
        std::mem::take(&mut self.readings.lock().unwrap_or_else(PoisonError::into_inner).made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    #[test]
    fn it_does_not_go_back_and_is_replayed() {
        let times = [5, 5, 3, 9];
        let next = AtomicI64::new(0);
        let clock = Clock::of_host(move || times[next.fetch_add(1, Ordering::Relaxed) as usize % 4]);
        let (run, place) = (RunClock::new(clock.clone(), &[]), Place::default());
        let times: Vec<i64> = (0..4).filter_map(|_| run.tell(&place)).collect();
        assert_eq!(times, [5, 5, 5, 9]);
        let readings = run.take();
        assert_eq!(readings, [(5, 3), (9, 1)]);
        let again = RunClock::new(clock, &readings);
        assert_eq!((0..4).filter_map(|_| again.tell(&place)).collect::<Vec<_>>(), times);
        assert_eq!(again.take(), readings);
    }
}
