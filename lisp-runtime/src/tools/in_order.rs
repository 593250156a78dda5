//! Counts the tool calls of a run in the order of its program, whichever worker comes first.
//!
//! A call *has its turn* when everything before it in the program's order has ended: then it is known how many calls come before
//! it, and whether it is one too many. A worker may call ahead of its turn, as long as the calls ahead are fewer than a tenth of the limit;
//! beyond that its call waits. Calls that were made ahead are counted when their turn comes, and one of them that is then too many fails its worker.

use super::cache::CallDigest;
use super::tool::Tool;
use crate::terms::budget::{Budget, PaidCall, Payment, Payments};
use crate::terms::place::Place;
use lisp_core::{Error, Reason};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The part of what a run may do that it may do ahead of its turn.
const PART: u64 = 10;
/// The most calls that are kept until their turn comes.
const AHEAD: usize = 1 << 16;

/// The calls of a run.
#[derive(Debug, Default)]
pub(crate) struct CallOrder {
    /// The most calls; 0 is no limit.
    limit: u64,
    /// The most bytes that the calls may take in the record of the run; 0 is no limit.
    most_bytes: u64,
    budget: Option<Budget>,
    payments: Arc<Payments>,
    /// Calls that were made ahead may be too many.
    is_exact: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The calls whose turn has come.
    counted: Sum,
    /// The results of calls of cached tools among them: equal calls are not counted.
    results: HashSet<CallDigest>,
    ahead: BTreeMap<Vec<u32>, AheadCall>,
    /// All calls that were made, those that were given up among them.
    made: Sum,
    /// The parallel call of the program that a worker has called in, and the calls before it.
    section: Option<(u32, Sum)>,
}

#[derive(Clone, Debug, Default)]
struct Sum {
    calls: u64,
    by_tool: HashMap<String, u64>,
    /// Bytes that they take in the record.
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
    most: u64,
    result: Option<CallDigest>,
    /// It has a result that serves equal calls.
    serves: bool,
    /// Bytes of the call, and of its result.
    bytes: (u64, u64),
    charge: Charge,
}

/// What a call costs the budget.
#[derive(Debug)]
enum Charge {
    Nothing,
    /// A call, which is paid for already.
    Paid(Arc<Payment>),
    /// A call: an earlier result serves it, but the call that this is of may come behind it in the program's order.
    Due,
}

/// A call that is to be counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedTurn<'a> {
    pub(super) tool: &'a Tool,
    pub(super) place: &'a Place,
    /// Everything before it has ended.
    pub(super) has_turn: bool,
    /// What its result is kept under, if its tool is cached.
    pub(super) result: Option<CallDigest>,
    /// Bytes that it takes in the record of the run, without its result.
    pub(super) bytes: u64,
}

/// Why a call cannot be made now.
pub(super) enum NotNow {
    /// It has to wait for its turn.
    Later,
    /// It is one too many.
    Never(Error),
}

/// Where the result of a call is noted.
#[derive(Debug)]
pub(super) struct ResultNote {
    place: Place,
    /// Of a cached tool.
    digest: Option<CallDigest>,
    is_ahead: bool,
    /// It was counted, or is to be.
    is_new: bool,
}

