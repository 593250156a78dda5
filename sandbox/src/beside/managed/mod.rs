//! For hosts in other languages: a process controlled through two pipes, and runs on a clean slate.

pub(crate) mod clean_slate;
pub(crate) mod pipes;
