//! `reduce`, `reduce-kv`, `merge-with`.

use super::{ACC, EXTRA, FUNCTION, Flow, FrameOp, ITEMS, Leaf, RESULT, called, current, function, items, push, vector};
use crate::builtins::args;
use crate::heap::{Heap, Res, Value};
use crate::vm::{Called, State};

pub(super) fn start<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    at: usize,
    argc: usize,
    dst: u32,
) -> Res<Called<'h>> {
    let name = op.name();
    let f = function(name, s.stack[at + 1])?;
    if op == FrameOp::MergeWith {
        return start_merge(h, s, at, argc, dst, f);
    }
    let (init, coll) = if argc == 3 { (s.stack[at + 2], s.stack[at + 3]) } else { (Value::Unset, s.stack[at + 2]) };
    let list = if op == FrameOp::ReduceKv { entries(h, coll)? } else { items(h, name, coll)? };
    let (mut acc, mut skip) = (init, 0);
    if let Value::Unset = init {
        match vector(list) {
            [] => return Ok(Called::Value(Value::Nil)),
            [first, ..] => (acc, skip) = (*first, 1),
        }
    }
    let out = push(op, h, s, at, &[Value::Nil, f, list, acc, Value::Unset, Value::Unset], dst)?;
    s.set_native(false, skip);
    Ok(out)
}

/// What `reduce-kv` walks: the entries of a map.
fn entries<'h>(h: &'h Heap, coll: Value<'h>) -> Res<Value<'h>> {
    match coll {
        Value::Map(_) | Value::Nil => items(h, "reduce-kv", coll),
        other => Err(args::type_error("reduce-kv", "a map", other)),
    }
}

/// All entries of the later maps in one list; the first map is what they are merged into. A single argument is the
/// answer whatever it is, unless it is nil or false.
fn start_merge<'h>(h: &'h Heap, s: &mut State<'h>, at: usize, argc: usize, dst: u32, f: Value<'h>) -> Res<Called<'h>> {
    let args = &s.stack[at + 2..at + 1 + argc];
    if let [single] = args
        && single.truthy()
    {
        return Ok(Called::Value(*single));
    }
    h.charge(args.len() as u64)?;
    if args.len() > 1
        && let Some(&wrong) = args.iter().find(|a| !matches!(a, Value::Map(_) | Value::Nil))
    {
        return Err(args::type_error("merge-with", "maps", wrong));
    }
    let mut maps = args.iter().filter(|m| matches!(m, Value::Map(_))).peekable();
    let Some(&first) = maps.next() else {
        return Ok(Called::Value(Value::Map(h.empty_map()?)));
    };
    if maps.peek().is_none() {
        return Ok(Called::Value(first));
    }
    let all = h.vec_builder(0)?;
    for &map in maps {
        let more = args::seq(h, "merge-with", map)?;
        h.charge(more.len() as u64)?;
        all.extend(h, more)?;
    }
    let list = all.finish(h)?;
    push(FrameOp::MergeWith, h, s, at, &[Value::Nil, f, list, first, Value::Unset, Value::Unset], dst)
}

pub(super) fn step<'h>(op: FrameOp, h: &'h Heap, s: &mut State<'h>) -> Res<Flow> {
    let depth = s.frames.len() - 1;
    let (base, mut waiting, mut i) = current(s);
    let list = vector(s.stack[base + ITEMS]);
    let f = s.stack[base + FUNCTION];
    if let (FrameOp::Reduce, false, Some(leaf)) = (op, waiting, Leaf::of(f, 2)) {
        let mut acc = s.stack[base + ACC];
        let folded = fold_leaf(h, leaf, list, &mut i, &mut acc);
        s.stack[base + ACC] = acc;
        s.set_native(false, i);
        folded?;
    }
    loop {
        h.set_mark();
        if waiting {
            let result = s.stack[base + RESULT];
            let acc = match (op, s.stack[base + ACC], s.stack[base + EXTRA]) {
                (FrameOp::MergeWith, Value::Map(m), key) => Value::Map(h.assoc(m, key, result)?),
                _ => result,
            };
            s.stack[base + ACC] = acc;
            i += 1;
            s.set_native(false, i);
            h.set_mark();
        }
        if i >= list.len() {
            let value = s.stack[base + ACC];
            s.finish_frame(value);
            return Ok(Flow::Switch);
        }
        h.charge(1)?;
        let acc = s.stack[base + ACC];
        let out = match op {
            FrameOp::Reduce => {
                if s.enter_from_native(h, f, [acc, list[i]], i)? {
                    return Ok(Flow::Switch);
                }
                s.call_from_native(h, f, &[acc, list[i]])?
            }
            FrameOp::ReduceKv => match vector(list[i]) {
                [key, value] => s.call_from_native(h, f, &[acc, *key, *value])?,
                _ => Called::Value(acc),
            },
            _ => match (acc, vector(list[i])) {
                (Value::Map(m), [key, value]) => match m.get(h, *key)? {
                    Some(old) => {
                        s.stack[base + EXTRA] = *key;
                        s.call_from_native(h, f, &[old, *value])?
                    }
                    None => {
                        s.stack[base + EXTRA] = *key;
                        Called::Value(*value)
                    }
                },
                _ => Called::Value(acc),
            },
        };
        if let Some(flow) = called(s, depth, i, out) {
            return Ok(flow);
        }
        waiting = true;
    }
}

/// Folds with a function that answers at once, from element `i` on. At a fault `i` and `acc` say from where it is done
/// again.
fn fold_leaf<'h>(h: &'h Heap, leaf: Leaf<'h>, list: &'h [Value<'h>], i: &mut usize, acc: &mut Value<'h>) -> Res<()> {
    for item in list.iter().skip(*i) {
        h.set_mark();
        h.charge(1)?;
        *acc = leaf.call(h, &[*acc, *item])?;
        *i += 1;
    }
    Ok(())
}
