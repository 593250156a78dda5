//! The tools as clients list them.

use lisp_runtime::Limits;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;

/// The maximum bytes of the language prompt in the description of `run`.
const CARD_BYTES: usize = 8_000;

/// The maximum time that `resume` waits.
pub(crate) const WAIT_SECONDS: u64 = 50;

/// Any value. Some clients reject a schema without a type.
const ANY: [&str; 6] = ["object", "array", "string", "number", "boolean", "null"];

/// Returns the tools, with a tenant's language prompt.
pub(crate) fn tools(card: &str) -> Vec<Tool> {
    vec![run(card), search(), describe(), resume()]
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

/// Cuts the prompt after as many whole lines as fit.
fn bounded(card: &str) -> String {
    let mut end = 0;
    let (mut left, mut is_full) = (0, false);
    for line in card.split_inclusive('\n') {
        is_full |= end + line.len() > CARD_BYTES;
        match is_full {
            true => left += 1,
            false => end += line.len(),
        }
    }
    let shown = card[..end].trim_end();
    match left {
        0 => shown.to_owned(),
        left => format!("{shown}\n{left} more lines are left out here: the tools search and describe have them"),
    }
}

/// The output schema: the answer of a run, and the fields of a paused run.
fn answer() -> Value {
    json!({
        "type": "object",
        "properties": {
            "run_id": { "type": "string" },
            "verdict": { "type": "string", "enum": ["ok", "error", "timeout", "out_of_memory", "cancelled", "host_fault"] },
            "outcome": { "type": "string", "enum": ["value", "return", "fail"] },
            "value": { "type": ANY, "description": "The value as JSON; numbers of more than 64 bits are exact in text only." },
            "text": { "type": "string", "description": "The value in Clojure syntax." },
            "error": { "type": "object", "description": "reason, message, line, column, hint." },
            "warnings": { "type": "array", "description": "kind, message, repair; line and column of the program.", "items": { "type": "object" } },
            "prints": { "type": "array", "items": { "type": "string" } },
            "truncated": { "type": "object", "description": "What was cut." },
            "usage": { "type": "object" },
            "ledger": { "type": "array", "description": "Each call of a tool.", "items": { "type": "object" } },
            "given_up": { "type": "array", "description": "Calls that workers made for nothing.", "items": { "type": "object" } },
            "status": { "type": "string", "const": "paused", "description": "The run waits for an approver: see token and calls." },
            "token": { "type": "string", "description": "For the tool resume." },
            "calls": { "type": "array", "items": { "type": "object" } },
        },
        "required": ["run_id"],
    })
}

fn run(card: &str) -> Tool {
    let description = format!(
        "Runs a program in PTC-Lisp, a small, safe Clojure for working on data: filter, group, sum and join, call tools, \
         and return a small result. Runs are bounded in time and memory, keep nothing for the next run, and touch no \
         files or network but by the tools. Data comes as data/NAME from the argument data. An error says where and \
         what to do: correct the program and run it again. The language:\n\n{}",
        bounded(card)
    );
    let mut limits = serde_json::to_value(Limits::default()).unwrap_or_default();
    limits
        .as_object_mut()
        .into_iter()
        .flatten()
        .for_each(|(_, limit)| *limit = json!({ "type": "integer", "minimum": 0 }));
    let input = json!({
        "type": "object",
        "properties": {
            "program": { "type": "string", "description": "The source. The value of its last form is the result." },
            "data": { "type": "object", "description": "What data/NAME reads: each member is one NAME." },
            "signature": {
                "type": "string",
                "description": "Checked against the result, such as `() -> {total :float, rows [:map]}`.",
            },
            "tools": {
                "type": "object",
                "description": "Tools whose calls you answer yourself, by name: the run is paused at each, and resume takes the result.",
                "additionalProperties": {
                    "type": "object",
                    "properties": {
                        "client": { "type": "boolean", "const": true },
                        "signature": { "type": "string", "description": "Such as `(text :string) -> :string`." },
                    },
                    "required": ["client"],
                    "additionalProperties": false,
                },
            },
            "limits": {
                "type": "object",
                "description": "Limits of this run, within those of the server: timeout_ms, fuel, heap_bytes and so on.",
                "properties": limits,
                "additionalProperties": false,
            },
            "json_keys": {
                "type": "string",
                "enum": ["strings", "keywords"],
                "description": "What keys of JSON objects become; leave it out unless the program needs another than the server's.",
            },
        },
        "required": ["program"],
        "additionalProperties": false,
    });
    let annotations = ToolAnnotations::with_title("Run a program").read_only(false).destructive(true).idempotent(false);
    Tool::new("run", description, object(input))
        .with_title("Run a PTC-Lisp program")
        .with_raw_output_schema(object(answer()))
        .with_annotations(annotations.open_world(true))
}

fn looking(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title).read_only(true).destructive(false).idempotent(true).open_world(false)
}

fn search() -> Tool {
    let input = json!({
        "type": "object",
        "properties": { "words": { "type": "string", "minLength": 1, "description": "Words, such as `group sum` or `list issues`." } },
        "required": ["words"],
        "additionalProperties": false,
    });
    let entry = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "usage": { "type": "string" }, "about": { "type": "string" } },
    });
    let output = json!({
        "type": "object",
        "properties": {
            "functions": { "type": "array", "items": entry },
            "tools": { "type": "array", "items": entry },
            "more": { "type": "integer", "description": "How many were found and are not shown." },
        },
        "required": ["functions", "tools", "more"],
    });
    let about = "Finds functions of PTC-Lisp and tools that programs can call (as tool/NAME), by words of their names and \
                 descriptions: a line for each. describe has the whole text on one.";
    Tool::new("search", about, object(input))
        .with_title("Search functions and tools")
        .with_raw_output_schema(object(output))
        .with_annotations(looking("Search functions and tools"))
}

fn describe() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 1, "description": "A function such as `group-by`, or a tool as `tool/NAME`." },
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "text": { "type": "string" } },
        "required": ["name", "text"],
    });
    let about = "Says how a function of PTC-Lisp, or a tool that programs can call, is called, what it does and returns, with examples.";
    Tool::new("describe", about, object(input))
        .with_title("Describe a function or tool")
        .with_raw_output_schema(object(output))
        .with_annotations(looking("Describe a function or tool"))
}

fn resume() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "token": { "type": "string", "description": "The token of the paused result, whole." },
            "wait_seconds": {
                "type": "integer",
                "minimum": 0,
                "maximum": WAIT_SECONDS,
                "description": "How long to wait for a decision; 0 when it is left out.",
            },
            "call": { "type": "string", "description": "With result or error, when several calls wait: which." },
            "result": { "type": ANY, "description": "The result of a call of a tool that you answer, or of one whose end is unknown." },
            "error": { "type": "string", "description": "How such a call failed." },
        },
        "required": ["token"],
        "additionalProperties": false,
    });
    let annotations = ToolAnnotations::with_title("Collect a paused run").read_only(false).destructive(false);
    let about = "The outcome of a run that answered \"paused\", as a call of a tool in it has to be approved. An approver decides, \
                 who is a person: resume cannot approve. Answers as run does, or \"paused\" until a decision is made.";
    Tool::new("resume", about, object(input))
        .with_title("Collect a paused run")
        .with_raw_output_schema(object(answer()))
        .with_annotations(annotations.idempotent(true).open_world(true))
}
