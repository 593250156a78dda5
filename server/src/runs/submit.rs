//! Durable runs: they are submitted, waited for, listed and cancelled.

use super::admission::{InTurn, TenantState};
use super::open_calls::WaitingCall;
use super::state::{Refused, Service};
use super::watch::Watcher;
use crate::store::{NewRun, Page, Query, RequestKey, RunStatus, RunSummary, Store, StoredRun, Submitted, Usage};
use lisp_runtime::Request;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// How long the open calls of a run have to be the same before they are reported, because parallel workers make theirs
/// one after the other.
const QUIET: Duration = Duration::from_millis(15);

/// How often they are looked at again while they are not.
const QUIET_CHECKS: u32 = 20;

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
    /// Why the run is stuck, and what to do; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the run was submitted, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When the run last changed, in milliseconds since 1970-01-01T00:00:00Z.
    pub updated_ms: i64,
}

impl RunState {
    /// Returns the cursor of the page after this run: see [`RunList::next`].
    pub fn cursor(&self) -> String {
        cursor(self.created_ms, &self.run_id)
    }
}

impl From<RunSummary> for RunState {
    fn from(run: RunSummary) -> Self {
        RunState {
            run_id: run.run_id,
            status: run.status,
            calls: run.calls.iter().map(WaitingCall::from).collect(),
            answer: None,
            error: run.error,
            created_ms: run.created_ms,
            updated_ms: run.updated_ms,
        }
    }
}

impl From<StoredRun> for RunState {
    fn from(run: StoredRun) -> Self {
        let answer = run.answer.and_then(|answer| RawValue::from_string(answer.as_ref().to_owned()).ok());
        RunState { answer, ..run.summary.into() }
    }
}

/// A list of runs.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RunList {
    /// The runs, newest first, without their answers.
    pub runs: Vec<RunState>,
    /// The cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which of a tenant's runs to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListQuery<'a> {
    /// Only runs with this status.
    pub status: Option<RunStatus>,
    /// [`RunList::next`] of the page before.
    pub cursor: Option<&'a str>,
    /// The maximum number of runs.
    pub max: usize,
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

impl From<RunState> for Done {
    fn from(mut state: RunState) -> Self {
        match state.answer.take() {
            Some(answer) => Done::Answer(Box::<str>::from(answer).into_string()),
            None => Done::Waiting(Box::new(state)),
        }
    }
}

impl Service {
    /// Returns whether a request of a tenant needs a journal, because it may call a tool that needs an outside answer.
    pub fn needs_journal(&self, tenant: &TenantState, request: &Request<'_>) -> bool {
        let asks = |name: &str| tenant.asking.contains(name) && !request.tools.contains_key(name);
        request.tools.values().any(|tool| tool.client)
            || (!tenant.asking.is_empty() && request.mentioned_tools().any(asks))
    }

    /// Submits a durable run. Once this returns, the run continues even if this process ends.
    ///
    /// # Errors
    /// If the run is not accepted. See [`Refused`].
    pub async fn submit(
        &self,
        tenant: &TenantState,
        request: &str,
        key: Option<RequestKey>,
    ) -> Result<RunState, Refused> {
        let run_id = self.accept(tenant, request, key).await?;
        self.state(&tenant.name, &run_id).await
    }

    /// Submits a durable run, and returns its ID.
    pub(crate) async fn accept(
        &self,
        tenant: &TenantState,
        request: &str,
        key: Option<RequestKey>,
    ) -> Result<String, Refused> {
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        // A repeated request needs no capacity.
        if let Some(key) = &key
            && let Some(known) = self.0.store.known_request(&tenant.name, key.clone()).await?
        {
            return known_run(known);
        }
        tenant.check_rate()?;
        let submission = self.room_for(tenant, request.len() as u64).await?;
        let run_id = uuid::Uuid::now_v7().to_string();
        let run = NewRun { run_id: run_id.clone(), tenant: tenant.name.clone(), request: request.to_owned() };
        match self.0.store.submit(run, key).await? {
            Submitted::New => {
                submission.stored();
                Ok(run_id)
            }
            known => known_run(known),
        }
    }

