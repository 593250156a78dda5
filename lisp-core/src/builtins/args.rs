//! Arguments of built-ins: access by type, and the errors.

use super::exception_classes::of_wrong;
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Compose, Fault, Heap, Map, Res, Step, Value, Vector};
use crate::text::characters::Characters;
use crate::text::describe;

/// Returns the error for an argument of the wrong type: `take expects a number, got nil`.
#[cold]
pub(crate) fn type_error(name: &str, expects: &str, got: Value<'_>) -> Fault {
    match got {
        Value::Endless(_) => Error::endless(name).into(),
        got => wrong(name, expects, got).into(),
    }
}

#[cold]
fn wrong(name: &str, expects: &str, got: Value<'_>) -> Error {
    Error::new(Reason::TypeError, format!("{name} expects {expects}, got {}", describe(got))).class(of_wrong(got))
}

/// Like [`type_error`], with another Java class.
#[cold]
pub(crate) fn type_error_as(class: ErrorClass, name: &str, expects: &str, got: Value<'_>) -> Fault {
    match got {
        Value::Endless(_) => type_error(name, expects, got),
        got => wrong(name, expects, got).class(class).into(),
    }
}

/// Like [`type_error`], for an argument to walk: a value that cannot be walked at all has a class of its own.
#[cold]
pub(crate) fn not_walked(name: &str, expects: &str, got: Value<'_>) -> Fault {
    match got {
        Value::Nil | Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Str(_) => type_error(name, expects, got),
        Value::Endless(_) => type_error(name, expects, got),
        got => {
            let error = wrong(name, expects, got).class(ErrorClass::IllegalArgument);
            // Functions that take no collection have other words for what they expect.
            let hint = (expects == "a collection").then_some("if one value is meant, put it into a vector: [x]");
            match hint {
                Some(hint) => error.hint(hint).into(),
                None => error.into(),
            }
        }
    }
}

/// Fails if more than two values with many parts in total are combined, so that intermediate results would take much
/// memory. The call is then made again with a frame, in which these can be compacted away.
#[inline]
pub(super) fn at_once(values: usize, parts: usize) -> Res<()> {
    const FEW: usize = 64;
    if values > 2 && parts > FEW { Err(Fault::NeedsFrame) } else { Ok(()) }
}

/// Returns an error of a built-in.
#[cold]
pub(crate) fn fault(reason: Reason, message: impl Into<String>) -> Fault {
    Error::new(reason, message).into()
}

/// Returns the text of a string argument.
#[inline]
pub(crate) fn string<'h>(name: &str, v: Value<'h>) -> Res<&'h str> {
    match v {
        Value::Str(s) => Ok(s.text()),
        other => Err(type_error(name, "a string", other)),
    }
}

/// Returns an integer argument that fits 64 bits. A whole float counts as its integer.
#[inline]
pub(crate) fn int(name: &str, v: Value<'_>) -> Res<i64> {
    v.as_integer().ok_or_else(|| no_integer(name, v))
}

#[cold]
fn no_integer(name: &str, v: Value<'_>) -> Fault {
    match v {
        Value::Big(_) => type_error(name, "an integer of 64 bits", v),
        Value::Float(f) if f.is_finite() && f.fract() == 0.0 => type_error(name, "an integer of 64 bits", v),
        other => type_error(name, "an integer", other),
    }
}

/// Returns an integer argument that counts elements in memory. Integers beyond 64 bits are saturated, because no
/// collection has that many elements. A whole float counts as its integer.
pub(crate) fn amount(name: &str, v: Value<'_>) -> Res<i64> {
    match v {
        Value::Int(i) => Ok(i),
        Value::Big(b) => Ok(if b.negative { -i64::MAX } else { i64::MAX }),
        Value::Float(f) if f.is_finite() && f.fract() == 0.0 => {
            Ok(v.as_integer().unwrap_or(if f < 0.0 { -i64::MAX } else { i64::MAX }))
        }
        other => Err(type_error(name, "an integer", other)),
    }
}

