//! One durable run in this process: from its journal to its answer, or until it is suspended.

use super::admission::{Claim, Place, TenantState};
use super::open_calls::OpenCalls;
use super::state::{ActiveRun, Inner};
use super::stored_calls::{places_begun, settle, stored_calls};
use crate::old_store::{Lease, RunStatus, Snapshot, StoreError};
use lisp_runtime::record::{Recorder, RecordingBuilder};
use lisp_runtime::{Budget, Input, Outcome, Record, Recording, Request, Tools, Verdict};
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How an attempt ended.
enum End {
    /// The run has its answer.
    Done,
    /// The run is suspended: it waits for an outside answer and holds nothing.
    Suspended,
    /// The run was stopped because the service is shutting down.
    Stopped,
    /// The process was lost, but not because of the program. The run continues from its journal.
    Fault,
    /// The run is stuck, with the reason.
    Stuck(String),
}

/// How often a run is continued after its process was lost. After that it ends with `host_fault`.
const MAX_FAULTS: u32 = 5;
/// The pause before the first of these; it doubles each time.
const FAULT_PAUSE: Duration = Duration::from_millis(50);

/// Runs attempts until the run is done, suspended, stopped or stuck.
pub(crate) async fn activate(inner: Arc<Inner>, run_id: String, active: Arc<ActiveRun>, mut claim: Option<Claim>) {
    let mut faults = 0;
    loop {
        inner.suspended.goes_on(&run_id);
        let end = attempt(&inner, &run_id, &active, (faults, &mut claim)).await;
        active.detach();
        if matches!(end, Ok(End::Fault)) {
            // Whatever ended one process may be about to end the next.
            tokio::select! {
                () = tokio::time::sleep(FAULT_PAUSE * (1 << faults)) => {}
                () = inner.draining.cancelled() => {}
            }
            faults += 1;
            continue;
        }
        let mut active_runs = inner.active_runs();
        match end {
            Ok(End::Suspended)
                if (active.has_news() || active.cancel.is_cancelled()) && !inner.draining.is_cancelled() =>
            {
                continue;
            }
            Ok(End::Stuck(why)) => {
                tracing::warn!(run_id, why, "a run cannot continue");
                inner.stuck_runs().insert(run_id.clone(), why);
            }
            Err(error) => {
                tracing::error!(run_id, %error, "a run cannot continue");
                inner.stuck_runs().insert(run_id.clone(), error.to_string());
            }
            Ok(end) => {
                inner.stuck_runs().remove(&run_id);
                if matches!(end, End::Done) {
                    inner.run_budgets().remove(&run_id);
                }
            }
        }
        active_runs.remove(&run_id);
        return;
    }
}

async fn attempt(
    inner: &Arc<Inner>,
    run_id: &str,
    active: &Arc<ActiveRun>,
    (faults, claim): (u32, &mut Option<Claim>),
) -> Result<End, StoreError> {
    let store = &*inner.store;
    let Some(stored) = store.run(run_id)?.filter(|run| run.status != RunStatus::Done) else { return Ok(End::Done) };
    let Some(tenant) = inner.tenant(&stored.tenant) else {
        return Ok(End::Stuck(format!("the configuration has no tenant {:?} any more", stored.tenant)));
    };
    let place = tokio::select! {
        place = inner.admission.patient_place(&tenant) => place,
        () = inner.draining.cancelled() => return Ok(End::Stopped),
    };
    active.hear();
    let lease = store.take(run_id)?;
    let Some(snapshot) = store.snapshot(run_id)? else { return Ok(End::Done) };
    if snapshot.run.cancelled {
        active.cancel.cancel();
    }
    active.log.begin_attempt();
    let Ok(request) = Request::parse(&snapshot.run.request) else {
        return Ok(End::Stuck("this version does not read its request".to_owned()));
    };
    let open = stored_calls(&inner.engine, &snapshot);
    let calls = Arc::new(OpenCalls::new(active.log.clone(), open));
    let (input, source) = match begin(inner, lease, &tenant, &request, &snapshot, &calls)? {
        Begun::Run(input, source) => (input, source),
        Begun::Failed(outcome) => return finish(inner, lease, active, (place, claim.take()), (&request, &outcome)),
        Begun::Ended(end) => return Ok(end),
    };
    // From here on the attempt knows its open calls, and no call is unknown.
    store.set_status(lease, run_id, RunStatus::Running)?;
    active.attach(&calls);
    calls.learn(&store.replies(run_id)?);
    let outcome = run(inner, active, &calls, &tenant, (&request, &source, *input)).await;
    inner.hub.metrics().run_has_stopped(run_id);
    match outcome {
        Ok(outcome) if outcome.verdict() == Verdict::HostFault && faults < MAX_FAULTS => {
            tracing::warn!(run_id, faults, "the process of a run was lost; the run continues from its journal");
            active.detach();
            store.set_status(lease, run_id, RunStatus::Queued)?;
            Ok(End::Fault)
        }
        Ok(outcome) => finish(inner, lease, active, (place, claim.take()), (&request, &outcome)),
        Err(Stop { waits: false }) => {
            store.set_status(lease, run_id, RunStatus::Queued)?;
            Ok(End::Stopped)
        }
        Err(Stop { waits: true }) => {
            inner.hub.metrics().suspended.inc();
            store.set_status(lease, run_id, RunStatus::Waiting)?;
            Ok(End::Suspended)
        }
    }
}

