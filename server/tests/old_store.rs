//! The store: what is kept, who may write, what goes.

use lisp_server::config::Durability;
use lisp_server::old_store::{
    Inserted, RequestKey, RunStatus, RunSummary, SqliteStore, Store, StoreError, StoredReply, Which,
};
use std::path::PathBuf;
use std::sync::Arc;

/// A file of a test, which goes with it.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptc-store-{}-{name}.db", std::process::id()));
        let file = File(path);
        file.remove();
        file
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm", "-lock"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.0, Durability::Process).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}

fn new(store: &SqliteStore, run_id: &str) {
    assert_eq!(store.insert_run(run_id, "acme", "{}", None).unwrap(), Inserted::New);
}

fn unfinished(store: &SqliteStore) -> Vec<(String, RunStatus)> {
    store.unfinished().unwrap().into_iter().map(|run| (run.run_id, run.status)).collect()
}

fn journal(store: &SqliteStore, run_id: &str) -> String {
    store.snapshot(run_id).unwrap().unwrap().journal
}

/// What another process makes of the file.
fn meddle(file: &File, sql: &str) {
    rusqlite::Connection::open(&file.0).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_run_is_what_was_kept_of_it() {
    let file = File::new("run");
    {
        let store = file.open();
        new(&store, "a");
        let lease = store.take("a").unwrap();
        store.append(lease, "a", "{\"one\":1}\n").unwrap();
        store.append(lease, "a", "{\"two\":\"é\u{0}\"}\n").unwrap();
        store.set_status(lease, "a", RunStatus::Waiting).unwrap();
    }
    let store = file.open();
    assert_eq!(unfinished(&store), [("a".to_owned(), RunStatus::Waiting)]);
    assert_eq!(journal(&store, "a"), "{\"one\":1}\n{\"two\":\"é\u{0}\"}\n");
    let lease = store.take("a").unwrap();
    store.finish_run(lease, "a", "{\"answer\":1}").unwrap();
    // The first answer stays, and so does the end.
    store.finish_run(lease, "a", "{\"answer\":2}").unwrap();
    store.set_status(lease, "a", RunStatus::Running).unwrap();
    store.cancel_run("a").unwrap();
    let run = store.run("a").unwrap().unwrap();
    assert_eq!((run.status, run.answer.as_deref(), run.cancelled), (RunStatus::Done, Some("{\"answer\":1}"), false));
    assert!(store.unfinished().unwrap().is_empty());
    assert!(store.run("b").unwrap().is_none());
    let count = |status| store.count_runs().unwrap().into_iter().find(|(of, _)| *of == status).unwrap().1;
    assert_eq!((count(RunStatus::Done), count(RunStatus::Queued)), (1, 0));
}

#[test]
fn it_has_one_owner() {
    let file = File::new("one");
    let first = file.open();
    let refused = SqliteStore::open(&file.0, Durability::Process).unwrap_err();
    let owner = format!("process {}", std::process::id());
    assert!(matches!(&refused, StoreError::Owned { owner: its, .. } if its.starts_with(&owner)), "{refused}");
    first.check_writable().unwrap();
    new(&first, "a");
    let lease = first.take("a").unwrap();
    first.set_status(lease, "a", RunStatus::Running).unwrap();
    // A run that was under way when its process ended is not any more.
    drop(first);
    assert_eq!(unfinished(&file.open()), [("a".to_owned(), RunStatus::Queued)]);
}

/// Where locks do not hold, as on some file systems of a network, an owner that another has followed is found out.
#[test]
fn who_opened_it_last_owns_it() {
    let file = File::new("owner");
    let first = file.open();
    new(&first, "a");
    let lease = first.take("a").unwrap();
    std::fs::remove_file(format!("{}-lock", file.0.display())).unwrap();
    let second = file.open();
    let fenced = |done: Result<(), StoreError>| assert!(matches!(done, Err(StoreError::Fenced)), "{done:?}");
    fenced(first.append(lease, "a", "{}\n"));
    fenced(first.finish_run(lease, "a", "{}"));
    fenced(first.set_status(lease, "a", RunStatus::Running));
    fenced(first.insert_run("b", "acme", "{}", None).map(drop));
    fenced(first.put_reply("a", &StoredReply { call: "1".into(), phase: "gate".into(), body: "{}".into() }).map(drop));
    fenced(first.check_writable());
    // Reading is harmless; a lease of another owner is none.
    assert!(first.run("a").unwrap().is_some());
    fenced(second.append(lease, "a", "{}\n"));
    second.append(second.take("a").unwrap(), "a", "{}\n").unwrap();
    assert_eq!(journal(&second, "a"), "{}\n");
}

#[test]
fn a_call_is_answered_once_and_a_key_names_one_run() {
    let store = SqliteStore::in_memory().unwrap();
    new(&store, "a");
    let reply = |phase: &str, body: &str| StoredReply { call: "3:1/2".into(), phase: phase.into(), body: body.into() };
    assert!(store.put_reply("a", &reply("gate", "1")).unwrap());
    assert!(!store.put_reply("a", &reply("gate", "2")).unwrap());
    assert!(store.put_reply("a", &reply("result", "3")).unwrap());
    assert_eq!(store.replies("a").unwrap(), [reply("gate", "1"), reply("result", "3")]);

    let insert = |run_id: &str, tenant: &str, digest: &str| {
        store.insert_run(run_id, tenant, "{}", Some(RequestKey { key: "k", digest })).unwrap()
    };
    assert_eq!(insert("b", "acme", "d"), Inserted::New);
    assert_eq!(insert("c", "acme", "d"), Inserted::Known("b".to_owned()));
    assert_eq!(insert("c", "acme", "e"), Inserted::OtherRequest);
    assert!(store.run("c").unwrap().is_none());
    assert_eq!(insert("c", "other", "e"), Inserted::New);
}

/// Many threads take the same key: one of them gets a run.
#[test]
fn a_key_is_taken_once_by_many() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let store = store.clone();
            std::thread::Builder::new()
                .spawn(move || {
                    let key = Some(RequestKey { key: "k", digest: "d" });
                    store.insert_run(&format!("r{n}"), "acme", "{}", key).unwrap() == Inserted::New
                })
                .unwrap()
        })
        .collect();
    let new = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|new| *new).count();
    assert_eq!((new, store.unfinished().unwrap().len()), (1, 1));
}

