//! The lines of a record after the first one.

use crate::terms::place::Place;
use crate::terms::tool_code::ToolCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The state of a call in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallState {
    /// The call waits for the host, which drives the run.
    Asked,
    /// The call has started. In a record whose process has ended, it is unknown whether it was made.
    #[serde(rename = "begun")]
    Started,
    /// The call has a result.
    Done,
    /// The tool failed.
    Failed,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With a result as JSON text.
    Json(String),
    /// With its own arguments.
    Echo,
    /// With a failure of the tool.
    Failed(Failure),
}

/// The gate's decision on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gated {
    /// The call is made, perhaps with other arguments.
    Allow { given: Option<String> },
    /// The call is not made.
    Deny { why: String },
    /// The call needs approval.
    Ask { question: String },
}

/// The word for a decision in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GateWord {
    Allow,
    Deny,
    Ask,
}

/// How a tool failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// Whether the program called it with wrong arguments.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) arguments: bool,
    /// Whether its closure panicked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) panic: bool,
    /// The code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<ToolCode>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it like that")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// One line. Its fields determine what it says.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line<'a> {
    /// The name of a call.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<CallState>,
    /// The result of a call that is done; if absent, its arguments are the result.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    /// The name of a call that the gate decides on.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) gate: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<GateWord>,
    /// The arguments that the call is allowed with, if they differ from the program's.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) given: Option<&'a RawValue>,
    /// Why the call is denied, or the question.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<Cow<'a, str>>,
    /// The name of a clock reading.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) clock: Option<Cow<'a, str>>,
    /// The time of the reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ms: Option<i64>,
    /// The answer of the run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<&'a RawValue>,
}

/// What a line says.
#[derive(Debug)]
pub(crate) enum RecordEntry<'a> {
    /// A call is asked for, or starts.
    Call { place: Place, tool: Cow<'a, str>, arguments: &'a str, state: CallState },
    /// A call that was asked for starts, or one that had started was not made after all.
    State(Place, CallState),
    /// A call ended.
    Ends(Place, Ended),
    /// The gate decided on a call: a new one with this tool and these arguments, or one that waited for approval.
    Gate { place: Place, asked: Option<(Cow<'a, str>, &'a str)>, gated: Gated },
    /// The clock was read.
    Clock(Place, i64),
    /// The run ended.
    Answer(&'a str),
}

impl RecordEntry<'_> {
    /// Returns the name of the effect that the line is about.
    pub(crate) fn place(&self) -> Option<&Place> {
        match self {
            RecordEntry::Call { place, .. } | RecordEntry::Gate { place, .. } => Some(place),
            RecordEntry::State(place, _) | RecordEntry::Ends(place, _) | RecordEntry::Clock(place, _) => Some(place),
            RecordEntry::Answer(_) => None,
        }
    }
}

impl<'a> Line<'a> {
    /// Returns the line of a decision on a call. Only the first decision has the tool and the arguments.
    pub(crate) fn of_gate(place: &Place, asked: Option<(&'a str, &'a str)>, gated: &'a Gated) -> Line<'a> {
        let raw = |text: &'a str| serde_json::from_str::<&'a RawValue>(text).ok();
        let (decision, given, why) = match gated {
            Gated::Allow { given } => (GateWord::Allow, given.as_deref().and_then(raw), None),
            Gated::Deny { why } => (GateWord::Deny, None, Some(Cow::Borrowed(&**why))),
            Gated::Ask { question } => (GateWord::Ask, None, Some(Cow::Borrowed(&**question))),
        };
        Line {
            gate: Some(place.to_string().into()),
            tool: asked.map(|(tool, _)| tool.into()),
            arguments: asked.and_then(|(_, arguments)| raw(arguments)),
            decision: Some(decision),
            given,
            why,
            ..Line::default()
        }
    }

    /// Returns what the line says, or why it is not valid.
    pub(crate) fn entry(self) -> Result<RecordEntry<'a>, &'static str> {
        let place =
            |text: &str| text.parse::<Place>().map_err(|()| "the name of a call is a text such as \"3\" or \"3:17/2\"");
        match self {
            Line { gate: Some(gate), decision: Some(word), tool, arguments, given, why, call: None, .. } => {
                let gated = match (word, given, why) {
                    (GateWord::Allow, given, None) => Gated::Allow { given: given.map(|raw| raw.get().to_owned()) },
                    (GateWord::Deny, None, Some(why)) => Gated::Deny { why: why.into_owned() },
                    (GateWord::Ask, None, Some(why)) => Gated::Ask { question: why.into_owned() },
                    _ => return Err("the gate allows a call, denies it with a reason, or asks a question"),
                };
                let asked = match (tool, arguments) {
                    (Some(tool), Some(arguments)) => Some((tool, arguments.get())),
                    (None, None) if !matches!(gated, Gated::Ask { .. }) => None,
                    _ => return Err("the gate asks about a tool and its arguments"),
                };
                Ok(RecordEntry::Gate { place: place(&gate)?, asked, gated })
            }
            Line { call: Some(call), tool: Some(tool), arguments: Some(arguments), state: Some(state), .. }
                if matches!(state, CallState::Asked | CallState::Started)
                    && self.result.is_none()
                    && self.error.is_none() =>
            {
                Ok(RecordEntry::Call { place: place(&call)?, tool, arguments: arguments.get(), state })
            }
            Line { call: Some(call), tool: None, arguments: None, state: Some(state), result, error, .. } => {
                let place = place(&call)?;
                match (state, result, error) {
                    (CallState::Asked | CallState::Started, None, None) => Ok(RecordEntry::State(place, state)),
                    (CallState::Done, Some(json), None) => {
                        Ok(RecordEntry::Ends(place, Ended::Json(json.get().to_owned())))
                    }
                    (CallState::Done, None, None) => Ok(RecordEntry::Ends(place, Ended::Echo)),
                    (CallState::Failed, None, Some(failure)) => Ok(RecordEntry::Ends(place, Ended::Failed(failure))),
                    _ => Err("a call is done with a result, or failed with an error"),
                }
            }
            Line { clock: Some(clock), ms: Some(ms), call: None, .. } => Ok(RecordEntry::Clock(place(&clock)?, ms)),
            Line { answer: Some(answer), call: None, clock: None, .. } => Ok(RecordEntry::Answer(answer.get())),
            _ => Err("a line describes a call, a clock reading, or the answer"),
        }
    }

    /// Returns the line as text, with a newline.
    pub(crate) fn text(&self) -> String {
        // Maps with string keys and JSON that this crate wrote: this cannot fail.
        let mut text = one_line(serde_json::to_string(self).unwrap_or_default());
        text.push('\n');
        text
    }
}

/// Returns JSON text without newlines; inside strings they are escaped.
fn one_line(text: String) -> String {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text }
}
