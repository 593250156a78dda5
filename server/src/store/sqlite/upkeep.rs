//! What an operator does with the file of a store, also while a service uses it: nothing here takes the lock or writes to
//! the file.

use super::super::owner::{checked_path, create_private};
use super::super::rules::digest;
use super::super::{Checked, Formats, MAX_PROBLEMS, Result, StoreError};
use super::file::open_reader;
use super::migrate::{FORMAT, check_identity};
use super::reads::count;
use rusqlite::Connection;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

fn failed(error: &io::Error) -> StoreError {
    StoreError::Failed(error.to_string())
}

/// Opens the file of a store for reading. Returns its format, too.
fn open(path: &Path) -> Result<(Connection, i64)> {
    let path = checked_path(path).map_err(|error| failed(&error))?;
    if !path.try_exists().map_err(|error| failed(&error))? {
        return Err(StoreError::Failed("there is no such file: name the store with --store".to_owned()));
    }
    let db = open_reader(&path)?;
    let format = check_identity(&db)?;
    Ok((db, format))
}

/// Returns the format of a file.
pub(in super::super) fn formats(path: &Path) -> Result<Formats> {
    Ok(Formats { found: open(path)?.1, known: FORMAT })
}

/// Looks for damage: of the file, of rows that refer to others, and of journals.
///
/// # Errors
/// If the file is damaged so much that it cannot be read, or is no store.
pub(in super::super) fn check(path: &Path) -> Result<Checked> {
    let (mut db, _) = open(path)?;
    let mut checked = Checked::default();
    // One state of the store.
    let db = db.transaction()?;
    let mut select = db.prepare(&format!("PRAGMA integrity_check({MAX_PROBLEMS})"))?;
    for found in select.query_map([], |row| row.get::<_, String>(0))? {
        // What it says first has several lines.
        let found = found?.replace('\n', " ");
        if found != "ok" {
            checked
                .problems
                .push(format!("the file is damaged: {}", found.trim_start_matches("*** in database main *** ")));
        }
    }
    let mut select = db.prepare("PRAGMA foreign_key_check")?;
    for found in select.query_map([], |row| row.get::<_, String>(0))?.take(MAX_PROBLEMS) {
        checked.problems.push(format!("a row of the table {} refers to nothing", found?));
    }
    check_journals(&db, &mut checked)?;
    checked.problems.truncate(MAX_PROBLEMS);
    Ok(checked)
}

fn check_journals(db: &Connection, checked: &mut Checked) -> Result<()> {
    let mut select = db.prepare("SELECT run_id, lines FROM runs ORDER BY run_id")?;
    let mut lines = db.prepare("SELECT number, line, digest FROM journal WHERE run_id = ?1 ORDER BY number")?;
    let mut runs = select.query([])?;
    while let Some(run) = runs.next()? {
        let (run_id, expected): (String, i64) = (run.get(0)?, run.get(1)?);
        checked.runs += 1;
        let (mut found, mut in_order) = (0, true);
        let mut rows = lines.query([&run_id])?;
        while let Some(row) = rows.next()? {
            found += 1;
            let (number, sum): (i64, i64) = (row.get(0)?, row.get(2)?);
            // Damage may have left something that is not UTF-8.
            if !row.get_ref(1)?.as_str().is_ok_and(|line| digest(line) == sum) {
                checked.problems.push(format!("line {number} of the journal of run {run_id} is damaged"));
            }
            in_order &= number == found;
        }
        checked.lines += count(found);
        if found != expected || !in_order {
            checked
                .problems
                .push(format!("the journal of run {run_id} has {found} lines, and should have 1 to {expected}"));
        }
        if checked.problems.len() >= MAX_PROBLEMS {
            break;
        }
    }
    Ok(())
}

/// Copies a file as it is at one moment, and checks the copy. Returns its bytes.
pub(in super::super) fn backup(path: &Path, to: &Path) -> Result<u64> {
    let (db, format) = open(path)?;
    if format == 0 {
        return Err(StoreError::Missing { path: path.display().to_string(), kind: "file" });
    }
    let at = |path: &Path, error: &io::Error| StoreError::Copy(format!("{}: {error}", path.display()));
    if to.symlink_metadata().is_ok() {
        return Err(StoreError::Copy(format!("{} exists already; name a new file for it", to.display())));
    }
    let partial = UnfinishedCopy(beside(to));
    create_private(&partial.0).map_err(|error| at(&partial.0, &error))?;
    let name = partial.0.to_str().ok_or_else(|| StoreError::Copy("its name is not UTF-8".to_owned()))?;
    db.execute("VACUUM INTO ?1", [name])?;
    let copy = open_reader(&partial.0)?;
    let found: String = copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    drop(copy);
    if found != "ok" {
        return Err(StoreError::Failed(format!(
            "the copy is damaged ({found}): look at the store with `ptcl store check`"
        )));
    }
    // SQLite leaves this to the caller.
    let file = File::open(&partial.0).and_then(|file| file.sync_all().map(|()| file));
    let bytes = file.and_then(|file| file.metadata()).map_err(|error| at(&partial.0, &error))?.len();
    std::fs::rename(&partial.0, to).map_err(|error| at(to, &error))?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| at(folder, &error))?;
    Ok(bytes)
}

/// A copy that is being written. It is removed unless it gets its name.
struct UnfinishedCopy(PathBuf);

impl Drop for UnfinishedCopy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn beside(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    name.into()
}
