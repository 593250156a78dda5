//! PTC-Lisp: a small, bounded, Clojure-like language in which language models write programs that transform data and
//! call granted tools.
//!
//! A run is a value: [`vm::Machine`] is a pure, stackless state machine. It never calls out: no I/O, no clock, no
//! threads, no host closure. What it cannot do by itself it yields as an effect, and a driver does it and resumes.
//! All of a run's state is data that the machine owns: one value stack, one frame stack, one heap.
//!
//! ```text
//! source --lexer--> tokens --reader--> forms --analyzer--> core --compiler--> Program (immutable, Send + Sync)
//! ```

#![deny(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]
// A number that does not fit is an error, never another number. Where a cast is right, its function says why.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap))]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod builtins;
mod code;
pub mod compile;
pub mod context;
pub mod cost;
pub mod error;
#[allow(unsafe_code, reason = "arenas, values and compaction: the one room for it")]
pub mod heap;
pub mod json;
pub mod library;
mod meter;
mod natives;
pub mod regex;
mod stack;
pub mod syntax;
pub mod text;
pub mod vm;

/// A table whose keys are names. The hash is seeded anew for each table, so that no program can choose its collisions.
pub(crate) type Table<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

pub use error::{CallSite, Detail, Error, Reason, Span, Trace};
