//! Shapes: the facts about a value that are certain before a program runs.

use crate::compile::core::Constant;
use std::ops::BitOr;
use std::sync::Arc;

/// The types that a value may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(pub(super) u16);

impl Types {
    /// No value: code that yields it does not return.
    pub const NEVER: Types = Types(0);
    /// `nil`.
    pub const NIL: Types = Types(1);
    /// `true` and `false`.
    pub const BOOL: Types = Types(1 << 1);
    /// Integers.
    pub const INT: Types = Types(1 << 2);
    /// Floating-point numbers.
    pub const FLOAT: Types = Types(1 << 3);
    /// Strings.
    pub const STRING: Types = Types(1 << 4);
    /// Keywords.
    pub const KEYWORD: Types = Types(1 << 5);
    /// Vectors and sequences.
    pub const LIST: Types = Types(1 << 6);
    /// Maps.
    pub const MAP: Types = Types(1 << 7);
    /// Sets.
    pub const SET: Types = Types(1 << 8);
    /// Functions.
    pub const FN: Types = Types(1 << 9);
    /// Dates, patterns, symbols and whatever else there is.
    pub const OTHER: Types = Types(1 << 10);
    /// All numbers.
    pub const NUMBER: Types = Types(Types::INT.0 | Types::FLOAT.0);
    /// Any value.
    pub const ANY: Types = Types((1 << 11) - 1);

    /// Returns whether the value surely has one of the other types.
    pub fn is_within(self, other: Types) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns whether the value may have one of the other types.
    pub fn may_be(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether there are two or more.
    pub(super) fn are_several(self) -> bool {
        self.0.count_ones() > 1
    }

    /// Returns them in words.
    pub(super) fn named(self) -> String {
        const WORDS: &[(Types, &str)] = &[
            (Types::BOOL, "a boolean"),
            (Types::NUMBER, "a number"),
            (Types::STRING, "a string"),
            (Types::KEYWORD, "a keyword"),
            (Types::LIST, "a list"),
            (Types::MAP, "a map"),
            (Types::SET, "a set"),
            (Types::FN, "a function"),
            (Types::OTHER, "another value"),
            (Types::NIL, "nil"),
        ];
        let words = WORDS.iter().filter(|(one, _)| self.may_be(*one)).map(|(_, word)| *word);
        words.collect::<Vec<_>>().join(" or ")
    }

    /// Returns the types that are among the other ones too.
    pub(super) fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }

    pub(super) fn without(self, other: Types) -> Types {
        Types(self.0 & !other.0)
    }
}

impl BitOr for Types {
    type Output = Types;

    fn bitor(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }
}

/// The facts about a value that are certain.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub(super) types: Types,
    /// Of lists and sets: the elements.
    pub(super) items: Items,
    /// Of maps: the entries. Nothing is known of them if this is `None`.
    pub(super) fields: Option<Arc<Fields>>,
    /// How many shapes it consists of: what an operation on it costs at most.
    weight: u32,
}

/// The elements of a list or set.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Items {
    Unknown,
    /// Each has this shape.
    All(Arc<Shape>),
    /// Just these, in this order.
    Each(Arc<[Shape]>),
}

/// The entries of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fields {
    /// The known keys in order. A keyword and a string with the same text are one key.
    pub(super) known: Vec<(Arc<str>, Field)>,
    /// Further keys and their values; `None` if there surely are none.
    pub(super) others: Option<(Shape, Shape)>,
    /// Whether a contract lists the known keys: there may be others, but a program reads these.
    pub(super) is_listed: bool,
}

/// The value at a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) shape: Shape,
    /// Whether each map has the key.
    pub(super) is_always: bool,
}

/// The maximum number of keys of a map that are kept.
const MAX_KEYS: usize = 200;
/// The maximum number of elements whose order is kept.
const MAX_EACH: usize = 8;
/// The maximum nesting of a shape.
const MAX_DEPTH: usize = 8;
/// The maximum weight of a shape: of a heavier one only the types are kept.
const MAX_WEIGHT: u32 = 1_000;

impl Shape {
    /// A value of which nothing is known.
    pub const UNKNOWN: Shape = Shape::of(Types::ANY);

    /// Returns the shape of values of these types.
    pub const fn of(types: Types) -> Shape {
        Shape { types, items: Items::Unknown, fields: None, weight: 1 }
    }

