//! What a store survives: a killed process, a full disk, an older format.
//!
//! A test that needs a process of its own starts this program again, with the path of the store in a variable.

use crate::contract::{LONG, room, run};
use crate::file::TestFile;
use lisp_server::config::Durability;
use lisp_server::store::{
    Batch, Checked, Formats, NewRun, NewSession, Opened, RunStatus, RunStore, SessionLimits, SessionStore, SqliteStore,
    Store, StoreError, StoreLocation, TurnStart,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::runtime::Runtime;

const CHILD: &str = "PTC_STORES_CHILD";

/// Returns the path of the store if this is the process that a test has started.
fn child() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

fn again(test: &str, file: &TestFile) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CHILD, &file.0);
    command
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    if let Some(path) = child() {
        return Runtime::new().unwrap().block_on(write_until_killed(path));
    }
    let file = TestFile::new("killed");
    let mut writer = again("processes::a_killed_process_loses_nothing_it_acknowledged", &file);
    let mut writer = writer.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut acknowledged = lines.filter_map(|line| line.strip_prefix("acknowledged ").map(str::to_owned));
    let mut last: Vec<String> = acknowledged.by_ref().take(400).collect();
    let refused = file.try_open().unwrap_err();
    let owner = format!("process {}", writer.id());
    assert!(matches!(&refused, StoreError::Owned { owner: its, .. } if its.starts_with(&owner)), "{refused}");
    writer.kill().unwrap();
    last.extend(acknowledged);
    writer.wait().unwrap();
    Runtime::new().unwrap().block_on(async {
        let store = file.open();
        for acknowledged in last {
            let (run_id, line) = acknowledged.split_once(' ').unwrap();
            let text = store.journal(run_id).await.unwrap().text;
            assert!(text.lines().any(|stored| stored == line), "{run_id} has no line {line}: {text}");
        }
        let claims = store.claim("next", LONG, &room("acme", 9)).await.unwrap();
        assert_eq!(claims.len(), 4);
        assert!(claims.iter().all(|claim| claim.lease.epoch == 2 && claim.faults == 0));
    });
}

async fn write_until_killed(path: PathBuf) {
    let store = Arc::new(SqliteStore::open(&path, Durability::Process).unwrap());
    for n in 0..4 {
        store.submit(run(&format!("run-{n}"), "acme"), None).await.unwrap();
    }
    let claims = store.claim("worker", LONG, &room("acme", 4)).await.unwrap();
    let writers = claims.into_iter().map(|claim| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 1.. {
                let batch = Batch { first_line: number, lines: vec![format!("{number}\n")], ..Batch::default() };
                store.write(&claim.lease, batch).await.unwrap();
                println!("\nacknowledged {} {number}", claim.lease.run_id);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

#[test]
fn a_full_disk_loses_nothing_and_is_survived() {
    if let Some(path) = child() {
        return Runtime::new().unwrap().block_on(fill_the_disk(path));
    }
    let file = TestFile::new("full");
    let done = again("processes::a_full_disk_loses_nothing_and_is_survived", &file).output().unwrap();
    let output = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && output.contains("1 passed"), "{output}");
}

/// A file that may not grow behaves as one on a full disk. The limit lets the log grow until some of it was written back.
async fn fill_the_disk(path: PathBuf) {
    // Without a handler, the signal ends the process.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false))).unwrap();
    let store = Arc::new(SqliteStore::open(&path, Durability::Process).unwrap());
    let free = getrlimit(Resource::Fsize);
    let limit = |bytes| setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), maximum: free.maximum }).unwrap();
    limit(6 << 20);
    let next = Arc::new(AtomicU64::new(0));
    let clients = (0..8).map(|_| {
        let (store, next) = (store.clone(), next.clone());
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            loop {
                let run_id = format!("run-{:05}", next.fetch_add(1, Ordering::Relaxed));
                let request = "x".repeat(20_000);
                match store.submit(NewRun { run_id: run_id.clone(), tenant: "acme".to_owned(), request }, None).await {
                    Ok(_) => acknowledged.push(run_id),
                    Err(error) => {
                        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
                        return acknowledged;
                    }
                }
            }
        })
    });
    let mut acknowledged = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        acknowledged.extend(client.await.unwrap());
    }
    assert!(acknowledged.len() > 250, "{} runs fit", acknowledged.len());
    // A probe may still fit: not so now.
    limit(4 << 20);
    let not_ready = store.check_writable().await.unwrap_err();
    assert!(not_ready.is_transient(), "{not_ready}");
    let has_all = async |store: &SqliteStore| {
        for run_id in &acknowledged {
            assert!(store.run(run_id).await.unwrap().is_some(), "{run_id}");
        }
        store.unfinished().await.unwrap().into_iter().find(|(status, _)| *status == RunStatus::Queued).unwrap().1
    };
    assert_eq!(has_all(&store).await, acknowledged.len() as u64);
    setrlimit(Resource::Fsize, free).unwrap();
    store.check_writable().await.unwrap();
    store.submit(run("after", "acme"), None).await.unwrap();
    assert_eq!(has_all(&store).await, acknowledged.len() as u64 + 1);
    store.close().await.unwrap();
    assert_eq!(has_all(&SqliteStore::open(&path, Durability::Process).unwrap()).await, acknowledged.len() as u64 + 1);
}

