//! Drives one machine, the program's own or a worker's: resumes it slice by slice, checks the clock, and passes on its
//! tool calls.

use super::sampler::Sampler;
use super::shared::{RunShared, Stage, Waiter};
use super::tagged;
use crate::terms::cancel::Cancel;
use crate::terms::keys::Keys;
use crate::terms::limits::bytes;
use crate::terms::outcome::lost;
use crate::terms::place::Place;
use crate::terms::print_hook::Heartbeat;
use crate::terms::scope::WorkerPath;
use crate::text::{convert, result};
use crate::tools::cache::{CachedResult, CallKey};
use crate::tools::gate::{AllowedCall, Decision, PendingCall};
use crate::tools::ledger::Ledger;
use crate::tools::signature::sentence_of_arguments;
use crate::tools::tool::{Reply, Tool, ToolCall, ToolError, ToolErrorKind};
use lisp_core::heap::{Fault, Heap, Res, Value};
use lisp_core::vm::{Effect, Ending, Machine, Settings, Step};
use lisp_core::{Error, Reason};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Units of fuel between two checks of the clock: well under a millisecond.
const SLICE: u64 = 20_000;
/// Units of fuel of the first slice. A built-in that needs more restarts in the next slice: the watchdog is not
/// watching yet.
const FIRST_SLICE: u64 = 8_000;

/// Why the driver ended a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The host cancelled it.
    Cancelled,
    /// The deadline of the run passed.
    Deadline,
    /// The deadline of the parallel call passed.
    ParallelDeadline,
    /// Another worker failed.
    Sibling,
    /// A closure of the host panicked.
    ToolPanic,
    /// The interpreter has a bug, or ran out of memory during a compaction; the machine is no longer usable.
    Bug,
}

impl Cause {
    /// Returns whether the cause depends on timing.
    pub(crate) fn is_of_time(self) -> bool {
        matches!(self, Cause::Cancelled | Cause::Deadline | Cause::ParallelDeadline)
    }
}

/// Why [`MachineDriver::advance`] returned.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(crate) enum DriverEvent {
    /// The machine waits for the reply of a tool.
    Call(Arc<Tool>, Box<ToolCall>),
    /// The machine waits for an equal call of another worker to end.
    SameCall(CallKey),
    /// The machine of a worker waits for its turn, until everything before it in program order has ended.
    Later,
    /// These lines were printed; the machine can be resumed.
    Printed(Vec<String>),
    /// Some time has passed, and figures are due; the machine can be resumed.
    Beat,
    /// The machine waits for the workers of a parallel call.
    Workers,
    /// The slices are used up; the machine can be resumed.
    Turn,
    /// The program has ended.
    Done(Ending),
}

/// A tool call whose reply the machine waits for.
struct AwaitedReply {
    tool: Arc<Tool>,
    since: Instant,
    number: u64,
    /// `None` when the call is complete.
    call: Option<PendingCall>,
    shared: Arc<RunShared>,
}

impl Drop for AwaitedReply {
    /// Abandons a call whose reply is no longer needed.
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.shared.gate.abandon(call).into_iter().for_each(Waiter::wake);
        }
    }
}

/// A running machine.
pub(crate) struct MachineDriver {
    pub(crate) machine: Machine,
    pub(crate) shared: Arc<RunShared>,
    pub(crate) path: Option<Arc<WorkerPath>>,
    pub(crate) ledger: Ledger,
    /// Time spent waiting for tools and workers.
    pub(crate) away: Duration,
    pub(crate) cause: Option<Cause>,
    cancel: Cancel,
    awaited: Option<AwaitedReply>,
    /// A call that asks the gate again when the equal call has ended.
    retry: Option<(Arc<Tool>, AllowedCall, Place)>,
    /// The number of tool calls, clock readings and parallel calls so far; it names them.
    effects: u32,
    /// Whether the watchdog watches the loaded program.
    watched: bool,
    /// The deadline that the watchdog knows.
    watched_until: Option<Instant>,
    /// Number of lines that [`DriverEvent::Printed`] has returned.
    pub(crate) shown: usize,
    /// Whether lines of workers were shown that are not kept.
    pub(crate) mixed: bool,
    /// Whether a set-up program runs: its prints are not shown.
    pub(crate) silent: bool,
    /// When [`DriverEvent::Beat`] was last returned.
    reported_at: Option<Instant>,
    /// Samples the program, if there is to be a profile.
    pub(crate) sampler: Option<Box<Sampler>>,
}

