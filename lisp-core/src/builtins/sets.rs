//! Sets.

use super::args::{self, fault};
use super::exception_classes::of_wrong;
use super::{Builtin, MANY, maps};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Fault, Gathered, Heap, Map, Res, SMALL, Value, Written};
use crate::text::describe;

/// Returns the error of the set operations for a value that is not a set.
#[cold]
fn not_a_set(name: &str, got: Value<'_>) -> Fault {
    let error = Error::new(Reason::RuntimeError, format!("{name} expects sets, got {}", describe(got)));
    let error = error.class(match (name, got) {
        ("disj", _) | (_, Value::Nil | Value::Vector(_) | Value::Map(_) | Value::Str(_)) => of_wrong(got),
        _ => ErrorClass::UnsupportedOperation,
    });
    match got {
        Value::Vector(_) => error.hint("make a set of a vector with (set v)").into(),
        Value::Nil => error.hint("give a default for what may be missing, as in (or s #{})").into(),
        _ => error.into(),
    }
}

/// Combines the result so far with the next argument of a set operation.
type Join<'h> = fn(&'h Heap, Value<'h>, Value<'h>) -> Res<Value<'h>>;

/// Folds an operation over sets. A single argument is returned whatever it is.
fn join_all<'h>(h: &'h Heap, name: &str, args: &[Value<'h>], join: Join<'h>) -> Res<Value<'h>> {
    let [first, rest @ ..] = args else {
        return Err(fault(Reason::ArityError, format!("{name} takes at least 1 argument, got 0")));
    };
    if rest.is_empty() {
        return Ok(*first);
    }
    h.charge(args.len() as u64)?;
    args::at_once(args.len(), args.iter().map(maps::entries_of).sum())?;
    rest.iter().try_fold(*first, |result, &arg| join(h, result, arg))
}

/// Returns two arguments of a set operation.
fn two_sets<'h>(name: &str, a: Value<'h>, b: Value<'h>) -> Res<(&'h Map<'h>, &'h Map<'h>)> {
    match (a, b) {
        (Value::Set(a), Value::Set(b)) => Ok((a, b)),
        (Value::Set(_), wrong) | (wrong, _) => Err(not_a_set(name, wrong)),
    }
}

/// Returns the members of `a` that are in `b` if `keep`, otherwise those that are not.
fn members_by<'h>(h: &'h Heap, a: &'h Map<'h>, b: &'h Map<'h>, keep: bool) -> Res<&'h Map<'h>> {
    h.charge(cost::placed(a.len()))?;
    let mut kept = Gathered::new(h);
    a.each(h, |(member, _)| if b.contains(h, member)? == keep { kept.add_new(member) } else { Ok(()) })?;
    if kept.keys().len() == a.len() { Ok(a) } else { kept.map(Written::InKeyOrder) }
}

pub(crate) fn union_of_two<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    let (a, b) = two_sets("union", a, b)?;
    let (large, small) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    if small.len() > SMALL {
        h.charge(small.len() as u64)?;
        return h
            .with_all(large, Written::InKeyOrder, |all| small.each(h, |(member, _)| all.add(member).map(drop)))
            .map(Value::Set);
    }
    maps::with_members(h, large, small.len(), small.entries(h)?.iter().map(|entry| entry.0)).map(Value::Set)
}

pub(crate) fn intersection_of_two<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    let (a, b) = two_sets("intersection", a, b)?;
    let (small, large) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    members_by(h, small, large, true).map(Value::Set)
}

pub(crate) fn difference_of_two<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    let (a, b) = two_sets("difference", a, b)?;
    if b.len().saturating_mul(24) < a.len() {
        h.charge(b.len() as u64)?;
        let mut rest = a;
        b.each(h, |(member, _)| {
            rest = h.dissoc(rest, member)?;
            Ok(())
        })?;
        return Ok(Value::Set(rest));
    }
    members_by(h, a, b, false).map(Value::Set)
}

/// Returns the set without a member.
pub(crate) fn disj_one<'h>(h: &'h Heap, set: Value<'h>, member: Value<'h>) -> Res<Value<'h>> {
    match set {
        Value::Set(set) => h.dissoc(set, member).map(Value::Set),
        other => Ok(other),
    }
}

fn union<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if args.is_empty() {
        return Ok(Value::Set(h.empty_map()?));
    }
    join_all(h, "union", args, union_of_two)
}

fn intersection<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    join_all(h, "intersection", args, intersection_of_two)
}

fn difference<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    join_all(h, "difference", args, difference_of_two)
}

