//! The lines of a record behind its first one.

use crate::terms::place::Place;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The state of a call in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallState {
    /// It waits for the host, which drives the run.
    Asked,
    /// It is about to be made, or being made. In a record whose process has ended nobody knows whether it was.
    Begun,
    /// It has a result.
    Done,
    /// The tool failed.
    Failed,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With a result as JSON text
    Json(String),
    /// With its own arguments
    Echo,
    /// The tool failed
    Failed(Failure),
}

/// How a tool failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// The program called it wrongly.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) arguments: bool,
    /// Its closure panicked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) panic: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it like that")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// One line. Which fields it has says what it tells.
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
    /// The result of a call that is done; without it, its arguments.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    /// The name of a look at the clock.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) clock: Option<Cow<'a, str>>,
    /// What it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ms: Option<i64>,
    /// The answer of the run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<&'a RawValue>,
}

/// What a line tells.
#[derive(Debug)]
pub(crate) enum Told<'a> {
    /// A call is asked for, or begins.
    Call { place: Place, tool: Cow<'a, str>, arguments: &'a str, state: CallState },
    /// A call that was asked for begins, or one that had begun was not made after all.
    State(Place, CallState),
    /// A call ended.
    Ends(Place, Ended),
    /// The clock was looked at.
    Clock(Place, i64),
    /// The run ended.
    Answer(&'a str),
}

impl<'a> Line<'a> {
    /// What the line tells; `Err` says why it tells nothing.
    pub(crate) fn told(self) -> Result<Told<'a>, &'static str> {
        let place =
            |text: &str| text.parse::<Place>().map_err(|()| "the name of a call is a text such as \"3\" or \"3:17/2\"");
        match self {
            Line { call: Some(call), tool: Some(tool), arguments: Some(arguments), state: Some(state), .. }
                if matches!(state, CallState::Asked | CallState::Begun)
                    && self.result.is_none()
                    && self.error.is_none() =>
            {
                Ok(Told::Call { place: place(&call)?, tool, arguments: arguments.get(), state })
            }
            Line { call: Some(call), tool: None, arguments: None, state: Some(state), result, error, .. } => {
                let place = place(&call)?;
                match (state, result, error) {
                    (CallState::Asked | CallState::Begun, None, None) => Ok(Told::State(place, state)),
                    (CallState::Done, Some(json), None) => Ok(Told::Ends(place, Ended::Json(json.get().to_owned()))),
                    (CallState::Done, None, None) => Ok(Told::Ends(place, Ended::Echo)),
                    (CallState::Failed, None, Some(failure)) => Ok(Told::Ends(place, Ended::Failed(failure))),
                    _ => Err("a call is done with a result, or failed with an error"),
                }
            }
            Line { clock: Some(clock), ms: Some(ms), call: None, .. } => Ok(Told::Clock(place(&clock)?, ms)),
            Line { answer: Some(answer), call: None, clock: None, .. } => Ok(Told::Answer(answer.get())),
            _ => Err("a line tells of a call, of the clock, or of the answer"),
        }
    }

    /// The line as text, with the end of the line.
    pub(crate) fn text(&self) -> String {
        // Maps with string keys and texts of our own: there is nothing in it that JSON cannot say.
        let mut text = one_line(serde_json::to_string(self).unwrap_or_default());
        text.push('\n');
        text
    }
}

/// JSON text without ends of lines: in a string they would be escaped.
fn one_line(text: String) -> String {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text }
}