/// Runs a program until it ends or should stop.
async fn run(
    inner: &Inner,
    active: &ActiveRun,
    calls: &Arc<OpenCalls>,
    tenant: &TenantState,
    (request, source, input): (&Request<'_>, &str, Input<'static>),
) -> Result<Outcome, Stop> {
    let began = Instant::now();
    let ask = calls.clone();
    let input = input.cancel_with(&active.cancel).approvals(move |call| {
        let calls = ask.clone();
        async move { calls.approval(&call).await }
    });
    let input = match &request.traceparent {
        Some(header) => input.traceparent(header),
        None => input,
    };
    let limits = inner.engine.limits_for(&input);
    let run = std::pin::pin!(inner.run_isolated(tenant, request, source, input));
    tokio::select! {
        outcome = run => Ok(outcome),
        stop = stop((inner, tenant), active, calls, (began, limits.timeout_ms)) => {
            // Before the run is dropped, which drops the calls that wait.
            active.detach();
            inner.hub.metrics().run_stops(active.log.run_id());
            Err(stop)
        }
    }
}

/// What an attempt starts with.
enum Begun {
    /// The input and the source of the program.
    Run(Box<Input<'static>>, String),
    /// The run has an outcome without running.
    Failed(Box<Outcome>),
    /// The attempt ends without running.
    Ended(End),
}

/// Starts a run, or resumes it from its journal.
fn begin(
    inner: &Arc<Inner>,
    lease: Lease,
    tenant: &TenantState,
    request: &Request<'_>,
    snapshot: &Snapshot,
    calls: &Arc<OpenCalls>,
) -> Result<Begun, StoreError> {
    let Snapshot { run, journal, .. } = snapshot;
    let run_id = run.run_id.as_str();
    let run_budget = inner.run_budget(tenant, run_id);
    if journal.is_empty() {
        return Ok(match inner.input(tenant, request) {
            Ok(input) => {
                let input = input.into_owned().tools(own_tools(request, calls)).run_id(run_id);
                let input = run_budget.iter().fold(input, |input, run_budget| input.budget(run_budget));
                let recording = Recording::builder().recorder(journal_of(inner, lease, run_id)).build();
                Begun::Run(Box::new(input.record(&recording)), request.program.clone().into_owned())
            }
            Err(problem) => Begun::Failed(Box::new(request.failed(&inner.engine, problem))),
        });
    }
    inner.hub.metrics().resumed.inc();
    let stuck = |error: String| Ok(Begun::Ended(End::Stuck(error)));
    let mut record = match Record::parse_within(journal.as_str(), usize::MAX) {
        Ok(record) => record,
        Err(error) => return stuck(error.to_string()),
    };
    let before = record.text().len();
    let is_settled = match settle(&inner.engine, snapshot, &mut record) {
        Ok(is_settled) => is_settled,
        Err(error) => return stuck(error.to_string()),
    };
    if !is_settled && !run.cancelled {
        inner.store.set_status(lease, run_id, RunStatus::Waiting)?;
        return Ok(Begun::Ended(End::Suspended));
    }
    for line in record.text()[before..].split_inclusive('\n') {
        inner.store.append(lease, run_id, line)?;
    }
    if let Some(run_budget) = &run_budget {
        run_budget.note_paid(places_begun(journal));
    }
    let builder = Recording::builder().recorder(journal_of(inner, lease, run_id));
    match resumed(inner, run_budget.as_ref(), &record, own_tools(request, calls), &builder) {
        Ok((input, source)) => Ok(Begun::Run(Box::new(input), source)),
        Err(why) => stuck(why),
    }
}

/// Resumes from a record.
fn resumed(
    inner: &Inner,
    run_budget: Option<&Budget>,
    record: &Record,
    tools: Tools,
    builder: &RecordingBuilder,
) -> Result<(Input<'static>, String), String> {
    let given = Input::new().tools(tools);
    let given = run_budget.into_iter().fold(given, Input::budget);
    let opened = inner.engine.open_record_given(record, given, builder);
    let (program, input, _) = opened.map_err(|error| error.to_string())?;
    Ok((input, program.source().to_owned()))
}

/// Returns the tools of the request. Calls of tools that the client answers become open calls.
fn own_tools(request: &Request<'_>, calls: &Arc<OpenCalls>) -> Tools {
    let mut tools = Tools::new();
    for (name, script) in &request.tools {
        let mut tool = script.tool(name);
        if script.client {
            let calls = calls.clone();
            tool = tool.with_async_handler(move |call| {
                let calls = calls.clone();
                async move { calls.result(&call).await }
            });
        }
        // Invalid tools were rejected when the run was submitted.
        let _ = tools.add(tool);
    }
    tools
}

/// Writes the lines of a run's journal to the store.
fn journal_of(inner: &Arc<Inner>, lease: Lease, run_id: &str) -> impl Recorder + use<> {
    let (inner, run_id) = (inner.clone(), run_id.to_owned());
    move |line: &str| -> Result<(), Box<dyn StdError + Send + Sync>> {
        inner.store.append(lease, &run_id, line).map_err(Into::into)
    }
}

/// Stores the answer of a run. The slot is freed first: a client that sees the answer may want it.
fn finish(
    inner: &Inner,
    lease: Lease,
    active: &ActiveRun,
    place: (Place, Option<Claim>),
    (request, outcome): (&Request<'_>, &Outcome),
) -> Result<End, StoreError> {
    drop(place);
    let run_id = active.log.run_id();
    let mut answer = request.answer(outcome);
    run_id.clone_into(&mut answer.run_id);
    let answer = answer.to_json();
    inner.store.finish_run(lease, run_id, &answer)?;
    active.log.finish(&answer);
    Ok(End::Done)
}

/// Why an attempt is stopped.
struct Stop {
    /// The run waits for an outside answer.
    waits: bool,
}

/// Returns when the run should be stopped.
///
/// A run is stopped only while all its calls in progress wait for outside answers. The reasons are:
///
/// - The service is shutting down.
/// - The run waits for outside answers, and has been quiet for `suspend_after_ms` or has used half of its timeout.
///   The next attempt gets the whole timeout again.
async fn stop(
    (inner, tenant): (&Inner, &TenantState),
    active: &ActiveRun,
    calls: &OpenCalls,
    (began, timeout_ms): (Instant, u64),
) -> Stop {
    let suspend_after = Duration::from_millis(inner.config.service.suspend_after_ms);
    let step = (suspend_after / 8).clamp(Duration::from_millis(5), Duration::from_millis(100));
    let half = if timeout_ms == 0 { Duration::MAX } else { Duration::from_millis(timeout_ms / 2) };
    let (mut seen, mut since) = (active.log.pace(), Instant::now());
    loop {
        tokio::time::sleep(step).await;
        let pace = active.log.pace();
        if pace != seen {
            (seen, since) = (pace, Instant::now());
        }
        let (in_progress, _) = pace;
        let outside = calls.waiting();
        if inner.draining.is_cancelled() && in_progress <= outside {
            return Stop { waits: outside > 0 };
        }
        // Free the slot at once if others wait for one.
        let is_crowded = inner.admission.is_crowded() || tenant.is_crowded();
        let enough = if is_crowded { step } else { suspend_after };
        if outside > 0 && in_progress <= outside && (since.elapsed() >= enough || began.elapsed() >= half) {
            return Stop { waits: true };
        }
    }
}
