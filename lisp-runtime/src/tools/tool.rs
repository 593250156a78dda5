//! Tools: what the host lets a program call.

use super::argument::{argument, arguments};
use super::contract::{Contract, Effect, Treatment};
use super::json_contract::{Allowance, JsonContract};
use super::operation::Operation;
pub(crate) use super::reply::Reply;
use super::schema_error::SchemaError;
use super::signature::{Signature, SignatureError};
use super::threads::ToolThreads;
pub use super::tool_error::ToolError;
pub(crate) use super::tool_error::ToolErrorKind;
use super::turns::Turns;
use super::words::cut;
use crate::terms::budget::PaidCall;
use crate::terms::cancel::Cancel;
use crate::terms::place::Place;
use crate::terms::print_hook::Heartbeat;
use crate::terms::spans::CallSpan;
use lisp_core::check::{Shape, ToolShape};
use lisp_core::{Error, Reason};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A call of a tool, as the tool receives it. The arguments are one JSON object.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The number in the run, from 1.
    pub(crate) number: u64,
    /// The name in the run.
    pub(crate) place: Place,
    pub(crate) key: Option<String>,
    pub(crate) contract: Arc<Contract>,
    pub(crate) treatment: Arc<Treatment>,
    pub(crate) arguments: String,
    /// Whether the policy replaced the arguments.
    pub(crate) is_rewritten: bool,
    /// The question, if the call needs approval.
    pub(crate) question: Option<String>,
    /// Set to the arguments that the call is approved with.
    pub(crate) given: Option<Arc<std::sync::OnceLock<String>>>,
    /// True while it waits for approval.
    #[cfg_attr(not(feature = "async"), allow(dead_code, reason = "only async calls wait for approval"))]
    pub(crate) waits: Option<super::ledger::WaitsForApproval>,
    /// What a budget paid for it.
    pub(crate) paid: Option<Arc<PaidCall>>,
    /// Who approves it.
    #[cfg(feature = "async")]
    pub(crate) approvals: Option<super::approval::ApprovalChannel<ToolCall>>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancel: Cancel,
    pub(crate) traceparent: Option<Arc<str>>,
    pub(crate) span: CallSpan,
}

impl ToolCall {
    /// Returns the name of the tool.
    pub fn name(&self) -> &str {
        self.contract.given_name()
    }

    /// Starts the call: from now on its budget has paid. Returns false if the call is no longer needed and the payment
    /// was returned; then the call must not be made.
    pub(crate) fn begin(&self) -> bool {
        self.paid.as_ref().is_none_or(|paid| paid.begin())
    }

