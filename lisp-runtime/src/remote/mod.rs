//! A run in two halves, for process isolation: one drives the machine in its own process, the other keeps the tools,
//! the ledger and the prints. They exchange only data: a [`Job`] is sent to the guest half, which returns a [`Report`].
//!
//! [`GuestHalf`] uses the same driver as in-process runs. [`HostHalf`] has everything that must outlive it, so that
//! there is an outcome even if the guest half is killed.

#[cfg(feature = "async")]
mod async_call;
pub(crate) mod committed;
mod figures;
pub(crate) mod guest;
pub(crate) mod host;
pub(crate) mod host_call;
pub(crate) mod job;
pub(crate) mod report;
pub(crate) mod set;

pub use crate::api::turns::nothing_to_undo;
#[cfg(feature = "async")]
pub use crate::drive::alarm::Alarm;
#[cfg(feature = "async")]
pub use crate::drive::wake::{CallFutures, RunWaker};
pub use crate::terms::deadline::ReplayEnd;
pub use crate::terms::outcome::Figures;
pub use crate::terms::print_hook::PrintedBy;
#[cfg(feature = "async")]
pub use async_call::AsyncCall;
pub use committed::CommittedSession;
pub use guest::{GuestHalf, RunHost};
pub use host::{CallStarted, HostHalf};
pub use host_call::{CallDone, HostCall, QueuedCall};
pub use job::Job;
pub use report::{CallReply, GuestCall, Report};
pub use set::SentSet;
