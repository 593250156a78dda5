//! Maps under construction, and the tree that comes of them in one pass.

use super::header::Header;
use super::map::{Entry, Map, Rep, SMALL, TreeSize};
use super::node::{BITS, Node, WAY};
use super::{Fault, Heap, Res, Value};
use crate::cost;
use crate::error::{Error, Reason};
use std::cell::Cell;
use std::cmp::Ordering;

/// Up to this number of entries they are compared one by one; beyond it there is an index.
const COMPARED: usize = 16;

impl Heap {
    /// A map under construction, with room for `room` entries; for some where that is 0.
    pub(crate) fn map_builder<'h>(&'h self, room: usize) -> Res<&'h MapBuilder<'h>> {
        let room = if room == 0 { COMPARED } else { room };
        let head = self.header();
        let builder = |cells| MapBuilder { head, cells: Cell::new(cells), len: Cell::new(0), index: Cell::new(&[]) };
        self.alloc_with_cells(room.saturating_mul(2), std::iter::empty(), builder)
    }

    /// A map of about `len` entries whose keys must differ.
    ///
    /// # Errors
    /// What `repeated` makes of a key that comes twice, errors of the entries, and the faults of an allocation.
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

/// A map under construction: entries in the order they came, and beyond [`COMPARED`] of them an open-addressing index.
pub struct MapBuilder<'h> {
    pub(super) head: Header,
    /// Keys and values in turn.
    pub(super) cells: Cell<&'h [Cell<Value<'h>>]>,
    pub(super) len: Cell<usize>,
    /// For each slot the hash and 1 + the place of the entry, 0 when free.
    pub(super) index: Cell<Index<'h>>,
}

/// The slots of the index: the hash, and 1 + the place of the entry.
type Index<'h> = &'h [Cell<(u32, u32)>];

/// 1 + the place of an entry, as the index has it.
fn ordinal(place: usize) -> Res<u32> {
    u32::try_from(place + 1).map_err(|_| {
        let message = format!("a map has at most {} entries", u32::MAX - 1);
        Error::new(Reason::MemoryExceeded, message).hint("keep less data at once").into()
    })
}

