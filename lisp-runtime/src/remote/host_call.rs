//! Calls of tools that the host half of a run makes, on whatever thread.

use crate::terms::print_hook::Heartbeat;
use crate::tools::bounded::JobTicket;
use crate::tools::gate::PendingCall;
use crate::tools::threads::ToolThreads;
use crate::tools::tool::{Reply, Tool, ToolCall};
use lisp_core::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A call in the ledger that must be made, on any thread.
pub struct HostCall {
    pub(super) tool: Arc<Tool>,
    pub(super) call: Box<ToolCall>,
    /// The number that the other half gave it.
    pub(super) number: u64,
    pub(super) pending: PendingCall,
    pub(super) since: Instant,
    pub(super) threads: ToolThreads,
    /// Called while the thread of the run waits for a detached tool.
    pub(super) heartbeat: Option<Heartbeat>,
}

impl std::fmt::Debug for HostCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostCall").field("call", &self.call).finish_non_exhaustive()
    }
}

impl HostCall {
    /// Makes the call on this thread, or on one of the engine's tool threads if the tool is detached. If the time of
    /// the run is over, the call is not made.
    pub fn make(self) -> CallDone {
        let HostCall { tool, call, number, pending, since, threads, heartbeat } = self;
        let reply = tool.call(call, &threads, &|| heartbeat.iter().for_each(Heartbeat::beat));
        CallDone { unfit: unfit(&tool, &reply), reply, number, pending, spent: since.elapsed() }
    }

    /// Returns the ended call.
    pub(super) fn done(self, reply: Reply) -> CallDone {
        let unfit = unfit(&self.tool, &reply);
        CallDone { reply, unfit, number: self.number, pending: self.pending, spent: self.since.elapsed() }
    }

    #[cfg(feature = "async")]
    pub(super) fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    #[cfg(feature = "async")]
    pub(super) fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Queues the call for one of the engine's tool threads, on which `done` is called with the ended call.
    ///
    /// # Errors
    /// The call, if there is no thread for it.
    pub fn queue(self, done: impl FnOnce(CallDone) + Send + 'static) -> Result<QueuedCall, Box<HostCall>> {
        if self.threads.max() == 0 {
            return Err(Box::new(self));
        }
        let threads = self.threads.clone();
        let call = Arc::new(Mutex::new(Some(Box::new(self))));
        let its = call.clone();
        let job = move || {
            let taken = lock(&its).take();
            if let Some(pending) = taken {
                done(pending.make_here());
            }
        };
        match threads.submit(Box::new(job)) {
            Ok(ticket) => Ok(QueuedCall { call, ticket, threads }),
            // A job that was returned has not started.
            Err(_) => {
                let taken = lock(&call).take();
                taken.map_or_else(|| Ok(QueuedCall { call, ticket: JobTicket::default(), threads }), Err)
            }
        }
    }

    /// Makes the call on this thread, even if the tool is detached.
    fn make_here(self) -> CallDone {
        let reply = self.tool.call_here(&self.call);
        self.done(reply)
    }
}

/// A call that waits for a tool thread, or is made on one.
pub struct QueuedCall {
    /// `None` when a thread has started it.
    call: Arc<Mutex<Option<Box<HostCall>>>>,
    ticket: JobTicket,
    threads: ToolThreads,
}

impl std::fmt::Debug for QueuedCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueuedCall").finish_non_exhaustive()
    }
}

impl QueuedCall {
    /// Takes the call back, so that it is not made. Returns `None` if a thread has started it.
    pub fn withdraw(&self) -> Option<CallDone> {
        let call = lock(&self.call).take()?;
        self.threads.withdraw(self.ticket);
        let reply = Reply::NotMade { tool_threads: self.ticket.waits.then(|| self.threads.max()) };
        Some(CallDone { reply, unfit: None, number: call.number, pending: call.pending, spent: call.since.elapsed() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns why a result is not passed to the program.
pub(super) fn unfit(tool: &Tool, reply: &Reply) -> Option<Error> {
    match reply {
        Reply::Json(json) => tool.validate_result_by_schema(json).err(),
        _ => None,
    }
}

/// A call that has ended.
pub struct CallDone {
    pub(super) reply: Reply,
    /// Why the result is not passed to the program.
    pub(super) unfit: Option<Error>,
    pub(super) number: u64,
    pub(super) pending: PendingCall,
    pub(super) spent: Duration,
}

impl CallDone {
    /// Returns the number of the call in the run.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl std::fmt::Debug for CallDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallDone").field("spent", &self.spent).finish_non_exhaustive()
    }
}
