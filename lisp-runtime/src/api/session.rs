//! Sessions: several programs, one after another, on one machine.

use super::engine::Engine;
use super::input::Input;
use super::program::Program;
use super::run::Run;
use super::saved::{SavedText, text_of};
use super::turns::nothing_to_undo;
use crate::drive::setting::Setting;
use crate::terms::cancel::Cancel;
use crate::terms::limits::bytes;
use crate::terms::outcome::{Outcome, Phase, Problem};
use crate::terms::run_view::RunView;
use lisp_core::{Error, Reason};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Evaluates programs one after another, with shared definitions.
///
/// What a program (a *turn*) defines, including functions, is available in later turns. `*1 *2 *3` are the results of
/// the last turns, also those of `(return v)`. A turn that fails or ends with `(fail v)` leaves definitions and results
/// unchanged.
///
/// ```
/// use lisp_runtime::{Engine, Input};
/// let mut session = Engine::default().session(Input::new());
/// session.eval("(defn twice [x] (* 2 x))");
/// assert_eq!(session.eval("(twice 21)").value::<i64>()?, 42);
/// assert_eq!(session.eval("(inc *1)").value::<i64>()?, 43);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A session is a plain value that owns its machine; dropping it ends it. It can be copied ([`Session::fork`]), undone
/// turn by turn ([`Session::undo`]), and saved as text ([`Session::save`], [`Engine::load_session`]).
pub struct Session {
    engine: Engine,
    input: Input<'static>,
    cancel: Cancel,
    /// The text from which the session was loaded; it then has no set-up.
    origin: Option<Arc<str>>,
    /// The current definitions as text, once they were asked for; shared by forks.
    text: Option<Arc<str>>,
    /// For runs in a process without threads; see [`Setting::alarm`](crate::drive::setting::Setting::alarm).
    pub(crate) alarm: Option<Arc<AtomicBool>>,
    /// Absent until the first turn, and after a turn that broke the machine.
    run: Option<Run>,
    /// The number of turns so far.
    turns: u64,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts a session. Definitions, including functions, stay from turn to turn.
    pub fn session(&self, input: Input<'static>) -> Session {
        Session::new(self.clone(), input)
    }

    /// Loads a saved session, with its definitions and the results of its last turns.
    ///
    /// The data is not part of the text and comes from the input, as do the options of the session. The input's set-up
    /// programs, memory and history are ignored: their results are in the text. Nothing is evaluated again.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// let engine = Engine::default();
    /// let mut session = engine.session(Input::new());
    /// session.eval("(def rate 0.5) (defn half [x] (* x rate))");
    /// let text = session.save()?;
    /// let mut later = engine.load_session(&text, Input::new())?;
    /// assert_eq!(later.eval("(half 42)").value::<f64>()?, 21.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `parse_error` with the line: the text is not a saved session, or is incomplete.
    /// - `unknown_tool`: a function calls a tool that the engine does not have.
    /// - `session_limit_exceeded` or `memory_exceeded`: the definitions exceed the limits.
    /// - `timeout` or `cancelled`.
    ///
    /// Untrusted texts are safe to load.
    pub fn load_session(&self, text: &str, input: Input<'static>) -> Result<Session, Box<Problem>> {
        let mut session = Session::new(self.clone(), input.for_saved());
        session.begin_from(text)?;
        Ok(session)
    }
}

impl Session {
    pub(crate) fn new(engine: Engine, mut input: Input<'static>) -> Self {
        let cancel = input.cancel.get_or_insert_default().clone();
        Session { engine, input, cancel, origin: None, text: None, alarm: None, run: None, turns: 0 }
    }

    /// Creates the machine from a saved session.
    pub(crate) fn begin_from(&mut self, text: &str) -> Result<(), Box<Problem>> {
        self.origin = Some(text.into());
        self.restore(Instant::now(), &self.unseen())
    }

    /// Runs one more program.
    pub fn eval(&mut self, source: &str) -> Outcome {
        let engine = self.engine.clone();
        self.eval_since(Instant::now(), source, &mut |run| engine.to_end(run))
    }

