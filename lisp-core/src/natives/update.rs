//! `update` and `update-in`: one call, then the maps around the updated position are created again.

use super::registers::{RESULT, vector};
use crate::builtins::args::function;
use crate::builtins::{Builtin, MANY, args, maps};
use crate::context::Ctx;
use crate::heap::{Res, Value};
use crate::stack::{Call, Control, NativeFn, NativeFrame, State};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::calling("update", 3, MANY, "(update m k f & args)", start_update).shown_as_fn().doc(
        "Returns the map with f applied to the value at a key.",
        &[
            ("(update {:a 1} :a + 10)", "{:a 11}"),
            ("(update {\"a\" 1} :a inc)", "{\"a\" 2}"),
            ("(update {:a 1} :a 1)", "!type_error"),
        ],
    ),
    Builtin::calling("update-in", 3, MANY, "(update-in m path f & args)", start_update_in).shown_as_fn().doc(
        "Returns the map with f applied to the value at a path of keys.",
        &[("(update-in {:a {:b 1}} [:a :b] inc)", "{:a {:b 2}}"), ("(update-in {:a 1} [:a] 1)", "!type_error")],
    ),
];

static UPDATE: NativeFn = NativeFn::new("update", step);
static UPDATE_IN: NativeFn = NativeFn::new("update-in", step);

/// The register for the map.
const MAP: usize = 1;
/// The register for the path.
const PATH: usize = 2;
/// The register for the function; its first argument and the others follow.
const CALL: usize = 3;

fn start_update<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let at = call.args().start;
    function(UPDATE.name, s.stack[at + 2])?;
    let path = h.vector(&[s.stack[at + 1]])?;
    start(&UPDATE, h, s, call, path)
}

fn start_update_in<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let at = call.args().start;
    function(UPDATE_IN.name, s.stack[at + 2])?;
    let path = match s.stack[at + 1] {
        // A path without a key stands for the key nil.
        Value::Nil => h.vector(&[Value::Nil])?,
        Value::Vector(path) if path.items().is_empty() => h.vector(&[Value::Nil])?,
        path @ Value::Vector(_) => path,
        other => return Err(args::not_walked(UPDATE_IN.name, "a vector of keys", other)),
    };
    start(&UPDATE_IN, h, s, call, path)
}

fn start<'h>(
    native: &'static NativeFn,
    h: &'h Ctx,
    s: &mut State<'h>,
    call: Call,
    path: Value<'h>,
) -> Res<Control<'h>> {
    let at = call.args().start;
    let (map, f) = (s.stack[at], s.stack[at + 2]);
    let mut old = map;
    for &key in vector(path) {
        h.charge(1)?;
        old = read(h, native.name, old, key)?;
    }
    let more = &s.stack[at + 3..call.args().end];
    h.check_available((more.len() + CALL + 2) * 16)?;
    let mut registers = vec![Value::Nil, map, path, f, old];
    registers.extend_from_slice(more);
    s.push_native(h, native, call, &registers)
}

fn step<'h>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    let Some(NativeFrame { native, base, called, .. }) = s.native_frame() else { return Ok(Control::Frame) };
    h.meter.set_restart();
    if !called {
        return s.call_with_registers(h, s.stack[base + CALL], CALL + 1);
    }
    let (map, path, result) = (s.stack[base + MAP], vector(s.stack[base + PATH]), s.stack[base + RESULT]);
    maps::assoc_path(h, native.name, map, path, result).map(Control::Value)
}

/// Returns the value to update: at the key, else at its counterpart.
fn read<'h>(h: &'h Ctx, name: &str, coll: Value<'h>, key: Value<'h>) -> Res<Value<'h>> {
    match (coll, key) {
        (Value::Map(m), _) => Ok(m.get(h, m.meant(h, key)?)?.unwrap_or(Value::Nil)),
        (Value::Vector(v), key) if key.is_number() => Ok(key.as_index().and_then(|i| v.get(i)).unwrap_or(Value::Nil)),
        (Value::Nil, _) => Ok(Value::Nil),
        (Value::Vector(_), _) => Err(args::type_error(name, "an index into the vector", key)),
        (other, _) => Err(args::type_error(name, "a map or vector", other)),
    }
}
