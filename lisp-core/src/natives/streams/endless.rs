//! What functions do with an endless sequence: some defer a step, some take a few elements. For all others it is an
//! error.

use super::engine::{Plan, Sink, start, unbounded};
use super::sources::{self, pend, steps, with_last_step, with_steps};
use super::transduce::start_into;
use super::walk::step_of;
use crate::builtins::args::{fault, transducer};
use crate::builtins::streams::endless;
use crate::builtins::{Endless, args, id_of, numbers};
use crate::code::BuiltinId;
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Compose, Composed, Fault, Res, Source, Step, Value};
use crate::natives::one_by_one;
use crate::natives::registers::{RESULT, vector};
use crate::stack::{Call, Control, NativeFn, NativeFrame, State};
use crate::text::describe;

/// Makes the call of a built-in that cannot be made without a frame.
pub(crate) fn start_with_frame<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call, id: BuiltinId) -> Res<Control<'h>> {
    h.framed_at.set(None);
    h.charge(cost::moved(call.argc()) + 1)?;
    start_endless(h, s, call, id).map_err(|fault| match fault {
        Fault::NeedsFrame => Error::endless(id.row().name).into(),
        fault => fault,
    })
}

fn start_endless<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call, id: BuiltinId) -> Res<Control<'h>> {
    match id.row().endless {
        Endless::Refuse => one_by_one::start(h, s, call, id),
        Endless::Step(step) => waiting(h, s, call, |h, args| transducer(h, step, &args[..1])),
        Endless::Bare(step) => waiting(h, s, call, |h, _| transducer(h, step, &[])),
        Endless::Map => map(h, s, call, Step::Map),
        Endless::Mapcat => map(h, s, call, Step::Mapcat),
        Endless::Some => ask(h, s, call, Sink::Some),
        Endless::Every => ask(h, s, call, Sink::Every),
        Endless::NotAny => ask(h, s, call, Sink::NotAny),
        Endless::NotEvery => ask(h, s, call, Sink::NotEvery),
        Endless::Drop => drop(h, s, call),
        Endless::Rest(n) => without(h, last(&s.stack[call.args()])?, n).map(Control::Value),
        Endless::NthRest => nthrest(h, s, call),
        Endless::Cons => cons(h, s, call),
        Endless::Concat => concat(h, s, call),
        Endless::Partition => partition(h, s, call),
        Endless::Itself => last(&s.stack[call.args()]).map(|e| Control::Value(Value::Endless(e))),
        Endless::IsEmpty => last(&s.stack[call.args()]).map(|_| Control::Value(Value::Bool(false))),
        Endless::Take => take(h, s, call),
        Endless::TakeWhile => take_while(h, s, call),
        Endless::Element(index) => at(h, s, call, last(&s.stack[call.args()])?, index, Value::Nil),
        Endless::Nth => nth(h, s, call),
        Endless::SplitAt => split_at(h, s, call),
        Endless::SplitWith => split_with(h, s, call),
        Endless::Reduce => reduce(h, s, call),
        Endless::SideBySide => side_by_side(h, s, call),
        Endless::Interleave => interleave(h, s, call),
        Endless::Into => start_into(h, s, call),
    }
}

/// Calls the first argument for each element until the result is known.
fn ask<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call, sink: Sink) -> Res<Control<'h>> {
    match s.stack[call.args()] {
        [f, e @ Value::Endless(_)] => start(h, s, call, &plan(sink, f, Value::Unset, e, &[])),
        _ => Err(Fault::NeedsFrame),
    }
}

fn plan<'h>(sink: Sink, target: Value<'h>, acc: Value<'h>, source: Value<'h>, steps: &'h [Value<'h>]) -> Plan<'h> {
    Plan { sink, target, acc, source, steps, transduces: false }
}

