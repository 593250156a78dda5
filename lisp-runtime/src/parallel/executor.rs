//! Executors of workers: the threads of a pool, or the thread that drives the run.

use super::pool::Pool;
use super::task::{Task, run_task};
use crate::terms::print_hook::PrintedBy;
use crate::tools::bounded::JobTicket;
use crate::tools::threads::ToolThreads;
use crate::tools::tool::{Reply, Tool, ToolCall};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Decides on which thread a worker continues, and when.
#[derive(Clone)]
pub(crate) enum Executor {
    Pool(Arc<PoolExecutor>),
    Local(Arc<LocalExecutor>),
}

impl Executor {
    /// Queues a worker to continue.
    pub(crate) fn spawn(&self, task: Task) {
        match self {
            Executor::Pool(on) => on.pool.spawn(move || run_task(task)),
            Executor::Local(_) if self.is_abandoned() => drop(task),
            Executor::Local(inline) => {
                inline.lock().ready.push_back(task);
                inline.call_helper();
            }
        }
    }

    /// Makes a worker's tool call. Returns the worker if it can continue at once.
    pub(super) fn call(&self, tool: Arc<Tool>, call: Box<ToolCall>, task: Task) -> Option<Task> {
        match self {
            Executor::Pool(on) if tool.may_block() && on.tools.max() > 0 => on.call(tool, call, task),
            Executor::Pool(on) => Some(task.with(tool.call(call, &on.tools, &|| {}))),
            Executor::Local(inline) => match &inline.tools {
                Some(tools) => Some(task.with(tool.call(call, tools, &|| {}))),
                None => {
                    inline.park(tool, *call, task);
                    None
                }
            },
        }
    }

    /// Reports lines of a worker, in a run that shows lines as they are printed.
    pub(super) fn printed(&self, by: PrintedBy, lines: Vec<String>) {
        if let Executor::Local(inline) = self {
            inline.lock().printed.push((by, lines));
        }
    }

    /// Returns whether the run was dropped.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Executor::Pool(_) => false,
            Executor::Local(inline) => inline.abandoned.load(Ordering::Relaxed),
        }
    }
}

/// The workers of a run on the threads of a pool. Tools that may block are called on the threads for tools.
pub(crate) struct PoolExecutor {
    pool: Pool,
    tools: ToolThreads,
    /// Workers that wait for a call on a thread for tools, by the number of the call.
    parked: Mutex<BTreeMap<u64, Parked>>,
}

struct Parked {
    task: Task,
    /// Its ticket in the queue; `None` once a thread has started the call.
    queued: Option<JobTicket>,
    /// Whether its reply is awaited only until the worker's time is over.
    detached: bool,
}

impl PoolExecutor {
    pub(crate) fn new(pool: Pool, tools: ToolThreads) -> Arc<Self> {
        Arc::new(PoolExecutor { pool, tools, parked: Mutex::default() })
    }

    fn parked(&self) -> MutexGuard<'_, BTreeMap<u64, Parked>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a call on the threads for tools. Returns the worker if it can continue at once.
    fn call(self: &Arc<Self>, tool: Arc<Tool>, call: Box<ToolCall>, task: Task) -> Option<Task> {
        let (number, detached) = (call.number, tool.treatment.detached);
        // The lock is held until the call is registered: a thread may start it at any moment.
        let mut parked = self.parked();
        parked.insert(number, Parked { task, queued: None, detached });
        let on = self.clone();
        match self.tools.submit(Box::new(move || on.make(number, &tool, &call))) {
            Ok(ticket) => {
                if let Some(it) = parked.get_mut(&number) {
                    it.queued = Some(ticket);
                }
                None
            }
            Err(job) if detached => {
                drop(job);
                let it = parked.remove(&number)?;
                Some(it.task.with(Reply::no_thread()))
            }
            // Without a thread, the call is made late on this one.
            Err(job) => {
                drop(parked);
                job();
                None
            }
        }
    }

    /// Makes a queued call, unless its worker no longer waits.
    fn make(&self, number: u64, tool: &Tool, call: &ToolCall) {
        let mut parked = self.parked();
        let Some(it) = parked.get_mut(&number) else { return };
        let waited = it.queued.take().is_some_and(|ticket| ticket.waits);
        drop(parked);
        let reply = if call.is_over() { self.not_made(waited) } else { tool.call_here(call) };
        // The lock is released before the worker continues.
        let parked = self.parked().remove(&number);
        if let Some(it) = parked {
            it.task.go_on_with(reply);
        }
    }

