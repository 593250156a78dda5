//! Tools: what the host lets a program call.

use super::argument::{argument, arguments};
use super::json_contract::JsonContract;
use super::operation::Operation;
use super::signature::{Signature, SignatureError};
use super::threads::ToolThreads;
pub use super::tool_error::ToolError;
pub(crate) use super::tool_error::ToolErrorKind;
use super::turns::Turns;
use crate::record::line::{Ended, Failure};
use crate::terms::budget::PaidCall;
use crate::terms::cancel::Cancel;
use crate::terms::outcome::CallStatus;
use crate::terms::place::Place;
use crate::terms::spans::CallSpan;
use lisp_core::syntax::is_name_part;
use lisp_core::{Error, Reason};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A call of a tool, as the tool gets it: its arguments are one JSON object with string keys.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Its number in the run, from 1.
    pub(crate) number: u64,
    /// Its name in the run.
    pub(crate) place: Place,
    pub(crate) key: Option<String>,
    pub(crate) name: String,
    /// What programs call the tool, where that is not its name.
    pub(crate) symbol: Option<String>,
    pub(crate) arguments: String,
    /// The arguments whose values no error shows.
    pub(crate) redacted: Arc<[String]>,
    /// The policy gave it other arguments than the program.
    pub(crate) is_rewritten: bool,
    /// What has to be approved before it is made.
    pub(crate) question: Option<String>,
    /// Where other arguments are left that it is approved with.
    pub(crate) given: Option<Arc<std::sync::OnceLock<String>>>,
    /// What a budget has paid for it.
    pub(crate) paid: Option<Arc<PaidCall>>,
    /// Who approves it.
    #[cfg(feature = "async")]
    pub(crate) desk: Option<super::approval::ApprovalDesk<ToolCall>>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancel: Cancel,
    pub(crate) traceparent: Option<Arc<str>>,
    pub(crate) span: CallSpan,
}

impl ToolCall {
    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Somebody begins to make it: from now on its budget has paid. False when nobody waits for it any more and the budget has the
    /// payment back: then it must not be made.
    pub(crate) fn begin(&self) -> bool {
        self.paid.as_ref().is_none_or(|paid| paid.begin())
    }

    /// The name that programs have for the tool.
    pub(crate) fn symbol(&self) -> &str {
        self.symbol.as_deref().unwrap_or(&self.name)
    }

    /// The arguments as JSON text, an object.
    ///
    /// Keywords are strings in it. In the names of arguments that the program wrote as keywords, hyphens are underscores
    /// (`:user-id` is `"user_id"`), unless the tool's signature has the name as it is written. Strings, and all keys below
    /// the top level, are as the program has them.
    pub fn json(&self) -> &str {
        &self.arguments
    }

    /// The arguments as a type of the host's.
    ///
    /// # Errors
    /// `invalid_tool_args` when they do not fit; `?` in a tool passes it on to the program.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        arguments(&self.arguments, &self.redacted)
    }

    /// One argument.
    ///
    /// # Errors
    /// `invalid_tool_args` when it is missing or does not fit; take an `Option` for one that may be missing.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T, ToolError> {
        argument(&self.arguments, key, &self.redacted)
    }

    /// The indexes on the way to the parallel worker that makes the call; empty for the program itself.
    pub fn worker(&self) -> Vec<u32> {
        self.place.worker()
    }

    /// The name of the call in its run: the same at any width of parallel calls, and in every life of a recorded run.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// In a run that is recorded, a name for the call that no other call has, of this run or another: the idempotency key for
    /// what the tool does. A call that is made again, because nobody knows whether it was made, has the same key.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// What somebody has to approve before the call is made, in a run that is driven by hand
    /// ([`PolicyDecision::Ask`](crate::PolicyDecision::Ask)).
    pub fn question(&self) -> Option<&str> {
        self.question.as_deref()
    }

    /// The trace that the run is part of, for what the tool asks of others: [`Input::traceparent`](crate::Input::traceparent).
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// How long the run may still take; a tool that can bound itself should. `None` is for ever.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Has the run been cancelled?
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Is the time of the caller over?
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Waits, but not past the run's deadline or its cancellation.
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

