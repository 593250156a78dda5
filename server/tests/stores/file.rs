//! Files of tests.

use lisp_server::config::Durability;
use lisp_server::store::{SqliteStore, StoreError};
use std::path::PathBuf;

/// The file of a store, removed with the test.
pub(crate) struct TestFile(pub(crate) PathBuf);

impl TestFile {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptc-stores-{}-{name}.db", std::process::id()));
        let file = TestFile(path);
        file.remove();
        file
    }

    pub(crate) fn remove(&self) {
        for end in ["", "-wal", "-shm", "-lock", "-journal"] {
            let _ = std::fs::remove_file(self.beside(end));
        }
    }

    pub(crate) fn beside(&self, end: &str) -> PathBuf {
        format!("{}{end}", self.0.display()).into()
    }

    pub(crate) fn open(&self) -> SqliteStore {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::open(&self.0, Durability::Process)
    }

    /// Opens the file as another program would.
    pub(crate) fn meddle(&self, sql: &str) {
        rusqlite::Connection::open(&self.0).unwrap().execute_batch(sql).unwrap();
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        self.remove();
    }
}