/// A store of the first format, in which there are runs of each status.
const FORMAT_1: &str = include_str!("../../src/store/sqlite/format_1.sql");
const ROWS_1: &str = "
    INSERT INTO runs VALUES
        ('queued', 'acme', '{\"q\": 1}', 'queued', 0, 10, 11, NULL),
        ('running', 'acme', '{}', 'running', 1, 20, 21, NULL),
        ('waiting', 'acme', '{}', 'waiting', 0, 30, 31, NULL),
        ('done', 'other', '{}', 'done', 0, 40, 41, '{\"answer\": \"é\"}');
    INSERT INTO journal VALUES ('waiting', 1, '{\"one\": \"é\"}' || char(10)), ('waiting', 2, '{\"two\": 2}' || char(10));
    INSERT INTO replies VALUES ('waiting', 'b', 'gate', '1'), ('waiting', 'a', 'result', '2');
    INSERT INTO keys VALUES ('acme', 'key', 'digest', 'waiting', 31), ('acme', 'lost', 'digest', 'no such run', 5);
    INSERT INTO sessions VALUES ('session', 'acme', '{\"open\": 1}', 7, 50, 51);
    INSERT INTO states VALUES ('session', 5, 'five'), ('session', 6, 'six'), ('session', 7, NULL);
    INSERT INTO secrets VALUES ('name', x'0102');
    UPDATE owner SET epoch = 9;";

#[tokio::test]
async fn a_store_of_format_1_is_converted() {
    for (name, marks) in [
        ("format-1", "PRAGMA user_version = 1; PRAGMA application_id = 0x5054434C"),
        // The first stores do not say whose they are, and have no probe.
        ("format-1-first", "PRAGMA user_version = 1; DROP TABLE probe"),
    ] {
        let file = TestFile::new(name);
        file.meddle(&format!("PRAGMA journal_mode = wal; {FORMAT_1} {ROWS_1} {marks}"));
        let location = StoreLocation::File(file.0.clone());
        assert_eq!(location.formats().await.unwrap(), Formats { found: 1, known: 3 });
        for unconverted in [location.check().await.err(), location.open_existing(Durability::Process).await.err()] {
            assert!(matches!(unconverted, Some(StoreError::Earlier { found: 1, known: 3, .. })), "{unconverted:?}");
        }
        // The second time there is nothing to convert.
        for _ in 0..2 {
            is_converted(&file.open()).await;
        }
        assert_eq!(location.check().await.unwrap(), Checked { runs: 4, lines: 2, problems: Vec::new() });
        // The next attempt opens the calls of its journal again.
        let claims = file.open().claim("worker", LONG, &room("acme", 9)).await.unwrap();
        let lines: Vec<_> = claims.iter().map(|claim| (&*claim.lease.run_id, claim.lines)).collect();
        assert_eq!(lines, [("queued", 0), ("running", 0), ("waiting", 2)]);
        let db = rusqlite::Connection::open(&file.0).unwrap();
        let count = |sql: &str| -> i64 { db.query_row(sql, [], |row| row.get(0)).unwrap() };
        assert_eq!(count("SELECT count(*) FROM sqlite_master WHERE name LIKE 'old_%'"), 0);
        assert_eq!(count("SELECT count(*) FROM pragma_foreign_key_check"), 0);
        assert_eq!((count("PRAGMA user_version"), count("SELECT epoch FROM owner")), (3, 12));
        // It has what a new file has.
        let schema = |db: &rusqlite::Connection| -> Vec<(String, String)> {
            let mut select =
                db.prepare("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").unwrap();
            select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
        };
        let new = TestFile::new("format-new");
        drop(new.open());
        assert_eq!(schema(&db), schema(&rusqlite::Connection::open(&new.0).unwrap()));
    }
}