impl CallOrder {
    pub(super) fn new(limit: u64, most_bytes: u64, budget: Option<Budget>) -> Self {
        CallOrder { limit, most_bytes, budget, ..CallOrder::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing else is counted until this is dropped.
    pub(super) fn open(&self) -> OpenOrder<'_> {
        OpenOrder { order: self, state: self.state() }
    }

    /// How many calls come before a call, and how many of them are of this tool: those that its worker can know of, which are those
    /// before the outermost parallel call that it is of.
    pub(super) fn before(&self, place: &Place, tool: &str) -> (u64, u64) {
        let mut open = self.open();
        open.note_section(place);
        match &open.state.section {
            Some((_, before)) if !place.is_of_program() => (before.calls, before.of(tool)),
            _ => {
                // What is too many is told when the call is counted.
                let _ = open.count_before(&place.in_order());
                (open.state.counted.calls, open.state.counted.of(tool))
            }
        }
    }

    /// A call has ended, and its result takes so many bytes. `serves` when it serves equal calls.
    ///
    /// # Errors
    /// The record may not take as much.
    pub(super) fn ended(&self, note: &ResultNote, bytes: u64, serves: bool) -> Result<(), Error> {
        let mut open = self.open();
        open.state.made.bytes = open.state.made.bytes.saturating_add(bytes);
        if is_over(self.most_bytes, open.state.made.bytes) {
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

    /// Forgets what workers of a parallel call did, from this one on: it was for nothing, as a call before theirs failed.
    pub(super) fn give_up(&self, from: &Place) {
        let (first, end) = from.siblings_from();
        let mut state = self.state();
        let rest = state.ahead.split_off(&first);
        let given_up = rest.into_iter().filter(|(place, _)| *place >= end);
        state.ahead.extend(given_up);
    }

    /// The workers of a parallel call before this one have ended: calls that they made ahead are counted.
    ///
    /// # Errors
    /// One of them is too many; with the index of its worker.
    pub(super) fn settle(&self, next: &Place) -> Result<(), Error> {
        let (mut open, place) = (self.open(), next.in_order());
        open.count_before(&place).map_err(|error| {
            let over = open.state.ahead.first_key_value().zip(place.len().checked_sub(2));
            let index = over.and_then(|((key, _), at)| key.get(at).copied());
            error.detail("index", index.unwrap_or(0) as usize)
        })
    }

    /// May calls that were made ahead be too many? Then a worker does not end before its turn.
    pub(super) fn is_exact(&self) -> bool {
        self.is_exact.load(Ordering::Acquire)
    }

    pub(super) fn set_exact(&self) {
        self.is_exact.store(true, Ordering::Release);
    }
}

/// The calls of a run, while one more is counted.
pub(super) struct OpenOrder<'a> {
    order: &'a CallOrder,
    state: MutexGuard<'a, State>,
}

impl OpenOrder<'_> {
    /// May a call be made now?
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
            self.check(&asked.tool.name, asked.tool.most_calls)?;
            self.check_bytes(asked.bytes)?;
        }
        Ok(())
    }

    /// Does no equal call before it have a result that serves it?
    fn is_new(&self, result: Option<CallDigest>) -> bool {
        result.is_none_or(|result| !self.state.results.contains(&result))
    }

    /// Is it sure enough that a call which is made ahead of its turn is not one too many?
    fn may_ahead(&self, tool: &Tool) -> bool {
        let (made, counted) = (&self.state.made, &self.state.counted);
        let is_little = |limit: u64, made: u64, counted: u64| limit == 0 || made.saturating_sub(counted) < limit / PART;
        let payments = &self.order.payments;
        let left = self.order.budget.as_ref().and_then(|budget| budget.left().calls);
        self.state.ahead.len() < AHEAD
            && is_little(self.order.limit, made.calls, counted.calls)
            && is_little(self.order.most_bytes, made.bytes, counted.bytes)
            && is_little(tool.most_calls, made.of(&tool.name), counted.of(&tool.name))
            && left.is_none_or(|left| left > 0 && payments.ahead() < left.saturating_add(payments.paid()) / PART)
    }

    /// Would one more call be too many?
    fn check(&self, tool: &str, most: u64) -> Result<(), Error> {
        let over = |what: &str, limit: u64, raise: &str| {
            Error::new(Reason::ToolCallLimitExceeded, format!("a run may call {what} {limit} times"))
                .hint(format!("call tools less often, for example once for all rows, or raise {raise}"))
                .detail("limit", limit)
        };
        let (counted, limit) = (&self.state.counted, self.order.limit);
        if most > 0 && counted.of(tool) >= most {
            Err(over(&format!("tool/{tool}"), most, "Tool::most_calls"))
        } else if limit > 0 && counted.calls >= limit {
            Err(over("tools", limit, "the limit tool_calls"))
        } else {
            Ok(())
        }
    }

    /// Would so many bytes be too many?
    fn check_bytes(&self, bytes: u64) -> Result<(), Error> {
        let (bytes, most) = (self.state.counted.bytes.saturating_add(bytes), self.order.most_bytes);
        if !is_over(most, bytes) {
            return Ok(());
        }
        let message = format!("the calls of the run take {bytes} bytes in its record; they may take {most}");
        Err(Error::new(Reason::RecordLimitExceeded, message)
            .hint("call tools for less data, or raise the limit with Recording::most_bytes")
            .detail("limit_bytes", usize::try_from(most).unwrap_or(usize::MAX)))
    }

    /// Counts a call that may be made, or that an earlier result serves, which takes so many bytes. `is_due` when the budget has to pay for one that
    /// is served, if no equal call comes before it.
    ///
    /// # Errors
    /// The record may not take as much as that result, or the budget has nothing left.
    pub(super) fn count(
        &mut self,
        asked: &AskedTurn<'_>,
        served: Option<u64>,
        is_due: bool,
    ) -> Result<Option<ResultNote>, Error> {
        let AskedTurn { tool, place, has_turn, result, bytes } = *asked;
        let (is_made, is_new, of_result) = (served.is_none(), self.is_new(result), served.unwrap_or(0));
        let (name, most) = (&tool.name, tool.most_calls);
        if is_made {
            let made = &mut self.state.made;
            made.add(name, bytes);
            if is_over(self.order.limit, made.calls)
                || is_over(most, made.of(name))
                || is_over(self.order.most_bytes, made.bytes)
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
            let call = AheadCall { tool: name.clone(), most, result, serves: !is_made, bytes, charge };
            self.state.ahead.insert(place.in_order(), call);
        }
        let is_noted = is_made && (result.is_some() || self.order.most_bytes > 0);
        Ok(is_noted.then(|| ResultNote { place: place.clone(), digest: result, is_ahead: !has_turn, is_new }))
    }

    /// Has the budget pay for a call that was counted. A call that has its turn comes before those that were paid for ahead.
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

    /// Notes how many calls come before the parallel call of the program that a place is in.
    fn note_section(&mut self, place: &Place) {
        let Some(section) = place.outermost() else { return };
        if self.state.section.as_ref().is_none_or(|(known, _)| *known != section) {
            let _ = self.count_before(&[section]);
            let counted = self.state.counted.clone();
            self.state.section = Some((section, counted));
        }
    }

    /// Counts the calls before this place that were made ahead, up to one that is too many.
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
            self.check(&call.tool, call.most)?;
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

/// Is this more than a limit allows? 0 is none.
fn is_over(limit: u64, made: u64) -> bool {
    limit > 0 && made > limit
}
