//! The file of an SQLite store: who owns it, what it refuses, what it keeps.

use crate::contract::{LONG, call, limits, opens, reply, room, run, until};
use crate::file::TestFile;
use lisp_server::config::Durability;
use lisp_server::store::{
    Batch, Claim, End, NewSession, Opened, Query, RequestKey, RunStatus, RunStore, SessionStore, SqliteStore, Store,
    StoreError, Submitted, Sweep, TurnStart,
};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

async fn submit(store: &SqliteStore, run_id: &str) {
    assert_eq!(store.submit(run(run_id, "acme"), None).await.unwrap(), Submitted::New);
}

async fn claim(store: &SqliteStore) -> Claim {
    store.claim("worker", LONG, &room("acme", 1)).await.unwrap().remove(0)
}

fn lines(first_line: u64, lines: &[&str]) -> Batch {
    Batch { first_line, lines: lines.iter().map(|line| format!("{line}\n")).collect(), ..Batch::default() }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn a_file_keeps_everything() {
    let file = TestFile::new("keeps");
    let key = || Some(RequestKey { key: "k".to_owned(), digest: "d".to_owned() });
    let before = {
        let store = file.open();
        store.submit(run("a", "acme"), key()).await.unwrap();
        submit(&store, "b").await;
        let lease = claim(&store).await.lease;
        let event = ("print", "\"é\"".into());
        let batch =
            Batch { first_event: 1, events: vec![event], opened: vec![call("x"), call("y")], ..lines(1, &["1", "2"]) };
        store.write(&lease, batch).await.unwrap();
        store.reply("a", reply("x")).await.unwrap();
        let lease = claim(&store).await.lease;
        store.end(&lease, lines(1, &["1"]), End::Done("{\"answer\": 1}".into())).await.unwrap();
        let text = Some("text".to_owned());
        let session =
            NewSession { session_id: "s".to_owned(), tenant: "acme".to_owned(), opening: "{}".to_owned(), text };
        assert_eq!(store.open_session(session, limits(1)).await.unwrap(), Opened::New);
        store.begin_turn("acme", "s", LONG).await.unwrap();
        assert_eq!(store.secret("x", vec![1, 2]).await.unwrap(), [1, 2]);
        state(&store).await
    };
    let store = file.open();
    assert_eq!(state(&store).await, before);
    assert_eq!(store.submit(run("c", "acme"), key()).await.unwrap(), Submitted::Known("a".to_owned()));
    assert_eq!(store.secret("x", vec![3]).await.unwrap(), [1, 2]);
    // Its lease and its turn have ended with the process, which is no fault of the run.
    let again = claim(&store).await;
    assert_eq!((&*again.lease.run_id, again.faults, again.lines, again.events, again.printed), ("a", 0, 2, 1, 1));
    assert!(
        matches!(store.begin_turn("acme", "s", LONG).await.unwrap(), TurnStart::Started(turn, _) if turn.epoch == 2)
    );
    store.close().await.unwrap();
    assert!(matches!(store.run("a").await, Err(StoreError::Failed(why)) if why.contains("closed")));
    assert!(store.cancel("a").await.is_err() && store.close().await.is_err());
    assert!(!file.beside("-wal").exists(), "the log is written back");
}

async fn state(store: &SqliteStore) -> String {
    let mut all = Vec::new();
    for run_id in ["a", "b"] {
        let read = (store.run(run_id).await.unwrap(), store.journal(run_id).await.unwrap());
        all.push(format!("{read:?} {:?}", store.events(run_id, 0).await.unwrap()));
    }
    format!("{all:?} {:?} {:?}", store.session("s").await.unwrap(), store.unfinished().await.unwrap())
}

#[tokio::test]
async fn a_file_has_one_owner() {
    let file = TestFile::new("one");
    let first = file.open();
    let refused = file.try_open().unwrap_err();
    let owner = format!("process {}", std::process::id());
    assert!(matches!(&refused, StoreError::Owned { owner: its, .. } if its.starts_with(&owner)), "{refused}");
    first.check_writable().await.unwrap();
    drop(first);
    drop(file.open());
}

/// Where locks do not work, as on some network file systems, an owner finds out that another has opened the file.
#[tokio::test]
async fn the_last_owner_writes() {
    let file = TestFile::new("owner");
    let first = file.open();
    submit(&first, "a").await;
    let lease = claim(&first).await.lease;
    std::fs::remove_file(file.beside("-lock")).unwrap();
    let second = file.open();
    let refused = |error: StoreError| assert!(matches!(error, StoreError::Owned { .. }), "{error}");
    refused(first.write(&lease, opens("x")).await.unwrap_err());
    refused(first.submit(run("b", "acme"), None).await.unwrap_err());
    refused(first.check_writable().await.unwrap_err());
    // Reading is harmless; a lease of the other owner is over.
    assert!(first.run("a").await.unwrap().is_some());
    assert!(matches!(second.write(&lease, opens("x")).await, Err(StoreError::LeaseLost)));
    second.write(&claim(&second).await.lease, opens("x")).await.unwrap();
}

#[test]
fn other_files_are_refused() {
    let file = TestFile::new("foreign");
    let refused = |file: &TestFile, text: &str| {
        let error = file.try_open().unwrap_err();
        assert!(matches!(&error, StoreError::Open { .. }) && error.to_string().contains(text), "{error}");
    };
    let text =
        "this is no database, though it is long enough to be the head of one, and then some more of it, and more";
    std::fs::write(&file.0, text).unwrap();
    refused(&file, &file.0.display().to_string());
    file.remove();
    // A pipe, as a device would be, is not opened, and keeps its mode.
    assert!(std::process::Command::new("mkfifo").arg("-m").arg("644").arg(&file.0).status().unwrap().success());
    refused(&file, "not a regular file");
    assert_eq!(mode(&file.0), 0o644);
    file.remove();
    // Two names of one file would have two locks.
    let (link, second) = (TestFile::new("foreign-link"), TestFile::new("foreign-second"));
    std::os::unix::fs::symlink(&file.0, &link.0).unwrap();
    refused(&link, "does not exist");
    assert!(!file.0.exists());
    drop(file.open());
    drop(link.open());
    std::fs::hard_link(&file.0, &second.0).unwrap();
    refused(&second, "hard links");
    second.remove();
    nothing_beside_it_is_followed(&file);
    file.meddle("PRAGMA user_version = 99");
    let error = file.try_open().unwrap_err();
    assert!(matches!(error, StoreError::Format { found: 99, known: 3 }), "{error}");
    let missing =
        SqliteStore::open(&std::env::temp_dir().join("no/such/folder/x.db"), Durability::Machine).unwrap_err();
    assert!(matches!(missing, StoreError::Open { .. }), "{missing}");
    assert!(missing.to_string().contains("no/such/folder; create it"), "{missing}");
}

/// What is next to a store reaches no other file.
fn nothing_beside_it_is_followed(file: &TestFile) {
    let other = TestFile::new("foreign-other");
    std::fs::write(&other.0, "of another program").unwrap();
    std::fs::set_permissions(&other.0, PermissionsExt::from_mode(0o644)).unwrap();
    for ending in ["-lock", "-wal", "-shm", "-journal"] {
        let beside = file.beside(ending);
        for is_hard in [false, true] {
            let _ = std::fs::remove_file(&beside);
            match is_hard {
                false => std::os::unix::fs::symlink(&other.0, &beside).unwrap(),
                true => std::fs::hard_link(&other.0, &beside).unwrap(),
            }
            let error = file.try_open().unwrap_err();
            assert!(error.to_string().contains("remove it"), "{ending}: {error}");
            assert_eq!(std::fs::read_to_string(&other.0).unwrap(), "of another program");
            assert_eq!(mode(&other.0), 0o644, "{ending}");
        }
        std::fs::remove_file(&beside).unwrap();
    }
}

/// The database of another program is neither opened nor changed, and nothing is left beside it.
#[tokio::test]
async fn the_database_of_another_program_is_left_alone() {
    let file = TestFile::new("other");
    for sql in [
        "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1)",
        "CREATE TABLE runs (n INTEGER); CREATE TABLE owner (n INTEGER)",
        "PRAGMA application_id = 42; CREATE TABLE t (n INTEGER)",
        "PRAGMA application_id = 42",
        "PRAGMA user_version = 1; CREATE TABLE t (n INTEGER)",
        "PRAGMA user_version = 2; CREATE TABLE t (n INTEGER)",
        "PRAGMA journal_mode = wal; CREATE TABLE t (n INTEGER)",
    ] {
        file.remove();
        file.meddle(sql);
        let before = std::fs::read(&file.0).unwrap();
        let error = file.try_open().unwrap_err();
        assert!(error.to_string().contains("another program"), "{sql}: {error}");
        assert_eq!(std::fs::read(&file.0).unwrap(), before, "{sql}");
        for end in ["-wal", "-shm", "-lock"] {
            assert!(!file.beside(end).exists(), "{sql}: {end}");
        }
    }
    // An empty file is nobody's.
    file.remove();
    std::fs::write(&file.0, "").unwrap();
    submit(&file.open(), "a").await;
    let db = rusqlite::Connection::open(&file.0).unwrap();
    let marked: i64 = db.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
    assert_eq!(marked.to_be_bytes()[4..], *b"PTCL");
}

/// Only its owner can read it, whatever the mask of the process, and whoever made the file.
#[tokio::test]
async fn only_its_user_reads_it() {
    let file = TestFile::new("modes");
    let all = ["", "-wal", "-shm", "-lock"].map(|end| file.beside(end));
    {
        let store = file.open();
        submit(&store, "a").await;
        assert_eq!(all.each_ref().map(|path| mode(path)), [0o600; 4]);
        for path in &all {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o664)).unwrap();
        }
    }
    std::fs::write(file.beside("-lock"), "").unwrap();
    std::fs::set_permissions(file.beside("-lock"), PermissionsExt::from_mode(0o666)).unwrap();
    let store = file.open();
    submit(&store, "b").await;
    assert_eq!(all.each_ref().map(|path| mode(path)), [0o600; 4]);
}

