//! The gate that every tool call of a run passes: the host's policy, the limits on calls, the cache, the ledger and the journal.

use super::cache::{CachedResult, CallKey, Lookup, ResultCache};
use super::ledger::Ledger;
use super::policy::{AskedCall, Policy, PolicyDecision};
use super::tool::{Effect, Reply, Tool, ToolError};
use crate::record::journal::{Asking, Journal, Recalled};
use crate::record::line::Ended;
use crate::record::line::Gated;
use crate::terms::budget::Budget;
use crate::terms::outcome::{CallStatus, Preview};
use crate::terms::place::Place;
use crate::terms::run_view::{CallView, RunView};
use crate::terms::spans::CallSpan;
use lisp_core::{Error, Reason};
use serde::de::IgnoredAny;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a gate goes by.
#[derive(Clone, Debug, Default)]
pub(crate) struct GateSetting {
    /// The most calls; 0 is no limit.
    pub(crate) limit: u64,
    pub(crate) policy: Policy,
    /// Who the run is for.
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) budget: Option<Budget>,
    pub(crate) journal: Option<Arc<Journal>>,
    /// The run is driven by hand: its driver can be asked.
    pub(crate) by_hand: bool,
}

impl GateSetting {
    /// Does the run see the tool at all?
    pub(crate) fn shows(&self, tool: &Tool) -> bool {
        self.policy.shows(tool, self.tenant.as_deref())
    }
}

/// A call that the policy lets pass.
#[derive(Debug)]
pub(crate) struct AllowedCall {
    /// As the program has them.
    pub(crate) arguments: String,
    /// What the policy has put in their place.
    pub(crate) given: Option<String>,
    /// What has to be approved before it is made.
    pub(crate) question: Option<String>,
}

impl AllowedCall {
    /// The arguments that the tool gets.
    pub(crate) fn for_tool(&self) -> &str {
        self.given.as_deref().unwrap_or(&self.arguments)
    }
}

/// The gate's decision on a call.
pub(crate) enum Decision<W> {
    /// The result of an earlier, equal call serves.
    Cached(CachedResult),
    /// An equal call is in progress: [`ToolGate::wait`] for it, then ask again.
    InProgress(CallKey),
    /// The run may not make the call. Waiters that came meanwhile have to ask again, and are refused in their turn.
    Refused(Error, Vec<W>),
    /// It was not made in an earlier life, as a worker beside the caller had failed: the caller ends.
    LeftOut(Error),
    /// The call is in the ledger and has to be made.
    Admitted(PendingCall),
    /// The call is in the ledger, and ended so in an earlier life of the run: pass it to [`ToolGate::complete`].
    Replayed(PendingCall, Reply),
}

/// A call that was admitted and has not ended: pass it to [`ToolGate::complete`] or [`ToolGate::abandon`].
#[derive(Debug)]
pub(crate) struct PendingCall {
    /// The call's number in the run, from 1.
    pub(crate) number: u64,
    /// The place of the call in the ledger.
    entry: Option<usize>,
    /// The key that the result is kept under.
    key: Option<CallKey>,
    /// Its name in the journal, where its end is to be told.
    place: Option<Place>,
    /// What those see who look at the run.
    seen: Option<CallView>,
}

impl PendingCall {
    /// The span that the tool is called within.
    pub(crate) fn span(&self) -> CallSpan {
        self.seen.as_ref().map(CallView::span).unwrap_or_default()
    }
}

/// Counts the tool calls of a run and keeps the results of cached tools. A call of a cached tool that is in progress is not
/// made a second time: an equal call becomes a waiter (`W`).
pub(crate) struct ToolGate<W> {
    calls: AtomicU64,
    /// The calls of each tool, where somebody asks for them.
    by_tool: Mutex<HashMap<String, u64>>,
    cache: ResultCache<W>,
    setting: GateSetting,
    view: RunView,
}

impl<W> ToolGate<W> {
    pub(crate) fn new(setting: GateSetting, view: RunView) -> Self {
        ToolGate { calls: AtomicU64::new(0), by_tool: Mutex::default(), cache: ResultCache::default(), setting, view }
    }

