//! Runs that an event loop drives.

use crate::calls::{AsyncCall, Queue};
use crate::closing::detached;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::wakeups::{Hub, Signal};
use ptc_lisp::Cancel;
use pyo3::prelude::*;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A run in progress.
pub(crate) enum Future {
    InProcess(Box<ptc_lisp::RunFuture>),
    #[cfg(target_os = "linux")]
    Process(Box<ptc_lisp::sandbox::SandboxRun>),
}

impl Future {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ptc_lisp::Outcome> {
        match self {
            Future::InProcess(run) => std::future::Future::poll(Pin::new(&mut **run), context),
            #[cfg(target_os = "linux")]
            Future::Process(run) => std::future::Future::poll(Pin::new(&mut **run), context),
        }
    }
}

/// A run that an event loop drives.
#[pyclass(frozen, module = "ptc_lisp._engine")]
pub(crate) struct AsyncRun {
    future: Mutex<Option<Future>>,
    queue: Arc<Queue>,
    signal: Arc<Signal>,
    cancel: Cancel,
    interrupt: Arc<Interrupt>,
    source: Arc<str>,
}

impl AsyncRun {
    pub(crate) fn new(future: Future, cancel: Cancel, hub: Arc<Hub>, number: u64, source: Arc<str>) -> Self {
        let signal = Arc::new(Signal::new(hub, number));
        let interrupt = Interrupt::new(cancel.clone());
        AsyncRun { future: Mutex::new(Some(future)), queue: Arc::default(), signal, cancel, interrupt, source }
    }

    /// Continues the run for a while; `None` if it was closed.
    fn poll_once(&self) -> Option<Poll<ptc_lisp::Outcome>> {
        let mut future = self.future.lock().unwrap_or_else(PoisonError::into_inner);
        let run = future.as_mut()?;
        let waker = Waker::from(self.signal.clone());
        let mut context = Context::from_waker(&waker);
        let poll = || self.signal.quietly(true, || run.poll(&mut context));
        let polled = self.queue.during(|| self.interrupt.during(poll));
        if polled.is_ready() {
            *future = None;
        }
        Some(polled)
    }

    /// Returns the outcome, or raises what ended the run.
    fn ended(&self, polled: Option<Poll<ptc_lisp::Outcome>>) -> PyResult<Option<Outcome>> {
        let Some(Poll::Ready(outcome)) = polled else { return Ok(None) };
        match self.interrupt.take() {
            Some(error) => Err(error),
            None => Ok(Some(Outcome::new(outcome, self.source.clone()))),
        }
    }
}

#[pymethods]
impl AsyncRun {
    /// Computes for about a millisecond. Returns the outcome if the run has ended.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Outcome>> {
        self.ended(detached(py, || self.poll_once())?)
    }

    /// Computes until the run waits or has ended, for a thread that is not that of the event loop.
    fn poll_long(&self, py: Python<'_>) -> PyResult<Option<Outcome>> {
        let polled = detached(py, || {
            loop {
                match self.poll_once() {
                    Some(Poll::Pending) if self.signal.is_woken() && self.queue.is_empty() => {}
                    polled => return polled,
                }
            }
        })?;
        self.ended(polled)
    }

    /// Returns whether the run can continue at once.
    #[getter]
    fn is_woken(&self) -> bool {
        self.signal.is_woken()
    }

    /// Returns whether the next poll may take longer than the event loop should wait.
    #[getter]
    fn is_long(&self) -> bool {
        match &*self.future.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Future::InProcess(run)) => run.is_long(),
            _ => false,
        }
    }

    /// Returns the calls that were started since the last time.
    fn take_calls(&self) -> Vec<AsyncCall> {
        self.queue.take_calls()
    }

    /// Returns the numbers of calls whose results nobody needs any more.
    fn take_dropped(&self) -> Vec<u64> {
        self.queue.take_dropped()
    }

    /// Passes the result of a call. The loop itself continues the run, and is not woken.
    fn reply(&self, py: Python<'_>, call: &Bound<'_, AsyncCall>, result: &Bound<'_, PyAny>) {
        self.signal.quietly(false, || call.get().reply(py, result));
    }

    /// Passes an exception as the error of a call.
    fn fail(&self, py: Python<'_>, call: &Bound<'_, AsyncCall>, error: Bound<'_, PyAny>) {
        self.signal.quietly(false, || call.get().fail(py, error));
    }

    /// Cancels the run.
    fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Ends the run.
    fn close(&self, py: Python<'_>) {
        self.cancel.cancel();
        // The traceback of an exception that nobody will raise may hold this run.
        drop(self.interrupt.take());
        py.detach(|| {
            let run = self.future.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(run);
        });
    }
}
