//! Trees built in one pass: of many entries, or of another tree and many more.

use super::held::Held;
use super::map::{Entry, KeyArray, Map, Rep, TreeSize};
use super::node::{BITS, Node, WAY};
use super::written_order::WrittenOrder;
use super::{Heap, Res, SMALL, Value};
use crate::cost;
use crate::error::{Error, Reason};
use crate::sizes::SORTED_BY_COUNTING;
use std::cell::Cell;
use std::cmp::Ordering;

/// Returns 1 + the index of an entry, as stored in an index.
pub(super) fn ordinal(place: usize) -> Res<u32> {
    u32::try_from(place + 1).map_err(|_| {
        let message = format!("a map has at most {} entries", u32::MAX - 1);
        Error::new(Reason::MemoryExceeded, message).hint("keep less data at once").into()
    })
}

/// Access to entries with distinct keys by their index.
trait EntryAt<'h>: Fn(usize) -> Entry<'h> {
    fn of(&self, placed: Placed) -> Entry<'h> {
        self(placed.1 as usize - 1)
    }
}

impl<'h, F: Fn(usize) -> Entry<'h>> EntryAt<'h> for F {}

/// The hash of a key, and 1 + the index of its entry.
type Placed = (u32, u32);

/// In which order the entries of a new map count as written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Also those of a set.
    InKeyOrder,
    /// In the order in which they are given.
    OneByOne,
}

