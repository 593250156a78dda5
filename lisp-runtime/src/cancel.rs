//! Ending a run from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle that ends runs: clone it, give one to [`crate::Input::cancel_with`], keep one. The run looks at it
/// every few thousand units of fuel, and so do tools through [`crate::ToolCall::is_cancelled`].
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A handle not yet used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the runs that have this handle, now and later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The handle's flag, for a signal handler to set.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Has it been used?
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Makes the handle as new: for a prompt that cancels one form after the other.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
