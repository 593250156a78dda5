//! The file descriptors of the host: how many runs they allow, and the error when none is left.

use crate::guest::layers::SetupError;
use crate::kernel::unix;
use rustix::process::Resource;
use std::io;

/// The descriptors of a run: its two sockets, its process, the one that wakes it after calls, and while it is ordered
/// the template's ends of its sockets.
const PER_RUN: usize = 6;
/// The descriptors of a template: its channel, and the sockets of its spare child.
const PER_TEMPLATE: usize = 3;
/// The descriptors needed while a template starts, and for the host's own files meanwhile.
const TO_START: usize = 10;

/// How many templates and runs the free descriptors allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) templates: usize,
    pub(crate) runs: usize,
}

impl Allowed {
    /// Returns what this process has descriptors for; at most the wanted number of templates. At least one of each.
    pub(crate) fn now(templates: usize) -> Allowed {
        Allowed::of(free().unwrap_or(usize::MAX), templates)
    }

    fn of(free: usize, templates: usize) -> Allowed {
        let free = free.saturating_sub(TO_START);
        let templates = templates.min(free / (PER_TEMPLATE + PER_RUN)).max(1);
        let runs = free.saturating_sub(templates.saturating_mul(PER_TEMPLATE)) / PER_RUN;
        Allowed { templates, runs: runs.max(1) }
    }
}

/// Returns the number of descriptors that this process may still open; `None` if it is not limited or not known.
fn free() -> Option<usize> {
    let limit = usize::try_from(unix::soft_limit(Resource::Nofile).ok()??).ok()?;
    match std::fs::read_dir("/proc/self/fd") {
        // The directory itself is one of them.
        Ok(open) => Some(limit.saturating_sub(open.count().saturating_sub(1))),
        Err(error) => is_shortage(&error).then_some(0),
    }
}

/// Returns true if an operation failed because no descriptor was left.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Returns true if a template did not start because too few descriptors were left, here or in the template.
pub(crate) fn failed_for_them(error: &SetupError) -> bool {
    let is_code = |code: i32| error.why == io::Error::from_raw_os_error(code).to_string();
    is_code(libc::EMFILE) || is_code(libc::ENFILE) || free().is_some_and(|free| free < TO_START)
}

/// Adds the limit and what to do to an error that has to do with descriptors.
pub(crate) fn with_limit(error: &SetupError) -> SetupError {
    let limit = unix::soft_limit(Resource::Nofile).ok().flatten();
    let now = limit.map_or(String::new(), |limit| format!(" (now {limit})"));
    let why = format!("{}: raise ulimit -n{now}, or have fewer --jobs, runs and sessions at once", error.why);
    SetupError::new(&error.step, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_allow_few_templates_and_runs() {
        let allowed = |free, templates| {
            let Allowed { templates, runs } = Allowed::of(free, templates);
            (templates, runs)
        };
        assert_eq!([allowed(0, 4), allowed(27, 4), allowed(60, 64)], [(1, 1), (1, 2), (5, 5)]);
        assert_eq!((allowed(96, 2), allowed(1000, 0)), ((2, 13), (1, 164)));
        assert!(Allowed::of(usize::MAX, 2).runs > 1 << 32);
    }
}
