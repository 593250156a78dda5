//! The frame of a walk: elements of a source, one at a time, through steps into a sink. Each transition can be done
//! again: what it changes it changes last.

use super::steps;
use super::walk::{
    ACC, BEGIN, CELLS, CELLS_EACH, CURRENT, DEEPEST, END, ENOUGH, ENTER, FLUSHED, NEXT, OWN, PLACE, ROWS, SINK, SOURCE,
    STEPS, TARGET, Then, cells, number, step_of,
};
use crate::builtins::streams::reduced;
use crate::builtins::{id_of, numbers, seqs};
use crate::code::BuiltinId;
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Compose, Composed, Res, Source, Step, Value};
use crate::natives::MAP;
use crate::natives::direct::DirectFn;
use crate::natives::registers::{RESULT, builder, vector};
use crate::stack::{Call, Code, Control, NativeFn, NativeFrame, State};

/// What happens with the elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::natives) enum Sink {
    /// Collects them in a vector.
    Vector,
    /// Adds them to the target.
    Into,
    /// Returns the first, or the target.
    First,
    /// Collects them in a vector, and returns it in a pair with the target.
    Pair,
    /// Combines them with the target.
    Reduce,
    /// Combines them with the target, and calls it at the end.
    Transduce,
    /// Returns the first true result of the target.
    Some,
    /// Returns whether the target is true for all.
    Every,
    /// Returns whether the target is true for none.
    NotAny,
    /// Returns whether the target is false for at least one.
    NotEvery,
}

const SINKS: [Sink; 10] = [
    Sink::Vector,
    Sink::Into,
    Sink::First,
    Sink::Pair,
    Sink::Reduce,
    Sink::Transduce,
    Sink::Some,
    Sink::Every,
    Sink::NotAny,
    Sink::NotEvery,
];

/// The plan of a walk.
pub(in crate::natives) struct Plan<'h> {
    pub(in crate::natives) sink: Sink,
    pub(in crate::natives) target: Value<'h>,
    /// The initial value of a sink that combines; unset to use the first element.
    pub(in crate::natives) acc: Value<'h>,
    /// A vector or an endless sequence.
    pub(in crate::natives) source: Value<'h>,
    /// Further steps after those of an endless source.
    pub(in crate::natives) steps: &'h [Value<'h>],
    /// Whether elements that steps hold back are flushed at the end, and the function is called for the initial value.
    pub(in crate::natives) transduces: bool,
}

static WALK: NativeFn = NativeFn::new("sequence", step);

const VECTOR: BuiltinId = id_of("vector");

/// Starts a walk in place of a call.
pub(in crate::natives) fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call, plan: &Plan<'h>) -> Res<Control<'h>> {
    let (waiting, place) = match plan.source {
        Value::Endless(e) => (vector(e.parts()[0]), first_place(e)),
        _ => (&[][..], Value::Int(0)),
    };
    let count = waiting.len() + plan.steps.len();
    h.charge(cost::moved(count * CELLS_EACH + CELLS))?;
    let all = if waiting.is_empty() || plan.steps.is_empty() {
        h.vector(if waiting.is_empty() { plan.steps } else { waiting })?
    } else {
        h.vector_from(count, waiting.iter().chain(plan.steps).copied())?
    };
    let acc = match plan.sink {
        Sink::Vector | Sink::Into | Sink::Pair => Value::VecBuilder(h.vec_builder(0)?),
        _ => plan.acc,
    };
    h.check_available((count * CELLS_EACH + CELLS) * 16)?;
    let nil = Value::Nil;
    let sink = Value::count(SINKS.iter().position(|sink| *sink == plan.sink).unwrap_or(0));
    let flushed = if plan.transduces { Value::Unset } else { nil };
    let zero = Value::Int(0);
    let mut own = vec![nil, sink, plan.target, plan.source, place, nil, all, nil, zero, zero, flushed, acc];
    own.resize(CELLS + count * CELLS_EACH, Value::Unset);
    let steps = vector(all);
    for (i, &step) in steps.iter().enumerate() {
        steps::prepare(h, &mut own, i, step)?;
    }
    let control = s.push_native(h, &WALK, call, &own)?;
    let begins = plan.sink == Sink::Transduce && matches!(plan.acc, Value::Unset);
    s.note(false, if begins { BEGIN } else { NEXT });
    Ok(control)
}

