//! The answer to a request, in the one format of the command line and the service.

use crate::terms::limits::{Limits, LimitsRequest};
use crate::terms::outcome::{
    Call, CallStatus, FurtherError, LedgerEntry, Local, Outcome, OutcomeKind, Position, Preview, Problem, Usage,
    Verdict,
};
use crate::terms::warning::{Subject, Warning, WarningReport};
use lisp_core::Detail;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The name of the answer format.
pub const SCHEMA: &str = "ptc-lisp/1";

/// A section of the answer that a request can omit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerPart {
    /// The field [`Answer::value`].
    Value,
    /// The field [`Answer::text`].
    Text,
    /// The field [`Answer::memory`].
    Memory,
    /// The field [`Answer::ledger`].
    Ledger,
    /// The field [`Answer::limits`].
    Limits,
}

/// How much of a section is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cut {
    /// Bytes of the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_total: Option<u64>,
    /// Bytes of it that are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_shown: Option<u64>,
    /// Number of printed lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_total: Option<u64>,
    /// Number of lines that are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_shown: Option<u64>,
    /// Number of shown lines that are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_cut: Option<u64>,
    /// Number of tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries_total: Option<u64>,
    /// Number of tool calls that are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries_shown: Option<u64>,
    /// Number of shown calls whose arguments or result are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries_cut: Option<u64>,
    /// Why nothing is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Returns the sections that an outcome does not show in full.
fn truncated(outcome: &Outcome) -> BTreeMap<String, Cut> {
    let mut truncated = BTreeMap::new();
    if let (Some(total), Some(text)) = (outcome.text_cut(), outcome.text()) {
        let cut = Cut { bytes_total: Some(total as u64), bytes_shown: Some(text.len() as u64), ..Cut::default() };
        truncated.insert("text".to_owned(), cut);
    }
    if let Some(error) = outcome.json_error() {
        truncated.insert("value".to_owned(), Cut { message: Some(error.message.clone()), ..Cut::default() });
    }
    if let Some(error) = outcome.memory_error() {
        truncated.insert("memory".to_owned(), Cut { message: Some(error.message.clone()), ..Cut::default() });
    }
    let is_cut = |entry: &&LedgerEntry| {
        !entry.arguments.is_whole() || entry.result.as_ref().is_some_and(|result| !result.is_whole())
    };
    let entries_cut = outcome.ledger.iter().filter(is_cut).count() as u64;
    if outcome.ledger_dropped > 0 || entries_cut > 0 {
        let shown = outcome.ledger.len() as u64;
        let total = shown.saturating_add(outcome.ledger_dropped);
        let entries_cut = (entries_cut > 0).then_some(entries_cut);
        let cut = Cut { entries_total: Some(total), entries_shown: Some(shown), entries_cut, ..Cut::default() };
        truncated.insert("ledger".to_owned(), cut);
    }
    if outcome.prints_dropped > 0 || outcome.prints_cut > 0 {
        // If lines were dropped, the last one says so.
        let shown = outcome.prints.len().saturating_sub(usize::from(outcome.prints_dropped > 0)) as u64;
        let total = shown.saturating_add(outcome.prints_dropped);
        let lines_cut = (outcome.prints_cut > 0).then_some(outcome.prints_cut);
        let cut = Cut { lines_total: Some(total), lines_shown: Some(shown), lines_cut, ..Cut::default() };
        truncated.insert("prints".to_owned(), cut);
    }
    truncated
}

/// The error in an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorReport {
    /// The stable name of the error, such as `type_error`.
    pub reason: String,
    /// The message, with the expected and the actual value.
    pub message: String,
    /// The line where the error starts, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column where it starts, in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The line where it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The column after its last character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// One next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Details such as `limit_bytes`, and the phase.
    pub details: BTreeMap<String, serde_json::Value>,
}

