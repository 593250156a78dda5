//! Maps: reading and writing. If a map does not have a key, it uses the key's counterpart: the keyword or string of the same
//! name.

use super::args::{self, fault, type_error};
use super::slices::char_at;
use super::{Builtin, Endless, MANY};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Entry, Fault, Gathered, Heap, List, Map, MapBuilder, Res, SMALL, Value, Vector, Work, Written};
use crate::text::{arguments, describe};
use std::slice::ChunksExact;

/// Returns the element of `coll` at `key`: a map's value at the key or its counterpart, a vector's element, or a string's
/// character; `None` for everything else. A vector that is not a key of a map is a path into it. Calls of keywords and
/// maps, and destructuring, use this.
#[inline]
pub(crate) fn get<'h>(h: &'h Heap, coll: Value<'h>, key: Value<'h>) -> Res<Option<Value<'h>>> {
    match (coll, key) {
        (Value::Map(m), Value::Vector(path)) => match m.get_vector(h, key)? {
            Some(value) => Ok(Some(value)),
            None => get_path(h, coll, path.items()),
        },
        (Value::Map(m), key) => m.get_flexible(h, key),
        (Value::Vector(v), index) => Ok(index.as_index().and_then(|i| v.get(i))),
        (Value::Str(s), index) => match index.as_index() {
            Some(i) => char_at(h, s.text(), i),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Like [`get`], for a program that reads: a miss may be noted.
#[inline]
pub(crate) fn read<'h>(h: &'h Heap, coll: Value<'h>, key: Value<'h>) -> Res<Option<Value<'h>>> {
    let found = get(h, coll, key)?;
    if found.is_none() {
        h.note_missed(coll, key)?;
    }
    Ok(found)
}

