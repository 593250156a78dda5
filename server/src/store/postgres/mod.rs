//! A store in PostgreSQL, for one process or many.
//!
//! What belongs together happens in one statement: most operations call a function of the schema `ptc_lisp`, which checks
//! the lease and writes. Leases and pauses go by the clock of the database. `schema_1.sql` has the tables, `functions_1.sql`
//! and `sessions_1.sql` have the functions.

mod address;
mod news;
mod pool;
mod rows;
mod runs;
mod sessions;
mod text;
mod tls;

use super::clock::millis;
use super::rules::{RESTORED, exists};
use super::{Formats, Query, Result, RunStore, Store, StoreError, Sweep};
use crate::config::without_password;
use address::Address;
use async_trait::async_trait;
use news::Notices;
use pool::{Link, Pool, store_error};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use text::escape;
use tls::Tls;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// The steps from an empty database to the format of this version. A step that was published never changes.
const STEPS: [&str; 1] =
    [concat!(include_str!("schema_1.sql"), include_str!("functions_1.sql"), include_str!("sessions_1.sql"))];
/// The time for all steps, and for waiting while another process takes them.
const MIGRATION: Duration = Duration::from_secs(120);
/// Taken by the process that changes the format.
const MIGRATION_LOCK: i64 = 0x7074_635f_6c69_7370;
/// How many runs or sessions one statement deletes or cancels.
const SWEEP: i32 = 200;

/// A store in PostgreSQL.
pub struct PostgresStore {
    pool: Arc<Pool>,
    notices: Notices,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects to a database, and creates or updates the schema `ptc_lisp` in it.
    ///
    /// The address is `postgres://user:password@host:port/database?options`. Options are those of libpq:
    ///
    /// - `sslmode`: `disable`, `prefer` (the default), `require`, `verify-ca` or `verify-full`
    /// - `sslrootcert`: the file with the certificates of known authorities, or `system`
    /// - `connect_timeout`, `application_name`, `target_session_attrs` and others that tokio-postgres knows
    /// - `connections`: the maximum number of connections of this process, besides one for news; 16 if not given
    ///
    /// If the address has no password, that of `PGPASSWORD` is used.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the address is wrong or the database refuses, [`StoreError::Format`] if a later version wrote
    /// the store, [`StoreError::Unavailable`] if the database cannot be reached.
    pub async fn open(address: &str) -> Result<Self> {
        let name = without_password(address);
        let cannot = |why: String| StoreError::Open { path: name.clone(), why };
        let (pool, mut link) = connect(address, &name).await?;
        match timeout(MIGRATION, migrate(&mut link)).await {
            Ok(migrated) => migrated.map_err(|error| match error {
                StoreError::Failed(why) => cannot(why),
                error => error,
            })?,
            Err(_) => return Err(StoreError::Unavailable("another process is changing its format".to_owned())),
        }
        let notices = Notices::start(pool.clone());
        Ok(PostgresStore { pool, notices })
    }

    /// Returns the format of a database, and changes nothing.
    ///
    /// # Errors
    /// Those of [`PostgresStore::open`].
    pub(super) async fn formats(address: &str) -> Result<Formats> {
        let (_, link) = connect(address, &without_password(address)).await?;
        let (found, known) = (format(&link).await?, STEPS.len() as i64);
        if found > known { Err(StoreError::Format { found, known }) } else { Ok(Formats { found, known }) }
    }

    /// Says in the questions of all approvals that the store was restored from a backup.
    async fn warn_approvers(&self) -> Result<()> {
        /// The number of calls that one statement changes.
        const PAGE: i64 = 2_000;
        let sql = "
            with page as (
                select run_id, call from ptc_lisp.calls where (run_id, call) > ($2, $3) order by run_id, call limit $4
            ), warned as (
                update ptc_lisp.calls as open set question = $1::bytea || open.question from page
                    where open.run_id = page.run_id and open.call = page.call and open.phase = 'gate'
                        and position($1::bytea in open.question) <> 1
            )
            select run_id, call from page order by run_id desc, call desc limit 1";
        let start = format!("{RESTORED}: ").into_bytes();
        let (mut run_id, mut call) = (String::new(), String::new());
        while let Some(row) = self.pool.query(sql, &[&start, &run_id, &call, &PAGE]).await?.first() {
            (run_id, call) = (get(row, "run_id")?, get(row, "call")?);
        }
        Ok(())
    }

    /// Returns the only row of a statement that has one.
    async fn one(&self, sql: &'static str, params: pool::Params<'_>) -> Result<Row> {
        only(self.pool.query(sql, params).await?)
    }
}

/// Connects for the first time.
async fn connect(address: &str, name: &str) -> Result<(Arc<Pool>, Link)> {
    let cannot = |why: String| StoreError::Open { path: name.to_owned(), why };
    let address = Address::parse(address, std::env::var("PGPASSWORD").ok()).map_err(cannot)?;
    let tls = Tls::new(&address).map_err(cannot)?;
    let pool = Arc::new(Pool::new(address, tls));
    let link = pool.open_first(name).await?;
    Ok((pool, link))
}