#[test]
fn a_session_goes_back_as_far_as_it_may() {
    let store = SqliteStore::in_memory().unwrap();
    store.insert_session("s", "acme", "{}", None).unwrap();
    let text = || store.session("s").unwrap().unwrap().text;
    for n in 1..=5 {
        store.put_turn("s", &format!("t{n}"), 3).unwrap();
    }
    let session = store.session("s").unwrap().unwrap();
    assert_eq!((session.turns, session.undos, text().as_deref()), (5, 3, Some("t5")));
    for n in [4, 3, 2] {
        assert!(store.undo_turn("s").unwrap());
        assert_eq!(text(), Some(format!("t{n}")));
    }
    assert!(!store.undo_turn("s").unwrap());
    assert_eq!(store.session("s").unwrap().unwrap().turns, 2);
    // After a turn it goes on from there.
    store.put_turn("s", "new", 3).unwrap();
    assert_eq!(text().as_deref(), Some("new"));
    assert_eq!(store.count_sessions("acme").unwrap(), 1);
    assert!(store.delete_session("s").unwrap());
    assert!(!store.delete_session("s").unwrap());
    assert!(store.session("s").unwrap().is_none());
}

#[test]
fn what_is_old_and_over_goes() {
    let store = SqliteStore::in_memory().unwrap();
    for run_id in ["done", "waiting"] {
        new(&store, run_id);
        store.append(store.take(run_id).unwrap(), run_id, "{}\n").unwrap();
    }
    store.finish_run(store.take("done").unwrap(), "done", "{}").unwrap();
    store.insert_session("s", "acme", "{}", Some("text")).unwrap();
    assert_eq!(store.sweep(0).unwrap(), 0);
    assert_eq!(store.sweep(i64::MAX).unwrap(), 2);
    assert!(store.run("done").unwrap().is_none() && store.session("s").unwrap().is_none());
    assert!(store.snapshot("done").unwrap().is_none());
    assert_eq!(journal(&store, "waiting"), "{}\n");
}

#[test]
fn a_secret_is_made_once() {
    let file = File::new("secret");
    let store = file.open();
    assert_eq!(store.secret("a", &[1, 2]).unwrap(), [1, 2]);
    assert_eq!(store.secret("a", &[3, 4]).unwrap(), [1, 2]);
    assert_eq!(store.secret("b", &[5]).unwrap(), [5]);
    drop(store);
    assert_eq!(file.open().secret("a", &[6]).unwrap(), [1, 2]);
}

