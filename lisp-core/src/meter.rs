//! The meter of a run: fuel spent, slices, the flag that ends a run from outside, and where work is done again from.

use crate::code::Instr;
use crate::cost::{self, INSTRUCTION};
use crate::error::{Fault, Res};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most fuel between two polls, so that what is left can be counted in any unit.
const MOST_LEFT: u64 = 1 << 48;

/// The account of a run's fuel. Fuel is counted in units; the dispatch loop counts it in bytes of code ([`Fuel`]).
pub(crate) struct Meter {
    /// Fuel that may still be spent before the next poll; negative when one is due. What was spent is `stop_at` less
    /// this, so that a charge is one subtraction.
    left: Cell<Fuel>,
    /// What was left where the instruction began that is run again after a fault, counted towards the same `stop_at`.
    left_at_restart: Cell<Fuel>,
    /// The fuel spent at which the next poll is due: the end of the slice, an interval under a flag, the ceiling.
    stop_at: Cell<u64>,
    /// Where the slice ends that the driver gave.
    slice_end: Cell<u64>,
    /// What may be spent at all.
    ceiling: Cell<u64>,
    /// Set from outside to end the run. While there is a flag, a built-in is not cut short at the end of a slice.
    interrupt: RefCell<Option<Arc<AtomicBool>>>,
    /// Steps of work that was paid for before, since the last poll.
    since_poll: Cell<usize>,
    /// Something was printed in this slice, and the driver wants to know.
    print_pending: Cell<bool>,
    /// The charge at which work was stopped last in this slice: it is counted as spent, and what it is for was not done.
    refused: Cell<u64>,
}

impl Meter {
    /// A meter at zero, without an end to its slice.
    pub(crate) fn new() -> Self {
        Meter {
            left: Cell::new(Fuel::of(MOST_LEFT.cast_signed())),
            left_at_restart: Cell::new(Fuel::of(MOST_LEFT.cast_signed())),
            stop_at: Cell::new(MOST_LEFT),
            slice_end: Cell::new(u64::MAX),
            ceiling: Cell::new(u64::MAX),
            interrupt: RefCell::new(None),
            since_poll: Cell::new(0),
            print_pending: Cell::new(false),
            refused: Cell::new(0),
        }
    }

    /// Fuel spent so far.
    #[inline]
    pub(crate) fn spent(&self) -> u64 {
        self.stop_at.get().wrapping_sub(self.left.get().units().cast_unsigned())
    }

    /// Puts the fuel spent back to what it was when an instruction began.
    pub(crate) fn set_spent(&self, spent: u64) {
        self.left.set(self.left_of(spent));
    }

    /// Puts the fuel spent back to `spent`, where the work began that was stopped. Returns what has been worked off since then.
    pub(crate) fn take_back(&self, spent: u64) -> u64 {
        let undone = self.spent().saturating_sub(spent).saturating_sub(self.refused.take());
        self.set_spent(spent);
        undone
    }

    /// Takes fuel that was spent elsewhere for this run on the account.
    pub(crate) fn add_spent(&self, fuel: u64) {
        self.set_spent(self.spent().saturating_add(fuel));
    }

    /// Fuel left before the next poll; negative when one is due.
    #[inline]
    pub(crate) fn left(&self) -> Fuel {
        self.left.get()
    }

    /// Sets the fuel left, which the dispatch loop counts on its own.
    #[inline]
    pub(crate) fn set_left(&self, left: Fuel) {
        self.left.set(left);
    }

    /// The next poll is due when `stop_at` has been spent, or [`MOST_LEFT`] more than now.
    fn stop_when(&self, stop_at: u64) {
        self.count_towards(stop_at.min(self.spent().saturating_add(MOST_LEFT)));
    }

    fn count_towards(&self, stop_at: u64) {
        let (spent, restart) = (self.spent(), self.restart_fuel());
        self.stop_at.set(stop_at);
        self.set_spent(spent);
        self.left_at_restart.set(self.left_of(restart));
    }

    fn left_of(&self, spent: u64) -> Fuel {
        Fuel::of(self.stop_at.get().wrapping_sub(spent).cast_signed())
    }

    /// After a fault, work is done again from here.
    #[inline]
    pub(crate) fn set_restart(&self) {
        self.left_at_restart.set(self.left.get());
    }

    /// Moves the point from which work is done again before something that was paid for already.
    pub(crate) fn move_restart_before(&self, paid: Fuel) {
        self.left_at_restart.set(self.left_at_restart.get().plus(paid));
    }

