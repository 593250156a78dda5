//! Maps under construction.

use super::header::Header;
use super::map::{Entry, Map};
use super::tree::{Written, ordinal};
use super::{Fault, Heap, Res, SMALL, Value};
use crate::cost;
use std::cell::Cell;

/// Up to this number of entries they are compared one by one; beyond it there is an index.
const COMPARED: usize = 16;

impl Heap {
    /// Creates a map under construction with room for `room` entries; 0 stands for a default.
    pub(crate) fn map_builder<'h>(&'h self, room: usize) -> Res<&'h MapBuilder<'h>> {
        let room = if room == 0 { COMPARED } else { room };
        let head = self.header();
        let builder = |cells| MapBuilder { head, cells: Cell::new(cells), len: Cell::new(0), index: Cell::new(&[]) };
        self.alloc_with_cells(room.saturating_mul(2), std::iter::empty(), builder)
    }

    /// Returns a map of about `len` entries, whose keys must be distinct. They count as written in key order.
    ///
    /// # Errors
    /// Returns the error that `repeated` makes of a duplicate key, errors of the entries, and the faults of an
    /// allocation.
    pub fn distinct_map<'h>(
        &'h self,
        len: usize,
        entries: impl Iterator<Item = Res<Entry<'h>>>,
        repeated: impl FnOnce(Value<'h>) -> Fault,
    ) -> Res<Value<'h>> {
        let builder = self.map_builder(len)?;
        for entry in entries {
            let (key, value) = entry?;
            let known = builder.len();
            if builder.insert(self, key, value)? < known {
                return Err(repeated(key));
            }
        }
        Ok(Value::Map(builder.finish(self)?))
    }
}

/// A map under construction: entries in insertion order, and beyond [`COMPARED`] of them an open-addressing index.
pub struct MapBuilder<'h> {
    pub(super) head: Header,
    /// Alternating keys and values.
    pub(super) cells: Cell<&'h [Cell<Value<'h>>]>,
    pub(super) len: Cell<usize>,
    /// For each slot the hash and 1 + the index of the entry, 0 when free.
    pub(super) index: Cell<Index<'h>>,
}

/// The slots of the index: the hash, and 1 + the index of the entry.
type Index<'h> = &'h [Cell<(u32, u32)>];

