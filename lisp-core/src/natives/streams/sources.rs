//! Endless sequences as sources: their steps, and `repeatedly`.

use super::engine::{Plan, Sink, start};
use crate::builtins::Builtin;
use crate::builtins::args::{self, function, transducer};
use crate::builtins::streams::endless;
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Compose, Composed, Fault, Res, Source, Step, Value, Vector};
use crate::natives::registers::vector;
use crate::stack::{Call, Control, State};

pub(super) const TABLE: &[Builtin] =
    &[Builtin::calling("repeatedly", 1, 2, "(repeatedly f) (repeatedly n f)", start_repeatedly).doc(
        "Returns the results of n calls of f; without n an endless sequence of them.",
        &[("(repeatedly 2 (fn [] :x))", "[:x :x]"), ("(repeatedly 2 :x)", "!arity_error")],
    )];

/// Returns the deferred steps.
pub(super) fn steps<'h>(e: &Composed<'h>) -> Res<&'h Vector<'h>> {
    match e.parts().first() {
        Some(Value::Vector(steps)) => Ok(steps),
        _ => Err(Fault::NeedsFrame),
    }
}

/// Returns the same source with other steps.
pub(super) fn with_steps<'h>(h: &'h Ctx, e: &Composed<'h>, steps: Value<'h>) -> Res<Value<'h>> {
    let Compose::Source(source) = e.kind else { return Err(Fault::NeedsFrame) };
    let parts = e.parts();
    h.charge(parts.len() as u64)?;
    let all = h.vector_from(parts.len(), std::iter::once(steps).chain(parts[1..].iter().copied()))?;
    h.endless(source, vector(all))
}

/// Returns the sequence with one more deferred step. The vector of steps does not grow in place, because a later fault
/// would leave traces.
pub(super) fn pend<'h>(h: &'h Ctx, e: &Composed<'h>, step: Value<'h>) -> Res<Value<'h>> {
    let steps = steps(e)?.items();
    h.charge(cost::moved(steps.len() + 1))?;
    let steps = h.vector_from(steps.len() + 1, steps.iter().copied().chain([step]))?;
    with_steps(h, e, steps)
}

/// Returns the sequence with another last step.
pub(super) fn with_last_step<'h>(h: &'h Ctx, e: &Composed<'h>, last: Value<'h>) -> Res<Value<'h>> {
    let steps = steps(e)?.items();
    h.charge(cost::moved(steps.len()))?;
    let others = steps.iter().copied().take(steps.len().saturating_sub(1));
    let steps = h.vector_from(steps.len(), others.chain([last]))?;
    with_steps(h, e, steps)
}

fn start_repeatedly<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let f = function("repeatedly", args[args.len() - 1])?;
    let source = endless(h, Source::Repeatedly, &[f])?;
    let [n, _] = *args else { return Ok(Control::Value(source)) };
    let n = args::amount("repeatedly", n)?;
    if n <= 0 {
        return h.vector(&[]).map(Control::Value);
    }
    take(h, s, call, source, n)
}

/// Returns the first elements as a vector: at least one.
pub(super) fn take<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call, source: Value<'h>, n: i64) -> Res<Control<'h>> {
    let steps = h.vec_single(transducer(h, Step::Take, &[Value::Int(n)])?)?;
    let nil = Value::Nil;
    start(h, s, call, &Plan { sink: Sink::Vector, target: nil, acc: nil, source, steps, transduces: false })
}