    /// Finds room in the store for a run of this many bytes.
    async fn room_for<'a>(
        &self,
        tenant: &'a TenantState,
        bytes: u64,
    ) -> Result<super::admission::Submission<'a>, Refused> {
        let limits = &self.0.config.service;
        let (max_runs, max_bytes) = (limits.max_runs_stored, limits.max_bytes_stored);
        let fits =
            |usage: Usage| usage.queued <= tenant.max_queued() && usage.runs <= max_runs && usage.bytes <= max_bytes;
        if let Some(submission) = tenant.stored.add(bytes, fits) {
            return Ok(submission);
        }
        let started = tenant.stored.begin_count();
        let usage = self.0.store.usage(&tenant.name).await?;
        let with = match tenant.stored.add_after((usage, started), bytes, fits) {
            Ok(submission) => return Ok(submission),
            Err(with) => with,
        };
        let keep = "finished ones are deleted after keep_finished_hours: cancel runs that only wait (DELETE /v1/runs/{run_id})";
        Err(if with.runs > max_runs {
            Refused::Unprocessable(format!(
                "the store has {max_runs} runs of the tenant; {keep}, or raise max_runs_stored"
            ))
        } else if with.bytes > max_bytes {
            Refused::Unprocessable(format!(
                "the runs of the tenant take {} of {max_bytes} bytes in the store; {keep}, or raise max_bytes_stored",
                usage.bytes
            ))
        } else {
            tenant.queue_is_full().into()
        })
    }

    /// Submits a durable run, and waits until it has its answer or waits for an outside answer.
    ///
    /// # Errors
    /// If the run is not accepted. See [`Refused`].
    pub async fn submit_and_wait(
        &self,
        tenant: &TenantState,
        request: &str,
        key: Option<RequestKey>,
    ) -> Result<Done, Refused> {
        let run_id = self.accept(tenant, request, key).await?;
        self.wait(&tenant.name, &run_id).await
    }

    /// Starts to watch a run, so that no change is missed.
    pub fn watcher(&self, run_id: &str) -> Watcher {
        self.0.watchers.watch(run_id)
    }

    /// Waits until a run has its answer, waits for an outside answer or is stuck, or until the service shuts down.
    ///
    /// # Errors
    /// If the run does not exist.
    pub async fn wait(&self, tenant: &str, run_id: &str) -> Result<Done, Refused> {
        Ok(Done::from(self.wait_in_turn(tenant, run_id).await?.value))
    }

    /// Waits like [`Service::wait`]. The state keeps its turn.
    pub(crate) async fn wait_in_turn(&self, tenant: &str, run_id: &str) -> Result<InTurn<RunState>, Refused> {
        let mut watcher = self.watcher(run_id);
        let (mut seen, mut checks, mut is_stopped) = (None, 0, false);
        loop {
            let read = self.0.stored_in_turn(tenant, run_id).await?;
            let is_cancelled = read.value.summary.cancelled;
            let read = read.map(RunState::from);
            let state = &read.value;
            if state.answer.is_some() {
                return Ok(read);
            }
            // A run that was cancelled takes no answers, and ends soon.
            if !state.calls.is_empty() && !is_cancelled {
                let names: Vec<_> = state.calls.iter().map(|call| (call.call.clone(), call.asked())).collect();
                if checks >= QUIET_CHECKS || seen.as_ref() == Some(&names) {
                    return Ok(read);
                }
                (seen, checks) = (Some(names), checks + 1);
                drop(read);
                tokio::time::sleep(QUIET).await;
                continue;
            }
            if state.status == RunStatus::Stuck || is_stopped {
                return Ok(read);
            }
            drop(read);
            tokio::select! {
                () = watcher.changed() => {}
                () = self.stopped(run_id) => is_stopped = true,
            }
        }
    }

    /// Waits like [`Service::wait`], but for a limited time, and only for a state after a known one. `since_ms` is the
    /// [`RunState::updated_ms`] of that state.
    ///
    /// # Errors
    /// If the run does not exist.
    pub async fn wait_at_most(
        &self,
        tenant: &str,
        run_id: &str,
        time: Duration,
        since_ms: Option<i64>,
    ) -> Result<RunState, Refused> {
        self.wait_for_news(tenant, run_id, time, since_ms).await?;
        self.state(tenant, run_id).await
    }

    pub(crate) async fn wait_for_news(
        &self,
        tenant: &str,
        run_id: &str,
        time: Duration,
        since_ms: Option<i64>,
    ) -> Result<(), Refused> {
        let news = async {
            let mut watcher = self.watcher(run_id);
            while let Some(since_ms) = since_ms
                && self.state(tenant, run_id).await?.updated_ms <= since_ms
            {
                watcher.changed().await;
            }
            self.wait_in_turn(tenant, run_id).await.map(drop)
        };
        tokio::select! {
            waited = tokio::time::timeout(time, news) => if let Ok(waited) = waited { waited? },
            // Clients that wait do not hold a service back that shuts down.
            () = self.0.draining.cancelled() => {}
        }
        Ok(())
    }

    /// Returns the state of a run.
    ///
    /// # Errors
    /// If the tenant has no such run.
    pub async fn state(&self, tenant: &str, run_id: &str) -> Result<RunState, Refused> {
        Ok(self.state_in_turn(tenant, run_id).await?.value)
    }

    /// Reads the state of a run, which keeps the turn.
    pub(crate) async fn state_in_turn(&self, tenant: &str, run_id: &str) -> Result<InTurn<RunState>, Refused> {
        Ok(self.0.stored_in_turn(tenant, run_id).await?.map(RunState::from))
    }

    /// Returns a page of a tenant's runs, newest first, without their answers.
    ///
    /// # Errors
    /// If the store fails, or the cursor is none of an earlier page.
    pub async fn runs(&self, tenant: &str, list: ListQuery<'_>) -> Result<RunList, Refused> {
        Ok(self.runs_in_turn(tenant, list).await?.value)
    }

    /// Returns what is made of a page of a tenant's runs: see [`Service::runs`]. A page may be large, so no caller holds it
    /// while another waits for one.
    ///
    /// # Errors
    /// Those of [`Service::runs`].
    pub async fn map_runs<T>(
        &self,
        tenant: &str,
        list: ListQuery<'_>,
        map: impl FnOnce(RunList) -> T,
    ) -> Result<T, Refused> {
        Ok(self.runs_in_turn(tenant, list).await?.map(map).value)
    }

    /// Reads a page of a tenant's runs, which keeps the turn.
    pub(crate) async fn runs_in_turn(&self, tenant: &str, list: ListQuery<'_>) -> Result<InTurn<RunList>, Refused> {
        let (store, query) = (self.0.store.clone(), query_of(Some(tenant), list)?);
        let read = self.0.read(tenant, async move { store.list(&query).await }).await?;
        Ok(read.map(|page| {
            let next = next_of(&page);
            RunList { runs: page.runs.into_iter().map(RunState::from).collect(), next }
        }))
    }

    /// Returns the first line of a run's program that is neither empty nor a comment.
    ///
    /// # Errors
    /// If the tenant has no such run.
    pub async fn first_line(&self, tenant: &str, run_id: &str) -> Result<String, Refused> {
        // A request may be large: it keeps its turn.
        let read = self.0.stored_in_turn(tenant, run_id).await?;
        let line = tokio::task::spawn_blocking(move || {
            let request = Request::parse(&read.value.request).ok()?;
            let mut lines = request.program.lines().map(str::trim);
            lines.find(|line| !line.is_empty() && !line.starts_with(';')).map(str::to_owned)
        });
        Ok(line.await.map_err(|error| Refused::Fault(error.to_string()))?.unwrap_or_default())
    }

    /// Cancels a run. A run that is done does not change.
    ///
    /// # Errors
    /// If the run does not exist.
    pub async fn cancel(&self, tenant: &str, run_id: &str) -> Result<RunState, Refused> {
        self.cancel_run(tenant, run_id).await?;
        self.state(tenant, run_id).await
    }

    pub(crate) async fn cancel_run(&self, tenant: &str, run_id: &str) -> Result<(), Refused> {
        self.0.stored(tenant, run_id).await?;
        self.0.store.cancel(run_id).await?;
        if let Some(active) = self.0.active(run_id) {
            active.cancel();
        }
        Ok(())
    }
}