    fn not_made(&self, waited: bool) -> Reply {
        Reply::NotMade { tool_threads: waited.then(|| self.tools.max()) }
    }

    /// Ends workers whose time is over and that wait for a thread or a detached tool.
    pub(crate) fn end_those_that_are_over(&self) {
        let mut parked = self.parked();
        let is_over = |it: &mut Parked| {
            (it.queued.is_some() || it.detached) && it.task.driver().is_some_and(|driver| driver.is_over())
        };
        let over: Vec<u64> = parked.iter_mut().filter_map(|(&number, it)| is_over(it).then_some(number)).collect();
        let over: Vec<Parked> = over.iter().filter_map(|number| parked.remove(number)).collect();
        drop(parked);
        for Parked { task, queued, .. } in over {
            let reply = match queued {
                Some(ticket) => {
                    // If a thread has just taken the call, it finds no waiting worker and does not make it.
                    self.tools.withdraw(ticket);
                    self.not_made(ticket.waits)
                }
                None => Reply::Late,
            };
            task.go_on_with(reply);
        }
    }
}

/// The workers of a run that continue one after another on one thread, and on others with
/// [`get_help`](LocalExecutor::get_help).
#[derive(Default)]
pub(crate) struct LocalExecutor {
    /// Where detached tools are called; `None` in a run that is driven step by step: its driver answers the calls.
    tools: Option<ToolThreads>,
    state: Mutex<State>,
    abandoned: AtomicBool,
    helpers: OnceLock<Pool>,
    /// Notified when a helper has finished a worker's turn.
    helped: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Task>,
    /// Workers that wait for the host's reply, by the number of the call.
    parked: BTreeMap<u64, (Arc<Tool>, ToolCall, Task)>,
    /// Those that the host wants to be asked about again when they have their turns.
    held: BTreeSet<u64>,
    printed: Vec<(PrintedBy, Vec<String>)>,
    /// The number of workers that helpers run now.
    helping: usize,
}

impl State {
    fn has_turn(&mut self, number: u64) -> bool {
        let waiting = self.parked.get_mut(&number);
        waiting.and_then(|(_, _, task)| task.driver()).is_none_or(|driver| driver.has_turn())
    }
}

