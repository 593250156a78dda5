//! The nodes of trees: a compressed hash-array-mapped prefix tree (CHAMP).

use super::header::Header;
use super::map::{Entry, KeyArray};
use super::{Heap, Res, Value};
use crate::cost;
pub(super) use crate::sizes::TREE_BITS as BITS;
use std::cell::Cell;

/// The levels of a tree, including that of collision nodes.
const LEVELS: usize = u32::BITS.div_ceil(BITS) as usize + 1;
/// The bits of a hash that select the branch at one level.
pub(super) const WAY: u32 = (1 << BITS) - 1;

/// Where a hash leads in a node.
pub(super) enum Step {
    Entry(usize),
    Child(usize),
    Nothing,
    Collisions,
}

/// A node of the tree: entries and children, each in the order of their bits. Below the last bits of the hash, a node
/// holds entries with colliding hashes, in the order of their keys, and both bit maps are 0.
pub(super) struct Node<'h> {
    pub(super) head: Header,
    pub(super) entry_bits: u32,
    pub(super) child_bits: u32,
    pub(super) entries: Cell<&'h [Entry<'h>]>,
    pub(super) children: Cell<&'h [&'h Node<'h>]>,
    /// At the root of a map whose keys were not written in key order: the keys as they were written. Keys that were removed
    /// may be among them, and keys that were added one by one are not.
    pub(super) written: Cell<Option<&'h KeyArray<'h>>>,
}

impl<'h> Node<'h> {
    #[inline(always)]
    pub(super) fn entries(&self) -> &'h [Entry<'h>] {
        self.entries.get()
    }

    #[inline(always)]
    pub(super) fn children(&self) -> &'h [&'h Node<'h>] {
        self.children.get()
    }

    #[inline]
    pub(super) fn step(&self, hash: u32, shift: u32) -> Step {
        if shift >= u32::BITS {
            return Step::Collisions;
        }
        let bit = 1u32 << (hash >> shift & WAY);
        if self.entry_bits & bit != 0 {
            Step::Entry((self.entry_bits & (bit - 1)).count_ones() as usize)
        } else if self.child_bits & bit != 0 {
            Step::Child((self.child_bits & (bit - 1)).count_ones() as usize)
        } else {
            Step::Nothing
        }
    }

    /// Returns true for a collision node.
    pub(super) fn is_of_collisions(&self) -> bool {
        self.entry_bits | self.child_bits == 0
    }

    /// Visits the entries of this node and all nodes below it, by their hashes.
    pub(super) fn each(&self, h: &Heap, mut f: impl FnMut(&'h [Entry<'h>]) -> Res<()>) -> Res<()> {
        // For each level, the nodes still to be visited.
        let mut open: [&[&'h Node<'h>]; LEVELS] = [&[]; LEVELS];
        let (mut depth, mut entries, mut children) = (0, self.entries(), self.children());
        loop {
            h.poll_every(1 + entries.len())?;
            f(entries)?;
            if let Some((&first, others)) = children.split_first() {
                open[depth] = others;
                depth += 1;
                (entries, children) = (first.entries(), first.children());
                continue;
            }
            while depth > 0 && open[depth - 1].is_empty() {
                depth -= 1;
            }
            let Some((&next, others)) = depth.checked_sub(1).and_then(|level| open[level].split_first()) else {
                return Ok(());
            };
            open[depth - 1] = others;
            (entries, children) = (next.entries(), next.children());
        }
    }
}

/// Returns the entry of a key in a tree.
#[inline]
pub(super) fn find_tree<'h>(h: &'h Heap, root: &'h Node<'h>, key: Value<'h>, hash: u32) -> Res<Option<&'h Entry<'h>>> {
    h.charge(cost::LOOK_UP)?;
    let (mut node, mut shift) = (root, 0);
    loop {
        match node.step(hash, shift) {
            Step::Entry(i) => {
                let entry = &node.entries()[i];
                return Ok(h.same_key(entry.0, key)?.then_some(entry));
            }
            Step::Child(i) => (node, shift) = (node.children()[i], shift + BITS),
            Step::Nothing => return Ok(None),
            Step::Collisions => {
                h.charge(node.entries().len() as u64)?;
                for entry in node.entries() {
                    if h.same_key(entry.0, key)? {
                        return Ok(Some(entry));
                    }
                }
                return Ok(None);
            }
        }
    }
}
