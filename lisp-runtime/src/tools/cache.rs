//! The results of cached tools in one run, and calls that wait for the result of an equal call.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The maximum bytes of arguments and results in the cache of a run. A result beyond that is not kept, and its tool is
/// called again.
const CACHE_BYTES: usize = 16 << 20;

/// A tool's name and its arguments as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallKey(Arc<(String, String)>);

/// Replaces a key where keys are only compared: the ledger does not keep whole arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallDigest([u64; 2]);

impl CallKey {
    /// Creates the key of a call.
    pub(crate) fn new(tool: &str, arguments: &str) -> Self {
        CallKey(Arc::new((tool.to_owned(), arguments.to_owned())))
    }

    pub(crate) fn digest(&self) -> CallDigest {
        static SEEDS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        CallDigest([SEEDS[0].hash_one(self), SEEDS[1].hash_one(self)])
    }

    fn argument_bytes(&self) -> usize {
        self.0.1.len()
    }
}

/// The result of a cached tool.
#[derive(Clone)]
pub(crate) enum CachedResult {
    /// The result as JSON text.
    Json(Arc<str>),
    /// The arguments of the call.
    Arguments,
}

impl CachedResult {
    /// Returns the bytes of the result.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            CachedResult::Json(json) => json.trim().len() as u64,
            CachedResult::Arguments => 0,
        }
    }
}

/// The state of a call's key in the cache.
pub(crate) enum Lookup {
    /// An equal call has ended with this result.
    Found(CachedResult),
    /// An equal call is in progress.
    InProgress,
    /// The key is new. It is now in progress, and [`ResultCache::end`] must be called for it.
    Begun,
}

/// The results of cached tools, by call. `W` is a waiter: a call that waits for an equal one to end.
pub(crate) struct ResultCache<W>(Mutex<Inner<W>>);

struct Inner<W> {
    by_key: HashMap<CallKey, Entry<W>>,
    bytes: usize,
}

enum Entry<W> {
    Result(CachedResult),
    InProgress(Vec<W>),
}

impl<W> Default for ResultCache<W> {
    fn default() -> Self {
        ResultCache(Mutex::new(Inner { by_key: HashMap::new(), bytes: 0 }))
    }
}

impl<W> ResultCache<W> {
    fn inner(&self) -> MutexGuard<'_, Inner<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up a call. If its key is new, marks it as in progress.
    pub(crate) fn look_up(&self, key: &CallKey) -> Lookup {
        let mut cache = self.inner();
        match cache.by_key.get(key) {
            Some(Entry::Result(result)) => Lookup::Found(result.clone()),
            Some(Entry::InProgress(_)) => Lookup::InProgress,
            None => {
                cache.by_key.insert(key.clone(), Entry::InProgress(Vec::new()));
                Lookup::Begun
            }
        }
    }

    /// Ends a call in progress, keeps its result with its size if there is room, and returns the waiters.
    pub(crate) fn end(&self, key: &CallKey, result: Option<(CachedResult, usize)>) -> Vec<W> {
        let mut cache = self.inner();
        let waiting = match cache.by_key.remove(key) {
            Some(Entry::InProgress(waiting)) => waiting,
            _ => Vec::new(),
        };
        if let Some((result, bytes)) = result {
            let bytes = cache.bytes.saturating_add(key.argument_bytes()).saturating_add(bytes);
            if bytes <= CACHE_BYTES {
                cache.bytes = bytes;
                cache.by_key.insert(key.clone(), Entry::Result(result));
            }
        }
        waiting
    }

    /// Adds a waiter to a call in progress. Returns the waiter if the call has ended.
    pub(crate) fn wait<T: Into<W>>(&self, key: &CallKey, waiter: T) -> Option<T> {
        match self.inner().by_key.get_mut(key) {
            Some(Entry::InProgress(waiting)) => {
                waiting.push(waiter.into());
                None
            }
            _ => Some(waiter),
        }
    }

    /// Drops all results and all waiters.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut self.inner().by_key);
        drop(all);
    }
}