#[test]
fn what_is_no_store_is_refused() {
    let file = File::new("foreign");
    std::fs::write(
        &file.0,
        "this is no database, though it is long enough to be the head of one, and then some more of it",
    )
    .unwrap();
    let error = SqliteStore::open(&file.0, Durability::Process).unwrap_err();
    assert!(error.to_string().contains(&file.0.display().to_string()), "{error}");
    file.remove();
    // A pipe, as a device would be, is not opened, and keeps its mode.
    let made = std::process::Command::new("mkfifo").arg("-m").arg("644").arg(&file.0).status().unwrap();
    assert!(made.success());
    let error = SqliteStore::open(&file.0, Durability::Process).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file.0).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o644);
    file.remove();
    // Two names of one file would have two locks.
    let (link, second) = (File::new("foreign-link"), File::new("foreign-second"));
    std::os::unix::fs::symlink(&file.0, &link.0).unwrap();
    let error = SqliteStore::open(&link.0, Durability::Process).unwrap_err();
    assert!(error.to_string().contains("does not exist") && !file.0.exists(), "{error}");
    drop(file.open());
    drop(link.open());
    std::fs::hard_link(&file.0, &second.0).unwrap();
    let error = SqliteStore::open(&second.0, Durability::Process).unwrap_err();
    assert!(error.to_string().contains("hard links"), "{error}");
    second.remove();
    // What is next to it reaches no other file.
    let other = File::new("foreign-other");
    std::fs::write(&other.0, "of another program").unwrap();
    std::fs::set_permissions(&other.0, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    for ending in ["-lock", "-wal", "-shm", "-journal"] {
        let beside = std::path::PathBuf::from(format!("{}{ending}", file.0.display()));
        for is_hard in [false, true] {
            let _ = std::fs::remove_file(&beside);
            match is_hard {
                false => std::os::unix::fs::symlink(&other.0, &beside).unwrap(),
                true => std::fs::hard_link(&other.0, &beside).unwrap(),
            }
            let error = SqliteStore::open(&file.0, Durability::Process).unwrap_err();
            assert!(error.to_string().contains("remove it"), "{ending}: {error}");
            assert_eq!(std::fs::read_to_string(&other.0).unwrap(), "of another program");
            let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&other.0).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o644, "{ending}");
        }
        std::fs::remove_file(&beside).unwrap();
    }
    let lock = format!("{}-lock", file.0.display());
    std::fs::write(&lock, "").unwrap();
    std::fs::set_permissions(&lock, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    drop(file.open());
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&lock).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    other.remove();
    let later = rusqlite::Connection::open(&file.0).unwrap();
    later.pragma_update(None, "user_version", 99).unwrap();
    drop(later);
    let error = SqliteStore::open(&file.0, Durability::Machine).unwrap_err();
    assert!(matches!(error, StoreError::Format { found: 99, known: 1 }), "{error}");
    let missing = SqliteStore::open(&std::env::temp_dir().join("no/such/folder/x.db"), Durability::Process);
    let missing = missing.unwrap_err();
    assert!(matches!(missing, StoreError::Open { .. }), "{missing}");
    assert!(missing.to_string().contains("no/such/folder; create it"), "{missing}");
}

/// The database of another program is neither opened nor changed, and nothing is left beside it.
#[test]
fn the_database_of_another_program_is_left_alone() {
    let file = File::new("other");
    for sql in [
        "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1)",
        // One of ours has more tables.
        "CREATE TABLE runs (n INTEGER); CREATE TABLE owner (n INTEGER)",
        "PRAGMA application_id = 42; CREATE TABLE t (n INTEGER)",
        "PRAGMA application_id = 42",
        "PRAGMA user_version = 1; CREATE TABLE t (n INTEGER)",
        "PRAGMA journal_mode = wal; CREATE TABLE t (n INTEGER)",
    ] {
        file.remove();
        meddle(&file, sql);
        let before = std::fs::read(&file.0).unwrap();
        let error = SqliteStore::open(&file.0, Durability::Process).unwrap_err();
        assert!(error.to_string().contains("another program"), "{sql}: {error}");
        assert_eq!(std::fs::read(&file.0).unwrap(), before, "{sql}");
        for end in ["-wal", "-shm", "-lock"] {
            assert!(!PathBuf::from(format!("{}{end}", file.0.display())).exists(), "{sql}: {end}");
        }
    }
    // An empty file is nobody's, and a store of an earlier version does not say whose it is.
    file.remove();
    std::fs::write(&file.0, "").unwrap();
    new(&file.open(), "a");
    meddle(&file, "PRAGMA application_id = 0");
    assert!(file.open().run("a").unwrap().is_some());
    let marked: i64 =
        rusqlite::Connection::open(&file.0).unwrap().query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
    assert_eq!(marked.to_be_bytes()[4..], *b"PTCL");
}

/// Nobody else may read what is in it, whatever the mask of the process, and whoever made the file.
#[cfg(unix)]
#[test]
fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let file = File::new("modes");
    let mode = |end: &str| {
        let about = std::fs::metadata(format!("{}{end}", file.0.display())).unwrap();
        about.permissions().mode() & 0o7777
    };
    let all = ["", "-wal", "-shm", "-lock"];
    {
        let store = file.open();
        new(&store, "a");
        assert_eq!(all.map(mode), [0o600; 4]);
        for end in all {
            std::fs::set_permissions(format!("{}{end}", file.0.display()), PermissionsExt::from_mode(0o664)).unwrap();
        }
    }
    let store = file.open();
    new(&store, "b");
    assert_eq!(all.map(mode)[..3], [0o600; 3]);
}