/// Returns the value at the end of a path of keys; `None` if a step does not exist. A path inside a path is followed
/// too, with a work list.
pub(crate) fn get_path<'h>(h: &'h Heap, coll: Value<'h>, path: &'h [Value<'h>]) -> Res<Option<Value<'h>>> {
    let mut work: Work<'h, &'h [Value<'h>]> = Work::new(h);
    let (mut at, mut path) = (coll, path);
    loop {
        let Some((&key, rest)) = path.split_first() else {
            match work.pop() {
                Some(outer) => {
                    path = outer;
                    continue;
                }
                None => return Ok(Some(at)),
            }
        };
        h.charge(1)?;
        if let (Value::Map(m), Value::Vector(inner)) = (at, key) {
            match m.get_vector(h, key)? {
                Some(next) => (at, path) = (next, rest),
                None => {
                    work.push(rest)?;
                    path = inner.items();
                }
            }
            continue;
        }
        let next = match at {
            Value::Set(members) => members.contains(h, key)?.then_some(key),
            _ => read(h, at, key)?,
        };
        match next {
            Some(next) => (at, path) = (next, rest),
            None => return Ok(None),
        }
    }
}

/// Returns the collection with `value` at the end of a path. Missing steps and nil become maps; a vector grows by one
/// element at its end. An empty path is the path of the key nil.
pub(crate) fn assoc_path<'h>(
    h: &'h Heap,
    name: &str,
    root: Value<'h>,
    path: &[Value<'h>],
    value: Value<'h>,
) -> Res<Value<'h>> {
    let path = if path.is_empty() { &[Value::Nil] } else { path };
    let mut spine: Work<'h, (Value<'h>, Value<'h>)> = Work::new(h);
    let mut at = root;
    for (i, &key) in path.iter().enumerate() {
        h.charge(1)?;
        if at.is_nil() {
            at = Value::Map(h.empty_map()?);
        }
        spine.push((at, key))?;
        match at {
            Value::Map(_) if i + 1 == path.len() => {}
            Value::Map(m) => {
                // A vector is a key here, because the value will be stored at it.
                let next = if matches!(key, Value::Vector(_)) { m.get_vector(h, key)? } else { get(h, at, key)? };
                at = match next {
                    Some(next @ (Value::Map(_) | Value::Vector(_))) => next,
                    None | Some(Value::Nil) => Value::Nil,
                    Some(other) => return Err(dead_end(name, key, other)),
                };
            }
            Value::Vector(v) => {
                let index = index_of(name, v.len(), key)?;
                at = v.get(index).unwrap_or(Value::Nil);
            }
            other => return Err(type_error(name, "a map or vector at each step of the path", other)),
        }
    }
    let mut value = value;
    while let Some((coll, key)) = spine.pop() {
        value = put(h, name, coll, key, value)?;
    }
    Ok(value)
}

#[cold]
fn dead_end(name: &str, key: Value<'_>, found: Value<'_>) -> Fault {
    Error::new(
        Reason::RuntimeError,
        format!("{name}: the path continues below {}, but its value is {}", describe(key), describe(found)),
    )
    .class(ErrorClass::ClassCast)
    .hint("put a map there first, or end the path at that key")
    .into()
}

/// Returns the index in a vector of `len` elements that a key stands for, or the one after its end.
fn index_of(name: &str, len: usize, key: Value<'_>) -> Res<usize> {
    match (key.as_index().filter(|&i| i <= len), key) {
        (Some(place), _) => Ok(place),
        (None, other) => Err(Error::new(
            Reason::RuntimeError,
            format!("{name}: {} is not an index of a vector of {len} elements", describe(other)),
        )
        .class(if other.as_integer().is_some() { ErrorClass::IndexOutOfBounds } else { ErrorClass::IllegalArgument })
        .hint("use an index from 0 up to the length, or conj")
        .into()),
    }
}

/// `(assoc coll key value)`
pub(crate) fn put<'h>(h: &'h Heap, name: &str, coll: Value<'h>, key: Value<'h>, value: Value<'h>) -> Res<Value<'h>> {
    match coll {
        Value::Map(m) => Ok(Value::Map(h.assoc_meant(m, m, key, value)?)),
        Value::Vector(v) => {
            let index = index_of(name, v.len(), key)?;
            if index == v.len() { h.conj(v, value) } else { h.vector_assoc(v, index, value) }
        }
        Value::Nil => Ok(Value::Map(h.assoc(h.empty_map()?, key, value)?)),
        other => Err(type_error(name, "a map or vector", other)),
    }
}

/// Returns the error for a collection that cannot be read by key, with a hint about swapped arguments.
#[cold]
fn not_associative(name: &str, coll: Value<'_>, key: Value<'_>) -> Fault {
    let error = Error::new(
        Reason::TypeError,
        format!("{name} expects a map or vector and a key, got {} and {}", describe(coll), describe(key)),
    )
    .class(ErrorClass::IllegalArgument);
    match (coll, key) {
        (_, Value::Map(_)) => error.hint(format!("the collection comes first: ({name} coll key)")).into(),
        (Value::Set(_), _) => error.hint("use contains? for members of a set").into(),
        (Value::Str(_), _) => error.hint("use nth or subs for parts of a string").into(),
        _ => error.into(),
    }
}

fn get_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let default = args.get(2).copied().unwrap_or(Value::Nil);
    match args[0] {
        // A map as an index is a swapped argument.
        other @ Value::Vector(_) if matches!(args[1], Value::Map(_)) => Err(not_associative("get", other, args[1])),
        Value::Nil => Ok(default),
        coll @ (Value::Map(_) | Value::Vector(_)) => Ok(read(h, coll, args[1])?.unwrap_or(default)),
        Value::Set(members) => Ok(if members.contains(h, args[1])? { args[1] } else { default }),
        coll @ Value::Str(_) if args[1].is_number() => Ok(get(h, coll, args[1])?.unwrap_or(default)),
        other => Err(not_associative("get", other, args[1])),
    }
}

fn get_in<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let default = args.get(2).copied().unwrap_or(Value::Nil);
    let coll = match args[0] {
        coll @ Value::Map(_) => coll,
        coll @ (Value::Vector(_) | Value::Set(_) | Value::Nil) if !matches!(args[1], Value::Map(_)) => coll,
        coll @ Value::Str(_) if matches!(args[1], Value::Vector(_)) => coll,
        other => return Err(not_associative("get-in", other, args[1])),
    };
    match args[1] {
        Value::Nil => Ok(coll),
        Value::Vector(path) => Ok(get_path(h, coll, path.items())?.unwrap_or(default)),
        // All other collections count as paths that lead to no value.
        Value::Str(_) | Value::Set(_) | Value::Map(_) => Ok(default),
        other => Err(args::not_walked("get-in", "a vector of keys", other)),
    }
}