/// A call of an async tool under way: it comes to JSON text.
#[cfg(feature = "async")]
pub type BoxedCall = std::pin::Pin<Box<dyn Future<Output = Result<String, ToolError>> + Send>>;

#[cfg(feature = "async")]
pub(super) type AsyncFunction = Arc<dyn Fn(ToolCall) -> BoxedCall + Send + Sync>;

/// What a call of a tool does to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It changes nothing: it may be made twice.
    Read,
    /// It changes something.
    Write,
    /// Nobody has said; it is treated as one that changes something.
    #[default]
    Unknown,
}

/// How a call is served.
#[derive(Clone)]
pub(crate) enum Body {
    /// A closure of the host's, which returns JSON text
    Function(Function),
    /// A future of the host's, which comes to JSON text
    #[cfg(feature = "async")]
    Async(AsyncFunction),
    /// Its own arguments
    Echo,
    /// The reply of a run that is driven by hand
    External,
}

/// A tool: its name, its function, and how its calls are treated.
#[derive(Clone)]
pub struct Tool {
    pub(crate) name: String,
    pub(crate) body: Body,
    pub(crate) signature: Option<String>,
    pub(crate) contract: Option<Arc<Signature>>,
    /// What its arguments and results are checked against as JSON.
    pub(crate) json_contract: Option<Arc<JsonContract>>,
    /// The parameters with hyphens in their names, of a tool without a signature.
    pub(crate) hyphenated: Arc<[String]>,
    /// The name as it was given, where that is no symbol.
    pub(crate) given_name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) operation: Option<Arc<Operation>>,
    pub(crate) cached: bool,
    pub(crate) detached: bool,
    pub(crate) effect: Effect,
    pub(crate) idempotent: bool,
    /// The most calls in a run; 0 is no limit.
    pub(crate) most_calls: u64,
    turns: Option<Turns>,
    /// Its failures are values.
    pub(crate) tagged: bool,
    /// Arguments that are shown to nobody but the tool.
    redacted: Arc<[String]>,
    pub(crate) delay: Duration,
    scripted: bool,
    fault: Option<SignatureError>,
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).field("signature", &self.signature).finish_non_exhaustive()
    }
}

impl Tool {
    /// A tool: a closure. The result may be anything that serde can write as JSON.
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

    /// A tool whose calls [`crate::Engine::start`] hands to the caller that drives the run. Under [`crate::Engine::run`] it
    /// fails.
    pub fn external(name: impl Into<String>) -> Self {
        Tool::from_body(name, Body::External)
    }

    /// A tool that returns its arguments, sets and all.
    pub fn echo(name: impl Into<String>) -> Self {
        Tool::from_body(name, Body::Echo)
    }

    pub(super) fn from_body(name: impl Into<String>, body: Body) -> Self {
        Tool {
            name: name.into(),
            body,
            signature: None,
            contract: None,
            json_contract: None,
            hyphenated: Arc::default(),
            given_name: None,
            description: None,
            operation: None,
            cached: false,
            detached: false,
            effect: Effect::Unknown,
            idempotent: false,
            most_calls: 0,
            turns: None,
            tagged: false,
            redacted: Arc::default(),
            delay: Duration::ZERO,
            scripted: false,
            fault: None,
        }
    }

    /// Says what the tool takes and gives, such as `(sku :string, count :int?) -> {price :float}`. Arguments and results
    /// are checked against it. A call with an argument that is not in it is refused, unless the parameters end with `...`.
    /// `docs/signatures.md` has the grammar.
    #[must_use]
    pub fn signature(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        match Signature::parse(&text) {
            Ok(signature) => self.contract = Some(Arc::new(signature)),
            Err(error) => self.fault = Some(error),
        }
        self.signature = Some(text);
        self
    }

