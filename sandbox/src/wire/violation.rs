//! Violations of the protocol that the host finds in what a process sends.

/// What is wrong with a packet or frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "some are for process isolation"))]
pub(crate) enum Violation {
    #[error("an invalid packet")]
    Garbage,
    #[error("a frame that is too long")]
    TooLong,
    #[error("a packet out of order")]
    OutOfPlace,
    #[error("an unexpected frame")]
    Unexpected,
    #[error("an unreadable frame")]
    Unreadable,
    #[error("too much output on standard error")]
    Flood,
    #[error("too many calls at once")]
    Calls,
    /// A program can cause this without breaking the protocol, so it has its own error.
    #[error("a call after too many that were given up")]
    GivenUpCalls,
}
