//! Compaction: what is live is copied into a fresh arena, sharing kept, and the old arena is dropped.
//!
//! A work list, no recursion. Objects of other regions stay where they are. An object is copied when it is first
//! reached, its header says where it went, and the copy is put on the list to have its own references seen to.
//! Cells that several vectors see are copied once, and only as far as some vector sees them: they are traced in the
//! old arena, which nobody reads any more, and laid out in the new one at the end.
//!
//! It can stop after every piece of work and go on later. What is large is copied in pieces, and until the last of them
//! the object that it belongs to is empty.

use super::big::Big;
use super::header::Header;
use super::map::{Entry, Keys, Map, Node, Rep};
use super::map_builder::MapBuilder;
use super::string::Str;
use super::value::{Closure, Composed, Time};
use super::vector::{Buffer, VecBuilder, Vector};
use super::{Heap, Value};
use bumpalo::Bump;
use std::alloc::Layout;
use std::cell::Cell;

type V = Value<'static>;

/// What has been copied and is still to be looked through.
enum Todo {
    Vector(*mut Vector<'static>),
    VecBuilder(*mut VecBuilder<'static>),
    Map(*mut Map<'static>, Part<V>),
    MapBuilder(*mut MapBuilder<'static>),
    Keys(*mut Keys<'static>, Part<V>),
    Node(*mut Node<'static>, Part<Entry<'static>>, Part<&'static Node<'static>>),
    Closure(*mut Closure<'static>, Part<V>),
    Composed(*mut Composed<'static>, Part<V>),
    /// Cells of buffer number `.0` from `.1` up to `.2`
    Cells(usize, usize, usize),
    /// The rest of the cells of something.
    Rest(&'static [Cell<V>]),
    /// A copy to go on with.
    Large(Box<Large>),
    /// The vectors that see a buffer, from this one on, and where its cells began in the old one.
    Views(Seen, *const Buffer<'static>, usize),
}

/// A large copy under way.
struct Large {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    done: usize,
    owner: Owner,
}

/// What the bytes of a large copy are, in the object that they are for.
enum Owner {
    Items(*mut Vector<'static>),
    Elements(*mut VecBuilder<'static>),
    Entries(*mut MapBuilder<'static>),
    Index(*mut MapBuilder<'static>),
    Text(*mut Str<'static>),
    /// The cells that some vectors see.
    SuspendedHeap(*mut Buffer<'static>),
}

/// More bytes than this are copied in pieces, each of so many: few with debug assertions, so that tests come to it.
const PIECE: usize = if cfg!(debug_assertions) { 1 << 7 } else { 1 << 16 };
/// What an object costs beside its bytes, in bytes copied in the same time.
const OBJECT: usize = 64;

/// A slice in the new arena that is part of an object and still to be seen to. It is written through the pointer the
/// arena gave, and only then lent out: the reference inside the object is made anew after the last write.
struct Part<T> {
    start: *mut T,
    len: usize,
}

impl<T> Part<T> {
    /// The finished slice.
    ///
    /// # Safety
    /// Nobody writes to it any more.
    unsafe fn lend(&self) -> &'static [T] {
        // SAFETY: `Collector::part` made it from memory of the new arena, which becomes the store's and outlives every
        // value that refers to it; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// A buffer that some vector sees.
struct Seen {
    old: *const Buffer<'static>,
    low: usize,
    high: usize,
    views: Vec<*mut Vector<'static>>,
}

/// A compaction under way, or the copying of a value out of its arena.
pub(crate) struct Collector {
    to: Bump,
    /// Objects of this region are copied.
    from: u32,
    /// The region of the copies.
    region: u32,
    bytes: usize,
    /// More bytes than this are not copied.
    limit: usize,
    todo: Vec<Todo>,
    buffers: Vec<Seen>,
    /// Work done so far, in bytes copied.
    work: usize,
}

fn size_of_slice<T>(slice: &[T]) -> usize {
    (std::mem::size_of_val(slice) + 7) & !7
}

impl Collector {
    pub(super) fn new(region: u32) -> Self {
        Collector {
            to: Bump::new(),
            from: region,
            region,
            bytes: 0,
            limit: usize::MAX,
            todo: Vec::new(),
            buffers: Vec::new(),
            work: 0,
        }
    }

    /// Copies out of region `from` for an arena of region `to`: at most `limit` bytes.
    pub(super) fn between(from: u32, to: u32, limit: usize) -> Self {
        Collector { from, limit, ..Collector::new(to) }
    }

    /// Are the copies for another arena than the one they are taken from?
    fn leaves(&self) -> bool {
        self.from != self.region
    }

    /// Has more been copied than may be? Then the copy is not whole, and of no use.
    pub(super) fn is_over(&self) -> bool {
        self.bytes > self.limit
    }

    fn put<T>(&mut self, object: T) -> *mut T {
        self.bytes += (std::mem::size_of::<T>() + 7) & !7;
        std::ptr::from_mut(self.to.alloc(object))
    }

    /// A copy of a slice in the new arena, whose lifetime the caller vouches for.
    fn put_slice<T: Copy>(&mut self, slice: &[T]) -> &'static [T] {
        self.bytes += size_of_slice(slice);
        let copy: &[T] = self.to.alloc_slice_copy(slice);
        // SAFETY: the new arena becomes the store's and outlives every value that refers to it.
        unsafe { std::slice::from_raw_parts(copy.as_ptr(), copy.len()) }
    }

    /// A copy of a slice in the new arena, to be written to.
    fn part<T: Copy>(&mut self, slice: &[T]) -> Part<T> {
        self.bytes += size_of_slice(slice);
        Part { start: self.to.alloc_slice_copy(slice).as_mut_ptr(), len: slice.len() }
    }

    /// A copy of cells in the new arena; `None` when they are too many to be copied at once.
    fn put_cells<T: Copy>(&mut self, cells: &[Cell<T>]) -> Option<&'static [Cell<T>]> {
        if std::mem::size_of_val(cells) > PIECE {
            return None;
        }
        self.bytes += size_of_slice(cells);
        let copy: &[Cell<T>] = self.to.alloc_slice_fill_with(cells.len(), |i| Cell::new(cells[i].get()));
        // SAFETY: as in `put_slice`.
        Some(unsafe { std::slice::from_raw_parts(copy.as_ptr(), copy.len()) })
    }

    /// Begins a copy of what is too large to be copied at once.
    fn put_large<T>(&mut self, slice: &[T], owner: Owner) {
        self.bytes = self.bytes.saturating_add(size_of_slice(slice));
        if self.is_over() {
            return;
        }
        let (from, bytes) = (slice.as_ptr().cast(), std::mem::size_of_val(slice));
        let to = self.to.alloc_layout(Layout::for_value(slice)).as_ptr();
        self.todo.push(Todo::Large(Box::new(Large { from, to, bytes, done: 0, owner })));
    }

    /// Copies one more piece; after the last one the copy gets its place in the object, which is seen to next.
    fn copy_on(&mut self, mut large: Box<Large>) {
        let piece = PIECE.min(large.bytes - large.done);
        // SAFETY: the old arena is still there, and nobody writes to what is copied; the block in the new arena is as long, and
        // nobody else knows it.
        unsafe { std::ptr::copy_nonoverlapping(large.from.add(large.done), large.to.add(large.done), piece) };
        self.work += piece;
        large.done += piece;
        if large.done < large.bytes {
            return self.todo.push(Todo::Large(large));
        }
        let Large { to, bytes, ref owner, .. } = *large;
        // SAFETY: all bytes are there, copies of what `put_large` was given: cells, or for `Text` a str. The block is part of the
        // new arena, which outlives every value that refers to it. The objects are in the new arena, reached by no reference
        // in use.
        unsafe {
            let cells = || std::slice::from_raw_parts(to.cast::<Cell<V>>(), bytes / size_of::<V>());
            match *owner {
                Owner::Items(o) => {
                    (*o).items = cells();
                    self.todo.push(Todo::Vector(o));
                }
                Owner::Elements(o) => {
                    (*o).cells.set(cells());
                    self.todo.push(Todo::VecBuilder(o));
                }
                Owner::Entries(o) => {
                    (*o).cells.set(cells());
                    self.todo.push(Todo::MapBuilder(o));
                }
                Owner::Index(o) => {
                    let slots = to.cast::<Cell<(u32, u32)>>();
                    (*o).index.set(std::slice::from_raw_parts(slots, bytes / size_of::<(u32, u32)>()));
                }
                Owner::Text(o) => (*o).text = std::str::from_utf8_unchecked(std::slice::from_raw_parts(to, bytes)),
                Owner::SuspendedHeap(o) => (*o).cells = cells(),
            }
        }
    }

    /// Where an object of this region has gone; `Err` when it has not been reached yet, `None` when it is not ours.
    fn find<T>(&self, head: &Header) -> Option<Result<*mut T, ()>> {
        if let Some(copy) = head.moved() {
            return Some(Ok(copy.cast::<T>().cast_mut()));
        }
        (head.region() == self.from).then_some(Err(()))
    }

    /// The object's copy, made by `copy` when it is first reached.
    fn forward<T>(
        &mut self,
        old: &'static T,
        head: &Header,
        copy: impl FnOnce(&mut Self, &'static T) -> *mut T,
    ) -> &'static T {
        let new = match self.find::<T>(head) {
            None => return old,
            Some(Ok(new)) => new,
            Some(Err(())) => {
                let new = copy(self, old);
                head.set_moved(new.cast_const().cast());
                new
            }
        };
        // SAFETY: `new` is an object in the new arena, which outlives every value that refers to it.
        unsafe { &*new }
    }

    fn text(&mut self, old: &'static Str<'static>) -> &'static Str<'static> {
        self.forward(old, &old.head, |c, old| {
            let head = Header::new(c.region);
            if old.text.len() > PIECE {
                let new = c.put(Str { head, text: "" });
                c.put_large(old.text.as_bytes(), Owner::Text(new));
                return new;
            }
            let bytes = c.put_slice(old.text.as_bytes());
            // SAFETY: a copy of the bytes of a str.
            let text = unsafe { std::str::from_utf8_unchecked(bytes) };
            c.put(Str { head, text })
        })
    }

    /// Where a value is from now on.
    pub(crate) fn value(&mut self, v: V) -> V {
        match v {
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Builtin(_) | Value::Unset => v,
            Value::Keyword(hash, s) => Value::Keyword(hash, self.text(s)),
            Value::Str(s) => Value::Str(self.text(s)),
            Value::Tool(s) => Value::Tool(self.text(s)),
            Value::Regex(s) => Value::Regex(self.text(s)),
            Value::Symbol(s) => Value::Symbol(self.text(s)),
            Value::Var(s) => Value::Var(self.text(s)),
            Value::Vector(o) => Value::Vector(self.forward(o, &o.head, Self::copy_vector)),
            Value::Map(o) => Value::Map(self.map(o)),
            Value::Set(o) => Value::Set(self.map(o)),
            Value::Big(o) => Value::Big(self.forward(o, &o.head, |c, o| {
                let limbs = c.put_slice(o.limbs);
                c.put(Big { head: Header::new(c.region), negative: o.negative, limbs })
            })),
            Value::Closure(o) => Value::Closure(self.closure(o)),
            Value::Composed(o) => Value::Composed(self.forward(o, &o.head, |c, o| {
                let parts = c.part(o.parts);
                let new = c.put(Composed { head: Header::new(c.region), kind: o.kind, parts: &[] });
                c.todo.push(Todo::Composed(new, parts));
                new
            })),
            Value::Time(o) => Value::Time(
                self.forward(o, &o.head, |c, o| c.put(Time { head: Header::new(c.region), value: o.value })),
            ),
            Value::VecBuilder(o) => Value::VecBuilder(self.forward(o, &o.head, |c, o| {
                let cells = c.put_cells(o.cells.get());
                let new = c.put(VecBuilder {
                    head: Header::new(c.region),
                    cells: Cell::new(cells.unwrap_or_default()),
                    len: Cell::new(o.len.get()),
                });
                match cells {
                    Some(_) => c.todo.push(Todo::VecBuilder(new)),
                    None => c.put_large(o.cells.get(), Owner::Elements(new)),
                }
                new
            })),
            Value::MapBuilder(o) => Value::MapBuilder(self.forward(o, &o.head, |c, o| {
                let (cells, index) = (c.put_cells(o.cells.get()), c.put_cells(o.index.get()));
                let new = c.put(MapBuilder {
                    head: Header::new(c.region),
                    cells: Cell::new(cells.unwrap_or_default()),
                    len: Cell::new(o.len.get()),
                    index: Cell::new(index.unwrap_or_default()),
                });
                match cells {
                    Some(_) => c.todo.push(Todo::MapBuilder(new)),
                    None => c.put_large(o.cells.get(), Owner::Entries(new)),
                }
                if index.is_none() {
                    c.put_large(o.index.get(), Owner::Index(new));
                }
                new
            })),
        }
    }

    pub(crate) fn closure(&mut self, old: &'static Closure<'static>) -> &'static Closure<'static> {
        self.forward(old, &old.head, |c, o| {
            let captures = c.part(o.captures);
            let new = c.put(Closure { head: Header::new(c.region), program: o.program, proto: o.proto, captures: &[] });
            c.todo.push(Todo::Closure(new, captures));
            new
        })
    }

    fn copy_vector(&mut self, old: &'static Vector<'static>) -> *mut Vector<'static> {
        let head = Header::new(self.region);
        // In another arena than this one's, cells of a third arena could not be told from its own.
        if old.head.sees_foreign() && !self.leaves() {
            let head = head.seeing_foreign();
            return self.put(Vector { head, items: old.items, buffer: Cell::new(None) });
        }
        let buffer = old.buffer.get().filter(|_| !old.items.is_empty());
        let Some(buffer) = buffer else {
            let items = self.put_cells(old.items);
            let new = self.put(Vector { head, items: items.unwrap_or_default(), buffer: Cell::new(None) });
            match items {
                Some(_) => self.todo.push(Todo::Vector(new)),
                None => self.put_large(old.items, Owner::Items(new)),
            }
            return new;
        };
        // Until the cells are laid out, the copy sees the old ones.
        let new = self.put(Vector { head, items: old.items, buffer: Cell::new(Some(buffer)) });
        let start = buffer.place(old.items);
        let end = start + old.items.len();
        let number = match buffer.head.moved() {
            // The header of a buffer holds its number in the list, times four.
            Some(number) => number as usize / 4,
            None => {
                self.buffers.push(Seen { old: buffer, low: start, high: start, views: Vec::new() });
                let number = self.buffers.len() - 1;
                buffer.head.set_moved((number * 4) as *const ());
                number
            }
        };
        let seen = &mut self.buffers[number];
        seen.views.push(new);
        if seen.low == seen.high {
            (seen.low, seen.high) = (start, end);
            self.todo.push(Todo::Cells(number, start, end));
        } else {
            let (low, high) = (seen.low, seen.high);
            (seen.low, seen.high) = (low.min(start), high.max(end));
            if start < low {
                self.todo.push(Todo::Cells(number, start, low));
            }
            if end > high {
                self.todo.push(Todo::Cells(number, high, end));
            }
        }
        new
    }

    fn map(&mut self, old: &'static Map<'static>) -> &'static Map<'static> {
        self.forward(old, &old.head, |c, o| {
            let values = match o.rep {
                Rep::Small(_, values) => c.part(values),
                Rep::Tree(..) => c.part(&[]),
            };
            let new = c.put(Map { head: Header::new(c.region), rep: o.rep });
            c.todo.push(Todo::Map(new, values));
            new
        })
    }

    fn keys(&mut self, old: &'static Keys<'static>) -> &'static Keys<'static> {
        self.forward(old, &old.head, |c, o| {
            let keys = c.part(o.keys);
            let new = c.put(Keys { head: Header::new(c.region), keys: &[] });
            c.todo.push(Todo::Keys(new, keys));
            new
        })
    }

    fn node(&mut self, old: &'static Node<'static>) -> &'static Node<'static> {
        self.forward(old, &old.head, |c, o| {
            let (entries, children) = (c.part(o.entries), c.part(o.children));
            let new = c.put(Node {
                head: Header::new(c.region),
                entry_bits: o.entry_bits,
                child_bits: o.child_bits,
                entries: &[],
                children: &[],
            });
            c.todo.push(Todo::Node(new, entries, children));
            new
        })
    }

    /// Sees to cells, a few at a time: the list of things to do stays short, however many there are.
    fn cells(&mut self, cells: &'static [Cell<V>]) {
        const AT_ONCE: usize = 64;
        let (now, rest) = cells.split_at(cells.len().min(AT_ONCE));
        if !rest.is_empty() {
            self.todo.push(Todo::Rest(rest));
        }
        for cell in now {
            cell.set(self.value(cell.get()));
        }
    }

    /// Sees to a slice that was just copied; it is finished afterwards.
    fn finished<T: Copy>(&mut self, part: &Part<T>, mut f: impl FnMut(&mut Self, T) -> T) -> &'static [T] {
        for i in 0..part.len {
            // SAFETY: the place lies inside the part, which only this list of things to do knows: no reference to it
            // exists before it is lent below.
            unsafe {
                let place = part.start.add(i);
                place.write(f(self, place.read()));
            }
        }
        // SAFETY: this was the last write.
        unsafe { part.lend() }
    }

    /// Works the list off, for about as long as it takes to copy so many bytes. Answers whether all is done.
    pub(super) fn run(&mut self, work: usize) -> bool {
        let end = (self.work + self.bytes).saturating_add(work);
        while self.work + self.bytes < end {
            if self.is_over() {
                return true;
            }
            let Some(todo) = self.todo.pop() else {
                // All is traced. Buffers are laid out from the last one on, so that the numbers of the others stay.
                match self.buffers.pop() {
                    None => return true,
                    Some(seen) => self.lay_out(seen),
                }
                continue;
            };
            self.work += OBJECT;
            // SAFETY: every pointer on the list is an object in the new arena, reached by no reference in use.
            unsafe {
                match todo {
                    Todo::Vector(o) => self.cells((*o).items),
                    Todo::VecBuilder(o) => {
                        let len = (*o).len.get();
                        self.cells(&(*o).cells.get()[..len]);
                    }
                    Todo::MapBuilder(o) => {
                        let len = 2 * (*o).len.get();
                        self.cells(&(*o).cells.get()[..len]);
                    }
                    Todo::Map(o, values) => match (*o).rep {
                        Rep::Small(keys, _) => {
                            let values = self.finished(&values, Self::value);
                            (*o).rep = Rep::Small(self.keys(keys), values);
                        }
                        Rep::Tree(len, root) => (*o).rep = Rep::Tree(len, self.node(root)),
                    },
                    Todo::Keys(o, keys) => (*o).keys = self.finished(&keys, Self::value),
                    Todo::Node(o, entries, children) => {
                        (*o).entries = self.finished(&entries, |c, (k, v): Entry<'static>| (c.value(k), c.value(v)));
                        (*o).children = self.finished(&children, Self::node);
                    }
                    Todo::Closure(o, captures) => (*o).captures = self.finished(&captures, Self::value),
                    Todo::Composed(o, parts) => (*o).parts = self.finished(&parts, Self::value),
                    Todo::Rest(cells) => self.cells(cells),
                    Todo::Cells(number, from, to) => {
                        let cells = (*self.buffers[number].old).cells;
                        self.cells(&cells[from..to]);
                    }
                    Todo::Large(large) => self.copy_on(large),
                    Todo::Views(seen, buffer, from) => self.place_views(seen, buffer, from),
                }
            }
        }
        false
    }

    /// Gives shared cells their place in the new arena. An end that still grows keeps its room, and one that had grown
    /// further for a version nobody sees any more has none: appending costs the same as without a compaction.
    fn lay_out(&mut self, seen: Seen) {
        // SAFETY: the old arena is still there, and nobody else looks at it.
        let old = unsafe { &*seen.old };
        let from = if seen.low == old.low.get() { 0 } else { seen.low };
        let to = if seen.high == old.high.get() { old.cells.len() } else { seen.high };
        let cells = self.put_cells(&old.cells[from..to]);
        let buffer = self.put(Buffer {
            head: Header::new(self.region),
            cells: cells.unwrap_or_default(),
            low: Cell::new(seen.low - from),
            high: Cell::new(seen.high - from),
        });
        // The list is worked off from its end: the cells are there before the views are.
        self.todo.push(Todo::Views(seen, buffer, from));
        if cells.is_none() {
            self.put_large(&old.cells[from..to], Owner::SuspendedHeap(buffer));
        }
    }

    /// Lets some of the vectors see the cells at their new place.
    fn place_views(&mut self, mut seen: Seen, buffer: *const Buffer<'static>, from: usize) {
        const AT_ONCE: usize = 1_024;
        let rest = seen.views.len().saturating_sub(AT_ONCE);
        // SAFETY: the old arena is still there, and the buffer is one of the new arena, whose cells are complete.
        let (old, buffer) = unsafe { (&*seen.old, &*buffer) };
        for view in seen.views.drain(rest..) {
            // SAFETY: views are objects in the new arena; their items still point into the old cells.
            unsafe {
                let view = &mut *view;
                let start = old.place(view.items) - from;
                view.items = &buffer.cells[start..start + view.items.len()];
                view.buffer = Cell::new(Some(buffer));
            }
            self.work += OBJECT;
        }
        if rest > 0 {
            self.todo.push(Todo::Views(seen, buffer, from));
        }
    }

    /// The new arena and the bytes in it.
    pub(super) fn finish(self) -> (Bump, usize) {
        (self.to, self.bytes)
    }
}

impl Heap {
    /// Takes over the arena that a compaction made; the old one is dropped.
    pub(super) fn adopt(&mut self, collector: Collector) {
        let (bump, bytes) = collector.finish();
        self.replace_arena(bump, bytes);
    }
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
