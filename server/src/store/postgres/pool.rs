//! Connections to the database, and what happens when they fail.

use super::super::rules::closed;
use super::super::{Result, StoreError};
use super::address::Address;
use super::tls::Tls;
use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Connection, Row, Socket, Statement};

/// The time for an operation, with all tries. A database that hangs is an error after it.
const LIMIT: Duration = Duration::from_secs(10);
/// The time in which an operation is tried again.
const RETRIES: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_millis(400);

/// Settings of every connection. The plans must not depend on statistics: new tables have none. Nobody may turn off that a
/// commit waits for the disk.
const SETTINGS: &str = "
    set search_path = pg_catalog;
    set statement_timeout = '8s';
    set idle_in_transaction_session_timeout = '10s';
    set client_min_messages = warning;
    set default_transaction_isolation = 'read committed';
    set plan_cache_mode = force_generic_plan;
    set enable_seqscan = off;
    set enable_hashjoin = off;
    set enable_mergejoin = off;
    set jit = off;
    select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'";

/// Parameters of a statement.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Why a statement failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// A function of the store refused it, with one of its own codes and a text.
    Refused(String, String),
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(code, text) => StoreError::Failed(format!("{text} ({code})")),
            Failure::Store(error) => error,
        }
    }
}

/// What to do about a failed try.
#[derive(Debug)]
enum QueryError {
    /// It did not happen, and may succeed now.
    Conflict(String),
    /// The connection is unusable. It may have happened.
    Lost(String),
    /// The database does not do it at present.
    Unavailable(String),
    Final(Failure),
}

/// A connection that ends when it is dropped, even if the database does not answer.
pub(super) struct Link {
    pub(super) client: Client,
    task: JoinHandle<()>,
    statements: HashMap<&'static str, Statement>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    async fn query(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(sql).await?;
                self.statements.insert(sql, statement.clone());
                statement
            }
        };
        self.client.query(&statement, params).await
    }
}

/// A pool of connections: opened when they are needed, at most so many.
pub(super) struct Pool {
    address: Address,
    tls: Tls,
    slots: Semaphore,
    idle: Mutex<Vec<Link>>,
}

/// The right to use a connection. The connection goes back to the pool if it is usable.
struct Checkout<'a> {
    pool: &'a Pool,
    link: Option<Link>,
    _slot: SemaphorePermit<'a>,
}

impl Drop for Checkout<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link.take().filter(|link| !link.client.is_closed()) {
            self.pool.idle().push(link);
        }
    }
}

