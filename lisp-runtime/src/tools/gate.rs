//! The gate that every tool call of a run passes: policy, limits, cache, ledger and journal.

use super::cache::{CachedResult, CallDigest, CallKey, Lookup, ResultCache};
use super::contract::Effect;
use super::in_order::{AskedTurn, CallOrder, NotNow, ResultNote};
use super::ledger::{Ledger, WaitsForApproval};
use super::policy::{AskedCall, Policy, PolicyDecision};
use super::tool::{Reply, Tool, ToolCall};
use crate::recording::journal::{Asking, Journal, Recalled};
use crate::recording::line::Ended;
use crate::recording::line::Gated;
use crate::terms::budget::{Budget, PaidCall};
use crate::terms::cancel::Cancel;
use crate::terms::outcome::{CallStatus, Preview};
use crate::terms::place::Place;
use crate::terms::run_view::{CallView, RunView};
use lisp_core::{Error, Reason};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The settings of a gate.
#[derive(Clone, Debug, Default)]
pub(crate) struct GateSetting {
    /// The maximum number of calls; 0 is no limit.
    pub(crate) limit: u64,
    pub(crate) policy: Policy,
    /// The tenant of the run.
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) budget: Option<Budget>,
    pub(crate) journal: Option<Arc<Journal>>,
    /// Whether the run is driven step by step: its driver can approve calls.
    pub(crate) step_by_step: bool,
    /// Whether the run is a turn of a session.
    pub(crate) in_session: bool,
    /// Whether the run is a check, which makes no calls.
    pub(crate) check_only: bool,
    /// Decides on calls of async tools that need approval.
    #[cfg(feature = "async")]
    pub(crate) approver: Option<super::approval::Approver<super::tool::ToolCall>>,
}

impl GateSetting {
    /// Returns whether the run sees the tool at all.
    pub(crate) fn shows(&self, tool: &Tool) -> bool {
        self.policy.shows(tool, self.tenant.as_deref())
    }

    /// Returns the maximum bytes of the calls in the record of the run; 0 is no limit.
    fn max_bytes(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.max_bytes() as u64)
    }

    /// Returns whether a call of the tool can be approved while the run continues.
    fn can_ask(&self, tool: &Tool) -> bool {
        #[cfg(feature = "async")]
        if self.approver.is_some() && tool.is_async() {
            return true;
        }
        let _ = tool;
        self.step_by_step
    }
}

/// A call that the policy allows.
#[derive(Debug)]
pub(crate) struct AllowedCall {
    /// The arguments that the program passed.
    pub(crate) arguments: String,
    /// The arguments that the policy replaced them with.
    pub(crate) given: Option<String>,
    /// The question, if the call needs approval.
    pub(crate) question: Option<String>,
}

impl AllowedCall {
    /// Returns the arguments for the tool.
    pub(crate) fn for_tool(&self) -> &str {
        self.given.as_deref().unwrap_or(&self.arguments)
    }
}

/// The decision of the gate on a call.
pub(crate) enum Decision<W> {
    /// The result of an earlier, equal call is used.
    Cached(CachedResult),
    /// An equal call is in progress: wait with [`ToolGate::wait`], then ask again.
    InProgress(CallKey),
    /// The worker must wait for its turn, then ask again.
    Later,
    /// The run may not make the call. Waiters that arrived meanwhile must ask again, and are denied in turn.
    Refused(Error, Vec<W>),
    /// The call was not made in an earlier attempt, because another worker had failed. The caller ends.
    LeftOut(Error),
    /// The call is in the ledger and must be made.
    Admitted(PendingCall),
    /// The call is in the ledger and ended like this in an earlier attempt: pass it to [`ToolGate::complete`].
    Replayed(PendingCall, Reply),
}

/// What is known of a call before it is made.
struct Found {
    /// What the record has of it.
    recalled: Recalled,
    /// The result of an equal call.
    earlier: Option<CachedResult>,
    /// The cache key of its result.
    key: Option<CallKey>,
}

