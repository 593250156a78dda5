//! One durable run in this process: from its journal to its answer, or until it is suspended.

use super::admission::{Slot, TenantState};
use super::cancelled::{cancelled, note_missing, note_unread};
use super::events::{ATTEMPT, EventLog};
use super::open_calls::OpenCalls;
use super::restored::RestoredCalls;
use super::state::{ActiveRun, Inner};
use super::stored_calls::{places_ended, places_started, settle};
use super::writer::{Stored, Writer, patiently};
use crate::store::{Batch, Claim, End, Ended, StoreError, StoredCall, StoredReply};
use crate::tools::SENDS;
use lisp_runtime::outcome::{Detail, Phase};
use lisp_runtime::record::{RecordError, Recorder, RecordingBuilder, Settled};
use lisp_runtime::tools::Approval;
use lisp_runtime::{
    Answer, Budget, Error, Input, LimitsRequest, Outcome, Problem, Reason, Record, Recording, Request, Tool, Tools,
    Verdict,
};
use std::convert::Infallible;
use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio_util::task::AbortOnDropHandle;

/// How often in a row a run is continued after its process was lost, while it makes no progress. After that it ends with
/// `host_fault`.
const MAX_FAULTS: u32 = 5;
/// The pause before the first of these; it doubles each time.
const FAULT_PAUSE: Duration = Duration::from_millis(50);

/// How a run is given back.
const BACK: End = End::Requeued { after: Duration::ZERO, is_fault: false };

/// How long a run that was cancelled may replay its journal.
const REPLAY: Duration = Duration::from_secs(10);

/// What is known of a run when one of its attempts starts.
struct Known {
    stored: Stored,
    printed: u64,
    faults: u32,
    cancelled: bool,
    /// Whether the run came from a backup.
    is_restored: bool,
    request: Arc<str>,
    calls: Vec<StoredCall>,
}

/// Runs attempts until the run is done, suspended, stuck or given back.
pub(crate) async fn drive(inner: &Arc<Inner>, claim: Claim, active: &Arc<ActiveRun>, slot: Slot, valid_until: Instant) {
    let mut slot = Some(slot);
    let run_id = claim.lease.run_id.clone();
    let tenant = claim.run.summary.tenant.clone();
    let mut known = Known {
        stored: Stored { lines: claim.lines, events: claim.events },
        printed: claim.printed,
        faults: claim.faults,
        cancelled: claim.run.summary.cancelled,
        is_restored: claim.run.summary.created_ms <= inner.restored_until,
        request: claim.run.request,
        calls: claim.run.summary.calls,
    };
    loop {
        let attempt = Attempt { inner, active, run_id: &run_id };
        let ended = match inner.tenant(&tenant) {
            Some(tenant) => attempt.run(&tenant, &mut known, &mut slot, valid_until).await,
            None => {
                let why = format!("the configuration has no tenant {tenant:?} any more; add it again");
                attempt.stick(&known, why).await
            }
        };
        match ended {
            Ok(Ended::Ended) => return,
            // There is more to do at once.
            Ok(Ended::News) => {}
            Err(StoreError::LeaseLost) => {
                tracing::info!(run_id = &*run_id, "another worker has taken the run over");
                return;
            }
            Err(error) => {
                tracing::error!(run_id = &*run_id, %error, faults = known.faults, "a run cannot continue for now");
                let handed_back = match after_failure(&error, known.faults) {
                    End::Stuck(why) => attempt.stick(&known, why).await,
                    end => attempt.end(Batch::default(), end).await,
                };
                if let Err(error) = handed_back {
                    tracing::error!(run_id = &*run_id, %error, "a run cannot be handed back");
                }
                return;
            }
        }
        match patiently(|| inner.store.run(&run_id)).await {
            Ok(Some(run)) => (known.calls, known.cancelled) = (run.summary.calls, run.summary.cancelled),
            Ok(None) | Err(_) => return,
        }
    }
}

