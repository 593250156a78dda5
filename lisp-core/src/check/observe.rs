//! The shapes of values that are there: the data of a run.

use super::shape::{Shape, Types};
use crate::heap::{Map, Value};
use std::sync::Arc;

/// The maximum number of values that are looked into. Of further maps only the keys are seen.
const MAX_VALUES: u32 = 100_000;
/// The maximum nesting of values that are looked into.
const MAX_DEPTH: u32 = 6;
/// The maximum number of keys of maps that are seen.
const MAX_KEYS: usize = 200;
/// The maximum number of different key arrays that are remembered.
const MAX_ARRAYS: usize = 64;

impl Shape {
    /// Returns the shape of a value. What it takes is bounded.
    pub fn of_value(value: Value<'_>) -> Shape {
        let mut left = MAX_VALUES;
        let mut seen = Seen::default();
        seen.add(value, MAX_DEPTH, &mut left);
        seen.shape()
    }
}

/// What was seen of values at one place.
#[derive(Default)]
struct Seen {
    types: Option<Types>,
    items: Option<Box<Seen>>,
    maps: Option<Box<SeenMaps>>,
}

/// What was seen of maps at one place.
#[derive(Default)]
struct SeenMaps {
    count: u32,
    /// The keys in the order in which they were seen first: each with its values, and how many maps have it.
    keys: Vec<(Arc<str>, Seen, u32)>,
    /// The addresses of key arrays that were seen, and where their keys are among `keys`.
    arrays: Vec<(usize, Vec<usize>)>,
    /// Whether there are maps that were not looked into: nothing is known of the keys then, nor of their values.
    is_unseen: bool,
}

impl Seen {
    fn add(&mut self, value: Value<'_>, depth: u32, left: &mut u32) {
        let types = types_of(value);
        self.types = Some(self.types.map_or(types, |before| before | types));
        if *left == 0 || depth == 0 {
            return self.forget(value);
        }
        *left -= 1;
        match value {
            Value::Vector(vector) => {
                let items = self.items.get_or_insert_default();
                for &item in vector.items() {
                    items.add(item, depth - 1, left);
                }
            }
            Value::Set(_) => self.items = Some(Box::new(Seen::anything())),
            Value::Map(map) => self.maps.get_or_insert_default().add(map, depth, left),
            _ => {}
        }
    }

    fn anything() -> Seen {
        Seen { types: Some(Types::ANY), ..Seen::default() }
    }

    /// Notes a value that is not looked into. The keys of maps like those before are known all the same.
    fn forget(&mut self, value: Value<'_>) {
        match value {
            Value::Vector(_) | Value::Set(_) => self.items = Some(Box::new(Seen::anything())),
            Value::Map(map) => self.maps.get_or_insert_default().add_keys(map),
            _ => {}
        }
    }

    fn shape(self) -> Shape {
        let Some(types) = self.types else { return Shape::of(Types::NEVER) };
        if types == Types::ANY {
            return Shape::UNKNOWN;
        }
        let mut shape = Shape::of(types.without(Types::LIST | Types::SET | Types::MAP));
        let items = self.items.map_or(Shape::UNKNOWN, |items| items.shape());
        if types.may_be(Types::LIST) {
            shape = shape.join(&Shape::list(items.clone()));
        }
        if types.may_be(Types::SET) {
            shape = shape.join(&Shape::set(items));
        }
        match self.maps {
            Some(maps) if types.may_be(Types::MAP) => shape.join(&maps.shape()),
            _ => shape,
        }
    }
}

impl SeenMaps {
    fn add(&mut self, map: &Map<'_>, depth: u32, left: &mut u32) {
        self.count += 1;
        let Some((array, values)) = map.shape() else {
            // More than 32 keys are rather an index than a record.
            self.is_unseen = true;
            return;
        };
        let address = std::ptr::from_ref(array) as usize;
        let known = match self.arrays.iter().position(|(known, _)| *known == address) {
            Some(at) => at,
            None => {
                let keys: Vec<usize> = array.each_key().filter_map(|key| self.key(key)).collect();
                if self.arrays.len() == MAX_ARRAYS {
                    self.arrays.pop();
                }
                self.arrays.push((address, keys));
                self.arrays.len() - 1
            }
        };
        if self.arrays[known].1.len() < values.len() {
            self.is_unseen = true;
            return;
        }
        for (at, &value) in values.iter().enumerate() {
            let at = self.arrays[known].1[at];
            self.see(at, value, depth, left);
        }
    }

    fn see(&mut self, at: usize, value: Value<'_>, depth: u32, left: &mut u32) {
        let (_, seen, count) = &mut self.keys[at];
        *count += 1;
        seen.add(value, depth - 1, left);
    }

    /// Adds a map of which only the keys are seen.
    fn add_keys(&mut self, map: &Map<'_>) {
        self.count += 1;
        let address = map.shape().map(|(array, _)| std::ptr::from_ref(array) as usize);
        let Some((_, keys)) = self.arrays.iter().find(|(known, _)| Some(*known) == address) else {
            self.is_unseen = true;
            return;
        };
        for &at in keys {
            let (_, seen, count) = &mut self.keys[at];
            *count += 1;
            seen.types = Some(Types::ANY);
        }
    }

    /// Returns where a key is among those that were seen; `None` if it has no name, or there are too many.
    fn key(&mut self, key: Value<'_>) -> Option<usize> {
        let (Value::Keyword(_, name) | Value::Str(name)) = key else { return None };
        let name = name.text();
        if let Some(at) = self.keys.iter().position(|(known, _, _)| &**known == name) {
            return Some(at);
        }
        if self.keys.len() == MAX_KEYS {
            return None;
        }
        self.keys.push((name.into(), Seen::default(), 0));
        Some(self.keys.len() - 1)
    }

    fn shape(self) -> Shape {
        if self.is_unseen {
            return Shape::of(Types::MAP);
        }
        let count = self.count;
        let keys = self.keys.into_iter().map(|(name, seen, times)| (name, seen.shape(), times == count));
        Shape::map(keys, true)
    }
}

fn types_of(value: Value<'_>) -> Types {
    match value {
        Value::Nil => Types::NIL,
        Value::Bool(_) => Types::BOOL,
        Value::Int(_) | Value::Big(_) => Types::INT,
        Value::Float(_) => Types::FLOAT,
        Value::Str(_) => Types::STRING,
        Value::Keyword(..) => Types::KEYWORD,
        Value::Vector(_) => Types::LIST,
        Value::Map(_) => Types::MAP,
        Value::Set(_) => Types::SET,
        _ => Types::ANY,
    }
}
