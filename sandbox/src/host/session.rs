//! Turn after turn in one process.

use super::running::{Running, Turn};
use super::sandbox::{Sandbox, fault};
use crate::wire::frames;
use lisp_runtime::remote::{CommittedSession, HostHalf, nothing_to_undo};
use lisp_runtime::{Cancel, Error, Input, Limits, Outcome, Phase, Problem};
use std::collections::VecDeque;

/// A conversation with one process, like [`lisp_runtime::Session`]: what a turn defines is there in the next.
///
/// After each turn the process says what the definitions are, as text, and this side keeps it. A turn that has to be killed takes
/// the process with it, and nothing else: the next one goes on in another process, with the definitions as they were before the turn
/// that was killed. The hint of its error says so.
///
/// Where [`lisp_runtime::Session`] fails with a [`Problem`], `save`, `fork`, `memory` and [`Sandbox::load_session`] fail with a
/// `Box<Outcome>` here: a process may have been at work and have been killed for it, and the outcome has the figures of that.
/// [`Outcome::problem`] is the problem.
#[derive(Debug)]
pub struct Session {
    sandbox: Sandbox,
    input: Input<'static>,
    cancel: Cancel,
    under_way: Option<(Running, HostHalf)>,
    names: Vec<String>,
    /// The turns so far.
    turns: u64,
    /// What the process has said the definitions are.
    committed: CommittedSession,
    /// The same before each of the last turns that changed something, the last at the end, with the names then.
    earlier: VecDeque<(CommittedSession, Vec<String>)>,
    /// Some of them were let go for their size.
    let_go: bool,
}

impl Sandbox {
    /// Begins a session in a process of its own. A handle given by [`Input::cancel_with`] ends its turns.
    pub fn session(&self, mut input: Input<'static>) -> Session {
        let cancel = input.cancel_handle().clone();
        let names = input.memory_names();
        Session {
            sandbox: self.clone(),
            input,
            cancel,
            under_way: None,
            names,
            turns: 0,
            committed: CommittedSession::default(),
            earlier: VecDeque::new(),
            let_go: false,
        }
    }

    /// Goes on with a saved session in a process of its own: see [`lisp_runtime::Engine::load_session`]. The text is read in
    /// that process.
    ///
    /// # Errors
    /// An outcome with the problem: those of [`lisp_runtime::Engine::load_session`], and of the process.
    pub fn load_session(&self, text: &str, input: Input<'static>) -> Result<Session, Box<Outcome>> {
        let mut session = self.session(input);
        session.under_way = Some(session.begin_with(Some(text))?);
        session.refresh()?;
        session.turns = CommittedSession::turns_of(text);
        Ok(session)
    }
}

impl Session {
    /// Runs one more program.
    pub fn eval(&mut self, source: &str) -> Outcome {
        // What set-up programs do is not done again when the first turn is taken back, or has to be killed.
        let sets_up = self.input.has_setup() && self.committed.is_empty();
        let begun = if sets_up { self.refresh().and_then(|()| self.next()) } else { self.next() };
        let (mut running, mut host) = match begun {
            Ok(begun) => begun,
            Err(outcome) => return *outcome,
        };
        self.turns = self.turns.saturating_add(1);
        host.observe_turn();
        running.give_turn(&mut host, Turn::Program(source));
        match running.next_report(&mut host) {
            Some(mut report) => {
                let names = std::mem::replace(&mut self.names, report.names().to_vec());
                let before = self.committed.clone();
                self.committed.take(&mut report);
                let outcome = host.finish(report);
                // A turn that fails leaves everything as it was: there is nothing to take back.
                if outcome.is_success() {
                    self.keep(before, names, &host);
                }
                self.under_way = Some((running, host));
                outcome
            }
            None => self.lost(running.finish(&mut host)),
        }
    }

    /// The definitions as they are now, as a JSON object: see [`lisp_runtime::Session::memory`].
    ///
    /// # Errors
    /// An outcome with the problem: those of [`lisp_runtime::Session::memory`], and whatever ended the process instead.
    pub fn memory(&mut self) -> Result<String, Box<Outcome>> {
        let (mut running, mut host) = self.next()?;
        running.give_turn(&mut host, Turn::Memory);
        let Some(mut report) = running.next_report(&mut host) else {
            return Err(Box::new(self.lost(running.finish(&mut host))));
        };
        self.committed.take(&mut report);
        let memory = host.finish_memory(report);
        self.under_way = Some((running, host));
        memory
    }

