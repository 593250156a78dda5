//! What an operator does with the runs of a store, without a service: `ptcl runs`.

use super::open_calls::{Phase, Reply, WaitingCall};
use super::replies::{take_reply, tool_of};
use super::service::ServiceError;
use super::state::Refused;
use super::stored_calls::settle;
use super::submit::{ListQuery, RunState, page_of};
use crate::config::Config;
use crate::store::{Journal, RunSummary, Store, StoreError, StoredRun};
use crate::tools::ServiceTools;
use lisp_runtime::record::RecordError;
use lisp_runtime::{
    BuildError, Engine, Input, Limits, LimitsRequest, Progress, Reason, Record, Recording, Request, Tools, Verdict,
};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// How long replaying one run may take.
const REPLAY_MS: u64 = 60_000;

/// A run as an operator sees it.
#[derive(Clone, Debug, Serialize)]
pub struct KnownRun {
    /// The name of its tenant.
    pub tenant: String,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Its state.
    #[serde(flatten)]
    pub state: RunState,
}

impl From<RunSummary> for KnownRun {
    fn from(run: RunSummary) -> Self {
        KnownRun { tenant: run.tenant.clone(), cancelled: run.cancelled, state: run.into() }
    }
}

impl From<StoredRun> for KnownRun {
    fn from(run: StoredRun) -> Self {
        KnownRun { tenant: run.summary.tenant.clone(), cancelled: run.summary.cancelled, state: run.into() }
    }
}

/// A run with what it has stored.
#[derive(Clone, Debug, Serialize)]
pub struct StoredWork {
    /// The run, with its answer.
    #[serde(flatten)]
    pub run: KnownRun,
    /// The request as it was received: JSON text.
    pub request: Arc<str>,
    /// The number of lines in its journal.
    pub journal_lines: usize,
    /// The bytes of its journal.
    pub journal_bytes: usize,
}

/// Shows, answers and cancels the runs of a store, of all tenants.
///
/// It runs no program. In a store that several processes use, workers continue what it changes; otherwise the next service
/// does.
pub struct Operator {
    store: Arc<dyn Store>,
    tools: Option<ServiceTools>,
    engine: Engine,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl Operator {
    /// Creates an operator without the configured tools. Arguments, and results of configured tools, cannot be checked then
    /// and are refused.
    ///
    /// # Errors
    /// If the engine cannot be built.
    pub fn without_tools(config: &Config, store: Arc<dyn Store>) -> Result<Operator, BuildError> {
        Operator::new(config, store, None)
    }

    /// Creates an operator, and connects the configured tools.
    ///
    /// # Errors
    /// If the tools cannot be used, or the engine cannot be built.
    pub async fn open(config: &Config, store: Arc<dyn Store>) -> Result<Operator, ServiceError> {
        let tools = ServiceTools::connect(config).await?;
        Ok(Operator::new(config, store, Some(tools))?)
    }

    fn new(config: &Config, store: Arc<dyn Store>, tools: Option<ServiceTools>) -> Result<Operator, BuildError> {
        let engine = Engine::builder().limits(config.limits()).ceiling(Limits::unlimited()).json_keys(config.json_keys);
        let engine = match &tools {
            Some(tools) => engine.grant_all(tools.tools.clone()).policy(tools.policy.clone()),
            None => engine,
        };
        Ok(Operator { store, engine: engine.build()?, tools })
    }

    /// Closes the store, and ends the MCP servers that were started.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn close(self) -> Result<(), StoreError> {
        if let Some(tools) = &self.tools {
            tools.close().await;
        }
        self.store.close().await
    }

    /// Returns a page of runs, newest first, of one tenant or all, and the cursor of the next page.
    ///
    /// # Errors
    /// If the store fails, or the cursor is none of an earlier page.
    pub async fn list(
        &self,
        tenant: Option<&str>,
        list: ListQuery<'_>,
    ) -> Result<(Vec<KnownRun>, Option<String>), Refused> {
        let (runs, next) = page_of(&*self.store, tenant, list).await?;
        Ok((runs.into_iter().map(KnownRun::from).collect(), next))
    }

    async fn stored(&self, run_id: &str) -> Result<StoredRun, Refused> {
        let run = self.store.run(run_id).await?;
        run.ok_or_else(|| Refused::NotFound(format!("there is no run {run_id:?}")))
    }

    /// Returns a run.
    ///
    /// # Errors
    /// If it does not exist, its journal is damaged, or the store fails.
    pub async fn show(&self, run_id: &str) -> Result<StoredWork, Refused> {
        let run = self.stored(run_id).await?;
        let journal = self.store.journal(run_id).await?.text;
        Ok(StoredWork {
            request: run.request.clone(),
            run: run.into(),
            journal_lines: journal.lines().count(),
            journal_bytes: journal.len(),
        })
    }

    /// Stores a reply to an open call, after the checks of [`super::Service::reply`].
    ///
    /// # Errors
    /// Those of [`super::Service::reply`], and [`Refused::Invalid`] with the field `config` if a value cannot be checked,
    /// because the tool is not configured.
    pub async fn reply(&self, run_id: &str, call: &str, reply: &Reply) -> Result<KnownRun, Refused> {
        let run = self.stored(run_id).await?;
        if let Some(open) = run.summary.calls.iter().find(|open| open.call == call).map(WaitingCall::from) {
            check_phase(&open.phase, reply)?;
            self.check_tool(&run, &open, reply)?;
        }
        take_reply(&*self.store, self.engine.tools(), &run, (call, reply)).await?;
        Ok(self.stored(run_id).await?.into())
    }

