//! Calls of functions made of others.

use super::registers::RESULT;
use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Compose, Composed, Res, Value};
use crate::stack::{Call, Control, NativeFn, NativeFrame, State};

/// Calls a function made of others. One that calls a single part prepares that call instead, so a long chain of them
/// takes no frame.
pub(crate) fn call<'h>(c: &'h Composed<'h>, h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    match c.kind {
        Compose::Constantly => Ok(Control::Value(c.parts().first().copied().unwrap_or(Value::Nil))),
        Compose::Partial => call_partial(c, h, s, call),
        Compose::Fnil => call_fnil(c, h, s, call),
        Compose::Comp if c.parts().is_empty() => {
            Ok(Control::Value(s.stack[call.args()].first().copied().unwrap_or(Value::Nil)))
        }
        Compose::Comp => start::<Comp>(c, h, s, call),
        Compose::Juxt => start::<Juxt>(c, h, s, call),
        Compose::Complement => start::<Complement>(c, h, s, call),
        Compose::EveryPred => start::<EveryPred>(c, h, s, call),
        Compose::SomeFn => start::<SomeFn>(c, h, s, call),
        Compose::Completing => call_completing(c, h, s, call),
        Compose::Step(_) | Compose::Source(_) => {
            let error = Error::new(Reason::NotCallable, "a transducer is not a function of values");
            Err(error.hint("write (into [] xf coll), (sequence xf coll) or (transduce xf f coll)").into())
        }
        Compose::Reduced => {
            let error = Error::new(Reason::NotCallable, "a reduced value is not a function");
            Err(error.hint("write (unreduced r) for its value").into())
        }
    }
}

fn call_partial<'h>(c: &'h Composed<'h>, h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let argc = call.argc();
    let above = call.args().end;
    let given = above + c.parts().len();
    h.charge((argc + c.parts().len()) as u64)?;
    s.ensure(h, given + argc)?;
    s.stack[above..given].copy_from_slice(c.parts());
    s.stack.copy_within(call.args(), given);
    Ok(Control::Call(Call::new(above, argc + c.parts().len() - 1, call.dst)))
}

/// With one argument the walk is at its end: the other function is called, if there is one.
fn call_completing<'h>(c: &'h Composed<'h>, h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let f = match (call.argc(), c.parts()) {
        (1, [_, end]) => *end,
        (1, _) => return Ok(Control::Value(s.stack[call.args().start])),
        (_, [f, ..]) => *f,
        _ => Value::Nil,
    };
    let (argc, above) = (call.argc(), call.args().end);
    h.charge(argc as u64)?;
    s.ensure(h, above + 1 + argc)?;
    s.stack[above] = f;
    s.stack.copy_within(call.args(), above + 1);
    Ok(Control::Call(Call::new(above, argc, call.dst)))
}

fn call_fnil<'h>(c: &'h Composed<'h>, h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let argc = call.argc();
    let above = call.args().end;
    h.charge(argc as u64)?;
    s.ensure(h, above + 1 + argc)?;
    s.stack.copy_within(call.at()..above, above);
    s.stack[above] = c.parts().first().copied().unwrap_or(Value::Nil);
    for (slot, &default) in s.stack[above + 1..above + 1 + argc].iter_mut().zip(&c.parts()[1..]) {
        if slot.is_nil() {
            *slot = default;
        }
    }
    Ok(Control::Call(Call::new(above, argc, call.dst)))
}

/// The register for the function made of others.
const COMPOSED: usize = 1;
/// The register for the value under construction.
const BUILT: usize = 2;
/// The register for the first argument; the others follow.
const ARGS: usize = 3;

/// A function made of others that calls them one after the other. Its frame has the registers [`RESULT`], [`COMPOSED`],
/// [`BUILT`] and the arguments from [`ARGS`] on.
trait Composition: Sized {
    const NAME: &'static str;
    /// The native function of its frames.
    const NATIVE: &'static NativeFn = &NativeFn::new(Self::NAME, step::<Self>).keeps_reasons();

