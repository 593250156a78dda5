//! The sandbox: programs in separate processes.

use super::descriptors::Allowed;
use super::domains::{DomainLimits, Domains, check_name};
use super::moments::{hard_deadline, monotonic};
use super::pool::{NoChild, Pool, Starter};
use super::running::{Running, Supervision};
use super::spans::ChildSpan;
use super::verdict;
use crate::guest::layers::{Layer, LayerSet, Layers, SetupError};
use crate::guest::template;
use crate::wire::frames;
use crate::wire::guest_message::FrameLimits;
use crate::wire::messages::Order;
use lisp_runtime::outcome::Phase;
use lisp_runtime::remote::{HostHalf, Job};
use lisp_runtime::{DataSet, Engine, Error, Input, Limits, Outcome, Problem, Reason, Request};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs programs in separate processes, each locked down and used once. Cheap to clone, and usable from any number of
/// threads at once.
///
/// The host's `main` calls [`crate::init`] first: runs are forked from templates, which are the host's own program,
/// started again.
///
/// ```no_run
/// use lisp_runtime::{Engine, Input, Request};
/// use lisp_sandbox::Sandbox;
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     lisp_sandbox::init();
///     let engine = Engine::builder().tool("price", |call| call.get::<f64>("base")).build()?;
///     let sandbox = Sandbox::builder().engine(engine).build()?;
///     let outcome = sandbox.run(&Request::parse(r#"{"program": "(+ 1 (tool/price {:base 2}))"}"#)?);
///     assert_eq!(outcome.value::<f64>()?, 3.0);
///     let outcome = sandbox.eval("(inc data/n)", &Input::new().data("n", &41));
///     assert_eq!(outcome.value::<i64>()?, 42);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Sandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Engine,
    pool: Arc<Pool>,
    grace: Duration,
    memory: Option<u64>,
    answer_bytes: usize,
    sets: Vec<DataSet>,
    domains: Domains,
    max_runs: usize,
    /// For tests: delays the host's kill of a run by this time.
    #[cfg(feature = "testing")]
    late: Duration,
}

/// Builds a [`Sandbox`].
#[derive(Clone, Debug)]
pub struct Builder {
    engine: Engine,
    forkers: usize,
    grace: Duration,
    memory: Option<u64>,
    total_memory: Option<u64>,
    answer_bytes: usize,
    program: PathBuf,
    required: Vec<Layer>,
    spares: bool,
    sets: Vec<DataSet>,
    domains: DomainLimits,
    pub(crate) wanted: LayerSet,
    #[cfg(feature = "testing")]
    pub(crate) late: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            engine: Engine::default(),
            forkers: 1,
            grace: Duration::from_millis(50),
            memory: None,
            total_memory: None,
            answer_bytes: 256 << 20,
            program: PathBuf::from(template::ITSELF),
            required: Sandbox::REQUIRED.to_vec(),
            spares: true,
            sets: Vec::new(),
            domains: DomainLimits::default(),
            wanted: LayerSet::all(),
            #[cfg(feature = "testing")]
            late: Duration::ZERO,
        }
    }
}

impl Builder {
    /// The maximum for [`Builder::grace`]: an hour.
    pub const MAX_GRACE: Duration = Duration::from_secs(3_600);

    /// Sets the engine, whose limits and tools all runs use.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the number of templates, which take turns; the default is 1. Few file descriptors (`ulimit -n`) allow fewer.
    ///
    /// One template forks some thousand times a second. One for each processor gives the highest throughput.
    #[must_use]
    pub fn forkers(mut self, count: usize) -> Self {
        self.forkers = count;
        self
    }

    /// Sets how long after its deadline a run is killed; the default is 50 ms.
    ///
    /// A run normally ends by itself within this time, with a clean error; only a run that cannot is killed. More than
    /// [`Builder::MAX_GRACE`] is an error of [`Builder::build`].
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the address space of a run beyond the template's, in bytes. The default follows from the limits of the run
    /// and is always enough for a run within them.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets the memory limit of all runs together with their templates, in bytes.
    ///
    /// It applies where the system supports [`Layer::MemoryCgroup`], usually for root only. The default is three
    /// quarters of the memory of the machine, or of the host's group. When the limit is reached, the largest run ends
    /// with `memory_exceeded`.
    #[must_use]
    pub fn total_memory_bytes(mut self, bytes: u64) -> Self {
        self.total_memory = Some(bytes);
        self
    }

