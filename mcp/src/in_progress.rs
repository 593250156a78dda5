//! The calls in progress of each session. They end with their session.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Cancels the calls of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct InProgress(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    calls: HashMap<String, BTreeMap<u64, CancellationToken>>,
}

/// A call in progress, until this is dropped.
#[derive(Debug)]
pub(crate) struct CallInProgress {
    all: InProgress,
    session: String,
    number: u64,
}

impl InProgress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call of a session with its cancellation token.
    pub(crate) fn enter(&self, session: &str, cancel: CancellationToken) -> CallInProgress {
        let mut state = self.lock();
        state.next += 1;
        let number = state.next;
        state.calls.entry(session.to_owned()).or_default().insert(number, cancel);
        CallInProgress { all: self.clone(), session: session.to_owned(), number }
    }

    /// Cancels the calls of a session.
    pub(crate) fn end(&self, session: &str) {
        let calls = self.lock().calls.remove(session).unwrap_or_default();
        calls.into_values().for_each(|cancel| cancel.cancel());
    }
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        let mut state = self.all.lock();
        let Some(calls) = state.calls.get_mut(&self.session) else { return };
        calls.remove(&self.number);
        if calls.is_empty() {
            state.calls.remove(&self.session);
        }
    }
}
