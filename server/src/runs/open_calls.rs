//! Open calls of a durable run while it runs, and the replies to them.

use super::events::EventLog;
use crate::old_store::StoredReply;
use lisp_runtime::tools::{Approval, ToolCode};
use lisp_runtime::{ToolCall, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The kind of reply that a call waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A decision: approve or reject.
    Gate,
    /// The result: the client is the tool.
    Result,
    /// How the call ended: it had started when the service stopped. The number says how often it has started.
    Unknown(usize),
}

impl Phase {
    pub(crate) fn name(&self) -> String {
        match self {
            Phase::Gate => "gate".to_owned(),
            Phase::Result => "result".to_owned(),
            Phase::Unknown(times) => format!("unknown{times}"),
        }
    }
}

/// A call that waits for an outside answer.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct WaitingCall {
    /// The name of the call in its run.
    pub call: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    #[schema(value_type = Object)]
    pub arguments: Box<RawValue>,
    /// The question to decide or to find out; absent if the call waits for its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) phase: Phase,
}

impl WaitingCall {
    /// Returns what the call waits for, in one word. `gate` is an approval and `result` the result of a client's tool.
    /// `unknown1`, `unknown2` and so on ask how a call ended that had started when the service stopped.
    pub fn asked(&self) -> String {
        self.phase.name()
    }
}

