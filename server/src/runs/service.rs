//! The service, independent of HTTP and MCP: plain runs, durable runs, and replies to their calls.

use super::admission::{Admission, Slot, TenantState};
use super::events::{ATTEMPT, EventHub, EventLog};
use super::metrics::set;
use super::reader::EventReader;
use super::state::{Inner, Refused, Service, now_ms};
use super::watch::Watchers;
use crate::config::Config;
use crate::store::{Query, RunStatus, Store, StoreError, Sweep};
use crate::tools::ServiceTools;
use lisp_runtime::request::{CheckReport, Isolation, ScriptedTool};
use lisp_runtime::tools::{BoxedCall, Effect};
use lisp_runtime::{Answer, Engine, Input, Keys, Limits, Outcome, Problem, Request, ToolError, Tools};
use prometheus_client::metrics::gauge::Gauge;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio_util::sync::CancellationToken;

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

/// What a prompt should have besides the tools of the service: the parts of a request that a model has to know.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a JSON object")]
pub struct PromptRequest {
    /// The tools of the request.
    pub tools: BTreeMap<String, ScriptedTool>,
    /// What the keys of JSON objects become.
    pub json_keys: Option<Keys>,
}

/// How long a shutdown waits for turns that were cut off.
const ENDS_OF_TURNS: Duration = Duration::from_secs(1);

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

/// Returns the tools for runs that are not futures.
fn blocking(tools: &Tools) -> Result<Tools, lisp_runtime::BuildError> {
    let runtime = tokio::runtime::Handle::current();
    let mut all = Tools::new();
    for tool in tools.all() {
        let runtime = runtime.clone();
        all.add(tool.as_ref().clone().blocking(move |call| runtime.block_on(polled(call))))?;
    }
    Ok(all)
}

/// Limits of domains: one process per slot, because a run that waits keeps its process.
#[cfg(target_os = "linux")]
fn domain_limits(config: &Config) -> lisp_sandbox::DomainLimits {
    let mut limits = lisp_sandbox::DomainLimits::default();
    limits.processes = config.service.concurrency;
    limits.domains = config.tenants.len().max(1);
    limits
}

/// Logs what is valid in a configuration, and probably a mistake.
fn warn_of(config: &Config, tools: &Tools) {
    for tenant in &config.tenants {
        let (name, all) = (&*tenant.name, config.service.concurrency);
        for pattern in tenant.tools.iter().flatten() {
            if !tools.all().any(|tool| pattern.fits(tool.given_name())) {
                tracing::warn!(tenant = name, tool = %pattern, "no tool of the service has this name");
            }
        }
        if let Some(concurrency) = tenant.concurrency.filter(|concurrency| *concurrency > all) {
            tracing::warn!(tenant = name, concurrency, all, "a tenant has more slots than the service");
        }
    }
}

/// Returns the tools as durable runs call them: a call is made when the journal of its run has it.
fn journaled(tools: &Tools) -> Result<Tools, lisp_runtime::BuildError> {
    let mut all = Tools::new();
    for tool in tools.all() {
        let writes = tool.effect() != Effect::Read && !tool.is_idempotent();
        all.add(tool.as_ref().clone().before_call(move |call| {
            // That of this attempt, and of no other.
            let log = ATTEMPT.try_with(Arc::clone).ok();
            let ends = log.as_ref().is_some_and(|log| log.ends_here());
            let restored = log.as_ref().and_then(|log| log.restored.get()).filter(|_| writes && !ends);
            let is_held_back = restored.is_some_and(|restored| restored.holds(call.place()));
            let place = call.place().to_string();
            async move {
                match log.as_ref().and_then(|log| log.writer()) {
                    // The attempt is about to end, and drops this call.
                    Some(_) if is_held_back || ends => std::future::pending().await,
                    Some(writer) if writer.ready_to_call(place).await.is_err() => {
                        // The attempt is over, and drops this call.
                        std::future::pending().await
                    }
                    _ => Ok(()),
                }
            }
        }))?;
    }
    Ok(all)
}

impl Service {
    /// Connects the tools, sets up isolation, and starts the worker, which runs the durable runs of the store.
    ///
    /// # Errors
    /// See [`ServiceError`].
    pub async fn open(config: Config, store: Arc<dyn Store>) -> Result<Service, ServiceError> {
        Service::open_as(config, store, true).await
    }

