//! What a host gives a run.

use super::program::Program;
use crate::drive::setting::Makes;
use crate::record::journal::Journal;
use crate::terms::budget::Budget;
use crate::terms::cancel::Cancel;
use crate::terms::clock::Reading;
use crate::terms::keys::Keys;
use crate::terms::limits::LimitsRequest;
use crate::terms::outcome::{Phase, Problem};
use crate::terms::print_hook::PrintHook;
use crate::terms::run_id::{self, is_traceparent};
use crate::tools::tool::Tools;
use lisp_core::vm::Grant;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// JSON text, or why there is none.
pub(crate) type Text<'a> = Result<Cow<'a, str>, String>;

/// One thing to bring in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Source<'a> {
    /// `data/name`
    Data(Cow<'a, str>, Text<'a>),
    /// `data/key` for every key of an object
    DataObject(Text<'a>),
    /// Definitions, one for every key of an object
    Memory(Text<'a>),
    /// Earlier results, oldest first, an array
    History(Text<'a>),
}

impl Source<'_> {
    pub(crate) fn into_owned(self) -> Source<'static> {
        let owned = |text: Text<'_>| text.map(|text| Cow::Owned(text.into_owned()));
        match self {
            Source::Data(name, text) => Source::Data(Cow::Owned(name.into_owned()), owned(text)),
            Source::DataObject(text) => Source::DataObject(owned(text)),
            Source::Memory(text) => Source::Memory(owned(text)),
            Source::History(text) => Source::History(owned(text)),
        }
    }
}

/// Data imported once and shared by many runs without copying. Its JSON text is kept besides, so that a run in another
/// process can have it too.
#[derive(Clone)]
pub struct DataSet {
    pub(crate) grant: Arc<Grant>,
    /// What it was made of; not kept by a process that had it from another.
    pub(crate) source: Option<Arc<Source<'static>>>,
    /// What the keys of its objects became.
    pub(crate) keys: Keys,
    /// The digest of its text, once it was asked for.
    pub(crate) digest: Arc<OnceLock<String>>,
}

impl DataSet {
    /// Bytes that its values take: the baseline of a run. The text, which is kept besides, is not among them.
    pub fn bytes(&self) -> usize {
        self.grant.bytes()
    }

    /// Returns a name for its content: SHA-256 of its text, hexadecimal. `None` without the feature `seal`.
    #[cfg(not(feature = "seal"))]
    pub(crate) fn digest(&self) -> Option<String> {
        self.digest.get().cloned()
    }

