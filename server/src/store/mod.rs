//! The store: keeps runs, journals, open calls, replies, events, sessions and keys after the process ends.
//!
//! A store may serve one process or many. Each run that is under way belongs to one *lease*: the right of one attempt to
//! write it. Every write of an attempt names its lease, and the store rejects it in the same step if a later attempt has
//! taken the run over. Leases expire unless they are renewed, so a run whose worker was killed is claimed again.

mod clock;
mod location;
mod memory;
mod news;
pub(crate) mod owner;
#[cfg(feature = "postgres")]
mod postgres;
mod rules;
mod sqlite;
mod upkeep;

pub use crate::config::StoreLocation;
pub use memory::MemoryStore;
pub use news::News;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub(crate) use rules::RESTORED;
pub use sqlite::SqliteStore;

use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;

/// An error of the store.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The lease of an attempt is no longer valid: the run was claimed again, or is over.
    #[error("the run was taken over by another worker")]
    LeaseLost,
    /// An attempt wrote lines that do not follow those that are stored.
    #[error("the journal has {stored} lines, and line {written} was written next")]
    OutOfOrder {
        /// The number of stored lines.
        stored: u64,
        /// The number of the first line that was written.
        written: u64,
    },
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
        /// The path or address of the store, without a password.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// There is no store in the file or the database.
    #[error("there is no store in {path}: name another {kind} with --store, or start `ptcl serve` there first")]
    Missing {
        /// The path or address, without a password.
        path: String,
        /// What it is: `file` or `database`.
        kind: &'static str,
    },
    /// The store was written by an earlier version, and was not to be changed.
    #[error(
        "the store {path} has the format {found}, and this version works with {known}: change it with `ptcl store migrate --store \
         {path}`, or start the service"
    )]
    Earlier {
        /// The path or address, without a password.
        path: String,
        /// The format of the store.
        found: i64,
        /// The format of this version.
        known: i64,
    },
    /// The copy of a store cannot be written.
    #[error("the copy cannot be written: {0}")]
    Copy(String),
    /// The store was written by a later version.
    #[error(
        "the store has the format {found}, and this version reads {known}: use the version that wrote it, or another store"
    )]
    Format {
        /// The format of the store.
        found: i64,
        /// The format that this version reads.
        known: i64,
    },
    /// The store cannot be reached or written at the moment: a full disk, a lock, a lost connection. Trying again later
    /// may succeed.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// What the store contains is damaged: it is not what was written.
    #[error("the store is damaged: {0}: look at it with `ptcl store check`, or restore a backup")]
    Damaged(String),
    /// The database failed in a way that trying again does not mend.
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// Returns whether the same operation may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::Unavailable(_))
    }
}

/// The result of an operation of a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The status of a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run waits for a slot.
    Queued,
    /// The run computes, or waits for its tools.
    Running,
    /// The run waits for an outside answer.
    Waiting,
    /// The run cannot continue as the service is now. Its `error` says why.
    Stuck,
    /// The run has its answer.
    Done,
}

impl RunStatus {
    /// All statuses.
    pub const ALL: [RunStatus; 5] =
        [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting, RunStatus::Stuck, RunStatus::Done];

    /// Returns the name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Waiting => "waiting",
            RunStatus::Stuck => "stuck",
            RunStatus::Done => "done",
        }
    }

    /// Returns the status of this name.
    pub fn of(name: &str) -> Option<Self> {
        RunStatus::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A run to store.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The ID of the run.
    pub run_id: String,
    /// The name of its tenant; `anonymous` if the service has no tenants.
    pub tenant: String,
    /// The request as it was received: JSON text.
    pub request: String,
}

/// An idempotency key with the digest of its request.
#[derive(Clone, Debug)]
pub struct RequestKey {
    /// The key chosen by the client.
    pub key: String,
    /// The digest of the request.
    pub digest: String,
}

/// The result of storing a new run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The run is stored and queued.
    New,
    /// The idempotency key was used before with the same request. This is the ID of that run.
    Known(String),
    /// The key was used for another request.
    OtherRequest,
}

