//! `sort` and `sort-by`. Keys are computed first, one call each. With a comparator the indexes are merged bottom-up,
//! one call a comparison; without one they are sorted by the natural order at once.
//!
//! Registers: the result, the key function, the elements, the keys, the comparator, two rows of indexes to merge from
//! and to, how long the runs are, and of the two under way where each begins to be unmerged and where it ends.

use super::{FUNCTION, Flow, FrameOp, ITEMS, Leaf, RESULT, accessed, called, current, function, items, push, vector};
use crate::builtins::{args, comparison};
use crate::error::{Error, Reason};
use crate::heap::{Closure, Heap, Res, Value, VecBuilder};
use crate::vm::{Called, State};

const KEYS: usize = 3;
const COMPARATOR: usize = 4;
const FROM: usize = 5;
const TO: usize = 6;
const WIDTH: usize = 7;
const A: usize = 8;
const A_END: usize = 9;
const B: usize = 10;
const B_END: usize = 11;

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
    push(op, h, s, at, &[nil, f, list, keys, comparator, nil, nil, Value::Int(0), nil, nil, nil, nil], dst)
}

pub(super) fn step<'h>(op: FrameOp, h: &'h Heap, s: &mut State<'h>) -> Res<Flow> {
    let (base, ..) = current(s);
    if let Value::VecBuilder(keys) = s.stack[base + KEYS]
        && let Some(flow) = compute_keys(op, h, s, base, keys)?
    {
        return Ok(flow);
    }
    h.set_mark();
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
        h.set_mark();
        if waiting {
            let key = s.stack[base + RESULT];
            keys.push(h, key)?;
            i += 1;
            s.set_native(false, i);
            h.set_mark();
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
    // A vector has no more elements than this counts.
    let mut order: Vec<u32> = (0..u32::try_from(n).unwrap_or(u32::MAX)).collect();
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

/// The state of a merge: runs of `width` indexes from `from` become runs of twice that in `to`, until one run is left.
/// Of the two runs under way, those from `a` up to `a_end` and from `b` up to `b_end` are not in `to` yet.
struct Runs<'h> {
    from: &'h VecBuilder<'h>,
    to: &'h VecBuilder<'h>,
    width: usize,
    a: usize,
    a_end: usize,
    b: usize,
    b_end: usize,
}

