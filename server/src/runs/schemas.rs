//! OpenAPI schemas of request and answer bodies whose types are in `lisp_runtime`.

use lisp_runtime::{Limits, LimitsRequest};
use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// Any JSON value.
fn anything(about: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some(about)).build().into()
}

fn of(kind: Type, about: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(kind).description(Some(about)).build().into()
}

fn one_of(values: &[&str], about: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(values.iter().copied()))
        .description(Some(about))
        .build()
        .into()
}

/// An object with exactly these fields.
fn closed<'f>(about: &str, fields: impl IntoIterator<Item = (&'f str, RefOr<Schema>)>, required: &[&str]) -> Object {
    let fields = fields.into_iter().fold(ObjectBuilder::new(), |object, (name, schema)| object.property(name, schema));
    let fields = required.iter().fold(fields, |object, name| object.required(*name));
    fields.description(Some(about)).additional_properties(Some(AdditionalProperties::FreeForm(false))).build()
}

/// An object with any field names; each value has this schema.
fn map_of(item: RefOr<Schema>, about: &str) -> RefOr<Schema> {
    let all = AdditionalProperties::RefOr(item);
    let object = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(all));
    object.description(Some(about)).build().into()
}

/// An object with any fields.
fn map(about: &str) -> RefOr<Schema> {
    let object = ObjectBuilder::new().schema_type(Type::Object);
    let any = AdditionalProperties::FreeForm(true);
    object.additional_properties(Some(any)).description(Some(about)).build().into()
}

/// The arguments of a call.
pub(super) fn arguments() -> RefOr<Schema> {
    map("The arguments.")
}

/// The arguments of a reply.
pub(super) fn new_arguments() -> RefOr<Schema> {
    let object = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::Object, Type::Null]));
    let any = AdditionalProperties::FreeForm(true);
    let about = "Replacement arguments for an approved call.";
    object.additional_properties(Some(any)).description(Some(about)).build().into()
}

fn number(about: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).description(Some(about)).build().into()
}

/// An object with these fields, of which some are always present. More may be added.
fn open<'f>(about: &str, fields: impl IntoIterator<Item = (&'f str, RefOr<Schema>)>, required: &[&str]) -> Object {
    let fields = fields.into_iter().fold(ObjectBuilder::new(), |object, (name, schema)| object.property(name, schema));
    let fields = required.iter().fold(fields, |object, name| object.required(*name));
    fields.description(Some(about)).build()
}

/// An object of integers, with the fields that a value has as JSON.
fn figures(about: &str, of_value: &impl serde::Serialize) -> Object {
    let fields = match serde_json::to_value(of_value) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let number = || RefOr::from(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).build());
    let object = fields.keys().fold(ObjectBuilder::new(), |object, name| object.property(name, number()));
    object.description(Some(about)).build()
}

macro_rules! schema {
    ($(#[$doc:meta])* $name:ident, $object:expr) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $object.into()
            }
        }

        impl ToSchema for $name {}
    };
}

schema!(
    /// The request of a run: `lisp_runtime::Request`.
    RunRequest,
    {
        let limits = || RefOr::from(figures("limits of the run; 0 turns most of them off", &LimitsRequest::all(&Limits::default())));
        closed(
            "A program with its data, tools and limits. Unknown fields are errors.",
            [
                ("id", anything("returned unchanged in the answer")),
                ("program", of(Type::String, "the source of the program")),
                ("setup", strings("programs that are evaluated first, in order")),
                ("data", map("the values that data/NAME reads, by name")),
                ("memory", map("existing definitions, by name")),
                ("history", list(anything("a result"), "earlier results for *1, *2 and *3, oldest first")),
                ("tools", map_of(ScriptedTool::schema(), "tools of the request, by name")),
                ("limits", limits()),
                ("signature", of(Type::String, "what the result must be, such as () -> {total :float}")),
                ("strict_data", of(Type::Boolean, "a missing data/NAME is an error")),
                ("isolation", one_of(&["in_process", "process"], "where the program runs")),
                ("domain", of(Type::String, "always refused; `domain` of the tenant decides whether its runs share processes")),
                ("json_keys", one_of(&["strings", "keywords"], "what the keys of JSON objects become")),
                ("omit", list_of(one_of(&["value", "text", "memory", "ledger", "limits"], "a section to leave out of the answer"))),
                ("traceparent", of(Type::String, "the W3C trace context of the caller")),
            ],
            &["program"],
        )
    }
);

