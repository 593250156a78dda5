//! A cache of the open calls of suspended runs, so that polling a run does not read its journal each time.

use super::open_calls::WaitingCall;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum bytes of the cache. It is emptied when it is full.
const BYTES: usize = 16 * 1024 * 1024;

/// The open calls of suspended runs.
#[derive(Debug, Default)]
pub(crate) struct Suspended(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    calls: HashMap<String, Arc<[WaitingCall]>>,
    bytes: usize,
    /// How often any run has changed.
    moves: u64,
}

fn bytes_of(run_id: &str, calls: &[WaitingCall]) -> usize {
    let of_call = |call: &WaitingCall| {
        size_of::<WaitingCall>() + call.arguments.get().len() + call.question.as_ref().map_or(0, String::len)
    };
    run_id.len() + calls.iter().map(of_call).sum::<usize>()
}

impl Suspended {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the open calls of a run if they are cached, otherwise the current number of changes.
    pub(crate) fn calls(&self, run_id: &str) -> Result<Arc<[WaitingCall]>, u64> {
        let known = self.lock();
        known.calls.get(run_id).cloned().ok_or(known.moves)
    }

    /// Caches the open calls of a run, unless a run has changed since.
    pub(crate) fn keep(&self, run_id: &str, calls: &[WaitingCall], moves: u64) {
        let bytes = bytes_of(run_id, calls);
        let mut known = self.lock();
        if known.moves != moves || bytes > BYTES {
            return;
        }
        if known.bytes + bytes > BYTES {
            (known.calls, known.bytes) = (HashMap::new(), 0);
        }
        if known.calls.insert(run_id.to_owned(), calls.into()).is_none() {
            known.bytes += bytes;
        }
    }

    /// Records that a run continues or got a reply, and drops its cached calls.
    pub(crate) fn goes_on(&self, run_id: &str) {
        let mut known = self.lock();
        known.moves += 1;
        if let Some(calls) = known.calls.remove(run_id) {
            known.bytes = known.bytes.saturating_sub(bytes_of(run_id, &calls));
        }
    }
}
