//! The store: keeps runs, journals, sessions and keys after the process ends.

mod sqlite;

pub use sqlite::SqliteStore;

use std::fmt;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has taken over the store; this one can no longer write.
    #[error("another process has taken over the store; this one no longer writes")]
    Fenced,
    /// Another process owns the store.
    #[error("the store {path} is in use by {owner}: stop it, or name another file with --store")]
    Owned {
        /// The path of the store.
        path: String,
        /// The process that owns it.
        owner: String,
    },
    /// The store cannot be opened.
    #[error("the store {path} cannot be opened: {why}")]
    Open {
        /// The path of the store.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// The store was written by a later version.
    #[error(
        "the store has the format {found}, and this version reads {known}: use the version that wrote it, or another file"
    )]
    Format {
        /// The format of the file.
        found: i64,
        /// The format that this version reads.
        known: i64,
    },
    /// The database failed.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run waits for a slot.
    Queued,
    /// The run computes, or waits for its tools.
    Running,
    /// The run waits for an outside answer.
    Waiting,
    /// The run has its answer.
    Done,
}

impl RunStatus {
    /// All statuses.
    pub const ALL: [RunStatus; 4] = [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting, RunStatus::Done];

    /// Returns the name used in JSON.
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

/// A stored run.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// The ID of the run.
    pub run_id: String,
    /// The name of its tenant; `anonymous` if the service has no tenants.
    pub tenant: String,
    /// The request as it was received: JSON text.
    pub request: String,
    /// The status.
    pub status: RunStatus,
    /// Whether the run was cancelled.
    pub cancelled: bool,
    /// When it was submitted, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When it last changed, in milliseconds since 1970-01-01T00:00:00Z.
    pub updated_ms: i64,
    /// The answer of a run that is done: JSON text.
    pub answer: Option<String>,
}

/// A stored run without its request and answer, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The ID of the run.
    pub run_id: String,
    /// The name of its tenant.
    pub tenant: String,
    /// The status.
    pub status: RunStatus,
    /// Whether the run was cancelled.
    pub cancelled: bool,
    /// When it was submitted, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When it last changed, in milliseconds since 1970-01-01T00:00:00Z.
    pub updated_ms: i64,
    /// Whether its journal may be non-empty.
    pub has_journal: bool,
}

impl From<StoredRun> for RunSummary {
    fn from(run: StoredRun) -> Self {
        let StoredRun { run_id, tenant, status, cancelled, created_ms, updated_ms, .. } = run;
        RunSummary { run_id, tenant, status, cancelled, created_ms, updated_ms, has_journal: true }
    }
}

/// Which of a tenant's runs to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All runs.
    All,
    /// Runs that are done.
    Done,
    /// Runs that are not done.
    Unfinished,
}

/// The right to write a run's journal. Only the most recent lease of a run is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease(u64);

/// A stored reply to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    /// The name of the call in its run.
    pub call: String,
    /// What the call waited for: `gate`, `result`, or `unknown1` and so on.
    pub phase: String,
    /// The reply: JSON text.
    pub body: String,
}

/// A run with its journal and the replies to its calls, read at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The run. If it is [`RunStatus::Running`], its journal may still grow.
    pub run: StoredRun,
    /// All lines of the journal.
    pub journal: String,
    /// The replies to its calls.
    pub replies: Vec<StoredReply>,
}

/// A stored session.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// The ID of the session.
    pub session_id: String,
    /// The name of its tenant.
    pub tenant: String,
    /// The request that opened it: JSON text.
    pub opening: String,
    /// The number of successful turns.
    pub turns: u64,
    /// The number of turns that can be undone.
    pub undos: u64,
    /// When it was opened, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When it last changed, in milliseconds since 1970-01-01T00:00:00Z.
    pub updated_ms: i64,
    /// The saved session; `None` before the first turn.
    pub text: Option<String>,
}

/// The result of storing a new run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The run is stored and queued.
    New,
    /// The idempotency key was used before with the same request. This is the ID of that run.
    Known(String),
    /// The key was used for another request.
    OtherRequest,
}

/// An idempotency key with the digest of its request.
#[derive(Clone, Copy, Debug)]
pub struct RequestKey<'a> {
    /// The key chosen by the client.
    pub key: &'a str,
    /// The digest of the request.
    pub digest: &'a str,
}

