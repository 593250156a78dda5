//! Where workers run: on the threads of a pool, or on the thread of whoever drives the run.

use super::{Pool, Task, work};
use crate::tool::{Reply, Tool, ToolCall};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Decides on which thread a worker goes on, and when.
#[derive(Clone)]
pub(crate) enum Exec {
    Pool(Pool),
    Inline(Arc<Inline>),
}

impl Exec {
    /// Lets a worker go on when its turn comes.
    pub(crate) fn spawn(&self, task: Task) {
        match self {
            Exec::Pool(pool) => pool.spawn(task),
            Exec::Inline(_) if self.is_abandoned() => drop(task),
            Exec::Inline(inline) => inline.lock().ready.push_back(task),
        }
    }

    /// Makes a worker's tool call. Gives the worker back when it can go on at once.
    pub(super) fn call(&self, tool: Arc<Tool>, call: ToolCall, task: Task) -> Option<Task> {
        match self {
            Exec::Pool(pool) if tool.may_block() => {
                pool.block(Box::new(move || task.go_on_with(tool.call(call))));
                None
            }
            Exec::Inline(inline) if inline.by_hand => {
                inline.park(call, task);
                None
            }
            _ => Some(task.with(tool.call(call))),
        }
    }

    /// Lines of a worker, in a run whose prints go out as they happen.
    pub(super) fn printed(&self, lines: Vec<String>) {
        if let Exec::Inline(inline) = self {
            inline.lock().printed.extend(lines);
        }
    }

    /// Has the run been dropped?
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Exec::Pool(_) => false,
            Exec::Inline(inline) => inline.abandoned.load(Ordering::Relaxed),
        }
    }
}

/// The workers of a run that go on one after the other, on one thread.
#[derive(Default)]
pub(crate) struct Inline {
    /// The run is driven by hand: whoever drives it answers the calls of tools.
    by_hand: bool,
    state: Mutex<State>,
    abandoned: AtomicBool,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Task>,
    /// Workers that wait for the host's reply, by the number of their call.
    parked: BTreeMap<u64, (ToolCall, Task)>,
    printed: Vec<String>,
}

impl Inline {
    pub(crate) fn by_hand() -> Self {
        Inline { by_hand: true, ..Inline::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn park(&self, call: ToolCall, task: Task) {
        self.lock().parked.insert(call.number, (call, task));
    }

    /// Takes workers on until all wait for the host or none is left.
    pub(crate) fn run(&self) {
        self.run_showing(&mut drop);
    }

    /// The same; `show` gets the lines that workers print, as they happen.
    pub(crate) fn run_showing(&self, show: &mut dyn FnMut(Vec<String>)) {
        loop {
            let next = self.lock().ready.pop_front();
            match next {
                Some(task) => {
                    work(task);
                    let printed = std::mem::take(&mut self.lock().printed);
                    if !printed.is_empty() {
                        show(printed);
                    }
                }
                None if self.end_those_that_are_over() => {}
                None => return,
            }
        }
    }

    /// Workers whose time is over do not wait for the host any more. Answers whether there was one.
    fn end_those_that_are_over(&self) -> bool {
        let mut state = self.lock();
        let mut over = Vec::new();
        for (&number, (_, task)) in &mut state.parked {
            if task.actor().is_some_and(|actor| actor.is_over()) {
                over.push(number);
            }
        }
        let over: Vec<Task> = over.iter().filter_map(|number| state.parked.remove(number)).map(|it| it.1).collect();
        drop(state);
        let any = !over.is_empty();
        for mut task in over {
            if let Some(actor) = task.actor() {
                actor.stop_if_over();
            }
            task.go_on();
        }
        any
    }

    /// The calls that wait for the host, the oldest first.
    pub(crate) fn waiting(&self) -> Vec<ToolCall> {
        self.lock().parked.values().map(|(call, _)| call.clone()).collect()
    }

    /// The host's reply to a call. Answers false when the call does not wait any more.
    pub(crate) fn reply(&self, number: u64, reply: Reply) -> bool {
        let parked = self.lock().parked.remove(&number);
        match parked {
            Some((_, task)) => {
                task.go_on_with(reply);
                true
            }
            None => false,
        }
    }

    /// The run is dropped: its workers are, too.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        let state = std::mem::take(&mut *self.lock());
        drop(state);
    }
}
