//! Memory that a built-in holds outside the arena while it works. It is charged, and released when the work ends or is
//! abandoned.

use super::{Heap, Res};

/// Bytes charged to the account of a heap, until it is dropped.
pub(crate) struct Held<'h> {
    heap: &'h Heap,
    bytes: usize,
}

impl<'h> Held<'h> {
    /// Creates an empty charge.
    pub(crate) fn new(heap: &'h Heap) -> Self {
        Held { heap, bytes: 0 }
    }

    /// Charges more bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Res<()> {
        self.heap.charge_external(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Releases bytes.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.heap.release_external(bytes);
        self.bytes -= bytes;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

/// A list outside the arena. When it grows, the old memory is freed at once.
pub(crate) struct List<'h, T> {
    held: Held<'h>,
    items: Vec<T>,
}

impl<'h, T> List<'h, T> {
    /// Creates an empty list.
    pub(crate) fn new(heap: &'h Heap) -> Self {
        List { held: Held::new(heap), items: Vec::new() }
    }

    /// Creates an empty list with room for `room` items.
    pub(crate) fn with_room(heap: &'h Heap, room: usize) -> Res<Self> {
        let mut list = List::new(heap);
        list.grow(room)?;
        Ok(list)
    }

    /// Adds an item. Changes nothing if there is no memory for it.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Res<()> {
        if self.items.len() == self.items.capacity() {
            self.grow((self.items.len() / 2).max(16))?;
        }
        self.items.push(item);
        Ok(())
    }

    #[cold]
    fn grow(&mut self, more: usize) -> Res<()> {
        let before = self.items.capacity() * size_of::<T>();
        self.held.take((self.items.len() + more).saturating_mul(size_of::<T>()))?;
        self.items.reserve_exact(more);
        self.held.give_back(before);
        Ok(())
    }

    /// Releases unused capacity.
    pub(crate) fn trim(&mut self) {
        let before = self.items.capacity();
        self.items.shrink_to_fit();
        self.held.give_back((before - self.items.capacity()) * size_of::<T>());
    }

    /// Returns the items.
    #[inline]
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Returns the items, mutable.
    #[inline]
    pub(crate) fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}
