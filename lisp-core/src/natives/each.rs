//! Functions that call one function for each element.

use super::{
    ACC, EXTRA, EXTRA2, FUNCTION, Flow, FrameOp, ITEMS, Leaf, RESULT, accessed, builder, called, current, function,
    items, push, vector,
};
use crate::builtins::{args, comparison, numbers};
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Heap, Res, Value, VecBuilder};
use crate::vm::{Called, State};
use std::cmp::Ordering;

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
    let (f, coll) = match op {
        FrameOp::UpdateVals | FrameOp::UpdateKeys => (arg(1), arg(0)),
        FrameOp::MinBy | FrameOp::MaxBy
            if argc == 2 && !matches!(arg(1), Value::Nil | Value::Vector(_) | Value::Map(_) | Value::Set(_)) =>
        {
            return Ok(Called::Value(arg(1)));
        }
        FrameOp::MinBy | FrameOp::MaxBy if argc > 2 => {
            h.charge(argc as u64)?;
            (arg(0), h.vector(&s.stack[at + 2..at + 1 + argc])?)
        }
        _ => (arg(0), arg(1)),
    };
    if matches!((op, coll), (FrameOp::UpdateVals | FrameOp::UpdateKeys, Value::Nil)) {
        check(op, f)?;
        return Ok(Called::Value(Value::Nil));
    }
    let ([first, mut second, third], count) = match op {
        FrameOp::Map | FrameOp::Mapcat => collections(op, h, &s.stack[at + 2..at + 1 + argc])?,
        FrameOp::UpdateVals | FrameOp::UpdateKeys => collection(pairs_of(h, name, coll)?),
        _ => collection(items(h, name, coll)?),
    };
    if count > 0 || strict(op) {
        check(op, f)?;
    }
    let acc = match op {
        FrameOp::Map | FrameOp::MapIndexed => Value::VecBuilder(h.vec_builder(count)?),
        FrameOp::Mapcat
        | FrameOp::Filter
        | FrameOp::Remove
        | FrameOp::Keep
        | FrameOp::KeepIndexed
        | FrameOp::PartitionBy => Value::VecBuilder(h.vec_builder(0)?),
        FrameOp::GroupBy | FrameOp::DistinctBy | FrameOp::UpdateVals | FrameOp::UpdateKeys => {
            Value::MapBuilder(h.map_builder(0)?)
        }
        FrameOp::SumBy | FrameOp::AvgBy => Value::Int(0),
        _ => Value::Nil,
    };
    if op == FrameOp::PartitionBy {
        second = Value::VecBuilder(h.vec_builder(0)?);
    }
    push(op, h, s, at, &[Value::Nil, f, first, acc, second, third], dst)
}

/// One collection to walk.
fn collection(items: Value<'_>) -> ([Value<'_>; 3], usize) {
    ([items, Value::Unset, Value::Unset], vector(items).len())
}

/// The collections of a call as vectors to walk side by side, and how far the shortest goes.
pub(super) fn collections<'h>(op: FrameOp, h: &'h Heap, colls: &[Value<'h>]) -> Res<([Value<'h>; 3], usize)> {
    let mut lists = [Value::Unset; 3];
    let mut count = usize::MAX;
    for (list, &coll) in lists.iter_mut().zip(colls) {
        *list = items(h, op.name(), coll)?;
        count = count.min(vector(*list).len());
    }
    Ok((lists, count))
}

/// Is the function looked at even when there is nothing to call it for?
fn strict(op: FrameOp) -> bool {
    use FrameOp::{Filter, Keep, Map, Mapcat, Pmap, Remove, Some, UpdateKeys, UpdateVals};
    matches!(op, Map | Pmap | Mapcat | Filter | Remove | Keep | Some | UpdateVals | UpdateKeys)
}

/// Refuses what is no function; functions that read something of their elements also take paths and nothing.
pub(super) fn check(op: FrameOp, f: Value<'_>) -> Res<()> {
    use FrameOp::{AvgBy, DistinctBy, GroupBy, MaxBy, MinBy, NotAny, NotEvery, SplitWith, SumBy};
    let reads = matches!(op, GroupBy | DistinctBy | SumBy | AvgBy | MinBy | MaxBy);
    let asks = matches!(op, NotAny | NotEvery | SplitWith);
    match f {
        Value::Vector(_) | Value::Str(_) if reads => Ok(()),
        Value::Nil | Value::Bool(_) if reads || asks => Ok(()),
        Value::Map(_) if !strict(op) || op == FrameOp::Some => Ok(()),
        Value::Set(_) if matches!(op, FrameOp::UpdateVals | FrameOp::UpdateKeys) => {
            Err(super::not_function(op.name(), f, "wrap the look-up: #(contains? s %)"))
        }
        f => function(op.name(), f).map(|_| ()),
    }
}

