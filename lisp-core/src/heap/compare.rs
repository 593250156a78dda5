//! Equality, hashing and the total order of values. `scalars.rs` has the rules for values that contain no others.
//!
//! Nothing here recurses: values nested a million deep, as elements, values or keys, are compared with a work list,
//! whose memory is metered.
//!
//! Maps are compared position by position, without lookups. Equal maps have equal keys at equal positions, because
//! array maps and collision nodes are sorted, and the hashes of the keys determine trees. The exception is functions of
//! the program, which have no order among them. If a key that contains one differs from the key at its position, it is
//! searched for at the other positions.

use super::map::{Entries, Map, Rep, holds_others};
use super::node::Node;
use super::scalars::{Nan, equal_leaf, hash_cost, hash_leaf, order_leaf};
use super::string::{SHORT_TEXT, folded, hash_text, mix};
use super::{Heap, Res, Value, Work};
use crate::cost;
use crate::error::Error;
use std::cmp::Ordering;

/// A part of a comparison.
enum Task<'h> {
    /// Compare two values for equality.
    Values(Value<'h>, Value<'h>, Nan),
    /// Compare the entries of two tree nodes.
    Nodes(&'h Node<'h>, &'h Node<'h>, Nan),
    /// The tasks above this one compare two keys; what to do next depends on whether they are equal.
    Key(KeyTask<'h>),
    /// A marker: a difference in the tasks above it does not decide the order.
    Unordered,
}

/// Entries that can be compared by position.
#[derive(Clone, Copy)]
enum Placed<'h> {
    /// of an array map
    Map(&'h Map<'h>),
    /// of a collision node
    Node(&'h Node<'h>),
}

impl<'h> Placed<'h> {
    fn entries(self) -> Entries<'h> {
        match self {
            Placed::Map(map) => match map.shape() {
                Some((keys, values)) => Entries::Small(keys.keys(), values),
                None => Entries::Small(&[], &[]),
            },
            Placed::Node(node) => Entries::Sorted(node.entries()),
        }
    }
}

/// A key that is compared with another one.
struct KeyTask<'h> {
    ours: Placed<'h>,
    theirs: Placed<'h>,
    nan: Nan,
    /// The position of the key,
    place: u32,
    /// and of the other one.
    other: u32,
}

/// The result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// No difference so far.
    Same,
    /// The two differ, and have an order.
    Apart,
    /// The two differ, and may be tied in the order.
    Tied,
}

/// Returns how two values that contain no others differ.
fn difference<'h>(a: Value<'h>, b: Value<'h>) -> Found {
    if order_leaf(a, b) == Some(Ordering::Equal) { Found::Tied } else { Found::Apart }
}

/// A comparison in progress.
struct Comparison<'h> {
    heap: &'h Heap,
    tasks: Work<'h, Task<'h>>,
}

impl<'h> Comparison<'h> {
    /// Compares two values, or defers that.
    #[inline]
    fn pair(&mut self, a: Value<'h>, b: Value<'h>, nan: Nan) -> Res<Found> {
        match equal_leaf(a, b, nan) {
            Some(true) => {}
            Some(false) => return Ok(difference(a, b)),
            None => self.tasks.push(Task::Values(a, b, nan))?,
        }
        Ok(Found::Same)
    }

    /// Like `pair`, for values that the order ignores when their keys are tied.
    fn unordered_pair(&mut self, a: Value<'h>, b: Value<'h>, nan: Nan) -> Res<Found> {
        match equal_leaf(a, b, nan) {
            Some(true) => Ok(Found::Same),
            Some(false) => Ok(Found::Tied),
            None => {
                self.tasks.push(Task::Unordered)?;
                self.pair(a, b, nan)
            }
        }
    }

    fn task(&mut self, task: Task<'h>) -> Res<Found> {
        self.heap.charge(1)?;
        match task {
            Task::Unordered => Ok(Found::Same),
            Task::Values(a, b, nan) => self.values(a, b, nan),
            Task::Nodes(a, b, nan) => self.nodes(a, b, nan),
            Task::Key(key) => self.go_on_behind(&key),
        }
    }

