//! Slots of a tool that limits its calls in progress.

use super::sync::{Condvar, Mutex, lock, wait};
use std::sync::Arc;
use std::time::Duration;

/// The slots of a tool. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Places>);

#[derive(Debug)]
struct Places {
    free: Mutex<usize>,
    one_free: Condvar,
}

/// A slot in use; dropping it frees the slot.
pub(super) struct Turn(Arc<Places>);

impl Turns {
    pub(super) fn new(max: usize) -> Self {
        Turns(Arc::new(Places { free: Mutex::new(max), one_free: Condvar::new() }))
    }

    /// Waits for a slot, until `is_over` returns true.
    pub(super) fn wait(&self, is_over: impl Fn() -> bool) -> Option<Turn> {
        /// How often `is_over` is called.
        const STEP: Duration = Duration::from_millis(5);
        let Places { free, one_free } = &*self.0;
        let mut guard = lock(free);
        while *guard == 0 {
            if is_over() {
                return None;
            }
            guard = wait(one_free, free, guard, STEP).0;
        }
        *guard -= 1;
        Some(Turn(self.0.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.one_free.notify_one();
    }
}