/// Returns the initial position of an endless source.
fn first_place<'h>(e: &Composed<'h>) -> Value<'h> {
    match (e.kind, e.parts()) {
        (Compose::Source(Source::Range), [_, start, ..]) => *start,
        (Compose::Source(Source::Cycle), [_, _, at, ..]) => *at,
        (Compose::Source(Source::Zip), _) => Value::Int(0),
        _ => Value::Unset,
    }
}

/// Returns the target of a vector sink without a limit of elements; the sink does not use the target.
pub(super) const fn unbounded<'h>() -> Value<'h> {
    Value::Bool(true)
}

/// The number of innermost frames in which to search for a walk.
const NEAR: usize = 4;

/// Returns true if one of the innermost frames walks an endless sequence without a limit of elements.
pub(crate) fn walks_without_end(s: &State<'_>) -> bool {
    let walk = s.frames.iter().rev().take(NEAR).find_map(|frame| match frame.code {
        Code::Native { native, .. } if std::ptr::eq(native, &WALK) => s.stack.get(frame.base as usize..),
        _ => None,
    });
    let Some(own @ [_, _, target, Value::Endless(_), ..]) = walk else { return false };
    match sink_of(own) {
        Sink::Vector => matches!(target, Value::Bool(true)),
        // Their steps may include `take`.
        Sink::Into | Sink::Pair | Sink::Transduce => false,
        Sink::First | Sink::Reduce | Sink::Some | Sink::Every | Sink::NotAny | Sink::NotEvery => true,
    }
}

/// Continues the walk on top.
fn step<'h>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    let Some(NativeFrame { base, mut called, mut index, .. }) = s.native_frame() else { return Ok(Control::Frame) };
    loop {
        h.meter.set_restart();
        h.charge(1)?;
        match transition(h, &mut s.stack[base..], index, called)? {
            Then::Go(to) => {
                (index, called) = (to, false);
                s.note(false, to);
            }
            Then::Done(value) => return Ok(Control::Value(value)),
            Then::Call(f, args, argc) => {
                let Some(direct) = DirectFn::of(h, f, argc) else { return s.call_from_native(h, f, &args[..argc]) };
                let value = direct.call(h, &args[..argc])?;
                s.note_result(value);
                called = true;
            }
            Then::CallWith(f, args) => {
                h.charge(cost::moved(args.len()))?;
                return s.call_from_native(h, f, args);
            }
        }
    }
}

