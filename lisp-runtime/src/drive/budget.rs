//! The slots for parallel workers of one run.

use super::atomic::{AtomicUsize, Ordering};
use std::fmt;
use std::sync::Arc;

/// How many workers may be alive at once in a run, at every depth of nesting together. Taking a slot never waits.
#[derive(Debug)]
pub struct ParallelBudget {
    capacity: usize,
    held: AtomicUsize,
    peak: AtomicUsize,
}

impl ParallelBudget {
    /// A budget of `capacity` slots, all free.
    pub fn new(capacity: usize) -> Self {
        ParallelBudget { capacity, held: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// Takes a slot, if one is free. An addition that is taken back when it goes over the capacity would be simpler, but
    /// for that moment it hides a slot that another thread gives back, and a call would fail without reason.
    pub fn try_acquire(self: &Arc<Self>) -> Option<Slot> {
        let free = |held: usize| (held < self.capacity).then_some(held + 1);
        let before = self.held.fetch_update(Ordering::AcqRel, Ordering::Relaxed, free).ok()?;
        self.peak.fetch_max(before + 1, Ordering::Relaxed);
        Some(Slot(self.clone()))
    }

    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many are taken.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// The most that were taken at once.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

/// A slot that is taken; dropping it gives it back.
pub struct Slot(Arc<ParallelBudget>);

impl Drop for Slot {
    fn drop(&mut self) {
        let before = self.0.held.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a slot was given back that nobody held");
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}