    /// Has the policy decide on a call whose arguments fit the tool. Decisions of an earlier life of the run stand.
    ///
    /// # Errors
    /// Why the run may not make the call; the ledger has it.
    pub(crate) fn decide(
        &self,
        ledger: &mut Ledger,
        tool: &Tool,
        arguments: String,
        place: &Place,
    ) -> Result<AllowedCall, Error> {
        let GateSetting { policy, journal, .. } = &self.setting;
        if !policy.is_some() && journal.is_none() {
            return Ok(AllowedCall { arguments, given: None, question: None });
        }
        let decided = self.decision(tool, &arguments, place).and_then(|gated| match gated {
            Gated::Allow { given } => Ok((given, None)),
            Gated::Deny { why } => Err(denied(tool, &why)),
            Gated::Ask { question } if self.setting.by_hand => Ok((None, Some(question))),
            Gated::Ask { question } => Err(approval_required(tool, place, &question)),
        });
        match decided {
            Ok((given, question)) => Ok(AllowedCall { arguments, given, question }),
            Err(error) => {
                ledger.refused(
                    &tool.name,
                    Preview::of(&tool.arguments_shown(&arguments)),
                    &error.message,
                    place.worker(),
                );
                Err(error)
            }
        }
    }

    /// The decision of an earlier life, or else of the policy.
    fn decision(&self, tool: &Tool, arguments: &str, place: &Place) -> Result<Gated, Error> {
        let GateSetting { policy, journal, .. } = &self.setting;
        let shown = tool.arguments_shown(arguments);
        let earlier = match journal {
            Some(journal) => journal.decided(place, &tool.name, &shown)?,
            None => None,
        };
        match earlier {
            // What the tool was to get is not in the record: the policy says it again, should it still be needed.
            Some((Gated::Allow { given: Some(_) }, false)) if tool.redacts() => {
                return if policy.is_some() {
                    Ok(self.ask_policy(tool, arguments, place))
                } else {
                    let why = "the policy gave it arguments that its record does not show, and there is no policy now";
                    Err(denied(tool, why))
                };
            }
            // Its end tells that it was made.
            Some((Gated::Ask { .. }, true)) => return Ok(Gated::Allow { given: None }),
            Some((gated, _)) => return Ok(gated),
            None => {}
        }
        let gated = self.ask_policy(tool, arguments, place);
        // That a call is allowed as it is, its own line tells; one that an earlier result may serve has none.
        if let Some(journal) = journal
            && policy.is_some()
            && (tool.cached || gated != (Gated::Allow { given: None }))
        {
            let kept = match &gated {
                Gated::Allow { given: Some(given) } => {
                    Gated::Allow { given: Some(tool.arguments_shown(given).into_owned()) }
                }
                other => other.clone(),
            };
            journal.decide(place, &tool.name, &shown, kept)?;
        }
        Ok(gated)
    }

