//! The turns of a session: their changes, so that they can be undone, and the programs that are no longer needed.

use super::definitions::is_history;
use super::machine::{Loaded, Machine};
use crate::heap::Value;

/// What a turn has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnChange {
    /// A definition is new, or refers to another value.
    pub definitions: bool,
    /// `*1`, `*2` or `*3` refers to another value.
    pub history: bool,
}

impl Machine {
    /// Keeps the turn that has ended, so that [`Machine::undo_turn`] can undo it until `max` later turns are kept. The
    /// state for this counts as memory. It is dropped when a program would otherwise run out of memory.
    pub fn keep_turn(&mut self, max: usize) -> TurnChange {
        let names = &self.names;
        self.store.enter(|_, state, _| {
            let mut changed = Vec::new();
            let mut change = TurnChange::default();
            for (place, now) in state.globals.iter().enumerate() {
                let before = state.saved_globals.get(place).copied().unwrap_or(Value::Unset);
                if now.is_same(before) {
                    continue;
                }
                match is_history(&names[place]) {
                    true => change.history = true,
                    false => change.definitions = true,
                }
                changed.push((place, before));
            }
            state.saved_globals.clone_from(&state.globals);
            changed.shrink_to_fit();
            state.turns.push_back(changed);
            while state.turns.len() > max {
                state.turns.pop_front();
            }
            change
        })
    }

    /// Undoes the last turn that was kept, and restores definitions and history. Returns false if there is none.
    pub fn undo_turn(&mut self) -> bool {
        self.store.enter(|_, state, _| {
            let Some(changed) = state.turns.pop_back() else { return false };
            for (place, before) in changed {
                state.globals[place] = before;
            }
            state.saved_globals.clone_from(&state.globals);
            state.result = Value::Nil;
            true
        })
    }

    /// Returns the number of turns that can be undone.
    pub fn turns(&mut self) -> usize {
        self.store.enter(|_, state, _| state.turns.len())
    }

    /// Returns true if the state for undoing turns was dropped because a program needed the memory.
    pub fn has_let_turns_go(&self) -> bool {
        self.let_go
    }

    /// Drops the state for undoing turns. Returns false if there is none.
    pub(super) fn let_turns_go(&mut self) -> bool {
        let some = self.at_rest(|mut state| state.forget_turns());
        self.let_go |= some;
        some
    }

    /// Returns the number of definitions.
    pub fn definitions(&mut self) -> usize {
        self.with_definitions(|_, all| all.len())
    }

    /// Returns the numbers of the loaded programs, and their approximate sizes in bytes.
    pub fn programs(&self) -> impl Iterator<Item = (u64, usize)> {
        self.loaded.iter().flatten().map(|loaded| (loaded.number, loaded.bytes))
    }

    /// Forgets unused programs and names. A program is used while a definition, the history, or a turn that can be
    /// undone has one of its functions.
    ///
    /// Call it between two programs. Constants of a forgotten program that are still in use then belong to the session.
    /// They count as its memory, and its limit grows by the same amount, in total by at most `more` bytes.
    pub fn forget_programs(&mut self, more: usize) {
        self.store.enter(|_, state, _| {
            state.result = Value::Nil;
            state.saved_globals.clone_from(&state.globals);
        });
        let copied = self.store.release_programs(self.loaded.len());
        let limit = self.store.heap().account().limit;
        let budget = *self.budget.get_or_insert(limit);
        self.store.rebudget(limit.saturating_add(copied).min(budget.saturating_add(more)).max(limit));
        let loaded = &mut self.loaded;
        let mut used = self.store.enter(|_, state, _| {
            let mut used: Vec<bool> = state.globals.iter().map(|value| !matches!(value, Value::Unset)).collect();
            for (place, _) in state.turns.iter().flatten() {
                used[*place] = true;
            }
            for (i, known) in loaded.iter_mut().enumerate() {
                match u32::try_from(i).ok().and_then(|id| state.units.get(crate::code::ProgramId(id))) {
                    Some(unit) => unit.links.iter().for_each(|&place| used[place] = true),
                    None => *known = None,
                }
            }
            used
        });
        used.resize(self.names.len(), true);
        self.free_places.clear();
        for (place, used) in used.into_iter().enumerate() {
            if !used {
                let name = std::mem::take(&mut self.names[place]);
                if !name.is_empty() {
                    self.places.remove(&name);
                }
                self.free_places.push(place);
            }
        }
    }

    /// Notes a loaded program, under its index among the machine's programs.
    pub(super) fn note_loaded(&mut self, id: crate::code::ProgramId, loaded: Loaded) {
        let at = id.0 as usize;
        if at >= self.loaded.len() {
            self.loaded.resize_with(at + 1, || None);
        }
        self.loaded[at] = Some(loaded);
    }
}