/// A store that cannot be written is not ready, and is again when that is over.
#[tokio::test]
async fn a_probe_finds_out_whether_it_can_be_written() {
    let file = TestFile::new("probe");
    let store = file.open();
    store.check_writable().await.unwrap();
    let number = || -> i64 {
        let db = rusqlite::Connection::open(&file.0).unwrap();
        db.query_row("SELECT coalesce(max(number), 0) FROM probe", [], |row| row.get(0)).unwrap()
    };
    let trigger = |table: &str| {
        format!("CREATE TRIGGER full_{table} BEFORE INSERT ON {table} BEGIN SELECT RAISE(FAIL, 'full'); END;")
    };
    file.meddle(&trigger("runs"));
    // What is written is more each time.
    for probes in 0..3 {
        assert_eq!(number(), probes);
        assert!(store.submit(run("a", "acme"), None).await.is_err());
        store.check_writable().await.unwrap();
    }
    file.meddle(&trigger("probe"));
    assert!(store.submit(run("a", "acme"), None).await.is_err());
    for _ in 0..2 {
        assert!(matches!(store.check_writable().await, Err(StoreError::Failed(_))));
    }
    file.meddle("DROP TRIGGER full_runs; DROP TRIGGER full_probe");
    store.check_writable().await.unwrap();
    submit(&store, "a").await;
}

