//! The messages between the halves: calls, replies, errors, and the report of a run.

use crate::api::session::SessionChanges;
use crate::terms::clock::Reading;
use crate::terms::error_data::ErrorData;
use crate::terms::outcome::{
    Answer, Call, Figures, FurtherError, LedgerEntry, Local, Outcome, OutcomeKind, Phase, Position, Preview, Problem,
    Usage,
};
use crate::terms::place::Place;
use crate::terms::profile::Profile;
use crate::terms::warning::Warning;
use crate::tools::tool::{Reply, ToolCall};
use lisp_core::Error;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A tool call, sent to the other half.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GuestCall<'a> {
    /// The number in the run, from 1.
    pub number: u64,
    /// The name in the run, which includes the path to the worker.
    pub place: Cow<'a, Place>,
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments, a JSON object.
    pub arguments: Cow<'a, str>,
    /// The figures of the program, absent in the call of a worker. A separate message would wake the other half twice
    /// per call.
    pub figures: Option<Figures>,
    /// The workers from which on calls were discarded since the last call, because an earlier call failed.
    #[serde(default)]
    pub given_up: Vec<Place>,
    /// Whether everything before it in program order has ended. Always true for a call of the program itself.
    #[serde(default)]
    pub has_turn: bool,
}

impl<'a> GuestCall<'a> {
    pub(super) fn of(call: &'a ToolCall, figures: Option<Figures>, given_up: Vec<Place>, has_turn: bool) -> Self {
        GuestCall {
            number: call.number,
            place: Cow::Borrowed(&call.place),
            name: Cow::Borrowed(call.name()),
            arguments: Cow::Borrowed(&call.arguments),
            figures,
            given_up,
            has_turn,
        }
    }
}

/// The reply to a tool call, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CallReply {
    /// How the call ended.
    Ended(Reply),
    /// The call is to be asked again when it has its turn.
    Later,
    /// This reply; and calls made ahead may exceed the limit, so no worker ends before its turn from now on.
    Exact(Box<CallReply>),
}

impl CallReply {
    /// There was no reply in time.
    pub const LATE: CallReply = CallReply::Ended(Reply::Late);

    pub(super) fn refused(error: Error) -> Self {
        CallReply::Ended(Reply::Refused(error))
    }

    /// Returns true if the run may not make the call.
    pub fn is_refusal(&self) -> bool {
        matches!(self, CallReply::Ended(Reply::Refused(_)))
    }

    /// Returns the reply, and whether workers end in turn from now on.
    pub(super) fn opened(self) -> (CallReply, bool) {
        match self {
            CallReply::Exact(reply) => (*reply, true),
            reply => (reply, false),
        }
    }
}

/// The outcome of a guest half, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    end: Result<ReportedValue, ReportedProblem>,
    /// Lines that were not sent before.
    pub(super) prints: Vec<String>,
    /// Whether these are all lines: those sent before may be in another order.
    pub(super) whole: bool,
    /// The numbers of the tool calls in program order.
    pub(super) calls: Vec<u64>,
    /// The numbers of discarded calls.
    #[serde(default)]
    pub(super) given_up: Vec<u64>,
    prints_dropped: u64,
    #[serde(with = "EveryFigure")]
    usage: Usage,
    /// The names that a session has defined.
    names: Vec<String>,
    /// The clock readings of the program.
    pub(super) clock: Vec<Reading>,
    /// Number of lines that are cut.
    prints_cut: u64,
    /// Calls that were denied before they were sent.
    pub(super) refused: Vec<RefusedCall>,
    /// Number of further ones.
    pub(super) more_refused: u64,
    /// The changes of a session.
    pub(super) kept: Option<KeptChanges>,
    /// The profile, if it was asked for.
    pub(super) profile: Option<Profile>,
    /// Warnings about the run.
    #[serde(default)]
    pub(super) warnings: Vec<Warning>,
}

/// The definitions of a session and the results of its last turns, as text, if they have changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeptChanges {
    pub(super) definitions: Option<Result<String, ErrorData>>,
    pub(super) history: Option<Result<String, ErrorData>>,
    pub(super) set_ups: u32,
}

impl From<SessionChanges> for KeptChanges {
    fn from(changes: SessionChanges) -> Self {
        let part = |made: Option<Result<String, Error>>| made.map(|made| made.map_err(|error| (&error).into()));
        KeptChanges {
            definitions: part(changes.definitions),
            history: part(changes.history),
            set_ups: u32::try_from(changes.set_ups).unwrap_or(u32::MAX),
        }
    }
}

/// A call that was not made because of its arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RefusedCall {
    /// Its index among all calls, in program order.
    pub(super) place: u32,
    pub(super) worker: Vec<u32>,
    pub(super) name: String,
    pub(super) arguments: Preview,
    pub(super) error: String,
    /// Whether they were too long.
    pub(super) too_long: bool,
}