/// Returns the endless sequence that is the last argument.
fn last<'h>(args: &[Value<'h>]) -> Res<&'h Composed<'h>> {
    match args {
        [.., Value::Endless(e)] => Ok(e),
        _ => Err(Fault::NeedsFrame),
    }
}

fn waiting<'h>(
    h: &'h Ctx,
    s: &State<'h>,
    call: Call,
    step: impl FnOnce(&'h Ctx, &[Value<'h>]) -> Res<Value<'h>>,
) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let e = last(args)?;
    let step = step(h, args)?;
    pend(h, e, step).map(Control::Value)
}

/// Returns the argument that says how many elements of an endless sequence to skip. Unlike a vector's, this number can
/// exceed 64 bits.
fn places(name: &str, v: Value<'_>) -> Res<i64> {
    let count = args::amount(name, v)?;
    if count == i64::MAX && v.as_integer() != Some(count) {
        let message = format!("{name} expects an integer of 64 bits for an endless sequence, got {}", describe(v));
        return Err(fault(Reason::ArithmeticError, message));
    }
    Ok(count)
}

/// Returns all but the first `n` elements.
fn without<'h>(h: &'h Ctx, e: &'h Composed<'h>, n: i64) -> Res<Value<'h>> {
    let (mut e, mut n) = (e, n);
    while n > 0 {
        h.charge(1)?;
        let steps = steps(e)?;
        let Some(last) = steps.items().last() else {
            let rest = match (e.kind, e.parts()) {
                (Compose::Source(Source::Range), [_, start, by]) => {
                    let start = numbers::add(h, *start, numbers::mul(h, *by, Value::Int(n))?)?;
                    Some(endless(h, Source::Range, &[start, *by])?)
                }
                (Compose::Source(Source::Repeat), _) => Some(Value::Endless(e)),
                (Compose::Source(Source::Cycle), [_, list, Value::Int(at)]) => {
                    let len = i64::try_from(vector(*list).len()).unwrap_or(i64::MAX);
                    // Both are below the length.
                    let at = (at + n % len) % len;
                    Some(endless(h, Source::Cycle, &[*list, Value::Int(at)])?)
                }
                _ => None,
            };
            return match rest {
                Some(rest) => Ok(rest),
                None => pend(h, e, transducer(h, Step::Drop, &[Value::Int(n)])?),
            };
        };
        match step_of(*last) {
            Some((Step::Drop, &[Value::Int(before)])) => {
                let more = transducer(h, Step::Drop, &[Value::Int(before.saturating_add(n))])?;
                return with_last_step(h, e, more);
            }
            Some((Step::Prefix, &[Value::Vector(before)])) => {
                let left = usize::try_from(n).unwrap_or(usize::MAX);
                if left < before.len() {
                    let rest = transducer(h, Step::Prefix, &[h.slice(before, left, before.len())?])?;
                    return with_last_step(h, e, rest);
                }
                n -= i64::try_from(before.len()).unwrap_or(n);
                let others = h.slice(steps, 0, steps.len() - 1)?;
                let Value::Endless(inner) = with_steps(h, e, others)? else { return Err(Fault::NeedsFrame) };
                e = inner;
            }
            _ => return pend(h, e, transducer(h, Step::Drop, &[Value::Int(n)])?),
        }
    }
    Ok(Value::Endless(e))
}

fn drop<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    without(h, last(args)?, places("drop", args::rounded_up(args[0]))?).map(Control::Value)
}

fn nthrest<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    match s.stack[call.args()] {
        [Value::Endless(e), n] => without(h, e, places("nthrest", n)?).map(Control::Value),
        _ => Err(Fault::NeedsFrame),
    }
}

