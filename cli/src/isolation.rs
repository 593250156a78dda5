//! Where programs run: in this process, or each in a process of its own.

use crate::exit::Failure;
use crate::ordered;
use crate::room::{Room, Taken, needs};
use clap::{Args, ValueEnum};
use lisp_runtime::{Cancel, Engine, Input, Outcome, Problem, Program, Request};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// In this process
    #[default]
    // As requests spell it.
    #[value(alias = "in_process")]
    InProcess,
    /// In a locked-down process of its own for each program (Linux)
    Process,
}

impl Choice {
    fn side_by_side(self, wanted: usize, engine: &Engine, room: Option<&Room>) -> usize {
        /// Bytes that a run in another process needs here, for its job and its answer.
        const ELSEWHERE: u64 = 32 << 20;
        let each = if self == Choice::InProcess { needs(engine.limits()) } else { ELSEWHERE };
        room.map_or(wanted, |room| room.threads(wanted, each))
    }
}

/// The option.
#[derive(Debug, Args)]
pub(crate) struct IsolationOption {
    /// Where programs run
    #[arg(long, value_enum, default_value_t, value_name = "WHERE")]
    isolation: Choice,
}

impl IsolationOption {
    /// Returns how many of the wanted runs fit side by side in the address space of this process.
    pub(crate) fn side_by_side(&self, wanted: usize, engine: &Engine) -> usize {
        self.isolation.side_by_side(wanted, engine, Room::of_process().as_ref())
    }

    /// Returns a runner for a number of jobs. If process isolation was chosen, sets it up right away.
    pub(crate) fn open(&self, engine: Engine, jobs: usize) -> Result<Runner, Failure> {
        // More than one for each core would only take descriptors.
        let forkers = jobs.min(ordered::workers(0));
        let (layer, making) = (OnceLock::new(), Mutex::new(()));
        let runner = Runner { engine, choice: self.isolation, forkers, layer, making, room: Room::of_process() };
        if runner.choice == Choice::Process {
            runner.layer().map_err(Failure::Isolation)?;
        }
        Ok(runner)
    }
}

/// Runs programs in the chosen isolation. Process isolation is set up when it is first needed.
#[derive(Debug)]
pub(crate) struct Runner {
    engine: Engine,
    choice: Choice,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for the process layer"))]
    forkers: usize,
    /// Set once it could be created. A failure is not kept: the next attempt may succeed.
    layer: OnceLock<Layer>,
    making: Mutex<()>,
    /// Set if the address space of this process is limited.
    room: Option<Room>,
}

#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Layer {
    sandbox: lisp_sandbox::Sandbox,
    /// A run that waits here for descriptors has not started: it takes none of its time.
    runs: Room,
}
#[cfg(not(target_os = "linux"))]
type Layer = std::convert::Infallible;

impl Runner {
    /// Returns how many of the wanted runs fit side by side in the address space of this process.
    pub(crate) fn side_by_side(&self, wanted: usize) -> usize {
        self.choice.side_by_side(wanted, &self.engine, self.room.as_ref())
    }

