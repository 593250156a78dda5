//! Turn after turn in one process.

use super::running::{Running, Turn};
use super::sandbox::{Sandbox, fault};
use crate::wire::frames;
use lisp_runtime::remote::HostHalf;
use lisp_runtime::{Cancel, Input, Outcome};

/// A conversation with one process, like [`lisp_runtime::Session`]: what a turn defines is there in the next. A turn that
/// has to be killed takes the process with it; the next one begins anew, without the definitions.
#[derive(Debug)]
pub struct Session {
    sandbox: Sandbox,
    input: Input<'static>,
    cancel: Cancel,
    under_way: Option<(Running, HostHalf)>,
    names: Vec<String>,
    /// The turns so far.
    turns: u64,
}

impl Sandbox {
    /// Begins a session in a process of its own. A handle given by [`Input::cancel_with`] ends its turns.
    pub fn session(&self, mut input: Input<'static>) -> Session {
        let cancel = input.cancel_handle().clone();
        let names = input.memory_names();
        Session { sandbox: self.clone(), input, cancel, under_way: None, names, turns: 0 }
    }
}

impl Session {
    /// Runs one more program.
    pub fn eval(&mut self, source: &str) -> Outcome {
        let turns_before = self.turns;
        self.turns = turns_before.saturating_add(1);
        let (mut running, mut host) = match self.under_way.take() {
            Some((running, mut host)) => {
                host.next_turn();
                (running, host)
            }
            None => match self.begin() {
                Ok((running, host)) => (running, host.after_turns(turns_before)),
                Err(outcome) => return *outcome,
            },
        };
        host.observe_turn();
        running.give_turn(&host, Turn::Program(source));
        match running.next_report(&mut host) {
            Some(report) => {
                self.names = report.names().to_vec();
                let outcome = host.finish(report);
                self.under_way = Some((running, host));
                outcome
            }
            None => {
                self.names = Vec::new();
                running.finish(&mut host)
            }
        }
    }

    /// The definitions as they are now, as a JSON object: see [`lisp_runtime::Session::memory`].
    ///
    /// # Errors
    /// An outcome with the problem: those of [`lisp_runtime::Session::memory`], and whatever ended the process instead. Then
    /// the definitions are gone.
    pub fn memory(&mut self) -> Result<String, Box<Outcome>> {
        let (mut running, mut host) = match self.under_way.take() {
            Some((running, mut host)) => {
                host.next_turn();
                (running, host)
            }
            None => match self.begin() {
                Ok((running, host)) => (running, host.after_turns(self.turns)),
                Err(outcome) => return Err(outcome),
            },
        };
        running.give_turn(&host, Turn::Memory);
        let Some(report) = running.next_report(&mut host) else {
            self.names = Vec::new();
            return Err(Box::new(running.finish(&mut host)));
        };
        let memory = host.finish_memory(report);
        self.under_way = Some((running, host));
        memory
    }

    fn begin(&self) -> Result<(Running, HostHalf), Box<Outcome>> {
        let (job, mut host) = self.sandbox.split("", &self.input, true)?;
        let bytes = frames::encode(&job).map_err(|error| Box::new(fault(&mut host, &error.to_string())))?;
        let mut running = self
            .sandbox
            .order(&host, bytes.len() as u64, true)
            .map_err(|error| Box::new(fault(&mut host, &error.to_string())))?;
        running.give_job(&host, &bytes);
        Ok((running, host))
    }

    /// The handle that ends the turn that runs. It stays used until it is reset.
    pub fn cancel_handle(&self) -> &Cancel {
        &self.cancel
    }

    /// The names that are defined, in order. Before the first turn they are those of the memory that the session was given.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Is there a process that holds the definitions? There is none before the first turn and after one that was killed.
    pub fn is_alive(&self) -> bool {
        self.under_way.is_some()
    }
}