/// Gives a run back that was claimed and has not started. Another worker may have it by now.
pub(crate) async fn give_back(inner: &Inner, active: &ActiveRun) {
    tracing::info!(run_id = &*active.lease.run_id, "a run is handed back: it got no slot");
    match patiently(|| inner.store.end(&active.lease, Batch::default(), BACK)).await {
        Ok(_) | Err(StoreError::LeaseLost) => {}
        Err(error) => tracing::error!(run_id = &*active.lease.run_id, %error, "a run cannot be handed back"),
    }
}

/// Returns how an attempt ends when its store has failed: another attempt may find the store well again, but not what is
/// damaged.
fn after_failure(error: &StoreError, faults: u32) -> End {
    match error {
        StoreError::Damaged(_) => End::Stuck(error.to_string()),
        _ if faults < MAX_FAULTS => End::Requeued { after: FAULT_PAUSE * (1 << faults), is_fault: true },
        _ => End::Stuck(format!("its journal cannot be used: {error}")),
    }
}

/// An attempt of a run.
struct Attempt<'a> {
    inner: &'a Arc<Inner>,
    active: &'a Arc<ActiveRun>,
    run_id: &'a str,
}

/// What an attempt starts with.
enum Prepared {
    /// The input and the source of the program.
    Run(Box<Input<'static>>, String),
    /// The run has an outcome without running.
    Failed(Box<Outcome>),
    /// The attempt ends without running.
    Ends(Batch, End),
}

/// Why a running attempt ends.
enum Stop {
    /// The program has ended.
    Outcome(Box<Outcome>),
    /// The run waits for an outside answer.
    Waits,
    /// The service shuts down.
    Drained,
    /// Calls are held back: the next attempt asks about them.
    CallsHeldBack,
    /// The attempt cannot write any more.
    Lost(StoreError),
}

impl Attempt<'_> {
    async fn end(&self, batch: Batch, end: End) -> Result<Ended, StoreError> {
        let ended = patiently(|| self.inner.store.end(&self.active.lease, batch.clone(), end.clone())).await?;
        if let (Ended::Ended, End::Stuck(why)) = (&ended, &end) {
            tracing::warn!(run_id = self.run_id, why, "a run is stuck");
            self.inner.hub.metrics().stuck.inc();
        }
        Ok(ended)
    }

    /// Ends the attempt of a run that cannot continue. A run that was cancelled need not, and has its answer instead.
    async fn stick(&self, known: &Known, why: String) -> Result<Ended, StoreError> {
        match self.end(Batch::default(), End::Stuck(why.clone())).await? {
            Ended::Ended => Ok(Ended::Ended),
            Ended::News => {
                let request = Request::default();
                let mut answer = request.answer(&self.cancelled_outcome(&request));
                self.run_id.clone_into(&mut answer.run_id);
                if known.stored.lines > 0 {
                    note_unread(&mut answer, &why);
                }
                let ended = self.end(Batch::default(), End::Done(answer.to_json().into())).await?;
                self.inner.run_budgets().remove(self.run_id);
                Ok(ended)
            }
        }
    }

    /// Returns the outcome of a run that was cancelled and does not run.
    fn cancelled_outcome(&self, request: &Request<'_>) -> Outcome {
        let error = Error::new(Reason::Cancelled, "the run was cancelled");
        request.failed(&self.inner.engine, Box::new(Problem::new(error, Phase::Setup)))
    }