impl<'h> MapBuilder<'h> {
    /// How many entries so far.
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// The key and value that came in at a place.
    pub(crate) fn entry(&self, i: usize) -> Entry<'h> {
        let cells = self.cells.get();
        (cells[2 * i].get(), cells[2 * i + 1].get())
    }

    /// Gives the entry at a place another value.
    pub(crate) fn set_value(&self, i: usize, value: Value<'h>) {
        self.cells.get()[2 * i + 1].set(value);
    }

    /// The place of a key, if it is there.
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

    /// The free or matching slot for a key, and the place of its entry if it is there.
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

    /// Puts `value` at `key`: a new entry, or the old one with another value. Nothing is changed when there is no
    /// memory for it. Returns the entry's place.
    pub(crate) fn insert(&self, h: &'h Heap, key: Value<'h>, value: Value<'h>) -> Res<usize> {
        let len = self.len();
        // A grown index counts only when all that can fail is done: what is done again must cost the same again.
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
        let size = ((self.len() + 1) * 4).next_power_of_two();
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

    /// The finished map. The builder must not be used again.
    pub(crate) fn finish(&self, h: &'h Heap) -> Res<&'h Map<'h>> {
        let n = self.len();
        h.charge(n as u64)?;
        if n > SMALL {
            return self.finish_tree(h);
        }
        let mut sorted = [(Value::Nil, Value::Nil); SMALL];
        for i in 0..n {
            let entry = self.entry(i);
            let mut at = i;
            // Many come in order.
            if i > 0 && h.order(sorted[i - 1].0, entry.0)? == Ordering::Greater {
                at = h.place_among(i - 1, |i| sorted[i].0, entry.0)?;
                sorted.copy_within(at..i, at + 1);
            }
            sorted[at] = entry;
        }
        let sorted = &sorted[..n];
        h.small_map(n, sorted.iter().map(|entry| entry.0), sorted.iter().map(|entry| entry.1))
    }

    fn finish_tree(&self, h: &'h Heap) -> Res<&'h Map<'h>> {
        let n = self.len();
        h.charge(n as u64 * cost::ENTRY_BUILT)?;
        h.check_available(n * 16)?;
        let mut order: Vec<(u32, u32)> = Vec::with_capacity(n);
        let mut size = TreeSize::NONE;
        for i in 0..n {
            h.poll_every(1)?;
            let key = self.entry(i).0;
            order.push((h.hash(key)?, ordinal(i)?));
            size = size.with(key);
        }
        let root = self.subtree(h, &in_tree_order(h, order)?, 0)?;
        h.alloc(Map { head: h.header(), rep: Cell::new(Rep::Tree(size, root)) })
    }

    /// The node over entries whose hashes agree below `shift`. Recursion is bounded by the levels of the hash.
    fn subtree(&self, h: &'h Heap, order: &[(u32, u32)], shift: u32) -> Res<&'h Node<'h>> {
        h.poll_every(order.len().min(1 << BITS))?;
        let entry = |e: &(u32, u32)| self.entry(e.1 as usize - 1);
        if shift >= u32::BITS {
            h.check_available(std::mem::size_of_val(order))?;
            let mut order = order.to_vec();
            h.charge(cost::sorted(order.len()))?;
            super::merge_sort(h, &mut order, |a, b| h.order(entry(&a).0, entry(&b).0))?;
            let entries = h.alloc_slice(order.len(), order.iter().map(entry))?;
            return h.node(0, 0, entries, &[]);
        }
        let group = |e: &(u32, u32)| e.0 >> shift & WAY;
        let (mut entry_bits, mut child_bits) = (0u32, 0u32);
        let mut entries = [(Value::Nil, Value::Nil); 1 << BITS];
        let mut children: [Option<&'h Node<'h>>; 1 << BITS] = [None; 1 << BITS];
        let (mut entry_count, mut child_count) = (0, 0);
        for run in order.chunk_by(|a, b| group(a) == group(b)) {
            if let [single] = run {
                entry_bits |= 1 << group(single);
                entries[entry_count] = entry(single);
                entry_count += 1;
            } else {
                child_bits |= 1 << group(&run[0]);
                children[child_count] = Some(self.subtree(h, run, shift + BITS)?);
                child_count += 1;
            }
        }
        let entries = h.alloc_slice(entry_count, entries[..entry_count].iter().copied())?;
        let children = h.alloc_slice(child_count, children[..child_count].iter().filter_map(|c| *c))?;
        h.node(entry_bits, child_bits, entries, children)
    }
}

/// Sorts hashes and places in the order of the tree's walk, in which entries of one node stand together: by the lowest
/// group of bits, then by the next one. Equal hashes stay as they came.
fn in_tree_order(h: &Heap, mut order: Vec<(u32, u32)>) -> Res<Vec<(u32, u32)>> {
    /// Two groups are sorted by at once, the deepest levels first.
    const PAIR: u32 = 2 * BITS;
    /// Below this number of entries, comparing is faster than counting. Tests count sooner.
    const FEW: usize = if cfg!(test) { 8 } else { 256 };
    if order.len() < FEW {
        order.sort_by_key(|&(hash, _)| reverse_groups(hash));
        return Ok(order);
    }
    let digit = |hash: u32, shift: u32| {
        let pair = hash >> shift;
        ((pair & WAY) << BITS | pair >> BITS & WAY) as usize
    };
    let mut sorted = vec![(0, 0); order.len()];
    for pass in (0..u32::BITS.div_ceil(PAIR)).rev() {
        let mut begins = [0u32; 1 << PAIR];
        for &(hash, _) in &order {
            h.poll_every(1)?;
            begins[digit(hash, pass * PAIR)] += 1;
        }
        let mut begin = 0;
        for count in &mut begins {
            begin += std::mem::replace(count, begin);
        }
        for &entry in &order {
            h.poll_every(1)?;
            let next = &mut begins[digit(entry.0, pass * PAIR)];
            sorted[*next as usize] = entry;
            *next += 1;
        }
        std::mem::swap(&mut order, &mut sorted);
    }
    Ok(order)
}

/// The hash with its groups of bits in reverse order.
fn reverse_groups(hash: u32) -> u64 {
    let mut out = 0u64;
    let mut shift = 0;
    while shift < u32::BITS {
        out = out << BITS | u64::from(hash >> shift & WAY);
        shift += BITS;
    }
    out
}