/// Makes a new store one of format 2, in which sessions have their openings themselves.
const TO_FORMAT_2: &str = "
    DROP TRIGGER session_added; DROP TRIGGER session_removed; DROP TRIGGER session_changed;
    DROP TABLE session_usage; DROP TABLE openings;
    ALTER TABLE sessions DROP COLUMN ended;
    ALTER TABLE sessions ADD COLUMN opening TEXT NOT NULL DEFAULT '';
    INSERT INTO sessions (session_id, tenant, bytes, created_ms, updated_ms, opening)
        VALUES ('session', 'acme', 15, 50, 51, '{\"open\": 1}');
    INSERT INTO states VALUES ('session', 0, 'text');
    PRAGMA user_version = 2";

#[tokio::test]
async fn a_store_of_format_2_is_converted() {
    let file = TestFile::new("format-2");
    drop(file.open());
    file.meddle(TO_FORMAT_2);
    assert_eq!(StoreLocation::File(file.0.clone()).formats().await.unwrap(), Formats { found: 2, known: 3 });
    let store = file.open();
    let session = store.session("session").await.unwrap().unwrap();
    assert_eq!(
        (&*session.opening, session.text.as_deref(), session.summary.bytes),
        ("{\"open\": 1}", Some("text"), 15)
    );
    let open = async |session_id: &str, sessions: u64, bytes: u64| {
        let (session_id, tenant) = (session_id.to_owned(), "acme".to_owned());
        let session = NewSession { session_id, tenant, opening: "{}".to_owned(), text: None };
        store.open_session(session, SessionLimits { sessions, bytes }).await.unwrap()
    };
    assert_eq!((open("other", 1, 99).await, open("other", 2, 16).await), (Opened::TooMany, Opened::TooLarge(17)));
    assert_eq!(open("other", 2, 17).await, Opened::New);
    let TurnStart::Started(turn, _) = store.begin_turn("acme", "session", LONG).await.unwrap() else { panic!() };
    assert!(store.delete_session(&turn).await.unwrap());
    assert_eq!(open("third", 2, 4).await, Opened::New);
}

async fn is_converted(store: &SqliteStore) {
    use lisp_server::store::{RequestKey, SessionStore, StoredReply, Submitted, TurnStart};
    for (run_id, created_ms, cancelled) in [("queued", 10, false), ("running", 20, true), ("waiting", 30, false)] {
        let run = store.run(run_id).await.unwrap().unwrap();
        let summary = run.summary;
        assert_eq!((summary.status, summary.cancelled, run.answer), (RunStatus::Queued, cancelled, None), "{run_id}");
        assert_eq!((summary.created_ms, summary.updated_ms), (created_ms, created_ms + 1));
    }
    assert_eq!(&*store.run("queued").await.unwrap().unwrap().request, "{\"q\": 1}");
    let done = store.run("done").await.unwrap().unwrap();
    assert_eq!((done.summary.status, done.answer.as_deref()), (RunStatus::Done, Some("{\"answer\": \"é\"}")));
    let events = store.events("done", 0).await.unwrap();
    assert!(events.events.is_empty() && events.is_over);
    let journal = store.journal("waiting").await.unwrap();
    assert_eq!(journal.text, "{\"one\": \"é\"}\n{\"two\": 2}\n");
    let reply =
        |call: &str, phase: &str, body: &str| StoredReply { call: call.into(), phase: phase.into(), body: body.into() };
    assert_eq!(journal.replies, [reply("a", "result", "2"), reply("b", "gate", "1")]);
    let key = |key: &str| RequestKey { key: key.to_owned(), digest: "digest".to_owned() };
    let known = store.known_request("acme", key("key")).await.unwrap();
    assert_eq!(known, Some(Submitted::Known("waiting".to_owned())));
    assert_eq!(store.known_request("acme", key("lost")).await.unwrap(), None);
    let (acme, other) = (store.usage("acme").await.unwrap(), store.usage("other").await.unwrap());
    assert_eq!((acme.runs, acme.queued, acme.bytes), (3, 3, 8 + 2 + 2 + 14 + 11));
    assert_eq!((other.runs, other.queued, other.bytes), (1, 0, 2 + 16));
    assert_eq!(store.secret("name", vec![3]).await.unwrap(), [1, 2]);
    let session = store.session("session").await.unwrap().unwrap();
    assert_eq!(
        (session.summary.turns, session.summary.undos, session.text, &*session.opening),
        (7, 2, None, "{\"open\": 1}")
    );
    let TurnStart::Started(turn, _) = store.begin_turn("acme", "session", LONG).await.unwrap() else {
        panic!("the session is busy")
    };
    store.end_turn(&turn).await.unwrap();
}
