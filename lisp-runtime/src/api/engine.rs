//! The engine: built once, runs any number of programs.

use super::input::{DataSet, Input, Source};
use super::program::Program;
use super::program_cache::{PROGRAMS, ProgramCache, ProgramCacheUsage};
use super::run::Run;
use super::to_end::to_end;
use super::waiting::Progress;
use crate::drive::setting::{Makes, Setting};
use crate::parallel::executor::{Executor, LocalExecutor, PoolExecutor};
use crate::parallel::pool::Pool;
use crate::terms::budget::Taken;
use crate::terms::cancel::Cancel;
use crate::terms::check::Check;
use crate::terms::clock::Clock;
use crate::terms::keys::Keys;
use crate::terms::limits::{Limits, bytes};
use crate::terms::observer::{Observed, Observer};
use crate::terms::outcome::{Outcome, Phase, Problem};
use crate::terms::run_view::RunView;
use crate::terms::spans::StepSpan;
use crate::terms::typed::TypedValue;
use crate::terms::warning::Warning;
use crate::tools::gate::GateSetting;
use crate::tools::policy::{Policy, ToolPolicy};
use crate::tools::signature::Signature;
use crate::tools::threads::ToolThreads;
use crate::tools::tool::{Tool, ToolCall, ToolError};
use crate::tools::tool_set::{BuildError, Tools};
use lisp_core::{Error, Reason};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Compiles and runs programs, with the limits and the tools that it holds.
///
/// An engine is built once, is cheap to clone, and can be shared by any number of threads.
///
/// ```
/// use lisp_runtime::{Engine, Input, Limits};
/// let engine = Engine::builder().limits(Limits::default().with_timeout_ms(100)).build()?;
/// let outcome = engine.eval("(sum-by :total data/orders)", Input::new().json("orders", r#"[{"total": 2}]"#));
/// assert_eq!(outcome.value::<i64>()?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    limits: Limits,
    ceiling: Limits,
    tools: Arc<Tools>,
    pool: Threads,
    tool_threads: ToolThreads,
    clock: Clock,
    far_pages: bool,
    keys: Keys,
    observed: Observed,
    policy: Policy,
    prompt_tools_bytes: usize,
    programs: ProgramCache,
    check: Check,
}

/// The default for the bytes of tool lines in the prompt.
const PROMPT_TOOLS_BYTES: usize = 16_000;

/// Where parallel workers run.
#[derive(Clone, Debug, Default)]
enum Threads {
    /// On the pool that engines share.
    #[default]
    Shared,
    Own(Pool),
    /// On the thread of the run.
    None,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("limits", &self.0.limits).field("tools", &self.0.tools).finish()
    }
}

impl Default for Engine {
    /// Creates an engine without tools, under the default limits.
    fn default() -> Self {
        Engine(Arc::new(Inner {
            limits: Limits::default(),
            ceiling: Limits::default(),
            tools: Arc::new(Tools::new()),
            pool: Threads::default(),
            tool_threads: ToolThreads::shared(),
            clock: Clock::default(),
            far_pages: false,
            keys: Keys::default(),
            observed: Observed::default(),
            policy: Policy::default(),
            prompt_tools_bytes: PROMPT_TOOLS_BYTES,
            programs: ProgramCache::new(PROGRAMS),
            check: Check::default(),
        }))
    }
}

