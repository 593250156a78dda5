//! The service, independent of HTTP and MCP: plain runs, durable runs, and replies to their calls.

use super::admission::{Admission, Claim, TenantState};
use super::events::{EventHub, EventLog};
use super::metrics::set;
use super::open_calls::{Phase, Reply, WaitingCall};
use super::state::{ActiveRun, Inner, Refused, Service, now_ms};
use super::suspended::Suspended;
use super::turns::Turns;
use crate::config::Config;
use crate::old_store::{Inserted, RequestKey, RunStatus, RunSummary, Store, StoreError, StoredReply, Which};
use crate::tools::ServiceTools;
use lisp_runtime::request::Isolation;
use lisp_runtime::tools::BoxedCall;
use lisp_runtime::{Answer, Engine, Limits, Request, ToolError, Tools};
use prometheus_client::metrics::gauge::Gauge;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a run has to be quiet before its open calls are reported, because parallel workers make theirs one after the
/// other.
const QUIET: Duration = Duration::from_millis(15);

/// How often a run that is not quiet is checked again.
const QUIET_CHECKS: u32 = 20;

/// How often a waiting caller checks a run without being notified.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Why a service cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The configured tools cannot be used.
    #[error(transparent)]
    Tools(#[from] crate::tools::ToolsError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine cannot be built.
    #[error("{0}")]
    Engine(#[from] lisp_runtime::BuildError),
    /// Process isolation is not available.
    #[error("programs cannot run in processes of their own here: {0}; --isolation in-process does without")]
    Isolation(String),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
}

/// The state of a run.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct RunState {
    /// The ID of the run.
    pub run_id: String,
    /// The status of the run.
    pub status: RunStatus,
    /// The open calls: they wait for outside answers.
    pub calls: Vec<WaitingCall>,
    /// The answer; present once the run is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<super::schemas::Answer>)]
    pub answer: Option<Box<RawValue>>,
    /// Why the run is stuck; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the run was submitted, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When the run last changed, in milliseconds since 1970-01-01T00:00:00Z.
    pub updated_ms: i64,
}

/// A list of runs.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct RunList {
    /// The runs, newest first, without their answers.
    pub(crate) runs: Vec<RunState>,
}

/// The result of waiting for a run.
#[derive(Debug)]
pub enum Done {
    /// The answer, as JSON.
    Answer(String),
    /// The state of a run that is not done: it waits for an outside answer, is stuck, or continues only after a restart
    /// of the service.
    Waiting(Box<RunState>),
}

