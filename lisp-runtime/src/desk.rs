//! Where the tool calls of a run are taken: the count, the cache, and what of them goes into the ledger.

use crate::ledger::Ledger;
use crate::outcome::Preview;
use crate::tool::{Reply, Tool};
use lisp_core::{Error, Reason};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most bytes of arguments and results that the cache of a run keeps; more is not kept, and called again.
const CACHE_BYTES: usize = 16 << 20;

/// A tool's name and its arguments as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(Arc<(String, String)>);

/// What stands for a key where keys are only compared: the ledger does not keep whole arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u64; 2]);

impl Key {
    fn digest(&self) -> Digest {
        static SEEDS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        Digest([SEEDS[0].hash_one(self), SEEDS[1].hash_one(self)])
    }
}

/// The result of a cached tool.
#[derive(Clone)]
pub(crate) enum Kept {
    /// Its JSON text
    Json(Arc<str>),
    /// The arguments of the call
    Arguments,
}

/// What becomes of a call.
pub(crate) enum Admission {
    /// An earlier call's result answers it.
    Cached(Kept),
    /// The same call is under way: [`Desk::wait`], then ask again.
    UnderWay(Key),
    /// The run may not make it.
    Refused(Error),
    /// It is in the ledger and to be made.
    Made(Ticket),
}

/// A call under way.
#[derive(Debug)]
pub(crate) struct Ticket {
    /// Its number in the run, from 1.
    pub(crate) number: u64,
    /// Its place in the ledger.
    entry: Option<usize>,
    /// What its result is kept under.
    key: Option<Key>,
}

/// The count of a run's tool calls, and the results of cached tools. A call of one that is under way is not made a
/// second time: who asks for the same waits (`W`).
pub(crate) struct Desk<W> {
    calls: AtomicU64,
    /// The most calls; 0 is no limit.
    limit: u64,
    cache: Mutex<Cache<W>>,
}

struct Cache<W> {
    by_key: HashMap<Key, Entry<W>>,
    bytes: usize,
}

enum Entry<W> {
    Result(Kept),
    UnderWay(Vec<W>),
}

impl<W> Desk<W> {
    /// A desk that lets so many calls pass; 0 is no limit.
    pub(crate) fn new(limit: u64) -> Self {
        Desk { calls: AtomicU64::new(0), limit, cache: Mutex::new(Cache { by_key: HashMap::new(), bytes: 0 }) }
    }

    fn cache(&self) -> MutexGuard<'_, Cache<W>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a call from the cache, refuses it, or enters it into the ledger. `worker` is the way to the worker that
    /// makes it.
    pub(crate) fn admit(&self, ledger: &mut Ledger, tool: &Tool, arguments: &str, worker: Vec<u32>) -> Admission {
        let key = tool.cached.then(|| Key(Arc::new((tool.name.clone(), arguments.to_owned()))));
        if let Some(key) = &key {
            let mut cache = self.cache();
            match cache.by_key.get(key) {
                Some(Entry::Result(result)) => {
                    let result = result.clone();
                    drop(cache);
                    let shown = match &result {
                        Kept::Json(json) => json,
                        Kept::Arguments => arguments,
                    };
                    ledger.cached(&tool.name, arguments, shown, worker, key.digest());
                    return Admission::Cached(result);
                }
                Some(Entry::UnderWay(_)) => return Admission::UnderWay(key.clone()),
                None => drop(cache.by_key.insert(key.clone(), Entry::UnderWay(Vec::new()))),
            }
        }
        let limit = self.limit;
        let more = |calls: u64| (limit == 0 || calls < limit).then_some(calls + 1);
        let Ok(before) = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) else {
            // Whoever waits for the same call is refused in its turn: there is nobody yet, the entry is our own.
            if let Some(key) = &key {
                self.cache().by_key.remove(key);
            }
            let error = Error::new(Reason::ToolCallLimitExceeded, format!("a run may call tools {limit} times"))
                .hint("call tools less often, for example once for all rows, or raise the limit tool_calls")
                .detail("limit", limit);
            ledger.refused(&tool.name, Preview::of(arguments), &error.message, worker);
            return Admission::Refused(error);
        };
        let number = before + 1;
        Admission::Made(Ticket {
            number,
            entry: ledger.begin(&tool.name, arguments, worker, key.as_ref().map(Key::digest), number),
            key,
        })
    }

    /// Records how a call ended. A result is kept for the next call with the same arguments, as long as there is room.
    /// Answers who waited for it.
    pub(crate) fn settle(&self, ledger: &mut Ledger, ticket: Ticket, reply: &Reply, spent: Duration) -> Vec<W> {
        ledger.end(ticket.entry, reply, spent);
        let Some(key) = ticket.key else { return Vec::new() };
        match reply {
            Reply::Json(json) => self.leave(&key, Some((Kept::Json(json.as_str().into()), json.len()))),
            Reply::Echo => self.leave(&key, Some((Kept::Arguments, 0))),
            _ => self.leave(&key, None),
        }
    }

    /// Lets go of a call whose reply does not matter any more. Answers who waited for it.
    pub(crate) fn give_up(&self, ticket: Ticket) -> Vec<W> {
        ticket.key.map(|key| self.leave(&key, None)).unwrap_or_default()
    }

    fn leave(&self, key: &Key, result: Option<(Kept, usize)>) -> Vec<W> {
        let mut cache = self.cache();
        let waiting = match cache.by_key.remove(key) {
            Some(Entry::UnderWay(waiting)) => waiting,
            _ => Vec::new(),
        };
        let bytes = key.0.1.len() + result.as_ref().map_or(0, |(_, bytes)| *bytes);
        if let Some((result, _)) = result
            && cache.bytes.saturating_add(bytes) <= CACHE_BYTES
        {
            cache.bytes += bytes;
            cache.by_key.insert(key.clone(), Entry::Result(result));
        }
        waiting
    }

    /// Lets somebody wait for the call that is under way; gives it back when there is none any more.
    pub(crate) fn wait(&self, key: &Key, who: W) -> Option<W> {
        match self.cache().by_key.get_mut(key) {
            Some(Entry::UnderWay(waiting)) => {
                waiting.push(who);
                None
            }
            _ => Some(who),
        }
    }

    /// Forgets everybody who waits, when the run is dropped.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut self.cache().by_key);
        drop(all);
    }

    /// Calls made so far, cached ones not counted.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}
