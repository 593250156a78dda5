//! Which sessions have a turn under way.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions with a turn under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<HashSet<String>>>);

/// The one turn of a session.
pub(crate) struct OneTurn(Turns, String);

impl Turns {
    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn of a session; `None` when one is under way.
    pub(crate) fn begin(&self, session_id: &str) -> Option<OneTurn> {
        let is_first = self.lock().insert(session_id.to_owned());
        // Not `then_some`: a turn that is not begun must not be dropped either, which ends the one under way.
        is_first.then(|| OneTurn(self.clone(), session_id.to_owned()))
    }

    /// How many turns are under way.
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
