//! The calls that parked runs wait for, as they were found in their journals: who looks at a run again and again reads it once.

use super::desk::WaitingCall;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of arguments and questions that are kept. With more all are found anew.
const BYTES: usize = 16 * 1024 * 1024;

/// What parked runs wait for.
#[derive(Debug, Default)]
pub(crate) struct Parked(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    calls: HashMap<String, Arc<[WaitingCall]>>,
    bytes: usize,
    /// How often a run went on.
    moves: u64,
}

fn bytes_of(run_id: &str, calls: &[WaitingCall]) -> usize {
    let of_call = |call: &WaitingCall| {
        size_of::<WaitingCall>() + call.arguments.get().len() + call.question.as_ref().map_or(0, String::len)
    };
    run_id.len() + calls.iter().map(of_call).sum::<usize>()
}

impl Parked {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a run waits for, if that is known; else how often runs have gone on by now.
    pub(crate) fn calls(&self, run_id: &str) -> Result<Arc<[WaitingCall]>, u64> {
        let known = self.lock();
        known.calls.get(run_id).cloned().ok_or(known.moves)
    }

    /// Keeps what was found, unless a run has gone on since then.
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

    /// A run goes on, or somebody has said something to it.
    pub(crate) fn goes_on(&self, run_id: &str) {
        let mut known = self.lock();
        known.moves += 1;
        if let Some(calls) = known.calls.remove(run_id) {
            known.bytes = known.bytes.saturating_sub(bytes_of(run_id, &calls));
        }
    }
}