    /// Returns a name for its content: SHA-256 of its text, hexadecimal.
    #[cfg(feature = "seal")]
    pub(crate) fn digest(&self) -> Option<String> {
        use sha2::{Digest, Sha256};
        let text = || {
            let mut hash = Sha256::new();
            match self.source.as_deref() {
                Some(Source::Data(name, Ok(text))) => {
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

    /// Is it this very set?
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
    pub(crate) setup: Vec<Program>,
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
    pub(crate) run_id: Option<Arc<str>>,
    pub(crate) traceparent: Option<Arc<str>>,
    /// Has the run recorded.
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) budget: Option<Budget>,
    /// Who is asked about calls of async tools.
    #[cfg(feature = "async")]
    pub(crate) approver: Option<crate::tools::approval::Approver<crate::ToolCall>>,
}

impl<'a> Input<'a> {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Who the run is for, as the engine's [policy](crate::ToolPolicy) is told.
    #[must_use]
    pub fn tenant(mut self, name: &str) -> Self {
        self.tenant = Some(name.into());
        self
    }

    /// Has the run pay from a budget that it shares with others. A session takes none: with one every turn is an error.
    #[must_use]
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.budget = Some(budget.clone());
        self
    }

    /// Binds `data/name` to a JSON text. The text is read when the run is set up; an error in it is the run's.
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

    /// Binds `data/name` to anything that serde can write.
    #[must_use]
    pub fn data(mut self, name: impl Into<Cow<'a, str>>, value: &impl Serialize) -> Self {
        let text = serde_json::to_string(value).map(Cow::Owned).map_err(|error| error.to_string());
        self.sources.push(Source::Data(name.into(), text));
        self
    }

    /// Binds what was imported before.
    #[must_use]
    pub fn data_set(mut self, set: &DataSet) -> Self {
        self.sets.push(set.clone());
        self
    }

    /// Definitions of an earlier run, a JSON object: what [`crate::Outcome::memory`] gave.
    #[must_use]
    pub fn memory(mut self, json: impl Into<Cow<'a, str>>) -> Self {
        self.sources.push(Source::Memory(Ok(json.into())));
        self
    }

    /// Has it set-up programs?
    pub fn has_setup(&self) -> bool {
        !self.setup.is_empty()
    }

    /// This input without what a saved session has in its text.
    pub(crate) fn for_saved(mut self) -> Self {
        self.sources.retain(|source| !matches!(source, Source::Memory(_) | Source::History(_)));
        self.setup.clear();
        self
    }

    /// Something in it that the record of a run has itself.
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

    /// The memory it brings, as it was given; the last of several.
    pub(crate) fn memory_text(&self) -> Option<&str> {
        self.sources.iter().rev().find_map(|source| match source {
            Source::Memory(Ok(text)) => Some(&**text),
            _ => None,
        })
    }

    /// The names that the memory defines; none of a text that is no JSON object.
    pub fn memory_names(&self) -> Vec<String> {
        let all: Option<BTreeMap<String, IgnoredAny>> =
            self.memory_text().and_then(|text| serde_json::from_str(text).ok());
        all.unwrap_or_default().into_keys().collect()
    }

    /// Does not make [`Outcome::memory`](crate::Outcome::memory) at the end of the run. In a session it is made when
    /// [`Session::memory`](crate::Session::memory) asks for it, with or without this.
    #[must_use]
    pub fn without_memory(mut self) -> Self {
        self.makes.memory = false;
        self
    }

    /// Measures [`Usage::heap_live_bytes`](crate::Usage::heap_live_bytes) at the end of the run, by a compaction: about a
    /// millisecond for each megabyte that is live. Of more than four megabytes it is not measured.
    #[must_use]
    pub fn measure_live(mut self) -> Self {
        self.makes.live = true;
        self
    }

    /// Makes [`Outcome::profile`](crate::Outcome::profile). The answer and the fuel are the same; the run takes some times longer when it is
    /// short, and what instructions allocate that had to begin again is counted again. A built-in function at work is not interrupted: a
    /// deadline or a cancellation waits until it is done, if nothing harder comes first.
    #[must_use]
    pub fn profile(mut self) -> Self {
        self.makes.profile = true;
        self
    }

    /// Earlier results for `*1 *2 *3`, a JSON array, oldest first.
    #[must_use]
    pub fn history(mut self, json: impl Into<Cow<'a, str>>) -> Self {
        self.sources.push(Source::History(Ok(json.into())));
        self
    }

    /// A program to run first, under the set-up ceiling. Its definitions stay, its prints do not.
    #[must_use]
    pub fn setup(mut self, program: &Program) -> Self {
        self.setup.push(program.clone());
        self
    }

    /// Makes a missing `data/name` an error instead of nil.
    #[must_use]
    pub fn strict_data(mut self, strict: bool) -> Self {
        self.strict_data = strict;
        self
    }

    /// Makes this of the keys of JSON objects, in place of what the engine makes of them
    /// ([`EngineBuilder::json_keys`](crate::EngineBuilder::json_keys)). Data sets stay as they were imported.
    #[must_use]
    pub fn json_keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Checks the result against a signature such as `{total :float, rows [:map]}`.
    #[must_use]
    pub fn signature(mut self, text: impl Into<Cow<'a, str>>) -> Self {
        self.signature = Some(text.into());
        self
    }

    /// Asks for limits of its own; the engine's ceiling holds all the same.
    #[must_use]
    pub fn limits(mut self, asked: LimitsRequest) -> Self {
        self.limits = asked;
        self
    }

    /// Asks for these limits, and for those asked for before where these say nothing.
    #[must_use]
    pub fn limits_over(mut self, asked: &LimitsRequest) -> Self {
        self.limits = asked.or(&self.limits);
        self
    }

    /// Lets a handle end the run.
    #[must_use]
    pub fn cancel_with(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// The handle that ends the runs with this input: that of [`Input::cancel_with`], or a new one.
    pub fn cancel_handle(&mut self) -> &Cancel {
        self.cancel.get_or_insert_default()
    }

    /// The time the program sees all through the run, in milliseconds since 1970-01-01T00:00:00Z; without it, the
    /// engine's clock tells it whenever the program asks.
    #[must_use]
    pub fn now_ms(mut self, now: i64) -> Self {
        self.now_ms = Some(now);
        self
    }

    /// Tells the program the time as an earlier run was told it ([`Outcome::clock`](crate::Outcome::clock)), in the
    /// order in which it asks; when that is used up, the engine's clock goes on.
    #[must_use]
    pub fn clock(mut self, readings: &[Reading]) -> Self {
        self.clock = readings.to_vec();
        self
    }

    /// Names the run: in its outcome, its answer, its record, the keys of its calls and to observers. 1 to 128 visible characters of
    /// ASCII; another name is an error of the run. Without it a name is made that no other run has. That two runs have not one
    /// name is up to the host. All turns of a session have this name; a run that goes on from a record keeps that of the record.
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

    /// Makes the run part of a trace: the header `traceparent` of [W3C Trace Context](https://www.w3.org/TR/trace-context/) that
    /// the request came with. Tools see it by [`ToolCall::traceparent`](crate::ToolCall::traceparent), observers at the start of
    /// the run. As that standard has it, a text that is none is left out, and the run is part of no trace.
    #[must_use]
    pub fn traceparent(mut self, header: &str) -> Self {
        self.traceparent = is_traceparent(header).then(|| header.into());
        self
    }

    /// Is the name that the host gives the run one?
    pub(crate) fn check_name(&self) -> Result<(), Box<Problem>> {
        let checked = self.run_id.as_deref().map_or(Ok(()), run_id::check);
        checked.map_err(|error| Box::new(Problem::new(error, Phase::Setup)))
    }

    /// Asks somebody about each call of an async tool for which the policy returns
    /// [`PolicyDecision::Ask`](crate::PolicyDecision::Ask), while the rest of the run goes on: a run of
    /// [`Engine::run_async`](crate::Engine::run_async), or of the process door's futures, stops nowhere. The call has its
    /// [question](crate::ToolCall::question). Calls of other tools end the run with `approval_required`, as without this. Time that
    /// somebody takes is the run's. Where the closure or its future panics the call is not made.
    ///
    /// ```
    /// use lisp_runtime::{Approval, AskedCall, Engine, Input, PolicyDecision, Tool, ToolCall};
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
        F: Future<Output = crate::Approval> + Send + 'static,
    {
        self.approver = Some(crate::tools::approval::Approver::by(ask));
        self
    }

    /// This input with copies of all texts that it borrows.
    pub fn into_owned(self) -> Input<'static> {
        Input {
            sources: self.sources.into_iter().map(Source::into_owned).collect(),
            sets: self.sets,
            setup: self.setup,
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
            run_id: self.run_id,
            traceparent: self.traceparent,
            journal: self.journal,
            tenant: self.tenant,
            budget: self.budget,
            #[cfg(feature = "async")]
            approver: self.approver,
        }
    }

    /// Tools for this run besides the engine's. One of the same name takes the place of the engine's.
    #[must_use]
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = Some(Arc::new(tools));
        self
    }

    /// Shows each printed line to a closure as it is printed, at both doors and in the program's order; set-up programs print nothing. Lines of
    /// a worker of a parallel call are shown when it has ended and those before it have, so that no line is shown that a failure before it
    /// gives up. They come from several threads, one after the other. The run waits for the closure, and
    /// a line beyond the limit `prints_bytes` is not shown.
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

    /// Shows each printed line to a closure, as [`Input::on_print`] does, and keeps none in this process: the outcome has no prints. A
    /// program may print without end, where the limits `prints_bytes` and `print_chars` are off, and takes no memory for it.
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
