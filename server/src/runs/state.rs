//! What the service holds, and the door that all runs pass.

use super::admission::{Admission, Busy, TenantState};
use super::desk::{Desk, Phase, Reply, WaitingCall};
use super::events::{EventHub, EventLog};
use super::open_calls::open_calls;
use super::parked::Parked;
use super::turns::Turns;
use crate::config::Config;
use crate::store::{RunStatus, RunSummary, Store, StoreError, StoredRun};
use crate::tools::ServiceTools;
use lisp_runtime::{Budget, Cancel, Engine, Input, LimitsRequest, Outcome, Place, Problem, Request, Tools};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// Why a request is not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such thing for this tenant.
    #[error("{0}")]
    NotFound(String),
    /// It was done before, or cannot be done now.
    #[error("{0}")]
    Conflict(String),
    /// What was sent does not fit.
    #[error("{message}")]
    Invalid {
        /// The field.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// It is well-formed, and cannot be.
    #[error("{0}")]
    Unprocessable(String),
    /// Too much is under way.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The service ends.
    #[error("the service is going down; try again later")]
    Draining,
    /// A fault of the service.
    #[error("a fault of the service: {0}")]
    Fault(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs programs for tenants. Cheap to clone.
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
    /// Durable runs in this process.
    pub(crate) lives: Mutex<HashMap<String, Arc<Life>>>,
    /// What runs that are not done pay from the budgets of their tenants.
    pub(crate) bills: Mutex<HashMap<String, Budget>>,
    /// What runs wait for that do not go on in this process.
    pub(crate) parked: Parked,
    /// Why runs cannot go on, as far as this process has tried.
    pub(crate) troubles: Mutex<HashMap<String, String>>,
    /// Nothing new begins.
    pub(crate) draining: CancellationToken,
    /// When the time for what goes on is over, from the moment at which the service began to end.
    pub(crate) drained_at: OnceLock<tokio::time::Instant>,
    /// The tools of the configuration for runs that are no futures.
    pub(crate) blocking_tools: Tools,
    pub(crate) sessions: Turns,
    /// A tool of the configuration may have to be approved.
    pub(crate) asks: bool,
    pub(crate) tools: ServiceTools,
}

/// A durable run that goes on.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) cancel: Cancel,
    pub(crate) log: Arc<EventLog>,
    desk: Mutex<DeskOfLife>,
}

/// Where the open calls of a life are.
#[derive(Debug, Default)]
struct DeskOfLife {
    /// Without one they are in the store: the run is about to go on, or has just stopped.
    desk: Option<Arc<Desk>>,
    /// Something was said that no desk has heard of.
    has_news: bool,
}

impl Life {
    pub(crate) fn new(log: Arc<EventLog>) -> Self {
        Life { cancel: Cancel::new(), desk: Mutex::default(), log }
    }

    fn lock(&self) -> MutexGuard<'_, DeskOfLife> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The desk of a run that is under way.
    pub(crate) fn desk(&self) -> Option<Arc<Desk>> {
        self.lock().desk.clone()
    }

    /// All that was said so far is about to be heard.
    pub(crate) fn hear(&self) {
        self.lock().has_news = false;
    }

    /// Whoever answers from now on tells this desk; what was said before is in the store.
    pub(crate) fn open_desk(&self, desk: &Arc<Desk>) {
        *self.lock() = DeskOfLife { desk: Some(desk.clone()), has_news: false };
    }

    /// The run stops: what its desk had open is in the store.
    pub(crate) fn close_desk(&self) {
        let mut of_life = self.lock();
        if let Some(desk) = of_life.desk.take() {
            of_life.has_news |= desk.has_news();
        }
    }

    /// Somebody has answered a call, and the store has it.
    pub(crate) fn reply(&self, call: &str, phase: &Phase, reply: Reply) {
        let mut of_life = self.lock();
        match &of_life.desk {
            Some(desk) => desk.reply(call, phase, reply),
            None => of_life.has_news = true,
        }
    }

    /// Was something said that the run has not heard?
    pub(crate) fn has_news(&self) -> bool {
        let of_life = self.lock();
        of_life.has_news || of_life.desk.as_ref().is_some_and(|desk| desk.has_news())
    }
}

impl Inner {
    pub(crate) fn lives(&self) -> MutexGuard<'_, HashMap<String, Arc<Life>>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn life(&self, run_id: &str) -> Option<Arc<Life>> {
        self.lives().get(run_id).cloned()
    }

    pub(crate) fn troubles(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn bills(&self) -> MutexGuard<'_, HashMap<String, Budget>> {
        self.bills.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The budget of a tenant, for all lives of one run.
    pub(crate) fn bill(&self, tenant: &TenantState, run_id: &str) -> Option<Budget> {
        let budget = tenant.budget.as_ref()?;
        Some(self.bills().entry(run_id.to_owned()).or_insert_with(|| budget.for_one_run()).clone())
    }

    pub(crate) fn tenant(&self, name: &str) -> Option<Arc<TenantState>> {
        self.tenants.iter().find(|tenant| tenant.name == name).cloned()
    }

    pub(crate) fn stored(&self, tenant: &str, run_id: &str) -> Result<StoredRun, Refused> {
        let stored = self.store.run(run_id)?.filter(|run| run.tenant == tenant);
        stored.ok_or_else(|| Refused::NotFound(format!("there is no run {run_id}")))
    }

    /// The calls of a run that somebody outside has to answer, in their order.
    pub(crate) fn open_calls(&self, run: &RunSummary) -> Result<Vec<WaitingCall>, StoreError> {
        let life = self.life(&run.run_id);
        let is_parked = life.is_none() && run.status == RunStatus::Waiting;
        if let Some(desk) = life.and_then(|life| life.desk()) {
            let mut open = desk.open();
            open.sort_by_cached_key(|open| open.call.parse::<Place>().unwrap_or_default());
            return Ok(open);
        }
        if !run.has_journal {
            return Ok(Vec::new());
        }
        let known = self.parked.calls(&run.run_id);
        if let (true, Ok(calls)) = (is_parked, &known) {
            return Ok(calls.to_vec());
        }
        let Some(snapshot) = self.store.snapshot(&run.run_id)? else { return Ok(Vec::new()) };
        let calls = open_calls(&self.engine, &snapshot);
        if let (true, Err(moves)) = (is_parked && snapshot.run.status == RunStatus::Waiting, known) {
            self.parked.keep(&run.run_id, &calls, moves);
        }
        Ok(calls)
    }

    /// What a request's program gets from this tenant.
    pub(crate) fn input<'a>(&self, tenant: &TenantState, request: &Request<'a>) -> Result<Input<'a>, Box<Problem>> {
        let mut input = request.input(&self.engine)?;
        let limits = self.engine.limits_for(&input).min(&tenant.ceiling);
        input = input.limits(LimitsRequest::all(&limits));
        if let Some(budget) = &tenant.budget {
            input = input.budget(budget);
        }
        Ok(input.tenant(&tenant.name))
    }

    /// Runs a program of a tenant's request behind the door that the service has, or the stronger one that is asked for.
    pub(crate) async fn at_door(
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
