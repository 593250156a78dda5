//! The shared state of the service, and how it runs programs.

use super::admission::{Admission, Busy, InTurn, TenantState};
use super::events::EventHub;
use super::open_calls::OpenCalls;
use super::watch::Watchers;
use super::writer::Writer;
use crate::config::Config;
use crate::store::{Lease, Renewed, Store, StoreError, StoredRun};
use crate::tools::ServiceTools;
use lisp_runtime::outcome::Phase;
use lisp_runtime::request::ScriptedTool;
use lisp_runtime::{
    Budget, Cancel, Engine, Error, Input, Limits, LimitsRequest, Outcome, Problem, Reason, Request, Tools,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio_util::sync::CancellationToken;

/// Why a request is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Not found for this tenant.
    #[error("{0}")]
    NotFound(String),
    /// It is already done, or cannot be done now.
    #[error("{0}")]
    Conflict(String),
    /// The request is invalid.
    #[error("{message}")]
    Invalid {
        /// The invalid field.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// Only an approver may do this.
    #[error(
        "{0}: send the header Authorization: Bearer TOKEN with an approver's token; on the page, put it into the token field"
    )]
    NeedsApprover(&'static str),
    /// The request is larger than it may be.
    #[error("{0}")]
    TooLarge(String),
    /// The request is valid but cannot be carried out.
    #[error("{0}")]
    Unprocessable(String),
    /// No capacity at the moment.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The service is shutting down.
    #[error("the service is shutting down; try again later")]
    Draining,
    /// The service shuts down, and the run took longer than `drain_seconds`.
    #[error(
        "the service shuts down, and the run was cut off: it took longer than drain_seconds; calls that it has made took effect, and those in \
         progress may have"
    )]
    CutOff,
    /// An internal error.
    #[error("a fault of the service: {0}")]
    Fault(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The service: runs programs for tenants. Cheap to clone.
#[derive(Clone)]
pub struct Service(pub(crate) Arc<Inner>);

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("config", &self.0.config).finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    #[cfg(target_os = "linux")]
    pub(crate) sandbox: Option<lisp_sandbox::Sandbox>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: EventHub,
    pub(crate) watchers: Watchers,
    pub(crate) admission: Admission,
    pub(crate) tenants: Vec<Arc<TenantState>>,
    pub(crate) config: Config,
    /// The name of this process in the store.
    pub(crate) worker: String,
    /// Durable runs in progress in this process.
    pub(crate) active_runs: Mutex<HashMap<Arc<str>, Arc<ActiveRun>>>,
    /// What unfinished runs use of their tenants' budgets.
    pub(crate) run_budgets: Mutex<HashMap<String, Budget>>,
    /// Whether this process executes durable runs.
    pub(crate) is_worker: bool,
    /// Notified when a run may be claimed.
    pub(crate) queued: Notify,
    /// Held while runs are claimed.
    pub(crate) claiming: AsyncMutex<()>,
    /// The tenant whose runs are claimed first.
    pub(crate) next_tenant: AtomicUsize,
    /// Set once the service is shutting down.
    pub(crate) draining: CancellationToken,
    /// When `drain_seconds` end, once shutdown has started.
    pub(crate) drained_at: OnceLock<tokio::time::Instant>,
    /// The configured tools, for runs that are not futures.
    pub(crate) blocking_tools: Tools,
    /// The number of session turns in progress in this process.
    pub(crate) turns: AtomicU64,
    /// When the last run was submitted that came from a backup.
    pub(crate) restored_until: i64,
    pub(crate) tools: ServiceTools,
}

/// A durable run in progress in this process.
#[derive(Debug)]
pub(crate) struct ActiveRun {
    pub(crate) lease: Lease,
    pub(crate) cancel: Cancel,
    /// Whether the attempt ends by itself once it has replayed its journal: its run was cancelled before.
    pub(crate) ends_itself: AtomicBool,
    /// What replies go to while the run is running.
    attempt: Mutex<Option<Attempt>>,
    /// The number of replies that were passed on or are in the journal. Held while replies are passed on.
    replies_seen: AsyncMutex<u64>,
    /// Cancelled when the lease is lost.
    pub(crate) lost: CancellationToken,
}