/// A stored run without its request, journal and answer.
///
/// Its status is the one that clients see: a run that is queued, running or suspended and has open calls is
/// [`RunStatus::Waiting`].
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
    /// Why the run is stuck.
    pub error: Option<String>,
    /// When it was submitted, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When it last changed, in milliseconds since 1970-01-01T00:00:00Z.
    pub updated_ms: i64,
    /// The open calls, in the order of [`StoredCall::number`].
    pub calls: Vec<StoredCall>,
}

/// A stored run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    /// The run without its texts.
    pub summary: RunSummary,
    /// The request as it was received: JSON text.
    pub request: Arc<str>,
    /// The answer of a run that is done: JSON text.
    pub answer: Option<Arc<str>>,
}

/// An open call: it waits for an outside answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCall {
    /// The name of the call in its run.
    pub call: String,
    /// What the call waits for: `gate` (an approval), `result`, or `unknown1` and so on. The same call may wait for several answers,
    /// one after the other.
    pub phase: String,
    /// Its position among the calls that were opened by the run, from 1: set by the store.
    pub number: u64,
    /// The tool.
    pub tool: String,
    /// The arguments: JSON text.
    pub arguments: String,
    /// The question to decide or to find out.
    pub question: Option<String>,
}

/// A reply to an open call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    /// The name of the call in its run.
    pub call: String,
    /// What the call waited for.
    pub phase: String,
    /// The reply: JSON text.
    pub body: String,
}

/// The result of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replied {
    /// The reply is stored. If the run was suspended, it is queued.
    Taken,
    /// The call already has this reply, byte for byte.
    Repeated,
    /// The call already has another reply.
    Answered,
    /// The run has no such open call.
    NoCall,
    /// The run is stuck or done, and takes no replies.
    Over(RunStatus),
    /// The run was cancelled, and takes no replies: what they allow must not happen any more.
    Cancelled,
    /// There is no such run.
    NoRun,
}

/// The right of one attempt to write its run, until the run is claimed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The ID of the run.
    pub run_id: Arc<str>,
    /// The number of the attempt. Only the newest one can write.
    pub epoch: u64,
}

/// How many runs a worker can take.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// The maximum number of runs.
    pub slots: usize,
    /// The tenants whose runs it takes, each with a maximum. Runs are taken by turns in this order, the oldest of each
    /// tenant first.
    pub tenants: Vec<(String, usize)>,
}

/// A run that a worker has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The right to write it.
    pub lease: Lease,
    /// The run. Its status is [`RunStatus::Running`], and [`RunSummary::calls`] has the calls that are open in the store.
    pub run: StoredRun,
    /// The number of lines in its journal.
    pub lines: u64,
    /// The number of its events.
    pub events: u64,
    /// The number of printed lines among its events.
    pub printed: u64,
    /// How often its attempts were lost since its journal last grew.
    pub faults: u32,
}

/// The journal of a run and the replies to its calls, read at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// All lines, each with its newline.
    pub text: String,
    /// All replies, in the order in which they were taken.
    pub replies: Vec<StoredReply>,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number in its run, from 1.
    pub number: u64,
    /// `started`, `print`, `call`, `waiting`, `cut`, `answer` or `problem`.
    pub kind: String,
    /// The event's data: JSON on one line.
    pub data: Arc<str>,
}

/// Events of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The events, in order.
    pub events: Vec<StoredEvent>,
    /// Whether the run is done and these are the last ones. The answer is not among them.
    pub is_over: bool,
}

/// What an attempt of a run writes at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The number of the first line, from 1. A batch that is written again, because its result was lost, changes nothing.
    pub first_line: u64,
    /// Lines of the journal, each with its newline.
    pub lines: Vec<String>,
    /// The number of the first event, from 1.
    pub first_event: u64,
    /// Events: kind and data.
    pub events: Vec<(&'static str, Arc<str>)>,
    /// Calls that wait for an outside answer from now on. One that is open or answered already stays as it is.
    pub opened: Vec<StoredCall>,
    /// Calls, with their phases, that no longer wait. One that is answered stays as it is.
    pub closed: Vec<(String, String)>,
}

impl Batch {
    /// Returns whether it has nothing to write.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.events.is_empty() && self.opened.is_empty() && self.closed.is_empty()
    }
}

