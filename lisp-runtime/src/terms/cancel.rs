//! Ending a run from outside.

use super::scope::WorkerPath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle that ends runs: clone it, give one to [`crate::Input::cancel_with`], keep one. The run looks at it
/// every few thousand units of fuel, and so do tools through [`crate::ToolCall::is_cancelled`].
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// Work of a parallel worker also ends when one beside it fails.
    worker: Option<Arc<WorkerPath>>,
    /// One run ends also when nobody waits for it any more.
    dropped: Option<Arc<AtomicBool>>,
}

impl Cancel {
    /// A handle not yet used.
    pub fn new() -> Self {
        Self::default()
    }

    /// This handle for the work of a parallel worker.
    pub(crate) fn at(&self, worker: &Arc<WorkerPath>) -> Self {
        Cancel { worker: Some(worker.clone()), ..self.clone() }
    }

    /// This handle for one run, and a flag that ends that run only.
    #[cfg(feature = "async")]
    pub(crate) fn or_by_flag(self) -> (Self, Arc<AtomicBool>) {
        let dropped: Arc<AtomicBool> = Arc::default();
        (Cancel { dropped: Some(dropped.clone()), ..self }, dropped)
    }

    /// Ends the runs that have this handle, now and later.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// The handle's flag, for a signal handler to set.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }

    /// Has it been used? In a parallel call of a tool also: has a worker beside the caller failed?
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
            || self.dropped.as_ref().is_some_and(|dropped| dropped.load(Ordering::Relaxed))
            || self.worker.as_ref().is_some_and(|worker| worker.is_over())
    }

    /// Makes the handle as new: for a prompt that cancels one form after the other.
    pub fn reset(&self) {
        self.flag.store(false, Ordering::Relaxed);
    }
}