    /// Notes whether the call waits for approval.
    #[cfg(feature = "async")]
    pub(crate) fn waits_for_approval(&self, does: bool) {
        if let Some(waits) = &self.waits {
            waits.store(does, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Returns the arguments as JSON text: an object.
    ///
    /// Keywords become strings. In argument names that the program wrote as keywords, hyphens become underscores
    /// (`:user-id` is `"user_id"`), unless the tool's signature has the name with hyphens. Strings, and all keys below
    /// the top level, are unchanged.
    pub fn json(&self) -> &str {
        &self.arguments
    }

    /// Returns the arguments as a Rust type.
    ///
    /// # Errors
    /// `invalid_tool_args` if they do not match. Use `?` in the tool to pass it on to the program.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        arguments(&self.arguments, &self.treatment.redacted)
    }

    /// Returns one argument as a Rust type.
    ///
    /// # Errors
    /// `invalid_tool_args` if it is missing or does not match. Use an `Option` for an optional argument.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T, ToolError> {
        argument(&self.arguments, key, &self.treatment.redacted)
    }

    /// Returns the handle that cancels the run of this call, for a tool that must end it.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, ToolCall, Verdict};
    /// let leave = Tool::new("leave", |call: &ToolCall| {
    ///     call.cancel_handle().cancel();
    ///     Ok(())
    /// });
    /// let engine = Engine::builder().grant(leave).build()?;
    /// assert_eq!(engine.eval("(tool/leave {})", Input::new()).verdict(), Verdict::Cancelled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_handle(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the path of indexes to the parallel worker that makes the call; empty for the program itself.
    pub fn worker(&self) -> Vec<u32> {
        self.place.worker()
    }

    /// Returns the name of the call in its run. It does not depend on the number of parallel workers, and is the same
    /// in every attempt of a recorded run.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns a globally unique key of the call, to be used as an idempotency key; `None` if the run is not recorded.
    ///
    /// A call that is repeated because it is unknown whether it was made has the same key.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns the question, if the call needs approval before it is made
    /// ([`PolicyDecision::Ask`](crate::tools::PolicyDecision::Ask)).
    pub fn question(&self) -> Option<&str> {
        self.question.as_deref()
    }

    /// Returns the trace that the run is part of, for requests of the tool:
    /// [`Input::traceparent`](crate::Input::traceparent).
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// Returns how long the run may still take; `None` is no limit. Use it to bound the tool's own work.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns whether the run was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Returns whether the caller's time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Sleeps, but not past the run's deadline or cancellation.
    pub fn sleep(&self, time: Duration) {
        const STEP: Duration = Duration::from_millis(5);
        let end = Instant::now().checked_add(time);
        loop {
            let now = Instant::now();
            let left = [end, self.deadline].into_iter().flatten().map(|t| t.saturating_duration_since(now)).min();
            let left = left.unwrap_or(STEP);
            if left.is_zero() || self.is_cancelled() {
                return;
            }
            std::thread::sleep(left.min(STEP));
        }
    }
}

type Function = Arc<dyn Fn(&ToolCall) -> Result<String, ToolError> + Send + Sync>;

/// A call of an async tool in progress, which returns JSON text.
#[cfg(feature = "async")]
pub type BoxedCall = std::pin::Pin<Box<dyn Future<Output = Result<String, ToolError>> + Send>>;

#[cfg(feature = "async")]
pub(super) type AsyncFunction = Arc<dyn Fn(ToolCall) -> BoxedCall + Send + Sync>;

/// How a call is served.
#[derive(Clone)]
pub(crate) enum Body {
    /// By a closure of the host, which returns JSON text.
    Function(Function),
    /// By a future of the host, which returns JSON text.
    #[cfg(feature = "async")]
    Async(AsyncFunction),
    /// With its own arguments.
    Echo,
    /// By the reply of a run that is driven step by step.
    External,
}

/// A tool: its name, its handler, and how its calls are treated.
#[derive(Clone)]
pub struct Tool {
    pub(crate) body: Body,
    pub(crate) contract: Arc<Contract>,
    pub(crate) treatment: Arc<Treatment>,
    pub(super) operation: Option<Arc<Operation>>,
    turns: Option<Turns>,
    pub(super) delay: Duration,
    scripted: bool,
    pub(super) fault: Option<Fault>,
}

/// Why a tool cannot be used.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    Signature(SignatureError),
    Schema(SchemaError),
    /// It has both a signature and a schema.
    Both,
}

/// The maximum bytes of a description that are kept.
const DESCRIPTION_BYTES: usize = 10_000;

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Contract { name, text, .. } = &*self.contract;
        f.debug_struct("Tool").field("name", name).field("signature", text).finish_non_exhaustive()
    }
}

impl Tool {
    /// Returns what is known of its arguments and its result before it is called.
    pub(crate) fn shape(&self) -> Option<ToolShape> {
        let shape = self.contract.shape()?;
        if !self.treatment.tagged {
            return Some(shape);
        }
        let result = Shape::map([("ok".into(), shape.result, false), ("error".into(), Shape::UNKNOWN, false)], true);
        Some(ToolShape { result, ..shape })
    }

