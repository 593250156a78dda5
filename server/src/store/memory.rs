//! A store in memory. It is the model of a store: tests compare the others with it.

mod sessions;

use super::clock::{Clock, millis};
use super::rules::{
    PRINT, RESTORED, call_bytes, closed, end_name, events_out_of_order, exists, has_news, known, shown,
};
use super::{
    Batch, Claim, EVENT_BYTES, End, Ended, Events, Journal, Lease, NewRun, News, PAGE_BYTES, Page, Query, Renewed,
    Replied, RequestKey, Result, Room, RunStatus, RunStore, RunSummary, Store, StoreError, StoredCall, StoredEvent,
    StoredReply, StoredRun, Submitted, Sweep, Usage, news,
};
use async_trait::async_trait;
use sessions::Session;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;

/// A store in memory. Its data is lost when the process ends.
///
/// It favors clear code over speed: most operations look at all runs.
#[derive(Debug)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
    news: broadcast::Sender<News>,
}

#[derive(Debug)]
struct Inner {
    is_closed: bool,
    clock: Clock,
    runs: BTreeMap<String, Run>,
    sessions: BTreeMap<String, Session>,
    secrets: BTreeMap<String, Vec<u8>>,
    restored_ms: Option<i64>,
}

#[derive(Debug)]
struct Run {
    tenant: String,
    key: Option<RequestKey>,
    request: Arc<str>,
    answer: Option<Arc<str>>,
    /// The stored status: `Waiting` is suspended.
    status: RunStatus,
    cancelled: bool,
    error: Option<String>,
    created_ms: i64,
    updated_ms: i64,
    /// When a queued run can be claimed, and when the lease of a running one expires.
    ready_ms: i64,
    /// The number of attempts.
    epoch: u64,
    /// The last attempt that ended, and how.
    ended: Option<(u64, &'static str)>,
    faults: u32,
    lines: Vec<String>,
    events: Vec<StoredEvent>,
    /// How many calls were opened.
    opened: u64,
    /// The calls that are open.
    calls: Vec<StoredCall>,
    replies: Vec<StoredReply>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore {
            inner: Mutex::new(Inner {
                is_closed: false,
                clock: Clock::new(),
                runs: BTreeMap::new(),
                sessions: BTreeMap::new(),
                secrets: BTreeMap::new(),
                restored_ms: None,
            }),
            news: news::channel(),
        }
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    fn lock(&self) -> Result<MutexGuard<'_, Inner>> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.is_closed { Err(closed()) } else { Ok(inner) }
    }

    fn send(&self, news: News) {
        // Without subscribers there is nobody to tell.
        let _ = self.news.send(news);
    }

    fn queued(&self, run_id: &str) {
        self.send(News::Queued);
        self.send(News::Changed(run_id.into()));
    }

    fn replied(&self, run_id: &str, was: RunStatus) {
        match was {
            RunStatus::Waiting | RunStatus::Stuck => self.queued(run_id),
            RunStatus::Running => {
                self.send(News::Replied(run_id.into()));
                self.send(News::Changed(run_id.into()));
            }
            RunStatus::Queued | RunStatus::Done => self.send(News::Changed(run_id.into())),
        }
    }

    fn cancel_in(&self, inner: &mut Inner, run_id: &str) -> bool {
        let (wall, steady) = (inner.clock.wall_ms(), inner.clock.steady_ms());
        let Some(run) = inner.runs.get_mut(run_id) else { return false };
        let was = run.status;
        if was == RunStatus::Done {
            return true;
        }
        run.cancelled = true;
        run.updated_ms = wall;
        if matches!(was, RunStatus::Waiting | RunStatus::Stuck) {
            run.queue(steady);
        }
        self.replied(run_id, was);
        true
    }
}

impl Inner {
    fn known(&self, tenant: &str, key: &RequestKey) -> Option<Submitted> {
        self.runs.iter().find_map(|(run_id, run)| {
            let used = run.key.as_ref().filter(|used| run.tenant == tenant && used.key == key.key)?;
            Some(match used.digest == key.digest {
                true => Submitted::Known(run_id.clone()),
                false => Submitted::OtherRequest,
            })
        })
    }