    /// Says what the tool takes and gives; nothing is checked against it.
    pub(crate) fn described(mut self, text: String) -> Self {
        self.signature = Some(text);
        self
    }

    /// Keeps a signature that cannot be read as a text only.
    pub(crate) fn lenient(mut self) -> Self {
        self.fault = None;
        self
    }

    /// Serves a repeated call with equal arguments in one run from the result of the first.
    #[must_use]
    pub fn cached(mut self) -> Self {
        self.cached = true;
        self
    }

    /// Calls the tool on one of the engine's tool threads, so that the run ends at its deadline or when it is cancelled
    /// even if the tool does not return. A reply that comes later is dropped; the thread is taken until the tool returns.
    /// When all threads are taken ([`crate::EngineBuilder::tool_threads`]) the call waits for one.
    #[must_use]
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// Says what a call of the tool does to the world. In a recorded run a call of a tool that only reads is made again when nobody
    /// knows whether it was made; of others the host says what came of them. The record has the effect: a tool that reads now and
    /// did not when its call began is one of the others.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Says that a call made twice does what it does once. It is there for the host and its policy, and in the record; a call of
    /// which nobody knows whether it was made is made again only when the tool's effect is [`Effect::Read`].
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// The most calls of the tool that a run may make, without those served from an earlier result; 0 is no limit. One more ends
    /// the run with `tool_call_limit_exceeded`.
    #[must_use]
    pub fn most_calls(mut self, most: u64) -> Self {
        self.most_calls = most;
        self
    }

