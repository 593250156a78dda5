//! File descriptors: as many as the connections need, or fewer connections.

use super::connection::CLOSING;
use crate::config::Config;

/// Descriptors for the store, for processes and connections that wait for runs, and for what the program has open anyway.
const OTHERS: u64 = 256;
/// Descriptors for each slot: for the process of a run, and for its calls.
const OF_SLOT: u64 = 16;

/// Returns how many connections there can be: `max_connections`, or fewer if the system allows too few open files. Raises the
/// soft limit for that, but not beyond what is needed: processes that the service starts inherit it.
pub(super) fn max_connections(config: &Config) -> usize {
    let max = config.service.max_connections;
    let others = (config.service.concurrency as u64).saturating_mul(OF_SLOT).saturating_add(OTHERS + CLOSING as u64);
    let needed = (max as u64).saturating_add(others);
    let Some(files) = raised_to(needed) else { return max };
    let fitting = fitting(max, others, files);
    if fitting < max {
        tracing::warn!(
            max_connections = max,
            effective = fitting,
            files,
            "fewer connections than max_connections are possible: the process may open {files} files, and {max} connections need \
             {needed}; raise the limit (ulimit -n {needed}, or LimitNOFILE={needed} of the systemd unit), or lower max_connections to {fitting}"
        );
    }
    fitting
}

/// Returns how many connections fit into a number of files. At least half of them are for connections.
fn fitting(max: usize, others: u64, files: u64) -> usize {
    let left = files.saturating_sub(others).max(files / 2).max(1);
    usize::try_from(left).unwrap_or(usize::MAX).min(max)
}

/// Raises the soft limit of open files to what is needed, or to the hard limit. Returns the limit, or `None` without one.
#[cfg(unix)]
fn raised_to(needed: u64) -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current?;
    let raised = limit.maximum.map_or(needed, |hard| hard.min(needed));
    if raised <= soft {
        return Some(soft);
    }
    let set = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    Some(if set.is_ok() { raised } else { soft })
}

#[cfg(not(unix))]
fn raised_to(_: u64) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn connections_leave_files_for_the_rest() {
        for (max, others, files, wanted) in [
            (2_048, 400, 65_536, 2_048),
            (2_048, 400, 2_448, 2_048),
            (2_048, 400, 2_447, 2_047),
            (2_048, 400, 1_024, 624),
            (2_048, 400, 200, 100),
            (8, 400, 200, 8),
            (2_048, 400, 0, 1),
        ] {
            assert_eq!(fitting(max, others, files), wanted, "{max} {others} {files}");
        }
    }
}
