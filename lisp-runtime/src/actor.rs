//! One machine at work: the program's own, or a worker's. It looks at the clock, and takes the machine's tool calls to
//! where they can be answered.

use crate::cancel::Cancel;
use crate::clock::RunClock;
use crate::desk::{Admission, Desk, Kept, Key, Ticket};
use crate::ledger::Ledger;
use crate::limits::{Limits, bytes};
use crate::outcome::Preview;
use crate::parallel::{ParallelBudget, Place, Task};
use crate::project;
use crate::run::Setting;
use crate::signature::sentence;
use crate::tool::{Reply, Tool, ToolCall, ToolError, ToolErrorKind};
use lisp_core::heap::{Fault, Heap, Value};
use lisp_core::vm::{Ending, Machine, Settings, Step};
use lisp_core::{Error, Reason};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// Units of fuel between two looks at the clock: well under a millisecond.
const SLICE: u64 = 20_000;

/// What the program and its workers have in common.
pub(crate) struct Common {
    pub(crate) setting: Setting,
    pub(crate) deadline: Option<Instant>,
    pub(crate) desk: Desk<Task>,
    pub(crate) budget: Arc<ParallelBudget>,
    pub(crate) clock: RunClock,
    /// What workers are limited to.
    pub(crate) worker: Settings,
    /// Nanoseconds that workers computed.
    pub(crate) worker_nanos: AtomicU64,
    /// For tests: the worker of this index panics at this stage.
    #[cfg(test)]
    pub(crate) fault: std::sync::Mutex<Option<(Stage, usize)>>,
}

/// What a worker goes through, for tests that break it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Begin,
    Turn,
    Call,
    Reply,
    End,
}

impl Common {
    /// More workers than this are not of use, and calls in calls nest no deeper.
    const WORKERS: u64 = 1_024;

    pub(crate) fn new(setting: Setting, started: Instant, worker: Settings) -> Self {
        let slots = Self::slots(&setting.limits);
        Common {
            deadline: crate::run::deadline(started, setting.limits.timeout_ms),
            desk: Desk::new(setting.limits.tool_calls),
            budget: Arc::new(ParallelBudget::new(usize::try_from(slots).unwrap_or(usize::MAX))),
            worker,
            clock: RunClock::new(setting.clock.clone(), &setting.clock_replay),
            worker_nanos: AtomicU64::new(0),
            #[cfg(test)]
            fault: std::sync::Mutex::default(),
            setting,
        }
    }

    /// How many workers may be alive at once.
    pub(crate) fn slots(limits: &Limits) -> u64 {
        limits.parallel_workers.min(Self::WORKERS)
    }

    /// A worker is at this stage.
    #[inline]
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests break workers here"))]
    pub(crate) fn pass(&self, _stage: Stage, _index: usize) {
        #[cfg(test)]
        {
            let fault = *self.fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            assert!(fault != Some((_stage, _index)), "injected");
        }
    }
}

/// Why the driver ended a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The handle of the host
    Cancelled,
    /// The run's deadline
    Deadline,
    /// The deadline of the parallel call
    ParallelDeadline,
    /// A failure beside it
    Sibling,
    /// A closure of the host's panicked
    ToolPanic,
    /// A bug of the interpreter; the machine cannot be used any more
    Bug,
}

/// What the machine needs next.
pub(crate) enum Need {
    /// The reply of a tool.
    Call(Arc<Tool>, ToolCall),
    /// The reply of a tool that another worker has called with the same arguments.
    SameCall(Key),
    /// Nothing: it has printed these lines, and goes on.
    Printed(Vec<String>),
    /// Nothing: it has been at work for a while, and its figures may be told.
    Beat,
    /// Workers for a parallel call.
    Workers,
    /// More time; others may have a turn.
    Turn,
    /// Nothing: it is over.
    Done(Ending),
}

/// A tool call that waits for its reply.
struct Pending {
    tool: Arc<Tool>,
    since: Instant,
    number: u64,
    /// `None` when the call is settled.
    ticket: Option<Ticket>,
    common: Arc<Common>,
}

impl Drop for Pending {
    /// A call whose reply does not matter any more: nobody is to wait for it.
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.common.desk.give_up(ticket).into_iter().for_each(Task::go_on);
        }
    }
}