/// An admitted call that has not ended: pass it to [`ToolGate::complete`] or [`ToolGate::abandon`].
#[derive(Debug)]
pub(crate) struct PendingCall {
    /// The number of the call in the run, from 1.
    pub(crate) number: u64,
    /// The index of the call in the ledger.
    entry: Option<usize>,
    /// The cache key of the result.
    key: Option<CallKey>,
    /// The name in the journal, if the end of the call must be recorded.
    place: Option<Place>,
    /// The call as observers see it.
    seen: Option<CallView>,
    /// The arguments for the ledger, if the call was approved with other ones.
    given: Option<GivenArguments>,
    /// True while the call waits for approval.
    waits: Option<WaitsForApproval>,
    /// What the budget paid for it.
    paid: Option<Arc<PaidCall>>,
    /// Where it is noted that the result serves equal calls.
    result_note: Option<ResultNote>,
}

impl PendingCall {
    /// Creates a call that is in no ledger.
    pub(crate) fn numbered(number: u64) -> Self {
        PendingCall {
            number,
            entry: None,
            key: None,
            place: None,
            seen: None,
            given: None,
            waits: None,
            paid: None,
            result_note: None,
        }
    }

    /// Returns the payment of a call that was not started, before its worker continues.
    fn give_back(&self) {
        if let Some(paid) = &self.paid {
            paid.give_back();
        }
    }
}

/// Set to the arguments that a call was approved with.
pub(crate) type GivenArguments = Arc<OnceLock<String>>;

/// The bytes of a call in a record, besides its tool's name, arguments and result.
const CALL_BYTES: usize = 100;

/// Counts the tool calls of a run and keeps the results of cached tools. While a call of a cached tool is in progress,
/// an equal call is not made but becomes a waiter (`W`).
pub(crate) struct ToolGate<W> {
    order: CallOrder,
    /// The number of the last call. Discarded calls do not count, but their numbers are not reused.
    last_number: AtomicU64,
    cache: ResultCache<W>,
    setting: GateSetting,
    view: RunView,
}

impl<W> ToolGate<W> {
    pub(crate) fn new(setting: GateSetting, view: RunView) -> Self {
        ToolGate {
            order: CallOrder::new(setting.limit, setting.max_bytes(), setting.budget.clone()),
            last_number: AtomicU64::new(0),
            cache: ResultCache::default(),
            setting,
            view,
        }
    }

    /// Lets the policy decide on a call whose arguments match the tool. Decisions of an earlier attempt are kept.
    ///
    /// # Errors
    /// Why the run may not make the call; it is in the ledger.
    pub(crate) fn decide(
        &self,
        ledger: &mut Ledger,
        tool: &Tool,
        arguments: String,
        place: &Place,
    ) -> Result<AllowedCall, Error> {
        let GateSetting { policy, journal, .. } = &self.setting;
        let is_free = !policy.is_some() && journal.is_none() && !self.setting.check_only;
        if tool.is_pages() || is_free {
            return Ok(AllowedCall { arguments, given: None, question: None });
        }
        let decided = match self.setting.check_only {
            true => Err(not_made(tool)),
            false => self.decision(tool, &arguments, place).and_then(|gated| match gated {
                Gated::Allow { given } => Ok((given, None)),
                Gated::Deny { why } => Err(denied(tool, &why)),
                Gated::Ask { question } if self.setting.can_ask(tool) => Ok((None, Some(question))),
                Gated::Ask { question } => Err(approval_required(tool, place, &question, self.setting.in_session)),
            }),
        };
        match decided {
            Ok((given, question)) => Ok(AllowedCall { arguments, given, question }),
            Err(error) => {
                self.refuse(ledger, tool, &arguments, &error, place.worker());
                Err(error)
            }
        }
    }

    /// Notes a call that is not made, with the arguments for the tool, and notifies observers.
    pub(crate) fn refuse(&self, ledger: &mut Ledger, tool: &Tool, arguments: &str, error: &Error, worker: Vec<u32>) {
        self.view.refused(tool.name(), &worker, error.reason);
        let shown = Preview::of(&tool.arguments_shown(arguments));
        ledger.refused(tool.name(), shown, &error.message, error.reason, worker);
    }

