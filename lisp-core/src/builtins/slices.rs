//! Parts of sequences: first and last, rest and next, take and drop. Parts of a vector are views of it.

use super::args::{self, type_error};
use super::{Builtin, Endless};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, ErrorClass};
use crate::heap::{Fault, Heap, Res, Step, Value, Vector};
use crate::text::characters::{self, Characters};

/// Returns the elements as a vector, of which views can be made.
pub(super) fn as_vector<'h>(h: &'h Heap, name: &str, v: Value<'h>) -> Res<&'h Vector<'h>> {
    if let Value::Vector(v) = v {
        return Ok(v);
    }
    let items = args::seq(h, name, v)?;
    h.charge(cost::moved(items.len()))?;
    match h.vector(items)? {
        Value::Vector(v) => Ok(v),
        other => Err(type_error(name, "a collection", other)),
    }
}

/// Returns the elements from `from` up to `to`; the vector itself if these are all.
fn cut<'h>(h: &'h Heap, v: &'h Vector<'h>, from: usize, to: usize) -> Res<Value<'h>> {
    if from == 0 && to >= v.len() { Ok(Value::Vector(v)) } else { h.slice(v, from, to) }
}

/// Returns the elements from `from` up to `to`; nil if there are none.
fn cut_or_nil<'h>(h: &'h Heap, v: &'h Vector<'h>, from: usize, to: usize) -> Res<Value<'h>> {
    if from >= to.min(v.len()) { Ok(Value::Nil) } else { cut(h, v, from, to) }
}

/// Returns a number of elements; 0 if it is negative.
fn at_least_zero(n: i64) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// Returns the character of a string at an index that counts grapheme clusters.
pub(super) fn char_at<'h>(h: &'h Heap, text: &'h str, index: usize) -> Res<Option<Value<'h>>> {
    h.charge(cost::copied(text.len()))?;
    if characters::are_bytes(text) {
        return match text.get(index..index.saturating_add(1)) {
            Some(c) => Ok(Some(h.str_view(c)?)),
            None => Ok(None),
        };
    }
    h.charge(text.len().min(index.saturating_mul(4)) as u64)?;
    let before = characters::bytes_of_first(h, text, index)?;
    match Characters::new(h, text.get(before..).unwrap_or_default()).next() {
        Some(c) => Ok(Some(h.str_view(c?)?)),
        None => Ok(None),
    }
}

/// Returns the last character of a string.
fn last_character<'h>(h: &'h Heap, text: &'h str) -> Res<Option<&'h str>> {
    if characters::are_bytes(text) {
        return Ok(text.len().checked_sub(1).and_then(|last| text.get(last..)));
    }
    // Where a character starts may depend on everything before it.
    h.charge(cost::parsed(text.len()))?;
    let mut last = None;
    for character in Characters::new(h, text) {
        last = Some(character?);
    }
    Ok(last)
}

/// Returns the element at an index of an ordered collection.
fn element<'h>(h: &'h Heap, name: &str, v: Value<'h>, index: usize) -> Res<Option<Value<'h>>> {
    match v {
        Value::Vector(v) => Ok(v.get(index)),
        Value::Str(s) => char_at(h, s.text(), index),
        other => Ok(args::seq(h, name, other)?.get(index).copied()),
    }
}

/// `(first coll)`; nil if it is empty. Destructuring and `when-first` use this.
pub(crate) fn first<'h>(h: &'h Heap, v: Value<'h>) -> Res<Value<'h>> {
    Ok(element(h, "first", v, 0)?.unwrap_or(Value::Nil))
}

/// `(rest coll)`: all but the first, an empty vector if there are none.
pub(crate) fn rest<'h>(h: &'h Heap, v: Value<'h>) -> Res<Value<'h>> {
    h.slice(as_vector(h, "rest", v)?, 1, usize::MAX)
}

/// `(next coll)`: all but the first, nil if there are none.
pub(crate) fn next<'h>(h: &'h Heap, v: Value<'h>) -> Res<Value<'h>> {
    cut_or_nil(h, as_vector(h, "next", v)?, 1, usize::MAX)
}

fn first_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    first(h, args[0])
}

fn second<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(element(h, "second", args[0], 1)?.unwrap_or(Value::Nil))
}