    async fn run(
        &self,
        tenant: &Arc<TenantState>,
        known: &mut Known,
        slot: &mut Option<Slot>,
        valid_until: Instant,
    ) -> Result<Ended, StoreError> {
        let (inner, active) = (self.inner, self.active);
        let journal = match known.stored.lines {
            0 => {
                let replies = patiently(|| inner.store.replies(self.run_id, 0)).await?;
                crate::store::Journal { text: String::new(), replies }
            }
            _ => patiently(|| inner.store.journal(self.run_id)).await?,
        };
        let text = known.request.clone();
        let Ok(request) = Request::parse(&text) else {
            return self.stick(known, "this version does not read its request".to_owned()).await;
        };
        let lease = (inner.lease_period(), valid_until);
        let writer =
            Writer::new(inner.store.clone(), active.lease.clone(), known.stored, lease, inner.draining.clone());
        let log = self.log(known, &journal.text, &writer);
        let calls = Arc::new(OpenCalls::new(log.clone(), &known.calls, &journal.replies));
        let own = inner.own_tools(&request).await;
        let start = Start {
            request: &request,
            journal: &journal.text,
            replies: &journal.replies,
            cancelled: known.cancelled,
            is_restored: known.is_restored,
        };
        let before = (&*journal.text, known.printed);
        let prepared = match own {
            Ok(own) => {
                let scripted = own.all().filter(|tool| !request.tools.get(tool.name()).is_some_and(|own| own.client));
                log.is_scripted(scripted.map(|tool| tool.name().to_owned()));
                self.prepare(tenant, &start, (&own, &calls), &writer)
            }
            Err(problem) => Prepared::Failed(Box::new(request.failed(&inner.engine, problem))),
        };
        let (input, source) = match prepared {
            Prepared::Run(input, source) => (input, source),
            Prepared::Failed(outcome) => return self.finish(&writer, slot, before, request.answer(&outcome)).await,
            Prepared::Ends(mut batch, end) => {
                let (rest, stored) = writer.close().await;
                (batch.first_event, batch.events, known.stored.events) = (rest.first_event, rest.events, stored.events);
                return self.end(batch, end).await;
            }
        };
        let writes = AbortOnDropHandle::new(tokio::spawn(writer.clone().run()));
        active.attach(&calls, &writer, journal.replies.len() as u64).await;
        let stop = self.go((&calls, &log), tenant, &writer, (&request, &source, *input)).await;
        inner.hub.metrics().run_has_stopped(self.run_id);
        let replies_seen = active.detach().await;
        let (end, counts) = match stop {
            Stop::Lost(error) => return Err(error),
            Stop::Outcome(outcome) if known.cancelled => {
                return self.finish(&writer, slot, before, cancelled(request.answer(&outcome))).await;
            }
            Stop::Outcome(outcome) if known.faults < MAX_FAULTS && may_continue(&outcome, writer.longest_wait()) => {
                let (run_id, faults, verdict) = (self.run_id, known.faults, outcome.verdict());
                tracing::warn!(run_id, faults, %verdict, "a run continues from its journal: its process was lost, or the store took long");
                (End::Requeued { after: FAULT_PAUSE * (1 << known.faults), is_fault: true }, false)
            }
            Stop::Outcome(outcome) => match uncompiled(&journal.text, &outcome) {
                Some(why) => (End::Stuck(why), false),
                // What is being written then is waited for: its lines come before those of the end.
                None => return self.finish(&writer, slot, before, request.answer(&outcome)).await,
            },
            Stop::Drained => {
                tracing::info!(run_id = self.run_id, "a run is handed back: the service shuts down");
                (BACK, false)
            }
            Stop::CallsHeldBack => (BACK, false),
            Stop::Waits => (End::Suspended(replies_seen), true),
        };
        writer.note_unmade();
        let (batch, stored) = writer.close().await;
        drop(writes);
        (known.stored, known.printed) = (stored, log.printed());
        let ended = self.end(batch, end).await?;
        if counts && ended == Ended::Ended {
            inner.hub.metrics().suspended.inc();
        }
        Ok(ended)
    }

    /// Opens the log of the attempt, and arranges how one of a run that was cancelled ends.
    fn log(&self, known: &Known, journal: &str, writer: &Arc<Writer>) -> Arc<EventLog> {
        let quoted = |place: lisp_runtime::outcome::Place| format!("\"{place}\"");
        let started = places_started(journal).map(quoted).collect();
        let ended = places_ended(journal).map(quoted).collect();
        let log = self.inner.hub.in_store(self.run_id, writer.clone(), known.printed, (started, ended));
        if known.stored.events == 0 {
            log.started();
        }
        if known.is_restored {
            let _ = log.restored.set(RestoredCalls::new(places_started(journal)));
        }
        if known.cancelled && !journal.is_empty() {
            // What it has done is in its journal, and not in an answer yet.
            self.active.ends_itself.store(true, Ordering::Relaxed);
            self.active.cancel.reset();
            let _ = log.cancelled.set(self.active.cancel.clone());
        } else if known.cancelled {
            self.active.cancel.cancel();
        }
        log
    }

