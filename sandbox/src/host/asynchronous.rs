//! Runs in processes of their own as futures, for any executor.

use super::domain::Domain;
use super::domains::{Seat, Wait};
use super::reactor::Watch;
use super::running::Running;
use super::sandbox::{ROOM_STEP, Sandbox, fault};
use lisp_runtime::remote::{Alarm, HostHalf, Job, Report, RunWaker};
use lisp_runtime::{Input, Outcome, Request};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long a poll listens to a process that goes on talking before the others on its thread have a turn.
const TURN_TIME: Duration = Duration::from_millis(1);

/// How soon a run that waits for a place in a domain looks again, should those before it not come.
const TURN_STEP: Duration = Duration::from_millis(20);

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
        if let Some(refused) = self.refused(request) {
            return SandboxRun::over(self, refused);
        }
        let mut input = Input::new();
        match self.engine().split_request(request, &mut input) {
            Ok((job, mut host)) => match request.domain.as_deref().map(|name| self.domain(name)).transpose() {
                Ok(domain) => self.begin(&job, host, domain),
                Err(error) => SandboxRun::over(self, fault(&mut host, &error.to_string())),
            },
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
            Ok((job, host)) => self.begin(&job, host, None),
            Err(outcome) => SandboxRun::over(self, *outcome),
        }
    }

    fn begin(&self, job: &Job<'_>, mut host: HostHalf, domain: Option<Domain>) -> SandboxRun {
        match self.prepare(job, &mut host) {
            Ok(job) => SandboxRun { domain, ..SandboxRun::new(self, Stage::Order(job), Some(host)) },
            Err(outcome) => SandboxRun::over(self, *outcome),
        }
    }
}

impl Domain {
    /// Runs a request in the domain as a future: [`Domain::run`], in the way of [`Sandbox::run_async`]. While no process of the domain
    /// is free it waits in one queue with [`Domain::run`]: nobody overtakes but those whose future is not polled for 20 ms.
    pub fn run_async(&self, request: &Request<'_>) -> SandboxRun {
        let mut input = Input::new();
        match self.sandbox.engine().split_request(request, &mut input) {
            Ok((job, host)) => self.sandbox.begin(&job, host, Some(self.clone())),
            Err(outcome) => SandboxRun::over(&self.sandbox, *outcome),
        }
    }