/// Returns the only row.
fn only(rows: Vec<Row>) -> Result<Row> {
    rows.into_iter().next().ok_or_else(|| StoreError::Failed("the database returned no row".to_owned()))
}

/// Returns a column of a row.
fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T> {
    row.try_get(column).map_err(|error| StoreError::Failed(error.to_string()))
}

/// Returns a column with a number that is never negative.
fn get_count(row: &Row, column: &str) -> Result<u64> {
    let number: i64 = get(row, column)?;
    u64::try_from(number).map_err(|_| StoreError::Damaged(format!("a row, whose {column} is {number}")))
}

/// Returns a number as the database stores it.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a period in milliseconds that can be added to a time.
fn period_ms(period: Duration) -> i64 {
    millis(period).min(i64::MAX / 2)
}

/// Takes the steps to the format of this version.
async fn migrate(link: &mut Link) -> Result<()> {
    let failed = |error: tokio_postgres::Error| store_error(&error);
    let known = STEPS.len() as i64;
    let found = format(link).await?;
    if found > known {
        return Err(StoreError::Format { found, known });
    }
    if found == known {
        return Ok(());
    }
    let transaction = link.client.transaction().await.map_err(failed)?;
    transaction.execute("select pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(failed)?;
    let start =
        "create schema if not exists ptc_lisp; create table if not exists ptc_lisp.format (version bigint not null)";
    transaction.batch_execute(start).await.map_err(failed)?;
    let found = transaction.query_opt("select version from ptc_lisp.format", &[]).await.map_err(failed)?;
    let found = found.map_or(Ok(0), |row| get(&row, "version"))?;
    if found > known {
        return Err(StoreError::Format { found, known });
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.batch_execute(step).await.map_err(failed)?;
    }
    if found < known {
        transaction.execute("delete from ptc_lisp.format", &[]).await.map_err(failed)?;
        transaction.execute("insert into ptc_lisp.format values ($1)", &[&known]).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Returns the format of the database; 0 if it has none.
async fn format(link: &Link) -> Result<i64> {
    let failed = |error: tokio_postgres::Error| store_error(&error);
    let exists = link.client.query_one("select to_regclass('ptc_lisp.format') is not null as found", &[]).await;
    if !get::<bool>(&exists.map_err(failed)?, "found")? {
        return Ok(0);
    }
    let row = link.client.query_opt("select version from ptc_lisp.format", &[]).await.map_err(failed)?;
    row.map_or(Ok(0), |row| get(&row, "version"))
}

#[async_trait]
impl Store for PostgresStore {
    async fn check_writable(&self) -> Result<()> {
        self.pool.query("update ptc_lisp.alive set checked_ms = ptc_lisp.now_ms()", &[]).await?;
        Ok(())
    }

    async fn secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        let name = escape(name);
        let insert = "insert into ptc_lisp.secrets (name, value) values ($1, $2) on conflict do nothing";
        self.pool.query(insert, &[&name, &fresh]).await?;
        get(&self.one("select value from ptc_lisp.secrets where name = $1", &[&name]).await?, "value")
    }

    async fn restored_until(&self, marks: bool) -> Result<i64> {
        if marks {
            let newest = Query { max: 1, ..Query::default() };
            let newest = self.list(&newest).await?.runs.first().map_or(-1, |run| run.created_ms);
            let mark = "update ptc_lisp.alive set restored_ms = greatest(restored_ms, $1::bigint)";
            self.pool.query(mark, &[&newest]).await?;
            self.warn_approvers().await?;
        }
        get(&self.one("select restored_ms from ptc_lisp.alive", &[]).await?, "restored_ms")
    }

    async fn sweep(&self, sweep: Sweep) -> Result<u64> {
        let mut deleted = 0;
        for (sql, before) in [
            ("select ptc_lisp.sweep_runs($1, $2) as deleted", sweep.finished_before_ms),
            ("select ptc_lisp.sweep_sessions($1, $2) as deleted", sweep.sessions_before_ms),
        ] {
            let mut max = SWEEP;
            loop {
                let step = match self.one(sql, &[&before, &max]).await {
                    Ok(row) => get_count(&row, "deleted")?,
                    // Runs may be so large that the database takes too long for many of them.
                    Err(StoreError::Unavailable(_)) if max > 1 => {
                        max = (max / 8).max(1);
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                deleted += step;
                if step < max.unsigned_abs().into() {
                    break;
                }
            }
        }
        if let Some(before) = sweep.submitted_before_ms {
            self.cancel_old(before).await?;
        }
        Ok(deleted)
    }

    async fn close(&self) -> Result<()> {
        self.pool.close().await;
        self.notices.close().await;
        Ok(())
    }
}
