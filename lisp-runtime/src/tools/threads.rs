//! The threads for tool calls that may block.

use super::bounded::{BoundedThreads, Job, JobTicket};
use crate::terms::per_process::PerProcess;
use std::fmt;
use std::sync::Arc;

/// A bounded number of threads for tool calls; further calls are queued. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ToolThreads(Arc<Owner>);

/// Ends idle threads when the last handle is dropped.
struct Owner(Arc<BoundedThreads>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl ToolThreads {
    /// The default number of threads.
    pub(crate) const DEFAULT: usize = 64;
    /// The maximum number of threads.
    pub(crate) const MAX: usize = 1_024;

    /// Creates the pool without any threads; there will be at most `max`.
    pub(crate) fn new(max: usize) -> Self {
        ToolThreads(Arc::new(Owner(BoundedThreads::new(max))))
    }

    /// Returns the pool that engines share by default.
    pub(crate) fn shared() -> Self {
        static SHARED: PerProcess<ToolThreads> = PerProcess::new();
        let shared = SHARED.get_or_init(|| ToolThreads::new(Self::DEFAULT)).cloned();
        shared.unwrap_or_else(|| ToolThreads::new(Self::DEFAULT))
    }

    /// Returns the maximum number of threads; 0 is none.
    pub(crate) fn max(&self) -> usize {
        self.0.0.max()
    }

    /// Queues a call.
    ///
    /// # Errors
    /// The job, if there is no thread and none can be started.
    pub(crate) fn submit(&self, job: Job) -> Result<JobTicket, Job> {
        self.0.0.submit(job)
    }

    /// Takes a call back. Returns whether no thread had started it.
    pub(crate) fn withdraw(&self, ticket: JobTicket) -> bool {
        self.0.0.withdraw(ticket).is_some()
    }
}

impl fmt::Debug for ToolThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolThreads").field(&self.max()).finish()
    }
}
