//! Runs as futures, for any executor.

use super::engine::Engine;
use super::input::Input;
use super::program::Program;
use super::run::{Run, RunEvent};
use crate::drive::alarm::Alarm;
use crate::drive::wake::{CallFutures, RunWaker};
use crate::parallel::executor::{Executor, LocalExecutor};
use crate::parallel::task::run_task;
use crate::terms::outcome::{Outcome, Problem};
use crate::terms::run_view::RunView;
use crate::tools::async_tool::ToolFuture;
use crate::tools::bounded::JobTicket;
use crate::tools::tool::{Reply, Tool, ToolCall};
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long one poll computes before it yields to other tasks.
const TURN_TIME: Duration = Duration::from_millis(1);

impl Engine {
    /// Runs a program as a future, on any executor. Parallel workers take turns on the polling thread.
    ///
    /// - Async tools ([`Tool::new_async`]) hold no thread while they wait. Other tools run on the engine's tool threads
    ///   ([`EngineBuilder::tool_threads`](crate::EngineBuilder::tool_threads)), or on the polling thread if there are
    ///   none.
    /// - A poll computes for about 1 ms, then wakes itself and yields. Some work is not divided and takes longer. The
    ///   first poll parses data given as JSON text; [`Engine::import`] it beforehand to avoid that. The last poll
    ///   writes the result. A turn of a parallel worker takes up to about 2 ms. A built-in over many elements, such as
    ///   `(reduce + ..)`, can take about 10 ms with the default heap limit.
    /// - The time of the run starts with this call. If tool calls do not return, the run ends at its deadline, or
    ///   within 5 ms of a cancellation: one thread per process wakes all waiting runs. That thread does not exist with
    ///   [`EngineBuilder::without_threads`](crate::EngineBuilder::without_threads), or if the system cannot create it.
    ///   Then only its tools wake a run, and you should put a timeout around the future.
    /// - Dropping the future ends the run. Calls in progress are dropped, and calls that wait for a tool thread are not
    ///   made.
    ///
    /// See [`Tool::new_async`] for an example, and `examples/host_async.rs`.
    pub fn run_async(&self, program: &Program, input: Input<'static>) -> RunFuture {
        self.begin_async(input, |_, _, _| Ok(program.clone()))
    }

    /// Compiles a program at once, and runs it as a future like [`Engine::run_async`]. A compile error becomes the
    /// error of the outcome.
    pub fn eval_async(&self, source: &str, input: Input<'static>) -> RunFuture {
        self.begin_async(input, |view, started, input| self.compile_all(view, started, source, input))
    }

    fn begin_async(
        &self,
        mut input: Input<'static>,
        program: impl FnOnce(&RunView, Instant, &mut Input<'static>) -> Result<Program, Box<Problem>>,
    ) -> RunFuture {
        let started = Instant::now();
        let is_cancellable = input.cancel.is_some();
        let (cancel, dropped) = input.cancel.unwrap_or_default().or_by_flag();
        input.cancel = Some(cancel);
        let (replies_to, replies) = channel();
        let waker = Arc::new(RunWaker::default());
        let view = self.view(&input, started);
        let program = program(&view, started, &mut input);
        RunFuture {
            engine: self.clone(),
            view,
            started,
            is_cancellable,
            dropped,
            stage: Stage::Begin(program, Box::new(input)),
            calls: CallFutures::new(waker.clone()),
            waker,
            on_threads: BTreeMap::new(),
            replies_to,
            replies,
            seen: 0,
            alarm: None,
            yielded_long: false,
        }
    }
}

/// A future of [`Engine::run_async`]. Polling it again after it is ready leaves it pending.
#[must_use = "a future does nothing unless it is polled"]
pub struct RunFuture {
    engine: Engine,
    view: RunView,
    started: Instant,
    is_cancellable: bool,
    /// Tells tools on other threads that the run was dropped.
    dropped: Arc<AtomicBool>,
    /// Open calls of async tools.
    calls: CallFutures<ToolFuture>,
    stage: Stage,
    waker: Arc<RunWaker>,
    /// Open calls of other tools.
    on_threads: BTreeMap<u64, (Arc<ToolCall>, JobTicket)>,
    replies_to: Sender<(u64, Reply)>,
    replies: Receiver<(u64, Reply)>,
    /// Worker calls up to this number have started.
    seen: u64,
    alarm: Option<Alarm>,
    /// Whether a poll has yielded since the run is long.
    yielded_long: bool,
}

enum Stage {
    Begin(Result<Program, Box<Problem>>, Box<Input<'static>>),
    Running(Box<Run>, Arc<LocalExecutor>),
    Over,
}

/// The next step of a run.
enum Next {
    /// It continues.
    Go,
    /// It waits for calls.
    Wait,
    /// It has ended.
    Done(Box<Outcome>),
}

impl fmt::Debug for RunFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFuture").field("view", &self.view).field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl RunFuture {
    /// Returns the id of the run, which is also [`Outcome::run_id`].
    pub fn run_id(&self) -> &str {
        self.view.run_id()
    }