    /// How many calls of the tool may be under way at once, in all runs together of the engines that it is granted to; at least 1.
    /// A call beyond that waits where it would be made, on a thread of its run or on a tool thread, until its run's deadline or
    /// cancellation. Async tools, and runs that are driven by hand, do not wait: who makes those calls counts them.
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.turns = Some(Turns::new(most.max(1)));
        self
    }

    /// Gives the program a value whether the tool fails or not, for models that write no `try`: `{:ok result}`, or
    /// `{:error {:reason "tool_error" :message "..." :tool "name"}}`; the reason may be `invalid_tool_args`, too. The keys are
    /// strings or keywords like those of other results. A signature or schema is of the result alone. A call whose arguments do
    /// not fit, a limit, a denial and a cancellation are errors of the program all the same.
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
    pub fn tagged(mut self) -> Self {
        self.tagged = true;
        self
    }

    /// Keeps the values of these arguments, by the names by which the tool gets them, out of the ledger and the record: both have
    /// `"[redacted]"` in their places, and out of the errors of arguments that do not fit; what a panic of the tool says is left out,
    /// too. The tool, its policy, and who drives the run by hand see them; what the tool says in an error of its own, and what it
    /// returns, is shown. Not for a cached tool.
    #[must_use]
    pub fn redact<N: Into<String>>(mut self, arguments: impl IntoIterator<Item = N>) -> Self {
        self.redacted = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// The names of the arguments that it keeps out of what is shown.
    pub(crate) fn redacted(&self) -> &Arc<[String]> {
        &self.redacted
    }

    /// Does it keep arguments out of what is shown?
    pub(crate) fn redacts(&self) -> bool {
        !self.redacted.is_empty()
    }

    /// Arguments, JSON text, as they may be shown.
    pub(crate) fn arguments_shown<'a>(&self, arguments: &'a str) -> Cow<'a, str> {
        const REDACTED: &str = "\"[redacted]\"";
        if !self.redacts() {
            return Cow::Borrowed(arguments);
        }
        // What is no object may have such a value anywhere.
        let Ok(all) = serde_json::from_str::<BTreeMap<String, &RawValue>>(arguments) else {
            return Cow::Borrowed(REDACTED);
        };
        let mut text = String::from("{");
        for (name, value) in all {
            let value = if self.redacted.contains(&name) { REDACTED } else { value.get() };
            let comma = if text.len() > 1 { "," } else { "" };
            text.push_str(comma);
            text.push_str(&serde_json::Value::from(name).to_string());
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        Cow::Owned(text)
    }

    /// Says what the tool does, in words, for models: the beginning is on the prompt card, and searches look at it.
    #[must_use]
    pub fn about(mut self, description: &str) -> Self {
        let text = description.trim();
        self.description = (!text.is_empty()).then(|| text.to_owned());
        self
    }

    /// Gives the tool a function in the place of what served it before, as an external one of [`Tool::from_json_schema`].
    #[must_use]
    pub fn served_by<R: Serialize>(
        mut self,
        function: impl Fn(&ToolCall) -> Result<R, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.body = Tool::new("", function).body;
        self
    }

    /// Waits before each call, for rehearsals. An async tool waits by itself, with a timer of its runtime: one with a delay is an
    /// error of [`Tools::add`].
    #[must_use]
    pub fn delay(mut self, time: Duration) -> Self {
        self.delay = time;
        self
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as it was given: not that of programs where a program cannot write it.
    pub fn given_name(&self) -> &str {
        self.given_name.as_deref().unwrap_or(&self.name)
    }

    /// Returns true for a tool that comes with a request ([`ScriptedTool`](crate::ScriptedTool)) and does nothing itself. It may have
    /// the name of one of the host's.
    pub fn is_scripted(&self) -> bool {
        self.scripted
    }

    /// Marks a tool that comes with a request.
    pub(crate) fn scripted(mut self) -> Self {
        self.scripted = true;
        self
    }

    /// What a call of it does to the world.
    pub fn effect_of(&self) -> Effect {
        self.effect
    }

    /// Does a call made twice do what it does once?
    pub fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    /// Why a call with these arguments, JSON text, is not made: they do not fit the tool's JSON Schema.
    pub fn refused(&self, arguments: &str) -> Option<Error> {
        self.json_contract.as_ref()?.refused(&self.name, arguments, &self.redacted)
    }

    /// Why a result, JSON text, does not come to the program: it does not fit the tool's JSON Schema of results.
    pub fn unfit(&self, result: &str) -> Option<Error> {
        self.json_contract.as_ref()?.unfit(&self.name, result)
    }

    /// Has its signature or schema a parameter of exactly this name, one with hyphens?
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        if self.hyphenated.iter().any(|known| known == name) {
            return true;
        }
        self.contract.as_ref().is_some_and(|contract| contract.has_parameter(name))
    }

    /// May a call of it take long?
    pub(crate) fn may_block(&self) -> bool {
        matches!(self.body, Body::Function(_)) || !self.delay.is_zero() || self.turns.is_some()
    }

    /// Calls the tool: on this thread, or on one of `threads` when it is detached.
    pub(crate) fn call(self: &Arc<Self>, call: Box<ToolCall>, threads: &ToolThreads) -> Reply {
        if self.detached && matches!(self.body, Body::Function(_)) {
            return self.call_detached(call, threads);
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
            Body::Echo if call.is_rewritten => Reply::Json(call.arguments.clone()),
            Body::Echo => Reply::Echo,
            Body::External => Reply::Error(ToolError::new(
                "it is external: only a run that its host drives by hand (Engine::start) replies to it; Tool::served_by gives it a \
                 function for other runs",
            )),
            #[cfg(feature = "async")]
            Body::Async(_) => Reply::Error(ToolError::new(
                "it is async: only a run of run_async or eval_async waits for it, or the host drives the run by hand (Engine::start)",
            )),
            Body::Function(function) => call.span.within(|| guarded(function, call)),
        }
    }

    /// Calls the tool on another thread, and waits no longer than the caller's time.
    fn call_detached(self: &Arc<Self>, call: Box<ToolCall>, threads: &ToolThreads) -> Reply {
        /// How often the cancellation is looked at.
        const STEP: Duration = Duration::from_millis(5);
        if threads.most() == 0 {
            return Reply::no_thread();
        }
        let (reply, replies) = mpsc::sync_channel(1);
        let (deadline, caller, tool) = (call.deadline, call.clone(), self.clone());
        let job = move || {
            // Nobody listens any more when the run is over.
            let _ = reply.send(tool.call_here(&call));
        };
        let Ok(ticket) = threads.submit(Box::new(job)) else { return Reply::no_thread() };
        let not_made = || Reply::NotMade { tool_threads: ticket.waits.then(|| threads.most()) };
        loop {
            let left = deadline.map_or(STEP, |deadline| deadline.saturating_duration_since(Instant::now()));
            match replies.recv_timeout(left.min(STEP)) {
                Ok(Reply::NotMade { .. }) => return not_made(),
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Disconnected) => return Reply::Error(ToolError::new("its thread ended")),
                Err(RecvTimeoutError::Timeout) if caller.is_over() => {
                    return if threads.withdraw(ticket) { not_made() } else { Reply::Late };
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// How a call ended.
pub(crate) enum Reply {
    /// With a result as JSON text
    Json(String),
    /// With its own arguments as the result
    Echo,
    /// With an error
    Error(ToolError),
    /// Not at all: the run may not make it
    Refused(Error),
    /// Not at all: it was not made in an earlier life of the run, as a worker beside the caller had failed
    LeftOut(Error),
    /// Not before the run's deadline or cancellation
    Late,
    /// Not at all: the run was over before the tool was called. When the call waited for a thread, with how many there are
    NotMade { tool_threads: Option<usize> },
}

impl Reply {
    /// The system gives no thread for a tool that needs one.
    pub(crate) fn no_thread() -> Self {
        Reply::Error(ToolError::new(
            "it is detached and needs a thread of its own, and there is none: the system gives none, or the engine has none \
             (EngineBuilder::tool_threads is 0)",
        ))
    }

    /// How the call ended, as the ledger has it.
    pub(crate) fn status(&self) -> CallStatus {
        match self {
            Reply::Json(_) | Reply::Echo => CallStatus::Ok,
            Reply::Error(_) | Reply::NotMade { .. } | Reply::Refused(_) => CallStatus::Error,
            Reply::LeftOut(_) | Reply::Late => CallStatus::Unknown,
        }
    }

    /// As the journal has it; `None` when nobody knows whether the call was made.
    #[expect(clippy::option_option, reason = "not known, and known not to have been made")]
    pub(crate) fn ended(&self) -> Option<Option<Ended>> {
        match self {
            Reply::Json(json) => Some(Some(Ended::Json(json.clone()))),
            Reply::Echo => Some(Some(Ended::Echo)),
            Reply::Error(error) => Some(Some(Ended::Failed(Failure {
                message: error.message.clone(),
                arguments: error.kind == ToolErrorKind::Arguments,
                panic: error.kind == ToolErrorKind::Panic,
                code: error.code.clone(),
            }))),
            // The journal has the decision already.
            Reply::Refused(error) if error.reason == Reason::ToolDenied => None,
            Reply::NotMade { .. } | Reply::Refused(_) | Reply::LeftOut(_) => Some(None),
            Reply::Late => None,
        }
    }

    /// The bytes of the result, or of why there is none.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Reply::Json(json) => json.trim().len() as u64,
            Reply::Error(error) => error.message.len() as u64,
            _ => 0,
        }
    }

    /// Is there no reply, as the run was over?
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Reply::Late | Reply::NotMade { .. })
    }

    /// Why the call was not made; `None` when it was, or may have been.
    pub(crate) fn why_not_made(&self) -> Option<String> {
        match self {
            Reply::NotMade { tool_threads: Some(most) } => {
                Some(format!("not made: the run was over before one of the {most} tool threads was free"))
            }
            Reply::NotMade { tool_threads: None } => Some("not made: the run was over".to_owned()),
            _ => None,
        }
    }
}

