//! The service without its doors: runs that somebody waits for, durable runs, and what others say of their calls.

use super::admission::{Admission, Claim, TenantState};
use super::desk::{Phase, Reply, WaitingCall};
use super::events::{EventHub, EventLog};
use super::metrics::set;
use super::parked::Parked;
use super::state::{Inner, Life, Refused, Service, now_ms};
use super::turns::Turns;
use crate::config::Config;
use crate::store::{Inserted, RequestKey, RunStatus, RunSummary, Store, StoreError, StoredReply, Which};
use crate::tools::ServiceTools;
use lisp_runtime::{Answer, Engine, Isolation, Limits, Request, Tools};
use prometheus_client::metrics::gauge::Gauge;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How soon somebody who waits for a run looks at it again, should nothing be told of it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Why a service cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The tools of the configuration.
    #[error(transparent)]
    Tools(#[from] crate::tools::ToolsError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine.
    #[error("{0}")]
    Engine(#[from] lisp_runtime::BuildError),
    /// The process layer.
    #[error("programs cannot run in processes of their own here: {0}; --isolation in-process does without")]
    Isolation(String),
    /// A bad setting.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
}

/// A run as a client sees it.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct RunState {
    /// Its name.
    pub run_id: String,
    /// How far it is.
    pub status: RunStatus,
    /// The calls that wait for somebody outside.
    pub calls: Vec<WaitingCall>,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<super::schemas::Answer>)]
    pub answer: Option<Box<RawValue>>,
    /// Why it cannot go on for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// When it was taken, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When it last changed.
    pub updated_ms: i64,
}

/// Runs of a tenant.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct RunList {
    /// The newest first, without their answers.
    pub(crate) runs: Vec<RunState>,
}

/// What came of a run that somebody waits for.
#[derive(Debug)]
pub enum Done {
    /// Its answer.
    Answer(String),
    /// It waits for somebody outside.
    Waiting(Box<RunState>),
}

/// A run that waits for somebody holds its process: a domain has one for each run that there is a place for.
#[cfg(target_os = "linux")]
fn domain_limits(config: &Config) -> lisp_sandbox::DomainLimits {
    let mut limits = lisp_sandbox::DomainLimits::default();
    limits.processes = config.service.concurrency;
    limits.domains = config.tenants.len().max(1);
    limits
}

