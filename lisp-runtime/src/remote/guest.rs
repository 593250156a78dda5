//! The guest half of a run, which drives the machine.

use super::job::Job;
use super::report::{CallReply, GuestCall, PrintsSent, Report};
use super::set::SetOfJob;
use crate::api::engine::Engine;
use crate::api::input::{DataSet, Input, Source};
use crate::api::program::Program;
use crate::api::run::{Run, RunEvent};
use crate::api::session::Session;
use crate::parallel::executor::{Executor, LocalExecutor};
use crate::parallel::pool::Pool;
use crate::parallel::task::run_task;
use crate::terms::cancel::Cancel;
use crate::terms::check::Check;
use crate::terms::clock::Clock;
use crate::terms::deadline::ReplayEnd;
use crate::terms::limits::{Limits, bytes};
use crate::terms::outcome::{Figures, Outcome, Phase, Problem};
use crate::terms::place::Place;
use crate::terms::print_hook::PrintedBy;
use crate::terms::run_view::RunView;
use crate::tools::tool::Reply;
use lisp_core::{Error, Reason};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The host as the guest half sees it.
pub trait RunHost {
    /// Reports lines that the program printed.
    fn printed(&mut self, lines: Vec<String>);
    /// Reports lines that a worker printed, or that count now.
    fn printed_by(&mut self, by: PrintedBy, lines: Vec<String>) {
        if !matches!(by, PrintedBy::Ahead(_)) {
            self.printed(lines);
        }
    }
    /// Reports the current figures: with prints, before workers start, and regularly during computation.
    fn figures(&mut self, figures: Figures);
    /// Sends a tool call of the program or a worker. Several calls may be open. A call of the program has its figures.
    fn call(&mut self, call: GuestCall<'_>);
    /// Waits for the reply to any open call, and returns it with the number of the call. Returns `None` at `until`. A
    /// reply of [`CallReply::LATE`] ends the wait.
    fn next_reply(&mut self, until: Option<Instant>) -> Option<(u64, CallReply)>;
}

/// The half of a run that drives the machine, turn after turn.
pub struct GuestHalf {
    job: Result<GuestJob, Box<Problem>>,
    limits: Limits,
    cancel: Cancel,
    replay: Option<Arc<ReplayEnd>>,
    /// The number of threads that may help with workers.
    helpers: usize,
}

/// Runs the programs of a job.
enum GuestJob {
    Once(Engine, Program, Box<Input<'static>>, Arc<AtomicBool>),
    Session(Box<Session>),
}

impl std::fmt::Debug for GuestHalf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuestHalf").finish_non_exhaustive()
    }
}

impl GuestHalf {
    /// Takes a job. Errors in the job are reported by the first [`run`](GuestHalf::run).
    ///
    /// `alarm` is a flag for a process without a watchdog thread: set it at the deadline and when `cancel` is used.
    /// `clock` asks the other half for the time ([`HostHalf::time`](crate::remote::HostHalf::time)), if that has its
    /// own clock. `sets` are the data sets that are already here, in the order in which the other half knows them.
    pub fn new(
        job: Job<'_>,
        sets: &[DataSet],
        alarm: Arc<AtomicBool>,
        cancel: Cancel,
        clock: impl Fn(&Place) -> i64 + Send + Sync + 'static,
    ) -> Self {
        let limits = job.limits;
        // A worker that asks the other half for the time waits for the reply; no other thread may read it meanwhile.
        let helpers = if job.host_clock { 0 } else { job.cores.saturating_sub(1) };
        let clock = if job.host_clock { Clock::of_place(clock) } else { Clock::default() };
        let replay = job.replays.then(Arc::default);
        GuestHalf { job: accept(job, sets, alarm, &cancel, clock), limits, cancel, replay, helpers }
    }

    /// Starts no helper threads, for a process that may not: workers take turns.
    pub fn without_helpers(&mut self) {
        self.helpers = 0;
    }

    /// Returns the end of the replay, for a resumed run. Set it when the other half reports that the record is replayed
    /// ([`HostHalf::replay_ended`](crate::remote::HostHalf::replay_ended)). The time of the run counts from then on.
    pub fn replay_end(&self) -> Option<Arc<ReplayEnd>> {
        self.replay.clone()
    }

