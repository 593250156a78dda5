//! The tools as clients list them.

use lisp_runtime::Limits;
use lisp_server::store::RunStatus;
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
    vec![run(card), check(), search(), describe(), resume(), runs()]
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
        left => format!("{shown}\n{left} more lines are omitted; use the tools search and describe"),
    }
}

/// The output schema: the answer of a run, and the fields of a paused run.
fn answer() -> Value {
    json!({
        "type": "object",
        "properties": {
            "schema": { "type": "string", "description": "The version of the form of answers." },
            "run_id": { "type": "string" },
            "verdict": { "type": "string", "enum": ["ok", "error", "timeout", "out_of_memory", "cancelled", "host_fault"] },
            "outcome": { "type": "string", "enum": ["value", "return", "fail"] },
            "value": { "type": ANY, "description": "The value as JSON; numbers of more than 64 bits are exact in text only." },
            "text": { "type": "string", "description": "The value in Clojure syntax." },
            "error": { "type": "object", "description": "reason, message, line, column, hint." },
            "warnings": { "type": "array", "description": "kind, message, repair; line and column of the program.", "items": { "type": "object" } },
            "prints": { "type": "array", "items": { "type": "string" } },
            "truncated": { "type": "object", "description": "The sections that were cut." },
            "usage": { "type": "object" },
            "cost_schedule": { "type": "integer", "description": "The version of the rules by which fuel is counted." },
            "ledger": { "type": "array", "description": "The tool calls.", "items": { "type": "object" } },
            "given_up": { "type": "array", "description": "Calls of workers whose results were discarded.", "items": { "type": "object" } },
            "status": { "type": "string", "const": "paused", "description": "The run waits for answers to its calls." },
            "token": { "type": "string", "description": "For the tool resume." },
            "calls": { "type": "array", "items": { "type": "object" } },
        },
        "required": ["run_id"],
    })
}

fn run(card: &str) -> Tool {
    let description = format!(
        "Runs a program in PTC-Lisp, a small, safe Clojure for working on data: filter, group, sum and join, call tools, \
         and return a small result. Runs are limited in time and memory, share no state, and reach files \
         and the network only through tools. Programs read the argument data as data/NAME. An error says where it is \
         and what to do: correct the program and run it again. The language:\n\n{}",
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
            "data": { "type": "object", "description": "The values that data/NAME reads, by name." },
            "signature": {
                "type": "string",
                "description": "What the result must be, such as `() -> {total :float, rows [:map]}`.",
            },
            "tools": {
                "type": "object",
                "description": "Tools whose calls you answer, by name. The run pauses at each call; send the result with resume.",
                "additionalProperties": {
                    "type": "object",
                    "properties": {
                        "client": { "type": "boolean", "const": true },
                        "description": { "type": "string" },
                        "signature": { "type": "string", "description": "Such as `(text :string) -> :string`." },
                        "input": { "type": "object", "description": "JSON Schema of the arguments, in place of a signature." },
                        "output": { "type": "object", "description": "JSON Schema of the results, in place of a signature." },
                    },
                    "required": ["client"],
                    "additionalProperties": false,
                },
            },
            "limits": {
                "type": "object",
                "description": "Limits of this run, such as timeout_ms, fuel and heap_bytes; at most those of the server.",
                "properties": limits,
                "additionalProperties": false,
            },
            "json_keys": {
                "type": "string",
                "enum": ["strings", "keywords"],
                "description": "What the keys of JSON objects become. By default, the server decides.",
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

fn check() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "program": { "type": "string" },
            "data": { "type": "object" },
            "signature": { "type": "string" },
            "tools": { "type": "object" },
            "limits": { "type": "object" },
            "json_keys": { "type": "string", "enum": ["strings", "keywords"] },
        },
        "required": ["program"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": {
            "error": { "type": "object", "description": "Why the program cannot run: reason, message, line, column, hint." },
            "warnings": { "type": "array", "description": "kind, message, repair; line and column of the program.", "items": { "type": "object" } },
        },
        "required": ["warnings"],
    });
    let about = "Checks a program against its data and the tools without running it: misspelt keys and arguments, comparisons that \
                 are always false, operands of the wrong type. Use it before you run a program that changes something. Takes the \
                 arguments of run.";
    Tool::new("check", about, object(input))
        .with_title("Check a PTC-Lisp program")
        .with_raw_output_schema(object(output))
        .with_annotations(looking("Check a program"))
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
            "more": { "type": "integer", "description": "The number of matches that are not shown." },
        },
        "required": ["functions", "tools", "more"],
    });
    let about = "Finds PTC-Lisp functions, and tools that programs call as tool/NAME, by words in their names and \
                 descriptions. Returns one line for each; describe returns the full documentation.";
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
    let about = "Returns the documentation of a PTC-Lisp function, or of a tool that programs can call.";
    Tool::new("describe", about, object(input))
        .with_title("Describe a function or tool")
        .with_raw_output_schema(object(output))
        .with_annotations(looking("Describe a function or tool"))
}

fn resume() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "token": { "type": "string", "description": "The token of the paused result, unchanged." },
            "wait_seconds": {
                "type": "integer",
                "minimum": 0,
                "maximum": WAIT_SECONDS,
                "description": "How long to wait for a decision; 0 by default.",
            },
            "call": { "type": "string", "description": "The call that result or error answers; required if several calls are open." },
            "result": { "type": ANY, "description": "The result of a call that you answer, or of a call whose result is unknown." },
            "error": { "type": "string", "description": "The error message of such a call, if it failed." },
        },
        "required": ["token"],
        "additionalProperties": false,
    });
    let annotations = ToolAnnotations::with_title("Collect a paused run").read_only(false).destructive(false);
    let about = "Returns the outcome of a run whose result was \"paused\", usually because a tool call needs approval. A person \
                 approves calls; resume cannot. The result is that of run, or \"paused\" until the call is answered.";
    Tool::new("resume", about, object(input))
        .with_title("Collect a paused run")
        .with_raw_output_schema(object(answer()))
        .with_annotations(annotations.idempotent(true).open_world(true))
}

fn runs() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "status": {
                "type": "string",
                "enum": RunStatus::ALL.map(RunStatus::name),
                "description": "Only runs with this status.",
            },
            "cursor": { "type": "string", "description": "`next` of the page before." },
        },
        "additionalProperties": false,
    });
    let run = json!({
        "type": "object",
        "properties": {
            "run_id": { "type": "string" },
            "status": { "type": "string" },
            "age_seconds": { "type": "integer" },
            "program": { "type": "string", "description": "The first line of the program." },
            "token": { "type": "string", "description": "For the tool resume." },
            "calls": { "type": "array", "description": "The first open calls: call, name.", "items": { "type": "object" } },
            "error": { "type": "string", "description": "Why the run is stuck." },
        },
        "required": ["run_id", "status", "age_seconds", "program", "token", "calls"],
    });
    let output = json!({
        "type": "object",
        "properties": {
            "runs": { "type": "array", "items": run },
            "next": { "type": "string", "description": "The cursor of the next page." },
        },
        "required": ["runs"],
    });
    let about = "Lists the latest runs that could pause, newest first, with a token for resume each: use it when the result of \
                 run or resume was lost.";
    Tool::new("runs", about, object(input))
        .with_title("List runs")
        .with_raw_output_schema(object(output))
        .with_annotations(looking("List runs"))
}