impl Service {
    /// Connects the tools, opens the doors that programs run behind, and goes on with the runs of the store that are not done.
    ///
    /// # Errors
    /// What cannot be had.
    pub async fn open(config: Config, store: Box<dyn Store>) -> Result<Service, ServiceError> {
        config.check_tls()?;
        let tools = ServiceTools::connect(&config).await?;
        let hub = EventHub::default();
        let defaults = config.limits();
        let engine = Engine::builder()
            .limits(defaults)
            // The ceiling is the tenant's.
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
            blocking_tools.add(tool.as_ref().clone().blocking(move |call| runtime.block_on(call)))?;
        }
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
            lives: Mutex::default(),
            bills: Mutex::default(),
            parked: Parked::default(),
            troubles: Mutex::default(),
            draining: CancellationToken::new(),
            drained_at: OnceLock::new(),
            blocking_tools,
            sessions: Turns::default(),
            config,
            asks: tools.policy.asks(),
            tools,
        }));
        service.count_stored()?;
        service.refill_budgets();
        service.go_on()?;
        Ok(service)
    }

    /// Goes on with what an earlier process had under way.
    fn go_on(&self) -> Result<(), StoreError> {
        for RunSummary { run_id, tenant, status, cancelled, .. } in self.0.store.unfinished()? {
            // One that waits may have been answered, or cancelled, in the moment in which the process ended.
            if status != RunStatus::Waiting || cancelled || !self.0.store.replies(&run_id)?.is_empty() {
                self.live(&tenant, &run_id);
            }
        }
        Ok(())
    }

    /// Refills the budgets of tenants, each as often as it says.
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

    /// The engine that programs run on.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The tenant of a name.
    pub fn tenant(&self, name: &str) -> Option<Arc<TenantState>> {
        self.0.tenants.iter().find(|tenant| tenant.name == name).cloned()
    }

    /// Begins to end: nothing new begins, durable runs stop where they can.
    pub fn drain(&self) {
        self.drained_at();
        self.0.draining.cancel();
    }

    /// When the time is over that the configuration has for what goes on: it runs from the first call.
    fn drained_at(&self) -> tokio::time::Instant {
        let time = Duration::from_secs(self.0.config.service.drain_seconds);
        *self.0.drained_at.get_or_init(|| tokio::time::Instant::now() + time)
    }

    /// Is it about to end?
    pub fn is_draining(&self) -> bool {
        self.0.draining.is_cancelled()
    }

    /// Does it take requests?
    ///
    /// # Errors
    /// It is about to end, its store cannot be written, or another process has taken it over.
    pub fn is_ready(&self) -> Result<(), Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        Ok(self.0.store.check_writable()?)
    }

    /// Does a durable run go on in this process?
    pub(crate) fn lives(&self, run_id: &str) -> bool {
        self.0.life(run_id).is_some()
    }

    /// Returns when the service is about to end, and a run does not go on in it any more.
    pub(crate) async fn stopped(&self, run_id: &str) {
        self.0.draining.cancelled().await;
        while self.lives(run_id) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The figure of the connections that are open.
    pub(crate) fn connections(&self) -> Gauge {
        self.0.hub.metrics().connections.clone()
    }

    /// How many durable runs go on in this process.
    pub fn living(&self) -> usize {
        self.0.lives().len()
    }

    /// The events of a run that goes on, or that somebody watches.
    pub fn events(&self, run_id: &str) -> Option<Arc<EventLog>> {
        self.0.hub.log(run_id)
    }

    /// The events of a run, from now on, for as long as they are held.
    pub fn watch(&self, run_id: &str) -> Arc<EventLog> {
        self.0.hub.watch(run_id)
    }

    /// Counts a request.
    pub(crate) fn count_request(&self, route: &str, status: u16, took: Duration) {
        self.0.hub.metrics().answered(route, status, took);
    }

    /// The card for models, with the tools that a tenant sees.
    pub fn prompt(&self, tenant: &TenantState) -> String {
        self.0.engine.prompt_for(Some(&tenant.name))
    }

    /// Returns when no durable run goes on here any more, after at most the time that the configuration has for that from the moment of
    /// [`Service::drain`], and when the
    /// MCP servers that the service has started have ended. The store's file is whole then.
    pub async fn ended(&self) {
        let until = self.drained_at();
        while self.living() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.0.tools.close().await;
        let inner = self.0.clone();
        match tokio::task::spawn_blocking(move || inner.store.settle()).await {
            // Who has taken the file over writes it back.
            Ok(Ok(()) | Err(StoreError::Fenced)) | Err(_) => {}
            Ok(Err(error)) => tracing::error!(%error, "the store's log is not written back"),
        }
    }

    /// Does a request need a journal: somebody outside may have to answer a call of it?
    pub fn needs_journal(&self, request: &Request<'_>) -> bool {
        let calls_tools = || {
            std::iter::once(&*request.program)
                .chain(request.setup.iter().map(String::as_str))
                .any(|text| text.contains("tool/"))
        };
        request.tools.values().any(|tool| tool.client) || (self.0.asks && calls_tools())
    }

    /// Runs a request that somebody waits for, and keeps nothing of it. Dropping the future cancels the run.
    ///
    /// # Errors
    /// There is no place for it.
    pub async fn run(&self, tenant: &TenantState, request: &Request<'_>, run_id: &str) -> Result<Answer, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        tenant.check_rate()?;
        let _place = self.0.admission.place(tenant).await?;
        let outcome = match self.0.input(tenant, request) {
            Ok(input) => {
                let input = input.run_id(run_id).into_owned();
                self.0.at_door(tenant, request, &request.program, input).await
            }
            Err(problem) => request.failed(&self.0.engine, problem),
        };
        let mut answer = request.answer(&outcome);
        run_id.clone_into(&mut answer.run_id);
        Ok(answer)
    }

    /// Takes a durable run: from here on it goes on, whatever becomes of this process.
    ///
    /// # Errors
    /// It is not taken.
    pub fn submit(
        &self,
        tenant: &TenantState,
        request: &str,
        key: Option<RequestKey<'_>>,
    ) -> Result<RunState, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        // What was taken before needs no room.
        if let Some(key) = key
            && let Some(known) = self.0.store.known_request(&tenant.name, key)?
        {
            return self.state_of_known(tenant, known);
        }
        tenant.check_rate()?;
        let claim = tenant.new_claim()?;
        let most = self.0.config.service.max_runs_stored;
        if tenant.stored.load(Ordering::Relaxed) >= most {
            return Err(Refused::Unprocessable(format!(
                "the store has {most} runs of the tenant; finished ones go after keep_finished_hours, or raise max_runs_stored"
            )));
        }
        let run_id = uuid::Uuid::now_v7().to_string();
        match self.0.store.insert_run(&run_id, &tenant.name, request, key)? {
            Inserted::New => {
                tenant.stored.fetch_add(1, Ordering::Relaxed);
                self.live_with(&run_id, Some(claim));
                self.state(&tenant.name, &run_id)
            }
            known => self.state_of_known(tenant, known),
        }
    }

    /// How far the run is that an idempotency key names.
    fn state_of_known(&self, tenant: &TenantState, known: Inserted) -> Result<RunState, Refused> {
        match known {
            Inserted::New => Err(Refused::Fault("a run that was taken is not there".to_owned())),
            Inserted::Known(run_id) => self.state(&tenant.name, &run_id),
            Inserted::OtherRequest => Err(Refused::Unprocessable(
                "the Idempotency-Key was used for another request; take a new one".to_owned(),
            )),
        }
    }

    /// Takes a durable run and waits for it: until it has its answer, or waits for somebody outside.
    ///
    /// # Errors
    /// It is not taken.
    pub async fn submit_and_wait(
        &self,
        tenant: &TenantState,
        request: &str,
        key: Option<RequestKey<'_>>,
    ) -> Result<Done, Refused> {
        let run_id = self.submit(tenant, request, key)?.run_id;
        self.wait(&tenant.name, &run_id).await
    }

    /// Waits until a run has its answer, or waits for somebody outside.
    ///
    /// # Errors
    /// There is no such run.
    pub async fn wait(&self, tenant: &str, run_id: &str) -> Result<Done, Refused> {
        let log = self.watch(run_id);
        let mut changes = log.changes();
        let mut seen = 0;
        let waited = loop {
            let state = self.state(tenant, run_id)?;
            if let Some(answer) = state.answer {
                break Done::Answer(answer.get().to_owned());
            }
            let is_asked = self.0.life(run_id).and_then(|life| life.desk()).is_none_or(|desk| desk.is_asked());
            let waits = !state.calls.is_empty() && is_asked;
            if waits || state.trouble.is_some() || (self.is_draining() && !self.lives(run_id)) {
                break Done::Waiting(Box::new(state));
            }
            // Prints and calls of tools change nothing.
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

    /// How far a run is.
    ///
    /// # Errors
    /// There is none of this name for the tenant.
    pub fn state(&self, tenant: &str, run_id: &str) -> Result<RunState, Refused> {
        let mut stored = self.0.stored(tenant, run_id)?;
        let answer = stored.answer.take().and_then(|answer| RawValue::from_string(answer).ok());
        Ok(RunState { answer, ..self.state_of(stored.into()) })
    }

    /// How far a run is, without its answer.
    fn state_of(&self, run: RunSummary) -> RunState {
        let (mut calls, mut trouble) = (Vec::new(), None);
        if run.status != RunStatus::Done {
            trouble = self.0.troubles().get(&run.run_id).cloned();
            match self.0.open_calls(&run) {
                Ok(open) => calls = open,
                // What is wrong with one run is no trouble of the others.
                Err(error) => drop(trouble.get_or_insert_with(|| format!("its journal cannot be read: {error}"))),
            }
        }
        let status = match (run.status, calls.is_empty()) {
            (RunStatus::Done, _) => RunStatus::Done,
            // A run that waits for its caller and has not stopped yet waits all the same.
            (_, false) => RunStatus::Waiting,
            // All that it waited for is there: it is about to go on.
            (RunStatus::Waiting, true) => RunStatus::Queued,
            (status, true) => status,
        };
        let RunSummary { run_id, created_ms, updated_ms, .. } = run;
        RunState { run_id, status, calls, answer: None, trouble, created_ms, updated_ms }
    }

    /// The newest runs of a tenant, or those of them that are so far, without their answers. It may take its time: not for an
    /// async thread.
    ///
    /// # Errors
    /// The store fails.
    pub fn runs(&self, tenant: &str, status: Option<RunStatus>, most: usize) -> Result<Vec<RunState>, Refused> {
        /// Runs that are looked at together.
        const PAGE: usize = 256;
        let which = match status {
            None => Which::All,
            Some(RunStatus::Done) => Which::Done,
            Some(_) => Which::Unfinished,
        };
        let (mut runs, mut last): (Vec<RunState>, Option<RunSummary>) = (Vec::new(), None);
        while runs.len() < most {
            let page = self.0.store.runs(tenant, which, last.as_ref(), PAGE.min(most))?;
            let Some(end) = page.last() else { break };
            last = Some(end.clone());
            let states = page.into_iter().map(|run| self.state_of(run));
            // How far a run is its calls say, too: not the store alone.
            runs.extend(states.filter(|state| status.is_none_or(|status| state.status == status)));
        }
        runs.truncate(most);
        Ok(runs)
    }

    /// Somebody outside answers a call.
    ///
    /// # Errors
    /// There is no such call, it was answered before, or the reply does not fit it.
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
        self.0.parked.goes_on(run_id);
        if !is_first {
            return Err(Refused::Conflict(format!("the call {call} was answered before")));
        }
        self.tell((tenant, run_id), call, &open.phase, reply);
        self.state(tenant, run_id)
    }

    /// Tells a run that goes on, or has it go on.
    fn tell(&self, (tenant, run_id): (&str, &str), call: &str, phase: &Phase, reply: &Reply) {
        // A life that ends looks under this lock whether there is news.
        let lives = self.0.lives();
        if let Some(life) = lives.get(run_id) {
            life.reply(call, phase, reply.clone());
            return;
        }
        drop(lives);
        self.live(tenant, run_id);
    }

    /// Cancels a run. One that is done stays as it is.
    ///
    /// # Errors
    /// There is no such run.
    pub fn cancel(&self, tenant: &str, run_id: &str) -> Result<RunState, Refused> {
        self.0.stored(tenant, run_id)?;
        self.0.store.cancel_run(run_id)?;
        let lives = self.0.lives();
        let life = lives.get(run_id);
        life.inspect(|life| life.cancel.cancel());
        let is_there = life.is_some();
        drop(lives);
        if !is_there {
            self.live(tenant, run_id);
        }
        self.state(tenant, run_id)
    }

    /// Has a durable run of a tenant go on in this process, unless it does.
    fn live(&self, tenant: &str, run_id: &str) {
        self.live_with(run_id, self.tenant(tenant).map(|tenant| tenant.claim()));
    }

    /// The same, with its claim to a place.
    fn live_with(&self, run_id: &str, claim: Option<Claim>) {
        if self.is_draining() {
            return;
        }
        let log = self.0.hub.watch(run_id);
        log.started();
        let life = Arc::new(Life::new(log));
        {
            let mut lives = self.0.lives();
            if lives.contains_key(run_id) {
                return;
            }
            lives.insert(run_id.to_owned(), life.clone());
        }
        let (inner, run_id) = (self.0.clone(), run_id.to_owned());
        tokio::spawn(async move { super::life::live(inner, run_id, life, claim).await });
    }

    /// Forgets what has been done for longer than the configuration says. Returns how many runs and sessions went.
    ///
    /// # Errors
    /// The store fails.
    pub fn sweep(&self) -> Result<u64, StoreError> {
        let hours = i64::try_from(self.0.config.service.keep_finished_hours).unwrap_or(i64::MAX);
        let gone = self.0.store.sweep(now_ms().saturating_sub(hours.saturating_mul(3_600_000)))?;
        self.count_stored()?;
        Ok(gone)
    }

    /// Counts the runs that each tenant has in the store.
    fn count_stored(&self) -> Result<(), StoreError> {
        for tenant in &self.0.tenants {
            tenant.stored.store(self.0.store.count_runs_of(&tenant.name)?, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The secret of a name that the store keeps, or this one, from now on.
    ///
    /// # Errors
    /// The store fails.
    pub fn secret(&self, name: &str, fresh: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.0.store.secret(name, fresh)
    }

    /// The figures, for Prometheus.
    pub fn metrics(&self) -> String {
        let metrics = self.0.hub.metrics();
        set(&metrics.queued, self.0.admission.waiting());
        set(&metrics.held.slots, self.0.admission.taken());
        set(&metrics.held.durable_runs, self.living());
        set(&metrics.held.session_turns, self.0.sessions.count());
        set(&metrics.held.event_logs, self.0.hub.count());
        let runtime = tokio::runtime::Handle::try_current();
        set(&metrics.held.tasks, runtime.map_or(0, |runtime| runtime.metrics().num_alive_tasks()));
        metrics.text()
    }
}

/// The digest of a request, which an idempotency key is bound to.
pub fn digest(request: &str) -> String {
    Sha256::digest(request.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
