//! `sort` and `sort-by`. Keys are computed first, one call each. With a comparator the indexes are merged bottom-up,
//! one call a comparison; without one they are sorted by the natural order at once.
//!
//! Registers: the result, the key function, the elements, the keys, the comparator, two rows of indexes to merge from
//! and to, and how far the merge is.

use super::{FUNCTION, Flow, FrameOp, ITEMS, RESULT, accessed, called, current, function, items, push, vector};
use crate::builtins::{args, comparison};
use crate::error::{Error, Reason};
use crate::heap::{Heap, Res, Value, VecBuilder};
use crate::machine::{Called, State};

const KEYS: usize = 3;
const COMPARATOR: usize = 4;
const FROM: usize = 5;
const TO: usize = 6;
const WIDTH: usize = 7;
const LEFT: usize = 8;
const RIGHT: usize = 9;

pub(super) fn start<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    at: usize,
    argc: usize,
    dst: u32,
) -> Res<Called<'h>> {
    let name = op.name();
    let arg = |i: usize| s.stack[at + 1 + i];
    let (f, comparator, coll) = match (op, argc) {
        (FrameOp::Sort, 1) => (Value::Unset, Value::Unset, arg(0)),
        (FrameOp::Sort, _) => (Value::Unset, arg(0), arg(1)),
        (_, 2) => (arg(0), Value::Unset, arg(1)),
        _ => (arg(0), arg(1), arg(2)),
    };
    if op == FrameOp::Sort && matches!(coll, Value::Set(_)) {
        return Err(Error::new(Reason::TypeError, "sort expects an ordered collection, got a set")
            .hint("write (sort (vec s))")
            .into());
    }
    if op == FrameOp::SortBy && !matches!(f, Value::Vector(_)) {
        function(name, f)?;
    }
    if !matches!(comparator, Value::Unset) {
        function(name, comparator)?;
        if let Value::Keyword(..) = comparator {
            let hint = "write (sort > coll) for the largest first, (sort coll) for the smallest";
            return Err(super::not_function(name, comparator, hint));
        }
    }
    let list = items(h, name, coll)?;
    let keys = match op {
        FrameOp::Sort => list,
        _ => Value::VecBuilder(h.vec_builder(vector(list).len())?),
    };
    let comparator = match comparator {
        Value::Builtin(id) if id.row().name == "compare" => Value::Unset,
        other => other,
    };
    let nil = Value::Nil;
    push(op, h, s, at, &[nil, f, list, keys, comparator, nil, nil, Value::Int(0), nil, nil], dst)
}

pub(super) fn step<'h>(op: FrameOp, h: &'h Heap, s: &mut State<'h>) -> Res<Flow> {
    let (base, ..) = current(s);
    if let Value::VecBuilder(keys) = s.stack[base + KEYS]
        && let Some(flow) = compute_keys(op, h, s, base, keys)?
    {
        return Ok(flow);
    }
    s.mark = h.spent();
    if let Value::Unset = s.stack[base + COMPARATOR] {
        let value = natural(h, s.stack[base + ITEMS], s.stack[base + KEYS])?;
        s.finish_frame(value);
        return Ok(Flow::Switch);
    }
    merge(h, s, base)
}

/// Calls the key function for each element; afterwards the keys are a vector.
fn compute_keys<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    base: usize,
    keys: &'h VecBuilder<'h>,
) -> Res<Option<Flow>> {
    let depth = s.frames.len() - 1;
    let (_, mut waiting, mut i) = current(s);
    let list = vector(s.stack[base + ITEMS]);
    let f = s.stack[base + FUNCTION];
    loop {
        s.mark = h.spent();
        if waiting {
            let key = s.stack[base + RESULT];
            keys.push(h, key)?;
            i += 1;
            s.set_native(false, i as u32);
            s.mark = h.spent();
        }
        let Some(&item) = list.get(i) else {
            let keys = keys.finish(h)?;
            s.stack[base + KEYS] = keys;
            s.set_native(false, 0);
            return Ok(None);
        };
        h.charge(1)?;
        let out = match accessed(h, op, f, item)? {
            Some(key) => Called::Value(key),
            None => s.call_from_native(h, f, &[item])?,
        };
        if let Some(flow) = called(s, depth, i, out) {
            return Ok(Some(flow));
        }
        waiting = true;
    }
}

