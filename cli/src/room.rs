//! Limits how many runs go on at once if the address space of this process is limited (`ulimit -v`). A failed
//! allocation would end the process and all its runs. So a run starts only if there is space for all that its limits
//! allow.

use lisp_runtime::Limits;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The space of a thread: its stack, and the address space that the allocator reserves for it.
const THREAD: u64 = (8 + 64) << 20;
/// Space kept for everything else: the reader, the writer and helper threads.
const REST: u64 = 64 << 20;

/// The space that runs share, in bytes, or in runs.
#[derive(Debug)]
pub(crate) struct Room {
    max: u64,
    taken: Mutex<u64>,
    freed: Condvar,
}

/// The space of a run, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Taken<'a>(&'a Room, u64);

impl Room {
    /// Returns the space of this process, or `None` if it is not limited.
    pub(crate) fn of_process() -> Option<Room> {
        let (limit, used) = address_space()?;
        Some(Room::new(limit.saturating_sub(used).saturating_sub(REST)))
    }

    fn new(max: u64) -> Room {
        Room { max, taken: Mutex::new(0), freed: Condvar::new() }
    }

    /// Returns how many of the wanted threads fit, if the runs of each need this many bytes. At least one.
    pub(crate) fn threads(&self, wanted: usize, each: u64) -> usize {
        let fit = self.max / THREAD.saturating_add(each);
        wanted.min(usize::try_from(fit).unwrap_or(usize::MAX)).max(1)
    }

    /// Returns room for a number of runs of any size, for [`Room::one`].
    pub(crate) fn for_runs(max: usize) -> Room {
        Room::new(max as u64)
    }

    /// Waits until one more run fits in.
    pub(crate) fn one(&self) -> Taken<'_> {
        self.part(1)
    }

    /// Waits for the space of a run. A run that could need more than there is gets all of it, and runs alone.
    pub(crate) fn take(&self, limits: &Limits) -> Taken<'_> {
        self.part(needs(limits))
    }

    /// Waits for a part; at most for all there is.
    fn part(&self, part: u64) -> Taken<'_> {
        let part = part.min(self.max);
        let mut taken = self.lock();
        while taken.saturating_add(part) > self.max {
            taken = self.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += part;
        Taken(self, part)
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.lock() -= self.1;
        self.0.freed.notify_all();
    }
}

/// The address space that a run in this process may need. Its heap and those of its workers exist twice during
/// compaction; a result exists as a value and as texts.
pub(crate) fn needs(limits: &Limits) -> u64 {
    let bytes = |limit: u64| if limit == 0 { u64::MAX } else { limit };
    let workers = bytes(limits.worker_heap_bytes).saturating_mul(2).saturating_mul(limits.parallel_workers);
    [
        bytes(limits.heap_bytes).saturating_mul(2),
        bytes(limits.setup_heap_bytes).saturating_mul(2),
        workers,
        bytes(limits.result_bytes).saturating_mul(8),
        bytes(limits.prints_bytes).saturating_mul(4),
    ]
    .into_iter()
    .fold(0, u64::saturating_add)
}

/// The limit of the address space, and how much of it is used.
#[cfg(target_os = "linux")]
fn address_space() -> Option<(u64, u64)> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_whitespace().next()?.parse().ok()?;
    Some((limit, pages.saturating_mul(rustix::param::page_size() as u64)))
}

#[cfg(not(target_os = "linux"))]
fn address_space() -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn runs_have_no_more_than_there_is() {
        let limits = Limits::default();
        let room = Room::new(3 * needs(&limits));
        let (now, peak) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                let run = || {
                    for _ in 0..50 {
                        let taken = room.take(&limits);
                        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        now.fetch_sub(1, Ordering::SeqCst);
                        drop(taken);
                    }
                };
                std::thread::Builder::new().spawn_scoped(scope, run).unwrap();
            }
        });
        assert!(peak.into_inner() <= 3 && *room.lock() == 0);
        // A run larger than all the space runs alone.
        let alone = room.take(&Limits::unlimited());
        assert_eq!(*room.lock(), room.max);
        drop(alone);
        let each = needs(&limits);
        assert_eq!((room.threads(8, each), Room::new(0).threads(8, each)), (2, 1));
        assert_eq!((Room::new(u64::MAX).threads(8, each), room.threads(8, u64::MAX)), (8, 1));
    }
}
