//! The store in PostgreSQL: it agrees with the model, and survives what happens to a database.

#[path = "stores/contract.rs"]
mod contract;
#[path = "stores/ops.rs"]
mod ops;
#[path = "support/postgres.rs"]
mod postgres;
#[path = "stores/suite.rs"]
mod suite;
#[path = "support/tool.rs"]
mod tool;

use lisp_server::config::{Config, Durability};
use lisp_server::runs::{Done, Service};
use lisp_server::store::{
    Batch, End, Ended, Lease, NewRun, NewSession, News, Opened, PostgresStore, Put, Query, Renewed, Replied,
    RequestKey, Room, RunStatus, RunStore, SessionLimits, SessionStore, Store, StoreError, StoreLocation, StoredCall,
    StoredReply, Submitted, TurnStart,
};
use postgres::Postgres;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

const LONG: Duration = Duration::from_secs(3_600);

fn block_on<T>(test: impl Future<Output = T>) -> T {
    Runtime::new().unwrap().block_on(test)
}

async fn open(address: &str) -> PostgresStore {
    PostgresStore::open(address).await.unwrap()
}

/// Opens a store in a new database of the shared server.
async fn new_store(server: &Postgres) -> (PostgresStore, String) {
    let database = server.create_database();
    (open(&server.address(&database)).await, database)
}

fn new_run(run_id: &str) -> NewRun {
    NewRun { run_id: run_id.to_owned(), tenant: "acme".to_owned(), request: format!("{{\"program\":\"{run_id}\"}}") }
}

fn room(slots: usize) -> Room {
    Room { slots, tenants: vec![("acme".to_owned(), slots)] }
}

fn lines(first_line: u64, count: u64) -> Batch {
    let lines = (first_line..first_line + count).map(|n| format!("{{\"line\":{n}}}\n")).collect();
    Batch { first_line, lines, ..Batch::default() }
}

fn call(name: &str) -> StoredCall {
    let (call, phase, tool) = (name.to_owned(), "gate".to_owned(), "mail".to_owned());
    StoredCall { call, phase, number: 0, tool, arguments: "{}".to_owned(), question: None }
}

fn reply(name: &str, body: &str) -> StoredReply {
    StoredReply { call: name.to_owned(), phase: "gate".to_owned(), body: body.to_owned() }
}

