//! A worker that can continue.

use super::group::{Group, Owner, Seat, WorkerResult};
use crate::drive::driver::{Cause, DriverEvent, MachineDriver};
use crate::drive::shared::{Stage, Waiter};
use crate::terms::print_hook::PrintedBy;
use crate::tools::ledger::Ledger;
use crate::tools::tool::Reply;
use lisp_core::vm::{Branch, Ending, WorkerEnd};
use lisp_core::{Error, Reason};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Slices of fuel after which a worker yields to others.
const TURN: u32 = 10;
/// How long a thread runs one short worker after another before it yields to others.
const TURN_TIME: Duration = Duration::from_millis(2);

/// A worker: its machine, and the guard of its seat in its call.
pub(crate) struct Task {
    work: Work,
    /// The reply of the tool that the worker waits for.
    reply: Option<Reply>,
    /// How the worker ends once it has its turn.
    ending: Option<Ending>,
    /// Its calls were counted, or are about to be.
    is_settled: bool,
    guard: WorkerGuard,
}

enum Work {
    Begin(Branch),
    GoOn(Box<MachineDriver>),
}

/// Guards a worker's seat in its group: however the worker is lost, the group is notified and its slot is freed.
struct WorkerGuard {
    /// `None` when the group was notified.
    group: Option<Arc<Group>>,
    /// `None` when the group has it.
    seat: Option<Seat>,
    index: usize,
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        let Some(group) = self.group.take().filter(|group| !group.executor().is_abandoned()) else { return };
        group.shared().set_broken();
        let error = Error::new(Reason::HostFault, "a worker was lost by a bug of the interpreter");
        let ended = WorkerResult {
            end: WorkerEnd::failed(error),
            ledger: Ledger::default(),
            cause: Some(Cause::Bug),
            seen: None,
        };
        if let Some(next) = group.ended(self.index, ended, self.seat.take()) {
            next.go_on();
        }
    }
}

impl From<Task> for Waiter {
    fn from(task: Task) -> Self {
        Waiter::new(move || task.go_on())
    }
}

impl Task {
    /// Creates a worker that is to start.
    pub(super) fn new(group: &Arc<Group>, index: usize, branch: Branch, seat: Seat) -> Self {
        let guard = WorkerGuard { group: Some(group.clone()), seat: Some(seat), index };
        Task { work: Work::Begin(branch), reply: None, ending: None, is_settled: false, guard }
    }

    /// Queues the worker to continue.
    pub(crate) fn go_on(self) {
        match self.guard.group.as_ref().map(|group| group.executor().clone()) {
            Some(executor) => executor.spawn(self),
            None => drop(self),
        }
    }

    /// Queues the worker to continue with the reply of the tool that it waits for.
    pub(super) fn go_on_with(self, reply: Reply) {
        self.with(reply).go_on();
    }

    /// Returns the worker with the reply of the tool that it waits for.
    pub(super) fn with(mut self, reply: Reply) -> Self {
        self.reply = Some(reply);
        self
    }

    pub(crate) fn driver(&mut self) -> Option<&mut MachineDriver> {
        match &mut self.work {
            Work::Begin(_) => None,
            Work::GoOn(driver) => Some(driver),
        }
    }

    /// Returns the machine, which is created on first use.
    fn begin(&mut self) -> Result<&mut MachineDriver, Error> {
        if let (Work::Begin(branch), Some(group), Some(seat)) = (&self.work, &self.guard.group, &self.guard.seat) {
            group.shared().fault_point(Stage::Begin, self.guard.index);
            let machine = branch.worker(self.guard.index, group.settings())?;
            let path = Arc::new(group.path(self.guard.index, seat));
            let mut driver = MachineDriver::new(machine, group.shared().clone(), Some(path));
            driver.silent = group.is_silent();
            self.work = Work::GoOn(Box::new(driver));
        }
        match &mut self.work {
            Work::GoOn(driver) => Ok(driver),
            Work::Begin(_) => Err(Error::new(Reason::HostFault, "a worker without a group")),
        }
    }

    /// Gives the worker a turn. Returns why the turn ended.
    fn turn(&mut self) -> DriverEvent {
        let reply = self.reply.take();
        if let Some(ending) = self.ending.take() {
            return self.settle(ending, reply);
        }
        match self.begin() {
            Ok(driver) => driver.advance(TURN, reply),
            Err(error) => DriverEvent::Done(Ending::Error(Box::new(error))),
        }
    }