    fn build(types: Types, items: Items, fields: Option<Arc<Fields>>) -> Shape {
        let of_fields = fields.as_ref().map_or(0, |fields| fields.weight());
        let weight = items.weight().saturating_add(of_fields).saturating_add(1);
        match weight <= MAX_WEIGHT {
            true => Shape { types, items, fields, weight },
            false => Shape::of(types),
        }
    }

    /// Returns how many keys of maps are known.
    pub(super) fn keys(&self) -> usize {
        self.fields.as_deref().map_or(0, |fields| fields.known.len())
    }

    /// Returns how many shapes it consists of.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// Returns the shape of a list whose elements have this shape.
    pub fn list(element: Shape) -> Shape {
        Shape::build(Types::LIST, Items::all(element), None)
    }

    pub(super) fn set(element: Shape) -> Shape {
        Shape::build(Types::SET, Items::all(element), None)
    }

    /// Returns the shape of a list of lists with elements of this shape; it is empty if there are none.
    pub(super) fn lists(element: Shape) -> Shape {
        Shape::list(if element.is_never() { element } else { Shape::list(element) })
    }

    /// Returns the shape of a list with just these elements.
    pub(super) fn tuple(elements: Vec<Shape>) -> Shape {
        match elements.len() {
            // One of them is never there, and so is the list.
            _ if elements.iter().any(Shape::is_never) => Shape::of(Types::NEVER),
            0..=MAX_EACH => Shape::build(Types::LIST, Items::Each(elements.into()), None),
            _ => Shape::list(joined(&elements)),
        }
    }

    /// Returns the shape of a map with these keys, each with the shape of its value and whether it is always there.
    /// `is_closed` says that there are no others.
    pub fn map(keys: impl IntoIterator<Item = (Arc<str>, Shape, bool)>, is_closed: bool) -> Shape {
        let mut known: Vec<_> =
            keys.into_iter().map(|(key, shape, is_always)| (key, Field { shape, is_always })).collect();
        known.sort_by(|a, b| a.0.cmp(&b.0));
        // A keyword and a string with the same text: either is read.
        known.dedup_by(|again, first| {
            let is_same = again.0 == first.0;
            if is_same {
                first.1.shape = first.1.shape.join(&again.1.shape);
            }
            is_same
        });
        Shape::of_fields(Fields::new(known, (!is_closed).then_some((Shape::UNKNOWN, Shape::UNKNOWN))))
    }

    /// Returns the shape of a map whose keys a contract lists: each with the shape of its value and whether it is always there. There
    /// may be others.
    pub fn listed(keys: impl IntoIterator<Item = (Arc<str>, Shape, bool)>) -> Shape {
        let shape = Shape::map(keys, false);
        match shape.fields.as_deref() {
            Some(fields) => Shape::of_fields(Fields { is_listed: true, ..fields.clone() }),
            None => shape,
        }
    }

    /// Returns the shape of a map of which only the shapes of its keys and values are known.
    pub(super) fn map_of(key: Shape, value: Shape) -> Shape {
        Shape::of_fields(Fields::new(Vec::new(), Some((key, value))))
    }

    pub(super) fn of_fields(mut fields: Fields) -> Shape {
        if fields.known.len() > MAX_KEYS {
            fields = Fields::new(Vec::new(), Some((Shape::UNKNOWN, Shape::UNKNOWN)));
        }
        Shape::build(Types::MAP, Items::Unknown, Some(Arc::new(fields)))
    }

    /// Returns the same shape for values that may also be nil.
    #[must_use]
    pub fn or_nil(mut self) -> Shape {
        self.types = self.types | Types::NIL;
        self
    }

    /// Returns the same shape for values that are surely not nil.
    #[must_use]
    pub(super) fn without_nil(mut self) -> Shape {
        self.types = self.types.without(Types::NIL);
        self
    }

    /// Returns the same shape for values of these types only.
    pub(super) fn only(&self, types: Types) -> Shape {
        Shape { types: self.types.and(types), ..self.clone() }
    }

    pub(super) fn is_never(&self) -> bool {
        self.types == Types::NEVER
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.types == Types::ANY && self.items == Items::Unknown && self.fields.is_none()
    }

    /// Returns the shape of values that have one of two shapes.
    #[must_use]
    pub fn join(&self, other: &Shape) -> Shape {
        self.join_within(other, 0)
    }