/// Returns the ID of the run that an idempotency key names.
fn known_run(known: Submitted) -> Result<String, Refused> {
    match known {
        Submitted::New => Err(Refused::Fault("the stored run was not found".to_owned())),
        Submitted::Known(run_id) => Ok(run_id),
        Submitted::OtherRequest => {
            Err(Refused::Unprocessable("the Idempotency-Key was used for another request; use a new key".to_owned()))
        }
    }
}

/// Returns a page of runs, of one tenant or all, and the cursor of the next page.
pub(super) async fn page_of(
    store: &dyn Store,
    tenant: Option<&str>,
    list: ListQuery<'_>,
) -> Result<(Vec<RunSummary>, Option<String>), Refused> {
    let page = store.list(&query_of(tenant, list)?).await?;
    let next = next_of(&page);
    Ok((page.runs, next))
}

fn query_of(tenant: Option<&str>, list: ListQuery<'_>) -> Result<Query, Refused> {
    let after = list.cursor.map(|cursor| after(cursor).ok_or_else(|| bad_cursor(cursor))).transpose()?;
    Ok(Query { tenant: tenant.map(str::to_owned), status: list.status, after, max: list.max })
}

fn next_of(page: &Page) -> Option<String> {
    let last = page.runs.last().filter(|_| page.has_more)?;
    Some(cursor(last.created_ms, &last.run_id))
}