fn cons<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let e = last(args)?;
    let steps = steps(e)?;
    if let Some(&last) = steps.items().last()
        && let Some((Step::Prefix, &[Value::Vector(before)])) = step_of(last)
    {
        h.charge(cost::moved(before.len() + 1))?;
        let items = std::iter::once(args[0]).chain(before.items().iter().copied());
        let prefix = transducer(h, Step::Prefix, &[h.vector_from(before.len() + 1, items)?])?;
        return with_last_step(h, e, prefix).map(Control::Value);
    }
    let prefix = transducer(h, Step::Prefix, &[h.vector(&args[..1])?])?;
    pend(h, e, prefix).map(Control::Value)
}

/// Collections after the first endless one are never reached.
fn concat<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let before = h.vec_builder(0)?;
    for &arg in args {
        let Value::Endless(e) = arg else {
            let items = args::seq(h, "concat", arg)?;
            h.charge(items.len() as u64)?;
            before.extend(h, items)?;
            continue;
        };
        if before.is_empty() {
            return Ok(Control::Value(arg));
        }
        let prefix = transducer(h, Step::Prefix, &[before.finish(h)?])?;
        return pend(h, e, prefix).map(Control::Value);
    }
    Err(Fault::NeedsFrame)
}

fn partition<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let size = args::positive("partition", "size", args[0])?;
    if let [.., Value::Endless(_), coll] = args
        && !matches!(coll, Value::Endless(_))
    {
        // At most as many elements as a piece has are needed to fill the last piece.
        return bound_to(h, s, call, 2, size);
    }
    let e = last(args)?;
    let step = if args.len() > 2 { args::positive("partition", "step", args[1])? } else { size };
    pend(h, e, transducer(h, Step::Windows, &[Value::count(size), Value::count(step)])?).map(Control::Value)
}

fn take<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let (n, e) = (args::amount("take", args::rounded_up(args[0]))?, last(args)?);
    if n <= 0 {
        return h.vector(&[]).map(Control::Value);
    }
    sources::take(h, s, call, Value::Endless(e), n)
}

fn take_while<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let e = last(args)?;
    let steps = h.vec_single(transducer(h, Step::TakeWhile, &args[..1])?)?;
    start(h, s, call, &plan(Sink::Vector, unbounded(), Value::Nil, Value::Endless(e), steps))
}

/// Returns the element at an index.
fn at<'h>(
    h: &'h Ctx,
    s: &mut State<'h>,
    call: Call,
    e: &'h Composed<'h>,
    place: i64,
    default: Value<'h>,
) -> Res<Control<'h>> {
    if place < 0 {
        return Ok(Control::Value(default));
    }
    let rest = without(h, e, place)?;
    start(h, s, call, &plan(Sink::First, default, Value::Nil, rest, &[]))
}

fn nth<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let [Value::Endless(e), n, ..] = *args else { return Err(Fault::NeedsFrame) };
    let default = args.get(2).copied().unwrap_or(Value::Nil);
    let place = places("nth", n)?;
    at(h, s, call, e, place, default)
}

fn split_at<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let (count, e) = (places("split-at", args[0])?, last(args)?);
    let rest = without(h, e, count)?;
    if count <= 0 {
        return h.vector(&[h.vector(&[])?, rest]).map(Control::Value);
    }
    let steps = h.vec_single(transducer(h, Step::Take, &[Value::Int(count)])?)?;
    start(h, s, call, &plan(Sink::Pair, rest, Value::Nil, Value::Endless(e), steps))
}

fn split_with<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let e = last(args)?;
    let rest = pend(h, e, transducer(h, Step::DropWhile, &args[..1])?)?;
    let steps = h.vec_single(transducer(h, Step::TakeWhile, &args[..1])?)?;
    start(h, s, call, &plan(Sink::Pair, rest, Value::Nil, Value::Endless(e), steps))
}

fn reduce<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let e = last(args)?;
    let init = if args.len() == 3 { args[1] } else { Value::Unset };
    start(h, s, call, &plan(Sink::Reduce, args[0], init, Value::Endless(e), &[]))
}

