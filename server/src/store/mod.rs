//! Where runs, their journals, sessions and keys outlive the process.

mod owner;
mod sqlite;

pub use sqlite::SqliteStore;

use std::fmt;

/// Why something could not be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has taken the store over: this one may not write any more.
    #[error("another process has taken the store over; this one writes no more")]
    Fenced,
    /// Another process has the store.
    #[error("the store {path} is in use by {owner}: stop it, or name another file with --store")]
    Owned {
        /// Where it is.
        path: String,
        /// Who has it.
        owner: String,
    },
    /// The store cannot be opened.
    #[error("the store {path} cannot be opened: {why}")]
    Open {
        /// Where it is.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// It was written by a later version.
    #[error(
        "the store has the format {found}, and this version reads {known}: use the version that wrote it, or another file"
    )]
    Format {
        /// The format of the file.
        found: i64,
        /// What this version reads.
        known: i64,
    },
    /// The database failed.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It waits for a place.
    Queued,
    /// It computes, or waits for its tools.
    Running,
    /// Somebody outside has to answer.
    Waiting,
    /// It has its answer.
    Done,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [RunStatus; 4] = [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting, RunStatus::Done];

    /// The name, as answers have it.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Waiting => "waiting",
            RunStatus::Done => "done",
        }
    }

    fn of(name: &str) -> Option<Self> {
        RunStatus::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A run as it is kept.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Its name.
    pub run_id: String,
    /// Whose it is; empty for the only tenant of a service without tenants.
    pub tenant: String,
    /// The request, as it came: JSON text.
    pub request: String,
    /// How far it is.
    pub status: RunStatus,
    /// Somebody has cancelled it.
    pub cancelled: bool,
    /// When it was taken, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When it last changed.
    pub updated_ms: i64,
    /// The answer, JSON text, of a run that is done.
    pub answer: Option<String>,
}

/// A run without what it is asked and what it answers: what a list shows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Its name.
    pub run_id: String,
    /// Whose it is.
    pub tenant: String,
    /// How far it is.
    pub status: RunStatus,
    /// Somebody has cancelled it.
    pub cancelled: bool,
    /// When it was taken, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When it last changed.
    pub updated_ms: i64,
    /// Its journal may have a line.
    pub has_journal: bool,
}

impl From<StoredRun> for RunSummary {
    fn from(run: StoredRun) -> Self {
        let StoredRun { run_id, tenant, status, cancelled, created_ms, updated_ms, .. } = run;
        RunSummary { run_id, tenant, status, cancelled, created_ms, updated_ms, has_journal: true }
    }
}

/// Which runs of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// Those that are done.
    Done,
    /// Those that are not.
    Unfinished,
}

/// The right to write the journal of a run: whoever took it last has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease(u64);

/// What somebody outside has said of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    /// The name of the call in its run.
    pub call: String,
    /// What was asked: `gate`, `result`, or `unknown1` and so on.
    pub phase: String,
    /// What was said, JSON text.
    pub body: String,
}

/// A run with its journal and with what was said of its calls, as of one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The run. One that is [`RunStatus::Running`] may be writing its journal.
    pub run: StoredRun,
    /// All lines of its journal.
    pub journal: String,
    /// What was said.
    pub replies: Vec<StoredReply>,
}

/// A session as it is kept.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// Its name.
    pub session_id: String,
    /// Whose it is.
    pub tenant: String,
    /// What it was begun with, JSON text.
    pub opening: String,
    /// The turns that it has gone through.
    pub turns: u64,
    /// Turns that can be taken back.
    pub undos: u64,
    /// When it was begun, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When it last changed.
    pub updated_ms: i64,
    /// The session as text; `None` before the first turn.
    pub text: Option<String>,
}

/// What became of a new run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is kept, and queued.
    New,
    /// The same request was made before with this idempotency key: this run is its run.
    Known(String),
    /// The key was used for another request.
    OtherRequest,
}

/// An idempotency key with the digest of the request that it names.
#[derive(Clone, Copy, Debug)]
pub struct RequestKey<'a> {
    /// The key, as the client chose it.
    pub key: &'a str,
    /// The digest of the request.
    pub digest: &'a str,
}

