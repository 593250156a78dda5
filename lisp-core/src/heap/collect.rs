//! Compaction: live objects are copied into a fresh arena, with their sharing, and the old arena is dropped.
//!
//! It uses a work list, no recursion. Objects of other regions stay where they are. An object is copied when it is
//! first reached. Its header then holds the address of the copy, and the copy is put on the work list so that its own
//! references are updated. Cells that several vectors see are copied once, and only as far as a vector sees them: they
//! are traced in the old arena, which is otherwise no longer read, and laid out in the new one at the end.
//!
//! A compaction can stop after every piece of work and continue later. Large parts are copied in pieces; until the last
//! piece their object is empty.
//!
//! An object gets its address, and references to it are stored, before its parts are complete. So fields that are set
//! later are `Cell`s, and the slices that an object refers to are lent only after the last write to them.

use super::big::Big;
use super::header::{CONSTANTS, Header};
use super::map::{Entry, KeyArray, Map, Rep};
use super::map_builder::MapBuilder;
use super::memory::{self, OutOfMemory};
use super::node::Node;
use super::string::Str;
use super::value::{Closure, Composed, Time};
use super::vector::{Buffer, VecBuilder, Vector};
use super::{Heap, Value};
use crate::Table;
use crate::sizes::COPIED_AT_ONCE;
use bumpalo::Bump;
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::{NonNull, without_provenance};

type V = Value<'static>;

