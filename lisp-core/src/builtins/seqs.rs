//! Sequences made of others: joined, extended, counted, split into pieces, and ranges.

use super::args::{self, fault, type_error};
use super::numbers::{add, greater, less};
use super::slices::as_vector;
use super::{Builtin, Endless, MANY, maps};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{
    Entry, Fault, Gathered, Heap, List, MAX_LEN, Map, Res, Source, Step, Value, Vector, Work, Written, compare_numbers,
};
use crate::text::describe;
use std::cmp::Ordering;

/// Returns the vector with more elements at its end. A few are appended in place, more are copied. A single element
/// costs no more than the call.
#[inline]
pub(crate) fn append<'h>(h: &'h Heap, v: &'h Vector<'h>, more: &[Value<'h>]) -> Res<Value<'h>> {
    if more.len() > 1 {
        h.charge(more.len() as u64)?;
    }
    if more.len() <= 2 || more.len().saturating_mul(8) < v.len() {
        return if more.is_empty() { Ok(Value::Vector(v)) } else { h.conj_all(v, more) };
    }
    let len = v.len().saturating_add(more.len());
    h.charge(cost::moved(v.len()))?;
    h.vector_from(len, v.items().iter().chain(more).copied())
}

fn reverse<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let items = args::seq(h, "reverse", args[0])?;
    h.charge(items.len() as u64)?;
    h.vector_from(items.len(), items.iter().rev().copied())
}

fn distinct<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if args.is_empty() {
        return args::transducer(h, Step::Distinct, args);
    }
    let items = args::seq(h, "distinct", args[0])?;
    h.charge(cost::placed(items.len()))?;
    let mut seen = Gathered::new(h);
    for &item in items {
        seen.add(item)?;
    }
    seen.vector()
}

fn dedupe<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if args.is_empty() {
        return args::transducer(h, Step::Dedupe, args);
    }
    let items = args::seq(h, "dedupe", args[0])?;
    h.charge(items.len() as u64)?;
    let mut out = List::new(h);
    for &item in items {
        let again = match out.items().last() {
            Some(&last) => h.same_key(last, item)?,
            None => false,
        };
        if !again {
            out.push(item)?;
        }
    }
    h.vector(out.items())
}

fn concat<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args {
        [] => return h.vector(&[]),
        [Value::Nil | Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Str(_)] => return Ok(args[0]),
        _ => {}
    }
    h.charge(args.len() as u64)?;
    if let [Value::Vector(v), second] = args {
        return append(h, v, args::seq(h, "concat", *second)?);
    }
    let (mut parts, mut len) = (List::with_room(h, args.len())?, 0usize);
    for &arg in args {
        let items = args::seq(h, "concat", arg)?;
        h.charge(items.len() as u64)?;
        parts.push(items)?;
        len = len.saturating_add(items.len());
    }
    h.vector_from(len, parts.items().iter().copied().flatten().copied())
}

fn cons<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[1] {
        Value::Vector(v) => h.cons(args[0], v),
        other => {
            let items = args::seq(h, "cons", other)?;
            h.charge(items.len() as u64)?;
            h.vector_from(items.len() + 1, std::iter::once(args[0]).chain(items.iter().copied()))
        }
    }
}

/// Returns an element as the entry of a map.
fn pair<'h>(name: &str, reason: Reason, v: Value<'h>) -> Res<Entry<'h>> {
    if let Value::Vector(pair) = v
        && let &[key, value] = pair.items()
    {
        return Ok((key, value));
    }
    let error = Error::new(reason, format!("{name} to a map expects entries [key value], got {}", describe(v)));
    Err(match v {
        Value::Map(_) => error.hint("join maps with merge").into(),
        Value::Set(_) | Value::Str(_) => error.class(ErrorClass::ClassCast).into(),
        _ => error.class(ErrorClass::IllegalArgument).into(),
    })
}

