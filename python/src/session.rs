//! Sessions: programs that run one after another and share definitions.

use crate::calls::ToolCall;
use crate::closing::detached;
use crate::engine::Place;
use crate::errors::of_problem;
use crate::interrupt::{Interrupt, Serving, id_of};
use crate::outcome::Outcome;
use ptc_lisp::{Cancel, Input, Problem};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

enum Turns {
    InProcess(Box<ptc_lisp::Session>),
    #[cfg(target_os = "linux")]
    Process(Box<ptc_lisp::sandbox::Session>),
}

/// A session.
#[pyclass(frozen, module = "ptc_lisp._engine")]
pub(crate) struct CoreSession {
    turns: Mutex<Turns>,
    /// The thread that runs a turn.
    runner: Mutex<Option<ThreadId>>,
    cancel: Cancel,
}

/// The exception of an operation that is not a turn.
fn of_outcome(outcome: &ptc_lisp::Outcome) -> PyErr {
    outcome.problem().map_or_else(|| PyValueError::new_err("the session cannot do this"), of_problem)
}

impl CoreSession {
    pub(crate) fn new(place: &Place, input: Input<'static>, cancel: Cancel, saved: Option<&str>) -> PyResult<Self> {
        let turns = match (place, saved) {
            (Place::InProcess(engine), None) => Turns::InProcess(Box::new(engine.session(input))),
            (Place::InProcess(engine), Some(text)) => {
                let session = engine.load_session(text, input).map_err(|problem| of_problem(&problem))?;
                Turns::InProcess(Box::new(session))
            }
            #[cfg(target_os = "linux")]
            (Place::Process(sandbox), None) => Turns::Process(Box::new(sandbox.session(input))),
            #[cfg(target_os = "linux")]
            (Place::Process(sandbox), Some(text)) => {
                let session = sandbox.load_session(text, input).map_err(|outcome| of_outcome(&outcome))?;
                Turns::Process(Box::new(session))
            }
        };
        Ok(CoreSession { turns: Mutex::new(turns), runner: Mutex::default(), cancel })
    }

    /// Waits until the session is free. A tool of the running turn would wait for itself.
    fn turns(&self) -> PyResult<MutexGuard<'_, Turns>> {
        let runner = *self.runner();
        // Calls of workers are served on other threads.
        if runner.is_some() && (runner == Some(std::thread::current().id()) || Serving::is_of(&self.cancel)) {
            return Err(PyRuntimeError::new_err(
                "the session is running a turn; a tool cannot use its own session, open another with engine.session()",
            ));
        }
        Ok(self.turns.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn runner(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a turn on this thread.
    fn turn(&self, source: &str) -> PyResult<ptc_lisp::Outcome> {
        let mut turns = self.turns()?;
        *self.runner() = Some(std::thread::current().id());
        let outcome = match &mut *turns {
            Turns::InProcess(session) => session.eval(source),
            #[cfg(target_os = "linux")]
            Turns::Process(session) => session.eval(source),
        };
        *self.runner() = None;
        Ok(outcome)
    }
}

/// Calls the same method of both kinds of sessions.
macro_rules! both {
    ($turns:expr, $session:ident => $call:expr, $failed:ident => $error:expr) => {
        match &mut *$turns {
            Turns::InProcess($session) => $call.map_err(|problem: Box<Problem>| of_problem(&problem)),
            #[cfg(target_os = "linux")]
            Turns::Process($session) => $call.map_err(|$failed| $error),
        }
    };
}

#[pymethods]
impl CoreSession {
    /// Forgets that an earlier turn was cancelled.
    fn reset(&self) {
        self.cancel.reset();
    }

    /// Runs one more program, unless the session was cancelled since the last reset.
    fn run(&self, py: Python<'_>, source: &str) -> PyResult<Outcome> {
        let interrupt = Interrupt::new(self.cancel.clone());
        let outcome = detached(py, || interrupt.during(|| self.turn(source)))?;
        match interrupt.take() {
            Some(error) => Err(error),
            None => Ok(Outcome::new(outcome?, source.into())),
        }
    }

    fn save(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || both!(self.turns()?, session => session.save(), outcome => of_outcome(&outcome)))?
    }

    fn memory(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || both!(self.turns()?, session => session.memory(), outcome => of_outcome(&outcome)))?
    }

    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || both!(self.turns()?, session => session.undo(), problem => of_problem(&problem)))?
    }

    fn fork(&self, py: Python<'_>) -> PyResult<CoreSession> {
        let turns = detached(py, || match &mut *self.turns()? {
            Turns::InProcess(session) => {
                session.fork().map(|fork| Turns::InProcess(Box::new(fork))).map_err(|problem| of_problem(&problem))
            }
            #[cfg(target_os = "linux")]
            Turns::Process(session) => {
                session.fork().map(|fork| Turns::Process(Box::new(fork))).map_err(|outcome| of_outcome(&outcome))
            }
        })??;
        let cancel = match &turns {
            Turns::InProcess(session) => session.cancel_handle().clone(),
            #[cfg(target_os = "linux")]
            Turns::Process(session) => session.cancel_handle().clone(),
        };
        Ok(CoreSession { turns: Mutex::new(turns), runner: Mutex::default(), cancel })
    }

    #[getter]
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        detached(py, || {
            Ok(match &mut *self.turns()? {
                Turns::InProcess(session) => session.names(),
                #[cfg(target_os = "linux")]
                Turns::Process(session) => session.names().to_vec(),
            })
        })?
    }

    /// Returns whether a call is of the turn that is running.
    fn has_call(&self, call: &Bound<'_, ToolCall>) -> bool {
        self.runner().is_some() && id_of(call.get().0.cancel_handle()) == id_of(&self.cancel)
    }

    /// Ends the turn that is running.
    fn cancel(&self) {
        self.cancel.cancel();
    }
}