    /// Sets the maximum size of the answer of a run's process, in bytes; the default is 256 MiB.
    #[must_use]
    pub fn answer_bytes(mut self, bytes: usize) -> Self {
        self.answer_bytes = bytes;
        self
    }

    /// Sets the program used as template, for a host whose `main` cannot call [`crate::init`]. It can be any program
    /// whose `main` does, such as `ptcl`.
    #[must_use]
    pub fn template(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// Adds a required layer to [`Sandbox::REQUIRED`].
    #[must_use]
    pub fn require(mut self, layer: Layer) -> Self {
        self.required.push(layer);
        self
    }

    /// Turns namespaces off. Some systems forbid them, and they delay the start of a template.
    #[must_use]
    pub fn without_namespaces(mut self) -> Self {
        self.wanted.namespaces = false;
        self
    }

    /// Turns spare children off: each template then forks on demand.
    ///
    /// By default each template keeps one child ready for the next run, already locked down. It saves the run the time
    /// of a fork and costs one more process for each template, with about 0.1 MiB of its own.
    #[must_use]
    pub fn without_spares(mut self) -> Self {
        self.spares = false;
        self
    }

    /// Gives a data set to the templates, so that runs with it in their input share it.
    ///
    /// Each template imports it once, before it locks itself down; so does a restarted template. A set that is not
    /// given here is sent as text with each job that uses it, and imported by the run, within the run's time.
    ///
    /// ```no_run
    /// # use lisp_runtime::{Engine, Input};
    /// # use lisp_sandbox::Sandbox;
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::default();
    /// let orders = engine.import("orders", r#"[{"total": 12.5}]"#)?;
    /// let sandbox = Sandbox::builder().engine(engine).data_set(&orders).build()?;
    /// let outcome = sandbox.eval("(sum-by :total data/orders)", &Input::new().data_set(&orders));
    /// assert_eq!(outcome.value::<f64>()?, 12.5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn data_set(mut self, set: &DataSet) -> Self {
        self.sets.push(set.clone());
        self
    }

    /// Sets the limits of [domains](Sandbox::domain).
    #[must_use]
    pub fn domain_limits(mut self, limits: DomainLimits) -> Self {
        self.domains = limits;
        self
    }

    pub(crate) fn required(&self) -> &[Layer] {
        &self.required
    }

    pub(crate) fn requiring_nothing(mut self) -> Self {
        self.required.clear();
        self
    }

    /// Starts the templates.
    ///
    /// # Errors
    /// Returns an error if a template does not start, a required layer is missing, [`Builder::grace`] is too long, or the
    /// templates would be this program and its `main` has not called [`crate::init`].
    pub fn build(self) -> Result<Sandbox, SetupError> {
        if let Some(refusal) = template::refusal(&self.program) {
            return Err(refusal);
        }
        if self.grace > Builder::MAX_GRACE {
            let (grace, max) = (self.grace, Builder::MAX_GRACE);
            return Err(SetupError::new("grace", format!("it is {grace:?}; it must be at most {max:?}")));
        }
        let Builder { engine, grace, memory, answer_bytes, sets, .. } = self;
        let starter = Starter { program: self.program, wanted: self.wanted, sets: sets.clone() };
        let allowed = Allowed::now(self.forkers);
        let pool = Arc::new(Pool::new(starter, self.required, allowed.templates, self.spares, self.total_memory)?);
        let max_runs = allowed.runs.min(pool.max_runs());
        // Idle processes take at most half of the descriptors of runs.
        let domains = Domains::new(DomainLimits { idle: self.domains.idle.min(allowed.runs / 2), ..self.domains });
        let sandbox = Sandbox(Arc::new(Inner {
            engine,
            pool,
            grace,
            memory,
            answer_bytes,
            sets,
            domains,
            max_runs,
            #[cfg(feature = "testing")]
            late: self.late,
        }));
        let limits = *sandbox.0.engine.limits();
        sandbox.0.pool.stock(sandbox.child(&limits, 0, true));
        Ok(sandbox)
    }
}