fn list_of(item: RefOr<Schema>) -> RefOr<Schema> {
    ArrayBuilder::new().items(item).build().into()
}

fn list(item: RefOr<Schema>, about: &str) -> RefOr<Schema> {
    ArrayBuilder::new().items(item).description(Some(about)).build().into()
}

fn strings(about: &str) -> RefOr<Schema> {
    list(ObjectBuilder::new().schema_type(Type::String).build().into(), about)
}

/// How a section of an answer was cut.
fn cut() -> RefOr<Schema> {
    let names = [
        "bytes_total",
        "bytes_shown",
        "lines_total",
        "lines_shown",
        "lines_cut",
        "entries_total",
        "entries_shown",
        "entries_cut",
    ];
    open("the size of a cut section, and how much is shown", names.map(|name| (name, number("a count"))), &[]).into()
}

schema!(
    /// A tool of a request: `lisp_runtime::request::ScriptedTool`.
    ScriptedTool,
    closed(
        "A tool of a request.",
        [
            ("client", of(Type::Boolean, "the client answers the calls")),
            ("returns", anything("the result of every call")),
            ("error", of(Type::String, "every call fails with this message")),
            ("code", anything("the code of that error: a string or an integer")),
            ("echo", of(Type::Boolean, "every call returns its arguments")),
            ("description", of(Type::String, "what models read about the tool")),
            ("signature", of(Type::String, "the parameters and the result, such as (n :int) -> :int")),
            ("input", map("the JSON Schema of the arguments, in place of a signature")),
            ("output", map("the JSON Schema of the results, in place of a signature")),
            ("cache", of(Type::Boolean, "a repeated call returns the result of the first")),
            ("delay_ms", number("the delay before a call returns, in milliseconds")),
        ],
        &[],
    )
);

schema!(
    /// The error of a run: `lisp_runtime::request::ErrorReport`.
    ErrorReport,
    open(
        "Why the run has no value.",
        [
            ("reason", of(Type::String, "the stable name of the error, such as type_error")),
            ("message", of(Type::String, "what went wrong, with the expected and the actual value")),
            ("line", number("the line where the error starts, from 1")),
            ("column", number("the column where it starts, in characters, from 1")),
            ("end_line", number("the line where it ends")),
            ("end_column", number("the column after its last character")),
            ("hint", of(Type::String, "one next step")),
            ("details", map("the phase, and figures such as limit_bytes")),
        ],
        &["reason", "message", "details"],
    )
);

schema!(
    /// The resources used by a run: `lisp_runtime::outcome::Usage`.
    Usage,
    open(
        "The resources that the run used.",
        [
            ("fuel", number("work done, the same on every machine")),
            ("compute_us", number("wall time without the time in tools, in microseconds")),
            ("duration_us", number("wall time, in microseconds")),
            ("baseline_bytes", number("bytes of the data, memory and programs that the run was given")),
            ("heap_peak_bytes", number("the peak of the bytes that the program held")),
            ("heap_live_bytes", number("bytes that the program held at the end")),
            ("allocated_bytes", number("bytes that the program allocated in total")),
            ("compactions", number("how often the heap was compacted")),
            ("tool_calls", number("tool calls, without cached ones")),
            ("workers_peak", number("the peak number of parallel workers")),
            ("output_bytes", number("bytes of the prints and of the result")),
            ("cpu_us", number("CPU time of the run's process, in microseconds")),
            ("rss_peak_bytes", number("peak resident memory of the run's process, in bytes")),
            ("figures_age_us", number("the age of the figures, in microseconds, for a run whose process was killed")),
        ],
        &[
            "fuel", "compute_us", "duration_us", "heap_peak_bytes", "allocated_bytes", "compactions", "tool_calls",
            "workers_peak", "output_bytes",
        ],
    )
);