/// How an attempt of a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The run has its answer: JSON text. Its open calls are closed.
    Done(Arc<str>),
    /// The run waits for an outside answer. The number is that of the replies that the attempt has seen. If no call is open
    /// after its batch, the run is queued.
    Suspended(u64),
    /// The run is queued again, and can be claimed after a pause.
    Requeued {
        /// The pause.
        after: Duration,
        /// Whether this counts as a lost attempt.
        is_fault: bool,
    },
    /// The run cannot continue, with the reason. Its open calls stay. A run that was cancelled does not stick.
    Stuck(String),
}

/// The result of ending an attempt of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The attempt has ended.
    Ended,
    /// The attempt goes on, and its batch is stored: it was to be suspended and there are replies that it has not seen, or
    /// it was to be suspended or stuck and the run was cancelled.
    News,
}

/// The result of renewing a lease, an attempt's right to write its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// It is valid for another period.
    Held {
        /// Whether the run was cancelled.
        cancelled: bool,
        /// The number of replies to the calls of the run.
        replies: u64,
    },
    /// It is no longer valid.
    Lost,
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The tenant; all tenants if `None`.
    pub tenant: Option<String>,
    /// The status that clients see; any if `None`.
    pub status: Option<RunStatus>,
    /// Runs after this one, as a page named it: the creation time and the ID.
    pub after: Option<(i64, String)>,
    /// The maximum number of runs.
    pub max: usize,
}

/// Runs of a list, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// Whether there are more. A page ends early if its calls take more than [`PAGE_BYTES`].
    pub has_more: bool,
}

/// The bytes of open calls after which a page ends.
pub const PAGE_BYTES: usize = 4 << 20;

/// The maximum bytes of events that are read at once.
pub const EVENT_BYTES: usize = 1 << 20;

/// What a tenant has in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of its runs.
    pub runs: u64,
    /// The number of its runs that are queued or running, as far as the store knows: runs that wait for an outside answer
    /// and hold no slot do not count.
    pub queued: u64,
    /// The bytes of their requests, journals and answers.
    pub bytes: u64,
}

/// Runs and their journals. Every method is one step: it happens as a whole or not at all, and is visible to all
/// processes of the store afterwards. When a method returns without an error, its data survives even if the process is
/// killed right after.
#[async_trait]
pub trait RunStore: Send + Sync + 'static {
    /// Stores a new run as queued, with the idempotency key of its client. If the key is known, stores nothing.
    ///
    /// # Errors
    /// If the store fails.
    async fn submit(&self, run: NewRun, key: Option<RequestKey>) -> Result<Submitted>;

    /// Looks up an idempotency key of a tenant. Returns `None` if it is unused.
    ///
    /// # Errors
    /// If the store fails.
    async fn known_request(&self, tenant: &str, key: RequestKey) -> Result<Option<Submitted>>;

    /// Returns for each tenant how many of its runs can be claimed now, counted up to `max`.
    ///
    /// # Errors
    /// If the store fails.
    async fn claimable(&self, tenants: &[String], max: usize) -> Result<Vec<usize>>;

    /// Claims queued runs, and runs whose lease has expired, for a period. A run whose attempt was lost counts a fault.
    ///
    /// # Errors
    /// If the store fails.
    async fn claim(&self, worker: &str, period: Duration, room: &Room) -> Result<Vec<Claim>>;

    /// Renews leases for a period from now. Returns their states in order.
    ///
    /// # Errors
    /// If the store fails.
    async fn renew(&self, leases: &[Lease], period: Duration) -> Result<Vec<Renewed>>;

    /// Returns the journal of a run and the replies to its calls.
    ///
    /// # Errors
    /// If the store fails. A run that does not exist has an empty journal.
    async fn journal(&self, run_id: &str) -> Result<Journal>;

    /// Returns the replies to the calls of a run, in the order in which they were taken, without the first ones.
    ///
    /// # Errors
    /// If the store fails.
    async fn replies(&self, run_id: &str, skip: u64) -> Result<Vec<StoredReply>>;

    /// Writes what an attempt has come to.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the lease is no longer valid, [`StoreError::OutOfOrder`] if the lines do not follow
    /// those that are stored, or another error if the store fails.
    async fn write(&self, lease: &Lease, batch: Batch) -> Result<()>;

    /// Ends an attempt, and writes what it has come to in the same step. If the attempt has ended this way before, changes
    /// nothing and returns the same.
    ///
    /// # Errors
    /// Those of [`RunStore::write`].
    async fn end(&self, lease: &Lease, batch: Batch, end: End) -> Result<Ended>;

    /// Stores a reply to an open call, unless it has one. If the run is suspended, queues it in the same step. A reply that
    /// is sent again has the same result, also after the run is done.
    ///
    /// # Errors
    /// If the store fails.
    async fn reply(&self, run_id: &str, reply: StoredReply) -> Result<Replied>;

    /// Marks a run as cancelled. If it is suspended or stuck, queues it. A run that is done does not change. Returns
    /// whether the run exists.
    ///
    /// # Errors
    /// If the store fails.
    async fn cancel(&self, run_id: &str) -> Result<bool>;

    /// Queues a run that is stuck, and forgets its lost attempts. Returns whether it was.
    ///
    /// # Errors
    /// If the store fails.
    async fn retry(&self, run_id: &str) -> Result<bool>;

    /// Returns a run.
    ///
    /// # Errors
    /// If the store fails.
    async fn run(&self, run_id: &str) -> Result<Option<StoredRun>>;

    /// Returns events of a run after the first `skip` ones: some of them, if they take more than [`EVENT_BYTES`].
    ///
    /// # Errors
    /// If the store fails. A run that does not exist has no events and is not over.
    async fn events(&self, run_id: &str, skip: u64) -> Result<Events>;

    /// Returns a page of runs, newest first. Reads neither requests nor journals nor answers.
    ///
    /// # Errors
    /// If the store fails.
    async fn list(&self, query: &Query) -> Result<Page>;

    /// Returns what a tenant has in the store.
    ///
    /// # Errors
    /// If the store fails.
    async fn usage(&self, tenant: &str) -> Result<Usage>;

    /// Returns the number of runs by status, of those that are not done.
    ///
    /// # Errors
    /// If the store fails.
    async fn unfinished(&self) -> Result<Vec<(RunStatus, u64)>>;

    /// Subscribes to news of the store.
    fn news(&self) -> broadcast::Receiver<News>;
}