impl Pool {
    pub(super) fn new(address: Address, tls: Tls) -> Self {
        Pool { slots: Semaphore::new(address.connections), address, tls, idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the rows of a statement, which is tried again if that may help.
    pub(super) async fn query(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        self.tries(sql, params, false).await
    }

    /// Does the same for a statement that has one more parameter: whether a try before may have happened.
    pub(super) async fn query_again(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        self.tries(sql, params, true).await
    }

    async fn tries(&self, sql: &'static str, params: Params<'_>, says_again: bool) -> Result<Vec<Row>, Failure> {
        let start = Instant::now();
        let (mut pause, mut again) = (FIRST_PAUSE, false);
        loop {
            let mut all = params.to_vec();
            let flag = again;
            if says_again {
                all.push(&flag);
            }
            let why = match self.attempt(sql, &all, start + LIMIT).await {
                Ok(rows) => return Ok(rows),
                Err(QueryError::Final(failure)) => return Err(failure),
                Err(QueryError::Unavailable(why)) => return Err(StoreError::Unavailable(why).into()),
                Err(QueryError::Conflict(why)) => why,
                Err(QueryError::Lost(why)) => {
                    again = true;
                    why
                }
            };
            if start.elapsed() + pause > RETRIES {
                return Err(StoreError::Unavailable(why).into());
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn attempt(&self, sql: &'static str, params: Params<'_>, end: Instant) -> Result<Vec<Row>, QueryError> {
        let mut checkout = self.checkout(end).await?;
        let Some(link) = &mut checkout.link else { return Err(QueryError::Lost("no connection".to_owned())) };
        let result = match timeout_at(end, link.query(sql, params)).await {
            Ok(result) => result,
            Err(_) => {
                // The answer may come to the next statement: the connection is not used again.
                checkout.link = None;
                return Err(no_answer());
            }
        };
        result.map_err(|error| {
            let error = query_error(&error);
            if matches!(error, QueryError::Lost(_)) {
                checkout.link = None;
            }
            error
        })
    }

    /// Returns a connection that nobody uses, or opens one.
    async fn checkout(&self, end: Instant) -> Result<Checkout<'_>, QueryError> {
        let slot = match timeout_at(end, self.slots.acquire()).await {
            Ok(Ok(slot)) => slot,
            Ok(Err(_)) => return Err(QueryError::Final(closed().into())),
            Err(_) => {
                return Err(QueryError::Unavailable(format!("all {} connections are busy", self.address.connections)));
            }
        };
        let idle = {
            let mut idle = self.idle();
            while idle.last().is_some_and(|link| link.client.is_closed()) {
                idle.pop();
            }
            idle.pop()
        };
        let link = match idle {
            Some(link) => link,
            None => self.connect_until(end).await?,
        };
        Ok(Checkout { pool: self, link: Some(link), _slot: slot })
    }

    async fn connect_until(&self, end: Instant) -> Result<Link, QueryError> {
        let connecting = async {
            let (link, _) = self.open().await?;
            link.client.batch_execute(SETTINGS).await?;
            Ok::<_, tokio_postgres::Error>(link)
        };
        match timeout_at(end, connecting).await {
            // It is not about the statement: later the same one may succeed.
            Ok(Err(error)) => Err(QueryError::Conflict(reason(&error))),
            Ok(Ok(link)) => Ok(link),
            Err(_) => Err(no_answer()),
        }
    }

    /// Opens a connection that is not one of the pool. Its messages are dropped.
    async fn open(&self) -> Result<(Link, String), tokio_postgres::Error> {
        let (client, connection) = self.connect().await?;
        let encoding = connection.parameter("server_encoding").unwrap_or_default().to_owned();
        let task = tokio::spawn(async move {
            // Whoever uses it gets the error too.
            let _ = connection.await;
        });
        Ok((Link { client, task, statements: HashMap::new() }, encoding))
    }

    /// Connects, without a time limit.
    pub(super) async fn connect(
        &self,
    ) -> Result<(Client, Connection<Socket, super::tls::Stream>), tokio_postgres::Error> {
        self.address.config.connect(self.tls.clone()).await
    }

    /// Returns a connection for the start, whose time limits are its own.
    ///
    /// # Errors
    /// [`StoreError::Open`] with the name of the database, if trying again does not help.
    pub(super) async fn open_first(&self, name: &str) -> Result<Link> {
        let cannot = |why: String| StoreError::Open { path: name.to_owned(), why };
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let why = match timeout_at(start + LIMIT, self.open()).await {
                Ok(Ok((link, encoding))) if encoding == "UTF8" => return Ok(link),
                Ok(Ok((_, encoding))) => {
                    return Err(cannot(format!("its encoding is {encoding}: create the database with UTF8")));
                }
                Ok(Err(error)) if is_permanent(&error) => {
                    return Err(cannot(with_step(&error, self.address.config.get_dbname().is_some())));
                }
                Ok(Err(error)) => with_step(&error, true),
                Err(_) => return Err(StoreError::Unavailable(no_answer_text())),
            };
            if start.elapsed() + pause > RETRIES {
                return Err(StoreError::Unavailable(why));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Waits for the operations in progress, and closes all connections.
    pub(super) async fn close(&self) {
        let all = u32::try_from(self.address.connections).unwrap_or(u32::MAX);
        // What takes longer gets an error.
        let _ = timeout_at(Instant::now() + LIMIT, self.slots.acquire_many(all)).await;
        self.slots.close();
        self.idle().clear();
    }
}

fn no_answer_text() -> String {
    format!("the database has not answered for {} s", LIMIT.as_secs())
}

fn no_answer() -> QueryError {
    QueryError::Unavailable(no_answer_text())
}

/// Returns what an error says, without the data that it concerns.
fn reason(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(db), _) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// Returns what an error of connecting says, with what to do about it.
fn with_step(error: &tokio_postgres::Error, names_database: bool) -> String {
    let why = reason(error);
    let refused = |error: &(dyn Error + 'static)| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    let step = match error.code().map(SqlState::code) {
        Some("28P01") => "check the user, and the password in the address or in PGPASSWORD",
        Some("28000") => "check the user, and what pg_hba.conf allows it",
        Some("3D000") if names_database => "create it with createdb, or name another database",
        Some("3D000") => "name the database in the address: postgres://user@host/database",
        Some("42501") => PERMISSION,
        None if why.contains("password missing") => {
            "set PGPASSWORD, or write postgres://user:${DB_PASSWORD}@host/database into `store`"
        }
        None if why.contains("does not support TLS") => "turn on ssl in the server, or write sslmode=prefer",
        None if error.source().is_some_and(refused) => "check host and port, and whether PostgreSQL runs there",
        _ => return why,
    };
    format!("{why}; {step}")
}

/// What to do if the user may not use the schema.
const PERMISSION: &str = "grant the user the schema `ptc_lisp`, or, to create it, CREATE on the database";

/// Returns the error of a statement that is not tried again.
pub(super) fn store_error(error: &tokio_postgres::Error) -> StoreError {
    match query_error(error) {
        QueryError::Conflict(why) | QueryError::Lost(why) | QueryError::Unavailable(why) => {
            StoreError::Unavailable(why)
        }
        QueryError::Final(failure) => failure.into(),
    }
}

/// Returns whether connecting again would fail the same way.
fn is_permanent(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        // Who may connect, and to what.
        Some(db) => ["28", "3D", "42"].iter().any(|class| db.code().code().starts_with(class)),
        None => {
            let is_tls = |error: &(dyn Error + 'static)| {
                error
                    .downcast_ref::<io::Error>()
                    .and_then(io::Error::get_ref)
                    .is_some_and(|inner| inner.is::<rustls::Error>())
            };
            !is_io(error) || error.source().is_some_and(is_tls)
        }
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || error.source().is_some_and(|source| source.is::<io::Error>())
}

fn query_error(error: &tokio_postgres::Error) -> QueryError {
    let why = reason(error);
    let Some(db) = error.as_db_error() else {
        return if is_io(error) { QueryError::Lost(why) } else { QueryError::Final(StoreError::Failed(why).into()) };
    };
    let code = db.code();
    if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE]
        .contains(code)
    {
        return QueryError::Conflict(why);
    }
    match code.code() {
        "57014" => QueryError::Unavailable("the database took too long for an operation".to_owned()),
        // A standby, a prepared statement that is gone, a function that was changed.
        "25006" | "26000" | "0A000" => QueryError::Lost(why),
        code if code.starts_with("PT") => QueryError::Final(Failure::Refused(code.to_owned(), db.message().to_owned())),
        // Lost, shut down, or out of a resource.
        code if code.starts_with("08") || code.starts_with("57") => QueryError::Lost(why),
        code if code.starts_with("53") || code.starts_with("58") => QueryError::Conflict(why),
        "42501" => QueryError::Final(StoreError::Failed(format!("{why}; {PERMISSION}")).into()),
        _ => QueryError::Final(StoreError::Failed(why).into()),
    }
}