fn last<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Vector(v) => Ok(v.items().last().copied().unwrap_or(Value::Nil)),
        Value::Str(s) => {
            h.charge(cost::copied(s.text().len()))?;
            match last_character(h, s.text())? {
                Some(c) => h.str_view(c),
                None => Ok(Value::Nil),
            }
        }
        other => Ok(args::seq(h, "last", other)?.last().copied().unwrap_or(Value::Nil)),
    }
}

fn rest_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    rest(h, args[0])
}

fn next_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    next(h, args[0])
}

fn butlast<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let v = as_vector(h, "butlast", args[0])?;
    cut_or_nil(h, v, 0, v.len().saturating_sub(1))
}

fn ffirst<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    first(h, first(h, args[0])?)
}

fn fnext<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    first(h, next(h, args[0])?)
}

fn nfirst<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    next(h, first(h, args[0])?)
}

fn nnext<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    next(h, next(h, args[0])?)
}

fn nth<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let default = args.get(2).copied().unwrap_or(Value::Nil);
    let index = args::amount("nth", args[1])?;
    let found = match (usize::try_from(index), args[0]) {
        (_, Value::Endless(_)) => return Err(Fault::NeedsFrame),
        (Ok(index), coll @ (Value::Vector(_) | Value::Str(_) | Value::Nil | Value::Map(_) | Value::Set(_))) => {
            element(h, "nth", coll, index)?
        }
        (Err(_), Value::Vector(_) | Value::Str(_) | Value::Nil) => None,
        (index, other) => {
            let expects = if index.is_ok() { "a collection" } else { "a vector or string" };
            return Err(args::type_error_as(ErrorClass::UnsupportedOperation, "nth", expects, other));
        }
    };
    Ok(found.unwrap_or(default))
}

fn nthrest<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let v = as_vector(h, "nthrest", args[0])?;
    cut(h, v, at_least_zero(args::amount("nthrest", args[1])?), v.len())
}

fn nthnext<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let v = as_vector(h, "nthnext", args[0])?;
    cut_or_nil(h, v, at_least_zero(args::amount("nthnext", args[1])?), v.len())
}

/// Returns the end of the first `n` elements; a negative `n` counts from the end.
fn boundary(len: usize, n: i64) -> usize {
    let size = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    if n >= 0 { size.min(len) } else { len.saturating_sub(size) }
}

fn take<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let n = args::amount("take", args::rounded_up(args[0]))?;
    if args.len() == 1 {
        return args::transducer(h, Step::Take, &[Value::Int(n)]);
    }
    let v = as_vector(h, "take", args[1])?;
    let at = boundary(v.len(), n);
    if n >= 0 { cut(h, v, 0, at) } else { cut(h, v, at, v.len()) }
}

fn drop<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let n = args::amount("drop", args::rounded_up(args[0]))?;
    if args.len() == 1 {
        return args::transducer(h, Step::Drop, &[Value::Int(n)]);
    }
    let v = as_vector(h, "drop", args[1])?;
    let at = boundary(v.len(), n);
    if n >= 0 { cut(h, v, at, v.len()) } else { cut(h, v, 0, at) }
}

fn take_last<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if args[1].is_nil() {
        return Ok(Value::Nil);
    }
    let n = at_least_zero(args::amount("take-last", args[0])?);
    if n == 0 {
        return h.vector(&[]);
    }
    let v = as_vector(h, "take-last", args[1])?;
    cut_or_nil(h, v, v.len().saturating_sub(n), v.len())
}

fn drop_last<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (n, coll) = match *args {
        [n, coll] => (at_least_zero(args::amount("drop-last", n)?), coll),
        _ => (1, args[0]),
    };
    let v = as_vector(h, "drop-last", coll)?;
    cut(h, v, 0, v.len().saturating_sub(n))
}

fn split_at<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let n = at_least_zero(args::amount("split-at", args[0])?);
    let v = as_vector(h, "split-at", args[1])?;
    let at = n.min(v.len());
    h.vector(&[cut(h, v, 0, at)?, cut(h, v, at, v.len())?])
}

fn subvec<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let v = args::vector("subvec", args[0])?;
    let from = at_least_zero(args::amount("subvec", args[1])?);
    let to = match args.get(2) {
        Some(&end) => at_least_zero(args::amount("subvec", end)?),
        None => v.len(),
    };
    cut(h, v, from, to)
}