    fn join_within(&self, other: &Shape, depth: usize) -> Shape {
        if depth >= MAX_DEPTH {
            return Shape::of(self.types | other.types);
        }
        if self.is_never() || self == other {
            return other.clone();
        }
        if other.is_never() {
            return self.clone();
        }
        const HOLDERS: Types = Types(Types::LIST.0 | Types::SET.0);
        let items = match (self.types.may_be(HOLDERS), other.types.may_be(HOLDERS)) {
            (true, true) => self.items.join(&other.items, depth + 1),
            (true, false) => self.items.clone(),
            (false, _) => other.items.clone(),
        };
        let fields = match (self.types.may_be(Types::MAP), other.types.may_be(Types::MAP)) {
            (true, true) => match (&self.fields, &other.fields) {
                (Some(a), Some(b)) if Arc::ptr_eq(a, b) => Some(a.clone()),
                (Some(a), Some(b)) => a.join(b, depth + 1),
                _ => None,
            },
            (true, false) => self.fields.clone(),
            (false, _) => other.fields.clone(),
        };
        Shape::build(self.types | other.types, items, fields)
    }

    /// Returns the shape of the elements of a list, set or map; of an entry it is a list of two.
    pub(super) fn element(&self) -> Shape {
        if !self.types.is_within(Types::LIST | Types::SET | Types::MAP | Types::NIL) {
            return match self.types.is_within(Types::STRING | Types::NIL) {
                true => Shape::of(Types::STRING),
                false => Shape::UNKNOWN,
            };
        }
        let mut element = Shape::of(Types::NEVER);
        if self.types.may_be(Types::LIST | Types::SET) {
            element = self.items.joined();
        }
        if self.types.may_be(Types::MAP) {
            let entry = match &self.fields {
                Some(fields) => {
                    let (key, value) = fields.entry();
                    Shape::tuple(vec![key, value])
                }
                None => Shape::tuple(vec![Shape::UNKNOWN, Shape::UNKNOWN]),
            };
            element = element.join(&entry);
        }
        element
    }

    /// Returns the shape of the element at an index, which may be missing.
    pub(super) fn nth(&self, index: usize) -> Shape {
        match &self.items {
            _ if self.is_never() => self.clone(),
            Items::Each(each) if self.types.is_within(Types::LIST) => {
                each.get(index).cloned().unwrap_or(Shape::of(Types::NIL))
            }
            _ => self.element().or_nil(),
        }
    }

    /// Returns whether the shape of the element at an index is known for itself.
    pub(super) fn has_each(&self, index: usize) -> bool {
        matches!(&self.items, Items::Each(each) if index < each.len()) && self.types == Types::LIST
    }

    /// Returns the shape of the list without its first elements.
    pub(super) fn rest(&self, count: usize) -> Shape {
        match &self.items {
            Items::Each(each) if self.types.is_within(Types::LIST) => {
                Shape::tuple(each.get(count..).unwrap_or_default().to_vec())
            }
            _ => Shape::list(self.element()),
        }
    }

    pub(super) fn of_constant(constant: &Constant) -> Shape {
        Shape::of_constant_within(constant, 0)
    }

    fn of_constant_within(constant: &Constant, depth: usize) -> Shape {
        if depth >= MAX_DEPTH {
            return Shape::UNKNOWN;
        }
        let inner = |constant: &Constant| Shape::of_constant_within(constant, depth + 1);
        match constant {
            Constant::Nil => Shape::of(Types::NIL),
            Constant::Bool(_) => Shape::of(Types::BOOL),
            Constant::Int(_) | Constant::Big(_) => Shape::of(Types::INT),
            Constant::Float(_) => Shape::of(Types::FLOAT),
            Constant::Str(_) => Shape::of(Types::STRING),
            Constant::Keyword(_) => Shape::of(Types::KEYWORD),
            Constant::Symbol(_) | Constant::Regex(_) => Shape::of(Types::OTHER),
            Constant::Vector(items) => Shape::tuple(items.iter().map(inner).collect()),
            Constant::Set(items) => Shape::set(joined(&items.iter().map(inner).collect::<Vec<_>>())),
            Constant::Map(entries) => {
                let entries = entries.chunks_exact(2).map(|pair| (name_of(&pair[0]), inner(&pair[0]), inner(&pair[1])));
                Shape::of_entries(entries)
            }
        }
    }

