//! A store in one SQLite file, with a write-ahead log.

mod error;
mod file;
mod migrate;
mod readers;
mod reads;
mod runs;
mod sessions;
mod sweep;
#[cfg(test)]
mod tests;
mod upkeep;
mod writer;

pub(super) use upkeep::{backup, check, formats};

use super::clock::Clock;
use super::owner::OpenFile;
use super::rules::{RESTORED, closed};
use super::{
    Batch, Claim, End, Ended, Events, Journal, Lease, NewRun, NewSession, News, Opened, Page, Put, Query, Renewed,
    Replied, RequestKey, Result, Room, RunStatus, RunStore, SessionLimits, SessionStore, SessionSummary, Store,
    StoreError, StoredReply, StoredRun, StoredSession, Submitted, Sweep, TurnLease, TurnStart, Undo, Usage, news,
};
use crate::config::Durability;
use async_trait::async_trait;
use file::File;
use readers::Readers;
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use sweep::Stage;
use tokio::sync::broadcast;
use tokio::task::spawn_blocking;
use writer::{Write, Writer};

/// A write within this many milliseconds shows that writing works.
const PROBED: i64 = 1_000;
/// The bytes written to check whether writing works again after a failure.
const FILLER: i64 = 262_144;

/// A store in one SQLite file. One process owns the file at a time.
///
/// One thread writes: it takes all operations that wait into one transaction, so that many clients share the cost of
/// writing to the disk. Reads have connections of their own and wait for no write.
///
/// Dropping the store closes it, and waits until operations that wait are committed. [`Store::close`] does the same
/// without blocking the thread.
#[derive(Debug)]
pub struct SqliteStore {
    readers: Arc<Readers>,
    writer: Writer,
    /// The files whose loss is noticed.
    files: Arc<Vec<OpenFile>>,
    clock: Arc<Clock>,
    news: broadcast::Sender<News>,
}

impl SqliteStore {
    /// Opens or creates the file, and owns it until the store is closed. Only the user of this process can read it. Blocks
    /// the thread while an older format is converted.
    ///
    /// Files of up to 256 MiB are checked for damage. Larger ones are not, because that takes long; `ptcl store check`
    /// does. All leases and turns end: the process that held them has ended.
    ///
    /// # Errors
    /// [`StoreError::Owned`] if another process owns the file, [`StoreError::Format`] if a later version wrote it,
    /// [`StoreError::Unavailable`] if another program has locked it, and [`StoreError::Open`] if it is not a store, is
    /// damaged or cannot be opened.
    pub fn open(path: &Path, durability: Durability) -> Result<SqliteStore> {
        SqliteStore::open_file(path, durability).map_err(|error| match error {
            StoreError::Failed(why) => StoreError::Open { path: path.display().to_string(), why },
            StoreError::Damaged(why) => {
                let path = path.display().to_string();
                let why = format!("it is damaged ({why}): look at it with `ptcl store check --store {path}`");
                StoreError::Open { path, why }
            }
            error => error,
        })
    }

    fn open_file(path: &Path, durability: Durability) -> Result<SqliteStore> {
        let clock = Arc::new(Clock::new());
        let file = File::open(path, durability, clock.steady_ms())?;
        let files = file.files.clone();
        let readers = Readers::new(file.path.clone());
        let news = news::channel();
        let writer = Writer::start(file, clock.clone(), news.clone())
            .map_err(|error| StoreError::Failed(format!("no thread can be started: {error}")))?;
        Ok(SqliteStore { readers, writer, files, clock, news })
    }

    /// Returns the number of transactions that were committed since the store was opened. Operations that come together
    /// share one.
    pub fn commits(&self) -> u64 {
        self.writer.state.commits.load(Ordering::Relaxed)
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Write<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.writer.write(work).await
    }

    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&Connection) -> Result<T> + Send + 'static) -> Result<T> {
        self.readers.read(read).await
    }
}