fn cursor(created_ms: i64, run_id: &str) -> String {
    format!("{created_ms}.{run_id}")
}

/// Reads a cursor: the creation time and ID of the last run of a page.
fn after(cursor: &str) -> Option<(i64, String)> {
    let (created_ms, run_id) = cursor.split_once('.')?;
    Some((created_ms.parse().ok()?, uuid::Uuid::parse_str(run_id).ok()?.to_string()))
}

fn bad_cursor(cursor: &str) -> Refused {
    let message = format!("{cursor:?} is not the cursor of a page: copy it from the page before, or leave it out");
    Refused::Invalid { field: "cursor".to_owned(), message }
}

/// Returns the digest of a request, which binds an idempotency key to it.
pub fn digest(request: &str) -> String {
    Sha256::digest(request.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::store::MemoryStore;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    /// A tenant that asks for many lists at once leaves readers of the store to the others.
    #[tokio::test]
    async fn a_list_is_read_in_a_turn_of_its_tenant() {
        let tenant = |name: &str, digit: &str| {
            format!("[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{}\"\n", digit.repeat(64))
        };
        let text = format!("isolation = \"in-process\"\n{}{}", tenant("one", "a"), tenant("two", "b"));
        let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
        let service = Service::open(config, Arc::new(MemoryStore::new())).await.unwrap();
        let list = |tenant| service.runs(tenant, ListQuery { max: 1, ..ListQuery::default() });
        let one = service.tenant("one").unwrap();
        let read = [one.read(async {}).await.unwrap(), one.read(async {}).await.unwrap()];
        let mut waits = pin!(list("one"));
        for _ in 0..2 {
            assert!(list("two").await.unwrap().runs.is_empty());
            assert!(matches!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        }
        drop(read);
        assert!(waits.await.unwrap().runs.is_empty());
    }
}
