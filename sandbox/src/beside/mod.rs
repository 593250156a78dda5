//! Interfaces beside the wall. Nothing in the folders that lock a run in depends on them.

pub(crate) mod closures;
#[cfg(target_os = "linux")]
pub(crate) mod managed;
