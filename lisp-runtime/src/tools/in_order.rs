//! Counts the tool calls of a run in program order, whichever worker comes first.
//!
//! A call *has its turn* when everything before it in program order has ended: then it is known how many calls precede
//! it, and whether it exceeds the limit. A worker may call ahead of its turn while the calls ahead are fewer than a
//! tenth of the limit; otherwise its call waits. Calls made ahead are counted when their turn comes. If one of them
//! then exceeds the limit, its worker fails.

use super::cache::CallDigest;
use super::tool::Tool;
use crate::terms::budget::{Budget, PaidCall, Payment, Payments};
use crate::terms::place::Place;
use lisp_core::{Error, Reason};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The fraction of the limit that may be used ahead of the turn.
const PART: u64 = 10;
/// The maximum number of calls that are kept until their turn.
const AHEAD: usize = 1 << 16;

/// The calls of a run.
#[derive(Debug, Default)]
pub(crate) struct CallOrder {
    /// The maximum number of calls; 0 is no limit.
    limit: u64,
    /// The maximum bytes of the calls in the record of the run; 0 is no limit.
    max_bytes: u64,
    budget: Option<Budget>,
    payments: Arc<Payments>,
    /// Whether calls that were made ahead may exceed the limit.
    is_exact: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The calls whose turn has come.
    counted: Sum,
    /// The results of cached tools among them: equal calls are not counted.
    results: HashSet<CallDigest>,
    ahead: BTreeMap<Vec<u32>, AheadCall>,
    /// All calls that were made, including discarded ones.
    made: Sum,
    /// The parallel call of the program in which a worker has made a call, and the calls before it.
    section: Option<(u32, Sum)>,
}

#[derive(Clone, Debug, Default)]
struct Sum {
    calls: u64,
    by_tool: HashMap<String, u64>,
    /// The bytes of the calls in the record.
    bytes: u64,
}

impl Sum {
    fn of(&self, tool: &str) -> u64 {
        self.by_tool.get(tool).copied().unwrap_or(0)
    }

    fn add(&mut self, tool: &str, bytes: u64) {
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        match self.by_tool.get_mut(tool) {
            Some(calls) => *calls += 1,
            None => drop(self.by_tool.insert(tool.to_owned(), 1)),
        }
    }
}

/// A call that was made before its turn.
#[derive(Debug)]
struct AheadCall {
    tool: String,
    max: u64,
    result: Option<CallDigest>,
    /// Whether its result serves equal calls.
    serves: bool,
    /// The bytes of the call and of its result.
    bytes: (u64, u64),
    charge: Charge,
}

/// What a call costs the budget.
#[derive(Debug)]
enum Charge {
    Nothing,
    /// A call that is already paid for.
    Paid(Arc<Payment>),
    /// A call that was served from an equal one, which may come after it in program order.
    Due,
}

/// A call that is to be counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedTurn<'a> {
    pub(super) tool: &'a Tool,
    pub(super) place: &'a Place,
    /// Whether everything before it has ended.
    pub(super) has_turn: bool,
    /// The cache key of its result, if the tool is cached.
    pub(super) result: Option<CallDigest>,
    /// The bytes of the call in the record of the run, without its result.
    pub(super) bytes: u64,
}

/// Why a call cannot be made now.
pub(super) enum NotNow {
    /// It must wait for its turn.
    Later,
    /// It exceeds the limit.
    Never(Error),
}

/// Where the result of a call is noted.
#[derive(Debug)]
pub(super) struct ResultNote {
    place: Place,
    /// The cache key, for a cached tool.
    digest: Option<CallDigest>,
    is_ahead: bool,
    /// Whether it is, or will be, counted.
    is_new: bool,
}

