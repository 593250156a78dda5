//! A run in two halves: one drives the machine in a process of its own, the other keeps the tools, the ledger and the
//! prints. All that passes between them is data: a [`Job`] goes to the guest half, a [`Report`] comes back.
//!
//! [`GuestHalf`] is the driver that runs in-process too. [`HostHalf`] has all that must outlive it, so that there is an
//! outcome when the guest half was killed.

#[cfg(feature = "async")]
mod async_call;
pub(crate) mod committed;
mod figures;
pub(crate) mod footprint;
pub(crate) mod guest;
pub(crate) mod host;
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
pub use footprint::{CallFootprint, LinesFootprint, ReportFootprint};
pub use guest::{GuestHalf, RunHost};
pub use host::{CallDone, CallStarted, HostCall, HostHalf, QueuedCall};
pub use job::Job;
pub use report::{CallReply, ErrorData, GuestCall, Report};
pub use set::SentSet;
