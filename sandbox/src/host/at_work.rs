//! Counts the runs whose programs are running.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of runs of this process whose programs are running.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// Counts a run whose program is running, until it is dropped.
#[derive(Debug)]
pub(crate) struct AtWork(());

impl AtWork {
    pub(crate) fn begin() -> AtWork {
        AT_WORK.fetch_add(1, Ordering::Relaxed);
        AtWork(())
    }

    /// Returns true if there are two processors for each running program, one for the process and one for the host's
    /// busy wait. Otherwise a busy wait would take time from other runs, or from the process that it waits for.
    pub(crate) fn leaves_room() -> bool {
        static PROCESSORS: OnceLock<usize> = OnceLock::new();
        let processors = PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, Into::into));
        AT_WORK.load(Ordering::Relaxed).saturating_mul(2) <= *processors
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_awake_beside_many() {
        let many = 1 + std::thread::available_parallelism().unwrap().get() / 2;
        let runs: Vec<AtWork> = (0..many).map(|_| AtWork::begin()).collect();
        assert!(!AtWork::leaves_room());
        drop(runs);
    }
}
