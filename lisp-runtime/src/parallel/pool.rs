//! A fixed number of threads, chosen by the host, for workers that compute. Tools, which may block, have their own
//! threads (`tools/threads.rs`).

use crate::terms::per_process::PerProcess;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// The threads for the workers of `pmap` and `pcalls`.
///
/// Cheap to clone; any number of engines can share a pool. Workers of all runs take turns of 1 to 2 ms.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

/// A turn of a worker.
type Job = Box<dyn FnOnce() + Send>;

struct Inner {
    threads: rayon::ThreadPool,
    /// Jobs in the order of their arrival, from any thread or run. rayon's own queues would prefer jobs that a thread
    /// queued itself.
    ready: Mutex<VecDeque<Job>>,
}

/// The system cannot create the threads of a pool.
#[derive(Debug, thiserror::Error)]
#[error("no pool of {threads} threads: {reason}")]
pub struct PoolError {
    threads: usize,
    reason: String,
}

impl Pool {
    /// Creates a pool of `threads` threads, at least one.
    ///
    /// # Errors
    /// The system cannot create the threads.
    pub fn new(threads: usize) -> Result<Self, PoolError> {
        Pool::of(threads, rayon::ThreadPoolBuilder::new().thread_name(|i| format!("ptc-lisp-{i}")))
    }

    /// Creates a pool of unnamed threads: naming one is a system call that a sandboxed process may not make.
    pub(crate) fn without_names(threads: usize) -> Result<Self, PoolError> {
        Pool::of(threads, rayon::ThreadPoolBuilder::new())
    }

    fn of(threads: usize, builder: rayon::ThreadPoolBuilder) -> Result<Self, PoolError> {
        let threads = threads.max(1);
        let built =
            builder.num_threads(threads).build().map_err(|error| PoolError { threads, reason: error.to_string() })?;
        Ok(Pool(Arc::new(Inner { threads: built, ready: Mutex::default() })))
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.0.threads.current_num_threads()
    }

    /// Returns the pool that engines share by default: one thread per core, created on first use. `None` if the system
    /// cannot create threads.
    pub(crate) fn shared() -> Option<Self> {
        static SHARED: PerProcess<Option<Pool>> = PerProcess::new();
        SHARED.get_or_init(|| Pool::new(cores()).ok())?.clone()
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

/// Returns the number of cores.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}
