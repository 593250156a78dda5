//! The path of a worker from the program, and the scope in which its failure cancels other workers.

use super::place::Place;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The workers of one parallel call. The failure of a worker cancels the later ones. Earlier workers run to their end,
/// because the first failure in the order of the calls is the one that counts.
#[derive(Debug)]
pub(crate) struct CancelScope {
    /// The index of the call among the effects of its caller.
    effect: u32,
    /// When the outermost parallel call started.
    pub(crate) started: Instant,
    /// The lowest index of a worker that failed.
    failed: AtomicUsize,
    /// The lowest index of a worker that has not ended.
    first: AtomicUsize,
}

impl CancelScope {
    /// Creates the scope of a parallel call whose workers before `first` have ended.
    pub(crate) fn new(effect: u32, started: Instant, first: usize) -> Self {
        CancelScope { effect, started, failed: AtomicUsize::new(usize::MAX), first: AtomicUsize::new(first) }
    }

    /// Notes that the workers before `first` have ended.
    pub(crate) fn pass_on(&self, first: usize) {
        self.first.store(first, Ordering::Release);
    }

    /// Returns the name of a worker of this call, before any of its effects.
    pub(crate) fn place_of(&self, up: Option<&WorkerPath>, index: usize) -> Place {
        let mut way = up.map(WorkerPath::way).unwrap_or_default();
        way.push((self.effect, u32::try_from(index).unwrap_or(u32::MAX)));
        Place::new(way, 0)
    }

    /// Notes that a worker failed: the later ones must end.
    pub(crate) fn fail(&self, index: usize) {
        self.failed.fetch_min(index, Ordering::AcqRel);
    }

    /// Returns whether a worker has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire) != usize::MAX
    }

    /// Returns whether a worker before this one has failed.
    fn is_over(&self, index: usize) -> bool {
        self.failed.load(Ordering::Acquire) < index
    }
}

/// One worker: the scope of its call, its index there, and the path of the worker that made the call.
#[derive(Debug)]
pub(crate) struct WorkerPath {
    pub(crate) scope: Arc<CancelScope>,
    pub(crate) index: usize,
    pub(crate) up: Option<Arc<WorkerPath>>,
    /// The number of enclosing parallel calls, including its own.
    pub(crate) depth: usize,
    /// The number of slots that a parallel call of the worker may take.
    pub(crate) slots: usize,
    /// Extra slots, only to finish sooner: nothing that the program can see may depend on them.
    pub(crate) spare: usize,
}

impl WorkerPath {
    /// Returns whether the worker must end because a worker before it or before one of its callers failed.
    pub(crate) fn is_over(&self) -> bool {
        let mut place = Some(self);
        while let Some(WorkerPath { scope, index, up, .. }) = place {
            if scope.is_over(*index) {
                return true;
            }
            place = up.as_deref();
        }
        false
    }

    /// Returns whether everything before it in program order has ended.
    pub(crate) fn has_turn(&self) -> bool {
        let mut place = Some(self);
        while let Some(WorkerPath { scope, index, up, .. }) = place {
            if scope.first.load(Ordering::Acquire) < *index {
                return false;
            }
            place = up.as_deref();
        }
        true
    }

    /// Returns the path from the main program: for each parallel call, its index among the effects of its caller, and
    /// the index of the worker.
    pub(crate) fn way(&self) -> Vec<(u32, u32)> {
        let mut way = Vec::new();
        let mut place = Some(self);
        while let Some(WorkerPath { scope, index, up, .. }) = place {
            way.push((scope.effect, u32::try_from(*index).unwrap_or(u32::MAX)));
            place = up.as_deref();
        }
        way.reverse();
        way
    }

    /// Returns the path of worker indexes from the main program.
    pub(crate) fn indexes(&self) -> Vec<u32> {
        self.way().into_iter().map(|(_, index)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_those_behind_it_and_no_others() {
        let scope = Arc::new(CancelScope::new(1, Instant::now(), 0));
        let at = |index, up| Arc::new(WorkerPath { scope: scope.clone(), index, up, depth: 1, slots: 1, spare: 0 });
        let other = Arc::new(CancelScope::new(2, Instant::now(), 0));
        let inner = WorkerPath { scope: other, index: 0, up: Some(at(5, None)), depth: 2, slots: 0, spare: 0 };
        assert!(!scope.has_failed() && !inner.is_over());
        scope.fail(3);
        assert!(inner.is_over() && at(4, None).is_over() && scope.has_failed());
        scope.fail(9);
        assert!(at(4, None).is_over(), "the lowest index counts");
        assert!(!at(3, None).is_over() && !at(1, None).is_over());
        let (turn, waits) = (at(3, None), at(4, None));
        assert!(!turn.has_turn() && !inner.has_turn());
        scope.pass_on(3);
        assert!(turn.has_turn() && !waits.has_turn() && !inner.has_turn());
        scope.pass_on(5);
        assert!(inner.has_turn());
        assert_eq!((inner.indexes(), inner.way()), (vec![5, 0], vec![(1, 5), (2, 0)]));
    }
}