    /// Returns the run of a lease that is valid.
    fn leased(&mut self, lease: &Lease) -> Result<&mut Run> {
        let run = self.runs.get_mut(&*lease.run_id).ok_or(StoreError::LeaseLost)?;
        let is_valid = run.status == RunStatus::Running && run.epoch == lease.epoch;
        if is_valid { Ok(run) } else { Err(StoreError::LeaseLost) }
    }

    /// Returns the run of a tenant that can be claimed first.
    /// Returns the runs of a tenant that can be claimed.
    fn claimable(&self, tenant: &str, now: i64) -> impl Iterator<Item = (&String, &Run)> {
        self.runs.iter().filter(move |(_, run)| {
            run.tenant == tenant && matches!(run.status, RunStatus::Queued | RunStatus::Running) && run.ready_ms <= now
        })
    }

    fn next(&self, tenant: &str, now: i64, but: &[Claim]) -> Option<String> {
        let claimable =
            self.claimable(tenant, now).filter(|(run_id, _)| !but.iter().any(|claim| *claim.lease.run_id == ***run_id));
        claimable.min_by_key(|(run_id, run)| (run.ready_ms, *run_id)).map(|(run_id, _)| run_id.clone())
    }
}

impl Run {
    fn bytes(&self) -> usize {
        let lines: usize = self.lines.iter().map(String::len).sum();
        self.request.len() + lines + self.answer.as_ref().map_or(0, |answer| answer.len())
    }

    fn summary(&self, run_id: &str) -> RunSummary {
        RunSummary {
            run_id: run_id.to_owned(),
            tenant: self.tenant.clone(),
            status: shown(self.status, self.calls.len() as u64),
            cancelled: self.cancelled,
            error: self.error.clone(),
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            calls: self.calls.clone(),
        }
    }

    /// Queues a run that is suspended or stuck.
    fn queue(&mut self, now: i64) {
        if self.status == RunStatus::Stuck {
            self.error = None;
            self.faults = 0;
        }
        self.status = RunStatus::Queued;
        self.ready_ms = now;
    }

    fn write(&mut self, run_id: &str, batch: Batch, now: i64) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let Batch { first_line, lines, first_event, events, opened, closed } = batch;
        let stored = self.lines.len() as u64;
        let out_of_order = StoreError::OutOfOrder { stored, written: first_line };
        let Some(old_lines) = known(stored, first_line, lines.len()) else { return Err(out_of_order) };
        let is_same =
            lines[..old_lines].iter().enumerate().all(|(n, line)| *line == self.lines[first_line as usize - 1 + n]);
        if !is_same {
            return Err(out_of_order);
        }
        let stored = self.events.len() as u64;
        let Some(old_events) = known(stored, first_event, events.len()) else {
            return Err(events_out_of_order(run_id, stored, first_event));
        };
        if old_lines < lines.len() {
            self.faults = 0;
        }
        self.lines.extend(lines.into_iter().skip(old_lines));
        for (kind, data) in events.into_iter().skip(old_events) {
            let number = self.events.len() as u64 + 1;
            self.events.push(StoredEvent { number, kind: kind.to_owned(), data });
        }
        for call in opened {
            let is_open = self.calls.iter().any(|open| (&open.call, &open.phase) == (&call.call, &call.phase));
            if !is_open && self.reply_to(&call.call, &call.phase).is_none() {
                self.opened += 1;
                self.calls.push(StoredCall { number: self.opened, ..call });
            }
        }
        self.calls.retain(|open| !closed.iter().any(|(call, phase)| (&open.call, &open.phase) == (call, phase)));
        self.updated_ms = now;
        Ok(())
    }

    fn reply_to(&self, call: &str, phase: &str) -> Option<&StoredReply> {
        self.replies.iter().find(|reply| reply.call == call && reply.phase == phase)
    }

    fn reply(&mut self, reply: StoredReply) -> Replied {
        if let Some(first) = self.reply_to(&reply.call, &reply.phase) {
            return if first.body == reply.body { Replied::Repeated } else { Replied::Answered };
        }
        if matches!(self.status, RunStatus::Stuck | RunStatus::Done) {
            return Replied::Over(self.status);
        }
        if self.cancelled {
            return Replied::Cancelled;
        }
        let Some(open) = self.calls.iter().position(|open| open.call == reply.call && open.phase == reply.phase) else {
            return Replied::NoCall;
        };
        self.calls.remove(open);
        self.replies.push(reply);
        Replied::Taken
    }
}

