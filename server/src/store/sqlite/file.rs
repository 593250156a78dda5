//! Opens the file of a store.

use super::super::owner::{OpenFile, Owner, beside, checked_path, keep_private};
use super::super::{Result, StoreError};
use super::migrate::{check_identity, migrate};
use crate::config::Durability;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long an operation waits for another process that uses the file.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// Files up to this size are checked when they are opened.
const CHECKED_BYTES: u64 = 256 << 20;
/// The size to which the write-ahead log is cut after it was written back.
const LOG_BYTES: i64 = 64 << 20;
/// The memory in which the writer keeps pages, in KiB.
const WRITER_CACHE: i64 = 16 << 10;
/// The number of prepared statements that a connection keeps.
const STATEMENTS: usize = 96;

/// An open file, with the connection that writes it.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) writer: Connection,
    /// The number of this owner of the file.
    pub(super) epoch: i64,
    /// The files whose loss is noticed.
    pub(super) files: Arc<Vec<OpenFile>>,
    /// Dropped last: another process can open the file after this.
    pub(super) owner: Owner,
}

impl File {
    /// Opens or creates a file. Ends the leases that an earlier process has left.
    pub(super) fn open(path: &Path, durability: Durability, now_ms: i64) -> Result<File> {
        let failed = |error: io::Error| StoreError::Failed(error.to_string());
        let path = checked_path(path).map_err(failed)?;
        // Change nothing in a file that is not a store, and create nothing next to it.
        if path.try_exists().map_err(failed)? {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            check_identity(&Connection::open_with_flags(&path, flags)?)?;
        }
        let owner = Owner::take(&path)?;
        keep_private(&path).map_err(failed)?;
        let mut writer = Connection::open(&path)?;
        writer.busy_timeout(BUSY)?;
        // Has an effect only before the first table is created.
        writer.pragma_update(None, "auto_vacuum", "incremental")?;
        writer.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = if durability == Durability::Machine { "full" } else { "normal" };
        writer.pragma_update(None, "synchronous", synchronous)?;
        writer.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
        writer.pragma_update(None, "cache_size", -WRITER_CACHE)?;
        writer.set_prepared_statement_cache_capacity(STATEMENTS);
        if std::fs::metadata(&path).map_err(failed)?.len() <= CHECKED_BYTES {
            quick_check(&writer)?;
        }
        let epoch = take_over(&mut writer, now_ms)?;
        writer.pragma_update(None, "foreign_keys", true)?;
        let files = [path.clone(), beside(&path, "-wal")].into_iter().filter(|path| path.exists()).map(OpenFile::at);
        let files = Arc::new(files.collect::<io::Result<_>>().map_err(failed)?);
        Ok(File { path, writer, epoch, files, owner })
    }
}

/// Opens another connection to the file of a store, which only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    reader.busy_timeout(BUSY)?;
    reader.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(reader)
}

fn quick_check(db: &Connection) -> Result<()> {
    let found: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    let found = found.trim_start_matches("*** in database main ***").trim();
    Err(StoreError::Damaged(found.to_owned()))
}

/// Brings the file to the current format, takes it over and ends all leases. Returns the number of this owner.
fn take_over(db: &mut Connection, now_ms: i64) -> Result<i64> {
    // Tables are replaced, which must not delete what refers to them.
    db.pragma_update(None, "foreign_keys", false)?;
    let taken = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    migrate(&taken)?;
    taken.execute("UPDATE owner SET epoch = epoch + 1", [])?;
    // The process that ran them has ended. A pause ends too: the clock may have been set back since.
    taken.execute(
        "UPDATE runs SET status = 'queued', ready_ms = min(ready_ms, ?1)
         WHERE status IN ('queued', 'running') AND (status = 'running' OR ready_ms > ?1)",
        params![now_ms],
    )?;
    taken.execute("UPDATE sessions SET turn_until_ms = NULL WHERE turn_until_ms IS NOT NULL", [])?;
    let epoch = taken.query_row("SELECT epoch FROM owner", [], |row| row.get(0))?;
    taken.commit()?;
    Ok(epoch)
}
