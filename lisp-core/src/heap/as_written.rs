//! Maps as they were written, for what is given back to a person or a host. Programs do not see it: they walk maps in key
//! order.

use super::held::List;
use super::map::{Entries, KeyArray, Map, Rep, sort_entries, sorted};
use super::node::find_tree;
use super::{Heap, Res};
use crate::cost;

impl<'h> Map<'h> {
    /// Returns the entries in the order in which they were written: those of a JSON object, of a literal, or of a
    /// function that adds entries. In a tree, keys that were added one by one come last, in key order.
    pub(crate) fn entries_as_written(&self, h: &'h Heap) -> Res<Entries<'h>> {
        match self.rep() {
            Rep::Small(KeyArray { keys, written: Some(order), .. }, values) => {
                Ok(Entries::Written(keys.get(), values, order))
            }
            Rep::Tree(size, root) if let Some(keys) = root.written.get() => {
                let mut entries = List::with_room(h, size.len())?;
                for &key in keys.keys() {
                    if let Some(entry) = find_tree(h, root, key, h.hash(key)?)? {
                        entries.push(entry)?;
                    }
                }
                if entries.items().len() < size.len() {
                    h.poll_every(size.len())?;
                    let mut known = List::with_room(h, entries.items().len())?;
                    entries.items().iter().try_for_each(|&entry| known.push(entry))?;
                    sort_entries(h, &mut known)?;
                    let mut known = known.items().iter().copied().peekable();
                    for &entry in sorted(h, size.len(), root)?.items() {
                        h.poll_every(1)?;
                        if known.next_if(|&known| std::ptr::eq(known, entry)).is_none() {
                            entries.push(entry)?;
                        }
                    }
                }
                Ok(Entries::Sorted(h.alloc_slice(size.len(), entries.items().iter().map(|&&entry| entry))?))
            }
            _ => self.entries(h),
        }
    }

    /// Returns true if the map may have been written in another order than that of its keys.
    pub(crate) fn knows_how_written(&self) -> bool {
        match self.rep() {
            Rep::Small(..) => true,
            Rep::Tree(_, root) => root.written.get().is_some(),
        }
    }

    /// Returns the index in key order of each entry, in the order in which the entries were written. `None` if that is key
    /// order.
    pub(super) fn written_places(&self, h: &'h Heap) -> Res<Option<List<'h, usize>>> {
        let mut places = List::with_room(h, self.len())?;
        match self.rep() {
            Rep::Small(KeyArray { written: Some(order), .. }, _) => {
                (0..self.len()).try_for_each(|i| places.push(order.place(i)))?;
            }
            Rep::Tree(size, root) if root.written.get().is_some() => {
                h.charge(cost::sorted(size.len()) + cost::placed(size.len()))?;
                let mut by_key = List::with_room(h, size.len())?;
                for (i, (key, _)) in self.entries_as_written(h)?.iter().enumerate() {
                    h.poll_every(1)?;
                    by_key.push((key, i))?;
                    places.push(0)?;
                }
                super::merge_sort(h, by_key.items_mut(), |a, b| h.order(a.0, b.0))?;
                for (place, &(_, i)) in by_key.items().iter().enumerate() {
                    h.poll_every(1)?;
                    places.items_mut()[i] = place;
                }
            }
            _ => return Ok(None),
        }
        Ok(Some(places))
    }
}