/// After this many consecutive effects that the driver serves itself, the watchdog watches the program.
const WATCHED_AFTER: u32 = 16;

impl MachineDriver {
    pub(crate) fn new(machine: Machine, shared: Arc<RunShared>, path: Option<Arc<WorkerPath>>) -> Self {
        let handle = &shared.setting.cancel;
        let cancel = path.as_ref().map_or_else(|| handle.clone(), |path| handle.at(path));
        MachineDriver {
            machine,
            path,
            ledger: Ledger::default(),
            away: Duration::ZERO,
            cause: None,
            cancel,
            awaited: None,
            retry: None,
            effects: 0,
            watched: false,
            watched_until: None,
            shown: 0,
            mixed: false,
            silent: false,
            reported_at: None,
            sampler: shared.setting.makes.profile.then(Box::default),
            shared,
        }
    }

    /// Creates an empty driver that replaces the program's driver while its workers run.
    pub(crate) fn stand_in(shared: &Arc<RunShared>) -> Self {
        MachineDriver::new(Machine::new(Vec::new(), Settings::default()), shared.clone(), None)
    }

    /// Resumes the machine until it needs something, for at most `slices` slices of fuel. `reply` is the reply to the
    /// awaited call, if there is one.
    pub(crate) fn advance(&mut self, slices: u32, reply: Option<Reply>) -> DriverEvent {
        match catch_unwind(AssertUnwindSafe(|| self.advance_inner(slices, reply))) {
            Ok(need) => {
                match (&need, &mut self.sampler) {
                    // The samples of a worker count when it is joined.
                    (DriverEvent::Done(_), Some(_)) if self.path.is_none() => self.end_profile(),
                    (DriverEvent::Workers, Some(sampler)) => sampler.leaves(),
                    _ => {}
                }
                need
            }
            Err(panic) => {
                self.cause = Some(Cause::Bug);
                self.shared.set_broken();
                DriverEvent::Done(Ending::Error(Box::new(lost(panic))))
            }
        }
    }

    /// For tests: a point where workers can be made to panic.
    fn fault_point(&self, stage: Stage) {
        if let Some(path) = &self.path {
            self.shared.fault_point(stage, path.index);
        }
    }

    /// Adds the samples of the program to the profile of the run.
    fn end_profile(&mut self) {
        let sampler = self.sampler.take().filter(|_| !self.silent);
        sampler.into_iter().for_each(|sampler| sampler.end(&self.shared.profiled));
    }