fn find<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Nil => Ok(Value::Nil),
        coll @ (Value::Map(_) | Value::Vector(_)) => match get(h, coll, args[1])? {
            Some(value) => h.vector(&[args[1], value]),
            None => Ok(Value::Nil),
        },
        other => Err(not_associative("find", other, args[1])),
    }
}

fn contains<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let found = match args[0] {
        Value::Nil => false,
        Value::Set(m) => m.contains(h, args[1])?,
        coll @ Value::Map(_) => get(h, coll, args[1])?.is_some(),
        Value::Vector(v) => {
            h.charge(v.len() as u64)?;
            let mut found = false;
            for &item in v.items() {
                if h.same_key(item, args[1])? {
                    found = true;
                    break;
                }
            }
            found
        }
        other => {
            let error = Error::new(
                Reason::TypeError,
                format!("contains? expects a map, set or vector, got {}", describe(other)),
            )
            .class(ErrorClass::IllegalArgument);
            return Err(match other {
                Value::Str(_) => error.hint("use includes? for parts of a string").into(),
                _ => error.into(),
            });
        }
    };
    Ok(Value::Bool(found))
}

fn assoc<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let [coll, pairs @ ..] = args else { return Err(pairs_expected("assoc", args.len()).into()) };
    if !matches!(coll, Value::Nil | Value::Map(_) | Value::Vector(_)) {
        return Err(type_error("assoc", "a map or vector", *coll));
    }
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        let error = pairs_expected("assoc", args.len());
        return Err(if args.len() < 3 { error } else { error.class(ErrorClass::IllegalArgument) }.into());
    }
    h.charge(args.len() as u64)?;
    let pairs = pairs.chunks_exact(2);
    match coll {
        Value::Vector(_) if pairs.len() == 1 => put(h, "assoc", *coll, args[1], args[2]),
        Value::Vector(v) => with_places(h, v, pairs),
        Value::Map(m) if pairs.len() == 1 => {
            h.charge(1)?;
            h.assoc_meant(m, m, args[1], args[2]).map(Value::Map)
        }
        Value::Map(m) => Ok(Value::Map(with_entries(h, m, pairs.len(), pairs.map(|pair| Ok((pair[0], pair[1]))))?)),
        _ => h.map(pairs.map(|pair| (pair[0], pair[1]))),
    }
}

/// Returns the vector with other elements at some indices, in one copy. An index at its end appends an element.
fn with_places<'h>(h: &'h Heap, v: &'h Vector<'h>, pairs: ChunksExact<'_, Value<'h>>) -> Res<Value<'h>> {
    h.charge(cost::moved(v.len()))?;
    let mut out = List::with_room(h, v.len() + pairs.len())?;
    v.items().iter().try_for_each(|&item| out.push(item))?;
    for pair in pairs {
        let place = index_of("assoc", out.items().len(), pair[0])?;
        match out.items_mut().get_mut(place) {
            Some(item) => *item = pair[1],
            None => out.push(pair[1])?,
        }
    }
    h.vector(out.items())
}

#[cold]
fn pairs_expected(name: &str, count: usize) -> Error {
    Error::new(Reason::ArityError, format!("{name} expects keys and values in pairs, got {}", arguments(count)))
        .hint("write a value after each key")
}

/// Returns the map with `count` more entries. Each is stored at its key, or at the counterpart of the key if `base` has only
/// that. A few entries are added one by one, more all at once.
pub(super) fn with_entries<'h>(
    h: &'h Heap,
    base: &'h Map<'h>,
    count: usize,
    entries: impl Iterator<Item = Res<Entry<'h>>>,
) -> Res<&'h Map<'h>> {
    h.charge(count as u64)?;
    if count <= 2 {
        let mut result = base;
        for entry in entries {
            let (key, value) = entry?;
            result = h.assoc_meant(base, result, key, value)?;
        }
        return Ok(result);
    }
    if count + base.len() <= SMALL {
        let builder = builder_of(h, base, count)?;
        for entry in entries {
            let (key, value) = entry?;
            builder.insert(h, base.meant(h, key)?, value)?;
        }
        return builder.finish_as_written(h);
    }
    let mut entries = entries;
    h.with_all(base, Written::OneByOne, |all| {
        entries.try_for_each(|entry| entry.and_then(|(key, value)| all.insert(base.meant(h, key)?, value)))
    })
}

