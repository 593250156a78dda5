//! Functions that build a collection from the results for the elements.

use super::accepts::Accepts;
use super::per_element::{After, Builds, PerElement, row, start, step_of_walk, walk_vectors};
use super::registers::{ACC, FUNCTION, ITEMS, RESULT, builder, collections, vector};
use super::streams::{self, Plan, Sink};
use crate::builtins::{Builtin, Endless, Lowering, MANY, Round, args};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Res, Step, Value};
use crate::stack::{Call, Control, State};
use crate::text::describe;

pub(super) const TABLE: &[Builtin] = &[
    Map::ROW,
    MapIndexed::ROW,
    Mapcat::ROW,
    Filter::ROW,
    Remove::ROW,
    Keep::ROW,
    KeepIndexed::ROW,
    UpdateVals::ROW,
    UpdateKeys::ROW,
];

/// Adds a value to the vector under construction.
#[inline]
fn push<'h>(h: &'h Ctx, own: &[Value<'h>], value: Value<'h>) -> Res<After<'h>> {
    if let Some(vector) = builder(own[ACC]) {
        vector.push(h, value)?;
    }
    Ok(After::Next)
}

struct Map;

impl Map {
    /// Registers for the second collection and the third.
    const OTHERS: [usize; 2] = [4, 5];

    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        let at = call.args().start;
        if !matches!(call.argc(), 2..=4) {
            return match call.argc() {
                1 => step_of_walk::<Self>(h, s.stack[at]).map(Control::Value),
                _ => over_rows::<Self>(h, s, call, false),
            };
        }
        let (lists, count) = collections(h, Self::ROW.name, &s.stack[at + 1..call.args().end])?;
        walk_vectors::<Self>(h, s, call, s.stack[at], lists, count)
    }
}

impl PerElement for Map {
    const ROW: Builtin = Builtin::calling("map", 1, MANY, "(map f coll) (map f c1 c2 ...)", Map::start)
        .endless(Endless::Map)
        .aliases(&["mapv"])
        .lowered(Lowering::Round(Round::Map))
        .doc(
            "Returns f of each element, or of the elements at each index of several collections. A map, a set or a \
             vector looks up. Without a collection, returns a transducer.",
            &[
                ("(map inc [1 2])", "[2 3]"),
                ("(map + [1 2] [10 20])", "[11 22]"),
                ("(map {:a 1} [:a :b])", "[1 nil]"),
                ("(into [] (map inc) [1 2])", "[2 3]"),
                ("(map 1 [1])", "!type_error"),
            ],
        );
    const ACCEPTS: Accepts = Accepts::FUNCTIONS;
    const STEP: Option<Step> = Some(Step::Map);
    const BUILDS: Builds = Builds::FullVector;

    #[inline]
    fn arguments<'h>(own: &[Value<'h>], list: &'h [Value<'h>], index: usize) -> Option<([Value<'h>; 3], usize)> {
        let (mut args, mut argc) = ([*list.get(index)?, Value::Nil, Value::Nil], 1);
        for register in Self::OTHERS {
            if let Value::Vector(other) = own[register] {
                (args[argc], argc) = (other.get(index)?, argc + 1);
            }
        }
        Some((args, argc))
    }

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        push(h, own, own[RESULT])
    }
}

/// Returns the arguments of a function that is called with an index and an element.
#[inline]
fn indexed<'h>(list: &'h [Value<'h>], index: usize) -> Option<([Value<'h>; 3], usize)> {
    list.get(index).map(|&item| ([Value::count(index), item, Value::Nil], 2))
}

struct MapIndexed;

impl PerElement for MapIndexed {
    const ROW: Builtin = row::<Self>("map-indexed", "(map-indexed f coll)").doc(
        "Returns the results of f for each index and element.",
        &[("(map-indexed vector [:a :b])", "[[0 :a] [1 :b]]"), ("(map-indexed 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::LOOK_UPS;
    const STEP: Option<Step> = Some(Step::MapIndexed);
    const BUILDS: Builds = Builds::FullVector;

    #[inline]
    fn arguments<'h>(_: &[Value<'h>], list: &'h [Value<'h>], index: usize) -> Option<([Value<'h>; 3], usize)> {
        indexed(list, index)
    }

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        push(h, own, own[RESULT])
    }
}

