//! The data sent between the host, a template and a run's process.

#[cfg(target_os = "linux")]
pub(crate) mod frames;
#[cfg(target_os = "linux")]
pub(crate) mod guest_message;
#[cfg(target_os = "linux")]
pub(crate) mod messages;
#[cfg(target_os = "linux")]
pub(crate) mod metered;
#[cfg(target_os = "linux")]
pub(crate) mod spin;
pub(crate) mod violation;
