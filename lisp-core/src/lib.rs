//! PTC-Lisp: a small Clojure-like language with strict limits. Language models write programs in it, which transform
//! data and call the tools that the host grants.
//!
//! A run is a value. [`vm::Machine`] is a state machine that never uses the native stack for calls of a program; it owns
//! the run's value stack (arguments and local values), frame stack (which function continues where) and heap. It does no
//! I/O, reads no clock, starts no threads and calls no host closures. What it cannot do itself, such as a tool call, it
//! returns as an *effect*. The caller, called its *driver*, performs the effect and resumes the machine.
//!
//! ```text
//! source --lexer--> tokens --reader--> forms --analyzer--> core --compiler--> Program (immutable, Send + Sync)
//! ```
//!
//! A *form* is a piece of source as a tree. The *analyzer* finds what each name means, and rewrites the many special
//! forms into the few of a smaller language, the *core*.
//!
//! ```
//! use lisp_core::compile::Program;
//! use lisp_core::syntax::ReadLimits;
//! use lisp_core::vm::{Ending, Machine, Settings, Step};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), lisp_core::Error> {
//! let program = Program::compile("(reduce + (map inc [1 2 3]))", &ReadLimits::default())?;
//! let mut machine = Machine::new(Vec::new(), Settings::default());
//! machine.load(Arc::new(program))?;
//! let ending = loop {
//!     match machine.resume(10_000) {
//!         Step::Paused => {} // time to check a clock
//!         Step::Effect(_) => return Ok(()), // a tool call, workers, or the time: this program uses none
//!         Step::Done(ending) => break ending,
//!     }
//! };
//! assert!(matches!(ending, Ending::Value));
//! assert_eq!(machine.with_result(|_, value| value.as_f64()), Some(9.0));
//! # Ok(())
//! # }
//! ```
//!
//! Hosts should use `lisp_runtime`, which drives the machine. The API of this crate changes with the needs of
//! `lisp_runtime`.

#![deny(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]
// A number that does not fit is an error, never another number. Functions with a valid cast give the reason.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap))]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod builtins;
pub mod check;
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
mod sizes;
mod stack;
pub mod syntax;
pub mod text;
pub mod vm;

/// A table whose keys are names. Each table has its own hash seed, so that no program can cause collisions.
pub(crate) type Table<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

pub use error::{CallSite, Detail, Error, ErrorClass, LocalValue, Reason, Span, Trace};

/// The example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
