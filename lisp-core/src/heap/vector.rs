//! Vectors: views of a run of cells. The newest version of a vector grows in place at both ends.

use super::header::Header;
use super::{Fault, Heap, Res, Value};
use crate::cost;
use std::cell::Cell;

/// A persistent vector.
pub struct Vector<'h> {
    pub(super) head: Header,
    /// The elements.
    pub(super) items: Cell<&'h [Cell<Value<'h>>]>,
    /// The run of cells that contains the elements, if other vectors may see it too. A vector without one is the only
    /// owner of its cells; or, by a flag of its header, it sees cells of another region, which never move.
    pub(super) buffer: Cell<Option<&'h Buffer<'h>>>,
}

/// Cells with room at the ends. Those from `low` up to `high` belong to some vector and never change again.
pub(super) struct Buffer<'h> {
    pub(super) head: Header,
    pub(super) cells: Cell<&'h [Cell<Value<'h>>]>,
    pub(super) low: Cell<usize>,
    pub(super) high: Cell<usize>,
}

/// The maximum number of elements of a vector.
pub(crate) const MAX_LEN: usize = u32::MAX as usize;

impl Buffer<'_> {
    /// Returns where a view of these cells starts.
    pub(super) fn place(&self, items: &[Cell<Value<'_>>]) -> usize {
        (items.as_ptr() as usize - self.cells.get().as_ptr() as usize) / std::mem::size_of::<Value<'_>>()
    }
}

impl<'h> Vector<'h> {
    /// Returns the cells of the elements.
    #[inline(always)]
    pub(super) fn cells(&self) -> &'h [Cell<Value<'h>>] {
        self.items.get()
    }

    /// Returns the number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.cells().len()
    }

    /// Returns true if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.cells().is_empty()
    }

    /// Returns the elements.
    #[inline]
    pub fn items(&self) -> &'h [Value<'h>] {
        // SAFETY: the cells of a vector alone, and those between the `low` and the `high` of a buffer, are written
        // before a vector sees them and never afterwards.
        unsafe { cells_as_values(self.cells()) }
    }

    /// Returns the element at an index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Value<'h>> {
        self.cells().get(index).map(Cell::get)
    }
}

/// Returns the items, followed by `nil` forever, each in a cell.
fn cells<'h>(items: impl Iterator<Item = Value<'h>>) -> impl Iterator<Item = Cell<Value<'h>>> {
    items.chain(std::iter::repeat(Value::Nil)).map(Cell::new)
}