    /// Returns whether the program has computed for longer than a moment.
    ///
    /// Until then, a poll takes about a millisecond, besides reading the input and writing the result. After that, one that
    /// comes to a built-in over many elements, such as `(reduce + (range 10000000))`, takes as long as the built-in, at most
    /// until the run's deadline. The poll with which a run becomes long ends there: an executor that must not block can
    /// move the run to another thread.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// use std::{future::Future, pin::pin, task::{Context, Waker}};
    /// let engine = Engine::default();
    /// let mut run = pin!(engine.eval_async("(reduce + (range 100000))", Input::new()));
    /// assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// assert!(run.is_long());
    /// ```
    pub fn is_long(&self) -> bool {
        matches!(&self.stage, Stage::Running(run, _) if run.shared.is_long())
    }

    /// Continues for a moment.
    fn step(&mut self, until: Instant) -> Next {
        let (mut run, inline) = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Begin(program, input) => return self.begin(program, &input),
            Stage::Running(run, inline) => (run, inline),
            Stage::Over => return Next::Wait,
        };
        self.deliver(&mut run);
        let next = match run.is_back(Duration::ZERO) {
            true => self.step_program(&mut run, &inline),
            false => self.step_workers(&mut run, &inline, until),
        };
        self.stage = Stage::Running(run, inline);
        next
    }

    fn begin(&mut self, program: Result<Program, Box<Problem>>, input: &Input<'static>) -> Next {
        let run = program.and_then(|program| self.engine.set_up(&self.view, self.started, &program, input, false));
        match run {
            Ok(mut run) => {
                let inline = run.local_executor();
                self.stage = Stage::Running(Box::new(run), inline);
                Next::Go
            }
            Err(problem) => {
                let limits = self.engine.limits_for(input);
                Next::Done(Box::new(self.engine.ended(&self.view, self.started, problem, limits)))
            }
        }
    }

    /// Passes the replies that have arrived to the run.
    fn deliver(&mut self, run: &mut Run) {
        for (number, reply) in self.calls.poll() {
            run.reply_to(number, reply);
        }
        while let Ok((number, reply)) = self.replies.try_recv() {
            // A call that was cancelled has its reply already.
            if self.on_threads.remove(&number).is_some() {
                run.reply_to(number, reply);
            }
        }
        // Answer the calls that cannot get a thread any more.
        let threads = self.engine.tool_threads();
        self.on_threads.retain(|&number, (call, ticket)| {
            let is_made = !call.is_over() || !threads.withdraw(*ticket);
            if !is_made {
                run.reply_to(number, Reply::NotMade { tool_threads: ticket.waits.then(|| threads.max()) });
            }
            is_made
        });
    }