/// A machine at work.
pub(crate) struct Actor {
    pub(crate) machine: Machine,
    pub(crate) common: Arc<Common>,
    pub(crate) place: Option<Arc<Place>>,
    pub(crate) ledger: Ledger,
    /// Time spent waiting for tools, and for workers.
    pub(crate) away: Duration,
    pub(crate) cause: Option<Cause>,
    cancel: Cancel,
    deadline: Option<Instant>,
    pending: Option<Pending>,
    /// A call that is to be looked up in the cache again.
    again: Option<(Arc<Tool>, String)>,
    /// The watchdog looks after the program that is loaded.
    watched: bool,
    /// Lines that [`Need::Printed`] has shown.
    pub(crate) shown: usize,
    /// Workers have shown lines, perhaps in another order than the program's.
    pub(crate) mixed: bool,
    /// What the program prints is for nobody: it sets up.
    silent: bool,
    /// When its figures were last told.
    told_at: Option<Instant>,
}

impl Actor {
    pub(crate) fn new(machine: Machine, common: Arc<Common>, place: Option<Arc<Place>>) -> Self {
        let handle = &common.setting.cancel;
        let cancel = place.as_ref().map_or_else(|| handle.clone(), |place| handle.at(place));
        let deadlines = [common.deadline, place.as_ref().and_then(|place| place.scope.deadline)];
        Actor {
            machine,
            place,
            ledger: Ledger::default(),
            away: Duration::ZERO,
            cause: None,
            cancel,
            deadline: deadlines.into_iter().flatten().min(),
            pending: None,
            again: None,
            watched: false,
            shown: 0,
            mixed: false,
            silent: false,
            told_at: None,
            common,
        }
    }

    /// What stands where the program's actor was while that is away.
    pub(crate) fn stand_in(common: &Arc<Common>) -> Self {
        Actor::new(Machine::new(Vec::new(), Settings::default()), common.clone(), None)
    }

    /// Goes on until it needs something, for at most so many slices; with the reply to the call it waits for, if it has
    /// come.
    pub(crate) fn advance(&mut self, slices: u32, reply: Option<Reply>) -> Need {
        match catch_unwind(AssertUnwindSafe(|| self.advance_inner(slices, reply))) {
            Ok(need) => need,
            Err(_) => {
                self.cause = Some(Cause::Bug);
                let error = Error::new(Reason::HostFault, "the interpreter met a bug of its own and stopped the run");
                Need::Done(Ending::Error(Box::new(error)))
            }
        }
    }

    /// A worker is at this stage.
    fn pass(&self, stage: Stage) {
        if let Some(place) = &self.place {
            self.common.pass(stage, place.index);
        }
    }

    fn advance_inner(&mut self, slices: u32, reply: Option<Reply>) -> Need {
        let mut left = slices;
        self.pass(Stage::Turn);
        if let Some(reply) = reply {
            self.reply(reply);
        }
        if let Some((tool, arguments)) = self.again.take()
            && let Some(need) = self.admit(tool, arguments)
        {
            return need;
        }
        loop {
            if let Some(lines) = self.news() {
                return Need::Printed(lines);
            }
            match self.machine.resume(SLICE) {
                // The machine ends the program: the next step is its end.
                Step::Paused if self.stop_if_over() => {}
                Step::Paused => {
                    if !self.watched {
                        self.look_after();
                    }
                    if self.is_time_to_tell() {
                        return Need::Beat;
                    }
                    left = left.saturating_sub(1);
                    if left == 0 {
                        return Need::Turn;
                    }
                }
                Step::ToolCall => {
                    // What was printed before a call goes out before it.
                    if let Some(lines) = self.news() {
                        return Need::Printed(lines);
                    }
                    if let Some(need) = self.call() {
                        return need;
                    }
                }
                Step::Parallel => return Need::Workers,
                Step::Clock => {
                    let time = self.common.clock.tell();
                    self.machine.tell_time(time);
                }
                Step::Done(ending @ Ending::Error(_)) => return Need::Done(ending),
                // The last slice may have ended after the deadline.
                Step::Done(_) if self.stop_if_over() => {}
                Step::Done(ending) => return Need::Done(ending),
            }
        }
    }

