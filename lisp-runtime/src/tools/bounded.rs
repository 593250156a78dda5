//! Threads whose number has a ceiling, and the queue of jobs that wait for one.

use super::sync::{self, Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The work of a thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// How long a thread without a job waits for one before it ends.
const KEEP: Duration = Duration::from_millis(500);

/// At most a fixed number of threads, started when they are needed, and jobs served in the order they came.
pub(crate) struct BoundedThreads {
    most: usize,
    state: Mutex<State>,
    arrived: Condvar,
}

/// Invariant: as long as a job is queued there is a thread that will look at the queue before it ends.
#[derive(Default)]
struct State {
    /// Jobs that no thread has taken, with their numbers, which rise.
    jobs: VecDeque<(u64, Job)>,
    last: u64,
    /// Threads that have not ended.
    threads: usize,
    /// Those of them that wait for a job. One that has been woken counts until it holds the lock again, so each idle thread
    /// stands for at most one queued job.
    idle: usize,
    closed: bool,
}

/// A job in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobTicket {
    number: u64,
    /// It waits because all threads that there may be are taken.
    pub(crate) waits: bool,
}

impl BoundedThreads {
    /// No threads yet, and never more than `most`.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(BoundedThreads { most, state: Mutex::new(State::default()), arrived: Condvar::new() })
    }

    /// The most threads there may be.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Queues a job; starts a thread for it when none is idle and the ceiling allows.
    ///
    /// # Errors
    /// The job, when there is no thread and none can be had.
    pub(crate) fn submit(self: &Arc<Self>, job: Job) -> Result<JobTicket, Job> {
        let mut state = sync::lock(&self.state);
        let is_served = state.idle > state.jobs.len();
        let mut waits = false;
        if !is_served {
            // Starting a thread with the lock held keeps the count exact whatever becomes of it.
            if state.threads < self.most && self.start_thread() {
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

    /// Takes a job back that no thread has begun; `None` when one has.
    pub(crate) fn withdraw(&self, ticket: JobTicket) -> Option<Job> {
        let mut state = sync::lock(&self.state);
        let at = state.jobs.binary_search_by_key(&ticket.number, |job| job.0).ok()?;
        state.jobs.remove(at).map(|job| job.1)
    }

    /// No job will come any more: idle threads end.
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
                // Jobs catch the panics of tools. One of our own must not cost the count a thread.
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

    /// Threads that have not ended, and jobs that none has taken.
    #[allow(dead_code, reason = "the model looks")]
    pub(crate) fn figures(&self) -> (usize, usize) {
        let state = sync::lock(&self.state);
        (state.threads, state.jobs.len())
    }
}
