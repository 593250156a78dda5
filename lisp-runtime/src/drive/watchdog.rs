//! One thread per process that checks the clock for long runs. It sets their flags at the deadline or on cancellation,
//! and wakes runs that wait without a thread. Short runs never use it.

#[cfg(feature = "async")]
use super::alarms::Alarms;
use crate::terms::cancel::Cancel;
use crate::terms::per_process::PerProcess;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How often the thread checks while it watches a run.
const INTERVAL: Duration = Duration::from_millis(1);

struct Watched {
    deadline: Option<Instant>,
    cancel: Cancel,
    flag: Weak<AtomicBool>,
}

#[derive(Default)]
pub(super) struct Watchdog {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    runs: Vec<Watched>,
    /// Whether the thread checks again within [`INTERVAL`] without being woken.
    looks_soon: bool,
    #[cfg(feature = "async")]
    pub(super) alarms: Alarms,
}

/// `None` if the system cannot create the thread; then the clock is only checked between the slices of a run.
static WATCHDOG: PerProcess<Option<Arc<Watchdog>>> = PerProcess::new();

impl Watchdog {
    /// Returns the watchdog of the process, if there is one.
    pub(super) fn of_process() -> Option<&'static Arc<Watchdog>> {
        let watchdog = WATCHDOG.get_or_init(|| {
            let watchdog = Arc::new(Watchdog::default());
            let its_own = Arc::clone(&watchdog);
            thread::Builder::new().name("ptc-lisp-watchdog".into()).spawn(move || its_own.watch()).ok()?;
            Some(watchdog)
        });
        watchdog?.as_ref()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the thread compute its next check again.
    pub(super) fn rouse(&self) {
        self.arrived.notify_one();
    }

    fn watch(&self) {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            state.runs.retain(|run| {
                let Some(flag) = run.flag.upgrade() else { return false };
                let over = run.deadline.is_some_and(|deadline| now >= deadline) || run.cancel.is_cancelled();
                if over {
                    flag.store(true, Ordering::Relaxed);
                }
                !over
            });
            let next = (!state.runs.is_empty()).then_some(INTERVAL);
            #[cfg(feature = "async")]
            let next = {
                let due = state.alarms.take_due(now);
                if !due.is_empty() {
                    // Wakers are foreign code: one may set an alarm.
                    drop(state);
                    due.into_iter().for_each(super::alarms::wake);
                    state = self.state();
                    continue;
                }
                [next, state.alarms.next(now)].into_iter().flatten().min()
            };
            state.looks_soon = next.is_some_and(|next| next <= INTERVAL);
            state = match next {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(next) => self.arrived.wait_timeout(state, next).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

/// Returns a flag that is set at the deadline or when the run is cancelled, for as long as it is held. `None` if
/// nothing can set it.
pub(crate) fn flag(deadline: Option<Instant>, cancel: &Cancel) -> Option<Arc<AtomicBool>> {
    let watchdog = Watchdog::of_process()?;
    let flag = Arc::new(AtomicBool::new(false));
    let watched = Watched { deadline, cancel: cancel.clone(), flag: Arc::downgrade(&flag) };
    let mut state = watchdog.state();
    state.runs.push(watched);
    let looks_soon = state.looks_soon;
    drop(state);
    // Waking the thread takes longer than many runs.
    if !looks_soon {
        watchdog.rouse();
    }
    Some(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_is_set_at_the_deadline_and_when_cancelled() {
        let until_set = |flag: &AtomicBool| {
            let start = Instant::now();
            while !flag.load(Ordering::Relaxed) && start.elapsed() < Duration::from_secs(10) {
                thread::sleep(INTERVAL);
            }
            flag.load(Ordering::Relaxed)
        };
        let start = Instant::now();
        let late = flag(Some(start + Duration::from_millis(20)), &Cancel::new()).unwrap();
        assert!(until_set(&late));
        assert!(start.elapsed() >= Duration::from_millis(20));
        let cancel = Cancel::new();
        let cancelled = flag(None, &cancel).unwrap();
        assert!(!cancelled.load(Ordering::Relaxed));
        cancel.cancel();
        assert!(until_set(&cancelled));
        // The thread watches this one when another is added, with and without a pause in between.
        let _other = flag(None, &Cancel::new()).unwrap();
        for pause in [0, 1, 5] {
            thread::sleep(Duration::from_millis(pause));
            assert!(until_set(&flag(Some(Instant::now()), &Cancel::new()).unwrap()), "after {pause} ms");
        }
    }
}
