//! The threads for tool calls under every order in which threads can interleave: the same file, over the locks of a model
//! checker.

mod sync {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

    /// Threads that live, and the most there were.
    pub(crate) static ALIVE: AtomicUsize = AtomicUsize::new(0);
    pub(crate) static PEAK: AtomicUsize = AtomicUsize::new(0);
    /// Idle threads find at once that their time is over.
    pub(crate) static IMPATIENT: AtomicBool = AtomicBool::new(false);
    /// The system gives this many threads more.
    pub(crate) static GIVEN: AtomicUsize = AtomicUsize::new(usize::MAX);

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    pub(crate) fn wait<'a, T>(
        condvar: &Condvar,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        _most: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        if IMPATIENT.load(Ordering::SeqCst) {
            drop(guard);
            loom::thread::yield_now();
            return (lock(mutex), true);
        }
        (condvar.wait(guard).unwrap(), false)
    }

    pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
        if GIVEN.load(Ordering::SeqCst) == 0 {
            return false;
        }
        GIVEN.fetch_sub(1, Ordering::SeqCst);
        PEAK.fetch_max(ALIVE.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        loom::thread::spawn(|| {
            work();
            ALIVE.fetch_sub(1, Ordering::SeqCst);
        });
        true
    }

    /// Begins a model anew.
    pub(crate) fn reset(impatient: bool, given: usize) {
        ALIVE.store(0, Ordering::SeqCst);
        PEAK.store(0, Ordering::SeqCst);
        IMPATIENT.store(impatient, Ordering::SeqCst);
        GIVEN.store(given, Ordering::SeqCst);
    }
}
#[path = "../../src/tools/bounded.rs"]
#[allow(dead_code, unreachable_pub, reason = "the model asks for what matters to it, and exports nothing")]
mod bounded;

use bounded::BoundedThreads;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, PoisonError};

/// The counters of the threads are one for all models.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn model(impatient: bool, given: usize, check: impl Fn() + Sync + Send + 'static) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        sync::reset(impatient, given);
        check();
    });
}

/// Jobs that are done, to be waited for without spinning: a model in which nobody can go on fails.
struct Done {
    jobs: loom::sync::Mutex<usize>,
    more: loom::sync::Condvar,
}

impl Done {
    fn new() -> Arc<Self> {
        Arc::new(Done { jobs: loom::sync::Mutex::new(0), more: loom::sync::Condvar::new() })
    }

    fn add(&self) {
        *self.jobs.lock().unwrap() += 1;
        self.more.notify_all();
    }

    fn wait_for(&self, jobs: usize) {
        let mut done = self.jobs.lock().unwrap();
        while *done < jobs {
            done = self.more.wait(done).unwrap();
        }
        assert_eq!(*done, jobs, "a job was done twice");
    }
}

/// Adds one when it is done.
fn job(done: &Arc<Done>) -> bounded::Job {
    let done = done.clone();
    Box::new(move || done.add())
}

/// Jobs from two sides, one thread: it is never two, and each job is done once.
#[test]
fn one_thread_does_all_jobs() {
    for impatient in [false, true] {
        model(impatient, usize::MAX, || {
            let threads = BoundedThreads::new(1);
            let done = Done::new();
            let other = {
                let (threads, done) = (threads.clone(), done.clone());
                thread::spawn(move || assert!(threads.submit(job(&done)).is_ok()))
            };
            assert!(threads.submit(job(&done)).is_ok());
            other.join().unwrap();
            done.wait_for(2);
            threads.close();
            assert_eq!(threads.figures().1, 0);
            assert!(threads.figures().0 <= 1);
        });
    }
}

/// An idle thread that is woken for a job which a busy one takes first is idle again, and counted once: jobs that come one
/// after the other never need more threads than there are at once.
#[test]
fn the_count_is_exact_and_bounded() {
    for impatient in [false, true] {
        model(impatient, usize::MAX, move || {
            let threads = BoundedThreads::new(2);
            let done = Done::new();
            for _ in 0..3 {
                assert!(threads.submit(job(&done)).is_ok());
            }
            done.wait_for(3);
            // A thread that is through with its job may not be idle yet, one that is impatient may be ending.
            assert!(threads.figures().0 <= 2);
            assert!(impatient || sync::PEAK.load(SeqCst) <= 2, "{} threads", sync::PEAK.load(SeqCst));
            threads.close();
        });
    }
}

/// A job that is taken back is not done, and one that was not taken back is done once.
#[test]
fn taken_back_or_done() {
    model(false, usize::MAX, || {
        let threads = BoundedThreads::new(1);
        let done = Done::new();
        assert!(threads.submit(job(&done)).is_ok());
        let second = threads.submit(job(&done)).unwrap_or_else(|_| panic!("a thread is there"));
        let expected = 1 + usize::from(threads.withdraw(second).is_none());
        done.wait_for(expected);
        threads.close();
        assert_eq!(threads.figures().1, 0);
        assert!(threads.withdraw(second).is_none());
    });
}

/// A system that gives one thread serves all jobs with it; one that gives none has the job given back.
#[test]
fn a_system_without_threads() {
    model(false, 1, || {
        let threads = BoundedThreads::new(2);
        let done = Done::new();
        for _ in 0..2 {
            assert!(threads.submit(job(&done)).is_ok());
        }
        done.wait_for(2);
        threads.close();
    });
    model(false, 0, || {
        let threads = BoundedThreads::new(2);
        let done = Done::new();
        assert!(threads.submit(job(&done)).is_err());
        assert_eq!(threads.figures(), (0, 0));
    });
}

/// A job that waits for the one behind it is not waited for by that: each has a thread, as long as there may be one more.
#[test]
fn no_job_waits_behind_another_without_need() {
    model(false, usize::MAX, || {
        let threads = BoundedThreads::new(2);
        let (first, done) = (Done::new(), Done::new());
        // A thread that is idle, or soon will be.
        assert!(threads.submit(job(&first)).is_ok());
        first.wait_for(1);
        let waiting = {
            let done = done.clone();
            Box::new(move || done.wait_for(1))
        };
        assert!(threads.submit(waiting).is_ok());
        assert!(threads.submit(job(&done)).is_ok());
        done.wait_for(1);
        threads.close();
    });
}
