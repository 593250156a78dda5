//! The meter of a run: fuel, slices, the flag that ends a run from outside, and the point from which work is done
//! again.

use crate::code::Instr;
use crate::cost::{self, INSTRUCTION};
use crate::error::{Fault, Res};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most fuel between two polls, so that what is left can be counted in any unit.
const MAX_LEFT: u64 = 1 << 48;

/// The account of a run's fuel. Fuel is counted in units; the dispatch loop counts it in bytes of code ([`Fuel`]).
pub(crate) struct Meter {
    /// Fuel that may be spent before the next poll; negative when one is due. The fuel spent is `stop_at` minus this,
    /// so that a charge is one subtraction.
    left: Cell<Fuel>,
    /// The fuel left at the start of the instruction that is run again after a fault, relative to the same `stop_at`.
    left_at_restart: Cell<Fuel>,
    /// The fuel spent at which the next poll is due: the end of the slice, an interval of polling the flag, or the
    /// ceiling.
    stop_at: Cell<u64>,
    /// The end of the driver's slice.
    slice_end: Cell<u64>,
    /// The maximum fuel of the run.
    ceiling: Cell<u64>,
    /// Set from outside to end the run. While there is a flag, a built-in is not interrupted at the end of a slice.
    interrupt: RefCell<Option<Arc<AtomicBool>>>,
    /// Steps of prepaid work since the last poll.
    since_poll: Cell<usize>,
    /// Something was printed in this slice, and the driver wants to know.
    print_pending: Cell<bool>,
    /// The last charge in this slice at which work was stopped. It counts as spent although its work was not done.
    refused: Cell<u64>,
}

impl Meter {
    /// Creates a meter at zero, with an unlimited slice.
    pub(crate) fn new() -> Self {
        Meter {
            left: Cell::new(Fuel::of(MAX_LEFT.cast_signed())),
            left_at_restart: Cell::new(Fuel::of(MAX_LEFT.cast_signed())),
            stop_at: Cell::new(MAX_LEFT),
            slice_end: Cell::new(u64::MAX),
            ceiling: Cell::new(u64::MAX),
            interrupt: RefCell::new(None),
            since_poll: Cell::new(0),
            print_pending: Cell::new(false),
            refused: Cell::new(0),
        }
    }

    /// Returns the fuel spent so far.
    #[inline]
    pub(crate) fn spent(&self) -> u64 {
        self.stop_at.get().wrapping_sub(self.left.get().units().cast_unsigned())
    }

    /// Resets the fuel spent to what it was when an instruction started.
    pub(crate) fn set_spent(&self, spent: u64) {
        self.left.set(self.left_of(spent));
    }

    /// Resets the fuel spent to `spent`, where the stopped work started. Returns what was spent on it.
    pub(crate) fn take_back(&self, spent: u64) -> u64 {
        let undone = self.spent().saturating_sub(spent).saturating_sub(self.refused.take());
        self.set_spent(spent);
        undone
    }

    /// Adds fuel that was spent for this run elsewhere.
    pub(crate) fn add_spent(&self, fuel: u64) {
        self.set_spent(self.spent().saturating_add(fuel));
    }

    /// Returns the fuel left before the next poll; negative when one is due.
    #[inline]
    pub(crate) fn left(&self) -> Fuel {
        self.left.get()
    }

    /// Sets the fuel left, which the dispatch loop counts itself.
    #[inline]
    pub(crate) fn set_left(&self, left: Fuel) {
        self.left.set(left);
    }

    /// Makes the next poll due when `stop_at` has been spent, or [`MAX_LEFT`] more than now.
    fn stop_when(&self, stop_at: u64) {
        self.count_towards(stop_at.min(self.spent().saturating_add(MAX_LEFT)));
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

    /// Makes this the point from which work is done again after a fault.
    #[inline]
    pub(crate) fn set_restart(&self) {
        self.left_at_restart.set(self.left.get());
    }

    /// Moves the point from which work is done again before something that was paid for already.
    pub(crate) fn move_restart_before(&self, paid: Fuel) {
        self.left_at_restart.set(self.left_at_restart.get().plus(paid));
    }

    /// Returns the fuel spent at the point from which work is done again.
    pub(crate) fn restart_fuel(&self) -> u64 {
        self.stop_at.get().wrapping_sub(self.left_at_restart.get().units().cast_unsigned())
    }

    /// Charges fuel for work about to be done.
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

    /// Charges fuel for parts of work, `each` for each part. For a few parts, an overrun is only detected at the next
    /// poll, as it is for instructions.
    #[inline]
    pub(crate) fn charge_few(&self, parts: usize, each: u64) -> Res<()> {
        const FEW: usize = 8;
        if parts > FEW {
            return self.charge_and_poll((parts as u64).saturating_mul(each));
        }
        self.left.set(self.left.get().less_few(parts, each));
        Ok(())
    }

    /// Like [`Meter::charge`], for any amount, and when a poll may be due.
    #[cold]
    #[inline(never)]
    fn charge_and_poll(&self, fuel: u64) -> Res<()> {
        let left = self.left.get().spend(fuel);
        self.left.set(left);
        if left.is_over() { self.slow_poll().inspect_err(|_| self.refused.set(fuel)) } else { Ok(()) }
    }

    /// Charges fuel for text about to be copied. A short one is free: the value that it is part of was charged for.
    #[inline]
    pub(crate) fn charge_copy(&self, bytes: usize) -> Res<()> {
        if bytes < cost::SHORT { Ok(()) } else { self.charge(cost::copied(bytes)) }
    }

    /// Polls whatever may end or pause the run while a built-in is at work. Without a flag the end of the slice
    /// interrupts the work. With one the work continues, because interrupted work is done again from its start.
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

    /// Polls between two instructions, where a pause loses no work: the end of the slice always pauses. The instruction
    /// that is already counted is then not executed.
    #[cold]
    pub(crate) fn pause_or_go_on(&self) -> Res<()> {
        let is_over = self.spent() > self.slice_end.get();
        let polled = if is_over { Err(Fault::Pause(self.spent())) } else { self.slow_poll() };
        polled.inspect_err(|_| self.refused.set(INSTRUCTION))
    }

    /// Fails with [`Fault::Pause`] if the flag that ends the run is set. Costs no fuel.
    #[inline]
    pub(crate) fn poll_interrupt(&self) -> Res<()> {
        match &*self.interrupt.borrow() {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Fault::Pause(self.spent())),
            _ => Ok(()),
        }
    }

