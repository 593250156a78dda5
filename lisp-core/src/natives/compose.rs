//! Functions that make functions of others, and the calls of those.

use super::accepts::{function, not_function};
use super::registers::RESULT;
use crate::builtins::{Builtin, BuiltinId, Lowering, MANY, id_of};
use crate::context::Ctx;
use crate::heap::{Compose, Composed, Res, Value};
use crate::stack::{Call, Control, NativeFn, NativeFrame, State};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("partial", 1, MANY, "(partial f arg1 ...)", partial).doc(
        "A function that calls f with these arguments in front.",
        &[("((partial + 1) 2)", "3"), ("((partial 1) 2)", "!not_callable")],
    ),
    Builtin::direct("comp", 0, MANY, "(comp f g ...)", comp).doc(
        "A function that calls the last, and each other with the result of the one behind it.",
        &[("((comp inc #(* 2 %)) 5)", "11"), ("((comp inc 1) 2)", "!not_callable")],
    ),
    Builtin::direct("juxt", 1, MANY, "(juxt f g ...)", juxt).lowered(Lowering::ChecksArity).doc(
        "A function that returns a vector of what each function returns.",
        &[("((juxt inc dec) 5)", "[6 4]"), ("((juxt 1) 2)", "!not_callable")],
    ),
    Builtin::direct("complement", 1, 1, "(complement f)", complement).doc(
        "A function that returns the opposite of f.",
        &[("((complement odd?) 2)", "true"), ("(complement 1)", "!type_error")],
    ),
    Builtin::direct("constantly", 1, 1, "(constantly x)", constantly)
        .doc("A function that always returns x.", &[("((constantly 7) 1 2)", "7"), ("(constantly)", "!arity_error")]),
    Builtin::direct("fnil", 2, 2, "(fnil f default)", fnil).doc(
        "A function that calls f with a default in place of a nil first argument.",
        &[("((fnil inc 0) nil)", "1"), ("(fnil 1 0)", "!type_error")],
    ),
    Builtin::direct("every-pred", 1, MANY, "(every-pred p1 p2 ...)", every_pred).doc(
        "A function that asks whether all predicates are true for all arguments.",
        &[("((every-pred odd? pos?) 3)", "true"), ("(every-pred 1)", "!type_error")],
    ),
    Builtin::direct("some-fn", 1, MANY, "(some-fn f1 f2 ...)", some_fn).doc(
        "A function that returns the first true result.",
        &[("((some-fn :a :b) {:b 2})", "2"), ("(some-fn 1)", "!type_error")],
    ),
];

/// Calls a function made of others. One that calls a single part lays that call out anew, so a long chain of them takes
/// no frame.
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

/// The register for the parts.
const PARTS: usize = 1;
/// The register for the value under construction.
const BUILT: usize = 2;
/// The register for the first argument; the others follow.
const ARGS: usize = 3;

/// A function made of others that calls them in turn. Its frame has the registers [`RESULT`], [`PARTS`], [`BUILT`] and
/// the arguments from [`ARGS`] on.
trait Composition: Sized {
    const NAME: &'static str;
    /// What its frames refer to.
    const NATIVE: &'static NativeFn = &NativeFn::new(Self::NAME, step::<Self>).keeps_reasons();

    /// What is built, before the first call.
    fn built<'h>(_h: &'h Ctx, _parts: usize) -> Res<Value<'h>> {
        Ok(Value::Nil)
    }

    /// The number of calls that a number of parts makes with a number of arguments.
    fn calls(parts: usize, _argc: usize) -> usize {
        parts
    }

    /// Call number `index`: the part, and its argument if that is not all arguments.
    fn next<'h>(_own: &[Value<'h>], parts: &[Value<'h>], index: usize) -> (Value<'h>, Option<Value<'h>>) {
        (parts[index], None)
    }

    /// Takes the result of a call; a value ends the whole.
    fn take<'h>(_h: &'h Ctx, _own: &[Value<'h>], _is_last: bool) -> Res<Option<Value<'h>>> {
        Ok(None)
    }

    /// The value of the whole, after the last call.
    fn finish<'h>(_h: &'h Ctx, own: &[Value<'h>]) -> Res<Value<'h>> {
        Ok(own[RESULT])
    }
}

fn start<'h, F: Composition>(c: &'h Composed<'h>, h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let built = F::built(h, c.parts().len())?;
    let argc = call.argc();
    h.charge(argc as u64)?;
    h.check_available((argc + ARGS) * 16)?;
    let mut registers = vec![Value::Nil, h.vector(c.parts())?, built];
    registers.extend_from_slice(&s.stack[call.args()]);
    s.push_native(h, F::NATIVE, call, &registers)
}

fn step<'h, F: Composition>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    let Some(NativeFrame { base, called, mut index, .. }) = s.native_frame() else { return Ok(Control::Frame) };
    let parts = super::registers::vector(s.stack[base + PARTS]);
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

fn composed<'h>(h: &'h Ctx, kind: Compose, parts: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(parts.len() as u64)?;
    h.composed(kind, parts)
}

fn functions<'h>(h: &'h Ctx, name: &str, kind: Compose, parts: &[Value<'h>]) -> Res<Value<'h>> {
    for &f in parts {
        if !f.is_callable() {
            function(name, f)?;
        }
    }
    composed(h, kind, parts)
}

fn partial<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    composed(h, Compose::Partial, args)
}

/// What no functions compose to.
const IDENTITY: BuiltinId = id_of("identity");

fn comp<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args {
        [only] => Ok(*only),
        [] => Ok(Value::Builtin(IDENTITY)),
        _ => composed(h, Compose::Comp, args),
    }
}

fn juxt<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    composed(h, Compose::Juxt, args)
}

fn complement<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    functions(h, "complement", Compose::Complement, args)
}

fn constantly<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    composed(h, Compose::Constantly, args)
}

fn fnil<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args.first() {
        Some(&(Value::Set(_) | Value::Keyword(..))) => {
            Err(not_function("fnil", args[0], "wrap the look-up: #(get m %)"))
        }
        Some(&f) => {
            function("fnil", f)?;
            composed(h, Compose::Fnil, args)
        }
        None => Ok(Value::Nil),
    }
}

fn every_pred<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    functions(h, "every-pred", Compose::EveryPred, args)
}

fn some_fn<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    functions(h, "some-fn", Compose::SomeFn, args)
}
