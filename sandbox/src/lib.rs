//! The process layer of PTC-Lisp: a hard wall behind the meter, with the same answer.
//!
//! A [`Sandbox`] runs each program in a process of its own. The processes are forked from a *template*: the host's own
//! program started again, with one thread, warmed up and locked in once. What keeps a program in, layer by layer, is in
//! [`Layer`] and in `docs/security.md`. The host keeps the tools, the ledger, the prints and the clock, and decides what a
//! run came to from facts of its own; an outcome is the one that the run in-process would have, and of a run that had to be
//! killed it has the prints and the ledger up to then.
//!
//! This layer is for Linux. On other Unix systems there is [`run_bounded`] with limits of the system alone, and elsewhere
//! there is nothing.

#![deny(unsafe_code)]
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod bounded;
#[cfg(target_os = "linux")]
mod capability;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod lockdown;
#[cfg(target_os = "linux")]
mod managed;
#[cfg(target_os = "linux")]
mod pool;
#[cfg(target_os = "linux")]
mod running;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod slate;
#[allow(unsafe_code, reason = "the edge to the kernel; every block says why it is sound")]
mod sys;
#[cfg(target_os = "linux")]
mod template;
#[cfg(all(target_os = "linux", feature = "testing"))]
pub mod testing;
#[cfg(target_os = "linux")]
mod verdict;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub use bounded::{BoundedError, Bounds, run_bounded, run_bounded_despite_threads};
#[cfg(target_os = "linux")]
pub use capability::{Capabilities, capabilities};
#[cfg(target_os = "linux")]
pub use lockdown::{Layer, Layers, SetupError, State};
#[cfg(target_os = "linux")]
pub use managed::Managed;
#[cfg(target_os = "linux")]
pub use sandbox::{Builder, Sandbox};
#[cfg(target_os = "linux")]
pub use session::Session;
#[cfg(target_os = "linux")]
pub use slate::{CleanSlate, SlateFailure, SlateRun};

/// Turns this process into a template if it was started as one; otherwise does nothing. The first thing in `main` of a
/// host that makes a [`Sandbox`]: before any thread, and before anything that should not be there in every run.
#[cfg(target_os = "linux")]
pub fn init() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == template::ARGUMENT) {
        let config = arguments.next().unwrap_or_default();
        template::main(&config.to_string_lossy());
    }
}
