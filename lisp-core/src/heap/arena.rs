//! An arena and its account. Every allocation is charged before it is made.

use super::header::Header;
use super::memory::{self, OutOfMemory};
use super::misses::Watch;
use super::shapes::Shapes;
use super::space::{ALIGN, Space, rounded};
use super::{Fault, Res};
use crate::code::BuiltinId;
use crate::error::Error;
use crate::meter::Meter;
use bumpalo::Bump;
use std::borrow::Cow;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The memory account of a run, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Bytes held now, in the arena and outside of it.
    pub used: usize,
    /// The maximum held at once.
    pub peak: usize,
    /// Total bytes allocated.
    pub allocated: u64,
    /// The limit; `usize::MAX` means unlimited.
    pub limit: usize,
    /// The number of compactions.
    pub compactions: u64,
}

/// An arena with its account, and the meter of the run that uses it.
pub struct Heap {
    space: Space,
    /// Arenas of values taken in from elsewhere, until the next compaction.
    adopted: Vec<Bump>,
    region: u32,
    /// The bytes used minus the address of the cursor, so that an allocation only moves the cursor: see [`Heap::used`].
    used_less_address: Cell<usize>,
    peak: Cell<usize>,
    /// Bytes used beyond the limit by work of the host, until the next compaction. The peak does not include them.
    used_by_host: Cell<usize>,
    /// Total bytes allocated, except for the growth of `used` since it was `used_before`.
    allocated_before: Cell<u64>,
    used_before: Cell<usize>,
    /// The current limit, garbage included: the budget, or more during work of the host.
    limit: Cell<usize>,
    /// The budget: the maximum that may be held.
    budget: usize,
    /// Bytes held outside the arena, such as the stacks.
    held: Cell<usize>,
    compactions: Cell<u64>,
    /// The number of consecutive compactions that freed almost nothing.
    futile_gcs: Cell<u32>,
    /// For tests: the number of allocations until the next trap; 0 for never.
    trap_in: Cell<u64>,
    trapped_early: Cell<bool>,
    /// Fuel, slices and the flag that ends the run.
    pub(crate) meter: Meter,
    pub(super) shapes: Shapes,
    pub(super) watch: Watch,
    /// Bytes of memory that the machine had free at the last check. The arena has not grown since.
    seen_free: Cell<usize>,
    /// A small buffer that is reused for strings under construction.
    scratch: Cell<String>,
    /// Returns the text of a built-in function.
    builtin_text: fn(BuiltinId) -> Cow<'static, str>,
}

impl Heap {
    /// Creates an empty arena with a limit of `limit` bytes. `region` distinguishes its objects from those of other
    /// arenas. The caller ensures that arenas whose objects refer to each other have different regions, so this is not
    /// public.
    pub(crate) fn new(region: u32, limit: usize) -> Self {
        let heap = Heap {
            space: Space::new(Bump::new()),
            adopted: Vec::new(),
            region,
            used_less_address: Cell::new(0),
            peak: Cell::new(0),
            used_by_host: Cell::new(0),
            allocated_before: Cell::new(0),
            used_before: Cell::new(0),
            limit: Cell::new(limit),
            budget: limit,
            held: Cell::new(0),
            compactions: Cell::new(0),
            futile_gcs: Cell::new(0),
            trap_in: Cell::new(0),
            trapped_early: Cell::new(false),
            meter: Meter::new(),
            shapes: Shapes::new(),
            watch: Watch::default(),
            seen_free: Cell::new(memory::SMALL),
            scratch: Cell::default(),
            builtin_text: |_| Cow::Borrowed("#<builtin>"),
        };
        heap.set_used(0);
        heap
    }

    /// Sets how the heap shows built-in functions, whose table it does not know.
    pub(crate) fn showing(self, builtin_text: fn(BuiltinId) -> Cow<'static, str>) -> Self {
        Heap { builtin_text, ..self }
    }

