//! The engine: what a host makes once and runs programs with.

use super::input::{DataSet, Input, Source};
use super::program::Program;
use super::program_cache::{PROGRAMS, ProgramCache, ProgramCacheUsage};
use super::run::{Run, RunEvent};
use super::waiting::Progress;
use crate::drive::setting::Setting;
use crate::parallel::executor::{Executor, LocalExecutor, PoolExecutor};
use crate::parallel::pool::Pool;
use crate::parallel::task::run_task;
use crate::terms::budget::Taken;
use crate::terms::cancel::Cancel;
use crate::terms::clock::Clock;
use crate::terms::keys::Keys;
use crate::terms::limits::{Limits, bytes};
use crate::terms::observer::{Observed, Observer};
use crate::terms::outcome::{Outcome, Phase, Problem};
use crate::terms::run_view::RunView;
use crate::terms::spans::StepSpan;
use crate::tools::gate::GateSetting;
use crate::tools::policy::{Policy, ToolPolicy};
use crate::tools::signature::Signature;
use crate::tools::threads::ToolThreads;
use crate::tools::tool::{BuildError, Tool, ToolCall, ToolError, Tools};
use lisp_core::{Error, Reason};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Limits and tools, made once. Cheap to clone and shared by any number of threads.
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
}

/// What the lines of tools may take on the prompt card, unless the host says otherwise.
const PROMPT_TOOLS_BYTES: usize = 16_000;

/// Where the workers of parallel calls run.
#[derive(Clone, Debug, Default)]
enum Threads {
    /// On the pool that engines share
    #[default]
    Shared,
    Own(Pool),
    /// On the thread of the run
    None,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("limits", &self.0.limits).field("tools", &self.0.tools).finish()
    }
}

impl Default for Engine {
    /// An engine without tools, under the default limits.
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
        }))
    }
}