impl From<Ended> for Reply {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Json(json) => Reply::Json(json),
            Ended::Echo => Reply::Echo,
            Ended::Failed(Failure { message, arguments, panic, code }) => {
                let kind = match (arguments, panic) {
                    (true, _) => ToolErrorKind::Arguments,
                    (_, true) => ToolErrorKind::Panic,
                    _ => ToolErrorKind::Failed,
                };
                Reply::Error(ToolError { message, kind, code })
            }
        }
    }
}

/// Calls a closure of the host's; its panic is an error of the tool.
fn guarded(function: &Function, call: &ToolCall) -> Reply {
    match catch_unwind(AssertUnwindSafe(|| function(call))) {
        Ok(Ok(json)) => Reply::Json(json),
        Ok(Err(error)) => Reply::Error(error),
        Err(panic) => panicked(&*panic, &call.redacted),
    }
}

/// The error of a tool that panicked. What it said may have the value of a redacted argument in it.
pub(super) fn panicked(panic: &(dyn std::any::Any + Send), redacted: &[String]) -> Reply {
    let message = match panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str)) {
        Some(text) if redacted.is_empty() => format!("it panicked: {text}"),
        _ => "it panicked".to_owned(),
    };
    Reply::Error(ToolError { message, kind: ToolErrorKind::Panic, code: None })
}