/// Does an operation until the store is available.
async fn persist<T, F: Future<Output = Result<T, StoreError>>>(operation: impl Fn() -> F) -> T {
    let start = Instant::now();
    loop {
        match operation().await {
            Ok(result) => return result,
            Err(StoreError::Unavailable(why)) => assert!(start.elapsed() < Duration::from_secs(60), "{why}"),
            Err(error) => panic!("{error}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn it_agrees_with_the_model() {
    let Some(server) = postgres::shared() else { return };
    let runtime = Runtime::new().unwrap();
    let (store, _) = runtime.block_on(new_store(server));
    let store: Arc<dyn Store> = Arc::new(store);
    suite::check_cases(&runtime, &store, 48);
    runtime.block_on(store.close()).unwrap();
    let closed = runtime.block_on(store.usage("acme"));
    assert!(matches!(closed, Err(StoreError::Failed(_))), "{closed:?}");
}

#[test]
fn it_keeps_the_contract() {
    let Some(server) = postgres::shared() else { return };
    block_on(async {
        let location = StoreLocation::Postgres(server.address(&server.create_database()));
        contract::check(location.open(Durability::Machine).await.unwrap()).await;
    });
}

#[test]
fn several_processes_may_start_at_once() {
    let Some(server) = postgres::shared() else { return };
    block_on(async {
        let address = server.address(&server.create_database());
        let stores = futures_util::future::join_all((0..6).map(|_| open(&address))).await;
        let mut news = stores[1].news();
        assert_eq!(stores[0].submit(new_run("r1"), None).await.unwrap(), Submitted::New);
        let claims = stores[1].claim("second", LONG, &room(1)).await.unwrap();
        assert_eq!(claims.len(), 1);
        stores[1].write(&claims[0].lease, lines(1, 2)).await.unwrap();
        assert_eq!(stores[2].journal("r1").await.unwrap().text, "{\"line\":1}\n{\"line\":2}\n");
        let told = async {
            let (mut found, mut line) = (BTreeSet::new(), 3);
            while found.len() < 2 {
                match timeout(Duration::from_secs(1), news.recv()).await {
                    Ok(news) => drop(found.insert(format!("{:?}", news.unwrap()))),
                    // It did not listen yet, and hears of the next change.
                    Err(_) => {
                        stores[1].write(&claims[0].lease, lines(line, 1)).await.unwrap();
                        line += 1;
                    }
                }
            }
            found
        };
        let told = timeout(Duration::from_secs(60), told).await.unwrap();
        assert_eq!(told, BTreeSet::from(["Changed(\"r1\")".to_owned(), "Queued".to_owned()]));
        for store in &stores {
            store.close().await.unwrap();
        }
    });
}

#[test]
fn a_later_format_is_refused() {
    let Some(server) = postgres::shared() else { return };
    block_on(async {
        let (store, database) = new_store(server).await;
        store.close().await.unwrap();
        server.sql(&database, "update ptc_lisp.format set version = 7");
        let error = PostgresStore::open(&server.address(&database)).await.unwrap_err();
        assert!(matches!(error, StoreError::Format { found: 7, known: 1 }), "{error}");
    });
}

#[test]
fn a_database_with_another_encoding_is_refused() {
    let Some(server) = postgres::shared() else { return };
    server.sql("postgres", "create database latin encoding latin1 template template0");
    let error = block_on(PostgresStore::open(&server.address("latin"))).unwrap_err();
    let expected = format!(
        "the store postgres://ptc@127.0.0.1:{}/latin cannot be opened: its encoding is LATIN1: create the database with UTF8",
        server.port()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn errors_do_not_show_the_password() {
    let Some(server) = postgres::shared() else { return };
    let wrong = format!("postgres://ptc:hidden-word@127.0.0.1:{}/postgres", server.port());
    let nowhere = "postgres://ptc:hidden-word@127.0.0.1:1/postgres".to_owned();
    let malformed = format!("{wrong}?port=hidden-word");
    for (address, is_open) in [(wrong, true), (nowhere, false), (malformed, true)] {
        let error = block_on(PostgresStore::open(&address)).unwrap_err();
        assert_eq!(matches!(error, StoreError::Open { .. }), is_open, "{error}");
        assert_eq!(matches!(error, StoreError::Unavailable(_)), !is_open, "{error}");
        assert!(!format!("{error} {error:?}").contains("hidden-word"), "{error:?}");
    }
}

#[test]
fn errors_of_connecting_name_a_next_step() {
    let Some(server) = postgres::shared() else { return };
    let database = server.create_database();
    server.sql(&database, "create role stranger login password 'word'");
    server.sql(&database, &format!("revoke create on database {database} from public"));
    let port = server.port();
    let at = |rest: &str| format!("postgres://{rest}");
    for (address, step) in [
        (at(&format!("ptc@127.0.0.1:{port}/{database}")), "password missing; set PGPASSWORD, or write postgres://"),
        (at(&format!("ptc:wrong@127.0.0.1:{port}/{database}")), "check the user, and the password in the address"),
        (server.address("nowhere"), "create it with createdb, or name another database"),
        (
            at(&format!("ptc:se%3Acr%40t@127.0.0.1:{port}")),
            "name the database in the address: postgres://user@host/database",
        ),
        (
            format!("{}?sslmode=require", server.address(&database)),
            "turn on ssl in the server, or write sslmode=prefer",
        ),
        (at(&format!("stranger:word@127.0.0.1:{port}/{database}")), "CREATE on the database"),
        (at("ptc:word@127.0.0.1:1/runs"), "check host and port, and whether PostgreSQL runs there"),
    ] {
        let error = block_on(PostgresStore::open(&address)).unwrap_err().to_string();
        assert!(error.contains(step), "{address}: {error}");
    }
}

#[test]
fn every_string_comes_back() {
    let Some(server) = postgres::shared() else { return };
    block_on(async {
        let (store, _) = new_store(server).await;
        let odd = "\0a\u{1}0\u{1}\\x00 é\u{10ffff}\"'\n";
        let (run_id, tenant) = (format!("run{odd}"), format!("tenant{odd}"));
        let run = NewRun { run_id: run_id.clone(), tenant: tenant.clone(), request: odd.to_owned() };
        let key = || RequestKey { key: format!("key{odd}"), digest: format!("digest{odd}") };
        assert_eq!(store.submit(run, Some(key())).await.unwrap(), Submitted::New);
        assert_eq!(store.known_request(&tenant, key()).await.unwrap(), Some(Submitted::Known(run_id.clone())));
        let room = Room { slots: 1, tenants: vec![(tenant.clone(), 1)] };
        let claim = store.claim(odd, LONG, &room).await.unwrap().remove(0);
        assert_eq!((&*claim.run.request, &*claim.lease.run_id), (odd, &*run_id));
        let odd_call = StoredCall {
            call: format!("call{odd}"),
            phase: format!("phase{odd}"),
            number: 1,
            tool: format!("tool{odd}"),
            arguments: odd.to_owned(),
            question: Some(odd.to_owned()),
        };
        let batch = Batch {
            first_line: 1,
            lines: vec![odd.to_owned(), odd.to_owned()],
            first_event: 1,
            events: vec![("print", odd.into())],
            opened: vec![odd_call.clone(), StoredCall { call: "other".to_owned(), ..odd_call.clone() }],
            closed: vec![("other".to_owned(), format!("phase{odd}"))],
        };
        store.write(&claim.lease, batch).await.unwrap();
        let stored = store.run(&run_id).await.unwrap().unwrap();
        assert_eq!(stored.summary.calls, std::slice::from_ref(&odd_call));
        assert_eq!((&stored.summary.run_id, &stored.summary.tenant), (&run_id, &tenant));
        let odd_reply = StoredReply { call: odd_call.call, phase: odd_call.phase, body: odd.to_owned() };
        assert_eq!(store.reply(&run_id, odd_reply.clone()).await.unwrap(), Replied::Taken);
        assert_eq!(store.reply(&run_id, odd_reply.clone()).await.unwrap(), Replied::Repeated);
        let journal = store.journal(&run_id).await.unwrap();
        assert_eq!((journal.text, journal.replies), (odd.repeat(2), vec![odd_reply]));
        assert_eq!(&*store.events(&run_id, 0).await.unwrap().events[0].data, odd);
        store.end(&claim.lease, Batch::default(), End::Stuck(odd.to_owned())).await.unwrap();
        assert_eq!(store.run(&run_id).await.unwrap().unwrap().summary.error.as_deref(), Some(odd));
        assert!(store.retry(&run_id).await.unwrap());
        let claim = store.claim(odd, LONG, &room).await.unwrap().remove(0);
        store.end(&claim.lease, Batch::default(), End::Done(odd.into())).await.unwrap();
        let page = store.list(&Query { tenant: Some(tenant.clone()), max: 9, ..Query::default() }).await.unwrap();
        assert_eq!(page.runs[0].run_id, run_id);
        assert_eq!(store.run(&run_id).await.unwrap().unwrap().answer.as_deref(), Some(odd));
        let session_id = format!("session{odd}");
        let (opening, text) = (odd.to_owned(), Some(odd.to_owned()));
        let session = NewSession { session_id: session_id.clone(), tenant: tenant.clone(), opening, text };
        let limits = SessionLimits { sessions: 1, bytes: 1_000_000 };
        assert_eq!(store.open_session(session, limits).await.unwrap(), Opened::New);
        let TurnStart::Started(turn, _) = store.begin_turn(&tenant, &session_id, LONG).await.unwrap() else {
            panic!("no turn")
        };
        let session = store.session(&session_id).await.unwrap().unwrap();
        assert_eq!((&*session.opening, session.text.as_deref()), (odd, Some(odd)));
        let put = store.put_turn(&turn, odd.repeat(2), 1, 1_000_000).await.unwrap();
        let Put::Stored(summary) = put else { panic!("{put:?}") };
        let session = store.session(&session_id).await.unwrap().unwrap();
        assert_eq!((&*session.summary.session_id, session.text), (&*session_id, Some(odd.repeat(2))));
        assert_eq!((summary.bytes, &session.summary), (3 * odd.len() as u64, &summary));
        assert_eq!(store.secret(odd, vec![0, 1]).await.unwrap(), [0, 1]);
        assert_eq!(store.secret(odd, vec![2]).await.unwrap(), [0, 1]);
    });
}

/// What the pool does when it loses a connection during a statement: it calls again, and says so.
#[test]
fn a_call_whose_result_was_lost_has_it_again() {
    let Some(server) = postgres::shared() else { return };
    let (store, database) = block_on(new_store(server));
    block_on(store.close()).unwrap();
    let write = "false, 1, 1, 'line', 'digest', 0, '{}', '{}'";
    let opened = "'{c1}', '{gate}', '{mail}', '{args}', array[null::bytea], '{}', '{}'";
    let end = "0, 0, '', '', 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'";
    for (call, first, again) in [
        ("select outcome from ptc_lisp.submit('r1', 'acme', 'request', 'key', 'digest', AGAIN)", "new", "new"),
        ("select outcome from ptc_lisp.submit('r2', 'acme', 'request', null, null, AGAIN)", "new", "new"),
        ("select run_id, epoch from ptc_lisp.claim('w/1', 60000, 1, '{acme}', '{9}', AGAIN)", "r1|1", "r1|1"),
        (&format!("select ptc_lisp.write('r1', 1, {write}, {opened})"), "t", "t"),
        ("select was, outcome from ptc_lisp.reply('r1', 'c1', 'gate', 'yes', AGAIN)", "running|taken", "running|taken"),
        (
            &format!("select ptc_lisp.end_attempt('r1', 1, 'stuck', 0, 0, false, 'why', null, true, {end})"),
            "stuck",
            "ended",
        ),
        ("select ptc_lisp.retry('r1', 'holder', AGAIN)", "t", "t"),
        ("select ptc_lisp.cancel('r1')", "queued", "queued"),
        ("select ptc_lisp.open_session('s1', 'acme', 'opening', null, 1, 100, AGAIN)", "new", "new"),
        ("select session_id, epoch from ptc_lisp.begin_turn('acme', 's1', 60000, 'holder', AGAIN)", "s1|1", "s1|1"),
        ("select turns, undos from ptc_lisp.end_turn('s1', 1, 'put', 'text', 5, 100, AGAIN)", "1|1", "1|1"),
        ("select epoch from ptc_lisp.begin_turn('acme', 's1', 60000, 'holder 2', AGAIN)", "2", "2"),
        ("select turns, undos from ptc_lisp.end_turn('s1', 2, 'undo', null, 0, 0, AGAIN)", "0|0", "0|0"),
        ("select epoch from ptc_lisp.begin_turn('acme', 's1', 60000, 'holder 3', AGAIN)", "3", "3"),
        ("select count(*) from ptc_lisp.end_turn('s1', 3, 'delete', null, 0, 0, AGAIN)", "1", "1"),
    ] {
        assert_eq!(server.sql(&database, &call.replace("AGAIN", "false")), first, "{call}");
        assert_eq!(server.sql(&database, &call.replace("AGAIN", "true")), again, "{call}");
    }
    let stored = "select sum(runs), sum(queued), (select count(*) from ptc_lisp.lines), (select count(*) from ptc_lisp.replies) \
                  from ptc_lisp.usage";
    assert_eq!(server.sql(&database, stored), "2|2|1|1");
}

#[test]
fn a_damaged_journal_is_named() {
    let Some(server) = postgres::shared() else { return };
    block_on(async {
        let (store, database) = new_store(server).await;
        store.submit(new_run("r1"), None).await.unwrap();
        let lease = store.claim("w", LONG, &room(1)).await.unwrap().remove(0).lease;
        for n in 0..4 {
            store.write(&lease, lines(1 + 2 * n, 2)).await.unwrap();
        }
        for (damage, (line, error)) in [
            ("update ptc_lisp.lines set text = text || ' ' where first = 3", ("line 3", "its digest is different")),
            (
                "update ptc_lisp.lines set text = (select text from ptc_lisp.lines where first = 1), \
              digest = (select digest from ptc_lisp.lines where first = 1) where first = 3",
                ("line 3", "its digest is different"),
            ),
            ("delete from ptc_lisp.lines where first = 3", ("line 3", "it is missing")),
            ("delete from ptc_lisp.lines where first > 1", ("line 3", "it is missing")),
        ] {
            server.sql(&database, damage);
            let found = store.journal("r1").await.unwrap_err();
            let expected = format!("the store is damaged: {line} of the journal of run r1 ({error}): ");
            assert!(found.to_string().starts_with(&expected), "{damage}: {found}");
        }
    });
}

#[test]
fn a_read_only_database_is_not_writable() {
    let Some(server) = postgres::shared() else { return };
    block_on(async {
        let (store, database) = new_store(server).await;
        store.check_writable().await.unwrap();
        server.sql("postgres", &format!("alter database {database} set default_transaction_read_only = on"));
        server.terminate(&database);
        let error = store.check_writable().await.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("read-only"), "{error}");
        server.sql("postgres", &format!("alter database {database} reset default_transaction_read_only"));
        persist(|| store.check_writable()).await;
    });
}

/// Does all that can be done with a run, and returns what the store acknowledged: the run's name is in its answer.
async fn whole_run(store: &dyn Store, run_id: &str, tenant: &str) {
    let run = || NewRun { run_id: run_id.to_owned(), tenant: tenant.to_owned(), request: "{}".to_owned() };
    let key = || Some(RequestKey { key: run_id.to_owned(), digest: "d".to_owned() });
    let submitted = persist(|| store.submit(run(), key())).await;
    assert!(submitted == Submitted::New || submitted == Submitted::Known(run_id.to_owned()), "{submitted:?}");
    let mut seen = 0;
    loop {
        // A claim whose answer was lost is claimed again when its lease expires.
        let room = Room { slots: 1, tenants: vec![(tenant.to_owned(), 1)] };
        let claims = persist(|| store.claim("w", Duration::from_millis(500), &room)).await;
        let Some(claim) = claims.into_iter().next() else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (lease, next) = (claim.lease, claim.lines + 1);
        let renewed = persist(|| store.renew(std::slice::from_ref(&lease), LONG)).await;
        if renewed[0] == Renewed::Lost {
            continue;
        }
        if seen == 0 {
            let opened = Batch { opened: vec![call("c1")], ..lines(next, 2) };
            persist(|| store.write(&lease, opened.clone())).await;
            let ended = persist(|| store.end(&lease, Batch::default(), End::Suspended(0))).await;
            assert_eq!(ended, Ended::Ended);
            let replied = persist(|| store.reply(run_id, reply("c1", "yes"))).await;
            assert!(matches!(replied, Replied::Taken | Replied::Repeated), "{replied:?}");
            seen = 1;
            continue;
        }
        assert_eq!(persist(|| store.journal(run_id)).await.replies, [reply("c1", "yes")]);
        persist(|| store.write(&lease, lines(next, 1))).await;
        let answer: Arc<str> = format!("{{\"run\":\"{run_id}\"}}").into();
        let ended = persist(|| store.end(&lease, lines(next + 1, 1), End::Done(answer.clone()))).await;
        assert_eq!(ended, Ended::Ended);
        return;
    }
}

/// Does runs while something disturbs the database, and checks that all that was acknowledged is there.
async fn undisturbed_by(address: &str, disturb: impl Fn() + Send + Sync + 'static) {
    let store: Arc<dyn Store> = Arc::new(open(address).await);
    let is_over = Arc::new(AtomicBool::new(false));
    let stop = is_over.clone();
    let disturbing = tokio::task::spawn_blocking(move || {
        let mut times = 0;
        while !stop.load(Ordering::Relaxed) {
            disturb();
            times += 1;
        }
        times
    });
    let workers = (0..8).map(|n| {
        let (store, is_over) = (store.clone(), is_over.clone());
        tokio::spawn(async move {
            let (mut runs, start) = (Vec::new(), Instant::now());
            while start.elapsed() < Duration::from_secs(5) && !is_over.load(Ordering::Relaxed) {
                let run_id = format!("run-{n}-{}", runs.len());
                whole_run(&*store, &run_id, &format!("tenant-{n}")).await;
                runs.push(run_id);
            }
            runs
        })
    });
    let done = futures_util::future::join_all(workers.collect::<Vec<_>>()).await;
    is_over.store(true, Ordering::Relaxed);
    assert!(disturbing.await.unwrap() > 0);
    let done: Vec<String> = done.into_iter().flat_map(Result::unwrap).collect();
    assert!(done.len() >= 8, "{}", done.len());
    for run_id in &done {
        let run = persist(|| store.run(run_id)).await.unwrap();
        assert_eq!((run.summary.status, run.summary.calls.len()), (RunStatus::Done, 0), "{run_id}");
        assert_eq!(run.answer.unwrap().to_string(), format!("{{\"run\":\"{run_id}\"}}"));
        let journal = persist(|| store.journal(run_id)).await;
        assert_eq!(journal.text, lines(1, 4).lines.concat(), "{run_id}");
    }
    let mut found = (0, 0);
    for n in 0..8 {
        let tenant = format!("tenant-{n}");
        let usage = persist(|| store.usage(&tenant)).await;
        found = (found.0 + usage.runs, found.1 + usage.queued);
    }
    assert_eq!(found, (done.len() as u64, 0));
    persist(|| store.check_writable()).await;
}

#[test]
fn a_restart_of_the_database_loses_nothing() {
    let Some(server) = Postgres::start("", None) else { return };
    let server = Arc::new(server);
    let address = server.address(&server.create_database());
    let restarted = server.clone();
    block_on(undisturbed_by(&address, move || {
        restarted.restart();
        std::thread::sleep(Duration::from_millis(700));
    }));
}

#[test]
fn lost_connections_lose_nothing() {
    let Some(server) = postgres::shared() else { return };
    let database = server.create_database();
    let address = server.address(&database);
    block_on(undisturbed_by(&address, move || {
        server.terminate(&database);
        std::thread::sleep(Duration::from_millis(30));
    }));
}

#[test]
fn news_come_again_after_a_lost_connection() {
    let Some(server) = postgres::shared() else { return };
    block_on(async {
        let (store, database) = new_store(server).await;
        let mut news = store.news();
        for run_id in ["r1", "r2", "r3"] {
            server.terminate(&database);
            // Those that wait look again: some news may be lost.
            let queued =
                timeout(Duration::from_secs(20), async { while news.recv().await.unwrap() != News::Queued {} });
            queued.await.unwrap();
            persist(|| store.submit(new_run(run_id), None)).await;
            let changed = async { while news.recv().await.unwrap() != News::Changed(run_id.into()) {} };
            timeout(Duration::from_secs(20), changed).await.unwrap();
        }
    });
}

#[test]
fn a_database_that_hangs_is_an_error() {
    let Some(server) = Postgres::start("fsync = off", None) else { return };
    block_on(async {
        let address = server.address(&server.create_database());
        let store = open(&address).await;
        store.submit(new_run("r1"), None).await.unwrap();
        server.signal("STOP");
        let start = Instant::now();
        let key = || Some(RequestKey { key: "k".to_owned(), digest: "d".to_owned() });
        let (known, unknown) = tokio::join!(store.submit(new_run("r2"), key()), PostgresStore::open(&address));
        let elapsed = start.elapsed();
        server.signal("CONT");
        let (known, unknown) = (known.unwrap_err(), unknown.unwrap_err());
        assert!(known.is_transient() && unknown.is_transient(), "{known} {unknown}");
        assert!(elapsed > Duration::from_secs(1) && elapsed < Duration::from_secs(20), "{elapsed:?}");
        // Whether it had happened or not.
        let submitted = persist(|| store.submit(new_run("r2"), key())).await;
        assert!(submitted == Submitted::New || submitted == Submitted::Known("r2".to_owned()), "{submitted:?}");
        let room = room(5);
        let claims = persist(|| store.claim("w", LONG, &room)).await;
        assert_eq!(claims.len(), 2, "{claims:?}");
    });
}

#[test]
fn workers_share_the_queue() {
    let Some(server) = postgres::shared() else { return };
    block_on(async {
        let (store, database) = new_store(server).await;
        let stores = [Arc::new(store), Arc::new(open(&server.address(&database)).await)];
        let submits = (0..300).map(|n| {
            let store = stores[n % 2].clone();
            tokio::spawn(async move { store.submit(new_run(&format!("r{n:03}")), None).await.unwrap() })
        });
        futures_util::future::join_all(submits.collect::<Vec<_>>()).await;
        let workers = (0..12).map(|n| {
            let store = stores[n % 2].clone();
            tokio::spawn(async move {
                let mut leases: Vec<Lease> = Vec::new();
                loop {
                    let claims = store.claim(&format!("w{n}"), LONG, &room(5)).await.unwrap();
                    if claims.is_empty() {
                        return leases;
                    }
                    assert!(claims.len() <= 5);
                    leases.extend(claims.into_iter().map(|claim| claim.lease));
                }
            })
        });
        let leases = futures_util::future::join_all(workers.collect::<Vec<_>>()).await;
        let leases: Vec<Lease> = leases.into_iter().flat_map(Result::unwrap).collect();
        let runs: BTreeSet<_> = leases.iter().map(|lease| lease.run_id.clone()).collect();
        assert_eq!((leases.len(), runs.len()), (300, 300));
        assert!(leases.iter().all(|lease| lease.epoch == 1));
    });
}

/// Returns the certificate of an authority, a certificate that it issued for a host, and the key of that.
fn certificates(host: &str) -> (String, String, String) {
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, format!("authority of {host}"));
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, key);
    let host_key = rcgen::KeyPair::generate().unwrap();
    let host = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&host_key, &issuer).unwrap();
    (certificate, host.pem(), host_key.serialize_pem())
}

#[test]
fn certificates_are_checked_as_sslmode_asks() {
    let (authority, certificate, key) = certificates("127.0.0.1");
    let (other_authority, ..) = certificates("127.0.0.1");
    let Some(server) = Postgres::start("fsync = off", Some((&certificate, &key))) else { return };
    let directory = std::env::temp_dir().join(format!("ptc-certificates-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (good, bad) = (directory.join("good.pem"), directory.join("bad.pem"));
    std::fs::write(&good, authority).unwrap();
    std::fs::write(&bad, other_authority).unwrap();
    let (good, bad) = (good.display(), bad.display());
    let database = server.create_database();
    let address = server.address(&database);
    let by_name = address.replace("127.0.0.1", "localhost");
    let uses_tls = "select count(*) > 0 and bool_and(ssl) from pg_stat_activity join pg_stat_ssl using (pid) \
                    where datname = current_database() and application_name = 'ptcl'";
    for (address, expected) in [
        (format!("{address}?sslmode=disable"), Ok("f")),
        (address.clone(), Ok("t")),
        (format!("{address}?sslmode=require"), Ok("t")),
        (format!("{address}?sslmode=verify-full&sslrootcert={good}"), Ok("t")),
        (format!("{by_name}?sslmode=verify-ca&sslrootcert={good}"), Ok("t")),
        (format!("{by_name}?sslmode=verify-full&sslrootcert={good}"), Err("certificate not valid for name")),
        (format!("{address}?sslmode=verify-full&sslrootcert={bad}"), Err("invalid peer certificate")),
        (format!("{address}?sslmode=verify-ca&sslrootcert={bad}"), Err("invalid peer certificate")),
        (format!("{address}?sslmode=require&sslrootcert={bad}"), Err("invalid peer certificate")),
        (format!("{address}?sslmode=verify-full"), Err("invalid peer certificate")),
        (format!("{address}?sslmode=verify-full&sslrootcert=/nowhere.pem"), Err("/nowhere.pem cannot be read")),
    ] {
        block_on(async {
            match (PostgresStore::open(&address).await, expected) {
                (Ok(store), Ok(expected)) => {
                    store.check_writable().await.unwrap();
                    assert_eq!(server.sql(&database, uses_tls), expected, "{address}");
                    store.close().await.unwrap();
                }
                (Err(StoreError::Open { why, .. }), Err(expected)) => {
                    assert!(why.contains(expected), "{address}: {why}")
                }
                (result, _) => panic!("{address}: {result:?}"),
            }
        });
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_server_without_tls_is_refused_if_tls_is_required() {
    let Some(server) = postgres::shared() else { return };
    let address = server.address("postgres") + "?sslmode=require";
    let error = block_on(PostgresStore::open(&address)).unwrap_err();
    assert!(matches!(error, StoreError::Open { .. }) && error.to_string().contains("does not support TLS"), "{error}");
}

/// A database that stands still for a while: no run is refused, none ends for the time that the store took, and no call
/// that was not made is asked about.
#[test]
fn a_paused_database_takes_no_time_from_runs() {
    // It is paused: other tests have another one.
    let Some(server) = Postgres::start("fsync = off", None) else { return };
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let (store, _) = new_store(&server).await;
        let tool = tool::ToolServer::start();
        let text = format!(
            "isolation = \"in-process\"\n[limits]\ntimeout_ms = 1000\n[service]\nlease_seconds = 60\n\
             [tools.pay]\nurl = \"http://127.0.0.1:{0}/pay\"\neffect = \"write\"\ninput = {{ type = \"object\" }}\n\
             [network]\nallow_private = [\"127.0.0.1:{0}\"]\n",
            tool.port
        );
        let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
        let service = Service::open(config, Arc::new(store)).await.unwrap();
        let tenant = service.tenant("anonymous").unwrap();
        tool.hold(true);
        let request = r#"{"program": "(do (tool/pay {:n 1}) (tool/pay {:n 2}))"}"#;
        let run_id = service.submit(&tenant, request, None).await.unwrap().run_id;
        let end = Instant::now() + Duration::from_secs(60);
        while tool.count("pay") == 0 {
            assert!(Instant::now() < end, "the first call is not made");
            sleep(Duration::from_millis(5)).await;
        }
        server.signal("STOP");
        // The second call waits for the store, for longer than the run may take.
        tool.hold(false);
        let (other, of) = (service.clone(), tenant.clone());
        let submitted = tokio::spawn(async move { other.submit(&of, r#"{"program": "3"}"#, None).await });
        sleep(Duration::from_millis(2_500)).await;
        server.signal("CONT");
        let late = submitted.await.unwrap().expect("a run that waited for the store").run_id;
        for (run_id, value) in [(&late, 3), (&run_id, 2)] {
            let answer = match service.wait("anonymous", run_id).await.unwrap() {
                Done::Answer(answer) => answer,
                Done::Waiting(state) => panic!("{state:?}"),
            };
            assert!(answer.contains(&format!("\"value\":{value},")), "{answer}");
        }
        assert_eq!(tool.count("pay"), 2);
    });
}
