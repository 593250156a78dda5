//! Process isolation for PTC-Lisp: runs each program in a separate process, with the same outcome as in-process. The
//! process is *locked down*: it has no files, no network, and only a few system calls.
//!
//! A [`Sandbox`] runs each program in its own process, which is forked from a *template*. A template is the host's own
//! program, started again with one thread, prepared and locked down once. [`Layer`] and `docs/security.md` list the
//! layers that protect the host. Tools, ledger, prints and the clock of the deadline stay in the host, which decides how a
//! run ended without trusting the run's process. The outcome is the same as that of an in-process run. The outcome of a
//! killed run has the prints and the ledger up to the kill.
//!
//! The crate is for Linux. On other Unix systems it can only run closures in a process of their own ([`run_bounded`]),
//! with the limits that every Unix has and a kill at the deadline. Calls fail there until the caller accepts the missing layers
//! ([`Bounds::requiring`]). On systems that are not Unix the crate is empty.
//!
//! ```standalone_crate
//! # #[cfg(target_os = "linux")]
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     lisp_sandbox::init(); // first, before any thread
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
//! | `async` | no | `Sandbox::run_async` and `eval_async`: futures that any async executor can run |
//! | `tracing` | no | spans of the crate `tracing` for templates and processes, and those of the runtime |
//! | `testing` | no | native payloads in place of programs, and layers removed one by one; for this crate's tests |

#![deny(unsafe_code)]
// docs.rs says of each item which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![cfg(unix)]

mod beside;
mod guest;
mod host;
#[allow(unsafe_code, reason = "the edge to the kernel; every block says why it is sound")]
mod kernel;
#[cfg(all(target_os = "linux", feature = "testing"))]
pub mod testing;
mod wire;

pub use beside::closures::bounds::{BoundedError, Bounds, Used};
#[cfg(all(target_os = "linux", feature = "testing"))]
pub use beside::closures::portable;
#[cfg(not(target_os = "linux"))]
pub use beside::closures::portable::{capabilities, run_bounded, run_bounded_despite_threads, run_bounded_measured};
pub use guest::layers::{Layer, Layers, SetupError, State};
#[cfg(all(target_os = "linux", feature = "async"))]
pub use host::asynchronous::SandboxRun;
pub use host::capability::Capabilities;
#[cfg(target_os = "linux")]
pub use {
    beside::closures::bounded::{run_bounded, run_bounded_despite_threads, run_bounded_measured},
    beside::closures::functions::{Function, run_function, run_function_measured},
    beside::managed::clean_slate::{CleanSlate, SlateFailure, SlateRun},
    beside::managed::pipes::Managed,
    host::capability::capabilities,
    host::domain::Domain,
    host::domains::DomainLimits,
    host::sandbox::{Builder, Sandbox},
    host::session::Session,
    kernel::standard_streams::output_was_closed,
};

/// Turns this process into a template if it was started as one. Otherwise returns at once.
///
/// Call it first in `main`: before any thread starts, and before you create anything that the processes of runs must
/// not inherit.
/// [`Builder::build`] fails if it was not called.
#[cfg(target_os = "linux")]
pub fn init() {
    init_with(&[]);
}

/// Like [`init`], for a host that calls [`run_function`]. A process that was started for one of these functions runs it
/// and exits.
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
    let order = arguments.next().unwrap_or_default();
    if first == guest::template::ARGUMENT {
        guest::template::main(&order.to_string_lossy());
    } else if first == beside::closures::functions::ARGUMENT {
        beside::closures::functions::main(&order.to_string_lossy(), functions);
    }
}

/// The example of the crate's README: compiled.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../README.md")]
pub struct CrateReadme;
