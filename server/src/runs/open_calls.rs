//! Calls of a run that has stopped which somebody outside has to answer.

use super::desk::{Phase, WaitingCall};
use crate::store::StoredReply;
use lisp_runtime::{CallState, Effect, Engine, OpenCall, Record, Request, Settled, Tool};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

impl WaitingCall {
    /// Has somebody answered it?
    pub(crate) fn is_answered(&self, replies: &[StoredReply]) -> bool {
        self.answer(replies).is_some()
    }

    pub(crate) fn answer<'a>(&self, replies: &'a [StoredReply]) -> Option<&'a StoredReply> {
        let phase = self.phase.name();
        replies.iter().find(|reply| reply.call == self.call && reply.phase == phase)
    }
}

/// What the end of its process made of a call that had begun.
enum Begun {
    /// The caller is the tool: it is asked again, and knows the call by its name.
    Client,
    /// It may be made again.
    Repeatable,
    /// Nobody knows whether it was made.
    Unknown,
}

fn begun(engine: &Engine, clients: &[String], call: &OpenCall) -> Begun {
    if clients.contains(&call.tool) {
        return Begun::Client;
    }
    let tool = engine.tools().all().find(|tool| tool.name() == call.tool);
    match tool {
        Some(tool) if tool.effect_of() == Effect::Read || tool.is_idempotent() => Begun::Repeatable,
        _ => Begun::Unknown,
    }
}

/// The tools of a request that its client answers, by the names that programs have for them.
fn clients(request: &str) -> Vec<String> {
    let Ok(request) = Request::parse(request) else { return Vec::new() };
    let clients = request.tools.iter().filter(|(_, tool)| tool.client);
    clients.map(|(name, _)| Tool::external(name.as_str()).name().to_owned()).collect()
}

/// How often each call has begun.
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

/// The calls of a run that has stopped which wait for somebody outside.
pub(crate) fn open_calls(engine: &Engine, request: &str, journal: &str) -> Vec<WaitingCall> {
    let Ok(record) = Record::parse_within(journal, usize::MAX) else { return Vec::new() };
    let (clients, times) = (clients(request), times_begun(journal));
    let waiting = |call: OpenCall| {
        let (phase, question) = match (call.state, &call.question) {
            (CallState::Asked, Some(question)) => (Phase::Gate, Some(question.clone())),
            (CallState::Begun, _) => match begun(engine, &clients, &call) {
                Begun::Client => (Phase::Result, None),
                Begun::Unknown => {
                    let question = "It had begun when the service stopped. Was it made? Say its result or error; approve makes \
                                    it again, reject lets it fail.";
                    let times = times.get(&call.name).copied().unwrap_or(1);
                    (Phase::Unknown(times), Some(question.to_owned()))
                }
                Begun::Repeatable => return None,
            },
            _ => return None,
        };
        let arguments = RawValue::from_string(call.arguments).unwrap_or_default();
        Some(WaitingCall { call: call.name, name: call.tool, arguments, question, phase })
    };
    record.open_calls().into_iter().filter_map(waiting).collect()
}

/// Settles the calls that had begun, as far as somebody has said what came of them. False when somebody has to say more.
pub(crate) fn settle(
    engine: &Engine,
    request: &str,
    record: &mut Record,
    replies: &[StoredReply],
) -> Result<bool, lisp_runtime::RecordError> {
    let (clients, waiting) = (clients(request), open_calls(engine, request, record.text()));
    let mut is_settled = true;
    for call in record.open_calls() {
        if call.state != CallState::Begun {
            continue;
        }
        let how = match begun(engine, &clients, &call) {
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
    let reply: super::desk::Reply = serde_json::from_str(reply).ok()?;
    Some(match (reply.result, reply.error, reply.reject) {
        (Some(result), ..) => Settled::Done(result.get().to_owned()),
        (None, Some(error), _) => Settled::Failed(error.message),
        (None, None, Some(why)) => Settled::Failed(why),
        (None, None, None) => Settled::NotMade,
    })
}
