//! One parallel call in progress.

use super::executor::Executor;
use super::task::Task;
use crate::drive::budget::{ParallelBudget, Slot};
use crate::drive::driver::{Cause, MachineDriver};
use crate::drive::sampler::Sampler;
use crate::drive::shared::{RunShared, Waiter};
use crate::terms::limits::Limits;
use crate::terms::place::Place;
use crate::terms::print_hook::PrintedBy;
use crate::terms::scope::{CancelScope, WorkerPath};
use crate::terms::spans::GroupSpan;
use crate::tools::ledger::Ledger;
use lisp_core::vm::{Branch, Settings, WorkerEnd};
use lisp_core::{Error, Reason};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The maximum bytes of results, prints and ledgers that wait to be joined; beyond it, they are joined before more
/// workers start.
const WAITING_BYTES: usize = 1 << 20;
/// The maximum number of workers that wait to be joined.
const WAITING: usize = 4_096;

/// The caller, which continues when the call is done.
pub(crate) enum Owner {
    /// The program; its driver waits at the other end of the channel.
    Program(Box<MachineDriver>, Sender<Box<MachineDriver>>),
    Worker(Box<Task>),
}

impl Owner {
    fn driver(&mut self) -> Option<&mut MachineDriver> {
        match self {
            Owner::Program(driver, _) => Some(driver),
            Owner::Worker(task) => task.driver(),
        }
    }

    /// Lets the caller continue. A worker takes over the thread.
    fn go_on(self) -> Option<Task> {
        match self {
            Owner::Program(driver, home) => {
                // A driver that was dropped does not want it back.
                drop(home.send(driver));
                None
            }
            Owner::Worker(task) => Some(*task),
        }
    }
}

/// How a worker ended, and what it leaves.
pub(crate) struct WorkerResult {
    pub(super) end: WorkerEnd,
    pub(super) ledger: Ledger,
    pub(super) cause: Option<Cause>,
    /// Its samples for the profile of the run.
    pub(super) seen: Option<Box<Sampler>>,
}

impl WorkerResult {
    /// Returns whether it failed by itself, not because another worker did.
    fn failed(&self) -> bool {
        self.end.error().is_some() && self.cause != Some(Cause::Sibling)
    }
}

/// Why a parallel call failed.
struct Failure {
    error: Error,
    cause: Option<Cause>,
    /// What the calls after this one did is discarded.
    kept: usize,
}

/// A parallel call in progress.
pub(crate) struct Group {
    shared: Arc<RunShared>,
    executor: Executor,
    scope: Arc<CancelScope>,
    /// The path of the worker that made the call.
    up: Option<Arc<WorkerPath>>,
    /// The number of calls.
    count: usize,
    room: Room,
    /// Whether lines that workers print are not shown.
    silent: bool,
    /// The settings of each worker.
    settings: Settings,
    state: Mutex<State>,
    _span: GroupSpan,
}

struct State {
    /// Suspended while workers run.
    owner: Option<Owner>,
    branch: Option<Branch>,
    since: Instant,
    /// The number of calls that were joined.
    joined: usize,
    /// The next call to start.
    next: usize,
    alive: usize,
    /// The number of seats so far.
    seats: usize,
    /// The results of the calls from `joined` on.
    ends: Vec<Option<WorkerResult>>,
    bytes: usize,
    /// The first call that has not ended, if none before it failed.
    checked: usize,
    /// Whether checking is complete: nothing after that call counts.
    is_checked: bool,
    /// The fuel of the calls before that one, and of those that were joined.
    spent: u64,
    spent_before: u64,
    /// The number of lines of workers that were shown.
    shown: usize,
    /// The fuel of all calls that have ended.
    spent_by_all: u64,
}

impl Group {
    pub(super) fn shared(&self) -> &Arc<RunShared> {
        &self.shared
    }

