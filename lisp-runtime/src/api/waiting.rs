//! Runs that the host drives step by step: they suspend at each tool call and continue with the reply.

use super::run::{Run, RunEvent};
use crate::parallel::executor::Executor;
use crate::parallel::task::run_task;
use crate::terms::outcome::Outcome;
use crate::tools::gate::rewrite;
use crate::tools::tool::{Reply, ToolCall, ToolError};
use lisp_core::{Error, Reason};
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// The state of a run that is driven step by step.
#[derive(Debug)]
pub enum Progress {
    /// The run waits for the replies to one or more tool calls.
    ToolCall(Waiting),
    /// The run only waits for approvals ([`PolicyDecision::Ask`](crate::tools::PolicyDecision::Ask)).
    Approval(Waiting),
    /// The run has ended.
    Done(Box<Outcome>),
}

impl Progress {
    pub(super) fn of(mut run: Box<Run>) -> Self {
        let inline = run.local_executor();
        loop {
            if !run.is_back(Duration::ZERO) {
                inline.run();
                let calls = inline.waiting();
                if !run.is_back(if calls.is_empty() { Run::LONG } else { Duration::ZERO }) {
                    return Waiting::of(run, calls).into_progress();
                }
            }
            match run.advance() {
                RunEvent::Call(_, call) => return Waiting::of(run, vec![*call]).into_progress(),
                RunEvent::Beat => run.beat(),
                RunEvent::Printed(_) | RunEvent::Turn => {}
                RunEvent::Workers => {
                    if let Some(first) = run.send_workers(Executor::Local(inline.clone())) {
                        run_task(first);
                    }
                }
                RunEvent::Done(outcome) => return Progress::Done(outcome),
            }
        }
    }
}

/// Identifies an open tool call within its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(u64);