/// Returns the set with `count` more members, added like the entries of [`with_entries`].
pub(super) fn with_members<'h>(
    h: &'h Heap,
    base: &'h Map<'h>,
    count: usize,
    members: impl Iterator<Item = Value<'h>>,
) -> Res<&'h Map<'h>> {
    h.charge(count as u64)?;
    if count <= 2 {
        let mut result = base;
        for member in members {
            result = h.assoc(result, member, Value::Bool(true))?;
        }
        return Ok(result);
    }
    if count + base.len() <= SMALL {
        let builder = builder_of(h, base, count)?;
        for member in members {
            builder.insert(h, member, Value::Bool(true))?;
        }
        return builder.finish(h);
    }
    let mut members = members;
    h.with_all(base, Written::InKeyOrder, |all| members.try_for_each(|member| all.add(member).map(drop)))
}

/// Returns a map under construction that starts with the entries of another.
fn builder_of<'h>(h: &'h Heap, base: &'h Map<'h>, count: usize) -> Res<&'h MapBuilder<'h>> {
    let old = base.entries_as_written(h)?;
    h.charge(old.len() as u64)?;
    let builder = h.map_builder(old.len() + count)?;
    for (key, value) in old.iter() {
        builder.insert(h, key, value)?;
    }
    Ok(builder)
}

fn assoc_in<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if !matches!(args[0], Value::Nil | Value::Map(_) | Value::Vector(_)) {
        return Err(type_error("assoc-in", "a map or vector", args[0]));
    }
    let path = match args[1] {
        Value::Nil => &[],
        Value::Vector(path) => path.items(),
        other => return Err(args::not_walked("assoc-in", "a vector of keys", other)),
    };
    assoc_path(h, "assoc-in", args[0], path, args[2])
}

fn dissoc<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let [coll, keys @ ..] = args else {
        return Err(fault(Reason::ArityError, "dissoc takes at least 1 argument, got 0"));
    };
    h.charge(keys.len() as u64)?;
    match coll {
        Value::Map(m) => {
            args::at_once(keys.len(), changed(keys.len(), m))?;
            keys.iter().try_fold(*coll, |rest, &key| dissoc_one(h, *coll, rest, key))
        }
        Value::Nil if keys.is_empty() => Ok(Value::Nil),
        Value::Nil => {
            let error = Error::new(Reason::RuntimeError, "dissoc expects a map, got nil")
                .hint("give a default for what may be missing, as in (dissoc (or m {}) :k)");
            Err(Error { of_nil: true, ..error }.into())
        }
        other => Err(type_error("dissoc", "a map", *other)),
    }
}

/// Removes a key from `rest`, or its counterpart if `whole` has only that. `whole` is the map before anything was removed.
pub(crate) fn dissoc_one<'h>(h: &'h Heap, whole: Value<'h>, rest: Value<'h>, key: Value<'h>) -> Res<Value<'h>> {
    match (whole, rest) {
        (Value::Map(whole), Value::Map(rest)) => h.dissoc(rest, whole.meant(h, key)?).map(Value::Map),
        _ => Ok(rest),
    }
}

/// Returns the number of intermediate parts when a map is changed this many times: each change leaves a part of a large
/// map as garbage.
pub(super) fn changed(changes: usize, map: &Map<'_>) -> usize {
    changes.saturating_mul(map.len().min(8))
}

/// Returns the number of entries of a map, or members of a set.
pub(super) fn entries_of(coll: &Value<'_>) -> usize {
    match coll {
        Value::Map(m) | Value::Set(m) => m.len(),
        _ => 0,
    }
}

/// Merges two maps, each of which may be nil.
pub(crate) fn merge_two<'h>(h: &'h Heap, first: Value<'h>, second: Value<'h>) -> Res<Value<'h>> {
    match (first, second) {
        (Value::Map(base), Value::Map(m)) => {
            with_entries(h, base, m.len(), m.entries_to_add(h)?.iter().map(Ok)).map(Value::Map)
        }
        (first, Value::Nil) => Ok(first),
        (_, second) => Ok(second),
    }
}

