//! The input of a run.

use super::program::Program;
use crate::drive::setting::Makes;
use crate::recording::journal::Journal;
use crate::terms::budget::Budget;
use crate::terms::cancel::Cancel;
use crate::terms::check::Check;
use crate::terms::clock::Reading;
use crate::terms::keys::Keys;
use crate::terms::limits::{Limits, LimitsRequest};
use crate::terms::outcome::{Phase, Problem};
use crate::terms::print_hook::{Heartbeat, PrintHook};
use crate::terms::run_id::{self, is_traceparent};
use crate::terms::typed::TypedValue;
use crate::tools::tool_set::Tools;
use lisp_core::vm::Grant;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// JSON text, or the reason why it could not be written.
pub(crate) type Text<'a> = Result<Cow<'a, str>, String>;

/// One source of the input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Source<'a> {
    /// `data/name`.
    Data(Cow<'a, str>, Text<'a>),
    /// `data/key` for every key of an object.
    DataObject(Text<'a>),
    /// Definitions: one for every key of an object.
    Memory(Text<'a>),
    /// Earlier results: an array, oldest first.
    History(Text<'a>),
    /// `data/name`, as the text of a typed value.
    Typed(Cow<'a, str>, Text<'a>),
}

impl Source<'_> {
    pub(crate) fn into_owned(self) -> Source<'static> {
        let owned = |text: Text<'_>| text.map(|text| Cow::Owned(text.into_owned()));
        match self {
            Source::Data(name, text) => Source::Data(Cow::Owned(name.into_owned()), owned(text)),
            Source::Typed(name, text) => Source::Typed(Cow::Owned(name.into_owned()), owned(text)),
            Source::DataObject(text) => Source::DataObject(owned(text)),
            Source::Memory(text) => Source::Memory(owned(text)),
            Source::History(text) => Source::History(owned(text)),
        }
    }
}

/// A program that is evaluated first.
#[derive(Clone, Debug)]
pub(crate) enum SetUp<'a> {
    Compiled(Program),
    /// Compiled when the run is set up, in the process that runs it.
    Source(Cow<'a, str>),
}

impl SetUp<'_> {
    pub(crate) fn source(&self) -> &str {
        match self {
            SetUp::Compiled(program) => program.source(),
            SetUp::Source(source) => source,
        }
    }

    fn into_owned(self) -> SetUp<'static> {
        match self {
            SetUp::Compiled(program) => SetUp::Compiled(program),
            SetUp::Source(source) => SetUp::Source(Cow::Owned(source.into_owned())),
        }
    }
}

/// Data that is imported once and shared by many runs without copying. See [`Engine::import`](crate::Engine::import).
///
/// The JSON text is kept too, so that runs in other processes can have it.
#[derive(Clone)]
pub struct DataSet {
    pub(crate) grant: Arc<Grant>,
    /// The JSON text; absent in a process that received the set from another one.
    pub(crate) source: Option<Arc<Source<'static>>>,
    /// How its JSON object keys are represented.
    pub(crate) keys: Keys,
    /// The digest of its text, once it was asked for.
    pub(crate) digest: Arc<OnceLock<String>>,
}

impl DataSet {
    /// Returns the bytes that the values take, without the kept text. They count as the baseline of a run.
    pub fn bytes(&self) -> usize {
        self.grant.bytes()
    }

    /// Returns a name for the content: the SHA-256 of its text in hexadecimal. `None` without the feature `seal`.
    #[cfg(not(feature = "seal"))]
    pub(crate) fn digest(&self) -> Option<String> {
        self.digest.get().cloned()
    }

    /// Returns a name for the content: the SHA-256 of its text in hexadecimal.
    #[cfg(feature = "seal")]
    pub(crate) fn digest(&self) -> Option<String> {
        use sha2::{Digest, Sha256};
        let text = || {
            let mut hash = Sha256::new();
            match self.source.as_deref() {
                Some(Source::Data(name, Ok(text)) | Source::Typed(name, Ok(text))) => {
                    hash.update(name.as_bytes());
                    hash.update([0]);
                    hash.update(text.as_bytes());
                }
                Some(Source::DataObject(Ok(text))) => hash.update(text.as_bytes()),
                _ => {}
            }
            hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
        };
        Some(self.digest.get_or_init(text).clone())
    }