    /// Creates a tool from a closure. The result may be any value that serde can serialize as JSON.
    pub fn new<R: Serialize>(
        name: impl Into<String>,
        function: impl Fn(&ToolCall) -> Result<R, ToolError> + Send + Sync + 'static,
    ) -> Self {
        let function = move |call: &ToolCall| {
            let result = function(call)?;
            serde_json::to_string(&result).map_err(|error| ToolError::new(format!("its result is not JSON: {error}")))
        };
        Tool::from_body(name, Body::Function(Arc::new(function)))
    }

    /// Creates a tool whose calls are answered by the caller of [`crate::Engine::start`]. With [`crate::Engine::run`]
    /// every call fails.
    pub fn external(name: impl Into<String>) -> Self {
        Tool::from_body(name, Body::External)
    }

    /// Creates a tool that returns its arguments unchanged, including sets.
    pub fn echo(name: impl Into<String>) -> Self {
        Tool::from_body(name, Body::Echo)
    }

    pub(super) fn from_body(name: impl Into<String>, body: Body) -> Self {
        Tool {
            body,
            contract: Arc::new(Contract { name: name.into(), ..Contract::default() }),
            treatment: Arc::default(),
            operation: None,
            turns: None,
            delay: Duration::ZERO,
            scripted: false,
            fault: None,
        }
    }

    /// Returns the tool with a changed contract.
    pub(crate) fn amend(mut self, change: impl FnOnce(&mut Contract)) -> Self {
        change(Arc::make_mut(&mut self.contract));
        self
    }

    /// Returns the tool with a changed treatment.
    pub(crate) fn treat(mut self, change: impl FnOnce(&mut Treatment)) -> Self {
        change(Arc::make_mut(&mut self.treatment));
        self
    }

    /// Sets the signature, such as `(sku :string, count :int?) -> {price :float}`.
    ///
    /// Arguments and results are checked against it. Unknown arguments are errors, unless the parameters end with
    /// `...`. `docs/signatures.md` has the grammar.
    #[must_use]
    pub fn signature(self, text: impl Into<String>) -> Self {
        let text = text.into();
        let signature = Signature::parse(&text);
        let tool = self.described(text);
        match signature {
            Ok(signature) => tool.amend(|contract| contract.signature = Some(signature)),
            Err(error) => Tool { fault: Some(Fault::Signature(error)), ..tool },
        }
    }

    /// Sets the JSON Schemas of arguments and results of a tool of a request, which are within the request's allowance.
    pub(crate) fn schemas(self, input: Option<&str>, output: Option<&str>, allowance: &mut Allowance) -> Self {
        if self.contract.text.is_some() {
            return Tool { fault: Some(Fault::Both), ..self };
        }
        match JsonContract::within(input, output, allowance) {
            Ok(schemas) => self.checked_by(schemas),
            Err(error) => Tool { fault: Some(Fault::Schema(error)), ..self },
        }
    }

    pub(super) fn checked_by(self, schemas: Arc<JsonContract>) -> Self {
        self.amend(|contract| {
            contract.hyphenated = schemas.hyphenated();
            contract.text = Some(schemas.line_text().to_owned());
            contract.schemas = Some(schemas);
        })
    }

    /// Sets a signature that is only shown; nothing is checked against it.
    pub(crate) fn described(self, text: String) -> Self {
        self.amend(|contract| contract.text = Some(text))
    }

    /// Caches results: a repeated call with equal arguments in one run returns the result of the first one.
    #[must_use]
    pub fn cached(self) -> Self {
        self.treat(|treatment| treatment.cached = true)
    }

    /// Calls the tool on one of the engine's tool threads, so that the run ends on time even if the tool does not
    /// return.
    ///
    /// At the deadline or on cancellation the run ends without the reply. A late reply is dropped, and the thread stays
    /// in use until the tool returns. If all threads are in use ([`crate::EngineBuilder::tool_threads`]), the call
    /// waits for one.
    #[must_use]
    pub fn detached(self) -> Self {
        self.treat(|treatment| treatment.detached = true)
    }