/// Walks the elements at the same positions of several collections.
fn over_rows<'h, F: PerElement>(h: &'h Ctx, s: &mut State<'h>, call: Call, joins: bool) -> Res<Control<'h>> {
    let [f, colls @ ..] = &s.stack[call.args()] else { return Ok(Control::Value(Value::Nil)) };
    F::ACCEPTS.check(F::ROW.name, *f)?;
    h.charge(colls.len() as u64)?;
    h.check_available(colls.len() * 16)?;
    let mut lists: Vec<&'h [Value<'h>]> = Vec::with_capacity(colls.len());
    for &coll in colls {
        lists.push(args::seq(h, F::ROW.name, coll)?);
    }
    let count = lists.iter().map(|list| list.len()).min().unwrap_or(0);
    let rows = h.vec_builder(count)?;
    for i in 0..count {
        h.charge(cost::placed(1) + cost::moved(lists.len()))?;
        rows.push(h, h.vector_from(lists.len(), lists.iter().filter_map(|list| list.get(i).copied()))?)?;
    }
    let row = args::transducer(h, Step::MapRow, &[*f, Value::count(lists.len())])?;
    let steps = if joins { h.vector(&[row, args::transducer(h, Step::Cat, &[])?])? } else { h.vector(&[row])? };
    let (source, nil) = (rows.finish(h)?, Value::Nil);
    let plan = Plan { sink: Sink::Vector, target: nil, acc: nil, source, steps: vector(steps), transduces: true };
    streams::start(h, s, call, &plan)
}

struct Mapcat;

impl Mapcat {
    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        if call.argc() > 2 { over_rows::<Self>(h, s, call, true) } else { start::<Self>(h, s, call) }
    }
}

impl PerElement for Mapcat {
    const ROW: Builtin = Builtin::calling("mapcat", 1, MANY, "(mapcat f coll) (mapcat f c1 c2 ...)", Mapcat::start)
        .endless(Endless::Mapcat)
        .doc(
            "Returns the collections that f returns for each element, one after the other.",
            &[
                ("(mapcat #(vector % %) [1 2])", "[1 1 2 2]"),
                ("(mapcat vector [1 2] [3 4])", "[1 3 2 4]"),
                ("(mapcat inc [1])", "!runtime_error"),
            ],
        );
    const ACCEPTS: Accepts = Accepts::FUNCTIONS;
    const STEP: Option<Step> = Some(Step::Mapcat);
    const BUILDS: Builds = Builds::Vector;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        let result = own[RESULT];
        let more = match (result, own[FUNCTION]) {
            (Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Nil, _) => args::seq(h, "mapcat", result)?,
            // A keyword's result that is not a collection is an element itself.
            (_, Value::Keyword(..)) => h.vec_single(result)?,
            (Value::Str(_), _) => args::seq(h, "mapcat", result)?,
            (Value::Endless(_), _) => return Err(Error::endless("mapcat").into()),
            _ => {
                let what = format!("mapcat expects collections from its function, got {}", describe(result));
                return Err(Error::new(Reason::RuntimeError, what).hint("use map, or return a vector").into());
            }
        };
        h.charge(more.len() as u64)?;
        if let Some(vector) = builder(own[ACC]) {
            vector.extend(h, more)?;
        }
        Ok(After::Next)
    }
}

struct Filter;

impl PerElement for Filter {
    const ROW: Builtin =
        row::<Self>("filter", "(filter pred coll)").aliases(&["filterv"]).lowered(Lowering::Round(Round::Filter)).doc(
            "Returns the elements for which pred is true.",
            &[("(filter odd? [1 2 3])", "[1 3]"), ("(filter 1 [1])", "!type_error")],
        );
    const ACCEPTS: Accepts = Accepts::FUNCTIONS;
    const STEP: Option<Step> = Some(Step::Filter);
    const BUILDS: Builds = Builds::Vector;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, _: usize) -> Res<After<'h>> {
        if own[RESULT].truthy() { push(h, own, item) } else { Ok(After::Next) }
    }
}

struct Remove;

