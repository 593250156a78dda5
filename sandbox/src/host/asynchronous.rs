//! Runs in processes of their own as futures, for any executor.

use super::reactor::Watch;
use super::running::Running;
use super::sandbox::{Sandbox, fault};
use lisp_runtime::remote::{Alarm, HostHalf, Job, RunWaker};
use lisp_runtime::{Input, Outcome, Request};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long a poll listens to a process that goes on talking before the others on its thread have a turn.
const TURN_TIME: Duration = Duration::from_millis(1);
/// How soon a template that has no room for an order is tried again.
const ROOM_STEP: Duration = Duration::from_millis(2);
/// How long it may have none before it counts as stuck.
const STUCK: Duration = Duration::from_secs(1);

impl Sandbox {
    /// Runs a request as a future, on any executor: [`Sandbox::run`] without a thread that waits.
    ///
    /// - No thread is held while the process computes or an async tool ([`lisp_runtime::Tool::new_async`]) waits. Other tools are
    ///   called on the engine's tool threads ([`lisp_runtime::EngineBuilder::tool_threads`]), or on the thread that polls
    ///   when there is none. All runs of the process together have two threads of the library's own: one waits for their
    ///   sockets, one for their deadlines and handles.
    /// - The run's time counts from this call. The process is ordered by the first poll. When a template has died, that poll starts
    ///   another, which takes some milliseconds.
    /// - Dropping the future kills the process and drops the calls under way.
    pub fn run_async(&self, request: &Request<'_>) -> SandboxRun {
        let mut input = Input::new();
        match self.engine().split_request(request, &mut input) {
            Ok((job, host)) => self.begin(&job, host),
            Err(outcome) => SandboxRun::over(self, *outcome),
        }
    }

    /// Compiles a program and runs it as a future: [`Sandbox::eval`], in the way of [`Sandbox::run_async`].
    ///
    /// ```no_run
    /// # use lisp_runtime::{Engine, Input, Tool, ToolCall};
    /// # use lisp_sandbox::Sandbox;
    /// # async fn fetch(id: u64) -> Result<String, std::io::Error> { Ok(format!("order {id}")) }
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let order = Tool::new_async("order", |call: ToolCall| async move { Ok(fetch(call.get("id")?).await?) });
    /// let sandbox = Sandbox::builder().engine(Engine::builder().grant(order).build()?).build()?;
    /// let outcome = sandbox.eval_async("(tool/order {:id 7})", &Input::new()).await;
    /// assert_eq!(outcome.value::<String>()?, "order 7");
    /// # Ok(())
    /// # }
    /// ```
    pub fn eval_async(&self, source: &str, input: &Input<'_>) -> SandboxRun {
        match self.split(source, input, false) {
            Ok((job, host)) => self.begin(&job, host),
            Err(outcome) => SandboxRun::over(self, *outcome),
        }
    }

    fn begin(&self, job: &Job<'_>, mut host: HostHalf) -> SandboxRun {
        match self.prepare(job, &mut host) {
            Ok(job) => SandboxRun::new(self, Stage::Order { job, since: Instant::now() }, Some(host)),
            Err(outcome) => SandboxRun::over(self, *outcome),
        }
    }
}

/// A run of [`Sandbox::run_async`] or [`Sandbox::eval_async`]. Once it is over it may not be polled again: it stays pending.
#[must_use = "a future does nothing unless it is polled"]
pub struct SandboxRun {
    run_id: String,
    /// Before the run, whose sockets it waits for.
    watch: Option<Watch>,
    alarm: Option<Alarm>,
    stage: Stage,
    sandbox: Sandbox,
    /// `None` when there is no run.
    host: Option<Box<HostHalf>>,
    waker: Arc<RunWaker>,
}

enum Stage {
    /// There is no process yet.
    Order {
        job: Vec<u8>,
        since: Instant,
    },
    Running(Box<Running>),
    Done(Box<Outcome>),
    Over,
}

impl fmt::Debug for SandboxRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxRun").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

impl SandboxRun {
    fn new(sandbox: &Sandbox, stage: Stage, host: Option<HostHalf>) -> Self {
        let run_id = match (&stage, &host) {
            (Stage::Done(outcome), _) => outcome.run_id.to_string(),
            (_, host) => host.as_ref().map(|host| host.run_id().to_owned()).unwrap_or_default(),
        };
        let waker = Arc::new(RunWaker::default());
        SandboxRun {
            run_id,
            watch: None,
            alarm: None,
            stage,
            sandbox: sandbox.clone(),
            host: host.map(Box::new),
            waker,
        }
    }

