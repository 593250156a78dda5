//! The clock that programs can ask for the time.

use super::place::Place;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the time comes from. The default is the clock of the system.
#[derive(Clone, Default)]
pub(crate) struct Clock(Option<Arc<Read>>);

/// Tells the time to who asks from this place of a run.
type Read = dyn Fn(&Place) -> i64 + Send + Sync;

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock(host)" } else { "Clock(system)" })
    }
}

impl Clock {
    /// A clock that is told who asks.
    pub(crate) fn of_place(read: impl Fn(&Place) -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Some(Arc::new(read)))
    }

    /// A clock of the host's.
    pub(crate) fn of_host(read: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Some(Arc::new(move |_| read())))
    }

    /// Is it the host's own?
    pub(crate) fn is_of_host(&self) -> bool {
        self.0.is_some()
    }

    /// What it says now, in milliseconds since 1970-01-01T00:00:00Z; `None` when it panics.
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

/// What a run was told: a time, and how often one after the other.
pub type Reading = (i64, u64);

/// The clock of one run: it does not go back, and what it said is kept.
#[derive(Debug)]
pub(crate) struct RunClock {
    clock: Clock,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    /// What is to be told first, the next one last.
    replay: Vec<Reading>,
    readings: Vec<Reading>,
}

impl RunClock {
    /// The most readings that are kept; after that the time stands still, so that a replay gives the same.
    pub(crate) const MOST: usize = 100_000;

    /// A clock that first tells what it told in an earlier run.
    pub(crate) fn new(clock: Clock, replay: &[Reading]) -> RunClock {
        let replay = replay.iter().rev().copied().collect();
        RunClock { clock, told: Mutex::new(Told { replay, readings: Vec::new() }) }
    }

    /// The time, in milliseconds since 1970-01-01T00:00:00Z; `None` when the host's clock panics.
    pub(crate) fn tell(&self, place: &Place) -> Option<i64> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let last = told.readings.last().map(|&(time, _)| time);
        let time = match told.replay.last_mut() {
            Some((time, times)) => {
                let time = *time;
                *times = times.saturating_sub(1);
                if *times == 0 {
                    told.replay.pop();
                }
                time
            }
            None => match last {
                Some(last) if told.readings.len() >= Self::MOST => last,
                last => self.clock.read(place)?.max(last.unwrap_or(i64::MIN)),
            },
        };
        match told.readings.last_mut() {
            Some((last, times)) if *last == time => *times += 1,
            _ => told.readings.push((time, 1)),
        }
        Some(time)
    }

    /// What it told so far.
    pub(crate) fn take(&self) -> Vec<Reading> {
        std::mem::take(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner).readings)
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
        let told: Vec<i64> = (0..4).filter_map(|_| run.tell(&place)).collect();
        assert_eq!(told, [5, 5, 5, 9]);
        let readings = run.take();
        assert_eq!(readings, [(5, 3), (9, 1)]);
        let again = RunClock::new(clock, &readings);
        assert_eq!((0..4).filter_map(|_| again.tell(&place)).collect::<Vec<_>>(), told);
        assert_eq!(again.take(), readings);
    }
}