impl CallOrder {
    pub(super) fn new(limit: u64, max_bytes: u64, budget: Option<Budget>) -> Self {
        CallOrder { limit, max_bytes, budget, ..CallOrder::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the order: nothing else is counted until the guard is dropped.
    pub(super) fn open(&self) -> OpenOrder<'_> {
        OpenOrder { order: self, state: self.state() }
    }

    /// Returns the number of calls before a call, and how many of them are of this tool. Only calls that its worker can
    /// know of count: those before its outermost parallel call.
    pub(super) fn before(&self, place: &Place, tool: &str) -> (u64, u64) {
        let mut open = self.open();
        open.note_section(place);
        match &open.state.section {
            Some((_, before)) if !place.is_of_program() => (before.calls, before.of(tool)),
            _ => {
                // An exceeded limit is reported when the call itself is counted.
                let _ = open.count_before(&place.in_order());
                (open.state.counted.calls, open.state.counted.of(tool))
            }
        }
    }

    /// Notes that a call has ended with a result of `bytes`. `serves` if the result serves equal calls.
    ///
    /// # Errors
    /// The record has no room for it.
    pub(super) fn ended(&self, note: &ResultNote, bytes: u64, serves: bool) -> Result<(), Error> {
        let mut open = self.open();
        open.state.made.bytes = open.state.made.bytes.saturating_add(bytes);
        if is_over(self.max_bytes, open.state.made.bytes) {
            self.set_exact();
        }
        if note.is_ahead {
            if let Some(call) = open.state.ahead.get_mut(&note.place.in_order()) {
                (call.serves, call.bytes.1) = (serves, bytes);
            }
            return Ok(());
        }
        if note.is_new {
            open.check_bytes(bytes)?;
            open.state.counted.bytes = open.state.counted.bytes.saturating_add(bytes);
        }
        open.state.results.extend(note.digest.filter(|_| serves));
        Ok(())
    }

    /// Discards what workers of a parallel call did, from this one on, because an earlier call failed.
    pub(super) fn give_up(&self, from: &Place) {
        let (first, end) = from.siblings_from();
        let mut state = self.state();
        let rest = state.ahead.split_off(&first);
        let given_up = rest.into_iter().filter(|(place, _)| *place >= end);
        state.ahead.extend(given_up);
    }

    /// Notes that the workers of a parallel call before this one have ended, and counts the calls that they made ahead.
    ///
    /// # Errors
    /// One of them exceeds the limit; with the index of its worker.
    pub(super) fn settle(&self, next: &Place) -> Result<(), Error> {
        let (mut open, place) = (self.open(), next.in_order());
        open.count_before(&place).map_err(|error| {
            let over = open.state.ahead.first_key_value().zip(place.len().checked_sub(2));
            let index = over.and_then(|((key, _), at)| key.get(at).copied());
            error.with_index(index.unwrap_or(0) as usize)
        })
    }

    /// Returns whether calls that were made ahead may exceed the limit. Then no worker ends before its turn.
    pub(super) fn is_exact(&self) -> bool {
        self.is_exact.load(Ordering::Acquire)
    }

    pub(super) fn set_exact(&self) {
        self.is_exact.store(true, Ordering::Release);
    }
}

/// The locked calls of a run, while one more is counted.
pub(super) struct OpenOrder<'a> {
    order: &'a CallOrder,
    state: MutexGuard<'a, State>,
}