impl Engine {
    /// Returns a builder.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn observed(&self) -> &Observed {
        &self.0.observed
    }

    /// Compiles a program.
    ///
    /// Returns the cached program when this source was compiled before and is still kept
    /// ([`EngineBuilder::kept_programs`]).
    ///
    /// # Errors
    /// The first syntax or analysis error, with its position.
    pub fn compile(&self, source: &str) -> Result<Program, Box<Problem>> {
        let span = StepSpan::compile(None, source.len());
        let limits = &self.0.limits;
        let compile = || Program::compile_whole(source, limits, self.checks());
        let compiled = self.0.programs.get(source, limits, compile);
        span.end(reason_of(&compiled));
        compiled
    }

    /// Returns the size of the program cache and its hits and misses.
    pub fn program_cache(&self) -> ProgramCacheUsage {
        self.0.programs.usage()
    }

    /// Compiles the program of a run.
    pub(crate) fn compile_seen(
        &self,
        view: &RunView,
        started: Instant,
        source: &str,
        limits: &Limits,
        cancel: Option<&Cancel>,
    ) -> Result<Program, Box<Problem>> {
        let span = StepSpan::compile(Some(view.span()), source.len());
        let compile = || Program::compile_since(started, source, limits, cancel, self.checks());
        let compiled = self.0.programs.get(source, limits, compile);
        span.end(reason_of(&compiled));
        compiled
    }

    /// Creates the view of a run that starts with `input`, and notifies the observer.
    pub(crate) fn view(&self, input: &Input<'_>, started: Instant) -> RunView {
        if input.makes.check_only {
            return RunView::quiet(&self.0.observed);
        }
        // A resumed run keeps its name.
        let had = input.journal.as_ref().and_then(|journal| journal.run_to_go_on());
        let named = had.or_else(|| input.run_id.clone().filter(|_| input.check_name().is_ok()));
        RunView::begin_named(&self.0.observed, named, input.traceparent.clone(), started)
    }

    /// Imports a JSON text as `data/name`, to be shared by many runs without copying.
    ///
    /// The text is kept as long as the values, for runs in other processes; a `String` is not copied. JSON object keys
    /// are represented as the engine is set ([`EngineBuilder::json_keys`]), in every run.
    ///
    /// # Errors
    /// The text is not JSON, or its values take more than `setup_heap_bytes`.
    pub fn import<'a>(&self, name: &'a str, json: impl Into<Cow<'a, str>>) -> Result<DataSet, Box<Problem>> {
        self.import_source(Source::Data(name.into(), Ok(json.into())))
    }

    /// Imports each value of a JSON object as `data/key`. Otherwise like [`Engine::import`].
    ///
    /// # Errors
    /// The text is not a JSON object, or its values take more than `setup_heap_bytes`.
    pub fn import_object<'a>(&self, json: impl Into<Cow<'a, str>>) -> Result<DataSet, Box<Problem>> {
        self.import_source(Source::DataObject(Ok(json.into())))
    }

    /// Imports a value with types that JSON does not have as `data/name`. Otherwise like [`Engine::import`].
    ///
    /// # Errors
    /// The values take more than `setup_heap_bytes`.
    pub fn import_typed(&self, name: &str, value: TypedValue) -> Result<DataSet, Box<Problem>> {
        self.import_source(Source::Typed(name.into(), Ok(Cow::Owned(value.into_text()))))
    }

    fn import_source(&self, source: Source<'_>) -> Result<DataSet, Box<Problem>> {
        let set = DataSet::import(&source, self.0.keys, bytes(self.0.limits.setup_heap_bytes))?;
        Ok(DataSet { source: Some(Arc::new(source.into_owned())), ..set })
    }

    /// Checks a program without running it: that every name and every tool is defined, and what a check against the
    /// data and the tools of `input` finds ([`EngineBuilder::check`]), whatever the engine's setting is. Returns the
    /// warnings, with those about the source.
    ///
    /// Names come from the language, and from the memory and the set-up programs of `input`; tools come from the engine
    /// and from `input`. If neither has any tools, tool names are not checked. Set-up programs run, and the tools that
    /// they call are not called: see [`Input::check_only`].
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// let engine = Engine::default();
    /// let program = engine.compile("(sum (map :totl data/orders))")?;
    /// let warnings = engine.check(&program, &Input::new().json("orders", r#"[{"total": 9}]"#))?;
    /// assert_eq!(warnings[0].repair.as_deref(), Some("write :total"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first undefined name, as `unbound_var` or `unknown_tool`, with its position and near matches; or an error in
    /// the input or in a set-up program.
    pub fn check(&self, program: &Program, input: &Input<'_>) -> Result<Vec<Warning>, Box<Problem>> {
        let input = input.clone().check_only();
        let mut setting = self.setting(&input, RunView::quiet(&Observed::default()))?;
        let no_tools = |tools: &Tools| tools.names().next().is_none();
        setting.any_tool = no_tools(&setting.tools) && setting.own_tools.as_deref().is_none_or(no_tools);
        let mut run = Run::set_up(Instant::now(), setting, program, &input, 0)?;
        let outcome = self.to_end(&mut run);
        outcome.answer.map(|_| outcome.warnings)
    }

    /// Runs a program to its end on this thread.
    pub fn run(&self, program: &Program, input: Input<'_>) -> Outcome {
        let started = Instant::now();
        self.run_seen(&self.view(&input, started), started, program, &input)
    }

    /// Compiles and runs a program. A compile error becomes the error of the outcome.
    pub fn eval(&self, source: &str, input: Input<'_>) -> Outcome {
        self.eval_since(Instant::now(), source, input)
    }

    pub(crate) fn eval_since(&self, started: Instant, source: &str, mut input: Input<'_>) -> Outcome {
        let limits = self.limits_for(&input);
        let view = self.view(&input, started);
        match self.compile_all(&view, started, source, &mut input) {
            Ok(program) => self.run_seen(&view, started, &program, &input),
            Err(problem) => self.ended(&view, started, problem, limits),
        }
    }

    /// Compiles the set-up programs and the program of a run.
    pub(crate) fn compile_all(
        &self,
        view: &RunView,
        started: Instant,
        source: &str,
        input: &mut Input<'_>,
    ) -> Result<Program, Box<Problem>> {
        let limits = self.limits_for(input);
        let set_up = input.compile_setup(started, &limits);
        let compiled = set_up.and_then(|()| self.compile_seen(view, started, source, &limits, input.cancel.as_ref()));
        compiled.map_err(|problem| self.uncompiled(input, problem))
    }

    /// Takes one run from the budget for a program that does not compile, as process isolation does, where the budget is
    /// asked first. Returns the problem of the run.
    fn uncompiled(&self, input: &Input<'_>, problem: Box<Problem>) -> Box<Problem> {
        match self.take_budget(input) {
            Ok(taken) => {
                taken.into_iter().for_each(Taken::give_back);
                problem
            }
            Err(empty) => empty,
        }
    }

    fn run_seen(&self, view: &RunView, started: Instant, program: &Program, input: &Input<'_>) -> Outcome {
        match self.set_up(view, started, program, input, false) {
            Ok(mut run) => self.to_end(&mut run),
            Err(problem) => self.ended(view, started, problem, self.limits_for(input)),
        }
    }

    /// Starts a run that the caller drives step by step.
    ///
    /// The run suspends at each tool call, and the caller replies when it can. This includes tools with a closure,
    /// which only [`Engine::run`] calls. No thread is blocked, and a run can wait until its deadline. Parallel workers
    /// take turns on the caller's thread. When all of them wait for tools, several calls are open; the caller may
    /// answer them in any order.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Progress, Tool};
    /// let engine = Engine::builder().grant(Tool::external("fetch")).build()?;
    /// let program = engine.compile("(inc (tool/fetch {:id 1}))")?;
    /// let mut progress = engine.start(&program, Input::new());
    /// let outcome = loop {
    ///     progress = match progress {
    ///         Progress::ToolCall(waiting) | Progress::Approval(waiting) => waiting.reply(&41),
    ///         Progress::Done(outcome) => break outcome,
    ///     };
    /// };
    /// assert_eq!(outcome.value::<i64>()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(&self, program: &Program, input: Input<'_>) -> Progress {
        let started = Instant::now();
        let view = self.view(&input, started);
        match self.set_up(&view, started, program, &input, true) {
            Ok(run) => Progress::of(Box::new(run)),
            Err(problem) => Progress::Done(Box::new(self.ended(&view, started, problem, self.limits_for(&input)))),
        }
    }

    /// Returns the optional parts of the outcome of a run.
    pub(crate) fn makes(&self, input: &Input<'_>) -> Makes {
        let check = match input.makes.check_only {
            true => Check::Warn,
            false => input.makes.check.min(self.0.check),
        };
        Makes { check, ..input.makes }
    }

    /// Returns whether programs are checked before they run.
    fn checks(&self) -> bool {
        self.0.check != Check::Off
    }

    /// Returns the default limits of a run.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Returns the limits of a run with this input.
    pub fn limits_for(&self, input: &Input<'_>) -> Limits {
        self.0.limits.with(&input.limits).min(&self.0.ceiling)
    }

    /// Returns how JSON object keys are represented in a run with this input.
    pub(crate) fn keys_for(&self, input: &Input<'_>) -> Keys {
        input.keys.unwrap_or(self.0.keys)
    }

    /// Returns a reference of the language for a model's system prompt.
    ///
    /// It includes the signatures of the engine's tools and how JSON object keys are represented. Without tools it has
    /// at most 2,000 bytes.
    pub fn prompt(&self) -> String {
        crate::text::card::card(&self.0.tools, &self.0.limits, self.0.keys, self.0.prompt_tools_bytes)
    }

    /// Returns the prompt for a tenant ([`Input::tenant`]).
    ///
    /// It is [`Engine::prompt`] with only those tools that the engine's policy [shows](crate::ToolPolicy::shows) to
    /// that tenant.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Tool, ToolPolicy};
    /// use lisp_runtime::tools::{AskedCall, PolicyDecision};
    /// struct ByTenant;
    /// impl ToolPolicy for ByTenant {
    ///     fn decide(&self, _: &AskedCall<'_>) -> PolicyDecision {
    ///         PolicyDecision::Allow
    ///     }
    ///     fn shows(&self, tool: &Tool, tenant: Option<&str>) -> bool {
    ///         tool.name() != "refund" || tenant == Some("acme")
    ///     }
    /// }
    /// let engine = Engine::builder().grant(Tool::external("refund")).grant(Tool::external("order")).policy(ByTenant).build()?;
    /// assert!(engine.prompt_for(Some("acme")).contains("tool/refund"));
    /// assert!(!engine.prompt_for(None).contains("tool/refund") && engine.prompt_for(None).contains("tool/order"));
    /// # Ok::<(), lisp_runtime::BuildError>(())
    /// ```
    pub fn prompt_for(&self, tenant: Option<&str>) -> String {
        let input = tenant.into_iter().fold(Input::new(), Input::tenant);
        self.prompt_for_run(&input)
    }

    /// Returns the prompt for a run with this input: for its tenant, with its own tools, limits and representation of
    /// JSON object keys.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, Tools};
    /// let mut own = Tools::new();
    /// own.add(Tool::external("ask").about("Asks the user.").signature("(text :string) -> :string"))?;
    /// let prompt = Engine::default().prompt_for_run(&Input::new().tools(own));
    /// assert!(prompt.contains("tool/ask (text :string) -> :string ; Asks the user."));
    /// # Ok::<(), lisp_runtime::BuildError>(())
    /// ```
    pub fn prompt_for_run(&self, input: &Input<'_>) -> String {
        let own = input.tools.as_deref().into_iter().flat_map(Tools::all);
        let mut seen = Tools::new();
        for tool in self.0.tools.all().chain(own).filter(|tool| self.0.policy.shows(tool, input.tenant.as_deref())) {
            seen.insert(tool.as_ref().clone());
        }
        let (limits, keys) = (self.limits_for(input), self.keys_for(input));
        crate::text::card::card(&seen, &limits, keys, self.0.prompt_tools_bytes)
    }

    /// Returns the engine's tools.
    pub fn tools(&self) -> &Tools {
        &self.0.tools
    }

    pub(crate) fn setting(&self, input: &Input<'_>, view: RunView) -> Result<Setting, Box<Problem>> {
        input.check_name()?;
        let signature = match input.signature.as_deref().map(Signature::parse).transpose() {
            Ok(signature) => signature,
            Err(error) => {
                let error = Error::new(Reason::ParseError, format!("the signature of the result: {error}"));
                return Err(Box::new(Problem::new(error, Phase::Compile)));
            }
        };
        Ok(Setting {
            limits: self.limits_for(input),
            tools: self.0.tools.clone(),
            own_tools: input.tools.clone(),
            pages: match self.0.far_pages {
                true => OnceLock::from(Arc::new(Tool::pages_elsewhere())),
                false => OnceLock::new(),
            },
            cancel: input.cancel.clone().unwrap_or_default(),
            signature,
            keys: self.keys_for(input),
            any_tool: false,
            alarm: None,
            watched: !matches!(self.0.pool, Threads::None),
            clock: self.0.clock.clone(),
            clock_replay: input.clock.clone(),
            makes: self.makes(input),
            on_print: input.on_print.clone(),
            heartbeat: input.heartbeat.clone(),
            replay: input.journal.as_ref().and_then(|journal| journal.replay()),
            gate: self.gate_setting(input),
            fuel: None,
            view,
        })
    }

    /// Returns the checks that every tool call of a run with `input` passes.
    pub(crate) fn gate_setting(&self, input: &Input<'_>) -> GateSetting {
        GateSetting {
            // The other half of the run counts its calls.
            limit: if self.0.far_pages { 0 } else { self.limits_for(input).tool_calls },
            policy: self.0.policy.clone(),
            tenant: input.tenant.clone(),
            budget: input.budget.clone(),
            journal: input.journal.clone().filter(|_| !input.makes.check_only),
            step_by_step: false,
            in_session: false,
            check_only: input.makes.check_only,
            #[cfg(feature = "async")]
            approver: input.approver.clone(),
        }
    }

    /// Reserves what a run with `input` may use from its budget.
    pub(crate) fn take_budget(&self, input: &Input<'_>) -> Result<Option<Taken>, Box<Problem>> {
        let begin = |budget: &crate::terms::budget::Budget| budget.begin(self.limits_for(input).fuel);
        input.budget.as_ref().map(begin).transpose().map_err(|error| Box::new(Problem::new(error, Phase::Setup)))
    }

    pub(crate) fn set_up(
        &self,
        view: &RunView,
        started: Instant,
        program: &Program,
        input: &Input<'_>,
        step_by_step: bool,
    ) -> Result<Run, Box<Problem>> {
        let setup = || input.setup.iter().map(|set_up| set_up.source().to_owned()).collect();
        let taken = self.take_budget(input)?;
        let run = self.setting(input, view.clone()).and_then(|mut setting| {
            self.begin_record(program.source(), setup, input, step_by_step, view)?;
            setting.gate.step_by_step = step_by_step;
            setting.fuel = taken.as_ref().and_then(|taken| taken.fuel);
            let span = StepSpan::set_up(view.span(), input.setup.len());
            let run = Run::set_up(started, setting, program, input, 0);
            span.end(reason_of(&run));
            run
        });
        match run {
            Ok(mut run) => {
                run.taken = taken;
                Ok(run)
            }
            Err(problem) => {
                taken.into_iter().for_each(Taken::give_back);
                Err(problem)
            }
        }
    }

    /// Drives a run to its end, with the program itself on this thread.
    pub(crate) fn to_end(&self, run: &mut Run) -> Outcome {
        to_end(run, &self.0.tool_threads, || self.executor())
    }

    /// Returns where parallel workers run.
    fn executor(&self) -> Executor {
        let pool = match &self.0.pool {
            Threads::Shared => Pool::shared(),
            Threads::Own(pool) => Some(pool.clone()),
            Threads::None => None,
        };
        let tools = self.0.tool_threads.clone();
        match pool {
            Some(pool) => Executor::Pool(PoolExecutor::new(pool, tools)),
            None => Executor::Local(Arc::new(LocalExecutor::calling_on(tools))),
        }
    }

    /// Returns the threads on which tools are called.
    pub(crate) fn tool_threads(&self) -> &ToolThreads {
        &self.0.tool_threads
    }

    /// Returns the outcome of a run that did not start.
    pub(crate) fn ended(&self, view: &RunView, started: Instant, problem: Box<Problem>, limits: Limits) -> Outcome {
        let mut outcome = Outcome::of_problem(problem, limits);
        outcome.usage.duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        outcome.usage.compute_us = outcome.usage.duration_us;
        view.ended(outcome)
    }
}

