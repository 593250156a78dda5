//! What every store does, beyond what random operations show: news, time, size and competition.

use lisp_server::store::{
    Batch, Claim, End, Ended, Lease, NewRun, NewSession, News, Opened, PAGE_BYTES, Put, Query, Renewed, Replied,
    RequestKey, Room, RunStatus, SessionLimits, Store, StoredCall, StoredReply, Submitted, TurnLease, TurnStart, Undo,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::Receiver;

pub(crate) const LONG: Duration = Duration::from_secs(3_600);

/// Limits on the number of sessions alone.
pub(crate) fn limits(sessions: u64) -> SessionLimits {
    SessionLimits { sessions, bytes: u64::MAX >> 1 }
}

/// Stores count whole milliseconds.
const MILLISECOND: Duration = Duration::from_millis(1);

/// Checks a store. Nothing else may use it meanwhile. It may have runs of other tenants.
pub(crate) async fn check(store: Arc<dyn Store>) {
    a_restored_store_knows_its_runs(&store).await;
    a_restored_store_warns_approvers(&store).await;
    changes_send_news(&store).await;
    cancelled_runs_take_no_replies(&store).await;
    cancelled_runs_do_not_stick(&store).await;
    tenants_take_turns(&store).await;
    a_lease_expires(&store).await;
    a_pause_ends(&store).await;
    each_run_is_claimed_once(&store).await;
    a_key_is_taken_once(&store).await;
    a_turn_begins_once(&store).await;
    sessions_have_a_maximum_of_bytes(&store).await;
    long_lists_are_cut(&store).await;
    long_events_are_cut(&store).await;
}

/// Marks the runs that exist, and no later ones; the mark stays.
async fn a_restored_store_knows_its_runs(store: &Arc<dyn Store>) {
    assert_eq!(store.restored_until(false).await.unwrap(), -1);
    store.submit(run("old", "restored"), None).await.unwrap();
    let old = store.run("old").await.unwrap().unwrap().summary.created_ms;
    let marked = store.restored_until(true).await.unwrap();
    assert!(marked >= old, "{marked} {old}");
    // By the clock of the store.
    until(async || {
        let id = format!("new-{}", store.usage("restored").await.unwrap().runs);
        store.submit(run(&id, "restored"), None).await.unwrap();
        store.run(&id).await.unwrap().unwrap().summary.created_ms > marked
    })
    .await;
    assert_eq!(store.restored_until(false).await.unwrap(), marked);
    assert!(store.restored_until(true).await.unwrap() > marked);
}

/// The questions of approvals say it once, and others do not.
async fn a_restored_store_warns_approvers(store: &Arc<dyn Store>) {
    store.submit(run("gates", "gates"), None).await.unwrap();
    let claim = store.claim("worker", Duration::from_secs(60), &room("gates", 1)).await.unwrap().remove(0);
    let asks = |name: &str, phase: &str, question: Option<&str>| StoredCall {
        phase: phase.to_owned(),
        question: question.map(str::to_owned),
        ..call(name)
    };
    let opened = vec![
        asks("1", "gate", Some("Pay 1?")),
        asks("2", "unknown1", Some("What came of it?")),
        asks("3", "gate", None),
        asks("4", "result", None),
    ];
    store.end(&claim.lease, Batch { opened, ..Batch::default() }, End::Suspended(0)).await.unwrap();
    for _ in 0..2 {
        store.restored_until(true).await.unwrap();
        let calls = store.run("gates").await.unwrap().unwrap().summary.calls;
        let questions: Vec<_> = calls.iter().map(|call| call.question.as_deref()).collect();
        let warned = "The store was restored from a backup, and this may have been done since: Pay 1?";
        assert_eq!(questions, [Some(warned), Some("What came of it?"), None, None]);
    }
    store.cancel("gates").await.unwrap();
    let claim = store.claim("worker", Duration::from_secs(60), &room("gates", 1)).await.unwrap().remove(0);
    store.end(&claim.lease, Batch::default(), End::Done("{}".into())).await.unwrap();
}

pub(crate) fn run(run_id: &str, tenant: &str) -> NewRun {
    NewRun { run_id: run_id.to_owned(), tenant: tenant.to_owned(), request: "{\"program\": \"(+ 1 2)\"}".to_owned() }
}

pub(crate) fn room(tenant: &str, slots: usize) -> Room {
    Room { slots, tenants: vec![(tenant.to_owned(), slots)] }
}

pub(crate) fn call(call: &str) -> StoredCall {
    let (phase, tool, arguments) = ("gate".to_owned(), "tool".to_owned(), "{\"n\": \"é\"}".to_owned());
    StoredCall { call: call.to_owned(), phase, number: 0, tool, arguments, question: None }
}

pub(crate) fn reply(call: &str) -> StoredReply {
    StoredReply { call: call.to_owned(), phase: "gate".to_owned(), body: "{\"approve\": true}".to_owned() }
}

pub(crate) fn opens(name: &str) -> Batch {
    Batch { opened: vec![call(name)], ..Batch::default() }
}

async fn claim_one(store: &Arc<dyn Store>, tenant: &str) -> Claim {
    store.claim("worker", LONG, &room(tenant, 1)).await.unwrap().pop().unwrap()
}

/// Waits for something that becomes true.
pub(crate) async fn until(mut is_true: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !is_true().await {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not become true");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Asserts that these news come, and no others before them. News of other runs and repeated news do not count.
async fn expect(news: &mut Receiver<News>, run_id: &str, expected: &[News]) {
    let mut expected: Vec<&News> = expected.iter().collect();
    while !expected.is_empty() {
        let next = tokio::time::timeout(Duration::from_secs(30), news.recv()).await;
        let next = next.unwrap_or_else(|_| panic!("no news of {run_id}: {expected:?}")).unwrap();
        expected.retain(|expected| **expected != next);
    }
}

/// A cancelled run takes no reply, before and after it is suspended.
async fn cancelled_runs_take_no_replies(store: &Arc<dyn Store>) {
    store.submit(run("over", "over"), None).await.unwrap();
    let lease = claim_one(store, "over").await.lease;
    store.write(&lease, opens("a")).await.unwrap();
    store.cancel("over").await.unwrap();
    assert_eq!(store.reply("over", reply("a")).await.unwrap(), Replied::Cancelled);
    // The cancellation is news for an attempt that would wait.
    assert_eq!(store.end(&lease, Batch::default(), End::Suspended(0)).await.unwrap(), Ended::News);
    assert_eq!(store.reply("over", reply("a")).await.unwrap(), Replied::Cancelled);
    store.end(&lease, Batch::default(), End::Done("{}".into())).await.unwrap();
    assert_eq!(store.reply("over", reply("a")).await.unwrap(), Replied::Over(RunStatus::Done));
}

/// A cancellation that was acknowledged is not lost to an attempt that finds out that its run cannot continue.
async fn cancelled_runs_do_not_stick(store: &Arc<dyn Store>) {
    let stuck = || End::Stuck("no tool".to_owned());
    for run_id in ["before", "while"] {
        store.submit(run(run_id, run_id), None).await.unwrap();
        if run_id == "before" {
            store.cancel(run_id).await.unwrap();
        }
        let lease = claim_one(store, run_id).await.lease;
        if run_id == "while" {
            store.cancel(run_id).await.unwrap();
        }
        let batch = Batch { first_line: 1, lines: vec!["{}\n".to_owned()], ..opens("a") };
        for _ in 0..2 {
            assert_eq!(store.end(&lease, batch.clone(), stuck()).await.unwrap(), Ended::News, "{run_id}");
        }
        let summary = store.run(run_id).await.unwrap().unwrap().summary;
        assert_eq!((summary.status, summary.error, summary.calls.len()), (RunStatus::Waiting, None, 1), "{run_id}");
        assert_eq!(store.journal(run_id).await.unwrap().text, "{}\n");
        store.end(&lease, Batch::default(), End::Done("{}".into())).await.unwrap();
    }
    // One that is stuck already is queued.
    store.submit(run("after", "after"), None).await.unwrap();
    let lease = claim_one(store, "after").await.lease;
    assert_eq!(store.end(&lease, Batch::default(), stuck()).await.unwrap(), Ended::Ended);
    store.cancel("after").await.unwrap();
    let claim = claim_one(store, "after").await;
    assert!(claim.run.summary.cancelled);
    store.end(&claim.lease, Batch::default(), End::Done("{}".into())).await.unwrap();
}

async fn changes_send_news(store: &Arc<dyn Store>) {
    let mut news = store.news();
    let changed = |run_id: &str| News::Changed(run_id.into());
    let replied = |run_id: &str| News::Replied(run_id.into());
    for run_id in ["news-1", "news-2"] {
        store.submit(run(run_id, run_id), None).await.unwrap();
        expect(&mut news, run_id, &[News::Queued, changed(run_id)]).await;
    }
    let first = claim_one(store, "news-1").await.lease;
    store.write(&first, opens("a")).await.unwrap();
    expect(&mut news, "news-1", &[changed("news-1")]).await;
    assert_eq!(store.reply("news-1", reply("a")).await.unwrap(), Replied::Taken);
    expect(&mut news, "news-1", &[replied("news-1"), changed("news-1")]).await;
    assert_eq!(store.end(&first, opens("b"), End::Suspended(0)).await.unwrap(), Ended::News);
    expect(&mut news, "news-1", &[changed("news-1")]).await;
    assert_eq!(store.end(&first, Batch::default(), End::Suspended(1)).await.unwrap(), Ended::Ended);
    expect(&mut news, "news-1", &[changed("news-1")]).await;
    assert_eq!(store.reply("news-1", reply("b")).await.unwrap(), Replied::Taken);
    expect(&mut news, "news-1", &[News::Queued, changed("news-1")]).await;
    // Without an open call it is queued at once.
    let second = claim_one(store, "news-2").await.lease;
    store.end(&second, Batch::default(), End::Suspended(0)).await.unwrap();
    expect(&mut news, "news-2", &[News::Queued, changed("news-2")]).await;
    for tenant in ["news-1", "news-2"] {
        let lease = claim_one(store, tenant).await.lease;
        let end = End::Requeued { after: Duration::ZERO, is_fault: false };
        store.end(&lease, Batch::default(), end).await.unwrap();
        expect(&mut news, &lease.run_id, &[News::Queued, changed(&lease.run_id)]).await;
    }
    let stuck = || End::Stuck("no tool".to_owned());
    let first = claim_one(store, "news-1").await.lease;
    store.end(&first, Batch::default(), stuck()).await.unwrap();
    expect(&mut news, "news-1", &[changed("news-1")]).await;
    assert!(store.retry("news-1").await.unwrap());
    expect(&mut news, "news-1", &[News::Queued, changed("news-1")]).await;
    let first = claim_one(store, "news-1").await.lease;
    assert!(store.cancel("news-1").await.unwrap());
    expect(&mut news, "news-1", &[replied("news-1"), changed("news-1")]).await;
    assert_eq!(store.end(&first, Batch::default(), stuck()).await.unwrap(), Ended::News);
    expect(&mut news, "news-1", &[changed("news-1")]).await;
    let end = End::Requeued { after: Duration::ZERO, is_fault: false };
    store.end(&first, Batch::default(), end).await.unwrap();
    expect(&mut news, "news-1", &[News::Queued, changed("news-1")]).await;
    let second = claim_one(store, "news-2").await.lease;
    store.end(&second, opens("c"), End::Suspended(0)).await.unwrap();
    expect(&mut news, "news-2", &[changed("news-2")]).await;
    assert!(store.cancel("news-2").await.unwrap());
    expect(&mut news, "news-2", &[News::Queued, changed("news-2")]).await;
    for tenant in ["news-1", "news-2"] {
        let lease = claim_one(store, tenant).await.lease;
        store.end(&lease, Batch::default(), End::Done("{}".into())).await.unwrap();
        expect(&mut news, &lease.run_id, &[changed(&lease.run_id)]).await;
    }
}

async fn tenants_take_turns(store: &Arc<dyn Store>) {
    for n in 0..5 {
        store.submit(run(&format!("fair-{n}"), "fair-many"), None).await.unwrap();
    }
    store.submit(run("fair-few-0", "fair-few"), None).await.unwrap();
    store.submit(run("fair-few-1", "fair-few"), None).await.unwrap();
    let room = |slots, many, few| {
        let tenants = [("fair-none", 9), ("fair-many", many), ("fair-few", few)];
        Room { slots, tenants: tenants.map(|(tenant, max)| (tenant.to_owned(), max)).to_vec() }
    };
    let claim = async |room| {
        let claims: Vec<Claim> = store.claim("worker", LONG, &room).await.unwrap();
        claims.into_iter().map(|claim| claim.run.summary.tenant).collect::<Vec<_>>()
    };
    let tenants = ["fair-none", "fair-few", "fair-many", "fair-none"].map(str::to_owned);
    let claimable = async |max| store.claimable(&tenants, max).await.unwrap();
    assert_eq!((claimable(9).await, claimable(3).await), (vec![0, 2, 5, 0], vec![0, 2, 3, 0]));
    assert!(claim(room(0, 9, 9)).await.is_empty());
    assert_eq!(claim(room(9, 2, 0)).await, ["fair-many", "fair-many"]);
    assert_eq!(claimable(9).await, [0, 2, 3, 0]);
    assert_eq!(claim(room(3, 9, 9)).await, ["fair-many", "fair-few", "fair-many"]);
    assert_eq!(claim(room(9, 9, 9)).await, ["fair-many", "fair-few"]);
    assert_eq!(claimable(9).await, [0; 4]);
    assert!(store.claimable(&[], 9).await.unwrap().is_empty());
}

async fn a_lease_expires(store: &Arc<dyn Store>) {
    store.submit(run("lease", "lease"), None).await.unwrap();
    let period = Duration::from_millis(50);
    let start = Instant::now();
    let first = store.claim("first", period, &room("lease", 1)).await.unwrap().remove(0);
    let mut second = Vec::new();
    until(async || store.claimable(&["lease".to_owned()], 2).await.unwrap() == [1]).await;
    until(async || {
        second = store.claim("second", LONG, &room("lease", 1)).await.unwrap();
        !second.is_empty()
    })
    .await;
    assert!(start.elapsed() + MILLISECOND >= period);
    let second = second.remove(0);
    assert_eq!((first.faults, second.faults), (0, 1));
    assert!(second.lease.epoch > first.lease.epoch);
    let renewed = store.renew(&[first.lease.clone(), second.lease.clone()], LONG).await.unwrap();
    assert_eq!(renewed, [Renewed::Lost, Renewed::Held { cancelled: false, replies: 0 }]);
    assert!(store.write(&first.lease, opens("a")).await.is_err());
    let unknown = Lease { run_id: "no such run".into(), epoch: 1 };
    assert_eq!(store.renew(&[unknown], LONG).await.unwrap(), [Renewed::Lost]);
    // One that is renewed in time does not expire.
    assert!(store.claim("third", LONG, &room("lease", 1)).await.unwrap().is_empty());
    store.end(&second.lease, Batch::default(), End::Done("{}".into())).await.unwrap();
}

async fn a_pause_ends(store: &Arc<dyn Store>) {
    store.submit(run("pause", "pause"), None).await.unwrap();
    let lease = claim_one(store, "pause").await.lease;
    let (start, after) = (Instant::now(), Duration::from_millis(50));
    store.end(&lease, Batch::default(), End::Requeued { after, is_fault: true }).await.unwrap();
    let mut claims = Vec::new();
    until(async || {
        claims = store.claim("worker", LONG, &room("pause", 1)).await.unwrap();
        !claims.is_empty()
    })
    .await;
    assert!(start.elapsed() + MILLISECOND >= after);
    assert_eq!(claims[0].faults, 1);
    store.end(&claims[0].lease, Batch::default(), End::Done("{}".into())).await.unwrap();
}

async fn each_run_is_claimed_once(store: &Arc<dyn Store>) {
    const RUNS: usize = 60;
    for n in 0..RUNS {
        store.submit(run(&format!("once-{n:02}"), "once"), None).await.unwrap();
    }
    let workers: Vec<_> = (0..6)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                loop {
                    let claims = store.claim(&format!("worker{n}"), LONG, &room("once", 3)).await.unwrap();
                    if claims.is_empty() {
                        return claimed;
                    }
                    for claim in claims {
                        let end = End::Done(format!("{n}").into());
                        assert_eq!(store.end(&claim.lease, Batch::default(), end).await.unwrap(), Ended::Ended);
                        claimed.push(claim.lease.run_id);
                    }
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    assert_eq!((all.len(), all.into_iter().collect::<BTreeSet<_>>().len()), (RUNS, RUNS));
    let usage = store.usage("once").await.unwrap();
    assert_eq!((usage.runs, usage.queued), (RUNS as u64, 0));
}

async fn a_key_is_taken_once(store: &Arc<dyn Store>) {
    let submits: Vec<_> = (0..8)
        .map(|n| {
            let store = store.clone();
            let key = RequestKey { key: "k".to_owned(), digest: "d".to_owned() };
            tokio::spawn(async move { store.submit(run(&format!("key-{n}"), "key"), Some(key)).await.unwrap() })
        })
        .collect();
    let mut new = 0;
    for submit in submits {
        new += usize::from(submit.await.unwrap() == Submitted::New);
    }
    assert_eq!((new, store.usage("key").await.unwrap().runs), (1, 1));
}

async fn a_turn_begins_once(store: &Arc<dyn Store>) {
    let session_id = "turns".to_owned();
    let session = NewSession { session_id, tenant: "turns".to_owned(), opening: "{}".to_owned(), text: None };
    assert_eq!(store.open_session(session, limits(1)).await.unwrap(), Opened::New);
    let turns: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.begin_turn("turns", "turns", LONG).await.unwrap() })
        })
        .collect();
    let mut started = Vec::new();
    for turn in turns {
        match turn.await.unwrap() {
            TurnStart::Started(turn, _) => started.push(turn),
            other => assert_eq!(other, TurnStart::Busy),
        }
    }
    assert_eq!(started.len(), 1);
    assert!(store.delete_session(&started[0]).await.unwrap());
}