fn disj<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let [coll, members @ ..] = args else {
        return Err(fault(Reason::ArityError, "disj takes at least 1 argument, got 0"));
    };
    if members.is_empty() {
        return Ok(*coll);
    }
    h.charge(members.len() as u64)?;
    match coll {
        Value::Nil => Ok(Value::Nil),
        Value::Set(m) => {
            args::at_once(members.len(), maps::changed(members.len(), m))?;
            members.iter().try_fold(*coll, |rest, &member| disj_one(h, rest, member))
        }
        other => Err(not_a_set("disj", *other)),
    }
}

fn hash_set<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(args.len() as u64)?;
    h.set(args.iter().copied())
}

fn set<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Set(_) => Ok(args[0]),
        Value::Vector(v) => {
            h.charge(v.len() as u64)?;
            h.set(v.items().iter().copied())
        }
        other => {
            let items = args::seq(h, "set", other)?;
            h.charge(items.len() as u64)?;
            h.set(items.iter().copied())
        }
    }
}

fn vec<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Nil | Value::Vector(_) => Ok(args[0]),
        other => args::made_vector(h, "vec", other),
    }
}

fn vector<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(cost::moved(args.len()))?;
    h.vector(args)
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("set", 1, 1, "(set coll)", set).namespace("clojure.set").doc(
        "Returns the set of a collection's elements.",
        &[("(set [1 2 1])", "#{1 2}"), ("(set nil)", "#{}"), ("(set 1)", "!type_error")],
    ),
    Builtin::direct("hash-set", 0, MANY, "(hash-set x ...)", hash_set)
        .shown_as_fn()
        .doc("Returns a set of values.", &[("(hash-set 1 2 1)", "#{1 2}"), ("(hash-set)", "#{}")]),
    Builtin::direct("disj", 1, MANY, "(disj set x ...)", disj).doc(
        "Returns the set without members.",
        &[("(disj #{1 2 3} 2)", "#{1 3}"), ("(disj nil 1)", "nil"), ("(disj [1 2] 1)", "!runtime_error")],
    ),
    Builtin::direct("union", 0, MANY, "(union set ...)", union).namespace("clojure.set").doc(
        "Returns the set of all members of sets.",
        &[
            ("(clojure.set/union #{1} #{2} #{3})", "#{1 2 3}"),
            ("(clojure.set/union)", "#{}"),
            ("(clojure.set/union #{1} [2])", "!runtime_error"),
        ],
    ),
    Builtin::direct("intersection", 1, MANY, "(intersection set ...)", intersection).namespace("clojure.set").doc(
        "Returns the set of the members that all sets have.",
        &[
            ("(clojure.set/intersection #{1 2} #{2 3})", "#{2}"),
            ("(clojure.set/intersection #{1} nil)", "!runtime_error"),
        ],
    ),
    Builtin::direct("difference", 1, MANY, "(difference set ...)", difference).namespace("clojure.set").doc(
        "Returns the members of the first set that no other set has.",
        &[
            ("(clojure.set/difference #{1 2 3} #{2} #{3})", "#{1}"),
            ("(clojure.set/difference #{1} [1])", "!runtime_error"),
        ],
    ),
    Builtin::direct("vec", 1, 1, "(vec coll)", vec).doc(
        "Returns the elements of a collection as a vector.",
        &[
            ("(vec #{2 1})", "[1 2]"),
            ("(vec {:a 1})", "[[:a 1]]"),
            ("(vec \"abc\")", "[\"a\" \"b\" \"c\"]"),
            ("(vec 5)", "!type_error"),
        ],
    ),
    Builtin::direct("vector", 0, MANY, "(vector x ...)", vector)
        .shown_as_fn()
        .aliases(&["list"])
        .doc("Returns a vector of values.", &[("(vector 1 2)", "[1 2]"), ("(list)", "[]")]),
];

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeSet;

    fn make<'h>(h: &'h Ctx, s: &BTreeSet<i64>) -> Value<'h> {
        h.set(s.iter().copied().map(Value::Int).collect::<Vec<_>>().into_iter()).unwrap()
    }

    fn same<'h>(h: &'h Ctx, got: Value<'h>, want: BTreeSet<i64>) -> bool {
        h.equal(got, make(h, &want)).unwrap()
    }

    #[test]
    fn operations_agree_with_the_standard_library() {
        let h = Ctx::new(Heap::new(1, 1 << 26));
        for (a, b) in [(0, 0), (3, 5), (40, 2), (2, 40), (100, 100), (1_000, 10)] {
            let (xs, ys): (BTreeSet<i64>, BTreeSet<i64>) = ((0..a).collect(), (a / 2..a / 2 + b).collect());
            let args = [make(&h, &xs), make(&h, &ys)];
            assert!(same(&h, union(&h, &args).unwrap(), xs.union(&ys).copied().collect()));
            assert!(same(&h, intersection(&h, &args).unwrap(), xs.intersection(&ys).copied().collect()));
            assert!(same(&h, difference(&h, &args).unwrap(), xs.difference(&ys).copied().collect()));
        }
    }
}