/// An attempt in progress.
#[derive(Clone, Debug)]
struct Attempt {
    calls: Arc<OpenCalls>,
    writer: Arc<Writer>,
}

impl ActiveRun {
    pub(crate) fn new(lease: Lease) -> Self {
        ActiveRun {
            lease,
            cancel: Cancel::new(),
            ends_itself: AtomicBool::new(false),
            attempt: Mutex::default(),
            replies_seen: AsyncMutex::default(),
            lost: CancellationToken::new(),
        }
    }

    fn attempt(&self) -> MutexGuard<'_, Option<Attempt>> {
        self.attempt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on replies are passed to these open calls, after those that are known.
    pub(crate) async fn attach(&self, calls: &Arc<OpenCalls>, writer: &Arc<Writer>, known: u64) {
        *self.replies_seen.lock().await = known;
        *self.attempt() = Some(Attempt { calls: calls.clone(), writer: writer.clone() });
    }

    /// Stops passing replies on. The store has the calls that are still open. Returns the number of replies that were
    /// passed on.
    pub(crate) async fn detach(&self) -> u64 {
        let replies_seen = self.replies_seen.lock().await;
        if let Some(attempt) = self.attempt().take() {
            attempt.calls.end();
        }
        *replies_seen
    }

    /// Returns the tools of the calls in progress.
    pub(crate) fn tools_in_progress(&self) -> Vec<String> {
        self.attempt().as_ref().map_or_else(Vec::new, |attempt| attempt.calls.tools_in_progress())
    }

    /// Returns whether there are replies that were not passed on, or may be.
    pub(crate) fn may_have_missed(&self, replies: u64) -> bool {
        self.attempt().is_some() && self.replies_seen.try_lock().is_ok_and(|replies_seen| *replies_seen < replies)
    }

    /// Cancels the attempt, if it does not end by itself.
    pub(crate) fn cancel(&self) {
        if !self.ends_itself.load(Ordering::Relaxed) {
            self.cancel.cancel();
        }
    }

    /// Notes that the lease was renewed.
    pub(crate) fn renewed(&self, at: std::time::Instant) {
        if let Some(attempt) = &*self.attempt() {
            attempt.writer.renewed(at);
        }
    }

    /// Passes on the replies that the store has taken since.
    pub(crate) async fn fetch_replies(&self, store: &dyn Store, period: Duration) -> Result<(), StoreError> {
        let mut replies_seen = self.replies_seen.lock().await;
        let Some(attempt) = self.attempt().clone() else { return Ok(()) };
        let replies = store.replies(&self.lease.run_id, *replies_seen).await?;
        *replies_seen += replies.len() as u64;
        replies.iter().for_each(|reply| attempt.calls.reply(reply));
        if replies.is_empty() {
            let renewed = store.renew(std::slice::from_ref(&self.lease), period).await?;
            match renewed.first() {
                Some(Renewed::Held { cancelled: true, .. }) => self.cancel(),
                Some(Renewed::Held { .. }) => {}
                _ => self.lost.cancel(),
            }
        }
        Ok(())
    }
}

/// The session turns in progress: one more until this is dropped.
pub(crate) struct TurnInProgress(Arc<Inner>);

impl TurnInProgress {
    pub(crate) fn new(inner: &Arc<Inner>) -> Self {
        inner.turns.fetch_add(1, Ordering::Relaxed);
        TurnInProgress(inner.clone())
    }
}