/// The texts of a tenant's sessions have a maximum: the openings, the saved sessions, and those that can be undone.
async fn sessions_have_a_maximum_of_bytes(store: &Arc<dyn Store>) {
    let open = async |session: &str, bytes: usize, text: Option<usize>, max: u64| {
        let text = text.map(|bytes| "t".repeat(bytes));
        let (session_id, tenant, opening) = (session.to_owned(), "bytes".to_owned(), "o".repeat(bytes));
        let limits = SessionLimits { sessions: 9, bytes: max };
        store.open_session(NewSession { session_id, tenant, opening, text }, limits).await.unwrap()
    };
    let begin = async || match store.begin_turn("bytes", "bytes-1", LONG).await.unwrap() {
        TurnStart::Started(turn, _) => turn,
        other => panic!("{other:?}"),
    };
    assert_eq!(open("bytes-1", 100, Some(50), 149).await, Opened::TooLarge(150));
    assert_eq!(open("bytes-1", 100, Some(50), 150).await, Opened::New);
    assert_eq!(open("bytes-2", 10, None, 159).await, Opened::TooLarge(160));
    assert_eq!(open("bytes-2", 10, None, 160).await, Opened::New);
    let turn = begin().await;
    let put = async |turn: &TurnLease, bytes: usize, undos: u64, max: u64| {
        store.put_turn(turn, "p".repeat(bytes), undos, max).await.unwrap()
    };
    // What can be undone counts.
    assert_eq!(put(&turn, 40, 1, 199).await, Put::TooLarge(200));
    let Put::Stored(stored) = put(&turn, 40, 1, 200).await else { panic!("the turn is valid, and it fits") };
    assert_eq!((stored.bytes, stored.turns, stored.undos), (140, 1, 1));
    // A result may be lost, and the turn stored again.
    assert_eq!(put(&turn, 40, 1, 200).await, Put::Stored(stored));
    // What is dropped does not, and a turn that did not fit has not ended.
    let turn = begin().await;
    assert_eq!(put(&turn, 30, 0, 139).await, Put::TooLarge(140));
    assert!(matches!(put(&turn, 30, 0, 140).await, Put::Stored(_)));
    assert!(matches!(put(&begin().await, 20, 1, 160).await, Put::Stored(_)));
    let turn = begin().await;
    let undone = store.undo_turn(&turn).await.unwrap();
    assert!(matches!(undone, Undo::Done(_)) && store.undo_turn(&turn).await.unwrap() == undone);
    assert_eq!(put(&turn, 1, 1, 1).await, Put::Lost);
    // Also after turns of other clients.
    for _ in 0..100 {
        let nothing = begin().await;
        assert_eq!(store.undo_turn(&nothing).await.unwrap(), Undo::Nothing);
        assert_eq!(store.undo_turn(&nothing).await.unwrap(), Undo::Nothing);
    }
    assert_eq!(store.undo_turn(&turn).await.unwrap(), undone);
    assert_eq!(put(&turn, 1, 1, 1).await, Put::Lost);
    let ended = begin().await;
    store.end_turn(&ended).await.unwrap();
    assert_eq!(store.undo_turn(&ended).await.unwrap(), Undo::Lost);
    assert!(!store.delete_session(&ended).await.unwrap());
    assert_eq!(open("bytes-3", 5, None, 144).await, Opened::TooLarge(145));
    assert_eq!(open("bytes-3", 5, None, 145).await, Opened::New);
    assert!(store.delete_session(&begin().await).await.unwrap());
    assert_eq!(open("bytes-4", 1, None, 16).await, Opened::New);
}

