//! `json/parse-string`, `json/parse-lines` and `json/generate-string`.

use super::Builtin;
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Fault, Res, TextBuf, Value};
use crate::json::{ReadError, Reader, Style, read, write};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("json/parse-string", 1, 1, "(json/parse-string s)", parse_string).namespace("json").doc(
        "The value that a JSON text says, with strings as keys; nil for anything that is not JSON.",
        &[
            ("(json/parse-string \"{\\\"a\\\": [1, 2.5, null]}\")", "{\"a\" [1 2.5 nil]}"),
            ("(json/parse-string \"not json\")", "nil"),
            ("(json/parse-string 42)", "nil"),
            ("(json/parse-string)", "!arity_error"),
        ],
    ),
    Builtin::direct("json/parse-lines", 1, 1, "(json/parse-lines s)", parse_lines).namespace("json").doc(
        "The values of a text with one JSON value in each line; empty lines are skipped, nil stands for bad ones.",
        &[
            ("(json/parse-lines \"{\\\"a\\\":1}\\n\\n[2]\\nx\")", "[{\"a\" 1} [2] nil]"),
            ("(json/parse-lines 42)", "nil"),
            ("(json/parse-lines)", "!arity_error"),
        ],
    ),
    Builtin::direct("json/generate-string", 1, 1, "(json/generate-string v)", generate_string).namespace("json").doc(
        "The value as a JSON text. Keyword keys become their names; keywords and sets as values are errors.",
        &[
            ("(json/generate-string {:a [1 nil \"x\"]})", "\"{\\\"a\\\":[1,null,\\\"x\\\"]}\""),
            ("(json/generate-string {\"a\" :b})", "!type_error"),
            ("(json/generate-string ##Inf)", "!type_error"),
        ],
    ),
];

/// nil for what is not JSON.
fn lenient<'h>(result: Result<Value<'h>, ReadError>) -> Res<Value<'h>> {
    match result {
        Ok(value) => Ok(value),
        Err(ReadError::Syntax { .. }) => Ok(Value::Nil),
        Err(ReadError::Fault(fault)) => Err(fault),
    }
}

fn parse_string<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Str(s) => lenient(read(h, s.text())),
        _ => Ok(Value::Nil),
    }
}

fn parse_lines<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Value::Str(s) = args[0] else { return Ok(Value::Nil) };
    h.charge(cost::scanned(s.text().len()) + 1)?;
    let values = h.vec_builder(16)?;
    let mut reader = Reader::new(h);
    for line in s.text().split(['\n', '\r']) {
        if !line.trim().is_empty() {
            values.push(h, lenient(reader.read(line))?)?;
        }
    }
    values.finish(h)
}

fn generate_string<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Result<Value<'h>, Fault> {
    let mut out = TextBuf::new(h);
    write(h, args[0], Style::Strict, &mut out)?;
    out.finish()
}
