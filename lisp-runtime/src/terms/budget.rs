//! Budgets: amounts that many runs share.

use super::outcome::{Figures, Usage};
use super::place::Place;
use lisp_core::{Error, Reason};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Amounts of resources. `None` is not counted; in a [`Budget`] it is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amounts {
    /// Number of runs that are started. A program given as source counts even if it, or a set-up program given as source,
    /// does not compile. A request whose tools are invalid starts no run.
    pub runs: Option<u64>,
    /// Units of fuel.
    pub fuel: Option<u64>,
    /// Number of tool calls that are started.
    ///
    /// A call counts from the moment that it is allowed. Calls do not count if they are denied, rejected, dropped
    /// because the run ends first, served from the cache, or replayed from a record.
    pub calls: Option<u64>,
    /// Bytes that programs allocate ([`Usage::allocated_bytes`]).
    pub bytes: Option<u64>,
}

impl Amounts {
    /// Creates amounts that are all uncounted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of runs.
    #[must_use]
    pub fn with_runs(self, runs: u64) -> Self {
        Amounts { runs: Some(runs), ..self }
    }

    /// Sets the maximum fuel, in units.
    #[must_use]
    pub fn with_fuel(self, fuel: u64) -> Self {
        Amounts { fuel: Some(fuel), ..self }
    }

    /// Sets the maximum number of tool calls.
    #[must_use]
    pub fn with_calls(self, calls: u64) -> Self {
        Amounts { calls: Some(calls), ..self }
    }

    /// Sets the maximum number of allocated bytes.
    #[must_use]
    pub fn with_bytes(self, bytes: u64) -> Self {
        Amounts { bytes: Some(bytes), ..self }
    }
}

/// Amounts that runs share, for example all runs of a tenant.
///
/// Clones share the budget, across threads, engines and isolations. [`crate::Input::budget`] makes a run pay from it. A
/// run that needs an amount of which nothing is left ends with `budget_exceeded`. The host refills the budget when it
/// wants to.
///
/// - Runs and fuel are taken before a run starts: one run, and its fuel limit, or the fuel that is left if that is
///   less. Unused fuel is returned when the run ends. If its end is not seen, because its [`Waiting`](crate::progress::Waiting)
///   was dropped or its process was killed while it computed, all of its fuel counts as used. A process that is killed while it
///   waits for a call pays for its work up to that call.
/// - Each tool call is taken before it is made. Calls of parallel workers are counted in program order. So timing does
///   not decide which of them finds the budget empty, unless other runs use the budget too. Calls that were discarded
///   because an earlier call failed are paid for; later calls of the run use their payments. An earlier worker never
///   finds the budget empty because of a call that a later worker has already made. For this, each run may overdraw the
///   calls by less than a tenth of what was left for it.
/// - Bytes are taken when a run ends. Runs in progress may overdraw them.
///
/// ```
/// use lisp_runtime::{Amounts, Budget, Engine, Input, Reason};
/// let budget = Budget::new(Amounts::new().with_runs(1));
/// let engine = Engine::default();
/// assert_eq!(engine.eval("(+ 1 2)", Input::new().budget(&budget)).value::<i64>()?, 3);
/// let second = engine.eval("(+ 1 2)", Input::new().budget(&budget));
/// assert_eq!(second.problem().map(|problem| problem.reason()), Some(Reason::BudgetExceeded));
/// budget.refill(&Amounts::new().with_runs(10));
/// assert_eq!(budget.left().runs, Some(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Budget {
    account: Arc<Mutex<Account>>,
    /// What one run has paid, if it can be suspended and resumed.
    bill: Option<Arc<Mutex<Bill>>>,
}

/// What is left of a budget, and what may still be returned to it.
#[derive(Debug)]
struct Account {
    left: Amounts,
    /// The fuel that runs in progress have taken and may return.
    held_fuel: u64,
    /// The calls that were taken and have not started: they may be returned.
    held_calls: u64,
    /// The number of calls of [`Budget::refill_to`].
    refills: u64,
}

