//! The host's side: the sandbox, its pool of templates, a run in progress, and the verdict on how it ended.

#[cfg(all(target_os = "linux", feature = "async"))]
pub(crate) mod asynchronous;
#[cfg(target_os = "linux")]
mod at_work;
#[cfg(target_os = "linux")]
pub(crate) mod calls;
pub(crate) mod capability;
#[cfg(target_os = "linux")]
pub(crate) mod conversation;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
pub(crate) mod domain;
#[cfg(target_os = "linux")]
pub(crate) mod domains;
pub(crate) mod error_output;
#[cfg(target_os = "linux")]
mod moments;
#[cfg(target_os = "linux")]
mod open_calls;
#[cfg(target_os = "linux")]
pub(crate) mod pool;
#[cfg(all(target_os = "linux", feature = "async"))]
mod reactor;
#[cfg(target_os = "linux")]
pub(crate) mod running;
#[cfg(target_os = "linux")]
pub(crate) mod sandbox;
#[cfg(target_os = "linux")]
pub(crate) mod session;
#[cfg(target_os = "linux")]
pub(crate) mod socket_pair;
#[cfg(target_os = "linux")]
mod spans;
pub(crate) mod verdict;