    pub(super) fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Returns the path of a worker on a seat.
    pub(super) fn path(&self, index: usize, seat: &Seat) -> WorkerPath {
        let depth = self.up.as_ref().map_or(0, |up| up.depth) + 1;
        let (slots, spare) = (self.room.slots_inside, seat.spare);
        WorkerPath { scope: self.scope.clone(), index, up: self.up.clone(), depth, slots, spare }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.silent
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Starts the parallel call that the owner's machine waits for. Returns the task for this thread.
    pub(crate) fn begin(executor: Executor, mut owner: Owner) -> Option<Task> {
        let driver = owner.driver()?;
        let Some(call) = driver.machine.parallel_call() else { return owner.go_on() };
        let shared = driver.shared.clone();
        let limits = &shared.setting.limits;
        let up = driver.path.clone();
        // The time of nested calls is that of the outermost one.
        let started = up.as_ref().map_or_else(Instant::now, |place| place.scope.started);
        let Some(room) = Room::of(up.as_deref(), call.count, limits) else {
            driver.machine.fail_parallel(no_slot(up.as_deref(), shared.budget.capacity()), true);
            return owner.go_on();
        };
        let worker_heap = match room.inside_slot {
            true => driver.machine.half_budget(),
            false => Ok(shared.worker.heap_bytes),
        };
        let heap_bytes = match worker_heap {
            Ok(bytes) => bytes,
            Err(error) => {
                driver.machine.fail_parallel(error, true);
                return owner.go_on();
            }
        };
        let effect = driver.next_effect();
        let span = GroupSpan::begin(shared.setting.view.span(), effect, call.count);
        let silent = driver.silent;
        let branch = driver.machine.branch();
        let settings = Settings { fuel: branch.fuel(), heap_bytes, ..shared.worker.clone() };
        let state = State {
            owner: Some(owner),
            branch: Some(branch),
            since: Instant::now(),
            joined: call.joined,
            next: call.joined,
            alive: 0,
            seats: 0,
            ends: Vec::new(),
            bytes: 0,
            checked: call.joined,
            is_checked: false,
            spent: 0,
            spent_before: 0,
            shown: 0,
            spent_by_all: 0,
        };
        let group = Arc::new(Group {
            shared,
            executor,
            scope: Arc::new(CancelScope::new(effect, started, call.joined)),
            up,
            count: call.count,
            room,
            silent,
            settings,
            state: Mutex::new(state),
            _span: span,
        });
        group.clone().go_on(group.state.lock().unwrap_or_else(PoisonError::into_inner), None)
    }

    /// Takes the result of a worker that has ended. Returns the task for this thread.
    pub(super) fn ended(self: Arc<Self>, index: usize, ended: WorkerResult, seat: Option<Seat>) -> Option<Task> {
        if ended.failed() {
            self.scope.fail(index);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.alive -= 1;
        state.bytes = state.bytes.saturating_add(ended.end.bytes()).saturating_add(ended.ledger.bytes());
        let place = index - state.joined;
        state.spent_by_all = state.spent_by_all.saturating_add(ended.end.usage().fuel);
        if let Some(end) = state.ends.get_mut(place) {
            *end = Some(ended);
        }
        self.check(&mut state);
        let with_turns = self.shared.with_turns();
        let next = self.clone().go_on(state, seat);
        with_turns.into_iter().for_each(Waiter::wake);
        next
    }

    /// Returns the worker after one that is about to end and after later ones that have ended. After the first failure
    /// nothing counts.
    pub(super) fn next_place(&self, index: usize, mut has_failed: bool) -> Place {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = index + 1;
        while !has_failed && let Some(Some(ended)) = state.ends.get(next - state.joined) {
            has_failed = ended.end.error().is_some();
            next += 1;
        }
        self.scope.place_of(self.up.as_deref(), next)
    }

    /// Makes an ended later worker fail with an error that names it. Returns whether there is one.
    pub(super) fn fail_ended(&self, index: usize, error: &Error) -> bool {
        let Some(over) = error.index().filter(|&over| over > index) else { return false };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let place = over - state.joined;
        let Some(Some(ended)) = state.ends.get_mut(place) else { return false };
        ended.end = WorkerEnd::failed(error.clone());
        self.scope.fail(over);
        true
    }

    /// Ends the later calls if the calls up to the first that has not ended have used up the fuel. Which call exceeds
    /// it does not depend on timing.
    fn check(&self, state: &mut State) {
        while !state.is_checked
            && let Some(Some(ended)) = state.ends.get(state.checked - state.joined)
        {
            state.spent = state.spent.saturating_add(ended.end.usage().fuel);
            if ended.end.error().is_none_or(|error| one_too_many(error).is_none()) {
                state.shown += self.show(state.checked, ended.end.lines());
            }
            state.checked += 1;
            if self.is_too_much(state.spent) {
                self.scope.fail(state.checked - 1);
            }
            if ended.end.error().is_some() || self.is_too_much(state.spent) {
                state.is_checked = true;
                return;
            }
            self.scope.pass_on(state.checked);
        }
    }

    /// Shows the lines of a worker of the program that counts. Returns how many were shown.
    fn show(&self, index: usize, lines: &[String]) -> usize {
        let setting = &self.shared.setting;
        if self.up.is_some() || self.silent || lines.is_empty() || !setting.streams_prints() {
            return 0;
        }
        if !setting.show(lines) {
            let by = PrintedBy::Worker(u32::try_from(index).unwrap_or(u32::MAX));
            self.executor.printed(by, lines.to_vec());
        }
        lines.len()
    }

    /// Returns whether this is more fuel than the workers together may spend.
    fn is_too_much(&self, spent: u64) -> bool {
        self.settings.fuel.is_some_and(|max| spent > max)
    }

    /// Starts all workers that can start, or, if none is left, joins their results. `seat` is that of a worker that has
    /// just ended; the next one takes it over.
    fn go_on(self: Arc<Self>, mut state: std::sync::MutexGuard<'_, State>, seat: Option<Seat>) -> Option<Task> {
        let mut seat = seat;
        loop {
            let mut tasks = self.start_workers(&mut state, &mut seat).into_iter();
            if let Some(first) = tasks.next() {
                drop(seat);
                drop(state);
                tasks.for_each(Task::go_on);
                return Some(first);
            }
            // Slots are freed before it becomes visible that their workers have ended.
            drop(seat.take());
            if state.alive > 0 {
                return None;
            }
            if let Some(owner) = self.join_results(&mut state) {
                drop(state);
                return owner.go_on();
            }
        }
    }

    /// Returns the workers that may start now.
    fn start_workers(self: &Arc<Self>, state: &mut State, seat: &mut Option<Seat>) -> Vec<Task> {
        let mut tasks = Vec::new();
        let Some(branch) = state.branch.clone() else { return tasks };
        let window = if self.shared.goes_one_by_one() { 1 } else { self.room.window };
        while state.next < self.count
            && state.alive < window
            && state.bytes < WAITING_BYTES
            && state.ends.len() < WAITING
            && !self.scope.has_failed()
            && !self.is_too_much(state.spent_by_all)
        {
            let Some(seat) = seat.take().or_else(|| self.room.seat(state, &self.shared.budget)) else { break };
            tasks.push(Task::new(self, state.next, branch.clone(), seat));
            state.ends.push(None);
            state.next += 1;
            state.alive += 1;
        }
        tasks
    }

    /// Joins the results when all workers have ended. Returns the owner if it continues with the results or the
    /// failure; `None` if calls are left to start.
    fn join_results(&self, state: &mut State) -> Option<Owner> {
        let mut owner = state.owner.take()?;
        let Some(driver) = owner.driver() else { return Some(owner) };
        let started = state.next > state.joined;
        let ends: Vec<WorkerResult> = std::mem::take(&mut state.ends).into_iter().flatten().collect();
        if let Some(branch) = state.branch.take()
            && driver.machine.rejoin(branch).is_err()
        {
            driver.lose("a parallel call ended before its workers");
            return Some(owner);
        }
        state.bytes = 0;
        if !started {
            driver.lose("a parallel call found no slot");
        }
        if !started || self.join_ends(driver, state, ends) {
            driver.away += state.since.elapsed();
            match self.up {
                None => driver.skip_workers_lines(std::mem::take(&mut state.shown)),
                // Its workers have already reported them.
                Some(_) => driver.shown = driver.machine.lines_printed(),
            }
            return Some(owner);
        }
        state.joined = state.next;
        (state.checked, state.seats, state.spent_before) = (state.next, 0, state.spent_by_all);
        state.branch = Some(driver.machine.branch());
        state.owner = Some(owner);
        None
    }

    /// Joins what the ended workers leave, in the order of their calls. What calls after the first failed one did does
    /// not count: in sequence they would not have started. Returns whether the parallel call is done.
    fn join_ends(&self, driver: &mut MachineDriver, state: &State, mut ends: Vec<WorkerResult>) -> bool {
        let first = state.joined;
        let failure = self.failure(first, &ends);
        // On a timeout or cancellation, what has happened is kept: it depends on timing anyway.
        let keeps_all = failure.as_ref().is_some_and(|failure| failure.cause.is_some_and(Cause::is_of_time));
        let mut kept = failure.as_ref().map_or(ends.len(), |failure| (failure.kept - first).min(ends.len()));
        kept = kept.min(self.within_fuel(state, &ends));
        if let Some(sampler) = &mut driver.sampler {
            let seen = ends.iter_mut().take(if keeps_all { usize::MAX } else { kept });
            seen.filter_map(|end| end.seen.take()).for_each(|seen| sampler.absorb(*seen));
        }
        let rest = ends.split_off(kept);
        let (joined, mut ledgers): (Vec<WorkerEnd>, Vec<Ledger>) =
            ends.into_iter().map(|WorkerResult { end, ledger, .. }| (end, ledger)).unzip();
        let outcome = driver.machine.join(joined);
        let too_many = ledgers.split_off(outcome.err().unwrap_or(ledgers.len()).min(ledgers.len()));
        let given_up = first + ledgers.len();
        ledgers.into_iter().for_each(|ledger| driver.ledger.absorb(ledger));
        let over = match failure {
            _ if outcome.is_err() => true,
            Some(Failure { error, cause, .. }) => {
                let caught = driver.machine.fail_parallel(error, cause == Some(Cause::ToolPanic));
                // The calling machine is intact. What ended its workers ends it too, unless the program catches it.
                driver.cause = cause.filter(|&cause| cause != Cause::Bug && !caught);
                true
            }
            None => state.next == self.count,
        };
        let (fuel, prints, ledgers) = rest.into_iter().fold(
            (0_u64, Vec::new(), too_many),
            |(fuel, mut prints, mut ledgers), WorkerResult { end, ledger, .. }| {
                let fuel = fuel.saturating_add(end.usage().fuel);
                prints.push(end);
                ledgers.push(ledger);
                (fuel, prints, ledgers)
            },
        );
        if keeps_all {
            driver.machine.keep_work(prints);
            ledgers.into_iter().for_each(|ledger| driver.ledger.absorb(ledger));
        } else {
            self.give_up(driver, given_up, fuel, ledgers);
        }
        over
    }

    /// Returns how many of these workers, in order, the fuel is enough for, and one more that exceeds it.
    fn within_fuel(&self, state: &State, ends: &[WorkerResult]) -> usize {
        let mut spent = state.spent_before;
        let is_beyond = |end: &WorkerResult| {
            spent = spent.saturating_add(end.end.usage().fuel);
            self.is_too_much(spent)
        };
        ends.iter().position(is_beyond).map_or(ends.len(), |at| at + 1)
    }

    /// Discards the work of the workers from this one on. Only the host sees the calls that they made.
    fn give_up(&self, driver: &mut MachineDriver, first: usize, fuel: u64, ledgers: Vec<Ledger>) {
        self.shared.give_up(fuel);
        let has_calls = ledgers.iter().any(|ledger| !ledger.is_empty());
        ledgers.into_iter().for_each(|ledger| driver.ledger.give_up(ledger));
        if has_calls {
            let from = self.scope.place_of(self.up.as_deref(), first);
            self.shared.gate.give_up(&from);
            if self.shared.setting.alarm.is_some() {
                self.shared.workers_given_up.lock().unwrap_or_else(PoisonError::into_inner).push(from);
            }
        }
    }

    /// Returns the failure to report. If workers ended only because of an outer failure, that is the failure.
    fn failure(&self, first: usize, ends: &[WorkerResult]) -> Option<Failure> {
        let position = |is: &dyn Fn(&WorkerResult) -> bool| ends.iter().position(is);
        let at = position(&|end| end.cause == Some(Cause::Cancelled))
            .or_else(|| position(&WorkerResult::failed))
            .or_else(|| position(&|end| end.end.error().is_some()))?;
        let (cause, error) = (ends[at].cause, ends[at].end.error()?);
        let index = first + at;
        // How far a worker got before its excess call depends on timing.
        let too_many = one_too_many(error);
        let kept = index + usize::from(too_many.is_none());
        Some(Failure { error: too_many.unwrap_or_else(|| error.clone()).with_index(index), cause, kept })
    }
}

/// The slots for the workers of a parallel call. They follow from the limits and the enclosing calls, not from what
/// other workers do.
struct Room {
    /// The maximum number of workers alive at once.
    window: usize,
    /// The number of slots that a parallel call inside each worker may take.
    slots_inside: usize,
    /// The number of slots that are left over.
    spare: usize,
    /// Whether the only slot is that of the calling worker.
    inside_slot: bool,
}

/// The seat of a worker among those alive at once. It passes to the next worker of the same call.
pub(super) struct Seat {
    /// `None` if the worker uses the slot of its caller.
    _slot: Option<Slot>,
    /// Extra slots that calls inside the worker may take.
    spare: usize,
}

impl Room {
    /// Returns `None` if parallel calls are nested deeper than there are slots.
    fn of(up: Option<&WorkerPath>, count: usize, limits: &Limits) -> Option<Room> {
        let all = usize::try_from(RunShared::slots(limits)).unwrap_or(usize::MAX);
        let (slots, spare, depth) = up.map_or((all, 0, 0), |up| (up.slots, up.spare, up.depth));
        if depth >= all {
            return None;
        }
        let max = match limits.parallel_window {
            0 => usize::MAX,
            window => usize::try_from(window).unwrap_or(usize::MAX),
        };
        let max = max.min(count).max(1);
        if slots == 0 {
            return Some(Room { window: 1, slots_inside: 0, spare: 0, inside_slot: true });
        }
        let window = max.min(slots);
        let slots_inside = (slots - window) / window;
        let all = slots + spare;
        let window = max.min(all / (1 + slots_inside));
        Some(Room { window, slots_inside, spare: all - window * (1 + slots_inside), inside_slot: false })
    }

    /// Returns one more seat; `None` if there is no slot, which is a bug.
    fn seat(&self, state: &mut State, slots: &Arc<ParallelBudget>) -> Option<Seat> {
        let number = state.seats;
        state.seats += 1;
        if self.inside_slot {
            return Some(Seat { _slot: None, spare: 0 });
        }
        let slot = slots.try_acquire();
        debug_assert!(slot.is_some(), "calls took more slots than they may");
        let spare = self.spare / self.window + usize::from(number < self.spare % self.window);
        Some(Seat { _slot: Some(slot?), spare })
    }
}

fn no_slot(up: Option<&WorkerPath>, capacity: usize) -> Error {
    let depth = up.map_or(0, |up| up.depth);
    let (message, hint) = match (capacity, depth) {
        (0, _) => ("the run may have 0 parallel workers".to_owned(), "use map instead of pmap"),
        (1, _) => {
            ("the run may have 1 parallel worker, which is in use".to_owned(), "use map instead of pmap inside pmap")
        }
        (_, depth) => {
            let calls = if depth == 1 { "call" } else { "calls" };
            let message =
                format!("all {capacity} parallel workers are in use, by the {depth} parallel {calls} around this one");
            (message, "use map instead of pmap inside pmap")
        }
    };
    Error::new(Reason::ParallelCapacityExceeded, message)
        .hint(format!("{hint}, or raise the limit parallel_workers"))
        .detail("limit", capacity)
}

/// Returns the error without its position, if it is about a tool call beyond the limit: such a worker is discarded as a
/// whole.
fn one_too_many(error: &Error) -> Option<Error> {
    const REASONS: [Reason; 3] = [Reason::ToolCallLimitExceeded, Reason::BudgetExceeded, Reason::RecordLimitExceeded];
    let cause = error.cause();
    let reason = REASONS.into_iter().find(|&reason| reason == error.reason || Some(reason) == cause)?;
    let mut bare = Error::new(reason, error.message.clone());
    bare.hint.clone_from(&error.hint);
    bare.details.clone_from(&error.details);
    Some(bare.without_call())
}
