//! The end of the interpreter. A thread that takes the interpreter lock then is ended in the middle of native code, which
//! aborts the process. So the package ends its runs first, and calls nothing of Python any more.

use crate::interrupt::Interrupt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::time::{Duration, Instant};

static CLOSING: AtomicBool = AtomicBool::new(false);
/// The number of threads that are in native code and will take the interpreter lock.
static INSIDE: AtomicIsize = AtomicIsize::new(0);

struct Inside;

impl Inside {
    fn enter() -> Option<Self> {
        // First counted, then looked: `close` looks at the count after it has set the flag.
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let inside = Inside;
        (!CLOSING.load(Ordering::SeqCst)).then_some(inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Does work that needs Python on a thread of a run. Returns `None` if the interpreter ends.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _inside = Inside::enter()?;
    Python::try_attach(work)
}

/// Does work of a run without the interpreter lock.
///
/// # Errors
/// Returns an exception if the interpreter ends.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    // Until the lock is held again.
    let _inside =
        Inside::enter().ok_or_else(|| PyRuntimeError::new_err("Python is shutting down; no run can begin"))?;
    Ok(py.detach(work))
}

/// Ends all runs, and waits for them at most two seconds. Later calls of tools fail, and no run begins.
#[pyfunction]
pub(crate) fn close(py: Python<'_>) {
    const LONGEST: Duration = Duration::from_secs(2);
    const STEP: Duration = Duration::from_millis(1);
    CLOSING.store(true, Ordering::SeqCst);
    Interrupt::cancel_all();
    let started = Instant::now();
    while INSIDE.load(Ordering::SeqCst) > 0 && started.elapsed() < LONGEST {
        py.detach(|| std::thread::sleep(STEP));
    }
}

/// Forgets the threads of the parent, which a forked process does not have.
#[pyfunction]
pub(crate) fn forked() {
    INSIDE.store(0, Ordering::SeqCst);
}
