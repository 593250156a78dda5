//! What the service does, independent of HTTP and MCP: plain runs, durable runs and sessions.

mod admission;
mod desk;
mod events;
mod life;
mod metrics;
mod open_calls;
mod parked;
mod said;
pub(crate) mod schemas;
mod service;
mod sessions;
mod state;
mod turns;

pub use admission::{Busy, TenantState};
pub use desk::{Reply, ReplyError, WaitingCall};
pub use events::{Event, EventLog};
pub use said::Said;
pub(crate) use service::RunList;
pub use service::{Done, RunState, ServiceError, digest};
pub use sessions::{Opening, SessionState, Turn};
pub use state::{Refused, Service};
