//! Open calls of a durable run while it runs, and the replies to them.

use super::events::EventLog;
use super::restored::RestoredCalls;
use crate::store::{RESTORED, StoredCall, StoredReply};
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
    /// Returns the phase of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "gate" => Some(Phase::Gate),
            "result" => Some(Phase::Result),
            _ => name.strip_prefix("unknown")?.parse().ok().filter(|times| *times > 0).map(Phase::Unknown),
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Phase::Gate => "gate".to_owned(),
            Phase::Result => "result".to_owned(),
            Phase::Unknown(times) => format!("unknown{times}"),
        }
    }
}

impl Serialize for Phase {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
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
    #[schema(schema_with = super::schemas::arguments)]
    pub arguments: Box<RawValue>,
    /// The question to decide or to find out; absent if the call waits for its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// What the call waits for: `gate`, `result`, or `unknown1`, `unknown2` and so on.
    #[schema(value_type = String)]
    pub(crate) phase: Phase,
}

impl WaitingCall {
    /// Returns what the call waits for, in one word. `gate` is an approval and `result` the result of a client's tool.
    /// `unknown1`, `unknown2` and so on ask how a call ended that had started when the service stopped.
    pub fn asked(&self) -> String {
        self.phase.name()
    }
}

impl WaitingCall {
    /// Returns the question without the note that the store was restored from a backup, and whether it had the note.
    pub fn own_question(&self) -> Option<(&str, bool)> {
        let question = self.question.as_deref()?;
        Some(match question.strip_prefix(RESTORED) {
            Some(own) => (own.trim_start_matches([':', ' ']), true),
            None => (question, false),
        })
    }
}

impl From<&StoredCall> for WaitingCall {
    fn from(stored: &StoredCall) -> Self {
        WaitingCall {
            call: stored.call.clone(),
            name: stored.tool.clone(),
            arguments: arguments_of(stored.arguments.clone()),
            question: stored.question.clone(),
            phase: Phase::of(&stored.phase).unwrap_or(Phase::Result),
        }
    }
}

impl From<&WaitingCall> for StoredCall {
    fn from(open: &WaitingCall) -> Self {
        StoredCall {
            call: open.call.clone(),
            phase: open.phase.name(),
            number: 0,
            tool: open.name.clone(),
            arguments: open.arguments.get().to_owned(),
            question: open.question.clone(),
        }
    }
}