    /// Runs one more program, driven by `drive`.
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
        self.text = None;
        if run.is_of_use() {
            self.run = Some(run);
        }
        outcome
    }

    /// Returns the machine with the program loaded.
    fn turn(&mut self, started: Instant, program: &Program, view: &RunView) -> Result<Run, Box<Problem>> {
        if self.origin.is_some() {
            self.restore(started, view)?;
        }
        let Some(mut run) = self.run.take() else {
            let setting = self.setting(view)?;
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

    /// Returns the view for work that is not a turn.
    fn unseen(&self) -> RunView {
        RunView::quiet(self.engine.observed())
    }

    fn setting(&self, view: &RunView) -> Result<Setting, Box<Problem>> {
        check(&self.input)?;
        let mut setting = self.engine.setting(&self.input, view.clone())?;
        setting.alarm.clone_from(&self.alarm);
        setting.makes.memory = false;
        setting.gate.in_session = true;
        Ok(setting)
    }

    /// Creates the machine from the text that the session was loaded from, unless it exists.
    fn restore(&mut self, started: Instant, view: &RunView) -> Result<(), Box<Problem>> {
        let (None, Some(origin)) = (&self.run, self.origin.clone()) else { return Ok(()) };
        let setting = self.setting(view)?;
        let saved = SavedText::parse(&origin, bytes(setting.limits.session_bytes))
            .map_err(|error| Box::new(Problem::new(error, Phase::Setup)))?;
        let run = Run::restored(started, setting, &self.input, &saved)?;
        self.turns = self.turns.max(saved.turns);
        (self.run, self.text) = (Some(run), Some(origin));
        Ok(())
    }

    /// Returns the machine between two turns. Before the first turn, runs the set-up programs.
    fn at_rest(
        &mut self,
        started: Instant,
        drive: &mut dyn FnMut(&mut Run) -> Outcome,
    ) -> Result<&mut Run, Box<Problem>> {
        let view = self.unseen();
        self.restore(started, &view)?;
        if self.run.is_none() {
            let nothing = Program::compile("nil", &self.engine.limits_for(&self.input))?;
            let mut run = Run::set_up(started, self.setting(&view)?, &nothing, &self.input, 0)?;
            drive(&mut run).answer?;
            run.keeps_history = true;
            self.run = Some(run);
        }
        match &mut self.run {
            Some(run) => {
                run.renew(started, view);
                Ok(run)
            }
            None => {
                Err(Box::new(Problem::new(Error::new(Reason::HostFault, "the session has no machine"), Phase::Setup)))
            }
        }
    }

    /// Checks what the session was given: that its data is valid, and that its set-up programs compile and call only tools
    /// that exist. Nothing is evaluated, so the names in a set-up program after the first are not checked: earlier ones
    /// may define them.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// let mut session = Engine::default().session(Input::new().setup_source("(def a (incc 1))"));
    /// let problem = session.check().unwrap_err();
    /// assert_eq!((problem.reason().name(), problem.setup), ("unbound_var", Some(0)));
    /// ```
    ///
    /// # Errors
    /// The first error in the input; `timeout` or `cancelled`.
    pub fn check(&mut self) -> Result<(), Box<Problem>> {
        self.check_since(Instant::now())
    }

    pub(crate) fn check_since(&mut self, started: Instant) -> Result<(), Box<Problem>> {
        let view = self.unseen();
        self.restore(started, &view)?;
        if self.run.is_none() {
            let nothing = Program::compile("nil", &self.engine.limits_for(&self.input))?;
            Run::set_up(started, self.setting(&view)?, &nothing, &self.input, 0)?;
        }
        Ok(())
    }

    /// Saves the definitions and the results of the last turns as text, for [`Engine::load_session`].
    ///
    /// Values are saved exactly, and functions with their programs and captured values. Data from the host is included
    /// only where definitions hold parts of it. The session is unchanged, even on error. Before the first turn, the
    /// set-up programs run.
    ///
    /// # Errors
    /// `session_limit_exceeded` when the text is longer than `session_bytes`, with the definition that exceeded it; the
    /// error of a set-up program; `timeout` or `cancelled`.
    pub fn save(&mut self) -> Result<String, Box<Problem>> {
        self.saved().map(|text| text.as_ref().to_owned())
    }

    fn saved(&mut self) -> Result<Arc<str>, Box<Problem>> {
        if let (None, Some(origin)) = (&self.run, &self.origin) {
            return Ok(origin.clone());
        }
        if let Some(text) = &self.text {
            return Ok(text.clone());
        }
        let turns = self.turns;
        let engine = self.engine.clone();
        let run = self.at_rest(Instant::now(), &mut |run| engine.to_end(run))?;
        let parts = [false, true].map(|history| run.saved(history).map_err(|error| run.result_problem(error)));
        let [definitions, history] = parts;
        let text: Arc<str> = text_of(turns, run.set_ups(), &definitions?, &history?).into();
        self.text = Some(text.clone());
        Ok(text)
    }

    /// Returns the definitions and the history, each only if it changed since the last call.
    pub(crate) fn changes(&mut self) -> Option<SessionChanges> {
        let run = self.run.as_mut()?;
        let change = run.change;
        let set_ups = run.set_ups();
        let mut part = |changed: bool, history: bool| changed.then(|| run.saved(history));
        let (definitions, history) = (part(change.definitions, false), part(change.history, true));
        // A text that could not be written is tried again.
        run.change.definitions = matches!(definitions, Some(Err(_)));
        run.change.history = matches!(history, Some(Err(_)));
        Some(SessionChanges { definitions, history, set_ups })
    }

    /// Creates the machine if there is none, and marks all of it as changed. `drive` drives the set-up programs.
    pub(crate) fn settle(
        &mut self,
        started: Instant,
        drive: &mut dyn FnMut(&mut Run) -> Outcome,
    ) -> Result<(), Box<Problem>> {
        let run = self.at_rest(started, drive)?;
        (run.change.definitions, run.change.history) = (true, true);
        Ok(())
    }

    /// Copies the session, with its definitions, history and input.
    ///
    /// The two sessions are then independent, and the copy has its own cancel handle. Turns before the fork cannot be
    /// undone in the copy.
    ///
    /// Data sets and the engine are shared. Definitions are copied as text, which is made once for all forks until the
    /// next turn; each fork reads it on first use.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// let mut session = Engine::default().session(Input::new());
    /// session.eval("(def plan [:a])");
    /// let mut other = session.fork()?;
    /// other.eval("(def plan (conj plan :b))");
    /// assert_eq!(session.eval("(count plan)").value::<i64>()?, 1);
    /// assert_eq!(other.eval("(count plan)").value::<i64>()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::save`].
    pub fn fork(&mut self) -> Result<Session, Box<Problem>> {
        let mut input = self.input.clone();
        input.cancel = None;
        if self.run.is_none() && self.origin.is_none() {
            let mut fork = Session::new(self.engine.clone(), input);
            fork.turns = self.turns;
            return Ok(fork);
        }
        let origin = self.saved()?;
        let mut fork = Session::new(self.engine.clone(), input.for_saved());
        (fork.origin, fork.turns) = (Some(origin), self.turns);
        Ok(fork)
    }

    /// Undoes the last turn that succeeded: restores the definitions and `*1 *2 *3` from before it.
    ///
    /// Effects of its tool calls are not undone. By default the last ten turns can be undone, one after another (limit
    /// `session_undo`).
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// let mut session = Engine::default().session(Input::new());
    /// session.eval("(def x 1)");
    /// session.eval("(def x 2)");
    /// session.undo()?;
    /// assert_eq!(session.eval("x").value::<i64>()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `session_limit_exceeded`, which names the limit, when there is no turn to undo.
    pub fn undo(&mut self) -> Result<(), Box<Problem>> {
        self.text = None;
        match &mut self.run {
            Some(run) => run.undo(),
            None => Err(nothing_to_undo(self.engine.limits_for(&self.input).session_undo, false)),
        }
    }

    /// Returns the current definitions as a JSON object for [`Input::memory`], for example of a new process.
    ///
    /// Functions are left out. The session is unchanged, even on error. Before the first turn, this is the memory that
    /// the session was given.
    ///
    /// # Errors
    /// `result_limit_exceeded` when the text is longer than `result_bytes`; `type_error`, with the name of the
    /// definition, when two keys of a map would become one key in JSON; `timeout` or `cancelled`.
    pub fn memory(&mut self) -> Result<String, Box<Problem>> {
        self.memory_since(Instant::now())
    }

    pub(crate) fn memory_since(&mut self, started: Instant) -> Result<String, Box<Problem>> {
        self.restore(started, &self.unseen())?;
        match &mut self.run {
            Some(run) => run.memory(started),
            None => Ok(self.input.memory_text().unwrap_or("{}").to_owned()),
        }
    }

    /// Returns the number of turns so far, including failed ones and those before a save. Errors refer to turns by
    /// number.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns a handle that cancels the running turn. Once cancelled, later turns end too, until [`Cancel::reset`].
    pub fn cancel_handle(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the defined names, in order. Before the first turn, these are the names in the memory that the session
    /// was given; set-up programs run with the first turn.
    pub fn names(&mut self) -> Vec<String> {
        // On error there are no names; the next turn reports the error.
        let _ = self.restore(Instant::now(), &self.unseen());
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

/// Changes of a session, as text.
pub(crate) struct SessionChanges {
    pub(crate) definitions: Option<Result<String, Error>>,
    pub(crate) history: Option<Result<String, Error>>,
    pub(crate) set_ups: usize,
}

/// Rejects what a session does not support: a recording or a budget.
pub(crate) fn check(input: &Input<'_>) -> Result<(), Box<Problem>> {
    let error = if input.journal.is_some() {
        Error::new(Reason::RuntimeError, "a session cannot be recorded")
            .hint("record the run of one program, with Engine::run or Engine::start")
    } else if input.budget.is_some() {
        Error::new(Reason::RuntimeError, "a session cannot use a budget")
            .hint("give the budget to the run of one program, with Engine::run or Engine::start")
    } else {
        return Ok(());
    };
    Err(Box::new(Problem::new(error, Phase::Setup)))
}
