//! Sessions: programs that run one after another and share definitions.

use crate::calls::ToolCall;
use crate::closing::{self, detached};
use crate::engine::Place;
use crate::errors::of_problem;
use crate::interrupt::{Interrupt, Serving, id_of};
use crate::outcome::Outcome;
use ptc_lisp::{Cancel, Input, Problem};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::ThreadId;
use std::time::Duration;

enum Turns {
    InProcess(Box<ptc_lisp::Session>),
    #[cfg(target_os = "linux")]
    Process(Box<ptc_lisp::sandbox::Session>),
}

/// A session.
#[pyclass(frozen, module = "ptc_lisp._engine")]
pub(crate) struct CoreSession {
    turns: Mutex<Turns>,
    queue: Mutex<Queue>,
    /// The handle of the turn that is running.
    cancel: Cancel,
}

/// The turns that have not ended.
#[derive(Default)]
struct Queue {
    next: u64,
    /// Whether each was cancelled before it began.
    waiting: BTreeMap<u64, bool>,
    next_ticket: u64,
    /// Those that wait for the session, in their order.
    tickets: BTreeSet<u64>,
    running: Option<(u64, ThreadId)>,
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
        Ok(CoreSession { turns: Mutex::new(turns), queue: Mutex::default(), cancel })
    }

    /// Waits until the session is free, in the order of the calls, or a signal raises. A tool of the running turn would wait
    /// for itself.
    fn turns(&self) -> PyResult<MutexGuard<'_, Turns>> {
        self.turns_for(None)
    }

    /// As `turns`, for a turn that may be cancelled while it waits.
    fn turns_for(&self, turn: Option<u64>) -> PyResult<MutexGuard<'_, Turns>> {
        let ticket = {
            let mut queue = self.queue();
            let runner = queue.running.map(|(_, thread)| thread);
            // Calls of workers are served on other threads.
            if runner.is_some() && (runner == Some(std::thread::current().id()) || Serving::is_of(&self.cancel)) {
                return Err(PyRuntimeError::new_err(
                    "the session is running a turn; a tool cannot use its own session, open another with engine.session()",
                ));
            }
            queue.next_ticket += 1;
            let ticket = queue.next_ticket;
            queue.tickets.insert(ticket);
            ticket
        };
        let turns = self.wait(ticket, turn);
        self.queue().tickets.remove(&ticket);
        turns
    }

    fn wait(&self, ticket: u64, turn: Option<u64>) -> PyResult<MutexGuard<'_, Turns>> {
        const LONGEST: Duration = Duration::from_millis(10);
        let mut pause = Duration::from_micros(100);
        loop {
            let is_next = {
                let queue = self.queue();
                if turn.is_some_and(|turn| queue.waiting.get(&turn) == Some(&true)) {
                    return Err(PyRuntimeError::new_err("the turn was cancelled before it began"));
                }
                queue.tickets.first() == Some(&ticket)
            };
            match self.turns.try_lock() {
                Ok(turns) if is_next => return Ok(turns),
                Err(TryLockError::Poisoned(poisoned)) if is_next => return Ok(poisoned.into_inner()),
                _ => {}
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST);
            closing::attached(|py| py.check_signals()).unwrap_or_else(|| Err(shutting_down()))?;
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a turn on this thread. Returns what may have ended it, too.
    fn turn(&self, source: &str, number: u64) -> PyResult<(ptc_lisp::Outcome, Arc<Interrupt>)> {
        let turns = self.turns_for(Some(number));
        let mut turns = {
            let mut queue = self.queue();
            let is_cancelled = queue.waiting.remove(&number).unwrap_or(false);
            let turns = turns?;
            queue.running = Some((number, std::thread::current().id()));
            // An earlier turn may have been cancelled.
            self.cancel.reset();
            if is_cancelled {
                self.cancel.cancel();
            }
            turns
        };
        let interrupt = closing::attached(|_| Interrupt::new(self.cancel.clone()));
        let ended = interrupt.map(|interrupt| {
            let outcome = interrupt.during(|| match &mut *turns {
                Turns::InProcess(session) => session.eval(source),
                #[cfg(target_os = "linux")]
                Turns::Process(session) => session.eval(source),
            });
            (outcome, interrupt)
        });
        self.queue().running = None;
        ended.ok_or_else(shutting_down)
    }
}

fn shutting_down() -> PyErr {
    PyRuntimeError::new_err("Python is shutting down")
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
    /// Returns the number of a turn, with which it can be cancelled before it begins.
    fn begin(&self) -> u64 {
        let mut queue = self.queue();
        queue.next += 1;
        let number = queue.next;
        queue.waiting.insert(number, false);
        number
    }

    /// Runs one more program, when the turns before it have ended.
    fn run(&self, py: Python<'_>, source: &str, turn: u64) -> PyResult<Outcome> {
        let (outcome, interrupt) = detached(py, || self.turn(source, turn))??;
        match interrupt.take() {
            Some(error) => Err(error),
            None => Ok(Outcome::new(outcome, source.into())),
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
        Ok(CoreSession { turns: Mutex::new(turns), queue: Mutex::default(), cancel })
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

    /// Returns the number of those that wait for the session.
    #[getter]
    fn waiting(&self) -> usize {
        self.queue().tickets.len()
    }

    /// Returns whether a call is of the turn that is running.
    fn has_call(&self, call: &Bound<'_, ToolCall>) -> bool {
        self.queue().running.is_some() && id_of(call.get().0.cancel_handle()) == id_of(&self.cancel)
    }

    /// Ends the turn that is running, or the one with a number, whether it is running or waits.
    #[pyo3(signature = (turn=None))]
    fn cancel(&self, turn: Option<u64>) {
        let mut queue = self.queue();
        if queue.running.is_some_and(|(running, _)| turn.is_none_or(|turn| turn == running)) {
            self.cancel.cancel();
        } else if let Some(is_cancelled) = turn.and_then(|turn| queue.waiting.get_mut(&turn)) {
            *is_cancelled = true;
        }
    }
}
