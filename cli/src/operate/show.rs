//! How runs are shown: at most 100 columns, and nothing in them controls the terminal.

use crate::render::table::Table;
use lisp_runtime::internal::visible;
use lisp_server::runs::{KnownRun, StoredWork, WaitingCall};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::time::{SystemTime, UNIX_EPOCH};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const COLUMNS: usize = 100;
/// The columns of a list, but for the last.
const ID: usize = 36;
const STATUS: usize = 7;
const AGE: usize = 4;
const TENANT: usize = 12;
/// The rest of the columns, with two spaces between any two.
const MORE: usize = COLUMNS - ID - STATUS - AGE - TENANT - 4 * 2;

/// Returns a text on one line, cut to a width, with what controls a terminal escaped.
pub(super) fn cell(text: &str, width: usize) -> String {
    let shown = visible(text).replace(['\n', '\r', '\t'], " ");
    if shown.width() <= width {
        return shown;
    }
    let (mut cut, mut taken) = (String::new(), 0);
    for c in shown.chars() {
        taken += c.width().unwrap_or(0);
        if taken >= width {
            break;
        }
        cut.push(c);
    }
    cut + "…"
}

/// Returns a list of runs as a table.
pub(super) fn table_of(runs: &[KnownRun]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let now = now_ms();
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let state = &run.state;
            let more = match (&state.error, state.calls.as_slice()) {
                (Some(error), _) => error.clone(),
                (None, []) if run.cancelled => "cancelled".to_owned(),
                (None, []) => String::new(),
                (None, [call]) => asks(call),
                (None, [call, rest @ ..]) => format!("{} (+{})", asks(call), rest.len()),
            };
            vec![
                cell(&state.run_id, ID),
                state.status.to_string(),
                age(now - state.created_ms),
                cell(&run.tenant, TENANT),
                cell(&more, MORE),
            ]
        })
        .collect();
    let columns = ["run", "status", "age", "tenant", "waits for"].map(str::to_owned);
    Table::new(Some(&columns), &rows).whole()
}

/// Says what a call waits for.
fn asks(call: &WaitingCall) -> String {
    match call.own_question() {
        Some(_) if call.asked().starts_with("unknown") => {
            // The name may be cut.
            format!("{} effect unknown: {}", call.call, call.name)
        }
        // The reason would take the room of the question.
        Some((question, true)) => format!("{} restored: {question}", call.call),
        Some((question, false)) => format!("{} {question}", call.call),
        None => format!("{} result of {}", call.call, call.name),
    }
}

/// Returns all that is known of a run.
pub(super) fn text(work: &StoredWork) -> String {
    let (run, state) = (&work.run, &work.run.state);
    let now = now_ms();
    let time = |ms: i64| format!("{} ({} ago)", utc(ms), age(now - ms));
    let status = if run.cancelled { format!("{}, cancelled", state.status) } else { state.status.to_string() };
    let mut out = String::new();
    let mut line = |name: &str, value: &str| out.push_str(&format!("{name:<9}{value}\n"));
    line("run", &cell(&state.run_id, ID));
    line("tenant", &cell(&run.tenant, 64));
    line("status", &status);
    line("created", &time(state.created_ms));
    line("changed", &time(state.updated_ms));
    line("journal", &format!("{} lines, {} bytes", work.journal_lines, work.journal_bytes));
    if let Some(error) = &state.error {
        out += "error\n";
        out += &indented(error);
    }
    if let Ok(Value::Object(request)) = serde_json::from_str(&work.request)
        && let Some(program) = request.get("program").and_then(Value::as_str)
    {
        out += "program\n";
        out += &indented(program);
    }
    for call in &state.calls {
        let phase = match call.asked().as_str() {
            "gate" => "approve or reject".to_owned(),
            "result" => "its client sends the result".to_owned(),
            phase => format!("it is unknown whether it took effect (phase {phase})"),
        };
        out += &format!("call {} of {}: {phase}\n", cell(&call.call, 40), cell(&call.name, 64));
        out += &indented(&call.question.clone().unwrap_or_default());
        out += &indented(call.arguments.get());
    }
    if let Some(answer) = &state.answer {
        out += &answered(answer.get());
    }
    out
}

