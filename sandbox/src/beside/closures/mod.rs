//! Closures and functions in separate processes.

#[cfg(target_os = "linux")]
pub(crate) mod bounded;
pub(crate) mod bounds;
#[cfg(target_os = "linux")]
pub(crate) mod functions;
#[cfg(any(not(target_os = "linux"), feature = "testing"))]
pub mod portable;