/// A store whose files were removed or replaced keeps nothing for the time after the process.
#[tokio::test]
async fn a_store_that_was_removed_says_so() {
    for end in ["", "-wal"] {
        let file = TestFile::new(&format!("removed{end}"));
        let store = file.open();
        submit(&store, "a").await;
        let (path, away): (PathBuf, PathBuf) = (file.beside(end), file.beside(&format!("{end}-away")));
        std::fs::rename(&path, &away).unwrap();
        let gone = store.check_writable().await;
        assert!(matches!(gone, Err(StoreError::Failed(why)) if why.contains("removed or replaced")));
        std::fs::write(&path, "").unwrap();
        assert!(matches!(store.check_writable().await, Err(StoreError::Failed(_))));
        std::fs::rename(&away, &path).unwrap();
        store.check_writable().await.unwrap();
    }
}

#[tokio::test]
async fn a_damaged_line_is_found() {
    let file = TestFile::new("line");
    let store = file.open();
    submit(&store, "a").await;
    let lease = claim(&store).await.lease;
    store.write(&lease, lines(1, &["{\"one\": 1}", "{\"two\": 2}", "{\"three\": 3}"])).await.unwrap();
    for (damage, line) in [
        ("UPDATE journal SET line = replace(line, '2', '3') WHERE number = 2", 2),
        ("DELETE FROM journal WHERE number = 2", 2),
        ("DELETE FROM journal WHERE number = 3", 3),
    ] {
        file.meddle(&format!("CREATE TABLE good AS SELECT * FROM journal; {damage}"));
        let error = store.journal("a").await.unwrap_err();
        let expected = format!("line {line} of the journal of run a");
        assert!(matches!(&error, StoreError::Damaged(why) if *why == expected), "{damage}: {error}");
        file.meddle("DELETE FROM journal; INSERT INTO journal SELECT * FROM good; DROP TABLE good");
    }
    assert_eq!(store.journal("a").await.unwrap().text, "{\"one\": 1}\n{\"two\": 2}\n{\"three\": 3}\n");
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let file = TestFile::new("damaged");
    let store = file.open();
    for n in 0..200 {
        submit(&store, &format!("run-{n}")).await;
    }
    store.close().await.unwrap();
    let mut bytes = std::fs::read(&file.0).unwrap();
    // The last page of the file, and the first of the tables.
    for page in [bytes.len() / 4096 - 1, 2] {
        bytes[page * 4096..][..64].fill(0x5a);
    }
    std::fs::write(&file.0, bytes).unwrap();
    let error = file.try_open().unwrap_err();
    let next_step = format!("`ptcl store check --store {}`", file.0.display());
    assert!(matches!(&error, StoreError::Open { why, .. } if why.contains(&next_step)), "{error}");
}

