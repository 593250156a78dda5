//! Budgets: what many runs may use together.

use super::outcome::{Figures, Usage};
use super::place::Place;
use lisp_core::{Error, Reason};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Amounts of what runs use. `None` is not counted, and without end in a [`Budget`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amounts {
    /// Runs that are begun.
    pub runs: Option<u64>,
    /// Units of fuel.
    pub fuel: Option<u64>,
    /// Calls of tools that are begun: not those that are refused, rejected, left out as the run ends before their turn, served from
    /// an earlier result, or replayed from a record. A call holds its place from the moment that it is allowed.
    pub calls: Option<u64>,
    /// Bytes that programs allocate ([`Usage::allocated_bytes`]).
    pub bytes: Option<u64>,
}

impl Amounts {
    /// Nothing is counted.
    pub fn new() -> Self {
        Self::default()
    }

    /// With so many runs.
    #[must_use]
    pub fn with_runs(self, runs: u64) -> Self {
        Amounts { runs: Some(runs), ..self }
    }

    /// With so many units of fuel.
    #[must_use]
    pub fn with_fuel(self, fuel: u64) -> Self {
        Amounts { fuel: Some(fuel), ..self }
    }

    /// With so many calls of tools.
    #[must_use]
    pub fn with_calls(self, calls: u64) -> Self {
        Amounts { calls: Some(calls), ..self }
    }

    /// With so many bytes.
    #[must_use]
    pub fn with_bytes(self, bytes: u64) -> Self {
        Amounts { bytes: Some(bytes), ..self }
    }
}

/// What the runs of a tenant may use together, in any number of threads and engines, at both doors; clones share it. A host refills
/// it when it wants to. [`crate::Input::budget`] has a run pay from it.
///
/// A run takes itself and its limit of fuel before it begins, or what fuel is left when that is less, and gives back what it has
/// not used when it ends. Each call of a tool is taken before it is made. Calls of parallel workers are counted in the program's order: which
/// of them finds none left does not depend on which comes first, as long as no other run uses the budget. Calls that workers made for nothing, as a
/// call before theirs failed, are paid for; the run makes later ones for that. A worker whose turn it is never finds the budget empty because
/// of a call that a later worker has made already: such calls, in each run fewer than a tenth of what was left to it, are what a budget of
/// calls may be overdrawn by. Bytes are taken when the run ends: a budget of bytes
/// may be overdrawn by the runs that are under way. A run that finds a part of the budget empty ends with `budget_exceeded`. A run
/// whose end is not seen, because its [`Waiting`](crate::Waiting) was dropped or its process was killed, has used all it took.
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
    amounts: Arc<Mutex<Amounts>>,
    /// What one run has paid that is stopped and goes on again.
    bill: Option<Arc<Mutex<Bill>>>,
}

/// What a run has paid so far, over all its lives. A life does again what those before it did, so that what they have paid is its own
/// to begin with.
#[derive(Debug, Default)]
struct Bill {
    /// The number of the life that is under way, or was last.
    life: u64,
    /// The run itself is paid.
    has_begun: bool,
    fuel: u64,
    bytes: u64,
    /// The fuel and the bytes that earlier lives are known to have used.
    known: (u64, u64),
    /// The calls that earlier lives have begun.
    calls: BTreeSet<Place>,
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Budget").field(&self.left()).finish()
    }
}

impl Budget {
    /// A budget with these amounts.
    pub fn new(amounts: Amounts) -> Self {
        Budget { amounts: Arc::new(Mutex::new(amounts)), bill: None }
    }

    /// Returns this budget for one run that may be stopped and go on from its record, as often as one likes: what a life of it has
    /// paid the next one does not pay again. The next one takes this value, or a clone of it. A life that was stopped has used what
    /// its program had used by its last call, and gives back the rest; all that it took while parallel work is under way, until the
    /// next life begins.
    #[must_use]
    pub fn for_one_run(&self) -> Self {
        Budget { amounts: self.amounts.clone(), bill: Some(Arc::default()) }
    }

    /// Notes that a run has begun, and has begun these calls, before this budget was made for it: neither is paid again. For a
    /// budget of [`Budget::for_one_run`]; another is not changed.
    pub fn note_paid(&self, calls: impl IntoIterator<Item = Place>) {
        if let Some(mut bill) = self.bill() {
            bill.has_begun = true;
            bill.calls.extend(calls);
        }
    }