    /// What workers printed, they have shown themselves.
    pub(crate) fn workers_have_shown(&mut self) {
        let lines = self.machine.lines_printed();
        self.mixed |= lines > self.shown;
        self.shown = lines;
    }

    /// Is the run ended when its time is over, whatever it is doing?
    pub(crate) fn is_looked_after(&self) -> bool {
        self.watched
    }

    /// A program that takes more than a slice is worth looking after.
    pub(crate) fn look_after(&mut self) {
        self.machine.watch(self.common.setting.flag(self.deadline, &self.cancel));
        self.watched = true;
    }

    /// Is it time that its figures are told? Of a program in a process of its own, after its first slice and then now and then.
    fn is_time_to_tell(&mut self) -> bool {
        const EVERY: Duration = Duration::from_millis(50);
        if self.common.setting.alarm.is_none() || self.place.is_some() {
            return false;
        }
        let now = Instant::now();
        let is_time = self.told_at.is_none_or(|told| now.saturating_duration_since(told) >= EVERY);
        if is_time {
            self.told_at = Some(now);
        }
        is_time
    }

    /// Another program has been loaded.
    pub(crate) fn begin_program(&mut self, silent: bool) {
        (self.watched, self.shown, self.mixed, self.silent) = (false, 0, false, silent);
    }

    /// Lines that nobody has seen yet, in a run whose prints go out as they happen.
    pub(crate) fn news(&mut self) -> Option<Vec<String>> {
        let setting = &self.common.setting;
        if !setting.streams_prints() || self.silent {
            return None;
        }
        let lines = self.machine.prints_from(self.shown);
        self.shown += lines.len();
        if let Some(hook) = &setting.on_print {
            hook.show(&lines);
            return None;
        }
        (!lines.is_empty()).then_some(lines)
    }

    /// Shows the host's hook what it has not seen of all the lines.
    pub(crate) fn show_rest(&self, lines: &[String]) {
        if let Some(hook) = &self.common.setting.on_print
            && !self.silent
        {
            hook.show(lines.get(self.shown..).unwrap_or_default());
        }
    }

    /// Ends the machine when its time is over, or when it has been cancelled. Answers whether it did.
    pub(crate) fn stop_if_over(&mut self) -> bool {
        self.stop_if_over_after(None)
    }

    /// As [`Self::stop_if_over`], after a call that waited in vain for one of so many tool threads.
    fn stop_if_over_after(&mut self, waited_for: Option<usize>) -> bool {
        let Some((cause, error)) = self.over() else { return false };
        let error = match waited_for {
            Some(most) if matches!(cause, Cause::Deadline | Cause::ParallelDeadline) => no_tool_thread(error, most),
            _ => error,
        };
        self.pending = None;
        self.cause = Some(cause);
        self.machine.stop(error);
        true
    }

    /// Is its time over?
    pub(crate) fn is_over(&self) -> bool {
        self.over().is_some()
    }

