//! Tools whose calls are futures.

use super::approval::{Approval, ApprovalChannel};
use super::contract::Treatment;
use super::gate::{denied, rewrite, unfit};
use super::tool::{AsyncFunction, Body, BoxedCall, Reply, Tool, ToolCall, ToolError, panicked};
use crate::recording::line::Gated;
use crate::terms::spans::CallSpan;
use lisp_core::{Error, Reason};
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

impl Tool {
    /// Creates a tool whose calls are futures, for [`Engine::run_async`](crate::Engine::run_async).
    ///
    /// A waiting call holds no thread. With [`Engine::run`](crate::Engine::run) every call fails. When the run ends or
    /// is dropped, its calls are dropped. A panic is an error of the tool, as with other tools.
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
                    .map_err(|error| ToolError::new(format!("its result is not JSON: {error}")))
            })
        };
        Tool::from_body(name, Body::Async(Arc::new(function)))
    }

    /// Replaces the handler of the tool with an async function, for example for an external tool of
    /// [`Tool::from_json_schema`]. Its calls then behave like those of [`Tool::new_async`].
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, ToolCall};
    /// let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    /// let tool = Tool::from_json_schema("double", "Doubles a number.", schema, None)?
    ///     .with_async_handler(|call: ToolCall| async move { Ok(2 * call.get::<i64>("n")?) });
    /// let engine = Engine::builder().grant(tool).build()?;
    /// let program = engine.compile("(tool/double {:n 21})")?;
    /// # fn block_on<F: Future>(run: F) -> F::Output {
    /// #     let mut run = std::pin::pin!(run);
    /// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #     loop {
    /// #         if let std::task::Poll::Ready(done) = run.as_mut().poll(&mut context) { break done }
    /// #     }
    /// # }
    /// assert_eq!(block_on(engine.run_async(&program, Input::new())).value::<i64>()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_async_handler<R, F>(mut self, function: impl Fn(ToolCall) -> F + Send + Sync + 'static) -> Self
    where
        R: Serialize,
        F: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        self.body = Tool::new_async("", function).body;
        self
    }

    /// Turns an async tool into one that blocks a thread during a call, for sessions and other runs that are not
    /// futures.
    ///
    /// `block_on` waits for the call with the executor that the tool needs. Other tools are returned unchanged.
    /// Nothing wakes the call at the run's deadline or on cancellation; to end it soon, `block_on` must poll it from time
    /// to time.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, ToolCall};
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// # fn block_on<F: Future>(call: F) -> F::Output {
    /// #     let mut call = pin!(call);
    /// #     loop {
    /// #         if let Poll::Ready(done) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) { break done }
    /// #     }
    /// # }
    /// let double = Tool::new_async("double", |call: ToolCall| async move { Ok(2 * call.get::<i64>("n")?) });
    /// let engine = Engine::builder().grant(double.blocking(|call| block_on(call))).build()?;
    /// assert_eq!(engine.eval("(tool/double {:n 21})", Input::new()).value::<i64>()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn blocking(
        mut self,
        block_on: impl Fn(BoxedCall) -> Result<String, ToolError> + Send + Sync + 'static,
    ) -> Self {
        if let Body::Async(function) = self.body {
            self.body = Body::Function(Arc::new(move |call| {
                let (mut made, call) = (function(call.clone()), call.clone());
                block_on(Box::pin(std::future::poll_fn(move |context| match call.is_over() {
                    true => Poll::Ready(Err(ToolError::new("the run ended first"))),
                    false => made.as_mut().poll(context),
                })))
            }));
        }
        self
    }

    /// Waits for a future before each call of an async tool, such as a permit, or a write that must come first. If the
    /// future fails, so does the call, and the tool is not called. Other tools are returned unchanged.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, ToolCall, ToolError};
    /// # fn block_on<F: Future>(run: F) -> F::Output {
    /// #     let mut run = std::pin::pin!(run);
    /// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #     loop {
    /// #         if let std::task::Poll::Ready(done) = run.as_mut().poll(&mut context) { break done }
    /// #     }
    /// # }
    /// let order = Tool::new_async("order", |call: ToolCall| async move { Ok(call.get::<u64>("id")?) })
    ///     .before_call(|call| {
    ///         let is_known = call.get::<u64>("id").is_ok_and(|id| id < 100);
    ///         async move { if is_known { Ok(()) } else { Err(ToolError::new("no such order")) } }
    ///     });
    /// let engine = Engine::builder().grant(order).build()?;
    /// let program = engine.compile("(tool/order {:id 700})")?;
    /// let outcome = block_on(engine.run_async(&program, Input::new()));
    /// assert!(outcome.problem().is_some_and(|problem| problem.error.message.contains("no such order")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn before_call<F>(mut self, wait: impl Fn(&ToolCall) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), ToolError>> + Send + 'static,
    {
        if let Body::Async(function) = self.body {
            self.body = Body::Async(Arc::new(move |call: ToolCall| -> BoxedCall {
                let (waits, function) = (wait(&call), function.clone());
                Box::pin(async move {
                    waits.await?;
                    function(call).await
                })
            }));
        }
        self
    }

    /// Returns whether its calls are futures.
    pub(super) fn is_async(&self) -> bool {
        matches!(self.body, Body::Async(_))
    }

    /// Starts a call of an async tool; `None` for other tools. If the call needs approval, it is made after that.
    pub(crate) fn begin_async(self: &Arc<Self>, call: &ToolCall) -> Option<ToolFuture> {
        let Body::Async(function) = &self.body else { return None };
        let span = call.span.clone();
        let started = catch_unwind(AssertUnwindSafe(|| span.within(|| begin(self, function, call.clone()))));
        let state = started.map_err(|panic| Some(panicked(&*panic, &self.treatment.redacted)));
        Some(ToolFuture { state, span, treatment: self.treatment.clone() })
    }
}

