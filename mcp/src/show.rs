//! Results as clients and models read them.

use lisp_runtime::internal::visible;
use lisp_runtime::outcome::WarningReport;
use lisp_runtime::request::{CheckReport, Cut, ErrorReport};
use lisp_server::runs::{Refused, WaitingCall};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The maximum bytes of arguments in the text. The structured result has all of them.
const ARGUMENT_BYTES: usize = 2_000;

/// Sections of an answer that are useless to a model: later runs do not have the definitions, and the server sets the
/// limits.
const LEFT_OUT: [&str; 2] = ["memory", "limits"];

/// The sections of an answer that its text is made of.
#[derive(Deserialize)]
struct Parts {
    verdict: String,
    outcome: Option<String>,
    text: Option<String>,
    error: Option<ErrorReport>,
    #[serde(default)]
    prints: Vec<String>,
    #[serde(default)]
    truncated: BTreeMap<String, Cut>,
    #[serde(default)]
    warnings: Vec<WarningReport>,
}

/// Returns an error result.
pub(crate) fn failed(why: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// Returns the result for a request that the service rejects.
pub(crate) fn refused(refused: &Refused) -> CallToolResult {
    match refused {
        Refused::Busy(busy) => {
            failed(format!("{busy} (try again after {} s)", busy.retry_after.as_secs_f64().ceil().max(1.0)))
        }
        Refused::Store(error) => {
            tracing::error!(%error, "the store failed");
            failed("the store failed; see the log of the server")
        }
        other => failed(other.to_string()),
    }
}

/// Returns the result for an answer.
pub(crate) fn answer(answer: &str) -> CallToolResult {
    let structured = structured(answer);
    let Ok(parts) = serde_json::from_str::<Parts>(answer) else {
        // The service wrote the answer, so it can be read.
        return failed("the answer cannot be read; this is an internal error of the server");
    };
    let is_ok = parts.verdict == "ok" && parts.outcome.as_deref() != Some("fail");
    let mut content = vec![ContentBlock::text(parts.head())];
    if !parts.prints.is_empty() {
        content.push(ContentBlock::text(format!("prints:\n{}", parts.prints.join("\n"))));
    }
    let mut result = if is_ok { CallToolResult::success(content) } else { CallToolResult::error(content) };
    result.structured_content = structured;
    result
}

fn place((line, column): (Option<u32>, Option<u32>)) -> String {
    line.zip(column).map(|(line, column)| format!(" at {line}:{column}")).unwrap_or_default()
}

/// The error with its hint.
fn error(error: &ErrorReport) -> String {
    let mut text = format!("{}{}: {}", error.reason, place((error.line, error.column)), error.message);
    if let Some(hint) = &error.hint {
        let _ = write!(text, "\nhint: {hint}");
    }
    text
}

/// Returns the result of a check.
pub(crate) fn report(report: &CheckReport) -> CallToolResult {
    let mut text = match (&report.error, report.warnings.is_empty()) {
        (Some(of_program), _) => error(of_program),
        (None, true) => "no warnings".to_owned(),
        (None, false) => String::new(),
    };
    for WarningReport { kind, message, line, column, repair, .. } in &report.warnings {
        let repair = repair.as_ref().map(|repair| format!(": {repair}")).unwrap_or_default();
        let _ = write!(text, "\n{kind}{}: {message}{repair}", place((*line, *column)));
    }
    let content = vec![ContentBlock::text(text.trim_start())];
    let mut result = match report.error {
        None => CallToolResult::success(content),
        Some(_) => CallToolResult::error(content),
    };
    result.structured_content = serde_json::from_str(&report.to_json()).ok();
    result
}

impl Parts {
    /// The value, or the error with its hint.
    fn head(&self) -> String {
        let mut head = match (&self.error, &self.text) {
            (Some(of_run), _) => error(of_run),
            (None, Some(text)) if self.outcome.as_deref() == Some("fail") => format!("(fail v): {text}"),
            (None, Some(text)) => text.clone(),
            (None, None) => format!("no value: {}", self.verdict),
        };
        for (part, cut) in &self.truncated {
            let of = |shown: Option<u64>, all: Option<u64>, unit: &str| {
                Some(format!(": {} of {} {unit} shown", shown?, all?))
            };
            let how =
                of(cut.bytes_shown, cut.bytes_total, "bytes").or_else(|| of(cut.lines_shown, cut.lines_total, "lines"));
            let _ = write!(head, "\n[{part} is cut{}]", how.unwrap_or_default());
        }
        for WarningReport { message, line, column, repair, .. } in &self.warnings {
            let repair = repair.as_ref().map(|repair| format!(": {repair}")).unwrap_or_default();
            let _ = write!(head, "\n[warning{}: {message}{repair}]", place((*line, *column)));
        }
        head
    }
}

/// The answer as a value. A section nested deeper than JSON parsers allow is left out, and listed as cut.
fn structured(answer: &str) -> Option<Value> {
    let parts: BTreeMap<String, Box<RawValue>> = serde_json::from_str(answer).ok()?;
    let (mut all, mut left_out) = (Map::new(), Vec::new());
    for (name, part) in parts {
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        match serde_json::from_str(part.get()) {
            Ok(value) => drop(all.insert(name, value)),
            Err(_) => left_out.push(name),
        }
    }
    if let Some(Value::Object(truncated)) = all.get_mut("truncated") {
        truncated.extend(left_out.into_iter().map(|name| (name, json!({ "why": "nested too deeply" }))));
    }
    Some(Value::Object(all))
}

/// A call on one line.
pub(crate) fn call(call: &WaitingCall) -> String {
    let arguments = visible(call.arguments.get());
    let end = arguments.floor_char_boundary(ARGUMENT_BYTES);
    let cut = match arguments.len() - end {
        0 => String::new(),
        more => format!("... ({more} more bytes)"),
    };
    format!("tool/{} {}{cut}", call.name, &arguments[..end])
}

/// Returns the result for a run whose open calls cannot be answered within this request. `approver` says who decides, and
/// `has_approvers` whether there is one.
pub(crate) fn paused(
    run_id: &str,
    token: &str,
    calls: &[WaitingCall],
    (approver, has_approvers): (&str, bool),
) -> CallToolResult {
    let mut text = "paused: the run is suspended until these calls are answered.\n".to_owned();
    for waiting in calls {
        let question = visible(waiting.question.as_deref().unwrap_or("What is its result?"));
        let _ = writeln!(text, "- call {}, {}: {question}", waiting.call, call(waiting));
    }
    if calls.iter().any(|call| call.question.is_some()) {
        let _ = writeln!(text, "{approver}. Tell the user.");
    }
    let needs_approver = |call: &WaitingCall| match call.asked().as_str() {
        "gate" => true,
        "result" => false,
        _ => has_approvers,
    };
    let result = match calls.iter().all(needs_approver) {
        true => "",
        false => " To answer a call, add \"call\" and either \"result\" or \"error\".",
    };
    let _ = write!(
        text,
        "For the outcome, call the tool resume with {{\"token\": \"{token}\"}}; add \"wait_seconds\" to wait.{result}"
    );
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({ "status": "paused", "run_id": run_id, "token": token, "calls": calls }));
    result
}
