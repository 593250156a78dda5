//! The gate that every tool call of a run passes: the limit on calls, the cache, and the ledger.

use super::cache::{CachedResult, CallKey, Lookup, ResultCache};
use super::ledger::Ledger;
use super::tool::{Effect, Reply, Tool, ToolError};
use crate::record::journal::{Asking, Journal, Recalled};
use crate::record::line::Ended;
use crate::terms::outcome::Preview;
use crate::terms::place::Place;
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
}

/// Counts the tool calls of a run and keeps the results of cached tools. A call of a cached tool that is in progress is not
/// made a second time: an equal call becomes a waiter (`W`).
pub(crate) struct ToolGate<W> {
    calls: AtomicU64,
    /// The most calls; 0 is no limit.
    limit: u64,
    cache: ResultCache<W>,
    journal: Option<Arc<Journal>>,
}

impl<W> ToolGate<W> {
    /// A gate that admits at most `limit` calls; 0 is no limit.
    pub(crate) fn new(limit: u64, journal: Option<Arc<Journal>>) -> Self {
        ToolGate { calls: AtomicU64::new(0), limit, cache: ResultCache::default(), journal }
    }

    /// Decides on a call and records the decision in the ledger and in the journal.
    pub(crate) fn admit(&self, ledger: &mut Ledger, tool: &Tool, arguments: &str, place: &Place) -> Decision<W> {
        let worker = place.worker();
        let mut key = tool.cached.then(|| CallKey::new(&tool.name, arguments));
        let repeatable = tool.effect == Effect::Read;
        let asking = Asking { place, tool: &tool.name, arguments, cached: tool.cached, repeatable };
        // What the call gave in an earlier life it gives again, whatever equal calls give.
        let recalled = self.journal.as_ref().map_or(Recalled::Nothing, |journal| journal.recall(&asking));
        let digest = key.as_ref().map(CallKey::digest);
        match (&recalled, digest) {
            (Recalled::LeftOut(error), _) => return Decision::LeftOut(error.clone()),
            (Recalled::Equal(ended), Some(digest)) => {
                let (shown, result) = match ended {
                    Ended::Json(json) => (json.as_str(), CachedResult::Json(json.as_str().into())),
                    Ended::Echo | Ended::Failed(_) => (arguments, CachedResult::Arguments),
                };
                ledger.cached(&tool.name, arguments, shown, worker, digest);
                return Decision::Cached(result);
            }
            (Recalled::Nothing | Recalled::Equal(_), _) => {}
            (Recalled::Ended(_) | Recalled::Refused(_), _) => key = None,
        }
        if let Some(key) = &key {
            match self.cache.look_up(key) {
                Lookup::Found(result) => {
                    let shown = match &result {
                        CachedResult::Json(json) => json,
                        CachedResult::Arguments => arguments,
                    };
                    ledger.cached(&tool.name, arguments, shown, worker, key.digest());
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
        let entry = ledger.begin(&tool.name, arguments, worker, digest, number);
        let mut pending = PendingCall { number, entry, key, place: None };
        let Some(journal) = &self.journal else { return Decision::Admitted(pending) };
        let refused = match recalled {
            Recalled::Ended(ended) => return Decision::Replayed(pending, ended.into()),
            Recalled::Refused(error) => Err(error),
            _ => journal.announce(&asking),
        };
        match refused {
            Ok(()) => {
                pending.place = Some(place.clone());
                Decision::Admitted(pending)
            }
            Err(error) => {
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
    use std::sync::Barrier;
    use std::thread::scope;

    /// Two threads make the same call of a cached tool again and again. It is refused, but one may find it in progress with the
    /// other and wait: as many waiters come back as have begun to wait.
    #[test]
    fn who_waits_for_a_refused_call_comes_back() {
        const CALLS: usize = 50_000;
        let tool = Tool::new("t", |_| Ok(())).cached();
        let gate: ToolGate<()> = ToolGate::new(1, None);
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