impl Sandbox {
    /// The required layers.
    pub const REQUIRED: &'static [Layer] =
        &[Layer::NoNewPrivs, Layer::Seccomp, Layer::ChildSeccomp, Layer::RlimitAs, Layer::WallKill, Layer::FdsClosed];

    /// Returns a builder.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the engine, whose limits and tools all runs use.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Returns the state of each layer in the templates.
    pub fn layers(&self) -> Layers {
        self.0.pool.templates().first().map_or(Layers(Vec::new()), |template| template.layers.clone())
    }

    /// Returns how many runs and sessions can exist at once without waiting. The file descriptors (`ulimit -n`) that
    /// were free when the sandbox was built, and the limit of the templates, bound this number. Further runs and
    /// sessions wait, within their deadlines, until others have ended.
    pub fn max_runs(&self) -> usize {
        self.0.max_runs
    }

    /// Returns the process ids of the running templates.
    pub fn template_pids(&self) -> Vec<u32> {
        self.0.pool.templates().iter().map(|template| template.pid()).collect()
    }

    /// Runs a request to its end, whatever its `isolation` says. A request that names a domain shares a process with
    /// other runs of that domain: see [`Sandbox::domain`].
    pub fn run(&self, request: &Request<'_>) -> Outcome {
        if let Some(refused) = self.refused(request) {
            return refused;
        }
        let mut input = Input::new();
        match self.0.engine.split_request(request, &mut input) {
            Ok((job, mut host)) => match &request.domain {
                None => self.run_job(&job, host),
                Some(name) => match self.domain(name) {
                    Ok(domain) => domain.run_job(&job, host),
                    Err(error) => fault(&mut host, &error.to_string()),
                },
            },
            Err(outcome) => *outcome,
        }
    }

    /// Returns the outcome of a request with an invalid domain; `None` if the domain is valid.
    pub(crate) fn refused(&self, request: &Request<'_>) -> Option<Outcome> {
        let why = check_name(request.domain.as_deref()?).err()?;
        let error = Error::new(Reason::ParseError, format!("domain: {why}")).hint("name the domain, or leave it out");
        Some(request.failed(self.engine(), Box::new(Problem::new(error, Phase::Setup))))
    }

    /// Compiles and runs a program. An error in the program is reported in the outcome.
    pub fn eval(&self, source: &str, input: &Input<'_>) -> Outcome {
        match self.split(source, input, false) {
            Ok((job, host)) => self.run_job(&job, host),
            Err(outcome) => *outcome,
        }
    }

    /// Returns the limits of a run with this input.
    pub(crate) fn limits_for(&self, input: &Input<'_>) -> Limits {
        self.0.engine.limits_for(input)
    }

