//! The process layer of PTC-Lisp: a hard wall behind the meter, with the same answer.
//!
//! A [`Sandbox`] runs each program in a process of its own. The processes are forked from a *template*: the host's own
//! program started again, with one thread, warmed up and locked in once. What keeps a program in, layer by layer, is in
//! [`Layer`] and in `docs/security.md`. The host keeps the tools, the ledger, the prints and the clock, and decides what a
//! run came to from facts of its own; an outcome is the one that the run in-process would have, and of a run that had to be
//! killed it has the prints and the ledger up to then.
//!
//! This layer is for Linux. Elsewhere the crate is empty: what is not there cannot pretend.

#![deny(unsafe_code)]
#![cfg(target_os = "linux")]

mod bounded;
mod capability;
mod cgroup;
mod child;
mod filter;
mod lockdown;
mod managed;
mod pool;
mod running;
mod sandbox;
mod session;
mod slate;
#[allow(unsafe_code, reason = "the edge to the kernel; every block says why it is sound")]
mod sys;
mod template;
#[cfg(feature = "testing")]
pub mod testing;
mod verdict;
mod wire;

pub use bounded::{BoundedError, Bounds, Used, run_bounded, run_bounded_despite_threads, run_bounded_measured};
pub use capability::{Capabilities, capabilities};
pub use lockdown::{Layer, Layers, SetupError, State};
pub use managed::Managed;
pub use sandbox::{Builder, Sandbox};
pub use session::Session;
pub use slate::{CleanSlate, SlateFailure, SlateRun};

/// Turns this process into a template if it was started as one; otherwise does nothing. The first thing in `main` of a
/// host that makes a [`Sandbox`]: before any thread, and before anything that should not be there in every run.
pub fn init() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == template::ARGUMENT) {
        let config = arguments.next().unwrap_or_default();
        template::main(&config.to_string_lossy());
    }
}

/// The examples of the README, compiled, and run where that is possible.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
