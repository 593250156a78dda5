//! One arena and its account. Every allocation is charged before it is made.

use super::header::Header;
use super::patterns::Patterns;
use super::shapes::Shapes;
use super::value::{Closure, Compose, Composed, Time, TimeValue};
use super::{Fault, Res, Value};
use crate::builtins::characters;
use crate::code::{ProgramId, Proto};
use crate::context::Prints;
use crate::cost;
use crate::meter::{Fuel, METERED};
use bumpalo::Bump;
use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most fuel between two looks, so that what is left can be counted in any unit.
const MOST_LEFT: u64 = 1 << 48;

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

/// An arena with its account, the fuel of the run and what built-ins need besides: the prints and the compiled
/// regular expressions.
pub struct Heap {
    bump: Bump,
    /// Arenas of values that came from elsewhere, until the next compaction.
    chunks: Vec<Bump>,
    region: u32,
    used: Cell<usize>,
    peak: Cell<usize>,
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
    /// How many compactions one after the other left next to no room.
    poor: Cell<u32>,
    /// For tests: a trap is due when this many allocations have been made; 0 is never.
    trap_in: Cell<u64>,
    /// Up to here an allocation needs no second look: the limit, or nothing while allocations are counted for a trap.
    unseen: Cell<usize>,
    trapped_early: Cell<bool>,
    /// Fuel that may still be spent before there is something to look at; negative when there is. What was spent is
    /// `stop_at` less this, so that a charge is one subtraction.
    left: Cell<Fuel>,
    /// What was left at the last point from which work is done again after a fault, counted towards the same `stop_at`.
    mark: Cell<Fuel>,
    /// With this much fuel spent there is something to look at: the end of the slice, the interrupt, the ceiling.
    stop_at: Cell<u64>,
    /// Where the slice ends that the driver gave.
    slice_end: Cell<u64>,
    /// What may be spent at all.
    ceiling: Cell<u64>,
    /// Set from outside to end the run; with it, work under way is not cut at the end of a slice.
    interrupt: RefCell<Option<Arc<AtomicBool>>>,
    pub(super) shapes: Shapes,
    /// What the clock says through the whole run, in milliseconds since 1970-01-01T00:00:00Z, if it stands still.
    pub now_ms: Cell<Option<i64>>,
    /// What the driver told last, and the fuel spent when it was asked for.
    told: Cell<Option<(u64, i64)>>,
    /// Steps of work that was paid for before since the last look.
    unlooked: Cell<usize>,
    /// What the program printed.
    pub prints: RefCell<Prints>,
    /// Something was printed in this slice, and the driver wants to know.
    news: Cell<bool>,
    /// A small buffer for texts under construction, to be used again.
    scratch: Cell<String>,
    pub(super) patterns: Patterns,
}

impl Heap {
    /// An empty arena that may hold `limit` bytes. `region` tells its objects from those of other arenas.
    pub fn new(region: u32, limit: usize) -> Self {
        Heap {
            bump: Bump::new(),
            chunks: Vec::new(),
            region,
            used: Cell::new(0),
            peak: Cell::new(0),
            allocated_before: Cell::new(0),
            used_before: Cell::new(0),
            limit: Cell::new(limit),
            budget: limit,
            held: Cell::new(0),
            compactions: Cell::new(0),
            poor: Cell::new(0),
            trap_in: Cell::new(0),
            unseen: Cell::new(limit),
            trapped_early: Cell::new(false),
            left: Cell::new(Fuel::of(MOST_LEFT.cast_signed())),
            mark: Cell::new(Fuel::of(MOST_LEFT.cast_signed())),
            stop_at: Cell::new(MOST_LEFT),
            slice_end: Cell::new(u64::MAX),
            ceiling: Cell::new(u64::MAX),
            interrupt: RefCell::new(None),
            shapes: Shapes::new(),
            now_ms: Cell::new(None),
            told: Cell::new(None),
            unlooked: Cell::new(0),
            prints: RefCell::default(),
            news: Cell::new(false),
            scratch: Cell::default(),
            patterns: Patterns::default(),
        }
    }