impl Drop for TurnInProgress {
    fn drop(&mut self) {
        self.0.turns.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Inner {
    pub(crate) fn active_runs(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<ActiveRun>>> {
        self.active_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn active(&self, run_id: &str) -> Option<Arc<ActiveRun>> {
        self.active_runs().get(run_id).cloned()
    }

    pub(crate) fn run_budgets(&self) -> MutexGuard<'_, HashMap<String, Budget>> {
        self.run_budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a tenant's budget for all attempts of one run.
    pub(crate) fn run_budget(&self, tenant: &TenantState, run_id: &str) -> Option<Budget> {
        let budget = tenant.budget.as_ref()?;
        Some(self.run_budgets().entry(run_id.to_owned()).or_insert_with(|| budget.for_one_run()).clone())
    }

    pub(crate) fn tenant(&self, name: &str) -> Option<Arc<TenantState>> {
        self.tenants.iter().find(|tenant| tenant.name == name).cloned()
    }

    /// Returns a number that grows with every use.
    pub(crate) fn next_tenant(&self) -> usize {
        self.next_tenant.fetch_add(1, Ordering::Relaxed)
    }

    /// How long leases last.
    pub(crate) fn lease_period(&self) -> Duration {
        Duration::from_secs(self.config.service.lease_seconds)
    }

    pub(crate) async fn stored(&self, tenant: &str, run_id: &str) -> Result<StoredRun, Refused> {
        Ok(self.stored_in_turn(tenant, run_id).await?.value)
    }

    /// Reads a run of a tenant, which keeps the turn.
    pub(crate) async fn stored_in_turn(&self, tenant: &str, run_id: &str) -> Result<InTurn<StoredRun>, Refused> {
        let (store, id) = (self.store.clone(), run_id.to_owned());
        let read = self.read(tenant, async move { store.run(&id).await }).await?;
        let of_tenant = |run: Option<StoredRun>| run.filter(|run| run.summary.tenant == tenant);
        let read = read.map(|run| of_tenant(run).ok_or_else(|| Refused::NotFound(format!("there is no run {run_id}"))));
        read.transpose()
    }

    /// Reads from the store when it is the tenant's turn.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        tenant: &str,
        read: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<InTurn<T>, Refused> {
        let read = match self.tenant(tenant) {
            Some(state) => state.read(read).await.map_err(|error| Refused::Fault(error.to_string()))?,
            None => InTurn { value: read.await, turn: None },
        };
        Ok(read.transpose()?)
    }

    /// Reads the tools of a request. Signatures and schemas are read on a thread that may block. Their size bounds the
    /// time of that, so it has no deadline: a run that resumes must not end because the machine is busy.
    pub(crate) async fn own_tools(&self, request: &Request<'_>) -> Result<Tools, Box<Problem>> {
        let is_read = |tool: &ScriptedTool| tool.signature.is_some() || tool.input.is_some() || tool.output.is_some();
        if !request.tools.values().any(is_read) {
            return request.own_tools(&self.engine);
        }
        let mut part = Request::default();
        (part.tools, part.limits) = (request.tools.clone(), LimitsRequest::all(&Limits::unlimited()));
        let engine = self.engine.clone();
        let read = tokio::task::spawn_blocking(move || part.own_tools(&engine)).await;
        read.unwrap_or_else(|error| {
            let error = Error::new(Reason::HostFault, format!("the tools of the request cannot be read: {error}"));
            Err(Box::new(Problem::new(error, Phase::Setup)))
        })
    }

    /// Returns the input of a request with its own tools, and the tenant's limits and budget.
    pub(crate) fn input<'a>(&self, tenant: &TenantState, request: &Request<'a>, own: Tools) -> Input<'a> {
        let mut input = request.input_with(own);
        let limits = self.engine.limits_for(&input).min(&tenant.ceiling);
        input = input.limits(LimitsRequest::all(&limits));
        if let Some(budget) = &tenant.budget {
            input = input.budget(budget);
        }
        input.tenant(&tenant.name)
    }

    /// Runs a program with the isolation of the service. A request for stronger isolation fails.
    pub(crate) async fn run_isolated(
        &self,
        tenant: &TenantState,
        request: &Request<'_>,
        source: &str,
        input: Input<'static>,
    ) -> Outcome {
        #[cfg(target_os = "linux")]
        if let Some(sandbox) = &self.sandbox {
            return match tenant.domain.then(|| sandbox.domain(&tenant.name)) {
                None => sandbox.eval_async(source, &input).await,
                Some(Ok(domain)) => domain.eval_async(source, &input).await,
                Some(Err(error)) => request.refused(&self.engine, &error.to_string()),
            };
        }
        if request.asks_for_process() {
            return request.refused(&self.engine, "this service runs programs in its own process (--isolation)");
        }
        self.engine.eval_async(source, input).await
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn sandbox(&self) -> Option<&lisp_sandbox::Sandbox> {
        self.sandbox.as_ref()
    }
}

pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