/// Turns the arguments of a call, which are JSON text, into a raw value.
pub(crate) fn arguments_of(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A reply to an open call.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub struct Reply {
    /// The result of the call.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Box<RawValue>>,
    /// The error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ReplyError>,
    /// `true` to make the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// Replacement arguments for an approved call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Box<RawValue>>,
    /// The reason for not making the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject: Option<String>,
}

/// Keeps a `null` result apart from a missing one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// The error of a call.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with a message")]
pub struct ReplyError {
    /// The message that the program reads.
    pub message: String,
    /// The code that the program reads: a string or an integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub code: Option<ToolCode>,
}

impl Reply {
    /// Checks that the reply says exactly one thing, and that it fits the phase.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(&self, phase: &Phase) -> Result<(), String> {
        let said = [self.result.is_some(), self.error.is_some(), self.approve.is_some(), self.reject.is_some()];
        if said.iter().filter(|said| **said).count() != 1 {
            return Err("give exactly one of result, error, approve and reject".to_owned());
        }
        if self.approve == Some(false) {
            return Err("approve is true, or it is left out: {\"reject\": \"why\"} says no".to_owned());
        }
        if self.arguments.is_some() && self.approve.is_none() {
            return Err("arguments go with approve".to_owned());
        }
        if self.arguments.as_ref().is_some_and(|arguments| !arguments.get().starts_with('{')) {
            return Err("arguments is a JSON object, as the tool takes it".to_owned());
        }
        match phase {
            Phase::Gate if said[0] || said[1] => {
                Err("the call waits to be approved: say {\"approve\": true} or {\"reject\": \"why\"}".to_owned())
            }
            Phase::Result if said[2] || said[3] => {
                Err("the call waits for its result: say {\"result\": ..} or {\"error\": {\"message\": \"..\"}}"
                    .to_owned())
            }
            Phase::Unknown(_) if self.arguments.is_some() => {
                Err("the call is made as it was: leave out arguments".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether this approves or rejects the call, instead of reporting how it ended.
    pub fn is_decision(&self) -> bool {
        self.approve.is_some() || self.reject.is_some()
    }

    /// The result or error of the tool call.
    fn outcome(self) -> Result<Box<RawValue>, ToolError> {
        match (self.result, self.error) {
            (Some(result), _) => Ok(result),
            (None, None) => Err(ToolError::new("")),
            (None, Some(ReplyError { message, code })) => Err(match code {
                Some(code) => ToolError::new(message).with_code(code),
                None => ToolError::new(message),
            }),
        }
    }

    fn approval(self) -> Approval {
        match (self.reject, self.arguments) {
            (Some(why), _) => Approval::Reject(why),
            (None, Some(arguments)) => Approval::ApproveWith(arguments.get().to_owned()),
            (None, None) => Approval::Approve,
        }
    }
}

/// The open calls of one attempt of a run.
#[derive(Debug)]
pub(crate) struct OpenCalls {
    state: Mutex<DeskState>,
    log: Arc<EventLog>,
}

#[derive(Debug, Default)]
struct DeskState {
    open: BTreeMap<String, Open>,
    /// Replies to calls that this attempt has not reached.
    replies: HashMap<(String, String), Reply>,
    /// The number of replies that no call has received.
    said: usize,
}

#[derive(Debug)]
struct Open {
    call: WaitingCall,
    asker: Asker,
}

/// Where the answer of a call goes.
#[derive(Debug)]
enum Asker {
    /// The call is from an earlier attempt; this one has not reached it.
    Earlier,
    /// This attempt waits for it.
    Present(oneshot::Sender<Reply>),
    /// No one waits any more: the worker or the whole run has ended. The number is the run's step count at that time.
    Gone(u64),
}

impl Open {
    fn has_phase(&self, phase: &Phase) -> bool {
        self.call.phase == *phase
    }
}

impl OpenCalls {
    /// Creates the open calls of an attempt that resumes from a journal with these calls open.
    pub(crate) fn new(log: Arc<EventLog>, open: Vec<WaitingCall>) -> Self {
        let expected = |call: WaitingCall| (call.call.clone(), Open { call, asker: Asker::Earlier });
        let state = DeskState { open: open.into_iter().map(expected).collect(), ..DeskState::default() };
        OpenCalls { state: Mutex::new(state), log }
    }

    /// Takes over replies from earlier attempts.
    pub(crate) fn learn(&self, replies: &[StoredReply]) {
        let read = |reply: &StoredReply| {
            Some(((reply.call.clone(), reply.phase.clone()), serde_json::from_str(&reply.body).ok()?))
        };
        let mut state = self.lock();
        state.open.retain(|_, open| !open.call.is_answered(replies));
        state.replies.extend(replies.iter().filter_map(read));
    }

    /// Returns whether there are replies that no call has received.
    pub(crate) fn has_news(&self) -> bool {
        self.lock().said > 0
    }

    fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the open calls: those open in the journal without a reply. If no one waits for a call any more, the
    /// whole run may have ended, and the call stays open. If the run has made steps since, only a worker has ended, and
    /// the call is not open.
    pub(crate) fn open(&self) -> Vec<WaitingCall> {
        let state = self.lock();
        let steps = self.log.steps();
        let is_open = |open: &&Open| !matches!(open.asker, Asker::Gone(at) if at != steps);
        state.open.values().filter(is_open).map(|open| open.call.clone()).collect()
    }

    /// Returns whether the run waits for a call, or will reach one that an earlier attempt waited for.
    pub(crate) fn is_asked(&self) -> bool {
        self.lock().open.values().any(|open| !matches!(open.asker, Asker::Gone(_)))
    }

    /// Returns the number of calls that this attempt waits for.
    pub(crate) fn waiting(&self) -> usize {
        let is_present = |open: &&Open| matches!(&open.asker, Asker::Present(answered) if !answered.is_closed());
        self.lock().open.values().filter(is_present).count()
    }

    /// Delivers a reply.
    pub(crate) fn reply(&self, call: &str, phase: &Phase, reply: Reply) {
        let mut state = self.lock();
        state.said += 1;
        let open = state.open.get(call).is_some_and(|open| open.has_phase(phase)).then(|| state.open.remove(call));
        let unheard = match open.flatten().map(|open| open.asker) {
            Some(Asker::Present(answered)) => answered.send(reply).err(),
            _ => Some(reply),
        };
        // A later call of this attempt receives it.
        state.replies.extend(unheard.map(|reply| ((call.to_owned(), phase.name()), reply)));
    }

    /// Waits for a reply.
    async fn ask(&self, call: &ToolCall, phase: Phase) -> Reply {
        let name = call.place().to_string();
        let answer = {
            let mut state = self.lock();
            if let Some(reply) = state.replies.remove(&(name.clone(), phase.name())) {
                // It may have arrived after the attempt started.
                state.said = state.said.saturating_sub(1);
                return reply;
            }
            let (answered, answer) = oneshot::channel();
            let question = if phase == Phase::Gate { call.question().map(str::to_owned) } else { None };
            let arguments = arguments_of(call.json().to_owned());
            let waiting = WaitingCall { call: name.clone(), name: call.name().to_owned(), arguments, question, phase };
            self.log.push("waiting", &waiting);
            state.open.insert(name.clone(), Open { call: waiting, asker: Asker::Present(answered) });
            answer
        };
        let _here = Here { calls: self, call: &name };
        match answer.await {
            Ok(reply) => {
                let mut state = self.lock();
                state.said = state.said.saturating_sub(1);
                reply
            }
            // The open calls were dropped, and the run with them.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for the result of a call whose tool is the client.
    pub(crate) async fn result(&self, call: &ToolCall) -> Result<Box<RawValue>, ToolError> {
        self.ask(call, Phase::Result).await.outcome()
    }

    /// Waits for the decision on a call.
    pub(crate) async fn approval(&self, call: &ToolCall) -> Approval {
        self.ask(call, Phase::Gate).await.approval()
    }
}

/// Marks a call as no longer waited for when it is dropped.
struct Here<'a> {
    calls: &'a OpenCalls,
    call: &'a str,
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        let mut state = self.calls.lock();
        let steps = self.calls.log.steps();
        if let Some(open) = state.open.get_mut(self.call) {
            open.asker = Asker::Gone(steps);
        }
    }
}