impl<'h> MapBuilder<'h> {
    /// Returns the number of entries so far.
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Returns the key and value inserted at an index.
    pub(crate) fn entry(&self, i: usize) -> Entry<'h> {
        let cells = self.cells.get();
        (cells[2 * i].get(), cells[2 * i + 1].get())
    }

    /// Replaces the value of the entry at an index.
    pub(crate) fn set_value(&self, i: usize, value: Value<'h>) {
        self.cells.get()[2 * i + 1].set(value);
    }

    /// Returns the index of a key, if it exists.
    pub(crate) fn place(&self, h: &'h Heap, key: Value<'h>) -> Res<Option<usize>> {
        if self.index.get().is_empty() {
            h.charge(self.len() as u64 / cost::COMPARED_PER_UNIT)?;
            for i in 0..self.len() {
                if h.same_key(self.entry(i).0, key)? {
                    return Ok(Some(i));
                }
            }
            return Ok(None);
        }
        let hash = h.hash(key)?;
        Ok(self.probe(h, self.index.get(), key, hash)?.1)
    }

    /// Returns the free or matching slot for a key, and the index of its entry if it exists.
    fn probe(&self, h: &'h Heap, index: Index<'h>, key: Value<'h>, hash: u32) -> Res<(usize, Option<usize>)> {
        let mask = index.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let (stored, place) = index[slot].get();
            if place == 0 {
                return Ok((slot, None));
            }
            if stored == hash && h.same_key(self.entry(place as usize - 1).0, key)? {
                return Ok((slot, Some(place as usize - 1)));
            }
            h.charge(1)?;
            slot = (slot + 1) & mask;
        }
    }

    /// Sets the value of `key`: adds an entry, or replaces the value of an existing one. Changes nothing if there is no
    /// memory for it. Returns the index of the entry.
    pub(crate) fn insert(&self, h: &'h Heap, key: Value<'h>, value: Value<'h>) -> Res<usize> {
        let len = self.len();
        // A grown index is kept only after everything that can fail: repeated work must cost the same again.
        let mut index = self.index.get();
        if len >= COMPARED && (len + 1) * 2 > index.len() {
            index = self.grown_index(h)?;
        }
        let mut slot = None;
        if index.is_empty() {
            h.charge(len as u64 / cost::COMPARED_PER_UNIT)?;
            for i in 0..len {
                if h.same_key(self.entry(i).0, key)? {
                    self.set_value(i, value);
                    return Ok(i);
                }
            }
        } else {
            h.charge(cost::PLACED)?;
            let hash = h.hash(key)?;
            match self.probe(h, index, key, hash)? {
                (_, Some(i)) => {
                    self.index.set(index);
                    self.set_value(i, value);
                    return Ok(i);
                }
                (free, None) => slot = Some((free, hash, ordinal(len)?)),
            }
        }
        let mut cells = self.cells.get();
        if 2 * len + 2 > cells.len() {
            cells = h.alloc_cells(cells.len() * 2, cells[..2 * len].iter().map(Cell::get))?;
            self.cells.set(cells);
        }
        cells[2 * len].set(key);
        cells[2 * len + 1].set(value);
        if let Some((free, hash, number)) = slot {
            index[free].set((hash, number));
            self.index.set(index);
        }
        self.len.set(len + 1);
        Ok(len)
    }

    fn grown_index(&self, h: &'h Heap) -> Res<Index<'h>> {
        let size = ((self.len() + 1) * 2).next_power_of_two();
        h.charge(self.len() as u64)?;
        let index: Index<'h> = h.alloc_slots(size)?;
        for i in 0..self.len() {
            h.poll_every(1)?;
            let hash = h.hash(self.entry(i).0)?;
            let mut slot = hash as usize & (size - 1);
            while index[slot].get().1 != 0 {
                h.charge(1)?;
                slot = (slot + 1) & (size - 1);
            }
            index[slot].set((hash, ordinal(i)?));
        }
        Ok(index)
    }

    /// Releases what only further entries need, in case a compaction comes in between.
    pub(crate) fn seal(&self) {
        self.index.set(&[]);
        self.cells.set(&self.cells.get()[..2 * self.len()]);
    }

    /// Returns the finished map, or set. The builder must not be used again.
    pub(crate) fn finish(&self, h: &'h Heap) -> Res<&'h Map<'h>> {
        self.finish_with(h, Written::InKeyOrder)
    }

    /// Returns the finished map. Its entries count as written in the order in which their keys were inserted. The builder
    /// must not be used again.
    pub(crate) fn finish_as_written(&self, h: &'h Heap) -> Res<&'h Map<'h>> {
        self.finish_with(h, Written::OneByOne)
    }

    /// Returns the finished map, whose entries were made of those of `old` in key order. They count as written like these,
    /// unless several have become one. The builder must not be used again.
    pub(crate) fn finish_like(&self, h: &'h Heap, old: &Map<'h>) -> Res<&'h Map<'h>> {
        if old.len() != self.len() {
            return self.finish(h);
        }
        let Some(places) = old.written_places(h)? else { return self.finish_with(h, Written::OneByOne) };
        self.seal();
        self.build(h, |i| self.entry(places.items()[i]), Written::OneByOne)
    }

    fn finish_with(&self, h: &'h Heap, written: Written) -> Res<&'h Map<'h>> {
        self.seal();
        self.build(h, |i| self.entry(i), written)
    }

    fn build(&self, h: &'h Heap, entry: impl Fn(usize) -> Entry<'h>, written: Written) -> Res<&'h Map<'h>> {
        let n = self.len();
        h.charge(n as u64)?;
        if n > SMALL { h.tree_with(None, n, &entry, written) } else { h.sorted_map(n, entry, written) }
    }
}
