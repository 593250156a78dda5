//! The standard error of a process, as collected by its parent.

use crate::wire::violation::Violation;
use std::borrow::Cow;

/// The beginning of a process's standard error. Output beyond a limit is a violation.
#[derive(Debug, Default)]
pub(crate) struct ErrorOutput {
    kept: Vec<u8>,
    bytes: usize,
}

impl ErrorOutput {
    /// The maximum number of bytes kept.
    const KEPT: usize = 4_000;
    /// The maximum number of bytes accepted.
    const TAKEN: usize = 1 << 20;

    /// Takes the next part of the output.
    pub(crate) fn take(&mut self, part: &[u8]) -> Result<(), Violation> {
        let room = Self::KEPT - self.kept.len();
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
        self.bytes += part.len();
        if self.bytes > Self::TAKEN { Err(Violation::Flood) } else { Ok(()) }
    }

    /// Returns the part of the output that was kept.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.kept)
    }
}
