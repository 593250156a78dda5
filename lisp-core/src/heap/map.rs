//! Maps and sets. Up to [`SMALL`] entries they are a sorted array, whose key array is shared between maps of the same
//! shape; beyond that a compressed hash-array-mapped prefix tree (CHAMP). Walks are in key order.

use super::gather::Gathered;
use super::header::Header;
use super::held::List;
use super::node::{BITS, Node, Step, WAY, find_tree};
use super::string::{SHORT_TEXT, Str, text_cost};
use super::tree::Written;
use super::written_order::WrittenOrder;
use super::{Heap, Res, SMALL, Value};
use crate::cost;
use std::cell::Cell;
use std::cmp::Ordering;

/// One entry.
pub type Entry<'h> = (Value<'h>, Value<'h>);

/// A persistent map; in a set every value is `true`.
pub struct Map<'h> {
    pub(super) head: Header,
    pub(super) rep: Cell<Rep<'h>>,
}

#[derive(Clone, Copy)]
pub(super) enum Rep<'h> {
    /// Keys in order, and their values.
    Small(&'h KeyArray<'h>, &'h [Value<'h>]),
    /// Number of entries, kinds of keys, and the tree.
    Tree(TreeSize, &'h Node<'h>),
}

const _: () = assert!(std::mem::size_of::<Map<'static>>() == 32);

/// The number of entries of a tree, and the kinds of keys that it may have. A kind stays noted when its last key is
/// removed. The kinds tell where a search can succeed.
#[derive(Clone, Copy)]
pub(super) struct TreeSize(usize);

impl TreeSize {
    /// Keywords.
    pub(super) const KEYWORDS: usize = 1;
    /// Strings.
    pub(super) const STRINGS: usize = 2;
    /// Vectors.
    pub(super) const VECTORS: usize = 4;
    /// Keywords with underscores in their names.
    pub(super) const UNDERSCORED: usize = 8;
    /// The number of bits below the number of entries.
    const KINDS: u32 = 4;

    /// No entries.
    pub(super) const NONE: TreeSize = TreeSize(0);

    /// Returns the number of entries.
    #[inline]
    pub(super) fn len(self) -> usize {
        self.0 >> Self::KINDS
    }

    /// Returns it with one more entry, which has this key.
    #[inline]
    pub(super) fn with(self, key: Value<'_>) -> Self {
        let kind = match key {
            Value::Keyword(_, name) if !self.may_have(Self::UNDERSCORED) && may_contain(name.text(), '_') => {
                Self::KEYWORDS | Self::UNDERSCORED
            }
            Value::Keyword(..) => Self::KEYWORDS,
            Value::Str(_) => Self::STRINGS,
            Value::Vector(_) => Self::VECTORS,
            _ => 0,
        };
        TreeSize((self.0 | kind) + (1 << Self::KINDS))
    }

    /// Returns it with one entry less.
    pub(super) fn less(self) -> Self {
        TreeSize(self.0 - (1 << Self::KINDS))
    }

    /// Returns true if two of the keys may stand for the same key of another map.
    pub(super) fn may_meet(self) -> bool {
        self.may_have(Self::KEYWORDS) && (self.may_have(Self::STRINGS) || self.may_have(Self::UNDERSCORED))
    }

    /// Returns true if there may be keys of this kind.
    #[inline]
    pub(super) fn may_have(self, kind: usize) -> bool {
        self.0 & kind != 0
    }
}

/// The keys of an array map, in order; shared between maps of one shape.
pub(crate) struct KeyArray<'h> {
    pub(super) head: Header,
    pub(super) keys: Cell<&'h [Value<'h>]>,
    /// `None` if they were written in key order.
    pub(super) written: Option<&'h WrittenOrder>,
}

impl<'h> KeyArray<'h> {
    #[inline(always)]
    pub(super) fn keys(&self) -> &'h [Value<'h>] {
        self.keys.get()
    }

    /// Returns the keys in order.
    pub(crate) fn each_key(&self) -> impl Iterator<Item = Value<'h>> {
        self.keys().iter().copied()
    }
}

