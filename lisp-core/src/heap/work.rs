//! Lists of things to do.

use super::{Heap, Res};

/// A list of things to do, for what would otherwise recurse. Its memory is metered as it grows.
pub struct Work<'h, T> {
    heap: &'h Heap,
    items: Vec<T>,
}

impl<'h, T> Work<'h, T> {
    /// An empty list.
    pub fn new(heap: &'h Heap) -> Self {
        Work { heap, items: Vec::new() }
    }

    /// Adds one thing to do.
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

    /// Takes the thing that was added last.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }

    /// The thing that was added last.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.items.last_mut()
    }

    /// How many things.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Nothing to do?
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}