#[async_trait]
impl RunStore for SqliteStore {
    async fn submit(&self, run: NewRun, key: Option<RequestKey>) -> Result<Submitted> {
        self.write(move |write| runs::submit(write, &run, key.as_ref())).await
    }

    async fn known_request(&self, tenant: &str, key: RequestKey) -> Result<Option<Submitted>> {
        let tenant = tenant.to_owned();
        self.read(move |db| reads::known_request(db, &tenant, &key)).await
    }

    async fn claimable(&self, tenants: &[String], max: usize) -> Result<Vec<usize>> {
        let (tenants, now) = (tenants.to_vec(), self.clock.steady_ms());
        self.read(move |db| runs::claimable(db, &tenants, now, max)).await
    }

    async fn claim(&self, worker: &str, period: Duration, room: &Room) -> Result<Vec<Claim>> {
        let (worker, room) = (worker.to_owned(), room.clone());
        self.write(move |write| runs::claim(write, &worker, period, &room)).await
    }

    async fn renew(&self, leases: &[Lease], period: Duration) -> Result<Vec<Renewed>> {
        let leases = leases.to_vec();
        self.write(move |write| runs::renew(write, &leases, period)).await
    }

    async fn journal(&self, run_id: &str) -> Result<Journal> {
        let run_id = run_id.to_owned();
        self.read(move |db| reads::journal(db, &run_id)).await
    }

    async fn replies(&self, run_id: &str, skip: u64) -> Result<Vec<StoredReply>> {
        let run_id = run_id.to_owned();
        self.read(move |db| reads::replies(db, &run_id, skip)).await
    }

    async fn write(&self, lease: &Lease, batch: Batch) -> Result<()> {
        let lease = lease.clone();
        self.write(move |write| runs::write(write, &lease, &batch)).await
    }

    async fn end(&self, lease: &Lease, batch: Batch, end: End) -> Result<Ended> {
        let lease = lease.clone();
        self.write(move |write| runs::end(write, &lease, &batch, &end)).await
    }

    async fn reply(&self, run_id: &str, reply: StoredReply) -> Result<Replied> {
        let run_id = run_id.to_owned();
        self.write(move |write| runs::reply(write, &run_id, &reply)).await
    }

    async fn cancel(&self, run_id: &str) -> Result<bool> {
        let run_id = run_id.to_owned();
        self.write(move |write| runs::cancel(write, &run_id)).await
    }

    async fn retry(&self, run_id: &str) -> Result<bool> {
        let run_id = run_id.to_owned();
        self.write(move |write| runs::retry(write, &run_id)).await
    }

    async fn run(&self, run_id: &str) -> Result<Option<StoredRun>> {
        let run_id = run_id.to_owned();
        self.read(move |db| reads::run(db, &run_id)).await
    }

    async fn events(&self, run_id: &str, skip: u64) -> Result<Events> {
        let run_id = run_id.to_owned();
        self.read(move |db| reads::events(db, &run_id, skip)).await
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        let query = query.clone();
        self.read(move |db| reads::list(db, &query)).await
    }

    async fn usage(&self, tenant: &str) -> Result<Usage> {
        let tenant = tenant.to_owned();
        self.read(move |db| reads::usage(db, &tenant)).await
    }

