//! What the service does, independent of HTTP and MCP: plain runs, durable runs and sessions.

mod admission;
mod attempt;
mod events;
mod metrics;
mod open_calls;
mod said;
pub(crate) mod schemas;
mod service;
mod sessions;
mod state;
mod stored_calls;
mod suspended;
mod turns;

pub(crate) use admission::RequestInProgress;
pub use admission::{Busy, TenantState};
pub use events::{Event, EventLog};
pub use open_calls::{Reply, ReplyError, WaitingCall};
pub use said::Said;
pub(crate) use service::RunList;
pub use service::{Done, RunState, ServiceError, digest};
pub use sessions::{Opening, SessionState, Turn};
pub use state::{Refused, Service};
