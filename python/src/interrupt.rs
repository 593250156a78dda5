//! Exceptions that end a run from outside, such as `KeyboardInterrupt` and `SystemExit`: they cancel it, and are raised again
//! when it has ended.

use crate::closing;
use ptc_lisp::Cancel;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs that have not ended, by their cancel handles. Locked only by threads that hold the interpreter lock, so that it
/// is free after a fork.
static RUNS: LazyLock<Mutex<HashMap<usize, Weak<Interrupt>>>> = LazyLock::new(Mutex::default);

thread_local! {
    static INTERRUPT: RefCell<Option<Arc<Interrupt>>> = const { RefCell::new(None) };
    static SERVING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Returns what identifies a run: the address of the flag of its cancel handle.
pub(crate) fn id_of(cancel: &Cancel) -> usize {
    Arc::as_ptr(&cancel.flag()).addr()
}

/// Returns whether an exception is not for the program: it ends the run.
pub(crate) fn ends_the_run(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py)
}

/// The exception that ends a run, if there is one.
pub(crate) struct Interrupt {
    cancel: Cancel,
    error: Mutex<Option<PyErr>>,
}

impl Interrupt {
    pub(crate) fn new(cancel: Cancel) -> Arc<Self> {
        let made = Arc::new(Interrupt { cancel, error: Mutex::new(None) });
        locked(&RUNS).insert(id_of(&made.cancel), Arc::downgrade(&made));
        made
    }

    /// Ends the run that a handle cancels, on whatever thread.
    pub(crate) fn raise_for(cancel: &Cancel, error: PyErr) {
        let run = locked(&RUNS).get(&id_of(cancel)).and_then(Weak::upgrade);
        if let Some(interrupt) = run {
            interrupt.raise(error);
        }
    }

    /// Ends the run of this thread, if it has one.
    pub(crate) fn raise_here(error: PyErr) {
        if let Some(interrupt) = INTERRUPT.with_borrow(Clone::clone) {
            interrupt.raise(error);
        }
    }

    /// Cancels the run and keeps the first exception.
    fn raise(&self, error: PyErr) {
        self.cancel.cancel();
        locked(&self.error).get_or_insert(error);
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        locked(&self.error).take()
    }

    /// Looks at the signals that have arrived for the run of this thread, and ends it if one of them raises.
    pub(crate) fn look_here() {
        if let Some(interrupt) = INTERRUPT.with_borrow(Clone::clone)
            && let Some(Err(error)) = closing::attached(|py| py.check_signals())
        {
            interrupt.raise(error);
        }
    }

    /// Does work whose tools may be interrupted. Runs may be nested: a tool may run another program.
    pub(crate) fn during<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let before = INTERRUPT.replace(Some(self.clone()));
        let done = work();
        INTERRUPT.set(before);
        done
    }

    /// Cancels all runs.
    pub(crate) fn cancel_all() {
        let runs: Vec<_> = locked(&RUNS).values().filter_map(Weak::upgrade).collect();
        runs.iter().for_each(|run| run.cancel.cancel());
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        let mut runs = locked(&RUNS);
        let id = id_of(&self.cancel);
        // The next turn of a session has the same handle, and may have begun.
        if runs.get(&id).is_some_and(|run| run.strong_count() == 0) {
            runs.remove(&id);
        }
    }
}

/// Marks this thread as one that serves a call of a run.
pub(crate) struct Serving;

impl Serving {
    pub(crate) fn of(call: &ptc_lisp::ToolCall) -> Self {
        SERVING.with_borrow_mut(|serving| serving.push(id_of(call.cancel_handle())));
        Serving
    }

    /// Returns whether this thread serves a call of the run that a handle cancels.
    pub(crate) fn is_of(cancel: &Cancel) -> bool {
        SERVING.with_borrow(|serving| serving.contains(&id_of(cancel)))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        SERVING.with_borrow_mut(Vec::pop);
    }
}
