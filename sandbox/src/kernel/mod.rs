//! The interface to the kernel. All unsafe code of the crate is in this folder.

#[cfg(target_os = "linux")]
pub(crate) mod cgroup;
#[cfg(target_os = "linux")]
pub(crate) mod standard_streams;
#[cfg(target_os = "linux")]
pub(crate) mod sys;
pub(crate) mod unix;