    /// The fuel that was spent where work is done again from.
    pub(crate) fn restart_fuel(&self) -> u64 {
        self.stop_at.get().wrapping_sub(self.left_at_restart.get().units().cast_unsigned())
    }

    /// Spends fuel for work about to be done.
    #[inline]
    pub(crate) fn charge(&self, fuel: u64) -> Res<()> {
        match self.left.get().spend_small(fuel) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => self.charge_and_poll(fuel),
        }
    }

    /// Spends fuel for parts of work, `each` for each of them. If they are few, that it was too much is seen at the next poll:
    /// as for instructions, which are paid for in the same way.
    #[inline]
    pub(crate) fn charge_few(&self, parts: usize, each: u64) -> Res<()> {
        const FEW: usize = 8;
        if parts > FEW {
            return self.charge_and_poll((parts as u64).saturating_mul(each));
        }
        self.left.set(self.left.get().less_few(parts, each));
        Ok(())
    }

    /// As [`Meter::charge`], for any sum and when a poll may be due.
    #[cold]
    #[inline(never)]
    fn charge_and_poll(&self, fuel: u64) -> Res<()> {
        let left = self.left.get().spend(fuel);
        self.left.set(left);
        if left.is_over() { self.slow_poll().inspect_err(|_| self.refused.set(fuel)) } else { Ok(()) }
    }

    /// Spends fuel for text about to be copied: for a short one it is nothing, as what it is a part of was charged for.
    #[inline]
    pub(crate) fn charge_copy(&self, bytes: usize) -> Res<()> {
        if bytes < cost::SHORT { Ok(()) } else { self.charge(cost::copied(bytes)) }
    }

    /// Polls what may end or pause the run while a built-in is at work. Without a flag the slice is obeyed; with one
    /// the work goes on, because work that is cut short is done again from its start.
    #[cold]
    fn slow_poll(&self) -> Res<()> {
        const INTERVAL: u64 = 4_096;
        let spent = self.spent();
        if self.print_pending.get() {
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

    /// Polls between two instructions, where a pause costs nothing: the end of the slice is obeyed. The instruction that is counted
    /// already is not done then.
    #[cold]
    pub(crate) fn pause_or_go_on(&self) -> Res<()> {
        let is_over = self.spent() > self.slice_end.get();
        let polled = if is_over { Err(Fault::Pause(self.spent())) } else { self.slow_poll() };
        polled.inspect_err(|_| self.refused.set(INSTRUCTION))
    }

    /// Fails with [`Fault::Pause`] when the flag is set that ends the run. Costs no fuel.
    #[inline]
    pub(crate) fn poll_interrupt(&self) -> Res<()> {
        match &*self.interrupt.borrow() {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Fault::Pause(self.spent())),
            _ => Ok(()),
        }
    }

    /// Counts `steps` of work that was paid for before, and polls the flag every few thousand of them.
    #[inline]
    pub(crate) fn poll_every(&self, steps: usize) -> Res<()> {
        const BETWEEN_POLLS: usize = 4_096;
        let since_poll = self.since_poll.get().saturating_add(steps);
        if since_poll < BETWEEN_POLLS {
            self.since_poll.set(since_poll);
            return Ok(());
        }
        self.since_poll.set(0);
        self.poll_interrupt()
    }

    /// Is there a flag that ends the run from outside?
    pub(crate) fn is_watched(&self) -> bool {
        self.interrupt.borrow().is_some()
    }

    /// Sets the flag that ends the run from outside.
    pub(crate) fn watch(&self, interrupt: Option<Arc<AtomicBool>>) {
        *self.interrupt.borrow_mut() = interrupt;
    }

    /// Gives the run fuel up to `slice_end`, and in all up to `ceiling`.
    pub(crate) fn set_slice(&self, slice_end: u64, ceiling: u64) {
        self.slice_end.set(slice_end.min(ceiling));
        self.ceiling.set(ceiling);
        self.stop_when(slice_end.min(ceiling));
        self.print_pending.set(false);
        self.refused.set(0);
    }

    /// Ends the slice here, because the driver wants to know of a printed line: the run pauses before its next piece
    /// of work.
    pub(crate) fn pause_for_print(&self) {
        self.print_pending.set(true);
        self.stop_when(self.spent());
    }

    /// Runs work that spends no fuel of the run. It fails with [`Fault::Pause`] when the flag is set that ends the run;
    /// without a flag, when it has done what costs `unwatched`.
    pub(crate) fn unmetered<T>(&self, unwatched: u64, work: impl FnOnce() -> T) -> T {
        let most = if self.is_watched() { 0 } else { unwatched };
        self.aside(most, u64::MAX, work)
    }

    /// Runs work that spends no fuel of the run. It fails with [`Fault::Pause`] when it has done what costs `most`,
    /// whether there is a flag or not.
    pub(crate) fn bounded<T>(&self, most: u64, work: impl FnOnce() -> T) -> T {
        self.aside(most, self.spent().saturating_add(most), work)
    }

    /// Runs work on an account of its own: with a poll when it has spent `first`, and never beyond the ceiling.
    fn aside<T>(&self, first: u64, ceiling: u64, work: impl FnOnce() -> T) -> T {
        let spent = self.spent();
        let (stop_at, ceiling) = (self.stop_at.get(), self.ceiling.replace(ceiling));
        self.stop_when(spent.saturating_add(first));
        let print_pending = self.print_pending.replace(false);
        let done = work();
        self.print_pending.set(print_pending);
        self.ceiling.set(ceiling);
        self.refused.set(0);
        self.set_spent(spent);
        self.count_towards(stop_at);
        done
    }
}