    /// Opens a service without a worker: durable runs wait in the store for the workers of other processes.
    ///
    /// # Errors
    /// See [`ServiceError`].
    pub async fn open_front(config: Config, store: Arc<dyn Store>) -> Result<Service, ServiceError> {
        Service::open_as(config, store, false).await
    }

    async fn open_as(config: Config, store: Arc<dyn Store>, is_worker: bool) -> Result<Service, ServiceError> {
        config.check_tls()?;
        let restored_until = store.restored_until(config.restored).await?;
        if config.restored {
            let runs: u64 = store.unfinished().await?.iter().map(|(_, number)| number).sum();
            tracing::warn!(
                runs,
                "the store was restored from a backup: its runs that are not done ask before they make a call of a tool that writes"
            );
        }
        let tools = ServiceTools::connect(&config).await?;
        let hub = EventHub::default();
        let defaults = config.limits();
        let engine = Engine::builder()
            .limits(defaults)
            // Each tenant has its own ceiling.
            .ceiling(Limits::unlimited())
            .json_keys(config.json_keys)
            .check(config.check)
            .grant_all(journaled(&tools.tools)?)
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
        warn_of(&config, &tools.tools);
        let all = config.tenants.iter().chain(config.anonymous());
        let tenants = all.map(|tenant| {
            let asking = tools.tools.all().filter(|tool| tools.policy.asks_for(tool) && tenant.sees(tool.given_name()));
            Arc::new(TenantState::new(&config, tenant, asking.map(|tool| tool.name().to_owned()).collect()))
        });
        let tenants = tenants.collect();
        let limits = &config.service;
        let service = Service(Arc::new(Inner {
            engine,
            #[cfg(target_os = "linux")]
            sandbox,
            store,
            hub,
            watchers: Watchers::default(),
            admission: Admission::new(limits.concurrency, limits.queue, Duration::from_secs(limits.queue_seconds)),
            tenants,
            worker: format!("{}-{:08x}", std::process::id(), uuid::Uuid::new_v4().as_fields().0),
            active_runs: Mutex::default(),
            run_budgets: Mutex::default(),
            is_worker,
            queued: Notify::new(),
            claiming: AsyncMutex::default(),
            next_tenant: AtomicUsize::new(0),
            draining: CancellationToken::new(),
            drained_at: OnceLock::new(),
            blocking_tools: blocking(&tools.tools)?,
            turns: AtomicU64::new(0),
            config,
            restored_until,
            tools,
        }));
        service.refill_budgets();
        service.start(is_worker);
        Ok(service)
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
        if !self.is_draining() {
            let (active, drain_seconds) = (self.active_count(), self.0.config.service.drain_seconds);
            tracing::info!(active, drain_seconds, "the service shuts down; durable runs make no more calls");
        }
        self.0.draining.cancel();
    }

    /// Waits for a slot, for a request whose caller waits.
    ///
    /// # Errors
    /// Those of [`Admission::slot`], or if the service shuts down and `drain_seconds` are over: the request has not begun.
    pub(super) async fn slot(&self, tenant: &TenantState) -> Result<Slot, Refused> {
        tokio::select! {
            slot = self.0.admission.slot(tenant) => Ok(slot?),
            () = self.drained() => Err(Refused::Draining),
        }
    }

    /// Returns once the service shuts down and `drain_seconds` are over.
    pub(crate) async fn drained(&self) {
        self.0.draining.cancelled().await;
        tokio::time::sleep_until(self.drained_at()).await;
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
    pub async fn is_ready(&self) -> Result<(), Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        Ok(self.0.store.check_writable().await?)
    }

    /// Returns whether an attempt of a durable run is in progress in this process.
    pub fn is_active(&self, run_id: &str) -> bool {
        self.0.active(run_id).is_some()
    }