impl From<&Problem> for ErrorReport {
    fn from(problem: &Problem) -> Self {
        let mut details = BTreeMap::from([("phase".to_owned(), serde_json::Value::from(problem.phase.name()))]);
        if let Some(setup) = problem.setup {
            details.insert("setup".to_owned(), serde_json::Value::from(setup));
        }
        if let Some(turn) = problem.turn {
            details.insert("turn".to_owned(), serde_json::Value::from(turn));
        }
        if !problem.calls.is_empty() {
            details.insert("calls".to_owned(), problem.calls.iter().map(call).collect());
        }
        if !problem.locals.is_empty() {
            let shown = |local: &Local| (local.name.clone(), serde_json::Value::from(local.value.as_str()));
            let locals: serde_json::Map<_, _> = problem.locals.iter().map(shown).collect();
            details.insert("locals".to_owned(), locals.into());
        }
        if !problem.more.is_empty() {
            details.insert("more".to_owned(), problem.more.iter().map(further).collect());
        }
        for (name, detail) in &problem.error.details {
            let value = match detail {
                Detail::Int(n) => serde_json::Value::from(*n),
                Detail::Text(text) => serde_json::Value::from(text.as_str()),
                _ => continue,
            };
            details.insert(name.to_string(), value);
        }
        let at = |part: fn(Position) -> u32| problem.position.map(part);
        ErrorReport {
            reason: problem.error.reason.name().to_owned(),
            message: problem.error.message.clone(),
            line: at(|p| p.line),
            column: at(|p| p.column),
            end_line: at(|p| p.end_line),
            end_column: at(|p| p.end_column),
            hint: problem.error.hint.clone(),
            details,
        }
    }
}

/// Returns the section of an answer that a warning is about, if any.
const fn part_of(subject: Subject) -> Option<AnswerPart> {
    match subject {
        Subject::Program => None,
        Subject::Value => Some(AnswerPart::Value),
        Subject::Memory => Some(AnswerPart::Memory),
    }
}

/// Returns one of the further errors of a source for an answer.
fn further(more: &FurtherError) -> serde_json::Value {
    let mut shown = serde_json::json!({ "reason": more.error.reason.name(), "message": more.error.message });
    if let Some(at) = more.position {
        (shown["line"], shown["column"]) = (at.line.into(), at.column.into());
    }
    if let Some(hint) = &more.error.hint {
        shown["hint"] = hint.as_str().into();
    }
    shown
}

/// Returns a call of the trace of an error for an answer.
fn call(call: &Call) -> serde_json::Value {
    let mut shown = serde_json::json!({ "line": call.position.line, "column": call.position.column });
    let parts = [
        ("function", call.function.as_deref().map(serde_json::Value::from)),
        ("setup", call.setup.map(serde_json::Value::from)),
        ("turn", call.turn.map(serde_json::Value::from)),
        ("in", call.element.as_ref().map(|element| serde_json::Value::from(element.of.as_str()))),
        ("element", call.element.as_ref().map(|element| serde_json::Value::from(element.index))),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            shown[name] = value;
        }
    }
    shown
}

/// One tool call of the ledger in an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LedgerLine {
    /// The name of the tool.
    pub name: String,
    /// The arguments. If their text is long, its beginning as a string.
    pub arguments: Box<RawValue>,
    /// How the call ended.
    pub status: CallStatus,
    /// The bytes of the whole arguments, if they are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_bytes: Option<u64>,
    /// The result. If its text is long, its beginning as a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// The bytes of the whole result, if it is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The duration of the call, in microseconds.
    pub duration_us: u64,
    /// The path to the worker that made the call; empty for the main program.
    pub worker: Vec<u32>,
}

impl From<&LedgerEntry> for LedgerLine {
    fn from(entry: &LedgerEntry) -> Self {
        LedgerLine {
            name: entry.name.clone(),
            arguments: preview(&entry.arguments),
            status: entry.status,
            arguments_bytes: cut_of(&entry.arguments),
            result: entry.result.as_ref().map(preview),
            result_bytes: entry.result.as_ref().and_then(cut_of),
            error: entry.error.clone(),
            duration_us: entry.duration_us,
            worker: entry.worker.clone(),
        }
    }
}

/// Returns the bytes of the whole text if the preview is cut.
fn cut_of(of: &Preview) -> Option<u64> {
    (!of.is_whole()).then_some(of.bytes_total as u64)
}

fn preview(of: &Preview) -> Box<RawValue> {
    match of.is_whole() {
        true => raw(of.text.clone()),
        false => raw(serde_json::Value::from(format!("{}... ({} bytes)", of.text, of.bytes_total)).to_string()),
    }
}

