//! `pmap` and `pcalls`: the frame that waits for its workers, and the frame at the bottom of a worker.

use super::each::{check, collections};
use super::{ACC, EXTRA, EXTRA2, FUNCTION, Flow, FrameOp, ITEMS, RESULT, called, current, function, push, vector};
use crate::cost;
use crate::error::Reason;
use crate::heap::{Fault, Heap, Res, Value, VecBuilder};
use crate::vm::{Called, State};

/// One call of a parallel call: the function and its arguments.
pub(crate) struct WorkerCall<'h> {
    pub(crate) f: Value<'h>,
    pub(crate) args: [Value<'h>; 3],
    pub(crate) argc: usize,
}

pub(super) fn start<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    at: usize,
    argc: usize,
    dst: u32,
) -> Res<Called<'h>> {
    let (f, [first, second, third], count) = match op {
        FrameOp::Pcalls => {
            for &f in &s.stack[at + 1..at + 1 + argc] {
                if let Err(Fault::Error(mut error)) = function("pcalls", f) {
                    error.reason = Reason::PcallsError;
                    return Err(Fault::Error(error));
                }
            }
            let functions = h.vector(&s.stack[at + 1..at + 1 + argc])?;
            (Value::Nil, [functions, Value::Unset, Value::Unset], argc)
        }
        _ => {
            check(op, s.stack[at + 1])?;
            let (lists, count) = collections(op, h, &s.stack[at + 2..at + 1 + argc])?;
            (s.stack[at + 1], lists, count)
        }
    };
    let results = Value::VecBuilder(h.vec_builder(count)?);
    push(op, h, s, at, &[Value::count(count), f, first, results, second, third], dst)
}

/// The frame waits until its driver has brought in the result of every call.
pub(super) fn step<'h>(h: &'h Heap, s: &mut State<'h>) -> Res<Flow> {
    h.set_mark();
    let (_, asked, _) = current(s);
    let Some((count, results)) = waiting(s) else { return Ok(Flow::Switch) };
    if results.len() == count {
        let value = results.finish(h)?;
        s.finish_frame(value);
        return Ok(Flow::Switch);
    }
    if !asked {
        h.charge(cost::workers(count, s.globals.len()))?;
        s.set_native(true, 0);
    }
    Ok(Flow::Parallel)
}

/// How many calls the parallel call on top comes to, and its results so far.
pub(crate) fn waiting<'h>(s: &State<'h>) -> Option<(usize, &'h VecBuilder<'h>)> {
    let base = s.frames.last()?.base as usize;
    match (s.stack[base + RESULT], s.stack[base + ACC]) {
        (Value::Int(count), Value::VecBuilder(results)) => Some((usize::try_from(count).ok()?, results)),
        _ => None,
    }
}

/// Call number `i` of the parallel call on top.
pub(crate) fn worker_call<'h>(op: FrameOp, s: &State<'h>, i: usize) -> Option<WorkerCall<'h>> {
    let base = s.frames.last()?.base as usize;
    let item = |register: usize| vector(s.stack[base + register]).get(i).copied();
    let (mut args, mut argc) = ([Value::Nil; 3], 0);
    if op == FrameOp::Pcalls {
        return Some(WorkerCall { f: item(ITEMS)?, args, argc });
    }
    for register in [ITEMS, EXTRA, EXTRA2] {
        if let Value::Vector(_) = s.stack[base + register] {
            (args[argc], argc) = (item(register)?, argc + 1);
        }
    }
    Some(WorkerCall { f: s.stack[base + FUNCTION], args, argc })
}

/// Begins the one call of a worker.
pub(crate) fn start_worker<'h>(h: &'h Heap, s: &mut State<'h>, call: &WorkerCall<'h>) -> Res<()> {
    let [a, b, c] = call.args;
    let registers = [Value::Nil, call.f, a, b, c];
    push(FrameOp::Worker, h, s, 0, &registers[..2 + call.argc], 0).map(|_| ())
}

/// The call of a worker, or its end.
pub(super) fn step_worker<'h>(h: &'h Heap, s: &mut State<'h>) -> Res<Flow> {
    h.set_mark();
    let (base, done, _) = current(s);
    if !done {
        let out = s.call_with_registers(h, s.stack[base + FUNCTION], FUNCTION + 1)?;
        if let Some(flow) = called(s, 0, 0, out) {
            return Ok(flow);
        }
    }
    s.result = s.stack[base + RESULT];
    s.frames.pop();
    Ok(Flow::Switch)
}
