//! Runs in separate processes as futures, for any executor.

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

/// How long a poll handles packets of one process before it yields to other futures on its thread.
const TURN_TIME: Duration = Duration::from_millis(1);

/// The interval at which a run that waits for a slot in a domain checks again, in case runs before it in the queue
/// never come.
const TURN_STEP: Duration = Duration::from_millis(20);

impl Sandbox {
    /// Runs a request as a future, on any executor: [`Sandbox::run`] without blocking a thread.
    ///
    /// - No thread is blocked while the process computes or an async tool ([`lisp_runtime::Tool::new_async`]) waits.
    ///   Other tools run on the engine's tool threads ([`lisp_runtime::EngineBuilder::tool_threads`]), or on the
    ///   polling thread if there are none. All async runs of this process share two threads of the library: one waits
    ///   for their sockets, one for deadlines and cancel handles.
    /// - The run's time starts with this call. The first poll orders the process. If a template has died, that poll
    ///   starts another one, which takes some milliseconds.
    /// - If the process of a recorded run is lost, calls in progress that may not be repeated are awaited, until the time
    ///   of the run is over. Their ends are then in the record, and the run can resume.
    /// - Dropping the future kills the process and drops its calls in progress.
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

    /// Compiles a program and runs it as a future: [`Sandbox::eval`], with the behavior of [`Sandbox::run_async`].
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
    /// Runs a request in the domain as a future: [`Domain::run`], with the behavior of [`Sandbox::run_async`].
    ///
    /// While no process of the domain is free, it waits in the same queue as [`Domain::run`]. A later run overtakes it
    /// only if this future is not polled for 20 ms.
    pub fn run_async(&self, request: &Request<'_>) -> SandboxRun {
        let mut input = Input::new();
        match self.sandbox.engine().split_request(request, &mut input) {
            Ok((job, host)) => self.sandbox.begin(&job, host, Some(self.clone())),
            Err(outcome) => SandboxRun::over(&self.sandbox, *outcome),
        }
    }

    /// Compiles a program and runs it in the domain as a future: [`Domain::eval`], with the behavior of
    /// [`Domain::run_async`].
    pub fn eval_async(&self, source: &str, input: &Input<'_>) -> SandboxRun {
        match self.sandbox.split(source, input, false) {
            Ok((job, host)) => self.sandbox.begin(&job, host, Some(self.clone())),
            Err(outcome) => SandboxRun::over(&self.sandbox, *outcome),
        }
    }
}

/// The future of [`Sandbox::run_async`] and [`Sandbox::eval_async`]. Polling it again after it has completed returns
/// `Pending`.
#[must_use = "a future does nothing unless it is polled"]
pub struct SandboxRun {
    run_id: String,
    /// Declared before the run, whose sockets it waits for, so that it is dropped first.
    watch: Option<Watch>,
    alarm: Option<Alarm>,
    stage: Stage,
    sandbox: Sandbox,
    domain: Option<Domain>,
    /// The wait for a slot in the domain, and the slot.
    wait: Option<Wait>,
    seat: Option<Seat>,
    /// `None` if there is no run.
    host: Option<Box<HostHalf>>,
    waker: Arc<RunWaker>,
}

enum Stage {
    /// No process is ordered yet.
    Order(Vec<u8>),
    /// The job is kept as long as a replacement process may need it.
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

    /// Returns the id of the run, which is also [`Outcome::run_id`] of its outcome.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Orders the process. Returns to the ordering stage, with the job, if there is no room for a process yet.
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
                    // The waker is called when a slot is free.
                    (Some(domain), None) => domain.state.time_to_wait(host).map(|left| left.min(TURN_STEP)),
                    _ => self.sandbox.time_to_wait(host).map(|left| left.min(ROOM_STEP)),
                };
                return match left {
                    Ok(left) => {
                        self.alarm = Alarm::set(Some(Instant::now() + left), None, &task);
                        match self.alarm {
                            Some(_) => Stage::Order(job),
                            // The waker would never be called.
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

    /// Handles packets of the process. `None` if there are no more for now.
    fn listen(&mut self, running: &mut Running, until: Instant) -> Option<Next> {
        let host = self.host.as_deref_mut()?;
        loop {
            let some_heard = running.step_now(host);
            if running.is_over(host) {
                // Releases the sockets for other runs.
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

    /// Arranges for the waker to be called when there is something to read or to check.
    fn wait_for(&mut self, running: &Running) -> Result<(), std::io::Error> {
        if running.has_ended() {
            // Only calls are awaited, which wake the run themselves.
            self.watch = None;
        }
        let Some(host) = self.host.as_deref() else { return Ok(()) };
        let (at, cancel) = (running.next_moment(host), host.cancel());
        if host.is_cancellable() && cancel.is_cancelled() && !running.has_seen_cancel() {
            // The handle was used after the last check.
            Waker::from(self.waker.clone()).wake();
        }
        // A handle that was used has been handled already.
        let cancel = Some(cancel).filter(|cancel| host.is_cancellable() && !cancel.is_cancelled());
        if !self.alarm.as_ref().is_some_and(|alarm| alarm.at() == at && alarm.is_set()) {
            self.alarm = None;
            self.alarm = Alarm::set(at, cancel, &Waker::from(self.waker.clone()));
        }
        self.watch.as_ref().map_or(Ok(()), |watch| watch.arm(running.wanted()))
    }
}

/// How handling packets ended.
enum Next {
    Yield,
    /// The process had ended while it was idle. Another one takes its place.
    Again,
    /// The process stays alive.
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
                    // A completed future can be kept: its slot and its domain handle are released for others.
                    (it.watch, it.alarm) = (None, None);
                    (it.wait, it.seat, it.domain) = (None, None, None);
                    return Poll::Ready(*outcome);
                }
                Stage::Over => return Poll::Pending,
            }
        }
    }
}
