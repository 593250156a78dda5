//! One arena and its account. Every allocation is charged before it is made.

use super::header::Header;
use super::memory::{self, OutOfMemory};
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

/// The account of a run's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Held now: in the arena, and by the machine's stacks.
    pub used: usize,
    /// The most that was held at once.
    pub peak: usize,
    /// Allocated in all.
    pub allocated: u64,
    /// What may be held; `usize::MAX` is no limit.
    pub limit: usize,
    /// How often the arena was compacted.
    pub compactions: u64,
}

/// An arena with its account, and the meter of the run that works in it.
pub struct Heap {
    space: Space,
    /// Arenas of values that came from elsewhere, until the next compaction.
    adopted: Vec<Bump>,
    region: u32,
    /// What is used less the address of the cursor, so that an allocation only moves that: see [`Heap::used`].
    used_less_address: Cell<usize>,
    peak: Cell<usize>,
    /// What is used by work of the host that was beyond the budget, until the next compaction. No peak has it.
    used_by_host: Cell<usize>,
    /// Allocated in all, but for what `used` has grown by since it was `used_before`.
    allocated_before: Cell<u64>,
    used_before: Cell<usize>,
    /// What may be held now, the garbage counted too: the budget, but for work of the host.
    limit: Cell<usize>,
    /// What may be held at all.
    budget: usize,
    /// Held outside the arena: the stacks.
    held: Cell<usize>,
    compactions: Cell<u64>,
    /// How many compactions in a row left next to nothing free.
    futile_gcs: Cell<u32>,
    /// For tests: a trap is due when this many allocations have been made; 0 is never.
    trap_in: Cell<u64>,
    trapped_early: Cell<bool>,
    /// Fuel, slices and the flag that ends the run.
    pub(crate) meter: Meter,
    pub(super) shapes: Shapes,
    /// Bytes that the machine had free outside the arena at the last look. The arena has not grown since.
    seen_free: Cell<usize>,
    /// A small buffer for texts under construction, to be used again.
    scratch: Cell<String>,
    /// How built-in functions show as text.
    builtin_text: fn(BuiltinId) -> Cow<'static, str>,
}