    /// Returns the initial value under construction.
    fn built<'h>(_h: &'h Ctx, _parts: usize) -> Res<Value<'h>> {
        Ok(Value::Nil)
    }

    /// Returns the number of calls for a number of parts and of arguments.
    fn calls(parts: usize, _argc: usize) -> usize {
        parts
    }

    /// Returns call number `index`: the part, and its argument if that is not all arguments.
    fn next<'h>(_own: &[Value<'h>], parts: &[Value<'h>], index: usize) -> (Value<'h>, Option<Value<'h>>) {
        (parts[index], None)
    }

    /// Takes the result of a call; returning a value ends the call of the whole.
    fn take<'h>(_h: &'h Ctx, _own: &[Value<'h>], _is_last: bool) -> Res<Option<Value<'h>>> {
        Ok(None)
    }

    /// Returns the value of the whole, after the last call.
    fn finish<'h>(_h: &'h Ctx, own: &[Value<'h>]) -> Res<Value<'h>> {
        Ok(own[RESULT])
    }
}

fn start<'h, F: Composition>(c: &'h Composed<'h>, h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let built = F::built(h, c.parts().len())?;
    let argc = call.argc();
    h.charge(argc as u64)?;
    h.check_available((argc + ARGS) * 16)?;
    let mut registers = vec![Value::Nil, Value::Composed(c), built];
    registers.extend_from_slice(&s.stack[call.args()]);
    s.push_native(h, F::NATIVE, call, &registers)
}

fn step<'h, F: Composition>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    let Some(NativeFrame { base, called, mut index, .. }) = s.native_frame() else { return Ok(Control::Frame) };
    let Value::Composed(c) = s.stack[base + COMPOSED] else { return Ok(Control::Value(Value::Nil)) };
    let parts = c.parts();
    let calls = F::calls(parts.len(), s.registers_from(ARGS));
    h.meter.set_restart();
    if called {
        if let Some(value) = F::take(h, &s.stack[base..], index + 1 == calls)? {
            return Ok(Control::Value(value));
        }
        index += 1;
        s.note(false, index);
        h.meter.set_restart();
    }
    if index >= calls {
        return F::finish(h, &s.stack[base..]).map(Control::Value);
    }
    h.charge(1)?;
    match F::next(&s.stack[base..], parts, index) {
        (f, Some(argument)) => s.call_from_native(h, f, &[argument]),
        (f, None) => s.call_with_registers(h, f, ARGS),
    }
}

struct Comp;

impl Composition for Comp {
    const NAME: &'static str = "comp";

    fn next<'h>(own: &[Value<'h>], parts: &[Value<'h>], index: usize) -> (Value<'h>, Option<Value<'h>>) {
        (parts[parts.len() - 1 - index], (index > 0).then_some(own[RESULT]))
    }
}

struct Juxt;

impl Composition for Juxt {
    const NAME: &'static str = "juxt";

    fn built<'h>(h: &'h Ctx, parts: usize) -> Res<Value<'h>> {
        h.vec_builder(parts).map(Value::VecBuilder)
    }

    fn take<'h>(h: &'h Ctx, own: &[Value<'h>], _: bool) -> Res<Option<Value<'h>>> {
        if let Value::VecBuilder(results) = own[BUILT] {
            results.push(h, own[RESULT])?;
        }
        Ok(None)
    }

    fn finish<'h>(h: &'h Ctx, own: &[Value<'h>]) -> Res<Value<'h>> {
        match own[BUILT] {
            Value::VecBuilder(results) => results.finish(h),
            _ => Ok(Value::Nil),
        }
    }
}

struct Complement;

impl Composition for Complement {
    const NAME: &'static str = "complement";

    fn take<'h>(_: &'h Ctx, own: &[Value<'h>], _: bool) -> Res<Option<Value<'h>>> {
        Ok(Some(Value::Bool(!own[RESULT].truthy())))
    }
}

/// Every part is called with every argument, as in [`SomeFn`].
struct EveryPred;

impl Composition for EveryPred {
    const NAME: &'static str = "every-pred";

    fn calls(parts: usize, argc: usize) -> usize {
        parts * argc
    }

    fn next<'h>(own: &[Value<'h>], parts: &[Value<'h>], index: usize) -> (Value<'h>, Option<Value<'h>>) {
        (parts[index % parts.len()], Some(own[ARGS + index / parts.len()]))
    }

    fn take<'h>(_: &'h Ctx, own: &[Value<'h>], _: bool) -> Res<Option<Value<'h>>> {
        Ok((!own[RESULT].truthy()).then_some(Value::Bool(false)))
    }

    fn finish<'h>(_: &'h Ctx, _: &[Value<'h>]) -> Res<Value<'h>> {
        Ok(Value::Bool(true))
    }
}

struct SomeFn;

impl Composition for SomeFn {
    const NAME: &'static str = "some-fn";

    fn calls(parts: usize, argc: usize) -> usize {
        parts * argc
    }

    fn next<'h>(own: &[Value<'h>], parts: &[Value<'h>], index: usize) -> (Value<'h>, Option<Value<'h>>) {
        EveryPred::next(own, parts, index)
    }

    fn take<'h>(_: &'h Ctx, own: &[Value<'h>], is_last: bool) -> Res<Option<Value<'h>>> {
        Ok((own[RESULT].truthy() || is_last).then_some(own[RESULT]))
    }
}
