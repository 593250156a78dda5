//! Sessions: programs that run one after another and share definitions.

use crate::calls::Interrupt;
use crate::engine::Place;
use crate::errors::of_problem;
use crate::outcome::Outcome;
use ptc_lisp::{Cancel, Input, Problem};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

enum Turns {
    InProcess(Box<ptc_lisp::Session>),
    #[cfg(target_os = "linux")]
    Process(Box<ptc_lisp::sandbox::Session>),
}

/// A session.
#[pyclass(frozen, module = "ptc_lisp._engine")]
pub(crate) struct CoreSession {
    turns: Mutex<Turns>,
    cancel: Cancel,
}

/// The exception of an operation that is not a turn.
fn of_outcome(outcome: &ptc_lisp::Outcome) -> PyErr {
    outcome.problem().map_or_else(|| PyValueError::new_err("the session cannot do this"), of_problem)
}

impl CoreSession {
    pub(crate) fn new(place: &Place, input: Input<'static>, cancel: Cancel, saved: Option<&str>) -> PyResult<Self> {
        let turns = match (place, saved) {
            (Place::InProcess(engine), None) => {
                Turns::InProcess(Box::new(engine.session(input.heartbeat(Interrupt::look_here))))
            }
            (Place::InProcess(engine), Some(text)) => {
                let session = engine
                    .load_session(text, input.heartbeat(Interrupt::look_here))
                    .map_err(|problem| of_problem(&problem))?;
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
        Ok(CoreSession { turns: Mutex::new(turns), cancel })
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
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
        let outcome = py.detach(|| {
            interrupt.during(|| match &mut *self.turns() {
                Turns::InProcess(session) => session.eval(source),
                #[cfg(target_os = "linux")]
                Turns::Process(session) => session.eval(source),
            })
        });
        match interrupt.take() {
            Some(error) => Err(error),
            None => Ok(Outcome::new(outcome, source.into())),
        }
    }

    fn save(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| both!(self.turns(), session => session.save(), outcome => of_outcome(&outcome)))
    }

    fn memory(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| both!(self.turns(), session => session.memory(), outcome => of_outcome(&outcome)))
    }

    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| both!(self.turns(), session => session.undo(), problem => of_problem(&problem)))
    }

    fn fork(&self, py: Python<'_>) -> PyResult<CoreSession> {
        let turns = py.detach(|| match &mut *self.turns() {
            Turns::InProcess(session) => {
                session.fork().map(|fork| Turns::InProcess(Box::new(fork))).map_err(|problem| of_problem(&problem))
            }
            #[cfg(target_os = "linux")]
            Turns::Process(session) => {
                session.fork().map(|fork| Turns::Process(Box::new(fork))).map_err(|outcome| of_outcome(&outcome))
            }
        })?;
        let cancel = match &turns {
            Turns::InProcess(session) => session.cancel_handle().clone(),
            #[cfg(target_os = "linux")]
            Turns::Process(session) => session.cancel_handle().clone(),
        };
        Ok(CoreSession { turns: Mutex::new(turns), cancel })
    }

    #[getter]
    fn names(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| match &mut *self.turns() {
            Turns::InProcess(session) => session.names(),
            #[cfg(target_os = "linux")]
            Turns::Process(session) => session.names().to_vec(),
        })
    }

    /// Ends the turn that is running.
    fn cancel(&self) {
        self.cancel.cancel();
    }
}
