//! What the program of a run and its workers share.

use super::budget::ParallelBudget;
use super::setting::Setting;
use crate::terms::clock::RunClock;
use crate::terms::deadline::deadline;
use crate::terms::limits::Limits;
use crate::terms::place::Place;
use crate::tools::gate::ToolGate;
use lisp_core::Error;
use lisp_core::vm::Settings;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

/// A worker that waits for a tool call of another worker; called when that call has ended.
pub(crate) struct Waiter(Box<dyn FnOnce() + Send>);

impl Waiter {
    pub(crate) fn new(wake: impl FnOnce() + Send + 'static) -> Self {
        Waiter(Box::new(wake))
    }

    /// Lets the worker go on.
    pub(crate) fn wake(self) {
        (self.0)();
    }
}

/// The state that the program of a run and its workers share.
pub(crate) struct RunShared {
    pub(crate) setting: Setting,
    pub(crate) deadline: Option<Instant>,
    pub(crate) gate: ToolGate<Waiter>,
    pub(crate) budget: Arc<ParallelBudget>,
    pub(crate) clock: RunClock,
    /// What workers are limited to.
    pub(crate) worker: Settings,
    /// Nanoseconds that workers computed.
    pub(crate) worker_nanos: AtomicU64,
    /// For tests: the worker of this index panics at this stage.
    #[cfg(test)]
    pub(crate) fault: std::sync::Mutex<Option<(Stage, usize)>>,
}

/// What a worker goes through, for tests that break it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Begin,
    Turn,
    Call,
    Reply,
    End,
}

impl RunShared {
    /// More workers than this are not of use, and calls in calls nest no deeper.
    const WORKERS: u64 = 1_024;

    pub(crate) fn new(setting: Setting, started: Instant, worker: Settings) -> Self {
        let slots = Self::slots(&setting.limits);
        RunShared {
            deadline: deadline(started, setting.limits.timeout_ms),
            gate: ToolGate::new(setting.gate.clone(), setting.view.clone()),
            budget: Arc::new(ParallelBudget::new(usize::try_from(slots).unwrap_or(usize::MAX))),
            worker,
            clock: RunClock::new(setting.clock.clone(), &setting.clock_replay),
            worker_nanos: AtomicU64::new(0),
            #[cfg(test)]
            fault: std::sync::Mutex::default(),
            setting,
        }
    }

    /// Tells the time at a place of the run, in milliseconds since 1970-01-01T00:00:00Z.
    pub(crate) fn time(&self, place: &Place) -> Result<i64, Error> {
        match &self.setting.gate.journal {
            Some(journal) => journal.time(place, || Some(self.clock.tell(place))).map(Option::unwrap_or_default),
            None => Ok(self.clock.tell(place)),
        }
    }

    /// How many workers may be alive at once.
    pub(crate) fn slots(limits: &Limits) -> u64 {
        limits.parallel_workers.min(Self::WORKERS)
    }

    /// A worker is at this stage.
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