/// Keeps what outlives the process. Every method that returns without an error has been kept: a process that is killed the next
/// moment loses nothing of it.
///
/// There is one owner at a time: a store that a process has is not opened by another ([`StoreError::Owned`]). Should an earlier
/// owner be there all the same, what it writes is refused with [`StoreError::Fenced`].
pub trait Store: Send + Sync + 'static {
    /// Writes what it holds back so that its file is whole, for who copies it. Whoever works with it can go on.
    ///
    /// # Errors
    /// The store fails.
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Keeps a new run, queued, and with it the key that its client gave it.
    ///
    /// # Errors
    /// The store fails.
    fn insert_run(
        &self,
        run_id: &str,
        tenant: &str,
        request: &str,
        key: Option<RequestKey<'_>>,
    ) -> Result<Inserted, StoreError>;

    /// What an idempotency key of a tenant names, if it was used: for the digest of a request.
    ///
    /// # Errors
    /// The store fails.
    fn known_request(&self, tenant: &str, key: RequestKey<'_>) -> Result<Option<Inserted>, StoreError>;

    /// Says whether this process can write.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it does not own the store any more; or writes fail.
    fn check_writable(&self) -> Result<(), StoreError>;

    /// A run.
    ///
    /// # Errors
    /// The store fails.
    fn run(&self, run_id: &str) -> Result<Option<StoredRun>, StoreError>;

    /// The newest runs of a tenant, or those that come behind one of them. Neither requests nor answers are read.
    ///
    /// # Errors
    /// The store fails.
    fn runs(
        &self,
        tenant: &str,
        which: Which,
        behind: Option<&RunSummary>,
        most: usize,
    ) -> Result<Vec<RunSummary>, StoreError>;

    /// The runs that are not done, oldest first.
    ///
    /// # Errors
    /// The store fails.
    fn unfinished(&self) -> Result<Vec<RunSummary>, StoreError>;

    /// How many runs there are of each status.
    ///
    /// # Errors
    /// The store fails.
    fn count_runs(&self) -> Result<Vec<(RunStatus, u64)>, StoreError>;

    /// How many runs a tenant has.
    ///
    /// # Errors
    /// The store fails.
    fn count_runs_of(&self, tenant: &str) -> Result<u64, StoreError>;

    /// Takes the right to write about a run.
    ///
    /// # Errors
    /// The store fails.
    fn take(&self, run_id: &str) -> Result<Lease, StoreError>;

    /// Says how far a run is. A run that is done stays so.
    ///
    /// # Errors
    /// The store fails, or the lease is another's.
    fn set_status(&self, lease: Lease, run_id: &str, status: RunStatus) -> Result<(), StoreError>;

    /// Notes that somebody cancels a run.
    ///
    /// # Errors
    /// The store fails.
    fn cancel_run(&self, run_id: &str) -> Result<(), StoreError>;

    /// Keeps the answer of a run: it is done. A run that is done keeps its first answer.
    ///
    /// # Errors
    /// The store fails, or the lease is another's.
    fn finish_run(&self, lease: Lease, run_id: &str, answer: &str) -> Result<(), StoreError>;

    /// Adds a line to the journal of a run.
    ///
    /// # Errors
    /// The store fails, or the lease is another's.
    fn append(&self, lease: Lease, run_id: &str, line: &str) -> Result<(), StoreError>;

    /// A run with its journal and with what was said of its calls.
    ///
    /// # Errors
    /// The store fails.
    fn snapshot(&self, run_id: &str) -> Result<Option<Snapshot>, StoreError>;

    /// Keeps what somebody said of a call. False when that was said before: then nothing changes.
    ///
    /// # Errors
    /// The store fails.
    fn put_reply(&self, run_id: &str, reply: &StoredReply) -> Result<bool, StoreError>;

    /// All that was said of the calls of a run.
    ///
    /// # Errors
    /// The store fails.
    fn replies(&self, run_id: &str) -> Result<Vec<StoredReply>, StoreError>;

    /// Keeps a new session.
    ///
    /// # Errors
    /// The store fails.
    fn insert_session(
        &self,
        session_id: &str,
        tenant: &str,
        opening: &str,
        text: Option<&str>,
    ) -> Result<(), StoreError>;

    /// A session.
    ///
    /// # Errors
    /// The store fails.
    fn session(&self, session_id: &str) -> Result<Option<StoredSession>, StoreError>;

    /// How many sessions a tenant has.
    ///
    /// # Errors
    /// The store fails.
    fn count_sessions(&self, tenant: &str) -> Result<u64, StoreError>;

    /// Keeps a session after one more turn; at most `undos` earlier states are kept.
    ///
    /// # Errors
    /// The store fails.
    fn put_turn(&self, session_id: &str, text: &str, undos: u64) -> Result<(), StoreError>;

    /// Takes the last turn back. False when there is none that can be.
    ///
    /// # Errors
    /// The store fails.
    fn undo_turn(&self, session_id: &str) -> Result<bool, StoreError>;

    /// Forgets a session.
    ///
    /// # Errors
    /// The store fails.
    fn delete_session(&self, session_id: &str) -> Result<bool, StoreError>;

    /// The secret of a name: that which is kept, else this one, from now on.
    ///
    /// # Errors
    /// The store fails.
    fn secret(&self, name: &str, fresh: &[u8]) -> Result<Vec<u8>, StoreError>;

    /// Forgets runs that were done, keys and sessions that were last used before a moment. Returns how many runs and
    /// sessions went.
    ///
    /// # Errors
    /// The store fails.
    fn sweep(&self, before_ms: i64) -> Result<u64, StoreError>;
}