/// Returns the verdict of an answer, and its value or error.
fn answered(answer: &str) -> String {
    // What an answer has, as far as it is shown.
    #[derive(Deserialize)]
    struct Answer {
        verdict: String,
        value: Option<Box<RawValue>>,
        error: Option<Problem>,
    }
    #[derive(Deserialize)]
    struct Problem {
        reason: String,
        message: String,
        hint: Option<String>,
    }
    let Ok(answer) = serde_json::from_str::<Answer>(answer) else { return format!("answer\n{}", indented(answer)) };
    let mut out = format!("verdict  {}\n", cell(&answer.verdict, 64));
    if let Some(value) = &answer.value {
        out += "value\n";
        out += &indented(value.get());
    }
    if let Some(Problem { reason, message, hint }) = &answer.error {
        out += "error\n";
        out += &indented(&format!("{reason}: {message}"));
        out += &hint.as_ref().map(|hint| indented(&format!("hint: {hint}"))).unwrap_or_default();
    }
    out + "`--json` prints the whole answer\n"
}

/// Returns a text in lines of at most 100 columns that start with two spaces. Lines are broken at spaces, or within a word
/// that is longer than a line.
pub(super) fn indented(text: &str) -> String {
    let shown = visible(text);
    let mut out = String::new();
    for line in shown.lines().filter(|line| !line.is_empty()) {
        let mut rest = line;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fits(rest, COLUMNS - 2));
            out += "  ";
            out += now.trim_end_matches(' ');
            out.push('\n');
            rest = later;
        }
    }
    out
}

/// Returns how many bytes of a text go into a line: all, or those up to and with the last space, or those that fit.
fn fits(text: &str, columns: usize) -> usize {
    let (mut width, mut space) = (0, None);
    for (at, c) in text.char_indices() {
        width += c.width().unwrap_or(0);
        if c == ' ' {
            // Spaces at the end of a line are not shown.
            space = Some(at + 1);
        } else if width > columns {
            let is_indent = |end: &usize| text[..*end].trim_start_matches(' ').is_empty();
            // At least one character, so that there is progress.
            return space.filter(|end| !is_indent(end)).unwrap_or(at.max(c.len_utf8()));
        }
    }
    text.len()
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a duration in its largest unit.
fn age(ms: i64) -> String {
    let seconds = (ms / 1_000).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Returns a time as `2026-11-28 07:13:25 UTC`.
fn utc(ms: i64) -> String {
    let seconds = ms.div_euclid(1_000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that begin in March: the leap day is their last.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ms, shown) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399_999, "2000-02-28 23:59:59 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_795_849_999_123, "2026-11-28 07:13:19 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(utc(ms), shown);
        }
        assert_eq!([5_000, 125_000, 7_300_000, 400_000_000].map(age), ["5s", "2m", "2h", "4d"]);
    }

    #[test]
    fn texts_fit_and_control_nothing() {
        assert_eq!(cell("a\u{1b}[31m\nb", 20), "a\\u001b[31m b");
        assert_eq!(cell("日本語", 5), "日本…");
        assert_eq!(cell("abcdef", 4), "abc…");
        let long = "x".repeat(250);
        let lines = indented(&format!("{long}\n\nend\u{202e}"));
        assert!(lines.lines().all(|line| line.width() <= COLUMNS && line.starts_with("  ")), "{lines}");
        assert_eq!(lines.lines().count(), 4);
        assert!(lines.ends_with("end\\u202e\n"), "{lines}");
        let words = indented(&format!("{} {} end", "a".repeat(90), "b".repeat(20)));
        assert_eq!(words, format!("  {}\n  {} end\n", "a".repeat(90), "b".repeat(20)));
        assert_eq!(indented(&format!("  {}", "日".repeat(60))).lines().count(), 2);
    }
}