#[async_trait]
impl RunStore for MemoryStore {
    async fn submit(&self, run: NewRun, key: Option<RequestKey>) -> Result<Submitted> {
        let mut inner = self.lock()?;
        if let Some(known) = key.as_ref().and_then(|key| inner.known(&run.tenant, key)) {
            return Ok(known);
        }
        let NewRun { run_id, tenant, request } = run;
        if inner.runs.contains_key(&run_id) {
            return Err(exists("run", &run_id));
        }
        let (wall, steady) = (inner.clock.wall_ms(), inner.clock.steady_ms());
        let run = Run {
            tenant,
            key,
            request: request.into(),
            answer: None,
            status: RunStatus::Queued,
            cancelled: false,
            error: None,
            created_ms: wall,
            updated_ms: wall,
            ready_ms: steady,
            epoch: 0,
            ended: None,
            faults: 0,
            lines: Vec::new(),
            events: Vec::new(),
            opened: 0,
            calls: Vec::new(),
            replies: Vec::new(),
        };
        self.queued(&run_id);
        inner.runs.insert(run_id, run);
        Ok(Submitted::New)
    }

    async fn known_request(&self, tenant: &str, key: RequestKey) -> Result<Option<Submitted>> {
        Ok(self.lock()?.known(tenant, &key))
    }

    async fn claimable(&self, tenants: &[String], max: usize) -> Result<Vec<usize>> {
        let inner = self.lock()?;
        let now = inner.clock.steady_ms();
        Ok(tenants.iter().map(|tenant| inner.claimable(tenant, now).take(max).count()).collect())
    }

    async fn claim(&self, _worker: &str, period: Duration, room: &Room) -> Result<Vec<Claim>> {
        let mut inner = self.lock()?;
        let (wall, steady) = (inner.clock.wall_ms(), inner.clock.steady_ms());
        let (mut claims, mut left) = (Vec::new(), room.tenants.clone());
        let mut went_on = true;
        while went_on {
            went_on = false;
            for (tenant, left) in &mut left {
                if claims.len() == room.slots {
                    return Ok(claims);
                }
                if *left == 0 {
                    continue;
                }
                let Some(run_id) = inner.next(tenant, steady, &claims) else { continue };
                let Some(run) = inner.runs.get_mut(&run_id) else { continue };
                (*left, went_on) = (*left - 1, true);
                if run.status == RunStatus::Running {
                    run.faults = run.faults.saturating_add(1);
                }
                run.status = RunStatus::Running;
                run.epoch += 1;
                run.ready_ms = steady.saturating_add(millis(period));
                run.updated_ms = wall;
                let summary = RunSummary { status: RunStatus::Running, ..run.summary(&run_id) };
                claims.push(Claim {
                    lease: Lease { run_id: run_id.into(), epoch: run.epoch },
                    run: StoredRun { summary, request: run.request.clone(), answer: None },
                    lines: run.lines.len() as u64,
                    events: run.events.len() as u64,
                    printed: run.events.iter().filter(|event| event.kind == PRINT).count() as u64,
                    faults: run.faults,
                });
            }
        }
        Ok(claims)
    }

    async fn renew(&self, leases: &[Lease], period: Duration) -> Result<Vec<Renewed>> {
        let mut inner = self.lock()?;
        let until = inner.clock.steady_ms().saturating_add(millis(period));
        let renewed = leases.iter().map(|lease| match inner.leased(lease) {
            Ok(run) => {
                run.ready_ms = until;
                Renewed::Held { cancelled: run.cancelled, replies: run.replies.len() as u64 }
            }
            Err(_) => Renewed::Lost,
        });
        Ok(renewed.collect())
    }

    async fn journal(&self, run_id: &str) -> Result<Journal> {
        let inner = self.lock()?;
        let Some(run) = inner.runs.get(run_id) else { return Ok(Journal::default()) };
        Ok(Journal { text: run.lines.concat(), replies: run.replies.clone() })
    }

