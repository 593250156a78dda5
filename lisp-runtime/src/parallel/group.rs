//! One parallel call under way.

use super::cores;
use super::place::{Place, Scope};
use super::{Exec, Slot, Task};
use crate::actor::{Actor, Cause, Common};
use crate::ledger::Ledger;
use lisp_core::vm::{Branch, Settings, WorkerEnd};
use lisp_core::{Error, Reason};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Bytes of results, prints and ledger that wait to be joined; with more, no worker is started before they are.
const WAITING_BYTES: usize = 1 << 20;
/// Workers that wait to be joined.
const WAITING: usize = 4_096;

/// Who made the call, and goes on when it is done.
pub(crate) enum Owner {
    /// The program; whoever drives it waits at the other end.
    Program(Box<Actor>, Sender<Box<Actor>>),
    Worker(Box<Task>),
}

impl Owner {
    fn actor(&mut self) -> Option<&mut Actor> {
        match self {
            Owner::Program(actor, _) => Some(actor),
            Owner::Worker(task) => task.actor(),
        }
    }

    /// Lets the caller go on: a worker takes the thread.
    fn go_on(self) -> Option<Task> {
        match self {
            Owner::Program(actor, driver) => {
                // A driver that has gone does not want it back.
                drop(driver.send(actor));
                None
            }
            Owner::Worker(task) => Some(*task),
        }
    }
}

/// How a worker ended, and what it leaves.
pub(crate) struct Ended {
    pub(super) end: WorkerEnd,
    pub(super) ledger: Ledger,
    pub(super) cause: Option<Cause>,
}

impl Ended {
    /// Did it fail of its own, rather than because another did?
    fn failed(&self) -> bool {
        self.end.error().is_some() && self.cause != Some(Cause::Sibling)
    }
}

/// Why a parallel call failed.
struct Failure {
    index: usize,
    error: Error,
    cause: Option<Cause>,
}

/// A parallel call under way.
pub(crate) struct Group {
    common: Arc<Common>,
    exec: Exec,
    scope: Arc<Scope>,
    /// The place of the worker that made the call.
    up: Option<Arc<Place>>,
    /// How many calls there are.
    count: usize,
    /// How many workers may be alive at once.
    window: usize,
    /// What each worker is limited to.
    settings: Settings,
    state: Mutex<State>,
}

struct State {
    /// At rest while there are workers.
    owner: Option<Owner>,
    branch: Option<Branch>,
    since: Instant,
    /// How many calls have been joined.
    joined: usize,
    /// The next call to begin.
    next: usize,
    alive: usize,
    /// What came of the calls from `joined` on.
    ends: Vec<Option<Ended>>,
    bytes: usize,
}

impl Group {
    pub(super) fn common(&self) -> &Arc<Common> {
        &self.common
    }

    pub(super) fn exec(&self) -> &Exec {
        &self.exec
    }

