//! The tools `search` and `describe`.

use crate::connection::Connection;
use crate::show;
use lisp_runtime::Tool;
use lisp_runtime::language::{builtin_names, describe_name};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// The maximum number of functions, and of tools, that a search shows.
const SHOWN: usize = 15;
/// The maximum number of words of a search; more are ignored.
const WORDS: usize = 12;

/// The maximum bytes of an argument: names and words of a search are short.
const MAX_TEXT: usize = 1_000;

/// Reads the only argument of a tool, a string.
fn text(arguments: &JsonObject, name: &str, of: &str) -> Result<String, CallToolResult> {
    if let Some(unknown) = arguments.keys().find(|given| *given != name) {
        return Err(show::failed(format!("unknown argument {unknown:?}; {of} takes {name}")));
    }
    match arguments.get(name) {
        Some(Value::String(text)) if text.len() > MAX_TEXT => {
            Err(show::failed(format!("{name} has {} bytes, more than {MAX_TEXT}; send less", text.len())))
        }
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        _ => Err(show::failed(format!("{name} must be a non-empty string"))),
    }
}

/// A function found by a search.
struct Found {
    rank: (usize, usize),
    name: &'static str,
    usage: String,
    about: String,
}

/// Finds the functions that match the most words. Matches in names rank above matches in documentation.
fn functions(words: &[String]) -> Vec<Found> {
    let found = |name: &'static str| {
        let page = describe_name(name).ok()?;
        let (lower, lower_name) = (page.to_lowercase(), name.to_lowercase());
        let matched = words.iter().filter(|word| lower.contains(word.as_str())).count();
        let named = words.iter().filter(|word| lower_name.contains(word.as_str())).count();
        let exact = words.iter().filter(|word| lower_name == **word).count();
        let mut lines = page.lines();
        let usage = lines.next().unwrap_or_default().to_owned();
        let about = lines.next().unwrap_or_default().trim().to_owned();
        (matched > 0).then_some(Found { rank: (matched, named + exact), name, usage, about })
    };
    let mut all: Vec<Found> = builtin_names().filter_map(found).collect();
    all.sort_by(|a, b| b.rank.cmp(&a.rank).then_with(|| a.name.cmp(b.name)));
    // List a function with several names once.
    all.dedup_by(|a, b| a.usage == b.usage);
    all
}

/// Searches the functions of the language and the tools.
pub(crate) fn search(connection: &Connection, arguments: &JsonObject) -> CallToolResult {
    let given = match text(arguments, "words", "search") {
        Ok(given) => given,
        Err(failed) => return failed,
    };
    let words: Vec<String> = given.to_lowercase().split_whitespace().take(WORDS).map(str::to_owned).collect();
    let functions = functions(&words);
    let tools = connection.service.engine().tools();
    let seen = |name: &str| tools.all().find(|tool| tool.name() == name).is_some_and(|tool| connection.sees(tool));
    let found: Vec<_> = tools.search(&given, usize::MAX).into_iter().filter(|tool| seen(&tool.name)).collect();
    let mut lines = String::new();
    for tool in found.iter().take(SHOWN) {
        let _ = writeln!(lines, "{}: {}", tool.usage, tool.about);
    }
    for function in functions.iter().take(SHOWN) {
        let _ = writeln!(lines, "{}: {}", function.usage, function.about);
    }
    let more = found.len().saturating_sub(SHOWN) + functions.len().saturating_sub(SHOWN);
    match (found.len() + functions.len(), more) {
        (0, _) => lines.push_str("no matches; try other or fewer words"),
        (_, 0) => {}
        (_, more) => drop(write!(lines, "{more} more matches; use more specific words")),
    }
    let shown: Vec<_> = functions
        .iter()
        .take(SHOWN)
        .map(|found| json!({ "name": found.name, "usage": found.usage, "about": found.about }))
        .collect();
    let shown_tools: Vec<_> = found.into_iter().take(SHOWN).collect();
    let mut result = CallToolResult::success(vec![ContentBlock::text(lines.trim_end())]);
    result.structured_content = Some(json!({ "functions": shown, "tools": shown_tools, "more": more }));
    result
}

/// Returns the full documentation of a function or a tool.
pub(crate) fn describe(connection: &Connection, arguments: &JsonObject) -> CallToolResult {
    let name = match text(arguments, "name", "describe") {
        Ok(name) => name,
        Err(failed) => return failed,
    };
    let tools = connection.service.engine().tools();
    let tool_of = |name: &str| -> Option<&Arc<Tool>> {
        tools.all().find(|tool| (tool.name() == name || tool.given_name() == name) && connection.sees(tool))
    };
    let page = match name.strip_prefix("tool/") {
        Some(tool) => tool_of(tool)
            .map(|tool| tool.describe())
            .ok_or_else(|| format!("unknown tool {tool}; search finds tools by words")),
        None => describe_name(&name).or_else(|like| {
            tool_of(&name).map(|tool| tool.describe()).ok_or_else(|| match like {
                Some(like) => format!("unknown function {name}; {like}"),
                None => format!("unknown function {name}; search finds functions by words"),
            })
        }),
    };
    match page {
        Err(why) => show::failed(why),
        Ok(page) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(page.trim_end())]);
            result.structured_content = Some(json!({ "name": name, "text": page.trim_end() }));
            result
        }
    }
}
