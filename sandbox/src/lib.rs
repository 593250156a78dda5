//! The process layer of PTC-Lisp: a hard wall behind the meter, with the same answer.
//!
//! A [`Sandbox`] runs each program in a process of its own. The processes are forked from a *template*: the host's own
//! program started again, with one thread, warmed up and locked in once. What keeps a program in, layer by layer, is in
//! [`Layer`] and in `docs/security.md`. The host keeps the tools, the ledger, the prints and the clock, and decides what a
//! run came to from facts of its own; an outcome is the one that the run in-process would have, and of a run that had to be
//! killed it has the prints and the ledger up to then.
//!
//! All of it is for Linux. On other Unix systems there are bounded closures ([`run_bounded`]), with the limits that every Unix
//! has and a kill at the deadline; what they lack is said, and they are refused unless the caller is content with less
//! ([`Bounds::requiring`]). Elsewhere the crate is empty: what is not there cannot pretend.

#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod bounded;
mod bounds;
#[cfg(target_os = "linux")]
mod calls;
mod capability;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod functions;
#[cfg(all(target_os = "linux", feature = "testing"))]
mod fuzzed;
#[cfg(target_os = "linux")]
mod hot;
mod layers;
#[cfg(target_os = "linux")]
mod lockdown;
#[cfg(target_os = "linux")]
mod managed;
#[cfg(target_os = "linux")]
mod pool;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(all(target_os = "linux", feature = "testing"))]
pub mod portable;
#[cfg(target_os = "linux")]
mod running;
#[cfg(target_os = "linux")]
mod said;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod slate;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the edge to the kernel; every block says why it is sound")]
mod sys;
#[cfg(target_os = "linux")]
mod template;
#[cfg(all(target_os = "linux", feature = "testing"))]
pub mod testing;
#[cfg(target_os = "linux")]
mod turns;
#[allow(unsafe_code, reason = "the edge to the kernel; every block says why it is sound")]
mod unix;
mod verdict;
#[cfg(target_os = "linux")]
mod wire;

pub use bounds::{BoundedError, Bounds, Used};
pub use capability::Capabilities;
pub use layers::{Layer, Layers, SetupError, State};
#[cfg(not(target_os = "linux"))]
pub use portable::{capabilities, run_bounded, run_bounded_despite_threads, run_bounded_measured};
#[cfg(target_os = "linux")]
pub use {
    bounded::{run_bounded, run_bounded_despite_threads, run_bounded_measured},
    capability::capabilities,
    functions::{Function, run_function, run_function_measured},
    managed::Managed,
    sandbox::{Builder, Sandbox},
    session::Session,
    slate::{CleanSlate, SlateFailure, SlateRun},
};

/// Turns this process into a template if it was started as one; otherwise does nothing but to note that it was called,
/// without which [`Builder::build`] refuses. The first thing in `main` of a host that makes a [`Sandbox`]: before any thread,
/// and before anything that should not be there in every run.
#[cfg(target_os = "linux")]
pub fn init() {
    init_with(&[]);
}

/// [`init`] for a host that calls [`run_function`]: a process that was started for one of these functions runs it and ends.
///
/// ```no_run
/// use lisp_sandbox::{Bounds, Function, run_function};
/// fn main() {
///     lisp_sandbox::init_with(&[Function::new("words", |text: String| text.split(' ').count())]);
///     // From here on there may be threads.
///     let words: Result<usize, _> = run_function(&Bounds::default(), "words", &"three short words");
///     assert_eq!(words, Ok(3));
/// }
/// ```
#[cfg(target_os = "linux")]
pub fn init_with(functions: &[Function]) {
    template::INIT_CALLED.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    let Some(first) = arguments.next() else { return };
    let told = arguments.next().unwrap_or_default();
    if first == template::ARGUMENT {
        template::main(&told.to_string_lossy());
    } else if first == functions::ARGUMENT {
        functions::main(&told.to_string_lossy(), functions);
    }
}

/// The examples of the README, compiled, and run where that is possible.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../../README.md")]
pub struct Readme;
