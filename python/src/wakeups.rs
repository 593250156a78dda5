//! How runs that are futures wake their event loop: a byte through a socket that the loop reads. No thread of the library
//! ever waits for the interpreter lock.

use pyo3::prelude::*;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs that were woken, for one event loop.
#[pyclass(frozen, module = "ptc_lisp._engine")]
pub(crate) struct Wakeups {
    hub: Arc<Hub>,
    reader: UnixStream,
}

pub(crate) struct Hub {
    woken: Mutex<Vec<u64>>,
    writer: UnixStream,
}

#[pymethods]
impl Wakeups {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Wakeups { hub: Arc::new(Hub { woken: Mutex::default(), writer }), reader })
    }

    /// Returns the descriptor that is readable when a run was woken.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// Returns the numbers of the runs that were woken since the last call.
    fn take(&self) -> Vec<u64> {
        let mut bytes = [0; 64];
        // Nonblocking: an error means that nothing is left.
        while (&self.reader).read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
        std::mem::take(&mut *locked(&self.hub.woken))
    }
}

impl Wakeups {
    pub(crate) fn hub(&self) -> Arc<Hub> {
        self.hub.clone()
    }
}

impl Hub {
    fn push(&self, run: u64) {
        let is_first = {
            let mut woken = locked(&self.woken);
            woken.push(run);
            woken.len() == 1
        };
        if is_first {
            // If the socket is full, it is readable.
            let _ = (&self.writer).write(&[1]);
        }
    }
}

/// Wakes one run.
pub(crate) struct Signal {
    hub: Arc<Hub>,
    run: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_woken: bool,
    /// Whether the one who would be told is looking anyway: the run is polled, or the loop itself passes a reply.
    is_quiet: bool,
}

impl Signal {
    pub(crate) fn new(hub: Arc<Hub>, run: u64) -> Self {
        Signal { hub, run, state: Mutex::default() }
    }

    /// Does work during which wake-ups are only noted.
    pub(crate) fn quietly<T>(&self, resets: bool, work: impl FnOnce() -> T) -> T {
        {
            let mut state = locked(&self.state);
            state.is_quiet = true;
            if resets {
                state.is_woken = false;
            }
        }
        // Also if the work panics: no wake-up may be lost.
        let _quiet = Quiet(&self.state);
        work()
    }

    pub(crate) fn is_woken(&self) -> bool {
        locked(&self.state).is_woken
    }
}

/// Ends the quiet time of a signal.
struct Quiet<'s>(&'s Mutex<State>);

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        locked(self.0).is_quiet = false;
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        Wake::wake_by_ref(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let tells = {
            let mut state = locked(&self.state);
            let was_woken = std::mem::replace(&mut state.is_woken, true);
            !was_woken && !state.is_quiet
        };
        if tells {
            self.hub.push(self.run);
        }
    }
}