fn merge<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args {
        [] | [Value::Nil | Value::Bool(false)] => return Ok(Value::Map(h.empty_map()?)),
        [one] => return Ok(*one),
        _ => {}
    }
    h.charge(args.len() as u64)?;
    if let Some(place) = args.iter().position(|a| !matches!(a, Value::Map(_) | Value::Nil)) {
        let error = if place == 0 { type_error } else { args::not_walked };
        return Err(error("merge", "maps", args[place]));
    }
    args::at_once(args.len(), args.iter().map(entries_of).sum())?;
    let merged = args.iter().try_fold(Value::Nil, |merged, &arg| merge_two(h, merged, arg))?;
    if merged.is_nil() { h.empty_map().map(Value::Map) } else { Ok(merged) }
}

fn select_keys<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let coll = match args[0] {
        coll @ (Value::Map(_) | Value::Nil) => coll,
        other => return Err(args::not_walked("select-keys", "a map", other)),
    };
    let keys = match args[1] {
        // The entries of a map are not keys.
        Value::Map(_) => &[],
        other => args::seq(h, "select-keys", other)?,
    };
    h.charge(cost::placed(keys.len()))?;
    if keys.len() > SMALL {
        let mut found = Gathered::new(h);
        for &key in keys {
            if let Some(value) = read(h, coll, key)? {
                found.insert(key, value)?;
            }
        }
        return found.map(Written::OneByOne).map(Value::Map);
    }
    let builder = h.map_builder(keys.len())?;
    for &key in keys {
        if let Some(value) = read(h, coll, key)? {
            builder.insert(h, key, value)?;
        }
    }
    Ok(Value::Map(builder.finish_as_written(h)?))
}

/// Returns one part of each entry, in key order.
fn parts<'h>(
    h: &'h Heap,
    name: &str,
    coll: Value<'h>,
    part: fn((Value<'h>, Value<'h>)) -> Value<'h>,
) -> Res<Value<'h>> {
    match coll {
        Value::Nil => Ok(Value::Nil),
        Value::Map(m) => {
            h.charge(m.len() as u64)?;
            let out = h.vec_builder(m.len())?;
            m.in_order(h, |entry| out.push(h, part(entry)))?;
            out.finish(h)
        }
        other => Err(args::not_walked(name, "a map", other)),
    }
}

fn keys<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    parts(h, "keys", args[0], |entry| entry.0)
}

fn vals<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    parts(h, "vals", args[0], |entry| entry.1)
}

fn entries<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let map = args::map("entries", args[0])?;
    args::made_vector(h, "entries", Value::Map(map))
}

/// Returns the two parts of a map entry.
fn entry<'h>(name: &str, v: Value<'h>) -> Res<(Value<'h>, Value<'h>)> {
    match v {
        Value::Vector(pair) if pair.len() == 2 => match *pair.items() {
            [key, value] => Ok((key, value)),
            _ => Err(type_error(name, "an entry [key value]", v)),
        },
        other => Err(type_error(name, "an entry [key value]", other)),
    }
}

fn key<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(entry("key", args[0])?.0)
}

fn val<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(entry("val", args[0])?.1)
}

fn hash_map<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if !args.len().is_multiple_of(2) {
        return Err(pairs_expected("hash-map", args.len()).class(ErrorClass::IllegalArgument).into());
    }
    h.charge(args.len() as u64)?;
    h.map(args.chunks_exact(2).map(|pair| (pair[0], pair[1])))
}