    /// Returns the decision of an earlier attempt, or else of the policy.
    fn decision(&self, tool: &Tool, arguments: &str, place: &Place) -> Result<Gated, Error> {
        let GateSetting { policy, journal, .. } = &self.setting;
        let shown = tool.arguments_shown(arguments);
        let earlier = match journal {
            Some(journal) => journal.decided(place, tool.name(), &shown)?,
            None => None,
        };
        match earlier {
            // The record does not have the new arguments of the tool: the policy repeats them, if they are still
            // needed.
            Some((Gated::Allow { given: Some(_) }, false)) if tool.redacts() => {
                return if policy.is_some() {
                    Ok(self.ask_policy(tool, arguments, place))
                } else {
                    let why =
                        "the policy changed its arguments, which its record does not show, and there is no policy now";
                    Err(denied(tool, why))
                };
            }
            // The call was approved with them since.
            Some((Gated::Allow { given: Some(given) }, false)) => {
                return Ok(match unfit(tool, &given) {
                    Some(why) => Gated::Deny { why },
                    None => Gated::Allow { given: Some(given) },
                });
            }
            // The record of its end shows that it was made.
            Some((Gated::Ask { .. }, true)) => return Ok(Gated::Allow { given: None }),
            Some((gated, _)) => return Ok(gated),
            None => {}
        }
        let gated = self.ask_policy(tool, arguments, place);
        // The line of a call shows that it was allowed; a call that an earlier result may serve has none.
        if let Some(journal) = journal
            && policy.is_some()
            && (tool.treatment.cached || gated != (Gated::Allow { given: None }))
        {
            let kept = match &gated {
                Gated::Allow { given: Some(given) } => {
                    Gated::Allow { given: Some(tool.arguments_shown(given).into_owned()) }
                }
                other => other.clone(),
            };
            journal.decide(place, tool.name(), &shown, kept)?;
        }
        Ok(gated)
    }

    fn ask_policy(&self, tool: &Tool, arguments: &str, place: &Place) -> Gated {
        if !self.setting.policy.is_some() {
            return Gated::Allow { given: None };
        }
        let (calls, calls_of_tool) = self.order.before(place, tool.name());
        let asked = AskedCall { tool, arguments, place, tenant: self.setting.tenant.as_deref(), calls, calls_of_tool };
        match self.setting.policy.decide(&asked) {
            PolicyDecision::Allow => Gated::Allow { given: None },
            PolicyDecision::AllowWith(given) => match unfit(tool, &given) {
                Some(why) => Gated::Deny { why },
                None => Gated::Allow { given: Some(given) },
            },
            PolicyDecision::Deny(why) => Gated::Deny { why },
            PolicyDecision::Ask(question) => Gated::Ask { question },
        }
    }

    /// Decides on a call that the policy allows, and records the decision in the ledger and in the journal. `has_turn`
    /// if everything before it in program order has ended.
    pub(crate) fn admit(
        &self,
        ledger: &mut Ledger,
        tool: &Tool,
        asked: &AllowedCall,
        (place, has_turn): (&Place, bool),
    ) -> Decision<W> {
        let (worker, arguments) = (place.worker(), asked.for_tool());
        let (program_shown, shown) = (tool.arguments_shown(&asked.arguments), tool.arguments_shown(arguments));
        let repeatable = tool.treatment.effect == Effect::Read;
        let (name, cached) = (tool.name(), tool.treatment.cached);
        let asks = asked.question.is_some();
        let asking = Asking { place, tool: name, arguments: &program_shown, given: &shown, cached, repeatable, asks };
        let key = cached.then(|| CallKey::new(name, arguments));
        let digest = key.as_ref().map(CallKey::digest);
        let gated = asked.given.as_ref().map_or(0, |given| asked.arguments.len() + given.len());
        let bytes = (CALL_BYTES + name.len() + program_shown.len() + gated) as u64;
        let turn = AskedTurn { tool, place, has_turn, result: digest, bytes };
        let mut order = self.order.open();
        match order.may(&turn) {
            Ok(()) => {}
            Err(NotNow::Later) => return Decision::Later,
            Err(NotNow::Never(error)) => {
                drop(order);
                self.refuse(ledger, tool, arguments, &error, worker);
                return Decision::Refused(error, Vec::new());
            }
        }
        let Found { recalled, earlier, key } = match self.earlier(&asking, key) {
            Ok(found) => found,
            Err(decision) => return *decision,
        };
        let is_new = matches!(recalled, Recalled::Nothing);
        let counted = order.count(&turn, earlier.as_ref().map(CachedResult::bytes), earlier.is_some() && is_new);
        if let (Some(result), Some(digest)) = (earlier, digest) {
            drop(order);
            let result = match result {
                CachedResult::Arguments if asked.given.is_some() => CachedResult::Json(arguments.into()),
                result => result,
            };
            let result_shown = match &result {
                CachedResult::Json(json) => json,
                CachedResult::Arguments => arguments,
            };
            self.serve(ledger, (name, place), (&shown, result_shown), digest);
            return match counted {
                Ok(_) => Decision::Cached(result),
                Err(error) => Decision::Refused(error, Vec::new()),
            };
        }
        let paid = if is_new { order.pay(&turn) } else { Ok(None) };
        drop(order);
        let number = self.next_number();
        let entry = ledger.begin(name, &shown, worker, digest, number);
        let given = asked.question.is_some().then(GivenArguments::default);
        let waits = asked.question.is_some().then(WaitsForApproval::default);
        ledger.note(entry, !repeatable && !tool.treatment.idempotent, waits.clone());
        let result_note = counted.ok().flatten();
        let pending = PendingCall { entry, key, given, waits, result_note, ..PendingCall::numbered(number) };
        self.start(ledger, &asking, pending, (number, recalled, paid))
    }