fn begin(tool: &Arc<Tool>, function: &AsyncFunction, call: ToolCall) -> BegunCall {
    let Some(approvals) = call.approvals.clone() else {
        return match call.begin() {
            true => BegunCall::Made(function(call)),
            false => BegunCall::Asked(Box::pin(async { Reply::NotMade { tool_threads: None } })),
        };
    };
    let (tool, function) = (tool.clone(), function.clone());
    BegunCall::Asked(Box::pin(async move {
        match approved(approvals, &tool, call).await {
            Ok(call) => function(call).await.into(),
            Err(error) => Reply::Refused(error),
        }
    }))
}

/// Asks for approval and notes the decision. Returns the call as it is to be made.
///
/// # Errors
/// The call was rejected, or the decision cannot be stored.
async fn approved(approvals: ApprovalChannel<ToolCall>, tool: &Tool, mut call: ToolCall) -> Result<ToolCall, Error> {
    call.waits_for_approval(true);
    let decided = approvals.approver.ask(call.clone()).await;
    call.question = None;
    call.approvals = None;
    let why = match &decided {
        Approval::Approve => None,
        Approval::ApproveWith(given) => unfit(tool, given),
        Approval::Reject(why) => Some(why.clone()),
    };
    let given = match decided {
        Approval::ApproveWith(given) => Some(given),
        Approval::Approve | Approval::Reject(_) => None,
    };
    if let Some(journal) = &approvals.journal {
        let shown = given.as_deref().map(|given| tool.arguments_shown(given).into_owned());
        let gated = why.clone().map_or(Gated::Allow { given: shown }, |why| Gated::Deny { why });
        journal.settle_gate(&call.place, gated)?;
    }
    if let Some(why) = why {
        return Err(denied(tool, &why));
    }
    call.waits_for_approval(false);
    if let Some(given) = given {
        rewrite(&mut call, tool, &given);
    }
    approvals.journal.as_ref().map_or(Ok(()), |journal| journal.begin_asked(&call.place))?;
    if !call.begin() {
        return Err(Error::new(Reason::Cancelled, "no caller waits for the call any more"));
    }
    Ok(call)
}

/// A call that has started.
enum BegunCall {
    Made(BoxedCall),
    /// It waits for approval first.
    Asked(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

impl BegunCall {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Reply> {
        match self {
            BegunCall::Made(call) => call.as_mut().poll(context).map(Reply::from),
            BegunCall::Asked(call) => call.as_mut().poll(context),
        }
    }
}

impl From<Result<String, ToolError>> for Reply {
    fn from(result: Result<String, ToolError>) -> Self {
        result.map_or_else(Reply::Error, Reply::Json)
    }
}

/// A call of an async tool.
pub(crate) struct ToolFuture {
    /// The call, or the reply if it ended at once.
    state: Result<BegunCall, Option<Reply>>,
    span: CallSpan,
    /// Its redacted arguments are not in the message of a panic.
    treatment: Arc<Treatment>,
}

impl Future for ToolFuture {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reply> {
        let ToolFuture { state, span, treatment } = &mut *self;
        let call = match state {
            Ok(call) => call,
            Err(reply) => return reply.take().map_or(Poll::Pending, Poll::Ready),
        };
        let polled = catch_unwind(AssertUnwindSafe(|| span.within(|| call.poll(context))));
        let reply = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(reply)) => reply,
            Err(panic) => panicked(&*panic, &treatment.redacted),
        };
        let over = std::mem::replace(state, Err(None));
        // Dropping it may panic again.
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