/// A session to store.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The ID of the session.
    pub session_id: String,
    /// The name of its tenant.
    pub tenant: String,
    /// The request that opened it: JSON text.
    pub opening: String,
    /// The saved session; `None` before the first turn.
    pub text: Option<String>,
}

/// How much a tenant may have in sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// The maximum number of sessions.
    pub sessions: u64,
    /// The maximum bytes of their texts: the openings, and all saved sessions that are kept.
    pub bytes: u64,
}

/// The result of storing a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It is stored.
    New,
    /// The tenant has the maximum number of sessions.
    TooMany,
    /// With it, the sessions of the tenant would have so many bytes.
    TooLarge(u64),
}

/// The result of storing a session after a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is stored, and the turn has ended.
    Stored(SessionSummary),
    /// With it, the sessions of the tenant would have so many bytes. Nothing has changed, and the turn is still valid.
    TooLarge(u64),
    /// The turn is no longer valid.
    Lost,
}

/// The result of undoing a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// It is undone, and the turn that did it has ended.
    Done(SessionSummary),
    /// There is no turn to undo. The turn has ended.
    Nothing,
    /// The turn is no longer valid.
    Lost,
}

/// A stored session, without its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// The ID of the session.
    pub session_id: String,
    /// The name of its tenant.
    pub tenant: String,
    /// The number of successful turns.
    pub turns: u64,
    /// The number of turns that can be undone.
    pub undos: u64,
    /// The length of its texts in bytes, without those of earlier turns.
    pub bytes: u64,
    /// When it was opened, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_ms: i64,
    /// When it last changed, in milliseconds since 1970-01-01T00:00:00Z.
    pub updated_ms: i64,
}

/// A stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Its figures.
    pub summary: SessionSummary,
    /// The request that opened it: JSON text.
    pub opening: String,
    /// The saved session; `None` before the first turn.
    pub text: Option<String>,
}

/// The right to change a session: of one turn, until it ends or its period is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnLease {
    /// The ID of the session.
    pub session_id: Arc<str>,
    /// The number of the turn. Only the newest one can write.
    pub epoch: u64,
}