    /// Runs a program until it ends or should stop.
    async fn go(
        &self,
        (calls, log): (&Arc<OpenCalls>, &Arc<EventLog>),
        tenant: &TenantState,
        writer: &Arc<Writer>,
        (request, source, input): (&Request<'_>, &str, Input<'static>),
    ) -> Stop {
        let (inner, active, began) = (self.inner, self.active, Instant::now());
        let (ask, policy, of) = (calls.clone(), inner.tools.policy.clone(), tenant.name.clone());
        let input = input.cancel_with(&active.cancel).approvals(move |call| {
            let (calls, policy, of) = (ask.clone(), policy.clone(), of.clone());
            async move {
                let approval = calls.approval(&call).await;
                match policy.denies_now(call.name(), &of) {
                    // What the approver did not know.
                    Some(why) if !matches!(approval, Approval::Reject(_)) => Approval::Reject(why.to_owned()),
                    _ => approval,
                }
            }
        });
        let input = match &request.traceparent {
            Some(header) => input.traceparent(header),
            None => input,
        };
        let limits = inner.engine.limits_for(&input);
        // Replies may have come while the attempt started.
        if let Err(error) = patiently(|| active.fetch_replies(&*inner.store, inner.lease_period())).await {
            return Stop::Lost(error);
        }
        let run = ATTEMPT.scope(log.clone(), inner.run_isolated(tenant, request, source, input));
        let run = std::pin::pin!(SENDS.scope(writer.clone(), run));
        let stop = tokio::select! {
            outcome = run => return Stop::Outcome(Box::new(outcome)),
            stop = stops(inner, tenant, calls, (began, limits.timeout_ms)) => stop,
            // A run that was cancelled may have much to do after its journal.
            never = cancel_late(active) => match never {},
            error = writer.failed() => Stop::Lost(error),
            () = active.lost.cancelled() => Stop::Lost(StoreError::LeaseLost),
        };
        // Before the run is dropped, which drops the calls that wait.
        calls.end();
        inner.hub.metrics().run_stops(self.run_id);
        stop
    }

    /// Stores the answer of a run. The journal, and the number of printed lines, are those from before the attempt.
    async fn finish(
        &self,
        writer: &Writer,
        slot: &mut Option<Slot>,
        (journal, printed): (&str, u64),
        mut answer: Answer,
    ) -> Result<Ended, StoreError> {
        note_missing(&mut answer, journal, printed);
        let (batch, _) = writer.close().await;
        self.run_id.clone_into(&mut answer.run_id);
        let answer: Arc<str> = answer.to_json().into();
        // A client that sees the answer may want the slot.
        drop(slot.take());
        let ended = self.end(batch, End::Done(answer)).await?;
        self.inner.run_budgets().remove(self.run_id);
        Ok(ended)
    }

    /// Starts a run, or resumes it from its journal.
    fn prepare(
        &self,
        tenant: &TenantState,
        start: &Start<'_>,
        (own, calls): (&Tools, &Arc<OpenCalls>),
        writer: &Arc<Writer>,
    ) -> Prepared {
        let own = answered_by_client(own, start.request, calls);
        let (inner, request) = (self.inner, start.request);
        let run_budget = inner.run_budget(tenant, self.run_id);
        let builder = match start.cancelled {
            // It makes no call, so nothing is added to its journal.
            true => Recording::builder(),
            false => Recording::builder().recorder(recorder(writer)),
        };
        if start.journal.is_empty() {
            let input = inner.input(tenant, request, own).into_owned().run_id(self.run_id);
            let input = run_budget.iter().fold(input, |input, run_budget| input.budget(run_budget));
            return Prepared::Run(Box::new(input.record(&builder.build())), request.program.clone().into_owned());
        }
        inner.hub.metrics().resumed.inc();
        match self.resume(tenant, start, (own, run_budget.as_ref()), (&builder, writer)) {
            Ok(prepared) => prepared,
            // It cannot continue, and need not.
            Err(_) if start.cancelled => Prepared::Failed(Box::new(self.cancelled_outcome(request))),
            Err(error) => Prepared::Ends(Batch::default(), End::Stuck(stuck(&error))),
        }
    }