fn peek<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Nil => Ok(Value::Nil),
        v => Ok(args::vector("peek", v)?.items().last().copied().unwrap_or(Value::Nil)),
    }
}

fn pop<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Nil => Ok(Value::Nil),
        v => {
            let v = args::vector("pop", v)?;
            if v.is_empty() { Ok(Value::Nil) } else { h.slice(v, 0, v.len() - 1) }
        }
    }
}

/// Returns the number of elements; `None` for values without elements.
fn length<'h>(h: &'h Heap, v: Value<'h>) -> Res<Option<usize>> {
    Ok(Some(match v {
        Value::Nil => 0,
        Value::Vector(v) => v.len(),
        Value::Map(m) | Value::Set(m) => m.len(),
        Value::Str(s) => {
            h.charge(cost::parsed(s.text().len()))?;
            characters::count(h, s.text())?
        }
        _ => return Ok(None),
    }))
}

/// Returns true if the collection has no elements.
fn is_empty(name: &str, v: Value<'_>) -> Res<bool> {
    match v {
        Value::Nil => Ok(true),
        Value::Vector(v) => Ok(v.is_empty()),
        Value::Map(m) | Value::Set(m) => Ok(m.is_empty()),
        Value::Str(s) => Ok(s.text().is_empty()),
        Value::Endless(_) => Err(Fault::NeedsFrame),
        other => Err(args::not_walked(name, "a collection", other)),
    }
}

fn count<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match length(h, args[0])? {
        Some(n) => Ok(Value::count(n)),
        None => Err(args::type_error_as(ErrorClass::UnsupportedOperation, "count", "a collection", args[0])),
    }
}

fn empty_of<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Bool(is_empty("empty?", args[0])?))
}

fn not_empty<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(if is_empty("not-empty", args[0])? { Value::Nil } else { args[0] })
}

/// `(seq coll)`: the elements as a vector, nil if there are none.
pub(crate) fn seq<'h>(h: &'h Heap, v: Value<'h>) -> Res<Value<'h>> {
    if is_empty("seq", v)? {
        return Ok(Value::Nil);
    }
    Ok(Value::Vector(as_vector(h, "seq", v)?))
}

/// `(doall coll)`, `(doall n coll)`: returns the collection, because all elements exist already.
fn doall<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args {
        [.., Value::Endless(_)] => Err(Error::endless("doall").into()),
        [.., coll] => {
            args::seq(h, "doall", *coll)?;
            Ok(*coll)
        }
        [] => Ok(Value::Nil),
    }
}

fn dorun<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    doall(h, args).map(|_| Value::Nil)
}

fn rseq<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let items = match args[0] {
        Value::Vector(_) | Value::Map(_) | Value::Set(_) => args::seq(h, "rseq", args[0])?,
        other => return Err(type_error("rseq", "a vector, map or set", other)),
    };
    h.charge(items.len() as u64)?;
    if items.is_empty() { Ok(Value::Nil) } else { h.vector_from(items.len(), items.iter().rev().copied()) }
}

fn seq_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    seq(h, args[0])
}

