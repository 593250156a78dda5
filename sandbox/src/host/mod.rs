//! The host's side: the sandbox, its pool of templates, a run under way, and the verdict on how it ended.

#[cfg(target_os = "linux")]
pub(crate) mod calls;
pub(crate) mod capability;
#[cfg(target_os = "linux")]
pub(crate) mod pool;
#[cfg(target_os = "linux")]
pub(crate) mod running;
#[cfg(target_os = "linux")]
pub(crate) mod sandbox;
#[cfg(target_os = "linux")]
pub(crate) mod scheduling;
#[cfg(target_os = "linux")]
pub(crate) mod session;
pub(crate) mod verdict;