    async fn unfinished(&self) -> Result<Vec<(RunStatus, u64)>> {
        self.read(reads::unfinished).await
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn open_session(&self, session: NewSession, limits: SessionLimits) -> Result<Opened> {
        self.write(move |write| sessions::open(write, &session, limits)).await
    }

    async fn session_summary(&self, session_id: &str) -> Result<Option<SessionSummary>> {
        let session_id = session_id.to_owned();
        self.read(move |db| sessions::summary(db, &session_id)).await
    }

    async fn session(&self, session_id: &str) -> Result<Option<StoredSession>> {
        let session_id = session_id.to_owned();
        self.read(move |db| sessions::session(db, &session_id)).await
    }

    async fn begin_turn(&self, tenant: &str, session_id: &str, period: Duration) -> Result<TurnStart> {
        let (tenant, session_id) = (tenant.to_owned(), session_id.to_owned());
        self.write(move |write| sessions::begin_turn(write, &tenant, &session_id, period)).await
    }

    async fn renew_turn(&self, turn: &TurnLease, period: Duration) -> Result<bool> {
        let turn = turn.clone();
        self.write(move |write| sessions::renew_turn(write, &turn, period)).await
    }

    async fn put_turn(&self, turn: &TurnLease, text: String, undos: u64, max_bytes: u64) -> Result<Put> {
        let turn = turn.clone();
        self.write(move |write| sessions::put_turn(write, &turn, &text, undos, max_bytes)).await
    }

    async fn undo_turn(&self, turn: &TurnLease) -> Result<Undo> {
        let turn = turn.clone();
        self.write(move |write| sessions::undo_turn(write, &turn)).await
    }

    async fn end_turn(&self, turn: &TurnLease) -> Result<()> {
        let turn = turn.clone();
        self.write(move |write| sessions::end_turn(write, &turn)).await
    }

    async fn delete_session(&self, turn: &TurnLease) -> Result<bool> {
        let turn = turn.clone();
        self.write(move |write| sessions::delete_session(write, &turn)).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn check_writable(&self) -> Result<()> {
        let files = self.files.clone();
        let checked = spawn_blocking(move || files.iter().try_for_each(|file| file.check().and(file.check_space())));
        checked.await.map_err(|_| closed())??;
        let state = &self.writer.state;
        let fails = state.fails.load(Ordering::Relaxed);
        if !fails && self.clock.steady_ms().saturating_sub(state.written_ms.load(Ordering::Relaxed)) < PROBED {
            return Ok(());
        }
        // Writing an unchanged value writes nothing. After a failed write there may still be space for a small one.
        let filler = if fails { FILLER } else { 0 };
        let probe = move |write: &mut Write<'_>| {
            let sql = "INSERT INTO probe VALUES (1, 1, randomblob(?1))
                 ON CONFLICT (one) DO UPDATE SET number = number + 1, filler = randomblob(?1)";
            write.db.prepare_cached(sql)?.execute(params![filler])?;
            Ok(())
        };
        self.write(probe).await?;
        // A transaction that wrote little, or nothing, does not show that others succeed.
        state.fails.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        let name = name.to_owned();
        let secret = move |write: &mut Write<'_>| {
            let mut insert = write.db.prepare_cached("INSERT INTO secrets VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
            insert.execute(params![name, fresh])?;
            let mut select = write.db.prepare_cached("SELECT secret FROM secrets WHERE name = ?1")?;
            Ok(select.query_row([name], |row| row.get(0))?)
        };
        self.write(secret).await
    }

    async fn restored_until(&self, marks: bool) -> Result<i64> {
        let restored = move |write: &mut Write<'_>| {
            let mark =
                "UPDATE owner SET restored_ms = max(restored_ms, (SELECT coalesce(max(created_ms), -1) FROM runs))";
            if marks {
                write.db.execute(mark, [])?;
                let start = format!("{RESTORED}: ");
                let warn =
                    "UPDATE calls SET question = ?1 || question WHERE phase = 'gate' AND instr(question, ?1) <> 1";
                write.db.execute(warn, [start])?;
            }
            Ok(write.db.query_row("SELECT restored_ms FROM owner", [], |row| row.get(0))?)
        };
        self.write(restored).await
    }

    /// Deletes in steps, each of which is one transaction. Gives free pages of the file back to the file system.
    async fn sweep(&self, sweep: Sweep) -> Result<u64> {
        let (mut all, mut next) = (0, Some(Stage::Runs));
        while let Some(stage) = next {
            let deleted;
            (deleted, next) = self.write(move |write| sweep::step(write, sweep, stage)).await?;
            all += deleted;
        }
        Ok(all)
    }

    async fn close(&self) -> Result<()> {
        self.readers.close();
        self.writer.close().await
    }
}
