//! The result of a run and its printed lines.

use super::machine::Machine;
use crate::heap::{Heap, Value};

impl Machine {
    /// Passes the result of a run that has ended to `look`.
    pub fn with_result<T>(&mut self, look: impl for<'h> FnOnce(&'h Heap, Value<'h>) -> T) -> T {
        self.store.enter(|h, state, _| look(h, state.result))
    }

    /// Takes the lines printed since the last call.
    pub fn take_prints(&mut self) -> Vec<String> {
        self.store.context().prints.borrow_mut().take()
    }

    /// Takes the lines that are kept, and continues to count towards the limits.
    pub fn drain_prints(&mut self) -> Vec<String> {
        self.store.context().prints.borrow_mut().drain()
    }

    /// Returns the lines printed and not yet taken, from number `index` on.
    pub fn prints_from(&self, index: usize) -> Vec<String> {
        self.store.context().prints.borrow().lines().get(index..).unwrap_or_default().to_vec()
    }

    /// Returns the number of lines printed and not yet taken.
    pub fn lines_printed(&self) -> usize {
        self.store.context().prints.borrow().lines().len()
    }

    /// Returns the number of printed lines dropped since the last call of [`Machine::take_prints`].
    pub fn prints_dropped(&self) -> u64 {
        self.store.context().prints.borrow().dropped()
    }

    /// Returns the number of printed lines that were cut since the last call of [`Machine::take_prints`].
    pub fn prints_cut(&self) -> u64 {
        self.store.context().prints.borrow().cut()
    }
}
