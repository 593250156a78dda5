//! What the bodies of runs look like, for the description of the service: their types are the library's.

use lisp_runtime::{Limits, LimitsRequest};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// Any JSON.
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

/// An object of these fields and no others.
fn closed<'f>(about: &str, fields: impl IntoIterator<Item = (&'f str, RefOr<Schema>)>, required: &[&str]) -> Object {
    let fields = fields.into_iter().fold(ObjectBuilder::new(), |object, (name, schema)| object.property(name, schema));
    let fields = required.iter().fold(fields, |object, name| object.required(*name));
    fields.description(Some(about)).additional_properties(Some(AdditionalProperties::FreeForm(false))).build()
}

/// Whole numbers under the names that a value has as JSON.
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
    /// What a run is asked with: `lisp_runtime::Request`.
    RunRequest,
    {
        let map = |about: &str| of(Type::Object, about);
        let limits = || RefOr::from(figures("the limits it asks for; 0 is off", &LimitsRequest::all(&Limits::default())));
        closed(
            "A program and what it gets. Fields that are not named here are an error.",
            [
                ("id", anything("echoed in the answer")),
                ("program", of(Type::String, "the source text")),
                ("setup", strings("programs that are evaluated first, in order")),
                ("data", map("what data/name reads")),
                ("memory", map("definitions of earlier turns")),
                ("history", of(Type::Array, "earlier results, the oldest first")),
                ("tools", map("tools by name: {\"client\": true}, whose calls the caller answers, or scripted ones")),
                ("limits", limits()),
                ("signature", of(Type::String, "what the result is to be, such as () -> {total :float}")),
                ("strict_data", of(Type::Boolean, "a missing data/name is an error")),
                ("isolation", one_of(&["in_process", "process"], "the door that it runs behind")),
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

fn strings(about: &str) -> RefOr<Schema> {
    let item = ObjectBuilder::new().schema_type(Type::String).build();
    ArrayBuilder::new().items(item).description(Some(about)).build().into()
}

schema!(
    /// How a run ended: `lisp_runtime::Answer`.
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
            ("truncated", of(Type::Object, "what was cut, by the name of the part")),
            ("error", of(Type::Object, "reason, message, line, column, end_line, end_column, hint, details")),
            ("prints", strings("what the program printed")),
            ("memory", of(Type::Object, "the definitions after the run")),
            ("usage", of(Type::Object, "the figures of the run")),
            ("ledger", list_of(of(Type::Object, "a tool call"))),
            ("given_up", list_of(of(Type::Object, "a tool call that a worker made for nothing"))),
            ("limits", RefOr::from(figures("the limits that were in force", &LimitsRequest::all(&Limits::default())))),
            ("cost_schedule", of(Type::Integer, "the version of the schedule that the fuel was counted by")),
        ];
        let object = object.into_iter().fold(ObjectBuilder::new(), |object, (name, schema)| object.property(name, schema));
        let always = ["schema", "run_id", "verdict", "truncated", "prints", "usage"];
        always.iter().fold(object, |object, name| object.required(*name)).description(Some("How a run ended.")).build()
    }
);

schema!(
    /// What a session is begun with: `runs::sessions::Opening`.
    SessionRequest,
    {
        let map = |about: &str| of(Type::Object, about);
        closed(
            "What the turns of a session have in common.",
            [
                ("data", map("what data/name reads")),
                ("memory", map("definitions that are there before the first turn")),
                ("history", of(Type::Array, "earlier results, the oldest first")),
                ("setup", strings("programs that are evaluated before the first turn")),
                ("tools", map("tools by name")),
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