    fn advance_inner(&mut self, slices: u32, reply: Option<Reply>) -> DriverEvent {
        let (mut left, mut served, mut just_served) = (slices, 0_u32, false);
        self.fault_point(Stage::Turn);
        if let Some(reply) = reply {
            self.reply(reply);
        }
        if let Some((tool, asked, place)) = self.retry.take()
            && !self.stop_if_over()
            && let Some(need) = self.admit(tool, asked, place)
        {
            return need;
        }
        loop {
            if let Some(lines) = self.take_new_lines() {
                return DriverEvent::Printed(lines);
            }
            // An effect served here counts as a slice: the next slice starts fresh, and a program may consist of such
            // effects.
            if std::mem::take(&mut just_served) && !self.stop_if_over() {
                if served == WATCHED_AFTER && !self.watched {
                    self.watch();
                    return DriverEvent::Turn;
                }
                left = left.saturating_sub(1);
                if left == 0 {
                    return DriverEvent::Turn;
                }
            }
            match self.resume_machine() {
                // The machine ends the program: the next step is its end.
                Step::Paused if self.stop_if_over() => {}
                Step::Paused => {
                    let was_watched = self.watched;
                    if !was_watched {
                        self.watch();
                    }
                    if self.is_time_to_tell() {
                        return DriverEvent::Beat;
                    }
                    if !was_watched {
                        // Who drives the run may want to continue it on another thread.
                        return DriverEvent::Turn;
                    }
                    left = left.saturating_sub(1);
                    if left == 0 {
                        return DriverEvent::Turn;
                    }
                }
                Step::Effect(Effect::ToolCall) => {
                    // Lines printed before a call are shown before it.
                    if let Some(lines) = self.take_new_lines() {
                        return DriverEvent::Printed(lines);
                    }
                    if let Some(need) = self.call() {
                        return need;
                    }
                    (served, just_served) = (served.saturating_add(1), true);
                }
                Step::Effect(Effect::Parallel) => return DriverEvent::Workers,
                Step::Effect(Effect::Clock) => {
                    self.tell_time();
                    (served, just_served) = (served.saturating_add(1), true);
                }
                Step::Done(ending @ Ending::Error(_)) => return DriverEvent::Done(ending),
                // The last slice may have ended after the deadline.
                Step::Done(_) if self.stop_if_over() => {}
                Step::Done(ending) => return DriverEvent::Done(ending),
            }
        }
    }

    /// Runs the machine for a slice.
    fn resume_machine(&mut self) -> Step {
        // The time of a resumed run starts when its record is replayed.
        if self.watched && self.watched_until != self.deadline() {
            self.watch();
        }
        match &mut self.sampler {
            None => self.machine.resume(if self.watched { SLICE } else { FIRST_SLICE }),
            Some(sampler) => sampler.resume(&mut self.machine, SLICE),
        }
    }

    /// Answers a reading of the clock.
    fn tell_time(&mut self) {
        let place = self.next_place();
        match self.shared.time(&place) {
            Ok(time) => self.machine.tell_time(time),
            Err(error) => self.machine.stop(error),
        }
    }

    /// Returns the index of the next effect, from 1.
    pub(crate) fn next_effect(&mut self) -> u32 {
        self.effects = self.effects.saturating_add(1);
        self.effects
    }

    /// Returns the name of the next effect.
    fn next_place(&mut self) -> Place {
        let way = self.path.as_ref().map(|path| path.way()).unwrap_or_default();
        Place::new(way, self.next_effect())
    }

    /// Notes that `shown` lines of workers were shown, first those that are kept.
    pub(crate) fn skip_workers_lines(&mut self, shown: usize) {
        self.shown = self.shown.saturating_add(shown);
        self.mixed |= self.shown > self.machine.lines_printed();
    }

    /// Returns the index of the program's worker that this is or belongs to.
    pub(crate) fn outermost(&self) -> Option<u32> {
        let mut path = self.path.as_ref()?;
        while let Some(up) = &path.up {
            path = up;
        }
        Some(u32::try_from(path.index).unwrap_or(u32::MAX))
    }

    /// Returns whether the watchdog watches the loaded program.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Makes the watchdog watch the loaded program, which pays off after more than one slice. A profiled program is not
    /// watched: it stops all the time, which a watched machine would not.
    pub(crate) fn watch(&mut self) {
        self.shared.set_long();
        if self.sampler.is_none() {
            self.watch_host_work();
        }
    }

    /// Makes the watchdog watch work that the host does for the program, even if the program is profiled.
    pub(crate) fn watch_host_work(&mut self) {
        let deadline = self.deadline();
        self.machine.watch(self.shared.setting.flag(deadline, &self.cancel));
        (self.watched, self.watched_until) = (true, deadline);
    }

    /// Ends the watch of a profiled program after work of the host.
    fn unwatch_profiled(&mut self) {
        if self.sampler.is_some() && std::mem::take(&mut self.watched) {
            self.machine.unwatch();
        }
    }

