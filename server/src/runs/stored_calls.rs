//! What the journal of a run says of its open calls, and how those are settled whose process ended.

use super::open_calls::{Phase, ReplyError, WaitingCall, arguments_of};
use crate::store::{Batch, StoredReply};
use lisp_runtime::outcome::Place;
use lisp_runtime::record::{CallState, OpenCall, RecordError, Settled};
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Record, Request, Tool};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What to do about a call that had started when its process ended.
enum Begun {
    /// The client is the tool and is asked again. It recognizes the call by its name.
    Client,
    /// The call may be made again.
    Repeatable,
    /// It is unknown whether the call took effect.
    Unknown,
}

/// Decides by the stricter of what the tool declares today and what it declared when the run started.
fn begun(engine: &Engine, own: &OwnTools, record: &Record, call: &OpenCall) -> Begun {
    match own.get(&call.tool) {
        Some(true) => return Begun::Client,
        // Scripted tools have no effect.
        Some(false) => return Begun::Repeatable,
        None => {}
    }
    let tool = engine.tools().all().find(|tool| tool.name() == call.tool);
    match tool {
        Some(tool) if is_repeatable(tool.effect(), tool.is_idempotent()) && was_repeatable(record, &call.tool) => {
            Begun::Repeatable
        }
        _ => Begun::Unknown,
    }
}

fn is_repeatable(effect: Effect, is_idempotent: bool) -> bool {
    effect == Effect::Read || is_idempotent
}

fn was_repeatable(record: &Record, tool: &str) -> bool {
    record.declared(tool).is_none_or(|(effect, is_idempotent)| is_repeatable(effect, is_idempotent))
}

/// The tools of a request, by the names that programs use. The value says whether the client answers the calls.
type OwnTools = BTreeMap<String, bool>;

fn own_tools(request: &Request<'_>) -> OwnTools {
    let named = request.tools.iter().map(|(name, tool)| (Tool::external(name.as_str()).name().to_owned(), tool.client));
    named.collect()
}

/// Returns the calls of a journal that have one of these states, once for each line.
fn calls_in(journal: &str, states: &[CallState]) -> impl Iterator<Item = String> {
    journal.lines().skip(1).filter_map(|line| in_state(line, states))
}

/// Returns the call of a line, if the line says that it is in one of these states.
fn in_state(line: &str, states: &[CallState]) -> Option<String> {
    #[derive(Deserialize)]
    struct Line {
        call: Option<String>,
        state: Option<CallState>,
    }
    let line: Line = serde_json::from_str(line).ok()?;
    line.call.filter(|_| line.state.is_some_and(|state| states.contains(&state)))
}

/// Returns the calls that have ended.
pub(crate) fn places_ended(journal: &str) -> impl Iterator<Item = Place> {
    calls_in(journal, &[CallState::Done, CallState::Failed]).filter_map(|call| call.parse().ok())
}

/// Drops the starts of calls that were not made: a call is made once its start is stored, and these are not stored yet.
pub(crate) fn without_unmade(mut batch: Batch) -> Batch {
    let ended: BTreeSet<String> =
        batch.lines.iter().filter_map(|line| in_state(line, &[CallState::Done, CallState::Failed])).collect();
    batch.lines.retain(|line| in_state(line, &[CallState::Started]).is_none_or(|call| ended.contains(&call)));
    batch
}

/// Counts how often each call has started.
fn times_begun(journal: &str) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    for call in calls_in(journal, &[CallState::Started]) {
        *times.entry(call).or_insert(0) += 1;
    }
    times
}

/// Returns the calls that have started at least once.
pub(crate) fn places_begun(journal: &str) -> impl Iterator<Item = Place> + use<> {
    times_begun(journal).into_keys().filter_map(|call| call.parse().ok())
}

/// Settles the calls that had started when their process ended, with the replies that say how they ended. Returns the
/// calls whose replies are missing. A call that would be made again fails if `denies` has a reason for its tool.
///
/// # Errors
/// If a reply does not fit the record.
pub(crate) fn settle(
    engine: &Engine,
    (request, denies): (&Request<'_>, &dyn Fn(&Tool) -> Option<&'static str>),
    replies: &[StoredReply],
    record: &mut Record,
) -> Result<Vec<WaitingCall>, RecordError> {
    let (own, times) = (own_tools(request), times_begun(record.text()));
    let mut unknown = Vec::new();
    for call in record.open_calls() {
        if call.state != CallState::Started {
            continue;
        }
        let how = match begun(engine, &own, record, &call) {
            Begun::Client | Begun::Repeatable => Some(Settled::NotMade),
            Begun::Unknown => {
                let phase = Phase::Unknown(times.get(&call.name).copied().unwrap_or(1));
                let name = phase.name();
                let reply = replies.iter().find(|reply| reply.call == call.name && reply.phase == name);
                let how = reply.and_then(|reply| settled(&reply.body));
                if how.is_none() {
                    unknown.push(unknown_call(&call, phase));
                }
                how
            }
        };
        let tool = engine.tools().all().find(|tool| tool.name() == call.tool && !own.contains_key(&call.tool));
        let how = match (how, tool.and_then(|tool| denies(tool))) {
            (Some(Settled::NotMade), Some(why)) => {
                Some(Settled::Failed(format!("tool/{} was denied: {why}", call.tool)))
            }
            (how, _) => how,
        };
        if let Some(how) = how {
            record.settle(&call.name, how)?;
        }
    }
    Ok(unknown)
}

fn unknown_call(call: &OpenCall, phase: Phase) -> WaitingCall {
    let question = "The call had started when the service stopped. Did it take effect? Send its result or error, approve to make \
                    it again, or reject to make it fail.";
    WaitingCall {
        call: call.name.clone(),
        name: call.tool.clone(),
        arguments: arguments_of(call.arguments.clone()),
        question: Some(question.to_owned()),
        phase,
    }
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