    /// Returns the shape of a map with these entries: the name of the key, if it has one, its shape and the value's.
    pub(super) fn of_entries(entries: impl Iterator<Item = (Option<Arc<str>>, Shape, Shape)>) -> Shape {
        let mut known = Vec::new();
        let mut others: Option<(Shape, Shape)> = None;
        for (name, key, value) in entries {
            match name {
                Some(name) => known.push((name, value, true)),
                None => {
                    others = Some(match others {
                        Some((keys, values)) => (keys.join(&key), values.join(&value)),
                        None => (key, value),
                    });
                }
            }
        }
        let is_closed = others.is_none();
        let shape = Shape::map(known, is_closed);
        match (shape.fields.as_deref(), others) {
            (Some(fields), Some(others)) => Shape::of_fields(Fields::new(fields.known.clone(), Some(others))),
            _ => shape,
        }
    }
}

/// Returns the text of a key that is a keyword or a string.
pub(super) fn name_of(key: &Constant) -> Option<Arc<str>> {
    match key {
        Constant::Keyword(name) | Constant::Str(name) => Some((&**name).into()),
        _ => None,
    }
}

/// Returns the shape of values that have one of several shapes.
pub(super) fn joined(shapes: &[Shape]) -> Shape {
    shapes.iter().fold(Shape::of(Types::NEVER), |all, shape| all.join(shape))
}

impl Items {
    fn weight(&self) -> u32 {
        match self {
            Items::Unknown => 0,
            Items::All(element) => element.weight,
            Items::Each(each) => each.iter().fold(0, |sum, shape| sum.saturating_add(shape.weight)),
        }
    }

    fn all(element: Shape) -> Items {
        match element.is_unknown() {
            true => Items::Unknown,
            false => Items::All(Arc::new(element)),
        }
    }

    fn joined(&self) -> Shape {
        match self {
            Items::Unknown => Shape::UNKNOWN,
            Items::All(element) => (**element).clone(),
            Items::Each(each) => joined(each),
        }
    }

    fn join(&self, other: &Items, depth: usize) -> Items {
        match (self, other) {
            (Items::Unknown, _) | (_, Items::Unknown) => Items::Unknown,
            (Items::Each(a), Items::Each(b)) if a.len() == b.len() => {
                Items::Each(a.iter().zip(b.iter()).map(|(a, b)| a.join_within(b, depth)).collect())
            }
            _ => Items::all(self.joined().join_within(&other.joined(), depth)),
        }
    }
}

impl Fields {
    pub(super) fn new(known: Vec<(Arc<str>, Field)>, others: Option<(Shape, Shape)>) -> Fields {
        Fields { known, others, is_listed: false }
    }

    fn weight(&self) -> u32 {
        let others = self.others.as_ref().map_or(0, |(key, value)| key.weight.saturating_add(value.weight));
        let of_field = |(name, field): &(Arc<str>, Field)| {
            field.shape.weight.saturating_add(u32::try_from(name.len() / 64).unwrap_or(u32::MAX))
        };
        self.known.iter().map(of_field).fold(others, u32::saturating_add)
    }

    /// Returns the field with this name.
    pub(super) fn get(&self, name: &str) -> Option<&Field> {
        let at = self.known.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        Some(&self.known[at].1)
    }

    /// Returns the field that a key reads. Hyphens also stand for underscores: where maps have one spelling or the other, it is
    /// either.
    pub(super) fn read(&self, name: &str) -> Option<Field> {
        if !name.contains('-') {
            return self.get(name).cloned();
        }
        let other = self.get(&name.replace('-', "_"));
        let Some(first) = self.get(name).filter(|first| !first.is_always) else {
            return self.get(name).or(other).cloned();
        };
        let mut field = first.clone();
        if let Some(other) = other {
            field = Field { shape: field.shape.join(&other.shape), is_always: other.is_always };
        } else if let Some((_, value)) = &self.others {
            field.shape = field.shape.join(value);
        }
        Some(field)
    }

    /// Returns whether there is a key that differs from a name by hyphens and underscores only: which of them is meant depends on how
    /// it is read.
    pub(super) fn has_other_spelling(&self, name: &str) -> bool {
        let spelt = |byte: u8| if byte == b'-' { b'_' } else { byte };
        let is_other =
            |key: &str| key.len() == name.len() && key != name && key.bytes().map(spelt).eq(name.bytes().map(spelt));
        name.contains(['-', '_']) && self.known.iter().any(|(key, _)| is_other(key))
    }