impl Heap {
    /// Returns an array map of `n` entries.
    pub(super) fn sorted_map<'h>(
        &'h self,
        n: usize,
        entry: impl Fn(usize) -> Entry<'h>,
        written: Written,
    ) -> Res<&'h Map<'h>> {
        let (mut sorted, mut came) = ([(Value::Nil, Value::Nil); SMALL], [0; SMALL]);
        for (i, number) in (0..n).zip(0..) {
            let entry = entry(i);
            let mut at = i;
            // Entries often come in order.
            if i > 0 && self.order(sorted[i - 1].0, entry.0)? == Ordering::Greater {
                at = self.place_among(i - 1, |i| sorted[i].0, entry.0)?;
                sorted.copy_within(at..i, at + 1);
                came.copy_within(at..i, at + 1);
            }
            (sorted[at], came[at]) = (entry, number);
        }
        let order = if written == Written::OneByOne { WrittenOrder::of(&came[..n]) } else { None };
        let sorted = &sorted[..n];
        self.small_map(n, sorted.iter().map(|entry| entry.0), sorted.iter().map(|entry| entry.1), order)
    }

    /// Returns a tree with `n` more entries; or with only these, which must be more than an array map has. `written` is the
    /// order of a new tree. One with more entries counts as written like that before.
    pub(super) fn tree_with<'h>(
        &'h self,
        tree: Option<(TreeSize, &'h Node<'h>)>,
        n: usize,
        entry: &impl Fn(usize) -> Entry<'h>,
        written: Written,
    ) -> Res<&'h Map<'h>> {
        self.charge(n as u64 * cost::ENTRY_BUILT)?;
        let mut held = Held::new(self);
        held.take(n.saturating_mul(2 * size_of::<Placed>()))?;
        let mut order: Vec<Placed> = Vec::with_capacity(n);
        let mut size = tree.map_or(TreeSize::NONE, |(size, _)| size);
        for i in 0..n {
            self.poll_every(1)?;
            let key = entry(i).0;
            order.push((self.hash(key)?, ordinal(i)?));
            size = size.with(key);
        }
        let order = in_tree_order(self, order)?;
        held.give_back(n * size_of::<Placed>());
        let (root, replaced) = match tree {
            None => (self.subtree(entry, &order, 0)?, 0),
            Some((_, root)) => self.subtree_with(root, entry, &order, 0)?,
        };
        let size = (0..replaced).fold(size, |size, _| size.less());
        root.written.set(match tree {
            Some((_, before)) => before.written.get(),
            None if written == Written::InKeyOrder || self.are_in_order(n, entry)? => None,
            None => Some(self.key_list(n, (0..n).map(|i| entry(i).0))?),
        });
        self.tree_map(size, root)
    }

    /// Returns a map of distinct sorted keys, more than an array map has, and their values. It counts as written like `old`,
    /// which has the same keys.
    pub(crate) fn tree_of_columns<'h>(
        &'h self,
        old: Value<'h>,
        keys: &[Value<'h>],
        values: &[Value<'h>],
    ) -> Res<&'h Map<'h>> {
        let map = self.tree_with(None, keys.len(), &|place| (keys[place], values[place]), Written::InKeyOrder)?;
        if let Value::Map(old) = old
            && let (Rep::Tree(_, old), Rep::Tree(_, root)) = (old.rep(), map.rep())
        {
            root.written.set(old.written.get());
        }
        Ok(map)
    }

    fn are_in_order<'h>(&'h self, n: usize, entry: &impl Fn(usize) -> Entry<'h>) -> Res<bool> {
        for i in 1..n {
            self.poll_every(1)?;
            if self.order(entry(i - 1).0, entry(i).0)? == Ordering::Greater {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns keys in the order in which they are given, for the root of a tree.
    pub(super) fn key_list<'h>(&'h self, len: usize, keys: impl Iterator<Item = Value<'h>>) -> Res<&'h KeyArray<'h>> {
        let head = self.header();
        self.alloc_with(len, keys, |keys| KeyArray { head, keys: Cell::new(keys), written: None })
    }

    /// Returns the map of a tree.
    pub(super) fn tree_map<'h>(&'h self, size: TreeSize, root: &'h Node<'h>) -> Res<&'h Map<'h>> {
        self.alloc(Map { head: self.header(), rep: Cell::new(Rep::Tree(size, root)) })
    }

    /// Returns the node over entries whose hashes agree below `shift`. Recursion is bounded by the levels of the hash.
    fn subtree<'h>(&'h self, entry: &impl EntryAt<'h>, order: &[Placed], shift: u32) -> Res<&'h Node<'h>> {
        self.poll_every(order.len().min(1 << BITS))?;
        if shift >= u32::BITS {
            self.check_available(std::mem::size_of_val(order))?;
            let mut order = order.to_vec();
            self.charge(cost::sorted(order.len()))?;
            super::merge_sort(self, &mut order, |a, b| self.order(entry.of(a).0, entry.of(b).0))?;
            let entries = self.alloc_slice(order.len(), order.iter().map(|&e| entry.of(e)))?;
            return self.node(0, 0, entries, &[]);
        }
        let mut parts = Parts::new(shift);
        for run in order.chunk_by(|a, b| way(a.0, shift) == way(b.0, shift)) {
            match run {
                &[single] => parts.push_entry(single.0, entry.of(single)),
                run => parts.push_child(run[0].0, self.subtree(entry, run, shift + BITS)?),
            }
        }
        self.node_of(&parts)
    }

    /// Returns the node with more entries, and how many of its own they replaced. Recursion is bounded by the levels of
    /// the hash.
    fn subtree_with<'h>(
        &'h self,
        node: &'h Node<'h>,
        entry: &impl EntryAt<'h>,
        order: &[Placed],
        shift: u32,
    ) -> Res<(&'h Node<'h>, usize)> {
        if shift >= u32::BITS || order.len() == 1 {
            let (mut node, mut replaced) = (node, 0);
            for &placed in order {
                let (key, value) = entry.of(placed);
                let (with, added) = self.tree_assoc(node, key, value, placed.0, shift, 0)?;
                (node, replaced) = (with, replaced + usize::from(!added));
            }
            return Ok((node, replaced));
        }
        self.charge(cost::node(node.entries().len() + node.children().len()))?;
        let (mut parts, mut replaced) = (Parts::new(shift), 0);
        let (mut entries, mut children) = (node.entries().iter(), node.children().iter());
        let mut runs = order.chunk_by(|a, b| way(a.0, shift) == way(b.0, shift)).peekable();
        for to in 0..=WAY {
            let run = runs.next_if(|run| way(run[0].0, shift) == to).unwrap_or_default();
            let (has_entry, has_child) = (node.entry_bits >> to & 1 == 1, node.child_bits >> to & 1 == 1);
            let old = if has_entry { entries.next() } else { None };
            let child = if has_child { children.next() } else { None };
            let hash = to << shift;
            match (old, child, run) {
                (None, None, []) => {}
                (Some(&old), _, []) => parts.push_entry(hash, old),
                (_, Some(child), []) => parts.push_child(hash, child),
                (None, None, &[single]) => parts.push_entry(hash, entry.of(single)),
                (None, None, run) => parts.push_child(hash, self.subtree(entry, run, shift + BITS)?),
                (Some(&old), _, &[single]) if self.same_key(old.0, entry.of(single).0)? => {
                    parts.push_entry(hash, (old.0, entry.of(single).1));
                    replaced += 1;
                }
                (Some(&old), _, run) => {
                    let below = self.single(old, shift + BITS)?;
                    let (child, same) = self.subtree_with(below, entry, run, shift + BITS)?;
                    parts.push_child(hash, child);
                    replaced += same;
                }
                (_, Some(child), run) => {
                    let (child, same) = self.subtree_with(child, entry, run, shift + BITS)?;
                    parts.push_child(hash, child);
                    replaced += same;
                }
            }
        }
        Ok((self.node_of(&parts)?, replaced))
    }

    /// Returns a node of one entry.
    fn single<'h>(&'h self, entry: Entry<'h>, shift: u32) -> Res<&'h Node<'h>> {
        let mut parts = Parts::new(shift);
        if shift < u32::BITS {
            parts.push_entry(self.hash(entry.0)?, entry);
            return self.node_of(&parts);
        }
        self.node(0, 0, self.alloc_slice(1, std::iter::once(entry))?, &[])
    }

    fn node_of<'h>(&'h self, parts: &Parts<'h>) -> Res<&'h Node<'h>> {
        let entries = self.alloc_slice(parts.entry_count, parts.entries[..parts.entry_count].iter().copied())?;
        let children =
            self.alloc_slice(parts.child_count, parts.children[..parts.child_count].iter().filter_map(|child| *child))?;
        self.node(parts.entry_bits, parts.child_bits, entries, children)
    }
}