    /// Checks that there is a tool which the value of a reply can be checked against.
    fn check_tool(&self, run: &StoredRun, open: &WaitingCall, reply: &Reply) -> Result<(), Refused> {
        let what = match (&reply.arguments, &reply.result) {
            (Some(_), _) => "arguments are",
            (None, Some(_)) => "the result is",
            (None, None) => return Ok(()),
        };
        let Ok(request) = Request::parse(&run.request) else { return Ok(()) };
        if tool_of(self.engine.tools(), &request, &open.name).is_some() {
            return Ok(());
        }
        let why = match self.tools {
            None => "no configuration was given: add --config service.toml",
            Some(_) => "the configuration has no such tool: configure it again",
        };
        let message = format!("{what} checked against the tool {}, and {why}", open.name);
        Err(Refused::Invalid { field: "config".to_owned(), message })
    }

    /// Cancels a run. A run that is done does not change.
    ///
    /// # Errors
    /// If it does not exist, or the store fails.
    pub async fn cancel(&self, run_id: &str) -> Result<KnownRun, Refused> {
        self.store.cancel(run_id).await?;
        Ok(self.stored(run_id).await?.into())
    }

    /// Queues a run that is stuck.
    ///
    /// # Errors
    /// If it does not exist or is not stuck, or the store fails.
    pub async fn retry(&self, run_id: &str) -> Result<KnownRun, Refused> {
        let was_stuck = self.store.retry(run_id).await?;
        let run = self.stored(run_id).await?;
        match was_stuck {
            true => Ok(run.into()),
            false => Err(Refused::Conflict(format!("the run is {}, not stuck", run.summary.status))),
        }
    }

    /// Replays a run up to where it waits, with the configured tools, and makes no call. The inner error says why it cannot
    /// continue.
    ///
    /// # Errors
    /// If it does not exist, or the store fails.
    pub async fn check(&self, run_id: &str) -> Result<Result<(), String>, Refused> {
        let run = self.stored(run_id).await?;
        let journal = match self.store.journal(run_id).await {
            Err(error @ StoreError::Damaged(_)) => return Ok(Err(error.to_string())),
            journal => journal?,
        };
        let (engine, has_tools) = (self.engine.clone(), self.tools.is_some());
        let replayed = tokio::task::spawn_blocking(move || replay(&engine, has_tools, &run, &journal)).await;
        replayed.map_err(|error| Refused::Fault(error.to_string()))
    }
}

/// Checks that a reply is of the kind that a call waits for.
fn check_phase(phase: &Phase, reply: &Reply) -> Result<(), Refused> {
    let message = match phase {
        Phase::Result if reply.is_decision() => {
            "the call waits for the result of its client: use `ptcl runs answer` with --result or --error"
        }
        Phase::Gate if !reply.is_decision() => {
            "the call waits to be approved: use `ptcl runs approve` or `ptcl runs reject`"
        }
        Phase::Unknown(_) if reply.is_decision() && reply.phase.is_none() => {
            let message = format!(
                "the call may have been made already: find out, then use `ptcl runs answer`. To decide without that, add \
                 --phase {}",
                phase.name()
            );
            return Err(Refused::Invalid { field: String::new(), message });
        }
        _ => return Ok(()),
    };
    Err(Refused::Invalid { field: String::new(), message: message.to_owned() })
}

/// Replays a run up to its first call without a result.
fn replay(engine: &Engine, has_tools: bool, run: &StoredRun, journal: &Journal) -> Result<(), String> {
    let request = Request::parse(&run.request).map_err(|_| "this version does not read its request".to_owned())?;
    if journal.text.is_empty() {
        return Ok(());
    }
    let opened = open(engine, &request, journal).map_err(|error| match error {
        RecordError::MissingTools(names) if !has_tools => {
            format!(
                "its tools are not known, as no configuration was given: {}; add --config service.toml",
                names.join(", ")
            )
        }
        error => super::attempt::stuck(&error),
    })?;
    let (program, input) = opened;
    let mut time = LimitsRequest::default();
    (time.timeout_ms, time.parallel_timeout_ms) = (Some(REPLAY_MS), Some(REPLAY_MS));
    let Progress::Done(outcome) = engine.start(&program, input.limits_over(&time)) else { return Ok(()) };
    match outcome.problem() {
        Some(problem) if problem.reason() == Reason::ReplayDiverged => Err(problem.error.message.to_string()),
        Some(_) if outcome.verdict() == Verdict::Timeout => {
            Err(format!("replaying it takes more than {} s", REPLAY_MS / 1_000))
        }
        Some(problem) if outcome.verdict() == Verdict::HostFault => {
            Err(format!("an internal error while replaying it: {}", problem.error.message))
        }
        _ => Ok(()),
    }
}

fn open(
    engine: &Engine,
    request: &Request<'_>,
    journal: &Journal,
) -> Result<(lisp_runtime::Program, Input<'static>), RecordError> {
    let mut record = Record::parse_within(&journal.text, usize::MAX)?;
    // What is unknown is open here, too.
    for call in settle(engine, (request, &|_| None), &journal.replies, &mut record, false)? {
        record.settle(&call.call, lisp_runtime::record::Settled::NotMade)?;
    }
    let mut own = Tools::new();
    for (name, script) in &request.tools {
        // Invalid tools were rejected when the run was submitted.
        let _ = own.add(script.tool(name));
    }
    let given = Input::new().tools(own);
    let (program, input, _) = engine.open_record_given(&record, given, &Recording::builder())?;
    Ok((program, input))
}
