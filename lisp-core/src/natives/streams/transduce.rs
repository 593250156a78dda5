//! Functions that walk with transducers, and related ones.

use super::engine::{Plan, Sink, start};
use super::sources::{pend, take};
use super::steps::steps_of;
use super::walk::step_of;
use crate::builtins::args::{function, transducer};
use crate::builtins::streams::endless;
use crate::builtins::{Builtin, MANY};
use crate::context::Ctx;
use crate::error::Error;
use crate::heap::{Compose, Res, Source, Step, Value};
use crate::natives::registers::{items, vector};
use crate::stack::{Call, Control, State};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::calling("transduce", 3, 4, "(transduce xf f init? coll)", start_transduce).doc(
        "Combines the elements after the transducer with f. Without init it starts with (f).",
        &[
            ("(transduce (map inc) + [1 2 3])", "9"),
            ("(transduce (comp (filter odd?) (map #(* % %))) conj [] [1 2 3])", "[1 9]"),
            ("(transduce inc + [1])", "!type_error"),
        ],
    ),
    Builtin::calling("sequence", 1, 2, "(sequence coll) (sequence xf coll)", start_sequence).doc(
        "Returns the elements after the transducer, as a vector.",
        &[
            ("(sequence (comp (map inc) (take 2)) [1 2 3])", "[2 3]"),
            ("(sequence nil)", "[]"),
            ("(sequence inc [1])", "!type_error"),
        ],
    ),
    Builtin::calling("eduction", 1, MANY, "(eduction xf ... coll)", start_eduction).doc(
        "Returns the result of passing the elements through the transducers, one after the other.",
        &[("(eduction (map inc) (filter odd?) [1 2 3])", "[3]"), ("(eduction inc [1])", "!type_error")],
    ),
    Builtin::calling("reductions", 2, 3, "(reductions f init? coll)", start_reductions).doc(
        "Returns the value of reduce after each element.",
        &[
            ("(reductions + [1 2 3])", "[1 3 6]"),
            ("(reductions + 10 [1 2])", "[10 11 13]"),
            ("(reductions 1 [1 2])", "!type_error"),
        ],
    ),
];

/// Returns what can be walked: a vector or an endless sequence.
fn source<'h>(h: &'h Ctx, name: &str, v: Value<'h>) -> Res<Value<'h>> {
    match v {
        Value::Endless(_) => Ok(v),
        other => items(h, name, other),
    }
}

fn start_transduce<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let name = "transduce";
    let (xf, f, acc, coll) = match s.stack[call.args()] {
        [xf, f, init, coll] => (xf, f, init, coll),
        [xf, f, coll] => (xf, f, Value::Unset, coll),
        _ => return Ok(Control::Value(Value::Nil)),
    };
    let steps = steps_of(h, name, xf)?;
    let target = function(name, f)?;
    let source = source(h, name, coll)?;
    start(h, s, call, &Plan { sink: Sink::Transduce, target, acc, source, steps, transduces: true })
}

/// `(into to xf from)`
pub(super) fn start_into<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let &[target, xf, from] = &s.stack[call.args()] else { return Err(Error::endless("into").into()) };
    let steps = steps_of(h, "into", xf)?;
    let source = source(h, "into", from)?;
    start(h, s, call, &Plan { sink: Sink::Into, target, acc: Value::Nil, source, steps, transduces: true })
}

fn start_sequence<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let name = "sequence";
    match s.stack[call.args()] {
        [coll] => source(h, name, coll).map(Control::Value),
        [xf, coll] => {
            let steps = steps_of(h, name, xf)?;
            vector_or_endless(h, s, call, name, steps, coll)
        }
        _ => Ok(Control::Value(Value::Nil)),
    }
}

fn start_eduction<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let name = "eduction";
    let Some((&coll, xfs)) = s.stack[call.args()].split_last() else { return Ok(Control::Value(Value::Nil)) };
    h.charge(xfs.len() as u64)?;
    let all = h.composed(Compose::Comp, xfs)?;
    let steps = steps_of(h, name, all)?;
    vector_or_endless(h, s, call, name, steps, coll)
}

/// Returns the results of steps for the elements: an endless sequence if the source was one, unless a step ends it.
fn vector_or_endless<'h>(
    h: &'h Ctx,
    s: &mut State<'h>,
    call: Call,
    name: &str,
    steps: &'h [Value<'h>],
    coll: Value<'h>,
) -> Res<Control<'h>> {
    let source = source(h, name, coll)?;
    h.charge(steps.len() as u64)?;
    let ends = |of: &Value<'h>| matches!(step_of(*of), Some((Step::Take | Step::TakeWhile | Step::Reductions, _)));
    if let Value::Endless(e) = source
        && !steps.iter().any(ends)
    {
        let mut all = Value::Endless(e);
        for &step in steps {
            if let Value::Endless(e) = all {
                all = pend(h, e, step)?;
            }
        }
        return Ok(Control::Value(all));
    }
    let nil = Value::Nil;
    start(h, s, call, &Plan { sink: Sink::Vector, target: nil, acc: nil, source, steps, transduces: true })
}

fn start_reductions<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let name = "reductions";
    let args = &s.stack[call.args()];
    let f = function(name, args[0])?;
    let source = source(h, name, args[args.len() - 1])?;
    let steps = match *args {
        [_, init, _] => {
            let first = h.vector(&[init])?;
            let steps = [transducer(h, Step::Reductions, &[f, init])?, transducer(h, Step::Prefix, &[first])?];
            vector(h.vector(&steps)?)
        }
        _ => h.vec_single(transducer(h, Step::Reductions, &[f])?)?,
    };
    match source {
        Value::Endless(e) => {
            let mut all = e;
            for &step in steps {
                if let Value::Endless(e) = pend(h, all, step)? {
                    all = e;
                }
            }
            Ok(Control::Value(Value::Endless(all)))
        }
        // For an empty collection, returns what the function returns without arguments.
        Value::Vector(v) if v.is_empty() && args.len() == 2 => {
            let once = endless(h, Source::Repeatedly, &[f])?;
            take(h, s, call, once, 1)
        }
        source => {
            let nil = Value::Nil;
            start(h, s, call, &Plan { sink: Sink::Vector, target: nil, acc: nil, source, steps, transduces: true })
        }
    }
}