impl<'h> Runs<'h> {
    fn load(own: &[Value<'h>]) -> Option<Self> {
        let (Value::VecBuilder(from), Value::VecBuilder(to)) = (own[FROM], own[TO]) else { return None };
        let [width, a, a_end, b, b_end] = [WIDTH, A, A_END, B, B_END].map(|register| number(own[register]));
        Some(Runs { from, to, width, a, a_end, b, b_end })
    }

    fn store(&self, own: &mut [Value<'h>]) {
        own[FROM] = Value::VecBuilder(self.from);
        own[TO] = Value::VecBuilder(self.to);
        let numbers = [(WIDTH, self.width), (A, self.a), (A_END, self.a_end), (B, self.b), (B_END, self.b_end)];
        for (register, number) in numbers {
            own[register] = Value::count(number);
        }
    }

    /// Goes on with the two runs that begin at `start`, of `n` indexes in all.
    fn begin(&mut self, start: usize, n: usize) {
        (self.a, self.a_end) = (start, (start + self.width).min(n));
        (self.b, self.b_end) = (self.a_end, (start + 2 * self.width).min(n));
    }
}

fn merge<'h>(h: &'h Heap, s: &mut State<'h>, base: usize) -> Res<Flow> {
    let n = vector(s.stack[base + ITEMS]).len();
    if number(s.stack[base + WIDTH]) == 0 {
        h.charge(n as u64)?;
        let (from, to) = (h.vec_builder(n)?, h.vec_builder(n)?);
        for i in 0..n {
            from.push(h, Value::count(i))?;
        }
        let mut runs = Runs { from, to, width: 1, a: 0, a_end: 0, b: 0, b_end: 0 };
        runs.begin(0, n);
        runs.store(&mut s.stack[base..]);
    }
    let Some(mut runs) = Runs::load(&s.stack[base..]) else { return Ok(Flow::Switch) };
    let flow = merge_runs(h, s, base, &mut runs);
    // A sort that is over has left its registers to its caller.
    if !matches!(flow, Ok(None)) {
        runs.store(&mut s.stack[base..]);
    }
    Ok(flow?.unwrap_or(Flow::Switch))
}

/// Merges until a comparison takes a frame. Answers `None` when the sort is done.
fn merge_runs<'h>(h: &'h Heap, s: &mut State<'h>, base: usize, runs: &mut Runs<'h>) -> Res<Option<Flow>> {
    let depth = s.frames.len() - 1;
    let (list, keys) = (vector(s.stack[base + ITEMS]), vector(s.stack[base + KEYS]));
    let n = list.len();
    let comparator = s.stack[base + COMPARATOR];
    let leaf = Leaf::of(comparator, 2);
    let (_, mut waiting, _) = current(s);
    loop {
        h.set_mark();
        if runs.width >= n {
            h.charge(n as u64)?;
            let value = h.vector_from(n, (0..n).map(|i| list[number(runs.from.get(i))]))?;
            s.finish_frame(value);
            return Ok(None);
        }
        if runs.to.len() == n {
            runs.from.clear();
            (runs.from, runs.to, runs.width) = (runs.to, runs.from, runs.width * 2);
            runs.begin(0, n);
            continue;
        }
        let take_right = if runs.a >= runs.a_end {
            Some(true)
        } else if runs.b >= runs.b_end {
            Some(false)
        } else if waiting {
            Some(comes_first(s.stack[base + RESULT])?)
        } else {
            None
        };
        if let Some(take_right) = take_right {
            h.charge(1)?;
            let taken = if take_right { &mut runs.b } else { &mut runs.a };
            runs.to.push(h, runs.from.get(*taken))?;
            *taken += 1;
            // The comparator's answer has been used, if there was one; before this point it may be asked for again.
            if waiting {
                waiting = false;
                s.set_native(false, 0);
            }
            if runs.a >= runs.a_end && runs.b >= runs.b_end {
                runs.begin(runs.b_end, n);
            }
            continue;
        }
        // The first of the right run with the first of the left.
        let pair = [keys[number(runs.from.get(runs.b))], keys[number(runs.from.get(runs.a))]];
        let out = match leaf {
            Some(leaf) => Called::Value(leaf.call(h, &pair)?),
            None if s.enter_from_native(h, comparator, pair, 0)? => return Ok(Some(Flow::Switch)),
            None => s.call_from_native(h, comparator, &pair)?,
        };
        if let Some(flow) = called(s, depth, 0, out) {
            return Ok(Some(flow));
        }
        waiting = true;
    }
}

/// The usual step of a merge: the comparator `running` has answered `result` for the pair under way, and neither run
/// ends with it. Lays out the next pair; answers false, with nothing changed, when there is anything else to do.
#[inline]
pub(super) fn next_pair<'h>(
    own: &mut [Value<'h>],
    running: &'h Closure<'h>,
    result: &Value<'h>,
    args: &mut [Value<'h>],
) -> bool {
    let [
        _,
        _,
        _,
        Value::Vector(keys),
        Value::Closure(f),
        Value::VecBuilder(from),
        Value::VecBuilder(to),
        _,
        fronts @ ..,
    ] = own
    else {
        return false;
    };
    let [Value::Int(a), Value::Int(a_end), Value::Int(b), Value::Int(b_end), ..] = fronts else { return false };
    let take_right = match *result {
        Value::Bool(first) => first,
        Value::Int(order) => order < 0,
        _ => return false,
    };
    let (taken, other, end) = if take_right { (b, a, *b_end) } else { (a, b, *a_end) };
    let (from, keys) = (from.items(), keys.items());
    let (Ok(first), Ok(second)) = (usize::try_from(*taken), usize::try_from(*other)) else { return false };
    let (Some([index, next, ..]), Some(stays)) = (from.get(first..), from.get(second)) else {
        return false;
    };
    let (Some(next), Some(stays)) = (keys.get(number(*next)), keys.get(number(*stays))) else { return false };
    let [first, second, ..] = args else { return false };
    if *taken + 1 >= end || !std::ptr::eq(*f, running) || !to.push_in_place(index) {
        return false;
    }
    *taken += 1;
    (*first, *second) = if take_right { (*next, *stays) } else { (*stays, *next) };
    true
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