    pub(super) fn with(&self, name: &Arc<str>, shape: Shape) -> Fields {
        let field = Field { shape, is_always: true };
        let mut fields = self.clone();
        match fields.known.binary_search_by(|(key, _)| key.cmp(name)) {
            Ok(at) => fields.known[at].1 = field,
            Err(at) => fields.known.insert(at, (name.clone(), field)),
        }
        fields
    }

    /// Returns the shapes of all its keys and of all its values.
    pub(super) fn entry(&self) -> (Shape, Shape) {
        let (mut key, mut value) = match &self.others {
            Some((key, value)) => (key.clone(), value.clone()),
            None => (Shape::of(Types::NEVER), Shape::of(Types::NEVER)),
        };
        for (_, field) in &self.known {
            // The key is a string in data, and a keyword in literals.
            key = key.join(&Shape::of(Types::STRING | Types::KEYWORD));
            value = value.join(&field.shape);
        }
        (key, value)
    }

    /// Returns the fields of maps that have one of two kinds of entries.
    fn join(&self, other: &Fields, depth: usize) -> Option<Arc<Fields>> {
        let others = match (&self.others, &other.others) {
            (Some((a, b)), Some((c, d))) => Some((a.join_within(c, depth), b.join_within(d, depth))),
            (Some(others), None) | (None, Some(others)) => Some(others.clone()),
            (None, None) => None,
        };
        let mut known: Vec<(Arc<str>, Field)> = Vec::with_capacity(self.known.len().max(other.known.len()));
        let (mut a, mut b) = (self.known.iter().peekable(), other.known.iter().peekable());
        loop {
            let order = match (a.peek(), b.peek()) {
                (Some(a), Some(b)) => a.0.cmp(&b.0),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            // A key that only one of them has may be among the others of the other one.
            let alone = |field: &Field, of: &Fields| {
                let shape = match &of.others {
                    Some((_, value)) => field.shape.join_within(value, depth),
                    None => field.shape.clone(),
                };
                Field { shape, is_always: false }
            };
            let next = match order {
                std::cmp::Ordering::Less => a.next().map(|(key, field)| (key.clone(), alone(field, other))),
                std::cmp::Ordering::Greater => b.next().map(|(key, field)| (key.clone(), alone(field, self))),
                std::cmp::Ordering::Equal => a.next().zip(b.next()).map(|((key, a), (_, b))| {
                    let shape = a.shape.join_within(&b.shape, depth);
                    (key.clone(), Field { shape, is_always: a.is_always && b.is_always })
                }),
            };
            known.extend(next);
        }
        (known.len() <= MAX_KEYS)
            .then(|| Arc::new(Fields { is_listed: self.is_listed && other.is_listed, ..Fields::new(known, others) }))
    }

    /// Returns the fields of a map into which another one is merged.
    pub(super) fn merge(&self, other: &Fields) -> Fields {
        if other.known.iter().any(|(name, _)| self.has_other_spelling(name)) {
            return Fields::new(Vec::new(), Some((Shape::UNKNOWN, Shape::UNKNOWN)));
        }
        let mut merged = self.clone();
        for (name, field) in &other.known {
            let shape = match (self.get(name), field.is_always, &self.others) {
                (_, true, _) => field.shape.clone(),
                (Some(before), false, _) => before.shape.join(&field.shape),
                (None, false, Some((_, value))) => field.shape.join(value),
                (None, false, None) => field.shape.clone(),
            };
            let is_always = field.is_always || self.get(name).is_some_and(|before| before.is_always);
            merged = merged.with(name, shape);
            if let Ok(at) = merged.known.binary_search_by(|(key, _)| key.cmp(name)) {
                merged.known[at].1.is_always = is_always;
            }
        }
        if let Some((key, value)) = &other.others {
            // Any of the known keys may be replaced.
            for (_, field) in &mut merged.known {
                field.shape = field.shape.join(value);
            }
            merged.others = Some(match &self.others {
                Some((a, b)) => (a.join(key), b.join(value)),
                None => (key.clone(), value.clone()),
            });
        }
        merged
    }
}
