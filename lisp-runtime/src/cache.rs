//! The results of cached tools in a run. A call that is under way is not made a second time: who asks for the same
//! waits.

use crate::parallel::Task;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of arguments and results that a run keeps; more is not kept, and called again.
const BYTES: usize = 16 << 20;

/// A tool's name and its arguments as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(Arc<(String, String)>);

impl Key {
    pub(crate) fn new(tool: &str, arguments: &str) -> Self {
        Key(Arc::new((tool.to_owned(), arguments.to_owned())))
    }
}

enum Entry {
    Result(Arc<str>),
    /// A call is under way; these workers wait for it.
    UnderWay(Vec<Task>),
}

/// What the cache has for a call.
pub(crate) enum Found {
    Result(Arc<str>),
    UnderWay,
    /// Nothing: the one who asked makes the call, and says how it went.
    Nothing,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    bytes: usize,
}

/// The results so far.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Entries>);

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn look_up(&self, key: &Key) -> Found {
        let mut entries = self.lock();
        match entries.by_key.get(key) {
            Some(Entry::Result(result)) => Found::Result(result.clone()),
            Some(Entry::UnderWay(_)) => Found::UnderWay,
            None => {
                entries.by_key.insert(key.clone(), Entry::UnderWay(Vec::new()));
                Found::Nothing
            }
        }
    }

    /// Lets a worker wait for the call that is under way; gives it back when there is none any more.
    pub(crate) fn wait(&self, key: &Key, task: Task) -> Option<Task> {
        match self.lock().by_key.get_mut(key) {
            Some(Entry::UnderWay(waiting)) => {
                waiting.push(task);
                None
            }
            _ => Some(task),
        }
    }

    /// Keeps a result for the next call with the same arguments, as long as there is room.
    pub(crate) fn keep(&self, key: &Key, result: &str) {
        let mut entries = self.lock();
        let waiting = entries.by_key.remove(key);
        let bytes = key.0.1.len() + result.len();
        if entries.bytes.saturating_add(bytes) <= BYTES {
            entries.bytes += bytes;
            entries.by_key.insert(key.clone(), Entry::Result(result.into()));
        }
        drop(entries);
        wake(waiting);
    }

    /// The call came to nothing that could be kept.
    pub(crate) fn give_up(&self, key: &Key) {
        let waiting = self.lock().by_key.remove(key);
        wake(waiting);
    }

    /// Takes out the workers that wait. They refer to the run, and so to this cache.
    pub(crate) fn clear(&self) {
        let entries = std::mem::take(&mut *self.lock());
        drop(entries);
    }
}

fn wake(entry: Option<Entry>) {
    if let Some(Entry::UnderWay(waiting)) = entry {
        waiting.into_iter().for_each(Task::go_on);
    }
}
