//! Threads for workers that compute: a fixed number, the host's choice. Tools, which may wait for the outside world, have
//! threads of their own (`tools/threads.rs`).

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// Threads that the workers of `pmap` and `pcalls` run on. Cheap to clone; any number of engines may share one. Workers
/// of all runs take turns of about a millisecond.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

/// A turn of a worker.
type Job = Box<dyn FnOnce() + Send>;

struct Inner {
    threads: rayon::ThreadPool,
    /// First come, first served, whichever thread or run a job comes from: rayon's own queues prefer the jobs that
    /// a thread itself brought.
    ready: Mutex<VecDeque<Job>>,
}

/// The system gives no threads.
#[derive(Debug, thiserror::Error)]
#[error("no pool of {threads} threads: {reason}")]
pub struct PoolError {
    threads: usize,
    reason: String,
}

impl Pool {
    /// A pool of `threads` threads for computing, at least one.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn new(threads: usize) -> Result<Self, PoolError> {
        Pool::of(threads, rayon::ThreadPoolBuilder::new().thread_name(|i| format!("ptc-lisp-{i}")))
    }

    /// A pool whose threads have no names: to give one is a system call that not every process may make.
    pub(crate) fn without_names(threads: usize) -> Result<Self, PoolError> {
        Pool::of(threads, rayon::ThreadPoolBuilder::new())
    }

    fn of(threads: usize, builder: rayon::ThreadPoolBuilder) -> Result<Self, PoolError> {
        let threads = threads.max(1);
        let built =
            builder.num_threads(threads).build().map_err(|error| PoolError { threads, reason: error.to_string() })?;
        Ok(Pool(Arc::new(Inner { threads: built, ready: Mutex::default() })))
    }

    /// How many threads compute.
    pub fn threads(&self) -> usize {
        self.0.threads.current_num_threads()
    }

    /// The pool of engines that are given none: one thread for each core, made when it is first needed. `None` when the
    /// system gives no threads.
    pub(crate) fn shared() -> Option<Self> {
        static SHARED: OnceLock<Option<Pool>> = OnceLock::new();
        SHARED.get_or_init(|| Pool::new(cores()).ok()).clone()
    }

    /// Queues a job, which must not panic.
    pub(super) fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        self.0.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(Box::new(job));
        let inner = self.0.clone();
        self.0.threads.spawn(move || {
            let next = inner.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            drop(inner);
            if let Some(job) = next {
                job();
            }
        });
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

/// How many cores there are.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}