/// The entries of a map: in key order, unless they are asked for as they were written.
pub enum Entries<'h> {
    /// of an array map
    Small(&'h [Value<'h>], &'h [Value<'h>]),
    /// of an array map, in the order in which they were written
    Written(&'h [Value<'h>], &'h [Value<'h>], &'h WrittenOrder),
    /// of a tree, collected and sorted
    Sorted(&'h [Entry<'h>]),
}

impl<'h> Entries<'h> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        match self {
            Entries::Small(keys, _) => keys.len(),
            Entries::Written(keys, ..) => keys.len(),
            Entries::Sorted(entries) => entries.len(),
        }
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the entries in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Entry<'h>> + ExactSizeIterator + '_ {
        (0..self.len()).map(move |i| self.entry(i))
    }

    /// Returns the entry at an index.
    pub fn entry(&self, i: usize) -> Entry<'h> {
        match self {
            Entries::Small(keys, values) => (keys[i], values[i]),
            Entries::Written(keys, values, order) => {
                let place = order.place(i);
                (keys[place], values[place])
            }
            Entries::Sorted(entries) => entries[i],
        }
    }
}

impl<'h> Map<'h> {
    #[inline(always)]
    pub(super) fn rep(&self) -> Rep<'h> {
        self.rep.get()
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        match self.rep() {
            Rep::Small(keys, _) => keys.keys().len(),
            Rep::Tree(size, _) => size.len(),
        }
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value at exactly this key.
    #[inline]
    pub fn get(&self, h: &'h Heap, key: Value<'h>) -> Res<Option<Value<'h>>> {
        match self.rep() {
            Rep::Small(keys, values) => Ok(find_small(h, keys.keys(), key)?.map(|i| values[i])),
            Rep::Tree(_, root) => {
                let hash = h.hash(key)?;
                Ok(find_tree(h, root, key, hash)?.map(|entry| entry.1))
            }
        }
    }

    /// Returns true if this key exists.
    pub fn contains(&self, h: &'h Heap, key: Value<'h>) -> Res<bool> {
        Ok(self.get(h, key)?.is_some())
    }

    /// Returns the entries in key order. A tree is collected and sorted first.
    pub fn entries(&self, h: &'h Heap) -> Res<Entries<'h>> {
        match self.rep() {
            Rep::Small(keys, values) => Ok(Entries::Small(keys.keys(), values)),
            Rep::Tree(size, root) => {
                let sorted = sorted(h, size.len(), root)?;
                Ok(Entries::Sorted(h.alloc_slice(size.len(), sorted.items().iter().map(|&&entry| entry))?))
            }
        }
    }

    /// Visits the entries in key order, without allocating in the arena.
    pub(crate) fn in_order(&self, h: &'h Heap, mut f: impl FnMut(Entry<'h>) -> Res<()>) -> Res<()> {
        match self.rep() {
            Rep::Small(keys, values) => keys.keys().iter().zip(values).try_for_each(|(&key, &value)| f((key, value))),
            Rep::Tree(size, root) => sorted(h, size.len(), root)?.items().iter().try_for_each(|&&entry| f(entry)),
        }
    }

    /// Returns the keys in order, and their values at the same positions, as vectors.
    pub(crate) fn columns(&self, h: &'h Heap) -> Res<[Value<'h>; 2]> {
        let (keys, values) = (h.vec_builder(self.len())?, h.vec_builder(self.len())?);
        self.in_order(h, |(key, value)| {
            keys.push(h, key)?;
            values.push(h, value)
        })?;
        Ok([keys.finish(h)?, values.finish(h)?])
    }

    /// Returns keys and values in an order that depends only on them, and is found without comparing keys that contain
    /// others: in a tree these come after all other keys, in the order of their hashes.
    pub(super) fn comparable(&self, h: &'h Heap) -> Res<(&'h [Value<'h>], &'h [Value<'h>])> {
        let (size, root) = match self.rep() {
            Rep::Small(keys, values) => return Ok((keys.keys(), values)),
            Rep::Tree(size, root) => (size, root),
        };
        let len = size.len();
        h.charge(cost::sorted(len) + 2 * cost::placed(len))?;
        h.check_available(len * 64)?;
        let (mut all, mut deep) = (Vec::with_capacity(len), Vec::new());
        root.each(h, |entries| {
            for &entry in entries {
                if holds_others(entry.0) { deep.push(entry) } else { all.push(entry) }
            }
            Ok(())
        })?;
        super::merge_sort(h, &mut all, |a, b| h.order_single(a.0, b.0))?;
        let keys = h.alloc_slice(len, all.iter().chain(&deep).map(|entry| entry.0))?;
        Ok((keys, h.alloc_slice(len, all.iter().chain(&deep).map(|entry| entry.1))?))
    }

    /// Visits the entries in an unspecified order.
    pub(crate) fn each(&self, h: &Heap, mut f: impl FnMut(Entry<'h>) -> Res<()>) -> Res<()> {
        match self.rep() {
            Rep::Small(keys, values) => keys.keys().iter().zip(values).try_for_each(|(&key, &value)| {
                h.poll_every(1)?;
                f((key, value))
            }),
            Rep::Tree(_, root) => root.each(h, |entries| entries.iter().try_for_each(|&entry| f(entry))),
        }
    }

    /// Returns the values in the order of their keys for an array map, which has up to 32 entries.
    pub fn few_values(&self) -> Option<&'h [Value<'h>]> {
        self.shape().map(|(_, values)| values)
    }

    /// Returns the keys in order, and the values, for an array map.
    pub(crate) fn shape(&self) -> Option<(&'h KeyArray<'h>, &'h [Value<'h>])> {
        match self.rep() {
            Rep::Small(keys, values) => Some((keys, values)),
            Rep::Tree(..) => None,
        }
    }
}

