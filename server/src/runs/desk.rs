//! The desk of a run: calls that somebody outside answers, and what was said of them.

use super::events::EventLog;
use crate::store::StoredReply;
use lisp_runtime::{Approval, ToolCall, ToolCode, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What is wanted of whoever answers a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// To approve it, or not.
    Gate,
    /// Its result: the caller is the tool.
    Result,
    /// What came of it: it had begun when the service stopped, so many times.
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

/// A call that waits for somebody outside.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct WaitingCall {
    /// Its name in the run.
    pub call: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    #[schema(value_type = Object)]
    pub arguments: Box<RawValue>,
    /// What is to be approved, or found out; without it the call waits for its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) phase: Phase,
}

impl WaitingCall {
    /// Returns what is asked, in one word: `gate` for an approval, `result` for the result of a client's tool, and `unknown1`,
    /// `unknown2` and so on for how a call ended that had begun when the service stopped.
    pub fn asked(&self) -> String {
        self.phase.name()
    }
}

/// The arguments of a call, which are JSON text.
pub(crate) fn arguments_of(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// What somebody says of a call that waits.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub struct Reply {
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Box<RawValue>>,
    /// It failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ReplyError>,
    /// It may be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// The arguments that it is to be made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Box<RawValue>>,
    /// It may not be made, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject: Option<String>,
}

/// A result that is `null` is one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// Why a call failed.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with a message")]
pub struct ReplyError {
    /// What the program reads.
    pub message: String,
    /// The code that the program reads: a string or an integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub code: Option<ToolCode>,
}

impl Reply {
    /// Checks that it says one thing, and what fits.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(&self, phase: &Phase) -> Result<(), String> {
        let said = [self.result.is_some(), self.error.is_some(), self.approve.is_some(), self.reject.is_some()];
        if said.iter().filter(|said| **said).count() != 1 {
            return Err("say one of result, error, approve and reject".to_owned());
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

    /// Returns whether it approves or rejects a call, rather than says how the call ended.
    pub fn is_decision(&self) -> bool {
        self.approve.is_some() || self.reject.is_some()
    }

    /// What the tool's call comes to.
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

/// The desk of one life of a run.
#[derive(Debug)]
pub(crate) struct Desk {
    state: Mutex<DeskState>,
    log: Arc<EventLog>,
}

#[derive(Debug, Default)]
struct DeskState {
    open: BTreeMap<String, Open>,
    /// What was said before somebody asked.
    replies: HashMap<(String, String), Reply>,
    /// How many replies came that no call has heard.
    said: usize,
}

#[derive(Debug)]
struct Open {
    call: WaitingCall,
    asker: Asker,
}

/// Who waits for the answer of a call.
#[derive(Debug)]
enum Asker {
    /// An earlier life: this one has not come to the call yet.
    Earlier,
    /// This life.
    Present(oneshot::Sender<Reply>),
    /// Nobody any more, since the run had made so many steps: its worker has ended, or the whole run.
    Gone(u64),
}

impl Open {
    fn has_phase(&self, phase: &Phase) -> bool {
        self.call.phase == *phase
    }
}

impl Desk {
    /// The desk of a life that goes on from a journal in which these calls are open.
    pub(crate) fn new(log: Arc<EventLog>, open: Vec<WaitingCall>) -> Self {
        let expected = |call: WaitingCall| (call.call.clone(), Open { call, asker: Asker::Earlier });
        let state = DeskState { open: open.into_iter().map(expected).collect(), ..DeskState::default() };
        Desk { state: Mutex::new(state), log }
    }

    /// Learns what was said in earlier lives.
    pub(crate) fn learn(&self, replies: &[StoredReply]) {
        let read = |reply: &StoredReply| {
            Some(((reply.call.clone(), reply.phase.clone()), serde_json::from_str(&reply.body).ok()?))
        };
        let mut state = self.lock();
        state.open.retain(|_, open| !open.call.is_answered(replies));
        state.replies.extend(replies.iter().filter_map(read));
    }

    /// Was something said that no call has heard?
    pub(crate) fn has_news(&self) -> bool {
        self.lock().said > 0
    }

    fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls that are open: those that the journal has open, and nobody has answered. A call whose asker has gone is open as
    /// long as it may be the whole run that has ended; when the run goes on it was a worker of a parallel call that is over.
    pub(crate) fn open(&self) -> Vec<WaitingCall> {
        let state = self.lock();
        let steps = self.log.steps();
        let is_open = |open: &&Open| !matches!(open.asker, Asker::Gone(at) if at != steps);
        state.open.values().filter(is_open).map(|open| open.call.clone()).collect()
    }

    /// Does the run wait, or come to what an earlier life waited for?
    pub(crate) fn is_asked(&self) -> bool {
        self.lock().open.values().any(|open| !matches!(open.asker, Asker::Gone(_)))
    }

    /// How many calls this life waits for.
    pub(crate) fn waiting(&self) -> usize {
        let is_present = |open: &&Open| matches!(&open.asker, Asker::Present(answered) if !answered.is_closed());
        self.lock().open.values().filter(is_present).count()
    }

    /// Somebody has answered.
    pub(crate) fn reply(&self, call: &str, phase: &Phase, reply: Reply) {
        let mut state = self.lock();
        state.said += 1;
        let open = state.open.get(call).is_some_and(|open| open.has_phase(phase)).then(|| state.open.remove(call));
        let unheard = match open.flatten().map(|open| open.asker) {
            Some(Asker::Present(answered)) => answered.send(reply).err(),
            _ => Some(reply),
        };
        // Whoever asks later in this life hears it.
        state.replies.extend(unheard.map(|reply| ((call.to_owned(), phase.name()), reply)));
    }

    /// Waits for what somebody says.
    async fn ask(&self, call: &ToolCall, phase: Phase) -> Reply {
        let name = call.place().to_string();
        let answer = {
            let mut state = self.lock();
            if let Some(reply) = state.replies.remove(&(name.clone(), phase.name())) {
                // It may have come since the life began.
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
        let _here = Here { desk: self, call: &name };
        match answer.await {
            Ok(reply) => {
                let mut state = self.lock();
                state.said = state.said.saturating_sub(1);
                reply
            }
            // The desk has gone, and with it the run.
            Err(_) => std::future::pending().await,
        }
    }

    /// The result of a call whose tool is the caller.
    pub(crate) async fn result(&self, call: &ToolCall) -> Result<Box<RawValue>, ToolError> {
        self.ask(call, Phase::Result).await.outcome()
    }

    /// The decision on a call.
    pub(crate) async fn approval(&self, call: &ToolCall) -> Approval {
        self.ask(call, Phase::Gate).await.approval()
    }
}

/// Somebody waits for the answer of a call.
struct Here<'a> {
    desk: &'a Desk,
    call: &'a str,
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        let mut state = self.desk.lock();
        let steps = self.desk.log.steps();
        if let Some(open) = state.open.get_mut(self.call) {
            open.asker = Asker::Gone(steps);
        }
    }
}