impl OpenOrder<'_> {
    /// Checks whether a call may be made now.
    pub(super) fn may(&mut self, asked: &AskedTurn<'_>) -> Result<(), NotNow> {
        self.note_section(asked.place);
        if !asked.has_turn {
            return if self.may_ahead(asked.tool) { Ok(()) } else { Err(NotNow::Later) };
        }
        self.check_asked(asked).map_err(NotNow::Never)
    }

    fn check_asked(&mut self, asked: &AskedTurn<'_>) -> Result<(), Error> {
        self.count_before(&asked.place.in_order())?;
        if self.is_new(asked.result) {
            self.check(asked.tool.name(), asked.tool.treatment.max_calls)?;
            self.check_bytes(asked.bytes)?;
        }
        Ok(())
    }

    /// Returns whether no equal earlier call has a result that serves this one.
    fn is_new(&self, result: Option<CallDigest>) -> bool {
        result.is_none_or(|result| !self.state.results.contains(&result))
    }

    /// Returns whether a call ahead of its turn is sure enough to stay within the limit.
    fn may_ahead(&self, tool: &Tool) -> bool {
        let (made, counted) = (&self.state.made, &self.state.counted);
        let is_little = |limit: u64, made: u64, counted: u64| limit == 0 || made.saturating_sub(counted) < limit / PART;
        let payments = &self.order.payments;
        let left = self.order.budget.as_ref().and_then(|budget| budget.left().calls);
        self.state.ahead.len() < AHEAD
            && is_little(self.order.limit, made.calls, counted.calls)
            && is_little(self.order.max_bytes, made.bytes, counted.bytes)
            && is_little(tool.treatment.max_calls, made.of(tool.name()), counted.of(tool.name()))
            && left.is_none_or(|left| left > 0 && payments.ahead() < left.saturating_add(payments.paid()) / PART)
    }

    /// Checks whether one more call is within the limits.
    fn check(&self, tool: &str, max: u64) -> Result<(), Error> {
        let over = |what: &str, limit: u64, raise: &str| {
            Error::new(Reason::ToolCallLimitExceeded, format!("a run may call {what} {limit} times"))
                .hint(format!("call tools less often, for example once for all rows, or raise {raise}"))
                .detail("limit", limit)
        };
        let (counted, limit) = (&self.state.counted, self.order.limit);
        if max > 0 && counted.of(tool) >= max {
            Err(over(&format!("tool/{tool}"), max, &format!("max_calls of tool/{tool}")))
        } else if limit > 0 && counted.calls >= limit {
            Err(over("tools", limit, "the limit tool_calls"))
        } else {
            Ok(())
        }
    }

    /// Checks whether `bytes` more are within the limit of the record.
    fn check_bytes(&self, bytes: u64) -> Result<(), Error> {
        let (bytes, max) = (self.state.counted.bytes.saturating_add(bytes), self.order.max_bytes);
        if !is_over(max, bytes) {
            return Ok(());
        }
        let message = format!("the calls of the run take {bytes} bytes in its record; they may take {max}");
        Err(Error::new(Reason::RecordLimitExceeded, message)
            .hint("call tools for less data, or raise the limit with RecordingBuilder::max_bytes")
            .detail("limit_bytes", usize::try_from(max).unwrap_or(usize::MAX)))
    }

    /// Counts a call of `bytes` that may be made, or that an earlier result serves. `is_due` if the budget must pay for
    /// a served call when no equal call comes before it.
    ///
    /// # Errors
    /// The record has no room for that result, or the budget is empty.
    pub(super) fn count(
        &mut self,
        asked: &AskedTurn<'_>,
        served: Option<u64>,
        is_due: bool,
    ) -> Result<Option<ResultNote>, Error> {
        let AskedTurn { tool, place, has_turn, result, bytes } = *asked;
        let (is_made, is_new, of_result) = (served.is_none(), self.is_new(result), served.unwrap_or(0));
        let (name, max) = (tool.name(), tool.treatment.max_calls);
        if is_made {
            let made = &mut self.state.made;
            made.add(name, bytes);
            if is_over(self.order.limit, made.calls)
                || is_over(max, made.of(name))
                || is_over(self.order.max_bytes, made.bytes)
            {
                self.order.set_exact();
            }
        }
        if has_turn {
            if is_new {
                self.check_bytes(bytes.saturating_add(of_result))?;
                if let Some(budget) = self.order.budget.as_ref().filter(|_| is_due) {
                    self.order.payments.charge(budget)?;
                    self.order.set_exact();
                }
                self.state.counted.add(name, bytes.saturating_add(of_result));
            }
            self.state.results.extend(result.filter(|_| !is_made));
        } else {
            let (bytes, charge) = ((bytes, of_result), if is_due { Charge::Due } else { Charge::Nothing });
            let call = AheadCall { tool: name.to_owned(), max, result, serves: !is_made, bytes, charge };
            self.state.ahead.insert(place.in_order(), call);
        }
        let is_noted = is_made && (result.is_some() || self.order.max_bytes > 0);
        Ok(is_noted.then(|| ResultNote { place: place.clone(), digest: result, is_ahead: !has_turn, is_new }))
    }

    /// Makes the budget pay for a counted call. A call that has its turn takes precedence over calls paid in advance.
    pub(super) fn pay(&mut self, asked: &AskedTurn<'_>) -> Result<Option<Arc<PaidCall>>, Error> {
        let Some(budget) = self.order.budget.as_ref().filter(|budget| !budget.has_paid(asked.place)) else {
            return Ok(None);
        };
        let paid = match budget.take_call(&self.order.payments) {
            Ok(paid) => paid,
            Err(_) if asked.has_turn && self.order.payments.take_ahead() => {
                self.order.set_exact();
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if let Some(paid) = &paid {
            if asked.has_turn {
                self.order.payments.count(paid.payment());
            } else if let Some(call) = self.state.ahead.get_mut(&asked.place.in_order()) {
                call.charge = Charge::Paid(paid.payment().clone());
            }
        }
        Ok(paid)
    }

    /// Notes the number of calls before the program's parallel call that contains `place`.
    fn note_section(&mut self, place: &Place) {
        let Some(section) = place.outermost() else { return };
        if self.state.section.as_ref().is_none_or(|(known, _)| *known != section) {
            let _ = self.count_before(&[section]);
            let counted = self.state.counted.clone();
            self.state.section = Some((section, counted));
        }
    }

    /// Counts the calls before `place` that were made ahead, up to one that exceeds the limit.
    fn count_before(&mut self, place: &[u32]) -> Result<(), Error> {
        while let ControlFlow::Continue(()) = self.count_first(place)? {}
        Ok(())
    }

    fn count_first(&mut self, place: &[u32]) -> Result<ControlFlow<()>, Error> {
        let Some((key, call)) = self.state.ahead.first_key_value() else { return Ok(ControlFlow::Break(())) };
        if **key >= *place {
            return Ok(ControlFlow::Break(()));
        }
        let is_new = self.is_new(call.result);
        let (of_call, of_result) = call.bytes;
        if is_new {
            self.check(&call.tool, call.max)?;
            self.check_bytes(of_call)?;
            self.check_bytes(of_call.saturating_add(of_result))?;
            match (&call.charge, &self.order.budget) {
                (Charge::Paid(paid), Some(budget)) => self.order.payments.count_late(paid, budget)?,
                (Charge::Due, Some(budget)) => self.order.payments.charge(budget)?,
                _ => {}
            }
        }
        let Some((_, call)) = self.state.ahead.pop_first() else { return Ok(ControlFlow::Break(())) };
        if is_new {
            self.state.counted.add(&call.tool, of_call.saturating_add(of_result));
        }
        self.state.results.extend(call.result.filter(|_| call.serves));
        Ok(ControlFlow::Continue(()))
    }
}

/// Returns whether this exceeds a limit, where 0 is no limit.
fn is_over(limit: u64, made: u64) -> bool {
    limit > 0 && made > limit
}
