//! A store in one SQLite file, with a write-ahead log.

use super::{
    Inserted, Lease, RequestKey, RunStatus, RunSummary, Snapshot, Store, StoreError, StoredReply, StoredRun,
    StoredSession, Which,
};
use crate::config::Durability;
use crate::store::owner::{OpenFile, Owner, beside, checked_path, keep_private};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior, params};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The format of the file: SQLite's `user_version`.
const FORMAT: i64 = 1;
/// Marks the file as a store: SQLite's `application_id`, the letters PTCL.
const APPLICATION: i64 = 0x5054_434C;
/// The tables of a store.
const TABLES: [&str; 8] = ["owner", "runs", "journal", "replies", "sessions", "states", "keys", "secrets"];
/// How long a write waits for another process that uses the file.
const BUSY: Duration = Duration::from_secs(5);

/// A write within this many milliseconds shows that writing works.
const PROBED: u64 = 1_000;
/// The bytes written to check whether writing works again after a failure.
const FILLER: i64 = 65_536;

/// A store in one SQLite file, or in memory.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Mutex<Connection>,
    /// The number of this owner of the file.
    epoch: u64,
    /// Whether the last write failed.
    fails: AtomicBool,
    /// When something was last written.
    written_ms: AtomicI64,
    /// The files of the store; empty if it is in memory.
    files: Vec<OpenFile>,
    /// Set if the store is in a file.
    _owner: Option<Owner>,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::Failed(error.to_string())
    }
}