/// Tools by name.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    by_name: BTreeMap<String, Arc<Tool>>,
    /// One of them, or of those that it replaced, keeps arguments out of what is shown.
    redacts: bool,
}

impl Tools {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// A name that is empty, taken, or cannot be written in a program behind `tool/`, or a signature that cannot be read.
    pub fn add(&mut self, tool: Tool) -> Result<(), BuildError> {
        // What stands behind the first slash of a symbol has none itself.
        if tool.name.contains('/') || !is_name_part(&tool.name) {
            return Err(BuildError::Name(tool.name));
        }
        #[cfg(feature = "async")]
        if matches!(tool.body, Body::Async(_)) && !tool.delay.is_zero() {
            return Err(BuildError::Delay(tool.name));
        }
        if let Some(fault) = tool.fault {
            return Err(BuildError::Signature { tool: tool.name, error: fault });
        }
        if self.by_name.contains_key(&tool.name) {
            return Err(BuildError::Twice(tool.name));
        }
        if tool.cached && tool.redacts() {
            return Err(BuildError::CachedAndRedacted(tool.name));
        }
        self.redacts |= tool.redacts();
        self.by_name.insert(tool.name.clone(), Arc::new(tool));
        Ok(())
    }

    /// Does one of them keep arguments out of what is shown?
    pub(crate) fn redacts(&self) -> bool {
        self.redacts
    }

    /// The tool of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name)
    }

    /// Adds a tool whose name was checked, in the place of one of that name.
    pub(crate) fn insert(&mut self, tool: Tool) {
        self.redacts |= tool.redacts();
        self.by_name.insert(tool.name.clone(), Arc::new(tool));
    }

    /// All tools, by value.
    pub(crate) fn into_all(self) -> impl Iterator<Item = Tool> {
        self.by_name.into_values().map(Arc::unwrap_or_clone)
    }

    /// All tools, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.by_name.values()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

/// Why an engine cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool's name is empty or has characters that a program cannot write.
    #[error("{0:?} is not a valid tool name: use letters, digits and _ - . ? ! * + < > = & % '")]
    Name(String),
    /// Two tools have one name.
    #[error("there are two tools named {0}")]
    Twice(String),
    /// A cached tool with redacted arguments: its results are kept by arguments that are not to be kept.
    #[error(
        "tool {0} is cached and redacts arguments; results are kept by their arguments, so it can be one of both only"
    )]
    CachedAndRedacted(String),
    /// An async tool has a delay.
    #[error("tool {0} is async and has a delay: it waits by itself, with a timer of its runtime")]
    Delay(String),
    /// More threads for tools than an engine may have.
    #[error("tool_threads is {0}; it may be 0 to {most}", most = ToolThreads::MOST)]
    ToolThreads(usize),
    /// A tool's signature cannot be read.
    #[error("the signature of tool {tool}: {error}")]
    Signature {
        /// The tool's name.
        tool: String,
        /// What is wrong with it.
        error: SignatureError,
    },
}
