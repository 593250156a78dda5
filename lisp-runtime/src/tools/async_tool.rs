//! Tools whose calls are futures.

use super::tool::{Body, BoxedCall, Reply, Tool, ToolCall, ToolError, panicked};
use crate::terms::spans::CallSpan;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

impl Tool {
    /// A tool whose calls are futures, for runs of [`Engine::run_async`](crate::Engine::run_async): while a call waits it holds no
    /// thread. Under [`Engine::run`](crate::Engine::run) it fails. A call is dropped, wherever it stands, when the run is over or
    /// dropped. A panic is an error of the tool, as it is of other tools.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, ToolCall};
    /// # async fn fetch(id: u64) -> Result<String, std::io::Error> { Ok(format!("order {id}")) }
    /// let order = Tool::new_async("order", |call: ToolCall| async move { Ok(fetch(call.get("id")?).await?) });
    /// let engine = Engine::builder().grant(order).build()?;
    /// let program = engine.compile("(pmap (fn [id] (tool/order {:id id})) [1 2])")?;
    /// # fn block_on<F: Future>(run: F) -> F::Output {
    /// #     let mut run = std::pin::pin!(run);
    /// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #     loop {
    /// #         if let std::task::Poll::Ready(done) = run.as_mut().poll(&mut context) { break done }
    /// #     }
    /// # }
    /// let outcome = block_on(engine.run_async(&program, Input::new()));
    /// assert_eq!(outcome.value::<Vec<String>>()?, ["order 1", "order 2"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new_async<R, F>(name: impl Into<String>, function: impl Fn(ToolCall) -> F + Send + Sync + 'static) -> Self
    where
        R: Serialize,
        F: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let function = move |call: ToolCall| -> BoxedCall {
            let call = function(call);
            Box::pin(async move {
                let result = call.await?;
                serde_json::to_string(&result)
                    .map_err(|error| ToolError::new(format!("its result is no JSON: {error}")))
            })
        };
        Tool::from_body(name, Body::Async(Arc::new(function)))
    }

    /// Begins a call of an async tool; `None` when the tool is none.
    pub(crate) fn begin_async(&self, call: &ToolCall) -> Option<ToolFuture> {
        let Body::Async(function) = &self.body else { return None };
        let span = call.span.clone();
        let begun = catch_unwind(AssertUnwindSafe(|| span.within(|| function(call.clone()))));
        Some(ToolFuture { state: begun.map_err(|panic| panicked(&*panic)).map_err(Some), span })
    }
}

/// A call of an async tool.
pub(crate) struct ToolFuture {
    /// The call, or what its beginning came to.
    state: Result<BoxedCall, Option<Reply>>,
    span: CallSpan,
}

impl Future for ToolFuture {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reply> {
        let ToolFuture { state, span } = &mut *self;
        let call = match state {
            Ok(call) => call,
            Err(reply) => return reply.take().map_or(Poll::Pending, Poll::Ready),
        };
        let polled = catch_unwind(AssertUnwindSafe(|| span.within(|| call.as_mut().poll(context))));
        let reply = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(json))) => Reply::Json(json),
            Ok(Poll::Ready(Err(error))) => Reply::Error(error),
            Err(panic) => panicked(&*panic),
        };
        let over = std::mem::replace(state, Err(None));
        // What it leaves may panic once more.
        let _ = catch_unwind(AssertUnwindSafe(|| span.within(|| drop(over))));
        Poll::Ready(reply)
    }
}

impl Drop for ToolFuture {
    fn drop(&mut self) {
        let over = std::mem::replace(&mut self.state, Err(None));
        let span = &self.span;
        let _ = catch_unwind(AssertUnwindSafe(|| span.within(|| drop(over))));
    }
}