/// Returns the map with more entries: pairs, or all entries of a map.
fn with_items<'h>(h: &'h Heap, name: &str, reason: Reason, map: &'h Map<'h>, items: &[Value<'h>]) -> Res<&'h Map<'h>> {
    if !items.iter().any(|item| matches!(item, Value::Map(_) | Value::Nil)) {
        return maps::with_entries(h, map, items.len(), items.iter().map(|&v| pair(name, reason, v)));
    }
    if let &[Value::Map(more)] = items {
        return maps::with_entries(h, map, more.len(), more.entries_to_add(h)?.iter().map(Ok));
    }
    h.charge(items.len() as u64)?;
    h.with_all(map, Written::OneByOne, |all| {
        let mut put = |(key, value)| all.insert(map.meant(h, key)?, value);
        for &item in items {
            match item {
                Value::Nil => {}
                Value::Map(more) => {
                    h.charge(more.len() as u64)?;
                    more.entries_to_add(h)?.iter().try_for_each(&mut put)?;
                }
                other => put(pair(name, reason, other)?)?,
            }
        }
        Ok(())
    })
}

fn conj<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let [coll, more @ ..] = args else { return h.vector(&[]) };
    if more.is_empty() {
        return Ok(*coll);
    }
    let entries = more.iter().copied();
    match coll {
        Value::Nil => {
            h.charge(more.len() as u64)?;
            h.vector(more)
        }
        Value::Vector(v) => append(h, v, more),
        Value::Set(m) => maps::with_members(h, m, more.len(), entries).map(Value::Set),
        Value::Map(m) => Ok(Value::Map(with_items(h, "conj", Reason::RuntimeError, m, more)?)),
        Value::Endless(_) => Err(Error::endless("conj").into()),
        other => {
            let message = format!("conj expects a vector, map, set or nil, got {}", describe(*other));
            Err(Error::new(Reason::RuntimeError, message).class(ErrorClass::ClassCast).into())
        }
    }
}

/// `(into to from)`
pub(crate) fn into<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "into";
    let (to, from) = match *args {
        [] => return h.vector(&[]),
        [to] => return Ok(to),
        [to, from] => (to, from),
        _ => return Err(Fault::NeedsFrame),
    };
    match (to, from) {
        (Value::Map(m), Value::Map(from)) => {
            Ok(Value::Map(maps::with_entries(h, m, from.len(), from.entries(h)?.iter().map(Ok))?))
        }
        (Value::Map(m), _) => Ok(Value::Map(with_items(h, name, Reason::TypeError, m, args::seq(h, name, from)?)?)),
        (Value::Set(m), _) => {
            let items = args::seq(h, name, from)?;
            maps::with_members(h, m, items.len(), items.iter().copied()).map(Value::Set)
        }
        (Value::Vector(v), _) => append(h, v, args::seq(h, name, from)?),
        (Value::Nil, _) => h.vector(args::seq(h, name, from)?),
        _ => Err(type_error(name, "a vector, map or set to add to", to)),
    }
}

fn interleave<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if let [one] = args {
        return Ok(Value::Vector(as_vector(h, "interleave", *one)?));
    }
    h.charge(args.len() as u64)?;
    h.check_available(args.len().saturating_mul(16))?;
    let mut colls: Vec<&'h [Value<'h>]> = Vec::with_capacity(args.len());
    for &arg in args {
        colls.push(args::seq(h, "interleave", arg)?);
    }
    let rounds = colls.iter().map(|c| c.len()).min().unwrap_or(0);
    let len = rounds.saturating_mul(colls.len());
    h.charge(len as u64)?;
    h.vector_from(len, (0..rounds).flat_map(|i| colls.iter().filter_map(move |c| c.get(i).copied())))
}

fn interpose<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if args.len() == 1 {
        return args::transducer(h, Step::Interpose, args);
    }
    let items = args::seq(h, "interpose", args[1])?;
    let len = items.len().saturating_mul(2).saturating_sub(1);
    h.charge(len as u64)?;
    h.vector_from(len, items.iter().flat_map(|&item| [args[0], item]).skip(1))
}

fn flatten<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let top = match args[0] {
        Value::Nil | Value::Map(_) | Value::Set(_) | Value::Str(_) => return h.vector(&[]),
        v => args::vector("flatten", v)?,
    };
    let mut out = List::new(h);
    let mut work: Work<'h, &'h [Value<'h>]> = Work::new(h);
    work.push(top.items())?;
    while let Some(items) = work.pop() {
        let leaves = items.iter().position(|v| matches!(v, Value::Vector(_))).unwrap_or(items.len());
        h.charge(leaves as u64 + 1)?;
        let (plain, rest) = items.split_at(leaves);
        plain.iter().try_for_each(|&leaf| out.push(leaf))?;
        if let Some((Value::Vector(inner), rest)) = rest.split_first() {
            work.push(rest)?;
            work.push(inner.items())?;
        }
    }
    out.trim();
    h.vector(out.items())
}

