//! Sessions: turn after turn in one process.

use super::running::{Running, Turn};
use super::sandbox::{Sandbox, fault};
use crate::wire::frames;
use lisp_runtime::outcome::Phase;
use lisp_runtime::remote::{CommittedSession, HostHalf, nothing_to_undo};
use lisp_runtime::{Cancel, Error, Input, Limits, Outcome, Problem};
use std::collections::VecDeque;
use std::sync::OnceLock;

/// A session in a separate process, like [`lisp_runtime::Session`]: later turns see the definitions of earlier ones.
///
/// After each turn the process sends the definitions as text, and the host keeps them. A turn that has to be killed
/// loses its process, but not the session. The next turn runs in another process, with the definitions from before the
/// killed turn. The hint of its error says so.
///
/// Where [`lisp_runtime::Session`] fails with a [`Problem`], `save`, `fork`, `memory` and [`Sandbox::load_session`]
/// fail with a `Box<Outcome>`, because a process may have run and been killed, and the outcome has its figures.
/// [`Outcome::problem`] is the problem.
#[derive(Debug)]
pub struct Session {
    sandbox: Sandbox,
    input: Input<'static>,
    cancel: Cancel,
    in_progress: Option<(Running, HostHalf)>,
    /// The defined names; not set before a process has said them.
    names: OnceLock<Vec<String>>,
    /// The number of turns so far.
    turns: u64,
    /// The definitions, as last sent by the process.
    committed: CommittedSession,
    /// The definitions and names before each of the last turns that changed something, the most recent last.
    earlier: VecDeque<(CommittedSession, OnceLock<Vec<String>>)>,
    /// Some of them were dropped because of their size.
    let_go: bool,
}

impl Sandbox {
    /// Starts a session in a separate process. A cancel handle given with [`Input::cancel_with`] ends its turns.
    pub fn session(&self, mut input: Input<'static>) -> Session {
        let cancel = input.cancel_handle().clone();
        Session {
            sandbox: self.clone(),
            input,
            cancel,
            in_progress: None,
            names: OnceLock::new(),
            turns: 0,
            committed: CommittedSession::default(),
            earlier: VecDeque::new(),
            let_go: false,
        }
    }

    /// Resumes a saved session in a separate process: see [`lisp_runtime::Engine::load_session`]. The process parses
    /// the text.
    ///
    /// # Errors
    /// Returns an outcome with the errors of [`lisp_runtime::Engine::load_session`], and those of the process.
    pub fn load_session(&self, text: &str, input: Input<'static>) -> Result<Session, Box<Outcome>> {
        let mut session = self.session(input);
        session.in_progress = Some(session.begin_with(Some(text))?);
        session.refresh()?;
        session.turns = CommittedSession::turns_of(text);
        Ok(session)
    }
}

impl Session {
    /// Runs the next program.
    pub fn eval(&mut self, source: &str) -> Outcome {
        // Set-up programs are not run again after the first turn is undone or killed.
        let sets_up = self.input.has_setup() && self.committed.is_empty();
        let started = if sets_up { self.refresh().and_then(|()| self.next()) } else { self.next() };
        let (mut running, mut host) = match started {
            Ok(started) => started,
            Err(outcome) => return *outcome,
        };
        self.turns = self.turns.saturating_add(1);
        host.observe_turn();
        running.give_turn(&mut host, Turn::Program(source));
        match running.next_report(&mut host) {
            Some(mut report) => {
                let names = std::mem::replace(&mut self.names, report.names().to_vec().into());
                let before = self.committed.clone();
                self.committed.take(&mut report);
                let outcome = host.finish(report);
                // A turn that fails changes nothing, so there is nothing to undo.
                if outcome.is_success() {
                    self.keep(before, names, &host);
                }
                self.in_progress = Some((running, host));
                outcome
            }
            None => self.lost(running.finish(&mut host)),
        }
    }

