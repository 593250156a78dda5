//! Sessions: turn after turn on one machine.

use super::engine::{Engine, to_end};
use super::input::Input;
use super::program::Program;
use super::run::Run;
use crate::terms::cancel::Cancel;
use crate::terms::outcome::{Outcome, Phase, Problem, Verdict};
use crate::terms::run_view::RunView;
use lisp_core::{Error, Reason};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A conversation with one machine: what a turn defines, functions among it, is there in the next; `*1 *2 *3` are
/// the results of the last turns, `(return v)` included. A turn that fails, for whatever reason, or ends with `(fail v)`
/// leaves definitions and results as they were.
///
/// ```
/// use lisp_runtime::{Engine, Input};
/// let mut session = Engine::default().session(Input::new());
/// session.eval("(defn twice [x] (* 2 x))");
/// assert_eq!(session.eval("(twice 21)").value::<i64>()?, 42);
/// assert_eq!(session.eval("(inc *1)").value::<i64>()?, 43);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    engine: Engine,
    input: Input<'static>,
    cancel: Cancel,
    /// For runs in a process without threads: see [`Setting::alarm`](crate::drive::setting::Setting::alarm).
    pub(crate) alarm: Option<Arc<AtomicBool>>,
    /// Absent until the first turn, and again after a turn that broke the machine.
    run: Option<Run>,
    /// The turns so far.
    turns: u64,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Engine {
    /// Begins a session: definitions, functions among them, stay from turn to turn.
    pub fn session(&self, input: Input<'static>) -> Session {
        Session::new(self.clone(), input)
    }
}

impl Session {
    pub(crate) fn new(engine: Engine, mut input: Input<'static>) -> Self {
        let cancel = input.cancel.get_or_insert_default().clone();
        Session { engine, input, cancel, alarm: None, run: None, turns: 0 }
    }

    /// Runs one more program.
    pub fn eval(&mut self, source: &str) -> Outcome {
        let engine = self.engine.clone();
        self.eval_since(Instant::now(), source, &mut |run| to_end(run, &engine))
    }

    /// Runs one more program as `drive` says.
    pub(crate) fn eval_since(
        &mut self,
        started: Instant,
        source: &str,
        drive: &mut dyn FnMut(&mut Run) -> Outcome,
    ) -> Outcome {
        self.turns = self.turns.saturating_add(1);
        let limits = self.engine.limits_for(&self.input);
        let view = self.engine.view(&self.input, started);
        let program = self.engine.compile_seen(&view, started, source, &limits, Some(&self.cancel));
        let turn = program.and_then(|program| self.turn(started, &program, &view));
        let mut run = match turn {
            Ok(run) => run,
            Err(problem) => return view.ended(Outcome::of_problem(problem, limits)),
        };
        let outcome = drive(&mut run);
        if outcome.verdict() != Verdict::HostFault && !run.is_set_up() {
            self.run = Some(run);
        }
        outcome
    }

    /// The machine, with the program loaded.
    fn turn(&mut self, started: Instant, program: &Program, view: &RunView) -> Result<Run, Box<Problem>> {
        let Some(mut run) = self.run.take() else {
            if self.input.journal.is_some() {
                return Err(not_recorded());
            }
            let mut setting = self.engine.setting(&self.input, view.clone())?;
            setting.alarm.clone_from(&self.alarm);
            setting.makes.memory = false;
            let mut run = Run::set_up(started, setting, program, &self.input, self.turns)?;
            run.keeps_history = true;
            return Ok(run);
        };
        match run.next_turn(started, self.turns, program, view.clone()) {
            Ok(()) => Ok(run),
            Err(problem) => {
                self.run = Some(run);
                Err(problem)
            }
        }
    }

    /// The definitions as they are now, as a JSON object for [`Input::memory`]: of this session's next process, for
    /// example. Functions are left out. Nothing is changed, whatever comes of it. Before the first turn it is the memory that
    /// the session was given.
    ///
    /// # Errors
    /// `result_limit_exceeded` when the text is longer than `result_bytes`, `type_error` when two keys of a map would become
    /// one in JSON, with the name of the definition; `timeout` and `cancelled`.
    pub fn memory(&mut self) -> Result<String, Box<Problem>> {
        self.memory_since(Instant::now())
    }

    pub(crate) fn memory_since(&mut self, started: Instant) -> Result<String, Box<Problem>> {
        match &mut self.run {
            Some(run) => run.memory(started),
            None => Ok(self.input.memory_text().unwrap_or("{}").to_owned()),
        }
    }

    /// A handle that ends the turn that runs. Once used it ends every later turn too, until [`Cancel::reset`].
    pub fn cancel_handle(&self) -> &Cancel {
        &self.cancel
    }

    /// The names that are defined, in order. Before the first turn they are those of the memory that the session was given;
    /// set-up programs run with the first turn.
    pub fn names(&mut self) -> Vec<String> {
        let mut names: Vec<String> = match &mut self.run {
            Some(run) => {
                run.driver.machine.with_definitions(|_, all| all.iter().map(|(name, _)| (*name).to_owned()).collect())
            }
            None => self.input.memory_names(),
        };
        names.sort_unstable();
        names
    }
}

/// The error of a session with a recording.
pub(crate) fn not_recorded() -> Box<Problem> {
    let error = Error::new(Reason::RuntimeError, "a session is not recorded")
        .hint("record the run of one program, with Engine::run or Engine::start");
    Box::new(Problem::new(error, Phase::Setup))
}
