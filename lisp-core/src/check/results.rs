//! The shapes of the results of functions that call no others.

use super::known::{Habit, Known};
use super::shape::{Fields, Shape, Types, joined, name_of};
use super::walk::Checker;
use crate::compile::core::Constant;

impl<'p> Checker<'p> {
    pub(super) fn of_lists(&mut self, name: &str, arguments: &[Known<'p>]) -> Option<Shape> {
        let list = &arguments.last()?.shape;
        let first = &arguments[0].shape;
        Some(match (name, arguments.len()) {
            ("first", 1) => list.nth(0),
            ("peek", 1) => list.element().or_nil(),
            ("second", 1) => list.nth(1),
            ("last", 1) => list.element().or_nil(),
            ("ffirst", 1) => list.nth(0).nth(0),
            ("nth", 2 | 3) => match arguments[1].constant {
                Some((Constant::Int(at), _)) if arguments.len() == 2 => {
                    first.nth(usize::try_from(*at).unwrap_or(usize::MAX))
                }
                _ => Shape::UNKNOWN,
            },
            ("rest", 1) => list.rest(1),
            ("next" | "nnext", 1) => Shape::list(list.element()).or_nil(),
            ("take" | "drop" | "drop-last" | "take-nth" | "nthrest", 2)
            | ("reverse" | "distinct" | "dedupe" | "sort" | "drop-last", 1) => {
                let list = if name == "nthrest" { first } else { list };
                Shape::list(list.element())
            }
            // Nil if there is none.
            ("take-last", 2) | ("butlast" | "rseq", 1) => Shape::list(list.element()).or_nil(),
            ("vec", 1) => nil_like(list, Shape::list(list.element())),
            ("doall", 1) => list.clone(),
            ("sort", 2) => Shape::list(list.element()),
            ("not-empty", 1) => list.clone().or_nil(),
            ("seq", 1) => Shape::list(list.element()).or_nil(),
            ("subvec", _) => Shape::list(first.element()),
            ("set", 1) => Shape::set(list.element()),
            ("partition", 4) => Shape::lists(list.element().join(&arguments[2].shape.element())),
            ("partition" | "partition-all", 2..) => Shape::lists(list.element()),
            ("split-at", 2) => Shape::list(Shape::list(list.element())),
            ("concat", 1) => first.clone(),
            ("concat", 2..) => {
                let elements: Vec<Shape> = arguments.iter().map(|value| value.shape.element()).collect();
                Shape::list(joined(&elements))
            }
            ("cons", 2) => Shape::list(list.element().join(first)),
            ("conj", 2..) if first.types == Types::LIST => {
                Shape::list(arguments[1..].iter().fold(first.element(), |all, value| all.join(&value.shape)))
            }
            ("into", 2) if first.types == Types::LIST => Shape::list(first.element().join(&list.element())),
            ("into", 2) if first.types == Types::SET => Shape::set(first.element().join(&list.element())),
            ("into", 2) if first.types == Types::MAP => {
                let entry = list.element();
                if !entry.types.is_within(Types::LIST) {
                    return Some(Shape::of(Types::MAP));
                }
                let added = Fields::new(Vec::new(), Some((entry.nth(0), entry.nth(1))));
                match first.fields.as_deref() {
                    Some(fields) => Shape::of_fields(fields.merge(&added)),
                    None => Shape::of(Types::MAP),
                }
            }
            ("vector" | "list", _) => Shape::tuple(arguments.iter().map(|value| value.shape.clone()).collect()),
            ("hash-set", _) => {
                Shape::set(joined(&arguments.iter().map(|value| value.shape.clone()).collect::<Vec<_>>()))
            }
            ("frequencies", 1) => Shape::map_of(list.element(), Shape::of(Types::INT)),
            ("zip", 2) => Shape::list(Shape::tuple(vec![first.element(), list.element()])),
            ("range", _) => Shape::list(Shape::of(Types::NUMBER)),
            ("split" | "split-lines" | "re-split", _) => Shape::list(Shape::of(Types::STRING)),
            _ => return None,
        })
    }

    pub(super) fn of_maps(&mut self, name: &str, arguments: &[Known<'p>]) -> Option<Shape> {
        let map = &arguments.first()?.shape;
        let is_map = map.types.is_within(Types::MAP | Types::NIL);
        Some(match name {
            "keys" if is_map => nil_like(map, Shape::list(map.element().nth(0))),
            "vals" if is_map => nil_like(map, Shape::list(map.element().nth(1))),
            "assoc" if arguments.len() % 2 == 1 && is_map => {
                let mut map = map.clone();
                for pair in arguments[1..].chunks_exact(2) {
                    let key = pair[0].constant.and_then(|(key, _)| name_of(key));
                    map = put(&map, key, pair[1].shape.clone());
                }
                map
            }
            "dissoc" if is_map => without_keys(map, &arguments[1..]),
            "merge" => {
                let mut merged: Option<Fields> = None;
                for argument in arguments {
                    if !argument.shape.types.is_within(Types::MAP | Types::NIL) {
                        return Some(Shape::UNKNOWN);
                    }
                    let mut fields = (*argument.shape.fields.clone()?).clone();
                    if argument.shape.types.may_be(Types::NIL) {
                        fields.known.iter_mut().for_each(|(_, field)| field.is_always = false);
                    }
                    merged = Some(match merged {
                        Some(before) => before.merge(&fields),
                        None => fields,
                    });
                }
                Shape::of_fields(merged?)
            }
            "zipmap" => Shape::map_of(map.element(), arguments.get(1)?.shape.element()),
            "hash-map" if arguments.len().is_multiple_of(2) => {
                Shape::of_entries(arguments.chunks_exact(2).map(|pair| {
                    let name = pair[0].constant.and_then(|(key, _)| name_of(key));
                    (name, pair[0].shape.clone(), pair[1].shape.clone())
                }))
            }
            _ => return None,
        })
    }
}

/// Returns the shape of a result that is nil for nil.
fn nil_like(argument: &Shape, result: Shape) -> Shape {
    if argument.types.may_be(Types::NIL) { result.or_nil() } else { result }
}

/// Returns what the result of a function is often mistaken for.
pub(super) fn habit_of(name: &str, arguments: &[Known<'_>]) -> Option<Habit> {
    match (name, arguments) {
        ("keys" | "vals", [map]) => (!map.shape.types.may_be(Types::NIL)).then_some(Habit::List),
        ("rest" | "reverse" | "distinct" | "sort", [_])
        | (
            "re-seq" | "map" | "mapv" | "filter" | "filterv" | "remove" | "keep" | "mapcat" | "sort-by" | "take"
            | "drop" | "take-while" | "drop-while" | "split",
            [_, _],
        ) => Some(Habit::List),
        ("/", _) => Some(Habit::Quotient),
        _ => None,
    }
}

/// Returns the shape of a map with one more entry.
pub(super) fn put(map: &Shape, key: Option<std::sync::Arc<str>>, value: Shape) -> Shape {
    if !map.types.is_within(Types::MAP | Types::NIL) {
        return Shape::UNKNOWN;
    }
    let empty = || Fields::new(Vec::new(), None);
    let fields = match (map.types.may_be(Types::MAP), map.fields.as_deref()) {
        (true, None) => return Shape::of(Types::MAP),
        (true, Some(fields)) if map.types == Types::MAP => fields.clone(),
        (true, Some(fields)) => {
            let mut fields = fields.clone();
            fields.known.iter_mut().for_each(|(_, field)| field.is_always = false);
            fields
        }
        (false, _) => empty(),
    };
    Shape::of_fields(match key {
        Some(name) if fields.has_other_spelling(&name) => return Shape::of(Types::MAP),
        Some(name) => fields.with(&name, value),
        None => fields.merge(&Fields::new(Vec::new(), Some((Shape::UNKNOWN, value)))),
    })
}

/// Returns the shape of a map without some keys.
fn without_keys(map: &Shape, keys: &[Known<'_>]) -> Shape {
    let named = keys.iter().map(|key| key.constant.and_then(|(key, _)| name_of(key)));
    let (Some(fields), Some(names)) = (map.fields.as_deref(), named.collect::<Option<Vec<_>>>()) else {
        return Shape::of(Types::MAP | Types::NIL);
    };
    if names.iter().any(|name| fields.has_other_spelling(name)) {
        return Shape::of(Types::MAP | Types::NIL);
    }
    let mut fields = fields.clone();
    fields.known.retain(|(key, _)| !names.contains(key));
    let shape = Shape::of_fields(fields);
    if map.types.may_be(Types::NIL) { shape.or_nil() } else { shape }
}

pub(super) fn selected(map: &Shape, keys: &[Constant]) -> Shape {
    let (true, Some(fields)) = (map.types == Types::MAP, map.fields.as_deref()) else { return Shape::of(Types::MAP) };
    if fields.others.is_some() || keys.iter().any(|key| name_of(key).is_none()) {
        return Shape::of(Types::MAP);
    }
    let names: Vec<_> = keys.iter().filter_map(name_of).collect();
    if names.iter().any(|name| fields.has_other_spelling(name)) {
        return Shape::of(Types::MAP);
    }
    let known = fields.known.iter().filter(|(key, _)| names.contains(key)).cloned().collect();
    Shape::of_fields(Fields::new(known, None))
}

/// Returns false if maps of this shape surely do not have a key.
pub(super) fn has_key(map: &Shape, key: &Known<'_>) -> Option<bool> {
    let (fields, name) = (map.fields.as_deref()?, name_of(key.constant?.0)?);
    let is_absent = fields.read(&name).is_none() && fields.others.is_none();
    (is_absent && map.types.is_within(Types::MAP | Types::NIL)).then_some(false)
}

/// Returns the result of a test of a value that holds for these types, and for no others.
pub(super) fn type_test<'p>(value: &Known<'p>, tested: Types) -> Known<'p> {
    let types = value.shape.types;
    let truth = match (types.is_within(tested), types.may_be(tested)) {
        _ if types == Types::NEVER => None,
        (true, _) => Some(true),
        (_, false) => Some(false),
        _ => None,
    };
    Known { missed: value.missed.clone(), ..Known::test(truth) }
}

/// Returns the types for which a test of one value holds, and for no others.
pub(super) fn tested(name: &str) -> Option<Types> {
    Some(match name {
        "nil?" => Types::NIL,
        "some?" => Types::ANY.without(Types::NIL),
        "string?" => Types::STRING,
        "number?" => Types::NUMBER,
        "keyword?" => Types::KEYWORD,
        "map?" => Types::MAP,
        "set?" => Types::SET,
        "boolean?" => Types::BOOL,
        "vector?" | "sequential?" | "seq?" => Types::LIST,
        "coll?" => Types::LIST | Types::SET | Types::MAP,
        "associative?" => Types::LIST | Types::MAP,
        "fn?" => Types::FN,
        "float?" => Types::FLOAT,
        _ => return None,
    })
}

/// Returns the types of the results of functions whose results have few.
pub(super) fn result_types(name: &str, arguments: usize) -> Types {
    match name {
        // Without a list these return a function of lists.
        "map" | "filter" | "remove" | "keep" | "mapcat" | "take" | "drop" | "take-while" | "drop-while"
        | "map-indexed" | "partition-all"
            if arguments == 1 =>
        {
            Types::FN
        }
        "count" | "quot" | "compare" | "index-of" | "last-index-of" | "int" | "long" | "floor" | "ceil" | "round"
        | ".length" | "bit-and" | "bit-or" | "bit-xor" => match name {
            "index-of" | "last-index-of" => Types::INT | Types::NIL,
            "floor" | "ceil" | "round" => Types::NUMBER,
            _ => Types::INT,
        },
        "+" | "-" | "*" | "/" | "inc" | "dec" | "abs" | "mod" | "rem" | "sum" | "pow" => Types::NUMBER,
        "avg" | "median" | "percentile" => Types::NUMBER | Types::NIL,
        "str" | "join" | "upper-case" | "lower-case" | "capitalize" | "trim" | "triml" | "trimr" | "subs"
        | "pr-str" | "format" | "name" => Types::STRING,
        "keyword" | "key-word" => Types::KEYWORD | Types::NIL,
        "<" | ">" | "<=" | ">=" | "not" => Types::BOOL,
        "println" | "prn" | "print" => Types::NIL,
        _ if name.ends_with('?') => Types::BOOL,
        _ => Types::ANY,
    }
}
