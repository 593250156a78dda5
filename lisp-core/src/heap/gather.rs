//! Entries gathered outside the arena, and the map or set made of them at once. Growing leaves no garbage in the arena.

use super::held::List;
use super::map::{Map, Rep, TreeSize};
use super::node::Node;
use super::tree::{Written, ordinal};
use super::{Heap, Res, SMALL, Value};
use crate::cost;

/// Up to this number of keys they are compared one by one; beyond it there is an index.
const COMPARED: usize = 16;

/// Keys in insertion order, without duplicates, and their values. Of equal keys the first is kept, with the last value.
pub(crate) struct Gathered<'h> {
    heap: &'h Heap,
    keys: List<'h, Value<'h>>,
    /// The values of the keys; empty for a set.
    values: List<'h, Value<'h>>,
    /// For each slot the hash of a key and 1 + its index, 0 when free. At most half are used.
    index: List<'h, (u32, u32)>,
}

impl<'h> Gathered<'h> {
    /// Creates an empty collection.
    pub(crate) fn new(heap: &'h Heap) -> Self {
        Gathered { heap, keys: List::new(heap), values: List::new(heap), index: List::new(heap) }
    }

    /// Returns the keys.
    pub(crate) fn keys(&self) -> &[Value<'h>] {
        self.keys.items()
    }

    /// Sets the value of `key`.
    pub(crate) fn insert(&mut self, key: Value<'h>, value: Value<'h>) -> Res<()> {
        self.update(key, |_| value)
    }

    /// Updates the value of `key` from the existing one.
    pub(crate) fn update(&mut self, key: Value<'h>, value: impl FnOnce(Option<Value<'h>>) -> Value<'h>) -> Res<()> {
        let place = self.add(key)?;
        match self.values.items_mut().get_mut(place) {
            Some(old) => *old = value(Some(*old)),
            None => self.values.push(value(None))?,
        }
        Ok(())
    }

    /// Adds a key that is known to be new, for [`Gathered::map`]. It is not indexed.
    pub(crate) fn add_new(&mut self, key: Value<'h>) -> Res<()> {
        self.keys.push(key)
    }

    /// Adds a key unless it exists, and returns its index.
    pub(crate) fn add(&mut self, key: Value<'h>) -> Res<usize> {
        let (h, len) = (self.heap, self.keys().len());
        if len >= COMPARED && (len + 1) * 2 > self.index.items().len() {
            self.grow_index()?;
        }
        if self.index.items().is_empty() {
            h.charge(len as u64 / cost::COMPARED_PER_UNIT)?;
            for (place, &known) in self.keys().iter().enumerate() {
                if h.same_key(known, key)? {
                    return Ok(place);
                }
            }
            self.keys.push(key)?;
            return Ok(len);
        }
        h.charge(cost::PLACED)?;
        let hash = h.hash(key)?;
        let slot = match self.find(key, hash)? {
            Ok(place) => return Ok(place),
            Err(slot) => slot,
        };
        self.keys.push(key)?;
        if let Some(slot) = self.index.items_mut().get_mut(slot) {
            *slot = (hash, ordinal(len)?);
        }
        Ok(len)
    }

    /// Returns the index of a key, or the free slot for it.
    fn find(&self, key: Value<'h>, hash: u32) -> Res<Result<usize, usize>> {
        let (h, index) = (self.heap, self.index.items());
        let mask = index.len().wrapping_sub(1);
        let mut slot = hash as usize & mask;
        while let Some(&(stored, ordinal)) = index.get(slot) {
            let Some(place) = (ordinal as usize).checked_sub(1) else { break };
            if stored == hash
                && let Some(&known) = self.keys().get(place)
                && h.same_key(known, key)?
            {
                return Ok(Ok(place));
            }
            h.charge(1)?;
            slot = (slot + 1) & mask;
        }
        Ok(Err(slot))
    }

    fn grow_index(&mut self) -> Res<()> {
        let h = self.heap;
        let size = ((self.keys().len() + 1) * 2).next_power_of_two();
        h.charge(self.keys().len() as u64)?;
        self.index = List::new(h);
        let mut index = List::with_room(h, size)?;
        for _ in 0..size {
            index.push((0, 0))?;
        }
        for (place, &key) in self.keys().iter().enumerate() {
            h.poll_every(1)?;
            let hash = h.hash(key)?;
            let mut slot = hash as usize & (size - 1);
            while index.items().get(slot).is_some_and(|taken| taken.1 != 0) {
                h.charge(1)?;
                slot = (slot + 1) & (size - 1);
            }
            if let Some(slot) = index.items_mut().get_mut(slot) {
                *slot = (hash, ordinal(place)?);
            }
        }
        self.index = index;
        Ok(())
    }

    /// Returns the keys as a vector.
    pub(crate) fn vector(mut self) -> Res<Value<'h>> {
        self.index = List::new(self.heap);
        self.keys.trim();
        self.heap.vector(self.keys.items())
    }

    /// Returns the map, or the set, of the entries.
    pub(crate) fn map(self, written: Written) -> Res<&'h Map<'h>> {
        self.onto(None, written)
    }

    fn onto(mut self, tree: Option<(TreeSize, &'h Node<'h>)>, written: Written) -> Res<&'h Map<'h>> {
        let h = self.heap;
        self.index = List::new(h);
        self.keys.trim();
        self.values.trim();
        let (keys, values) = (self.keys.items(), self.values.items());
        let entry = |place: usize| (keys[place], values.get(place).copied().unwrap_or(Value::Bool(true)));
        h.charge(keys.len() as u64)?;
        match tree {
            None if keys.len() <= SMALL => h.sorted_map(keys.len(), entry, written),
            tree => h.tree_with(tree, keys.len(), &entry, written),
        }
    }
}

impl Heap {
    /// Returns a map, or a set, with more entries. Of equal keys that of the map is kept, with the last value.
    pub(crate) fn with_all<'h>(
        &'h self,
        base: &'h Map<'h>,
        written: Written,
        gather: impl FnOnce(&mut Gathered<'h>) -> Res<()>,
    ) -> Res<&'h Map<'h>> {
        let mut all = Gathered::new(self);
        let tree = match base.rep() {
            Rep::Tree(size, root) => Some((size, root)),
            Rep::Small(..) => {
                for (key, value) in base.entries_as_written(self)?.iter() {
                    all.insert(key, value)?;
                }
                None
            }
        };
        gather(&mut all)?;
        if all.keys().is_empty() { Ok(base) } else { all.onto(tree, written) }
    }
}