/// [`Usage`] with all fields present: formats without names need each at its index.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Usage")]
pub(super) struct EveryFigure {
    fuel: u64,
    compute_us: u64,
    duration_us: u64,
    baseline_bytes: Option<u64>,
    heap_peak_bytes: u64,
    heap_live_bytes: Option<u64>,
    allocated_bytes: u64,
    compactions: u64,
    tool_calls: u64,
    workers_peak: u64,
    output_bytes: u64,
    cpu_us: Option<u64>,
    rss_peak_bytes: Option<u64>,
    /// Only the host knows this.
    #[serde(skip)]
    figures_age_us: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ReportedValue {
    kind: OutcomeKind,
    json: Result<String, ErrorData>,
    typed: Option<String>,
    text: String,
    text_bytes: usize,
    memory: Option<Result<String, ErrorData>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ReportedProblem {
    fault: ErrorData,
    phase: Phase,
    position: Option<Position>,
    setup: Option<usize>,
    turn: Option<u64>,
    calls: Vec<Call>,
    locals: Vec<Local>,
    more: Vec<(ErrorData, Option<Position>)>,
}

/// The part of the prints that was sent.
#[derive(Clone, Copy, Default)]
pub(super) struct PrintsSent {
    pub(super) lines: usize,
    pub(super) mixed: bool,
}

impl Report {
    pub(super) fn of(outcome: Outcome, shown: PrintsSent, names: Vec<String>) -> Self {
        let (calls, given_up) = (outcome.calls, outcome.given_up_calls);
        // Every field by name: a new one that is not sent does not compile.
        let end = match outcome.answer {
            Ok(Answer { kind, json, typed, text, text_bytes, memory }) => Ok(ReportedValue {
                kind,
                json: json.map_err(|error| (&error).into()),
                typed,
                text,
                text_bytes,
                memory: memory.map(|made| made.map_err(|error| (&error).into())),
            }),
            Err(problem) => {
                let Problem { error, phase, position, setup, turn, calls, locals, more } = *problem;
                let more = more.iter().map(|more| ((&more.error).into(), more.position)).collect();
                Err(ReportedProblem { fault: (&error).into(), phase, position, setup, turn, calls, locals, more })
            }
        };
        let prints = outcome.prints.into_iter().skip(if shown.mixed { 0 } else { shown.lines }).collect();
        let Outcome { prints_dropped, prints_cut, usage, clock, ledger, .. } = outcome;
        let (refused, more_refused) = refused_calls(ledger, &calls);
        Report {
            end,
            prints,
            whole: shown.mixed,
            calls,
            given_up,
            prints_dropped,
            usage,
            names,
            clock,
            prints_cut,
            refused,
            more_refused,
            kept: None,
            profile: outcome.profile,
            warnings: outcome.warnings,
        }
    }

    /// Returns the names that a session has defined, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn into_answer(self) -> (Result<Answer, Box<Problem>>, [u64; 2], Usage) {
        let end = match self.end {
            Ok(value) => Ok(Answer {
                kind: value.kind,
                json: value.json.map_err(Error::from),
                typed: value.typed,
                text: value.text,
                text_bytes: value.text_bytes,
                memory: value.memory.map(|made| made.map_err(Error::from)),
            }),
            Err(ReportedProblem { fault, phase, position, setup, turn, calls, locals, more }) => {
                let further = |(fault, position): (ErrorData, _)| FurtherError { error: fault.into(), position };
                let (error, more) = (fault.into(), more.into_iter().map(further).collect());
                Err(Box::new(Problem { error, phase, position, setup, turn, calls, locals, more }))
            }
        };
        (end, [self.prints_dropped, self.prints_cut], self.usage)
    }

    /// Returns whether a set-up program failed.
    pub(super) fn set_up_failed(&self) -> bool {
        self.end.as_ref().err().is_some_and(|problem| problem.setup.is_some())
    }
}

/// Returns the denied calls of a ledger, as far as there is room, and how many more there were.
fn refused_calls(ledger: Vec<LedgerEntry>, calls: &[u64]) -> (Vec<RefusedCall>, u64) {
    /// The maximum number of reported calls. Usually there is one, with which the program ends.
    const MAX: usize = 64;
    let mut refused: Vec<RefusedCall> = Vec::new();
    let mut more = 0;
    let is_refused = |number: u64| matches!(number, LedgerEntry::REFUSED | LedgerEntry::TOO_LONG);
    let all = ledger.into_iter().zip(calls).enumerate().filter(|(_, (_, number))| is_refused(**number));
    for (place, (entry, number)) in all {
        let LedgerEntry { name, arguments, error, worker, .. } = entry;
        match u32::try_from(place) {
            Ok(place) if refused.len() < MAX => {
                let (error, too_long) = (error.unwrap_or_default(), *number == LedgerEntry::TOO_LONG);
                refused.push(RefusedCall { place, worker, name, arguments, error, too_long });
            }
            _ => more += 1,
        }
    }
    (refused, more)
}
