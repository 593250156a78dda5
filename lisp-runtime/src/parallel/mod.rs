//! `pmap` and `pcalls`: many machines that work for one.
//!
//! A [`Group`](group::Group) is one parallel call in progress. It starts workers within its window and the run's slots,
//! keeps their results, and joins them into the calling machine in order. A [`Task`](task::Task) is a worker that can
//! continue. An [`Executor`](executor::Executor) decides on which thread and when. No thread ever waits for a worker:
//! the last worker to end runs the caller.

pub(crate) mod executor;
pub(crate) mod group;
pub(crate) mod pool;
pub(crate) mod task;
#[cfg(test)]
mod tests;
