//! What the steps of a walk do with an element.

use super::walk::{AT, BEFORE, CURRENT, DEEPEST, ENOUGH, ENTER, LIST, NEXT, OWN, Then, cells, number, step_of};
use crate::builtins::args::transducer;
use crate::builtins::id_of;
use crate::builtins::streams::reduced;
use crate::code::BuiltinId;
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Compose, Res, Step, Value, Work};
use crate::natives::registers::{RESULT, builder, items, vector};
use crate::text::describe;

/// Prepares the initial state of a step.
pub(super) fn prepare<'h>(h: &'h Ctx, own: &mut [Value<'h>], step: usize, of: Value<'h>) -> Res<()> {
    let Some((kind, parts)) = step_of(of) else { return Ok(()) };
    cells(own, step)[OWN] = match kind {
        Step::Take | Step::Drop => parts[0],
        Step::MapIndexed | Step::KeepIndexed | Step::TakeNth => Value::Int(0),
        Step::Distinct => Value::MapBuilder(h.map_builder(0)?),
        Step::Reductions => parts.get(1).copied().unwrap_or(Value::Unset),
        Step::Prefix => {
            open_list(own, step, parts[0]);
            Value::Unset
        }
        _ => Value::Unset,
    };
    Ok(())
}

/// Makes a step continue with the elements of a vector.
fn open_list<'h>(own: &mut [Value<'h>], step: usize, list: Value<'h>) {
    if vector(list).is_empty() {
        return;
    }
    let before = own[DEEPEST];
    let cells = cells(own, step);
    (cells[LIST], cells[AT], cells[BEFORE]) = (list, Value::Int(0), before);
    own[DEEPEST] = Value::count(step + 1);
}

/// Runs a step for the current element, or for the result of the call that it made for it.
pub(super) fn enter<'h>(h: &'h Ctx, own: &mut [Value<'h>], step: usize, of: Value<'h>, called: bool) -> Res<Then<'h>> {
    let Some((kind, parts)) = step_of(of) else { return Ok(Then::Go(ENTER + step + 1)) };
    let current = own[CURRENT];
    if !called && let Some(call) = call_of(own, step, kind, parts, current) {
        return Ok(call);
    }
    let result = own[RESULT];
    let passes = match kind {
        Step::Map | Step::MapRow => {
            own[CURRENT] = result;
            true
        }
        Step::Filter => result.truthy(),
        Step::Remove => !result.truthy(),
        Step::Keep => {
            own[CURRENT] = result;
            !result.is_nil()
        }
        Step::Mapcat | Step::Cat => {
            let list = items(h, "mapcat", if kind == Step::Cat { current } else { result })?;
            open_list(own, step, list);
            false
        }
        Step::MapIndexed | Step::KeepIndexed | Step::Take | Step::Drop | Step::TakeNth => {
            by_count(own, step, kind, parts)
        }
        Step::TakeWhile => {
            if !result.truthy() {
                enough(own, step);
            }
            result.truthy()
        }
        Step::DropWhile => {
            let done = !called || !result.truthy();
            if done {
                cells(own, step)[OWN] = Value::Bool(true);
            }
            done
        }
        Step::Distinct => is_new(h, cells(own, step)[OWN], current)?,
        Step::Dedupe => {
            let again = match cells(own, step)[OWN] {
                Value::Unset => false,
                last => h.same_key(last, current)?,
            };
            cells(own, step)[OWN] = current;
            !again
        }
        Step::Interpose => interpose(h, own, step, parts[0])?,
        Step::PartitionBy => group(h, own, step, current, result)?,
        Step::PartitionAll => piece(h, own, step, current, number(parts[0]), None)?,
        Step::Windows => piece(h, own, step, current, number(parts[0]), Some(number(parts[1])))?,
        Step::Prefix => true,
        Step::Reductions => {
            let acc = if called { reduced(result).unwrap_or(result) } else { current };
            if called && reduced(result).is_some() {
                enough(own, step);
            }
            cells(own, step)[OWN] = acc;
            own[CURRENT] = acc;
            true
        }
    };
    Ok(Then::Go(if passes { ENTER + step + 1 } else { NEXT }))
}

/// Returns whether the current element passes a step that counts elements.
fn by_count(own: &mut [Value<'_>], step: usize, kind: Step, parts: &[Value<'_>]) -> bool {
    let count = number(cells(own, step)[OWN]);
    let (next, passes) = match kind {
        Step::Take => (count.saturating_sub(1), count > 0),
        Step::Drop => (count.saturating_sub(1), count == 0),
        Step::TakeNth => ((count + 1) % number(parts[0]).max(1), count == 0),
        _ => {
            own[CURRENT] = own[RESULT];
            (count + 1, kind == Step::MapIndexed || !own[RESULT].is_nil())
        }
    };
    cells(own, step)[OWN] = Value::count(next);
    if kind == Step::Take && count <= 1 {
        enough(own, step);
    }
    passes
}

/// Returns whether the current element passes alone, as the first one does; the others are preceded by the separator.
fn interpose<'h>(h: &'h Ctx, own: &mut [Value<'h>], step: usize, separator: Value<'h>) -> Res<bool> {
    let is_first = matches!(cells(own, step)[OWN], Value::Unset);
    if is_first {
        cells(own, step)[OWN] = Value::Bool(true);
    } else {
        let pair = h.vector(&[separator, own[CURRENT]])?;
        open_list(own, step, pair);
    }
    Ok(is_first)
}

