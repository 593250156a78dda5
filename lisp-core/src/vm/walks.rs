//! The walks of loops in the code: over the elements of a vector, or the integers up to a number.

use crate::builtins::{args, numbers};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{FrameRegs, MAX_LEN, Res, Value, VecBuilder};

/// Returns the name of the form that walks a collection.
pub(super) fn walk_name(collects: bool) -> &'static str {
    if collects { "for" } else { "doseq" }
}

/// Returns what a form walks, as a vector; an error has the name of the form.
pub(super) fn walk<'h>(h: &'h Ctx, name: &str, coll: Value<'h>) -> Res<Value<'h>> {
    match coll {
        Value::Vector(_) => Ok(coll),
        other => h.vector(args::seq(h, name, other)?),
    }
}

/// Returns whether `dotimes` goes on with this index.
pub(super) fn is_before_end<'h>(h: &'h Ctx, index: Value<'h>, end: Value<'h>) -> Res<bool> {
    if end.is_number() { numbers::less(h, index, end) } else { Err(numbers::not_a_number("dotimes", end)) }
}

/// R[row + 2] = the next element of the walk whose elements are in R[row] and whose next index is in R[row + 1].
/// Returns false at its end.
#[inline(always)]
pub(super) fn next_element(w: &mut FrameRegs<'_, '_>, row: u16) -> bool {
    let (item, next) = match (w.get(row), w.get(row + 1)) {
        (Value::Vector(items), &Value::Int(i)) => match usize::try_from(i).ok().and_then(|i| items.get(i)) {
            Some(item) => (item, i + 1),
            None => return end_walk(w, row),
        },
        (&Value::Int(end), &Value::Int(i)) if i < end => (Value::Int(i), i + 1),
        _ => return end_walk(w, row),
    };
    w.set(row + 1, Value::Int(next));
    w.set(row + 2, item);
    true
}

/// Releases the elements: the frame may continue for long.
#[cold]
fn end_walk(w: &mut FrameRegs<'_, '_>, row: u16) -> bool {
    w.set(row, Value::Nil);
    false
}

/// Returns true if these are the bounds of a range that is not longer than a vector can be.
pub(super) fn is_range(start: &Value<'_>, end: &Value<'_>) -> bool {
    match (start, end) {
        (Value::Int(start), Value::Int(end)) => {
            end.checked_sub(*start).is_some_and(|len| usize::try_from(len.max(0)).is_ok_and(|len| len <= MAX_LEN))
        }
        _ => false,
    }
}

/// Returns a vector under construction with room for all its elements.
pub(super) fn builder_of<'h>(h: &'h Ctx, room: usize) -> Res<&'h VecBuilder<'h>> {
    h.charge(cost::moved(room))?;
    h.vec_builder(room)
}

/// Returns the number of elements of a range up to `end`.
pub(super) fn elements_left(next: &Value<'_>, end: i64) -> usize {
    match *next {
        Value::Int(next) => usize::try_from(end.saturating_sub(next)).unwrap_or(0),
        _ => 0,
    }
}
