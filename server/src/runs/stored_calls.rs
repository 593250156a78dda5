//! Open calls of a suspended run, as found in its journal.

use super::open_calls::{Phase, ReplyError, WaitingCall, arguments_of};
use crate::old_store::{RunStatus, Snapshot, StoredReply};
use lisp_runtime::outcome::Place;
use lisp_runtime::record::{CallState, OpenCall, Settled};
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Record, Request, Tool};
use serde::Deserialize;
use std::collections::BTreeMap;

impl WaitingCall {
    /// Returns whether there is a reply to this call.
    pub(crate) fn is_answered(&self, replies: &[StoredReply]) -> bool {
        self.answer(replies).is_some()
    }

    pub(crate) fn answer<'a>(&self, replies: &'a [StoredReply]) -> Option<&'a StoredReply> {
        let phase = self.phase.name();
        replies.iter().find(|reply| reply.call == self.call && reply.phase == phase)
    }
}

/// What to do about a call that had started when its process ended.
enum Begun {
    /// The client is the tool and is asked again. It recognizes the call by its name.
    Client,
    /// The call may be made again.
    Repeatable,
    /// It is unknown whether the call took effect.
    Unknown,
}

fn begun(engine: &Engine, own: &OwnTools, call: &OpenCall) -> Begun {
    match own.get(&call.tool) {
        Some(true) => return Begun::Client,
        // Scripted tools have no effect.
        Some(false) => return Begun::Repeatable,
        None => {}
    }
    let tool = engine.tools().all().find(|tool| tool.name() == call.tool);
    match tool {
        Some(tool) if tool.effect() == Effect::Read || tool.is_idempotent() => Begun::Repeatable,
        _ => Begun::Unknown,
    }
}

/// The tools of a request, by the names that programs use. The value says whether the client answers the calls.
type OwnTools = BTreeMap<String, bool>;

fn own_tools(request: &str) -> OwnTools {
    let Ok(request) = Request::parse(request) else { return OwnTools::new() };
    let named = request.tools.iter().map(|(name, tool)| (Tool::external(name.as_str()).name().to_owned(), tool.client));
    named.collect()
}

/// Counts how often each call has started.
fn times_begun(journal: &str) -> BTreeMap<String, usize> {
    #[derive(Deserialize)]
    struct Line {
        call: Option<String>,
        state: Option<CallState>,
    }
    let mut times = BTreeMap::new();
    let lines = journal.lines().skip(1).filter_map(|line| serde_json::from_str::<Line>(line).ok());
    for line in lines.filter(|line| line.state == Some(CallState::Begun)) {
        if let Some(call) = line.call {
            *times.entry(call).or_insert(0) += 1;
        }
    }
    times
}

/// Returns the calls that have started at least once.
pub(crate) fn places_begun(journal: &str) -> impl Iterator<Item = Place> + use<> {
    times_begun(journal).into_keys().filter_map(|call| call.parse().ok())
}

/// Returns the open calls of a run. A running run has no calls with an unknown result.
pub(crate) fn stored_calls(engine: &Engine, snapshot: &Snapshot) -> Vec<WaitingCall> {
    let Ok(record) = Record::parse_within(snapshot.journal.as_str(), usize::MAX) else { return Vec::new() };
    let all = all_open(engine, &snapshot.run.request, &record).into_iter();
    let is_unknown = |open: &WaitingCall| matches!(open.phase, Phase::Unknown(_));
    let runs = snapshot.run.status == RunStatus::Running;
    all.filter(|open| !(open.is_answered(&snapshot.replies) || runs && is_unknown(open))).collect()
}

fn all_open(engine: &Engine, request: &str, record: &Record) -> Vec<WaitingCall> {
    let (own, times) = (own_tools(request), times_begun(record.text()));
    let waiting = |call: OpenCall| {
        let (phase, question) = match (call.state, &call.question) {
            (CallState::Asked, Some(question)) => (Phase::Gate, Some(question.clone())),
            // An attempt ended just before it asked its client again.
            (CallState::Asked, None) if own.get(&call.tool) == Some(&true) => (Phase::Result, None),
            (CallState::Begun, _) => match begun(engine, &own, &call) {
                Begun::Client => (Phase::Result, None),
                Begun::Unknown => {
                    let question = "The call had started when the service stopped. Did it take effect? Send its result or error, \
                                    approve to make it again, or reject to make it fail.";
                    let times = times.get(&call.name).copied().unwrap_or(1);
                    (Phase::Unknown(times), Some(question.to_owned()))
                }
                Begun::Repeatable => return None,
            },
            _ => return None,
        };
        let arguments = arguments_of(call.arguments);
        Some(WaitingCall { call: call.name, name: call.tool, arguments, question, phase })
    };
    record.open_calls().into_iter().filter_map(waiting).collect()
}

/// Settles the calls that had started, using the replies that say how they ended. Returns false if replies are
/// missing.
pub(crate) fn settle(
    engine: &Engine,
    snapshot: &Snapshot,
    record: &mut Record,
) -> Result<bool, lisp_runtime::record::RecordError> {
    let Snapshot { run, replies, .. } = snapshot;
    let (own, waiting) = (own_tools(&run.request), all_open(engine, &run.request, record));
    let mut is_settled = true;
    for call in record.open_calls() {
        if call.state != CallState::Begun {
            continue;
        }
        let how = match begun(engine, &own, &call) {
            Begun::Client | Begun::Repeatable => Some(Settled::NotMade),
            Begun::Unknown => {
                let unknown = waiting.iter().find(|open| open.call == call.name);
                unknown.and_then(|unknown| unknown.answer(replies)).and_then(|reply| settled(&reply.body))
            }
        };
        match how {
            Some(how) => record.settle(&call.name, how)?,
            None => is_settled = false,
        }
    }
    Ok(is_settled)
}

fn settled(reply: &str) -> Option<Settled> {
    let reply: super::open_calls::Reply = serde_json::from_str(reply).ok()?;
    Some(match (reply.result, reply.error, reply.reject) {
        (Some(result), ..) => Settled::Done(result.get().to_owned()),
        (None, Some(ReplyError { message, code: Some(code) }), _) => Settled::FailedWith(message, code),
        (None, Some(error), _) => Settled::Failed(error.message),
        (None, None, Some(why)) => Settled::Failed(why),
        (None, None, None) => Settled::NotMade,
    })
}
