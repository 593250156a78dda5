//! Functions that call one function for each element, and the loop that they share.

use super::accepts::{self, Accepts};
use super::direct::DirectFn;
use super::registers::{ACC, FUNCTION, ITEMS, RESULT, items, vector};
use crate::builtins::{Builtin, Endless, args};
use crate::context::Ctx;
use crate::heap::{Res, Step, Value};
use crate::stack::{Call, Control, NativeFn, NativeFrame, State};

/// A function that calls one function for each element. Its frame has the registers [`RESULT`], [`FUNCTION`],
/// [`ITEMS`], [`ACC`] and two more of its own.
pub(super) trait PerElement: Sized {
    /// Its row; `imp` is [`start`] unless it has to prepare something else.
    const ROW: Builtin;
    /// What it accepts in place of the function.
    const ACCEPTS: Accepts;
    /// Its kind as a step of a walk: called with only a function, it returns a transducer.
    const STEP: Option<Step> = None;

    /// The native function of its frames.
    const NATIVE: &'static NativeFn = &NativeFn::new(Self::ROW.name, step::<Self>).counts(FUNCTION);

    /// What is under construction in [`ACC`].
    const BUILDS: Builds = Builds::Nothing;

    /// Returns the initial value under construction, for `count` elements.
    fn accumulator<'h>(h: &'h Ctx, count: usize) -> Res<Value<'h>> {
        match Self::BUILDS {
            Builds::Nothing => Ok(Value::Nil),
            Builds::Vector => h.vec_builder(0).map(Value::VecBuilder),
            Builds::FullVector => h.vec_builder(count).map(Value::VecBuilder),
            Builds::Map => h.map_builder(0).map(Value::MapBuilder),
        }
    }

    /// Returns the arguments of call number `index`, and their number; `None` after the last.
    #[inline(always)]
    fn arguments<'h>(_own: &[Value<'h>], list: &'h [Value<'h>], index: usize) -> Option<([Value<'h>; 3], usize)> {
        list.get(index).map(|&item| ([item, Value::Nil, Value::Nil], 1))
    }

    /// Takes the result for an element. Changes nothing if it fails.
    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, index: usize) -> Res<After<'h>>;

    /// Returns the value of the whole, after the last element.
    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        match own[ACC] {
            Value::VecBuilder(vector) => vector.finish(h),
            value => Ok(value),
        }
    }
}

/// What a function builds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Builds {
    Nothing,
    Vector,
    /// A vector with as many elements as the collection.
    FullVector,
    Map,
}

/// What to do after an element.
pub(super) enum After<'h> {
    Next,
    Stop(Value<'h>),
}

/// Returns a row for a function whose first argument is the function and whose second is the collection.
pub(super) const fn row<F: PerElement>(name: &'static str, usage: &'static str) -> Builtin {
    match F::STEP {
        Some(step) => Builtin::calling(name, 1, 2, usage, start::<F>).endless(Endless::Step(step)),
        None => Builtin::calling(name, 2, 2, usage, start::<F>),
    }
}

/// Starts a function whose first argument is the function and whose second is the collection.
pub(super) fn start<'h, F: PerElement>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let at = call.args().start;
    if call.argc() == 1 {
        return step_of_walk::<F>(h, s.stack[at]).map(Control::Value);
    }
    walk::<F>(h, s, call, s.stack[at], s.stack[at + 1])
}

/// Returns the function as a transducer.
#[cold]
pub(super) fn step_of_walk<'h, F: PerElement>(h: &'h Ctx, f: Value<'h>) -> Res<Value<'h>> {
    F::ACCEPTS.check(F::ROW.name, f)?;
    match F::STEP {
        Some(step) => args::transducer(h, step, &[f]),
        None => Ok(Value::Nil),
    }
}

/// Starts calling `f` for the elements of a collection.
pub(super) fn walk<'h, F: PerElement>(
    h: &'h Ctx,
    s: &mut State<'h>,
    call: Call,
    f: Value<'h>,
    coll: Value<'h>,
) -> Res<Control<'h>> {
    let list = items(h, F::ROW.name, coll)?;
    walk_vectors::<F>(h, s, call, f, [list, Value::Unset, Value::Unset], vector(list).len())
}

/// Starts calling `f` for `count` elements; `lists` go to the register of the elements and the function's own
/// registers.
pub(super) fn walk_vectors<'h, F: PerElement>(
    h: &'h Ctx,
    s: &mut State<'h>,
    call: Call,
    f: Value<'h>,
    lists: [Value<'h>; 3],
    count: usize,
) -> Res<Control<'h>> {
    if count > 0 || F::ACCEPTS.checked_when_empty {
        F::ACCEPTS.check(F::ROW.name, f)?;
    }
    let acc = F::accumulator(h, count)?;
    let [items, first, second] = lists;
    s.push_native(h, F::NATIVE, call, &[Value::Nil, f, items, acc, first, second])
}

/// Continues the frame on top.
fn step<'h, F: PerElement>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    let Some(NativeFrame { base, mut called, mut index, .. }) = s.native_frame() else { return Ok(Control::Frame) };
    let list = vector(s.stack[base + ITEMS]);
    let f = s.stack[base + FUNCTION];
    let first = F::arguments(&s.stack[base..], list, 0);
    let direct = first.and_then(|(_, argc)| DirectFn::of(h, f, argc));
    loop {
        h.meter.set_restart();
        if called {
            match F::consume(h, &mut s.stack[base..], list[index], index)? {
                After::Next => index += 1,
                After::Stop(value) => return Ok(Control::Value(value)),
            }
            s.note(false, index);
        }
        h.meter.set_restart();
        let Some((args, argc)) = F::arguments(&s.stack[base..], list, index) else {
            s.note(false, NativeFn::FINISHING);
            return F::finish(h, &mut s.stack[base..]).map(Control::Value);
        };
        h.charge(1)?;
        let result = if let Some(direct) = direct {
            direct.call(h, &args[..argc])?
        } else if f.is_callable() || (!F::ACCEPTS.paths && matches!(f, Value::Vector(_))) {
            return s.call_from_native(h, f, &args[..argc]);
        } else {
            accepts::read(h, F::ROW.name, f, args[0], true)?.unwrap_or(Value::Nil)
        };
        s.stack[base + RESULT] = result;
        s.note(true, index);
        called = true;
    }
}