    /// Returns the text of a built-in function.
    pub(crate) fn builtin_text(&self, id: BuiltinId) -> Cow<'static, str> {
        (self.builtin_text)(id)
    }

    /// Takes an empty buffer for a string.
    #[inline]
    pub(super) fn take_scratch(&self) -> String {
        self.scratch.take()
    }

    /// Keeps a buffer for the next string, unless it is larger than an idle heap may keep.
    #[inline]
    pub(super) fn give_scratch(&self, mut buffer: String) {
        const KEPT: usize = 256;
        if buffer.capacity() <= KEPT {
            buffer.clear();
            self.scratch.set(buffer);
        }
    }

    pub(super) fn header(&self) -> Header {
        Header::new(self.region)
    }

    pub(super) fn region(&self) -> u32 {
        self.region
    }

    /// Returns the current account.
    pub fn account(&self) -> Account {
        Account {
            used: self.used(),
            peak: self.peak_now(),
            allocated: self.allocated(),
            limit: self.budget,
            compactions: self.compactions.get(),
        }
    }

    /// Returns the maximum that the program has held so far.
    fn peak_now(&self) -> usize {
        self.peak.get().max(self.used().saturating_sub(self.used_by_host.get()))
    }

    /// Replaces the arena with a compacted one. The next compaction is due when the budget is used up again.
    pub(super) fn replace_arena(&mut self, bump: Bump, bytes: usize) {
        self.peak.set(self.peak_now());
        self.used_by_host.set(0);
        self.allocated_before.set(self.allocated());
        self.space = Space::new(bump);
        self.adopted = Vec::new();
        self.shapes.clear();
        let live = bytes + self.held.get();
        self.set_used(live);
        self.used_before.set(live);
        self.compactions.set(self.compactions.get() + 1);
        self.set_limit(self.budget);
    }

    /// Notes a compaction for lack of memory. Returns true if the last ones in a row freed almost nothing: the run
    /// would do little but compact.
    pub(crate) fn is_thrashing(&self) -> bool {
        const MAX: u32 = 64;
        let free = self.budget.saturating_sub(self.used());
        self.futile_gcs.set(if free < self.budget / 64 { self.futile_gcs.get() + 1 } else { 0 });
        self.futile_gcs.get() > MAX
    }

    /// Takes over an arena and charges for it, even beyond the limit.
    pub(super) fn adopt_arena(&mut self, bump: Bump) {
        let bytes = bump.allocated_bytes() + std::mem::size_of::<Bump>();
        self.adopted.push(bump);
        self.set_used(self.used().saturating_add(bytes));
    }

    /// Returns true if more is held than the limit.
    pub(crate) fn is_over(&self) -> bool {
        self.used() > self.limit.get()
    }

    pub(super) fn rebudget(&mut self, bytes: usize) {
        self.budget = bytes;
        self.set_limit(bytes);
    }

    /// Runs work of the host that is not charged to the program: it may allocate `bytes`, regardless of the budget, and
    /// costs no fuel.
    ///
    /// The work fails with [`Fault::Pause`] when the flag that ends the run is set; without a flag, after work that
    /// costs `unwatched`.
    pub fn unmetered<T>(&self, bytes: usize, unwatched: u64, work: impl FnOnce() -> T) -> T {
        self.meter.unmetered(unwatched, || self.beyond_the_budget(bytes, work))
    }

    /// Runs work of the host that is not charged to the program: it may allocate `bytes`, regardless of the budget, and
    /// do work that costs `fuel`, with or without a flag. Beyond that it fails with [`Fault::Collect`] or
    /// [`Fault::Pause`].
    pub(crate) fn bounded<T>(&self, bytes: usize, fuel: u64, work: impl FnOnce() -> T) -> T {
        self.meter.bounded(fuel, || self.beyond_the_budget(bytes, work))
    }

    /// Runs work that may allocate `bytes`, regardless of the budget, such as text that leaves the run.
    pub fn beyond_the_budget<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let (limit, trap_in) = (self.limit.get(), self.trap_in.replace(0));
        let (peak, used) = (self.peak_now(), self.used());
        self.set_limit(used.saturating_add(bytes));
        let done = work();
        self.peak.set(peak);
        self.used_by_host.set(self.used_by_host.get() + self.used().saturating_sub(used));
        self.trap_in.set(trap_in);
        self.set_limit(limit);
        done
    }

    /// Returns true if `bytes` more fit the budget.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.used().checked_add(bytes).is_some_and(|sum| sum <= self.budget)
    }

    /// Adds allocations and compactions made elsewhere for this run.
    pub(crate) fn add_work(&self, allocated: u64, compactions: u64) {
        self.allocated_before.set(self.allocated_before.get().saturating_add(allocated));
        self.compactions.set(self.compactions.get().saturating_add(compactions));
    }

    /// Returns the fuel spent so far.
    #[inline]
    pub(crate) fn spent(&self) -> u64 {
        self.meter.spent()
    }

    /// Charges fuel for work about to be done: about one unit for each element visited, 16 bytes copied, or step taken.
    ///
    /// # Errors
    /// Returns [`Fault::Pause`] if the slice or the fuel of the run is used up, or the run must end.
    #[inline]
    pub fn charge(&self, fuel: u64) -> Res<()> {
        self.meter.charge(fuel)
    }

    /// Charges fuel for parts of work that are usually few.
    #[inline]
    pub(crate) fn charge_few(&self, parts: usize, each: u64) -> Res<()> {
        self.meter.charge_few(parts, each)
    }

    /// Charges fuel for text about to be copied. A short one is free: the value that it is part of was charged for.
    #[inline]
    pub(crate) fn charge_copy(&self, bytes: usize) -> Res<()> {
        self.meter.charge_copy(bytes)
    }

    /// For long work that is paid for already: fails if the run must end. Costs no fuel.
    ///
    /// # Errors
    /// Returns [`Fault::Pause`].
    #[inline]
    pub(crate) fn poll_interrupt(&self) -> Res<()> {
        self.meter.poll_interrupt()
    }

    /// Counts `steps` of work that is paid for already, and polls the flag that ends the run every few thousand of
    /// them.
    ///
    /// # Errors
    /// Returns [`Fault::Pause`].
    #[inline]
    pub(crate) fn poll_every(&self, steps: usize) -> Res<()> {
        self.meter.poll_every(steps)
    }

    /// Gives work outside a run, such as importing data, `fuel` to spend, after which it fails with [`Fault::Pause`].
    /// With a flag, it continues until the flag is set.
    pub fn set_host_fuel(&self, fuel: u64, interrupt: Option<Arc<AtomicBool>>) {
        self.meter.watch(interrupt);
        self.meter.set_slice(self.spent().saturating_add(fuel), u64::MAX);
    }

    /// Fails unless `bytes` more could be held. For temporaries outside the arena, and before several allocations that
    /// must all succeed.
    ///
    /// # Errors
    /// Returns [`Fault::Collect`]; or the memory error if the machine has less memory than the budget allows.
    #[inline]
    pub fn check_available(&self, bytes: usize) -> Res<()> {
        match self.used().checked_add(bytes) {
            Some(sum) if sum <= self.limit.get() => match bytes <= self.seen_free.get() {
                true => Ok(()),
                false => self.look_at_machine(bytes),
            },
            _ => Err(Fault::Collect(bytes)),
        }
    }

    /// Fails unless the machine has `bytes` more. Growing memory is not checked at every step.
    #[cold]
    fn look_at_machine(&self, bytes: usize) -> Res<()> {
        self.check_machine(bytes.saturating_mul(2)).or_else(|_| self.check_machine(bytes))?;
        self.seen_free.set(bytes.saturating_mul(2));
        Ok(())
    }

    /// Fails unless the machine has `bytes`, for memory outside the arena allocated in one piece.
    pub(crate) fn check_machine(&self, bytes: usize) -> Res<()> {
        memory::check(bytes).map_err(out_of_memory)
    }

    /// Ensures that the following allocations, `bytes` in total, will not fail.
    #[inline]
    pub(super) fn reserve(&self, bytes: usize) -> Res<()> {
        self.check_available(bytes.saturating_add(32))
    }

    /// Charges for memory outside the arena, such as a stack.
    pub(crate) fn charge_external(&self, bytes: usize) -> Res<()> {
        self.check_available(bytes)?;
        self.set_used(self.used() + bytes);
        self.held.set(self.held.get() + bytes);
        self.peak.set(self.peak_now());
        Ok(())
    }

    /// Releases memory outside the arena.
    pub(crate) fn release_external(&self, bytes: usize) {
        // Total and peak do not decrease.
        self.peak.set(self.peak_now());
        self.allocated_before.set(self.allocated());
        self.set_used(self.used() - bytes);
        self.used_before.set(self.used());
        self.held.set(self.held.get() - bytes);
    }

    /// Charges for bytes that are shared now and would be copied by a compaction.
    #[inline]
    pub(super) fn charge_share(&self, bytes: usize) -> Res<()> {
        let bytes = rounded(bytes);
        self.allow(bytes)?;
        self.set_used(self.used() + bytes);
        Ok(())
    }

    /// Fails unless `bytes` more may be held. Counts towards the next trap.
    fn allow(&self, bytes: usize) -> Res<()> {
        if self.trap_in.get() > 0 {
            self.count_down(bytes)?;
        }
        self.check_available(bytes)
    }

    /// Returns the bytes held now.
    #[inline]
    fn used(&self) -> usize {
        self.space.address().wrapping_add(self.used_less_address.get())
    }

    /// Sets the bytes held now.
    fn set_used(&self, used: usize) {
        self.used_less_address.set(used.wrapping_sub(self.space.address()));
        self.end_fast();
    }

    fn set_limit(&self, bytes: usize) {
        self.limit.set(bytes);
        self.end_fast();
    }

    /// Allows allocations up to the limit without checking the account; not while they are counted for a trap.
    fn end_fast(&self) {
        self.space.end_fast(match self.trap_in.get() {
            0 => self.limit.get().saturating_sub(self.used()),
            _ => 0,
        });
    }

    /// Returns the total bytes allocated, including what was freed.
    fn allocated(&self) -> u64 {
        self.allocated_before.get().saturating_add((self.used() - self.used_before.get()) as u64)
    }

    fn count_down(&self, bytes: usize) -> Res<()> {
        self.trap_in.set(self.trap_in.get() - 1);
        if self.trap_in.get() == 0 {
            self.set_limit(self.limit.get());
            self.trapped_early.set(true);
            return Err(Fault::Collect(bytes));
        }
        Ok(())
    }

    /// For tests: sets the number of allocations after which the next one fails, whether or not there is room.
    pub(crate) fn trap_after(&self, allocations: u64) {
        self.trap_in.set(allocations);
        self.set_limit(self.limit.get());
    }

    /// Returns true if the last fault was such a trap.
    pub(crate) fn trapped_early(&self) -> bool {
        self.trapped_early.replace(false)
    }

    /// Allocates one object.
    #[inline]
    pub(super) fn alloc<T>(&self, object: T) -> Res<&T> {
        const { assert!(!std::mem::needs_drop::<T>(), "an arena runs no destructors") };
        const { assert!(align_of::<T>() <= ALIGN, "objects are aligned to words") };
        let start = self.block(size_of::<T>())?.cast::<T>();
        // SAFETY: the block has room for the object, is aligned for it, and lives as long as the arena.
        unsafe {
            start.write(object);
            Ok(start.as_ref())
        }
    }

    /// Returns a new block of the arena, charged for and aligned to words.
    #[inline]
    fn block(&self, bytes: usize) -> Res<NonNull<u8>> {
        match self.space.place(rounded(bytes)) {
            Some(start) => Ok(start),
            None => self.block_with_care(rounded(bytes)),
        }
    }

    /// Allocates a block that does not fit the chunk or the account, or is counted for a trap.
    #[cold]
    fn block_with_care(&self, bytes: usize) -> Res<NonNull<u8>> {
        self.allow(bytes)?;
        let used = self.used();
        self.seen_free.set(memory::SMALL);
        let start = self.space.place_anywhere(bytes).ok_or_else(|| out_of_memory(OutOfMemory { bytes }))?;
        self.set_used(used.saturating_add(bytes));
        Ok(start)
    }

    /// Allocates a block for an object followed by `len` items that it refers to.
    #[inline]
    fn block_with<T, E>(&self, len: usize) -> Res<NonNull<T>> {
        const {
            assert!(!std::mem::needs_drop::<(T, E)>(), "an arena runs no destructors");
            assert!(align_of::<(T, E)>() <= ALIGN, "objects are aligned to words");
            assert!(size_of::<T>().is_multiple_of(align_of::<E>()), "the items come behind the object without a gap");
        }
        Ok(self.block(len.saturating_mul(size_of::<E>()).saturating_add(size_of::<T>()))?.cast())
    }

    /// Allocates the first `len` items of an iterator, or fewer if there are fewer.
    pub(super) fn alloc_slice<T>(&self, len: usize, items: impl Iterator<Item = T>) -> Res<&[T]> {
        const { assert!(!std::mem::needs_drop::<T>(), "an arena runs no destructors") };
        const { assert!(align_of::<T>() <= ALIGN, "objects are aligned to words") };
        if len == 0 {
            return Ok(&[]);
        }
        let start = self.block(len.saturating_mul(size_of::<T>()))?.cast::<T>();
        // SAFETY: the block has room for `len` items, and lives as long as the arena.
        unsafe { self.fill(start, len, items) }
    }

    /// Writes the first `len` items from `start` on, or fewer if there are fewer. Returns those written. Between pieces
    /// of a long slice it polls the flag that ends the run.
    ///
    /// # Safety
    /// From `start` on there is room for `len` items, which nothing else refers to during 'h.
    #[inline]
    unsafe fn fill<T>(&self, start: NonNull<T>, len: usize, mut items: impl Iterator<Item = T>) -> Res<&[T]> {
        const PIECE: usize = 1 << 14;
        let mut filled = 0;
        let mut write = |item| {
            // SAFETY: this is called for at most `len` items.
            unsafe { start.add(filled).write(item) };
            // It stays below `len`.
            filled = filled.wrapping_add(1);
        };
        if len <= PIECE {
            items.take(len).for_each(write);
        } else {
            for piece in 0..len.div_ceil(PIECE) {
                items.by_ref().take(PIECE.min(len - piece * PIECE)).for_each(&mut write);
                self.poll_interrupt()?;
            }
        }
        // SAFETY: `filled` items have been written.
        Ok(unsafe { std::slice::from_raw_parts(start.as_ptr(), filled) })
    }

    /// Allocates an object and the first `len` items of an iterator, which it refers to, in one block.
    #[inline]
    pub(super) fn alloc_with<'h, T, E: 'h>(
        &'h self,
        len: usize,
        items: impl Iterator<Item = E>,
        object: impl FnOnce(&'h [E]) -> T,
    ) -> Res<&'h T> {
        let start = self.block_with::<T, E>(len)?;
        // SAFETY: after the object the block has room for `len` items, and is aligned for both. It lives as long as the
        // arena, which is borrowed for 'h.
        unsafe {
            let items = self.fill(start.add(1).cast::<E>(), len, items)?;
            start.write(object(items));
            Ok(start.as_ref())
        }
    }

    /// Allocates an object and a copy of a text, which it refers to, in one block.
    #[inline]
    pub(super) fn alloc_with_text<'h, T>(&'h self, text: &str, object: impl FnOnce(&'h str) -> T) -> Res<&'h T> {
        let start = self.block_with::<T, u8>(text.len())?;
        // SAFETY: after the object the block has room for the text, and then holds a copy of it. It lives as long as
        // the arena, which is borrowed for 'h.
        unsafe {
            let copy = start.add(1).cast::<u8>().as_ptr();
            for (i, piece) in text.as_bytes().chunks(1 << 18).enumerate() {
                if i > 0 {
                    self.poll_interrupt()?;
                }
                copy.add(i << 18).copy_from_nonoverlapping(piece.as_ptr(), piece.len());
            }
            start.write(object(std::str::from_utf8_unchecked(std::slice::from_raw_parts(copy, text.len()))));
            Ok(start.as_ref())
        }
    }

    /// Allocates `len` cells with the default value.
    pub(super) fn alloc_slots<T: Copy + Default>(&self, len: usize) -> Res<&[Cell<T>]> {
        self.alloc_slice(len, std::iter::repeat_with(Cell::default))
    }
}

#[cold]
fn out_of_memory(machine: OutOfMemory) -> Fault {
    Error::from(machine).into()
}
