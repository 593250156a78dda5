//! `update` and `update-in`: one call, then the maps around the place are made anew.

use super::{EXTRA, FrameOp, Flow, RESULT, called, current, function, push};
use crate::builtins::{args, maps};
use crate::heap::{Heap, Res, Value};
use crate::machine::{Called, State};

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
    let (map, place, f) = (s.stack[at + 1], s.stack[at + 2], function(name, s.stack[at + 3], false)?);
    let path = match op {
        FrameOp::Update => h.vector(&[place])?,
        _ => match place {
            Value::Vector(_) => place,
            other => return Err(args::type_error(name, "a vector of keys", other)),
        },
    };
    let mut old = map;
    for &key in super::vector(path) {
        h.charge(1)?;
        old = maps::get_exact(h, name, old, key)?.unwrap_or(Value::Nil);
    }
    let more = argc - 3;
    h.room((more + EXTRA + 1) * 16)?;
    let mut registers = vec![Value::Nil, map, path, f, old];
    registers.extend_from_slice(&s.stack[at + 4..at + 1 + argc]);
    push(op, h, s, at, &registers, dst)
}

pub(super) fn step<'h>(h: &'h Heap, s: &mut State<'h>) -> Res<Flow> {
    let depth = s.frames.len() - 1;
    let (base, waiting, _) = current(s);
    s.mark = h.spent();
    if !waiting {
        let size = match s.frames.last() {
            Some(crate::machine::Frame { code: crate::machine::Code::Native { size, .. }, .. }) => *size as usize,
            _ => CALL + 1,
        };
        let argc = size - CALL - 1;
        let f = s.stack[base + CALL];
        h.room(argc * 16)?;
        let given = s.stack[base + CALL + 1..base + size].to_vec();
        let out = s.call_from_native(h, f, &given)?;
        if let Some(flow) = called(s, depth, 0, out) {
            return Ok(flow);
        }
        s.mark = h.spent();
    }
    let (map, path, result) = (s.stack[base + MAP], super::vector(s.stack[base + PATH]), s.stack[base + RESULT]);
    let value = maps::put_in(h, map, path, result)?;
    s.finish_frame(value);
    Ok(Flow::Switch)
}
