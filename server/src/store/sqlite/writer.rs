//! The thread that writes. It takes all operations that wait into one transaction, and answers them when it is committed.

use super::super::clock::Clock;
use super::super::owner::{OpenFile, Owner};
use super::super::rules::closed;
use super::super::{News, Result, StoreError};
use super::file::File;
use rusqlite::Connection;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::spawn_blocking;

/// The maximum number of operations of a transaction.
const BATCH: usize = 256;
/// The number of operations that can wait. More wait until there is room.
const QUEUE: usize = 1_024;

/// What an operation works with.
pub(super) struct Write<'a> {
    pub(super) db: &'a Connection,
    pub(super) wall_ms: i64,
    pub(super) steady_ms: i64,
    /// Sent after the commit.
    pub(super) news: Vec<News>,
}

/// An operation that waits for its turn.
trait Job: Send {
    /// Runs it. Its result is kept. Returns its error.
    fn run(&mut self, write: &mut Write<'_>) -> Result<()>;

    /// Sends its result, or the error of the transaction.
    fn answer(self: Box<Self>, committed: &Result<()>);
}

struct Operation<T, F> {
    work: Option<F>,
    result: Result<T>,
    to: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnOnce(&mut Write<'_>) -> Result<T> + Send> Job for Operation<T, F> {
    fn run(&mut self, write: &mut Write<'_>) -> Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        self.result = work(write);
        self.result.as_ref().map(drop).map_err(StoreError::clone)
    }

    fn answer(self: Box<Self>, committed: &Result<()>) {
        let result = committed.clone().and(self.result);
        // A caller that no longer waits needs no answer.
        let _ = self.to.send(result);
    }
}

/// What the thread tells.
#[derive(Debug)]
pub(super) struct State {
    /// How many transactions were committed.
    pub(super) commits: AtomicU64,
    /// Whether the last transaction or one of its operations failed because of the database.
    pub(super) fails: AtomicBool,
    /// When something was committed last.
    pub(super) written_ms: AtomicI64,
}

/// An operation, or `None` to end the thread.
type Message = Option<Box<dyn Job>>;

/// Sends operations to the thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Message>>>,
    thread: Mutex<Option<JoinHandle<Result<()>>>>,
    pub(super) state: Arc<State>,
}

impl Writer {
    /// Starts the thread. It owns the file until the writer is closed.
    pub(super) fn start(file: File, clock: Arc<Clock>, news: broadcast::Sender<News>) -> io::Result<Writer> {
        let (to, queue) = mpsc::channel(QUEUE);
        let written_ms = AtomicI64::new(clock.steady_ms());
        let state = Arc::new(State { commits: AtomicU64::new(0), fails: AtomicBool::new(false), written_ms });
        let File { path, writer: connection, epoch, files, owner } = file;
        let thread = Thread { connection, path, files, epoch, queue, clock, news, state: state.clone(), _owner: owner };
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || thread.run())?;
        Ok(Writer { queue: Mutex::new(Some(to)), thread: Mutex::new(Some(thread)), state })
    }

    /// Runs an operation. Returns when it is committed, or has failed and changed nothing.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Write<'_>) -> Result<T> + Send + 'static,
    {
        let (to, result) = oneshot::channel();
        let queue = lock(&self.queue).clone().ok_or_else(closed)?;
        let operation = Operation { work: Some(work), result: Err(closed()), to };
        queue.send(Some(Box::new(operation))).await.map_err(|_| ended())?;
        drop(queue);
        result.await.map_err(|_| ended())?
    }

