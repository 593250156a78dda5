//! One machine at work: the program's own, or a worker's. The driver resumes it slice by slice, looks at the clock, and passes
//! its tool calls on.

use super::sampler::Sampler;
use super::shared::{RunShared, Stage, Waiter};
use super::tagged;
use crate::terms::cancel::Cancel;
use crate::terms::keys::Keys;
use crate::terms::limits::bytes;
use crate::terms::outcome::lost;
use crate::terms::place::Place;
use crate::terms::scope::WorkerPath;
use crate::text::convert;
use crate::tools::cache::{CachedResult, CallKey};
use crate::tools::gate::{AllowedCall, Decision, PendingCall};
use crate::tools::ledger::Ledger;
use crate::tools::signature::{sentence, sentence_of_arguments};
use crate::tools::tool::{Reply, Tool, ToolCall, ToolError, ToolErrorKind};
use lisp_core::heap::{Fault, Heap, Res, Value};
use lisp_core::vm::{Effect, Ending, Machine, Settings, Step};
use lisp_core::{Error, Reason};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Units of fuel between two looks at the clock: well under a millisecond.
const SLICE: u64 = 20_000;
/// Units of fuel of the first slice. A built-in that is at work when it ends begins anew, for nobody watches the run yet.
const FIRST_SLICE: u64 = 8_000;

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
    /// A bug of the interpreter, or no memory in the middle of a compaction; the machine cannot be used any more
    Bug,
}

impl Cause {
    /// Does it depend on the moment?
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
    /// The machine of a worker waits for its turn: for all that comes before it in the program's order to end.
    Later,
    /// These lines were printed; the machine can be resumed.
    Printed(Vec<String>),
    /// Some time has passed, and the figures are due; the machine can be resumed.
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
    /// Abandons a call whose reply does not matter any more.
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.shared.gate.abandon(call).into_iter().for_each(Waiter::wake);
        }
    }
}

/// A machine at work.
pub(crate) struct MachineDriver {
    pub(crate) machine: Machine,
    pub(crate) shared: Arc<RunShared>,
    pub(crate) path: Option<Arc<WorkerPath>>,
    pub(crate) ledger: Ledger,
    /// Time spent waiting for tools, and for workers.
    pub(crate) away: Duration,
    pub(crate) cause: Option<Cause>,
    cancel: Cancel,
    awaited: Option<AwaitedReply>,
    /// A call that asks the gate again, once the equal call has ended.
    retry: Option<(Arc<Tool>, AllowedCall, Place)>,
    /// Calls, looks at the clock, and parallel calls so far: they are named by it.
    effects: u32,
    /// The watchdog watches the loaded program.
    watched: bool,
    /// The deadline that it knows.
    watched_until: Option<Instant>,
    /// Lines that [`DriverEvent::Printed`] has shown.
    pub(crate) shown: usize,
    /// Lines of workers were shown that are not kept.
    pub(crate) mixed: bool,
    /// A set-up program runs: its prints are not shown.
    pub(crate) silent: bool,
    /// When [`DriverEvent::Beat`] was returned last.
    told_at: Option<Instant>,
    /// Looks at where the program stands, when there is to be a profile.
    pub(crate) sampler: Option<Box<Sampler>>,
}