/// An object that has been copied and whose parts must still be updated.
enum GrayItem {
    Vector(&'static Vector<'static>),
    VecBuilder(&'static VecBuilder<'static>),
    Map(&'static Map<'static>, PendingSlice<V>),
    MapBuilder(&'static MapBuilder<'static>),
    Keys(&'static KeyArray<'static>, PendingSlice<V>),
    Node(&'static Node<'static>, PendingSlice<Entry<'static>>, PendingSlice<&'static Node<'static>>),
    Closure(&'static Closure<'static>, PendingSlice<V>),
    Composed(&'static Composed<'static>, PendingSlice<V>),
    /// Cells of buffer number `.0` from `.1` up to `.2`
    Cells(usize, usize, usize),
    /// The remaining cells of an object.
    Rest(&'static [Cell<V>]),
    /// A copy to be continued.
    Large(Box<Large>),
    /// The vectors that see a buffer, from this one on, and where its cells started in the old one.
    Views(LiveRange, &'static Buffer<'static>, usize),
}

/// A large copy in progress.
struct Large {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    done: usize,
    target: CopyTarget,
}

/// What the bytes of a large copy are in their object.
enum CopyTarget {
    Items(&'static Vector<'static>),
    Elements(&'static VecBuilder<'static>),
    Entries(&'static MapBuilder<'static>),
    Index(&'static MapBuilder<'static>),
    Text(&'static Str<'static>),
    /// The cells that vectors see.
    Cells(&'static Buffer<'static>),
}

/// The cost of an object besides its bytes, as the number of bytes copied in the same time.
const OBJECT: usize = 64;

/// A slice in the new arena that is part of an object and must still be updated. It is written through the pointer
/// returned by the arena, and lent to the object after the last write.
struct PendingSlice<T> {
    start: *mut T,
    len: usize,
}

impl<T> PendingSlice<T> {
    /// Returns the finished slice.
    ///
    /// # Safety
    /// It must not be written to any more.
    unsafe fn lend(&self) -> &'static [T] {
        // SAFETY: `Collector::part` made it from memory of the new arena, which becomes the store's and outlives every
        // value that refers to it. The caller ensures the rest.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// A buffer that some vector sees, and the part of it that is seen.
struct LiveRange {
    old: &'static Buffer<'static>,
    low: usize,
    high: usize,
    views: Vec<&'static Vector<'static>>,
}

/// A compaction in progress, or the copying of a value out of its arena.
pub(crate) struct Collector {
    to: Bump,
    /// The region of the objects to copy.
    from: u32,
    /// The region of the copies.
    region: u32,
    bytes: usize,
    /// The maximum number of bytes to copy.
    limit: usize,
    gray: Vec<GrayItem>,
    buffers: Vec<LiveRange>,
    /// The work done so far, in bytes copied.
    work: usize,
    /// The addresses of the copies of constants, if these are copied too. Constants are frozen and may be read by
    /// others, so nothing is noted in their headers.
    evacuated: Option<Table<usize, *const ()>>,
    /// The size of the copies of constants.
    evacuated_bytes: usize,
    /// Whether a function of a program was copied, by the program's number.
    programs: Vec<bool>,
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
            gray: Vec::new(),
            buffers: Vec::new(),
            work: 0,
            evacuated: None,
            evacuated_bytes: 0,
            programs: Vec::new(),
        }
    }

    /// Creates a collector that copies within a region, and constants of programs into it. It notes which of the first
    /// `programs` programs have functions.
    pub(super) fn evacuating(region: u32, programs: usize) -> Self {
        Collector { evacuated: Some(Table::default()), programs: vec![false; programs], ..Collector::new(region) }
    }

    /// Returns which programs have functions, and how many bytes of constants were copied.
    pub(super) fn take_programs(&mut self) -> (Vec<bool>, usize) {
        (std::mem::take(&mut self.programs), self.evacuated_bytes)
    }

    /// Creates a collector that copies from region `from` for an arena of region `to`, at most `limit` bytes.
    pub(super) fn between(from: u32, to: u32, limit: usize) -> Self {
        Collector { from, limit, ..Collector::new(to) }
    }

    /// Returns true if the copies are for another arena than the one they are taken from.
    fn leaves(&self) -> bool {
        self.from != self.region
    }

    /// Returns true if the limit was exceeded. The copy is then incomplete and unusable.
    pub(super) fn is_over(&self) -> bool {
        self.bytes > self.limit
    }

    /// Adds an item to the work list.
    fn push(&mut self, item: GrayItem) {
        memory::push(&mut self.gray, item);
    }

    /// Allocates a block of the new arena. Unwinds if the machine has no memory, because an incomplete copy cannot be
    /// used.
    fn block(&self, layout: Layout) -> NonNull<u8> {
        memory::block(&self.to, layout).unwrap_or_else(|| OutOfMemory { bytes: layout.size() }.unwind())
    }

    /// Allocates a copy of a slice.
    fn copy_of<T: Copy>(&self, slice: &[T]) -> NonNull<T> {
        let copy = self.block(Layout::for_value(slice)).cast::<T>();
        // SAFETY: the block is as long as the slice, aligned for it, and new.
        unsafe { copy.copy_from_nonoverlapping(NonNull::from(slice).cast::<T>(), slice.len()) };
        copy
    }

    /// Allocates an object in the new arena. The caller ensures its lifetime.
    fn put<T>(&mut self, object: T) -> &'static T {
        self.bytes += (std::mem::size_of::<T>() + 7) & !7;
        let new = self.block(Layout::new::<T>()).cast::<T>();
        // SAFETY: the block is for the object. The new arena becomes the store's and outlives every value that refers
        // to it.
        unsafe {
            new.write(object);
            new.as_ref()
        }
    }