/// Returns JSON text that this crate wrote as a raw value.
fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_default()
}

/// The answer to a request: the outcome of its run as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// The format: [`SCHEMA`].
    pub schema: String,
    /// The id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<RawValue>>,
    /// The unique id of the run, made by the host.
    pub run_id: String,
    /// How the run ended, in one word.
    pub verdict: Verdict,
    /// How the program itself ended: with a value, `return` or `fail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeKind>,
    /// The result as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<RawValue>>,
    /// The result in Clojure syntax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The sections that are cut, by name.
    pub truncated: BTreeMap<String, Cut>,
    /// The error, if there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
    /// Warnings about the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<WarningReport>,
    /// The lines that the program printed.
    pub prints: Vec<String>,
    /// The definitions after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<RawValue>>,
    /// The usage figures of the run.
    pub usage: Usage,
    /// Every tool call, in program order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Vec<LedgerLine>>,
    /// Calls of workers that were discarded because an earlier call failed: [`Outcome::given_up`]. Omitted with the
    /// ledger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<LedgerLine>,
    /// The limits of the run. When reading an answer of another version, unknown limits are dropped and missing ones are
    /// off.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_limits")]
    pub limits: Option<Limits>,
    /// The version of the cost schedule that counted `usage.fuel`:
    /// [`COST_SCHEDULE_VERSION`](crate::language::COST_SCHEDULE_VERSION).
    #[serde(default)]
    pub cost_schedule: u32,
}

fn known_limits<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Limits>, D::Error> {
    let Some(named) = Option::<BTreeMap<String, serde_json::Value>>::deserialize(from)? else { return Ok(None) };
    let mut limits = LimitsRequest::all(&Limits::unlimited());
    for (name, value) in named {
        match value.as_u64() {
            // The limit of a later version may be unknown.
            Some(value) => drop(limits.set(&name, value)),
            None if limits.set(&name, 0).is_ok() => {
                return Err(serde::de::Error::custom(format!("limits.{name}: {value} is not a limit")));
            }
            None => {}
        }
    }
    Ok(Some(Limits::unlimited().with(&limits)))
}

impl Answer {
    /// Creates the answer for an outcome.
    pub fn new(id: Option<Box<RawValue>>, outcome: &Outcome) -> Self {
        Answer::without(&[], id, outcome)
    }

    pub(super) fn without(omitted: &[AnswerPart], id: Option<Box<RawValue>>, outcome: &Outcome) -> Self {
        let has = |part| !omitted.contains(&part);
        let mut truncated = truncated(outcome);
        let cut = [
            (AnswerPart::Value, "value"),
            (AnswerPart::Text, "text"),
            (AnswerPart::Memory, "memory"),
            (AnswerPart::Ledger, "ledger"),
        ];
        cut.iter().filter(|(part, _)| !has(*part)).for_each(|(_, name)| drop(truncated.remove(*name)));
        Answer {
            schema: SCHEMA.to_owned(),
            id,
            run_id: outcome.run_id.as_ref().to_owned(),
            verdict: outcome.verdict(),
            outcome: outcome.kind(),
            value: outcome.json().filter(|_| has(AnswerPart::Value)).map(|json| raw(json.to_owned())),
            text: outcome.text().filter(|_| has(AnswerPart::Text)).map(str::to_owned),
            truncated,
            error: outcome.problem().map(ErrorReport::from),
            warnings: outcome
                .warnings()
                .iter()
                .filter(|warning| part_of(warning.kind.subject()).is_none_or(has))
                .map(Into::into)
                .collect(),
            prints: outcome.prints.clone(),
            memory: outcome.memory().filter(|_| has(AnswerPart::Memory)).map(|json| raw(json.to_owned())),
            usage: outcome.usage,
            ledger: has(AnswerPart::Ledger).then(|| outcome.ledger.iter().map(LedgerLine::from).collect()),
            given_up: match has(AnswerPart::Ledger) {
                true => outcome.given_up.iter().map(LedgerLine::from).collect(),
                false => Vec::new(),
            },
            limits: has(AnswerPart::Limits).then_some(outcome.limits),
            cost_schedule: outcome.cost_schedule,
        }
    }