    /// Splits a run into its job and the half that stays in the host.
    pub(crate) fn split<'a>(
        &self,
        source: &'a str,
        input: &'a Input<'_>,
        session: bool,
    ) -> Result<(Job<'a>, HostHalf), Box<Outcome>> {
        self.0.engine.split(source, input, &self.0.sets, session)
    }

    fn run_job(&self, job: &Job<'_>, mut host: HostHalf) -> Outcome {
        match self.start(job, &mut host) {
            Ok(mut running) => running.finish(&mut host),
            Err(outcome) => *outcome,
        }
    }

    /// Starts a run and sends its job.
    pub(crate) fn start(&self, job: &Job<'_>, host: &mut HostHalf) -> Result<Running, Box<Outcome>> {
        let bytes = self.prepare(job, host)?;
        let session = job.is_session();
        let mut running = self.order(host, bytes.len(), session)?;
        running.give_job(host, &bytes);
        if !session {
            running.restock();
        }
        Ok(running)
    }

    /// Encodes a job. Fails if the run has no time left or is cancelled.
    pub(crate) fn prepare(&self, job: &Job<'_>, host: &mut HostHalf) -> Result<Vec<u8>, Box<Outcome>> {
        if host.limits().timeout_ms == 0 {
            return Err(Box::new(host.fail(verdict::timeout(0, "no time"), None)));
        }
        if host.cancel().is_cancelled() {
            return Err(Box::new(host.fail(verdict::cancelled(), None)));
        }
        frames::encode(job).map_err(|error| Box::new(fault(host, &error.to_string())))
    }

    /// Orders a child for a run or a session.
    pub(crate) fn order(&self, host: &mut HostHalf, job_bytes: usize, session: bool) -> Result<Running, Box<Outcome>> {
        let mut order = self.child_of(host, job_bytes as u64, !session && host.deadline().is_some());
        if session && self.0.memory.is_none() {
            order.memory = order.memory.saturating_add(room_to_save(host.limits()));
        }
        self.order_child(host, order, session)
    }

    /// Orders a child for a run, if there is room for one now.
    #[cfg(feature = "async")]
    pub(crate) fn order_now(&self, host: &HostHalf, job_bytes: usize) -> Result<Option<Running>, SetupError> {
        self.try_order(host, self.child_of(host, job_bytes as u64, host.deadline().is_some()), false)
    }

    pub(crate) fn domains(&self) -> &Domains {
        &self.0.domains
    }

    /// Returns the requirements of a run on a process of a domain.
    pub(crate) fn child_of_domain(&self, host: &HostHalf, job_bytes: usize, max_age: Duration) -> Order {
        let mut order = self.child_of(host, job_bytes as u64, true);
        if order.cpu_s > 0 {
            order.cpu_s = order.cpu_s.saturating_add(max_age.as_secs());
        }
        Order { stays: true, ..order }
    }

    /// Starts another run in an existing process of a domain.
    pub(crate) fn begin_in_domain(&self, host: &HostHalf, running: &mut Running) {
        running.begin_run(self.supervision(host, running.ordered(), self.hard(host)), ChildSpan::begin(host));
    }

    fn hard(&self, host: &HostHalf) -> Option<Instant> {
        hard_deadline(host, self.0.grace)
    }

    fn supervision(&self, host: &HostHalf, order: Order, hard: Option<Instant>) -> Supervision {
        Supervision {
            hard,
            grace: self.0.grace,
            #[cfg(feature = "testing")]
            late: self.0.late,
            replays: host.replays(),
            memory: order.memory,
            max: FrameLimits::of(host, self.0.answer_bytes, false),
            stays: order.stays,
            pool: self.0.pool.clone(),
        }
    }

    /// Orders a child for a run. Waits for room until the run's deadline.
    pub(crate) fn order_child(
        &self,
        host: &mut HostHalf,
        order: Order,
        session: bool,
    ) -> Result<Running, Box<Outcome>> {
        loop {
            let error = match self.try_order(host, order, session) {
                Ok(Some(running)) => return Ok(running),
                Ok(None) => match self.time_to_wait(host) {
                    Ok(left) => {
                        std::thread::sleep(left.min(ROOM_STEP));
                        continue;
                    }
                    Err(error) => host.fail(error, None),
                },
                Err(error) => fault(host, &error.to_string()),
            };
            return Err(Box::new(error));
        }
    }

    /// Orders a child for a run, if there is room for one now, without its deadline. If there is no room, idle
    /// processes of domains are ended.
    pub(crate) fn try_order(
        &self,
        host: &HostHalf,
        order: Order,
        session: bool,
    ) -> Result<Option<Running>, SetupError> {
        let stays = session || order.stays;
        let kill_at = hard_deadline(host, self.0.grace).filter(|_| !stays).map_or(0, monotonic);
        let order = Order { kill_at, ..order };
        let (template, channels) = loop {
            let ended = self.0.pool.ended();
            match self.0.pool.order(order) {
                Ok(ordered) => break ordered,
                Err(NoChild::Crowded | NoChild::Descriptors(_)) if self.0.domains.give_up_one() => {}
                Err(NoChild::Crowded | NoChild::Busy) => return Ok(None),
                Err(NoChild::Descriptors(_)) if self.0.pool.give_up_unused() => {}
                Err(NoChild::Descriptors(_)) if self.0.pool.may_find_descriptors(ended) => return Ok(None),
                Err(NoChild::Descriptors(error) | NoChild::Failed(error)) => return Err(error),
            }
        };
        let supervision = Supervision {
            max: FrameLimits::of(host, self.0.answer_bytes, session),
            stays,
            ..self.supervision(host, order, self.hard(host).filter(|_| !session))
        };
        Ok(Some(Running::new(template, channels, order, supervision, ChildSpan::begin(host))))
    }

    /// Returns how long a run without a process may continue to wait for room.
    ///
    /// # Errors
    /// Returns an error if its time is over or it was cancelled.
    pub(crate) fn time_to_wait(&self, host: &HostHalf) -> Result<Duration, Error> {
        verdict::time_to_wait(host, || {
            format!(
                "all {} processes were in use, each with descriptors of this one: raise Builder::forkers or \
                 ulimit -n, or have fewer runs and sessions at once",
                self.0.max_runs
            )
        })
    }

    /// Returns the requirements of a run on its child. A run that resumes from a record gets extra time to replay it.
    fn child_of(&self, host: &HostHalf, job_bytes: u64, timed: bool) -> Order {
        let mut order = self.child(host.limits(), job_bytes, timed);
        if host.may_have_workers() {
            order.threads = true;
            if self.0.memory.is_none() {
                order.memory = order.memory.saturating_add(ROOM_OF_THREADS);
            }
        }
        if order.cpu_s > 0 && host.replays() {
            let more = host.deadline().map(|at| at.saturating_duration_since(Instant::now()).as_secs());
            order.cpu_s = more.map_or(0, |more| order.cpu_s.saturating_add(more));
        }
        order
    }

    /// Returns the requirements of a run with these limits on its child; `timed` if it has a deadline.
    pub(crate) fn child(&self, limits: &Limits, job_bytes: u64, timed: bool) -> Order {
        let time = limits.timeout_ms.saturating_add(millis(self.0.grace)).div_ceil(1000) + 1;
        Order::new(
            self.0.memory.unwrap_or_else(|| allowance(limits, job_bytes)),
            if timed && limits.timeout_ms < u64::MAX { time } else { 0 },
        )
    }
}