fn list_star<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Some((&last, first)) = args.split_last() else { return h.vector(&[]) };
    let items = args::seq(h, "list*", last)?;
    let len = first.len() + items.len();
    h.charge(len as u64)?;
    h.vector_from(len, first.iter().chain(items).copied())
}

/// How to treat the last elements if they do not fill a piece.
#[derive(Clone, Copy)]
enum Tail<'h> {
    Discard,
    Keep,
    Pad(&'h [Value<'h>]),
}

fn pieces<'h>(h: &'h Heap, v: &'h Vector<'h>, size: usize, step: usize, tail: Tail<'h>) -> Res<Value<'h>> {
    h.charge((v.len() / step) as u64 + 1)?;
    let out = h.vec_builder(v.len() / step + 1)?;
    let mut at = 0usize;
    while at < v.len() && size <= v.len() - at {
        out.push(h, h.slice(v, at, at + size)?)?;
        at = at.saturating_add(step);
    }
    if at < v.len() {
        match tail {
            Tail::Discard => {}
            Tail::Keep => {
                out.push(h, h.slice(v, at, v.len())?)?;
                // One short piece is already charged; overlapping pieces leave several.
                at = at.saturating_add(step);
                while at < v.len() {
                    h.charge(1)?;
                    out.push(h, h.slice(v, at, v.len())?)?;
                    at = at.saturating_add(step);
                }
            }
            Tail::Pad(pad) => {
                let left = v.items().get(at..).unwrap_or_default();
                let len = size.min(left.len().saturating_add(pad.len()));
                h.charge(len as u64)?;
                out.push(h, h.vector_from(len, left.iter().chain(pad).copied())?)?;
            }
        }
    }
    out.finish(h)
}

/// Returns the number of elements of a piece: zero only if there is a step.
fn piece_size(name: &str, args: &[Value<'_>]) -> Res<usize> {
    args::at_least(name, "size", usize::from(args.len() < 3), args[0])
}

fn partition<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "partition";
    if let [Value::Int(0), Value::Nil | Value::Vector(_)] = *args
        && args::seq(h, name, args[1])?.is_empty()
    {
        return h.vector(&[]);
    }
    let size = piece_size(name, args)?;
    let (step, tail, coll) = match *args {
        [_, step, pad, coll] => (args::positive(name, "step", step)?, Tail::Pad(args::seq(h, name, pad)?), coll),
        [_, step, coll] => (args::positive(name, "step", step)?, Tail::Discard, coll),
        _ => (size, Tail::Discard, args[1]),
    };
    pieces(h, as_vector(h, name, coll)?, size, step, tail)
}

fn partition_all<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "partition-all";
    if args.len() == 1 {
        let size = args::positive(name, "size", args[0])?;
        return args::transducer(h, Step::PartitionAll, &[Value::count(size)]);
    }
    let size = piece_size(name, args)?;
    let (step, coll) = match *args {
        [_, step, coll] => (args::positive(name, "step", step)?, coll),
        _ => (size, args[1]),
    };
    pieces(h, as_vector(h, name, coll)?, size, step, Tail::Keep)
}

fn zip<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let side = |v| if let Value::Endless(_) = v { Err(Fault::NeedsFrame) } else { args::vector("zip", v) };
    let (a, b) = (side(args[0])?, side(args[1])?);
    let len = a.len().min(b.len());
    h.charge(cost::placed(len))?;
    let out = h.vec_builder(len)?;
    for (&x, &y) in a.items().iter().zip(b.items()) {
        out.push(h, h.vector(&[x, y])?)?;
    }
    out.finish(h)
}

fn frequencies<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let items = args::seq(h, "frequencies", args[0])?;
    h.charge(cost::placed(items.len()))?;
    let mut counts = Gathered::new(h);
    for &item in items {
        counts.update(item, |count| match count {
            Some(Value::Int(n)) => Value::Int(n + 1),
            _ => Value::Int(1),
        })?;
    }
    counts.map(Written::InKeyOrder).map(Value::Map)
}