    /// Returns when the service is shutting down and the run is no longer active in it, or `drain_seconds` are over.
    pub(crate) async fn stopped(&self, run_id: &str) {
        self.0.draining.cancelled().await;
        let until = self.drained_at();
        while self.is_active(run_id) && tokio::time::Instant::now() < until {
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

    /// Creates the log of a run that is not durable. Its events are kept while the log is.
    pub(crate) fn log_in_memory(&self, run_id: &str) -> Arc<EventLog> {
        self.0.hub.in_memory(run_id)
    }

    /// Returns a reader of the events of a run that is not durable, which is about to start in this process.
    pub fn events_of_new_run(&self, tenant: &str, run_id: &str) -> EventReader {
        EventReader::of_log(self, tenant, &self.log_in_memory(run_id))
    }

    /// Returns a reader of the events of a tenant's durable run, after the first `read` ones.
    pub fn events(&self, tenant: &str, run_id: &str, read: u64) -> EventReader {
        EventReader::of_stored(self, tenant, run_id, read)
    }

    /// Counts a request.
    pub(crate) fn count_request(&self, route: &str, status: u16, took: Duration) {
        self.0.hub.metrics().answered(route, status, took);
    }

    /// Returns the prompt for models, with the tools that the tenant sees.
    pub fn prompt(&self, tenant: &TenantState) -> String {
        self.0.engine.prompt_for(Some(&tenant.name))
    }

    /// Returns the prompt for models, with the tools that the tenant sees and those of a request. Reading them takes a
    /// slot and counts as a run for the tenant's rate.
    ///
    /// # Errors
    /// If there is no slot, or a tool is invalid.
    pub async fn prompt_with(&self, tenant: &TenantState, asked: PromptRequest) -> Result<String, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        tenant.check_rate()?;
        let _slot = self.slot(tenant).await?;
        let mut request = Request::default();
        (request.tools, request.json_keys) = (asked.tools, asked.json_keys);
        let invalid =
            |problem: Box<Problem>| Refused::Invalid { field: "tools".to_owned(), message: problem.to_string() };
        let own = self.0.own_tools(&request).await.map_err(invalid)?;
        let input = self.0.input(tenant, &request, own);
        Ok(self.0.engine.prompt_for_run(&input))
    }

    /// Waits until no durable run is active, for at most `drain_seconds` after [`Service::drain`]. Then ends the MCP
    /// servers that the service started, and closes the store.
    pub async fn ended(&self) {
        self.ended_without_closing().await;
        if let Err(error) = self.0.store.close().await {
            tracing::error!(%error, "the store is not closed");
        }
    }

    /// Like [`Service::ended`], for a store that others use too.
    pub async fn ended_without_closing(&self) {
        let until = self.drained_at();
        // Runs that are being claimed are active after that.
        let _ = tokio::time::timeout_at(until, self.0.claiming.lock()).await;
        while self.active_count() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.tell_end();
        // Turns that were cut off give their sessions back. Otherwise another process waits for the ends of their leases.
        let until = tokio::time::Instant::now() + ENDS_OF_TURNS;
        while self.0.turns.load(Ordering::Relaxed) > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.0.tools.close().await;
    }

    /// Logs the end of the shutdown, with the runs that it cuts off.
    fn tell_end(&self) {
        let drain_seconds = self.0.config.service.drain_seconds;
        let active: Vec<_> = self.0.active_runs().values().cloned().collect();
        for run in &active {
            tracing::warn!(
                run_id = &*run.lease.run_id,
                calls = run.tools_in_progress().join(", "),
                drain_seconds,
                "a run is cut off: its calls in progress took longer than drain_seconds"
            );
        }
        tracing::info!(cut_off = active.len(), "the service has shut down");
    }

    /// Runs a request and returns its answer. Nothing is stored. Dropping the future cancels the run.
    ///
    /// # Errors
    /// If the service is shutting down, the tenant's rate is exceeded, or there is no slot.
    pub async fn run(&self, tenant: &TenantState, request: &Request<'_>, run_id: &str) -> Result<Answer, Refused> {
        Ok(self.run_in_slot(tenant, request, run_id).await?.0)
    }

    /// Runs a request. Its answer has the slot of the run until there is room for it.
    pub(crate) async fn run_in_slot(
        &self,
        tenant: &TenantState,
        request: &Request<'_>,
        run_id: &str,
    ) -> Result<(Answer, Slot), Refused> {
        let (outcome, slot) = self.outcome(tenant, request, |input| input.run_id(run_id)).await?;
        let mut answer = request.answer(&outcome);
        run_id.clone_into(&mut answer.run_id);
        Ok((answer, slot))
    }

    /// Checks the program of a request against its data and tools, where the service runs programs. Nothing of the program
    /// runs, no tool is called, and nothing is stored. A check takes a slot, and counts as a run for the rate and the budget
    /// of the tenant. Dropping the future cancels it.
    ///
    /// # Errors
    /// Those of [`Service::run`].
    pub async fn check(&self, tenant: &TenantState, request: &Request<'_>) -> Result<CheckReport, Refused> {
        Ok(self.check_in_slot(tenant, request).await?.0)
    }

    /// Checks a program. Its report has the slot of the check until there is room for it.
    pub(crate) async fn check_in_slot(
        &self,
        tenant: &TenantState,
        request: &Request<'_>,
    ) -> Result<(CheckReport, Slot), Refused> {
        let (outcome, slot) = self.outcome(tenant, request, |input| input.check_only()).await?;
        Ok((CheckReport::new(request.id.clone(), outcome.problem(), outcome.warnings()), slot))
    }

    /// Runs a request in a slot of its tenant.
    async fn outcome(
        &self,
        tenant: &TenantState,
        request: &Request<'_>,
        with: impl FnOnce(Input<'_>) -> Input<'_>,
    ) -> Result<(Outcome, Slot), Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        tenant.check_rate()?;
        let slot = self.slot(tenant).await?;
        let outcome = match self.0.own_tools(request).await {
            Ok(own) => {
                let input = with(self.0.input(tenant, request, own)).into_owned();
                tokio::select! {
                    outcome = self.0.run_isolated(tenant, request, &request.program, input) => outcome,
                    () = self.drained() => return Err(Refused::CutOff),
                }
            }
            Err(problem) => request.failed(&self.0.engine, problem),
        };
        Ok((outcome, slot))
    }

    /// Deletes runs that finished more than `keep_finished_hours` ago, and sessions that last changed more than
    /// `keep_sessions_hours` ago. Cancels runs older than `max_run_hours`. Returns how many were deleted.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        let limits = &self.0.config.service;
        let before = |hours: u64| {
            let hours = i64::try_from(hours).unwrap_or(i64::MAX);
            now_ms().saturating_sub(hours.saturating_mul(3_600_000))
        };
        let removed = self.0.store.sweep(Sweep {
            finished_before_ms: before(limits.keep_finished_hours),
            sessions_before_ms: before(limits.keep_sessions_hours),
            submitted_before_ms: Some(limits.max_run_hours).filter(|hours| *hours > 0).map(before),
        });
        let removed = removed.await?;
        self.forget_budgets().await?;
        Ok(removed)
    }