pub(crate) fn fault(host: &mut HostHalf, message: &str) -> Outcome {
    host.fail(Error::new(Reason::HostFault, message), Some(lisp_runtime::outcome::Phase::Setup))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The interval at which a run without a process checks for room again.
pub(crate) const ROOM_STEP: Duration = Duration::from_millis(2);

/// Address space for the stacks of threads that help with workers, one for each processor.
const ROOM_OF_THREADS: u64 = 256 << 20;

/// Returns the address space needed to write a session as text, and to read it.
fn room_to_save(limits: &Limits) -> u64 {
    const UNLIMITED: u64 = 4 << 30;
    let text = if limits.session_bytes == 0 { UNLIMITED } else { limits.session_bytes };
    // Definitions and history: each while it grows, as text, and in a frame.
    text.saturating_mul(8)
}

/// Returns an address space that a run within its limits never fills. During a compaction a heap exists twice, a
/// worker's too. Job and data exist as text and as values, the result as a value and as text. The rest is for the
/// stack, the allocator and compiled patterns.
fn allowance(limits: &Limits, job_bytes: u64) -> u64 {
    const REST: u64 = 96 << 20;
    const UNLIMITED: u64 = 4 << 30;
    /// Rounds up, so that a spare child ordered for one job also suits a job of similar size.
    const STEP: u64 = 16 << 20;
    let heap = |bytes: u64| if bytes == 0 { UNLIMITED } else { bytes };
    let parts = [
        heap(limits.heap_bytes).saturating_mul(3),
        heap(limits.setup_heap_bytes).saturating_mul(2),
        heap(limits.worker_heap_bytes).saturating_mul(2).saturating_mul(limits.parallel_workers.min(64)),
        heap(limits.result_bytes).saturating_mul(8),
        heap(limits.prints_bytes).saturating_mul(4),
        (job_bytes.saturating_mul(4) / STEP + 1).saturating_mul(STEP),
        REST,
    ];
    parts.into_iter().fold(0, u64::saturating_add).min(1 << 46)
}
