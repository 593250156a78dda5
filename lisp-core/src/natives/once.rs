//! `update` and `update-in`: one call, then the maps around the place are made anew.

use super::{Flow, FrameOp, RESULT, called, current, function, push};
use crate::builtins::{args, maps};
use crate::heap::{Heap, Res, Value};
use crate::vm::{Called, State};

/// Register for the map.
const MAP: usize = 1;
/// Register for the path.
const PATH: usize = 2;
/// Register for the function; its first argument and the others follow.
const CALL: usize = 3;

pub(super) fn start<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    at: usize,
    argc: usize,
    dst: u32,
) -> Res<Called<'h>> {
    let name = op.name();
    let (map, place, f) = (s.stack[at + 1], s.stack[at + 2], function(name, s.stack[at + 3])?);
    let path = match op {
        FrameOp::Update => h.vector(&[place])?,
        _ => match place {
            // A path without a key names the key nil.
            Value::Nil => h.vector(&[Value::Nil])?,
            Value::Vector(path) if path.items().is_empty() => h.vector(&[Value::Nil])?,
            Value::Vector(_) => place,
            other => return Err(args::type_error(name, "a vector of keys", other)),
        },
    };
    let mut old = map;
    for &key in super::vector(path) {
        h.charge(1)?;
        old = read(h, name, old, key)?;
    }
    let more = argc - 3;
    h.room((more + CALL + 2) * 16)?;
    let mut registers = vec![Value::Nil, map, path, f, old];
    registers.extend_from_slice(&s.stack[at + 4..at + 1 + argc]);
    push(op, h, s, at, &registers, dst)
}

pub(super) fn step<'h>(op: FrameOp, h: &'h Heap, s: &mut State<'h>) -> Res<Flow> {
    let depth = s.frames.len() - 1;
    let (base, waiting, _) = current(s);
    h.set_mark();
    if !waiting {
        let f = s.stack[base + CALL];
        let out = s.call_with_registers(h, f, CALL + 1)?;
        if let Some(flow) = called(s, depth, 0, out) {
            return Ok(flow);
        }
        h.set_mark();
    }
    let (map, path, result) = (s.stack[base + MAP], super::vector(s.stack[base + PATH]), s.stack[base + RESULT]);
    let value = maps::assoc_path(h, op.name(), map, path, result, false)?;
    s.finish_frame(value);
    Ok(Flow::Switch)
}

/// The value at exactly this key: what `update` changes is what is there, under the same spelling.
fn read<'h>(h: &'h Heap, name: &str, coll: Value<'h>, key: Value<'h>) -> Res<Value<'h>> {
    match (coll, key) {
        (Value::Map(m), _) => Ok(m.get(h, key)?.unwrap_or(Value::Nil)),
        (Value::Vector(v), Value::Int(i)) => Ok(usize::try_from(i).ok().and_then(|i| v.get(i)).unwrap_or(Value::Nil)),
        (Value::Nil, _) => Ok(Value::Nil),
        (Value::Vector(_), _) => Err(args::type_error(name, "an index into the vector", key)),
        (other, _) => Err(args::type_error(name, "a map or vector", other)),
    }
}