/// Returns the branch that a hash selects at a level.
fn way(hash: u32, shift: u32) -> u32 {
    hash >> shift & WAY
}

/// The parts of a node, in the order of their bits.
struct Parts<'h> {
    shift: u32,
    entry_bits: u32,
    child_bits: u32,
    entries: [Entry<'h>; 1 << BITS],
    children: [Option<&'h Node<'h>>; 1 << BITS],
    entry_count: usize,
    child_count: usize,
}

impl<'h> Parts<'h> {
    fn new(shift: u32) -> Self {
        Parts {
            shift,
            entry_bits: 0,
            child_bits: 0,
            entries: [(Value::Nil, Value::Nil); 1 << BITS],
            children: [None; 1 << BITS],
            entry_count: 0,
            child_count: 0,
        }
    }

    fn push_entry(&mut self, hash: u32, entry: Entry<'h>) {
        self.entry_bits |= 1 << way(hash, self.shift);
        self.entries[self.entry_count] = entry;
        self.entry_count += 1;
    }

    fn push_child(&mut self, hash: u32, child: &'h Node<'h>) {
        self.child_bits |= 1 << way(hash, self.shift);
        self.children[self.child_count] = Some(child);
        self.child_count += 1;
    }
}

/// Sorts hashes and indices in the order of the tree, in which the entries of a node are adjacent: by the lowest group
/// of bits, then by the next one. The sort is stable.
fn in_tree_order(h: &Heap, mut order: Vec<(u32, u32)>) -> Res<Vec<(u32, u32)>> {
    /// Each pass sorts by two groups, the deepest levels first.
    const PAIR: u32 = 2 * BITS;
    if order.len() < SORTED_BY_COUNTING {
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

/// Returns the hash with its groups of bits in reverse order.
fn reverse_groups(hash: u32) -> u64 {
    let mut out = 0u64;
    let mut shift = 0;
    while shift < u32::BITS {
        out = out << BITS | u64::from(hash >> shift & WAY);
        shift += BITS;
    }
    out
}