    /// Compiles a program and runs it in the domain as a future: [`Domain::eval`], in the way of [`Domain::run_async`].
    pub fn eval_async(&self, source: &str, input: &Input<'_>) -> SandboxRun {
        match self.sandbox.split(source, input, false) {
            Ok((job, host)) => self.sandbox.begin(&job, host, Some(self.clone())),
            Err(outcome) => SandboxRun::over(&self.sandbox, *outcome),
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
    domain: Option<Domain>,
    /// Its wait for a place in the domain, and the place.
    wait: Option<Wait>,
    seat: Option<Seat>,
    /// `None` when there is no run.
    host: Option<Box<HostHalf>>,
    waker: Arc<RunWaker>,
}

enum Stage {
    /// There is no process yet.
    Order(Vec<u8>),
    /// With the job as long as another process may have to do it.
    Running {
        running: Box<Running>,
        job: Vec<u8>,
    },
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
            domain: None,
            wait: None,
            seat: None,
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

    /// Orders the process; the job comes back when there is no room for one yet.
    fn order(&mut self, job: Vec<u8>) -> Stage {
        let Some(host) = self.host.as_deref_mut() else { return Stage::Over };
        let (waker, task) = (self.waker.clone(), Waker::from(self.waker.clone()));
        let done = |outcome: Outcome| Stage::Done(Box::new(outcome));
        let ordered = match &self.domain {
            None => self.sandbox.order_now(host, job.len()).map(|running| running.map(Box::new)),
            Some(domain) => domain.try_start(&mut self.wait, &mut self.seat, job.len(), (host, &task)),
        };
        let mut running = match ordered {
            Ok(Some(running)) => running,
            Ok(None) => {
                let left = match (&self.domain, &self.seat) {
                    // It is woken when a place is free.
                    (Some(domain), None) => domain.state.time_to_wait(host).map(|left| left.min(TURN_STEP)),
                    _ => self.sandbox.time_to_wait(host).map(|left| left.min(ROOM_STEP)),
                };
                return match left {
                    Ok(left) => {
                        self.alarm = Alarm::set(Some(Instant::now() + left), None, &task);
                        match self.alarm {
                            Some(_) => Stage::Order(job),
                            // Nobody would wake it.
                            None => done(fault(host, "no thread to wait for room for a process")),
                        }
                    }
                    Err(error) => done(host.fail(error, None)),
                };
            }
            Err(error) => return done(fault(host, &error.to_string())),
        };
        running.call_as_futures(waker);
        match Watch::new(running.pair(), &task) {
            Ok(watch) => self.watch = Some(watch),
            Err(error) => {
                let why = format!("no thread or descriptor for the sockets of asynchronous runs: {error}");
                return done(fault(host, &why));
            }
        }
        running.give_job(host, &job);
        if self.domain.is_none() {
            running.restock();
        }
        // Only a process that was idle may have to be replaced.
        let job = if self.seat.as_ref().is_some_and(Seat::is_warm) { job } else { Vec::new() };
        Stage::Running { running, job }
    }

    /// Listens to the process. `None` when it has nothing more to say for now.
    fn listen(&mut self, running: &mut Running, until: Instant) -> Option<Next> {
        let host = self.host.as_deref_mut()?;
        loop {
            let some_heard = running.step_now(host);
            if running.is_over() {
                // The sockets go back for other runs.
                (self.watch, self.alarm) = (None, None);
                if self.seat.as_ref().is_some_and(Seat::is_warm) && running.missed_job() {
                    return Some(Next::Again);
                }
                return Some(Next::Done(Box::new(running.finish(host))));
            }
            if self.seat.is_some()
                && let Some(report) = running.take_report()
            {
                (self.watch, self.alarm) = (None, None);
                return Some(Next::Reported(Box::new(report)));
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
        if host.is_cancellable() && cancel.is_cancelled() && !running.has_seen_cancel() {
            // It was used behind the last look.
            Waker::from(self.waker.clone()).wake();
        }
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
    /// The process ended while it was idle, as it turns out. Another takes its place.
    Again,
    /// The process stays.
    Reported(Box<Report>),
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
                Stage::Order(job) => {
                    it.stage = it.order(job);
                    if matches!(it.stage, Stage::Order(_)) {
                        return Poll::Pending;
                    }
                }
                Stage::Running { mut running, job } => match it.listen(&mut running, until) {
                    Some(Next::Done(outcome)) => it.stage = Stage::Done(outcome),
                    Some(Next::Again) => {
                        drop(running);
                        it.seat = None;
                        it.stage = Stage::Order(job);
                    }
                    Some(Next::Reported(report)) => {
                        let (Some(seat), Some(host)) = (it.seat.take(), it.host.as_deref_mut()) else { continue };
                        let outcome = seat.end(running, *report, host, it.sandbox.domains());
                        it.stage = Stage::Done(Box::new(outcome));
                    }
                    Some(Next::Yield) => {
                        it.stage = Stage::Running { running, job };
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    None => match it.wait_for(&running) {
                        Ok(()) => {
                            it.stage = Stage::Running { running, job };
                            return Poll::Pending;
                        }
                        Err(error) => {
                            drop(running);
                            let why = format!("the sockets of an asynchronous run cannot be waited for: {error}");
                            it.stage = match it.host.as_deref_mut() {
                                Some(host) => Stage::Done(Box::new(fault(host, &why))),
                                None => Stage::Over,
                            };
                        }
                    },
                },
                Stage::Done(outcome) => {
                    // A future that is over may be kept: its place and its handle of the domain are for others.
                    (it.watch, it.alarm) = (None, None);
                    (it.wait, it.seat, it.domain) = (None, None, None);
                    return Poll::Ready(*outcome);
                }
                Stage::Over => return Poll::Pending,
            }
        }
    }
}