    fn step_program(&mut self, run: &mut Run, inline: &Arc<LocalExecutor>) -> Next {
        if run.driver.is_waiting() && !run.driver.stop_if_over() {
            return Next::Wait;
        }
        match run.advance_by(1) {
            RunEvent::Call(tool, call) => self.call(&tool, *call),
            RunEvent::Printed(_) | RunEvent::Beat | RunEvent::Turn => {}
            RunEvent::Workers => {
                if let Some(first) = run.send_workers(Executor::Local(inline.clone())) {
                    run_task(first);
                }
            }
            RunEvent::Done(outcome) => return Next::Done(outcome),
        }
        Next::Go
    }

    fn step_workers(&mut self, run: &mut Run, inline: &LocalExecutor, until: Instant) -> Next {
        let more = inline.run_until(until, || !self.yielded_long && run.shared.is_long());
        let new_calls = inline.waiting_after(self.seen);
        let has_new_calls = !new_calls.is_empty();
        for (tool, call) in new_calls {
            self.seen = call.number;
            self.call(&tool, call);
        }
        if more || has_new_calls || run.is_back(Duration::ZERO) {
            return Next::Go;
        }
        // Drop the calls of workers that have ended.
        self.calls.retain(|number| inline.waits_for(number));
        self.on_threads.retain(|&number, (_, ticket)| {
            let waits = inline.waits_for(number);
            if !waits {
                self.engine.tool_threads().withdraw(*ticket);
            }
            waits
        });
        if self.calls.is_empty() && self.on_threads.is_empty() {
            // Nothing is left that could continue the run: a bug, which the run reports.
            run.is_back(Run::LONG);
            return Next::Go;
        }
        Next::Wait
    }

    /// Starts a call.
    fn call(&mut self, tool: &Arc<Tool>, call: ToolCall) {
        let number = call.number;
        if let Some(future) = tool.begin_async(&call) {
            return self.calls.insert(number, future);
        }
        let call = Arc::new(call);
        let job = {
            let (tool, call, replies, waker) =
                (tool.clone(), call.clone(), self.replies_to.clone(), Waker::from(self.waker.clone()));
            move || {
                // When the run has ended, the receiver is gone.
                let _ = replies.send((number, tool.call_here(&call)));
                waker.wake();
            }
        };
        let threads = self.engine.tool_threads();
        let ticket = match tool.may_block() && threads.max() > 0 {
            true => threads.submit(Box::new(job)),
            false => Err(Box::new(job) as Box<dyn FnOnce() + Send>),
        };
        // Without a thread, the call is made late on this one.
        let ticket = ticket.unwrap_or_else(|job| {
            job();
            JobTicket::default()
        });
        self.on_threads.insert(number, (call, ticket));
    }

    /// Sets the alarm for the next deadline of the run or of one of its workers.
    fn set_alarm(&mut self) {
        let Stage::Running(run, inline) = &self.stage else { return };
        if !run.shared.setting.watched {
            return;
        }
        let at = [run.ends_at(), inline.wake_at()].into_iter().flatten().min();
        if !self.alarm.as_ref().is_some_and(|alarm| alarm.at() == at && alarm.is_set()) {
            self.alarm = None;
            let cancel = self.is_cancellable.then_some(&run.shared.setting.cancel);
            self.alarm = Alarm::set(at, cancel, &Waker::from(self.waker.clone()));
        }
    }
}

impl Future for RunFuture {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        self.waker.set(context.waker());
        let until = Instant::now() + TURN_TIME;
        loop {
            match self.step(until) {
                Next::Done(outcome) => {
                    (self.stage, self.alarm) = (Stage::Over, None);
                    self.calls.retain(|_| false);
                    return Poll::Ready(*outcome);
                }
                Next::Wait => {
                    self.set_alarm();
                    return Poll::Pending;
                }
                Next::Go if Instant::now() >= until || (!self.yielded_long && self.is_long()) => {
                    self.yielded_long = self.is_long();
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Next::Go => {}
            }
        }
    }
}

impl Drop for RunFuture {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
        for (_, ticket) in self.on_threads.values() {
            self.engine.tool_threads().withdraw(*ticket);
        }
    }
}