    fn values(&mut self, a: Value<'h>, b: Value<'h>, nan: Nan) -> Res<Found> {
        if let Some(same) = equal_leaf(a, b, nan) {
            return Ok(if same { Found::Same } else { difference(a, b) });
        }
        match (a, b) {
            (Value::Vector(a), Value::Vector(b)) => {
                self.heap.charge(a.len() as u64)?;
                for (&x, &y) in a.items().iter().zip(b.items()).rev() {
                    self.heap.poll_every(1)?;
                    match self.pair(x, y, nan)? {
                        Found::Same => {}
                        different => return Ok(different),
                    }
                }
                Ok(Found::Same)
            }
            (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) => match (a.rep(), b.rep()) {
                (Rep::Small(..), Rep::Small(..)) => self.entries(Placed::Map(a), Placed::Map(b), nan),
                (Rep::Tree(_, a), Rep::Tree(_, b)) => {
                    self.tasks.push(Task::Unordered)?;
                    self.nodes(a, b, nan)
                }
                (Rep::Small(..), Rep::Tree(..)) | (Rep::Tree(..), Rep::Small(..)) => Ok(Found::Apart),
            },
            (Value::Endless(_), _) | (_, Value::Endless(_)) => Err(Error::endless("=").into()),
            _ => Ok(if self.heap.equal_long(a, b)? { Found::Same } else { Found::Apart }),
        }
    }

    /// Compares two nodes at the same position of two trees. A key has one position in a tree, whatever its position in
    /// the order.
    fn nodes(&mut self, a: &'h Node<'h>, b: &'h Node<'h>, nan: Nan) -> Res<Found> {
        let parts = |node: &Node<'h>| (node.entry_bits, node.child_bits, node.entries().len());
        if parts(a) != parts(b) {
            return Ok(Found::Tied);
        }
        if a.is_of_collisions() {
            return self.entries(Placed::Node(a), Placed::Node(b), nan);
        }
        self.heap.charge(cost::compared(a.entries().len()) + a.children().len() as u64)?;
        self.heap.poll_every(a.entries().len() + a.children().len())?;
        for (&(ours, x), &(theirs, y)) in a.entries().iter().zip(b.entries()) {
            for found in [self.pair(ours, theirs, Nan::IsOneKey)?, self.pair(x, y, nan)?] {
                if found != Found::Same {
                    return Ok(found);
                }
            }
        }
        for (&x, &y) in a.children().iter().zip(b.children()) {
            self.tasks.push(Task::Nodes(x, y, nan))?;
        }
        Ok(Found::Same)
    }

