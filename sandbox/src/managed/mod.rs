//! Programs for hosts in other languages: two pipes to a process that lives on, and runs on a clean slate.

pub(crate) mod clean_slate;
pub(crate) mod pipes;