/// Returns a number of elements with a fraction rounded up, as in Clojure.
pub(crate) fn rounded_up(v: Value<'_>) -> Value<'_> {
    match v {
        Value::Float(f) if f.is_finite() => Value::Float(f.ceil()),
        v => v,
    }
}

/// Returns a positive integer argument: a size or a step.
pub(crate) fn positive(name: &str, what: &str, v: Value<'_>) -> Res<usize> {
    at_least(name, what, 1, v)
}

/// Returns an integer argument of at least `least`.
pub(crate) fn at_least(name: &str, what: &str, least: usize, v: Value<'_>) -> Res<usize> {
    match amount(name, v).map(usize::try_from) {
        Ok(Ok(n)) if n >= least => Ok(n),
        Ok(_) => {
            let message = format!("{name}: the {what} must be at least {least}, got {}", describe(v));
            Err(Error::new(Reason::TypeError, message).class(ErrorClass::IllegalArgument).into())
        }
        Err(_) => Err(type_error(name, &format!("a positive integer as its {what}"), v)),
    }
}

/// Returns a vector argument.
#[inline]
pub(crate) fn vector<'h>(name: &str, v: Value<'h>) -> Res<&'h Vector<'h>> {
    match v {
        Value::Vector(v) => Ok(v),
        other => Err(type_error(name, "a vector", other)),
    }
}

/// Returns a map argument.
#[inline]
pub(crate) fn map<'h>(name: &str, v: Value<'h>) -> Res<&'h Map<'h>> {
    match v {
        Value::Map(m) => Ok(m),
        other => Err(type_error(name, "a map", other)),
    }
}

/// Returns a transducer with these parts.
pub(crate) fn transducer<'h>(h: &'h Heap, step: Step, parts: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(1)?;
    h.composed(Compose::Step(step), parts)
}

/// Returns the elements of a value that can be walked: a vector's elements, a map's entries as `[key value]` vectors
/// and a set's members in key order, a string's characters (grapheme clusters), and no elements for nil. An endless
/// sequence needs a frame.
#[inline]
pub(crate) fn seq<'h>(h: &'h Heap, name: &str, v: Value<'h>) -> Res<&'h [Value<'h>]> {
    match v {
        Value::Vector(v) => Ok(v.items()),
        Value::Nil => Ok(&[]),
        other => seq_slow(h, name, other),
    }
}

fn seq_slow<'h>(h: &'h Heap, name: &str, v: Value<'h>) -> Res<&'h [Value<'h>]> {
    match made_vector(h, name, v)? {
        Value::Vector(v) => Ok(v.items()),
        _ => Ok(&[]),
    }
}

/// Returns the elements of a value that can be walked, and is neither a vector nor nil, as a vector.
pub(crate) fn made_vector<'h>(h: &'h Heap, name: &str, v: Value<'h>) -> Res<Value<'h>> {
    let out = match v {
        Value::Map(m) => {
            h.charge(m.len() as u64)?;
            let out = h.vec_builder(m.len())?;
            m.in_order(h, |(key, value)| out.push(h, h.vector(&[key, value])?))?;
            out
        }
        Value::Set(m) => {
            h.charge(m.len() as u64)?;
            let out = h.vec_builder(m.len())?;
            m.in_order(h, |(member, _)| out.push(h, member))?;
            out
        }
        Value::Str(s) => {
            h.charge(s.text().len() as u64)?;
            let out = h.vec_builder(s.text().len().min(16))?;
            for character in Characters::new(h, s.text()) {
                h.charge(cost::CHARACTER)?;
                out.push(h, h.str_view(character?)?)?;
            }
            out
        }
        Value::Endless(_) => return Err(Fault::NeedsFrame),
        other => return Err(not_walked(name, "a collection", other)),
    };
    out.finish(h)
}

/// Returns an argument that must be a function, or look up: a keyword, a map, a set, a vector.
pub(crate) fn function<'h>(name: &str, f: Value<'h>) -> Res<Value<'h>> {
    match f {
        Value::Vector(_) => Ok(f),
        f if f.is_callable() => Ok(f),
        other => Err(not_function(name, other, "pass a function, or a keyword, map, set or vector")),
    }
}

#[cold]
pub(crate) fn not_function(name: &str, f: Value<'_>, hint: &str) -> Fault {
    wrong(name, "a function", f).hint(hint).into()
}