impl Engine {
    /// Begins to make an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn observed(&self) -> &Observed {
        &self.0.observed
    }

    /// Compiles a program, or returns the one that was compiled of this source before, if it is still kept
    /// ([`EngineBuilder::kept_programs`]).
    ///
    /// # Errors
    /// The first fault of reading or analysis, with its place.
    pub fn compile(&self, source: &str) -> Result<Program, Box<Problem>> {
        let span = StepSpan::compile(None, source.len());
        let limits = &self.0.limits;
        let compiled = self.0.programs.get(source, limits, || Program::compile(source, limits));
        span.end(reason_of(&compiled));
        compiled
    }

    /// What the compiled programs take that the engine keeps, and how often one was there when it was asked for.
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
        let compile = || Program::compile_since(started, source, limits, cancel);
        let compiled = self.0.programs.get(source, limits, compile);
        span.end(reason_of(&compiled));
        compiled
    }

    /// Does the code of a source name a function that has workers? It is asked of programs that another process is to run: larger
    /// ones than most are not compiled here for that, and count as if they had none.
    pub(crate) fn may_have_workers(
        &self,
        started: Instant,
        source: &str,
        limits: &Limits,
        cancel: Option<&Cancel>,
    ) -> bool {
        /// The bytes of such a program.
        const LARGE: usize = 64 << 10;
        if source.len() > LARGE || !["pmap", "pcalls"].iter().any(|name| source.contains(name)) {
            return false;
        }
        let compile = || Program::compile_since(started, source, limits, cancel);
        self.0.programs.get(source, limits, compile).is_ok_and(|program| program.core().may_have_workers())
    }

    /// A run with an input begins: those who look at the engine's runs are told.
    pub(crate) fn view(&self, input: &Input<'_>, started: Instant) -> RunView {
        // A run that goes on has the name that it had.
        let had = input.journal.as_ref().and_then(|journal| journal.run_to_go_on());
        let named = had.or_else(|| input.run_id.clone().filter(|_| input.check_name().is_ok()));
        RunView::begin_named(&self.0.observed, named, input.traceparent.clone(), started)
    }

    /// Imports a JSON text as `data/name`, once for many runs, which share it without copying. The text is kept as long as
    /// the values, for runs in other processes; one given as a `String` is not copied. Its objects have the engine's kind of
    /// keys ([`EngineBuilder::json_keys`]) in every run.
    ///
    /// # Errors
    /// The text is not JSON, or takes more than the set-up ceiling.
    pub fn import<'a>(&self, name: &'a str, json: impl Into<Cow<'a, str>>) -> Result<DataSet, Box<Problem>> {
        self.import_source(Source::Data(name.into(), Ok(json.into())))
    }

    /// Imports the values of a JSON object as `data/key` each, like [`Engine::import`].
    ///
    /// # Errors
    /// The text is no JSON object, or takes more than the set-up ceiling.
    pub fn import_object<'a>(&self, json: impl Into<Cow<'a, str>>) -> Result<DataSet, Box<Problem>> {
        self.import_source(Source::DataObject(Ok(json.into())))
    }

    fn import_source(&self, source: Source<'_>) -> Result<DataSet, Box<Problem>> {
        let set = DataSet::import(&source, self.0.keys, bytes(self.0.limits.setup_heap_bytes))?;
        Ok(DataSet { source: Some(Arc::new(source.into_owned())), ..set })
    }

    /// Checks that every name of a program is defined, by the language or by an input's memory, and every tool by the
    /// engine or the input. Where neither has a tool, tools are not looked up.
    ///
    /// # Errors
    /// The first of them: `unbound_var` or `unknown_tool` with the name's place and what it may have meant, or what is wrong
    /// with the input.
    pub fn check(&self, program: &Program, input: &Input<'_>) -> Result<(), Box<Problem>> {
        let mut setting = self.setting(input, RunView::quiet(&Observed::default()))?;
        let no_tools = |tools: &Tools| tools.names().next().is_none();
        setting.any_tool = no_tools(&setting.tools) && setting.own_tools.as_deref().is_none_or(no_tools);
        Run::set_up(Instant::now(), setting, program, input, 0).map(drop)
    }

    /// Runs a program on this thread to its end.
    pub fn run(&self, program: &Program, input: Input<'_>) -> Outcome {
        let started = Instant::now();
        self.run_seen(&self.view(&input, started), started, program, &input)
    }

    /// Compiles a program and runs it; a fault of the program is the outcome's.
    pub fn eval(&self, source: &str, input: Input<'_>) -> Outcome {
        self.eval_since(Instant::now(), source, input)
    }

    pub(crate) fn eval_since(&self, started: Instant, source: &str, input: Input<'_>) -> Outcome {
        let limits = self.limits_for(&input);
        let view = self.view(&input, started);
        match self.compile_seen(&view, started, source, &limits, input.cancel.as_ref()) {
            Ok(program) => self.run_seen(&view, started, &program, &input),
            Err(problem) => self.ended(&view, started, problem, limits),
        }
    }

    fn run_seen(&self, view: &RunView, started: Instant, program: &Program, input: &Input<'_>) -> Outcome {
        match self.set_up(view, started, program, input, false) {
            Ok(mut run) => to_end(&mut run, self),
            Err(problem) => self.ended(view, started, problem, self.limits_for(input)),
        }
    }

    /// Starts a run that the caller drives: it stops at each tool call, which the caller answers when it can. That is so for
    /// tools with a closure, too: only [`Engine::run`] calls it. No thread is blocked, and a run may wait as long as its deadline allows. Parallel workers take turns on the caller's
    /// thread; when all of them wait for tools, the caller has several calls to answer, in any order.
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
            Ok(mut run) => {
                run.by_hand = Some(Arc::new(LocalExecutor::by_hand()));
                Progress::of(Box::new(run))
            }
            Err(problem) => Progress::Done(Box::new(self.ended(&view, started, problem, self.limits_for(&input)))),
        }
    }

    /// The limits of a run that asks for none of its own.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The limits of a run with an input.
    pub fn limits_for(&self, input: &Input<'_>) -> Limits {
        self.0.limits.with(&input.limits).min(&self.0.ceiling)
    }

    /// What the keys of JSON objects become in a run with an input.
    pub(crate) fn keys_for(&self, input: &Input<'_>) -> Keys {
        input.keys.unwrap_or(self.0.keys)
    }

    /// A reference card of the language for a model's system prompt, with the signatures of the engine's tools and
    /// what it makes of the keys of JSON objects; without tools at most 2,000 bytes.
    pub fn prompt(&self) -> String {
        crate::text::card::card(&self.0.tools, &self.0.limits, self.0.keys, self.0.prompt_tools_bytes)
    }

    /// [`Engine::prompt`] with those tools only that the engine's policy [shows](crate::ToolPolicy::shows) to the runs of a tenant
    /// ([`Input::tenant`]).
    ///
    /// ```
    /// use lisp_runtime::{AskedCall, Engine, PolicyDecision, Tool, ToolPolicy};
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
        let mut seen = Tools::new();
        for tool in self.0.tools.all().filter(|tool| self.0.policy.shows(tool, tenant)) {
            // Each stands in the engine already.
            let _ = seen.add(tool.as_ref().clone());
        }
        crate::text::card::card(&seen, &self.0.limits, self.0.keys, self.0.prompt_tools_bytes)
    }

    /// The engine's tools.
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
            makes: input.makes,
            on_print: input.on_print.clone(),
            replay: input.journal.as_ref().and_then(|journal| journal.replay()),
            gate: self.gate_setting(input),
            fuel: None,
            view,
        })
    }

    /// What every call of a run with an input passes.
    pub(crate) fn gate_setting(&self, input: &Input<'_>) -> GateSetting {
        GateSetting {
            // The other half of a run counts its calls.
            limit: if self.0.far_pages { 0 } else { self.limits_for(input).tool_calls },
            policy: self.0.policy.clone(),
            tenant: input.tenant.clone(),
            budget: input.budget.clone(),
            journal: input.journal.clone(),
            by_hand: false,
            in_session: false,
            #[cfg(feature = "async")]
            approver: input.approver.clone(),
        }
    }

    /// Takes what a run with an input may use from its budget.
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
        by_hand: bool,
    ) -> Result<Run, Box<Problem>> {
        let setup = || input.setup.iter().map(|program| program.source().to_owned()).collect();
        let taken = self.take_budget(input)?;
        let begun = self.setting(input, view.clone()).and_then(|mut setting| {
            self.begin_record(program.source(), setup, input, by_hand, view)?;
            setting.gate.by_hand = by_hand;
            setting.fuel = taken.as_ref().and_then(|taken| taken.fuel);
            let span = StepSpan::set_up(view.span(), input.setup.len());
            let run = Run::set_up(started, setting, program, input, 0);
            span.end(reason_of(&run));
            run
        });
        match begun {
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

    /// Where parallel workers run.
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

    /// The threads that tools are called on.
    pub(crate) fn tool_threads(&self) -> &ToolThreads {
        &self.0.tool_threads
    }

    /// The outcome of a run that did not begin.
    pub(crate) fn ended(&self, view: &RunView, started: Instant, problem: Box<Problem>, limits: Limits) -> Outcome {
        let mut outcome = Outcome::of_problem(problem, limits);
        outcome.usage.duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        outcome.usage.compute_us = outcome.usage.duration_us;
        view.ended(outcome)
    }
}

/// The stable name of what went wrong.
fn reason_of<T>(done: &Result<T, Box<Problem>>) -> Option<&'static str> {
    done.as_ref().err().map(|problem| problem.error.reason.name())
}

