//! What the service does, independent of HTTP and MCP: plain runs, durable runs and sessions.

mod admission;
mod attempt;
mod cancelled;
mod earlier_reply;
mod events;
mod metrics;
mod open_calls;
mod operator;
mod reader;
mod replies;
mod restored;
pub(crate) mod schemas;
mod service;
mod sessions;
mod state;
mod stored_calls;
mod submit;
mod watch;
mod worker;
mod writer;

pub(crate) use admission::{BodyRoom, InTurn, RequestInProgress, Slot};
pub use admission::{Busy, TenantState};
pub use earlier_reply::EarlierReply;
pub use events::Event;
pub use open_calls::{Reply, ReplyError, WaitingCall};
pub use operator::{KnownRun, Operator, StoredWork};
pub use reader::EventReader;
pub use service::{PromptRequest, ServiceError};
pub use sessions::{Opening, SessionState, Turn};
pub use state::{Refused, Service};
pub use submit::{Done, ListQuery, RunList, RunState, digest};
pub use watch::Watcher;