    /// Returns the answer as one line of JSON.
    pub fn to_json(&self) -> String {
        // Maps with string keys and JSON that this crate wrote: this cannot fail.
        let json = serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned());
        one_line(json)
    }
}

/// What a check of a program found, as JSON: see [`Engine::check`](crate::Engine::check).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// The id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<RawValue>>,
    /// Why the program cannot run or be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
    /// What was found, in the order of the program.
    pub warnings: Vec<WarningReport>,
}

impl CheckReport {
    /// Creates the report of an error, or of warnings.
    pub fn new(id: Option<Box<RawValue>>, error: Option<&Problem>, warnings: &[Warning]) -> Self {
        CheckReport { id, error: error.map(ErrorReport::from), warnings: warnings.iter().map(Into::into).collect() }
    }

    /// Returns the report as one line of JSON.
    pub fn to_json(&self) -> String {
        // As for answers, this cannot fail.
        one_line(serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned()))
    }
}

/// Escapes the non-ASCII characters that some readers take for a line end. JSON has them only in strings.
fn one_line(json: String) -> String {
    let mut json = json;
    // Raw text from a request or from another process may span several lines. Inside strings line ends are escaped.
    if json.contains(['\n', '\r']) {
        json = json.replace(['\n', '\r'], " ");
    }
    for (separator, escape) in [("\u{85}", "\\u0085"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")] {
        if json.contains(separator) {
            json = json.replace(separator, escape);
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use crate::api::engine::Engine;
    use crate::api::envelope::answer_line;

    #[test]
    fn an_answer_is_one_line_for_everyone() {
        let request = r#"{"program": "data/x", "data": {"x": "a\u2028b\u2029c\u0085d\u000be"}}"#;
        let json = answer_line(&Engine::default(), request).to_json();
        assert!(!json.contains(['\u{2028}', '\u{2029}', '\u{85}', '\u{b}']), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["value"], "a\u{2028}b\u{2029}c\u{85}d\u{b}e");
    }

    #[test]
    fn a_value_that_json_cannot_say_is_a_value_all_the_same() {
        let json = answer_line(&Engine::default(), r#"{"program": "{:a 1 \"a\" 2}"}"#).to_json();
        let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(answer["verdict"], "ok");
        assert_eq!(answer["text"], "{:a 1 \"a\" 2}");
        assert!(answer["value"].is_null());
        assert!(answer["truncated"]["value"]["message"].as_str().is_some_and(|m| m.contains("JSON key")), "{json}");
    }

    #[test]
    fn a_memory_that_json_cannot_say_is_left_out_and_named() {
        for program in ["(def m2 {:a 1 \"a\" 2}) :done", "(def big (vec (range 300))) :done"] {
            let request = serde_json::json!({ "program": program, "limits": { "result_bytes": 1000 } }).to_string();
            let json = answer_line(&Engine::default(), &request).to_json();
            let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!((&answer["verdict"], &answer["value"]), (&"ok".into(), &"done".into()), "{json}");
            assert!(answer.get("memory").is_none());
            assert!(answer["truncated"]["memory"]["message"].is_string(), "{json}");
        }
    }

    #[test]
    fn what_is_cut_is_named() {
        let program = "(tool/e {:long (apply str (map (constantly \"x\") (range 3000)))}) (tool/e {}) \
            (println (vec (range 2000))) (println 1)";
        let request = serde_json::json!({ "program": program, "tools": { "e": { "echo": true } } }).to_string();
        let json = answer_line(&Engine::default(), &request).to_json();
        let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
        let truncated = serde_json::json!({
            "ledger": { "entries_total": 2, "entries_shown": 2, "entries_cut": 1 },
            "prints": { "lines_total": 2, "lines_shown": 2, "lines_cut": 1 },
        });
        assert_eq!(answer["truncated"], truncated, "{json}");
        let (cut, whole) = (&answer["ledger"][0], &answer["ledger"][1]);
        assert_eq!((&cut["arguments_bytes"], &cut["result_bytes"]), (&3011.into(), &3011.into()));
        assert!(cut["arguments"].is_string() && cut["result"].is_string());
        assert!(whole.get("arguments_bytes").is_none() && whole["arguments"].is_object());
    }
}
