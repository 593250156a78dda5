//! The path of a worker, from the program down, and the scope in which a failure cancels its siblings.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long the workers before a failed one may go on: of several failures the first in the order of the calls is to
/// be the one that is reported, but an endless worker must not keep the others' failure back.
const GRACE: Duration = Duration::from_millis(10);

/// The workers of one parallel call: the failure of a worker cancels its siblings.
#[derive(Debug)]
pub(crate) struct CancelScope {
    /// The number of the call among the effects of its caller.
    effect: u32,
    /// When the outermost parallel call began.
    pub(crate) begun: Instant,
    /// The lowest index of a worker that failed.
    failed: AtomicUsize,
    failed_at: OnceLock<Instant>,
}

impl CancelScope {
    pub(crate) fn new(effect: u32, begun: Instant) -> Self {
        CancelScope { effect, begun, failed: AtomicUsize::new(usize::MAX), failed_at: OnceLock::new() }
    }

    /// A worker failed: its siblings are to end.
    pub(crate) fn fail(&self, index: usize) {
        self.failed_at.get_or_init(Instant::now);
        self.failed.fetch_min(index, Ordering::AcqRel);
    }

    /// Has a worker failed?
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire) != usize::MAX
    }

    /// When a worker is to end because a sibling failed.
    fn ends_at(&self, index: usize) -> Option<Instant> {
        let at = *self.failed_at.get()?;
        match self.failed.load(Ordering::Acquire) {
            usize::MAX => None,
            failed if failed < index => Some(at),
            _ => Some(at + GRACE),
        }
    }
}

/// One worker: the scope of its call, its index there, and the path of the worker that made the call.
#[derive(Debug)]
pub(crate) struct WorkerPath {
    pub(crate) scope: Arc<CancelScope>,
    pub(crate) index: usize,
    pub(crate) up: Option<Arc<WorkerPath>>,
    /// How many calls are around the worker, its own included.
    pub(crate) depth: usize,
    /// How many slots a parallel call of the worker may take.
    pub(crate) slots: usize,
    /// How many it may take besides, to be sooner done: nothing that the program can see may depend on them.
    pub(crate) spare: usize,
}

impl WorkerPath {
    /// Is the worker to end because a worker beside it, or beside one it works for, failed?
    pub(crate) fn is_over(&self) -> bool {
        self.ends_at().is_some_and(|at| Instant::now() >= at)
    }

    /// When the worker is to end because a worker beside it, or beside one it works for, failed.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        let mut place = Some(self);
        let mut first = None;
        while let Some(WorkerPath { scope, index, up, .. }) = place {
            first = [first, scope.ends_at(*index)].into_iter().flatten().min();
            place = up.as_deref();
        }
        first
    }

    /// For each parallel call on the way from the main program to this worker, its number among the effects of its caller, and
    /// the worker's index.
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

    /// The indexes on the way from the main program to this worker.
    pub(crate) fn indexes(&self) -> Vec<u32> {
        self.way().into_iter().map(|(_, index)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_those_behind_it_at_once_and_those_before_it_soon() {
        let scope = Arc::new(CancelScope::new(1, Instant::now()));
        let at = |index, up| Arc::new(WorkerPath { scope: scope.clone(), index, up, depth: 1, slots: 1, spare: 0 });
        let other = Arc::new(CancelScope::new(2, Instant::now()));
        let inner = WorkerPath { scope: other, index: 0, up: Some(at(5, None)), depth: 2, slots: 0, spare: 0 };
        assert!(!scope.has_failed() && !inner.is_over());
        scope.fail(3);
        assert!(inner.is_over() && at(4, None).is_over() && scope.has_failed());
        scope.fail(9);
        assert!(at(4, None).is_over(), "the lowest index counts");
        std::thread::sleep(GRACE);
        assert!(at(1, None).is_over());
        assert_eq!((inner.indexes(), inner.way()), (vec![5, 0], vec![(1, 5), (2, 0)]));
    }
}
