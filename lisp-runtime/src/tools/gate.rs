//! The gate that every tool call of a run passes: the limit on calls, the cache, and the ledger.

use super::cache::{CachedResult, CallKey, Lookup, ResultCache};
use super::ledger::Ledger;
use super::tool::{Effect, Reply, Tool, ToolError};
use crate::record::journal::{Asking, Begun, Journal};
use crate::terms::outcome::{CallStatus, Preview};
use crate::terms::place::Place;
use crate::terms::run_view::{CallView, RunView};
use crate::terms::spans::CallSpan;
use lisp_core::{Error, Reason};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The gate's decision on a call.
pub(crate) enum Decision<W> {
    /// The result of an earlier, equal call serves.
    Cached(CachedResult),
    /// An equal call is in progress: [`ToolGate::wait`] for it, then ask again.
    InProgress(CallKey),
    /// The run may not make the call. Waiters that came meanwhile have to ask again, and are refused in their turn.
    Refused(Error, Vec<W>),
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
    /// The most calls; 0 is no limit.
    limit: u64,
    cache: ResultCache<W>,
    journal: Option<Arc<Journal>>,
    view: RunView,
}

impl<W> ToolGate<W> {
    /// A gate that admits at most `limit` calls; 0 is no limit.
    pub(crate) fn new(limit: u64, journal: Option<Arc<Journal>>, view: RunView) -> Self {
        ToolGate { calls: AtomicU64::new(0), limit, cache: ResultCache::default(), journal, view }
    }

    /// Decides on a call and records the decision in the ledger and in the journal.
    pub(crate) fn admit(&self, ledger: &mut Ledger, tool: &Tool, arguments: &str, place: &Place) -> Decision<W> {
        let worker = place.worker();
        let key = tool.cached.then(|| CallKey::new(&tool.name, arguments));
        if let Some(key) = &key {
            match self.cache.look_up(key) {
                Lookup::Found(result) => {
                    let shown = match &result {
                        CachedResult::Json(json) => json,
                        CachedResult::Arguments => arguments,
                    };
                    ledger.cached(&tool.name, arguments, shown, worker, key.digest());
                    if let Some(seen) = self.view.begin_call(&tool.name, place, 0, false) {
                        seen.end(CallStatus::Cached);
                    }
                    return Decision::Cached(result);
                }
                Lookup::InProgress => return Decision::InProgress(key.clone()),
                Lookup::Begun => {}
            }
        }
        let limit = self.limit;
        let more = |calls: u64| (limit == 0 || calls < limit).then_some(calls + 1);
        let Ok(before) = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) else {
            let waiters = key.as_ref().map(|key| self.cache.end(key, None)).unwrap_or_default();
            let error = Error::new(Reason::ToolCallLimitExceeded, format!("a run may call tools {limit} times"))
                .hint("call tools less often, for example once for all rows, or raise the limit tool_calls")
                .detail("limit", limit);
            ledger.refused(&tool.name, Preview::of(arguments), &error.message, worker);
            return Decision::Refused(error, waiters);
        };
        let number = before + 1;
        let entry = ledger.begin(&tool.name, arguments, worker, key.as_ref().map(CallKey::digest), number);
        let mut pending = PendingCall { number, entry, key, place: None, seen: None };
        let seen = |replayed| self.view.begin_call(&tool.name, place, number, replayed);
        let Some(journal) = &self.journal else {
            pending.seen = seen(false);
            return Decision::Admitted(pending);
        };
        let repeatable = tool.effect == Effect::Read;
        let asking = Asking { place, tool: &tool.name, arguments, cached: tool.cached, repeatable };
        match journal.begin(&asking) {
            Begun::Make => {
                (pending.place, pending.seen) = (Some(place.clone()), seen(false));
                Decision::Admitted(pending)
            }
            Begun::Ended(ended) => {
                pending.seen = seen(true);
                Decision::Replayed(pending, ended.into())
            }
            Begun::Refused(error) => {
                ledger.end(pending.entry, &Reply::Error(ToolError::new(error.message.clone())), Duration::ZERO);
                Decision::Refused(error, self.abandon(pending))
            }
        }
    }

    /// The name by which a tool knows a call of a recorded run: the same in every life of the run.
    pub(crate) fn call_key(&self, place: &Place) -> Option<String> {
        self.journal.as_ref().map(|journal| format!("{}/{place}", journal.run_id()))
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
        if let (Some(journal), Some(place)) = (&self.journal, &call.place)
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
        let gate: ToolGate<()> = ToolGate::new(1, None, RunView::quiet(&Observed::default()));
        let first = gate.admit(&mut Ledger::default(), &tool, "[]", &Place::default());
        assert!(matches!(first, Decision::Admitted(_)));
        let (start, arguments) = (Barrier::new(2), "x".repeat(1_000));
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