    /// Returns what an earlier attempt has of a call, or else the result of an equal call. Returns the decision if that
    /// settles it.
    fn earlier(&self, asking: &Asking<'_>, mut key: Option<CallKey>) -> Result<Found, Box<Decision<W>>> {
        // A call keeps its result of an earlier attempt, whatever equal calls return.
        let recalled = self.setting.journal.as_ref().map_or(Recalled::Nothing, |journal| journal.recall(asking));
        let mut earlier = None;
        match &recalled {
            Recalled::LeftOut(error) => return Err(Box::new(Decision::LeftOut(error.clone()))),
            Recalled::Equal(Ended::Json(json)) => earlier = Some(CachedResult::Json(json.as_str().into())),
            Recalled::Equal(Ended::Echo) => earlier = Some(CachedResult::Arguments),
            // A failure does not serve other calls.
            Recalled::Equal(Ended::Failed(_)) | Recalled::Nothing => {}
            Recalled::Ended(_) | Recalled::Refused(_) => key = None,
        }
        if earlier.is_none()
            && let Some(key) = &key
        {
            match self.cache.look_up(key) {
                Lookup::Found(result) => earlier = Some(result),
                Lookup::InProgress => return Err(Box::new(Decision::InProgress(key.clone()))),
                Lookup::Begun => {}
            }
        }
        Ok(Found { recalled, earlier, key })
    }

    /// Starts a call that is in the ledger: it ends as in the record, or it is announced to the record and admitted.
    fn start(
        &self,
        ledger: &mut Ledger,
        asking: &Asking<'_>,
        mut pending: PendingCall,
        (number, recalled, paid): (u64, Recalled, Result<Option<Arc<PaidCall>>, Error>),
    ) -> Decision<W> {
        let (name, place) = (asking.tool, asking.place);
        let started = match recalled {
            Recalled::Ended(ended) => {
                pending.seen = self.view.begin_call(name, place, number, true);
                return Decision::Replayed(pending, ended.into());
            }
            Recalled::Refused(error) => Err(error),
            _ => paid.and_then(|paid| {
                self.setting.journal.as_ref().map_or(Ok(()), |journal| journal.announce(asking))?;
                Ok(paid)
            }),
        };
        match started {
            Ok(paid) => {
                pending.paid = paid;
                pending.place = self.setting.journal.is_some().then(|| place.clone());
                pending.seen = self.view.begin_call(name, place, number, false);
                Decision::Admitted(pending)
            }
            Err(error) => {
                self.view.refused(name, &place.worker(), error.reason);
                ledger.end(pending.entry, &Reply::Refused(error.clone()), Duration::ZERO);
                Decision::Refused(error, self.abandon(pending))
            }
        }
    }

    /// Notes a call that an earlier result serves, and notifies observers.
    fn serve(
        &self,
        ledger: &mut Ledger,
        (name, place): (&str, &Place),
        (shown, result_shown): (&str, &str),
        digest: CallDigest,
    ) {
        ledger.cached(name, shown, result_shown, place.worker(), digest);
        if let Some(seen) = self.view.begin_call(name, place, 0, false) {
            seen.end(CallStatus::Cached);
        }
    }