    fn resume(
        &self,
        tenant: &TenantState,
        start: &Start<'_>,
        (own, run_budget): (Tools, Option<&Budget>),
        (builder, writer): (&RecordingBuilder, &Writer),
    ) -> Result<Prepared, RecordError> {
        let engine = &self.inner.engine;
        let mut record = Record::parse_within(start.journal, usize::MAX)?;
        let before = record.text().len();
        let denies = |tool: &Tool| self.inner.tools.policy.denies_now(tool.given_name(), &tenant.name);
        let unknown = settle(engine, (start.request, &denies), start.replies, &mut record, start.is_restored)?;
        if !unknown.is_empty() && !start.cancelled {
            let calls: Vec<String> = unknown.iter().map(|call| format!("{} of {}", call.call, call.name)).collect();
            tracing::info!(
                run_id = self.run_id,
                calls = calls.join(", "),
                "a run waits: it is unknown whether its calls were done"
            );
            let batch = Batch { opened: unknown.iter().map(StoredCall::from).collect(), ..Batch::default() };
            return Ok(Prepared::Ends(batch, End::Suspended(start.replies.len() as u64)));
        }
        for call in &unknown {
            // The replay ends here: its answer does not know either how the call ended.
            record.settle(&call.call, Settled::NotMade)?;
        }
        if let Some(run_budget) = run_budget {
            run_budget.note_paid(places_started(start.journal));
        }
        let given = Input::new().tools(own);
        let given = run_budget.into_iter().fold(given, Input::budget);
        let (source, input, _) = engine.open_record_source(&record, given, builder)?;
        for line in record.text()[before..].split_inclusive('\n').filter(|_| !start.cancelled) {
            // It is open: the attempt has just begun.
            let _ = writer.line(line);
        }
        // The tenant's ceiling may be lower than it was.
        let limits = engine.limits_for(&input).min(&tenant.ceiling);
        let input = input.limits(LimitsRequest::all(&limits));
        Ok(Prepared::Run(Box::new(input), source))
    }
}

/// What an attempt is begun from.
struct Start<'a> {
    request: &'a Request<'a>,
    journal: &'a str,
    replies: &'a [StoredReply],
    cancelled: bool,
    is_restored: bool,
}

/// Says why a run cannot continue, in the words of the service.
pub(super) fn stuck(error: &RecordError) -> String {
    match error {
        RecordError::MissingTools(names) => {
            format!(
                "tools missing from the configuration: {}; configure them again, or cancel the run",
                names.join(", ")
            )
        }
        RecordError::Tool { .. } => format!("{error}; configure the tool as it was, or cancel the run"),
        RecordError::Program(why) => format!("this version does not compile its program: {why}"),
        error => error.to_string(),
    }
}

/// Cancels an attempt that should end by itself, if it does not.
async fn cancel_late(active: &ActiveRun) -> Infallible {
    tokio::time::sleep(REPLAY).await;
    if active.ends_itself.load(Ordering::Relaxed) {
        active.cancel.cancel();
    }
    std::future::pending().await
}

/// Returns whether a run should go on from its journal although it has an outcome: its process was lost, or the store
/// kept a call waiting for a part of the time that is over. The next attempt has all of the time again.
fn may_continue(outcome: &Outcome, longest_wait: Duration) -> bool {
    let waited = || longest_wait >= Duration::from_millis((time_over(outcome) / 4).max(1));
    outcome.verdict() == Verdict::HostFault || (outcome.verdict() == Verdict::Timeout && waited())
}

