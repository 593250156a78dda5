//! What the journal of a run says of its open calls, and how those are settled whose process ended.

use super::open_calls::{Phase, ReplyError, WaitingCall, arguments_of};
use crate::store::{RESTORED, StoredReply};
use lisp_runtime::outcome::Place;
use lisp_runtime::record::{CallState, OpenCall, RecordError, Settled};
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Record, Request, Tool};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What to do about a call that had started when its process ended.
enum StartedCall {
    /// The client is the tool and is asked again. It recognizes the call by its name.
    Client,
    /// The call may be made again.
    Repeatable,
    /// It is unknown whether the call took effect.
    Unknown,
}

/// Decides by the stricter of what the tool declares today and what it declared when the run started.
fn started_call(engine: &Engine, own: &OwnTools, record: &Record, call: &OpenCall) -> StartedCall {
    match own.get(&call.tool) {
        Some(true) => return StartedCall::Client,
        // Scripted tools have no effect.
        Some(false) => return StartedCall::Repeatable,
        None => {}
    }
    let tool = engine.tools().all().find(|tool| tool.name() == call.tool);
    match tool {
        Some(tool) if is_repeatable(tool.effect(), tool.is_idempotent()) && was_repeatable(record, &call.tool) => {
            StartedCall::Repeatable
        }
        _ => StartedCall::Unknown,
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

/// A line of a journal, as far as it is read here.
#[derive(Deserialize)]
struct Line {
    call: Option<String>,
    state: Option<CallState>,
    gate: Option<String>,
    decision: Option<String>,
    why: Option<String>,
}

fn lines(journal: &str) -> impl Iterator<Item = Line> + use<'_> {
    journal.lines().skip(1).filter_map(|line| serde_json::from_str(line).ok())
}

impl Line {
    /// Returns the call of the line, if the line says that it is in one of these states.
    fn call_in(self, states: &[CallState]) -> Option<String> {
        self.call.filter(|_| self.state.is_some_and(|state| states.contains(&state)))
    }
}

/// The states of calls that have ended.
const ENDED: &[CallState] = &[CallState::Done, CallState::Failed];

/// Returns the calls that have ended.
pub(crate) fn places_ended(journal: &str) -> impl Iterator<Item = Place> + use<'_> {
    lines(journal).filter_map(|line| line.call_in(ENDED)?.parse().ok())
}

/// Returns the number of calls that the program has come to.
pub(crate) fn calls_begun(journal: &str) -> u64 {
    let calls: BTreeSet<String> = lines(journal).filter_map(|line| line.state.and(line.call)).collect();
    calls.len() as u64
}

/// Counts how often each call has started.
fn start_counts(journal: &str) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    for call in lines(journal).filter_map(|line| line.call_in(&[CallState::Started])) {
        *times.entry(call).or_insert(0) += 1;
    }
    times
}

/// Returns the questions that approvers were asked, by the names of the calls.
fn questions(journal: &str) -> BTreeMap<String, String> {
    let asks = lines(journal).filter(|line| line.decision.as_deref() == Some("ask"));
    asks.filter_map(|line| Some((line.gate?, line.why?))).collect()
}

/// Returns the calls that have started at least once.
pub(crate) fn places_started(journal: &str) -> impl Iterator<Item = Place> + use<> {
    start_counts(journal).into_keys().filter_map(|call| call.parse().ok())
}

/// Says why calls of a tool are not made any more; `None` if they are.
pub(crate) type Denies<'a> = &'a dyn Fn(&Tool) -> Option<&'static str>;

/// Settles the calls that had started when their process ended, with the replies that say how they ended. Returns the
/// calls whose replies are missing. A call that would be made again fails if `denies` has a reason for its tool. The
/// questions say so if the run came from a backup.
///
/// # Errors
/// If a reply does not fit the record.
pub(crate) fn settle(
    engine: &Engine,
    (request, denies): (&Request<'_>, Denies<'_>),
    replies: &[StoredReply],
    record: &mut Record,
    is_restored: bool,
) -> Result<Vec<WaitingCall>, RecordError> {
    let (own, times) = (own_tools(request), start_counts(record.text()));
    let mut unknown = Vec::new();
    for call in record.open_calls() {
        if call.state != CallState::Started {
            continue;
        }
        let how = match started_call(engine, &own, record, &call) {
            StartedCall::Client | StartedCall::Repeatable => Some(Settled::NotMade),
            StartedCall::Unknown => {
                let phase = Phase::Unknown(times.get(&call.name).copied().unwrap_or(1));
                let name = phase.name();
                let reply = replies.iter().find(|reply| reply.call == call.name && reply.phase == name);
                let how = reply.and_then(|reply| settled(&reply.body));
                if how.is_none() {
                    unknown.push((call.clone(), phase));
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
    let questions = if unknown.is_empty() { BTreeMap::new() } else { questions(record.text()) };
    let run_id = record.run_id();
    let open = unknown.into_iter().map(|(call, phase)| WaitingCall {
        question: Some(unknown_question(run_id, (&call, &phase), questions.get(&call.name), is_restored)),
        call: call.name,
        name: call.tool,
        arguments: arguments_of(call.arguments),
        phase,
    });
    Ok(open.collect())
}

/// Asks what has come of a call.
fn unknown_question(
    run_id: &str,
    (call, phase): (&OpenCall, &Phase),
    question: Option<&String>,
    is_restored: bool,
) -> String {
    let what = question.cloned().unwrap_or_else(|| format!("a call of {}.", call.tool));
    let (start, again) = match is_restored {
        true => (RESTORED, "make it"),
        false => ("It is unknown whether this was done", "make it again"),
    };
    format!(
        "{start}: {what} Look for the Idempotency-Key {run_id}/{} at the tool, then send its result or error. \
         If you cannot find out, approve to {again}, or reject to make it fail, with the phase {}.",
        call.name,
        phase.name()
    )
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
