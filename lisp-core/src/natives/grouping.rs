//! Functions that group elements by the result of their function, or choose among them.

use super::accepts::Accepts;
use super::per_element::{After, Builds, PerElement, row, step_of_walk, walk, walk_vectors};
use super::registers::{ACC, ITEMS, RESULT, builder, items, vector};
use crate::builtins::{Builtin, Endless, MANY, args, comparison, numbers};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Res, Step, Value};
use crate::stack::{Call, Control, State};
use std::cmp::Ordering;

pub(super) const TABLE: &[Builtin] =
    &[PartitionBy::ROW, GroupBy::ROW, DistinctBy::ROW, SumBy::ROW, AvgBy::ROW, MinBy::ROW, MaxBy::ROW];

/// The groups are built in [`ACC`].
struct PartitionBy;

impl PartitionBy {
    /// The register for the group that grows.
    const GROUP: usize = 4;
    /// The register for what the elements of the group have in common.
    const KEY: usize = 5;

    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        let at = call.args().start;
        if call.argc() == 1 {
            return step_of_walk::<Self>(h, s.stack[at]).map(Control::Value);
        }
        let list = items(h, Self::ROW.name, s.stack[at + 1])?;
        let group = Value::VecBuilder(h.vec_builder(0)?);
        walk_vectors::<Self>(h, s, call, s.stack[at], [list, group, Value::Unset], vector(list).len())
    }
}

impl PerElement for PartitionBy {
    const ROW: Builtin = Builtin::calling("partition-by", 1, 2, "(partition-by f coll)", PartitionBy::start)
        .endless(Endless::Step(Step::PartitionBy))
        .doc(
            "Splits the elements where the result of f changes.",
            &[("(partition-by odd? [1 3 2 5])", "[[1 3] [2] [5]]"), ("(partition-by 1 [1])", "!type_error")],
        );
    const ACCEPTS: Accepts = Accepts::LOOK_UPS;
    const STEP: Option<Step> = Some(Step::PartitionBy);
    const BUILDS: Builds = Builds::Vector;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, index: usize) -> Res<After<'h>> {
        let (Some(groups), Some(group)) = (builder(own[ACC]), builder(own[Self::GROUP])) else {
            return Ok(After::Next);
        };
        if index == 0 || h.equal(own[Self::KEY], own[RESULT])? {
            group.push(h, item)?;
        } else {
            h.charge(cost::PLACED)?;
            let next = h.vec_builder(4)?;
            next.push(h, item)?;
            groups.reserve(h, 1)?;
            let done = group.finish(h)?;
            groups.push(h, done)?;
            own[Self::GROUP] = Value::VecBuilder(next);
        }
        own[Self::KEY] = own[RESULT];
        Ok(After::Next)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        let Some(groups) = builder(own[ACC]) else { return Ok(Value::Nil) };
        if let Some(group) = builder(own[Self::GROUP])
            && !group.is_empty()
        {
            groups.reserve(h, 1)?;
            let last = group.finish(h)?;
            groups.push(h, last)?;
            own[Self::GROUP] = Value::Nil;
        }
        groups.finish(h)
    }
}

struct GroupBy;