/// The entries of a map as one vector of keys and values in turn, or a vector's indexes and elements.
fn pairs_of<'h>(h: &'h Heap, name: &str, coll: Value<'h>) -> Res<Value<'h>> {
    match coll {
        Value::Map(_) => items(h, name, coll),
        Value::Nil => h.vector(&[]),
        other => Err(args::type_error(name, "a map", other)),
    }
}

/// May there be more than one collection?
fn walks_several(op: FrameOp) -> bool {
    matches!(op, FrameOp::Map | FrameOp::Mapcat)
}

/// Is the function called with the element alone?
fn takes_element(op: FrameOp) -> bool {
    use FrameOp::{KeepIndexed, MapIndexed, UpdateKeys, UpdateVals};
    !matches!(op, KeepIndexed | MapIndexed | UpdateKeys | UpdateVals)
}

/// What stands for a function is asked here; `None` for what can be called.
fn accessed_or_refused<'h>(h: &'h Heap, op: FrameOp, f: Value<'h>, item: Value<'h>) -> Res<Option<Value<'h>>> {
    if f.is_callable() { Ok(None) } else { Ok(Some(accessed(h, op, f, item)?.unwrap_or(Value::Nil))) }
}

/// What to do after an element.
enum After<'h> {
    Next,
    Stop(Value<'h>),
}

