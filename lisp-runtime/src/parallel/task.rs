//! A worker that can go on.

use super::group::{Ended, Group};
use super::{Owner, Place, Slot};
use crate::actor::{Actor, Cause, Need, Stage};
use crate::ledger::Ledger;
use crate::tool::Reply;
use lisp_core::vm::{Branch, Ending, WorkerEnd};
use lisp_core::{Error, Reason};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Slices of fuel after which a worker lets others have a turn.
const TURN: u32 = 10;
/// How long a thread goes from one short worker to the next before others have a turn.
const TURN_TIME: Duration = Duration::from_millis(2);

/// A worker: its machine, and its seat among the workers of its call.
pub(crate) struct Task {
    work: Work,
    /// What the tool answered that the worker waits for.
    reply: Option<Reply>,
    seat: Seat,
}

enum Work {
    Begin(Branch),
    GoOn(Box<Actor>),
}

/// A worker's seat. However the worker is lost, its group hears of it and its slot is free again.
struct Seat {
    /// `None` when the group has heard.
    group: Option<Arc<Group>>,
    slot: Option<Slot>,
    index: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(group) = self.group.take().filter(|group| !group.exec().is_abandoned()) else { return };
        let error = Error::new(Reason::HostFault, "a worker was lost by a bug of the interpreter");
        let ended = Ended { end: WorkerEnd::failed(error), ledger: Ledger::default(), cause: Some(Cause::Bug) };
        if let Some(next) = group.ended(self.index, ended, self.slot.take()) {
            next.go_on();
        }
    }
}

impl Task {
    pub(super) fn new(group: &Arc<Group>, index: usize, branch: Branch, slot: Slot) -> Self {
        let seat = Seat { group: Some(group.clone()), slot: Some(slot), index };
        Task { work: Work::Begin(branch), reply: None, seat }
    }

    /// Lets the worker go on when its turn comes.
    pub(crate) fn go_on(self) {
        match self.seat.group.as_ref().map(|group| group.exec().clone()) {
            Some(exec) => exec.spawn(self),
            None => drop(self),
        }
    }

    /// The same, with the answer of the tool it waits for.
    pub(super) fn go_on_with(self, reply: Reply) {
        self.with(reply).go_on();
    }

    /// The worker with the answer of the tool it waits for.
    pub(super) fn with(mut self, reply: Reply) -> Self {
        self.reply = Some(reply);
        self
    }

    pub(crate) fn actor(&mut self) -> Option<&mut Actor> {
        match &mut self.work {
            Work::Begin(_) => None,
            Work::GoOn(actor) => Some(actor),
        }
    }

    /// The machine at work; the first time it is made.
    fn begin(&mut self) -> Result<&mut Actor, Error> {
        if let (Work::Begin(branch), Some(group)) = (&self.work, &self.seat.group) {
            group.common().pass(Stage::Begin, self.seat.index);
            let machine = branch.worker(self.seat.index, group.settings())?;
            let place =
                Arc::new(Place { scope: group.scope().clone(), index: self.seat.index, up: group.up().cloned() });
            self.work = Work::GoOn(Box::new(Actor::new(machine, group.common().clone(), Some(place))));
        }
        match &mut self.work {
            Work::GoOn(actor) => Ok(actor),
            Work::Begin(_) => Err(Error::new(Reason::HostFault, "a worker without a group")),
        }
    }

    /// What the worker needs next, after a turn.
    fn turn(&mut self) -> Need {
        let reply = self.reply.take();
        match self.begin() {
            Ok(actor) => actor.advance(TURN, reply),
            Err(error) => Need::Done(Ending::Error(Box::new(error))),
        }
    }

    /// The worker is over. Answers who goes on in its place.
    fn end(mut self, ending: Ending) -> Option<Task> {
        if let Some(group) = &self.seat.group {
            group.common().pass(Stage::End, self.seat.index);
        }
        let ended = match (self.work, ending) {
            (Work::GoOn(mut actor), ending) => {
                if let (Some(group), Some(lines)) = (&self.seat.group, actor.news()) {
                    group.exec().printed(lines);
                }
                let Actor { machine, ledger, cause, .. } = *actor;
                let end = match (cause, ending) {
                    // The machine may be in any state.
                    (Some(Cause::Bug), Ending::Error(error)) => WorkerEnd::failed(*error),
                    (_, ending) => machine.end_worker(ending),
                };
                Ended { end, ledger, cause }
            }
            (Work::Begin(branch), ending) => {
                drop(branch);
                let error = match ending {
                    Ending::Error(error) => *error,
                    _ => Error::new(Reason::HostFault, "a worker ended before it began"),
                };
                Ended { end: WorkerEnd::failed(error), ledger: Ledger::default(), cause: None }
            }
        };
        let (group, slot) = (self.seat.group.take(), self.seat.slot.take());
        group.and_then(|group| group.ended(self.seat.index, ended, slot))
    }
}

/// Takes workers on until there is nothing to do for this thread. A panic, which can only be a bug of our own, costs
/// the worker: its call hears of it by the seat.
pub(crate) fn work(task: Task) {
    drop(catch_unwind(AssertUnwindSafe(|| take_on(task))));
}

fn take_on(task: Task) {
    let begun = Instant::now();
    let mut task = task;
    loop {
        let Some(group) = task.seat.group.clone() else { return };
        let started = Instant::now();
        let need = task.turn();
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        group.common().worker_nanos.fetch_add(nanos, Ordering::Relaxed);
        let next = match need {
            Need::Turn | Need::Beat => return task.go_on(),
            Need::Call(tool, call) => group.exec().call(tool, call, task),
            Need::SameCall(key) => group.common().desk.wait(&key, task),
            Need::Printed(lines) => {
                group.exec().printed(lines);
                return task.go_on();
            }
            Need::Workers => Group::begin(group.exec().clone(), Owner::Worker(Box::new(task))),
            Need::Done(ending) => task.end(ending),
        };
        drop(group);
        match next {
            Some(next) if begun.elapsed() < TURN_TIME => task = next,
            Some(next) => return next.go_on(),
            None => return,
        }
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("index", &self.seat.index).finish_non_exhaustive()
    }
}