/// Returns the entries of a tree in key order.
pub(super) fn sorted<'h>(h: &'h Heap, len: usize, root: &'h Node<'h>) -> Res<List<'h, &'h Entry<'h>>> {
    h.charge(2 * cost::placed(len))?;
    let mut all = List::with_room(h, len)?;
    root.each(h, |entries| entries.iter().try_for_each(|entry| all.push(entry)))?;
    sort_entries(h, &mut all)?;
    Ok(all)
}

pub(super) fn sort_entries<'h>(h: &'h Heap, entries: &mut List<'h, &'h Entry<'h>>) -> Res<()> {
    h.charge(cost::sorted(entries.items().len()))?;
    super::merge_sort(h, entries.items_mut(), |a, b| h.order(a.0, b.0))
}

/// Returns true if a value may contain others.
pub(super) fn holds_others(value: Value<'_>) -> bool {
    matches!(value, Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Endless(_))
}

/// Returns true if a text contains a character, or is too long for a free search.
#[inline]
pub(super) fn may_contain(text: &str, c: char) -> bool {
    text.len() > SHORT_TEXT || text.contains(c)
}

pub(super) fn address<T>(object: &T) -> *const () {
    std::ptr::from_ref(object).cast()
}

/// Returns the items with one more at `at`.
#[inline]
fn inserted<'h>(items: &[Value<'h>], at: usize, item: Value<'h>) -> impl Iterator<Item = Value<'h>> {
    items[..at].iter().copied().chain([item]).chain(items[at..].iter().copied())
}

/// Returns the items without the one at `at`.
fn removed<'h>(items: &[Value<'h>], at: usize) -> impl Iterator<Item = Value<'h>> {
    items[..at].iter().chain(&items[at + 1..]).copied()
}