/// Storage for data that must outlive the process. When a method returns without an error, its data survives even if
/// the process is killed right after.
///
/// A store has one owner at a time. If another process owns it, opening it fails with [`StoreError::Owned`]. If an
/// earlier owner still exists, its writes are rejected with [`StoreError::Fenced`].
pub trait Store: Send + Sync + 'static {
    /// Writes pending data back, so that the store's file is complete and can be copied. The store stays usable.
    ///
    /// # Errors
    /// If the store fails.
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Stores a new run as queued, with the idempotency key of its client.
    ///
    /// # Errors
    /// If the store fails.
    fn insert_run(
        &self,
        run_id: &str,
        tenant: &str,
        request: &str,
        key: Option<RequestKey<'_>>,
    ) -> Result<Inserted, StoreError>;

    /// Looks up an idempotency key of a tenant, and compares the digest of the request. Returns `None` if the key is
    /// unused.
    ///
    /// # Errors
    /// If the store fails.
    fn known_request(&self, tenant: &str, key: RequestKey<'_>) -> Result<Option<Inserted>, StoreError>;

    /// Checks that this process can write.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if this process no longer owns the store, or another error if writing fails.
    fn check_writable(&self) -> Result<(), StoreError>;

    /// Returns a run.
    ///
    /// # Errors
    /// If the store fails.
    fn run(&self, run_id: &str) -> Result<Option<StoredRun>, StoreError>;

    /// Returns a tenant's newest runs, or those after a given run. Reads neither requests nor answers.
    ///
    /// # Errors
    /// If the store fails.
    fn runs(
        &self,
        tenant: &str,
        which: Which,
        behind: Option<&RunSummary>,
        max: usize,
    ) -> Result<Vec<RunSummary>, StoreError>;

    /// Returns the runs that are not done, oldest first.
    ///
    /// # Errors
    /// If the store fails.
    fn unfinished(&self) -> Result<Vec<RunSummary>, StoreError>;

    /// Returns the number of runs by status.
    ///
    /// # Errors
    /// If the store fails.
    fn count_runs(&self) -> Result<Vec<(RunStatus, u64)>, StoreError>;

    /// Returns the number of runs of a tenant.
    ///
    /// # Errors
    /// If the store fails.
    fn count_runs_of(&self, tenant: &str) -> Result<u64, StoreError>;

    /// Takes the lease of a run. Earlier leases become invalid.
    ///
    /// # Errors
    /// If the store fails.
    fn take(&self, run_id: &str) -> Result<Lease, StoreError>;

    /// Sets the status of a run. A run that is done does not change.
    ///
    /// # Errors
    /// If the store fails or the lease is no longer valid.
    fn set_status(&self, lease: Lease, run_id: &str, status: RunStatus) -> Result<(), StoreError>;

    /// Marks a run as cancelled.
    ///
    /// # Errors
    /// If the store fails.
    fn cancel_run(&self, run_id: &str) -> Result<(), StoreError>;

    /// Stores the answer of a run, which is then done. A run that is done keeps its first answer.
    ///
    /// # Errors
    /// If the store fails or the lease is no longer valid.
    fn finish_run(&self, lease: Lease, run_id: &str, answer: &str) -> Result<(), StoreError>;

    /// Appends a line to the journal of a run.
    ///
    /// # Errors
    /// If the store fails or the lease is no longer valid.
    fn append(&self, lease: Lease, run_id: &str, line: &str) -> Result<(), StoreError>;

    /// Returns a run with its journal and the replies to its calls.
    ///
    /// # Errors
    /// If the store fails.
    fn snapshot(&self, run_id: &str) -> Result<Option<Snapshot>, StoreError>;

    /// Stores a reply to a call. If the call already has one, changes nothing and returns false.
    ///
    /// # Errors
    /// If the store fails.
    fn put_reply(&self, run_id: &str, reply: &StoredReply) -> Result<bool, StoreError>;

    /// Returns all replies to the calls of a run.
    ///
    /// # Errors
    /// If the store fails.
    fn replies(&self, run_id: &str) -> Result<Vec<StoredReply>, StoreError>;

    /// Stores a new session.
    ///
    /// # Errors
    /// If the store fails.
    fn insert_session(
        &self,
        session_id: &str,
        tenant: &str,
        opening: &str,
        text: Option<&str>,
    ) -> Result<(), StoreError>;

    /// Returns a session.
    ///
    /// # Errors
    /// If the store fails.
    fn session(&self, session_id: &str) -> Result<Option<StoredSession>, StoreError>;

    /// Returns the number of sessions of a tenant.
    ///
    /// # Errors
    /// If the store fails.
    fn count_sessions(&self, tenant: &str) -> Result<u64, StoreError>;

    /// Stores a session after a turn. At most `undos` earlier states are kept.
    ///
    /// # Errors
    /// If the store fails.
    fn put_turn(&self, session_id: &str, text: &str, undos: u64) -> Result<(), StoreError>;

    /// Undoes the last turn. Returns false if no turn can be undone.
    ///
    /// # Errors
    /// If the store fails.
    fn undo_turn(&self, session_id: &str) -> Result<bool, StoreError>;

    /// Deletes a session. Returns whether it existed.
    ///
    /// # Errors
    /// If the store fails.
    fn delete_session(&self, session_id: &str) -> Result<bool, StoreError>;

    /// Returns the secret stored under this name. If the name is new, stores `fresh` and returns it.
    ///
    /// # Errors
    /// If the store fails.
    fn secret(&self, name: &str, fresh: &[u8]) -> Result<Vec<u8>, StoreError>;

    /// Deletes runs that finished, sessions that last changed, and keys that were last used before a moment. Returns
    /// the number of deleted runs and sessions.
    ///
    /// # Errors
    /// If the store fails.
    fn sweep(&self, before_ms: i64) -> Result<u64, StoreError>;
}