    /// Returns the current definitions as a JSON object: see [`lisp_runtime::Session::memory`].
    ///
    /// # Errors
    /// Returns an outcome with the errors of [`lisp_runtime::Session::memory`], or the error that ended the process.
    pub fn memory(&mut self) -> Result<String, Box<Outcome>> {
        let (mut running, mut host) = self.next()?;
        running.give_turn(&mut host, Turn::Memory);
        let Some(mut report) = running.next_report(&mut host) else {
            return Err(Box::new(self.lost(running.finish(&mut host))));
        };
        self.committed.take(&mut report);
        let memory = host.finish_memory(report);
        self.in_progress = Some((running, host));
        memory
    }

    /// Checks what the session was given, without evaluating it: see [`lisp_runtime::Session::check`].
    ///
    /// # Errors
    /// Returns an outcome with the errors of [`lisp_runtime::Session::check`], or the error that ended the process.
    pub fn check(&mut self) -> Result<(), Box<Outcome>> {
        let (mut running, mut host) = self.next()?;
        running.give_turn(&mut host, Turn::Check);
        let Some(report) = running.next_report(&mut host) else {
            return Err(Box::new(self.lost(running.finish(&mut host))));
        };
        let checked = host.finish_memory(report);
        self.in_progress = Some((running, host));
        checked.map(drop)
    }

    /// Returns the definitions and the results of the last turns as text: see [`lisp_runtime::Session::save`]. The
    /// process is asked only before the first turn, and if it could not write them earlier.
    ///
    /// # Errors
    /// Returns an outcome with the errors of [`lisp_runtime::Session::save`], or the error that ended the process.
    pub fn save(&mut self) -> Result<String, Box<Outcome>> {
        if !matches!(self.committed.text(self.turns), Some(Ok(_))) {
            self.refresh()?;
        }
        match self.committed.text(self.turns) {
            Some(Ok(text)) => Ok(text),
            Some(Err(error)) => Err(self.outcome(error)),
            None => {
                Err(self
                    .outcome(Error::new(lisp_runtime::Reason::HostFault, "the process has not sent its definitions")))
            }
        }
    }

    /// Returns a second session with the same definitions, history and input: see [`lisp_runtime::Session::fork`]. Its
    /// process starts with its first turn; until then both share the text of the definitions.
    ///
    /// # Errors
    /// Returns the errors of [`Session::save`].
    pub fn fork(&mut self) -> Result<Session, Box<Outcome>> {
        if self.turns > 0 || self.in_progress.is_some() {
            self.save()?;
        }
        let cancel = Cancel::default();
        let mut fork = self.sandbox.session(self.input.clone().cancel_with(&cancel));
        (fork.turns, fork.names, fork.committed) = (self.turns, self.names.clone(), self.committed.clone());
        Ok(fork)
    }

    /// Undoes the last turn that succeeded: see [`lisp_runtime::Session::undo`]. The process ends, and the next turn
    /// runs in another one.
    ///
    /// # Errors
    /// Returns `session_limit_exceeded`, with the name of the limit, if there is no turn to undo.
    pub fn undo(&mut self) -> Result<(), Box<Problem>> {
        let Some((before, names)) = self.earlier.pop_back() else {
            return Err(nothing_to_undo(self.limits().session_undo, self.let_go));
        };
        (self.committed, self.names, self.in_progress) = (before, names, None);
        Ok(())
    }

    fn limits(&self) -> Limits {
        self.sandbox.limits_for(&self.input)
    }

    /// Returns the process and the host's half for one more turn.
    fn next(&mut self) -> Result<(Running, HostHalf), Box<Outcome>> {
        if let Some((running, mut host)) = self.in_progress.take() {
            host.next_turn();
            return Ok((running, host));
        }
        match self.committed.text(self.turns) {
            Some(Ok(text)) => self.begin_with(Some(&text)),
            _ => {
                let (running, host) = self.begin_with(None)?;
                Ok((running, host.after_turns(self.turns)))
            }
        }
    }