    /// Returns the next number for a call.
    pub(crate) fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns an admitted call as its tool sees it, with its number in the run.
    pub(crate) fn call(
        &self,
        pending: &mut PendingCall,
        (number, place): (u64, Place),
        tool: &Tool,
        asked: AllowedCall,
        (deadline, cancel): (Option<Instant>, Cancel),
    ) -> Box<ToolCall> {
        #[cfg(feature = "async")]
        let approvals = self.approvals(&asked);
        Box::new(ToolCall {
            number,
            key: self.setting.journal.as_ref().map(|journal| format!("{}/{place}", journal.run_id())),
            place,
            contract: tool.contract.clone(),
            treatment: tool.treatment.clone(),
            is_rewritten: asked.given.is_some(),
            arguments: asked.given.unwrap_or(asked.arguments),
            question: asked.question,
            given: pending.given.clone(),
            waits: pending.waits.clone(),
            paid: pending.paid.clone(),
            #[cfg(feature = "async")]
            approvals,
            deadline,
            cancel,
            traceparent: self.view.traceparent(),
            span: pending.seen.as_ref().map(CallView::span).unwrap_or_default(),
        })
    }

    /// Discards what workers of a parallel call did, from this one on, because an earlier call failed.
    pub(crate) fn give_up(&self, from: &Place) {
        self.order.give_up(from);
    }

    /// Returns whether calls that workers made ahead of their turns may exceed the limit. Then no worker ends before
    /// its turn.
    pub(crate) fn is_exact(&self) -> bool {
        self.order.is_exact()
    }

    /// Notes that the other half of the run requires this.
    pub(crate) fn set_exact(&self) {
        self.order.set_exact();
    }

    /// Notes that the workers of a parallel call before this one have ended.
    ///
    /// # Errors
    /// One of them made a call that exceeds the limit; with its index.
    pub(crate) fn settle(&self, next: &Place) -> Result<(), Error> {
        self.order.settle(next)
    }

    /// Approves a call that needs approval, perhaps with other arguments, or rejects it with a reason.
    ///
    /// # Errors
    /// The decision cannot be stored in the record of the run; or why the call is not made after all.
    pub(crate) fn settle_question(
        &self,
        tool: &Tool,
        place: &Place,
        decided: Result<Option<&str>, &str>,
    ) -> Result<(), Error> {
        let why = match decided {
            Ok(given) => given.and_then(|given| unfit(tool, given)),
            Err(why) => Some(why.to_owned()),
        };
        if let Some(journal) = &self.setting.journal {
            let given = || decided.ok().flatten().map(|given| tool.arguments_shown(given).into_owned());
            let gated = why.clone().map_or_else(|| Gated::Allow { given: given() }, |why| Gated::Deny { why });
            journal.settle_gate(place, gated)?;
        }
        why.map_or(Ok(()), |why| Err(denied(tool, &why)))
    }

    /// Returns who approves an async call that has a question.
    #[cfg(feature = "async")]
    fn approvals(&self, asked: &AllowedCall) -> Option<super::approval::ApprovalChannel<super::tool::ToolCall>> {
        let GateSetting { approver, journal, .. } = &self.setting;
        let approver = approver.clone().filter(|_| asked.question.is_some() && !self.setting.step_by_step)?;
        Some(super::approval::ApprovalChannel { approver, journal: journal.clone() })
    }

    /// Records how a call ended, keeps a result for later equal calls if there is room, and returns the waiters. If the
    /// journal cannot store the reply, the program does not get it.
    pub(crate) fn complete(
        &self,
        ledger: &mut Ledger,
        call: PendingCall,
        reply: &Reply,
        spent: Duration,
    ) -> (Vec<W>, Result<(), Error>) {
        call.give_back();
        if let Some(given) = call.given.as_ref().and_then(|given| given.get()) {
            ledger.rewrite(call.entry, Preview::of(given));
        }
        ledger.end(call.entry, reply, spent);
        if let Some(seen) = call.seen {
            seen.end(reply.status());
        }
        if let (Some(journal), Some(place)) = (&self.setting.journal, &call.place)
            && let Some(ended) = reply.ended()
            && let Err(error) = journal.end(place, ended)
        {
            let waiters = call.key.map(|key| self.cache.end(&key, None)).unwrap_or_default();
            return (waiters, Err(error));
        }
        let result = match reply {
            // It is the result of other arguments.
            _ if call.given.as_ref().is_some_and(|given| given.get().is_some()) => None,
            Reply::Json(json) => Some((CachedResult::Json(json.as_str().into()), json.len())),
            Reply::Echo => Some((CachedResult::Arguments, 0)),
            _ => None,
        };
        let noted = call.result_note.map_or(Ok(()), |note| self.order.ended(&note, reply.bytes(), result.is_some()));
        let Some(key) = call.key else { return (Vec::new(), noted) };
        (self.cache.end(&key, result), noted)
    }

