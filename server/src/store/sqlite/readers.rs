//! Connections that read. They see what was committed before they begin, and wait for no write.

use super::super::rules::closed;
use super::super::{Result, StoreError};
use super::file::open_reader;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// How many reads there are at a time.
const READERS: usize = 4;

/// A pool of connections.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Arc<Readers> {
        Arc::new(Readers { path, idle: Mutex::default(), permits: Arc::new(Semaphore::new(READERS)) })
    }

    /// Runs a read on a thread that may block. It sees one state of the store.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| closed())?;
        let readers = self.clone();
        let task = spawn_blocking(move || {
            let result = readers.read_now(read);
            drop(permit);
            result
        });
        task.await.map_err(|error| not_read(&error))?
    }

    fn read_now<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = self.lock().pop();
        let mut connection = idle.map_or_else(|| open_reader(&self.path), Ok)?;
        let snapshot = connection.transaction()?;
        let result = read(&snapshot);
        snapshot.finish()?;
        if !self.permits.is_closed() {
            self.lock().push(connection);
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connections. Later reads fail.
    pub(super) fn close(&self) {
        self.permits.close();
        self.lock().clear();
    }
}

fn not_read(error: &JoinError) -> StoreError {
    match error.is_panic() {
        true => StoreError::Failed("a read of the store panicked: report it as a bug".to_owned()),
        false => closed(),
    }
}