    /// Allocates a copy of a slice in the new arena. The caller ensures its lifetime.
    fn put_slice<T: Copy>(&mut self, slice: &[T]) -> &'static [T] {
        self.bytes += size_of_slice(slice);
        // SAFETY: a copy of the slice. The new arena becomes the store's and outlives every value that refers to it.
        unsafe { std::slice::from_raw_parts(self.copy_of(slice).as_ptr(), slice.len()) }
    }

    /// Allocates a copy of a slice in the new arena, to be written to.
    fn part<T: Copy>(&mut self, slice: &[T]) -> PendingSlice<T> {
        self.bytes += size_of_slice(slice);
        PendingSlice { start: self.copy_of(slice).as_ptr(), len: slice.len() }
    }

    /// Allocates a copy of cells in the new arena; `None` if they are too many to be copied at once.
    fn put_cells<T: Copy>(&mut self, cells: &[Cell<T>]) -> Option<&'static [Cell<T>]> {
        if std::mem::size_of_val(cells) > COPIED_AT_ONCE {
            return None;
        }
        self.bytes += size_of_slice(cells);
        let copy = self.block(Layout::for_value(cells)).cast::<Cell<T>>();
        // SAFETY: the block is as long as the cells, which nothing else uses meanwhile; otherwise as in `put_slice`.
        Some(unsafe {
            copy.copy_from_nonoverlapping(NonNull::from(cells).cast(), cells.len());
            std::slice::from_raw_parts(copy.as_ptr(), cells.len())
        })
    }

    /// Starts a copy of a part that is too large to be copied at once.
    fn put_large<T>(&mut self, slice: &[T], target: CopyTarget) {
        self.bytes = self.bytes.saturating_add(size_of_slice(slice));
        if self.is_over() {
            return;
        }
        let (from, bytes) = (slice.as_ptr().cast(), std::mem::size_of_val(slice));
        let to = self.block(Layout::for_value(slice)).as_ptr();
        self.push(GrayItem::Large(Box::new(Large { from, to, bytes, done: 0, target })));
    }

    /// Copies one more piece. After the last one the copy is stored in its object and updated next.
    fn copy_on(&mut self, mut large: Box<Large>) {
        let piece = COPIED_AT_ONCE.min(large.bytes - large.done);
        // SAFETY: the old arena still exists, and what is copied is not written to. The block in the new arena is as
        // long, and nothing else refers to it.
        unsafe { std::ptr::copy_nonoverlapping(large.from.add(large.done), large.to.add(large.done), piece) };
        self.work += piece;
        large.done += piece;
        if large.done < large.bytes {
            return self.push(GrayItem::Large(large));
        }
        let Large { to, bytes, ref target, .. } = *large;
        // SAFETY: all bytes are copied from what `put_large` was given: cells, or a str for `Text`. The block is part
        // of the new arena, which outlives every value that refers to it, and it is no longer written to through `to`.
        unsafe {
            let cells = || std::slice::from_raw_parts(to.cast::<Cell<V>>(), bytes / size_of::<V>());
            match *target {
                CopyTarget::Items(o) => {
                    o.items.set(cells());
                    self.push(GrayItem::Vector(o));
                }
                CopyTarget::Elements(o) => {
                    o.cells.set(cells());
                    self.push(GrayItem::VecBuilder(o));
                }
                CopyTarget::Entries(o) => {
                    o.cells.set(cells());
                    self.push(GrayItem::MapBuilder(o));
                }
                CopyTarget::Index(o) => {
                    let slots = to.cast::<Cell<(u32, u32)>>();
                    o.index.set(std::slice::from_raw_parts(slots, bytes / size_of::<(u32, u32)>()));
                }
                CopyTarget::Text(o) => o.set_text(std::str::from_utf8_unchecked(std::slice::from_raw_parts(to, bytes))),
                CopyTarget::Cells(o) => o.cells.set(cells()),
            }
        }
    }

    /// Returns the object's copy, made by `copy` when it is first reached; the object itself if it is of another
    /// region.
    fn forward<T>(
        &mut self,
        old: &'static T,
        head: &Header,
        copy: impl FnOnce(&mut Self, &'static T) -> &'static T,
    ) -> &'static T {
        if let Some(copy) = head.moved() {
            // SAFETY: the header of a moved object holds the address of its copy, of the same type, in the new arena,
            // which outlives every value that refers to it.
            return unsafe { &*copy.cast::<T>() };
        }
        if head.region() != self.from {
            return if head.region() == CONSTANTS { self.evacuated(old, copy) } else { old };
        }
        let new = copy(self, old);
        head.set_moved(std::ptr::from_ref(new).cast());
        new
    }

    /// Returns the copy of a constant if constants are copied; otherwise the constant itself.
    #[cold]
    fn evacuated<T>(&mut self, old: &'static T, copy: impl FnOnce(&mut Self, &'static T) -> &'static T) -> &'static T {
        let place = std::ptr::from_ref(old).addr();
        match &self.evacuated {
            None => return old,
            Some(copies) => {
                if let Some(copy) = copies.get(&place) {
                    // SAFETY: as in `forward`. The table has the address of the copy of this object, which has the same
                    // type, because no two objects have the same address.
                    return unsafe { &*copy.cast::<T>() };
                }
            }
        }
        let before = self.bytes;
        let new = copy(self, old);
        self.evacuated_bytes += self.bytes - before;
        if let Some(copies) = &mut self.evacuated {
            copies.insert(place, std::ptr::from_ref(new).cast());
        }
        new
    }

    fn text(&mut self, old: &'static Str<'static>) -> &'static Str<'static> {
        self.forward(old, &old.head, |c, old| {
            let head = Header::new(c.region);
            if old.text().len() > COPIED_AT_ONCE {
                let new = c.put(Str::new(head, ""));
                c.put_large(old.text().as_bytes(), CopyTarget::Text(new));
                return new;
            }
            let bytes = c.put_slice(old.text().as_bytes());
            // SAFETY: a copy of the bytes of a str.
            let text = unsafe { std::str::from_utf8_unchecked(bytes) };
            c.put(Str::new(head, text))
        })
    }

    /// Returns the value that replaces `v`: it refers to the copy of its object.
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
            Value::Composed(o) => Value::Composed(self.composed(o)),
            Value::Endless(o) => Value::Endless(self.composed(o)),
            Value::Time(o) => Value::Time(
                self.forward(o, &o.head, |c, o| c.put(Time { head: Header::new(c.region), value: o.value })),
            ),
            Value::VecBuilder(o) => Value::VecBuilder(self.forward(o, &o.head, |c, o| {
                let cells = c.put_cells(o.cells.get());
                let new = c.put(VecBuilder {
                    head: Header::new(c.region),
                    cells: Cell::new(cells.unwrap_or_default()),
                    len: Cell::new(o.len.get()),
                    lent: Cell::new(false),
                });
                match cells {
                    Some(_) => c.push(GrayItem::VecBuilder(new)),
                    None => c.put_large(o.cells.get(), CopyTarget::Elements(new)),
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
                    Some(_) => c.push(GrayItem::MapBuilder(new)),
                    None => c.put_large(o.cells.get(), CopyTarget::Entries(new)),
                }
                if index.is_none() {
                    c.put_large(o.index.get(), CopyTarget::Index(new));
                }
                new
            })),
        }
    }

    pub(crate) fn closure(&mut self, old: &'static Closure<'static>) -> &'static Closure<'static> {
        self.forward(old, &old.head, |c, o| {
            if let Some(seen) = c.programs.get_mut(o.program.0 as usize) {
                *seen = true;
            }
            let captures = c.part(o.captures());
            let new = c.put(Closure {
                head: Header::new(c.region),
                program: o.program,
                proto: o.proto,
                captures: Cell::new(&[]),
            });
            c.push(GrayItem::Closure(new, captures));
            new
        })
    }

    fn composed(&mut self, old: &'static Composed<'static>) -> &'static Composed<'static> {
        self.forward(old, &old.head, |c, o| {
            let parts = c.part(o.parts());
            let new = c.put(Composed { head: Header::new(c.region), kind: o.kind, parts: Cell::new(&[]) });
            c.push(GrayItem::Composed(new, parts));
            new
        })
    }

    fn copy_vector(&mut self, old: &'static Vector<'static>) -> &'static Vector<'static> {
        let head = Header::new(self.region);
        // In another arena than this one, cells of a third arena could not be told from its own.
        let evacuates = self.evacuated.is_some() && old.head.sees_constants();
        if evacuates {
            self.evacuated_bytes += size_of_slice(old.cells());
        }
        if old.head.sees_foreign() && !self.leaves() && !evacuates {
            let head = head.seeing_foreign(&old.head);
            return self.put(Vector { head, items: old.items.clone(), buffer: Cell::new(None) });
        }
        // An owner of cells among the constants would be written to.
        let buffer = old.buffer.get().filter(|_| !old.cells().is_empty() && old.head.region() == self.from);
        let Some(buffer) = buffer else {
            let items = self.put_cells(old.cells());
            let new = self.put(Vector { head, items: Cell::new(items.unwrap_or_default()), buffer: Cell::new(None) });
            match items {
                Some(_) => self.push(GrayItem::Vector(new)),
                None => self.put_large(old.cells(), CopyTarget::Items(new)),
            }
            return new;
        };
        // Until the cells are laid out, the copy sees the old ones.
        let new = self.put(Vector { head, items: old.items.clone(), buffer: Cell::new(Some(buffer)) });
        let start = buffer.place(old.cells());
        let end = start + old.cells().len();
        let number = match buffer.head.moved() {
            // The header of a buffer holds its index in the list, times four.
            Some(number) => number.addr() / 4,
            None => {
                memory::push(&mut self.buffers, LiveRange { old: buffer, low: start, high: start, views: Vec::new() });
                let number = self.buffers.len() - 1;
                buffer.head.set_moved(without_provenance(number * 4));
                number
            }
        };
        let live = &mut self.buffers[number];
        memory::push(&mut live.views, new);
        if live.low == live.high {
            (live.low, live.high) = (start, end);
            self.push(GrayItem::Cells(number, start, end));
        } else {
            let (low, high) = (live.low, live.high);
            (live.low, live.high) = (low.min(start), high.max(end));
            if start < low {
                self.push(GrayItem::Cells(number, start, low));
            }
            if end > high {
                self.push(GrayItem::Cells(number, high, end));
            }
        }
        new
    }

    fn map(&mut self, old: &'static Map<'static>) -> &'static Map<'static> {
        self.forward(old, &old.head, |c, o| {
            let values = match o.rep() {
                Rep::Small(_, values) => c.part(values),
                Rep::Tree(..) => c.part(&[]),
            };
            let new = c.put(Map { head: Header::new(c.region), rep: o.rep.clone() });
            c.push(GrayItem::Map(new, values));
            new
        })
    }

    fn keys(&mut self, old: &'static KeyArray<'static>) -> &'static KeyArray<'static> {
        self.forward(old, &old.head, |c, o| {
            let keys = c.part(o.keys());
            let written = o.written.map(|order| c.put(*order));
            let new = c.put(KeyArray { head: Header::new(c.region), keys: Cell::new(&[]), written });
            c.push(GrayItem::Keys(new, keys));
            new
        })
    }

    fn node(&mut self, old: &'static Node<'static>) -> &'static Node<'static> {
        self.forward(old, &old.head, |c, o| {
            let (entries, children) = (c.part(o.entries()), c.part(o.children()));
            let new = c.put(Node {
                head: Header::new(c.region),
                entry_bits: o.entry_bits,
                child_bits: o.child_bits,
                entries: Cell::new(&[]),
                children: Cell::new(&[]),
                written: o.written.clone(),
            });
            c.push(GrayItem::Node(new, entries, children));
            new
        })
    }

    /// Updates cells, a few at a time: the work list stays short for any number of cells.
    fn cells(&mut self, cells: &'static [Cell<V>]) {
        const AT_ONCE: usize = 64;
        let (now, rest) = cells.split_at(cells.len().min(AT_ONCE));
        if !rest.is_empty() {
            self.push(GrayItem::Rest(rest));
        }
        for cell in now {
            cell.set(self.value(cell.get()));
        }
    }

    /// Updates a slice that was just copied, and finishes it.
    fn finished<T: Copy>(&mut self, part: &PendingSlice<T>, mut f: impl FnMut(&mut Self, T) -> T) -> &'static [T] {
        for i in 0..part.len {
            // SAFETY: the address is inside the part, which only this work list refers to: no reference to it exists
            // before it is lent below.
            unsafe {
                let place = part.start.add(i);
                place.write(f(self, place.read()));
            }
        }
        // SAFETY: this was the last write.
        unsafe { part.lend() }
    }

    /// Processes the work list, for about as long as it takes to copy `work` bytes. Returns true if it is done.
    pub(super) fn run(&mut self, work: usize) -> bool {
        let end = (self.work + self.bytes).saturating_add(work);
        while self.work + self.bytes < end {
            if self.is_over() {
                return true;
            }
            let Some(item) = self.gray.pop() else {
                // Everything is traced. Buffers are laid out from the last one on, so that the indices of the others
                // stay valid.
                match self.buffers.pop() {
                    None => return true,
                    Some(live) => self.lay_out(live),
                }
                continue;
            };
            self.work += OBJECT;
            match item {
                GrayItem::Vector(o) => self.cells(o.cells()),
                GrayItem::VecBuilder(o) => self.cells(&o.cells.get()[..o.len()]),
                GrayItem::MapBuilder(o) => self.cells(&o.cells.get()[..2 * o.len.get()]),
                GrayItem::Map(o, values) => match o.rep() {
                    Rep::Small(keys, _) => {
                        let values = self.finished(&values, Self::value);
                        o.rep.set(Rep::Small(self.keys(keys), values));
                    }
                    Rep::Tree(len, root) => o.rep.set(Rep::Tree(len, self.node(root))),
                },
                GrayItem::Keys(o, keys) => o.keys.set(self.finished(&keys, Self::value)),
                GrayItem::Node(o, entries, children) => {
                    o.entries.set(self.finished(&entries, |c, (k, v): Entry<'static>| (c.value(k), c.value(v))));
                    o.children.set(self.finished(&children, Self::node));
                    o.written.set(o.written.get().map(|keys| self.keys(keys)));
                }
                GrayItem::Closure(o, captures) => o.captures.set(self.finished(&captures, Self::value)),
                GrayItem::Composed(o, parts) => o.parts.set(self.finished(&parts, Self::value)),
                GrayItem::Rest(cells) => self.cells(cells),
                GrayItem::Cells(number, from, to) => self.cells(&self.buffers[number].old.cells.get()[from..to]),
                GrayItem::Large(large) => self.copy_on(large),
                GrayItem::Views(live, buffer, from) => self.place_views(live, buffer, from),
            }
        }
        false
    }

    /// Copies shared cells to the new arena. An end that can still grow keeps its room. An end that had grown further
    /// for a version that is gone has none. So appending costs the same as without a compaction.
    fn lay_out(&mut self, live: LiveRange) {
        let old = live.old;
        let all = old.cells.get();
        let from = if live.low == old.low.get() { 0 } else { live.low };
        let to = if live.high == old.high.get() { all.len() } else { live.high };
        let cells = self.put_cells(&all[from..to]);
        let buffer = self.put(Buffer {
            head: Header::new(self.region),
            cells: Cell::new(cells.unwrap_or_default()),
            low: Cell::new(live.low - from),
            high: Cell::new(live.high - from),
        });
        // The work list is processed from its end: the cells are copied before the views.
        self.push(GrayItem::Views(live, buffer, from));
        if cells.is_none() {
            self.put_large(&all[from..to], CopyTarget::Cells(buffer));
        }
    }

    /// Makes some of the vectors see the cells in the new arena.
    fn place_views(&mut self, mut live: LiveRange, buffer: &'static Buffer<'static>, from: usize) {
        const AT_ONCE: usize = 1_024;
        let rest = live.views.len().saturating_sub(AT_ONCE);
        for view in live.views.drain(rest..) {
            // Its items still point to the old cells.
            let start = live.old.place(view.cells()) - from;
            view.items.set(&buffer.cells.get()[start..start + view.cells().len()]);
            view.buffer.set(Some(buffer));
            self.work += OBJECT;
        }
        if rest > 0 {
            self.push(GrayItem::Views(live, buffer, from));
        }
    }

    /// Returns the new arena and the bytes in it.
    pub(super) fn finish(self) -> (Bump, usize) {
        (self.to, self.bytes)
    }
}

impl Heap {
    /// Takes over the arena that a compaction made, and drops the old one.
    pub(super) fn adopt(&mut self, collector: Collector) {
        let (bump, bytes) = collector.finish();
        self.replace_arena(bump, bytes);
    }
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