/// A run that waits for replies or approvals. Dropping it ends the run.
pub struct Waiting {
    run: Box<Run>,
    /// Never empty.
    calls: Vec<(CallId, ToolCall)>,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl Waiting {
    /// Puts calls that wait for a reply before those that need approval.
    fn of(run: Box<Run>, calls: Vec<ToolCall>) -> Waiting {
        let mut calls: Vec<_> = calls.into_iter().map(|call| (CallId(call.number), call)).collect();
        calls.sort_by_key(|(_, call)| call.question.is_some());
        // The caller may make these calls even if the run then ends. All of them are open: none can have been given
        // back.
        for (_, call) in calls.iter().filter(|(_, call)| call.question.is_none()) {
            call.begin();
        }
        Waiting { run, calls }
    }

    fn into_progress(self) -> Progress {
        if self.call().question.is_some() { Progress::Approval(self) } else { Progress::ToolCall(self) }
    }

    /// Returns the oldest call that waits for a reply. If all need approval, returns the oldest of those.
    pub fn call(&self) -> &ToolCall {
        &self.calls[0].1
    }

    /// Returns all calls that wait for a reply. Parallel workers may have several.
    pub fn calls(&self) -> impl Iterator<Item = (CallId, &ToolCall)> {
        self.calls.iter().filter(|(_, call)| call.question.is_none()).map(|(id, call)| (*id, call))
    }

    /// Returns all calls that need approval, each with its [question](ToolCall::question).
    pub fn approvals(&self) -> impl Iterator<Item = (CallId, &ToolCall)> {
        self.calls.iter().filter(|(_, call)| call.question.is_some()).map(|(id, call)| (*id, call))
    }

    /// Approves a call, which then waits for its reply. After the run's deadline, nothing is approved and the run has
    /// ended.
    pub fn approve(self, call: CallId) -> Progress {
        self.settle_in_time(call, None)
    }

    /// Approves a call with other arguments, a JSON object.
    ///
    /// Arguments that do not match the tool's signature or JSON Schema deny the call. After the run's deadline, nothing
    /// is approved and the run has ended.
    pub fn approve_with(self, call: CallId, arguments: &str) -> Progress {
        self.settle_in_time(call, Some(arguments))
    }

    /// Does not hand out a call of a run that has ended: making it would be pointless.
    fn settle_in_time(self, call: CallId, given: Option<&str>) -> Progress {
        match self.poll() {
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => waiting.settle(call, Ok(given)),
            done => done,
        }
    }

    /// Rejects a call. The program ends with `tool_denied` and the reason.
    pub fn reject(self, call: CallId, why: &str) -> Progress {
        self.settle(call, Err(why))
    }

    /// Decides on a call that needs approval. Other calls are unchanged.
    fn settle(mut self, id: CallId, decided: Result<Option<&str>, &str>) -> Progress {
        let asked = self.calls.iter_mut().find(|(known, call)| *known == id && call.question.is_some());
        let Some((_, call)) = asked else { return self.into_progress() };
        let shared = &self.run.shared;
        let settled = match shared.setting.tool(&call.contract.name) {
            Some(tool) => shared.gate.settle_question(tool, &call.place, decided),
            None => Err(Error::new(Reason::HostFault, "a call of a tool that is not there")),
        };
        match settled {
            Ok(()) => {
                call.question = None;
                if let (Ok(Some(given)), Some(tool)) = (decided, shared.setting.tool(&call.contract.name)) {
                    rewrite(call, tool, given);
                }
                if let Some(inline) = &self.run.local {
                    inline.settle(call);
                }
                let Waiting { run, calls } = self;
                Waiting::of(run, calls.into_iter().map(|(_, call)| call).collect()).into_progress()
            }
            Err(error) => self.continue_with(id, Reply::Refused(error)),
        }
    }

    /// Returns the id of the run, which is also [`Outcome::run_id`].
    pub fn run_id(&self) -> &str {
        self.run.shared.setting.view.run_id()
    }

    /// Notes in the record of the run that a call is about to be made. Without a recording, does nothing.
    ///
    /// If the process ends before the reply, it is [unknown](crate::Record::settle) whether the call was made.
    ///
    /// # Errors
    /// The recorder cannot store the line.
    pub fn begin(&self, call: CallId) -> Result<(), Error> {
        let asked = self.calls.iter().find(|(id, _)| *id == call);
        match (&self.run.shared.setting.gate.journal, asked) {
            (Some(journal), Some((_, call))) => journal.begin_asked(&call.place),
            _ => Ok(()),
        }
    }

    /// Makes a call with the tool's own closure, on this thread, and replies with the result.
    ///
    /// The record of the run first notes that the call starts. If that cannot be stored, the call is not made and the
    /// run ends. Calls that need approval or are no longer open are unchanged.
    pub fn serve(self, id: CallId) -> Progress {
        let Some(call) = self.calls().find(|(known, _)| *known == id).map(|(_, call)| call.clone()) else {
            return self.into_progress();
        };
        if let Err(error) = self.begin(id) {
            return self.continue_with(id, Reply::Refused(error));
        }
        let reply = match self.run.shared.setting.tool(&call.contract.name) {
            Some(tool) => tool.call_here(&call),
            None => Reply::Error(ToolError::new("it is missing from the configuration")),
        };
        self.continue_with(id, reply)
    }

    /// Replies to [`Waiting::call`] with a result, and continues the run.
    pub fn reply(self, result: &impl Serialize) -> Progress {
        let id = self.calls[0].0;
        self.reply_to(id, result)
    }

    /// Replies to [`Waiting::call`] with an error. The program ends with it, unless a `try` catches it or the tool is
    /// [tagged](crate::Tool::tagged).
    pub fn fail(self, error: ToolError) -> Progress {
        let id = self.calls[0].0;
        self.fail_call(id, error)
    }

    /// Replies to one of the calls with a result, and continues the run.
    ///
    /// A reply to a call that needs approval approves it. A reply to a call that is no longer open, because its worker
    /// has ended, is ignored.
    pub fn reply_to(mut self, call: CallId, result: &impl Serialize) -> Progress {
        if self.approvals().any(|(id, _)| id == call) {
            // A late reply is recorded all the same.
            match self.settle(call, Ok(None)) {
                Progress::ToolCall(approved) | Progress::Approval(approved) => self = approved,
                done => return done,
            }
        }
        match serde_json::to_string(result) {
            Ok(json) => self.continue_with(call, Reply::Json(json)),
            Err(error) => self.fail_call(call, ToolError::new(format!("its result is not JSON: {error}"))),
        }
    }

    /// Replies to one of the calls with an error, like [`Waiting::fail`].
    pub fn fail_call(self, call: CallId, error: ToolError) -> Progress {
        self.continue_with(call, Reply::Error(error))
    }

    /// Returns when to call [`Waiting::poll`] at the latest if no reply arrives; `None` is never.
    ///
    /// This is the deadline of the run or of its parallel call; it is now after a worker has failed. A handle that cancels the run does not wake anything: call `poll` after cancelling.
    pub fn wake_at(&self) -> Option<Instant> {
        let workers = self.run.local.as_ref().and_then(|inline| inline.wake_at());
        [self.run.ends_at(), workers].into_iter().flatten().min()
    }

    /// Checks for a deadline, a cancellation or a failed worker, without replying to a call.
    pub fn poll(mut self) -> Progress {
        if self.run.is_back(Duration::ZERO) && !self.run.driver.stop_if_over() {
            return self.into_progress();
        }
        Progress::of(self.run)
    }

    fn continue_with(mut self, call: CallId, reply: Reply) -> Progress {
        self.run.reply_to(call.0, reply);
        Progress::of(self.run)
    }
}