/// Turns the arguments of a call, which are JSON text, into a raw value.
pub(crate) fn arguments_of(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A reply to an open call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
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
    #[schema(schema_with = super::schemas::new_arguments)]
    pub arguments: Option<Box<RawValue>>,
    /// The reason for not making the call.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "reason")]
    pub reject: Option<String>,
    /// The `phase` of the open call that this answers. A decision on a call that may have been made already needs it: one
    /// that was meant for an earlier question and comes late would make the call a second time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// Keeps a `null` result apart from a missing one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// Reads the reason of a rejection.
fn reason<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let given = Option::<Box<RawValue>>::deserialize(deserializer)?;
    let read = |given: Box<RawValue>| serde_json::from_str(given.get());
    given
        .map(read)
        .transpose()
        .map_err(|_| serde::de::Error::custom("`reject` is the reason, a string, as in {\"reject\": \"too much\"}"))
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
            return Err("`approve` must be true; to reject, send {\"reject\": \"why\"}".to_owned());
        }
        if self.arguments.is_some() && self.approve.is_none() {
            return Err("arguments go with approve".to_owned());
        }
        if self.arguments.as_ref().is_some_and(|arguments| !arguments.get().starts_with('{')) {
            return Err("arguments is a JSON object, as the tool takes it".to_owned());
        }
        match phase {
            Phase::Gate if said[0] || said[1] => {
                Err("the call waits to be approved: send {\"approve\": true} or {\"reject\": \"why\"}".to_owned())
            }
            Phase::Result if said[2] || said[3] => {
                Err("the call waits for its result: send {\"result\": ..} or {\"error\": {\"message\": \"..\"}}"
                    .to_owned())
            }
            Phase::Unknown(_) if self.arguments.is_some() => {
                Err("the call is made as it was: leave out arguments".to_owned())
            }
            Phase::Unknown(_) if self.is_decision() && self.phase.is_none() => Err(format!(
                "the call may have been made already: find out, then send its result or error. To decide without that, add \
                 \"phase\": {:?}",
                phase.name()
            )),
            _ => Ok(()),
        }
    }

    /// Returns the texts that the journal of the run takes, with their names.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let error = self.error.as_ref();
        let code = error.and_then(|error| match &error.code {
            Some(ToolCode::Name(code)) => Some(code.as_str()),
            _ => None,
        });
        let texts = [
            ("result", self.result.as_ref().map(|result| result.get())),
            ("arguments", self.arguments.as_ref().map(|arguments| arguments.get())),
            ("error.message", error.map(|error| error.message.as_str())),
            ("error.code", code),
            ("reject", self.reject.as_deref()),
        ];
        texts.into_iter().filter_map(|(name, text)| Some((name, text?)))
    }

    /// Returns the reply as it is stored, beside the phase.
    pub(super) fn without_phase(&self) -> Reply {
        Reply { phase: None, ..self.clone() }
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

/// The open calls of one attempt of a run. The store has them too: this passes the replies on.
#[derive(Debug)]
pub(crate) struct OpenCalls {
    state: Mutex<OpenState>,
    log: Arc<EventLog>,
}

#[derive(Debug, Default)]
struct OpenState {
    open: BTreeMap<(String, String), ReplyTarget>,
    /// Replies to calls that this attempt has not reached.
    replies: HashMap<(String, String), Reply>,
    /// The attempt is over: calls that it leaves stay open.
    is_over: bool,
}

/// Where the reply to a call goes.
#[derive(Debug)]
enum ReplyTarget {
    /// The call is from an earlier attempt; this one has not reached it.
    Earlier,
    /// This attempt waits for it.
    Present(oneshot::Sender<Reply>),
    /// The worker that waited has ended, or the whole run has. The number is the run's step count at that time.
    Gone(u64),
}

impl OpenCalls {
    /// Creates the open calls of an attempt, with those that earlier attempts have opened and the replies so far.
    pub(crate) fn new(log: Arc<EventLog>, open: &[StoredCall], replies: &[StoredReply]) -> Self {
        let open = open.iter().map(|call| ((call.call.clone(), call.phase.clone()), ReplyTarget::Earlier)).collect();
        let replies = replies.iter().filter_map(|reply| Some((key_of(reply), read(reply)?))).collect();
        OpenCalls { state: Mutex::new(OpenState { open, replies, is_over: false }), log }
    }

    fn lock(&self) -> MutexGuard<'_, OpenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of calls in progress, and a number that changes with every print and call.
    pub(crate) fn pace(&self) -> (usize, u64) {
        self.log.pace()
    }

    /// Returns the number of calls that are held back, because they may have happened before the store was restored.
    pub(crate) fn held_back(&self) -> usize {
        self.log.restored.get().map_or(0, RestoredCalls::count)
    }

    /// Returns the number of calls that are not made, because the service shuts down.
    pub(crate) fn held(&self) -> usize {
        self.log.writer().map_or(0, |writer| writer.held())
    }

    /// Returns the number of calls of scripted tools in progress.
    pub(crate) fn scripted(&self) -> usize {
        self.log.scripted()
    }

    /// Returns the tools of the calls in progress.
    pub(crate) fn tools_in_progress(&self) -> Vec<String> {
        self.log.tools_in_progress()
    }

    /// Returns the number of calls that this attempt waits for.
    pub(crate) fn waiting(&self) -> usize {
        let is_present =
            |target: &&ReplyTarget| matches!(target, ReplyTarget::Present(answered) if !answered.is_closed());
        self.lock().open.values().filter(is_present).count()
    }

    /// Closes calls that no worker waits for any more: the run has gone on without them.
    pub(crate) fn close_left(&self) {
        let (steps, mut closed) = (self.log.steps(), Vec::new());
        let mut state = self.lock();
        if state.is_over {
            return;
        }
        state.open.retain(|key, target| {
            let is_left = matches!(target, ReplyTarget::Gone(at) if *at != steps);
            if is_left {
                closed.push(key.clone());
            }
            !is_left
        });
        drop(state);
        if let Some(writer) = self.log.writer() {
            closed.iter().for_each(|(call, phase)| writer.close_call(call, phase));
        }
    }

    /// Notes that the attempt is over: calls that it leaves from here on stay open.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
    }

    /// Passes a reply on that the store has taken.
    pub(crate) fn reply(&self, reply: &StoredReply) {
        let (key, Some(reply)) = (key_of(reply), read(reply)) else { return };
        let mut state = self.lock();
        let unheard = match state.open.remove(&key) {
            Some(ReplyTarget::Present(answered)) => answered.send(reply).err(),
            _ => Some(reply),
        };
        // This attempt may still come to the call.
        state.replies.extend(unheard.map(|reply| (key, reply)));
    }

    /// Waits for a reply.
    async fn ask(&self, call: &ToolCall, phase: Phase) -> Reply {
        if self.log.ends_here() {
            return std::future::pending().await;
        }
        let key = (call.place().to_string(), phase.name());
        let answer = {
            let mut state = self.lock();
            if let Some(reply) = state.replies.remove(&key) {
                return reply;
            }
            let (answered, answer) = oneshot::channel();
            let known = state.open.insert(key.clone(), ReplyTarget::Present(answered));
            drop(state);
            if known.is_none() {
                self.open(call, phase);
            }
            answer
        };
        let _guard = WaitGuard { calls: self, key: &key };
        match answer.await {
            Ok(reply) => reply,
            // The open calls were dropped, and the run with them.
            Err(_) => std::future::pending().await,
        }
    }

    fn open(&self, call: &ToolCall, phase: Phase) {
        let question = call.question().filter(|_| phase == Phase::Gate);
        let may_have_happened =
            self.log.restored.get().is_some_and(|restored| restored.may_have_happened(call.place()));
        let question = question.map(|question| match may_have_happened {
            true => format!("{RESTORED}: {question}"),
            false => question.to_owned(),
        });
        let (arguments, call) = (arguments_of(call.json().to_owned()), (call.place().to_string(), call.name()));
        let waiting = WaitingCall { call: call.0, name: call.1.to_owned(), arguments, question, phase };
        self.log.push("waiting", &waiting);
        if let Some(writer) = self.log.writer() {
            writer.open((&waiting).into());
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

fn key_of(reply: &StoredReply) -> (String, String) {
    (reply.call.clone(), reply.phase.clone())
}

fn read(reply: &StoredReply) -> Option<Reply> {
    serde_json::from_str(&reply.body).ok()
}

/// Marks a call as no longer waited for when it is dropped.
struct WaitGuard<'a> {
    calls: &'a OpenCalls,
    key: &'a (String, String),
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let steps = self.calls.log.steps();
        if let Some(target) = self.calls.lock().open.get_mut(self.key) {
            *target = ReplyTarget::Gone(steps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_of_a_restored_run_is_its_own_after_the_note() {
        let call = |question: Option<String>| {
            let (call, phase, tool) = ("1".to_owned(), "gate".to_owned(), "refund".to_owned());
            WaitingCall::from(&StoredCall { call, phase, number: 1, tool, arguments: "{}".to_owned(), question })
        };
        assert_eq!(call(Some("Refund 5?".to_owned())).own_question(), Some(("Refund 5?", false)));
        assert_eq!(call(Some(format!("{RESTORED}: Refund 5?"))).own_question(), Some(("Refund 5?", true)));
        assert_eq!(call(None).own_question(), None);
    }
}
