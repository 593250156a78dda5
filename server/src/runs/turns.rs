//! Allows one turn per session at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sessions with a turn in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<HashSet<String>>>);

/// The turn in progress of a session, until this is dropped.
pub(crate) struct OneTurn(Turns, String);

impl Turns {
    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a turn of a session, or returns `None` if one is in progress.
    pub(crate) fn begin(&self, session_id: &str) -> Option<OneTurn> {
        let is_first = self.lock().insert(session_id.to_owned());
        // Not `then_some`: dropping a `OneTurn` that was not started would end the turn in progress.
        is_first.then(|| OneTurn(self.clone(), session_id.to_owned()))
    }

    /// Returns the number of turns in progress.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

impl Drop for OneTurn {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_turn_at_a_time() {
        let turns = Turns::default();
        let first = turns.begin("a");
        assert!(first.is_some() && turns.begin("a").is_none() && turns.begin("a").is_none());
        assert!(turns.begin("b").is_some());
        drop(first);
        assert!(turns.begin("a").is_some());
    }
}
