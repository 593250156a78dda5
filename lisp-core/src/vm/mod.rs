//! The machine: a run as a value. It computes; what it cannot do by itself it yields.

mod at_rest;
mod call;
mod exec;
mod grant;
mod parallel;
mod reply;
mod run;

pub use crate::stack::Effect;
pub use grant::{Grant, GrantBuilder};
pub use parallel::{Branch, ParallelCall, WorkerEnd};
pub use run::{Ending, Machine, Settings, Step, Usage};

#[cfg(test)]
mod tests;