/// After so many effects that a driver serves itself, one after the other, the watchdog watches the program.
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
            told_at: None,
            sampler: shared.setting.makes.profile.then(Box::default),
            shared,
        }
    }

    /// A driver of nothing, in the place of the program's driver while that works for its workers' group.
    pub(crate) fn stand_in(shared: &Arc<RunShared>) -> Self {
        MachineDriver::new(Machine::new(Vec::new(), Settings::default()), shared.clone(), None)
    }

    /// Resumes the machine until it needs something, for at most `slices` slices of fuel. `reply` is the reply to the awaited
    /// call, if there is one.
    pub(crate) fn advance(&mut self, slices: u32, reply: Option<Reply>) -> DriverEvent {
        match catch_unwind(AssertUnwindSafe(|| self.advance_inner(slices, reply))) {
            Ok(need) => {
                match (&need, &mut self.sampler) {
                    // What was seen of a worker counts when that is joined.
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

    /// For tests: a place where workers can be made to panic.
    fn fault_point(&self, stage: Stage) {
        if let Some(path) = &self.path {
            self.shared.fault_point(stage, path.index);
        }
    }

    /// Adds what was seen of the program to the profile of the run.
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
            // An effect that was served here counts as a slice: the next one begins anew, and a program may be made of them.
            if std::mem::take(&mut just_served) && !self.stop_if_over() {
                if served == WATCHED_AFTER && !self.watched {
                    self.watch();
                }
                left = left.saturating_sub(1);
                if left == 0 {
                    return DriverEvent::Turn;
                }
            }
            // The time of a run that goes on from a record begins when that is done again.
            if self.watched && self.watched_until != self.deadline() {
                self.watch();
            }
            let step = match &mut self.sampler {
                None => self.machine.resume(if self.watched { SLICE } else { FIRST_SLICE }),
                Some(sampler) => sampler.resume(&mut self.machine, SLICE),
            };
            match step {
                // The machine ends the program: the next step is its end.
                Step::Paused if self.stop_if_over() => {}
                Step::Paused => {
                    if !self.watched {
                        self.watch();
                    }
                    if self.is_time_to_tell() {
                        return DriverEvent::Beat;
                    }
                    left = left.saturating_sub(1);
                    if left == 0 {
                        return DriverEvent::Turn;
                    }
                }
                Step::Effect(Effect::ToolCall) => {
                    // What was printed before a call goes out before it.
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
                    let place = self.next_place();
                    match self.shared.time(&place) {
                        Ok(time) => self.machine.tell_time(time),
                        Err(error) => self.machine.stop(error),
                    }
                    (served, just_served) = (served.saturating_add(1), true);
                }
                Step::Done(ending @ Ending::Error(_)) => return DriverEvent::Done(ending),
                // The last slice may have ended after the deadline.
                Step::Done(_) if self.stop_if_over() => {}
                Step::Done(ending) => return DriverEvent::Done(ending),
            }
        }
    }

    /// The number of one more effect, from 1.
    pub(crate) fn next_effect(&mut self) -> u32 {
        self.effects = self.effects.saturating_add(1);
        self.effects
    }

    /// The name of one more effect.
    fn next_place(&mut self) -> Place {
        let way = self.path.as_ref().map(|path| path.way()).unwrap_or_default();
        Place::new(way, self.next_effect())
    }

    /// So many lines of workers were shown, those that are kept first.
    pub(crate) fn skip_workers_lines(&mut self, shown: usize) {
        self.shown = self.shown.saturating_add(shown);
        self.mixed |= self.shown > self.machine.lines_printed();
    }

    /// The number of the worker of the program that it is, or works for.
    pub(crate) fn outermost(&self) -> Option<u32> {
        let mut path = self.path.as_ref()?;
        while let Some(up) = &path.up {
            path = up;
        }
        Some(u32::try_from(path.index).unwrap_or(u32::MAX))
    }

    /// Does the watchdog watch the loaded program?
    pub(crate) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Has the watchdog watch the loaded program: worthwhile for a program that takes more than one slice. One that is profiled
    /// stops all the time, which a machine that is watched would not.
    pub(crate) fn watch(&mut self) {
        if self.sampler.is_some() {
            return;
        }
        let deadline = self.deadline();
        self.machine.watch(self.shared.setting.flag(deadline, &self.cancel));
        (self.watched, self.watched_until) = (true, deadline);
    }

    /// Are the figures due? For a program in a process of its own: after its first slice, then every 50 ms.
    fn is_time_to_tell(&mut self) -> bool {
        const EVERY: Duration = Duration::from_millis(50);
        if self.shared.setting.alarm.is_none() || self.path.is_some() {
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
        self.sampler = self.shared.setting.makes.profile.then(Box::default);
    }

    /// Takes the lines that were not shown yet, in a run whose prints go out as they happen. With a hook of the host's the
    /// hook gets them, and `None` is returned.
    pub(crate) fn take_new_lines(&mut self) -> Option<Vec<String>> {
        let setting = &self.shared.setting;
        // Lines of workers are shown when it is known that they count; a process that may be killed tells them before.
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

    /// Are printed lines kept for the outcome?
    pub(crate) fn keeps_prints(&self) -> bool {
        self.shared.setting.keeps_prints()
    }

    /// Shows those of all the lines to the host's hook that it has not seen.
    pub(crate) fn show_rest(&self, lines: &[String]) {
        if !self.silent {
            self.shared.setting.show(lines.get(self.shown..).unwrap_or_default());
        }
    }

    /// Ends the machine when its time is over, or when it has been cancelled. Returns whether it did.
    pub(crate) fn stop_if_over(&mut self) -> bool {
        self.stop_if_over_after(None)
    }

    /// [`Self::stop_if_over`] after a call that waited in vain for a thread; `waited_for` is the number of tool threads.
    fn stop_if_over_after(&mut self, waited_for: Option<usize>) -> bool {
        let Some((cause, error)) = self.over() else { return false };
        let error = match waited_for {
            Some(most) if matches!(cause, Cause::Deadline | Cause::ParallelDeadline) => no_tool_thread(error, most),
            _ => error,
        };
        self.awaited = None;
        self.cause = Some(cause);
        self.machine.stop(error);
        true
    }

    /// Is the time of the machine over?
    pub(crate) fn is_over(&self) -> bool {
        self.over().is_some()
    }

    /// The moment at which the time of the machine is over, if nothing changes until then.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        self.deadline()
    }

    /// The deadline of the run, or that of the parallel call.
    fn deadline(&self) -> Option<Instant> {
        [self.shared.run_time.deadline(), self.deadline_of_call()].into_iter().flatten().min()
    }

    /// The deadline of the outermost parallel call that it works for.
    fn deadline_of_call(&self) -> Option<Instant> {
        let path = self.path.as_ref()?;
        self.shared.run_time.deadline_of(path.scope.begun, self.shared.setting.limits.parallel_timeout_ms)
    }

    /// Ends a machine that a bug has broken.
    pub(crate) fn lose(&mut self, what: &str) {
        self.cause = Some(Cause::Bug);
        self.shared.set_broken();
        self.machine.stop(Error::new(Reason::HostFault, what));
    }

    /// Why the machine may not go on.
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

    /// Takes the tool call from the machine and asks the gate. `None` when the machine has its reply already.
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
        // A watched run goes on until the flag ends it.
        let unwatched = if self.watched { u64::MAX } else { convert::UNWATCHED };
        let taken = self.machine.take_call(unwatched, |h, name, args| {
            let map = convert::arguments(h, &tool, args, Keys::Strings)?;
            if let Some(contract) = &tool.contract {
                let mismatches = contract.check_arguments(h, map)?;
                if !mismatches.is_empty() {
                    let text = format!("tool/{name}: {}", sentence_of_arguments(&mismatches, tool.redacted()));
                    return Err(Error::new(Reason::InvalidToolArgs, text).into());
                }
            }
            convert::text_of_arguments(h, Value::Map(map), name, limit)
        });
        match taken {
            Ok(arguments) => {
                let place = self.next_place();
                self.decide(tool, arguments, place)
            }
            Err(None) => {
                // Long arguments of a run that is not watched yet are taken again when it is.
                if !self.stop_if_over() && !self.watched {
                    self.watch();
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

    /// Has the gate decide on a call, if its arguments fit the tool.
    fn decide(&mut self, tool: Arc<Tool>, arguments: String, place: Place) -> Option<DriverEvent> {
        if let Some(error) = tool.refused(&arguments) {
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
        // Who drives the run by hand has no pages.
        let reply = replayed.or_else(|| tool.has_pages().then(|| tool.call_here(&call)));
        if let Some(reply) = reply {
            self.reply(reply);
            return None;
        }
        Some(DriverEvent::Call(tool, call))
    }

    /// Has everything ended that comes before it in the program's order?
    pub(crate) fn has_turn(&self) -> bool {
        self.path.as_ref().is_none_or(|path| path.has_turn())
    }

    /// What a worker asks at its end: whether calls that workers before this place made ahead of their turns are too many.
    pub(crate) fn end_question(&self, place: Place) -> (Arc<Tool>, Box<ToolCall>) {
        let (tool, number) = (Arc::new(Tool::end_question()), self.shared.gate.next_number());
        let asked = AllowedCall { arguments: String::new(), given: None, question: None };
        let time = (self.deadline(), self.cancel.clone());
        let call = self.shared.gate.call(&mut PendingCall::numbered(number), (number, place), &tool, asked, time);
        (tool, call)
    }

    /// Ends a worker that in an earlier life of the run ended, or was not begun, as one beside it had failed. That one fails
    /// again; else this is the error.
    fn leave_out(&mut self, error: Error) {
        self.cause = Some(Cause::Sibling);
        self.machine.stop(error);
    }

    /// Records a call that is not made because of its arguments: as the tool would have got them, or as they are written when
    /// they are none.
    fn refuse(&mut self, tool: &Tool, error: &Error, limit: usize) {
        let arguments = self.machine.with_call(|h, _, args| {
            convert::with_room(h, limit, || {
                let shown = match convert::arguments(h, tool, args, Keys::Strings) {
                    Ok(map) => Value::Map(map),
                    Err(_) => h.vector(args)?,
                };
                convert::within(convert::project(h, shown)?.0, &tool.name, limit)
            })
        });
        let arguments = arguments.and_then(Result::ok).unwrap_or_else(|| "null".to_owned());
        let worker = self.path.as_ref().map(|path| path.indexes()).unwrap_or_default();
        self.shared.gate.refuse(&mut self.ledger, tool, &arguments, error, worker);
    }

    /// Does it wait for the reply to a call?
    #[cfg(feature = "async")]
    pub(crate) fn is_waiting(&self) -> bool {
        self.awaited.is_some()
    }

    /// Does it wait for the reply to this call?
    pub(crate) fn waits_for(&self, number: u64) -> bool {
        self.awaited.as_ref().is_some_and(|awaited| awaited.number == number)
    }

    /// Gives the tool's reply to the program.
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
                if self.failed(&tool, error) {
                    // The program goes on, whatever the tool's closure did.
                    self.cause = None;
                }
            }
            // A result that does not fit the tool's schema, which the other half has checked.
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

    /// Gives the program the error of a call. Returns whether it goes on.
    fn failed(&mut self, tool: &Tool, error: Error) -> bool {
        let keys = self.shared.setting.keys;
        if tool.tagged && error.reason.is_catchable() {
            self.machine.reply(|h| tagged::failed(h, keys, &tool.name, &error)).is_ok()
        } else {
            self.machine.reply_error(error)
        }
    }

    fn reply_json(&mut self, tool: &Tool, json: &str) {
        /// Less is brought in before the deadline is far behind.
        const SHORT: usize = 1 << 16;
        if !self.watched && json.len() > SHORT {
            self.watch();
        }
        if let Some(error) = tool.unfit(json) {
            self.failed(tool, error);
            return;
        }
        // A result that does not fit has ended the run: the next step says so.
        let keys = self.shared.setting.keys;
        let replied = self.machine.reply(|h| {
            let read = convert::read_json(h, json, keys).map_err(|fault| no_result(fault, tool));
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
            // A worker's error is named by its call; this one is not the program's.
            ToolErrorKind::Panic if self.path.is_some() => {
                self.cause = Some(Cause::ToolPanic);
                Reason::RuntimeError
            }
            ToolErrorKind::Panic | ToolErrorKind::Failed => Reason::ToolError,
        };
        let mut failed = Error::new(reason, format!("tool/{}: {}", tool.name, error.message));
        if let Some(code) = &error.code {
            failed = failed.detail("code", code);
        }
        with_signature(failed, tool)
    }
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

/// What the program gets of a result.
fn delivered<'h>(h: &'h Heap, tool: &Tool, keys: Keys, read: Res<Value<'h>>) -> Res<Value<'h>> {
    match read.and_then(|value| checked(h, tool, value)) {
        Ok(value) if tool.tagged => tagged::ok(h, keys, value),
        Err(Fault::Error(error)) if tool.tagged && error.reason == Reason::ToolError => {
            tagged::failed(h, keys, &tool.name, &error)
        }
        result => result,
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
