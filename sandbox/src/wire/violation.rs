//! Violations of the protocol that the host finds in what a process sends.

/// What is wrong with a packet or frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "some are for process isolation"))]
pub(crate) enum Violation {
    #[error("a packet that is no frame")]
    Garbage,
    #[error("a frame longer than it may be")]
    TooLong,
    #[error("a part of a frame out of its place")]
    OutOfPlace,
    #[error("a frame that has no place here")]
    Unexpected,
    #[error("a frame that cannot be read")]
    Unreadable,
    #[error("more on standard error than it may be")]
    Flood,
    #[error("more calls at once than it may have workers")]
    Calls,
    /// A program can cause this without breaking the protocol, so it has its own error.
    #[error("a call after too many that were given up")]
    GivenUpCalls,
}
