//! A bounded number of threads, with a queue of jobs that wait for one.

use super::sync::{self, Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The work of a thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// How long an idle thread waits for a job before it ends.
const KEEP: Duration = Duration::from_millis(500);

/// A bounded number of threads, started on demand. Jobs run in the order of their arrival.
pub(crate) struct BoundedThreads {
    max: usize,
    state: Mutex<State>,
    arrived: Condvar,
}

/// Invariant: while a job is queued, some thread will look at the queue before it ends.
#[derive(Default)]
struct State {
    /// Jobs that no thread has taken, with ascending numbers.
    jobs: VecDeque<(u64, Job)>,
    last: u64,
    /// Number of threads that have not ended.
    threads: usize,
    /// Number of threads that wait for a job. A woken thread counts until it holds the lock again, so each idle thread
    /// stands for at most one queued job.
    idle: usize,
    closed: bool,
}

/// A job in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobTicket {
    number: u64,
    /// Whether it waits because all threads are in use.
    pub(crate) waits: bool,
}

impl BoundedThreads {
    /// Creates the pool without any threads; there will be at most `max`.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(BoundedThreads { max, state: Mutex::new(State::default()), arrived: Condvar::new() })
    }

    /// Returns the maximum number of threads.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Queues a job. Starts a thread for it if none is idle and the maximum is not reached.
    ///
    /// # Errors
    /// The job, if there is no thread and none can be started.
    pub(crate) fn submit(self: &Arc<Self>, job: Job) -> Result<JobTicket, Job> {
        let mut state = sync::lock(&self.state);
        let is_served = state.idle > state.jobs.len();
        let mut waits = false;
        if !is_served {
            // Holding the lock while the thread starts keeps the count exact.
            if state.threads < self.max && self.start_thread() {
                state.threads += 1;
            } else if state.threads == 0 {
                return Err(job);
            } else {
                waits = true;
            }
        }
        state.last += 1;
        let number = state.last;
        state.jobs.push_back((number, job));
        if is_served {
            self.arrived.notify_one();
        }
        Ok(JobTicket { number, waits })
    }

    /// Takes back a job that no thread has started. Returns `None` if one has.
    pub(crate) fn withdraw(&self, ticket: JobTicket) -> Option<Job> {
        let mut state = sync::lock(&self.state);
        let at = state.jobs.binary_search_by_key(&ticket.number, |job| job.0).ok()?;
        state.jobs.remove(at).map(|job| job.1)
    }

    /// Ends idle threads. No more jobs are submitted.
    pub(crate) fn close(&self) {
        sync::lock(&self.state).closed = true;
        self.arrived.notify_all();
    }

    fn start_thread(self: &Arc<Self>) -> bool {
        let threads = self.clone();
        sync::spawn(move || threads.serve())
    }

    fn serve(&self) {
        let mut state = sync::lock(&self.state);
        loop {
            if let Some((_, job)) = state.jobs.pop_front() {
                drop(state);
                // Jobs catch the panics of tools. A panic of our own must not make the count wrong.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = sync::lock(&self.state);
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let (woken, timed_out) = sync::wait(&self.arrived, &self.state, state, KEEP);
            state = woken;
            state.idle -= 1;
            if timed_out && state.jobs.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }

    /// Returns the number of threads and of queued jobs.
    #[allow(dead_code, reason = "the model looks")]
    pub(crate) fn figures(&self) -> (usize, usize) {
        let state = sync::lock(&self.state);
        (state.threads, state.jobs.len())
    }
}