/// Drives a run to its end, the program itself on this thread.
pub(crate) fn to_end(run: &mut Run, engine: &Engine) -> Outcome {
    /// How often the time of workers that wait is looked at.
    const STEP: Duration = Duration::from_millis(2);
    loop {
        match run.advance() {
            RunEvent::Call(tool, call) => run.reply(tool.call(call, &engine.0.tool_threads)),
            RunEvent::Printed(_) | RunEvent::Beat | RunEvent::Turn => {}
            RunEvent::Workers => {
                let executor = engine.executor();
                if let Some(first) = run.send_workers(executor.clone()) {
                    run_task(first);
                }
                match executor {
                    Executor::Local(inline) => {
                        inline.run();
                        run.is_back(Run::LONG);
                    }
                    Executor::Pool(on) => {
                        while !run.is_back(STEP) {
                            on.end_those_that_are_over();
                        }
                    }
                }
            }
            RunEvent::Done(outcome) => return *outcome,
        }
    }
}

/// Makes an [`Engine`].
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
    /// What there is to say of tools is with the other half.
    pub(crate) far_pages: bool,
    keys: Keys,
    prompt_tools_bytes: Option<usize>,
    kept_programs: Option<usize>,
}

impl EngineBuilder {
    /// What programs are told when they ask for the time: milliseconds since 1970-01-01T00:00:00Z, read at the moment
    /// they ask. Within a run it never goes back. Without this it is the clock of the system; with [`Input::now_ms`] it
    /// stands still. A run in another process has each reading from the closure too, which stays in this one.
    #[must_use]
    pub fn clock(mut self, read: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        self.clock = Clock::of_host(read);
        self
    }

    /// The limits of runs that ask for none of their own; also what others may ask for at most, unless
    /// [`EngineBuilder::ceiling`] says otherwise.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the keys of JSON objects become in programs: in data, data sets, memory, history and results of tools. Strings
    /// unless this says otherwise; [`Input::json_keys`] says otherwise for one run.
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