    /// Runs the job's program, or, in a session, the program of one more turn. The deadline counts from `started`.
    pub fn run(&mut self, started: Instant, turn: Option<&str>, host: &mut dyn RunHost) -> Report {
        let mut shown = PrintsSent::default();
        let helpers = self.helpers;
        let mut drive = |run: &mut Run| {
            let outcome = drive(run, host, helpers);
            shown = PrintsSent { lines: run.driver.shown, mixed: run.driver.mixed };
            outcome
        };
        let outcome = match &mut self.job {
            Err(problem) => Outcome::of_problem(problem.clone(), self.limits),
            Ok(GuestJob::Once(engine, program, input, alarm)) => {
                let view = RunView::quiet(engine.observed());
                let mut setting = match engine.setting(input, view.clone()) {
                    Ok(setting) => setting,
                    Err(problem) => {
                        let outcome = engine.ended(&view, started, problem, self.limits);
                        return Report::of(outcome, shown, Vec::new());
                    }
                };
                (setting.alarm, setting.replay) = (Some(alarm.clone()), self.replay.clone());
                match Run::set_up(started, setting, program, input, 0) {
                    Ok(mut run) => drive(&mut run),
                    Err(problem) => engine.ended(&view, started, problem, self.limits),
                }
            }
            Ok(GuestJob::Session(session)) => {
                self.cancel.reset();
                session.eval_since(started, turn.unwrap_or_default(), &mut drive)
            }
        };
        self.report(outcome, shown)
    }

    /// Returns the definitions of a session in a report. The deadline counts from `started`.
    pub fn memory(&mut self, started: Instant) -> Report {
        let outcome = match &mut self.job {
            Err(problem) => Outcome::of_problem(problem.clone(), self.limits),
            Ok(GuestJob::Once(..)) => {
                let error = Error::new(Reason::HostFault, "there is no session");
                Outcome::of_problem(Box::new(Problem::new(error, Phase::Result)), self.limits)
            }
            Ok(GuestJob::Session(session)) => {
                self.cancel.reset();
                match session.memory_since(started) {
                    Ok(memory) => Outcome::of_memory(memory, self.limits),
                    Err(problem) => Outcome::of_problem(problem, self.limits),
                }
            }
        };
        self.report(outcome, PrintsSent::default())
    }

    /// Creates the machine of a session, if there is none, and reports everything that a save needs. The deadline
    /// counts from `started`.
    pub fn save(&mut self, started: Instant, host: &mut dyn RunHost) -> Report {
        let settled = match &mut self.job {
            Err(problem) => Err(problem.clone()),
            Ok(GuestJob::Once(..)) => Ok(()),
            Ok(GuestJob::Session(session)) => {
                self.cancel.reset();
                session.settle(started, &mut |run| drive(run, host, 0))
            }
        };
        self.report_end(settled)
    }

    /// Reports whether what a session was given is valid. Nothing is evaluated. The deadline counts from `started`.
    pub fn check(&mut self, started: Instant) -> Report {
        let checked = match &mut self.job {
            Err(problem) => Err(problem.clone()),
            Ok(GuestJob::Once(..)) => Ok(()),
            Ok(GuestJob::Session(session)) => {
                self.cancel.reset();
                session.check_since(started)
            }
        };
        self.report_end(checked)
    }

    /// Reports the end of work without a result.
    fn report_end(&mut self, ended: Result<(), Box<Problem>>) -> Report {
        let outcome = match ended {
            Ok(()) => Outcome::of_memory("{}".to_owned(), self.limits),
            Err(problem) => Outcome::of_problem(problem, self.limits),
        };
        self.report(outcome, PrintsSent::default())
    }

    fn report(&mut self, outcome: Outcome, shown: PrintsSent) -> Report {
        let Ok(GuestJob::Session(session)) = &mut self.job else { return Report::of(outcome, shown, Vec::new()) };
        let kept = session.changes().map(Into::into);
        let mut report = Report::of(outcome, shown, session.names());
        report.kept = kept;
        report
    }
}

fn accept(
    job: Job<'_>,
    sets: &[DataSet],
    alarm: Arc<AtomicBool>,
    cancel: &Cancel,
    clock: Clock,
) -> Result<GuestJob, Box<Problem>> {
    let limits = job.limits;
    let mut builder = Engine::builder().limits(limits).check(job.makes.check);
    builder.clock = clock;
    builder.far_pages = true;
    builder = job.tools.into_iter().fold(builder, |builder, tool| builder.grant(tool.received()));
    let started = Instant::now();
    let broken = |why: String| Box::new(Problem::new(Error::new(Reason::HostFault, why), Phase::Setup));
    let engine = builder.build().map_err(|error| broken(error.to_string()))?;
    let mut input = Input::new().strict_data(job.strict_data).json_keys(job.keys).cancel_with(cancel);
    input = job.setup.into_iter().fold(input, |input, source| input.setup_source(source.into_owned()));
    input.compile_setup(started, &limits)?;
    input.sources = job.sources.into_owned().into_iter().map(Source::into_owned).collect();
    input.signature = job.signature.map(|text| Cow::Owned(text.into_owned()));
    (input.now_ms, input.makes) = (job.now_ms, job.makes);
    input.clock = job.clock.into_owned();
    let program = match job.session {
        true => None,
        false => {
            Some(Program::compile_since(started, &job.program, &limits, Some(cancel), job.makes.check != Check::Off)?)
        }
    };
    for set in &job.sets {
        let set = match set {
            SetOfJob::Known(at) => sets.get(*at).cloned().ok_or_else(|| broken("a data set is not here".to_owned())),
            SetOfJob::Sent(set) => set.import_within(bytes(limits.setup_heap_bytes)).map_err(|mut problem| {
                if problem.reason() == Reason::MemoryExceeded {
                    problem.error = problem.error.detail("budget_bytes", limits.heap_bytes);
                }
                problem
            }),
        };
        input = input.data_set(&set?);
    }
    let Some(program) = program else {
        let input = if job.resume.is_some() { input.for_saved() } else { input };
        let mut session = engine.session(input);
        session.alarm = Some(alarm);
        if let Some(text) = &job.resume {
            session.begin_from(text)?;
        }
        return Ok(GuestJob::Session(Box::new(session)));
    };
    Ok(GuestJob::Once(engine, program, Box::new(input), alarm))
}