fn empty<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(_) => h.vector(&[]),
        Value::Map(_) => Ok(Value::Map(h.empty_map()?)),
        Value::Set(_) => Ok(Value::Set(h.empty_map()?)),
        Value::Str(_) => h.str(""),
        other => Err(type_error("empty", "a collection", other)),
    }
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::pure("count", 1, 1, "(count coll)", count).doc(
        "Returns the number of elements, entries, members or characters.",
        &[("(count [1 2 3])", "3"), ("(count \"café\")", "4"), ("(count nil)", "0"), ("(count 42)", "!type_error")],
    ),
    Builtin::pure("empty?", 1, 1, "(empty? coll)", empty_of).endless(Endless::IsEmpty).doc(
        "Returns whether the collection is empty.",
        &[
            ("(empty? [])", "true"),
            ("(empty? nil)", "true"),
            ("(empty? \" \")", "false"),
            ("(empty? 5)", "!type_error"),
        ],
    ),
    Builtin::direct("not-empty", 1, 1, "(not-empty coll)", not_empty).endless(Endless::Itself).doc(
        "Returns the collection; nil when it is empty.",
        &[("(not-empty [1])", "[1]"), ("(not-empty \"\")", "nil"), ("(not-empty 5)", "!type_error")],
    ),
    Builtin::direct("empty", 1, 1, "(empty coll)", empty).doc(
        "Returns an empty collection of the same kind.",
        &[("(empty [1 2])", "[]"), ("(empty {:a 1})", "{}"), ("(empty 1)", "!type_error")],
    ),
    Builtin::direct("seq", 1, 1, "(seq coll)", seq_of).endless(Endless::Itself).doc(
        "Returns the elements as a vector, in key order for maps and sets; nil when there are none.",
        &[
            ("(seq {:b 2 :a 1})", "[[:a 1] [:b 2]]"),
            ("(seq \"ab\")", "[\"a\" \"b\"]"),
            ("(seq [])", "nil"),
            ("(seq 5)", "!type_error"),
        ],
    ),
    Builtin::direct("doall", 1, 2, "(doall coll)", doall).doc(
        "Returns the collection; its elements are already computed.",
        &[("(doall (map inc [1]))", "[2]"), ("(doall (range))", "!type_error")],
    ),
    Builtin::direct("dorun", 1, 2, "(dorun coll)", dorun).doc(
        "Returns nil; the elements of a collection are already computed.",
        &[("(dorun (map inc [1]))", "nil"), ("(dorun (range))", "!type_error")],
    ),
    Builtin::direct("rseq", 1, 1, "(rseq coll)", rseq).doc(
        "Returns the elements from the last to the first; nil when there are none.",
        &[("(rseq [1 2])", "[2 1]"), ("(rseq [])", "nil"), ("(rseq \"ab\")", "!type_error")],
    ),
    Builtin::direct("first", 1, 1, "(first coll)", first_of).endless(Endless::Element(0)).doc(
        "Returns the first element, of maps and sets in key order; nil of an empty one.",
        &[
            ("(first [1 2])", "1"),
            ("(first \"hello\")", "\"h\""),
            ("(first nil)", "nil"),
            ("(first {:a 1})", "[:a 1]"),
            ("(first #{2 1})", "1"),
            ("(first 5)", "!type_error"),
        ],
    ),
    Builtin::direct("second", 1, 1, "(second coll)", second).endless(Endless::Element(1)).doc(
        "Returns the second element.",
        &[("(second [1 2])", "2"), ("(second [1])", "nil"), ("(second 1)", "!type_error")],
    ),
    Builtin::direct("last", 1, 1, "(last coll)", last).doc(
        "Returns the last element.",
        &[("(last [1 2 3])", "3"), ("(last [])", "nil"), ("(last 1)", "!type_error")],
    ),
    Builtin::direct("rest", 1, 1, "(rest coll)", rest_of).endless(Endless::Rest(1)).doc(
        "Returns all but the first element.",
        &[("(rest [1 2 3])", "[2 3]"), ("(rest nil)", "[]"), ("(rest 5)", "!type_error")],
    ),
    Builtin::direct("next", 1, 1, "(next coll)", next_of).endless(Endless::Rest(1)).doc(
        "Returns all but the first element; nil when there are no others.",
        &[("(next [1 2 3])", "[2 3]"), ("(next [1])", "nil"), ("(next 5)", "!type_error")],
    ),
    Builtin::direct("butlast", 1, 1, "(butlast coll)", butlast).doc(
        "Returns all but the last element; nil when there are no others.",
        &[("(butlast [1 2 3])", "[1 2]"), ("(butlast [1])", "nil"), ("(butlast :k)", "!type_error")],
    ),
    Builtin::direct("ffirst", 1, 1, "(ffirst coll)", ffirst).doc(
        "Returns the first element of the first element.",
        &[("(ffirst [[1 2] [3]])", "1"), ("(ffirst {:a 1})", ":a"), ("(ffirst [1 2])", "!type_error")],
    ),
    Builtin::direct("fnext", 1, 1, "(fnext coll)", fnext)
        .endless(Endless::Element(1))
        .doc("Returns the second element.", &[("(fnext [1 2 3])", "2"), ("(fnext 5)", "!type_error")]),
    Builtin::direct("nfirst", 1, 1, "(nfirst coll)", nfirst).doc(
        "Returns the next of the first.",
        &[("(nfirst [[1 2] [3]])", "[2]"), ("(nfirst {:a 1})", "[1]"), ("(nfirst [1])", "!type_error")],
    ),
    Builtin::direct("nnext", 1, 1, "(nnext coll)", nnext).endless(Endless::Rest(2)).doc(
        "Returns the next of the next.",
        &[("(nnext [1 2 3])", "[3]"), ("(nnext \"abc\")", "[\"c\"]"), ("(nnext 5)", "!type_error")],
    ),
    Builtin::direct("nth", 2, 3, "(nth coll index default?)", nth).endless(Endless::Nth).doc(
        "Returns the element at an index; the default, or nil, beyond the ends.",
        &[
            ("(nth [10 20] 1)", "20"),
            ("(nth \"abc\" 1)", "\"b\""),
            ("(nth [1] 5 :x)", ":x"),
            ("(nth [1] 0.5)", "!type_error"),
        ],
    ),
    Builtin::direct("nthrest", 2, 2, "(nthrest coll n)", nthrest).endless(Endless::NthRest).doc(
        "Returns all but the first n elements.",
        &[("(nthrest [1 2 3] 2)", "[3]"), ("(nthrest [1 2 3] 1.5)", "!type_error")],
    ),
    Builtin::direct("nthnext", 2, 2, "(nthnext coll n)", nthnext).endless(Endless::NthRest).doc(
        "Returns all but the first n elements; nil when there are no others.",
        &[("(nthnext [1 2 3] 2)", "[3]"), ("(nthnext [1 2 3] 5)", "nil"), ("(nthnext [1] 0.5)", "!type_error")],
    ),
    Builtin::direct("take", 1, 2, "(take n coll)", take).endless(Endless::Take).doc(
        "Returns the first n elements; with a negative n the last.",
        &[
            ("(take 2 [1 2 3])", "[1 2]"),
            ("(take -1 [1 2])", "[2]"),
            ("(take 2 nil)", "[]"),
            ("(take 2 (iterate inc 5))", "[5 6]"),
            ("(take 2 1)", "!type_error"),
        ],
    ),
    Builtin::direct("drop", 1, 2, "(drop n coll)", drop).endless(Endless::Drop).doc(
        "Returns all but the first n elements; with a negative n all but the last.",
        &[
            ("(drop 2 [1 2 3])", "[3]"),
            ("(drop -1 [1 2])", "[1]"),
            ("(drop 0.5 [1 2])", "[2]"),
            ("(drop :a [1])", "!type_error"),
        ],
    ),
    Builtin::direct("take-last", 2, 2, "(take-last n coll)", take_last).doc(
        "Returns the last n elements; nil of an empty collection.",
        &[("(take-last 2 [1 2 3])", "[2 3]"), ("(take-last 2 [])", "nil"), ("(take-last 1 1)", "!type_error")],
    ),
    Builtin::direct("drop-last", 1, 2, "(drop-last n? coll)", drop_last).doc(
        "Returns all but the last n elements; n is 1 unless given.",
        &[("(drop-last [1 2 3])", "[1 2]"), ("(drop-last 2 [1 2 3 4])", "[1 2]"), ("(drop-last 1 1)", "!type_error")],
    ),
    Builtin::direct("split-at", 2, 2, "(split-at n coll)", split_at)
        .endless(Endless::SplitAt)
        .aliases(&["splitv-at"])
        .doc(
            "Returns the first n elements and the others.",
            &[("(split-at 2 [1 2 3])", "[[1 2] [3]]"), ("(split-at 0.5 [1 2])", "!type_error")],
        ),
    Builtin::direct("subvec", 2, 3, "(subvec v start end?)", subvec).doc(
        "Returns the elements from start up to, not including, end; bounds are clipped.",
        &[("(subvec [0 1 2 3] 1 3)", "[1 2]"), ("(subvec [0 1 2] 1)", "[1 2]"), ("(subvec \"abc\" 1)", "!type_error")],
    ),
    Builtin::direct("peek", 1, 1, "(peek v)", peek).doc(
        "Returns the last element of a vector.",
        &[("(peek [1 2])", "2"), ("(peek nil)", "nil"), ("(peek 5)", "!type_error")],
    ),
    Builtin::direct("pop", 1, 1, "(pop v)", pop).doc(
        "Returns the vector without its last element; nil of an empty one.",
        &[("(pop [1 2])", "[1]"), ("(pop [])", "nil"), ("(pop #{1})", "!type_error")],
    ),
];