/// `map` and `mapcat`: for one sequence the step is deferred; with several the shortest determines the length.
fn map<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call, step: Step) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let [f, colls @ ..] = args else { return Err(Fault::NeedsFrame) };
    if let [Value::Endless(e)] = colls {
        return pend(h, e, transducer(h, step, &[*f])?).map(Control::Value);
    }
    if !colls.iter().all(|coll| matches!(coll, Value::Endless(_))) {
        return bound(h, s, call, 1);
    }
    let (f, rows) = (*f, endless(h, Source::Zip, colls)?);
    let row = transducer(h, Step::MapRow, &[f, Value::count(colls.len())])?;
    let mut all = rows;
    let cat = if step == Step::Mapcat { Some(transducer(h, Step::Cat, &[])?) } else { None };
    for step in std::iter::once(row).chain(cat) {
        if let Value::Endless(e) = all {
            all = pend(h, e, step)?;
        }
    }
    Ok(Control::Value(all))
}

const TAKE: BuiltinId = id_of("take");
const VECTOR: BuiltinId = id_of("vector");

/// `zipmap` and `zip`: the shortest determines the length.
fn side_by_side<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    if s.stack[call.args()].iter().all(|coll| matches!(coll, Value::Endless(_))) {
        return Err(Fault::NeedsFrame);
    }
    bound(h, s, call, 0)
}

fn interleave<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    if !args.iter().all(|coll| matches!(coll, Value::Endless(_))) {
        return bound(h, s, call, 0);
    }
    let rows = endless(h, Source::Zip, args)?;
    let row = transducer(h, Step::MapRow, &[Value::Builtin(VECTOR), Value::count(args.len())])?;
    let Value::Endless(rows) = rows else { return Err(Fault::NeedsFrame) };
    let Value::Endless(rows) = pend(h, rows, row)? else { return Err(Fault::NeedsFrame) };
    pend(h, rows, transducer(h, Step::Cat, &[])?).map(Control::Value)
}

static BOUND: NativeFn = NativeFn::new("take", bound_step).keeps_reasons();

/// The register for the function.
const BOUND_F: usize = 1;
/// The register for the number of elements to take.
const COUNT: usize = 2;
/// The register for its first argument.
const ARGS: usize = 3;

/// Makes the call again with as many elements of the endless sequences as the shortest of the other collections has;
/// the collections are the arguments from number `from` on.
fn bound<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call, from: usize) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let mut count = usize::MAX;
    for &coll in &args[from..] {
        if !matches!(coll, Value::Endless(_)) {
            count = count.min(args::seq(h, "map", coll)?.len());
        }
    }
    bound_to(h, s, call, from, count)
}

/// Makes the call again with `count` elements of the endless sequences among the arguments from number `from` on.
fn bound_to<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call, from: usize, count: usize) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    h.check_available((args.len() + ARGS) * 16)?;
    let mut registers = vec![Value::Nil, s.stack[call.at()], Value::count(count)];
    registers.extend_from_slice(args);
    let control = s.push_native(h, &BOUND, call, &registers)?;
    s.note(false, from);
    Ok(control)
}

fn bound_step<'h>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    let Some(NativeFrame { base, mut called, mut index, .. }) = s.native_frame() else { return Ok(Control::Frame) };
    let argc = s.registers_from(ARGS);
    loop {
        h.meter.set_restart();
        if called && index == argc {
            return Ok(Control::Value(s.stack[base + RESULT]));
        }
        if called {
            s.stack[base + ARGS + index] = s.stack[base + RESULT];
        } else {
            h.charge(1)?;
            if index == argc {
                return s.call_with_registers(h, s.stack[base + BOUND_F], ARGS);
            }
            if let e @ Value::Endless(_) = s.stack[base + ARGS + index] {
                return s.call_from_native(h, Value::Builtin(TAKE), &[s.stack[base + COUNT], e]);
            }
        }
        (index, called) = (index + 1, false);
        s.note(false, index);
    }
}
