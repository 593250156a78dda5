//! Compares a store with the model, which is `MemoryStore`: the same operations have the same results.
//!
//! Nothing else may use the store meanwhile. It may have data of earlier cases: runs, tenants and sessions have new names in
//! each case.

use super::ops::{Ending, Op, Pick, To, Written, ops};
use lisp_server::store::{
    Batch, Claim, End, Ended, Events, Lease, MemoryStore, NewRun, NewSession, Put, Query, RequestKey, Room, RunStatus,
    RunSummary, SessionLimits, SessionSummary, Store, StoreError, StoredCall, StoredReply, StoredRun, StoredSession,
    Sweep, TurnLease, TurnStart, Undo,
};
use proptest::test_runner::{Config, TestRunner};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;

const LONG: Duration = Duration::from_secs(3_600);
/// The maximum number of runs of a case. More are submitted with the ID of the last one.
const RUNS: usize = 6;
const SESSIONS: usize = 3;

/// Compares a store with the model: draws sequences of operations.
pub(crate) fn check_cases(runtime: &Runtime, store: &Arc<dyn Store>, cases: u32) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let run = TestRunner::new(config).run(&ops(), |ops| {
        runtime.block_on(agrees_with_the_model(store.clone(), &ops));
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

/// Does the operations on a store and on the model.
///
/// # Panics
/// If their results differ.
pub(crate) async fn agrees_with_the_model(store: Arc<dyn Store>, ops: &[Op]) {
    let case = new_name();
    let model = Side::new(Arc::new(MemoryStore::new()), &case).await;
    let store = Side::new(store, &case).await;
    let mut sides = [model, store];
    for (n, op) in ops.iter().enumerate() {
        compare(&mut sides, op, || format!("operation {n} of {ops:#?}")).await;
    }
    // All of it, then the end of all runs: what one case leaves does not concern the next.
    let reads = (0..=RUNS as u8).map(|run| Op::Read { run, skip: 0 });
    let reads = reads.chain((0..=SESSIONS as u8).map(|session| Op::ReadSession { session })).chain([Op::Counts]);
    for op in reads {
        compare(&mut sides, &op, || format!("after {ops:#?}")).await;
    }
    for side in &mut sides {
        side.end_all().await;
    }
    for run in 0..=RUNS as u8 {
        compare(&mut sides, &Op::Read { run, skip: 0 }, || format!("at the end of {ops:#?}")).await;
    }
}

async fn compare([model, store]: &mut [Side; 2], op: &Op, place: impl FnOnce() -> String) {
    let start = next_ms();
    model.starts.push(start);
    store.starts.push(start);
    let (expected, found) = (model.apply(op).await, store.apply(op).await);
    assert_eq!(found, expected, "{op:?}, {}", place());
}

/// Returns a name that no other case has, also none of another process.
fn new_name() -> String {
    static CASES: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    format!("{:x}-{}-{}", since.as_millis(), std::process::id(), CASES.fetch_add(1, Ordering::Relaxed))
}

/// Waits for more than a millisecond: each operation has a time of its own, by every clock that counts milliseconds.
fn next_ms() -> i64 {
    let now = || i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let last = now();
    while now() <= last + 1 {
        std::thread::sleep(Duration::from_micros(100));
    }
    now()
}

/// A lease that was given once, and where its run's journal is as its attempt knows it.
struct Held {
    lease: Lease,
    lines: u64,
    events: u64,
    may_be_valid: bool,
}

/// A store, and what the workers know.
struct Side {
    store: Arc<dyn Store>,
    case: String,
    /// When each operation began.
    starts: Vec<i64>,
    runs: usize,
    held: Vec<Held>,
    /// The calls that were opened: run, call and phase.
    opened: Vec<(String, String, String)>,
    /// The runs that were stuck at some time.
    stuck: Vec<String>,
    /// The tenants of the sessions.
    sessions: Vec<u8>,
    turns: Vec<TurnLease>,
    /// The runs of other cases, by status.
    others: Vec<(RunStatus, u64)>,
}

fn shown<T: Debug>(result: Result<T, StoreError>) -> String {
    match result {
        // The text is the store's own.
        Err(StoreError::Failed(_)) => "Failed".to_owned(),
        result => format!("{result:?}"),
    }
}

fn name(call: u8, phase: u8) -> (String, String) {
    (format!("call{call}"), ["gate", "result"][usize::from(phase)].to_owned())
}

fn newest<T>(of: &[T], n: u8) -> Option<usize> {
    of.len().checked_sub(1).map(|last| last - usize::from(n) % of.len())
}

fn period(lapses: bool) -> Duration {
    if lapses { Duration::ZERO } else { LONG }
}

const ALL: Sweep = Sweep { finished_before_ms: i64::MAX, sessions_before_ms: i64::MAX, submitted_before_ms: None };

impl Side {
    async fn new(store: Arc<dyn Store>, case: &str) -> Side {
        store.sweep(ALL).await.unwrap();
        let others = store.unfinished().await.unwrap();
        Side {
            store,
            case: case.to_owned(),
            starts: Vec::new(),
            runs: 0,
            held: Vec::new(),
            opened: Vec::new(),
            stuck: Vec::new(),
            sessions: Vec::new(),
            turns: Vec::new(),
            others,
        }
    }

    fn run_id(&self, run: u8) -> String {
        format!("{}-{run:03}", self.case)
    }

    /// Returns the ID of one of the runs that were submitted, or of none.
    fn some_run(&self, run: u8) -> String {
        self.run_id(run % (self.runs.min(RUNS) as u8 + 1))
    }

    /// Returns the place of a lease, if there is one.
    fn lease(&self, pick: &Pick) -> Option<usize> {
        let all: Vec<usize> = (0..self.held.len()).collect();
        let valid: Vec<usize> = all.iter().copied().filter(|n| self.held[*n].may_be_valid).collect();
        let of = if pick.is_any || valid.is_empty() { all } else { valid };
        newest(&of, pick.back).map(|n| of[n])
    }

    fn tenant(&self, tenant: u8) -> String {
        format!("{}-tenant{tenant}", self.case)
    }

    fn session_id(&self, session: u8) -> String {
        format!("{}-session{session}", self.case)
    }

    /// Returns the number of the operation that began before this moment.
    fn moment(&self, ms: i64) -> i64 {
        self.starts.partition_point(|start| *start <= ms) as i64
    }

    fn summary(&self, summary: RunSummary) -> RunSummary {
        let (created_ms, updated_ms) = (self.moment(summary.created_ms), self.moment(summary.updated_ms));
        RunSummary { created_ms, updated_ms, ..summary }
    }

    fn run(&self, run: StoredRun) -> StoredRun {
        StoredRun { summary: self.summary(run.summary), ..run }
    }

    fn session_summary(&self, session: SessionSummary) -> SessionSummary {
        let (created_ms, updated_ms) = (self.moment(session.created_ms), self.moment(session.updated_ms));
        SessionSummary { created_ms, updated_ms, ..session }
    }

    /// Returns the session, if its summary is that which is read without its texts.
    async fn session(&self, session_id: &str) -> Option<StoredSession> {
        let session = self.store.session(session_id).await.unwrap();
        let summary = self.store.session_summary(session_id).await.unwrap();
        assert_eq!(summary.as_ref(), session.as_ref().map(|session| &session.summary));
        session.map(|session| {
            let bytes = session.opening.len() + session.text.as_ref().map_or(0, String::len);
            assert_eq!(session.summary.bytes, bytes as u64, "{session:?}");
            StoredSession { summary: self.session_summary(session.summary), ..session }
        })
    }

    fn batch(&self, held: &Held, written: &Written) -> Batch {
        let from = |next: u64, skew: i64| next.saturating_add(1).saturating_add_signed(skew);
        let first_line = from(held.lines, written.line_skew);
        let first_event = from(held.events, written.event_skew);
        let line = |n: usize| format!("{{\"line\":{},\"kind\":{}}}\n", first_line + n as u64, written.kind);
        let event = |n: usize| {
            let number = first_event + n as u64;
            (["print", "call", "waiting"][number as usize % 3], format!("{{\"event\":{number}}}").into())
        };
        let opened = written.opened.iter().map(|&(n, phase)| {
            let ((call, phase), tool) = (name(n, phase), format!("tool{n}"));
            // The store sets the number.
            let question = (n == 0).then(|| "May it?".to_owned());
            StoredCall { call, phase, number: 77, tool, arguments: "{}".to_owned(), question }
        });
        Batch {
            first_line,
            lines: (0..written.lines).map(line).collect(),
            first_event,
            events: (0..written.events).map(event).collect(),
            opened: opened.collect(),
            closed: written.closed.iter().map(|&(call, phase)| name(call, phase)).collect(),
        }
    }

    async fn apply(&mut self, op: &Op) -> String {
        match op {
            Op::OpenSession { .. }
            | Op::ReadSession { .. }
            | Op::BeginTurn { .. }
            | Op::RenewTurn { .. }
            | Op::PutTurn { .. }
            | Op::UndoTurn { .. }
            | Op::EndTurn { .. }
            | Op::DeleteSession { .. } => self.apply_to_session(op).await,
            Op::Claim { .. } | Op::Renew { .. } | Op::Write { .. } | Op::End { .. } => self.apply_as_worker(op).await,
            _ => self.apply_as_client(op).await,
        }
    }

    async fn apply_as_client(&mut self, op: &Op) -> String {
        match *op {
            Op::Submit { tenant, key, digest } => {
                let run_id = self.run_id(self.runs.min(RUNS - 1) as u8);
                self.runs += 1;
                let request = format!("{{\"program\":\"{run_id}\"}}");
                let key = key.map(|key| RequestKey { key: format!("key{key}"), digest: digest.to_string() });
                let run = NewRun { run_id, tenant: self.tenant(tenant), request };
                shown(self.store.submit(run, key).await)
            }
            Op::KnownRequest { tenant, key, digest } => {
                let key = RequestKey { key: format!("key{key}"), digest: digest.to_string() };
                shown(self.store.known_request(&self.tenant(tenant), key).await)
            }
            Op::Read { run, skip } => {
                let run_id = self.run_id(run);
                let run = self.store.run(&run_id).await.unwrap().map(|run| self.run(run));
                let journal = self.store.journal(&run_id).await.unwrap();
                let replies = self.store.replies(&run_id, skip).await.unwrap();
                format!("{run:?} {journal:?} {replies:?} {:?}", self.events(&run_id, skip).await)
            }
            Op::Reply { ref to, body } => {
                let opened = match to {
                    To::Opened(back) => newest(&self.opened, *back).map(|n| self.opened[n].clone()),
                    To::Any { .. } => None,
                };
                let any = |run, (call, phase)| (self.some_run(run), call, phase);
                let (run_id, call, phase) = match *to {
                    To::Opened(back) => opened.unwrap_or_else(|| any(back, name(0, 0))),
                    To::Any { run, call, phase } => any(run, name(call, phase)),
                };
                shown(self.store.reply(&run_id, StoredReply { call, phase, body: body.to_string() }).await)
            }
            Op::Cancel { run } => shown(self.store.cancel(&self.some_run(run)).await),
            Op::Retry { run } => {
                let stuck = newest(&self.stuck, run).map(|n| self.stuck[n].clone());
                shown(self.store.retry(&stuck.unwrap_or_else(|| self.some_run(run))).await)
            }
            Op::List { tenant, status, max } => format!("{:?}", self.list(tenant, status, max).await),
            Op::Counts => {
                let usage = [0, 1].map(|tenant| self.tenant(tenant));
                let usage = (self.store.usage(&usage[0]).await.unwrap(), self.store.usage(&usage[1]).await.unwrap());
                let unfinished = self.store.unfinished().await.unwrap();
                let own = unfinished
                    .iter()
                    .zip(&self.others)
                    .map(|((status, count), (_, others))| (*status, i128::from(*count) - i128::from(*others)));
                format!("{usage:?} {:?}", own.collect::<Vec<_>>())
            }
            Op::Sweep { runs, sessions, old } => {
                let limit = |all: bool| if all { i64::MAX } else { 0 };
                let sweep = Sweep {
                    finished_before_ms: limit(runs),
                    sessions_before_ms: limit(sessions),
                    submitted_before_ms: old.then_some(i64::MAX),
                };
                shown(self.store.sweep(sweep).await)
            }
            Op::Secret { name, secret } => {
                shown(self.store.secret(&format!("{}-secret{name}", self.case), vec![secret, 0, 255]).await)
            }
            _ => unreachable!("{op:?} is no client's"),
        }
    }

    /// Returns the events of a run: all pages of them.
    async fn events(&self, run_id: &str, mut skip: u64) -> Events {
        let mut all = Events::default();
        loop {
            let page = self.store.events(run_id, skip).await.unwrap();
            let Some(last) = page.events.last() else { return Events { is_over: page.is_over, ..all } };
            skip = last.number;
            all.events.extend(page.events);
        }
    }

    /// Returns the runs of all pages, with the ends of the pages. Those of other cases are older.
    async fn list(&self, tenant: Option<u8>, status: Option<RunStatus>, max: usize) -> Vec<(RunSummary, bool)> {
        let tenant = tenant.map(|tenant| self.tenant(tenant));
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let query = Query { tenant: tenant.clone(), status, after, max };
            let page = self.store.list(&query).await.unwrap();
            assert!(page.runs.len() <= max, "{page:?}");
            let Some(last) = page.runs.last() else {
                assert!(!page.has_more, "{query:?}");
                return all;
            };
            let is_end = !page.has_more || !last.run_id.starts_with(&self.case);
            after = Some((last.created_ms, last.run_id.clone()));
            let len = page.runs.len();
            let own = page.runs.into_iter().filter(|run| run.run_id.starts_with(&self.case));
            // Only a list of all tenants may go on with the runs of others.
            all.extend(
                own.enumerate().map(|(n, run)| (self.summary(run), n + 1 == len && tenant.is_some() && page.has_more)),
            );
            if is_end {
                return all;
            }
        }
    }

    async fn apply_as_worker(&mut self, op: &Op) -> String {
        match op {
            Op::Claim { worker, lapses, slots, room } => {
                let tenants = room.iter().map(|(tenant, max)| (self.tenant(*tenant), *max)).collect();
                let room = Room { slots: *slots, tenants };
                let claims = self.store.claim(&format!("worker{worker}"), period(*lapses), &room).await.unwrap();
                let claims: Vec<_> =
                    claims.into_iter().map(|claim| Claim { run: self.run(claim.run.clone()), ..claim }).collect();
                self.hold(&claims);
                format!("{claims:?}")
            }
            Op::Renew { leases, lapses } => {
                let leases = leases.iter().filter_map(|lease| self.lease(lease));
                let leases: Vec<_> = leases.map(|held| self.held[held].lease.clone()).collect();
                shown(self.store.renew(&leases, period(*lapses)).await)
            }
            Op::Write { lease, batch, again } => {
                let Some(n) = self.lease(lease) else { return String::new() };
                let batch = self.batch(&self.held[n], batch);
                let lease = self.held[n].lease.clone();
                let written = self.store.write(&lease, batch.clone()).await;
                self.advance(n, &batch, written.as_ref().map(drop));
                let second = if *again { shown(self.store.write(&lease, batch).await) } else { String::new() };
                format!("{} {second}", shown(written))
            }
            Op::End { lease, batch, end, again } => {
                let Some(n) = self.lease(lease) else { return String::new() };
                let batch = self.batch(&self.held[n], batch);
                let lease = self.held[n].lease.clone();
                let end = self.end_of(&lease, end).await;
                let ended = self.store.end(&lease, batch.clone(), end.clone()).await;
                self.advance(n, &batch, ended.as_ref().map(drop));
                self.held[n].may_be_valid &= !matches!(ended, Ok(Ended::Ended));
                if matches!((&ended, &end), (Ok(Ended::Ended), End::Stuck(_))) {
                    self.stuck.push(lease.run_id.to_string());
                }
                let second = if *again { shown(self.store.end(&lease, batch, end).await) } else { String::new() };
                format!("{} {second}", shown(ended))
            }
            _ => unreachable!("{op:?} is no worker's"),
        }
    }

    fn hold(&mut self, claims: &[Claim]) {
        for claim in claims {
            let Claim { lease, lines, events, .. } = claim;
            self.held.push(Held { lease: lease.clone(), lines: *lines, events: *events, may_be_valid: true });
        }
    }

    /// Notes what a worker knows after a write.
    fn advance(&mut self, held: usize, batch: &Batch, written: Result<(), &StoreError>) {
        let held = &mut self.held[held];
        if let Err(error) = written {
            held.may_be_valid &= !matches!(error, StoreError::LeaseLost);
            return;
        }
        let run_id = &*held.lease.run_id;
        self.opened.extend(batch.opened.iter().map(|call| (run_id.to_owned(), call.call.clone(), call.phase.clone())));
        if !batch.lines.is_empty() {
            held.lines = held.lines.max(batch.first_line.saturating_sub(1) + batch.lines.len() as u64);
        }
        if !batch.events.is_empty() {
            held.events = held.events.max(batch.first_event.saturating_sub(1) + batch.events.len() as u64);
        }
    }

    async fn end_of(&self, lease: &Lease, ending: &Ending) -> End {
        match *ending {
            Ending::Done => End::Done(format!("{{\"answer\":{}}}", lease.epoch).into()),
            Ending::Suspended(skew) => {
                let replies = self.store.replies(&lease.run_id, 0).await.unwrap().len() as u64;
                End::Suspended(replies.saturating_add_signed(skew))
            }
            Ending::Requeued { is_later, is_fault } => End::Requeued { after: period(!is_later), is_fault },
            Ending::Stuck => End::Stuck("no tool".to_owned()),
        }
    }

    /// Ends all runs that can be claimed or are held.
    async fn end_all(&mut self) {
        for run in 0..RUNS as u8 {
            self.store.cancel(&self.run_id(run)).await.unwrap();
        }
        let tenants = [0, 1].map(|tenant| (self.tenant(tenant), RUNS)).to_vec();
        let room = Room { slots: 2 * RUNS, tenants };
        let claims = self.store.claim("last", LONG, &room).await.unwrap();
        self.hold(&claims);
        for held in &self.held {
            // Most of these leases are over.
            let _ = self.store.end(&held.lease, Batch::default(), End::Done("{}".into())).await;
        }
        self.store.sweep(ALL).await.unwrap();
    }

    async fn apply_to_session(&mut self, op: &Op) -> String {
        let turn = |n: u8| newest(&self.turns, n).map(|turn| self.turns[turn].clone());
        let ended = |session: Result<Option<SessionSummary>, _>| {
            shown(session.map(|session| session.map(|session| self.session_summary(session))))
        };
        match *op {
            Op::OpenSession { tenant, has_text, max } => {
                let session_id = self.session_id(self.sessions.len().min(SESSIONS - 1) as u8);
                self.sessions.push(tenant);
                let text = has_text.then(|| "first".to_owned());
                let session = NewSession { session_id, tenant: self.tenant(tenant), opening: "{}".to_owned(), text };
                shown(self.store.open_session(session, SessionLimits { sessions: max, bytes: 60 }).await)
            }
            Op::ReadSession { session } => format!("{:?}", self.session(&self.session_id(session)).await),
            Op::BeginTurn { session, is_other, lapses } => {
                let session =
                    if session == 3 { session } else { session % self.sessions.len().clamp(1, SESSIONS) as u8 };
                let tenant = self.sessions.get(usize::from(session)).map_or(0, |tenant| tenant ^ u8::from(is_other));
                let (tenant, session_id) = (self.tenant(tenant), self.session_id(session));
                let start = self.store.begin_turn(&tenant, &session_id, period(lapses)).await.unwrap();
                let TurnStart::Started(turn, session) = start else { return format!("{start:?}") };
                let text = format!("{turn:?} {:?}", self.session_summary(*session));
                self.turns.push(turn);
                text
            }
            Op::RenewTurn { turn: n, lapses } => match turn(n) {
                Some(turn) => shown(self.store.renew_turn(&turn, period(lapses)).await),
                None => String::new(),
            },
            Op::PutTurn { turn: n, undos, max_bytes } => match turn(n) {
                Some(turn) => {
                    let text = format!("after {}", turn.epoch);
                    match self.store.put_turn(&turn, text, undos, max_bytes).await {
                        Ok(Put::Stored(session)) => ended(Ok(Some(session))),
                        put => shown(put),
                    }
                }
                None => String::new(),
            },
            Op::UndoTurn { turn: n } => match turn(n) {
                Some(turn) => match self.store.undo_turn(&turn).await {
                    Ok(Undo::Done(session)) => ended(Ok(Some(session))),
                    other => shown(other),
                },
                None => String::new(),
            },
            Op::EndTurn { turn: n } => match turn(n) {
                Some(turn) => shown(self.store.end_turn(&turn).await),
                None => String::new(),
            },
            Op::DeleteSession { turn: n } => match turn(n) {
                Some(turn) => shown(self.store.delete_session(&turn).await),
                None => String::new(),
            },
            _ => unreachable!("{op:?} is not about sessions"),
        }
    }
}
