//! Calls of async tools by the host half of a run.

use super::host_call::{CallDone, HostCall};
use crate::tools::async_tool::ToolFuture;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A call of an async tool in progress. Dropping it drops the call.
pub struct AsyncCall {
    future: ToolFuture,
    /// `None` when it has ended.
    call: Option<Box<HostCall>>,
}

impl fmt::Debug for AsyncCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncCall").field("call", &self.call).finish_non_exhaustive()
    }
}

impl HostCall {
    /// Starts the call of an async tool.
    ///
    /// # Errors
    /// The call, if its tool is not async.
    pub fn begin_async(self) -> Result<AsyncCall, Box<HostCall>> {
        match self.tool().begin_async(self.call()) {
            Some(future) => Ok(AsyncCall { future, call: Some(Box::new(self)) }),
            None => Err(Box::new(self)),
        }
    }
}

impl Future for AsyncCall {
    type Output = CallDone;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallDone> {
        let AsyncCall { future, call } = &mut *self;
        match Pin::new(future).poll(context) {
            Poll::Ready(reply) => call.take().map_or(Poll::Pending, |call| Poll::Ready(call.done(reply))),
            Poll::Pending => Poll::Pending,
        }
    }
}
