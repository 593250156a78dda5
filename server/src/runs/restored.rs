//! Runs of a store that was restored from a backup. What they did after it is not in their journals: a call that writes may
//! have happened before.

use lisp_runtime::outcome::Place;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Holds back the calls of an attempt that may have happened before.
///
/// The journal of the run has by then that such a call has started, so the next attempt asks what has come of it, as after the
/// death of a process.
#[derive(Debug)]
pub(crate) struct RestoredCalls {
    /// The calls that an earlier attempt has started: they were asked about.
    known: BTreeSet<Place>,
    count: AtomicUsize,
}

impl RestoredCalls {
    pub(crate) fn new(known: impl Iterator<Item = Place>) -> Self {
        RestoredCalls { known: known.collect(), count: AtomicUsize::new(0) }
    }

    /// Returns whether a call may have happened before, as far as the journal does not know.
    pub(crate) fn may_have_happened(&self, place: &Place) -> bool {
        !self.known.contains(place)
    }

    /// Returns whether a call that writes, and that is about to be made, is held back.
    pub(crate) fn holds(&self, place: &Place) -> bool {
        let holds = self.may_have_happened(place);
        self.count.fetch_add(usize::from(holds), Ordering::Relaxed);
        holds
    }

    /// Returns the number of calls that are held back.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
