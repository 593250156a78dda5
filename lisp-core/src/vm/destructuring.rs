//! Destructuring of values that the dispatch loop does not handle itself.

use crate::builtins::args;
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Fault, Gathered, Res, Value, Written};
use crate::text::describe;

/// Returns the elements for a vector pattern of a value that is neither a vector nor nil: the characters of a string;
/// with a rest pattern also the entries of a map and the members of a set.
#[cold]
pub(super) fn taken_apart<'h>(h: &'h Ctx, value: Value<'h>, rest: bool) -> Res<Value<'h>> {
    match value {
        Value::Str(_) => h.vector(args::seq(h, "a pattern", value)?),
        Value::Map(_) | Value::Set(_) if rest => h.vector(args::seq(h, "a pattern", value)?),
        other => Err(not_taken_apart(other, rest)),
    }
}

/// Returns the error of a value that a vector pattern cannot destructure.
fn not_taken_apart(got: Value<'_>, rest: bool) -> Fault {
    let error = destructured("a vector, a string or nil", got);
    match got {
        Value::Endless(_) => error.hint("take some of it, as in (let [[a b] (take 2 s)] ...)"),
        Value::Map(_) => error.hint("destructure a map by its keys: {:keys [a b]}"),
        Value::Set(_) => error.hint("the members in order are (vec s)"),
        _ if rest => error.class(ErrorClass::IllegalArgument).hint(NOT_A_VECTOR),
        _ => error.hint(NOT_A_VECTOR),
    }
    .into()
}

const NOT_A_VECTOR: &str = "make a vector of it, as in [x], or test it with vector? first";

/// Returns the map of keyword arguments: alternating names and values, optionally followed by a map with more of them.
pub(super) fn keyword_args<'h>(h: &'h Ctx, rest: Value<'h>) -> Res<Value<'h>> {
    let Value::Vector(v) = rest else { return Ok(rest) };
    let pairs = v.items().chunks_exact(2);
    let named = match pairs.remainder() {
        [] => None,
        [Value::Map(named)] => Some(named),
        _ => {
            let message = format!("keyword arguments come in pairs, got {} values", v.len());
            return Err(Error::new(Reason::DestructureError, message)
                .hint("write a value after each name, or one map of them: (f {:a 1})")
                .into());
        }
    };
    h.charge(v.len() as u64)?;
    let mut pairs = pairs.map(|pair| (pair[0], pair[1]));
    match named {
        Some(named) if v.len() == 1 => Ok(Value::Map(named)),
        Some(named) => {
            h.charge(cost::placed(named.len()))?;
            let mut all = Gathered::new(h);
            pairs.try_for_each(|(name, value)| all.insert(name, value))?;
            named.each(h, |(name, value)| all.insert(name, value))?;
            all.map(Written::OneByOne).map(Value::Map)
        }
        None => h.map(pairs),
    }
}

/// Returns the error of a pattern that does not match.
#[cold]
pub(super) fn destructure(expects: &str, got: Value<'_>) -> Fault {
    let error = destructured(expects, got);
    match got {
        Value::Vector(_) => error.hint("destructure a vector by position: [a b & more]"),
        _ => error.hint("make a map of it, or test it with map? first"),
    }
    .into()
}

fn destructured(expects: &str, got: Value<'_>) -> Error {
    Error::new(Reason::DestructureError, format!("the pattern expects {expects}, got {}", describe(got)))
}