    /// Returns whether figures are due. With process isolation: after the first slice, then as often as a heartbeat.
    fn is_time_to_tell(&mut self) -> bool {
        let setting = &self.shared.setting;
        if (setting.alarm.is_none() && setting.heartbeat.is_none()) || self.path.is_some() {
            return false;
        }
        let now = Instant::now();
        let is_time = self.reported_at.is_none_or(|at| now.saturating_duration_since(at) >= Heartbeat::EVERY);
        if is_time {
            self.reported_at = Some(now);
        }
        is_time
    }

    /// Notes that another program was loaded.
    pub(crate) fn begin_program(&mut self, silent: bool) {
        (self.watched, self.shown, self.mixed, self.silent) = (false, 0, false, silent);
        self.sampler = self.shared.setting.makes.profile.then(Box::default);
    }

    /// Takes the lines that were not shown yet, in a run that shows lines as they are printed. If the host has a hook,
    /// it gets them, and `None` is returned.
    pub(crate) fn take_new_lines(&mut self) -> Option<Vec<String>> {
        let setting = &self.shared.setting;
        // Lines of workers are shown when it is known that they count. A process that may be killed reports them
        // earlier.
        let is_ahead = self.path.is_some();
        if !setting.streams_prints() || self.silent || is_ahead && setting.alarm.is_none() {
            return None;
        }
        let lines = match setting.keeps_prints() {
            true => {
                let lines = self.machine.prints_from(self.shown);
                self.shown += lines.len();
                lines
            }
            false => self.machine.drain_prints().split_off(std::mem::take(&mut self.shown)),
        };
        if setting.show(&lines) {
            return None;
        }
        (!lines.is_empty()).then_some(lines)
    }

    /// Returns whether printed lines are kept for the outcome.
    pub(crate) fn keeps_prints(&self) -> bool {
        self.shared.setting.keeps_prints()
    }

    /// Passes the lines that the host's hook has not seen to it.
    pub(crate) fn show_rest(&self, lines: &[String]) {
        if !self.silent {
            self.shared.setting.show(lines.get(self.shown..).unwrap_or_default());
        }
    }

    /// Ends the machine if its time is over or it was cancelled. Returns whether it did.
    pub(crate) fn stop_if_over(&mut self) -> bool {
        self.stop_if_over_after(None)
    }

    /// Like [`Self::stop_if_over`], after a call that got no thread; `waited_for` is the number of tool threads.
    fn stop_if_over_after(&mut self, waited_for: Option<usize>) -> bool {
        let Some((cause, error)) = self.over() else { return false };
        let error = match waited_for {
            Some(max) if matches!(cause, Cause::Deadline | Cause::ParallelDeadline) => no_tool_thread(error, max),
            _ => error,
        };
        self.awaited = None;
        self.cause = Some(cause);
        self.machine.stop(error);
        true
    }

    /// Returns whether the time of the machine is over.
    pub(crate) fn is_over(&self) -> bool {
        self.over().is_some()
    }