    fn begin_with(&self, saved: Option<&str>) -> Result<(Running, HostHalf), Box<Outcome>> {
        let (mut job, mut host) = self.sandbox.split("", &self.input, true)?;
        job.without_undo();
        if let Some(text) = saved {
            job.resume(text);
        }
        let bytes = frames::encode(&job).map_err(|error| Box::new(fault(&mut host, &error.to_string())))?;
        let mut running = self.sandbox.order(&mut host, bytes.len(), true)?;
        running.give_job(&mut host, &bytes);
        Ok((running, host))
    }

    /// Asks the process for everything that the session is saved as.
    fn refresh(&mut self) -> Result<(), Box<Outcome>> {
        let (mut running, mut host) = self.next()?;
        running.give_turn(&mut host, Turn::Save);
        let Some(mut report) = running.next_report(&mut host) else {
            return Err(Box::new(self.lost(running.finish(&mut host))));
        };
        self.names = report.names().to_vec().into();
        self.committed.take(&mut report);
        let ended = host.finish_memory(report);
        self.in_progress = Some((running, host));
        ended.map(drop)
    }

    /// Keeps the state before a turn, so that it can be undone, within the limits.
    fn keep(&mut self, before: CommittedSession, names: OnceLock<Vec<String>>, host: &HostHalf) {
        if before.is_empty() || before.text(0).is_some_and(|text| text.is_ok()) {
            self.earlier.push_back((before, names));
        } else {
            self.earlier.clear();
        }
        let limits = host.limits();
        let max = usize::try_from(limits.session_undo).unwrap_or(usize::MAX);
        while self.earlier.len() > max {
            self.earlier.pop_front();
        }
        while limits.session_bytes > 0 && self.bytes_of_earlier() as u64 > limits.session_bytes {
            self.earlier.pop_front();
            self.let_go = true;
        }
    }

    /// Returns the size of the state kept for undoing turns, in bytes.
    fn bytes_of_earlier(&self) -> usize {
        let later = self.earlier.iter().map(|(committed, _)| committed).skip(1).chain([&self.committed]);
        let each = self.earlier.iter().zip(later).map(|((committed, _), next)| committed.bytes_beside(next));
        each.fold(0, usize::saturating_add)
    }

    /// Completes the outcome of a turn that lost its process: says what is left of the session.
    fn lost(&mut self, mut outcome: Outcome) -> Outcome {
        let left = match self.committed.text(self.turns) {
            Some(Ok(_)) => {
                "the session continues in a new process, with the definitions from before this turn".to_owned()
            }
            Some(Err(error)) => {
                self.names = OnceLock::new();
                (self.committed, self.earlier) = (CommittedSession::default(), VecDeque::new());
                format!("the session starts over, because its definitions could not be kept: {}", error.message)
            }
            None => "the session starts over: no turn had ended before this one".to_owned(),
        };
        outcome.add_hint(&left);
        outcome
    }

    fn outcome(&self, error: Error) -> Box<Outcome> {
        match self.sandbox.split("", &self.input, true) {
            Ok((_, mut host)) => Box::new(host.fail(error, Some(Phase::Result))),
            Err(outcome) => outcome,
        }
    }

    /// Returns the number of turns so far: see [`lisp_runtime::Session::turns`].
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns the handle that cancels the running turn. Once used, it stays cancelled until it is reset.
    pub fn cancel_handle(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the defined names, in order. Before the first turn they are those of the memory given to the session.
    pub fn names(&self) -> &[String] {
        self.names.get_or_init(|| self.input.memory_names())
    }

    /// Returns true if a process holds the definitions. Before the first turn, and after a turn that was killed or
    /// undone, only the host keeps them.
    pub fn is_alive(&self) -> bool {
        self.in_progress.is_some()
    }
}