fn zipmap<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (keys, vals) = (args::seq(h, "zipmap", args[0])?, args::seq(h, "zipmap", args[1])?);
    h.charge(cost::placed(keys.len().min(vals.len())))?;
    h.map(keys.iter().copied().zip(vals.iter().copied()))
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::pure("get", 2, 3, "(get coll key default?)", get_of).doc(
        "Returns the value at a key, the element or character at an index, a set's member; else the default, or nil. \
         Keywords also find the string of their name, strings the keyword. A vector may be a path.",
        &[
            ("(get {:a 1} :a)", "1"),
            ("(get {\"a\" 1} :a)", "1"),
            ("(get {:a 1} :b 0)", "0"),
            ("(get \"abc\" 1)", "\"b\""),
            ("(get {[0 1] :x} [0 1])", ":x"),
            ("(get [10 20] 1)", "20"),
            ("(get nil :a)", "nil"),
            ("(get #{1} 1)", "1"),
            ("(get 5 :a)", "!type_error"),
        ],
    ),
    Builtin::direct("get-in", 2, 3, "(get-in coll path default?)", get_in).doc(
        "Returns the value at the end of a path of keys and indices; the default, or nil, without one.",
        &[
            ("(get-in {:a [{:b 1}]} [:a 0 :b])", "1"),
            ("(get-in {:a {}} [:a :b] 0)", "0"),
            ("(get-in {\"a\" {\"b\" 2}} [:a :b])", "2"),
            ("(get-in nil [:a :b])", "nil"),
            ("(get-in 5 [:a])", "!type_error"),
        ],
    ),
    Builtin::direct("find", 2, 2, "(find coll key)", find).doc(
        "Returns the entry [key value] of a map, or [index element] of a vector; nil without one.",
        &[("(find {:a nil} :a)", "[:a nil]"), ("(find {:a 1} :b)", "nil"), ("(find #{1} 1)", "!type_error")],
    ),
    Builtin::pure("contains?", 2, 2, "(contains? coll x)", contains).namespace("clojure.set").doc(
        "Returns whether x is a key of the map, a member of the set, or an element of the vector.",
        &[
            ("(contains? {:a nil} :a)", "true"),
            ("(contains? #{1 2} 2)", "true"),
            ("(contains? [10 20] 20)", "true"),
            ("(contains? \"abc\" \"a\")", "!type_error"),
        ],
    ),
    Builtin::pure("assoc", 1, MANY, "(assoc coll key value ...)", assoc).shown_as_fn().doc(
        "Returns the map or vector with other values at keys; a vector may grow by one at its end. If only the string \
         or keyword of the same name is there, that entry changes.",
        &[
            ("(assoc {:a 1} :b 2)", "{:a 1 :b 2}"),
            ("(assoc {\"a\" 1} :a 2)", "{\"a\" 2}"),
            ("(assoc [1 2 3] 1 5)", "[1 5 3]"),
            ("(assoc nil :a 1)", "{:a 1}"),
            ("(assoc [1] 5 0)", "!runtime_error"),
            ("(assoc {} :a)", "!arity_error"),
        ],
    ),
    Builtin::direct("assoc-in", 3, 3, "(assoc-in coll path value)", assoc_in).doc(
        "Returns the collection with another value at the end of a path; missing steps become maps.",
        &[
            ("(assoc-in {} [:a :b] 1)", "{:a {:b 1}}"),
            ("(assoc-in [[1 2] [3 4]] [1 0] 99)", "[[1 2] [99 4]]"),
            ("(assoc-in {\"a\" {\"b\" 1}} [:a :b] 2)", "{\"a\" {\"b\" 2}}"),
            ("(assoc-in {:a 1} [:a :b] 2)", "!runtime_error"),
        ],
    ),
    Builtin::direct("dissoc", 1, MANY, "(dissoc m key ...)", dissoc).shown_as_fn().doc(
        "Returns the map without the keys. If a key is missing, the string or keyword of the same name is removed.",
        &[
            ("(dissoc {:a 1 :b 2} :b)", "{:a 1}"),
            ("(dissoc {:a 1} :x)", "{:a 1}"),
            ("(dissoc {\"a\" 1} :a)", "{}"),
            ("(dissoc [1] 0)", "!type_error"),
        ],
    ),
    Builtin::direct("merge", 0, MANY, "(merge m ...)", merge).shown_as_fn().doc(
        "Returns all entries of maps in one; later maps win. nil counts as empty.",
        &[
            ("(merge {:a 1} {:b 2} {:a 3})", "{:a 3 :b 2}"),
            ("(merge nil {:a 1})", "{:a 1}"),
            ("(merge {\"a\" 1} {:a 2})", "{\"a\" 2}"),
            ("(merge)", "{}"),
            ("(merge {:a 1} [1])", "!type_error"),
        ],
    ),
    Builtin::direct("select-keys", 2, 2, "(select-keys m keys)", select_keys).doc(
        "Returns the map of only these keys, written as asked for.",
        &[
            ("(select-keys {:a 1 :b 2 :c 3} [:a :c])", "{:a 1 :c 3}"),
            ("(select-keys {\"a\" 1} [:a :z])", "{:a 1}"),
            ("(select-keys [1 2] [0])", "!type_error"),
        ],
    ),
    Builtin::direct("keys", 1, 1, "(keys m)", keys).doc(
        "Returns the keys of a map, in their order.",
        &[("(keys {:b 1 :a 2})", "[:a :b]"), ("(keys nil)", "nil"), ("(keys [1])", "!type_error")],
    ),
    Builtin::direct("vals", 1, 1, "(vals m)", vals).doc(
        "Returns the values of a map in the order of its keys.",
        &[("(vals {:b 1 :a 2})", "[2 1]"), ("(vals nil)", "nil"), ("(vals #{1})", "!type_error")],
    ),
    Builtin::direct("entries", 1, 1, "(entries m)", entries).doc(
        "Returns the entries of a map as vectors [key value], in the order of the keys.",
        &[("(entries {:b 1 :a 2})", "[[:a 2] [:b 1]]"), ("(entries [1])", "!type_error")],
    ),
    Builtin::direct("key", 1, 1, "(key entry)", key)
        .doc("Returns the key of a map entry.", &[("(key [:a 1])", ":a"), ("(key [1 2 3])", "!type_error")]),
    Builtin::direct("val", 1, 1, "(val entry)", val)
        .doc("Returns the value of a map entry.", &[("(val [:a 1])", "1"), ("(val :a)", "!type_error")]),
    Builtin::direct("hash-map", 0, MANY, "(hash-map key value ...)", hash_map)
        .shown_as_fn()
        .aliases(&["array-map"])
        .doc(
            "Returns a map of keys and values.",
            &[("(hash-map :a 1 :b 2)", "{:a 1 :b 2}"), ("(hash-map :a)", "!arity_error")],
        ),
    Builtin::direct("zipmap", 2, 2, "(zipmap keys vals)", zipmap).endless(Endless::SideBySide).doc(
        "Returns a map of the keys and the values at the same indexes, as many as the shorter one has.",
        &[("(zipmap [:a :b] [1 2 3])", "{:a 1 :b 2}"), ("(zipmap 5 [1])", "!type_error")],
    ),
];