    /// Locked after the amounts where both are.
    fn amounts(&self) -> MutexGuard<'_, Amounts> {
        self.amounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bill(&self) -> Option<MutexGuard<'_, Bill>> {
        self.bill.as_ref().map(|bill| bill.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is left. Fuel that runs under way have taken is not.
    pub fn left(&self) -> Amounts {
        *self.amounts()
    }

    /// Sets what is left, of the parts that are counted, to these amounts where it is less: a budget that is refilled at intervals does
    /// not add up while nothing runs.
    pub fn refill_to(&self, full: &Amounts) {
        let mut left = self.amounts();
        let Amounts { runs, fuel, calls, bytes } = &mut *left;
        for (part, full) in [(runs, full.runs), (fuel, full.fuel), (calls, full.calls), (bytes, full.bytes)] {
            if let (Some(part), Some(full)) = (part, full) {
                *part = (*part).max(full);
            }
        }
    }

    /// Adds to what is left, of the parts that are counted.
    pub fn refill(&self, more: &Amounts) {
        let mut left = self.amounts();
        let Amounts { runs, fuel, calls, bytes } = &mut *left;
        for (part, more) in [(runs, more.runs), (fuel, more.fuel), (calls, more.calls), (bytes, more.bytes)] {
            if let (Some(part), Some(more)) = (part, more) {
                *part = part.saturating_add(more);
            }
        }
    }

    /// Takes what a run with this limit of fuel, 0 is none, may use.
    pub(crate) fn begin(&self, limit: u64) -> Result<Taken, Error> {
        let mut amounts = self.amounts();
        let mut bill = self.bill();
        let mut left = *amounts;
        let has_begun = bill.as_ref().is_some_and(|bill| bill.has_begun);
        if let Some(bill) = &bill {
            for (part, paid) in [(&mut left.fuel, bill.fuel), (&mut left.bytes, bill.bytes)] {
                *part = part.map(|part| part.saturating_add(paid));
            }
        }
        let runs = left.runs.filter(|_| !has_begun);
        for (part, name) in [(runs, "runs"), (left.fuel, "fuel"), (left.calls, "calls"), (left.bytes, "bytes")] {
            // A run without calls needs none of them.
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
        *amounts = left;
        let life = bill.as_mut().map_or(0, |bill| {
            (bill.life, bill.has_begun) = (bill.life + 1, true);
            (bill.fuel, bill.bytes) = (fuel.unwrap_or(0), 0);
            bill.life
        });
        let is_less = fuel.is_some_and(|fuel| limit == 0 || fuel < limit);
        Ok(Taken { budget: self.clone(), fuel, is_less, life, used: None, is_settled: false })
    }

    /// Has an earlier life of the run paid for the call of this place?
    pub(crate) fn has_paid(&self, place: &Place) -> bool {
        self.bill().is_some_and(|bill| bill.calls.contains(place))
    }

    /// Takes one call; `None` when calls are not counted.
    pub(crate) fn take_call(&self, run: &Arc<Payments>) -> Result<Option<Arc<PaidCall>>, Error> {
        match &mut self.amounts().calls {
            Some(0) => return Err(empty("calls")),
            Some(calls) => *calls -= 1,
            None => return Ok(None),
        }
        run.paid.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Arc::new(PaidCall { budget: self.clone(), run: run.clone(), payment: Arc::default() })))
    }
}

/// What a run has its budget pay for. Calls that were given up stay paid: calls that have their turn are made for them.
#[derive(Debug, Default)]
pub(crate) struct Payments {
    paid: AtomicU64,
    /// For calls whose turn has come.
    counted: AtomicU64,
}

impl Payments {
    /// How many calls were paid for.
    pub(crate) fn paid(&self) -> u64 {
        self.paid.load(Ordering::Relaxed)
    }

    /// How many of them have not had their turn.
    pub(crate) fn ahead(&self) -> u64 {
        self.paid().saturating_sub(self.counted.load(Ordering::Relaxed))
    }