impl LocalExecutor {
    pub(crate) fn calling_on(tools: ToolThreads) -> Self {
        LocalExecutor { tools: Some(tools), ..LocalExecutor::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn park(&self, tool: Arc<Tool>, call: ToolCall, task: Task) {
        self.lock().parked.insert(call.number, (tool, call, task));
    }

    /// Runs workers until all of them wait for the host or none is left.
    pub(crate) fn run(&self) {
        self.run_showing(&mut drop);
    }

    /// Like [`run`](LocalExecutor::run); `show` receives the lines as they are printed.
    fn run_showing(&self, show: &mut dyn FnMut((PrintedBy, Vec<String>))) {
        while self.run_one(show) {}
    }

    /// Gives one worker a turn. Returns false if all wait for the host or run on helpers, or none is left.
    pub(crate) fn run_one(&self, show: &mut dyn FnMut((PrintedBy, Vec<String>))) -> bool {
        let next = self.lock().ready.pop_front();
        let ran = next.is_some();
        if let Some(task) = next {
            run_task(task);
        }
        self.take_printed().into_iter().for_each(show);
        ran || self.end_those_that_are_over()
    }

    /// Takes the lines of workers that were not shown yet, in order.
    pub(crate) fn take_printed(&self) -> Vec<(PrintedBy, Vec<String>)> {
        std::mem::take(&mut self.lock().printed)
    }

    /// Lets the threads of a pool run workers too.
    pub(crate) fn get_help(self: &Arc<Self>, pool: Pool) {
        if self.helpers.set(pool).is_ok() {
            let ready = self.lock().ready.len();
            (0..ready).for_each(|_| self.call_helper());
        }
    }

    /// Returns whether there is more work than for one thread.
    pub(crate) fn wants_help(&self) -> bool {
        self.helpers.get().is_none() && !self.lock().ready.is_empty()
    }

    fn call_helper(self: &Arc<Self>) {
        if let Some(pool) = self.helpers.get() {
            let on = self.clone();
            pool.spawn(move || on.help());
        }
    }

    /// Gives a worker a turn on the thread of a helper.
    fn help(&self) {
        let mut state = self.lock();
        let Some(task) = state.ready.pop_front() else { return };
        state.helping += 1;
        drop(state);
        run_task(task);
        self.lock().helping -= 1;
        self.helped.notify_all();
    }

    /// Returns whether more can happen without the host: a worker is ready or on a helper, or a line is not shown yet.
    /// If not, all waiting calls are [listed](LocalExecutor::waiting) from now on.
    pub(crate) fn is_at_work(&self) -> bool {
        let state = self.lock();
        state.helping > 0 || !state.ready.is_empty() || !state.printed.is_empty()
    }

    /// Waits until a helper has finished a turn, for at most `max`, if this thread has nothing to do.
    pub(crate) fn wait_for_help(&self, max: Duration) {
        let state = self.lock();
        if state.helping > 0 && state.ready.is_empty() {
            drop(self.helped.wait_timeout(state, max));
        }
    }

    /// Runs workers until all of them wait for the host or none is left, or until `until` or `stops`, but at least one turn.
    /// Returns whether there is more to do.
    #[cfg(feature = "async")]
    pub(crate) fn run_until(&self, until: Instant, stops: impl Fn() -> bool) -> bool {
        loop {
            let next = self.lock().ready.pop_front();
            match next {
                Some(task) => run_task(task),
                None if self.end_those_that_are_over() => {}
                None => return false,
            }
            if stops() || Instant::now() >= until {
                return true;
            }
        }
    }

    /// Returns the calls after this number that wait for the host, oldest first.
    #[cfg(feature = "async")]
    pub(crate) fn waiting_after(&self, number: u64) -> Vec<(Arc<Tool>, ToolCall)> {
        let after = (std::ops::Bound::Excluded(number), std::ops::Bound::Unbounded);
        self.lock().parked.range(after).map(|(_, (tool, call, _))| (tool.clone(), call.clone())).collect()
    }

    /// Returns whether a call waits for the host.
    #[cfg(feature = "async")]
    pub(crate) fn waits_for(&self, number: u64) -> bool {
        self.lock().parked.contains_key(&number)
    }

    /// Ends workers whose time is over and that wait for the host. Returns whether there was one.
    fn end_those_that_are_over(&self) -> bool {
        let mut state = self.lock();
        let mut over = Vec::new();
        for (&number, (_, _, task)) in &mut state.parked {
            if task.driver().is_some_and(|driver| driver.is_over()) {
                over.push(number);
            }
        }
        let over: Vec<Task> = over.iter().filter_map(|number| state.parked.remove(number)).map(|it| it.2).collect();
        drop(state);
        let any = !over.is_empty();
        for mut task in over {
            if let Some(driver) = task.driver() {
                driver.stop_if_over();
            }
            task.go_on();
        }
        any
    }

    /// Keeps a call until it has its turn.
    pub(crate) fn hold(&self, number: u64) {
        self.lock().held.insert(number);
    }

    /// Returns whether the worker of a call that waits for the host has its turn.
    pub(crate) fn has_turn(&self, number: u64) -> bool {
        self.lock().has_turn(number)
    }

    /// Takes the kept calls that now have their turns.
    pub(crate) fn with_turns(&self) -> Vec<ToolCall> {
        let mut state = self.lock();
        let held = std::mem::take(&mut state.held);
        // A call whose worker was ended no longer waits.
        let waits = held.into_iter().filter(|number| state.parked.contains_key(number)).collect::<Vec<_>>();
        let (ready, rest): (Vec<u64>, _) = waits.into_iter().partition(|&number| state.has_turn(number));
        state.held = rest.into_iter().collect();
        ready.iter().filter_map(|number| state.parked.get(number)).map(|(_, call, _)| call.clone()).collect()
    }

    /// Returns the earliest deadline of the workers that wait for the host.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.lock().parked.values_mut().filter_map(|(_, _, task)| task.driver()?.ends_at()).min()
    }

    /// Returns the calls that wait for the host, oldest first.
    pub(crate) fn waiting(&self) -> Vec<ToolCall> {
        self.lock().parked.values().map(|(_, call, _)| call.clone()).collect()
    }

    /// Replaces a waiting call by the approved one.
    pub(crate) fn settle(&self, approved: &ToolCall) {
        if let Some((_, call, _)) = self.lock().parked.get_mut(&approved.number) {
            call.clone_from(approved);
        }
    }

    /// Passes the host's reply to the worker that made a call. Returns false if the call no longer waits.
    pub(crate) fn reply(&self, number: u64, reply: Reply) -> bool {
        let parked = self.lock().parked.remove(&number);
        match parked {
            Some((_, _, task)) => {
                task.go_on_with(reply);
                true
            }
            None => false,
        }
    }

    /// Drops the workers of a run that is dropped.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        let state = std::mem::take(&mut *self.lock());
        drop(state);
    }
}
