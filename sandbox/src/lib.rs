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
//!
//! ```standalone_crate
//! # #[cfg(target_os = "linux")]
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     lisp_sandbox::init(); // first: this program is also the template
//!     let engine = lisp_runtime::Engine::builder().build()?;
//!     let sandbox = lisp_sandbox::Sandbox::builder().engine(engine).build()?;
//!     let request = lisp_runtime::Request::parse(r#"{"program": "(reduce + (range 10))"}"#)?;
//!     assert_eq!(sandbox.run(&request).value::<f64>()?, 45.0);
//!     Ok(())
//! }
//! # #[cfg(not(target_os = "linux"))]
//! # fn main() {}
//! ```
//!
//! # Features
//!
//! | feature | on by default | what it does |
//! |---|---|---|
//! | `async` | no | `Sandbox::run_async` and `eval_async`: futures for any executor |
//! | `tracing` | no | spans of the crate `tracing` for templates and processes, and those of the runtime |
//! | `testing` | no | native payloads in the place of programs, and layers taken away one at a time. For this crate's own tests only |

#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![cfg(unix)]

mod closures;
mod guest;
mod host;
#[allow(unsafe_code, reason = "the edge to the kernel; every block says why it is sound")]
mod kernel;
#[cfg(target_os = "linux")]
mod managed;
#[cfg(all(target_os = "linux", feature = "testing"))]
pub mod testing;
mod wire;

pub use closures::bounds::{BoundedError, Bounds, Used};
#[cfg(all(target_os = "linux", feature = "testing"))]
pub use closures::portable;
#[cfg(not(target_os = "linux"))]
pub use closures::portable::{capabilities, run_bounded, run_bounded_despite_threads, run_bounded_measured};
pub use guest::layers::{Layer, Layers, SetupError, State};
#[cfg(all(target_os = "linux", feature = "async"))]
pub use host::asynchronous::SandboxRun;
pub use host::capability::Capabilities;
#[cfg(target_os = "linux")]
pub use {
    closures::bounded::{run_bounded, run_bounded_despite_threads, run_bounded_measured},
    closures::functions::{Function, run_function, run_function_measured},
    host::capability::capabilities,
    host::domain::Domain,
    host::domains::DomainLimits,
    host::sandbox::{Builder, Sandbox},
    host::session::Session,
    kernel::standard_streams::output_was_closed,
    managed::clean_slate::{CleanSlate, SlateFailure, SlateRun},
    managed::pipes::Managed,
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
    guest::template::INIT_CALLED.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    let Some(first) = arguments.next() else { return };
    let told = arguments.next().unwrap_or_default();
    if first == guest::template::ARGUMENT {
        guest::template::main(&told.to_string_lossy());
    } else if first == closures::functions::ARGUMENT {
        closures::functions::main(&told.to_string_lossy(), functions);
    }
}

/// The examples of the repository's README, compiled, and run where that is possible.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The examples of the guide for hosts.
#[cfg(all(doctest, target_os = "linux", feature = "async"))]
#[doc = include_str!("../../docs/hosts.md")]
pub struct Guide;

/// The example of the crate's README, compiled.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../README.md")]
pub struct CrateReadme;
