//! Synchronization primitives. The model checker replaces this file with its own.

use std::sync::PoisonError;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be woken, for at most the given time. Returns whether the time is over.
pub(super) fn wait<'a, T>(
    condvar: &Condvar,
    _mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    max: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, waited) = condvar.wait_timeout(guard, max).unwrap_or_else(PoisonError::into_inner);
    (guard, waited.timed_out())
}

/// Starts a thread. Returns false if the system cannot create one.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    std::thread::Builder::new().name("ptc-lisp-tool".into()).spawn(work).is_ok()
}