async fn long_lists_are_cut(store: &Arc<dyn Store>) {
    let arguments = format!("\"{}\"", "x".repeat(PAGE_BYTES / 2));
    for n in 0..4 {
        store.submit(run(&format!("page-{n}"), "page"), None).await.unwrap();
        let lease = claim_one(store, "page").await.lease;
        let batch =
            Batch { opened: vec![StoredCall { arguments: arguments.clone(), ..call("a") }], ..Batch::default() };
        store.end(&lease, batch, End::Suspended(0)).await.unwrap();
    }
    let mut query = Query { tenant: Some("page".to_owned()), status: Some(RunStatus::Waiting), after: None, max: 9 };
    let first = store.list(&query).await.unwrap();
    assert_eq!((first.runs.len(), first.has_more), (2, true));
    query.after = first.runs.last().map(|run| (run.created_ms, run.run_id.clone()));
    let second = store.list(&query).await.unwrap();
    assert_eq!((second.runs.len(), second.has_more), (2, false));
    assert!(second.runs.iter().all(|run| run.calls[0].arguments == arguments && run.calls[0].number == 1));
    let all: BTreeSet<_> = first.runs.iter().chain(&second.runs).map(|run| &run.run_id).collect();
    assert_eq!(all.len(), 4);
    for n in 0..4 {
        assert!(store.cancel(&format!("page-{n}")).await.unwrap());
        let lease = claim_one(store, "page").await.lease;
        store.end(&lease, Batch::default(), End::Done("{}".into())).await.unwrap();
    }
}