pub(super) fn step<'h>(op: FrameOp, h: &'h Heap, s: &mut State<'h>) -> Res<Flow> {
    let depth = s.frames.len() - 1;
    let (base, mut waiting, mut i) = current(s);
    let list = vector(s.stack[base + ITEMS]);
    let (second, third) = (s.stack[base + EXTRA], s.stack[base + EXTRA2]);
    let f = s.stack[base + FUNCTION];
    let alone = takes_element(op) && !(walks_several(op) && matches!(second, Value::Vector(_)));
    let leaf = if alone { Leaf::of(f, 1) } else { None };
    if let (FrameOp::Map, false, Some(leaf), Some(done)) = (op, waiting, leaf, builder(s.stack[base + ACC])) {
        let mapped = map_leaf(h, leaf, list, &mut i, done);
        s.set_native(false, i);
        mapped?;
    }
    loop {
        h.set_mark();
        if waiting {
            match consume(op, h, s, base, list, i)? {
                After::Next => {
                    i += 1;
                    s.set_native(false, i);
                }
                After::Stop(value) => {
                    s.finish_frame(value);
                    return Ok(Flow::Switch);
                }
            }
        }
        h.set_mark();
        if alone && let Some(&item) = list.get(i) {
            h.charge(1)?;
            if let Some(leaf) = leaf {
                let result = leaf.call(h, &[item])?;
                s.stack[base + RESULT] = result;
                s.set_native(true, i);
                waiting = true;
                continue;
            }
            if s.enter_from_native(h, f, [item], i)? {
                return Ok(Flow::Switch);
            }
            let out = match accessed_or_refused(h, op, f, item)? {
                Some(value) => Called::Value(value),
                None => s.call_from_native(h, f, &[item])?,
            };
            if let Some(flow) = called(s, depth, i, out) {
                return Ok(flow);
            }
            waiting = true;
            continue;
        }
        let mut more = i < list.len();
        let (mut args, mut argc) = ([Value::Nil; 3], 1);
        if more {
            args[0] = list[i];
            match op {
                FrameOp::MapIndexed | FrameOp::KeepIndexed => {
                    (args[0], args[1], argc) = (Value::count(i), list[i], 2);
                }
                FrameOp::UpdateVals => args[0] = pair(list[i]).1,
                FrameOp::UpdateKeys => args[0] = pair(list[i]).0,
                FrameOp::Map | FrameOp::Mapcat => {
                    for other in [second, third] {
                        if let Value::Vector(v) = other {
                            match v.get(i) {
                                Some(item) => (args[argc], argc) = (item, argc + 1),
                                None => more = false,
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        if !more {
            let value = finish(op, h, s, base, list, i)?;
            s.finish_frame(value);
            return Ok(Flow::Switch);
        }
        h.charge(1)?;
        let out = s.call_from_native(h, f, &args[..argc])?;
        if let Some(flow) = called(s, depth, i, out) {
            return Ok(flow);
        }
        waiting = true;
    }
}

/// Maps a function that answers at once, from element `i` on, as long as there is room for the results. At a fault `i` says
/// from where it is done again.
fn map_leaf<'h>(
    h: &'h Heap,
    leaf: Leaf<'h>,
    list: &'h [Value<'h>],
    i: &mut usize,
    done: &'h VecBuilder<'h>,
) -> Res<()> {
    for item in list.iter().skip(*i).take(done.room()) {
        h.set_mark();
        h.charge(1)?;
        let result = leaf.call(h, std::slice::from_ref(item))?;
        done.push_in_place(&result);
        *i += 1;
    }
    Ok(())
}

fn pair<'h>(v: Value<'h>) -> (Value<'h>, Value<'h>) {
    match vector(v) {
        [key, value] => (*key, *value),
        _ => (Value::Nil, Value::Nil),
    }
}

/// Deals with the result for element `i`. Nothing is changed when it fails.
fn consume<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    base: usize,
    list: &'h [Value<'h>],
    i: usize,
) -> Res<After<'h>> {
    let result = s.stack[base + RESULT];
    let acc = s.stack[base + ACC];
    let item = list[i];
    let push = |keep: bool, value: Value<'h>| match builder(acc) {
        Some(b) if keep => b.push(h, value),
        _ => Ok(()),
    };
    match op {
        FrameOp::Map | FrameOp::MapIndexed => push(true, result)?,
        FrameOp::Filter => push(result.truthy(), item)?,
        FrameOp::Remove => push(!result.truthy(), item)?,
        FrameOp::Keep | FrameOp::KeepIndexed => push(!result.is_nil(), result)?,
        FrameOp::Mapcat => {
            let more = match (result, s.stack[base + FUNCTION]) {
                (Value::Vector(_) | Value::Map(_) | Value::Set(_), _) => args::seq(h, "mapcat", result)?,
                // What a keyword reads stands for itself when it is no collection; nil is nothing.
                (Value::Nil, Value::Keyword(..)) => &[],
                (_, Value::Keyword(..)) => h.vec_single(result)?,
                _ => {
                    let what = format!("mapcat expects collections from its function, got {}", args::describe(result));
                    return Err(Error::new(Reason::RuntimeError, what).hint("use map, or answer a vector").into());
                }
            };
            h.charge(more.len() as u64)?;
            if let Some(b) = builder(acc) {
                b.extend(h, more)?;
            }
        }
        FrameOp::Some if result.truthy() => return Ok(After::Stop(result)),
        FrameOp::Every if !result.truthy() => return Ok(After::Stop(Value::Bool(false))),
        FrameOp::NotAny if result.truthy() => return Ok(After::Stop(Value::Bool(false))),
        FrameOp::NotEvery if !result.truthy() => return Ok(After::Stop(Value::Bool(true))),
        FrameOp::TakeWhile | FrameOp::DropWhile | FrameOp::SplitWith if !result.truthy() => {
            return cut(op, h, s.stack[base + ITEMS], i).map(After::Stop);
        }
        FrameOp::PartitionBy => partition(h, s, base, acc, result, item, i)?,
        FrameOp::GroupBy => group(h, acc, result, item)?,
        FrameOp::DistinctBy => {
            if let Value::MapBuilder(b) = acc
                && b.place(h, result)?.is_none()
            {
                b.insert(h, result, item)?;
            }
        }
        FrameOp::UpdateVals => {
            if let Value::MapBuilder(b) = acc {
                b.insert(h, pair(item).0, result)?;
            }
        }
        FrameOp::UpdateKeys => {
            if let Value::MapBuilder(b) = acc {
                b.insert(h, result, pair(item).1)?;
            }
        }
        FrameOp::SumBy | FrameOp::AvgBy => add_up(op, h, s, base, acc, result)?,
        FrameOp::MinBy | FrameOp::MaxBy => extreme(op, h, s, base, result, item)?,
        _ => {}
    }
    Ok(After::Next)
}

fn cut<'h>(op: FrameOp, h: &'h Heap, whole: Value<'h>, i: usize) -> Res<Value<'h>> {
    let Value::Vector(v) = whole else { return Ok(Value::Nil) };
    match op {
        FrameOp::TakeWhile => h.slice(v, 0, i),
        FrameOp::DropWhile => h.slice(v, i, v.len()),
        _ => {
            let (left, right) = (h.slice(v, 0, i)?, h.slice(v, i, v.len())?);
            h.vector(&[left, right])
        }
    }
}

/// `ACC` collects the groups, `EXTRA` is the group that grows, `EXTRA2` what its elements have in common.
fn partition<'h>(
    h: &'h Heap,
    s: &mut State<'h>,
    base: usize,
    acc: Value<'h>,
    result: Value<'h>,
    item: Value<'h>,
    i: usize,
) -> Res<()> {
    let (Some(groups), Some(group)) = (builder(acc), builder(s.stack[base + EXTRA])) else { return Ok(()) };
    if i == 0 || h.equal(s.stack[base + EXTRA2], result)? {
        group.push(h, item)?;
    } else {
        h.charge(cost::PLACED)?;
        let next = h.vec_builder(4)?;
        next.push(h, item)?;
        groups.reserve(h, 1)?;
        let done = group.finish(h)?;
        groups.push(h, done)?;
        s.stack[base + EXTRA] = Value::VecBuilder(next);
    }
    s.stack[base + EXTRA2] = result;
    Ok(())
}