/// Fuel that a run has taken and may return. It counts as left when the budget is refilled.
#[derive(Debug)]
struct Held {
    account: Arc<Mutex<Account>>,
    fuel: u64,
}

impl Held {
    /// Ends the hold: the fuel is returned, or will not be.
    fn release(&mut self, account: &mut Account) {
        account.held_fuel = account.held_fuel.saturating_sub(std::mem::take(&mut self.fuel));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.fuel > 0 {
            let account = self.account.clone();
            self.release(&mut account.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// What a run has paid so far, over all its attempts. A new attempt replays earlier ones, so what they paid counts for
/// it too.
#[derive(Debug, Default)]
struct Bill {
    /// The number of the current or last attempt.
    attempt: u64,
    /// The run itself is paid.
    has_begun: bool,
    fuel: u64,
    bytes: u64,
    /// The fuel and bytes that earlier attempts are known to have used.
    known: (u64, u64),
    /// What the current attempt may return.
    held: Option<Held>,
    /// The refills before the end of the last attempt, if its use is not known: what it may have left over is of no use after the next.
    unknown_at: Option<u64>,
    /// The calls that earlier attempts have started.
    calls: BTreeSet<Place>,
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Budget").field(&self.left()).finish()
    }
}

impl Budget {
    /// Creates a budget with these amounts.
    pub fn new(amounts: Amounts) -> Self {
        let account = Account { left: amounts, held_fuel: 0, held_calls: 0, refills: 0 };
        Budget { account: Arc::new(Mutex::new(account)), bill: None }
    }

    /// Returns this budget for one run that may be suspended and resumed from its record, any number of times.
    ///
    /// What one attempt of the run has paid, the next one does not pay again. Give each attempt this value or a clone
    /// of it. A suspended attempt has used what its program had used at its last call, and returns the rest. If it was
    /// suspended in parallel work, its use is not known, and it returns nothing. The next attempt continues with what
    /// it paid, unless [`Budget::refill_to`] was called in between: then it pays for its work again.
    #[must_use]
    pub fn for_one_run(&self) -> Self {
        Budget { account: self.account.clone(), bill: Some(Arc::default()) }
    }

    /// Notes that a run, and these calls of it, started before this budget was created, so that they are not paid
    /// again. Does nothing unless the budget is from [`Budget::for_one_run`].
    pub fn note_paid(&self, calls: impl IntoIterator<Item = Place>) {
        if let Some(mut bill) = self.bill() {
            bill.has_begun = true;
            bill.calls.extend(calls);
        }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If both are locked, the account is locked first.
    fn bill(&self) -> Option<MutexGuard<'_, Bill>> {
        self.bill.as_ref().map(|bill| bill.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns what is left. Fuel and calls that runs in progress have taken are not included.
    pub fn left(&self) -> Amounts {
        self.account().left
    }

    /// Raises what is left to at least these amounts; unlimited amounts stay unlimited. So regular refills do not
    /// accumulate.
    ///
    /// What runs in progress have taken and may return counts as left.
    pub fn refill_to(&self, full: &Amounts) {
        let mut account = self.account();
        account.refills += 1;
        let (held_fuel, held_calls) = (account.held_fuel, account.held_calls);
        let Amounts { runs, fuel, calls, bytes } = &mut account.left;
        for (part, full, held) in [
            (runs, full.runs, 0),
            (fuel, full.fuel, held_fuel),
            (calls, full.calls, held_calls),
            (bytes, full.bytes, 0),
        ] {
            if let (Some(part), Some(full)) = (part, full) {
                *part = (*part).max(full.saturating_sub(held));
            }
        }
    }

    /// Adds to what is left, for counted amounts.
    pub fn refill(&self, more: &Amounts) {
        let mut account = self.account();
        let Amounts { runs, fuel, calls, bytes } = &mut account.left;
        for (part, more) in [(runs, more.runs), (fuel, more.fuel), (calls, more.calls), (bytes, more.bytes)] {
            if let (Some(part), Some(more)) = (part, more) {
                *part = part.saturating_add(more);
            }
        }
    }

    /// Takes what a run with this fuel limit may use; 0 is no limit.
    pub(crate) fn begin(&self, limit: u64) -> Result<Taken, Error> {
        let mut account = self.account();
        let mut bill = self.bill();
        let mut left = account.left;
        let has_begun = bill.as_ref().is_some_and(|bill| bill.has_begun);
        let paid = bill.as_ref().map_or((0, 0), |bill| match bill.unknown_at {
            Some(refills) if refills != account.refills => (bill.known.0, bill.bytes),
            _ => (bill.fuel, bill.bytes),
        });
        left.fuel = left.fuel.map(|fuel| fuel.saturating_add(paid.0));
        // Bytes are paid at the end: what was paid stays paid, and is enough to start again.
        let bytes = left.bytes.map(|bytes| bytes.saturating_add(paid.1));
        let runs = left.runs.filter(|_| !has_begun);
        for (part, name) in [(runs, "runs"), (left.fuel, "fuel"), (left.calls, "calls"), (bytes, "bytes")] {
            // A run without calls needs none.
            if part == Some(0) && name != "calls" {
                return Err(empty(name));
            }
        }
        if let Some(runs) = left.runs.as_mut().filter(|_| !has_begun) {
            *runs -= 1;
        }
        let fuel = left.fuel.as_mut().map(|left| {
            let taken = if limit == 0 { *left } else { limit.min(*left) };
            *left -= taken;
            taken
        });
        account.left = left;
        // What earlier attempts are known to have used is not returned.
        let known = bill.as_ref().map_or(0, |bill| bill.known.0);
        if let Some(before) = bill.as_mut().and_then(|bill| bill.held.as_mut()) {
            before.release(&mut account);
        }
        let held = fuel.unwrap_or(0).saturating_sub(known);
        account.held_fuel = account.held_fuel.saturating_add(held);
        let mut held = Some(Held { account: self.account.clone(), fuel: held });
        let attempt = bill.as_mut().map_or(0, |bill| {
            (bill.attempt, bill.has_begun) = (bill.attempt + 1, true);
            (bill.fuel, bill.unknown_at) = (fuel.unwrap_or(0), None);
            // The one before is released: dropping it takes no lock.
            bill.held = held.take();
            bill.attempt
        });
        let is_less = fuel.is_some_and(|fuel| limit == 0 || fuel < limit);
        Ok(Taken { budget: self.clone(), fuel, held, is_less, attempt, used: None, is_settled: false })
    }

    /// Returns whether an earlier attempt of the run has paid for this call.
    pub(crate) fn has_paid(&self, place: &Place) -> bool {
        self.bill().is_some_and(|bill| bill.calls.contains(place))
    }

    /// Takes one call. Returns `None` when calls are not counted.
    pub(crate) fn take_call(&self, run: &Arc<Payments>) -> Result<Option<Arc<PaidCall>>, Error> {
        let mut account = self.account();
        match &mut account.left.calls {
            Some(0) => return Err(empty("calls")),
            Some(calls) => *calls -= 1,
            None => return Ok(None),
        }
        account.held_calls += 1;
        drop(account);
        run.paid.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Arc::new(PaidCall { budget: self.clone(), run: run.clone(), payment: Arc::default() })))
    }
}

/// The calls of a run that its budget has paid for. Discarded calls stay paid; later calls use their payments.
#[derive(Debug, Default)]
pub(crate) struct Payments {
    paid: AtomicU64,
    /// For calls whose turn has come.
    counted: AtomicU64,
}

impl Payments {
    /// Returns the number of calls that were paid for.
    pub(crate) fn paid(&self) -> u64 {
        self.paid.load(Ordering::Relaxed)
    }

    /// Returns how many of them have not had their turn.
    pub(crate) fn ahead(&self) -> u64 {
        self.paid().saturating_sub(self.counted.load(Ordering::Relaxed))
    }

    /// Counts a call whose turn has come.
    pub(crate) fn count(&self, payment: &Payment) {
        payment.is_counted.store(true, Ordering::Relaxed);
        self.counted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that was paid in advance and whose turn has come. If other calls used its payment, the budget pays
    /// again.
    ///
    /// # Errors
    /// The budget is empty.
    pub(crate) fn count_late(self: &Arc<Self>, payment: &Payment, budget: &Budget) -> Result<(), Error> {
        if !payment.is_back() {
            self.charge(budget)?;
            payment.is_counted.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Counts a call against an advance payment, or else the budget pays now.
    ///
    /// # Errors
    /// The budget is empty.
    pub(crate) fn charge(self: &Arc<Self>, budget: &Budget) -> Result<(), Error> {
        if self.ahead() == 0
            && let Some(more) = budget.take_call(self)?
        {
            more.begin();
        }
        self.counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Counts a call against an advance payment. Returns false if there is none.
    pub(crate) fn take_ahead(&self) -> bool {
        let is_there = self.ahead() > 0;
        self.counted.fetch_add(u64::from(is_there), Ordering::Relaxed);
        is_there
    }
}

/// The payment for a call.
#[derive(Debug, Default)]
pub(crate) struct Payment {
    /// `OPEN`, then one of the others.
    state: AtomicU8,
    /// The turn of the call has come.
    is_counted: AtomicBool,
}

/// The call has not started.
const OPEN: u8 = 0;
/// The call has started: it is paid.
const BEGUN: u8 = 1;
/// The call will not be made: its payment was returned.
const BACK: u8 = 2;

impl Payment {
    /// Changes `OPEN` to this state.
    ///
    /// # Errors
    /// The state that replaced `OPEN` before.
    fn leave_open(&self, state: u8) -> Result<(), u8> {
        self.state.compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    fn is_back(&self) -> bool {
        self.state.load(Ordering::Acquire) == BACK
    }
}

/// A call that a budget has paid for. If it is dropped before the call starts, the payment is returned.
#[derive(Debug)]
pub(crate) struct PaidCall {
    budget: Budget,
    run: Arc<Payments>,
    payment: Arc<Payment>,
}

impl PaidCall {
    /// Starts the call. Returns false if the payment was returned: then the call must not be made.
    pub(crate) fn begin(&self) -> bool {
        let before = self.payment.leave_open(BEGUN);
        if before.is_ok() {
            self.budget.account().held_calls -= 1;
        }
        before != Err(BACK)
    }

    /// Returns the payment, unless the call has started.
    pub(crate) fn give_back(&self) {
        if self.payment.leave_open(BACK).is_err() {
            return;
        }
        let mut account = self.budget.account();
        account.held_calls -= 1;
        if let Some(calls) = &mut account.left.calls {
            *calls = calls.saturating_add(1);
        }
        drop(account);
        self.run.paid.fetch_sub(1, Ordering::Relaxed);
        if self.payment.is_counted.load(Ordering::Relaxed) {
            self.run.counted.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn payment(&self) -> &Arc<Payment> {
        &self.payment
    }
}

impl Drop for PaidCall {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// What a run has taken from a budget.
#[derive(Debug)]
pub(crate) struct Taken {
    budget: Budget,
    /// The fuel, if it is counted.
    pub(crate) fuel: Option<u64>,
    /// How much of it may come back, unless the bill has that.
    held: Option<Held>,
    /// Whether it is less than the limit of the run.
    pub(crate) is_less: bool,
    /// The attempt of the run that took it.
    attempt: u64,
    /// Fuel and bytes used by now, if known.
    used: Option<(u64, u64)>,
    is_settled: bool,
}

impl Taken {
    /// Notes what the run has used by now; `None` while the use of workers is not known.
    pub(crate) fn note(&mut self, figures: Option<&Figures>) {
        self.used = figures.map(|figures| (figures.fuel, figures.allocated_bytes));
    }

    /// Returns what was taken for a run that did not start. It still counts as a run.
    pub(crate) fn give_back(self) {
        self.settle(&Usage::default(), true);
    }

    /// Returns what a run has not used. One that was killed (not `certain`) has used everything.
    pub(crate) fn settle(mut self, usage: &Usage, certain: bool) {
        self.pay(certain.then_some(usage.fuel), usage.allocated_bytes);
    }

    /// Pays for `fuel`, or for everything that was taken.
    fn pay(&mut self, fuel: Option<u64>, bytes: u64) {
        self.is_settled = true;
        let mut account = self.budget.account();
        if let Some(held) = &mut self.held {
            held.release(&mut account);
        }
        let mut bill = self.budget.bill();
        // The next attempt now holds what this one took.
        if bill.as_ref().is_some_and(|bill| bill.attempt != self.attempt) {
            return;
        }
        if let Some(held) = bill.as_mut().and_then(|bill| bill.held.as_mut()) {
            held.release(&mut account);
        }
        let taken = self.fuel.unwrap_or(0);
        let known = bill.as_ref().map_or((0, 0), |bill| bill.known);
        // An attempt that ends during its replay still pays what earlier attempts used.
        let fuel = fuel.map_or(taken, |fuel| fuel.max(known.0).min(taken));
        // What earlier attempts paid is paid.
        let paid = bill.as_ref().map_or(0, |bill| bill.bytes);
        let more = bytes.max(known.1).saturating_sub(paid);
        let left = &mut account.left;
        if let Some(left) = &mut left.fuel {
            *left = left.saturating_add(taken - fuel);
        }
        let more = left.bytes.map_or(0, |left| more.min(left));
        left.bytes = left.bytes.map(|left| left - more);
        if let Some(bill) = &mut bill {
            (bill.fuel, bill.bytes) = (fuel, paid + more);
            bill.known = (fuel, bill.bytes);
        }
    }

    /// Returns the error of a run that has used up its fuel, which the budget had reduced.
    pub(crate) fn explain(&self, error: Error) -> Error {
        if error.reason != Reason::FuelExhausted || !self.is_less {
            return error;
        }
        let fuel = self.fuel.unwrap_or(0);
        let message = format!("the run needs more than the {fuel} units of fuel that were left in the budget");
        let mut budget = empty("fuel").detail("fuel", fuel);
        budget.message = message;
        Error { span: error.span, trace: error.trace, ..budget }
    }
}

impl Drop for Taken {
    /// Settles a run whose end is not seen. One that can be resumed has used what is known.
    fn drop(&mut self) {
        if self.is_settled || self.budget.bill.is_none() {
            return;
        }
        if let Some((fuel, bytes)) = self.used {
            return self.pay(Some(fuel), bytes);
        }
        let mut account = self.budget.account();
        if let Some(mut bill) = self.budget.bill().filter(|bill| bill.attempt == self.attempt) {
            if let Some(held) = &mut bill.held {
                held.release(&mut account);
            }
            bill.unknown_at = Some(account.refills);
        }
    }
}

/// Returns the error of a run that finds an amount of its budget empty.
fn empty(part: &'static str) -> Error {
    Error::new(Reason::BudgetExceeded, format!("the budget that the run shares with others has no {part} left"))
        .hint("run it again when the budget has been refilled, or ask the host for a larger one; a program cannot change it")
        .detail("part", part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that was taken and may be returned counts as left when the budget is refilled.
    #[test]
    fn calls_that_may_be_returned_do_not_add_up() {
        let full = Amounts::new().with_calls(3);
        let budget = Budget::new(full);
        let run = Arc::new(Payments::default());
        let take = || budget.take_call(&run).unwrap().unwrap();
        let left = || budget.left().calls.unwrap();
        let (first, second) = (take(), take());
        budget.refill_to(&full);
        assert_eq!(left(), 1);
        drop(first);
        assert_eq!(left(), 2);
        budget.refill_to(&full);
        assert_eq!(left(), 2);
        assert!(second.begin() && second.begin());
        drop(second);
        assert_eq!(left(), 2);
        budget.refill_to(&full);
        assert_eq!(left(), 3);
        let third = take();
        budget.refill(&Amounts::new().with_calls(1));
        drop(third);
        assert_eq!(left(), 4);
    }
}