    /// Counts the calls of a worker that has ended, and of later ones that have, or takes the reply of the half of the
    /// run that counts them.
    fn settle(&mut self, ending: Ending, reply: Option<Reply>) -> DriverEvent {
        let (Work::GoOn(driver), Some(group)) = (&self.work, &self.guard.group) else {
            return DriverEvent::Done(ending);
        };
        let index = self.guard.index;
        let next = |ending: &Ending| group.next_place(index, matches!(ending, Ending::Error(_)));
        let counted = match reply {
            Some(Reply::Refused(error)) => Err(error),
            Some(_) => Ok(()),
            None if driver.is_over() => Ok(()),
            None if driver.shared.setting.alarm.is_some() => {
                let (tool, call) = driver.end_question(next(&ending));
                self.ending = Some(ending);
                return DriverEvent::Call(tool, call);
            }
            None => driver.shared.gate.settle(&next(&ending)),
        };
        match counted {
            Err(error) if !group.fail_ended(index, &error) => DriverEvent::Done(Ending::Error(Box::new(error))),
            _ => DriverEvent::Done(ending),
        }
    }

    /// Ends the worker: at once, or, if calls made ahead may exceed the limit, when it has its turn and they are
    /// counted. Returns the task that continues in its place.
    fn end_in_turn(mut self, ending: Ending) -> Option<Task> {
        let Work::GoOn(driver) = &self.work else { return self.end(ending) };
        let (shared, path) = (driver.shared.clone(), driver.path.clone());
        let is_ended = driver.cause.is_some_and(|cause| cause != Cause::ToolPanic);
        // The calls of nested workers are counted with those of their outermost worker.
        let is_inside = path.as_ref().is_some_and(|path| path.up.is_some());
        if self.is_settled || is_ended || is_inside || !shared.gate.is_exact() {
            return self.end(ending);
        }
        (self.ending, self.is_settled) = (Some(ending), true);
        shared.wait_for_turn(path.as_ref(), self)
    }

    /// Ends the worker. Returns the task that continues in its place.
    fn end(mut self, ending: Ending) -> Option<Task> {
        if let Some(group) = &self.guard.group {
            group.shared().fault_point(Stage::End, self.guard.index);
        }
        let ended = match (self.work, ending) {
            (Work::GoOn(mut driver), ending) => {
                if let (Some(group), Some(lines)) = (&self.guard.group, driver.take_new_lines()) {
                    group.executor().printed(PrintedBy::Ahead(driver.outermost().unwrap_or_default()), lines);
                }
                let MachineDriver { machine, ledger, cause, sampler, .. } = *driver;
                let end = match (cause, ending) {
                    // The machine may be in any state.
                    (Some(Cause::Bug), Ending::Error(error)) => WorkerEnd::failed(*error),
                    (_, ending) => machine.end_worker(ending),
                };
                WorkerResult { end, ledger, cause, seen: sampler }
            }
            (Work::Begin(branch), ending) => {
                drop(branch);
                let error = match ending {
                    Ending::Error(error) => *error,
                    _ => Error::new(Reason::HostFault, "a worker ended before it began"),
                };
                WorkerResult { end: WorkerEnd::failed(error), ledger: Ledger::default(), cause: None, seen: None }
            }
        };
        let (group, seat) = (self.guard.group.take(), self.guard.seat.take());
        group.and_then(|group| group.ended(self.guard.index, ended, seat))
    }
}

/// Runs workers until there is nothing to do for this thread. A panic, which can only be a bug of our own, ends only
/// its worker: the guard notifies the group.
pub(crate) fn run_task(task: Task) {
    drop(catch_unwind(AssertUnwindSafe(|| run_turns(task))));
}

fn run_turns(task: Task) {
    let turn_started = Instant::now();
    let mut task = task;
    loop {
        let Some(group) = task.guard.group.clone() else { return };
        let started = Instant::now();
        let need = task.turn();
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        group.shared().worker_nanos.fetch_add(nanos, Ordering::Relaxed);
        let next = match need {
            DriverEvent::Turn | DriverEvent::Beat => return task.go_on(),
            DriverEvent::Call(tool, call) => group.executor().call(tool, call, task),
            DriverEvent::SameCall(key) => group.shared().gate.wait(&key, task),
            DriverEvent::Later => {
                let path = task.driver().and_then(|driver| driver.path.clone());
                group.shared().wait_for_turn(path.as_ref(), task)
            }
            DriverEvent::Printed(lines) => {
                let outermost = task.driver().and_then(|driver| driver.outermost()).unwrap_or_default();
                group.executor().printed(PrintedBy::Ahead(outermost), lines);
                return task.go_on();
            }
            DriverEvent::Workers => Group::begin(group.executor().clone(), Owner::Worker(Box::new(task))),
            DriverEvent::Done(ending) => task.end_in_turn(ending),
        };
        drop(group);
        match next {
            Some(next) if turn_started.elapsed() < TURN_TIME => task = next,
            Some(next) => return next.go_on(),
            None => return,
        }
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("index", &self.guard.index).finish_non_exhaustive()
    }
}