    fn ask_policy(&self, tool: &Tool, arguments: &str, place: &Place) -> Gated {
        let asked = AskedCall {
            tool,
            arguments,
            place,
            tenant: self.setting.tenant.as_deref(),
            calls: self.calls(),
            calls_of_tool: self.calls_of(&tool.name),
        };
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

    /// Decides on a call that the policy lets pass, and records the decision in the ledger and in the journal.
    pub(crate) fn admit(&self, ledger: &mut Ledger, tool: &Tool, asked: &AllowedCall, place: &Place) -> Decision<W> {
        let (worker, arguments) = (place.worker(), asked.for_tool());
        let (program_shown, shown) = (tool.arguments_shown(&asked.arguments), tool.arguments_shown(arguments));
        let repeatable = tool.effect == Effect::Read;
        let (name, cached) = (tool.name.as_str(), tool.cached);
        let asking = Asking { place, tool: name, arguments: &program_shown, given: &shown, cached, repeatable };
        let mut key = cached.then(|| CallKey::new(name, arguments));
        let digest = key.as_ref().map(CallKey::digest);
        // What the call gave in an earlier life it gives again, whatever equal calls give.
        let recalled = self.setting.journal.as_ref().map_or(Recalled::Nothing, |journal| journal.recall(&asking));
        let mut earlier = None;
        match &recalled {
            Recalled::LeftOut(error) => return Decision::LeftOut(error.clone()),
            Recalled::Equal(Ended::Json(json)) => earlier = Some(CachedResult::Json(json.as_str().into())),
            Recalled::Equal(Ended::Echo | Ended::Failed(_)) => earlier = Some(CachedResult::Arguments),
            Recalled::Nothing => {}
            Recalled::Ended(_) | Recalled::Refused(_) => key = None,
        }
        if earlier.is_none()
            && let Some(key) = &key
        {
            match self.cache.look_up(key) {
                Lookup::Found(result) => earlier = Some(result),
                Lookup::InProgress => return Decision::InProgress(key.clone()),
                Lookup::Begun => {}
            }
        }
        if let (Some(result), Some(digest)) = (earlier, digest) {
            let result = match result {
                CachedResult::Arguments if asked.given.is_some() => CachedResult::Json(arguments.into()),
                result => result,
            };
            let result_shown = match &result {
                CachedResult::Json(json) => json,
                CachedResult::Arguments => arguments,
            };
            ledger.cached(name, &shown, result_shown, worker, digest);
            if let Some(seen) = self.view.begin_call(name, place, 0, false) {
                seen.end(CallStatus::Cached);
            }
            return Decision::Cached(result);
        }
        let number = match self.count(tool) {
            Ok(number) => number,
            Err(error) => {
                let waiters = key.as_ref().map(|key| self.cache.end(key, None)).unwrap_or_default();
                ledger.refused(name, Preview::of(&shown), &error.message, worker);
                return Decision::Refused(error, waiters);
            }
        };
        let entry = ledger.begin(name, &shown, worker, digest, number);
        let mut pending = PendingCall { number, entry, key, place: None, seen: None };
        let begun = match recalled {
            Recalled::Ended(ended) => {
                pending.seen = self.view.begin_call(name, place, number, true);
                return Decision::Replayed(pending, ended.into());
            }
            Recalled::Refused(error) => Err(error),
            _ => self.begin(&asking),
        };
        match begun {
            Ok(()) => {
                pending.place = self.setting.journal.is_some().then(|| place.clone());
                pending.seen = self.view.begin_call(name, place, number, false);
                Decision::Admitted(pending)
            }
            Err(error) => {
                ledger.end(pending.entry, &Reply::Error(ToolError::new(error.message.clone())), Duration::ZERO);
                Decision::Refused(error, self.abandon(pending))
            }
        }
    }

    /// Begins a call that is to be made: it is paid for and announced.
    fn begin(&self, asking: &Asking<'_>) -> Result<(), Error> {
        self.setting.budget.as_ref().map_or(Ok(()), Budget::take_call)?;
        self.setting.journal.as_ref().map_or(Ok(()), |journal| journal.announce(asking))
    }

    /// Counts one more call of a tool; returns its number in the run.
    fn count(&self, tool: &Tool) -> Result<u64, Error> {
        let over = |what: &str, limit: u64, raise: &str| {
            Error::new(Reason::ToolCallLimitExceeded, format!("a run may call {what} {limit} times"))
                .hint(format!("call tools less often, for example once for all rows, or raise {raise}"))
                .detail("limit", limit)
        };
        if tool.most_calls > 0 || self.setting.policy.is_some() {
            let mut by_tool = self.by_tool.lock().unwrap_or_else(PoisonError::into_inner);
            let calls = by_tool.entry(tool.name.clone()).or_default();
            if tool.most_calls > 0 && *calls >= tool.most_calls {
                return Err(over(&format!("tool/{}", tool.name), tool.most_calls, "Tool::most_calls"));
            }
            *calls += 1;
        }
        let limit = self.setting.limit;
        let more = |calls: u64| (limit == 0 || calls < limit).then_some(calls + 1);
        let before = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        before.map(|before| before + 1).map_err(|_| over("tools", limit, "the limit tool_calls"))
    }

    /// How many calls of a tool the run has made.
    fn calls_of(&self, tool: &str) -> u64 {
        self.by_tool.lock().unwrap_or_else(PoisonError::into_inner).get(tool).copied().unwrap_or(0)
    }

    /// Somebody has decided on a call that waits for that: it is approved, perhaps with other arguments, or not, and why.
    ///
    /// # Errors
    /// The decision cannot be kept in the record of the run; or why the call is not made after all.
    pub(crate) fn settle(&self, tool: &Tool, place: &Place, decided: Result<Option<&str>, &str>) -> Result<(), Error> {
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

    /// The name by which a tool knows a call of a recorded run: the same in every life of the run.
    pub(crate) fn call_key(&self, place: &Place) -> Option<String> {
        self.setting.journal.as_ref().map(|journal| format!("{}/{place}", journal.run_id()))
    }

    /// Records how a call ended, keeps a result for later equal calls as long as there is room, and returns the waiters. The
    /// program may not have the reply when the journal cannot have it.
    pub(crate) fn complete(
        &self,
        ledger: &mut Ledger,
        call: PendingCall,
        reply: &Reply,
        spent: Duration,
    ) -> (Vec<W>, Result<(), Error>) {
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
        let Some(key) = call.key else { return (Vec::new(), Ok(())) };
        let result = match reply {
            Reply::Json(json) => Some((CachedResult::Json(json.as_str().into()), json.len())),
            Reply::Echo => Some((CachedResult::Arguments, 0)),
            _ => None,
        };
        (self.cache.end(&key, result), Ok(()))
    }

    /// Ends a call whose reply does not matter any more, and returns the waiters.
    pub(crate) fn abandon(&self, call: PendingCall) -> Vec<W> {
        call.key.map(|key| self.cache.end(&key, None)).unwrap_or_default()
    }

    /// Adds a waiter to the call in progress; returns the waiter when that call has ended.
    pub(crate) fn wait<T: Into<W>>(&self, key: &CallKey, waiter: T) -> Option<T> {
        self.cache.wait(key, waiter)
    }

    /// Drops all waiters, when the run is dropped.
    pub(crate) fn clear(&self) {
        self.cache.clear();
    }

    /// The number of calls made so far, without those served from the cache.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// Why a tool cannot get these arguments, which a policy or a person gave it.
fn unfit(tool: &Tool, given: &str) -> Option<String> {
    if serde_json::from_str::<HashMap<String, IgnoredAny>>(given).is_err() {
        return Some("the arguments that it was allowed with are no JSON object".to_owned());
    }
    tool.refused(given).map(|error| format!("the arguments that it was allowed with do not fit: {}", error.message))
}

fn denied(tool: &Tool, why: &str) -> Error {
    Error::new(Reason::ToolDenied, format!("tool/{} was denied: {why}", tool.name))
        .hint("do without this call: it would be denied again")
}

fn approval_required(tool: &Tool, place: &Place, question: &str) -> Error {
    Error::new(Reason::ApprovalRequired, format!("tool/{} has to be approved: {question}", tool.name))
        .hint("drive the run by hand (Engine::start), or record it, approve the call there (Record::approve) and resume it")
        .detail("call", &*place.to_string())
        .detail("question", question)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::observer::Observed;
    use std::sync::Barrier;
    use std::thread::scope;

    /// Two threads make the same call of a cached tool again and again. It is refused, but one may find it in progress with the
    /// other and wait: as many waiters come back as have begun to wait.
    #[test]
    fn who_waits_for_a_refused_call_comes_back() {
        const CALLS: usize = 50_000;
        let tool = Tool::new("t", |_| Ok(())).cached();
        let gate: ToolGate<()> =
            ToolGate::new(GateSetting { limit: 1, ..GateSetting::default() }, RunView::quiet(&Observed::default()));
        let asked = |arguments: &str| AllowedCall { arguments: arguments.to_owned(), given: None, question: None };
        let first = gate.admit(&mut Ledger::default(), &tool, &asked("[]"), &Place::default());
        assert!(matches!(first, Decision::Admitted(_)));
        let (start, arguments) = (Barrier::new(2), asked(&"x".repeat(1_000)));
        let call = || {
            let (mut ledger, mut waits, mut woken) = (Ledger::default(), 0, 0);
            start.wait();
            for _ in 0..CALLS {
                match gate.admit(&mut ledger, &tool, &arguments, &Place::default()) {
                    Decision::Refused(_, waiters) => woken += waiters.len(),
                    Decision::InProgress(key) => waits += usize::from(gate.wait(&key, ()).is_none()),
                    _ => panic!("the run may make no more calls"),
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