    /// Compares entries by position. Keys that contain others are deferred, and compared one after the other.
    fn entries(&mut self, ours: Placed<'h>, theirs: Placed<'h>, nan: Nan) -> Res<Found> {
        let (a, b) = (ours.entries(), theirs.entries());
        if a.len() != b.len() {
            return Ok(Found::Apart);
        }
        self.heap.charge(cost::compared(a.len()))?;
        let mut first = None;
        for place in 0..a.len() {
            self.heap.poll_every(1)?;
            let ((key, value), (other, mut y)) = (a.entry(place), b.entry(place));
            let is_function = matches!(key, Value::Closure(_) | Value::Composed(_));
            match equal_leaf(key, other, Nan::IsOneKey) {
                Some(true) => {}
                None => {
                    first.get_or_insert(place);
                    continue;
                }
                Some(false) if difference(key, other) == Found::Tied => {
                    self.heap.charge(b.len() as u64)?;
                    let same = |entry: &(Value<'h>, _)| equal_leaf(key, entry.0, Nan::IsOneKey) == Some(true);
                    match b.iter().find(same) {
                        Some(entry) => y = entry.1,
                        None => return Ok(Found::Tied),
                    }
                }
                Some(false) => return Ok(Found::Apart),
            }
            let found = if is_function { self.unordered_pair(value, y, nan)? } else { self.pair(value, y, nan)? };
            if found != Found::Same {
                return Ok(found);
            }
        }
        match first {
            Some(place) => self.compare_keys(KeyTask { ours, theirs, nan, place: count(place), other: count(place) }),
            None => Ok(Found::Same),
        }
    }

    fn compare_keys(&mut self, key: KeyTask<'h>) -> Res<Found> {
        let (a, _) = key.ours.entries().entry(key.place as usize);
        let (b, _) = key.theirs.entries().entry(key.other as usize);
        self.tasks.push(Task::Key(key))?;
        self.tasks.push(Task::Values(a, b, Nan::IsOneKey))?;
        Ok(Found::Same)
    }

    /// Two keys are equal: continues with their values and the next key that contains others.
    fn go_on_behind(&mut self, key: &KeyTask<'h>) -> Res<Found> {
        let KeyTask { ours, theirs, nan, place, other } = *key;
        let (a, b) = (ours.entries(), theirs.entries());
        let found = self.unordered_pair(a.entry(place as usize).1, b.entry(other as usize).1, nan)?;
        if found != Found::Same {
            return Ok(found);
        }
        for next in place as usize + 1..a.len() {
            self.heap.poll_every(1)?;
            if equal_leaf(a.entry(next).0, b.entry(next).0, Nan::IsOneKey).is_none() {
                let (place, other) = (count(next), count(next));
                return self.compare_keys(KeyTask { ours, theirs, nan, place, other });
            }
        }
        Ok(Found::Same)
    }

    /// Two values differ, and so do the values that contain them, up to a key that may be equal to another one. Returns
    /// true if there is such a key.
    fn go_back(&mut self, mut found: Found) -> Res<bool> {
        while let Some(task) = self.tasks.pop() {
            self.heap.poll_every(1)?;
            let key = match task {
                Task::Key(key) => key,
                Task::Unordered => {
                    found = Found::Tied;
                    continue;
                }
                Task::Values(..) | Task::Nodes(..) => continue,
            };
            // The key at its position has another position in the order, so there is no equal one.
            if found == Found::Apart && key.place == key.other {
                continue;
            }
            let next = if key.place == key.other { 0 } else { key.other + 1 };
            let next = if next == key.place { next + 1 } else { next };
            if (next as usize) < key.theirs.entries().len() {
                self.heap.charge(1)?;
                self.compare_keys(KeyTask { other: next, ..key })?;
                return Ok(true);
            }
            found = Found::Tied;
        }
        Ok(false)
    }
}

/// Converts a position among entries, of which there are fewer than 2^32.
fn count(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl Heap {
    /// `(= a b)`
    #[inline]
    pub(crate) fn equal<'h>(&'h self, a: Value<'h>, b: Value<'h>) -> Res<bool> {
        match equal_leaf(a, b, Nan::EqualsNothing) {
            Some(same) => Ok(same),
            None => self.equal_deep(a, b, Nan::EqualsNothing),
        }
    }

    /// Returns true if two values are the same map key.
    #[inline]
    pub(crate) fn same_key<'h>(&'h self, a: Value<'h>, b: Value<'h>) -> Res<bool> {
        match equal_leaf(a, b, Nan::IsOneKey) {
            Some(same) => Ok(same),
            None => self.equal_deep(a, b, Nan::IsOneKey),
        }
    }

