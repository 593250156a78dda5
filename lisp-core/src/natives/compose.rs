//! Calls of functions made of others: `comp`, `juxt`, `complement`, `every-pred`, `some-fn`.
//!
//! Registers: the result, the parts, what is built, then the arguments.

use super::{Flow, FrameOp, RESULT, called, current, push, vector};
use crate::heap::{Compose, Composed, Heap, Res, Value};
use crate::vm::{Called, State};

/// Register for the parts.
const PARTS: usize = 1;
/// Register for what is built.
const BUILT: usize = 2;
/// The first argument.
const ARGS: usize = 3;

pub(super) fn start<'h>(
    c: &'h Composed<'h>,
    h: &'h Heap,
    s: &mut State<'h>,
    at: usize,
    argc: usize,
    dst: u32,
) -> Res<Called<'h>> {
    let op = match c.kind {
        Compose::Comp => FrameOp::Comp,
        Compose::Juxt => FrameOp::Juxt,
        Compose::Complement => FrameOp::Complement,
        Compose::EveryPred => FrameOp::EveryPred,
        _ => FrameOp::SomeFn,
    };
    if op == FrameOp::Comp && c.parts.is_empty() {
        return Ok(Called::Value(if argc == 0 { Value::Nil } else { s.stack[at + 1] }));
    }
    let built = if op == FrameOp::Juxt { Value::VecBuilder(h.vec_builder(c.parts.len())?) } else { Value::Nil };
    h.charge(argc as u64)?;
    h.room((argc + ARGS) * 16)?;
    let mut registers = vec![Value::Nil, h.vector(c.parts)?, built];
    registers.extend_from_slice(&s.stack[at + 1..at + 1 + argc]);
    push(op, h, s, at, &registers, dst)
}

pub(super) fn step<'h>(op: FrameOp, h: &'h Heap, s: &mut State<'h>) -> Res<Flow> {
    let depth = s.frames.len() - 1;
    let (base, mut waiting, mut i) = current(s);
    let parts = vector(s.stack[base + PARTS]);
    let argc = s.registers_from(ARGS);
    loop {
        h.set_mark();
        if waiting {
            let result = s.stack[base + RESULT];
            if let Some(value) = take(op, h, s, base, result, argc, parts, i)? {
                s.finish_frame(value);
                return Ok(Flow::Switch);
            }
            i += 1;
            s.set_native(false, i);
            h.set_mark();
        }
        let calls = match op {
            FrameOp::EveryPred | FrameOp::SomeFn => parts.len() * argc,
            _ => parts.len(),
        };
        if i >= calls {
            let value = match (op, s.stack[base + BUILT]) {
                (FrameOp::Juxt, Value::VecBuilder(b)) => b.finish(h)?,
                (FrameOp::EveryPred, _) => Value::Bool(true),
                _ => s.stack[base + RESULT],
            };
            s.finish_frame(value);
            return Ok(Flow::Switch);
        }
        h.charge(1)?;
        let out = match op {
            FrameOp::Comp if i > 0 => {
                let value = s.stack[base + RESULT];
                s.call_from_native(h, parts[parts.len() - 1 - i], &[value])?
            }
            FrameOp::EveryPred | FrameOp::SomeFn => {
                let value = s.stack[base + ARGS + i / parts.len()];
                s.call_from_native(h, parts[i % parts.len()], &[value])?
            }
            _ => {
                let f = if op == FrameOp::Comp { parts[parts.len() - 1] } else { parts[i] };
                s.call_with_registers(h, f, ARGS)?
            }
        };
        if let Some(flow) = called(s, depth, i, out) {
            return Ok(flow);
        }
        waiting = true;
    }
}

/// Deals with the result of call `i`; a value ends the whole.
#[allow(clippy::too_many_arguments, reason = "the registers of the frame")]
fn take<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    base: usize,
    result: Value<'h>,
    argc: usize,
    parts: &[Value<'h>],
    i: usize,
) -> Res<Option<Value<'h>>> {
    Ok(match op {
        FrameOp::Complement => Some(Value::Bool(!result.truthy())),
        FrameOp::EveryPred if !result.truthy() => Some(Value::Bool(false)),
        FrameOp::SomeFn if result.truthy() || i + 1 == parts.len() * argc => Some(result),
        FrameOp::Juxt => {
            if let Value::VecBuilder(b) = s.stack[base + BUILT] {
                b.push(h, result)?;
            }
            None
        }
        _ => None,
    })
}
