//! Which sessions have a turn under way.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Sessions with a turn under way.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashSet<String>>);

/// The one turn of a session.
pub(crate) struct OneTurn<'a>(&'a Turns, &'a str);

impl Turns {
    /// The turn of a session; `None` when one is under way.
    pub(crate) fn begin<'a>(&'a self, session_id: &'a str) -> Option<OneTurn<'a>> {
        let is_first = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session_id.to_owned());
        // Not `then_some`: a turn that is not begun must not be dropped either, which ends the one under way.
        is_first.then(|| OneTurn(self, session_id))
    }
}

impl Drop for OneTurn<'_> {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).remove(self.1);
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