schema!(
    /// A tool call in an answer: `lisp_runtime::request::LedgerLine`.
    LedgerLine,
    open(
        "A tool call.",
        [
            ("name", of(Type::String, "the name of the tool")),
            ("arguments", anything("the arguments; if they are long, their beginning as a string")),
            ("status", one_of(&["ok", "error", "cached", "unknown"], "how the call ended")),
            ("arguments_bytes", number("bytes of the whole arguments, if they are cut")),
            ("result", anything("the result; if it is long, its beginning as a string")),
            ("result_bytes", number("bytes of the whole result, if it is cut")),
            ("error", of(Type::String, "why the call failed")),
            ("duration_us", number("the duration of the call, in microseconds")),
            ("worker", list(number("an index"), "the path to the worker that made the call; empty for the main program")),
        ],
        &["name", "arguments", "status", "duration_us", "worker"],
    )
);

fn warnings(about: &str) -> RefOr<Schema> {
    list(map("a warning: kind, message, line, column, end_line, end_column, repair"), about)
}

schema!(
    /// The result of a check: `lisp_runtime::request::CheckReport`.
    CheckReport,
    open(
        "What a check of a program found.",
        [
            ("id", anything("the id of the request")),
            ("error", Ref::from_schema_name(ErrorReport::name()).into()),
            ("warnings", warnings("what was found, in the order of the program")),
        ],
        &["warnings"],
    )
);

schema!(
    /// The answer of a run: `lisp_runtime::Answer`.
    Answer,
    {
        let verdicts = ["ok", "error", "timeout", "out_of_memory", "cancelled", "host_fault"];
        let object = [
            ("schema", of(Type::String, "ptc-lisp/1")),
            ("id", anything("the id of the request")),
            ("run_id", of(Type::String, "the ID of the run")),
            ("verdict", one_of(&verdicts, "how the run ended")),
            ("outcome", one_of(&["value", "return", "fail"], "how the program itself ended the run")),
            ("value", anything("the result")),
            ("text", of(Type::String, "the result in Clojure syntax")),
            ("truncated", map_of(cut(), "the sections that were cut, by name")),
            ("error", Ref::from_schema_name(ErrorReport::name()).into()),
            ("warnings", warnings("warnings about the run")),
            ("prints", strings("the lines that the program printed")),
            ("memory", map("the definitions after the run, by name")),
            ("usage", Ref::from_schema_name(Usage::name()).into()),
            ("ledger", list(Ref::from_schema_name(LedgerLine::name()).into(), "every tool call, in program order")),
            ("given_up", list(Ref::from_schema_name(LedgerLine::name()).into(), "calls of workers whose results were discarded")),
            ("limits", RefOr::from(figures("the limits of the run, by name", &LimitsRequest::all(&Limits::default())))),
            ("cost_schedule", of(Type::Integer, "the version of the cost schedule that counted the fuel")),
        ];
        let object = object.into_iter().fold(ObjectBuilder::new(), |object, (name, schema)| object.property(name, schema));
        let always = ["schema", "run_id", "verdict", "truncated", "prints", "usage"];
        always.iter().fold(object, |object, name| object.required(*name)).description(Some("How a run ended.")).build()
    }
);

schema!(
    /// The request that opens a session: `runs::sessions::Opening`.
    SessionRequest,
    {
        closed(
            "The parts of a request that all turns of the session share.",
            [
                ("data", map("the values that data/NAME reads, by name")),
                ("memory", map("definitions that exist before the first turn, by name")),
                ("history", list(anything("a result"), "earlier results for *1, *2 and *3, oldest first")),
                ("setup", strings("programs that are evaluated before the first turn, in order")),
                ("tools", map_of(ScriptedTool::schema(), "tools of the session, by name")),
                (
                    "limits",
                    RefOr::from(figures("limits of each turn; 0 turns most of them off", &LimitsRequest::all(&Limits::default()))),
                ),
                ("strict_data", of(Type::Boolean, "a missing data/NAME is an error")),
                ("json_keys", one_of(&["strings", "keywords"], "what the keys of JSON objects become")),
            ],
            &[],
        )
    }
);

schema!(
    /// What a prompt should have: `runs::PromptRequest`.
    PromptSchema,
    closed(
        "The parts of a request that a model has to know. Unknown fields are errors.",
        [
            ("tools", map_of(ScriptedTool::schema(), "tools of the request, by name")),
            ("json_keys", one_of(&["strings", "keywords"], "what the keys of JSON objects become")),
        ],
        &[],
    )
);