/// Lends cells as values.
///
/// # Safety
/// The cells are not written to during 'h.
unsafe fn cells_as_values<'h>(cells: &'h [Cell<Value<'h>>]) -> &'h [Value<'h>] {
    // SAFETY: `Cell<T>` has the layout of `T`, and the caller ensures that these are not written to.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len()) }
}

impl Heap {
    /// Allocates an object and cells for `len` values (the items, then `nil`), which it refers to, in one block.
    #[inline]
    pub(super) fn alloc_with_cells<'h, T>(
        &'h self,
        len: usize,
        items: impl Iterator<Item = Value<'h>>,
        object: impl FnOnce(&'h [Cell<Value<'h>>]) -> T,
    ) -> Res<&'h T> {
        self.alloc_with(len, cells(items), object)
    }

    /// Allocates cells for `len` values: the items, then `nil`.
    pub(super) fn alloc_cells<'h>(
        &'h self,
        len: usize,
        items: impl Iterator<Item = Value<'h>>,
    ) -> Res<&'h [Cell<Value<'h>>]> {
        self.alloc_slice(len, cells(items))
    }

    /// Returns a vector with these elements.
    pub fn vector<'h>(&'h self, items: &[Value<'h>]) -> Res<Value<'h>> {
        let head = self.header();
        let vector = |items| Vector { head, items: Cell::new(items), buffer: Cell::new(None) };
        self.alloc_with(items.len(), items.iter().copied().map(Cell::new), vector).map(Value::Vector)
    }

    /// Returns a vector with the first `len` elements of an iterator, padded with `nil`.
    pub fn vector_from<'h>(&'h self, len: usize, items: impl Iterator<Item = Value<'h>>) -> Res<Value<'h>> {
        let head = self.header();
        let vector = |items| Vector { head, items: Cell::new(items), buffer: Cell::new(None) };
        self.alloc_with_cells(len, items, vector).map(Value::Vector)
    }

    fn vector_of<'h>(&'h self, items: &'h [Cell<Value<'h>>], buffer: Option<&'h Buffer<'h>>) -> Res<Value<'h>> {
        Ok(Value::Vector(self.alloc(Vector {
            head: self.header(),
            items: Cell::new(items),
            buffer: Cell::new(buffer),
        })?))
    }

    /// Returns the elements from `from` up to `to` as a view. The bounds are clipped to the vector's.
    pub(crate) fn slice<'h>(&'h self, v: &'h Vector<'h>, from: usize, to: usize) -> Res<Value<'h>> {
        let to = to.min(v.len());
        let from = from.min(to);
        let items = &v.cells()[from..to];
        if v.head.region() != self.region() || v.head.sees_foreign() {
            let head = self.header().seeing_foreign(&v.head);
            return Ok(Value::Vector(self.alloc(Vector { head, items: Cell::new(items), buffer: Cell::new(None) })?));
        }
        if v.buffer.get().is_none() {
            // From now on two vectors see the cells, so they get an owner that a compaction moves once.
            let (low, high) = (Cell::new(0), Cell::new(v.len()));
            v.buffer.set(Some(self.alloc(Buffer { head: self.header(), cells: Cell::new(v.cells()), low, high })?));
        }
        self.vector_of(items, v.buffer.get())
    }

    /// Returns the vector with one more element at its end: O(1) amortized for the newest version of a vector.
    pub(crate) fn conj<'h>(&'h self, v: &'h Vector<'h>, item: Value<'h>) -> Res<Value<'h>> {
        self.conj_all(v, &[item])
    }

    /// Returns the vector with more elements at its end: O(1) amortized for each, for the newest version of a vector.
    /// All are added at once: added one by one, those undone by a compaction in between would leave traces.
    pub(crate) fn conj_all<'h>(&'h self, v: &'h Vector<'h>, more: &[Value<'h>]) -> Res<Value<'h>> {
        // A compaction does not preserve the position of an empty view, so it never grows in place.
        if let Some(b) = v.buffer.get()
            && !v.is_empty()
            && b.head.region() == self.region()
            && let start = b.place(v.cells())
            && let end = start + v.len()
            && end == b.high.get()
            && more.len() <= b.cells.get().len() - end
        {
            let grown = self.vector_of(&b.cells.get()[start..end + more.len()], Some(b))?;
            // Usually one: pairs of iterators would take longer to make than this takes to write.
            let free = &b.cells.get()[end..];
            for (place, &item) in more.iter().enumerate() {
                free[place].set(item);
            }
            b.high.set(end + more.len());
            return Ok(grown);
        }
        let room = (v.len() + more.len()).next_power_of_two().max(4);
        self.regrow(v, 0, room, more, None)
    }

    /// Returns the vector with one more element in front: O(1) amortized for the newest version of a vector.
    pub(crate) fn cons<'h>(&'h self, item: Value<'h>, v: &'h Vector<'h>) -> Res<Value<'h>> {
        if let Some(b) = v.buffer.get()
            && !v.is_empty()
            && b.head.region() == self.region()
            && let old = b.place(v.cells())
            && old == b.low.get()
            && let Some(start) = old.checked_sub(1)
        {
            let grown = self.vector_of(&b.cells.get()[start..old + v.len()], Some(b))?;
            b.cells.get()[start].set(item);
            b.low.set(start);
            return Ok(grown);
        }
        let room = (v.len() + 1).next_power_of_two().max(4);
        self.regrow(v, room - v.len() - 1, room, &[], Some(item))
    }

    /// Returns a copy in a buffer of `room` cells, starting at `start`, with more elements at the end or one in front.
    fn regrow<'h>(
        &'h self,
        v: &'h Vector<'h>,
        start: usize,
        room: usize,
        behind: &[Value<'h>],
        front: Option<Value<'h>>,
    ) -> Res<Value<'h>> {
        let len = v.len() + behind.len() + usize::from(front.is_some());
        self.charge(cost::moved(room))?;
        self.reserve(room * 16 + std::mem::size_of::<Vector<'_>>() + std::mem::size_of::<Buffer<'_>>())?;
        let items = front.into_iter().chain(v.items().iter().chain(behind).copied());
        let cells = self.alloc_cells(room, std::iter::repeat_n(Value::Nil, start).chain(items))?;
        let buffer = self.alloc(Buffer {
            head: self.header(),
            cells: Cell::new(cells),
            low: Cell::new(start),
            high: Cell::new(start + len),
        })?;
        self.vector_of(&cells[start..start + len], Some(buffer))
    }

    /// Returns the vector with another element at `index`, which must be inside it.
    pub(crate) fn vector_assoc<'h>(&'h self, v: &'h Vector<'h>, index: usize, item: Value<'h>) -> Res<Value<'h>> {
        self.charge(cost::moved(v.len()))?;
        self.vector_from(v.len(), v.items().iter().enumerate().map(|(i, &old)| if i == index { item } else { old }))
    }

    /// Returns one value as a slice.
    pub(crate) fn vec_single<'h>(&'h self, item: Value<'h>) -> Res<&'h [Value<'h>]> {
        self.alloc_slice(1, std::iter::once(item))
    }

    /// Creates a vector under construction, with room for `room` elements.
    pub(crate) fn vec_builder<'h>(&'h self, room: usize) -> Res<&'h VecBuilder<'h>> {
        let head = self.header();
        let builder = |cells| VecBuilder { head, cells: Cell::new(cells), len: Cell::new(0), lent: Cell::new(false) };
        self.alloc_with_cells(room.min(MAX_LEN), std::iter::empty(), builder)
    }
}

