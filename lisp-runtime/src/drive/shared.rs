//! The state that the program of a run and its workers share.

use super::budget::ParallelBudget;
use super::sampler::Profiled;
use super::setting::Setting;
use crate::terms::clock::RunClock;
use crate::terms::deadline::RunTime;
use crate::terms::limits::Limits;
use crate::terms::place::Place;
use crate::terms::scope::WorkerPath;
use crate::tools::gate::ToolGate;
use lisp_core::vm::Settings;
use lisp_core::{Error, Reason};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A worker that waits for a tool call of another worker; woken when that call has ended.
pub(crate) struct Waiter(Box<dyn FnOnce() + Send>);

impl Waiter {
    pub(crate) fn new(wake: impl FnOnce() + Send + 'static) -> Self {
        Waiter(Box::new(wake))
    }

    /// Lets the worker continue.
    pub(crate) fn wake(self) {
        (self.0)();
    }
}

/// The state that the program of a run and its workers share.
pub(crate) struct RunShared {
    pub(crate) setting: Setting,
    pub(crate) run_time: RunTime,
    pub(crate) gate: ToolGate<Waiter>,
    pub(crate) budget: Arc<ParallelBudget>,
    pub(crate) clock: RunClock,
    /// The settings of workers.
    pub(crate) worker: Settings,
    /// Nanoseconds that workers computed.
    pub(crate) worker_nanos: AtomicU64,
    /// The fuel of discarded work: workers after one that failed.
    given_up: AtomicU64,
    /// The workers from which on calls were discarded, for the half of the run that counts calls.
    pub(crate) workers_given_up: Mutex<Vec<Place>>,
    /// Workers that wait for their turns.
    turns: Mutex<Vec<(Arc<WorkerPath>, Waiter)>>,
    /// The samples for the profile of the run.
    pub(crate) profiled: Profiled,
    /// A bug of the interpreter was caught: no machine of the run is used again.
    broken: AtomicBool,
    /// Some program of the run computed for longer than the first slice. From then on a built-in may take a turn of any
    /// length.
    long: AtomicBool,
    /// For tests: the worker of this index panics at this stage.
    #[cfg(test)]
    pub(crate) fault: std::sync::Mutex<Option<(Stage, usize)>>,
}

/// The stages of a worker, for tests that break it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Begin,
    Turn,
    Call,
    Reply,
    End,
}

impl RunShared {
    /// Adds the fuel of discarded work of workers. It does not count as used by the run, because it depends on timing.
    pub(crate) fn give_up(&self, fuel: u64) {
        self.given_up.fetch_add(fuel, Ordering::Relaxed);
    }

    /// Returns whether workers start one after another from now on. This is so when discarded work has used so much
    /// fuel that a run could continue like that without end. Then no worker starts that an earlier failure makes
    /// superfluous. This takes longer, with the same result.
    pub(crate) fn goes_one_by_one(&self) -> bool {
        let fuel = self.setting.fuel.unwrap_or(self.setting.limits.fuel);
        fuel > 0 && self.given_up.load(Ordering::Relaxed) > fuel
    }

    fn turns(&self) -> MutexGuard<'_, Vec<(Arc<WorkerPath>, Waiter)>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a worker until it has its turn, or an earlier failure ends it. Returns it if that is already so.
    pub(crate) fn wait_for_turn<T: Into<Waiter>>(&self, path: Option<&Arc<WorkerPath>>, worker: T) -> Option<T> {
        let Some(path) = path else { return Some(worker) };
        let mut turns = self.turns();
        if path.has_turn() || path.is_over() {
            return Some(worker);
        }
        turns.push((path.clone(), worker.into()));
        None
    }

    /// Returns the workers that need not wait for their turns any more, because another has ended.
    pub(crate) fn with_turns(&self) -> Vec<Waiter> {
        let mut turns = self.turns();
        if turns.is_empty() {
            return Vec::new();
        }
        let (ready, rest) =
            std::mem::take(&mut *turns).into_iter().partition(|(path, _)| path.has_turn() || path.is_over());
        *turns = rest;
        let ready: Vec<(Arc<WorkerPath>, Waiter)> = ready;
        ready.into_iter().map(|(_, waiter)| waiter).collect()
    }

    /// Drops all waiting workers, when the run is dropped.
    pub(crate) fn clear(&self) {
        let turns = std::mem::take(&mut *self.turns());
        drop(turns);
        self.gate.clear();
    }

    /// The maximum number of useful workers, and the maximum nesting of parallel calls.
    const WORKERS: u64 = 1_024;

    pub(crate) fn new(setting: Setting, started: Instant, worker: Settings) -> Self {
        let slots = Self::slots(&setting.limits);
        RunShared {
            run_time: RunTime::new(started, &setting.limits, setting.replay.clone()),
            gate: ToolGate::new(setting.gate.clone(), setting.view.clone()),
            budget: Arc::new(ParallelBudget::new(usize::try_from(slots).unwrap_or(usize::MAX))),
            worker,
            clock: RunClock::new(setting.clock.clone(), &setting.clock_replay),
            worker_nanos: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            workers_given_up: Mutex::default(),
            turns: Mutex::default(),
            profiled: Profiled::default(),
            broken: AtomicBool::new(false),
            long: AtomicBool::new(false),
            #[cfg(test)]
            fault: std::sync::Mutex::default(),
            setting,
        }
    }

    /// Returns the time for an effect of the run, in milliseconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// The run differs from its record, or the host's clock panicked.
    pub(crate) fn time(&self, place: &Place) -> Result<i64, Error> {
        let time = match &self.setting.gate.journal {
            Some(journal) => journal.time(place, || self.clock.tell(place))?,
            None => self.clock.tell(place),
        };
        time.ok_or_else(|| Error::new(Reason::HostFault, "the clock of the host panicked"))
    }

    /// Notes that a bug of the interpreter was caught.
    pub(crate) fn set_long(&self) {
        self.long.store(true, Ordering::Release);
    }

    #[cfg(feature = "async")]
    pub(crate) fn is_long(&self) -> bool {
        self.long.load(Ordering::Acquire)
    }

    pub(crate) fn set_broken(&self) {
        self.broken.store(true, Ordering::Release);
    }

    /// Returns whether a bug of the interpreter was caught. A regular host fault, such as of its clock, does not count.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Returns the maximum number of workers alive at once.
    pub(crate) fn slots(limits: &Limits) -> u64 {
        limits.parallel_workers.min(Self::WORKERS)
    }

    /// Notes that a worker is at this stage.
    #[inline]
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests break workers here"))]
    pub(crate) fn fault_point(&self, _stage: Stage, _index: usize) {
        #[cfg(test)]
        {
            let fault = *self.fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            assert!(fault != Some((_stage, _index)), "injected");
        }
    }
}