/// Returns the milliseconds of the limit that has ended a run: `timeout_ms` or `parallel_timeout_ms`.
fn time_over(outcome: &Outcome) -> u64 {
    let limit = outcome.problem().and_then(|problem| problem.error.named_detail("limit_ms"));
    match limit {
        Some(&Detail::Int(ms)) => u64::try_from(ms).unwrap_or(outcome.limits.timeout_ms),
        _ => outcome.limits.timeout_ms,
    }
}

/// Returns why a run cannot continue whose program had run, by its journal, and does not compile now: this version, or
/// its configuration, is another one.
fn uncompiled(journal: &str, outcome: &Outcome) -> Option<String> {
    let has_run = journal.lines().nth(1).is_some();
    let problem = outcome.problem().filter(|problem| has_run && problem.phase == Phase::Compile)?;
    (outcome.verdict() == Verdict::Error).then(|| stuck(&RecordError::Program(problem.error.to_string())))
}

/// Returns the tools of the request. Calls of tools that the client answers become open calls.
fn answered_by_client(own: &Tools, request: &Request<'_>, calls: &Arc<OpenCalls>) -> Tools {
    let mut tools = Tools::new();
    for tool in own.all() {
        let mut tool = tool.as_ref().clone();
        if request.tools.get(tool.name()).is_some_and(|script| script.client) {
            let calls = calls.clone();
            // Its client takes the time that it takes, and recognizes a call that it is asked for again.
            tool = tool.delay(Duration::ZERO).idempotent().with_async_handler(move |call| {
                let calls = calls.clone();
                async move { calls.result(&call).await }
            });
        }
        // It was in a set of the same names.
        let _ = tools.add(tool);
    }
    tools
}

/// Passes the lines of a run's journal to its writer. The tools of the service wait until their lines are stored.
fn recorder(writer: &Arc<Writer>) -> impl Recorder + use<> {
    let writer = writer.clone();
    move |line: &str| -> Result<(), Box<dyn StdError + Send + Sync>> { writer.line(line).map_err(Into::into) }
}