    /// Counts a call whose turn has come.
    pub(crate) fn count(&self, payment: &Payment) {
        payment.is_counted.store(true, Ordering::Relaxed);
        self.counted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that was paid for ahead, and whose turn has come. When others were made for its payment, the budget pays once more.
    ///
    /// # Errors
    /// The budget has nothing left.
    pub(crate) fn count_late(self: &Arc<Self>, payment: &Payment, budget: &Budget) -> Result<(), Error> {
        if !payment.is_back() {
            self.charge(budget)?;
            payment.is_counted.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Counts a call for which one of these was paid, or else the budget pays now.
    ///
    /// # Errors
    /// The budget has nothing left.
    pub(crate) fn charge(self: &Arc<Self>, budget: &Budget) -> Result<(), Error> {
        if self.ahead() == 0
            && let Some(more) = budget.take_call(self)?
        {
            more.begin();
        }
        self.counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Counts a call for which one of these was paid. False when there is none.
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
    /// Its turn has come.
    is_counted: AtomicBool,
}

/// Nobody has begun to make the call yet.
const OPEN: u8 = 0;
/// Somebody has begun to make the call: it is paid.
const BEGUN: u8 = 1;
/// The call will not be made: the budget has it back.
const BACK: u8 = 2;

impl Payment {
    /// Leaves `OPEN` for this state.
    ///
    /// # Errors
    /// The state that it has left it for before.
    fn leave_open(&self, state: u8) -> Result<(), u8> {
        self.state.compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    fn is_back(&self) -> bool {
        self.state.load(Ordering::Acquire) == BACK
    }
}

/// A call that a budget has paid for. One that is dropped before anybody has begun to make it goes back to the budget.
#[derive(Debug)]
pub(crate) struct PaidCall {
    budget: Budget,
    run: Arc<Payments>,
    payment: Arc<Payment>,
}

impl PaidCall {
    /// Somebody begins to make it. False when the budget has it back already: then it must not be made.
    pub(crate) fn begin(&self) -> bool {
        self.payment.leave_open(BEGUN) != Err(BACK)
    }

    /// Gives it back to the budget, unless somebody has begun to make it.
    pub(crate) fn give_back(&self) {
        if self.payment.leave_open(BACK).is_err() {
            return;
        }
        if let Some(calls) = &mut self.budget.amounts().calls {
            *calls = calls.saturating_add(1);
        }
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

/// What a run has taken of a budget.
#[derive(Debug)]
pub(crate) struct Taken {
    budget: Budget,
    /// The units of fuel, where fuel is counted.
    pub(crate) fuel: Option<u64>,
    /// It is less than the run was to have.
    pub(crate) is_less: bool,
    /// Which life of the run has taken it.
    life: u64,
    /// Fuel and bytes that it has used by now, where that is known.
    used: Option<(u64, u64)>,
    is_settled: bool,
}

impl Taken {
    /// Notes what the run has used by now; `None` while workers use what is not known yet.
    pub(crate) fn note(&mut self, figures: Option<&Figures>) {
        self.used = figures.map(|figures| (figures.fuel, figures.allocated_bytes));
    }

    /// Gives back what a run has taken that did not begin; it counts as a run.
    pub(crate) fn give_back(self) {
        self.settle(&Usage::default(), true);
    }

    /// Gives back what a run has not used. One that was killed (not `certain`) has used all.
    pub(crate) fn settle(mut self, usage: &Usage, certain: bool) {
        self.pay(certain.then_some(usage.fuel), usage.allocated_bytes);
    }

    /// Pays for so much fuel, or for all that was taken.
    fn pay(&mut self, fuel: Option<u64>, bytes: u64) {
        self.is_settled = true;
        let mut left = self.budget.amounts();
        let mut bill = self.budget.bill();
        // What it has taken is in the hands of the next life.
        if bill.as_ref().is_some_and(|bill| bill.life != self.life) {
            return;
        }
        let taken = self.fuel.unwrap_or(0);
        let known = bill.as_ref().map_or((0, 0), |bill| bill.known);
        // A life that ends before it has done again what earlier lives did has not made that undone.
        let fuel = fuel.map_or(taken, |fuel| fuel.max(known.0).min(taken));
        let bytes = bytes.max(known.1);
        if let Some(left) = &mut left.fuel {
            *left = left.saturating_add(taken - fuel);
        }
        let bytes = left.bytes.map_or(0, |left| bytes.min(left));
        left.bytes = left.bytes.map(|left| left - bytes);
        if let Some(bill) = &mut bill {
            (bill.fuel, bill.bytes) = (fuel, bytes);
            bill.known = (fuel, bytes);
        }
    }

    /// The error of a run that has used the fuel it took, which was less than its limit.
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
    /// The end of a run is not seen. One that goes on later has used what is known.
    fn drop(&mut self) {
        if let (false, Some(_), Some((fuel, bytes))) = (self.is_settled, &self.budget.bill, self.used) {
            self.pay(Some(fuel), bytes);
        }
    }
}

/// The error of a run that finds a part of its budget empty.
fn empty(part: &'static str) -> Error {
    Error::new(Reason::BudgetExceeded, format!("the budget that the run shares with others has no {part} left"))
        .hint("run it again when the budget has been refilled, or ask the host for a larger one; a program cannot change it")
        .detail("part", part)
}
