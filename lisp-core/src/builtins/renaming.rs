//! Maps with other keys: `map-invert`, `rename-keys`.

use super::args::not_walked;
use super::{Builtin, maps};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Map, Res, Value};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("map-invert", 1, 1, "(map-invert m)", map_invert).namespace("clojure.set").doc(
        "The map with keys and values changed places.",
        &[("(map-invert {:a 1 :b 2})", "{1 :a 2 :b}"), ("(map-invert nil)", "{}"), ("(map-invert [1])", "!type_error")],
    ),
    Builtin::direct("rename-keys", 2, 2, "(rename-keys m names)", rename_keys).namespace("clojure.set").doc(
        "The map with the keys that a map of names holds renamed; nil for nil.",
        &[
            ("(rename-keys {:a 1 :b 2} {:a :x})", "{:b 2 :x 1}"),
            ("(rename-keys nil {:a :x})", "nil"),
            ("(rename-keys {:a 1} 5)", "!type_error"),
        ],
    ),
];

/// A map, or none for nil.
fn map<'h>(name: &str, expects: &str, v: Value<'h>) -> Res<Option<&'h Map<'h>>> {
    match v {
        Value::Map(m) => Ok(Some(m)),
        Value::Nil => Ok(None),
        other => Err(not_walked(name, expects, other)),
    }
}

fn map_invert<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Some(m) = map("map-invert", "a map", args[0])? else { return h.empty_map().map(Value::Map) };
    let entries = m.entries(h)?;
    h.charge(cost::placed(entries.len()))?;
    let inverted = h.map_builder(entries.len())?;
    for (key, value) in entries.iter() {
        inverted.insert(h, value, key)?;
    }
    inverted.finish(h).map(Value::Map)
}

/// All old names go first: a new name may be one of them.
fn rename_keys<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "rename-keys";
    let m = map(name, "a map", args[0])?;
    let names = map(name, "a map of names", args[1])?;
    let (Some(m), Some(names)) = (m, names) else { return Ok(args[0]) };
    let names = names.entries(h)?;
    let mut renamed = m;
    for (old, _) in names.iter() {
        h.charge(cost::PLACED)?;
        renamed = h.dissoc(renamed, renamed.meant(h, old)?)?;
    }
    for (old, new) in names.iter() {
        h.charge(cost::PLACED)?;
        if let Some(value) = maps::get(h, args[0], old)? {
            renamed = h.assoc_meant(renamed, renamed, new, value)?;
        }
    }
    Ok(Value::Map(renamed))
}
