//! `pmap` and `pcalls`: the frame that waits for its workers, and the bottom frame of a worker.

use super::accepts::Accepts;
use super::registers::{ACC, FUNCTION, ITEMS, RESULT, collections, vector};
use crate::builtins::args::function;
use crate::builtins::{Builtin, MANY};
use crate::context::Ctx;
use crate::cost;
use crate::error::Reason;
use crate::heap::{Fault, Res, Value, VecBuilder};
use crate::stack::{Call, Control, Effect, NativeFn, NativeFrame, ParallelFn, State, WorkerCall};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::calling("pmap", 2, 4, "(pmap f coll) (pmap f c1 c2 ...)", start_pmap).by_workers().doc(
        "Returns the results of f for each element, in order; the calls run in parallel.",
        &[("(pmap inc [1 2])", "[2 3]"), ("(pmap inc [nil])", "!pmap_error")],
    ),
    Builtin::calling("pcalls", 0, MANY, "(pcalls f1 f2 ...)", start_pcalls).by_workers().doc(
        "Returns the results of calling each function without arguments, in order; the calls run in parallel.",
        &[("(pcalls #(+ 1 2) #(* 2 3))", "[3 6]"), ("(pcalls #(/ 1 0))", "!pcalls_error")],
    ),
];

static PMAP: NativeFn =
    NativeFn::new("pmap", step).parallel(ParallelFn { reason: Reason::PmapError, worker_call: pmap_call });
static PCALLS: NativeFn =
    NativeFn::new("pcalls", step).parallel(ParallelFn { reason: Reason::PcallsError, worker_call: pcalls_call });

/// The register for the number of calls: the frame makes none itself, so it needs no result.
const COUNT: usize = RESULT;
/// Registers for the collections of `pmap`.
const LISTS: [usize; 3] = [ITEMS, 4, 5];

fn start_pmap<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let at = call.args().start;
    let f = s.stack[at];
    Accepts::FUNCTIONS.check(PMAP.name, f)?;
    let (lists, count) = collections(h, PMAP.name, &s.stack[at + 1..call.args().end])?;
    start(&PMAP, h, s, call, f, lists, count)
}

fn start_pcalls<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let functions = &s.stack[call.args()];
    for &f in functions {
        if let Err(Fault::Error(mut error)) = function(PCALLS.name, f) {
            error.reason = Reason::PcallsError;
            return Err(Fault::Error(error));
        }
    }
    let count = functions.len();
    let functions = h.vector(functions)?;
    start(&PCALLS, h, s, call, Value::Nil, [functions, Value::Unset, Value::Unset], count)
}

fn start<'h>(
    native: &'static NativeFn,
    h: &'h Ctx,
    s: &mut State<'h>,
    call: Call,
    f: Value<'h>,
    [first, second, third]: [Value<'h>; 3],
    count: usize,
) -> Res<Control<'h>> {
    let results = Value::VecBuilder(h.vec_builder(count)?);
    s.push_native(h, native, call, &[Value::count(count), f, first, results, second, third])
}

/// Waits until the driver has supplied the result of every call.
fn step<'h>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    h.meter.set_restart();
    let (Some(frame), Some((count, results))) = (s.native_frame(), waiting(s)) else { return Ok(Control::Frame) };
    if results.len() == count {
        return results.finish(h).map(Control::Value);
    }
    if !frame.called {
        h.charge(cost::workers(count, s.globals.len()))?;
        s.note(true, 0);
    }
    Ok(Control::Effect(Effect::Parallel))
}

/// Returns the number of calls of the parallel call on top, and its results so far.
pub(crate) fn waiting<'h>(s: &State<'h>) -> Option<(usize, &'h VecBuilder<'h>)> {
    let base = s.native_frame()?.base;
    match (s.stack[base + COUNT], s.stack[base + ACC]) {
        (Value::Int(count), Value::VecBuilder(results)) => Some((usize::try_from(count).ok()?, results)),
        _ => None,
    }
}

fn pmap_call<'h>(s: &State<'h>, index: usize) -> Option<WorkerCall<'h>> {
    let base = s.native_frame()?.base;
    let (mut args, mut argc) = ([Value::Nil; 3], 0);
    for register in LISTS {
        if let list @ Value::Vector(_) = s.stack[base + register] {
            (args[argc], argc) = (*vector(list).get(index)?, argc + 1);
        }
    }
    Some(WorkerCall { f: s.stack[base + FUNCTION], args, argc })
}

fn pcalls_call<'h>(s: &State<'h>, index: usize) -> Option<WorkerCall<'h>> {
    let base = s.native_frame()?.base;
    let f = *vector(s.stack[base + ITEMS]).get(index)?;
    Some(WorkerCall { f, args: [Value::Nil; 3], argc: 0 })
}

/// The bottom frame of a worker. Its registers are the result, the function, the arguments.
static WORKER: NativeFn = NativeFn::new("worker", step_worker).keeps_reasons();

/// Pushes the bottom frame of a worker.
pub(crate) fn push_worker<'h>(h: &'h Ctx, s: &mut State<'h>, call: &WorkerCall<'h>) -> Res<()> {
    let [a, b, c] = call.args;
    let registers = [Value::Nil, call.f, a, b, c];
    s.push_native(h, &WORKER, Call::new(0, 0, 0), &registers[..2 + call.argc]).map(drop)
}

/// Makes the call of a worker, or ends it.
fn step_worker<'h>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    h.meter.set_restart();
    let Some(NativeFrame { base, called, .. }) = s.native_frame() else { return Ok(Control::Frame) };
    if !called {
        return s.call_with_registers(h, s.stack[base + FUNCTION], FUNCTION + 1);
    }
    s.result = s.stack[base + RESULT];
    s.frames.pop();
    Ok(Control::Frame)
}