    /// Counts `steps` of prepaid work, and polls the flag every few thousand of them.
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

    /// Returns true if there is a flag that ends the run from outside.
    pub(crate) fn is_watched(&self) -> bool {
        self.interrupt.borrow().is_some()
    }

    /// Sets the flag that ends the run from outside.
    pub(crate) fn watch(&self, interrupt: Option<Arc<AtomicBool>>) {
        *self.interrupt.borrow_mut() = interrupt;
    }

    /// Gives the run fuel up to `slice_end`, and in total up to `ceiling`.
    pub(crate) fn set_slice(&self, slice_end: u64, ceiling: u64) {
        self.slice_end.set(slice_end.min(ceiling));
        self.ceiling.set(ceiling);
        self.stop_when(slice_end.min(ceiling));
        self.print_pending.set(false);
        self.refused.set(0);
    }

    /// Ends the slice here, because the driver wants to be informed of a printed line: the run pauses before its next
    /// piece of work.
    pub(crate) fn pause_for_print(&self) {
        self.print_pending.set(true);
        self.stop_when(self.spent());
    }

    /// Runs work that costs no fuel of the run. It fails with [`Fault::Pause`] when the flag that ends the run is set;
    /// without a flag, after work that costs `unwatched`.
    pub(crate) fn unmetered<T>(&self, unwatched: u64, work: impl FnOnce() -> T) -> T {
        let max = if self.is_watched() { 0 } else { unwatched };
        self.aside(max, u64::MAX, work)
    }

    /// Runs work that costs no fuel of the run. It fails with [`Fault::Pause`] after work that costs `max`, with or
    /// without a flag.
    pub(crate) fn bounded<T>(&self, max: u64, work: impl FnOnce() -> T) -> T {
        self.aside(max, self.spent().saturating_add(max), work)
    }

    /// Runs work on a separate account: with a poll after it has spent `first`, and never beyond the ceiling.
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

/// Fuel, as the bytes of code that it pays for; negative if more was spent than was left.
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
    /// The cost of one instruction.
    pub(crate) const ONE: Fuel = Fuel::of(INSTRUCTION.cast_signed());

    /// Converts units; the excess of a value that does not fit is cut.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    pub(crate) const fn of(units: i64) -> Fuel {
        Fuel(units.saturating_mul(BYTES_PER_UNIT) as isize)
    }

    /// Returns the fuel that pays for this many bytes of code.
    #[inline(always)]
    pub(crate) const fn of_bytes(bytes: isize) -> Fuel {
        Fuel(bytes)
    }

    /// Returns the bytes of code that it pays for.
    #[inline(always)]
    pub(crate) const fn bytes(self) -> isize {
        self.0
    }

    /// Returns it in units.
    #[inline(always)]
    pub(crate) const fn units(self) -> i64 {
        (self.0 as i64).div_euclid(BYTES_PER_UNIT)
    }

    /// Returns the difference; `None` if it is less than `cost`.
    #[inline(always)]
    pub(crate) fn less(self, cost: Fuel) -> Option<Fuel> {
        (self.0 >= cost.0).then(|| Fuel(self.0 - cost.0))
    }

    /// Returns the fuel left after spending `each` for each of a few parts.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    fn less_few(self, parts: usize, each: u64) -> Fuel {
        Fuel(self.0.wrapping_sub_unsigned(parts.wrapping_mul(each as usize * BYTES)))
    }

    /// Returns the sum.
    pub(crate) const fn plus(self, more: Fuel) -> Fuel {
        Fuel(self.0.saturating_add(more.0))
    }

    /// Returns the fuel left after spending `units`; `None` if that is more than is left, or too large for this fast
    /// path.
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

    /// Returns the fuel left after spending `units`; negative if that is more than was left.
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    pub(crate) fn spend(self, units: u64) -> Fuel {
        // High enough above the minimum that adding unchecked amounts for code cannot reach it.
        const LEAST: isize = isize::MIN + (1 << 60);
        let bytes = (units as usize).saturating_mul(BYTES);
        Fuel(self.0.saturating_sub_unsigned(bytes).max(LEAST))
    }

    /// Returns true if it is negative: more was spent than was left.
    #[inline(always)]
    pub(crate) fn is_over(self) -> bool {
        self.0 < 0
    }
}
