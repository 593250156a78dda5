//! Work lists.

use super::{Heap, Res};

/// A work list, for algorithms that would otherwise recurse. Its memory is metered as it grows.
pub struct Work<'h, T> {
    heap: &'h Heap,
    items: Vec<T>,
}

impl<'h, T> Work<'h, T> {
    /// Creates an empty list.
    pub fn new(heap: &'h Heap) -> Self {
        Work { heap, items: Vec::new() }
    }

    /// Adds an item.
    #[inline]
    pub fn push(&mut self, item: T) -> Res<()> {
        if self.items.len() == self.items.capacity() {
            let more = self.items.len().max(8);
            self.heap.check_available((self.items.len() + more) * std::mem::size_of::<T>())?;
            self.items.reserve_exact(more);
        }
        self.items.push(item);
        Ok(())
    }

    /// Removes the item added last.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }

    /// Returns the item added last.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.items.last_mut()
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}