    /// Returns when the time of the machine is over, as far as is known now.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        self.deadline()
    }

    /// Returns the deadline of the run, or that of the parallel call.
    fn deadline(&self) -> Option<Instant> {
        [self.shared.run_time.deadline(), self.deadline_of_call()].into_iter().flatten().min()
    }

    /// Returns the deadline of the outermost enclosing parallel call.
    fn deadline_of_call(&self) -> Option<Instant> {
        let path = self.path.as_ref()?;
        self.shared.run_time.deadline_of(path.scope.started, self.shared.setting.limits.parallel_timeout_ms)
    }

    /// Ends a machine that a bug has broken.
    pub(crate) fn lose(&mut self, what: &str) {
        self.cause = Some(Cause::Bug);
        self.shared.set_broken();
        self.machine.stop(Error::new(Reason::HostFault, what));
    }

    /// Returns why the machine must end.
    pub(crate) fn over(&self) -> Option<(Cause, Error)> {
        let setting = &self.shared.setting;
        if setting.cancel.is_cancelled() {
            return Some((Cause::Cancelled, Error::new(Reason::Cancelled, "the run was cancelled from outside")));
        }
        let late = |deadline: Option<Instant>| deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late(self.shared.run_time.deadline()) {
            return Some((Cause::Deadline, self.shared.run_time.error(&setting.limits)));
        }
        let path = self.path.as_ref()?;
        if path.is_over() {
            return Some((Cause::Sibling, Error::new(Reason::Cancelled, "a worker before it failed")));
        }
        late(self.deadline_of_call()).then(|| {
            let limit = setting.limits.parallel_timeout_ms;
            let error = Error::new(Reason::Timeout, format!("the parallel call takes longer than {limit} ms"))
                .hint("do less in each call, or raise the limit parallel_timeout_ms")
                .detail("limit_ms", limit);
            (Cause::ParallelDeadline, error)
        })
    }

    /// Takes the tool call from the machine and asks the gate. Returns `None` if the machine already has its reply.
    fn call(&mut self) -> Option<DriverEvent> {
        self.fault_point(Stage::Call);
        let setting = &self.shared.setting;
        let of_name = |name: &str| setting.tool(name).cloned().ok_or_else(|| setting.unknown_tool(name));
        let found = self.machine.with_call(|_, name, _| of_name(name));
        let tool = match found.unwrap_or_else(|| of_name("")) {
            Ok(tool) => tool,
            Err(error) => {
                self.machine.reply_error(error);
                return None;
            }
        };
        let limit = bytes(setting.limits.result_bytes);
        // A watched run continues until the flag ends it.
        let unwatched = if self.watched { u64::MAX } else { convert::UNWATCHED };
        let taken = self.machine.take_call(unwatched, |h, name, args| {
            let map = convert::arguments(h, &tool, args, Keys::Strings)?;
            if let Some(signature) = &tool.contract.signature {
                let mismatches = signature.check_arguments(h, map)?;
                if !mismatches.is_empty() {
                    let text = format!("tool/{name}: {}", sentence_of_arguments(&mismatches, &tool.treatment.redacted));
                    return Err(Error::new(Reason::InvalidToolArgs, text).into());
                }
            }
            convert::text_of_arguments(h, Value::Map(map), name, limit)
        });
        match taken {
            Ok(arguments) => {
                self.unwatch_profiled();
                let place = self.next_place();
                self.decide(tool, arguments, place)
            }
            Err(None) => {
                // Long arguments of a run that is not watched yet are taken again when it is.
                if !self.stop_if_over() && !self.watched {
                    self.watch_host_work();
                }
                None
            }
            Err(Some(error)) => {
                self.unwatch_profiled();
                if matches!(error.reason, Reason::InvalidToolArgs | Reason::ResultLimitExceeded) {
                    self.refuse(&tool, &error, limit);
                }
                self.machine.reply_error(with_signature(error, &tool));
                None
            }
        }
    }

    /// Lets the gate decide on a call whose arguments match the tool.
    fn decide(&mut self, tool: Arc<Tool>, arguments: String, place: Place) -> Option<DriverEvent> {
        if let Err(error) = tool.validate_arguments_by_schema(&arguments) {
            self.shared.gate.refuse(&mut self.ledger, &tool, &arguments, &error, place.worker());
            self.machine.reply_error(error);
            return None;
        }
        match self.shared.gate.decide(&mut self.ledger, &tool, arguments, &place) {
            Ok(asked) => self.admit(tool, asked, place),
            Err(error) => {
                self.machine.reply_error(error);
                None
            }
        }
    }

    fn admit(&mut self, tool: Arc<Tool>, asked: AllowedCall, place: Place) -> Option<DriverEvent> {
        let turn = (&place, self.has_turn());
        let (mut pending, replayed) = match self.shared.gate.admit(&mut self.ledger, &tool, &asked, turn) {
            Decision::Cached(result) => {
                match result {
                    CachedResult::Json(json) => self.reply_json(&tool, &json),
                    CachedResult::Arguments => self.reply_echo(&tool),
                }
                return None;
            }
            Decision::InProgress(key) => {
                self.retry = Some((tool, asked, place));
                return Some(DriverEvent::SameCall(key));
            }
            Decision::Later => {
                self.retry = Some((tool, asked, place));
                return Some(DriverEvent::Later);
            }
            Decision::Refused(error, waiters) => {
                waiters.into_iter().for_each(Waiter::wake);
                self.machine.reply_error(error);
                return None;
            }
            Decision::LeftOut(error) => {
                self.leave_out(error);
                return None;
            }
            Decision::Admitted(pending) => (pending, None),
            Decision::Replayed(pending, reply) => (pending, Some(reply)),
        };
        let (number, time) = (pending.number, (self.deadline(), self.cancel.clone()));
        let call = self.shared.gate.call(&mut pending, (number, place), &tool, asked, time);
        self.awaited = Some(AwaitedReply {
            tool: tool.clone(),
            since: Instant::now(),
            number: pending.number,
            call: Some(pending),
            shared: self.shared.clone(),
        });
        // A step-by-step driver does not have the documentation of tools.
        let reply = replayed.or_else(|| tool.has_pages().then(|| tool.call_here(&call)));
        if let Some(reply) = reply {
            self.reply(reply);
            return None;
        }
        Some(DriverEvent::Call(tool, call))
    }

    /// Returns whether everything before it in program order has ended.
    pub(crate) fn has_turn(&self) -> bool {
        self.path.as_ref().is_none_or(|path| path.has_turn())
    }

    /// Returns the call that a worker makes at its end, to ask whether earlier workers' calls exceed the limit.
    pub(crate) fn end_question(&self, place: Place) -> (Arc<Tool>, Box<ToolCall>) {
        let (tool, number) = (Arc::new(Tool::end_question()), self.shared.gate.next_number());
        let asked = AllowedCall { arguments: String::new(), given: None, question: None };
        let time = (self.deadline(), self.cancel.clone());
        let call = self.shared.gate.call(&mut PendingCall::numbered(number), (number, place), &tool, asked, time);
        (tool, call)
    }

    /// Ends a worker that an earlier attempt ended or did not start, because another worker had failed. That worker
    /// fails again; otherwise this is the error.
    fn leave_out(&mut self, error: Error) {
        self.cause = Some(Cause::Sibling);
        self.machine.stop(error);
    }

    /// Records a call that is not made because of its arguments: as the tool would have received them, or as they were
    /// written.
    fn refuse(&mut self, tool: &Tool, error: &Error, limit: usize) {
        let arguments = self.machine.with_call(|h, _, args| {
            convert::with_room(h, limit, || {
                let shown = match convert::arguments(h, tool, args, Keys::Strings) {
                    Ok(map) => Value::Map(map),
                    Err(_) => h.vector(args)?,
                };
                convert::within(convert::project(h, shown)?.0, tool.name(), limit)
            })
        });
        let arguments = arguments.and_then(Result::ok).unwrap_or_else(|| "null".to_owned());
        let worker = self.path.as_ref().map(|path| path.indexes()).unwrap_or_default();
        self.shared.gate.refuse(&mut self.ledger, tool, &arguments, error, worker);
    }

    /// Returns whether it waits for the reply to a call.
    #[cfg(feature = "async")]
    pub(crate) fn is_waiting(&self) -> bool {
        self.awaited.is_some()
    }

    /// Returns whether it waits for the reply to this call.
    pub(crate) fn waits_for(&self, number: u64) -> bool {
        self.awaited.as_ref().is_some_and(|awaited| awaited.number == number)
    }

    /// Passes the tool's reply to the program.
    pub(crate) fn reply(&mut self, reply: Reply) {
        self.fault_point(Stage::Reply);
        let Some(mut awaited) = self.awaited.take() else { return };
        let Some(call) = awaited.call.take() else { return };
        let (tool, spent) = (awaited.tool.clone(), awaited.since.elapsed());
        self.away += spent;
        let (waited, kept) = self.shared.gate.complete(&mut self.ledger, call, &reply, spent);
        waited.into_iter().for_each(Waiter::wake);
        if let Err(error) = kept {
            self.machine.stop(error);
            return;
        }
        // A late reply is dropped.
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
                if self.failed(&tool, error) {
                    // The program continues, whatever the tool's closure did.
                    self.cause = None;
                }
            }
            // A result that does not match the tool's schema, which the other half has checked.
            Reply::Refused(error) if error.reason == Reason::ToolError => {
                self.failed(&tool, error);
            }
            Reply::LeftOut(error) => self.leave_out(error),
            Reply::Refused(error) => {
                self.machine.reply_error(error);
            }
            Reply::Late | Reply::NotMade { .. } => {
                self.machine.stop(Error::new(Reason::Timeout, "a tool did not return in time"));
            }
        }
    }

    /// Passes the error of a call to the program. Returns whether it continues.
    fn failed(&mut self, tool: &Tool, error: Error) -> bool {
        let keys = self.shared.setting.keys;
        if tool.treatment.tagged && error.reason.is_catchable() {
            self.machine.reply(|h| tagged::failed(h, keys, tool.name(), &error)).is_ok()
        } else {
            self.machine.reply_error(error)
        }
    }

    fn reply_json(&mut self, tool: &Tool, json: &str) {
        /// Results up to this size are converted too quickly to overrun the deadline by much.
        const SHORT: usize = 1 << 16;
        if !self.watched && json.len() > SHORT {
            self.watch();
        }
        if let Err(error) = tool.validate_result_by_schema(json) {
            self.failed(tool, error);
            return;
        }
        // A result that does not match has ended the run: the next step reports it.
        let keys = self.shared.setting.keys;
        let replied = self.machine.reply(|h| {
            let read = result::read(h, tool, json, keys);
            delivered(h, tool, keys, read)
        });
        if replied.is_err_and(|error| error.reason == Reason::Timeout) {
            self.stop_if_over();
        }
    }

    fn reply_echo(&mut self, tool: &Tool) {
        let keys = self.shared.setting.keys;
        let _ = self.machine.reply_from_call(|h, _, args| {
            let value = Value::Map(convert::arguments(h, tool, args, keys)?);
            delivered(h, tool, keys, Ok(value))
        });
    }

    fn tool_failed(&mut self, tool: &Tool, error: &ToolError) -> Error {
        let reason = match error.kind {
            ToolErrorKind::Arguments => Reason::InvalidToolArgs,
            // The error of a worker is named by its call; this one does not come from the program.
            ToolErrorKind::Panic if self.path.is_some() => {
                self.cause = Some(Cause::ToolPanic);
                Reason::RuntimeError
            }
            ToolErrorKind::Unknown => Reason::UnknownCall,
            ToolErrorKind::Panic | ToolErrorKind::Failed => Reason::ToolError,
        };
        let mut failed = Error::new(reason, format!("tool/{}: {}", tool.name(), error.message));
        if let Some(code) = &error.code {
            failed = failed.detail("code", code);
        }
        with_signature(failed, tool)
    }
}

/// Returns the error of a run whose time ended while a call waited for a thread.
fn no_tool_thread(mut error: Error, max: usize) -> Error {
    error.message = format!("{}: a tool call waited for one of {max} tool threads, and all were in use", error.message);
    error
        .hint("use tools that return, or raise tool_threads (EngineBuilder::tool_threads, --tool-threads)")
        .detail("tool_threads", max)
}

fn with_signature(error: Error, tool: &Tool) -> Error {
    match (&tool.contract.text, error.reason) {
        (Some(signature), Reason::InvalidToolArgs) => error.hint(format!("tool/{}: {signature}", tool.name())),
        _ => error,
    }
}

/// Returns a result as the program receives it.
fn delivered<'h>(h: &'h Heap, tool: &Tool, keys: Keys, read: Res<Value<'h>>) -> Res<Value<'h>> {
    match read.and_then(|value| result::checked(h, tool, value)) {
        Ok(value) if tool.treatment.tagged => tagged::ok(h, keys, value),
        Err(Fault::Error(error)) if tool.treatment.tagged && error.reason == Reason::ToolError => {
            tagged::failed(h, keys, tool.name(), &error)
        }
        result => result,
    }
}
