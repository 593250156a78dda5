//! The registers that most native functions share, and access to their values.

use crate::builtins::args;
use crate::context::Ctx;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Fault, Res, Value, VecBuilder, Vector};

pub(super) use crate::stack::RESULT;
use crate::text::describe;

/// The register for the function.
pub(super) const FUNCTION: usize = 1;
/// The register for the elements.
pub(super) const ITEMS: usize = 2;
/// The register for the value under construction.
pub(super) const ACC: usize = 3;

/// Returns the elements of a collection, as a vector that can be kept in a register.
pub(super) fn items<'h>(h: &'h Ctx, name: &str, v: Value<'h>) -> Res<Value<'h>> {
    match v {
        Value::Vector(_) => Ok(v),
        // Maps, sets and vectors are walked; a function or a keyword here means swapped arguments.
        Value::Keyword(..) | Value::Closure(_) | Value::Builtin(_) => Err(function_last(name, v)),
        Value::Nil => h.vector(&[]),
        other => args::made_vector(h, name, other),
    }
}

#[cold]
fn function_last(name: &str, f: Value<'_>) -> Fault {
    Error::new(Reason::TypeError, format!("{name} expects a collection, got {}", describe(f)))
        .class(ErrorClass::IllegalArgument)
        .hint(format!("the collection comes last: write ({name} f coll)"))
        .into()
}

/// Returns the elements of the vector in a register.
pub(super) fn vector<'h>(v: Value<'h>) -> &'h [Value<'h>] {
    match v {
        Value::Vector(v) => Vector::items(v),
        _ => &[],
    }
}

/// Returns the vector under construction in a register.
#[inline]
pub(super) fn builder<'h>(v: Value<'h>) -> Option<&'h VecBuilder<'h>> {
    match v {
        Value::VecBuilder(b) => Some(b),
        _ => None,
    }
}

/// Returns the collections of a call as vectors to walk side by side, and the length of the shortest.
pub(super) fn collections<'h>(h: &'h Ctx, name: &str, colls: &[Value<'h>]) -> Res<([Value<'h>; 3], usize)> {
    let mut lists = [Value::Unset; 3];
    let mut count = usize::MAX;
    for (list, &coll) in lists.iter_mut().zip(colls) {
        *list = items(h, name, coll)?;
        count = count.min(vector(*list).len());
    }
    Ok((lists, count))
}