    /// Ends a call whose reply is no longer needed, and returns the waiters.
    pub(crate) fn abandon(&self, call: PendingCall) -> Vec<W> {
        call.give_back();
        call.key.map(|key| self.cache.end(&key, None)).unwrap_or_default()
    }

    /// Adds a waiter to the call in progress. Returns the waiter if that call has ended.
    pub(crate) fn wait<T: Into<W>>(&self, key: &CallKey, waiter: T) -> Option<T> {
        self.cache.wait(key, waiter)
    }

    /// Drops all waiters, when the run is dropped.
    pub(crate) fn clear(&self) {
        self.cache.clear();
    }
}

/// Replaces the arguments of a call, for its tool and for the ledger.
pub(crate) fn rewrite(call: &mut ToolCall, tool: &Tool, given: &str) {
    if let Some(slot) = call.given.take() {
        // The call is approved only once.
        let _ = slot.set(tool.arguments_shown(given).into_owned());
    }
    (call.arguments, call.is_rewritten) = (given.to_owned(), true);
}

/// Returns why a tool cannot take these arguments, which a policy or an approver supplied.
pub(super) fn unfit(tool: &Tool, given: &str) -> Option<String> {
    let Ok(arguments) = serde_json::from_str(given) else {
        return Some("the arguments that it was allowed with are not a JSON object".to_owned());
    };
    let why = match tool.contract.misfit(&arguments, &tool.treatment.redacted) {
        Some(why) => why,
        None => tool.validate_arguments_by_schema(given).err()?.message,
    };
    Some(format!("the arguments that it was allowed with do not fit: {why}"))
}

pub(super) fn denied(tool: &Tool, why: &str) -> Error {
    Error::new(Reason::ToolDenied, format!("tool/{} was denied: {why}", tool.name()))
        .hint("do without this call: it would be denied again")
}

/// Returns the error of a call in a set-up program of a check.
fn not_made(tool: &Tool) -> Error {
    Error::new(Reason::ToolDenied, format!("tool/{} was not called: a check makes no calls", tool.name()))
        .hint("check the program without this set-up program, or let set-up programs only define names")
}

fn approval_required(tool: &Tool, place: &Place, question: &str, in_session: bool) -> Error {
    let hint = if in_session {
        "a program can do nothing about it, and a session cannot wait for approval: run the program as a durable run (POST /v1/runs), \
         or in the host with Engine::start"
    } else {
        "a program can do nothing about it: whoever runs it decides. In the host: approve or reject the call in the record of the \
         run (Record::approve, Record::reject) and resume it, or drive the run step by step (Engine::start)"
    };
    Error::new(Reason::ApprovalRequired, format!("tool/{} needs approval: {question}", tool.name()))
        .hint(hint)
        .detail("call", &*place.to_string())
        .detail("question", question)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::budget::Amounts;
    use crate::terms::observer::Observed;
    use std::sync::Barrier;
    use std::thread::scope;

    /// Two threads repeat the same call of a cached tool. It is denied, but one thread may find it in progress with the
    /// other and wait: every waiter must be returned.
    #[test]
    fn who_waits_for_a_refused_call_comes_back() {
        const CALLS: usize = 50_000;
        let tool = Tool::new("t", |_| Ok(())).cached();
        let budget = Some(Budget::new(Amounts::new().with_calls(0)));
        let gate: ToolGate<()> =
            ToolGate::new(GateSetting { budget, ..GateSetting::default() }, RunView::quiet(&Observed::default()));
        let asked = |arguments: &str| AllowedCall { arguments: arguments.to_owned(), given: None, question: None };
        let (start, arguments) = (Barrier::new(2), asked(&"x".repeat(1_000)));
        let call = || {
            let (mut ledger, mut waits, mut woken) = (Ledger::default(), 0, 0);
            start.wait();
            for _ in 0..CALLS {
                match gate.admit(&mut ledger, &tool, &arguments, (&Place::default(), true)) {
                    Decision::Refused(_, waiters) => woken += waiters.len(),
                    Decision::InProgress(key) => waits += usize::from(gate.wait(&key, ()).is_none()),
                    _ => panic!("the budget has no calls"),
                }
            }
            (waits, woken)
        };
        let (one, other) = scope(|threads| {
            let one = threads.spawn(call);
            let other = call();
            (one.join().expect("a thread"), other)
        });
        assert_eq!(one.0 + other.0, one.1 + other.1);
    }
}