/// Returns when the run should be stopped.
///
/// A run is stopped only while all its calls in progress wait for outside answers, or are held back. The reasons are:
///
/// - The service is shutting down. Calls that start from then on are held: a program that makes one call after the other
///   would not stop otherwise, because the pauses between its calls are shorter than those between two looks at it.
/// - A call is held back.
/// - The run waits for outside answers, and has been quiet for `suspend_after_ms` or has used half of its timeout.
///   The next attempt gets the whole timeout again.
async fn stops(inner: &Inner, tenant: &TenantState, calls: &OpenCalls, (began, timeout_ms): (Instant, u64)) -> Stop {
    let suspend_after = Duration::from_millis(inner.config.service.suspend_after_ms);
    let step = (suspend_after / 8).clamp(Duration::from_millis(5), Duration::from_millis(100));
    let half = if timeout_ms == 0 { Duration::MAX } else { Duration::from_millis(timeout_ms / 2) };
    let (mut seen, mut since, mut is_draining) = (calls.pace(), Instant::now(), false);
    loop {
        tokio::select! {
            () = tokio::time::sleep(step) => {}
            () = inner.draining.cancelled(), if !is_draining => {}
        }
        is_draining = inner.draining.is_cancelled();
        calls.close_left();
        let pace = calls.pace();
        if pace != seen {
            (seen, since) = (pace, Instant::now());
        }
        let (in_progress, _) = pace;
        let (outside, held_back) = (calls.waiting(), calls.held_back());
        if held_back > 0 && in_progress <= outside + held_back {
            return Stop::CallsHeldBack;
        }
        if is_draining {
            // Scripted tools have no effect: their calls can be made again.
            let (held, scripted) = (calls.held(), calls.scripted());
            if in_progress <= outside + held + scripted {
                return if outside > 0 && held + scripted == 0 { Stop::Waits } else { Stop::Drained };
            }
        }
        // Free the slot at once if others wait for one.
        let is_crowded = inner.admission.is_crowded() || tenant.is_crowded();
        let enough = if is_crowded { step } else { suspend_after };
        if outside > 0 && in_progress <= outside && (since.elapsed() >= enough || began.elapsed() >= half) {
            return Stop::Waits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{NewRun, Room, RunStore};
    use lisp_runtime::{Engine, Limits};

    /// What counts is the limit that has ended the run.
    #[test]
    fn a_store_that_took_a_part_of_the_time_is_not_the_fault_of_the_run() {
        let program = "(pmap (fn [_] (loop [n 0] (recur (inc n)))) [1 2])";
        for (timeout_ms, parallel_timeout_ms) in [(60_000, 40), (40, 60_000)] {
            let mut limits = LimitsRequest::all(&Limits::unlimited());
            (limits.timeout_ms, limits.parallel_timeout_ms) = (Some(timeout_ms), Some(parallel_timeout_ms));
            let engine = Engine::builder().ceiling(Limits::unlimited()).build().unwrap();
            let outcome = engine.eval(program, Input::new().limits(limits));
            assert_eq!((outcome.verdict(), time_over(&outcome)), (Verdict::Timeout, 40), "{:?}", outcome.problem());
            assert!(may_continue(&outcome, Duration::from_millis(10)));
            assert!(!may_continue(&outcome, Duration::from_millis(9)));
        }
    }

    #[test]
    fn a_store_that_fails_is_tried_again_and_damage_is_not() {
        let failed = || StoreError::Failed("no row".to_owned());
        for faults in 0..MAX_FAULTS {
            let end = after_failure(&failed(), faults);
            assert!(
                matches!(end, End::Requeued { is_fault: true, after } if after == FAULT_PAUSE * (1 << faults)),
                "{end:?}"
            );
        }
        assert!(matches!(after_failure(&failed(), MAX_FAULTS), End::Stuck(why) if why.contains("no row")));
        let damaged = StoreError::Damaged("line 2 of the journal of run a".to_owned());
        assert!(matches!(after_failure(&damaged, 0), End::Stuck(why) if why.contains("line 2")));
    }

    /// A run that its worker cannot continue, cancelled while the worker finds out: whatever the reason, it is cancelled.
    #[tokio::test]
    async fn a_run_that_is_cancelled_while_it_gets_stuck_is_cancelled() {
        for (tenant, request) in [("anonymous", "{}"), ("anonymous", "[]"), ("gone", "{\"program\": \"1\"}")] {
            for is_known in [false, true] {
                let store = Arc::new(crate::store::MemoryStore::new());
                let text = "isolation = \"in-process\"\n";
                let config = crate::config::Config::parse_with(text, "test.toml", &|_| None).unwrap();
                let service = super::super::Service::open_front(config, store.clone()).await.unwrap();
                let run = NewRun { run_id: "run".to_owned(), tenant: tenant.to_owned(), request: request.to_owned() };
                store.submit(run, None).await.unwrap();
                if is_known {
                    store.cancel("run").await.unwrap();
                }
                let room = Room { slots: 1, tenants: vec![(tenant.to_owned(), 1)] };
                let claim = store.claim("worker", Duration::from_secs(60), &room).await.unwrap().remove(0);
                let active = Arc::new(ActiveRun::new(claim.lease.clone()));
                store.cancel("run").await.unwrap();
                let inner = &service.0;
                let mut slots = inner.admission.slots(&[(inner.tenants[0].clone(), 1)], 1).await.unwrap();
                let (_, slot) = slots.take("anonymous").unwrap();
                let until = Instant::now() + Duration::from_secs(60);
                let driven = drive(inner, claim, &active, slot, until);
                tokio::time::timeout(Duration::from_secs(60), driven).await.unwrap();
                let run = store.run("run").await.unwrap().unwrap();
                assert_eq!(run.summary.status, crate::store::RunStatus::Done, "{tenant} {request}");
                let answer: serde_json::Value = serde_json::from_str(&run.answer.unwrap()).unwrap();
                assert_eq!((&answer["verdict"], &answer["run_id"]), (&"cancelled".into(), &"run".into()), "{answer}");
            }
        }
    }
}
