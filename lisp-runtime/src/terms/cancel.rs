//! Cancelling runs.

use super::scope::WorkerPath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle that cancels runs.
///
/// Pass one clone to [`crate::Input::cancel_with`], and keep another. The run checks it every few thousand units of
/// fuel; tools check it with [`crate::ToolCall::is_cancelled`].
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// The worker that this handle is for; its work also ends when an earlier worker fails.
    worker: Option<Arc<WorkerPath>>,
    /// Set when the future of one run is dropped.
    dropped: Option<Arc<AtomicBool>>,
}

impl Cancel {
    /// Creates a new handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns this handle for the work of a parallel worker.
    pub(crate) fn at(&self, worker: &Arc<WorkerPath>) -> Self {
        Cancel { worker: Some(worker.clone()), ..self.clone() }
    }

    /// Returns this handle for one run, and a flag that ends only that run.
    #[cfg(feature = "async")]
    pub(crate) fn or_by_flag(self) -> (Self, Arc<AtomicBool>) {
        let dropped: Arc<AtomicBool> = Arc::default();
        (Cancel { dropped: Some(dropped.clone()), ..self }, dropped)
    }

    /// Cancels all current and later runs that have this handle.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Returns the flag of the handle, for example for a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }

    /// Returns whether the handle was cancelled. In a tool call of a parallel worker, also whether an earlier worker
    /// failed.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
            || self.dropped.as_ref().is_some_and(|dropped| dropped.load(Ordering::Relaxed))
            || self.worker.as_ref().is_some_and(|worker| worker.is_over())
    }

    /// Resets the handle, for a REPL that cancels one form after another.
    pub fn reset(&self) {
        self.flag.store(false, Ordering::Relaxed);
    }
}