/// Operations that come together share a transaction; one that fails undoes no other.
#[tokio::test]
async fn operations_share_transactions() {
    let file = TestFile::new("group");
    let store = Arc::new(file.open());
    let before = store.commits();
    // Another program holds the lock until all wait.
    let holder = rusqlite::Connection::open(&file.0).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let submits: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            // Each second one has an ID that exists already.
            tokio::spawn(async move { store.submit(run(&format!("run-{:02}", n / 2), "acme"), None).await })
        })
        .collect();
    // The reads see the state before, and wait for nobody.
    assert_eq!(store.usage("acme").await.unwrap().runs, 0);
    holder.execute_batch("COMMIT").unwrap();
    let (mut stored, mut refused) = (0, 0);
    for submit in submits {
        match submit.await.unwrap() {
            Ok(Submitted::New) => stored += 1,
            Err(StoreError::Failed(why)) if why.contains("exists already") => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((stored, refused, store.usage("acme").await.unwrap().runs), (32, 32, 32));
    assert!(store.commits() - before <= 8, "{} transactions", store.commits() - before);
}

/// Another program that locks the file for long makes writes unavailable. Reads and the executor go on.
#[tokio::test]
async fn a_lock_of_another_program_blocks_writes_only() {
    let file = TestFile::new("locked");
    let store = Arc::new(file.open());
    submit(&store, "a").await;
    let holder = rusqlite::Connection::open(&file.0).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = tokio::spawn({
        let store = store.clone();
        async move { store.submit(run("b", "acme"), None).await }
    });
    let mut reads = 0;
    until(async || {
        assert!(store.run("a").await.unwrap().is_some());
        assert_eq!(store.list(&Query { max: 9, ..Query::default() }).await.unwrap().runs.len(), 1);
        reads += 1;
        write.is_finished()
    })
    .await;
    let refused = write.await.unwrap().unwrap_err();
    assert!(refused.is_transient() && refused.to_string().contains("another program"), "{refused}");
    assert!(reads > 1, "{reads} reads");
    holder.execute_batch("COMMIT").unwrap();
    submit(&store, "b").await;
}

#[tokio::test]
async fn a_sweep_gives_space_back() {
    let file = TestFile::new("space");
    let store = file.open();
    let line = "x".repeat(20_000);
    for n in 0..300 {
        submit(&store, &format!("run-{n:03}")).await;
        let lease = claim(&store).await.lease;
        store.end(&lease, lines(1, &[&line]), End::Done("{}".into())).await.unwrap();
    }
    submit(&store, "left").await;
    let size =
        || rusqlite::Connection::open(&file.0).unwrap().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let before: i64 = size();
    let all = Sweep { finished_before_ms: i64::MAX, ..Sweep::default() };
    assert_eq!(store.sweep(all).await.unwrap(), 300);
    let after: i64 = size();
    assert!(after * 10 < before, "{before} pages, then {after}");
    assert_eq!(store.usage("acme").await.unwrap().runs, 1);
    assert_eq!(store.run("left").await.unwrap().unwrap().summary.status, RunStatus::Queued);
    let left = rusqlite::Connection::open(&file.0).unwrap();
    for table in ["journal", "requests", "answers"] {
        let rows: i64 = left.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(rows, i64::from(table == "requests"), "{table}");
    }
}