    /// An empty arena for a worker that reads this one: it has a region of its own and the same compiled regular
    /// expressions.
    pub(super) fn above(&self, limit: usize) -> Self {
        // Its fuel is counted from zero, and nothing is done again from before its beginning.
        Heap { patterns: self.patterns.above(), ..Heap::new(self.region + 1, limit) }
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
            used: self.used.get(),
            peak: self.peak.get().max(self.used.get()),
            allocated: self.allocated(),
            limit: self.budget,
            compactions: self.compactions.get(),
        }
    }

    /// Puts a compacted arena in the place of the old one. The next compaction is due when the budget is full again.
    pub(super) fn replace_arena(&mut self, bump: Bump, bytes: usize) {
        self.peak.set(self.peak.get().max(self.used.get()));
        self.bump = bump;
        self.chunks = Vec::new();
        self.shapes.clear();
        let live = bytes + self.held.get();
        self.allocated_before.set(self.allocated());
        self.used.set(live);
        self.used_before.set(live);
        self.compactions.set(self.compactions.get() + 1);
        self.set_limit(self.budget);
    }

    /// Notes a compaction for want of room. Have the last ones, one after the other, left next to none? Then the run
    /// would do little else.
    pub(crate) fn is_choked(&self) -> bool {
        const MOST: u32 = 64;
        let won = self.budget.saturating_sub(self.used.get());
        self.poor.set(if won < self.budget / 64 { self.poor.get() + 1 } else { 0 });
        self.poor.get() > MOST
    }

    /// Takes over an arena and charges for it, even beyond the limit.
    pub(super) fn take_chunk(&mut self, bump: Bump) {
        let bytes = bump.allocated_bytes() + std::mem::size_of::<Bump>();
        self.chunks.push(bump);
        self.used.set(self.used.get().saturating_add(bytes));
    }

    /// Is more held than may be before a compaction?
    pub(crate) fn is_over(&self) -> bool {
        self.used.get() > self.limit.get()
    }

    pub(super) fn rebudget(&mut self, bytes: usize) {
        self.budget = bytes;
        self.set_limit(bytes);
    }

    /// Runs work of the host that is not on the program's bill: it may allocate `bytes`, whatever the budget, and
    /// spends no fuel. It ends when the flag is set that ends the run; without a flag it may do what costs `unwatched`.
    /// Then it fails with [`Fault::Pause`].
    pub fn off_the_bill<T>(&self, bytes: usize, unwatched: u64, work: impl FnOnce() -> T) -> T {
        let spent = self.spent();
        let most = if self.is_watched() { 0 } else { unwatched };
        let (stop_at, ceiling) = (self.stop_at.get(), self.ceiling.replace(u64::MAX));
        self.stop_when(spent.saturating_add(most));
        let news = self.news.replace(false);
        let done = self.beyond_the_budget(bytes, work);
        self.news.set(news);
        self.ceiling.set(ceiling);
        self.set_spent(spent);
        self.count_towards(stop_at);
        done
    }

    /// Runs work that may allocate `bytes`, whatever the budget, such as a text that leaves the run.
    pub fn beyond_the_budget<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let (limit, trap_in) = (self.limit.get(), self.trap_in.replace(0));
        self.set_limit(self.used.get().saturating_add(bytes));
        let done = work();
        self.trap_in.set(trap_in);
        self.set_limit(limit);
        done
    }

    /// Is there a flag that ends the run from outside?
    pub(crate) fn is_watched(&self) -> bool {
        self.interrupt.borrow().is_some()
    }

    /// Is there room for `bytes` more within the budget?
    pub(crate) fn affords(&self, bytes: usize) -> bool {
        self.used.get().checked_add(bytes).is_some_and(|sum| sum <= self.budget)
    }

    /// Fuel spent so far.
    #[inline]
    pub fn spent(&self) -> u64 {
        self.stop_at.get().wrapping_sub(self.left.get().units().cast_unsigned())
    }

    /// Puts the fuel spent back to what it was when an instruction began.
    pub(crate) fn set_spent(&self, spent: u64) {
        self.left.set(self.left_of(spent));
    }

    /// Fuel left before there is something to look at; negative when there is.
    #[inline]
    pub(crate) fn left(&self) -> Fuel {
        self.left.get()
    }

    /// The same, when it was counted elsewhere.
    #[inline]
    pub(crate) fn set_left(&self, left: Fuel) {
        self.left.set(left);
    }

    /// There is something to look at when so much fuel is spent, or [`MOST_LEFT`] more than now.
    fn stop_when(&self, stop_at: u64) {
        self.count_towards(stop_at.min(self.spent().saturating_add(MOST_LEFT)));
    }

    fn count_towards(&self, stop_at: u64) {
        let (spent, marked) = (self.spent(), self.marked());
        self.stop_at.set(stop_at);
        self.set_spent(spent);
        self.mark.set(self.left_of(marked));
    }

    fn left_of(&self, spent: u64) -> Fuel {
        Fuel::of(self.stop_at.get().wrapping_sub(spent).cast_signed())
    }

    /// After a fault, work is done again from here.
    #[inline]
    pub(crate) fn set_mark(&self) {
        if METERED {
            self.mark.set(self.left.get());
        }
    }

    /// The same, from before something that was paid for already.
    pub(crate) fn move_mark_before(&self, paid: Fuel) {
        if METERED {
            self.mark.set(self.mark.get().plus(paid));
        }
    }

    /// The fuel that was spent where work is done again from.
    pub(crate) fn marked(&self) -> u64 {
        self.stop_at.get().wrapping_sub(self.mark.get().units().cast_unsigned())
    }

    /// Takes work that was done elsewhere for this run on the account.
    pub(crate) fn add_work(&self, fuel: u64, allocated: u64, compactions: u64) {
        self.set_spent(self.spent().saturating_add(fuel));
        self.allocated_before.set(self.allocated_before.get().saturating_add(allocated));
        self.compactions.set(self.compactions.get().saturating_add(compactions));
    }

    /// Spends fuel for work about to be done: about one unit for each element touched, byte of 16 copied, or step
    /// taken.
    #[inline]
    pub fn charge(&self, fuel: u64) -> Res<()> {
        if !METERED {
            return Ok(());
        }
        let left = self.left.get().spend(fuel);
        self.left.set(left);
        if left.is_over() { self.look_up() } else { Ok(()) }
    }

    /// Spends fuel for text about to be copied: for a short one it is nothing, as what it is a part of was charged for.
    #[inline]
    pub(crate) fn charge_copy(&self, bytes: usize) -> Res<()> {
        if bytes < cost::SHORT { Ok(()) } else { self.charge(cost::copied(bytes)) }
    }

    /// Looks at what may end or pause the run while a built-in is at work. Without an interrupt the slice is obeyed;
    /// with one the work goes on, because work that is cut short is done again from its start.
    #[cold]
    fn look_up(&self) -> Res<()> {
        const INTERVAL: u64 = 4_096;
        let spent = self.spent();
        if self.news.get() {
            return Err(Fault::Pause(spent));
        }
        match &*self.interrupt.borrow() {
            Some(flag) if !flag.load(Ordering::Relaxed) && spent <= self.ceiling.get() => {
                self.stop_when(spent.saturating_add(INTERVAL).min(self.ceiling.get()));
                Ok(())
            }
            _ => Err(Fault::Pause(spent)),
        }
    }

    /// For work that is paid for already and takes long: fails when the run is to end. Costs no fuel.
    #[inline]
    pub fn look(&self) -> Res<()> {
        match &*self.interrupt.borrow() {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Fault::Pause(self.spent())),
            _ => Ok(()),
        }
    }

    /// The same for so many steps of such work, every few thousand steps.
    #[inline]
    pub fn look_after(&self, steps: usize) -> Res<()> {
        const BETWEEN_LOOKS: usize = 4_096;
        let unlooked = self.unlooked.get().saturating_add(steps);
        if unlooked < BETWEEN_LOOKS {
            self.unlooked.set(unlooked);
            return Ok(());
        }
        self.unlooked.set(0);
        self.look()
    }

    /// Lets work outside a run, such as bringing data in, spend `fuel`; then it fails with [`Fault::Pause`], unless
    /// there is a flag: then it goes on until that is set.
    pub fn ration(&self, fuel: u64, interrupt: Option<Arc<AtomicBool>>) {
        self.watch(interrupt);
        self.set_slice(self.spent().saturating_add(fuel), u64::MAX);
    }

    /// The same between two instructions, where a pause costs nothing.
    #[cold]
    pub(crate) fn pause_or_go_on(&self) -> Res<()> {
        if self.spent() > self.slice_end.get() {
            return Err(Fault::Pause(self.spent()));
        }
        self.look_up()
    }

    /// The time, in milliseconds since 1970-01-01T00:00:00Z. It is an effect: the first time it fails with
    /// [`Fault::Clock`], and when the driver has told the time and the instruction is done again, this is the answer. It
    /// stays the answer if the instruction is done once more, because then it has spent the same fuel.
    pub fn clock(&self) -> Res<i64> {
        match (self.now_ms.get(), self.told.get()) {
            (Some(fixed), _) => Ok(fixed),
            (None, Some((asked, time))) if asked == self.spent() => Ok(time),
            _ => Err(Fault::Clock),
        }
    }

    /// Tells the time that was asked for when so much fuel was spent.
    pub(crate) fn tell_time(&self, asked: u64, time: i64) {
        self.told.set(Some((asked, time)));
    }

    /// Gives the run fuel up to `slice_end`, and in all up to `ceiling`.
    pub(crate) fn set_slice(&self, slice_end: u64, ceiling: u64) {
        self.slice_end.set(slice_end.min(ceiling));
        self.ceiling.set(ceiling);
        self.stop_when(slice_end.min(ceiling));
        self.news.set(false);
    }

    /// Adds a printed line. When the driver wants to know of each, the slice ends here: the run pauses before its next
    /// piece of work.
    pub(crate) fn print(&self, line: &str) -> Res<()> {
        let (line, cut) = self.kept_line(line)?;
        let mut prints = self.prints.borrow_mut();
        if cut {
            prints.push_cut(line)
        } else {
            prints.push(line)
        }
        if prints.pauses {
            self.news.set(true);
            self.stop_when(self.spent());
        }
        Ok(())
    }

    /// A line as it is kept: nothing when none is any more, cut with a visible mark when it is too long; and whether it is.
    fn kept_line(&self, line: &str) -> Res<(String, bool)> {
        let (most, dropped) = {
            let prints = self.prints.borrow();
            (prints.line_chars, prints.dropped())
        };
        if dropped > 0 {
            return Ok((String::new(), false));
        }
        if most > 0 && line.len() > most {
            let start = characters::first(self, line, most)?;
            if start.len() < line.len() {
                return Ok((format!("{start}... ({most}/{} chars)", characters::count(self, line)?), true));
            }
        }
        Ok((line.to_owned(), false))
    }

    /// The flag that ends the run from outside.
    pub(crate) fn watch(&self, interrupt: Option<Arc<AtomicBool>>) {
        *self.interrupt.borrow_mut() = interrupt;
    }

    /// Fails unless `bytes` more could be held. For temporaries outside the arena, and before several allocations of
    /// which none may be lost.
    #[inline]
    pub fn room(&self, bytes: usize) -> Res<()> {
        if !METERED {
            return Ok(());
        }
        match self.used.get().checked_add(bytes) {
            Some(sum) if sum <= self.limit.get() => Ok(()),
            _ => Err(Fault::Collect(bytes)),
        }
    }

    /// The same as [`Heap::room`]: the allocations that follow will not fail.
    #[inline]
    pub(super) fn reserve(&self, bytes: usize) -> Res<()> {
        self.room(bytes.saturating_add(32))
    }

    /// Takes bytes that are held outside the arena, such as a stack's, on the account.
    pub(crate) fn hold(&self, bytes: usize) -> Res<()> {
        self.room(bytes)?;
        self.used.set(self.used.get() + bytes);
        self.held.set(self.held.get() + bytes);
        self.peak.set(self.peak.get().max(self.used.get()));
        Ok(())
    }

    /// Takes bytes that were held off the account.
    pub(super) fn let_go(&self, bytes: usize) {
        self.used.set(self.used.get() - bytes);
        self.held.set(self.held.get() - bytes);
    }

    /// Charges for bytes that are shared now and would be copied by a compaction.
    pub(super) fn charge_share(&self, bytes: usize) -> Res<()> {
        self.account_for(bytes)
    }

    #[inline]
    fn account_for(&self, bytes: usize) -> Res<()> {
        if !METERED {
            return Ok(());
        }
        let bytes = bytes.saturating_add(7) & !7;
        match self.used.get().checked_add(bytes) {
            Some(sum) if sum <= self.unseen.get() => self.used.set(sum),
            _ => return self.account_with_care(bytes),
        }
        Ok(())
    }

    /// For an allocation that is over the limit, or one of those that are counted.
    #[cold]
    fn account_with_care(&self, bytes: usize) -> Res<()> {
        if self.trap_in.get() > 0 {
            self.count_down(bytes)?;
        }
        self.room(bytes)?;
        self.used.set(self.used.get() + bytes);
        Ok(())
    }

    fn set_limit(&self, bytes: usize) {
        self.limit.set(bytes);
        self.unseen.set(if self.trap_in.get() > 0 { 0 } else { bytes });
    }

    /// Allocated so far, what was freed since included.
    fn allocated(&self) -> u64 {
        self.allocated_before.get().saturating_add((self.used.get() - self.used_before.get()) as u64)
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
        self.account_for(std::mem::size_of::<T>())?;
        self.bump.try_alloc(object).map(|r| &*r).map_err(|_| Fault::Collect(std::mem::size_of::<T>()))
    }

    /// A block of the arena that nothing else refers to, charged for.
    #[inline]
    fn block(&self, layout: Layout) -> Res<NonNull<u8>> {
        self.account_for(layout.size())?;
        self.bump.try_alloc_layout(layout).map_err(|_| Fault::Collect(layout.size()))
    }

    /// A block for an object and, behind it, `len` items that it refers to.
    #[inline]
    fn block_with<T, E>(&self, len: usize) -> Res<NonNull<T>> {
        const {
            assert!(!std::mem::needs_drop::<(T, E)>(), "an arena runs no destructors");
            assert!(size_of::<T>().is_multiple_of(align_of::<E>()), "the items come behind the object without a gap");
        }
        let bytes = len.saturating_mul(size_of::<E>()).saturating_add(size_of::<T>());
        let align = align_of::<T>().max(align_of::<E>());
        let layout = Layout::from_size_align(bytes, align).map_err(|_| Fault::Collect(bytes))?;
        Ok(self.block(layout)?.cast())
    }

    /// Puts the first `len` items of an iterator into the arena, or fewer if there are fewer.
    pub(super) fn alloc_slice<T>(&self, len: usize, items: impl Iterator<Item = T>) -> Res<&[T]> {
        const { assert!(!std::mem::needs_drop::<T>(), "an arena runs no destructors") };
        if len == 0 {
            return Ok(&[]);
        }
        let layout = Layout::array::<T>(len).map_err(|_| Fault::Collect(usize::MAX))?;
        let start = self.block(layout)?.cast::<T>();
        // SAFETY: the block has room for `len` items, and lives as long as the arena.
        unsafe { self.fill(start, len, items) }
    }

    /// Writes the first `len` items from `start` on, or fewer if there are fewer; answers those it wrote. Of many, it
    /// looks now and then whether the run is to end.
    ///
    /// # Safety
    /// There is room for `len` items from `start` on, which nothing else refers to for as long as 'h.
    #[inline]
    unsafe fn fill<T>(&self, start: NonNull<T>, len: usize, mut items: impl Iterator<Item = T>) -> Res<&[T]> {
        const LOOK: usize = 1 << 14;
        let mut filled = 0;
        let mut write = |item| {
            // SAFETY: it is called for no more than `len` items.
            unsafe { start.add(filled).write(item) };
            // It stays below `len`.
            filled = filled.wrapping_add(1);
        };
        if len <= LOOK {
            items.take(len).for_each(write);
        } else {
            for piece in 0..len.div_ceil(LOOK) {
                items.by_ref().take(LOOK.min(len - piece * LOOK)).for_each(&mut write);
                self.look()?;
            }
        }
        // SAFETY: so many have been written.
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

    /// The same as [`Heap::alloc_with`] with a copy of a text.
    #[inline]
    pub(super) fn alloc_with_text<'h, T>(&'h self, text: &str, object: impl FnOnce(&'h str) -> T) -> Res<&'h T> {
        let start = self.block_with::<T, u8>(text.len())?;
        // SAFETY: behind the object the block has room for the text, which it then is a copy of. It lives as long as the
        // arena, which is borrowed for 'h.
        unsafe {
            let copy = start.add(1).cast::<u8>().as_ptr();
            for (i, piece) in text.as_bytes().chunks(1 << 18).enumerate() {
                if i > 0 {
                    self.look()?;
                }
                copy.add(i << 18).copy_from_nonoverlapping(piece.as_ptr(), piece.len());
            }
            start.write(object(std::str::from_utf8_unchecked(std::slice::from_raw_parts(copy, text.len()))));
            Ok(start.as_ref())
        }
    }

    /// The same as [`Heap::alloc_with`] with cells for `len` values: the items, then `nil`.
    #[inline]
    pub(super) fn alloc_with_cells<'h, T>(
        &'h self,
        len: usize,
        items: impl Iterator<Item = Value<'h>>,
        object: impl FnOnce(&'h [Cell<Value<'h>>]) -> T,
    ) -> Res<&'h T> {
        self.alloc_with(len, cells(items), object)
    }

    /// `len` cells that hold the default.
    pub(super) fn alloc_slots<T: Copy + Default>(&self, len: usize) -> Res<&[Cell<T>]> {
        self.alloc_slice(len, std::iter::repeat_with(Cell::default))
    }

    /// Cells for `len` values: the items, then `nil`.
    pub(super) fn alloc_cells<'h>(
        &'h self,
        len: usize,
        items: impl Iterator<Item = Value<'h>>,
    ) -> Res<&'h [Cell<Value<'h>>]> {
        self.alloc_slice(len, cells(items))
    }

    /// A function of the program.
    pub(crate) fn closure<'h>(
        &'h self,
        program: ProgramId,
        proto: &'h Proto,
        captures: impl ExactSizeIterator<Item = Value<'h>>,
    ) -> Res<Value<'h>> {
        let head = self.header();
        let count = captures.len();
        self.alloc_with(count, captures, |captures| Closure { head, program, proto, captures }).map(Value::Closure)
    }

    /// A function made of others.
    pub fn composed<'h>(&'h self, kind: Compose, parts: &[Value<'h>]) -> Res<Value<'h>> {
        let head = self.header();
        let composed = |parts| Composed { head, kind, parts };
        self.alloc_with(parts.len(), parts.iter().copied(), composed).map(Value::Composed)
    }

    /// A time value.
    pub fn time(&self, value: TimeValue) -> Res<Value<'_>> {
        Ok(Value::Time(self.alloc(Time { head: self.header(), value })?))
    }
}

/// The items, then `nil` without end, each in a cell.
fn cells<'h>(items: impl Iterator<Item = Value<'h>>) -> impl Iterator<Item = Cell<Value<'h>>> {
    items.chain(std::iter::repeat(Value::Nil)).map(Cell::new)
}

/// Reads cells that no one will write again: those of a finished vector.
pub(crate) fn cells_as_values<'h>(cells: &'h [Cell<Value<'h>>]) -> &'h [Value<'h>] {
    // SAFETY: `Cell<T>` has the layout of `T`. The cells between a buffer's `low` and `high`, and those of a builder
    // below its length, are written once before any view of them is made and never afterwards; a builder's cells may
    // be set again by `MapBuilder::set_value` only, which lends no views.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len()) }
}
