//! The threads that tools are called on when a call may wait for the outside world.

use super::bounded::{BoundedThreads, Job, JobTicket};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A bounded number of threads for tool calls; calls beyond it queue. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ToolThreads(Arc<Owner>);

/// Ends idle threads when the last handle goes.
struct Owner(Arc<BoundedThreads>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl ToolThreads {
    /// The number of threads unless the host says otherwise.
    pub(crate) const DEFAULT: usize = 64;
    /// The most a host may ask for.
    pub(crate) const MOST: usize = 1_024;

    /// At most `most` threads, none of which is started yet.
    pub(crate) fn new(most: usize) -> Self {
        ToolThreads(Arc::new(Owner(BoundedThreads::new(most))))
    }

    /// The threads of engines that have none of their own.
    pub(crate) fn shared() -> Self {
        static SHARED: OnceLock<ToolThreads> = OnceLock::new();
        SHARED.get_or_init(|| ToolThreads::new(Self::DEFAULT)).clone()
    }

    /// The most threads there may be; 0 is none.
    pub(crate) fn most(&self) -> usize {
        self.0.0.most()
    }

    /// Queues a call.
    ///
    /// # Errors
    /// The job, when there is no thread and none can be had.
    pub(crate) fn submit(&self, job: Job) -> Result<JobTicket, Job> {
        self.0.0.submit(job)
    }

    /// Takes a call back; says whether no thread had begun it.
    pub(crate) fn withdraw(&self, ticket: JobTicket) -> bool {
        self.0.0.withdraw(ticket).is_some()
    }
}

impl fmt::Debug for ToolThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolThreads").field(&self.most()).finish()
    }
}