/// Waits for a call of a tool, and looks from time to time whether its run has ended.
async fn polled(mut call: BoxedCall) -> Result<String, ToolError> {
    const EVERY: Duration = Duration::from_millis(20);
    loop {
        tokio::select! {
            done = &mut call => return done,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// Limits of domains: one process per slot, because a run that waits keeps its process.
#[cfg(target_os = "linux")]
fn domain_limits(config: &Config) -> lisp_sandbox::DomainLimits {
    let mut limits = lisp_sandbox::DomainLimits::default();
    limits.processes = config.service.concurrency;
    limits.domains = config.tenants.len().max(1);
    limits
}

impl Service {
    /// Connects the tools, sets up isolation, and resumes the unfinished runs of the store.
    ///
    /// # Errors
    /// See [`ServiceError`].
    pub async fn open(config: Config, store: Box<dyn Store>) -> Result<Service, ServiceError> {
        config.check_tls()?;
        let tools = ServiceTools::connect(&config).await?;
        let hub = EventHub::default();
        let defaults = config.limits();
        let engine = Engine::builder()
            .limits(defaults)
            // Each tenant has its own ceiling.
            .ceiling(Limits::unlimited())
            .json_keys(config.json_keys)
            .grant_all(tools.tools.clone())
            .policy(tools.policy.clone())
            .observer(hub.clone())
            .build()?;
        #[cfg(target_os = "linux")]
        let sandbox = match config.isolation {
            Isolation::Process => Some(
                lisp_sandbox::Sandbox::builder()
                    .engine(engine.clone())
                    .forkers(std::thread::available_parallelism().map_or(1, usize::from).min(4))
                    .domain_limits(domain_limits(&config))
                    .build()
                    .map_err(|error| ServiceError::Isolation(error.to_string()))?,
            ),
            _ => None,
        };
        #[cfg(not(target_os = "linux"))]
        if config.isolation == Isolation::Process {
            return Err(ServiceError::Isolation("they do on Linux only".to_owned()));
        }
        let runtime = tokio::runtime::Handle::current();
        let mut blocking_tools = Tools::new();
        for tool in tools.tools.all() {
            let runtime = runtime.clone();
            blocking_tools.add(tool.as_ref().clone().blocking(move |call| runtime.block_on(polled(call))))?;
        }
        let asking = tools.tools.all().filter(|tool| tools.policy.asks_for(tool));
        let asking = asking.map(|tool| tool.name().to_owned()).collect();
        let all = config.tenants.iter().chain(config.anonymous());
        let tenants = all.map(|tenant| Arc::new(TenantState::new(&config, tenant))).collect();
        let limits = &config.service;
        let service = Service(Arc::new(Inner {
            engine,
            #[cfg(target_os = "linux")]
            sandbox,
            store,
            hub,
            admission: Admission::new(limits.concurrency, limits.queue, Duration::from_secs(limits.queue_seconds)),
            tenants,
            active_runs: Mutex::default(),
            run_budgets: Mutex::default(),
            suspended: Suspended::default(),
            stuck_runs: Mutex::default(),
            counting: Mutex::default(),
            draining: CancellationToken::new(),
            drained_at: OnceLock::new(),
            blocking_tools,
            sessions: Turns::default(),
            config,
            asking,
            tools,
        }));
        service.count_stored()?;
        service.refill_budgets();
        service.go_on()?;
        Ok(service)
    }

    /// Resumes runs that an earlier process left unfinished.
    fn go_on(&self) -> Result<(), StoreError> {
        for RunSummary { run_id, tenant, status, cancelled, .. } in self.0.store.unfinished()? {
            // A waiting run may have got a reply, or been cancelled, just before the process ended.
            if status != RunStatus::Waiting || cancelled || !self.0.store.replies(&run_id)?.is_empty() {
                self.activate(&tenant, &run_id);
            }
        }
        Ok(())
    }

    /// Refills the budgets of tenants at their intervals.
    fn refill_budgets(&self) {
        for tenant in &self.0.config.tenants {
            let Some(budget) = &tenant.budget else { continue };
            let Some(every) = budget.refill_seconds.filter(|every| *every > 0) else { continue };
            let (amounts, name, inner) = (budget.amounts, tenant.name.clone(), Arc::downgrade(&self.0));
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(Duration::from_secs(every)).await;
                    let Some(inner) = inner.upgrade() else { return };
                    if let Some(tenant) = inner.tenants.iter().find(|tenant| tenant.name == name) {
                        tenant.refill(&amounts);
                    }
                }
            });
        }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Returns the tenant of this name.
    pub fn tenant(&self, name: &str) -> Option<Arc<TenantState>> {
        self.0.tenants.iter().find(|tenant| tenant.name == name).cloned()
    }

    /// Starts shutdown: nothing new starts, and durable runs stop where they can.
    pub fn drain(&self) {
        self.drained_at();
        self.0.draining.cancel();
    }

    /// Returns when `drain_seconds` are over. They count from the first call.
    fn drained_at(&self) -> tokio::time::Instant {
        let time = Duration::from_secs(self.0.config.service.drain_seconds);
        *self.0.drained_at.get_or_init(|| tokio::time::Instant::now() + time)
    }

    /// Returns whether the service is shutting down.
    pub fn is_draining(&self) -> bool {
        self.0.draining.is_cancelled()
    }

    /// Checks that the service accepts requests.
    ///
    /// # Errors
    /// If the service is shutting down, its store cannot be written, or another process has taken the store over.
    pub fn is_ready(&self) -> Result<(), Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        Ok(self.0.store.check_writable()?)
    }

    /// Returns whether a durable run is active in this process.
    pub(crate) fn is_active(&self, run_id: &str) -> bool {
        self.0.active(run_id).is_some()
    }

    /// Returns when the service is shutting down and the run is no longer active in it.
    pub(crate) async fn stopped(&self, run_id: &str) {
        self.0.draining.cancelled().await;
        while self.is_active(run_id) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the gauge of open connections.
    pub(crate) fn connections(&self) -> Gauge {
        self.0.hub.metrics().connections.clone()
    }

    /// Returns the number of durable runs active in this process.
    pub fn active_count(&self) -> usize {
        self.0.active_runs().len()
    }

    /// Returns the event log of a run that is active or watched.
    pub fn events(&self, run_id: &str) -> Option<Arc<EventLog>> {
        self.0.hub.log(run_id)
    }

    /// Returns the event log of a run. It is kept while the returned reference is.
    pub fn watch(&self, run_id: &str) -> Arc<EventLog> {
        self.0.hub.watch(run_id)
    }

    /// Counts a request.
    pub(crate) fn count_request(&self, route: &str, status: u16, took: Duration) {
        self.0.hub.metrics().answered(route, status, took);
    }

    /// Returns the prompt for models, with the tools that the tenant sees.
    pub fn prompt(&self, tenant: &TenantState) -> String {
        self.0.engine.prompt_for(Some(&tenant.name))
    }

    /// Waits until no durable run is active, for at most `drain_seconds` after [`Service::drain`]. Then ends the MCP
    /// servers that the service started, and writes SQLite's log back, so that the store's file is complete.
    pub async fn ended(&self) {
        let until = self.drained_at();
        while self.active_count() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.0.tools.close().await;
        let inner = self.0.clone();
        match tokio::task::spawn_blocking(move || inner.store.settle()).await {
            // If another process has taken the store over, it writes the log back.
            Ok(Ok(()) | Err(StoreError::Fenced)) | Err(_) => {}
            Ok(Err(error)) => tracing::error!(%error, "the store's log is not written back"),
        }
    }

    /// Returns whether a request needs a journal, because it may call a tool that needs an outside answer.
    pub fn needs_journal(&self, request: &Request<'_>) -> bool {
        let asks = |name: &str| self.0.asking.contains(name) && !request.tools.contains_key(name);
        request.tools.values().any(|tool| tool.client)
            || (!self.0.asking.is_empty() && request.mentioned_tools().any(asks))
    }

    /// Runs a request and returns its answer. Nothing is stored. Dropping the future cancels the run.
    ///
    /// # Errors
    /// If the service is shutting down, the tenant's rate is exceeded, or there is no slot.
    pub async fn run(&self, tenant: &TenantState, request: &Request<'_>, run_id: &str) -> Result<Answer, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        tenant.check_rate()?;
        let _place = self.0.admission.place(tenant).await?;
        let outcome = match self.0.input(tenant, request) {
            Ok(input) => {
                let input = input.run_id(run_id).into_owned();
                self.0.run_isolated(tenant, request, &request.program, input).await
            }
            Err(problem) => request.failed(&self.0.engine, problem),
        };
        let mut answer = request.answer(&outcome);
        run_id.clone_into(&mut answer.run_id);
        Ok(answer)
    }

    /// Submits a durable run. Once this returns, the run continues even if this process ends.
    ///
    /// # Errors
    /// If the run is not accepted. See [`Refused`].
    pub fn submit(
        &self,
        tenant: &TenantState,
        request: &str,
        key: Option<RequestKey<'_>>,
    ) -> Result<RunState, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        // A repeated request needs no capacity.
        if let Some(key) = key
            && let Some(known) = self.0.store.known_request(&tenant.name, key)?
        {
            return self.state_of_known(tenant, known);
        }
        tenant.check_rate()?;
        let claim = tenant.new_claim()?;
        let max = self.0.config.service.max_runs_stored;
        let counting = self.0.counting();
        if tenant.stored.load(Ordering::Relaxed) >= max {
            return Err(Refused::Unprocessable(format!(
                "the store has {max} runs of the tenant; finished ones go after keep_finished_hours, or raise max_runs_stored"
            )));
        }
        let run_id = uuid::Uuid::now_v7().to_string();
        match self.0.store.insert_run(&run_id, &tenant.name, request, key)? {
            Inserted::New => {
                tenant.stored.fetch_add(1, Ordering::Relaxed);
                drop(counting);
                self.activate_with(&run_id, Some(claim));
                self.state(&tenant.name, &run_id)
            }
            known => self.state_of_known(tenant, known),
        }
    }

    /// Returns the state of the run that an idempotency key names.
    fn state_of_known(&self, tenant: &TenantState, known: Inserted) -> Result<RunState, Refused> {
        match known {
            Inserted::New => Err(Refused::Fault("a run that was taken is not there".to_owned())),
            Inserted::Known(run_id) => self.state(&tenant.name, &run_id),
            Inserted::OtherRequest => Err(Refused::Unprocessable(
                "the Idempotency-Key was used for another request; take a new one".to_owned(),
            )),
        }
    }

    /// Submits a durable run, and waits until it has its answer or waits for an outside answer.
    ///
    /// # Errors
    /// If the run is not accepted. See [`Refused`].
    pub async fn submit_and_wait(
        &self,
        tenant: &TenantState,
        request: &str,
        key: Option<RequestKey<'_>>,
    ) -> Result<Done, Refused> {
        let run_id = self.submit(tenant, request, key)?.run_id;
        self.wait(&tenant.name, &run_id).await
    }

    /// Waits until a run has its answer, waits for an outside answer or is stuck, or until the service shuts down.
    ///
    /// # Errors
    /// If the run does not exist.
    pub async fn wait(&self, tenant: &str, run_id: &str) -> Result<Done, Refused> {
        let log = self.watch(run_id);
        let mut changes = log.changes();
        let (mut seen, mut pace, mut checks) = (0, None, 0);
        let waited = loop {
            let state = self.state(tenant, run_id)?;
            if let Some(answer) = state.answer {
                break Done::Answer(answer.get().to_owned());
            }
            let is_asked = self.0.active(run_id).and_then(|active| active.calls()).is_none_or(|calls| calls.is_asked());
            let waits = !state.calls.is_empty() && is_asked;
            let now = log.pace();
            if waits && checks < QUIET_CHECKS && self.is_active(run_id) && pace.replace(now) != Some(now) {
                checks += 1;
                tokio::time::sleep(QUIET).await;
                continue;
            }
            if waits || state.error.is_some() || (self.is_draining() && !self.is_active(run_id)) {
                break Done::Waiting(Box::new(state));
            }
            // Prints and tool calls do not change the state.
            let until = tokio::time::Instant::now() + LOOK_AGAIN;
            while tokio::time::timeout_at(until, changes.changed()).await.is_ok_and(|changed| changed.is_ok()) {
                let (events, is_over) = log.from(seen);
                seen += events.len();
                if is_over || events.iter().any(|event| event.kind == "waiting") {
                    break;
                }
            }
        };
        Ok(waited)
    }

    /// Returns the state of a run.
    ///
    /// # Errors
    /// If the tenant has no such run.
    pub fn state(&self, tenant: &str, run_id: &str) -> Result<RunState, Refused> {
        let mut stored = self.0.stored(tenant, run_id)?;
        let answer = stored.answer.take().and_then(|answer| RawValue::from_string(answer).ok());
        Ok(RunState { answer, ..self.state_of(stored.into()) })
    }

    /// Returns the state of a run, without its answer.
    fn state_of(&self, run: RunSummary) -> RunState {
        let (mut calls, mut stuck) = (Vec::new(), None);
        if run.status != RunStatus::Done {
            stuck = self.0.stuck_runs().get(&run.run_id).cloned();
            match self.0.stored_calls(&run) {
                Ok(open) => calls = open,
                // An error of one run must not affect the others.
                Err(error) => drop(stuck.get_or_insert_with(|| format!("its journal cannot be read: {error}"))),
            }
        }
        let status = match (run.status, calls.is_empty()) {
            (RunStatus::Done, _) => RunStatus::Done,
            // A run with open calls is waiting, even if it is not suspended yet.
            (_, false) => RunStatus::Waiting,
            // All answers are there: it is about to continue.
            (RunStatus::Waiting, true) => RunStatus::Queued,
            (status, true) => status,
        };
        let RunSummary { run_id, created_ms, updated_ms, .. } = run;
        RunState { run_id, status, calls, answer: None, error: stuck, created_ms, updated_ms }
    }

    /// Returns a tenant's newest runs, without their answers, optionally only those with this status. This blocks: do
    /// not call it on an async thread.
    ///
    /// # Errors
    /// If the store fails.
    pub fn runs(&self, tenant: &str, status: Option<RunStatus>, max: usize) -> Result<Vec<RunState>, Refused> {
        /// The number of runs read at once.
        const PAGE: usize = 256;
        let which = match status {
            None => Which::All,
            Some(RunStatus::Done) => Which::Done,
            Some(_) => Which::Unfinished,
        };
        let (mut runs, mut last): (Vec<RunState>, Option<RunSummary>) = (Vec::new(), None);
        while runs.len() < max {
            let page = self.0.store.runs(tenant, which, last.as_ref(), PAGE.min(max))?;
            let Some(end) = page.last() else { break };
            last = Some(end.clone());
            let states = page.into_iter().map(|run| self.state_of(run));
            // The status depends on open calls too, not on the store alone.
            runs.extend(states.filter(|state| status.is_none_or(|status| state.status == status)));
        }
        runs.truncate(max);
        Ok(runs)
    }

    /// Stores a reply to an open call, and passes it to the run or resumes the run.
    ///
    /// # Errors
    /// If there is no such call, it is already answered, or the reply does not fit it.
    pub fn reply(&self, tenant: &str, run_id: &str, call: &str, reply: &Reply) -> Result<RunState, Refused> {
        let state = self.state(tenant, run_id)?;
        let Some(open) = state.calls.iter().find(|open| open.call == call) else {
            let known = self.0.store.replies(run_id)?.iter().any(|reply| reply.call == call);
            return Err(match known {
                true => Refused::Conflict(format!("the call {call} was answered before")),
                false => Refused::NotFound(format!("the run has no call {call} that waits")),
            });
        };
        reply.check(&open.phase).map_err(|message| Refused::Invalid { field: String::new(), message })?;
        let body = serde_json::to_string(reply).map_err(|error| Refused::Fault(error.to_string()))?;
        let kept = StoredReply { call: call.to_owned(), phase: open.phase.name(), body };
        let is_first = self.0.store.put_reply(run_id, &kept)?;
        self.0.suspended.goes_on(run_id);
        if !is_first {
            return Err(Refused::Conflict(format!("the call {call} was answered before")));
        }
        self.tell((tenant, run_id), call, &open.phase, reply);
        self.state(tenant, run_id)
    }

    /// Passes a reply to an active run, or resumes the run.
    fn tell(&self, (tenant, run_id): (&str, &str), call: &str, phase: &Phase, reply: &Reply) {
        // An attempt checks for new replies under this lock before it ends.
        let active_runs = self.0.active_runs();
        if let Some(active) = active_runs.get(run_id) {
            active.reply(call, phase, reply.clone());
            return;
        }
        drop(active_runs);
        self.activate(tenant, run_id);
    }

    /// Cancels a run. A run that is done does not change.
    ///
    /// # Errors
    /// If the run does not exist.
    pub fn cancel(&self, tenant: &str, run_id: &str) -> Result<RunState, Refused> {
        self.0.stored(tenant, run_id)?;
        self.0.store.cancel_run(run_id)?;
        let active_runs = self.0.active_runs();
        let active = active_runs.get(run_id);
        active.inspect(|active| active.cancel.cancel());
        let is_there = active.is_some();
        drop(active_runs);
        if !is_there {
            self.activate(tenant, run_id);
        }
        self.state(tenant, run_id)
    }

    /// Starts or resumes a durable run in this process, unless it is active.
    fn activate(&self, tenant: &str, run_id: &str) {
        self.activate_with(run_id, self.tenant(tenant).map(|tenant| tenant.claim()));
    }

    /// Like [`Service::activate`], with an existing claim to a slot.
    fn activate_with(&self, run_id: &str, claim: Option<Claim>) {
        if self.is_draining() {
            return;
        }
        let log = self.0.hub.watch(run_id);
        log.started();
        let active = Arc::new(ActiveRun::new(log));
        {
            let mut active_runs = self.0.active_runs();
            if active_runs.contains_key(run_id) {
                return;
            }
            active_runs.insert(run_id.to_owned(), active.clone());
        }
        let (inner, run_id) = (self.0.clone(), run_id.to_owned());
        tokio::spawn(async move { super::attempt::activate(inner, run_id, active, claim).await });
    }

    /// Deletes runs that finished, and sessions that last changed, more than `keep_finished_hours` ago. Returns how
    /// many.
    ///
    /// # Errors
    /// If the store fails.
    pub fn sweep(&self) -> Result<u64, StoreError> {
        let hours = i64::try_from(self.0.config.service.keep_finished_hours).unwrap_or(i64::MAX);
        let gone = self.0.store.sweep(now_ms().saturating_sub(hours.saturating_mul(3_600_000)))?;
        self.count_stored()?;
        Ok(gone)
    }

    /// Counts the runs that each tenant has in the store.
    fn count_stored(&self) -> Result<(), StoreError> {
        let _counting = self.0.counting();
        for tenant in &self.0.tenants {
            tenant.stored.store(self.0.store.count_runs_of(&tenant.name)?, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the secret that the store has under this name. If there is none, stores `fresh` and returns it.
    ///
    /// # Errors
    /// If the store fails.
    pub fn secret(&self, name: &str, fresh: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.0.store.secret(name, fresh)
    }

    /// Returns the metrics for Prometheus.
    pub fn metrics(&self) -> String {
        let metrics = self.0.hub.metrics();
        set(&metrics.queued, self.0.admission.waiting());
        set(&metrics.held.slots, self.0.admission.taken());
        set(&metrics.held.durable_runs, self.active_count());
        set(&metrics.held.session_turns, self.0.sessions.count());
        set(&metrics.held.event_logs, self.0.hub.count());
        let runtime = tokio::runtime::Handle::try_current();
        set(&metrics.held.tasks, runtime.map_or(0, |runtime| runtime.metrics().num_alive_tasks()));
        metrics.text()
    }
}

/// Returns the digest of a request, which binds an idempotency key to it.
pub fn digest(request: &str) -> String {
    Sha256::digest(request.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::old_store::SqliteStore;

    /// Requests and durable runs end by the same time, however often the service is told to shut down.
    #[tokio::test]
    async fn the_time_to_drain_starts_once() {
        let config = Config::parse_with("isolation = \"in-process\"", "test.toml", &|_| None).unwrap();
        let service = Service::open(config, Box::new(SqliteStore::in_memory().unwrap())).await.unwrap();
        service.drain();
        let end = service.drained_at();
        tokio::time::sleep(Duration::from_millis(5)).await;
        service.drain();
        assert_eq!(service.drained_at(), end);
    }

    /// No run is stored while the service counts what is stored: the count would have it, and then one more.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_run_is_stored_while_all_are_counted() {
        let config = Config::parse_with("isolation = \"in-process\"", "test.toml", &|_| None).unwrap();
        let service = Service::open(config, Box::new(SqliteStore::in_memory().unwrap())).await.unwrap();
        let tenant = service.tenant(&service.config().anonymous().unwrap().name).unwrap();
        let stored = || service.0.store.count_runs_of(&tenant.name).unwrap();
        let counting = service.0.counting();
        let (submitting, of) = (service.clone(), tenant.clone());
        let submitted =
            tokio::task::spawn_blocking(move || submitting.submit(&of, r#"{"program": "1"}"#, None).map(drop));
        // Without the lock this is time enough.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(stored(), 0);
        drop(counting);
        submitted.await.unwrap().unwrap();
        assert_eq!((stored(), tenant.stored.load(Ordering::Relaxed)), (1, 1));
    }
}