    /// Returns whether both are the same set, not only equal ones.
    pub(crate) fn is(&self, other: &DataSet) -> bool {
        Arc::ptr_eq(&self.grant, &other.grant)
    }
}

impl fmt::Debug for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataSet").field("bytes", &self.bytes()).finish()
    }
}

/// What a run gets besides its program. Texts are borrowed, not copied.
///
/// ```
/// use lisp_runtime::Input;
/// let input = Input::new()
///     .json("orders", r#"[{"total": 12.5}]"#)
///     .data("threshold", &10)
///     .strict_data(true);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Input<'a> {
    pub(crate) sources: Vec<Source<'a>>,
    pub(crate) sets: Vec<DataSet>,
    pub(crate) setup: Vec<SetUp<'a>>,
    pub(crate) strict_data: bool,
    pub(crate) keys: Option<Keys>,
    pub(crate) signature: Option<Cow<'a, str>>,
    pub(crate) limits: LimitsRequest,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) now_ms: Option<i64>,
    pub(crate) clock: Vec<Reading>,
    pub(crate) tools: Option<Arc<Tools>>,
    pub(crate) makes: Makes,
    pub(crate) on_print: Option<PrintHook>,
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) run_id: Option<Arc<str>>,
    pub(crate) traceparent: Option<Arc<str>>,
    /// The journal, if the run is recorded.
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) budget: Option<Budget>,
    /// Decides on calls of async tools that need approval.
    #[cfg(feature = "async")]
    pub(crate) approver: Option<crate::tools::approval::Approver<crate::ToolCall>>,
}

impl<'a> Input<'a> {
    /// Creates an empty input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the tenant that the run is for. The engine's [policy](crate::ToolPolicy) sees it.
    #[must_use]
    pub fn tenant(mut self, name: &str) -> Self {
        self.tenant = Some(name.into());
        self
    }