/// Fuel as the bytes of code that it pays for, if no built-in takes its part; negative when more was spent than there
/// was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fuel(isize);

const INSTR_BYTES: isize = size_of::<Instr>().cast_signed();

/// Bytes of code that one unit of fuel pays for.
const BYTES_PER_UNIT: i64 = INSTR_BYTES as i64 / INSTRUCTION.cast_signed();

const _: () = assert!(BYTES_PER_UNIT * INSTRUCTION.cast_signed() == INSTR_BYTES as i64);
const _: () = assert!(size_of::<usize>() == size_of::<u64>(), "fuel of 64 bits is counted in an address");

#[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
const BYTES: usize = BYTES_PER_UNIT.cast_unsigned() as usize;

impl Fuel {
    /// What one instruction costs.
    pub(crate) const ONE: Fuel = Fuel::of(INSTRUCTION.cast_signed());

    /// Fuel of `units`; what its bytes could not express is cut.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    pub(crate) const fn of(units: i64) -> Fuel {
        Fuel(units.saturating_mul(BYTES_PER_UNIT) as isize)
    }

    /// Fuel that pays for this many bytes of code.
    #[inline(always)]
    pub(crate) const fn of_bytes(bytes: isize) -> Fuel {
        Fuel(bytes)
    }

    /// The bytes of code that it pays for.
    #[inline(always)]
    pub(crate) const fn bytes(self) -> isize {
        self.0
    }

    /// In units.
    #[inline(always)]
    pub(crate) const fn units(self) -> i64 {
        (self.0 as i64).div_euclid(BYTES_PER_UNIT)
    }

    /// The difference; `None` when it is less than `cost`.
    #[inline(always)]
    pub(crate) fn less(self, cost: Fuel) -> Option<Fuel> {
        (self.0 >= cost.0).then(|| Fuel(self.0 - cost.0))
    }

    /// The fuel left after spending `each` for each of a few parts.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    fn less_few(self, parts: usize, each: u64) -> Fuel {
        Fuel(self.0.wrapping_sub_unsigned(parts.wrapping_mul(each as usize * BYTES)))
    }

    /// The sum.
    pub(crate) const fn plus(self, more: Fuel) -> Fuel {
        Fuel(self.0.saturating_add(more.0))
    }

    /// The fuel left after spending `units`; `None` when that is more than there was, or the sum is a large one.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    pub(crate) fn spend_small(self, units: u64) -> Option<Fuel> {
        const SMALL: u64 = 1 << 30;
        if units >= SMALL {
            return None;
        }
        let left = self.0.wrapping_sub_unsigned(units as usize * BYTES);
        (left >= 0).then_some(Fuel(left))
    }

    /// The fuel left after spending `units`, negative when that is more than there was.
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    pub(crate) fn spend(self, units: u64) -> Fuel {
        // So far above the least number that sums of code, which are looked at, never get there.
        const LEAST: isize = isize::MIN + (1 << 60);
        let bytes = (units as usize).saturating_mul(BYTES);
        Fuel(self.0.saturating_sub_unsigned(bytes).max(LEAST))
    }

    /// Is it negative: was more spent than there was?
    #[inline(always)]
    pub(crate) fn is_over(self) -> bool {
        self.0 < 0
    }
}
