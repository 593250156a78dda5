//! One thread for the whole process that looks at the clock for the runs that take long: it sets their flags at the
//! deadline, or when they are cancelled. Short runs never meet it.

use crate::terms::cancel::Cancel;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How often the thread looks, while there is a run to look after.
const INTERVAL: Duration = Duration::from_millis(1);

struct Watched {
    deadline: Option<Instant>,
    cancel: Cancel,
    flag: Weak<AtomicBool>,
}

#[derive(Default)]
struct Watchdog {
    runs: Mutex<Vec<Watched>>,
    arrived: Condvar,
}

/// `None` when the system gives no thread: then the clock is looked at between the slices of a run only.
static WATCHDOG: LazyLock<Option<Arc<Watchdog>>> = LazyLock::new(|| {
    let watchdog = Arc::new(Watchdog::default());
    let its_own = Arc::clone(&watchdog);
    thread::Builder::new().name("ptc-lisp-watchdog".into()).spawn(move || its_own.watch()).ok()?;
    Some(watchdog)
});

impl Watchdog {
    fn watch(&self) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            runs.retain(|run| {
                let Some(flag) = run.flag.upgrade() else { return false };
                let over = run.deadline.is_some_and(|deadline| now >= deadline) || run.cancel.is_cancelled();
                if over {
                    flag.store(true, Ordering::Relaxed);
                }
                !over
            });
            runs = if runs.is_empty() {
                self.arrived.wait(runs).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.arrived.wait_timeout(runs, INTERVAL).unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }
}

/// A flag that is set at the deadline or when the run is cancelled, for as long as somebody holds it. `None` when
/// nothing can set it.
pub(crate) fn flag(deadline: Option<Instant>, cancel: &Cancel) -> Option<Arc<AtomicBool>> {
    let watchdog = WATCHDOG.as_ref()?;
    let flag = Arc::new(AtomicBool::new(false));
    let watched = Watched { deadline, cancel: cancel.clone(), flag: Arc::downgrade(&flag) };
    watchdog.runs.lock().unwrap_or_else(PoisonError::into_inner).push(watched);
    watchdog.arrived.notify_one();
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
    }
}