    fn equal_deep<'h>(&'h self, a: Value<'h>, b: Value<'h>, nan: Nan) -> Res<bool> {
        let mut comparison = Comparison { heap: self, tasks: Work::new(self) };
        comparison.tasks.push(Task::Values(a, b, nan))?;
        while let Some(task) = comparison.tasks.pop() {
            let found = comparison.task(task)?;
            if found != Found::Same && !comparison.go_back(found)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the hash of a key: equal keys have equal hashes.
    #[inline]
    pub(crate) fn hash<'h>(&'h self, v: Value<'h>) -> Res<u32> {
        match v {
            // The usual keys, which cost nothing.
            Value::Str(s) if s.text().len() <= SHORT_TEXT => Ok(hash_text(s.text(), false)),
            Value::Keyword(hash, _) => Ok(hash),
            other => self.hash_any(other),
        }
    }

    fn hash_any<'h>(&'h self, v: Value<'h>) -> Res<u32> {
        let cost = hash_cost(v);
        if cost > 0 {
            self.charge(cost)?;
        }
        if let Some(hash) = hash_leaf(v) {
            return Ok(hash);
        }
        // The hashes of the entries of maps and sets are added, so the order of a walk does not matter. Every part is
        // mixed with its depth and position.
        let mut sum = 0u64;
        let mut work = Work::new(self);
        work.push((v, 1u64))?;
        while let Some((v, seed)) = work.pop() {
            self.charge(1 + hash_cost(v))?;
            if let Some(hash) = hash_leaf(v) {
                sum = sum.wrapping_add(mix(u64::from(hash) ^ seed));
                continue;
            }
            match v {
                Value::Vector(items) => {
                    sum = sum.wrapping_add(mix(seed ^ (items.len() as u64) << 8));
                    for (i, &item) in items.items().iter().enumerate() {
                        self.poll_every(1)?;
                        work.push((item, mix(seed.wrapping_add(i as u64 + 1))))?;
                    }
                }
                Value::Map(map) | Value::Set(map) => {
                    sum = sum.wrapping_add(mix(seed ^ (map.len() as u64) << 9));
                    map.each(self, |(key, value)| {
                        // The value's seed depends on its key only if that is cheap to compute.
                        self.charge(hash_cost(key))?;
                        let place = hash_leaf(key).map_or(seed, |h| mix(seed ^ u64::from(h)));
                        work.push((key, mix(seed ^ 7)))?;
                        work.push((value, place))
                    })?;
                }
                Value::Endless(_) => return Err(Error::without_end("an endless sequence cannot be a key").into()),
                _ => {}
            }
        }
        Ok(folded(sum))
    }

    /// Returns the total order of values by kind, then by value: the order in which maps and sets are walked.
    pub(crate) fn order<'h>(&'h self, a: Value<'h>, b: Value<'h>) -> Res<Ordering> {
        match order_leaf(a, b) {
            Some(order) => Ok(order),
            None => order_deep(self, a, b),
        }
    }

    /// Returns the order of values that are not collections; two collections are tied.
    pub(super) fn order_single<'h>(&'h self, a: Value<'h>, b: Value<'h>) -> Res<Ordering> {
        match order_leaf(a, b) {
            Some(order) => Ok(order),
            None => self.order_long(a, b),
        }
    }
}

/// A part of an ordering of two values.
enum Ordered<'h> {
    /// Items at the same positions, one after the other.
    Items(&'h [Value<'h>], &'h [Value<'h>]),
    /// The values of two maps whose keys have the same positions in the order.
    Values(MapValues<'h>),
    /// The tasks above this one compare the first key with the next: the two are tied if they do not differ.
    Tied(MapValues<'h>),
}

/// The values of two maps from some position on.
#[derive(Clone, Copy)]
struct MapValues<'h> {
    /// The keys of one of them,
    keys: &'h [Value<'h>],
    /// its values,
    ours: &'h [Value<'h>],
    /// and the other's.
    theirs: &'h [Value<'h>],
    /// Whether the first key is tied with the one before.
    tied: bool,
}

/// An ordering in progress.
struct Order<'h> {
    heap: &'h Heap,
    tasks: Work<'h, Ordered<'h>>,
}

impl<'h> Order<'h> {
    fn task(&mut self, task: Ordered<'h>) -> Res<Ordering> {
        self.heap.charge(1)?;
        match task {
            Ordered::Items(ours, theirs) => self.items(ours, theirs),
            Ordered::Values(values) => self.values(values),
            Ordered::Tied(values) => self.values_from(values, true),
        }
    }