impl Heap {
    /// An empty arena that may hold `limit` bytes. `region` tells its objects from those of other arenas: who makes it sees to
    /// it that no two arenas whose objects meet have the same, which is why nobody outside the crate may.
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
            seen_free: Cell::new(memory::SMALL),
            scratch: Cell::default(),
            builtin_text: |_| Cow::Borrowed("#<builtin>"),
        };
        heap.set_used(0);
        heap
    }

    /// The heap with `builtin_text` for how it shows built-in functions, whose table it does not know.
    pub(crate) fn showing(self, builtin_text: fn(BuiltinId) -> Cow<'static, str>) -> Self {
        Heap { builtin_text, ..self }
    }

    /// How a built-in function shows as text.
    pub(crate) fn builtin_text(&self, id: BuiltinId) -> Cow<'static, str> {
        (self.builtin_text)(id)
    }

    /// An empty buffer for a text.
    #[inline]
    pub(super) fn take_scratch(&self) -> String {
        self.scratch.take()
    }

    /// Keeps a buffer for the next text, if it is no larger than what an idle heap may keep.
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

    /// The account as it stands.
    pub fn account(&self) -> Account {
        Account {
            used: self.used(),
            peak: self.peak_now(),
            allocated: self.allocated(),
            limit: self.budget,
            compactions: self.compactions.get(),
        }
    }

    /// The most that the program has held up to now.
    fn peak_now(&self) -> usize {
        self.peak.get().max(self.used().saturating_sub(self.used_by_host.get()))
    }

    /// Puts a compacted arena in the place of the old one. The next compaction is due when the budget is full again.
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

    /// Notes a compaction for want of memory. Did the last ones, one after the other, free next to nothing? Then the
    /// run would do little else.
    pub(crate) fn is_thrashing(&self) -> bool {
        const MOST: u32 = 64;
        let free = self.budget.saturating_sub(self.used());
        self.futile_gcs.set(if free < self.budget / 64 { self.futile_gcs.get() + 1 } else { 0 });
        self.futile_gcs.get() > MOST
    }

    /// Takes over an arena and charges for it, even beyond the limit.
    pub(super) fn adopt_arena(&mut self, bump: Bump) {
        let bytes = bump.allocated_bytes() + std::mem::size_of::<Bump>();
        self.adopted.push(bump);
        self.set_used(self.used().saturating_add(bytes));
    }

    /// Is more held than may be before a compaction?
    pub(crate) fn is_over(&self) -> bool {
        self.used() > self.limit.get()
    }

    pub(super) fn rebudget(&mut self, bytes: usize) {
        self.budget = bytes;
        self.set_limit(bytes);
    }

    /// Runs work of the host that is not on the program's account: it may allocate `bytes`, whatever the budget, and
    /// spends no fuel.
    ///
    /// The work fails with [`Fault::Pause`] when the flag is set that ends the run; without a flag, when it has done
    /// what costs `unwatched`.
    pub fn unmetered<T>(&self, bytes: usize, unwatched: u64, work: impl FnOnce() -> T) -> T {
        self.meter.unmetered(unwatched, || self.beyond_the_budget(bytes, work))
    }

    /// Runs work of the host that is not on the program's account: it may allocate `bytes`, whatever the budget, and do what
    /// costs `fuel`, whether the run can be ended or not. It fails with [`Fault::Collect`] or [`Fault::Pause`] beyond that.
    pub(crate) fn bounded<T>(&self, bytes: usize, fuel: u64, work: impl FnOnce() -> T) -> T {
        self.meter.bounded(fuel, || self.beyond_the_budget(bytes, work))
    }

    /// Runs work that may allocate `bytes`, whatever the budget, such as a text that leaves the run.
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

    /// Do `bytes` more fit the budget?
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.used().checked_add(bytes).is_some_and(|sum| sum <= self.budget)
    }

    /// Takes allocations and compactions that were made elsewhere for this run on the account.
    pub(crate) fn add_work(&self, allocated: u64, compactions: u64) {
        self.allocated_before.set(self.allocated_before.get().saturating_add(allocated));
        self.compactions.set(self.compactions.get().saturating_add(compactions));
    }

    /// Fuel spent so far.
    #[inline]
    pub(crate) fn spent(&self) -> u64 {
        self.meter.spent()
    }

    /// Spends fuel for work about to be done: about one unit for each element visited, 16 bytes copied, or step taken.
    ///
    /// # Errors
    /// [`Fault::Pause`] when the slice or the fuel of the run is used up, or when the run is to end.
    #[inline]
    pub fn charge(&self, fuel: u64) -> Res<()> {
        self.meter.charge(fuel)
    }

    /// Spends fuel for parts of work of which there are most often few.
    #[inline]
    pub(crate) fn charge_few(&self, parts: usize, each: u64) -> Res<()> {
        self.meter.charge_few(parts, each)
    }

    /// Spends fuel for text about to be copied: for a short one it is nothing, as what it is a part of was charged for.
    #[inline]
    pub(crate) fn charge_copy(&self, bytes: usize) -> Res<()> {
        self.meter.charge_copy(bytes)
    }

    /// For work that is paid for already and takes long: fails when the run is to end. Costs no fuel.
    ///
    /// # Errors
    /// [`Fault::Pause`]
    #[inline]
    pub(crate) fn poll_interrupt(&self) -> Res<()> {
        self.meter.poll_interrupt()
    }

    /// Counts `steps` of work that is paid for already, and polls the flag that ends the run every few thousand of them.
    ///
    /// # Errors
    /// [`Fault::Pause`]
    #[inline]
    pub(crate) fn poll_every(&self, steps: usize) -> Res<()> {
        self.meter.poll_every(steps)
    }

    /// Lets work outside a run, such as bringing data in, spend `fuel`; then it fails with [`Fault::Pause`], unless
    /// there is a flag: then it goes on until that is set.
    pub fn set_host_fuel(&self, fuel: u64, interrupt: Option<Arc<AtomicBool>>) {
        self.meter.watch(interrupt);
        self.meter.set_slice(self.spent().saturating_add(fuel), u64::MAX);
    }

    /// Fails unless `bytes` more could be held. For temporaries outside the arena, and before several allocations of
    /// which none may be lost.
    ///
    /// # Errors
    /// [`Fault::Collect`]; the memory error when the machine does not have what the budget allows.
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

    /// Fails unless the machine has `bytes` more. What grows is not looked for at each step.
    #[cold]
    fn look_at_machine(&self, bytes: usize) -> Res<()> {
        self.check_machine(bytes.saturating_mul(2)).or_else(|_| self.check_machine(bytes))?;
        self.seen_free.set(bytes.saturating_mul(2));
        Ok(())
    }

    /// Fails unless the machine has `bytes`, for what is about to be held outside the arena in one piece.
    pub(crate) fn check_machine(&self, bytes: usize) -> Res<()> {
        memory::check(bytes).map_err(out_of_memory)
    }

    /// Makes sure that the allocations that follow, of `bytes` in all, will not fail.
    #[inline]
    pub(super) fn reserve(&self, bytes: usize) -> Res<()> {
        self.check_available(bytes.saturating_add(32))
    }

    /// Takes bytes that are held outside the arena, such as a stack's, on the account.
    pub(crate) fn charge_external(&self, bytes: usize) -> Res<()> {
        self.check_available(bytes)?;
        self.set_used(self.used() + bytes);
        self.held.set(self.held.get() + bytes);
        self.peak.set(self.peak_now());
        Ok(())
    }

    /// Takes bytes that were held outside the arena off the account.
    pub(crate) fn release_external(&self, bytes: usize) {
        // What was allocated stays allocated, and what was held was held.
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

    /// May `bytes` more be held? Counts for a trap, too.
    fn allow(&self, bytes: usize) -> Res<()> {
        if self.trap_in.get() > 0 {
            self.count_down(bytes)?;
        }
        self.check_available(bytes)
    }

    /// Held now.
    #[inline]
    fn used(&self) -> usize {
        self.space.address().wrapping_add(self.used_less_address.get())
    }

    /// Puts what is held on the account.
    fn set_used(&self, used: usize) {
        self.used_less_address.set(used.wrapping_sub(self.space.address()));
        self.end_fast();
    }

    fn set_limit(&self, bytes: usize) {
        self.limit.set(bytes);
        self.end_fast();
    }

    /// Up to the limit allocations succeed without a look at the account, but while they are counted for a trap.
    fn end_fast(&self) {
        self.space.end_fast(match self.trap_in.get() {
            0 => self.limit.get().saturating_sub(self.used()),
            _ => 0,
        });
    }

    /// Allocated so far, what was freed since included.
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

    /// For tests: the next trap comes after this many allocations, whether there is room or not.
    pub(crate) fn trap_after(&self, allocations: u64) {
        self.trap_in.set(allocations);
        self.set_limit(self.limit.get());
    }

    /// Was the last trap one of those?
    pub(crate) fn trapped_early(&self) -> bool {
        self.trapped_early.replace(false)
    }

    /// Puts one object into the arena.
    #[inline]
    pub(super) fn alloc<T>(&self, object: T) -> Res<&T> {
        const { assert!(!std::mem::needs_drop::<T>(), "an arena runs no destructors") };
        const { assert!(align_of::<T>() <= ALIGN, "objects are aligned to words") };
        let start = self.block(size_of::<T>())?.cast::<T>();
        // SAFETY: the block has room for the object and is aligned for it, and lives as long as the arena.
        unsafe {
            start.write(object);
            Ok(start.as_ref())
        }
    }

    /// A block of the arena that nothing else refers to, charged for and aligned to words.
    #[inline]
    fn block(&self, bytes: usize) -> Res<NonNull<u8>> {
        match self.space.place(rounded(bytes)) {
            Some(start) => Ok(start),
            None => self.block_with_care(rounded(bytes)),
        }
    }

    /// A block for which the chunk has no room, or the account, or one of those that are counted for a trap.
    #[cold]
    fn block_with_care(&self, bytes: usize) -> Res<NonNull<u8>> {
        self.allow(bytes)?;
        let used = self.used();
        self.seen_free.set(memory::SMALL);
        let start = self.space.place_anywhere(bytes).ok_or_else(|| out_of_memory(OutOfMemory { bytes }))?;
        self.set_used(used.saturating_add(bytes));
        Ok(start)
    }

    /// A block for an object and, behind it, `len` items that it refers to.
    #[inline]
    fn block_with<T, E>(&self, len: usize) -> Res<NonNull<T>> {
        const {
            assert!(!std::mem::needs_drop::<(T, E)>(), "an arena runs no destructors");
            assert!(align_of::<(T, E)>() <= ALIGN, "objects are aligned to words");
            assert!(size_of::<T>().is_multiple_of(align_of::<E>()), "the items come behind the object without a gap");
        }
        Ok(self.block(len.saturating_mul(size_of::<E>()).saturating_add(size_of::<T>()))?.cast())
    }

    /// Puts the first `len` items of an iterator into the arena, or fewer if there are fewer.
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

    /// Writes the first `len` items from `start` on, or fewer if there are fewer; returns those it wrote. Between pieces of
    /// a long slice it polls the flag that ends the run.
    ///
    /// # Safety
    /// There is room for `len` items from `start` on, which nothing else refers to for as long as 'h.
    #[inline]
    unsafe fn fill<T>(&self, start: NonNull<T>, len: usize, mut items: impl Iterator<Item = T>) -> Res<&[T]> {
        const PIECE: usize = 1 << 14;
        let mut filled = 0;
        let mut write = |item| {
            // SAFETY: it is called for no more than `len` items.
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

    /// Puts an object and the first `len` items of an iterator, which it refers to, into the arena at one go.
    #[inline]
    pub(super) fn alloc_with<'h, T, E: 'h>(
        &'h self,
        len: usize,
        items: impl Iterator<Item = E>,
        object: impl FnOnce(&'h [E]) -> T,
    ) -> Res<&'h T> {
        let start = self.block_with::<T, E>(len)?;
        // SAFETY: behind the object the block has room for `len` items, and is aligned for both. It lives as long as the arena,
        // which is borrowed for 'h.
        unsafe {
            let items = self.fill(start.add(1).cast::<E>(), len, items)?;
            start.write(object(items));
            Ok(start.as_ref())
        }
    }

    /// Puts an object and a copy of a text, which it refers to, into the arena at one go.
    #[inline]
    pub(super) fn alloc_with_text<'h, T>(&'h self, text: &str, object: impl FnOnce(&'h str) -> T) -> Res<&'h T> {
        let start = self.block_with::<T, u8>(text.len())?;
        // SAFETY: behind the object the block has room for the text, which it then is a copy of. It lives as long as the
        // arena, which is borrowed for 'h.
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

    /// `len` cells that hold the default.
    pub(super) fn alloc_slots<T: Copy + Default>(&self, len: usize) -> Res<&[Cell<T>]> {
        self.alloc_slice(len, std::iter::repeat_with(Cell::default))
    }
}

#[cold]
fn out_of_memory(machine: OutOfMemory) -> Fault {
    Error::from(machine).into()
}