impl PerElement for Remove {
    const ROW: Builtin = row::<Self>("remove", "(remove pred coll)").lowered(Lowering::Round(Round::Remove)).doc(
        "Returns the elements for which pred is not true.",
        &[("(remove odd? [1 2 3])", "[2]"), ("(remove 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::FUNCTIONS;
    const STEP: Option<Step> = Some(Step::Remove);
    const BUILDS: Builds = Builds::Vector;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, _: usize) -> Res<After<'h>> {
        if own[RESULT].truthy() { Ok(After::Next) } else { push(h, own, item) }
    }
}

struct Keep;

impl PerElement for Keep {
    const ROW: Builtin = row::<Self>("keep", "(keep f coll)").lowered(Lowering::Round(Round::Keep)).doc(
        "Returns the results of f that are not nil.",
        &[("(keep :a [{:a 1} {}])", "[1]"), ("(keep 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::FUNCTIONS;
    const STEP: Option<Step> = Some(Step::Keep);
    const BUILDS: Builds = Builds::Vector;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        if own[RESULT].is_nil() { Ok(After::Next) } else { push(h, own, own[RESULT]) }
    }
}

struct KeepIndexed;

impl PerElement for KeepIndexed {
    const ROW: Builtin = row::<Self>("keep-indexed", "(keep-indexed f coll)").doc(
        "Returns the results of f for each index and element that are not nil.",
        &[("(keep-indexed (fn [i x] (when (odd? i) x)) [:a :b])", "[:b]"), ("(keep-indexed 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::LOOK_UPS;
    const STEP: Option<Step> = Some(Step::KeepIndexed);
    const BUILDS: Builds = Builds::Vector;

    #[inline]
    fn arguments<'h>(_: &[Value<'h>], list: &'h [Value<'h>], index: usize) -> Option<([Value<'h>; 3], usize)> {
        indexed(list, index)
    }

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        if own[RESULT].is_nil() { Ok(After::Next) } else { push(h, own, own[RESULT]) }
    }
}

/// The register for the keys, or the values, with which the function is not called.
const OTHERS: usize = 4;
/// The register for the map, if it knows how its keys were written, or has a shape.
const WHOLE: usize = 5;

/// Starts to walk the values, or the keys, of the map in the first argument; the function is after it.
fn start_entries<'h, F: PerElement>(h: &'h Ctx, s: &mut State<'h>, call: Call, of_keys: bool) -> Res<Control<'h>> {
    let at = call.args().start;
    let (map, f) = (s.stack[at], s.stack[at + 1]);
    match map {
        Value::Nil => F::ACCEPTS.check(F::ROW.name, f).map(|()| Control::Value(Value::Nil)),
        Value::Map(map) => {
            let [keys, values] = map.columns(h)?;
            let (list, others) = if of_keys { (keys, values) } else { (values, keys) };
            let whole = if map.knows_how_written() { Value::Map(map) } else { Value::Nil };
            walk_vectors::<F>(h, s, call, f, [list, others, whole], map.len())
        }
        other => Err(args::not_walked(F::ROW.name, "a map", other)),
    }
}

/// What functions of the values or keys of a map accept.
const OF_ENTRIES: Accepts = Accepts::FUNCTIONS;

struct UpdateVals;

impl UpdateVals {
    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        start_entries::<Self>(h, s, call, false)
    }
}

impl PerElement for UpdateVals {
    const ROW: Builtin = Builtin::calling("update-vals", 2, 2, "(update-vals m f)", UpdateVals::start).doc(
        "Returns the map with f applied to every value.",
        &[("(update-vals {:a 1} inc)", "{:a 2}"), ("(update-vals {:a 1} 1)", "!type_error")],
    );
    const ACCEPTS: Accepts = OF_ENTRIES;
    const BUILDS: Builds = Builds::FullVector;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        push(h, own, own[RESULT])
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        // The old values are no longer needed, in case a compaction comes in between.
        own[ITEMS] = Value::Nil;
        let Some(values) = builder(own[ACC]) else { return Ok(Value::Nil) };
        h.charge(values.len() as u64)?;
        match own[WHOLE] {
            Value::Map(map) if let Some((keys, _)) = map.shape() => {
                h.map_of_shape(keys, values.items().iter().copied())
            }
            whole => h.tree_of_columns(whole, vector(own[OTHERS]), values.items()),
        }
        .map(Value::Map)
    }
}

struct UpdateKeys;

impl UpdateKeys {
    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        start_entries::<Self>(h, s, call, true)
    }
}

impl PerElement for UpdateKeys {
    const ROW: Builtin = Builtin::calling("update-keys", 2, 2, "(update-keys m f)", UpdateKeys::start).doc(
        "Returns the map with f applied to every key.",
        &[("(update-keys {:a 1} name)", "{\"a\" 1}"), ("(update-keys {:a 1} 1)", "!type_error")],
    );
    const ACCEPTS: Accepts = OF_ENTRIES;
    const BUILDS: Builds = Builds::Map;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, index: usize) -> Res<After<'h>> {
        if let (Value::MapBuilder(map), Some(&value)) = (own[ACC], vector(own[OTHERS]).get(index)) {
            map.insert(h, own[RESULT], value)?;
        }
        Ok(After::Next)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        (own[ITEMS], own[OTHERS]) = (Value::Nil, Value::Nil);
        match (own[ACC], own[WHOLE]) {
            (Value::MapBuilder(map), Value::Map(old)) => map.finish_like(h, old).map(Value::Map),
            (Value::MapBuilder(map), _) => map.finish(h).map(Value::Map),
            _ => Ok(Value::Nil),
        }
    }
}
