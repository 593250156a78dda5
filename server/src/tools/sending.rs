//! Calls that have started and are not sent yet, because they wait for a slot of their tool.

use async_trait::async_trait;
use lisp_runtime::ToolCall;
use std::convert::Infallible;
use std::sync::Arc;

tokio::task_local! {
    /// What decides whether calls are still sent, for the durable run that the task polls.
    pub(crate) static SENDS: Arc<dyn Sends>;
}

/// Decides whether the calls of a run are still sent.
#[async_trait]
pub(crate) trait Sends: Send + Sync {
    /// Returns when no more calls are to be sent.
    async fn end(&self);

    /// Holds a call that is not sent. Its run drops it.
    async fn hold(&self, call: String) -> Infallible;
}

/// Waits for what a call needs before it is sent. A call that must not be sent any more waits until it is dropped.
pub(super) async fn before_sending<T>(call: &ToolCall, ready: impl Future<Output = T>) -> T {
    let Ok(sends) = SENDS.try_with(Arc::clone) else { return ready.await };
    tokio::select! {
        biased;
        () = sends.end() => match sends.hold(call.place().to_string()).await {},
        done = ready => done,
    }
}
