//! `sorted-map`, `sorted-set`. All maps and sets of the language are walked in key order.

use super::{Builtin, MANY};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Gathered, Res, Value, Written};

fn sorted_map<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if !args.len().is_multiple_of(2) {
        let error = format!("sorted-map expects keys and values in pairs, got {} arguments", args.len());
        return Err(Error::new(Reason::ArityError, error)
            .class(ErrorClass::IllegalArgument)
            .hint("write (sorted-map :a 1 :b 2), or (into (sorted-map) m)")
            .into());
    }
    h.charge(cost::placed(args.len() / 2))?;
    let mut entries = Gathered::new(h);
    args.chunks_exact(2).try_for_each(|pair| entries.insert(pair[0], pair[1]))?;
    entries.map(Written::InKeyOrder).map(Value::Map)
}

fn sorted_set<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(args.len() as u64)?;
    h.set(args.iter().copied())
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("sorted-map", 0, MANY, "(sorted-map k v ...)", sorted_map).doc(
        "Returns a map of these keys and values. Every map is walked in key order.",
        &[("(sorted-map :b 1 :a 2)", "{:a 2 :b 1}"), ("(sorted-map :a)", "!arity_error")],
    ),
    Builtin::direct("sorted-set", 0, MANY, "(sorted-set x ...)", sorted_set).doc(
        "Returns a set of these members. Every set is walked in key order.",
        &[("(vec (sorted-set 3 1 2))", "[1 2 3]"), ("(sorted-set)", "#{}")],
    ),
];