    /// The definitions and the results of the last turns as text: see [`lisp_runtime::Session::save`]. The process is asked before the
    /// first turn only, and when it could not write them before.
    ///
    /// # Errors
    /// An outcome with the problem: those of [`lisp_runtime::Session::save`], and whatever ended the process instead.
    pub fn save(&mut self) -> Result<String, Box<Outcome>> {
        if !matches!(self.committed.text(self.turns), Some(Ok(_))) {
            self.refresh()?;
        }
        match self.committed.text(self.turns) {
            Some(Ok(text)) => Ok(text),
            Some(Err(error)) => Err(self.outcome(error)),
            None => {
                Err(self.outcome(Error::new(lisp_runtime::Reason::HostFault, "the process has not said what it has")))
            }
        }
    }

    /// A second session with the same definitions and history, and the same input: see [`lisp_runtime::Session::fork`]. Its process
    /// begins with its first turn; until then the two share the text of the definitions.
    ///
    /// # Errors
    /// Those of [`Session::save`].
    pub fn fork(&mut self) -> Result<Session, Box<Outcome>> {
        if self.turns > 0 || self.under_way.is_some() {
            self.save()?;
        }
        let cancel = Cancel::default();
        let mut fork = self.sandbox.session(self.input.clone().cancel_with(&cancel));
        (fork.turns, fork.names, fork.committed) = (self.turns, self.names.clone(), self.committed.clone());
        Ok(fork)
    }

    /// Takes back the last turn that succeeded: see [`lisp_runtime::Session::undo`]. The process ends, and the next turn goes on in
    /// another one.
    ///
    /// # Errors
    /// `session_limit_exceeded`, which names the limit, when no turn to undo.
    pub fn undo(&mut self) -> Result<(), Box<Problem>> {
        let Some((before, names)) = self.earlier.pop_back() else {
            return Err(nothing_to_undo(self.limits().session_undo, self.let_go));
        };
        (self.committed, self.names, self.under_way) = (before, names, None);
        Ok(())
    }

    fn limits(&self) -> Limits {
        self.sandbox.limits_for(&self.input)
    }

    /// The process and this half, for one more turn.
    fn next(&mut self) -> Result<(Running, HostHalf), Box<Outcome>> {
        if let Some((running, mut host)) = self.under_way.take() {
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

    /// Asks the process for all that the session is saved as.
    fn refresh(&mut self) -> Result<(), Box<Outcome>> {
        let (mut running, mut host) = self.next()?;
        running.give_turn(&mut host, Turn::Save);
        let Some(mut report) = running.next_report(&mut host) else {
            return Err(Box::new(self.lost(running.finish(&mut host))));
        };
        self.names = report.names().to_vec();
        self.committed.take(&mut report);
        let ended = host.finish_memory(report);
        self.under_way = Some((running, host));
        ended.map(drop)
    }

    /// Keeps what was before a turn, to be undone, as far as the limits go.
    fn keep(&mut self, before: CommittedSession, names: Vec<String>, host: &HostHalf) {
        if before.is_empty() || before.text(0).is_some_and(|text| text.is_ok()) {
            self.earlier.push_back((before, names));
        } else {
            self.earlier.clear();
        }
        let limits = host.limits();
        let most = usize::try_from(limits.session_undo).unwrap_or(usize::MAX);
        while self.earlier.len() > most {
            self.earlier.pop_front();
        }
        while limits.session_bytes > 0 && self.bytes_of_earlier() as u64 > limits.session_bytes {
            self.earlier.pop_front();
            self.let_go = true;
        }
    }

    /// Bytes that are kept for turns to be undone.
    fn bytes_of_earlier(&self) -> usize {
        let later = self.earlier.iter().map(|(committed, _)| committed).skip(1).chain([&self.committed]);
        let each = self.earlier.iter().zip(later).map(|((committed, _), next)| committed.bytes_beside(next));
        each.fold(0, usize::saturating_add)
    }

    /// The outcome of a turn that took the process with it, which says what is left of the session.
    fn lost(&mut self, mut outcome: Outcome) -> Outcome {
        let left = match self.committed.text(self.turns) {
            Some(Ok(_)) => {
                "the session continues in a new process, with the definitions from before this turn".to_owned()
            }
            Some(Err(error)) => {
                self.names = self.input.memory_names();
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

    /// The turns so far: see [`lisp_runtime::Session::turns`].
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// The handle that ends the turn that runs. It stays used until it is reset.
    pub fn cancel_handle(&self) -> &Cancel {
        &self.cancel
    }

    /// The names that are defined, in order. Before the first turn they are those of the memory that the session was given.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Is there a process that holds the definitions? There is none before the first turn, and after one that was killed or taken
    /// back: the definitions are kept on this side then.
    pub fn is_alive(&self) -> bool {
        self.under_way.is_some()
    }
}