    /// What a run may ask for at most.
    #[must_use]
    pub fn ceiling(mut self, ceiling: Limits) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    /// The threads that parallel workers run on. Without a pool of its own, the engine shares one with a thread for
    /// each core with the other engines of the process.
    #[must_use]
    pub fn pool(mut self, pool: Pool) -> Self {
        self.pool = Threads::Own(pool);
        self
    }

    /// How many threads tool calls may take at once: those of parallel workers, and those of detached tools
    /// ([`Tool::detached`]), also behind the process door. Other calls of a program are made on the thread of its run. The
    /// threads are started when they are needed, end when they are idle, and are shared by the clones of the engine. A call
    /// that finds all of them taken waits for one, until the run's deadline or cancellation: then it is not made, and the
    /// error of the run says so.
    ///
    /// 0 to 1,024. With 0, parallel workers call tools on the thread that they run on, and detached tools fail. Without
    /// this, the engine shares 64 threads with the other engines of the process.
    #[must_use]
    pub fn tool_threads(mut self, most: usize) -> Self {
        self.tool_threads = Some(most);
        self
    }

    /// Starts no threads, for a host that forks ([`run_bounded`]) or has one thread for a reason: parallel workers take turns
    /// on the thread of their run, and so do their tools; detached tools fail. What this costs: other engines have a thread
    /// that ends a built-in at work at the deadline; here the deadline is looked at between instructions, and a single call
    /// of a built-in on large data may overrun it, by up to a second or so with the default budget.
    ///
    /// [`run_bounded`]: https://docs.rs/ptc-lisp-sandbox
    #[must_use]
    pub fn without_threads(mut self) -> Self {
        self.pool = Threads::None;
        self
    }

    /// Tells an observer of what happens in the runs of this engine, also behind the process door.
    ///
    /// ```
    /// use lisp_runtime::{Engine, HostFault, Observer};
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

    /// Has a policy decide on every call of a tool in the runs of this engine, at both doors.
    #[must_use]
    pub fn policy(mut self, policy: impl ToolPolicy + 'static) -> Self {
        self.policy = Policy::by(policy);
        self
    }

    /// Grants a tool: a closure.
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

    /// Grants all of these tools.
    #[must_use]
    pub fn grant_all(mut self, tools: Tools) -> Self {
        self.tools.extend(tools.into_all());
        self
    }

    /// How many bytes the lines of tools may take on the card of [`Engine::prompt`], 16,000 unless this says otherwise. Of more
    /// tools the card says how many there are; [`Tools::search`] and [`Tools::search_tool`] find them.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Tool};
    /// let tools = (1..=214).map(|n| Tool::external(format!("t{n:03}")).signature("(n :int) -> :int"));
    /// let engine = tools.fold(Engine::builder(), |builder, tool| builder.grant(tool)).prompt_tools_bytes(350).build()?;
    /// assert!(engine.prompt().contains("12 of 214 tools are shown"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn prompt_tools_bytes(mut self, most: usize) -> Self {
        self.prompt_tools_bytes = Some(most);
        self
    }

    /// How many compiled programs the engine keeps, 64 unless this says otherwise, at most 4,096; 0 keeps none. A program that is compiled or
    /// evaluated again under the same limits `program_bytes` and `symbols` is not read again then. Programs of more than 64 KiB, by
    /// [`Program::bytes`], are not kept, so that 64 take 4 MiB at most, and with what the allocator needs for small blocks up to two thirds more. When there are too many, the eighth goes that was used longest ago.
    /// [`Engine::program_cache`] says what they take.
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
    pub fn kept_programs(mut self, most: usize) -> Self {
        self.kept_programs = Some(most);
        self
    }

    /// The engine.
    ///
    /// # Errors
    /// Two tools of one name, a name that no program can write, a signature that cannot be read, or more tool threads
    /// than there may be.
    pub fn build(self) -> Result<Engine, BuildError> {
        let mut tools = Tools::new();
        for tool in self.tools {
            tools.add(tool)?;
        }
        let ceiling = self.ceiling.unwrap_or(self.limits);
        let tool_threads = match (&self.pool, self.tool_threads) {
            (Threads::None, _) => ToolThreads::new(0),
            (_, None) => ToolThreads::shared(),
            (_, Some(most)) if most > ToolThreads::MOST => return Err(BuildError::ToolThreads(most)),
            (_, Some(most)) => ToolThreads::new(most),
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
        })))
    }
}
