//! The formats of the file, and the steps from one to the next.

use super::super::rules::digest;
use super::super::{Result, StoreError};
use rusqlite::{Connection, params};

/// The format that this version writes: SQLite's `user_version`.
pub(super) const FORMAT: i64 = 3;
/// Marks the file as a store: SQLite's `application_id`, the letters PTCL.
const APPLICATION: i64 = 0x5054_434C;

/// A step leads from a format to another. A new file has the format 0.
struct Step {
    from: i64,
    to: i64,
    run: fn(&Connection) -> Result<()>,
}

const STEPS: [Step; 3] = [
    Step { from: 0, to: FORMAT, run: create },
    Step { from: 1, to: FORMAT, run: from_format_1 },
    Step { from: 2, to: FORMAT, run: from_format_2 },
];

/// The tables of format 1, those before that others refer to.
const FORMAT_1_TABLES: [&str; 9] =
    ["keys", "journal", "replies", "states", "runs", "sessions", "secrets", "owner", "probe"];

fn pragma(db: &Connection, name: &str) -> Result<i64> {
    Ok(db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?)
}

/// Checks that the file is a store of a known format. An empty file is accepted. Returns the format.
pub(super) fn check_identity(db: &Connection) -> Result<i64> {
    let (application, format) = (pragma(db, "application_id")?, pragma(db, "user_version")?);
    let is_own = match application {
        APPLICATION => true,
        0 => {
            let mut select = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
            let names = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
            // The first stores have no application ID. The probe came later.
            let mut first_tables = FORMAT_1_TABLES.iter().filter(|table| **table != "probe");
            names.is_empty() || format == 1 && first_tables.all(|table| names.iter().any(|name| name == table))
        }
        _ => false,
    };
    match format {
        _ if !is_own => {
            Err(StoreError::Failed("it is the database of another program; name another file with --store".to_owned()))
        }
        0..=FORMAT => Ok(format),
        found => Err(StoreError::Format { found, known: FORMAT }),
    }
}

/// Brings the tables to the current format, in the transaction of the caller. Foreign keys must be off.
pub(super) fn migrate(db: &Connection) -> Result<()> {
    let mut format = check_identity(db)?;
    for step in STEPS {
        if step.from == format {
            (step.run)(db)?;
            format = step.to;
        }
    }
    db.pragma_update(None, "user_version", format)?;
    db.pragma_update(None, "application_id", APPLICATION)?;
    Ok(())
}

/// The sums of sessions, which triggers keep.
const SESSION_USAGE: &str = include_str!("session_usage.sql");

fn create(db: &Connection) -> Result<()> {
    db.execute_batch(include_str!("format_3.sql"))?;
    Ok(db.execute_batch(SESSION_USAGE)?)
}

fn from_format_2(db: &Connection) -> Result<()> {
    db.execute_batch(include_str!("from_format_2.sql")).map_err(|error| match StoreError::from(error) {
        StoreError::Failed(why) => StoreError::Failed(format!(
            "its tables are not those of format 2: a build between two versions made it, which this one cannot change ({why})"
        )),
        error => error,
    })?;
    db.execute_batch(SESSION_USAGE)?;
    let sums = "INSERT INTO session_usage SELECT tenant, count(*), sum(bytes) FROM sessions GROUP BY tenant";
    db.execute(sums, [])?;
    Ok(())
}

fn from_format_1(db: &Connection) -> Result<()> {
    // Adds what the first stores lack.
    db.execute_batch(include_str!("format_1.sql"))?;
    let mut select = db.prepare("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")?;
    let indexes = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    for index in indexes {
        db.execute_batch(&format!("DROP INDEX \"{index}\""))?;
    }
    for table in FORMAT_1_TABLES {
        db.execute_batch(&format!("ALTER TABLE {table} RENAME TO old_{table}"))?;
    }
    create(db)?;
    db.execute_batch(include_str!("from_format_1.sql"))?;
    let mut select = db.prepare("SELECT run_id, number, line FROM old_journal")?;
    let mut insert = db.prepare("INSERT INTO journal VALUES (?1, ?2, ?3, ?4)")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let line = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        insert.execute(params![row.get::<_, String>(0)?, row.get::<_, i64>(1)?, line, digest(line)])?;
    }
    drop(rows);
    for table in FORMAT_1_TABLES {
        db.execute_batch(&format!("DROP TABLE old_{table}"))?;
    }
    Ok(())
}