/// Returns the value at a key, for destructuring patterns and keywords. The keys of a set are its members; vectors and
/// strings only have numbers as keys.
#[inline]
pub(crate) fn key_of<'h>(h: &'h Heap, coll: Value<'h>, key: Value<'h>) -> Res<Option<Value<'h>>> {
    match coll {
        Value::Map(m) => {
            let found = m.get_flexible(h, key)?;
            if found.is_none() {
                h.note_missed(coll, key)?;
            }
            Ok(found)
        }
        other => key_of_other(h, other, key),
    }
}

#[cold]
fn key_of_other<'h>(h: &'h Heap, coll: Value<'h>, key: Value<'h>) -> Res<Option<Value<'h>>> {
    match (coll, key) {
        (Value::Set(m), _) => Ok(if m.contains(h, key)? { Some(key) } else { None }),
        (Value::Vector(_) | Value::Str(_), key) if key.is_number() => get(h, coll, key),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_hold_paths_of_any_depth() {
        let h = Ctx::new(Heap::new(1, 1 << 30));
        let key = h.keyword("a").unwrap();
        let inner = h.map([(key, Value::Int(7))].into_iter()).unwrap();
        let path = (0..300_000).fold(key, |p, _| h.vector(&[p]).unwrap());
        assert!(matches!(get(&h, inner, path).unwrap(), Some(Value::Int(7))));
    }

    #[test]
    fn merging_in_both_ways_gives_equal_maps() {
        let h = Ctx::new(Heap::new(1, 1 << 24));
        let numbers = |from: i64, to: i64| {
            h.map((0..(to - from) as usize).map(|i| (Value::Int(from + i as i64), Value::Int(1)))).unwrap()
        };
        let large = merge(&h, &[numbers(0, 40), numbers(20, 60)]).unwrap();
        let small = (40..60).fold(numbers(0, 40), |m, k| merge(&h, &[m, numbers(k, k + 1)]).unwrap());
        assert!(h.equal(large, small).unwrap());
    }
}
