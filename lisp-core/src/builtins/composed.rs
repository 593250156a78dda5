//! Functions that create functions from others.

use super::args::function;
use super::{Builtin, Lowering, MANY, id_of};
use crate::code::BuiltinId;
use crate::context::Ctx;
use crate::heap::{Compose, Res, Value};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("partial", 1, MANY, "(partial f arg1 ...)", partial).doc(
        "Returns a function that calls f with these arguments in front.",
        &[("((partial + 1) 2)", "3"), ("((partial 1) 2)", "!not_callable")],
    ),
    Builtin::direct("comp", 0, MANY, "(comp f g ...)", comp).doc(
        "Returns a function that calls the last function, passes its result to the one before, and so on.",
        &[("((comp inc #(* 2 %)) 5)", "11"), ("((comp inc 1) 2)", "!not_callable")],
    ),
    Builtin::direct("juxt", 1, MANY, "(juxt f g ...)", juxt).lowered(Lowering::ChecksArity).doc(
        "Returns a function that returns a vector of what each function returns.",
        &[("((juxt inc dec) 5)", "[6 4]"), ("((juxt 1) 2)", "!not_callable")],
    ),
    Builtin::direct("complement", 1, 1, "(complement f)", complement).doc(
        "Returns a function that returns the opposite of f.",
        &[("((complement odd?) 2)", "true"), ("(complement 1)", "!type_error")],
    ),
    Builtin::direct("constantly", 1, 1, "(constantly x)", constantly).doc(
        "Returns a function that always returns x.",
        &[("((constantly 7) 1 2)", "7"), ("(constantly)", "!arity_error")],
    ),
    Builtin::direct("fnil", 2, 4, "(fnil f default) (fnil f d1 d2 d3)", fnil).doc(
        "Returns a function that calls f with a default in place of each nil among its first arguments.",
        &[("((fnil + 0 0) nil nil)", "0"), ("((fnil inc 0) nil)", "1"), ("(fnil 1 0)", "!type_error")],
    ),
    Builtin::direct("memoize", 1, 1, "(memoize f)", |_, args| function("memoize", args[0])).doc(
        "Returns the function itself; results are not cached.",
        &[("((memoize inc) 1)", "2"), ("(memoize 1)", "!type_error")],
    ),
    Builtin::direct("every-pred", 1, MANY, "(every-pred p1 p2 ...)", every_pred).doc(
        "Returns a function that returns whether all predicates are true for all arguments.",
        &[("((every-pred odd? pos?) 3)", "true"), ("(every-pred 1)", "!type_error")],
    ),
    Builtin::direct("some-fn", 1, MANY, "(some-fn f1 f2 ...)", some_fn).doc(
        "Returns a function that returns the first true result.",
        &[("((some-fn :a :b) {:b 2})", "2"), ("(some-fn 1)", "!type_error")],
    ),
];

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

/// The composition of no functions.
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
