//! The slots for parallel workers of one run.

use super::atomic::{AtomicUsize, Ordering};
use std::fmt;
use std::sync::Arc;

/// The slots for parallel workers of a run, at every depth of nesting. Taking a slot never waits.
#[derive(Debug)]
pub struct ParallelBudget {
    capacity: usize,
    taken: AtomicUsize,
    peak: AtomicUsize,
}

impl ParallelBudget {
    /// Creates a budget of `capacity` free slots.
    pub fn new(capacity: usize) -> Self {
        ParallelBudget { capacity, taken: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// Takes a slot, if one is free.
    // Adding first and undoing on overflow would be simpler. But for that moment it would hide a slot that another
    // thread frees, and a call would fail without reason.
    pub fn try_acquire(self: &Arc<Self>) -> Option<Slot> {
        let free = |taken: usize| (taken < self.capacity).then_some(taken + 1);
        let before = self.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, free).ok()?;
        self.peak.fetch_max(before + 1, Ordering::Relaxed);
        Some(Slot(self.clone()))
    }

    /// Returns the number of slots.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of slots in use.
    pub fn in_use(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Returns the peak number of slots in use.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

/// A slot in use; dropping it frees the slot.
pub struct Slot(Arc<ParallelBudget>);

impl Drop for Slot {
    fn drop(&mut self) {
        let before = self.0.taken.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a free slot was released");
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}
