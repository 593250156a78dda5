//! Threads for workers. Those that compute are a fixed number, the host's choice; tools, which may wait for the outside
//! world, have threads of their own, as many as there are calls under way.

use super::{Task, work};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Threads that the workers of `pmap` and `pcalls` run on. Cheap to clone; any number of engines may share one. Workers
/// of all runs take turns of about a millisecond.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    threads: rayon::ThreadPool,
    /// First come, first served, whichever thread or run a task comes from: rayon's own queues prefer the tasks that
    /// a thread itself brought.
    ready: Mutex<VecDeque<Task>>,
    tools: Arc<ToolThreads>,
}

/// The system gives no threads.
#[derive(Debug, thiserror::Error)]
#[error("no pool of {threads} threads: {reason}")]
pub struct PoolError {
    threads: usize,
    reason: String,
}

impl Pool {
    /// A pool of so many threads for computing, at least one.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn new(threads: usize) -> Result<Self, PoolError> {
        let threads = threads.max(1);
        let built = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("ptc-lisp-{i}"))
            .build()
            .map_err(|error| PoolError { threads, reason: error.to_string() })?;
        Ok(Pool(Arc::new(Inner { threads: built, ready: Mutex::default(), tools: Arc::default() })))
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

    pub(super) fn spawn(&self, task: Task) {
        self.0.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(task);
        let inner = self.0.clone();
        self.0.threads.spawn(move || {
            let next = inner.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            drop(inner);
            if let Some(task) = next {
                work(task);
            }
        });
    }

    /// Runs what may wait on a thread of its own.
    pub(super) fn block(&self, job: Job) {
        self.0.tools.run(job);
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

type Job = Box<dyn FnOnce() + Send>;

/// Threads for calls that may wait. One that has nothing to do for a while ends.
#[derive(Default)]
struct ToolThreads {
    state: Mutex<Jobs>,
    arrived: Condvar,
}

#[derive(Default)]
struct Jobs {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job nobody has put there yet.
    idle: usize,
}

impl ToolThreads {
    const KEEP: Duration = Duration::from_secs(2);

    fn run(self: &Arc<Self>, job: Job) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back(job);
        if state.idle > 0 {
            state.idle -= 1;
            self.arrived.notify_one();
            return;
        }
        drop(state);
        let its_own = self.clone();
        let spawned = thread::Builder::new().name("ptc-lisp-tool".into()).spawn(move || its_own.serve());
        if spawned.is_err() {
            // Better here and late than not at all.
            let job = self.state.lock().unwrap_or_else(PoisonError::into_inner).jobs.pop_front();
            if let Some(job) = job {
                job();
            }
        }
    }

    fn serve(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.idle += 1;
            let (woken, waited) = self.arrived.wait_timeout(state, Self::KEEP).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if state.jobs.is_empty() && waited.timed_out() {
                state.idle = state.idle.saturating_sub(1);
                return;
            }
            if state.jobs.is_empty() {
                // Another thread took the job that this one was woken for, and is not idle any more in its place.
                state.idle = state.idle.saturating_sub(1);
            }
        }
    }
}