impl PerElement for GroupBy {
    const ROW: Builtin = row::<Self>("group-by", "(group-by f coll)").doc(
        "Returns a map from each result of f to the elements with that result.",
        &[("(group-by odd? [1 2 3])", "{false [2] true [1 3]}"), ("(group-by 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::READERS;
    const BUILDS: Builds = Builds::Map;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, _: usize) -> Res<After<'h>> {
        let (Value::MapBuilder(groups), key) = (own[ACC], own[RESULT]) else { return Ok(After::Next) };
        if let Some(place) = groups.place(h, key)? {
            if let Value::VecBuilder(members) = groups.entry(place).1 {
                members.push(h, item)?;
            }
            return Ok(After::Next);
        }
        let members = h.vec_builder(4)?;
        members.push(h, item)?;
        groups.insert(h, key, Value::VecBuilder(members))?;
        Ok(After::Next)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        let Value::MapBuilder(groups) = own[ACC] else { return Ok(Value::Nil) };
        // All at once: finished groups are not processed again after a fault.
        h.charge(groups.len() as u64)?;
        for place in 0..groups.len() {
            if let Value::VecBuilder(members) = groups.entry(place).1 {
                groups.set_value(place, members.finish(h)?);
            }
        }
        groups.finish(h).map(Value::Map)
    }
}

struct DistinctBy;

impl PerElement for DistinctBy {
    const ROW: Builtin = row::<Self>("distinct-by", "(distinct-by f coll)").doc(
        "Returns the first element for each result of f.",
        &[("(distinct-by odd? [1 2 3])", "[1 2]"), ("(distinct-by 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::READERS;
    const BUILDS: Builds = Builds::Map;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, _: usize) -> Res<After<'h>> {
        if let Value::MapBuilder(first) = own[ACC]
            && first.place(h, own[RESULT])?.is_none()
        {
            first.insert(h, own[RESULT], item)?;
        }
        Ok(After::Next)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        let Value::MapBuilder(first) = own[ACC] else { return Ok(Value::Nil) };
        h.charge(first.len() as u64)?;
        own[ITEMS] = Value::Nil;
        first.seal();
        h.vector_from(first.len(), (0..first.len()).map(|place| first.entry(place).1))
    }
}

/// The register for the number of numbers in the sum, which is in [`ACC`].
const COUNT: usize = 4;

/// Adds the result to the sum. Nil is skipped.
fn add_up<'h>(h: &'h Ctx, name: &str, own: &mut [Value<'h>]) -> Res<After<'h>> {
    let result = own[RESULT];
    if result.is_nil() {
        return Ok(After::Next);
    }
    if !result.is_number() {
        return Err(args::type_error(name, "numbers", result));
    }
    h.charge(cost::ADDED)?;
    let sum = numbers::add(h, own[ACC], result)?;
    let count = match own[COUNT] {
        Value::Int(n) => n,
        _ => 0,
    };
    own[ACC] = sum;
    own[COUNT] = Value::Int(count + 1);
    Ok(After::Next)
}

struct SumBy;

impl PerElement for SumBy {
    const ROW: Builtin = row::<Self>("sum-by", "(sum-by f coll)").doc(
        "Returns the sum of the results of f; nil is ignored.",
        &[("(sum-by :n [{:n 1} {} {:n 2}])", "3"), ("(sum-by 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::READERS;

    fn accumulator<'h>(_: &'h Ctx, _: usize) -> Res<Value<'h>> {
        Ok(Value::Int(0))
    }

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        add_up(h, Self::ROW.name, own)
    }
}

struct AvgBy;

impl PerElement for AvgBy {
    const ROW: Builtin = row::<Self>("avg-by", "(avg-by f coll)").doc(
        "Returns the mean of the results of f; nil is ignored.",
        &[("(avg-by :n [{:n 1} {:n 2}])", "1.5"), ("(avg-by 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::READERS;

    fn accumulator<'h>(_: &'h Ctx, _: usize) -> Res<Value<'h>> {
        Ok(Value::Int(0))
    }

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        add_up(h, Self::ROW.name, own)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        match own[COUNT] {
            Value::Int(n) => numbers::div(h, own[ACC], Value::Int(n)),
            _ => Ok(Value::Nil),
        }
    }
}

/// The register for the key of the best element, which is in [`ACC`].
const BEST_KEY: usize = 4;

/// Takes the element if its key is better than that of the best so far. Elements without a key are skipped; of equal
/// ones the first wins.
fn choose<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, better: Ordering) -> Res<After<'h>> {
    h.charge(cost::COMPARED)?;
    let key = own[RESULT];
    let chosen = match own[BEST_KEY] {
        _ if key.is_nil() => false,
        Value::Unset => true,
        best => comparison::compare_values(h, key, best)? == better,
    };
    if chosen {
        own[BEST_KEY] = key;
        own[ACC] = item;
    }
    Ok(After::Next)
}

/// The elements are a collection, or the arguments after the function if there are several.
fn start_choice<'h, F: PerElement>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let (f, coll) = (args[0], args[1]);
    if args.len() > 2 {
        h.charge(args.len() as u64)?;
        let elements = h.vector(&args[1..])?;
        return walk::<F>(h, s, call, f, elements);
    }
    match coll {
        Value::Nil | Value::Vector(_) | Value::Map(_) | Value::Set(_) => walk::<F>(h, s, call, f, coll),
        only => Ok(Control::Value(only)),
    }
}

struct MinBy;

impl PerElement for MinBy {
    const ROW: Builtin = Builtin::calling("min-by", 2, MANY, "(min-by f coll)", start_choice::<MinBy>).doc(
        "Returns the element for which f returns the smallest value.",
        &[("(min-by :n [{:n 2} {:n 1}])", "{:n 1}"), ("(min-by 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::READERS;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, _: usize) -> Res<After<'h>> {
        choose(h, own, item, Ordering::Less)
    }
}

struct MaxBy;

impl PerElement for MaxBy {
    const ROW: Builtin = Builtin::calling("max-by", 2, MANY, "(max-by f coll)", start_choice::<MaxBy>).doc(
        "Returns the element for which f returns the largest value.",
        &[("(max-by :n [{:n 2} {:n 1}])", "{:n 2}"), ("(max-by 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::READERS;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, _: usize) -> Res<After<'h>> {
        choose(h, own, item, Ordering::Greater)
    }
}
