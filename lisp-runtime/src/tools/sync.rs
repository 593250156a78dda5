//! What threads wait on. The model checker has a file like this of its own.

use std::sync::PoisonError;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be woken, at most so long; says whether the time was over.
pub(super) fn wait<'a, T>(
    condvar: &Condvar,
    _mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    most: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, waited) = condvar.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner);
    (guard, waited.timed_out())
}

/// Starts a thread; false when the system gives none.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    std::thread::Builder::new().name("ptc-lisp-tool".into()).spawn(work).is_ok()
}