/// Whoever cannot write is not ready, and is again when that is over.
#[test]
fn a_store_that_cannot_be_written_says_so() {
    let file = File::new("full");
    let store = file.open();
    store.check_writable().unwrap();
    meddle(
        &file,
        "CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(FAIL, 'full'); END;
         CREATE TRIGGER full_too BEFORE INSERT ON probe BEGIN SELECT RAISE(FAIL, 'full'); END;",
    );
    assert!(store.insert_run("a", "acme", "{}", None).is_err());
    for _ in 0..2 {
        assert!(matches!(store.check_writable(), Err(StoreError::Failed(_))));
    }
    meddle(&file, "DROP TRIGGER full; DROP TRIGGER full_too");
    store.check_writable().unwrap();
    new(&store, "a");
}

/// What is written to see whether anything can be is more each time.
#[test]
fn a_probe_writes_something() {
    let file = File::new("probe");
    let store = file.open();
    let number = || -> i64 {
        let other = rusqlite::Connection::open(&file.0).unwrap();
        other.query_row("SELECT coalesce(max(number), 0) FROM probe", [], |row| row.get(0)).unwrap()
    };
    meddle(&file, "CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(FAIL, 'full'); END");
    for probes in 0..3 {
        assert_eq!(number(), probes);
        assert!(store.insert_run("a", "acme", "{}", None).is_err());
        store.check_writable().unwrap();
    }
}

/// A store whose files are gone, or others, keeps nothing for the time after the process.
#[cfg(unix)]
#[test]
fn a_store_that_was_removed_says_so() {
    for end in ["", "-wal"] {
        let file = File::new(&format!("removed{end}"));
        let store = file.open();
        new(&store, "a");
        store.check_writable().unwrap();
        let path = format!("{}{end}", file.0.display());
        std::fs::rename(&path, format!("{path}-away")).unwrap();
        assert!(matches!(store.check_writable(), Err(StoreError::Failed(why)) if why.contains("removed or replaced")));
        std::fs::write(&path, "").unwrap();
        assert!(matches!(store.check_writable(), Err(StoreError::Failed(_))));
        std::fs::rename(format!("{path}-away"), &path).unwrap();
        store.check_writable().unwrap();
    }
}

/// A list is read page by page, the newest first, from an index alone: neither requests nor answers are looked at.
#[test]
fn lists_are_read_in_pages() {
    let file = File::new("pages");
    let store = file.open();
    let ids: Vec<String> = (0..10).map(|n| format!("run-{n}")).collect();
    for id in &ids {
        new(&store, id);
    }
    store.insert_run("other", "other", "{}", None).unwrap();
    let lease = store.take("run-3").unwrap();
    store.append(lease, "run-3", "{}\n").unwrap();
    store.finish_run(lease, "run-3", "{}").unwrap();
    // Of one moment, so that the names say which is newer.
    meddle(&file, "UPDATE runs SET created_ms = 5, request = x'ff', answer = x'ff' WHERE run_id <> 'run-0'");
    let all = |which| {
        let (mut found, mut last): (Vec<String>, Option<RunSummary>) = (Vec::new(), None);
        loop {
            let page = store.runs("acme", which, last.as_ref(), 3).unwrap();
            assert!(page.len() <= 3 && page.iter().all(|run| run.has_journal == (run.run_id == "run-3")));
            let Some(end) = page.last() else { return found };
            last = Some(end.clone());
            found.extend(page.into_iter().map(|run| run.run_id));
        }
    };
    let newest: Vec<_> = std::iter::once(&ids[0]).chain(ids[1..].iter().rev()).cloned().collect();
    assert_eq!(all(Which::All), newest);
    assert_eq!(all(Which::Done), ["run-3"]);
    assert_eq!(all(Which::Unfinished), newest.into_iter().filter(|id| id != "run-3").collect::<Vec<_>>());
    let plan = |sql: &str| -> String {
        let other = rusqlite::Connection::open(&file.0).unwrap();
        let mut select = other.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = select.query_map([], |row| row.get::<_, String>(3)).unwrap();
        lines.map(Result::unwrap).collect::<Vec<_>>().join("\n")
    };
    let columns = "SELECT run_id, tenant, status, cancelled, created_ms, updated_ms FROM runs WHERE tenant = 'a'";
    for more in ["", " AND status <> 'done'"] {
        let plan = plan(&format!("{columns}{more} ORDER BY created_ms DESC, run_id DESC LIMIT 5"));
        assert!(plan.contains("COVERING INDEX") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}
