//! `json/parse-string`, `json/parse-lines` and `json/generate-string`.

use super::{Builtin, id_of};
use crate::code::BuiltinId;
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Res, TextBuf, Value};
use crate::json::{Keys, ReadError, Reader, Style, write};
use crate::text::describe;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("json/parse-string", 1, 2, "(json/parse-string s), (json/parse-string s true)", parse_string)
        .namespace("json")
        .doc(
            "Parses JSON, with strings as keys, or keywords if the second argument is true; nil for invalid JSON.",
            &[
                ("(json/parse-string \"{\\\"a\\\": 1}\" true)", "{:a 1}"),
                ("(json/parse-string \"{\\\"a\\\": [1, 2.5, null]}\")", "{\"a\" [1 2.5 nil]}"),
                ("(json/parse-string \"not json\")", "nil"),
                ("(json/parse-string 42)", "nil"),
                ("(json/parse-string)", "!arity_error"),
            ],
        ),
    Builtin::direct("json/read-str", 1, 3, "(json/read-str s :key-fn keyword)", read_str)
        .aliases(&["json/decode"])
        .namespace("json")
        .doc(
            "Like json/parse-string, with the options of clojure.data.json.",
            &[
                ("(json/read-str \"{\\\"a\\\": 1}\" :key-fn keyword)", "{:a 1}"),
                ("(json/read-str \"[1]\")", "[1]"),
                ("(json/read-str \"[1]\" :value-fn inc)", "!type_error"),
            ],
        ),
    Builtin::direct("json/parse-lines", 1, 1, "(json/parse-lines s)", parse_lines).namespace("json").doc(
        "Returns the values of a string with one JSON value per line. Empty lines are skipped; an invalid line gives nil.",
        &[
            ("(json/parse-lines \"{\\\"a\\\":1}\\n\\n[2]\\nx\")", "[{\"a\" 1} [2] nil]"),
            ("(json/parse-lines 42)", "nil"),
            ("(json/parse-lines)", "!arity_error"),
        ],
    ),
    Builtin::direct("json/generate-string", 1, 1, "(json/generate-string v)", generate_string)
        .aliases(&["json/write-str", "json/encode"])
        .namespace("json")
        .doc(
            "Returns the value as a JSON text. Keyword keys become their names; keywords and sets as values are errors.",
            &[
                ("(json/generate-string {:a [1 nil \"x\"]})", "\"{\\\"a\\\":[1,null,\\\"x\\\"]}\""),
                ("(json/generate-string {\"a\" :b})", "!type_error"),
                ("(json/generate-string ##Inf)", "!type_error"),
            ],
        ),
];

/// Returns nil for input that is not JSON.
fn lenient<'h>(result: Result<Value<'h>, ReadError>) -> Res<Value<'h>> {
    match result {
        Ok(value) => Ok(value),
        Err(ReadError::Syntax { .. }) => Ok(Value::Nil),
        Err(ReadError::Fault(fault)) => Err(fault),
    }
}

const KEYWORD: BuiltinId = id_of("keyword");

/// Returns how keys are represented, according to the option: as keywords for `true` or the function `keyword`.
fn keys(name: &str, option: Option<Value<'_>>) -> Res<Keys> {
    match option {
        None | Some(Value::Nil | Value::Bool(false)) => Ok(Keys::Strings),
        Some(Value::Bool(true) | Value::Builtin(KEYWORD)) => Ok(Keys::Keywords),
        Some(other) => {
            Err(Error::new(Reason::TypeError, format!("{name} makes keys with keyword only, got {}", describe(other)))
                .hint("change keys afterwards, as in (update-keys (json/parse-string s) f)")
                .into())
        }
    }
}

fn parsed<'h>(h: &'h Ctx, text: Value<'h>, keys: Keys) -> Res<Value<'h>> {
    match text {
        Value::Str(s) => lenient(Reader::new(h).keys(keys).read(s.text())),
        _ => Ok(Value::Nil),
    }
}

fn parse_string<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    parsed(h, args[0], keys("json/parse-string", args.get(1).copied())?)
}

fn read_str<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "json/read-str";
    match *args {
        [text] => parsed(h, text, Keys::Strings),
        [text, Value::Keyword(_, option), function] if option.text() == "key-fn" => {
            parsed(h, text, keys(name, Some(function))?)
        }
        _ => Err(Error::new(Reason::TypeError, "json/read-str knows the option :key-fn only")
            .hint("write (json/read-str s :key-fn keyword), and change values afterwards")
            .into()),
    }
}

fn parse_lines<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Value::Str(s) = args[0] else { return Ok(Value::Nil) };
    h.charge(cost::scanned(s.text().len()) + 1)?;
    let values = h.vec_builder(16)?;
    let mut reader = Reader::new(h);
    for line in s.text().split(['\n', '\r']) {
        match line.trim().is_empty() {
            true => h.charge(1)?,
            false => values.push(h, lenient(reader.read(line))?)?,
        }
    }
    values.finish(h)
}

fn generate_string<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Result<Value<'h>, Fault> {
    let mut out = TextBuf::new(h);
    write(h, args[0], Style::Strict, &mut out)?;
    out.finish()
}
