//! Waits for changes of runs: the news of the store, for those who watch a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// How long a watcher waits at most: news may be lost. Each look reads the run.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

type Watched = Mutex<HashMap<Arc<str>, Weak<Entry>>>;

/// The runs that are watched in this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchers(Arc<Watched>);

#[derive(Debug)]
struct Entry {
    run_id: Arc<str>,
    changes: watch::Sender<u64>,
    all: Weak<Watched>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(all) = self.all.upgrade() else { return };
        let mut all = lock(&all);
        // Another entry of the run may exist by now.
        if all.get(&self.run_id).is_some_and(|entry| entry.strong_count() == 0) {
            all.remove(&self.run_id);
        }
    }
}

fn lock(watched: &Watched) -> MutexGuard<'_, HashMap<Arc<str>, Weak<Entry>>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches one run.
#[derive(Debug)]
pub struct Watcher {
    changes: watch::Receiver<u64>,
    _entry: Arc<Entry>,
}

impl Watchers {
    /// Starts to watch a run.
    pub(crate) fn watch(&self, run_id: &str) -> Watcher {
        let mut all = lock(&self.0);
        let known = all.get(run_id).and_then(Weak::upgrade);
        let entry = known.unwrap_or_else(|| {
            let run_id: Arc<str> = run_id.into();
            let (changes, all_of_them) = (watch::Sender::new(0), Arc::downgrade(&self.0));
            let entry = Arc::new(Entry { run_id: run_id.clone(), changes, all: all_of_them });
            all.insert(run_id, Arc::downgrade(&entry));
            entry
        });
        Watcher { changes: entry.changes.subscribe(), _entry: entry }
    }

    /// Wakes those who watch a run.
    pub(crate) fn wake(&self, run_id: &str) {
        // The entry may be dropped here, which takes the lock.
        let entry = lock(&self.0).get(run_id).and_then(Weak::upgrade);
        if let Some(entry) = entry {
            entry.changes.send_modify(|count| *count += 1);
        }
    }

    /// Wakes all who watch, because news were lost.
    pub(crate) fn wake_all(&self) {
        let all: Vec<Arc<Entry>> = lock(&self.0).values().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|entry| entry.changes.send_modify(|count| *count += 1));
    }

    /// Returns the number of runs that are watched.
    pub(crate) fn count(&self) -> usize {
        lock(&self.0).len()
    }
}

impl Watcher {
    /// Returns when the run may have changed since the last time, or after a few seconds.
    pub async fn changed(&mut self) {
        // The sender lives as long as this.
        let _ = tokio::time::timeout(LOOK_AGAIN, self.changes.changed()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_is_watched_as_long_as_anybody_does() {
        let watchers = Watchers::default();
        let (mut one, other) = (watchers.watch("a"), watchers.watch("a"));
        assert_eq!(watchers.count(), 1);
        drop(other);
        watchers.wake("b");
        watchers.wake("a");
        assert!(one.changes.has_changed().unwrap());
        one.changed().await;
        assert!(!one.changes.has_changed().unwrap());
        watchers.wake_all();
        assert!(one.changes.has_changed().unwrap());
        drop(one);
        assert_eq!(watchers.count(), 0);
    }
}