    /// Makes the run pay from a budget that it shares with other runs. A session does not support one: every turn
    /// fails.
    #[must_use]
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.budget = Some(budget.clone());
        self
    }

    /// Binds `data/name` to a JSON text. The text is parsed when the run is set up; if it is not valid, the run fails.
    #[must_use]
    pub fn json(mut self, name: impl Into<Cow<'a, str>>, json: impl Into<Cow<'a, str>>) -> Self {
        self.sources.push(Source::Data(name.into(), Ok(json.into())));
        self
    }

    /// Binds `data/key` for every key of a JSON object.
    #[must_use]
    pub fn json_object(mut self, json: impl Into<Cow<'a, str>>) -> Self {
        self.sources.push(Source::DataObject(Ok(json.into())));
        self
    }

    /// Binds `data/name` to any value that serde can serialize.
    #[must_use]
    pub fn data(mut self, name: impl Into<Cow<'a, str>>, value: &(impl Serialize + ?Sized)) -> Self {
        let text = serde_json::to_string(value).map(Cow::Owned).map_err(|error| error.to_string());
        self.sources.push(Source::Data(name.into(), text));
        self
    }

    /// Binds `data/name` to a value with types that JSON does not have, such as dates and sets.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// use lisp_runtime::value::{Part, TypedWriter};
    /// let mut due = TypedWriter::new();
    /// due.write(&Part::Date(19_724))?;
    /// let outcome = Engine::default().eval("(str (.plusDays data/due 1))", Input::new().typed("due", due.finish()?));
    /// assert_eq!(outcome.value::<String>()?, "2024-01-03");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn typed(mut self, name: impl Into<Cow<'a, str>>, value: TypedValue) -> Self {
        self.sources.push(Source::Typed(name.into(), Ok(Cow::Owned(value.into_text()))));
        self
    }

    /// Returns the result also as a [`TypedValue`] ([`Outcome::typed`](crate::Outcome::typed)).
    #[must_use]
    pub fn typed_result(mut self) -> Self {
        self.makes.typed = true;
        self
    }

    /// Binds data that was imported before.
    #[must_use]
    pub fn data_set(mut self, set: &DataSet) -> Self {
        self.sets.push(set.clone());
        self
    }

    /// Sets definitions of an earlier run: the JSON object from [`crate::Outcome::memory`].
    #[must_use]
    pub fn memory(mut self, json: impl Into<Cow<'a, str>>) -> Self {
        self.sources.push(Source::Memory(Ok(json.into())));
        self
    }

    /// Returns whether the input has set-up programs.
    pub fn has_setup(&self) -> bool {
        !self.setup.is_empty()
    }

    /// Returns this input without what the text of a saved session contains.
    pub(crate) fn for_saved(mut self) -> Self {
        self.sources.retain(|source| !matches!(source, Source::Memory(_) | Source::History(_)));
        self.setup.clear();
        self
    }

    /// Returns the name of an option that the record of a run has itself, if one is set.
    pub(crate) fn of_record(&self) -> Option<&'static str> {
        let all = [
            (!self.sources.is_empty(), "data, memory or history"),
            (!self.setup.is_empty(), "set-up programs"),
            (self.strict_data, "strict_data"),
            (self.keys.is_some(), "json_keys"),
            (self.signature.is_some(), "a signature"),
            (self.now_ms.is_some() || !self.clock.is_empty(), "the time"),
            (self.tenant.is_some(), "the tenant"),
            (self.run_id.is_some(), "the name of the run"),
            (self.journal.is_some(), "a recording"),
        ];
        all.into_iter().find_map(|(is_given, what)| is_given.then_some(what))
    }

    /// Returns the memory as it was given. If it was set more than once, the last one counts.
    pub(crate) fn memory_text(&self) -> Option<&str> {
        self.sources.iter().rev().find_map(|source| match source {
            Source::Memory(Ok(text)) => Some(&**text),
            _ => None,
        })
    }

    /// Returns the names that the memory defines; none if it is not a JSON object.
    pub fn memory_names(&self) -> Vec<String> {
        let all: Option<BTreeMap<String, IgnoredAny>> =
            self.memory_text().and_then(|text| serde_json::from_str(text).ok());
        all.unwrap_or_default().into_keys().collect()
    }

    /// Skips [`Outcome::memory`](crate::Outcome::memory) at the end of the run. A session returns its memory only from
    /// [`Session::memory`](crate::Session::memory), with or without this.
    #[must_use]
    pub fn without_memory(mut self) -> Self {
        self.makes.memory = false;
        self
    }

    /// Sets how the program of this run is checked, if it is less than the engine's setting
    /// ([`EngineBuilder::check`](crate::EngineBuilder::check)).
    ///
    /// ```
    /// use lisp_runtime::{Check, Engine, Input};
    /// let engine = Engine::builder().check(Check::Warn).build()?;
    /// let input = Input::new().json("order", r#"{"total": 9}"#);
    /// assert_eq!(engine.eval("(:totl data/order)", input.clone()).warnings().len(), 1);
    /// assert_eq!(engine.eval("(:totl data/order)", input.check(Check::Off)).warnings().len(), 0);
    /// # Ok::<(), lisp_runtime::BuildError>(())
    /// ```
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.makes.check = check;
        self
    }

    /// Ends the run after the check of its program, whatever the engine's setting is.
    ///
    /// The program is compiled and checked, and nothing of it runs. The value is nil, and findings are
    /// [warnings](crate::Outcome::warnings) of the outcome. Set-up programs run, because the program may use their
    /// definitions. Their calls of tools are not made and fail with `tool_denied`. Observers see no run, and nothing is
    /// recorded. [`Engine::check`](crate::Engine::check) is shorter where no isolation is needed.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool};
    /// let engine = Engine::builder().grant(Tool::external("pay").signature("(amount :int) -> :bool")).build()?;
    /// let outcome = engine.eval("(tool/pay {:amuont 5})", Input::new().check_only());
    /// assert_eq!(outcome.warnings()[0].repair.as_deref(), Some("write :amount"));
    /// assert_eq!(outcome.usage.tool_calls, 0);
    /// # Ok::<(), lisp_runtime::BuildError>(())
    /// ```
    #[must_use]
    pub fn check_only(mut self) -> Self {
        self.makes.check_only = true;
        self
    }

    /// Measures [`Usage::heap_live_bytes`](crate::outcome::Usage::heap_live_bytes) at the end of the run.
    ///
    /// This takes a compaction: about one millisecond per live megabyte. More than four megabytes are not measured.
    #[must_use]
    pub fn measure_live(mut self) -> Self {
        self.makes.live = true;
        self
    }

    /// Creates [`Outcome::profile`](crate::Outcome::profile).
    ///
    /// The result and the fuel do not change. A short run takes several times longer. Allocations of an instruction
    /// that is restarted count again. A built-in is not interrupted: a deadline or cancellation may wait until it
    /// returns.
    #[must_use]
    pub fn profile(mut self) -> Self {
        self.makes.profile = true;
        self
    }

    /// Sets earlier results for `*1 *2 *3`: a JSON array, oldest first.
    #[must_use]
    pub fn history(mut self, json: impl Into<Cow<'a, str>>) -> Self {
        self.sources.push(Source::History(Ok(json.into())));
        self
    }

    /// Adds a program to run first, under the limit `setup_heap_bytes`. Its definitions stay; its prints are dropped, unless it
    /// fails: then they are those of the outcome.
    #[must_use]
    pub fn setup(mut self, program: &Program) -> Self {
        self.setup.push(SetUp::Compiled(program.clone()));
        self
    }

    /// Adds a program to run first, like [`Input::setup`], as source. It is compiled when the run is set up, and with
    /// process isolation in the run's own process. A compile error becomes the error of the outcome.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// let engine = Engine::default();
    /// let outcome = engine.eval("(twice 21)", Input::new().setup_source("(defn twice [x] (* 2 x))"));
    /// assert_eq!(outcome.value::<i64>()?, 42);
    /// let outcome = engine.eval("1", Input::new().setup_source("(defn twice"));
    /// assert_eq!(outcome.problem().and_then(|problem| problem.setup), Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn setup_source(mut self, source: impl Into<Cow<'a, str>>) -> Self {
        self.setup.push(SetUp::Source(source.into()));
        self
    }

    /// Returns the set-up programs. Those that are sources are compiled, as part of a run that started at `started`.
    pub(crate) fn setup_programs(&self, started: Instant, limits: &Limits) -> Result<Vec<Program>, Box<Problem>> {
        let compiled = self.setup.iter().enumerate().map(|(index, set_up)| match set_up {
            SetUp::Compiled(program) => Ok(program.clone()),
            SetUp::Source(source) => {
                let compiled = Program::compile_since(started, source, limits, self.cancel.as_ref(), false);
                compiled.map_err(|mut problem| {
                    problem.setup = Some(index);
                    problem
                })
            }
        });
        compiled.collect()
    }

    /// Compiles the set-up programs that are sources, so that their errors come before those of the program.
    pub(crate) fn compile_setup(&mut self, started: Instant, limits: &Limits) -> Result<(), Box<Problem>> {
        if self.setup.iter().any(|set_up| matches!(set_up, SetUp::Source(_))) {
            self.setup = self.setup_programs(started, limits)?.into_iter().map(SetUp::Compiled).collect();
        }
        Ok(())
    }

    /// Sets whether a missing `data/name` is an error instead of nil.
    #[must_use]
    pub fn strict_data(mut self, strict: bool) -> Self {
        self.strict_data = strict;
        self
    }

    /// Overrides how JSON object keys are represented ([`EngineBuilder::json_keys`](crate::EngineBuilder::json_keys)).
    /// Data sets stay as they were imported.
    #[must_use]
    pub fn json_keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets the signature of the result, such as `{total :float, rows [:map]}`. The result is checked against it.
    #[must_use]
    pub fn signature(mut self, text: impl Into<Cow<'a, str>>) -> Self {
        self.signature = Some(text.into());
        self
    }

    /// Asks for limits for this run, up to the engine's ceiling.
    #[must_use]
    pub fn limits(mut self, asked: LimitsRequest) -> Self {
        self.limits = asked;
        self
    }

    /// Asks for these limits, and keeps earlier requests for all others.
    #[must_use]
    pub fn limits_over(mut self, asked: &LimitsRequest) -> Self {
        self.limits = asked.or(&self.limits);
        self
    }

    /// Sets the handle that can cancel the run.
    #[must_use]
    pub fn cancel_with(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Returns the handle that cancels runs with this input: the one set by [`Input::cancel_with`], or a new one.
    pub fn cancel_handle(&mut self) -> &Cancel {
        self.cancel.get_or_insert_default()
    }

    /// Fixes the time that the program sees, in milliseconds since 1970-01-01T00:00:00Z. By default, the engine's clock
    /// is read whenever the program asks.
    #[must_use]
    pub fn now_ms(mut self, now: i64) -> Self {
        self.now_ms = Some(now);
        self
    }

    /// Replays the clock readings of an earlier run ([`Outcome::clock`](crate::Outcome::clock)), in order. After the
    /// last one, the engine's clock is used.
    #[must_use]
    pub fn clock(mut self, readings: &[Reading]) -> Self {
        self.clock = readings.to_vec();
        self
    }

    /// Sets the id of the run: 1 to 128 visible ASCII characters. Otherwise the run fails.
    ///
    /// The id appears in the outcome, the answer, the record and the keys of tool calls, and is passed to observers.
    /// The default is a new unique id; the host must keep its own ids unique. If it is set for a session, all its
    /// turns have it; otherwise each turn has a new one.
    /// A run that is resumed from a record keeps the id in the record.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// let outcome = Engine::default().eval("1", Input::new().run_id("order-7"));
    /// assert_eq!(&*outcome.run_id, "order-7");
    /// ```
    #[must_use]
    pub fn run_id(mut self, name: impl Into<Arc<str>>) -> Self {
        self.run_id = Some(name.into());
        self
    }

    /// Makes the run part of a trace.
    ///
    /// `header` is the `traceparent` of [W3C Trace Context](https://www.w3.org/TR/trace-context/) that the request came
    /// with. Tools see it as [`ToolCall::traceparent`](crate::ToolCall::traceparent), observers at the start of the
    /// run. As the standard requires, an invalid header is ignored.
    #[must_use]
    pub fn traceparent(mut self, header: &str) -> Self {
        self.traceparent = is_traceparent(header).then(|| header.into());
        self
    }

    /// Checks the id that the host gives the run.
    pub(crate) fn check_name(&self) -> Result<(), Box<Problem>> {
        let checked = self.run_id.as_deref().map_or(Ok(()), run_id::check);
        checked.map_err(|error| Box::new(Problem::new(error, Phase::Setup)))
    }

    /// Sets the approver of async tool calls for which the policy returns
    /// [`PolicyDecision::Ask`](crate::tools::PolicyDecision::Ask).
    ///
    /// The rest of the run continues meanwhile: neither [`Engine::run_async`](crate::Engine::run_async) nor an async
    /// run with process isolation suspends. [`ToolCall::question`](crate::ToolCall::question) has the question. Calls
    /// of other tools still end the run with `approval_required`. The time until the decision counts against the run.
    /// If the closure or its future panics, the call is not made.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, ToolCall};
    /// use lisp_runtime::tools::{Approval, AskedCall, PolicyDecision};
    /// let engine = Engine::builder()
    ///     .grant(Tool::new_async("pay", |call: ToolCall| async move { call.get::<f64>("amount") }))
    ///     .policy(|_: &AskedCall<'_>| PolicyDecision::Ask("pay?".to_owned()))
    ///     .build()?;
    /// let input = Input::new().approvals(|call: ToolCall| async move {
    ///     println!("{}: {} {}", call.question().unwrap_or_default(), call.name(), call.json());
    ///     Approval::ApproveWith(r#"{"amount": 5}"#.to_owned())
    /// });
    /// let run = engine.run_async(&engine.compile("(tool/pay {:amount 900})")?, input);
    /// # fn block_on<F: Future>(run: F) -> F::Output {
    /// #     let mut run = std::pin::pin!(run);
    /// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #     loop {
    /// #         if let std::task::Poll::Ready(done) = run.as_mut().poll(&mut context) { break done }
    /// #     }
    /// # }
    /// assert_eq!(block_on(run).value::<f64>()?, 5.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "async")]
    #[must_use]
    pub fn approvals<F>(mut self, ask: impl Fn(crate::ToolCall) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = crate::tools::Approval> + Send + 'static,
    {
        self.approver = Some(crate::tools::approval::Approver::by(ask));
        self
    }

    /// Returns this input with owned copies of all borrowed texts.
    pub fn into_owned(self) -> Input<'static> {
        Input {
            sources: self.sources.into_iter().map(Source::into_owned).collect(),
            sets: self.sets,
            setup: self.setup.into_iter().map(SetUp::into_owned).collect(),
            strict_data: self.strict_data,
            keys: self.keys,
            signature: self.signature.map(|text| Cow::Owned(text.into_owned())),
            limits: self.limits,
            cancel: self.cancel,
            now_ms: self.now_ms,
            clock: self.clock,
            tools: self.tools,
            makes: self.makes,
            on_print: self.on_print,
            heartbeat: self.heartbeat,
            run_id: self.run_id,
            traceparent: self.traceparent,
            journal: self.journal,
            tenant: self.tenant,
            budget: self.budget,
            #[cfg(feature = "async")]
            approver: self.approver,
        }
    }

    /// Adds tools for this run. A tool replaces the engine's tool of the same name.
    #[must_use]
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = Some(Arc::new(tools));
        self
    }

    /// Calls a closure with each printed line as it is printed, with any isolation.
    ///
    /// Lines arrive in program order, one at a time, possibly from different threads. Set-up programs print nothing. A
    /// parallel worker's lines arrive after it and the workers before it have ended, so no line arrives that an earlier
    /// failure discards. The run waits for the closure. Lines beyond the limit `prints_bytes` are dropped.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// use std::sync::mpsc::channel;
    /// let (lines, shown) = channel();
    /// let input = Input::new().on_print(move |line| lines.send(line.to_owned()).unwrap_or_default());
    /// let outcome = Engine::default().eval("(println :a) (println :b) 1", input);
    /// assert_eq!(shown.iter().collect::<Vec<_>>(), outcome.prints);
    /// ```
    #[must_use]
    pub fn on_print(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_print = Some(PrintHook::new(hook, true));
        self
    }

    /// Calls a closure about every 50 ms while the program computes, its workers run or it waits for a detached tool, on the
    /// thread that waits for the run, such as that of [`Engine::run`](crate::Engine::run). Use it to look at signals and to cancel the run.
    /// Runs that are futures do not call it. With process isolation it is called during the whole run.
    ///
    /// ```
    /// use lisp_runtime::{Cancel, Engine, Input, Verdict};
    /// let cancel = Cancel::new();
    /// let at_once = cancel.clone();
    /// let input = Input::new().cancel_with(&cancel).heartbeat(move || at_once.cancel());
    /// let outcome = Engine::default().eval("(reduce + (iterate inc 0))", input);
    /// assert_eq!(outcome.verdict(), Verdict::Cancelled);
    /// ```
    #[must_use]
    pub fn heartbeat(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.heartbeat = Some(Heartbeat::new(hook));
        self
    }

    /// Calls a closure with each printed line, like [`Input::on_print`], but does not keep the lines: the outcome has
    /// no prints.
    ///
    /// With the limits `prints_bytes` and `print_chars` off, a program can print without end and uses no memory for it.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Limits};
    /// use std::sync::mpsc::channel;
    /// let (lines, shown) = channel();
    /// let input = Input::new().print_to(move |line| lines.send(line.len()).unwrap_or_default());
    /// let engine = Engine::builder().limits(Limits::default().with_print_chars(0).with_prints_bytes(0)).build()?;
    /// let outcome = engine.eval("(dotimes [_ 3] (println (apply str (repeat 40000 \"long\"))))", input);
    /// assert_eq!((shown.iter().sum::<usize>(), outcome.prints.len()), (480_000, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn print_to(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_print = Some(PrintHook::new(hook, false));
        self
    }
}