/// Sorts by the natural order of the keys.
fn natural<'h>(h: &'h Heap, list: Value<'h>, keys: Value<'h>) -> Res<Value<'h>> {
    let (list, keys) = (vector(list), vector(keys));
    let n = list.len();
    h.charge(comparison::sort_cost(n))?;
    h.room(n * 8)?;
    let mut order: Vec<u32> = (0..n as u32).collect();
    if let [only] = keys {
        comparison::compare_values(h, *only, *only)?;
    }
    comparison::merge_sort(h, &mut order, |a, b| comparison::compare_values(h, keys[a as usize], keys[b as usize]))?;
    h.vector_from(n, order.into_iter().map(|i| list[i as usize]))
}

fn number(v: Value<'_>) -> usize {
    match v {
        Value::Int(i) => usize::try_from(i).unwrap_or(0),
        _ => 0,
    }
}

/// Merges runs of `WIDTH` indexes from `FROM` into runs of twice that in `TO`, until one run is left. `LEFT` and
/// `RIGHT` count what has been taken from the two runs under way; how much stands in `TO` says which runs those are.
fn merge<'h>(h: &'h Heap, s: &mut State<'h>, base: usize) -> Res<Flow> {
    let depth = s.frames.len() - 1;
    let (list, keys) = (vector(s.stack[base + ITEMS]), vector(s.stack[base + KEYS]));
    let n = list.len();
    if number(s.stack[base + WIDTH]) == 0 {
        let (from, to) = (h.vec_builder(n)?, h.vec_builder(n)?);
        h.charge(n as u64)?;
        for i in 0..n {
            from.push(h, Value::Int(i as i64))?;
        }
        s.stack[base + FROM] = Value::VecBuilder(from);
        s.stack[base + TO] = Value::VecBuilder(to);
        s.stack[base + WIDTH] = Value::Int(1);
        s.stack[base + LEFT] = Value::Int(0);
        s.stack[base + RIGHT] = Value::Int(0);
    }
    let comparator = s.stack[base + COMPARATOR];
    let (_, mut waiting, _) = current(s);
    loop {
        s.mark = h.spent();
        let (Value::VecBuilder(from), Value::VecBuilder(to)) = (s.stack[base + FROM], s.stack[base + TO]) else {
            return Ok(Flow::Switch);
        };
        let width = number(s.stack[base + WIDTH]);
        if width >= n {
            h.charge(n as u64)?;
            let value = h.vector_from(n, (0..n).map(|i| list[number(from.get(i))]))?;
            s.finish_frame(value);
            return Ok(Flow::Switch);
        }
        if to.len() == n {
            from.clear();
            s.stack[base + FROM] = Value::VecBuilder(to);
            s.stack[base + TO] = Value::VecBuilder(from);
            s.stack[base + WIDTH] = Value::Int(width as i64 * 2);
            s.stack[base + LEFT] = Value::Int(0);
            s.stack[base + RIGHT] = Value::Int(0);
            continue;
        }
        let (left, right) = (number(s.stack[base + LEFT]), number(s.stack[base + RIGHT]));
        let start = to.len() - left - right;
        let (middle, end) = ((start + width).min(n), (start + 2 * width).min(n));
        let (a, b) = (start + left, middle + right);
        let take_right = if a >= middle {
            Some(true)
        } else if b >= end {
            Some(false)
        } else if waiting {
            Some(comes_first(s.stack[base + RESULT])?)
        } else {
            None
        };
        if let Some(take_right) = take_right {
            h.charge(1)?;
            to.push(h, from.get(if take_right { b } else { a }))?;
            // The comparator's answer has been used, if there was one; before this point it may be asked for again.
            if waiting {
                waiting = false;
                s.set_native(false, 0);
            }
            let (left, right) = if take_right { (left, right + 1) } else { (left + 1, right) };
            let done = start + left + right == end;
            s.stack[base + LEFT] = Value::Int(if done { 0 } else { left as i64 });
            s.stack[base + RIGHT] = Value::Int(if done { 0 } else { right as i64 });
            continue;
        }
        let (x, y) = (keys[number(from.get(b))], keys[number(from.get(a))]);
        let out = s.call_from_native(h, comparator, &[x, y])?;
        if let Some(flow) = called(s, depth, 0, out) {
            return Ok(flow);
        }
        waiting = true;
    }
}

/// Does a comparator's answer say that its first argument comes first?
fn comes_first(answer: Value<'_>) -> Res<bool> {
    match answer {
        Value::Bool(b) => Ok(b),
        Value::Int(i) => Ok(i < 0),
        Value::Float(f) => Ok(f < 0.0),
        Value::Big(b) => Ok(b.negative),
        Value::Nil => Ok(false),
        other => Err(args::type_error("sort", "a comparator that answers a boolean or a number", other)),
    }
}