/// Returns the helper threads of this process, created on first use; `None` if the system cannot create any.
fn pool_of_helpers(threads: usize) -> Option<Pool> {
    static POOL: OnceLock<Option<Pool>> = OnceLock::new();
    POOL.get_or_init(|| Pool::without_names(threads).ok()).clone()
}

/// How long workers run on one thread before others help. Most have ended by then.
const ALONE: Duration = Duration::from_millis(2);
/// How long the driving thread waits for helpers before it checks what they have for the host.
const HELPED: Duration = Duration::from_millis(1);

/// Returns the workers from which on calls are discarded, for the other half.
fn given_up(run: &Run) -> Vec<Place> {
    std::mem::take(&mut *run.shared.workers_given_up.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Passes a reply to its call.
fn reply(run: &mut Run, inline: &LocalExecutor, number: u64, reply: CallReply) {
    let (reply, is_exact) = reply.opened();
    if is_exact {
        run.shared.gate.set_exact();
    }
    match reply {
        CallReply::Later => inline.hold(number),
        CallReply::Ended(reply) => run.reply_to(number, reply),
        CallReply::Exact(_) => run.reply_to(number, Reply::Late),
    }
}

fn drive(run: &mut Run, host: &mut dyn RunHost, helpers: usize) -> Outcome {
    let mut begun = Instant::now();
    let inline = run.local_executor();
    // The waiting calls that were sent to the host. A helper may add one after a later one of another worker.
    let mut sent = BTreeSet::new();
    loop {
        if !run.is_back(Duration::ZERO) {
            let mut show = |(by, lines)| host.printed_by(by, lines);
            while inline.run_one(&mut show) {
                if helpers > 0
                    && begun.elapsed() >= ALONE
                    && inline.wants_help()
                    && let Some(pool) = pool_of_helpers(helpers)
                {
                    inline.get_help(pool);
                }
            }
            // Before the calls: a helper may add one at any moment.
            let is_at_work = inline.is_at_work();
            let calls = inline.waiting();
            if is_at_work && calls.is_empty() {
                inline.wait_for_help(HELPED);
                continue;
            }
            if run.is_back(if calls.is_empty() { Run::LONG } else { Duration::ZERO }) {
                continue;
            }
            sent.retain(|number| calls.binary_search_by_key(number, |call| call.number).is_ok());
            for call in inline.with_turns().iter().filter(|call| sent.contains(&call.number)) {
                host.call(GuestCall::of(call, None, given_up(run), true));
            }
            for call in calls.iter().filter(|call| sent.insert(call.number)) {
                host.call(GuestCall::of(call, None, given_up(run), inline.has_turn(call.number)));
            }
            // Workers whose time is over do not wait for the host.
            let until = is_at_work.then(|| Instant::now() + HELPED).into_iter().chain(inline.wake_at()).min();
            if let Some((number, told)) = host.next_reply(until) {
                reply(run, &inline, number, told);
            }
            continue;
        }
        // What the last workers printed.
        inline.take_printed().into_iter().for_each(|(by, lines)| host.printed_by(by, lines));
        match run.advance() {
            RunEvent::Printed(lines) => {
                host.printed(lines);
                host.figures(run.figures());
            }
            RunEvent::Turn => {}
            RunEvent::Beat => host.figures(run.figures()),
            RunEvent::Call(_, call) => {
                host.call(GuestCall::of(&call, Some(run.figures()), given_up(run), true));
                while run.driver.waits_for(call.number) {
                    if let Some((number, told)) = host.next_reply(None) {
                        reply(run, &inline, number, told);
                    }
                }
            }
            RunEvent::Workers => {
                host.figures(run.figures());
                begun = Instant::now();
                if let Some(first) = run.send_workers(Executor::Local(inline.clone())) {
                    run_task(first);
                }
            }
            RunEvent::Done(outcome) => return *outcome,
        }
    }
}
