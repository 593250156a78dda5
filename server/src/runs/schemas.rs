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

fn number(about: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).description(Some(about)).build().into()
}

/// An object with these fields, of which some are always present. More may be added.
fn open<'f>(about: &str, fields: impl IntoIterator<Item = (&'f str, RefOr<Schema>)>, required: &[&str]) -> Object {
    let fields = fields.into_iter().fold(ObjectBuilder::new(), |object, (name, schema)| object.property(name, schema));
    let fields = required.iter().fold(fields, |object, name| object.required(*name));
    fields.description(Some(about)).build()
}

/// An object of integers, with the field names that a value has as JSON.
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
        let limits = || RefOr::from(figures("the limits it asks for; 0 is off", &LimitsRequest::all(&Limits::default())));
        closed(
            "A program and what it gets. Fields that are not named here are an error.",
            [
                ("id", anything("echoed in the answer")),
                ("program", of(Type::String, "the source text")),
                ("setup", strings("programs that are evaluated first, in order")),
                ("data", map("what data/name reads")),
                ("memory", map("definitions of earlier turns")),
                ("history", list(anything("a result"), "earlier results, the oldest first")),
                ("tools", map_of(ScriptedTool::schema(), "tools by name: such that the caller answers, or scripted ones")),
                ("limits", limits()),
                ("signature", of(Type::String, "what the result is to be, such as () -> {total :float}")),
                ("strict_data", of(Type::Boolean, "a missing data/name is an error")),
                ("isolation", one_of(&["in_process", "process"], "where it runs")),
                ("domain", of(Type::String, "refused: whether runs share processes is the tenant's `domain`")),
                ("json_keys", one_of(&["strings", "keywords"], "what keys of objects become")),
                ("omit", list_of(one_of(&["value", "text", "memory", "ledger", "limits"], "a part of the answer"))),
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

/// What was cut from a section of an answer.
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
    open("how much there was, and how much is shown", names.map(|name| (name, number("how many"))), &[]).into()
}

schema!(
    /// A tool of a request: `lisp_runtime::ScriptedTool`.
    ScriptedTool,
    closed(
        "A tool of a request.",
        [
            ("client", of(Type::Boolean, "who sent the request answers its calls")),
            ("returns", anything("the result of every call")),
            ("error", of(Type::String, "every call fails with this text")),
            ("echo", of(Type::Boolean, "the result of a call is its arguments")),
            ("signature", of(Type::String, "what it takes and gives, such as (n :int) -> :int")),
            ("cache", of(Type::Boolean, "a repeated call has the result of the first")),
            ("delay_ms", number("how long it waits before it returns")),
        ],
        &[],
    )
);

schema!(
    /// The error of a run: `lisp_runtime::ErrorReport`.
    ErrorReport,
    open(
        "Why there is no value.",
        [
            ("reason", of(Type::String, "the stable name of the fault")),
            ("message", of(Type::String, "the expected and the actual value")),
            ("line", number("the line it starts on, from 1")),
            ("column", number("the column it starts at, in characters, from 1")),
            ("end_line", number("the line it ends on")),
            ("end_column", number("one past the column it ends at")),
            ("hint", of(Type::String, "one next step")),
            ("details", map("figures such as limit_bytes, and the phase")),
        ],
        &["reason", "message", "details"],
    )
);

schema!(
    /// The resources used by a run: `lisp_runtime::Usage`.
    Usage,
    open(
        "The figures of the run.",
        [
            ("fuel", number("work done, the same on every machine")),
            ("compute_us", number("wall time less the time spent in tools")),
            ("duration_us", number("wall time")),
            ("baseline_bytes", number("what the host's grant takes")),
            ("heap_peak_bytes", number("the maximum the program held at once")),
            ("heap_live_bytes", number("what it held at the end")),
            ("allocated_bytes", number("what it allocated in all")),
            ("compactions", number("how often its heap was compacted")),
            ("tool_calls", number("tool calls, cached ones not counted")),
            ("workers_peak", number("the maximum number of parallel workers at once")),
            ("output_bytes", number("bytes of the prints and of the result")),
            ("cpu_us", number("processor time of the run's process")),
            ("rss_peak_bytes", number("the maximum memory of the run's process")),
            ("figures_age_us", number("how old the figures are, of a run that was killed")),
        ],
        &[
            "fuel", "compute_us", "duration_us", "heap_peak_bytes", "allocated_bytes", "compactions", "tool_calls",
            "workers_peak", "output_bytes",
        ],
    )
);

schema!(
    /// A tool call in an answer: `lisp_runtime::LedgerLine`.
    LedgerLine,
    open(
        "A tool call.",
        [
            ("name", of(Type::String, "the tool")),
            ("arguments", anything("its arguments; the beginning of their text when they are long")),
            ("status", one_of(&["ok", "error", "cached", "unknown"], "how it ended")),
            ("arguments_bytes", number("the bytes of the whole text of the arguments, when it is cut")),
            ("result", anything("its result; the beginning of its text when it is long")),
            ("result_bytes", number("the bytes of the whole text of the result, when it is cut")),
            ("error", of(Type::String, "why it failed")),
            ("duration_us", number("how long it took")),
            ("worker", list(number("a place"), "which worker called it; empty for the main program")),
        ],
        &["name", "arguments", "status", "duration_us", "worker"],
    )
);

schema!(
    /// The answer of a run: `lisp_runtime::Answer`.
    Answer,
    {
        let verdicts = ["ok", "error", "timeout", "out_of_memory", "cancelled", "host_fault"];
        let object = [
            ("schema", of(Type::String, "ptc-lisp/1")),
            ("id", anything("that of the request")),
            ("run_id", of(Type::String, "the name of the run")),
            ("verdict", one_of(&verdicts, "how the run ended")),
            ("outcome", one_of(&["value", "return", "fail"], "how the program ended by itself")),
            ("value", anything("the result")),
            ("text", of(Type::String, "the result in Clojure syntax")),
            ("truncated", map_of(cut(), "what was cut, by the name of the part")),
            ("error", Ref::from_schema_name(ErrorReport::name()).into()),
            ("warnings", list(map("kind, message, line, column, end_line, end_column, repair"), "notes on the run")),
            ("prints", strings("what the program printed")),
            ("memory", map("the definitions after the run")),
            ("usage", Ref::from_schema_name(Usage::name()).into()),
            ("ledger", list(Ref::from_schema_name(LedgerLine::name()).into(), "every tool call, in program order")),
            ("given_up", list(Ref::from_schema_name(LedgerLine::name()).into(), "tool calls that workers made for nothing")),
            ("limits", RefOr::from(figures("the limits that were in force", &LimitsRequest::all(&Limits::default())))),
            ("cost_schedule", of(Type::Integer, "the version of the schedule that the fuel was counted by")),
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
            "What the turns of a session have in common.",
            [
                ("data", map("what data/name reads")),
                ("memory", map("definitions that are there before the first turn")),
                ("history", list(anything("a result"), "earlier results, the oldest first")),
                ("setup", strings("programs that are evaluated before the first turn")),
                ("tools", map_of(ScriptedTool::schema(), "tools by name")),
                (
                    "limits",
                    RefOr::from(figures("the limits of each turn; 0 is off", &LimitsRequest::all(&Limits::default()))),
                ),
                ("strict_data", of(Type::Boolean, "a missing data/name is an error")),
                ("json_keys", one_of(&["strings", "keywords"], "what keys of objects become")),
            ],
            &[],
        )
    }
);
