//! Standard output.

use crate::exit::Failure;
use std::io;
use std::path::Path;

/// Refuses to begin where standard output is closed: what is written would be lost, and nobody would be told.
pub(crate) fn is_open() -> Result<(), Failure> {
    if stands_in_for_closed_output() {
        let why = "standard output is closed; to drop what is written, write >/dev/null";
        return Err(Failure::Stream(io::Error::other(why)));
    }
    Ok(())
}

/// Is standard output what the standard library opens where it finds it closed: `/dev/null`, for reading too? A shell that
/// redirects to `/dev/null` opens it for writing only.
fn stands_in_for_closed_output() -> bool {
    let is_null = std::fs::read_link("/proc/self/fd/1").is_ok_and(|path| path == Path::new("/dev/null"));
    // Flags are octal; the last digit is the access mode, 2 for both.
    let both = |info: String| info.lines().any(|line| line.starts_with("flags:") && line.ends_with('2'));
    is_null && std::fs::read_to_string("/proc/self/fdinfo/1").is_ok_and(both)
}