async fn long_events_are_cut(store: &Arc<dyn Store>) {
    store.submit(run("events", "events"), None).await.unwrap();
    let lease = claim_one(store, "events").await.lease;
    let data: Arc<str> = format!("\"{}\"", "x".repeat(300_000)).into();
    let mut events: Vec<(&'static str, Arc<str>)> = vec![("print", data); 8];
    // One that is too large for a page has a page to itself.
    events.insert(1, ("call", format!("\"{}\"", "y".repeat(3_000_000)).into()));
    let batch = Batch { first_event: 1, events: events.clone(), ..Batch::default() };
    store.write(&lease, batch).await.unwrap();
    store.end(&lease, Batch::default(), End::Done("{}".into())).await.unwrap();
    let (mut read, mut pages) = (Vec::new(), Vec::new());
    loop {
        let page = store.events("events", read.len() as u64).await.unwrap();
        pages.push(page.events.len());
        read.extend(page.events);
        if page.is_over {
            break;
        }
    }
    assert_eq!(pages, [1, 1, 3, 3, 1]);
    assert!(read.iter().zip(&events).all(|(read, (kind, data))| read.kind == *kind && read.data == *data));
    assert!(read.iter().zip(1..).all(|(read, number)| read.number == number));
    let after = store.events("events", 9).await.unwrap();
    assert!(after.events.is_empty() && after.is_over);
}