    /// Orders items by the first that differ. Those that contain others are deferred, with all items after them.
    fn items(&mut self, ours: &'h [Value<'h>], theirs: &'h [Value<'h>]) -> Res<Ordering> {
        for (i, (&a, &b)) in ours.iter().zip(theirs).enumerate() {
            self.heap.poll_every(1)?;
            match order_leaf(a, b) {
                Some(Ordering::Equal) => {}
                Some(order) => return Ok(order),
                None => {
                    if i + 1 < ours.len() {
                        self.tasks.push(Ordered::Items(&ours[i + 1..], &theirs[i + 1..]))?;
                    }
                    return self.open(a, b);
                }
            }
        }
        Ok(Ordering::Equal)
    }

    /// Opens two values of one kind and length; compares long strings.
    fn open(&mut self, a: Value<'h>, b: Value<'h>) -> Res<Ordering> {
        match (a, b) {
            (Value::Vector(a), Value::Vector(b)) => {
                self.heap.charge(a.len() as u64)?;
                self.tasks.push(Ordered::Items(a.items(), b.items()))?;
                Ok(Ordering::Equal)
            }
            (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) => {
                let ((keys, ours), (others, theirs)) = (a.comparable(self.heap)?, b.comparable(self.heap)?);
                self.heap.charge(cost::compared(keys.len()))?;
                self.tasks.push(Ordered::Values(MapValues { keys, ours, theirs, tied: false }))?;
                self.tasks.push(Ordered::Items(keys, others))?;
                Ok(Ordering::Equal)
            }
            _ => self.heap.order_long(a, b),
        }
    }

    /// Orders the values of two maps. Tied keys of a map have no order among them, so their values are ignored.
    fn values(&mut self, values: MapValues<'h>) -> Res<Ordering> {
        let [key, others @ ..] = values.keys else { return Ok(Ordering::Equal) };
        let tied = match others.first() {
            None => false,
            Some(&next) => match order_leaf(*key, next) {
                Some(order) => order == Ordering::Equal,
                None if holds_others(*key) => {
                    self.tasks.push(Ordered::Tied(values))?;
                    return self.open(*key, next);
                }
                None => false,
            },
        };
        self.values_from(values, tied)
    }

    /// Like `values`, when it is known whether the first key and the next are tied.
    fn values_from(&mut self, values: MapValues<'h>, tied: bool) -> Res<Ordering> {
        let MapValues { keys: [_, keys @ ..], ours: [a, ours @ ..], theirs: [b, theirs @ ..], tied: before } = values
        else {
            return Ok(Ordering::Equal);
        };
        self.tasks.push(Ordered::Values(MapValues { keys, ours, theirs, tied }))?;
        if before || tied {
            return Ok(Ordering::Equal);
        }
        match order_leaf(*a, *b) {
            Some(order) => Ok(order),
            None => self.open(*a, *b),
        }
    }

    /// Two parts differ. If they are two tied keys, continues with their values; otherwise the whole differs.
    fn go_back(&mut self, mut order: Ordering) -> Res<Option<Ordering>> {
        while let Some(task) = self.tasks.pop() {
            self.heap.poll_every(1)?;
            if let Ordered::Tied(values) = task {
                order = self.values_from(values, false)?;
                if order == Ordering::Equal {
                    return Ok(None);
                }
            }
        }
        Ok(Some(order))
    }
}

fn order_deep<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Ordering> {
    let mut in_progress = Order { heap: h, tasks: Work::new(h) };
    let mut order = in_progress.open(a, b)?;
    loop {
        if order != Ordering::Equal
            && let Some(order) = in_progress.go_back(order)?
        {
            return Ok(order);
        }
        let Some(task) = in_progress.tasks.pop() else { return Ok(Ordering::Equal) };
        order = in_progress.task(task)?;
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