    pub(super) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    pub(super) fn up(&self) -> Option<&Arc<Place>> {
        self.up.as_ref()
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Begins the parallel call that the owner's machine waits for. Answers who goes on on this thread.
    pub(crate) fn begin(exec: Exec, mut owner: Owner) -> Option<Task> {
        let actor = owner.actor()?;
        let Some(call) = actor.machine.parallel_call() else { return owner.go_on() };
        let common = actor.common.clone();
        let limits = &common.setting.limits;
        let up = actor.place.clone();
        // Calls inside a call have its deadline.
        let deadline = match &up {
            Some(place) => place.scope.deadline,
            None => crate::run::deadline(Instant::now(), limits.parallel_timeout_ms),
        };
        let window = match limits.parallel_window {
            0 => common.setting.cores.unwrap_or_else(cores).saturating_mul(2),
            window => usize::try_from(window).unwrap_or(usize::MAX),
        };
        let branch = actor.machine.branch();
        let settings = Settings { fuel: branch.fuel(), ..common.worker.clone() };
        let state = State {
            owner: Some(owner),
            branch: Some(branch),
            since: Instant::now(),
            joined: call.joined,
            next: call.joined,
            alive: 0,
            ends: Vec::new(),
            bytes: 0,
        };
        let group = Arc::new(Group {
            common,
            exec,
            scope: Arc::new(Scope::new(deadline)),
            up,
            count: call.count,
            window,
            settings,
            state: Mutex::new(state),
        });
        group.clone().go_on(group.state.lock().unwrap_or_else(PoisonError::into_inner), None)
    }

    /// A worker is over. Answers who goes on on this thread.
    pub(super) fn ended(self: Arc<Self>, index: usize, ended: Ended, slot: Option<Slot>) -> Option<Task> {
        if ended.failed() {
            self.scope.fail(index);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.alive -= 1;
        state.bytes = state.bytes.saturating_add(ended.end.bytes()).saturating_add(ended.ledger.bytes());
        let place = index - state.joined;
        if let Some(end) = state.ends.get_mut(place) {
            *end = Some(ended);
        }
        self.clone().go_on(state, slot)
    }

    /// Starts what workers can be started, or, when none is left, joins what they came to. `slot` is that of a worker
    /// that has just ended: the next one takes it over, so that a call which has begun is not refused in the middle.
    fn go_on(self: Arc<Self>, mut state: std::sync::MutexGuard<'_, State>, slot: Option<Slot>) -> Option<Task> {
        let mut slot = slot;
        loop {
            let mut tasks = self.start_workers(&mut state, &mut slot).into_iter();
            if let Some(first) = tasks.next() {
                drop(state);
                drop(slot);
                tasks.for_each(Task::go_on);
                return Some(first);
            }
            if state.alive > 0 {
                return None;
            }
            if let Some(owner) = self.settle(&mut state) {
                drop(state);
                drop(slot);
                return owner.go_on();
            }
        }
    }

    /// The workers that may begin now.
    fn start_workers(self: &Arc<Self>, state: &mut State, slot: &mut Option<Slot>) -> Vec<Task> {
        let mut tasks = Vec::new();
        let Some(branch) = state.branch.clone() else { return tasks };
        while state.next < self.count
            && state.alive < self.window
            && state.bytes < WAITING_BYTES
            && state.ends.len() < WAITING
            && !self.scope.has_failed()
        {
            let Some(slot) = slot.take().or_else(|| self.common.budget.try_acquire()) else { break };
            tasks.push(Task::new(self, state.next, branch.clone(), slot));
            state.ends.push(None);
            state.next += 1;
            state.alive += 1;
        }
        tasks
    }

    /// All workers have ended: joins what they came to. Answers the owner when it goes on, with the results or the
    /// failure; `None` when there are calls left to begin.
    fn settle(&self, state: &mut State) -> Option<Owner> {
        let mut owner = state.owner.take()?;
        let Some(actor) = owner.actor() else { return Some(owner) };
        let begun = state.next > state.joined;
        let ends: Vec<Ended> = std::mem::take(&mut state.ends).into_iter().flatten().collect();
        if let Some(branch) = state.branch.take()
            && actor.machine.rejoin(branch).is_err()
        {
            actor.lose("a parallel call ended before its workers");
            return Some(owner);
        }
        state.bytes = 0;
        let (first, failure) = (state.joined, self.failure(state.joined, &ends));
        let mut joined = Vec::with_capacity(ends.len());
        for Ended { end, ledger, .. } in ends {
            actor.ledger.absorb(ledger);
            joined.push(end);
        }
        let over = match failure {
            Some(Failure { index, error, cause }) => {
                // What came of the calls behind the one that failed is not on the bill: in sequence they would not
                // have begun. What they printed is kept.
                let rest = joined.split_off((index + 1 - first).min(joined.len()));
                if actor.machine.join(joined).is_ok() {
                    actor.machine.keep_prints(rest);
                    actor.machine.fail_parallel(error, cause == Some(Cause::ToolPanic));
                }
                // The machine that called is whole; what ended its workers ends it.
                actor.cause = cause.filter(|&cause| cause != Cause::Bug);
                true
            }
            None if !begun => {
                actor.machine.fail_parallel(self.no_slot(), true);
                true
            }
            // What does not fit ends the program: its next step says so.
            None => actor.machine.join(joined).is_err() || state.next == self.count,
        };
        if over {
            actor.away += state.since.elapsed();
            actor.workers_have_shown();
            return Some(owner);
        }
        state.joined = state.next;
        state.branch = Some(actor.machine.branch());
        state.owner = Some(owner);
        None
    }

    /// The failure to report. A call whose workers ended only because of a failure further out has that for its own.
    fn failure(&self, first: usize, ends: &[Ended]) -> Option<Failure> {
        let position = |is: &dyn Fn(&Ended) -> bool| ends.iter().position(is);
        let at = position(&|end| end.cause == Some(Cause::Cancelled))
            .or_else(|| position(&Ended::failed))
            .or_else(|| position(&|end| end.end.error().is_some()))?;
        let (cause, error) = (ends[at].cause, ends[at].end.error()?.clone());
        let at = match cause {
            // The first that has not finished.
            Some(Cause::Deadline | Cause::ParallelDeadline) => position(&|end| end.end.error().is_some()).unwrap_or(at),
            _ => at,
        };
        Some(Failure { index: first + at, error: with_index(error, first + at), cause })
    }

    fn no_slot(&self) -> Error {
        let capacity = self.common.budget.capacity();
        Error::new(
            Reason::ParallelCapacityExceeded,
            format!("no worker can begin: of the {capacity} that a run may have at once none is free"),
        )
        .hint("use map instead of pmap inside pmap, or raise the limit parallel_workers")
        .detail("limit", capacity)
    }
}

/// The error with the index of the call that failed; of calls inside calls, the outermost.
fn with_index(mut error: Error, index: usize) -> Error {
    error.details.retain(|(name, _)| name != "index");
    error.detail("index", index)
}