fn transition<'h>(h: &'h Ctx, own: &mut [Value<'h>], index: usize, called: bool) -> Res<Then<'h>> {
    match index {
        NEXT => next(h, own, called),
        BEGIN if called => {
            own[ACC] = own[RESULT];
            Ok(Then::Go(NEXT))
        }
        BEGIN => Ok(Then::Call(own[TARGET], [Value::Nil; 2], 0)),
        END => end(h, own, called),
        _ => {
            let all = vector(own[STEPS]);
            match all.get(index - ENTER) {
                Some(&step) => steps::enter(h, own, index - ENTER, step, called),
                None => sink(h, own, all.len(), called),
            }
        }
    }
}

/// Returns the next element: of the deepest list, of what steps hold back, or of the source.
fn next<'h>(h: &'h Ctx, own: &mut [Value<'h>], called: bool) -> Res<Then<'h>> {
    let deepest = number(own[DEEPEST]);
    if deepest > 0 {
        if deepest < number(own[ENOUGH]) {
            own[DEEPEST] = Value::Int(0);
            return Ok(Then::Go(NEXT));
        }
        let [_, list, at, before] = cells(own, deepest - 1) else { return Ok(Then::Go(NEXT)) };
        let (items, place, below) = (vector(*list), number(*at), *before);
        let Some(&item) = items.get(place) else {
            own[DEEPEST] = below;
            return Ok(Then::Go(NEXT));
        };
        let is_last = place + 1 == items.len();
        if is_last {
            *list = Value::Unset;
        } else {
            *at = Value::count(place + 1);
        }
        if is_last {
            own[DEEPEST] = below;
        }
        own[CURRENT] = item;
        return Ok(Then::Go(ENTER + deepest));
    }
    match own[FLUSHED] {
        Value::Int(_) => flush(h, own),
        _ if number(own[ENOUGH]) == 0 => pull(h, own, called),
        Value::Unset => {
            own[FLUSHED] = Value::Int(0);
            Ok(Then::Go(NEXT))
        }
        _ => finish(h, own),
    }
}

/// Returns what the next step holds back; the end after the last one.
fn flush<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Then<'h>> {
    let step = number(own[FLUSHED]);
    let Some(&of) = vector(own[STEPS]).get(step) else { return finish(h, own) };
    let held = match step_of(of) {
        // A later step needs no more elements.
        _ if step < number(own[ENOUGH]) => None,
        Some((Step::PartitionBy | Step::PartitionAll, _)) => builder(cells(own, step)[OWN]).filter(|b| !b.is_empty()),
        _ => None,
    };
    let Some(held) = held else {
        own[FLUSHED] = Value::count(step + 1);
        return Ok(Then::Go(NEXT));
    };
    let held = held.finish(h)?;
    cells(own, step)[OWN] = Value::Unset;
    own[FLUSHED] = Value::count(step + 1);
    own[CURRENT] = held;
    Ok(Then::Go(ENTER + step + 1))
}

/// Returns the next element of the source.
fn pull<'h>(h: &'h Ctx, own: &mut [Value<'h>], called: bool) -> Res<Then<'h>> {
    let place = own[PLACE];
    let (item, after) = match own[SOURCE] {
        Value::Endless(e) => match (e.kind, e.parts()) {
            (Compose::Source(Source::Range), [_, _, by, ..]) => (place, numbers::add(h, place, *by)?),
            (Compose::Source(Source::Repeat), [_, item, ..]) => (*item, place),
            (Compose::Source(Source::Cycle), [_, Value::Vector(items), ..]) if !items.is_empty() => {
                let at = number(place);
                (items.get(at).unwrap_or(Value::Nil), Value::count((at + 1) % items.len()))
            }
            (Compose::Source(Source::Iterate), [_, f, first, ..]) => match place {
                _ if called => (own[RESULT], own[RESULT]),
                Value::Unset => (*first, *first),
                last => return Ok(Then::Call(*f, [last, Value::Nil], 1)),
            },
            (Compose::Source(Source::Repeatedly), [_, _, ..]) if called => (own[RESULT], place),
            (Compose::Source(Source::Repeatedly), [_, f, ..]) => return Ok(Then::Call(*f, [Value::Nil; 2], 0)),
            (Compose::Source(Source::Zip), [_, lists @ ..]) => {
                let rows = vector(if called { own[RESULT] } else { own[ROWS] });
                match rows.get(number(place)) {
                    Some(&row) => {
                        if called {
                            own[ROWS] = own[RESULT];
                        }
                        (row, Value::count(number(place) + 1))
                    }
                    None => return more_rows(h, lists, rows.len()),
                }
            }
            _ => return finish(h, own),
        },
        source => match vector(source).get(number(place)) {
            Some(&item) => (item, Value::count(number(place) + 1)),
            None => {
                own[FLUSHED] = Value::Int(0);
                return Ok(Then::Go(NEXT));
            }
        },
    };
    (own[CURRENT], own[PLACE]) = (item, after);
    Ok(Then::Go(ENTER))
}

/// Makes rows of the elements of endless sequences: twice as many as before.
fn more_rows<'h>(h: &'h Ctx, lists: &[Value<'h>], rows: usize) -> Res<Then<'h>> {
    let count = rows.saturating_mul(2).max(8);
    let range = seqs::range(h, Value::Int(0), Value::count(count), Value::Int(1))?;
    h.charge(cost::moved(lists.len() + 2))?;
    let args = std::iter::once(Value::Builtin(VECTOR)).chain(lists.iter().copied()).chain([range]);
    let args = h.vector_from(lists.len() + 2, args)?;
    Ok(Then::CallWith(Value::Builtin(MAP), vector(args)))
}

/// Passes an element to the sink.
fn sink<'h>(h: &'h Ctx, own: &mut [Value<'h>], steps: usize, called: bool) -> Res<Then<'h>> {
    let sink = sink_of(own);
    let current = own[CURRENT];
    match sink {
        Sink::Vector | Sink::Into | Sink::Pair => {
            if let Some(all) = builder(own[ACC]) {
                all.push(h, current)?;
            }
        }
        Sink::First => return Ok(Then::Done(current)),
        Sink::Reduce | Sink::Transduce => match own[ACC] {
            _ if called => match reduced(own[RESULT]) {
                Some(last) => {
                    own[ACC] = last;
                    own[ENOUGH] = Value::count(steps + 1);
                }
                None => own[ACC] = own[RESULT],
            },
            Value::Unset => own[ACC] = current,
            acc => return Ok(Then::Call(own[TARGET], [acc, current], 2)),
        },
        _ if !called => return Ok(Then::Call(own[TARGET], [current, Value::Nil], 1)),
        Sink::Some if own[RESULT].truthy() => return Ok(Then::Done(own[RESULT])),
        Sink::NotAny if own[RESULT].truthy() => return Ok(Then::Done(Value::Bool(false))),
        Sink::Every if !own[RESULT].truthy() => return Ok(Then::Done(Value::Bool(false))),
        Sink::NotEvery if !own[RESULT].truthy() => return Ok(Then::Done(Value::Bool(true))),
        Sink::Some | Sink::Every | Sink::NotAny | Sink::NotEvery => {}
    }
    Ok(Then::Go(NEXT))
}

fn sink_of(own: &[Value<'_>]) -> Sink {
    SINKS.get(number(own[SINK])).copied().unwrap_or(Sink::Vector)
}

/// Returns the value of the walk, or what is still to be done with it.
fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Then<'h>> {
    let sink = sink_of(own);
    Ok(Then::Done(match sink {
        Sink::Vector | Sink::Into | Sink::Pair => {
            let all = match builder(own[ACC]) {
                Some(all) => all.finish(h)?,
                None => Value::Nil,
            };
            if sink == Sink::Vector {
                return Ok(Then::Done(all));
            }
            own[ACC] = all;
            return Ok(Then::Go(END));
        }
        Sink::Transduce => return Ok(Then::Go(END)),
        Sink::Reduce => own[ACC],
        Sink::First => own[TARGET],
        Sink::Some => Value::Nil,
        Sink::Every | Sink::NotAny => Value::Bool(true),
        Sink::NotEvery => Value::Bool(false),
    }))
}

fn end<'h>(h: &'h Ctx, own: &mut [Value<'h>], called: bool) -> Res<Then<'h>> {
    Ok(Then::Done(match sink_of(own) {
        Sink::Into => seqs::into(h, &[own[TARGET], own[ACC]])?,
        Sink::Pair => h.vector(&[own[ACC], own[TARGET]])?,
        Sink::Transduce if !called => return Ok(Then::Call(own[TARGET], [own[ACC], Value::Nil], 1)),
        _ => own[RESULT],
    }))
}
