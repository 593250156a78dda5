//! `read-string`: parses a text as a value in the syntax of programs.

use super::Builtin;
use super::args::string;
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Fault, Heap, Res, Value};
use crate::syntax::{self, Form, FormKind, Interrupt, Names, ReadLimits};

pub(super) const TABLE: &[Builtin] =
    &[Builtin::direct("read-string", 1, 2, "(read-string s)", read_string).aliases(&["clojure.edn/read-string"]).doc(
        "Reads the first value of a text: numbers, strings, keywords, symbols and collections of them. Lists become vectors.",
        &[
            ("(read-string \"{:a [1 2.5 \\\"x\\\"]}\")", "{:a [1 2.5 \"x\"]}"),
            ("(edn/read-string \"(+ 1 #{2})\")", "['+ 1 #{2}]"),
            ("(read-string \"1 )\")", "1"),
            ("[(read-string \" \") (edn/read-string nil)]", "[nil nil]"),
            ("(read-string \"[1\")", "!runtime_error"),
            ("(read-string 1)", "!type_error"),
        ],
    )];

/// The hint for a text beyond a limit.
const SPLIT: &str = "read it in parts, such as one for each line, or write it as JSON, which json/parse-string reads";

/// The maximum bytes of forms for one byte of text.
const FORM_BYTES: usize = 64;

fn read_string<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "read-string";
    let Some(&text) = args.last() else { return Ok(Value::Nil) };
    if text.is_nil() {
        return Ok(Value::Nil);
    }
    let text = string(name, text)?;
    h.charge(cost::EXCEPTION + text.len() as u64 * cost::VALUE_READ)?;
    h.check_available(text.len().saturating_mul(FORM_BYTES))?;
    let limits = ReadLimits::default();
    let source =
        syntax::read_first(text, &limits, &Interrupt::new(&|| h.poll_interrupt().is_err())).map_err(|error| {
            if error.reason == Reason::Timeout
                && let Err(pause) = h.poll_interrupt()
            {
                return pause;
            }
            let (why, hint) = match error.reason {
                Reason::ProgramTooLarge => {
                    (format!("it has {} bytes; the limit is {}", text.len(), limits.source_bytes), SPLIT)
                }
                Reason::SymbolLimitExceeded => {
                    (format!("it has more distinct symbols and keywords than the limit of {}", limits.names), SPLIT)
                }
                _ => (error.message, "JSON is read by (json/parse-string s), a number by (parse-number s)"),
            };
            Error::new(Reason::RuntimeError, format!("read-string cannot read the text: {why}"))
                .class(ErrorClass::Runtime)
                .hint(hint)
                .into()
        })?;
    match source.forms.first() {
        Some(form) => value(h, &source.names, form),
        None => Ok(Value::Nil),
    }
}

/// Returns the error for a form that is not data.
#[cold]
fn no_data(what: &str, hint: &str) -> Fault {
    Error::new(Reason::TypeError, format!("read-string expected data, got {what}")).hint(hint).into()
}

/// Returns the value of a form. The recursion is bounded because the reader limits the nesting of forms.
fn value<'h>(h: &'h Heap, names: &Names, form: &Form) -> Res<Value<'h>> {
    let values = |items: &[Form]| {
        h.charge(cost::placed(items.len()))?;
        items.iter().map(|item| value(h, names, item)).collect::<Res<Vec<_>>>()
    };
    Ok(match &form.kind {
        FormKind::Nil => Value::Nil,
        FormKind::Bool(b) => Value::Bool(*b),
        FormKind::Int(i) => Value::Int(*i),
        FormKind::Big(b) => h.integer(b)?,
        FormKind::Float(f) => Value::Float(*f),
        FormKind::Str(s) => h.str(s)?,
        FormKind::Keyword(name) => h.keyword(names.text(*name))?,
        FormKind::Symbol(name) => Value::Symbol(h.text(names.text(*name))?),
        // A symbol prints with its quote, so that quoted symbols read back as symbols.
        FormKind::Quote(quoted) if matches!(quoted.kind, FormKind::Symbol(_)) => value(h, names, quoted)?,
        FormKind::Quote(quoted) => h.vector(&[Value::Symbol(h.text("quote")?), value(h, names, quoted)?])?,
        FormKind::Vector(items) | FormKind::List(items) => h.vector(&values(items)?)?,
        FormKind::Map(items) => h.map(values(items)?.chunks_exact(2).map(|pair| (pair[0], pair[1])))?,
        FormKind::Set(items) => h.set(values(items)?.into_iter())?,
        FormKind::Regex(_) => {
            return Err(no_data("a regular expression", "(re-pattern s) makes a pattern of a string"));
        }
        FormKind::Var(_) => return Err(no_data("a var", "write the name alone: it is read as a symbol")),
        FormKind::ShortFn(_) => {
            return Err(no_data("a function", "write the call alone, such as (inc n): it is read as a vector"));
        }
    })
}
