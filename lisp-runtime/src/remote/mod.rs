//! A run in two halves: one drives the machine where nothing else is, the other keeps the tools, the ledger and the
//! prints. What passes between them is data: a [`Job`] goes there, a [`Report`] comes back.
//!
//! The far half ([`Far`]) is the driver that runs in-process too. The near half ([`Home`]) has all that must outlive it,
//! so that an outcome can be made of a far half that was killed.

mod far;
mod footprint;
mod home;
mod job;
mod report;
mod set;

pub use far::{Far, FarCall, RunHost};
pub use footprint::{CallFootprint, LinesFootprint, ReportFootprint};
pub use home::{Begun, Ended, Home, PendingCall, QueuedCall};
pub use job::Job;
pub use report::{CallReply, Fault, Figures, Report};
pub use set::SentSet;