    /// Ends the thread after the operations that wait, and waits for its end.
    pub(super) async fn close(&self) -> Result<()> {
        let queue = lock(&self.queue).take().ok_or_else(closed)?;
        // If it fails, the thread has ended already.
        let _ = queue.send(None).await;
        let thread = lock(&self.thread).take().ok_or_else(closed)?;
        spawn_blocking(move || thread.join()).await.map_err(|_| ended())?.map_err(|_| ended())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(lock(&self.queue).take());
        if let Some(thread) = lock(&self.thread).take() {
            // What was acknowledged is committed; the rest of its result concerns nobody.
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended() -> StoreError {
    StoreError::Failed("the thread that writes the store has ended: start the service again".to_owned())
}

struct Thread {
    connection: Connection,
    path: PathBuf,
    files: Arc<Vec<OpenFile>>,
    epoch: i64,
    queue: mpsc::Receiver<Message>,
    clock: Arc<Clock>,
    news: broadcast::Sender<News>,
    state: Arc<State>,
    /// Dropped last: the connection is closed by then.
    _owner: Owner,
}

impl Thread {
    fn run(mut self) -> Result<()> {
        let mut jobs = Vec::new();
        while self.take(&mut jobs) {
            let mut news = Vec::new();
            let committed = self.commit(&mut jobs, &mut news);
            match &committed {
                Ok(()) => {
                    self.state.commits.fetch_add(1, Ordering::Relaxed);
                    self.state.written_ms.store(self.clock.steady_ms(), Ordering::Relaxed);
                    for news in news {
                        // Without subscribers there is nobody to tell.
                        let _ = self.news.send(news);
                    }
                }
                Err(_) => self.state.fails.store(true, Ordering::Relaxed),
            }
            for job in jobs.drain(..) {
                job.answer(&committed);
            }
        }
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    /// Waits for operations, and takes those that wait. Returns false after the last one.
    fn take(&mut self, jobs: &mut Vec<Box<dyn Job>>) -> bool {
        let mut next = self.queue.blocking_recv();
        while let Some(message) = next {
            match message {
                Some(job) => jobs.push(job),
                // Those that wait are taken; those that come later fail.
                None => self.queue.close(),
            }
            if jobs.len() == BATCH {
                break;
            }
            next = self.queue.try_recv().ok();
        }
        !jobs.is_empty()
    }

    /// Runs the operations in one transaction. One that fails undoes only what it did.
    fn commit(&mut self, jobs: &mut [Box<dyn Job>], news: &mut Vec<News>) -> Result<()> {
        let committed = self.try_commit(jobs, news);
        if committed.is_err() && !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        committed
    }

    fn try_commit(&self, jobs: &mut [Box<dyn Job>], news: &mut Vec<News>) -> Result<()> {
        let db = &self.connection;
        let execute = |sql: &str| -> Result<()> { Ok(db.prepare_cached(sql)?.execute([]).map(drop)?) };
        // What is written to a file that was removed or replaced would be acknowledged, and lost.
        self.files.iter().try_for_each(OpenFile::check)?;
        execute("BEGIN IMMEDIATE")?;
        self.check_owner()?;
        let mut fails = false;
        for job in jobs {
            execute("SAVEPOINT operation")?;
            let (wall_ms, steady_ms) = (self.clock.wall_ms(), self.clock.steady_ms());
            let mut write = Write { db, wall_ms, steady_ms, news: Vec::new() };
            match job.run(&mut write) {
                Ok(()) => news.append(&mut write.news),
                // A full disk or a failed read may have undone the whole transaction.
                Err(error) if db.is_autocommit() => return Err(error),
                Err(error) => {
                    fails |= matches!(error, StoreError::Unavailable(_) | StoreError::Failed(_));
                    execute("ROLLBACK TO operation")?;
                }
            }
            execute("RELEASE operation")?;
        }
        execute("COMMIT")?;
        if fails {
            self.state.fails.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Checks that no other process has opened the file since, where locks do not work.
    fn check_owner(&self) -> Result<()> {
        let epoch: i64 = self.connection.prepare_cached("SELECT epoch FROM owner")?.query_row([], |row| row.get(0))?;
        if epoch == self.epoch {
            return Ok(());
        }
        let (path, owner) = (self.path.display().to_string(), "a process that opened it later".to_owned());
        Err(StoreError::Owned { path, owner })
    }
}