impl From<crate::store::StoreError> for StoreError {
    fn from(error: crate::store::StoreError) -> Self {
        match error {
            crate::store::StoreError::Owned { path, owner } => StoreError::Owned { path, owner },
            crate::store::StoreError::Open { path, why } => StoreError::Open { path, why },
            crate::store::StoreError::Failed(why) => StoreError::Failed(why),
            error => StoreError::Failed(error.to_string()),
        }
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl SqliteStore {
    /// Opens or creates the file, and owns it until this is dropped. Only the user of this process can read it.
    ///
    /// # Errors
    /// If the file cannot be opened, belongs to another process, is not a store, or was written by a later version.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        SqliteStore::open_file(path, durability).map_err(|error| match error {
            StoreError::Failed(why) => StoreError::Open { path: path.display().to_string(), why },
            error => error,
        })
    }

    fn open_file(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        let failed = |error: std::io::Error| StoreError::Failed(error.to_string());
        let path = checked_path(path).map_err(failed)?;
        // Change nothing in a file that is not a store, and create nothing next to it.
        if path.try_exists().map_err(failed)? {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            check_identity(&Connection::open_with_flags(&path, flags)?)?;
        }
        let owner = Owner::take(&path)?;
        keep_private(&path).map_err(failed)?;
        let store = SqliteStore::with(Connection::open(&path)?, durability)?;
        let files = [path.clone(), beside(&path, "-wal")].into_iter().filter(|path| path.exists()).map(OpenFile::at);
        let files = files.collect::<Result<_, _>>().map_err(failed)?;
        Ok(SqliteStore { _owner: Some(owner), files, ..store })
    }

    /// Creates a store in memory, which is lost when the process ends.
    ///
    /// # Errors
    /// If SQLite cannot create it.
    pub fn in_memory() -> Result<Self, StoreError> {
        SqliteStore::with(Connection::open_in_memory()?, Durability::Process)
    }

    fn with(mut connection: Connection, durability: Durability) -> Result<Self, StoreError> {
        connection.busy_timeout(BUSY)?;
        check_identity(&connection)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = if durability == Durability::Machine { "full" } else { "normal" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.set_prepared_statement_cache_capacity(64);
        let taken = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        check_identity(&taken)?;
        taken.execute_batch(include_str!("../store/sqlite/format_1.sql"))?;
        taken.pragma_update(None, "user_version", FORMAT)?;
        taken.pragma_update(None, "application_id", APPLICATION)?;
        taken.execute("UPDATE owner SET epoch = epoch + 1", [])?;
        // No run is active: those marked as running ended with the previous process.
        taken.execute("UPDATE runs SET status = 'queued' WHERE status <> 'done' AND status = 'running'", [])?;
        let epoch: i64 = taken.query_row("SELECT epoch FROM owner", [], |row| row.get(0))?;
        taken.commit()?;
        let epoch = u64::try_from(epoch).unwrap_or(0);
        Ok(SqliteStore {
            connection: Mutex::new(connection),
            epoch,
            fails: AtomicBool::new(false),
            written_ms: AtomicI64::new(now_ms()),
            files: Vec::new(),
            _owner: None,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A transaction that panicked was rolled back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a read.
    fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        Ok(read(&self.lock())?)
    }

    fn check_epoch(&self, connection: &Connection) -> Result<(), StoreError> {
        let epoch: i64 = connection.prepare_cached("SELECT epoch FROM owner")?.query_row([], |row| row.get(0))?;
        if u64::try_from(epoch).ok() == Some(self.epoch) { Ok(()) } else { Err(StoreError::Fenced) }
    }

    /// Runs a write in one transaction, if this process still owns the file.
    fn write<T>(&self, write: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let written = self.try_write(write);
        self.fails.store(written.is_err(), Ordering::Relaxed);
        if written.is_ok() {
            self.written_ms.store(now_ms(), Ordering::Relaxed);
        }
        written
    }

    fn try_write<T>(&self, write: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let mut connection = self.lock();
        let writes = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.check_epoch(&writes)?;
        let written = write(&writes)?;
        writes.commit()?;
        Ok(written)
    }

    /// Runs a write about a run, if the lease is valid.
    fn write_leased<T>(
        &self,
        lease: Lease,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        if lease.0 != self.epoch {
            return Err(StoreError::Fenced);
        }
        self.write(write)
    }
}

/// Checks that the file is a store. An empty file is accepted.
fn check_identity(db: &Connection) -> Result<(), StoreError> {
    let number = |pragma: &str| db.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let (application, format) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    let is_own = match application {
        APPLICATION => true,
        0 => {
            let mut select = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
            let names = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
            // Stores of earlier versions have no application ID.
            names.is_empty() || TABLES.iter().all(|table| names.iter().any(|name| name == table))
        }
        _ => false,
    };
    match format {
        _ if !is_own => {
            Err(StoreError::Failed("it is the database of another program; name another file with --store".to_owned()))
        }
        0 | FORMAT => Ok(()),
        found => Err(StoreError::Format { found, known: FORMAT }),
    }
}

const RUN: &str = "SELECT run_id, tenant, request, status, cancelled, created_ms, updated_ms, answer FROM runs";

fn run_of(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    let status: String = row.get(3)?;
    Ok(StoredRun {
        run_id: row.get(0)?,
        tenant: row.get(1)?,
        request: row.get(2)?,
        status: RunStatus::of(&status).unwrap_or(RunStatus::Queued),
        cancelled: row.get(4)?,
        created_ms: row.get(5)?,
        updated_ms: row.get(6)?,
        answer: row.get(7)?,
    })
}

const SUMMARY: &str = "SELECT run_id, tenant, status, cancelled, created_ms, updated_ms,
     EXISTS (SELECT 1 FROM journal WHERE journal.run_id = runs.run_id) FROM runs";

fn summary_of(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let status: String = row.get(2)?;
    Ok(RunSummary {
        run_id: row.get(0)?,
        tenant: row.get(1)?,
        status: RunStatus::of(&status).unwrap_or(RunStatus::Queued),
        cancelled: row.get(3)?,
        created_ms: row.get(4)?,
        updated_ms: row.get(5)?,
        has_journal: row.get(6)?,
    })
}

fn one_run(db: &Connection, run_id: &str) -> rusqlite::Result<Option<StoredRun>> {
    db.prepare_cached(&format!("{RUN} WHERE run_id = ?1"))?.query_row([run_id], run_of).optional()
}

fn known_request(db: &Connection, tenant: &str, key: RequestKey<'_>) -> rusqlite::Result<Option<Inserted>> {
    let known: Option<(String, String)> = db
        .prepare_cached("SELECT digest, run_id FROM keys WHERE tenant = ?1 AND key = ?2")?
        .query_row([tenant, key.key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(known.map(|(digest, run_id)| match digest == key.digest {
        true => Inserted::Known(run_id),
        false => Inserted::OtherRequest,
    }))
}

fn replies_of(db: &Connection, run_id: &str) -> rusqlite::Result<Vec<StoredReply>> {
    let mut select = db.prepare_cached("SELECT call, phase, body FROM replies WHERE run_id = ?1")?;
    let rows = select
        .query_map([run_id], |row| Ok(StoredReply { call: row.get(0)?, phase: row.get(1)?, body: row.get(2)? }))?;
    rows.collect()
}

fn sql_int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Store for SqliteStore {
    fn settle(&self) -> Result<(), StoreError> {
        let connection = self.lock();
        self.check_epoch(&connection)?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn known_request(&self, tenant: &str, key: RequestKey<'_>) -> Result<Option<Inserted>, StoreError> {
        self.read(|db| known_request(db, tenant, key))
    }

    fn check_writable(&self) -> Result<(), StoreError> {
        self.files.iter().try_for_each(OpenFile::check)?;
        let fails = self.fails.load(Ordering::Relaxed);
        if !fails && now_ms().abs_diff(self.written_ms.load(Ordering::Relaxed)) < PROBED {
            return self.check_epoch(&self.lock());
        }
        // Writing an unchanged value writes nothing. After a failed write there may still be space for a small one.
        let filler = if fails { FILLER } else { 0 };
        self.write(|db| {
            db.prepare_cached(
                "INSERT INTO probe VALUES (1, 1, randomblob(?1))
                 ON CONFLICT (one) DO UPDATE SET number = number + 1, filler = randomblob(?1)",
            )?
            .execute([filler])
            .map(drop)
        })
    }

    fn insert_run(
        &self,
        run_id: &str,
        tenant: &str,
        request: &str,
        key: Option<RequestKey<'_>>,
    ) -> Result<Inserted, StoreError> {
        self.write(|db| {
            if let Some(key) = key {
                if let Some(known) = known_request(db, tenant, key)? {
                    return Ok(known);
                }
                db.prepare_cached("INSERT INTO keys VALUES (?1, ?2, ?3, ?4, ?5)")?
                    .execute(params![tenant, key.key, key.digest, run_id, now_ms()])?;
            }
            db.prepare_cached(
                "INSERT INTO runs (run_id, tenant, request, status, created_ms, updated_ms) VALUES (?1, ?2, ?3, 'queued', ?4, ?4)",
            )?
            .execute(params![run_id, tenant, request, now_ms()])?;
            Ok(Inserted::New)
        })
    }

    fn run(&self, run_id: &str) -> Result<Option<StoredRun>, StoreError> {
        self.read(|db| one_run(db, run_id))
    }

    fn runs(
        &self,
        tenant: &str,
        which: Which,
        behind: Option<&RunSummary>,
        max: usize,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let of = match which {
            Which::All => "",
            Which::Done => "AND status = 'done'",
            Which::Unfinished => "AND status <> 'done'",
        };
        let select = format!(
            "{SUMMARY} WHERE tenant = ?1 {of} AND (created_ms, run_id) < (?2, ?3)
             ORDER BY created_ms DESC, run_id DESC LIMIT ?4"
        );
        let (created_ms, run_id) = behind.map_or((i64::MAX, ""), |run| (run.created_ms, &run.run_id));
        self.read(|db| {
            let mut select = db.prepare_cached(&select)?;
            let rows = select.query_map(params![tenant, created_ms, run_id, max], summary_of)?;
            rows.collect()
        })
    }

    fn unfinished(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.read(|db| {
            let mut select = db.prepare_cached(&format!("{SUMMARY} WHERE status <> 'done' ORDER BY created_ms"))?;
            let rows = select.query_map([], summary_of)?;
            rows.collect()
        })
    }

    fn count_runs(&self) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        let counted: Vec<(String, i64)> = self.read(|db| {
            let mut select = db.prepare_cached("SELECT status, count(*) FROM runs GROUP BY status")?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })?;
        let of =
            |status: RunStatus| counted.iter().find(|(name, _)| name == status.name()).map_or(0, |(_, count)| *count);
        Ok(RunStatus::ALL.into_iter().map(|status| (status, u64::try_from(of(status)).unwrap_or(0))).collect())
    }

    fn count_runs_of(&self, tenant: &str) -> Result<u64, StoreError> {
        let count: i64 = self.read(|db| {
            db.prepare_cached("SELECT count(*) FROM runs WHERE tenant = ?1")?.query_row([tenant], |row| row.get(0))
        })?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn take(&self, _run_id: &str) -> Result<Lease, StoreError> {
        Ok(Lease(self.epoch))
    }

    fn set_status(&self, lease: Lease, run_id: &str, status: RunStatus) -> Result<(), StoreError> {
        self.write_leased(lease, |db| {
            db.prepare_cached("UPDATE runs SET status = ?2, updated_ms = ?3 WHERE run_id = ?1 AND status <> 'done'")?
                .execute(params![run_id, status.name(), now_ms()])
                .map(drop)
        })
    }

    fn cancel_run(&self, run_id: &str) -> Result<(), StoreError> {
        self.write(|db| {
            db.prepare_cached("UPDATE runs SET cancelled = 1, updated_ms = ?2 WHERE run_id = ?1 AND status <> 'done'")?
                .execute(params![run_id, now_ms()])
                .map(drop)
        })
    }

    fn finish_run(&self, lease: Lease, run_id: &str, answer: &str) -> Result<(), StoreError> {
        self.write_leased(lease, |db| {
            db.prepare_cached(
                "UPDATE runs SET status = 'done', answer = ?2, updated_ms = ?3 WHERE run_id = ?1 AND status <> 'done'",
            )?
            .execute(params![run_id, answer, now_ms()])
            .map(drop)
        })
    }

    fn append(&self, lease: Lease, run_id: &str, line: &str) -> Result<(), StoreError> {
        self.write_leased(lease, |db| {
            db.prepare_cached(
                "INSERT INTO journal (run_id, number, line)
                 SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM journal WHERE run_id = ?1",
            )?
            .execute([run_id, line])
            .map(drop)
        })
    }

    fn snapshot(&self, run_id: &str) -> Result<Option<Snapshot>, StoreError> {
        // Nothing is written meanwhile: the owner has only this connection.
        self.read(|db| {
            let Some(run) = one_run(db, run_id)? else { return Ok(None) };
            let mut select = db.prepare_cached("SELECT line FROM journal WHERE run_id = ?1 ORDER BY number")?;
            let mut rows = select.query([run_id])?;
            let mut journal = String::new();
            while let Some(row) = rows.next()? {
                journal.push_str(row.get_ref(0)?.as_str()?);
            }
            Ok(Some(Snapshot { run, journal, replies: replies_of(db, run_id)? }))
        })
    }

    fn put_reply(&self, run_id: &str, reply: &StoredReply) -> Result<bool, StoreError> {
        let StoredReply { call, phase, body } = reply;
        self.write(|db| {
            db.prepare_cached("INSERT OR IGNORE INTO replies VALUES (?1, ?2, ?3, ?4)")?
                .execute([run_id, call, phase, body])
                .map(|kept| kept == 1)
        })
    }

    fn replies(&self, run_id: &str) -> Result<Vec<StoredReply>, StoreError> {
        self.read(|db| replies_of(db, run_id))
    }

    fn insert_session(
        &self,
        session_id: &str,
        tenant: &str,
        opening: &str,
        text: Option<&str>,
    ) -> Result<(), StoreError> {
        self.write(|db| {
            db.prepare_cached(
                "INSERT INTO sessions (session_id, tenant, opening, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?4)",
            )?
            .execute(params![session_id, tenant, opening, now_ms()])?;
            db.prepare_cached("INSERT INTO states VALUES (?1, 0, ?2)")?.execute(params![session_id, text]).map(drop)
        })
    }

    fn session(&self, session_id: &str) -> Result<Option<StoredSession>, StoreError> {
        self.read(|db| {
            db.prepare_cached(
                "SELECT session_id, tenant, opening, turns, created_ms, updated_ms,
                     (SELECT text FROM states WHERE session_id = ?1 ORDER BY number DESC LIMIT 1),
                     (SELECT count(*) - 1 FROM states WHERE session_id = ?1)
                 FROM sessions WHERE session_id = ?1",
            )?
            .query_row([session_id], |row| {
                Ok(StoredSession {
                    session_id: row.get(0)?,
                    tenant: row.get(1)?,
                    opening: row.get(2)?,
                    turns: u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
                    created_ms: row.get(4)?,
                    updated_ms: row.get(5)?,
                    text: row.get(6)?,
                    undos: u64::try_from(row.get::<_, i64>(7)?).unwrap_or(0),
                })
            })
            .optional()
        })
    }

    fn count_sessions(&self, tenant: &str) -> Result<u64, StoreError> {
        let count: i64 = self.read(|db| {
            db.prepare_cached("SELECT count(*) FROM sessions WHERE tenant = ?1")?.query_row([tenant], |row| row.get(0))
        })?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn put_turn(&self, session_id: &str, text: &str, undos: u64) -> Result<(), StoreError> {
        self.write(|db| {
            db.prepare_cached("UPDATE sessions SET turns = turns + 1, updated_ms = ?2 WHERE session_id = ?1")?
                .execute(params![session_id, now_ms()])?;
            db.prepare_cached(
                "INSERT INTO states (session_id, number, text)
                 SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM states WHERE session_id = ?1",
            )?
            .execute([session_id, text])?;
            db.prepare_cached(
                "DELETE FROM states WHERE session_id = ?1
                 AND number < (SELECT max(number) FROM states WHERE session_id = ?1) - ?2",
            )?
            .execute(params![session_id, sql_int(undos)])
            .map(drop)
        })
    }

    fn undo_turn(&self, session_id: &str) -> Result<bool, StoreError> {
        self.write(|db| {
            let states: i64 = db
                .prepare_cached("SELECT count(*) FROM states WHERE session_id = ?1")?
                .query_row([session_id], |row| row.get(0))?;
            if states < 2 {
                return Ok(false);
            }
            db.prepare_cached(
                "DELETE FROM states WHERE session_id = ?1
                 AND number = (SELECT max(number) FROM states WHERE session_id = ?1)",
            )?
            .execute([session_id])?;
            db.prepare_cached("UPDATE sessions SET turns = turns - 1, updated_ms = ?2 WHERE session_id = ?1")?
                .execute(params![session_id, now_ms()])?;
            Ok(true)
        })
    }

    fn delete_session(&self, session_id: &str) -> Result<bool, StoreError> {
        self.write(|db| {
            db.prepare_cached("DELETE FROM sessions WHERE session_id = ?1")?.execute([session_id]).map(|gone| gone == 1)
        })
    }

    fn secret(&self, name: &str, fresh: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.write(|db| {
            db.prepare_cached("INSERT OR IGNORE INTO secrets VALUES (?1, ?2)")?.execute(params![name, fresh])?;
            db.prepare_cached("SELECT secret FROM secrets WHERE name = ?1")?.query_row([name], |row| row.get(0))
        })
    }

    fn sweep(&self, before_ms: i64) -> Result<u64, StoreError> {
        self.write(|db| {
            let runs = db
                .prepare_cached("DELETE FROM runs WHERE status = 'done' AND updated_ms < ?1")?
                .execute([before_ms])?;
            let sessions = db.prepare_cached("DELETE FROM sessions WHERE updated_ms < ?1")?.execute([before_ms])?;
            db.prepare_cached("DELETE FROM keys WHERE used_ms < ?1")?.execute([before_ms])?;
            Ok(u64::try_from(runs + sessions).unwrap_or(0))
        })
    }
}
