//! `pmap` and `pcalls`: many machines at work for one.
//!
//! A [`Group`](group::Group) is one parallel call under way: it starts workers as far as its window and the run's slots
//! allow, keeps their results, and joins them into the machine that called, in order. A [`Task`](task::Task) is a worker that
//! can go on; an [`Executor`](executor::Executor) decides on which thread and when. No thread ever waits for a worker: the
//! last worker to end runs the caller.

pub(crate) mod executor;
pub(crate) mod group;
pub(crate) mod pool;
pub(crate) mod task;
#[cfg(test)]
mod tests;