#[inline]
fn find_small<'h>(h: &'h Heap, keys: &'h [Value<'h>], key: Value<'h>) -> Res<Option<usize>> {
    match key {
        Value::Keyword(hash, name) => {
            if name.text().len() > SHORT_TEXT {
                h.charge(text_cost(name.text()))?;
            }
            for (i, &k) in keys.iter().enumerate() {
                if let Value::Keyword(other, text) = k
                    && (std::ptr::eq(name, text) || (hash == other && name.text() == text.text()))
                {
                    return Ok(Some(i));
                }
            }
            Ok(None)
        }
        Value::Str(s) => {
            let len = s.text().len();
            h.charge(match len <= SHORT_TEXT {
                true => cost::texts_compared(keys.len(), len),
                false => text_cost(s.text()).saturating_mul(keys.len() as u64),
            })?;
            for (i, &k) in keys.iter().enumerate() {
                if let Value::Str(other) = k
                    && (std::ptr::eq(s, other) || s.text() == other.text())
                {
                    return Ok(Some(i));
                }
            }
            Ok(None)
        }
        _ => {
            h.charge(cost::compared_with(keys.len()))?;
            for (i, &k) in keys.iter().enumerate() {
                if h.same_key(k, key)? {
                    return Ok(Some(i));
                }
            }
            Ok(None)
        }
    }
}

/// A step from one shape to the next: the keys with one more, the values so far, and the position of the new one.
struct Grown<'h> {
    keys: &'h KeyArray<'h>,
    values: &'h [Value<'h>],
    at: usize,
}

