//! Values that patterns take apart, where the loop does not do it itself.

use crate::builtins::args;
use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Res, Value};
use crate::text::describe;

/// What a vector pattern takes apart that is neither a vector nor nil: the characters of a string; with a rest also the entries of
/// a map and the members of a set.
#[cold]
pub(super) fn taken_apart<'h>(h: &'h Ctx, value: Value<'h>, rest: bool) -> Res<Value<'h>> {
    match value {
        Value::Str(_) => h.vector(args::seq(h, "a pattern", value)?),
        Value::Map(_) | Value::Set(_) if rest => h.vector(args::seq(h, "a pattern", value)?),
        other => Err(destructure("a vector, a string or nil", other)),
    }
}

/// The map of keyword arguments.
pub(super) fn keyword_args<'h>(h: &'h Ctx, rest: Value<'h>) -> Res<Value<'h>> {
    let Value::Vector(v) = rest else { return Ok(rest) };
    if v.len() % 2 != 0 {
        return Err(Error::new(
            Reason::DestructureError,
            format!("keyword arguments come in pairs, got {} values", v.len()),
        )
        .into());
    }
    h.charge(v.len() as u64)?;
    h.map(v.items().chunks_exact(2).map(|p| (p[0], p[1])))
}

/// The error for a pattern that does not fit.
#[cold]
pub(super) fn destructure(expects: &str, got: Value<'_>) -> Fault {
    Error::new(Reason::DestructureError, format!("the pattern expects {expects}, got {}", describe(got))).into()
}
