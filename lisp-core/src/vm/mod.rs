//! The machine: a run as a value. It computes; what it cannot do by itself it yields.

mod call;
mod exec;
mod grant;
mod parallel;
mod prelude;
mod reply;
mod run;
mod state;

pub(crate) use call::{Called, key_of};
pub(crate) use exec::Out;
pub use grant::{Grant, GrantBuilder};
pub use parallel::{Branch, ParallelCall, WorkerEnd};
pub use run::{Ending, Machine, Settings, Step, Usage};
pub(crate) use state::{Code, Frame, State, Unit, slot};

#[cfg(test)]
mod tests;
