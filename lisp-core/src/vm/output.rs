//! The result of a run and its printed lines.

use super::machine::Machine;
use crate::heap::{Heap, Value};

impl Machine {
    /// Looks at the result of the run that has ended.
    pub fn with_result<T>(&mut self, look: impl for<'h> FnOnce(&'h Heap, Value<'h>) -> T) -> T {
        self.store.enter(|h, state, _| look(h, state.result))
    }

    /// Takes the lines printed since the last call.
    pub fn take_prints(&mut self) -> Vec<String> {
        self.store.context().prints.borrow_mut().take()
    }

    /// Takes the lines that are kept, and goes on counting towards the limits.
    pub fn drain_prints(&mut self) -> Vec<String> {
        self.store.context().prints.borrow_mut().drain()
    }

    /// The lines printed and not yet taken, from number `index` on.
    pub fn prints_from(&self, index: usize) -> Vec<String> {
        self.store.context().prints.borrow().lines().get(index..).unwrap_or_default().to_vec()
    }

    /// The number of lines printed and not yet taken.
    pub fn lines_printed(&self) -> usize {
        self.store.context().prints.borrow().lines().len()
    }

    /// The number of printed lines that were not kept since the last call of [`Machine::take_prints`].
    pub fn prints_dropped(&self) -> u64 {
        self.store.context().prints.borrow().dropped()
    }

    /// The number of lines printed since the last call of [`Machine::take_prints`] that are cut.
    pub fn prints_cut(&self) -> u64 {
        self.store.context().prints.borrow().cut()
    }
}
