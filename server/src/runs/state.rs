//! The shared state of the service, and how it runs programs.

use super::admission::{Admission, Busy, TenantState};
use super::events::{EventHub, EventLog};
use super::open_calls::{OpenCalls, Phase, Reply, WaitingCall};
use super::stored_calls::stored_calls;
use super::suspended::Suspended;
use super::turns::Turns;
use crate::config::Config;
use crate::old_store::{RunStatus, RunSummary, Store, StoreError, StoredRun};
use crate::tools::ServiceTools;
use lisp_runtime::outcome::Place;
use lisp_runtime::{Budget, Cancel, Engine, Input, LimitsRequest, Outcome, Problem, Request, Tools};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    /// The request is valid but cannot be carried out.
    #[error("{0}")]
    Unprocessable(String),
    /// No capacity at the moment.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The service is shutting down.
    #[error("the service is shutting down; try again later")]
    Draining,
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
    pub(crate) store: Box<dyn Store>,
    pub(crate) hub: EventHub,
    pub(crate) admission: Admission,
    pub(crate) tenants: Vec<Arc<TenantState>>,
    pub(crate) config: Config,
    /// Active durable runs.
    pub(crate) active_runs: Mutex<HashMap<String, Arc<ActiveRun>>>,
    /// What unfinished runs use of their tenants' budgets.
    pub(crate) run_budgets: Mutex<HashMap<String, Budget>>,
    /// The open calls of suspended runs.
    pub(crate) suspended: Suspended,
    /// Why runs are stuck, as far as this process has tried them.
    pub(crate) stuck_runs: Mutex<HashMap<String, String>>,
    /// See [`Inner::counting`].
    pub(crate) counting: Mutex<()>,
    /// Set once the service is shutting down.
    pub(crate) draining: CancellationToken,
    /// When `drain_seconds` end, once shutdown has started.
    pub(crate) drained_at: OnceLock<tokio::time::Instant>,
    /// The configured tools, for runs that are not futures.
    pub(crate) blocking_tools: Tools,
    pub(crate) sessions: Turns,
    /// The names of the configured tools whose calls need approval, as programs write them.
    pub(crate) asking: BTreeSet<String>,
    pub(crate) tools: ServiceTools,
}

/// An active durable run.
#[derive(Debug)]
pub(crate) struct ActiveRun {
    pub(crate) cancel: Cancel,
    pub(crate) log: Arc<EventLog>,
    calls: Mutex<AttachedCalls>,
}

/// The open calls of an active run.
#[derive(Debug, Default)]
struct AttachedCalls {
    /// `None` while they are in the store only: before the run continues and after it has stopped.
    calls: Option<Arc<OpenCalls>>,
    /// Whether there are replies that were not passed to the run.
    has_news: bool,
}

impl ActiveRun {
    pub(crate) fn new(log: Arc<EventLog>) -> Self {
        ActiveRun { cancel: Cancel::new(), calls: Mutex::default(), log }
    }

    fn lock(&self) -> MutexGuard<'_, AttachedCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the open calls while the run is running.
    pub(crate) fn calls(&self) -> Option<Arc<OpenCalls>> {
        self.lock().calls.clone()
    }

    /// Marks all replies so far as received: they are about to be read from the store.
    pub(crate) fn hear(&self) {
        self.lock().has_news = false;
    }

    /// From here on replies are passed to these open calls. Earlier ones are in the store.
    pub(crate) fn attach(&self, calls: &Arc<OpenCalls>) {
        *self.lock() = AttachedCalls { calls: Some(calls.clone()), has_news: false };
    }

    /// Stops passing replies on. The store has the calls that are still open.
    pub(crate) fn detach(&self) {
        let mut attached = self.lock();
        if let Some(calls) = attached.calls.take() {
            attached.has_news |= calls.has_news();
        }
    }

    /// Passes on a reply that the store already has.
    pub(crate) fn reply(&self, call: &str, phase: &Phase, reply: Reply) {
        let mut attached = self.lock();
        match &attached.calls {
            Some(calls) => calls.reply(call, phase, reply),
            None => attached.has_news = true,
        }
    }

    /// Returns whether there are replies that the run has not received.
    pub(crate) fn has_news(&self) -> bool {
        let attached = self.lock();
        attached.has_news || attached.calls.as_ref().is_some_and(|calls| calls.has_news())
    }
}

impl Inner {
    pub(crate) fn active_runs(&self) -> MutexGuard<'_, HashMap<String, Arc<ActiveRun>>> {
        self.active_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn active(&self, run_id: &str) -> Option<Arc<ActiveRun>> {
        self.active_runs().get(run_id).cloned()
    }

    /// Held while a run is stored and counted, and while all are counted: otherwise a run may count twice.
    pub(crate) fn counting(&self) -> MutexGuard<'_, ()> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stuck_runs(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.stuck_runs.lock().unwrap_or_else(PoisonError::into_inner)
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

    pub(crate) fn stored(&self, tenant: &str, run_id: &str) -> Result<StoredRun, Refused> {
        let stored = self.store.run(run_id)?.filter(|run| run.tenant == tenant);
        stored.ok_or_else(|| Refused::NotFound(format!("there is no run {run_id}")))
    }

    /// Returns the open calls of a run, in call order.
    pub(crate) fn stored_calls(&self, run: &RunSummary) -> Result<Vec<WaitingCall>, StoreError> {
        let active = self.active(&run.run_id);
        let is_suspended = active.is_none() && run.status == RunStatus::Waiting;
        if let Some(calls) = active.and_then(|active| active.calls()) {
            let mut open = calls.open();
            open.sort_by_cached_key(|open| open.call.parse::<Place>().unwrap_or_default());
            return Ok(open);
        }
        if !run.has_journal {
            return Ok(Vec::new());
        }
        let known = self.suspended.calls(&run.run_id);
        if let (true, Ok(calls)) = (is_suspended, &known) {
            return Ok(calls.to_vec());
        }
        let Some(snapshot) = self.store.snapshot(&run.run_id)? else { return Ok(Vec::new()) };
        let calls = stored_calls(&self.engine, &snapshot);
        if let (true, Err(moves)) = (is_suspended && snapshot.run.status == RunStatus::Waiting, known) {
            self.suspended.keep(&run.run_id, &calls, moves);
        }
        Ok(calls)
    }

    /// Returns the input of a request, with the tenant's limits and budget.
    pub(crate) fn input<'a>(&self, tenant: &TenantState, request: &Request<'a>) -> Result<Input<'a>, Box<Problem>> {
        let mut input = request.input(&self.engine)?;
        let limits = self.engine.limits_for(&input).min(&tenant.ceiling);
        input = input.limits(LimitsRequest::all(&limits));
        if let Some(budget) = &tenant.budget {
            input = input.budget(budget);
        }
        Ok(input.tenant(&tenant.name))
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