    fn over(sandbox: &Sandbox, outcome: Outcome) -> Self {
        SandboxRun::new(sandbox, Stage::Done(Box::new(outcome)), None)
    }

    /// The name of the run: [`Outcome::run_id`] when it is over.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Orders the process; `None` when there is no room for the order yet.
    fn order(&mut self, job: &[u8], since: Instant) -> Option<Stage> {
        let Some(host) = self.host.as_deref_mut() else { return Some(Stage::Over) };
        let (waker, task) = (self.waker.clone(), Waker::from(self.waker.clone()));
        let bytes = job.len() as u64;
        let mut ordered = self.sandbox.order_now(host, bytes, since.elapsed() >= STUCK);
        if matches!(ordered, Ok(None)) {
            self.alarm = Alarm::set(Some(Instant::now() + ROOM_STEP), None, &task);
            if self.alarm.is_some() {
                return None;
            }
            // Nobody would wake it.
            ordered = self.sandbox.order_now(host, bytes, true);
        }
        let mut running = match ordered {
            Ok(Some(running)) => Box::new(running),
            Ok(None) => return Some(Stage::Done(Box::new(fault(host, "the template takes no orders")))),
            Err(error) => return Some(Stage::Done(Box::new(fault(host, &error.to_string())))),
        };
        running.call_as_futures(waker);
        match Watch::new(running.pair(), &task) {
            Ok(watch) => self.watch = Some(watch),
            Err(error) => {
                let why = format!("no thread or descriptor for the sockets of asynchronous runs: {error}");
                return Some(Stage::Done(Box::new(fault(host, &why))));
            }
        }
        running.give_job(host, job);
        running.restock();
        Some(Stage::Running(running))
    }

    /// Listens to the process. `None` when it has nothing more to say for now.
    fn listen(&mut self, running: &mut Running, until: Instant) -> Option<Next> {
        let host = self.host.as_deref_mut()?;
        loop {
            let some_heard = running.step_now(host);
            if running.is_over() {
                // The sockets go back for other runs.
                (self.watch, self.alarm) = (None, None);
                return Some(Next::Done(Box::new(running.finish(host))));
            }
            if !some_heard {
                return None;
            }
            if Instant::now() >= until {
                return Some(Next::Yield);
            }
        }
    }

    /// Has the run woken when there is something to hear, or to look at.
    fn wait_for(&mut self, running: &Running) -> Result<(), std::io::Error> {
        let (Some(host), Some(watch)) = (self.host.as_deref(), &self.watch) else { return Ok(()) };
        let (at, cancel) = (running.next_moment(host), host.cancel());
        // A handle that was used has been seen.
        let cancel = Some(cancel).filter(|cancel| host.is_cancellable() && !cancel.is_cancelled());
        if !self.alarm.as_ref().is_some_and(|alarm| alarm.at() == at && alarm.is_set()) {
            self.alarm = None;
            self.alarm = Alarm::set(at, cancel, &Waker::from(self.waker.clone()));
        }
        watch.arm(running.wanted())
    }
}

/// How listening ended.
enum Next {
    Yield,
    Done(Box<Outcome>),
}

impl Future for SandboxRun {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let it = &mut *self;
        it.waker.set(context.waker());
        let until = Instant::now() + TURN_TIME;
        loop {
            match std::mem::replace(&mut it.stage, Stage::Over) {
                Stage::Order { job, since } => match it.order(&job, since) {
                    Some(stage) => it.stage = stage,
                    None => {
                        it.stage = Stage::Order { job, since };
                        return Poll::Pending;
                    }
                },
                Stage::Running(mut running) => match it.listen(&mut running, until) {
                    Some(Next::Done(outcome)) => it.stage = Stage::Done(outcome),
                    Some(Next::Yield) => {
                        it.stage = Stage::Running(running);
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    None => {
                        let waits = it.wait_for(&running);
                        it.stage = match waits {
                            Ok(()) => Stage::Running(running),
                            Err(error) => {
                                drop(running);
                                let why = format!("the sockets of an asynchronous run cannot be waited for: {error}");
                                match it.host.as_deref_mut() {
                                    Some(host) => Stage::Done(Box::new(fault(host, &why))),
                                    None => Stage::Over,
                                }
                            }
                        };
                        if matches!(it.stage, Stage::Running(_)) {
                            return Poll::Pending;
                        }
                    }
                },
                Stage::Done(outcome) => {
                    (it.watch, it.alarm) = (None, None);
                    return Poll::Ready(*outcome);
                }
                Stage::Over => return Poll::Pending,
            }
        }
    }
}
