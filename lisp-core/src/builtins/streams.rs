//! Endless sequences, `reduced`, and other functions around transducers.

use super::args::{self, function};
use super::{Builtin, Endless};
use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Compose, Res, Source, Step, Value};
use crate::text::describe;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("repeat", 1, 2, "(repeat x) (repeat n x)", repeat).doc(
        "Returns a vector of x, n times; without n an endless sequence of it.",
        &[
            ("(repeat 3 :x)", "[:x :x :x]"),
            ("(zipmap [:a :b] (repeat 0))", "{:a 0 :b 0}"),
            ("(repeat :n 1)", "!type_error"),
        ],
    ),
    Builtin::direct("cycle", 1, 1, "(cycle coll)", cycle).doc(
        "Returns the elements again and again, without end.",
        &[("(take 5 (cycle [1 2 3]))", "[1 2 3 1 2]"), ("(cycle [])", "[]"), ("(count (cycle [1]))", "!type_error")],
    ),
    Builtin::direct("iterate", 2, 2, "(iterate f x)", iterate).doc(
        "Returns an endless sequence: x, (f x), (f (f x)) ...",
        &[
            ("(take 4 (iterate #(* 2 %) 1))", "[1 2 4 8]"),
            ("(first (drop-while #(< % 100) (iterate #(* 3 %) 1)))", "243"),
            ("(iterate 1 2)", "!type_error"),
        ],
    ),
    Builtin::direct("cat", 1, 1, "(comp ... cat)", |_, args| {
        Err(Error::new(Reason::TypeError, format!("cat is a transducer, got {}", describe(args[0])))
            .hint("write (into [] cat colls), or (apply concat colls)")
            .into())
    })
    .doc(
        "Concatenates collections, as a transducer.",
        &[("(into [] cat [[1 2] [3]])", "[1 2 3]"), ("(cat [[1]])", "!type_error")],
    ),
    Builtin::direct("completing", 1, 2, "(completing f g?)", completing).doc(
        "Returns a function for transduce that applies f to the elements and g, if given, to the final result.",
        &[("(transduce (map inc) (completing + str) 0 [1 2])", "\"5\""), ("(completing 1)", "!type_error")],
    ),
    Builtin::direct("reduced", 1, 1, "(reduced x)", |h, args| h.composed(Compose::Reduced, args)).doc(
        "Ends reduce, transduce or reductions with x, when the combining function returns it.",
        &[("(reduce (fn [a x] (if (> a 5) (reduced a) (+ a x))) (range))", "6"), ("(reduced)", "!arity_error")],
    ),
    Builtin::direct("reduced?", 1, 1, "(reduced? x)", |_, args| Ok(Value::Bool(reduced(args[0]).is_some()))).doc(
        "Returns whether the value is a result of reduced.",
        &[("(reduced? (reduced 1))", "true"), ("(reduced?)", "!arity_error")],
    ),
    Builtin::direct("unreduced", 1, 1, "(unreduced x)", |_, args| Ok(reduced(args[0]).unwrap_or(args[0]))).doc(
        "Returns the value inside reduced; any other value unchanged.",
        &[("(unreduced (reduced 1))", "1"), ("(unreduced)", "!arity_error")],
    ),
    Builtin::direct("take-nth", 1, 2, "(take-nth n coll)", take_nth).endless(Endless::Step(Step::TakeNth)).doc(
        "Returns the first element and every n-th after it.",
        &[("(take-nth 2 [1 2 3 4 5])", "[1 3 5]"), ("(take-nth 0 [1])", "!type_error")],
    ),
];

/// Returns an endless sequence of a source, without steps.
pub(crate) fn endless<'h>(h: &'h Ctx, source: Source, parts: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(parts.len() as u64)?;
    let none = h.vector(&[])?;
    match *parts {
        [] => h.endless(source, &[none]),
        [one] => h.endless(source, &[none, one]),
        [one, two] => h.endless(source, &[none, one, two]),
        _ => {
            let all = h.vector_from(parts.len() + 1, std::iter::once(none).chain(parts.iter().copied()))?;
            match all {
                Value::Vector(all) => h.endless(source, all.items()),
                _ => Ok(Value::Nil),
            }
        }
    }
}

/// Returns the value inside a `reduced` value; `None` for any other value.
pub(crate) fn reduced(v: Value<'_>) -> Option<Value<'_>> {
    match v {
        Value::Composed(c) if c.kind == Compose::Reduced => c.parts().first().copied(),
        _ => None,
    }
}

fn repeat<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let [n, x] = *args else { return endless(h, Source::Repeat, args) };
    let n = usize::try_from(args::amount("repeat", n)?).unwrap_or(0);
    h.check_available(n.saturating_mul(16))?;
    h.charge(n as u64)?;
    h.vector_from(n, std::iter::repeat_n(x, n))
}

fn cycle<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let items = match args[0] {
        Value::Endless(_) | Value::Vector(_) => args[0],
        other => h.vector(args::seq(h, "cycle", other)?)?,
    };
    match items {
        Value::Vector(v) if !v.is_empty() => endless(h, Source::Cycle, &[items, Value::Int(0)]),
        // An empty collection stays empty, and an endless one endless.
        items => Ok(items),
    }
}

fn iterate<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    function("iterate", args[0])?;
    endless(h, Source::Iterate, args)
}

fn completing<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    for &f in args {
        function("completing", f)?;
    }
    h.composed(Compose::Completing, args)
}

fn take_nth<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "take-nth";
    let n = args::positive(name, "step", args[0])?;
    let [_, coll] = *args else { return args::transducer(h, Step::TakeNth, &[Value::count(n)]) };
    let items = args::seq(h, name, coll)?;
    let len = items.len().div_ceil(n);
    h.charge(len as u64)?;
    h.vector_from(len, items.iter().step_by(n).copied())
}
