//! Maps with other keys: `map-invert`, `rename-keys`.

use super::args::{at_once, not_walked};
use super::{Builtin, maps};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Entries, Gathered, Heap, Map, Res, SMALL, Value, Written};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("map-invert", 1, 1, "(map-invert m)", map_invert).namespace("clojure.set").doc(
        "Returns the map with keys and values swapped.",
        &[("(map-invert {:a 1 :b 2})", "{1 :a 2 :b}"), ("(map-invert nil)", "{}"), ("(map-invert [1])", "!type_error")],
    ),
    Builtin::direct("rename-keys", 2, 2, "(rename-keys m names)", rename_keys).namespace("clojure.set").doc(
        "Returns the map with keys renamed by a map from old to new keys; nil for nil.",
        &[
            ("(rename-keys {:a 1 :b 2} {:a :x})", "{:b 2 :x 1}"),
            ("(rename-keys nil {:a :x})", "nil"),
            ("(rename-keys {:a 1} 5)", "!type_error"),
        ],
    ),
];

/// Returns a map argument; `None` for nil.
fn map<'h>(name: &str, expects: &str, v: Value<'h>) -> Res<Option<&'h Map<'h>>> {
    match v {
        Value::Map(m) => Ok(Some(m)),
        Value::Nil => Ok(None),
        other => Err(not_walked(name, expects, other)),
    }
}

fn map_invert<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Some(m) = map("map-invert", "a map", args[0])? else { return h.empty_map().map(Value::Map) };
    h.charge(cost::placed(m.len()))?;
    let mut inverted = Gathered::new(h);
    m.in_order(h, |(key, value)| inverted.insert(value, key))?;
    inverted.map(Written::InKeyOrder).map(Value::Map)
}

/// Returns the steps that [`rename_one`] takes, one after the other. All old names are removed first, because a new
/// name may be one of them.
pub(crate) fn renamings<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    let [_, Value::Map(names), ..] = args else { return h.vector(&[]) };
    h.charge(2 * names.len() as u64)?;
    let steps = h.vec_builder(2 * names.len())?;
    names.in_order(h, |(old, _)| steps.push(h, h.vector(&[old])?))?;
    names.in_order(h, |(old, new)| steps.push(h, h.vector(&[old, new])?))?;
    steps.finish(h)
}

/// Removes an old name from the result so far, or adds the value that the whole map has at it under its new name.
pub(crate) fn rename_one<'h>(h: &'h Heap, whole: Value<'h>, renamed: Value<'h>, step: Value<'h>) -> Res<Value<'h>> {
    h.charge(cost::PLACED)?;
    match step {
        Value::Vector(step) => match *step.items() {
            [old, new] => take_new(h, whole, renamed, old, new),
            [old] => maps::dissoc_one(h, renamed, renamed, old),
            _ => Ok(renamed),
        },
        _ => Ok(renamed),
    }
}

fn take_new<'h>(h: &'h Heap, whole: Value<'h>, renamed: Value<'h>, old: Value<'h>, new: Value<'h>) -> Res<Value<'h>> {
    match maps::get(h, whole, old)? {
        Some(value) => maps::put(h, "rename-keys", renamed, new, value),
        None => Ok(renamed),
    }
}

fn rename_keys<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "rename-keys";
    let m = map(name, "a map", args[0])?;
    let names = map(name, "a map of names", args[1])?;
    let (Some(m), Some(names)) = (m, names) else { return Ok(args[0]) };
    at_once(2 * names.len(), maps::changed(names.len(), m))?;
    let entries = names.entries(h)?;
    let mut renamed = args[0];
    for (old, _) in entries.iter() {
        h.charge(cost::PLACED)?;
        renamed = maps::dissoc_one(h, renamed, renamed, old)?;
    }
    for (old, new) in entries.iter() {
        h.charge(cost::PLACED)?;
        renamed = take_new(h, args[0], renamed, old, new)?;
    }
    match renamed {
        Value::Map(renamed) if m.len().max(names.len()) <= SMALL => in_place(h, m, &entries, renamed).map(Value::Map),
        _ => Ok(renamed),
    }
}

/// Returns the renamed map, written in the order of the old one: a new name takes the position of the name that it replaces.
fn in_place<'h>(h: &'h Heap, old: &'h Map<'h>, names: &Entries<'h>, renamed: &'h Map<'h>) -> Res<&'h Map<'h>> {
    h.charge(cost::placed(old.len() + names.len() + renamed.len()))?;
    let new_names = h.map_builder(names.len())?;
    for (name, new) in names.iter() {
        new_names.insert(h, old.meant(h, name)?, new)?;
    }
    let builder = h.map_builder(old.len())?;
    let put = |key| match renamed.get(h, key)? {
        Some(value) => builder.insert(h, key, value).map(drop),
        None => Ok(()),
    };
    for (key, _) in old.entries_as_written(h)?.iter() {
        put(new_names.place(h, key)?.map_or(key, |i| new_names.entry(i).1))?;
    }
    for (key, _) in renamed.entries_as_written(h)?.iter() {
        put(key)?;
    }
    builder.finish_as_written(h)
}