fn combinations<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let n = match args[1] {
        n if n.is_number() => usize::try_from(args::amount("combinations", n)?).ok(),
        _ => None,
    };
    let Some(n) = n else { return h.vector(&[]) };
    let items = args::seq(h, "combinations", args[0])?;
    if n > items.len() {
        return h.vector(&[]);
    }
    let ways = binomial(items.len(), n);
    // Combinations that cannot fit into memory are not started.
    h.check_available(ways.saturating_mul(n.saturating_mul(16)))?;
    let out = h.vec_builder(ways)?;
    // The indices of the elements of one combination, in ascending order.
    h.check_available(n.saturating_mul(8))?;
    let mut places: Vec<usize> = (0..n).collect();
    loop {
        h.charge(n as u64 + cost::PLACED)?;
        let chosen = places.iter().filter_map(|&i| items.get(i).copied());
        out.push(h, h.vector_from(n, chosen)?)?;
        // Advances the last index that can still grow; those after it follow directly.
        let Some(i) = (0..n).rev().find(|&i| places[i] < items.len() - n + i) else { return out.finish(h) };
        let base = places[i] + 1;
        for (k, place) in places[i..].iter_mut().enumerate() {
            *place = base + k;
        }
    }
}

/// Returns the number of ways to choose `n` of `len` elements, saturating.
fn binomial(len: usize, n: usize) -> usize {
    let mut ways = 1u128;
    for i in 0..n.min(len - n) {
        ways = ways * (len - i) as u128 / (i as u128 + 1);
        if ways > usize::MAX as u128 {
            return usize::MAX;
        }
    }
    ways as usize
}

fn too_long(name: &str, len: &dyn std::fmt::Display) -> Fault {
    fault(Reason::MemoryExceeded, format!("{name}: {len} elements are more than a vector holds"))
}

/// `(range start end step)`
pub(crate) fn range<'h>(h: &'h Heap, start: Value<'h>, end: Value<'h>, step: Value<'h>) -> Res<Value<'h>> {
    for bound in [start, end, step] {
        let finite = bound.as_f64().is_some_and(|f| !f.is_nan() && (f.is_finite() || matches!(bound, Value::Big(_))));
        if !finite {
            return Err(type_error("range", "finite numbers", bound));
        }
    }
    if matches!(step, Value::Int(0)) || matches!(step, Value::Float(f) if f == 0.0) {
        let never_begins = compare_numbers(start, end) == Some(Ordering::Equal);
        return if never_begins { h.vector(&[]) } else { counting(h, start, step) };
    }
    if let (Value::Int(start), Value::Int(end), Value::Int(step)) = (start, end, step) {
        return range_of_ints(h, start, end, step);
    }
    let up = less(h, Value::Int(0), step)?;
    // A range that is far too long is not started. Rounding makes a step at most twice as long; if integers become
    // floats without loss, it has no other effect.
    let exact = |bound: Value<'_>| bound.as_f64().filter(|f| f.abs() < (1u64 << f64::MANTISSA_DIGITS) as f64);
    if let (Some(start), Some(end), Some(step)) = (exact(start), exact(end), exact(step)) {
        h.check_available(at_least((end - start) / step / 4.0).saturating_mul(16))?;
    }
    let mut out = List::new(h);
    let mut at = start;
    while if up { less(h, at, end)? } else { greater(h, at, end)? } {
        h.charge(1)?;
        if out.items().len() >= MAX_LEN {
            return Err(too_long("range", &out.items().len()));
        }
        out.push(at)?;
        at = add(h, at, step)?;
    }
    out.trim();
    h.vector(out.items())
}

/// Returns the endless sequence of numbers from `start` on.
fn counting<'h>(h: &'h Heap, start: Value<'h>, step: Value<'h>) -> Res<Value<'h>> {
    let none = h.vector(&[])?;
    h.endless(Source::Range, &[none, start, step])
}

/// Returns the whole part of a float, 0 for a negative one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, and makes 0 of NaN")]
fn at_least(elements: f64) -> usize {
    elements as usize
}