    /// Forgets what runs used of budgets that have ended elsewhere.
    async fn forget_budgets(&self) -> Result<(), StoreError> {
        let runs: Vec<String> = self.0.run_budgets().keys().cloned().collect();
        for run_id in runs {
            let run = self.0.store.run(&run_id).await?;
            if run.is_none_or(|run| run.summary.status == RunStatus::Done) {
                self.0.run_budgets().remove(&run_id);
            }
        }
        Ok(())
    }

    /// Returns the secret that the store has under this name. If there is none, stores `fresh` and returns it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        self.0.store.secret(name, fresh).await
    }

    /// Returns the metrics for Prometheus.
    pub async fn metrics(&self) -> String {
        /// The maximum number of runs that are counted.
        const MAX: usize = 1_000;
        let metrics = self.0.hub.metrics();
        let stuck = Query { tenant: None, status: Some(RunStatus::Stuck), after: None, max: MAX };
        // While the store is not available, the figure stays.
        if let Ok(page) = self.0.store.list(&stuck).await {
            set(&metrics.resources.stuck_runs, page.runs.len());
        }
        set(&metrics.queued, self.0.admission.waiting());
        set(&metrics.resources.slots, self.0.admission.taken());
        set(&metrics.resources.all_slots, self.config().service.concurrency);
        set(&metrics.resources.durable_runs, self.active_count());
        set(
            &metrics.resources.session_turns,
            usize::try_from(self.0.turns.load(Ordering::Relaxed)).unwrap_or(usize::MAX),
        );
        set(&metrics.resources.watched_runs, self.0.watchers.count());
        set(&metrics.resources.event_logs, self.0.hub.count());
        let runtime = tokio::runtime::Handle::try_current();
        set(&metrics.resources.tasks, runtime.map_or(0, |runtime| runtime.metrics().num_alive_tasks()));
        metrics.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    /// Requests and durable runs end by the same time, however often the service is told to shut down.
    #[tokio::test]
    async fn the_time_to_drain_starts_once() {
        let config = Config::parse_with("isolation = \"in-process\"", "test.toml", &|_| None).unwrap();
        let service = Service::open(config, Arc::new(MemoryStore::new())).await.unwrap();
        service.drain();
        let end = service.drained_at();
        tokio::time::sleep(Duration::from_millis(5)).await;
        service.drain();
        assert_eq!(service.drained_at(), end);
    }
}
