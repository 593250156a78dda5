//! `pmap` and `pcalls`: many machines at work for one.
//!
//! A [`Group`] is one parallel call under way: it starts workers as far as its window and the run's slots allow, keeps
//! what they came to, and joins it into the machine that called, in order. A [`Task`] is a worker that can go on; an
//! [`Exec`] decides on which thread and when. No thread ever waits for a worker: the last one to end takes the caller on.

mod atomic {
    pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
}
mod bounded;
mod budget;
mod exec;
mod group;
mod place;
mod pool;
mod sync;
mod task;
#[cfg(test)]
mod tests;
mod tool_threads;

pub(crate) use bounded::Ticket;
pub use budget::{ParallelBudget, Slot};
pub(crate) use exec::{Exec, Inline, OnPool};
pub(crate) use group::{Group, Owner};
pub(crate) use place::Place;
pub(crate) use pool::cores;
pub use pool::{Pool, PoolError};
pub(crate) use task::{Task, work};
pub(crate) use tool_threads::ToolThreads;