impl Heap {
    /// Returns an empty map.
    pub fn empty_map<'h>(&'h self) -> Res<&'h Map<'h>> {
        self.small_map(0, std::iter::empty(), std::iter::empty(), None)
    }

    /// Returns a map of `len` sorted keys and their values. `written` is the order in which they were written, unless that
    /// is key order.
    pub(crate) fn small_map<'h>(
        &'h self,
        len: usize,
        keys: impl Iterator<Item = Value<'h>>,
        values: impl Iterator<Item = Value<'h>>,
        written: Option<WrittenOrder>,
    ) -> Res<&'h Map<'h>> {
        let words = 2 * len * 16 + if written.is_some() { size_of::<WrittenOrder>() } else { 0 };
        self.reserve(words + size_of::<KeyArray<'_>>() + size_of::<Map<'_>>())?;
        let head = self.header();
        let written = written.map(|order| self.alloc(order)).transpose()?;
        let keys = self.alloc_with(len, keys, |keys| KeyArray { head, keys: Cell::new(keys), written })?;
        self.map_of_shape(keys, values)
    }

    /// Returns a map with the keys of another, and as many values in the order of the keys.
    #[inline]
    pub(crate) fn map_of_shape<'h>(
        &'h self,
        keys: &'h KeyArray<'h>,
        values: impl Iterator<Item = Value<'h>>,
    ) -> Res<&'h Map<'h>> {
        let head = self.header();
        let map = |values: &'h [Value<'h>]| {
            debug_assert_eq!(keys.keys().len(), values.len());
            Map { head, rep: Cell::new(Rep::Small(keys, values)) }
        };
        self.alloc_with(keys.keys().len(), values, map)
    }

    /// Returns the key array made by adding this name to these keys, and the position of the name in it, if that was
    /// done recently.
    #[inline]
    fn grown_keys<'h>(&'h self, keys: &'h KeyArray<'h>, name: &'h Str<'h>) -> Option<(&'h KeyArray<'h>, usize)> {
        let (grown, at) = self.shapes.grown(address(keys), address(name))?;
        // SAFETY: only `assoc_any` notes steps, and `grown` is the key array of a map that it has made in this heap's
        // arena. The arena frees nothing until it is replaced, and then the steps are forgotten.
        Some((unsafe { &*grown.cast::<KeyArray<'h>>() }, at))
    }

    /// Returns the map with `value` at exactly `key`.
    #[inline]
    pub(crate) fn assoc<'h>(&'h self, map: &'h Map<'h>, key: Value<'h>, value: Value<'h>) -> Res<&'h Map<'h>> {
        match self.grown(map, key) {
            Some(step) => self.assoc_grown(step, value),
            None => self.assoc_any(map, key, value),
        }
    }

    /// Returns the map with `value` at the key that `key` stands for in `base`: the map itself, or the one it was made
    /// from by adding entries.
    #[inline]
    pub(crate) fn assoc_meant<'h>(
        &'h self,
        base: &'h Map<'h>,
        map: &'h Map<'h>,
        key: Value<'h>,
        value: Value<'h>,
    ) -> Res<&'h Map<'h>> {
        // Such a step is remembered only for keys without a keyword/string pair.
        match self.grown(map, key) {
            Some(step) => self.assoc_grown(step, value),
            None => self.assoc_any(map, base.meant(self, key)?, value),
        }
    }

    /// Returns the step that adds a keyword to the keys of an array map, if it was taken recently.
    #[inline]
    fn grown<'h>(&'h self, map: &'h Map<'h>, key: Value<'h>) -> Option<Grown<'h>> {
        let (Value::Keyword(_, name), Rep::Small(keys, values)) = (key, map.rep()) else { return None };
        let (keys, at) = self.grown_keys(keys, name)?;
        Some(Grown { keys, values, at })
    }

    fn assoc_grown<'h>(&'h self, step: Grown<'h>, value: Value<'h>) -> Res<&'h Map<'h>> {
        let Grown { keys, values, at } = step;
        self.charge_copied(values.len())?;
        self.map_of_shape(keys, inserted(values, at, value))
    }

    /// Charges for a new small map with other keys.
    #[inline]
    fn charge_copied(&self, keys: usize) -> Res<()> {
        match cost::keys_copied(keys) {
            0 => Ok(()),
            units => self.charge(units),
        }
    }

    /// Returns the position at which a key would be inserted into sorted keys, by binary search; `nth` returns one of
    /// `len` keys.
    pub(super) fn place_among<'h>(
        &'h self,
        len: usize,
        nth: impl Fn(usize) -> Value<'h>,
        key: Value<'h>,
    ) -> Res<usize> {
        let (mut from, mut to) = (0, len);
        while from < to {
            let middle = from.midpoint(to);
            match self.order(nth(middle), key)? {
                Ordering::Greater => to = middle,
                _ => from = middle + 1,
            }
        }
        Ok(from)
    }

    fn assoc_any<'h>(&'h self, map: &'h Map<'h>, key: Value<'h>, value: Value<'h>) -> Res<&'h Map<'h>> {
        match map.rep() {
            Rep::Small(keys, values) => {
                let before = self.spent();
                if let Some(i) = find_small(self, keys.keys(), key)? {
                    self.charge_copied(values.len() / 2)?;
                    let others = values[..i].iter().copied().chain([value]).chain(values[i + 1..].iter().copied());
                    return self.map_of_shape(keys, others);
                }
                let n = keys.keys().len();
                if n == SMALL {
                    let builder = self.map_builder(n + 1)?;
                    for (k, v) in map.entries_as_written(self)?.iter() {
                        builder.insert(self, k, v)?;
                    }
                    builder.insert(self, key, value)?;
                    return builder.finish_as_written(self);
                }
                // Only steps without other costs are remembered: taking a remembered one must cost the same.
                let is_free = self.spent() == before;
                self.charge_copied(n)?;
                let before = self.spent();
                let at = self.place_among(n, |i| keys.keys()[i], key)?;
                let written = WrittenOrder::with(keys.written, n, at);
                let map =
                    self.small_map(n + 1, inserted(keys.keys(), at, key), inserted(values, at, value), written)?;
                if let (Value::Keyword(_, name), Rep::Small(grown, _)) = (key, map.rep())
                    && is_free
                    && self.spent() == before
                    && matches!(keys.place_of_counterpart(name.text()), (None, words) if cost::names_compared(words) == 0)
                {
                    self.shapes.note_grown(address(keys), address(name), address(grown), at);
                }
                Ok(map)
            }
            Rep::Tree(size, root) => {
                let hash = self.hash(key)?;
                let (new, added) = self.tree_assoc(root, key, value, hash, 0, 0)?;
                new.written.set(root.written.get());
                self.tree_map(if added { size.with(key) } else { size }, new)
            }
        }
    }

    /// Copies the nodes on the path to the entry. `due` is the cost of those above: they are copied on the way back, so
    /// all are charged for at the end of the path. Recursion is bounded by the eight levels of a 32-bit hash.
    pub(super) fn tree_assoc<'h>(
        &'h self,
        node: &'h Node<'h>,
        key: Value<'h>,
        value: Value<'h>,
        hash: u32,
        shift: u32,
        due: u64,
    ) -> Res<(&'h Node<'h>, bool)> {
        let due = due.wrapping_add(cost::node(node.entries().len() + node.children().len()));
        let step = node.step(hash, shift);
        if let Step::Child(i) = step {
            let (child, added) = self.tree_assoc(node.children()[i], key, value, hash, shift + BITS, due)?;
            let children = node.children().iter().enumerate().map(|(j, &c)| if j == i { child } else { c });
            let bits = (node.entry_bits, node.child_bits);
            return Ok((self.node_with_children(bits, node.entries(), node.children().len(), children)?, added));
        }
        self.charge(due)?;
        match step {
            Step::Entry(i) => {
                let (old_key, old_value) = node.entries()[i];
                if self.same_key(old_key, key)? {
                    return Ok((self.replace_entry(node, i, (old_key, value))?, false));
                }
                let old_hash = self.hash(old_key)?;
                let below = self.join_two((old_key, old_value, old_hash), (key, value, hash), shift + BITS)?;
                let bit = 1u32 << (hash >> shift & WAY);
                let entries = self.alloc_slice(
                    node.entries().len() - 1,
                    node.entries().iter().enumerate().filter(|e| e.0 != i).map(|e| *e.1),
                )?;
                let at = (node.child_bits & (bit - 1)).count_ones() as usize;
                let children = self.alloc_slice(
                    node.children().len() + 1,
                    node.children()[..at].iter().copied().chain([below]).chain(node.children()[at..].iter().copied()),
                )?;
                Ok((self.node(node.entry_bits & !bit, node.child_bits | bit, entries, children)?, true))
            }
            Step::Nothing => {
                let bit = 1u32 << (hash >> shift & WAY);
                let at = (node.entry_bits & (bit - 1)).count_ones() as usize;
                let bits = (node.entry_bits | bit, node.child_bits);
                Ok((self.with_entry(bits, node, at, (key, value))?, true))
            }
            Step::Child(_) | Step::Collisions => {
                self.charge(node.entries().len() as u64)?;
                for (i, &(k, _)) in node.entries().iter().enumerate() {
                    if self.same_key(k, key)? {
                        return Ok((self.replace_entry(node, i, (k, value))?, false));
                    }
                }
                let at = self.place_among(node.entries().len(), |i| node.entries()[i].0, key)?;
                Ok((self.with_entry((0, 0), node, at, (key, value))?, true))
            }
        }
    }

    /// Returns a node of `len` new entries, and of children that it may share with an older node. These are charged
    /// for, because a compaction copies them.
    fn node_with_entries<'h>(
        &'h self,
        (entry_bits, child_bits): (u32, u32),
        len: usize,
        entries: impl Iterator<Item = Entry<'h>>,
        children: &'h [&'h Node<'h>],
    ) -> Res<&'h Node<'h>> {
        self.charge_share(std::mem::size_of_val(children))?;
        let head = self.header();
        self.alloc_with(len, entries, |entries| Node {
            head,
            entry_bits,
            child_bits,
            entries: Cell::new(entries),
            children: Cell::new(children),
            written: Cell::new(None),
        })
    }

    /// Returns a node of `len` new children, and of entries that it may share with an older node.
    fn node_with_children<'h>(
        &'h self,
        (entry_bits, child_bits): (u32, u32),
        entries: &'h [Entry<'h>],
        len: usize,
        children: impl Iterator<Item = &'h Node<'h>>,
    ) -> Res<&'h Node<'h>> {
        self.charge_share(std::mem::size_of_val(entries))?;
        let head = self.header();
        self.alloc_with(len, children, |children| Node {
            head,
            entry_bits,
            child_bits,
            entries: Cell::new(entries),
            children: Cell::new(children),
            written: Cell::new(None),
        })
    }

    pub(super) fn node<'h>(
        &'h self,
        entry_bits: u32,
        child_bits: u32,
        entries: &'h [Entry<'h>],
        children: &'h [&'h Node<'h>],
    ) -> Res<&'h Node<'h>> {
        let (entries, children) = (Cell::new(entries), Cell::new(children));
        self.alloc(Node { head: self.header(), entry_bits, child_bits, entries, children, written: Cell::new(None) })
    }

    /// Returns the node with one more entry, at `at`.
    fn with_entry<'h>(
        &'h self,
        bits: (u32, u32),
        node: &'h Node<'h>,
        at: usize,
        entry: Entry<'h>,
    ) -> Res<&'h Node<'h>> {
        let (before, behind) = node.entries().split_at(at);
        let all = before.iter().copied().chain([entry]).chain(behind.iter().copied());
        self.node_with_entries(bits, node.entries().len() + 1, all, node.children())
    }

    fn replace_entry<'h>(&'h self, node: &'h Node<'h>, i: usize, entry: Entry<'h>) -> Res<&'h Node<'h>> {
        let all = node.entries().iter().enumerate().map(|(j, &e)| if j == i { entry } else { e });
        self.node_with_entries((node.entry_bits, node.child_bits), node.entries().len(), all, node.children())
    }

    /// Returns the node that distinguishes two entries, `shift` bits into their hashes.
    fn join_two<'h>(
        &'h self,
        a: (Value<'h>, Value<'h>, u32),
        b: (Value<'h>, Value<'h>, u32),
        shift: u32,
    ) -> Res<&'h Node<'h>> {
        if shift >= u32::BITS {
            let (a, b) = if self.order(a.0, b.0)? == Ordering::Greater { (b, a) } else { (a, b) };
            let entries = self.alloc_slice(2, [(a.0, a.1), (b.0, b.1)].into_iter())?;
            return self.node(0, 0, entries, &[]);
        }
        let (x, y) = (a.2 >> shift & WAY, b.2 >> shift & WAY);
        if x == y {
            let below = self.join_two(a, b, shift + BITS)?;
            let children = self.alloc_slice(1, [below].into_iter())?;
            return self.node(0, 1 << x, &[], children);
        }
        let (first, second) = if x < y { (a, b) } else { (b, a) };
        let entries = self.alloc_slice(2, [(first.0, first.1), (second.0, second.1)].into_iter())?;
        self.node(1 << x | 1 << y, 0, entries, &[])
    }

    /// Returns the map without `key`.
    pub(crate) fn dissoc<'h>(&'h self, map: &'h Map<'h>, key: Value<'h>) -> Res<&'h Map<'h>> {
        match map.rep() {
            Rep::Small(keys, values) => {
                let Some(at) = find_small(self, keys.keys(), key)? else { return Ok(map) };
                let n = keys.keys().len() - 1;
                self.charge_copied(n)?;
                let written = WrittenOrder::without(keys.written, n + 1, at);
                self.small_map(n, removed(keys.keys(), at), removed(values, at), written)
            }
            Rep::Tree(size, root) => {
                let hash = self.hash(key)?;
                let Some(new) = self.tree_dissoc(root, key, hash, 0)? else { return Ok(map) };
                let written = root.written.get();
                new.written.set(written);
                let map = self.tree_map(size.less(), new)?;
                if map.len() <= SMALL {
                    let builder = self.map_builder(map.len())?;
                    for (k, v) in map.entries_as_written(self)?.iter() {
                        builder.insert(self, k, v)?;
                    }
                    return builder.finish_as_written(self);
                }
                // At most half of the list are keys that the map does not have.
                if written.is_some_and(|written| written.keys().len() > 2 * map.len()) {
                    let left = map.entries_as_written(self)?;
                    new.written.set(Some(self.key_list(left.len(), left.iter().map(|entry| entry.0))?));
                }
                Ok(map)
            }
        }
    }

    /// `None` if the key does not exist. Recursion is bounded by the eight levels of a 32-bit hash.
    fn tree_dissoc<'h>(
        &'h self,
        node: &'h Node<'h>,
        key: Value<'h>,
        hash: u32,
        shift: u32,
    ) -> Res<Option<&'h Node<'h>>> {
        self.charge(cost::node(node.entries().len() + node.children().len()))?;
        let without = |bits, i: usize| {
            let rest = node.entries().iter().enumerate().filter(move |e| e.0 != i).map(|e| *e.1);
            self.node_with_entries(bits, node.entries().len() - 1, rest, node.children())
        };
        match node.step(hash, shift) {
            Step::Entry(i) => {
                if !self.same_key(node.entries()[i].0, key)? {
                    return Ok(None);
                }
                let bit = 1u32 << (hash >> shift & WAY);
                Ok(Some(without((node.entry_bits & !bit, node.child_bits), i)?))
            }
            Step::Child(i) => {
                let Some(child) = self.tree_dissoc(node.children()[i], key, hash, shift + BITS)? else {
                    return Ok(None);
                };
                let bit = 1u32 << (hash >> shift & WAY);
                if child.children().is_empty() && child.entries().len() == 1 {
                    // A child with a single entry is merged into its parent, so that equal maps have equal trees.
                    let at = (node.entry_bits & (bit - 1)).count_ones() as usize;
                    let (before, behind) = node.entries().split_at(at);
                    let all = before.iter().copied().chain([child.entries()[0]]).chain(behind.iter().copied());
                    let entries = self.alloc_slice(node.entries().len() + 1, all)?;
                    let children = self.alloc_slice(
                        node.children().len() - 1,
                        node.children().iter().enumerate().filter(|c| c.0 != i).map(|c| *c.1),
                    )?;
                    return Ok(Some(self.node(node.entry_bits | bit, node.child_bits & !bit, entries, children)?));
                }
                let children = node.children().iter().enumerate().map(|(j, &c)| if j == i { child } else { c });
                let bits = (node.entry_bits, node.child_bits);
                Ok(Some(self.node_with_children(bits, node.entries(), node.children().len(), children)?))
            }
            Step::Nothing => Ok(None),
            Step::Collisions => {
                self.charge(node.entries().len() as u64)?;
                for (i, &(k, _)) in node.entries().iter().enumerate() {
                    if self.same_key(k, key)? {
                        return Ok(Some(without((0, 0), i)?));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Returns a map of entries in any order; of equal keys the last wins. They count as written in this order.
    pub fn map<'h>(&'h self, entries: impl ExactSizeIterator<Item = Entry<'h>>) -> Res<Value<'h>> {
        if entries.len() > SMALL {
            let mut all = Gathered::new(self);
            for (key, value) in entries {
                all.insert(key, value)?;
            }
            return all.map(Written::OneByOne).map(Value::Map);
        }
        let builder = self.map_builder(entries.len())?;
        for (key, value) in entries {
            builder.insert(self, key, value)?;
        }
        Ok(Value::Map(builder.finish_as_written(self)?))
    }

    /// Returns a set of members in any order.
    pub fn set<'h>(&'h self, members: impl ExactSizeIterator<Item = Value<'h>>) -> Res<Value<'h>> {
        if members.len() > SMALL {
            let mut all = Gathered::new(self);
            for member in members {
                all.add(member)?;
            }
            return all.map(Written::InKeyOrder).map(Value::Set);
        }
        let builder = self.map_builder(members.len())?;
        for member in members {
            builder.insert(self, member, Value::Bool(true))?;
        }
        Ok(Value::Set(builder.finish(self)?))
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