/// Returns the call that a step makes for an element, if any.
fn call_of<'h>(
    own: &mut [Value<'h>],
    step: usize,
    kind: Step,
    parts: &'h [Value<'h>],
    current: Value<'h>,
) -> Option<Then<'h>> {
    let kept = cells(own, step)[OWN];
    match kind {
        Step::MapRow => {
            let row = vector(current);
            Some(Then::CallWith(parts[0], row.get(..number(parts[1])).unwrap_or(row)))
        }
        Step::MapIndexed | Step::KeepIndexed => Some(Then::Call(parts[0], [kept, current], 2)),
        Step::DropWhile if matches!(kept, Value::Bool(_)) => None,
        Step::Reductions => match kept {
            Value::Unset => None,
            acc => Some(Then::Call(parts[0], [acc, current], 2)),
        },
        Step::Map
        | Step::Filter
        | Step::Remove
        | Step::Keep
        | Step::Mapcat
        | Step::TakeWhile
        | Step::DropWhile
        | Step::PartitionBy => Some(Then::Call(parts[0], [current, Value::Nil], 1)),
        _ => None,
    }
}

/// Notes that a step needs no more elements.
fn enough(own: &mut [Value<'_>], step: usize) {
    if number(own[ENOUGH]) <= step {
        own[ENOUGH] = Value::count(step + 1);
    }
}

/// Returns true if this element was not seen before.
fn is_new<'h>(h: &'h Ctx, seen: Value<'h>, item: Value<'h>) -> Res<bool> {
    let Value::MapBuilder(seen) = seen else { return Ok(true) };
    h.charge(cost::PLACED)?;
    let before = seen.len();
    seen.insert(h, item, Value::Nil)?;
    Ok(seen.len() > before)
}

/// Adds an element to the current group. If it belongs to another one, the group is passed on.
fn group<'h>(h: &'h Ctx, own: &mut [Value<'h>], step: usize, item: Value<'h>, key: Value<'h>) -> Res<bool> {
    let cells = cells(own, step);
    let group = builder(cells[OWN]);
    if let Some(group) = group
        && h.equal(cells[LIST], key)?
    {
        group.push(h, item)?;
        return Ok(false);
    }
    h.charge(cost::PLACED)?;
    let next = h.vec_builder(4)?;
    next.push(h, item)?;
    let done = match group {
        Some(group) => group.finish(h)?,
        None => Value::Unset,
    };
    (cells[OWN], cells[LIST]) = (Value::VecBuilder(next), key);
    if let Value::Unset = done {
        return Ok(false);
    }
    own[CURRENT] = done;
    Ok(true)
}

/// Adds an element to the current piece, which is passed on when it is full. The next piece starts `every` elements
/// after it, or directly after it.
fn piece<'h>(
    h: &'h Ctx,
    own: &mut [Value<'h>],
    step: usize,
    item: Value<'h>,
    size: usize,
    every: Option<usize>,
) -> Res<bool> {
    let cells = cells(own, step);
    // Between two pieces.
    let skip = number(cells[LIST]);
    if skip > 0 {
        cells[LIST] = Value::count(skip - 1);
        return Ok(false);
    }
    let piece = match builder(cells[OWN]) {
        Some(piece) => piece,
        None => h.vec_builder(size.min(8))?,
    };
    if piece.len() + 1 < size {
        piece.push(h, item)?;
        cells[OWN] = Value::VecBuilder(piece);
        return Ok(false);
    }
    h.charge(cost::moved(size) + cost::PLACED)?;
    let done = h.vector_from(size, piece.items().iter().copied().chain([item]))?;
    let every = every.unwrap_or(size);
    let kept = match vector(done).get(every..) {
        Some(kept) if !kept.is_empty() => {
            let next = h.vec_builder(size)?;
            next.extend(h, kept)?;
            Value::VecBuilder(next)
        }
        _ => Value::Unset,
    };
    (cells[OWN], cells[LIST]) = (kept, Value::count(every.saturating_sub(size)));
    own[CURRENT] = done;
    Ok(true)
}

const CAT: BuiltinId = id_of("cat");
const IDENTITY: BuiltinId = id_of("identity");

/// Returns the steps of a transducer.
pub(super) fn steps_of<'h>(h: &'h Ctx, name: &str, xf: Value<'h>) -> Res<&'h [Value<'h>]> {
    let out = h.vec_builder(0)?;
    let mut work = Work::new(h);
    work.push(xf)?;
    while let Some(f) = work.pop() {
        h.charge(1)?;
        match f {
            Value::Composed(c) if c.kind == Compose::Comp => {
                h.charge(c.parts().len() as u64)?;
                for &part in c.parts().iter().rev() {
                    work.push(part)?;
                }
            }
            Value::Composed(c) if matches!(c.kind, Compose::Step(_)) => out.push(h, f)?,
            Value::Builtin(CAT) => out.push(h, transducer(h, Step::Cat, &[])?)?,
            Value::Builtin(IDENTITY) => {}
            other => {
                return Err(Error::new(
                    Reason::TypeError,
                    format!("{name} expects a transducer, got {}", describe(other)),
                )
                .hint("write (map f), (filter pred), (take n) ..., or several as (comp (filter odd?) (map inc))")
                .into());
            }
        }
    }
    Ok(out.items())
}