fn group<'h>(h: &'h Heap, acc: Value<'h>, key: Value<'h>, item: Value<'h>) -> Res<()> {
    let Value::MapBuilder(groups) = acc else { return Ok(()) };
    if let Some(place) = groups.place(h, key)? {
        if let Value::VecBuilder(members) = groups.entry(place).1 {
            members.push(h, item)?;
        }
        return Ok(());
    }
    let members = h.vec_builder(4)?;
    members.push(h, item)?;
    groups.insert(h, key, Value::VecBuilder(members))?;
    Ok(())
}

/// `ACC` is the sum, `EXTRA` how many numbers it has. Missing and nil values are left out.
fn add_up<'h>(op: FrameOp, h: &'h Heap, s: &mut State<'h>, base: usize, acc: Value<'h>, result: Value<'h>) -> Res<()> {
    if result.is_nil() {
        return Ok(());
    }
    if !result.is_number() {
        return Err(args::type_error(op.name(), "numbers", result));
    }
    let sum = numbers::add(h, acc, result)?;
    let count = match s.stack[base + EXTRA] {
        Value::Int(n) => n,
        _ => 0,
    };
    s.stack[base + ACC] = sum;
    s.stack[base + EXTRA] = Value::Int(count + 1);
    Ok(())
}

/// `ACC` is the best element, `EXTRA` its key. Elements without a key are left out; of equal ones the first wins.
fn extreme<'h>(op: FrameOp, h: &'h Heap, s: &mut State<'h>, base: usize, key: Value<'h>, item: Value<'h>) -> Res<()> {
    if key.is_nil() {
        return Ok(());
    }
    let better = match s.stack[base + EXTRA] {
        Value::Unset => true,
        best => {
            let wanted = if op == FrameOp::MinBy { Ordering::Less } else { Ordering::Greater };
            comparison::compare_values(h, key, best)? == wanted
        }
    };
    if better {
        s.stack[base + EXTRA] = key;
        s.stack[base + ACC] = item;
    }
    Ok(())
}

/// The value of the whole, after the last element.
fn finish<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    base: usize,
    list: &'h [Value<'h>],
    i: usize,
) -> Res<Value<'h>> {
    let acc = s.stack[base + ACC];
    Ok(match (op, acc) {
        (FrameOp::PartitionBy, Value::VecBuilder(groups)) => {
            if let Some(group) = builder(s.stack[base + EXTRA])
                && !group.is_empty()
            {
                groups.reserve(h, 1)?;
                let last = group.finish(h)?;
                groups.push(h, last)?;
                s.stack[base + EXTRA] = Value::Nil;
            }
            groups.finish(h)?
        }
        (_, Value::VecBuilder(b)) => b.finish(h)?,
        (FrameOp::GroupBy, Value::MapBuilder(groups)) => {
            // All at once: groups that are done already are not done again after a fault.
            h.charge(groups.len() as u64)?;
            for place in 0..groups.len() {
                if let Value::VecBuilder(members) = groups.entry(place).1 {
                    groups.set_value(place, members.finish(h)?);
                }
            }
            Value::Map(groups.finish(h)?)
        }
        (FrameOp::DistinctBy, Value::MapBuilder(b)) => {
            h.charge(b.len() as u64)?;
            h.vector_from(b.len(), (0..b.len()).map(|p| b.entry(p).1))?
        }
        (_, Value::MapBuilder(b)) => Value::Map(b.finish(h)?),
        (FrameOp::SumBy, sum) => sum,
        (FrameOp::AvgBy, sum) => match s.stack[base + EXTRA] {
            Value::Int(n) => numbers::div(h, sum, Value::Int(n))?,
            _ => Value::Nil,
        },
        (FrameOp::MinBy | FrameOp::MaxBy, best) => best,
        (FrameOp::Every | FrameOp::NotAny, _) => Value::Bool(true),
        (FrameOp::NotEvery, _) => Value::Bool(false),
        (FrameOp::TakeWhile | FrameOp::DropWhile | FrameOp::SplitWith, _) => {
            let whole = s.stack[base + ITEMS];
            debug_assert_eq!(i, list.len());
            cut(op, h, whole, i)?
        }
        _ => Value::Nil,
    })
}
