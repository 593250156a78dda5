//! The tool `runs`: lists the durable runs of the client's tenant, so that a run whose answer was lost is found again.
//! It decides nothing: its tokens are for the tool `resume`, which cannot approve calls.

use crate::drive::Drive;
use crate::show;
use crate::ticket::Purpose;
use lisp_runtime::internal::visible;
use lisp_server::runs::{ListQuery, Refused, RunList, RunState};
use lisp_server::store::RunStatus;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// The arguments of the tool.
pub(crate) const ARGUMENTS: [&str; 2] = ["status", "cursor"];
/// The maximum number of runs on a page.
const PAGE: usize = 10;
/// A page ends after this many bytes of text.
const PAGE_BYTES: usize = 2_500;
/// The maximum number of a run's open calls that are shown, and that its token can answer.
const CALLS: usize = 4;
/// The maximum bytes of a program's line, of a tool's name, and of an error.
const LINE: usize = 100;
const NAME: usize = 40;
const ERROR: usize = 200;

/// Lists a page of runs, newest first.
pub(crate) async fn call(drive: &Drive<'_>, arguments: &JsonObject) -> CallToolResult {
    let (status, cursor) = match read(arguments) {
        Ok(asked) => asked,
        Err(why) => return show::failed(why),
    };
    match page(drive, ListQuery { status, cursor, max: PAGE }).await {
        Ok(result) => result,
        Err(refused) => show::refused(&refused),
    }
}

fn read(arguments: &JsonObject) -> Result<(Option<RunStatus>, Option<&str>), String> {
    if let Some(unknown) = arguments.keys().find(|name| !ARGUMENTS.contains(&name.as_str())) {
        return Err(format!("unknown argument {unknown:?}; runs takes {}", ARGUMENTS.join(", ")));
    }
    let given = |name| arguments.get(name).filter(|value| !value.is_null());
    let status = match given("status") {
        None => None,
        Some(status) => Some(
            status
                .as_str()
                .and_then(RunStatus::of)
                .ok_or_else(|| format!("status must be one of {}", RunStatus::ALL.map(RunStatus::name).join(", ")))?,
        ),
    };
    let cursor = match given("cursor") {
        None => None,
        Some(cursor) => Some(cursor.as_str().ok_or("cursor must be the `next` of an earlier page, as a string")?),
    };
    Ok((status, cursor))
}

async fn page(drive: &Drive<'_>, query: ListQuery<'_>) -> Result<CallToolResult, Refused> {
    let (service, tenant) = (&drive.connection.service, drive.connection.name());
    let with_token = |mut run: RunState| {
        let calls = &run.calls[..run.calls.len().min(CALLS)];
        let token = drive.connection.tickets.make(tenant, Purpose::Resume, &run.run_id, calls);
        // The list is kept while the programs are read. What is not shown may be large.
        for call in &mut run.calls {
            (call.arguments, call.question) = (RawValue::NULL.to_owned(), None);
        }
        (run, token)
    };
    let of = |list: RunList| (list.runs.into_iter().map(with_token).collect::<Vec<_>>(), list.next);
    let (runs, mut next) = service.map_runs(tenant, query, of).await?;
    let (mut text, mut shown) = (String::new(), Vec::new());
    for (run, token) in &runs {
        if text.len() > PAGE_BYTES {
            next = shown.last().map(|(_, cursor)| String::clone(cursor));
            break;
        }
        let line = match service.first_line(tenant, &run.run_id).await {
            Ok(line) => cut(&line, LINE),
            // It was deleted meanwhile.
            Err(Refused::NotFound(_)) => continue,
            Err(refused) => return Err(refused),
        };
        describe(run, &line, token, &mut text);
        shown.push((entry(run, &line, token), run.cursor()));
    }
    let shown: Vec<Value> = shown.into_iter().map(|(entry, _)| entry).collect();
    match &next {
        _ if shown.is_empty() => text.push_str("no runs; only runs that can pause are kept"),
        None => text.push_str("For the outcome of a run, call resume with its token."),
        Some(next) => {
            let _ = write!(
                text,
                "For the outcome of a run, call resume with its token. There are more: call runs with {{\"cursor\": \"{next}\"}}."
            );
        }
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    let mut structured = Map::from_iter([("runs".to_owned(), Value::Array(shown))]);
    structured.extend(next.map(|next| ("next".to_owned(), Value::String(next))));
    result.structured_content = Some(Value::Object(structured));
    Ok(result)
}

/// Describes a run on two lines.
fn describe(run: &RunState, line: &str, token: &str, text: &mut String) {
    let status = run.status.name();
    let age = age(seconds_since(run.created_ms));
    // Writing to a string cannot fail.
    let _ = write!(text, "- {}, {status}, {age} old: {line}\n  token {token}", run.run_id);
    if !run.calls.is_empty() {
        let names: Vec<String> =
            run.calls.iter().take(CALLS).map(|call| format!("tool/{}", cut(&call.name, NAME))).collect();
        let more = run.calls.len().saturating_sub(CALLS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = write!(text, "; waits for {}{more}", names.join(", "));
    }
    if let Some(error) = &run.error {
        let _ = write!(text, "; {}", cut(error, ERROR));
    }
    text.push('\n');
}

fn entry(run: &RunState, line: &str, token: &str) -> Value {
    let calls = run.calls.iter().take(CALLS);
    let calls: Vec<Value> =
        calls.map(|call| json!({ "call": cut(&call.call, NAME), "name": cut(&call.name, NAME) })).collect();
    let mut entry = json!({
        "run_id": run.run_id,
        "status": run.status.name(),
        "age_seconds": seconds_since(run.created_ms),
        "program": line,
        "token": token,
        "calls": calls,
    });
    if let Some(error) = &run.error {
        entry["error"] = cut(error, ERROR).into();
    }
    entry
}

/// Returns the beginning of a text on one line, as people can read it.
fn cut(text: &str, max: usize) -> String {
    let text = visible(text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.floor_char_boundary(max) {
        end if end < text.len() => format!("{}...", &text[..end]),
        _ => text,
    }
}

fn seconds_since(ms: i64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    u64::try_from(now.saturating_sub(ms) / 1_000).unwrap_or(0)
}

/// Returns an age in its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_in_their_largest_unit() {
        for (seconds, wanted) in
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "119 min"), (7_200, "2 h"), (172_800, "2 days")]
        {
            assert_eq!(age(seconds), wanted);
        }
    }

    #[test]
    fn texts_are_cut_on_one_line() {
        assert_eq!(cut("a\n  b\u{202e}c", 100), "a b\\u202ec");
        assert_eq!(cut("äöü", 3), "ä...");
    }
}
