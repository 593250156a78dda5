//! Time as the processor spends it on the calling thread: what a busy machine takes away does not count.

#![allow(dead_code, reason = "a part of several test programs, none of which uses all of it")]

use std::time::Duration;

/// Returns the processor time of the calling thread.
#[cfg(unix)]
pub(crate) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the time since the first call: there is no clock of the thread here.
#[cfg(not(unix))]
pub(crate) fn thread_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// Calls a function; returns its result and the processor time that it took on this thread.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = thread_time();
    let result = work();
    (result, thread_time() - start)
}

/// The calling thread, for another one that asks how long it has worked.
#[cfg(target_os = "linux")]
pub(crate) struct Worker(rustix::thread::Pid);

#[cfg(target_os = "linux")]
impl Worker {
    pub(crate) fn current() -> Worker {
        Worker(rustix::thread::gettid())
    }

    /// Returns its processor time, to some milliseconds while it is at work.
    pub(crate) fn time(&self) -> Duration {
        let path = format!("/proc/self/task/{}/schedstat", self.0.as_raw_nonzero());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Duration::from_nanos(text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) struct Worker;

#[cfg(not(target_os = "linux"))]
impl Worker {
    pub(crate) fn current() -> Worker {
        Worker
    }

    /// Returns the time since the first call.
    pub(crate) fn time(&self) -> Duration {
        static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }
}
