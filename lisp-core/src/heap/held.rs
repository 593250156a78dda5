//! What a built-in holds outside the arena while it is at work: it is on the account, and goes when the work is done or given up.

use super::{Heap, Res};

/// Bytes on the account of a heap, for as long as this lives.
pub(crate) struct Held<'h> {
    heap: &'h Heap,
    bytes: usize,
}

impl<'h> Held<'h> {
    /// Nothing yet.
    pub(crate) fn new(heap: &'h Heap) -> Self {
        Held { heap, bytes: 0 }
    }

    /// Takes more bytes on the account.
    pub(crate) fn take(&mut self, bytes: usize) -> Res<()> {
        self.heap.charge_external(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes bytes off the account.
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

/// A list outside the arena. What it leaves behind when it grows is free at once.
pub(crate) struct List<'h, T> {
    held: Held<'h>,
    items: Vec<T>,
}

impl<'h, T> List<'h, T> {
    /// An empty list.
    pub(crate) fn new(heap: &'h Heap) -> Self {
        List { held: Held::new(heap), items: Vec::new() }
    }

    /// An empty list with room for `room` items.
    pub(crate) fn with_room(heap: &'h Heap, room: usize) -> Res<Self> {
        let mut list = List::new(heap);
        list.grow(room)?;
        Ok(list)
    }

    /// Adds an item; nothing is changed when there is no memory for it.
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

    /// Gives back the room that no item takes.
    pub(crate) fn trim(&mut self) {
        let before = self.items.capacity();
        self.items.shrink_to_fit();
        self.held.give_back((before - self.items.capacity()) * size_of::<T>());
    }

    /// The items.
    #[inline]
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// The items, each of which may be changed.
    #[inline]
    pub(crate) fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}