    /// When its time is over, should it wait until then.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        [self.deadline, self.place.as_ref().and_then(|place| place.ends_at())].into_iter().flatten().min()
    }

    /// The machine is lost by a bug.
    pub(crate) fn lose(&mut self, what: &str) {
        self.cause = Some(Cause::Bug);
        self.machine.stop(Error::new(Reason::HostFault, what));
    }

    /// Why the machine may not go on.
    pub(crate) fn over(&self) -> Option<(Cause, Error)> {
        let setting = &self.common.setting;
        if setting.cancel.is_cancelled() {
            return Some((Cause::Cancelled, Error::new(Reason::Cancelled, "the run was cancelled from outside")));
        }
        let late = |deadline: Option<Instant>| deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late(self.common.deadline) {
            return Some((Cause::Deadline, run_timeout(&setting.limits)));
        }
        let place = self.place.as_ref()?;
        if place.is_over() {
            return Some((Cause::Sibling, Error::new(Reason::Cancelled, "a worker beside it failed")));
        }
        late(place.scope.deadline).then(|| {
            let limit = setting.limits.parallel_timeout_ms;
            let error = Error::new(Reason::Timeout, format!("the parallel call takes longer than {limit} ms"))
                .hint("do less in each call, or raise the limit parallel_timeout_ms")
                .detail("limit_ms", limit);
            (Cause::ParallelDeadline, error)
        })
    }

    /// Takes the tool call the machine waits for. `None` when it has its reply already.
    fn call(&mut self) -> Option<Need> {
        self.pass(Stage::Call);
        let setting = &self.common.setting;
        let name = self.machine.with_call(|_, name, _| name.to_owned()).unwrap_or_default();
        let Some(tool) = setting.tool(&name).cloned() else {
            let error = setting.unknown_tool(&name);
            self.machine.reply_error(error);
            return None;
        };
        let limit = bytes(setting.limits.result_bytes);
        // Looked after, it goes on until the flag says otherwise.
        let unwatched = if self.watched { u64::MAX } else { project::UNWATCHED };
        let taken = self.machine.take_call(unwatched, |h, name, args| {
            let map = project::arguments(h, &tool, args)?;
            if let Some(contract) = &tool.contract {
                let mismatches = contract.check_arguments(h, map)?;
                if !mismatches.is_empty() {
                    let text = format!("tool/{name}: {}", sentence(&mismatches));
                    return Err(Error::new(Reason::InvalidToolArgs, text).into());
                }
            }
            project::text_of_arguments(h, Value::Map(map), &format!("tool/{name}: its arguments"), limit)
        });
        match taken {
            Ok(arguments) => self.admit(tool, arguments),
            Err(None) => {
                // Long arguments of a run that is not looked after yet are taken again when it is.
                if !self.stop_if_over() && !self.watched {
                    self.look_after();
                }
                None
            }
            Err(Some(error)) => {
                if matches!(error.reason, Reason::InvalidToolArgs | Reason::ResultLimitExceeded) {
                    self.refuse(&tool, &error, limit);
                }
                self.machine.reply_error(with_signature(error, &tool));
                None
            }
        }
    }

    fn admit(&mut self, tool: Arc<Tool>, arguments: String) -> Option<Need> {
        let worker = self.place.as_ref().map(|place| place.path()).unwrap_or_default();
        let ticket = match self.common.desk.admit(&mut self.ledger, &tool, &arguments, worker) {
            Admission::Cached(result) => {
                match result {
                    Kept::Json(json) => self.reply_json(&tool, &json),
                    Kept::Arguments => self.reply_echo(&tool),
                }
                return None;
            }
            Admission::UnderWay(key) => {
                self.again = Some((tool, arguments));
                return Some(Need::SameCall(key));
            }
            Admission::Refused(error) => {
                self.machine.reply_error(error);
                return None;
            }
            Admission::Made(ticket) => ticket,
        };
        let call = ToolCall {
            number: ticket.number,
            name: tool.name.clone(),
            arguments,
            deadline: self.deadline,
            cancel: self.cancel.clone(),
        };
        self.pending = Some(Pending {
            tool: tool.clone(),
            since: Instant::now(),
            number: ticket.number,
            ticket: Some(ticket),
            common: self.common.clone(),
        });
        Some(Need::Call(tool, call))
    }

    /// Records a call that is not made because of its arguments: as the tool would have got them, or as they are written when
    /// they are none.
    fn refuse(&mut self, tool: &Tool, error: &Error, limit: usize) {
        let arguments = self.machine.with_call(|h, _, args| {
            project::with_room(h, limit, || match project::arguments(h, tool, args) {
                Ok(map) => project::json(h, Value::Map(map), &tool.name, limit),
                Err(_) => project::json(h, h.vector(args)?, &tool.name, limit),
            })
        });
        let arguments = arguments.and_then(Result::ok).unwrap_or_else(|| "null".to_owned());
        let worker = self.place.as_ref().map(|place| place.path()).unwrap_or_default();
        self.ledger.refused(&tool.name, Preview::of(&arguments), &error.message, worker);
    }

    /// Does it wait for the reply to this call?
    pub(crate) fn waits_for(&self, number: u64) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.number == number)
    }

    /// Gives the tool's reply to the program.
    pub(crate) fn reply(&mut self, reply: Reply) {
        self.pass(Stage::Reply);
        let Some(mut pending) = self.pending.take() else { return };
        let Some(ticket) = pending.ticket.take() else { return };
        let (tool, spent) = (pending.tool.clone(), pending.since.elapsed());
        self.away += spent;
        let waited = self.common.desk.settle(&mut self.ledger, ticket, &reply, spent);
        waited.into_iter().for_each(Task::go_on);
        // A reply that comes too late is dropped.
        let waited_for = match &reply {
            Reply::NotMade { tool_threads } => *tool_threads,
            _ => None,
        };
        if self.stop_if_over_after(waited_for) {
            return;
        }
        match reply {
            Reply::Json(json) => self.reply_json(&tool, &json),
            Reply::Echo => self.reply_echo(&tool),
            Reply::Error(error) => {
                let error = self.tool_failed(&tool, &error);
                self.machine.reply_error(error);
            }
            Reply::Refused(error) => self.machine.reply_error(error),
            Reply::Late | Reply::NotMade { .. } => {
                self.machine.stop(Error::new(Reason::Timeout, "a tool did not return in time"));
            }
        }
    }

    fn reply_json(&mut self, tool: &Tool, json: &str) {
        /// Less is brought in before the deadline is far behind.
        const SHORT: usize = 1 << 16;
        if !self.watched && json.len() > SHORT {
            self.look_after();
        }
        // A result that does not fit has ended the run: the next step says so.
        let replied = self.machine.reply(|h| {
            let value = project::read_json(h, json).map_err(|fault| no_result(fault, tool))?;
            checked(h, tool, value)
        });
        if replied.is_err_and(|error| error.reason == Reason::Timeout) {
            self.stop_if_over();
        }
    }

    fn reply_echo(&mut self, tool: &Tool) {
        let _ = self.machine.reply_from_call(|h, _, args| {
            let value = Value::Map(project::arguments(h, tool, args)?);
            checked(h, tool, value)
        });
    }

    fn tool_failed(&mut self, tool: &Tool, error: &ToolError) -> Error {
        let reason = match error.kind {
            ToolErrorKind::Arguments => Reason::InvalidToolArgs,
            // A worker's error is named by its call; this one is not the program's.
            ToolErrorKind::Panic if self.place.is_some() => {
                self.cause = Some(Cause::ToolPanic);
                Reason::RuntimeError
            }
            ToolErrorKind::Panic | ToolErrorKind::Failed => Reason::ToolError,
        };
        with_signature(Error::new(reason, format!("tool/{}: {}", tool.name, error.message)), tool)
    }
}