/// The result of starting a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnStart {
    /// The turn has started.
    Started(TurnLease, Box<SessionSummary>),
    /// Another turn is in progress.
    Busy,
    /// The tenant has no such session.
    NoSession,
}

/// Sessions.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// Stores a new session, if it is within the limits of its tenant.
    ///
    /// # Errors
    /// If the store fails.
    async fn open_session(&self, session: NewSession, limits: SessionLimits) -> Result<Opened>;

    /// Returns a session without its texts, which are not read.
    ///
    /// # Errors
    /// If the store fails.
    async fn session_summary(&self, session_id: &str) -> Result<Option<SessionSummary>>;

    /// Returns a session with its texts, which may be large.
    ///
    /// # Errors
    /// If the store fails.
    async fn session(&self, session_id: &str) -> Result<Option<StoredSession>>;

    /// Starts a turn of a tenant's session, for a period.
    ///
    /// # Errors
    /// If the store fails.
    async fn begin_turn(&self, tenant: &str, session_id: &str, period: Duration) -> Result<TurnStart>;

    /// Renews the lease of a turn for a period from now. Returns whether it is still valid.
    ///
    /// # Errors
    /// If the store fails.
    async fn renew_turn(&self, turn: &TurnLease, period: Duration) -> Result<bool>;

    /// Stores a session after a turn, and ends the turn, if the sessions of its tenant have at most `max_bytes` then. At most
    /// `undos` earlier states are kept. If this turn has been stored, changes nothing: a result may be lost, and the turn stored
    /// again, also after up to a hundred turns of other clients.
    ///
    /// # Errors
    /// If the store fails.
    async fn put_turn(&self, turn: &TurnLease, text: String, undos: u64, max_bytes: u64) -> Result<Put>;

    /// Undoes the last successful turn, and ends this one. If this turn has ended so, changes nothing.
    ///
    /// # Errors
    /// If the store fails.
    async fn undo_turn(&self, turn: &TurnLease) -> Result<Undo>;

    /// Ends a turn that changes nothing.
    ///
    /// # Errors
    /// If the store fails.
    async fn end_turn(&self, turn: &TurnLease) -> Result<()>;

    /// Deletes the session of a turn. Returns false if the turn is no longer valid.
    ///
    /// # Errors
    /// If the store fails.
    async fn delete_session(&self, turn: &TurnLease) -> Result<bool>;
}

/// What is deleted because of its age. Times are in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sweep {
    /// Runs that finished before.
    pub finished_before_ms: i64,
    /// Sessions that last changed before, unless a turn is in progress.
    pub sessions_before_ms: i64,
    /// Runs that are not done and were submitted before are cancelled, as [`RunStore::cancel`] does.
    pub submitted_before_ms: Option<i64>,
}

/// The number of problems after which a check ends.
const MAX_PROBLEMS: usize = 100;

/// The format of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// The format that the store has; 0 if it is empty.
    pub found: i64,
    /// The format that this version writes.
    pub known: i64,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The number of runs that were looked at.
    pub runs: u64,
    /// The number of lines in their journals.
    pub lines: u64,
    /// What is wrong: at most 100 problems.
    pub problems: Vec<String>,
}

/// A store of the service.
#[async_trait]
pub trait Store: RunStore + SessionStore {
    /// Checks that the store can be written.
    ///
    /// # Errors
    /// If it cannot.
    async fn check_writable(&self) -> Result<()>;

    /// Returns the secret stored under this name. If the name is new, stores `fresh` and returns it.
    ///
    /// # Errors
    /// If the store fails.
    async fn secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>>;

    /// Returns when the last run was submitted that came from a backup, in milliseconds since 1970-01-01T00:00:00Z; -1 if none
    /// did. If `marks`, all runs in the store did.
    ///
    /// # Errors
    /// If the store fails.
    async fn restored_until(&self, marks: bool) -> Result<i64>;

    /// Deletes what is old: runs with their journals, replies, events and idempotency keys, and sessions. Returns how many
    /// runs and sessions were deleted. A key is kept as long as its run.
    ///
    /// # Errors
    /// If the store fails.
    async fn sweep(&self, sweep: Sweep) -> Result<u64>;

    /// Writes pending data back and closes connections. Later operations fail.
    ///
    /// # Errors
    /// If the store fails.
    async fn close(&self) -> Result<()>;
}
