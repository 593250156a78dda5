//! The visible local names.

use crate::Table;
use crate::compile::core::Var;
use crate::syntax::NameId;
use foldhash::fast::RandomState;

/// Visible local names. Lookup takes constant time.
pub(super) struct Scope {
    visible: Table<NameId, Var>,
    /// The names in the order in which they became visible, and what each meant before.
    hidden: Vec<(NameId, Option<Var>)>,
}

impl Scope {
    pub(super) fn new() -> Self {
        // Enough for a usual program.
        Scope { visible: Table::with_capacity_and_hasher(14, RandomState::default()), hidden: Vec::with_capacity(8) }
    }

    /// Returns what a name means.
    pub(super) fn get(&self, name: NameId) -> Option<Var> {
        self.visible.get(&name).copied()
    }

    /// Makes a name visible; it hides others with the same text.
    pub(super) fn push(&mut self, name: NameId, var: Var) {
        self.hidden.push((name, self.visible.insert(name, var)));
    }

    /// Returns the number of names that have become visible.
    pub(super) fn len(&self) -> usize {
        self.hidden.len()
    }

    /// Removes the names after the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        while self.hidden.len() > len {
            match self.hidden.pop() {
                Some((name, Some(before))) => self.visible.insert(name, before),
                Some((name, None)) => self.visible.remove(&name),
                None => None,
            };
        }
    }
}