/// The error of a run past its deadline.
pub(crate) fn run_timeout(limits: &Limits) -> Error {
    let limit = limits.timeout_ms;
    Error::new(Reason::Timeout, format!("the run takes longer than {limit} ms"))
        .hint("do less work, for example on fewer rows, or raise the limit timeout_ms")
        .detail("limit_ms", limit)
}

/// The error of a run whose time was over while a call waited for a thread.
fn no_tool_thread(mut error: Error, most: usize) -> Error {
    error.message = format!("{}: a tool call waited for one of {most} tool threads, all of them taken", error.message);
    error
        .hint("use tools that return, or raise tool_threads (EngineBuilder::tool_threads, --tool-threads)")
        .detail("tool_threads", most)
}

fn with_signature(error: Error, tool: &Tool) -> Error {
    match (&tool.signature, error.reason) {
        (Some(signature), Reason::InvalidToolArgs) => error.hint(format!("tool/{}: {signature}", tool.name)),
        _ => error,
    }
}

fn no_result(fault: Fault, tool: &Tool) -> Fault {
    match fault {
        Fault::Error(error) if error.reason != Reason::MemoryExceeded => {
            let text = format!("tool/{}: its result cannot be read: {}", tool.name, error.message);
            Error::new(Reason::ToolError, text).into()
        }
        fault => fault,
    }
}

/// The result when it fits the tool's signature.
fn checked<'h>(h: &'h Heap, tool: &Tool, value: Value<'h>) -> Result<Value<'h>, Fault> {
    let Some(contract) = &tool.contract else { return Ok(value) };
    let mismatches = contract.check_reply(h, value)?;
    if mismatches.is_empty() {
        return Ok(value);
    }
    let text = format!("tool/{}: its result does not fit its signature: {}", tool.name, sentence(&mismatches));
    Err(Error::new(Reason::ToolError, text).into())
}