/// A vector under construction. It lives in the arena, so a frame can hold it in a register.
pub struct VecBuilder<'h> {
    pub(super) head: Header,
    pub(super) cells: Cell<&'h [Cell<Value<'h>>]>,
    pub(super) len: Cell<u32>,
    /// Whether the elements were lent as values: their cells are not written again.
    pub(super) lent: Cell<bool>,
}

impl<'h> VecBuilder<'h> {
    /// Returns the number of elements so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.get() as usize
    }

    /// Returns true if there are no elements so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ensures that `more` elements can be pushed without an allocation.
    pub(crate) fn reserve(&self, h: &'h Heap, more: usize) -> Res<()> {
        let (old, len) = (self.cells.get(), self.len());
        if len + more > old.len() {
            let room = (old.len() * 2).max(len + more).clamp(8, MAX_LEN);
            if room < len + more {
                return Err(Fault::Collect((len + more) * size_of::<Value<'_>>()));
            }
            self.cells.set(h.alloc_cells(room, old[..len].iter().map(Cell::get))?);
        }
        Ok(())
    }

    /// Adds one element. Changes nothing if there is no memory for it.
    #[inline]
    pub(crate) fn push(&self, h: &'h Heap, item: Value<'h>) -> Res<()> {
        if !self.push_in_place(&item) {
            self.reserve(h, 1)?;
            self.push_in_place(&item);
        }
        Ok(())
    }

    /// Adds one element if that needs no allocation. Returns whether it did.
    #[inline]
    pub(crate) fn push_in_place(&self, item: &Value<'h>) -> bool {
        let Some(cell) = self.cells.get().get(self.len()) else { return false };
        cell.set(*item);
        // It was below the number of cells, of which there are at most `MAX_LEN`.
        self.len.set(self.len.get().wrapping_add(1));
        true
    }

    /// Adds several elements, all or none.
    pub(crate) fn extend(&self, h: &'h Heap, items: &[Value<'h>]) -> Res<()> {
        self.reserve(h, items.len())?;
        for &item in items {
            self.push(h, item)?;
        }
        Ok(())
    }

    /// Returns the elements so far.
    #[inline]
    pub(crate) fn items(&self) -> &'h [Value<'h>] {
        self.lent.set(true);
        // SAFETY: the cells of a builder below its length are written once, unless `clear` comes between. It drops the
        // cells that were lent.
        unsafe { cells_as_values(self.cells()) }
    }

    /// Returns the cells of the elements so far.
    #[inline]
    pub(crate) fn cells(&self) -> &'h [Cell<Value<'h>>] {
        &self.cells.get()[..self.len()]
    }

    /// Returns the finished vector. The builder must not be used again.
    pub(crate) fn finish(&self, h: &'h Heap) -> Res<Value<'h>> {
        let (cells, len) = (self.cells.get(), self.len());
        let done = h.vector_of(&cells[..len], None)?;
        // The vector owns the cells now; the builder drops them, so that a compaction copies them once.
        self.cells.set(&[]);
        self.len.set(0);
        Ok(done)
    }

    /// Returns the element at an index so far; nil beyond the end.
    pub(crate) fn get(&self, index: usize) -> Value<'h> {
        if index < self.len() { self.cells.get()[index].get() } else { Value::Nil }
    }

    /// Removes the elements. Their cells are used again, unless they were lent.
    pub(crate) fn clear(&self) {
        if self.lent.replace(false) {
            self.cells.set(&[]);
        }
        self.len.set(0);
    }
}