/// Returns the stable name of an error.
fn reason_of<T>(done: &Result<T, Box<Problem>>) -> Option<&'static str> {
    done.as_ref().err().map(|problem| problem.error.reason.name())
}

/// Builds an [`Engine`].
#[derive(Debug, Default)]
pub struct EngineBuilder {
    limits: Limits,
    ceiling: Option<Limits>,
    tools: Vec<Tool>,
    pool: Threads,
    tool_threads: Option<usize>,
    pub(crate) clock: Clock,
    observed: Observed,
    policy: Policy,
    /// The other half of the run holds the descriptions of tools.
    pub(crate) far_pages: bool,
    keys: Keys,
    prompt_tools_bytes: Option<usize>,
    kept_programs: Option<usize>,
    check: Check,
}

impl EngineBuilder {
    /// Sets the clock that programs see, in milliseconds since 1970-01-01T00:00:00Z.
    ///
    /// It is read each time a program asks for the time. Within a run, time never goes back. The default is the system
    /// clock. With [`Input::now_ms`] the time is fixed. Runs in another process also read this clock; the closure stays
    /// in this process.
    #[must_use]
    pub fn clock(mut self, read: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        self.clock = Clock::of_host(read);
        self
    }

    /// Sets whether programs are checked against their data and tools before they run. The default is [`Check::Warn`].
    ///
    /// ```
    /// use lisp_runtime::{Check, Engine, Input};
    /// let engine = Engine::builder().check(Check::Warn).build()?;
    /// let orders = serde_json::json!([{"id": 1, "total": 9}]);
    /// let outcome = engine.eval("(reduce + 0 (keep :totl data/orders))", Input::new().data("orders", &orders));
    /// assert_eq!(outcome.warnings()[0].repair.as_deref(), Some("write :total"));
    /// # Ok::<(), lisp_runtime::BuildError>(())
    /// ```
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// Sets the default limits of runs. They are also the maximum that a run can ask for, unless
    /// [`EngineBuilder::ceiling`] sets another one.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how JSON object keys are represented in programs. The default is strings.
    ///
    /// Applies to data, data sets, memory, history and tool results. [`Input::json_keys`] overrides it for one run.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Keys};
    /// let engine = Engine::builder().json_keys(Keys::Keywords).build()?;
    /// let outcome = engine.eval("(map key (first data/rows))", Input::new().json("rows", r#"[{"id": 7}]"#));
    /// assert_eq!(outcome.text(), Some("[:id]"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn json_keys(mut self, keys: Keys) -> Self {
        self.keys = keys;
        self
    }

    /// Sets the maximum limits that a run can ask for.
    #[must_use]
    pub fn ceiling(mut self, ceiling: Limits) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    /// Sets the thread pool for parallel workers. The default pool has one thread per core and is shared by all engines
    /// of the process.
    #[must_use]
    pub fn pool(mut self, pool: Pool) -> Self {
        self.pool = Threads::Own(pool);
        self
    }

    /// Sets the maximum number of threads for tool calls: 0 to 1,024.
    ///
    /// These threads make the calls of parallel workers and of detached tools ([`Tool::detached`]), also with process
    /// isolation. Other tool calls are made on the thread of the run. The threads start on demand, end when idle, and
    /// are shared by the clones of the engine. A call that finds all threads in use waits for one until the run's
    /// deadline or cancellation; after that the call is not made, and the run's error says so.
    ///
    /// With 0, parallel workers call tools on their own threads, and calls of detached tools fail. The default is 64
    /// threads, shared by all engines of the process.
    #[must_use]
    pub fn tool_threads(mut self, max: usize) -> Self {
        self.tool_threads = Some(max);
        self
    }

    /// Starts no threads, for a host that forks ([`run_bounded`]) or must stay single-threaded.
    ///
    /// Parallel workers and their tools take turns on the thread of their run; calls of detached tools fail. The
    /// deadline is only checked between instructions: one built-in over large data can overrun it, by up to about a
    /// second with the default heap limit. Other engines have a thread that interrupts a built-in at the deadline.
    ///
    /// [`run_bounded`]: https://docs.rs/ptc-lisp-sandbox
    #[must_use]
    pub fn without_threads(mut self) -> Self {
        self.pool = Threads::None;
        self
    }

    /// Sets an observer, which is notified of events in the engine's runs, also with process isolation.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Observer};
    /// use lisp_runtime::observe::HostFault;
    /// struct Alarm;
    /// impl Observer for Alarm {
    ///     fn host_fault(&self, fault: &HostFault<'_>) {
    ///         eprintln!("{}: a contained fault of the interpreter: {}", fault.run_id, fault.message);
    ///     }
    /// }
    /// let engine = Engine::builder().observer(Alarm).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observed = Observed::by(observer);
        self
    }

    /// Sets the policy that decides on every tool call of the engine's runs, with any isolation.
    #[must_use]
    pub fn policy(mut self, policy: impl ToolPolicy + 'static) -> Self {
        self.policy = Policy::by(policy);
        self
    }

    /// Grants a tool made of a closure.
    #[must_use]
    pub fn tool<R: Serialize>(
        self,
        name: impl Into<String>,
        function: impl Fn(&ToolCall) -> Result<R, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.grant(Tool::new(name, function))
    }

    /// Grants a tool.
    #[must_use]
    pub fn grant(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Grants several tools.
    #[must_use]
    pub fn grant_all(mut self, tools: Tools) -> Self {
        self.tools.extend(tools.into_all());
        self
    }

    /// Sets the maximum bytes of tool lines in [`Engine::prompt`]. The default is 16,000.
    ///
    /// If the tools do not fit, the prompt says how many there are; [`Tools::search`] and [`Tools::search_tool`] find
    /// the others.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Tool};
    /// let tools = (1..=214).map(|n| Tool::external(format!("t{n:03}")).signature("(n :int) -> :int"));
    /// let engine = tools.fold(Engine::builder(), |builder, tool| builder.grant(tool)).prompt_tools_bytes(350).build()?;
    /// assert!(engine.prompt().contains("12 of 214 tools are shown"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn prompt_tools_bytes(mut self, max: usize) -> Self {
        self.prompt_tools_bytes = Some(max);
        self
    }

    /// Sets how many compiled programs the engine keeps: 0 to 4,096, default 64.
    ///
    /// A kept program is not compiled again when its source is used under the same limits `program_bytes` and
    /// `symbols`. Programs of more than 64 KiB, by [`Program::bytes`], are not kept. So 64 programs take at most 4 MiB,
    /// and up to two thirds more with the overhead of the allocator. When the cache is full, the least recently used
    /// eighth is evicted. [`Engine::program_cache`] returns its size.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// let engine = Engine::builder().kept_programs(16).build()?;
    /// for n in 0..10 {
    ///     engine.eval("(inc data/n)", Input::new().json("n", n.to_string()));
    /// }
    /// assert_eq!((engine.program_cache().hits, engine.program_cache().misses), (9, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn kept_programs(mut self, max: usize) -> Self {
        self.kept_programs = Some(max);
        self
    }

    /// Builds the engine.
    ///
    /// # Errors
    /// Those of [`Tools::add`], such as two tools with the same name, or more tool threads than the maximum.
    pub fn build(self) -> Result<Engine, BuildError> {
        let mut tools = Tools::new();
        for tool in self.tools {
            tools.add(tool)?;
        }
        let ceiling = self.ceiling.unwrap_or(self.limits);
        let tool_threads = match (&self.pool, self.tool_threads) {
            (Threads::None, _) => ToolThreads::new(0),
            (_, None) => ToolThreads::shared(),
            (_, Some(max)) if max > ToolThreads::MAX => return Err(BuildError::ToolThreads(max)),
            (_, Some(max)) => ToolThreads::new(max),
        };
        Ok(Engine(Arc::new(Inner {
            limits: self.limits,
            ceiling,
            tools: Arc::new(tools),
            pool: self.pool,
            tool_threads,
            clock: self.clock,
            far_pages: self.far_pages,
            keys: self.keys,
            observed: self.observed,
            policy: self.policy,
            prompt_tools_bytes: self.prompt_tools_bytes.unwrap_or(PROMPT_TOOLS_BYTES),
            programs: ProgramCache::new(self.kept_programs.unwrap_or(PROGRAMS)),
            check: self.check,
        })))
    }
}