    /// Declares the effect of the tool's calls.
    ///
    /// In a resumed run, if it is unknown whether a call was made, it is repeated only if the tool only reads. For
    /// other tools the host decides ([`Record::settle`](crate::Record::settle)). The effect is stored in the record: a
    /// tool that was not declared as reading when its call started is not repeated.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        self.treat(|treatment| treatment.effect = effect)
    }

    /// Declares that a repeated call has no further effect.
    ///
    /// This is for the host and its policy, and is stored in the record. It does not make a resumed run repeat calls:
    /// only [`Effect::Read`] does.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.treat(|treatment| treatment.idempotent = true)
    }

    /// Sets the maximum number of the tool's calls in a run, without calls served from the cache; 0 is no limit. One
    /// more call ends the run with `tool_call_limit_exceeded`.
    #[must_use]
    pub fn max_calls(self, max: u64) -> Self {
        self.treat(|treatment| treatment.max_calls = max)
    }

    /// Sets how many calls of the tool may be in progress at once, over all runs of all engines that it is granted to;
    /// at least 1.
    ///
    /// A further call waits on the thread that would make it, until its run's deadline or cancellation. Async tools and
    /// runs that are driven step by step do not wait; their callers must count the calls.
    #[must_use]
    pub fn concurrency(mut self, max: usize) -> Self {
        self.turns = Some(Turns::new(max.max(1)));
        self
    }

    /// Makes failures of the tool values instead of errors, for models that do not write `try`.
    ///
    /// The program gets `{:ok result}`, or `{:error {:reason "tool_error" :message "..." :tool "name"}}`. The reason
    /// may also be `invalid_tool_args`. The keys are strings or keywords, as in other results. A signature or schema
    /// describes only the result. Arguments that do not match, exceeded limits, denials and cancellation are still
    /// errors.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, ToolError};
    /// let half = Tool::new("half", |call| match call.get::<i64>("n")? {
    ///     n if n % 2 == 0 => Ok(n / 2),
    ///     n => Err(ToolError::new(format!("{n} is odd"))),
    /// });
    /// let engine = Engine::builder().grant(half.tagged()).build()?;
    /// let program = "(map #(let [r (tool/half {:n %})] (or (:ok r) (:message (:error r)))) [4 5])";
    /// assert_eq!(engine.eval(program, Input::new()).text(), Some(r#"[2 "tool/half: 5 is odd"]"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tagged(self) -> Self {
        self.treat(|treatment| treatment.tagged = true)
    }

    /// Keeps the values of these arguments, as the tool names them, out of the ledger and the record.
    ///
    /// Both have `"[redacted]"` instead. The values are also kept out of errors about arguments that do not match, and
    /// the message of a panic is dropped. The tool, its policy, and the caller that drives a run step by step see the
    /// values. The tool's own errors and results are shown. Not supported for cached tools.
    #[must_use]
    pub fn redact<N: Into<String>>(self, arguments: impl IntoIterator<Item = N>) -> Self {
        self.treat(|treatment| treatment.redacted = arguments.into_iter().map(Into::into).collect())
    }

    /// Returns whether it has redacted arguments.
    pub(crate) fn redacts(&self) -> bool {
        !self.treatment.redacted.is_empty()
    }

    /// Returns arguments, JSON text, as they may be shown.
    pub(crate) fn arguments_shown<'a>(&self, arguments: &'a str) -> Cow<'a, str> {
        const REDACTED: &str = "\"[redacted]\"";
        if !self.redacts() {
            return Cow::Borrowed(arguments);
        }
        // Arguments that are not an object may contain such a value anywhere.
        let Ok(all) = serde_json::from_str::<BTreeMap<String, &RawValue>>(arguments) else {
            return Cow::Borrowed(REDACTED);
        };
        let mut text = String::from("{");
        for (name, value) in all {
            let value = if self.treatment.redacted.contains(&name) { REDACTED } else { value.get() };
            let comma = if text.len() > 1 { "," } else { "" };
            text.push_str(comma);
            text.push_str(&serde_json::Value::from(name).to_string());
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        Cow::Owned(text)
    }

    /// Describes the tool for models, in at most 10,000 bytes. The prompt has it, or only its first sentence where the whole
    /// does not fit ([`EngineBuilder::prompt_tools_bytes`](crate::EngineBuilder::prompt_tools_bytes)), and searches use it.
    #[must_use]
    pub fn about(self, description: impl AsRef<str>) -> Self {
        let text = description.as_ref().trim();
        self.amend(|contract| contract.description = (!text.is_empty()).then(|| cut(text, DESCRIPTION_BYTES)))
    }

    /// Sets the handler of the tool, for example of an external tool of [`Tool::from_json_schema`].
    #[must_use]
    pub fn with_handler<R: Serialize>(
        mut self,
        function: impl Fn(&ToolCall) -> Result<R, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.body = Tool::new("", function).body;
        self
    }

    /// Delays each call, for tests. Async tools wait with their own timer: [`Tools::add`](crate::Tools::add) rejects one
    /// with a delay.
    #[must_use]
    pub fn delay(mut self, time: Duration) -> Self {
        self.delay = time;
        self
    }

    /// Returns the name as programs write it.
    pub fn name(&self) -> &str {
        &self.contract.name
    }

    /// Returns the original name, which may differ from the name in programs ([`Tool::name`]).
    pub fn given_name(&self) -> &str {
        self.contract.given_name()
    }

    /// Returns whether the tool is scripted: it came with a request ([`ScriptedTool`](crate::request::ScriptedTool)) and has no
    /// effect. It may have the name of a tool of the host.
    pub fn is_scripted(&self) -> bool {
        self.scripted
    }

    /// Marks a tool that came with a request.
    pub(crate) fn scripted(mut self) -> Self {
        self.scripted = true;
        self
    }

    /// Returns the declared effect of its calls.
    pub fn effect(&self) -> Effect {
        self.treatment.effect
    }

    /// Returns whether repeated calls have no further effect.
    pub fn is_idempotent(&self) -> bool {
        self.treatment.idempotent
    }

    /// Checks that arguments, JSON text, can be read, and match the tool's signature and JSON Schema.
    ///
    /// # Errors
    /// They cannot be read, or do not match.
    pub fn validate_arguments(&self, arguments: &str) -> Result<(), Error> {
        let wrong = |why: String| Error::new(Reason::InvalidToolArgs, format!("tool/{}: {why}", self.name()));
        let read = serde_json::from_str::<serde_json::Value>(arguments)
            .map_err(|error| wrong(format!("the arguments cannot be read: {error}")))?;
        let misfit = read.as_object().and_then(|read| self.contract.misfit(read, &self.treatment.redacted));
        match misfit {
            Some(why) => Err(wrong(why)),
            None => self.validate_arguments_by_schema(arguments),
        }
    }

    /// Checks arguments, JSON text, against the tool's JSON Schema.
    pub(crate) fn validate_arguments_by_schema(&self, arguments: &str) -> Result<(), Error> {
        match &self.contract.schemas {
            Some(schemas) => schemas.validate_arguments(self.name(), arguments, &self.treatment.redacted),
            None => Ok(()),
        }
    }

    /// Checks a result, JSON text, against the tool's JSON Schema of results.
    pub(crate) fn validate_result_by_schema(&self, result: &str) -> Result<(), Error> {
        match &self.contract.schemas {
            Some(schemas) => schemas.validate_result(self.name(), result),
            None => Ok(()),
        }
    }

    /// Returns whether a call may block.
    pub(crate) fn may_block(&self) -> bool {
        matches!(self.body, Body::Function(_)) || !self.delay.is_zero() || self.turns.is_some()
    }

    /// Calls the tool on this thread, or on one of `threads` if it is detached. `beat` is called from time to time while this
    /// thread waits for another.
    pub(crate) fn call(self: &Arc<Self>, call: Box<ToolCall>, threads: &ToolThreads, beat: &dyn Fn()) -> Reply {
        if self.treatment.detached && matches!(self.body, Body::Function(_)) {
            return self.call_detached(call, threads, beat);
        }
        self.call_here(&call)
    }

    /// Calls the tool on this thread, unless the caller's time is over.
    pub(crate) fn call_here(&self, call: &ToolCall) -> Reply {
        if !self.delay.is_zero() {
            call.sleep(self.delay);
        }
        let not_made = Reply::NotMade { tool_threads: None };
        let _turn = match &self.turns {
            Some(turns) => match turns.wait(|| call.is_over()) {
                Some(turn) => Some(turn),
                None => return not_made,
            },
            None => None,
        };
        if call.is_over() || !call.begin() {
            return not_made;
        }
        match &self.body {
            // As JSON, arguments are checked as results.
            Body::Echo if call.is_rewritten || self.contract.schemas.is_some() => Reply::Json(call.arguments.clone()),
            Body::Echo => Reply::Echo,
            Body::External if self.scripted => Reply::Error(ToolError::new(
                "it is answered by its client, which only the service supports (ptcl serve); elsewhere give it `returns`, `error` or `echo`",
            )),
            Body::External => Reply::Error(ToolError::new(
                "it is external: only a run that its host drives step by step (Engine::start) replies to it; Tool::with_handler gives it a \
                 function for other runs",
            )),
            #[cfg(feature = "async")]
            Body::Async(_) => Reply::Error(ToolError::new(
                "it is async: only a run of run_async or eval_async waits for it, or the host drives the run step by step (Engine::start)",
            )),
            Body::Function(function) => call.span.within(|| guarded(function, call)),
        }
    }

    /// Calls the tool on another thread, and waits at most until the caller's time is over.
    fn call_detached(self: &Arc<Self>, call: Box<ToolCall>, threads: &ToolThreads, beat: &dyn Fn()) -> Reply {
        /// How often cancellation is checked.
        const STEP: Duration = Duration::from_millis(5);
        if threads.max() == 0 {
            return Reply::no_thread();
        }
        let (reply, replies) = mpsc::sync_channel(1);
        let (deadline, caller, tool) = (call.deadline, call.clone(), self.clone());
        let job = move || {
            // When the run has ended, the receiver is gone.
            let _ = reply.send(tool.call_here(&call));
        };
        let Ok(ticket) = threads.submit(Box::new(job)) else { return Reply::no_thread() };
        let not_made = || Reply::NotMade { tool_threads: ticket.waits.then(|| threads.max()) };
        let mut beat_at = Instant::now();
        loop {
            let left = deadline.map_or(STEP, |deadline| deadline.saturating_duration_since(Instant::now()));
            match replies.recv_timeout(left.min(STEP)) {
                Ok(Reply::NotMade { .. }) => return not_made(),
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Disconnected) => return Reply::Error(ToolError::new("its thread ended")),
                Err(RecvTimeoutError::Timeout) if caller.is_over() => {
                    return if threads.withdraw(ticket) { not_made() } else { Reply::Late };
                }
                Err(RecvTimeoutError::Timeout) if beat_at.elapsed() >= Heartbeat::EVERY => {
                    beat();
                    beat_at = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Calls a closure of the host; a panic becomes an error of the tool.
fn guarded(function: &Function, call: &ToolCall) -> Reply {
    match catch_unwind(AssertUnwindSafe(|| function(call))) {
        Ok(Ok(json)) => Reply::Json(json),
        Ok(Err(error)) => Reply::Error(error),
        Err(panic) => panicked(&*panic, &call.treatment.redacted),
    }
}

/// Returns the error of a tool that panicked. The message of the panic may contain the value of a redacted argument.
pub(super) fn panicked(panic: &(dyn std::any::Any + Send), redacted: &[String]) -> Reply {
    let message = match panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str)) {
        Some(text) if redacted.is_empty() => format!("it panicked: {text}"),
        _ => "it panicked".to_owned(),
    };
    Reply::Error(ToolError { message, kind: ToolErrorKind::Panic, code: None })
}