#[expect(clippy::cast_possible_truncation, reason = "the elements lie between two integers of 64 bits")]
fn range_of_ints<'h>(h: &'h Heap, start: i64, end: i64, step: i64) -> Res<Value<'h>> {
    let (start, end, step) = (i128::from(start), i128::from(end), i128::from(step));
    let span = if step > 0 { end - start } else { start - end };
    let count = if span <= 0 { 0 } else { (span - 1) / step.abs() + 1 };
    let Some(len) = usize::try_from(count).ok().filter(|&len| len <= MAX_LEN) else {
        return Err(too_long("range", &count));
    };
    h.check_available(len.saturating_mul(16))?;
    h.charge(len as u64)?;
    h.vector_from(len, (0..count).map(|i| Value::Int(start.wrapping_add(i.wrapping_mul(step)) as i64)))
}

fn range_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match *args {
        [start, end, step] => range(h, start, end, step),
        [start, end] => range(h, start, end, Value::Int(1)),
        [] => counting(h, Value::Int(0), Value::Int(1)),
        _ => range(h, Value::Int(0), args[0], Value::Int(1)),
    }
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("reverse", 1, 1, "(reverse coll)", reverse).doc(
        "Returns the elements from the last to the first.",
        &[("(reverse [1 2 3])", "[3 2 1]"), ("(reverse \"ab\")", "[\"b\" \"a\"]"), ("(reverse 1)", "!type_error")],
    ),
    Builtin::direct("distinct", 0, 1, "(distinct coll)", distinct).endless(Endless::Bare(Step::Distinct)).doc(
        "Returns the elements without those that came before.",
        &[("(distinct [1 2 1 3 2])", "[1 2 3]"), ("(distinct nil)", "[]"), ("(distinct 1)", "!type_error")],
    ),
    Builtin::direct("dedupe", 0, 1, "(dedupe coll)", dedupe).endless(Endless::Bare(Step::Dedupe)).doc(
        "Returns the elements without those equal to the one just before.",
        &[("(dedupe [1 1 2 1])", "[1 2 1]"), ("(dedupe true)", "!type_error")],
    ),
    Builtin::direct("concat", 0, MANY, "(concat coll ...)", concat).endless(Endless::Concat).doc(
        "Returns the elements of collections, one after the other.",
        &[("(concat [1 2] [3])", "[1 2 3]"), ("(concat)", "[]"), ("(concat \"ab\" [1])", "[\"a\" \"b\" 1]"), ("(concat [1] 2)", "!type_error")],
    ),
    Builtin::direct("cons", 2, 2, "(cons x coll)", cons).endless(Endless::Cons).doc(
        "Returns the elements with one more in front.",
        &[("(cons 1 [2 3])", "[1 2 3]"), ("(cons 1 nil)", "[1]"), ("(cons 1 2)", "!type_error")],
    ),
    Builtin::direct("list*", 1, MANY, "(list* x ... coll)", list_star).doc(
        "Returns the elements of the last collection with the other arguments in front.",
        &[("(list* 1 2 [3 4])", "[1 2 3 4]"), ("(list* nil)", "[]"), ("(list* 1 2)", "!type_error")],
    ),
    Builtin::direct("conj", 0, MANY, "(conj coll x ...)", conj).doc(
        "Returns the collection with more elements: at the end of a vector, as members of a set, as entries of a map.",
        &[
            ("(conj [1 2] 3)", "[1 2 3]"),
            ("(conj #{1} 1 2)", "#{1 2}"),
            ("(conj {:a 1} [:b 2])", "{:a 1 :b 2}"),
            ("(conj {:a 1} {:b 2})", "{:a 1 :b 2}"),
            ("(conj nil 1)", "[1]"),
            ("(conj \"a\" \"b\")", "!runtime_error"),
        ],
    ),
    Builtin::direct("into", 0, 3, "(into to from) (into to xf from)", into).endless(Endless::Into).doc(
        "Returns the first collection with all elements of the second, or with what a transducer makes of them.",
        &[
            ("(into [1] [2 3])", "[1 2 3]"),
            ("(into {} [[:a 1] [:b 2]])", "{:a 1 :b 2}"),
            ("(into #{} [1 2 2])", "#{1 2}"),
            ("[(into) (into [1]) (reduce into [])]", "[[] [1] []]"),
            ("(into [] (comp (filter odd?) (map inc)) [1 2 3])", "[2 4]"),
            ("(into 1 [1])", "!type_error"),
        ],
    ),
    Builtin::direct("interleave", 0, MANY, "(interleave coll ...)", interleave).endless(Endless::Interleave).doc(
        "Returns the first elements of all collections, then the second ones, up to the length of the shortest.",
        &[
            ("(interleave [1 2] [:a :b])", "[1 :a 2 :b]"),
            ("(interleave)", "[]"),
            ("(interleave 1 [2])", "!type_error"),
        ],
    ),
    Builtin::direct("interpose", 1, 2, "(interpose sep coll)", interpose).endless(Endless::Step(Step::Interpose)).doc(
        "Returns the elements with a separator between them.",
        &[("(interpose 0 [1 2 3])", "[1 0 2 0 3]"), ("(interpose 0 nil)", "[]"), ("(interpose 0 1)", "!type_error")],
    ),
    Builtin::direct("flatten", 1, 1, "(flatten coll)", flatten).doc(
        "Returns the elements of vectors inside vectors, all on one level.",
        &[("(flatten [1 [2 [3]]])", "[1 2 3]"), ("(flatten nil)", "[]"), ("(flatten 1)", "!type_error")],
    ),
    Builtin::direct("partition", 2, 4, "(partition n step? pad? coll)", partition).endless(Endless::Partition).aliases(&["partitionv"]).doc(
        "Splits into pieces of n elements, whose starts are step elements apart; a shorter last piece is dropped or padded.",
        &[
            ("(partition 2 [1 2 3 4 5])", "[[1 2] [3 4]]"),
            ("(partition 2 1 [1 2 3])", "[[1 2] [2 3]]"),
            ("(partition 3 3 [0] [1 2 3 4 5])", "[[1 2 3] [4 5 0]]"),
            ("(partition 2 2 nil [1 2 3])", "[[1 2] [3]]"),
            ("(partition 0 [1])", "!type_error"),
        ],
    ),
    Builtin::direct("partition-all", 1, 3, "(partition-all n step? coll)", partition_all).endless(Endless::Partition).aliases(&["partitionv-all"]).doc(
        "Splits into pieces of n elements, whose starts are step elements apart; the last may be shorter.",
        &[("(partition-all 2 [1 2 3])", "[[1 2] [3]]"), ("(partition-all 0 [1])", "!type_error")],
    ),
    Builtin::direct("zip", 2, 2, "(zip a b)", zip).endless(Endless::SideBySide).doc(
        "Returns pairs of the elements at the same index, up to the length of the shorter vector.",
        &[("(zip [1 2] [:a :b])", "[[1 :a] [2 :b]]"), ("(zip \"ab\" [1])", "!type_error")],
    ),
    Builtin::direct("frequencies", 1, 1, "(frequencies coll)", frequencies).doc(
        "Returns a map from each element to how often it occurs.",
        &[
            ("(frequencies [:a :b :a])", "{:a 2 :b 1}"),
            ("(frequencies nil)", "{}"),
            ("(frequencies 1)", "!type_error"),
        ],
    ),
    Builtin::direct("combinations", 2, 2, "(combinations coll n)", combinations).doc(
        "Returns all choices of n elements, in order.",
        &[
            ("(combinations [1 2 3] 2)", "[[1 2] [1 3] [2 3]]"),
            ("(combinations [1 2] 0)", "[[]]"),
            ("(combinations inc 2)", "!type_error"),
        ],
    ),
    Builtin::direct("range", 0, 3, "(range start? end? step?)", range_of).doc(
        "Returns the numbers from start (0 by default) to before end. Without end, or with a step of 0, the sequence is endless.",
        &[
            ("(range 5)", "[0 1 2 3 4]"),
            ("(range 10 0 -2)", "[10 8 6 4 2]"),
            ("(range 0 1 0.25)", "[0 0.25 0.5 0.75]"),
            ("(take 3 (range))", "[0 1 2]"),
            ("(take 3 (range 1 5 0))", "[1 1 1]"),
            ("(count (range))", "!type_error"),
        ],
    ),
];