    async fn replies(&self, run_id: &str, skip: u64) -> Result<Vec<StoredReply>> {
        let inner = self.lock()?;
        let replies = inner.runs.get(run_id).map(|run| run.replies.as_slice()).unwrap_or_default();
        Ok(replies.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).cloned().collect())
    }

    async fn write(&self, lease: &Lease, batch: Batch) -> Result<()> {
        let mut inner = self.lock()?;
        let wall = inner.clock.wall_ms();
        let is_seen = !(batch.events.is_empty() && batch.opened.is_empty() && batch.closed.is_empty());
        inner.leased(lease)?.write(&lease.run_id, batch, wall)?;
        if is_seen {
            self.send(News::Changed(lease.run_id.clone()));
        }
        Ok(())
    }

    async fn end(&self, lease: &Lease, batch: Batch, end: End) -> Result<Ended> {
        let mut inner = self.lock()?;
        let (wall, steady) = (inner.clock.wall_ms(), inner.clock.steady_ms());
        let this = (lease.epoch, end_name(&end));
        if inner.runs.get(&*lease.run_id).is_some_and(|run| run.ended == Some(this)) {
            return Ok(Ended::Ended);
        }
        let run = inner.leased(lease)?;
        run.write(&lease.run_id, batch, wall)?;
        if has_news(&end, run.cancelled, run.replies.len() as u64) {
            self.send(News::Changed(lease.run_id.clone()));
            return Ok(Ended::News);
        }
        match end {
            End::Done(answer) => {
                run.status = RunStatus::Done;
                run.answer = Some(answer);
                run.calls.clear();
            }
            End::Suspended(_) if run.calls.is_empty() => run.queue(steady),
            End::Suspended(_) => run.status = RunStatus::Waiting,
            End::Requeued { after, is_fault } => {
                run.queue(steady.saturating_add(millis(after)));
                run.faults = run.faults.saturating_add(is_fault.into());
            }
            End::Stuck(why) => {
                run.status = RunStatus::Stuck;
                run.error = Some(why);
            }
        }
        run.ended = Some(this);
        run.updated_ms = wall;
        match run.status {
            RunStatus::Queued => self.queued(&lease.run_id),
            _ => self.send(News::Changed(lease.run_id.clone())),
        }
        Ok(Ended::Ended)
    }

    async fn reply(&self, run_id: &str, reply: StoredReply) -> Result<Replied> {
        let mut inner = self.lock()?;
        let (wall, steady) = (inner.clock.wall_ms(), inner.clock.steady_ms());
        let Some(run) = inner.runs.get_mut(run_id) else { return Ok(Replied::NoRun) };
        let replied = run.reply(reply);
        if replied == Replied::Taken {
            let was = run.status;
            run.updated_ms = wall;
            if was == RunStatus::Waiting {
                run.queue(steady);
            }
            self.replied(run_id, was);
        }
        Ok(replied)
    }

    async fn cancel(&self, run_id: &str) -> Result<bool> {
        Ok(self.cancel_in(&mut *self.lock()?, run_id))
    }

    async fn retry(&self, run_id: &str) -> Result<bool> {
        let mut inner = self.lock()?;
        let (wall, steady) = (inner.clock.wall_ms(), inner.clock.steady_ms());
        let Some(run) = inner.runs.get_mut(run_id).filter(|run| run.status == RunStatus::Stuck) else {
            return Ok(false);
        };
        run.queue(steady);
        run.updated_ms = wall;
        self.queued(run_id);
        Ok(true)
    }

    async fn run(&self, run_id: &str) -> Result<Option<StoredRun>> {
        let inner = self.lock()?;
        Ok(inner.runs.get(run_id).map(|run| StoredRun {
            summary: run.summary(run_id),
            request: run.request.clone(),
            answer: run.answer.clone(),
        }))
    }

    async fn events(&self, run_id: &str, skip: u64) -> Result<Events> {
        let inner = self.lock()?;
        let Some(run) = inner.runs.get(run_id) else { return Ok(Events::default()) };
        let (mut events, mut bytes) = (Vec::new(), 0);
        for event in run.events.iter().filter(|event| event.number > skip) {
            bytes += event.data.len();
            if bytes > EVENT_BYTES && !events.is_empty() {
                return Ok(Events { events, is_over: false });
            }
            events.push(event.clone());
        }
        Ok(Events { events, is_over: run.status == RunStatus::Done })
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        let inner = self.lock()?;
        let mut runs: Vec<RunSummary> = inner.runs.iter().map(|(run_id, run)| run.summary(run_id)).collect();
        runs.retain(|run| {
            query.tenant.as_ref().is_none_or(|tenant| *tenant == run.tenant)
                && query.status.is_none_or(|status| status == run.status)
                && query.after.as_ref().is_none_or(|(ms, id)| (run.created_ms, &run.run_id) < (*ms, id))
        });
        runs.sort_by(|a, b| (b.created_ms, &b.run_id).cmp(&(a.created_ms, &a.run_id)));
        let mut bytes = 0;
        let fits = runs.iter().take(query.max).take_while(|run| {
            let is_room = bytes <= PAGE_BYTES;
            bytes += run.calls.iter().map(call_bytes).sum::<usize>();
            is_room
        });
        let taken = fits.count();
        let has_more = taken < runs.len();
        runs.truncate(taken);
        Ok(Page { runs, has_more })
    }

    async fn usage(&self, tenant: &str) -> Result<Usage> {
        let inner = self.lock()?;
        let mut usage = Usage::default();
        for run in inner.runs.values().filter(|run| run.tenant == tenant) {
            usage.runs += 1;
            usage.queued += u64::from(matches!(run.status, RunStatus::Queued | RunStatus::Running));
            usage.bytes += run.bytes() as u64;
        }
        Ok(usage)
    }

    async fn unfinished(&self) -> Result<Vec<(RunStatus, u64)>> {
        let inner = self.lock()?;
        let shown: Vec<_> = inner.runs.values().map(|run| shown(run.status, run.calls.len() as u64)).collect();
        let count = |status| shown.iter().filter(|shown| **shown == status).count() as u64;
        let statuses = RunStatus::ALL.into_iter().filter(|status| *status != RunStatus::Done);
        Ok(statuses.map(|status| (status, count(status))).collect())
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn check_writable(&self) -> Result<()> {
        self.lock().map(drop)
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        Ok(self.lock()?.secrets.entry(name.to_owned()).or_insert(fresh).clone())
    }

    async fn restored_until(&self, marks: bool) -> Result<i64> {
        let mut inner = self.lock()?;
        if marks {
            let newest = inner.runs.values().map(|run| run.created_ms).max();
            inner.restored_ms = inner.restored_ms.max(newest);
            let start = format!("{RESTORED}: ");
            let gates = inner.runs.values_mut().flat_map(|run| &mut run.calls).filter(|call| call.phase == "gate");
            for question in
                gates.filter_map(|call| call.question.as_mut()).filter(|question| !question.starts_with(&start))
            {
                question.insert_str(0, &start);
            }
        }
        Ok(inner.restored_ms.unwrap_or(-1))
    }

    async fn sweep(&self, sweep: Sweep) -> Result<u64> {
        let mut inner = self.lock()?;
        let steady = inner.clock.steady_ms();
        let before = inner.runs.len() + inner.sessions.len();
        inner.runs.retain(|_, run| run.status != RunStatus::Done || run.updated_ms >= sweep.finished_before_ms);
        inner
            .sessions
            .retain(|_, session| session.is_in_turn(steady) || session.updated_ms >= sweep.sessions_before_ms);
        let deleted = before - inner.runs.len() - inner.sessions.len();
        if let Some(limit) = sweep.submitted_before_ms {
            let old = |run: &Run| run.status != RunStatus::Done && !run.cancelled && run.created_ms < limit;
            let old: Vec<_> = inner.runs.iter().filter(|(_, run)| old(run)).map(|(run_id, _)| run_id.clone()).collect();
            for run_id in old {
                self.cancel_in(&mut inner, &run_id);
            }
        }
        Ok(deleted as u64)
    }

    async fn close(&self) -> Result<()> {
        self.lock()?.is_closed = true;
        Ok(())
    }
}
