//! The machine: a run as a value. It only computes; everything else, such as a tool call, it returns as an effect to the
//! driver, which resumes it.

mod at_rest;
mod call;
mod call_positions;
mod compaction;
mod definitions;
mod destructuring;
mod errors;
mod exec;
mod grant;
mod load;
mod locals;
mod machine;
mod notes;
mod output;
mod parallel;
mod prelude;
mod quick;
mod raise;
mod reply;
mod resume;
mod saved;
mod settings;
mod turns;
mod walks;
mod ways;

pub use crate::stack::Effect;
pub use call_positions::CallPosition;
pub use grant::{Grant, GrantBuilder};
pub use machine::{Ending, Machine, Step, Usage};
pub use parallel::{Branch, ParallelCall, WorkerEnd};
pub use saved::SavedProgram;
pub use settings::Settings;
pub use turns::TurnChange;

#[cfg(test)]
mod tests;