    /// Returns the engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    fn layer(&self) -> Result<&Layer, String> {
        if let Some(layer) = self.layer.get() {
            return Ok(layer);
        }
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        match self.layer.get() {
            Some(layer) => Ok(layer),
            None => self.make().map(|layer| self.layer.get_or_init(|| layer)),
        }
    }

    #[cfg(target_os = "linux")]
    fn make(&self) -> Result<Layer, String> {
        let builder = lisp_sandbox::Sandbox::builder().engine(self.engine.clone()).forkers(self.forkers);
        let sandbox = builder.build().map_err(|error| error.to_string())?;
        Ok(Layer { runs: Room::for_runs(sandbox.max_runs()), sandbox })
    }

    #[cfg(not(target_os = "linux"))]
    fn make(&self) -> Result<Layer, String> {
        Err("programs run in processes of their own on Linux only".to_owned())
    }

    /// Runs a program.
    pub(crate) fn eval(&self, source: &str, input: Input<'_>) -> Result<Outcome, Failure> {
        if self.choice == Choice::InProcess {
            return Ok(self.engine.eval(source, input));
        }
        let layer = self.layer().map_err(Failure::Isolation)?;
        #[cfg(target_os = "linux")]
        {
            let _one = layer.runs.one();
            Ok(layer.sandbox.eval(source, &input))
        }
        #[cfg(not(target_os = "linux"))]
        match *layer {}
    }

    /// Runs a compiled program.
    pub(crate) fn run_program(&self, program: &Program, input: Input<'_>) -> Result<Outcome, Failure> {
        match self.choice {
            Choice::InProcess => Ok(self.engine.run(program, input)),
            Choice::Process => self.eval(program.source(), input),
        }
    }

    /// Runs a request. A request may ask for stronger isolation, never for weaker.
    pub(crate) fn run(&self, request: &Request<'_>) -> Outcome {
        if self.choice == Choice::InProcess && !request.asks_for_process() {
            let limits = self.engine.limits().with(&request.limits);
            let _room: Option<Taken<'_>> = self.room.as_ref().map(|room| room.take(&limits));
            return request.outcome(&self.engine);
        }
        match self.layer() {
            #[cfg(target_os = "linux")]
            Ok(layer) => {
                let _one = layer.runs.one();
                layer.sandbox.run(request)
            }
            #[cfg(not(target_os = "linux"))]
            Ok(layer) => match *layer {},
            Err(why) => request.refused(&self.engine, &why),
        }
    }

    /// Says where programs run.
    pub(crate) fn place(&self) -> &'static str {
        match self.choice {
            Choice::InProcess => "in this process",
            Choice::Process => "in a locked-down process of its own",
        }
    }

    /// Resumes a saved session.
    pub(crate) fn load(
        &self,
        text: &str,
        input: Input<'static>,
    ) -> Result<Result<TurnRunner, SessionProblem>, Failure> {
        if self.choice == Choice::InProcess {
            let loaded = self.engine.load_session(text, input);
            return Ok(loaded.map(|loaded| TurnRunner::InProcess(Box::new(loaded))).map_err(Some));
        }
        let layer = self.layer().map_err(Failure::Isolation)?;
        #[cfg(target_os = "linux")]
        return Ok(match layer.sandbox.load_session(text, input) {
            Ok(loaded) => Ok(TurnRunner::Process(Box::new(loaded))),
            Err(outcome) => Err(of_outcome(&outcome)),
        });
        #[cfg(not(target_os = "linux"))]
        match *layer {}
    }

    /// Starts a session. The cancel handle of the input, if it has one, ends its turns.
    pub(crate) fn session(&self, input: Input<'static>) -> Result<TurnRunner, Failure> {
        if self.choice == Choice::InProcess {
            return Ok(TurnRunner::InProcess(Box::new(self.engine.session(input))));
        }
        let layer = self.layer().map_err(Failure::Isolation)?;
        #[cfg(target_os = "linux")]
        return Ok(TurnRunner::Process(Box::new(layer.sandbox.session(input))));
        #[cfg(not(target_os = "linux"))]
        match *layer {}
    }
}

/// The error of a session operation; `None` if the outcome has no problem to show.
pub(crate) type SessionProblem = Option<Box<Problem>>;

#[cfg(target_os = "linux")]
fn of_outcome(outcome: &Outcome) -> SessionProblem {
    outcome.problem().cloned().map(Box::new)
}

/// A session in either isolation.
#[derive(Debug)]
pub(crate) enum TurnRunner {
    /// In this process, on this thread.
    InProcess(Box<lisp_runtime::Session>),
    /// In a process of its own.
    #[cfg(target_os = "linux")]
    Process(Box<lisp_sandbox::Session>),
}

impl TurnRunner {
    /// Runs a program.
    pub(crate) fn eval(&mut self, source: &str) -> Outcome {
        match self {
            TurnRunner::InProcess(session) => session.eval(source),
            #[cfg(target_os = "linux")]
            TurnRunner::Process(session) => session.eval(source),
        }
    }

    /// Returns a handle that cancels the current turn.
    pub(crate) fn cancel_handle(&self) -> &Cancel {
        match self {
            TurnRunner::InProcess(session) => session.cancel_handle(),
            #[cfg(target_os = "linux")]
            TurnRunner::Process(session) => session.cancel_handle(),
        }
    }

    /// Returns the defined names, in order.
    pub(crate) fn names(&mut self) -> Vec<String> {
        match self {
            TurnRunner::InProcess(session) => session.names(),
            #[cfg(target_os = "linux")]
            TurnRunner::Process(session) => session.names().to_vec(),
        }
    }

    /// Returns the number of turns so far.
    pub(crate) fn turns(&self) -> u64 {
        match self {
            TurnRunner::InProcess(session) => session.turns(),
            #[cfg(target_os = "linux")]
            TurnRunner::Process(session) => session.turns(),
        }
    }

    /// Undoes the last successful turn.
    pub(crate) fn undo(&mut self) -> Result<(), SessionProblem> {
        match self {
            TurnRunner::InProcess(session) => session.undo().map_err(Some),
            #[cfg(target_os = "linux")]
            TurnRunner::Process(session) => session.undo().map_err(Some),
        }
    }

    /// Returns the session as text.
    pub(crate) fn save(&mut self) -> Result<String, SessionProblem> {
        match self {
            TurnRunner::InProcess(session) => session.save().map_err(Some),
            #[cfg(target_os = "linux")]
            TurnRunner::Process(session) => session.save().map_err(|outcome| of_outcome(&outcome)),
        }
    }
}
