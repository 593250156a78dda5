//! The host half of a run: tools, ledger, prints and clock, which outlive the guest half.

use super::figures::MaxFigures;
use super::host_call::{CallDone, HostCall, unfit};
use super::report::{CallReply, GuestCall, RefusedCall, Report};
use crate::api::engine::Engine;
use crate::api::input::Input;
use crate::drive::shared::RunShared;
use crate::terms::budget::Taken;
use crate::terms::cancel::Cancel;
use crate::terms::clock::{Clock, RunClock};
use crate::terms::deadline::{ReplayEnd, RunTime, micros};
use crate::terms::limits::Limits;
use crate::terms::observer::Observed;
use crate::terms::outcome::{Answer, Figures, Outcome, Phase, Preview, Problem, Usage};
use crate::terms::place::Place;
use crate::terms::print_hook::{Heartbeat, PrintHook, PrintedBy};
use crate::terms::run_view::RunView;
use crate::terms::warning::Warning;
use crate::tools::cache::CachedResult;
use crate::tools::contract::Effect;
use crate::tools::gate::{AllowedCall, Decision, GateSetting, ToolGate};
use crate::tools::ledger::Ledger;
use crate::tools::threads::ToolThreads;
use crate::tools::tool::{Reply, Tool};
use crate::tools::tool_set::Tools;
use lisp_core::compile::TOOL_PAGE;
use lisp_core::context::Prints;
use lisp_core::cost::COST_SCHEDULE_VERSION;
use lisp_core::{Error, Reason};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The half of a run that stays with the host: tools, ledger, prints and clock.
pub struct HostHalf {
    started: Instant,
    time: RunTime,
    /// For a resumed run, until the other half is notified that the record is replayed.
    replay: Option<Arc<ReplayEnd>>,
    limits: Limits,
    pub(super) tools: BTreeMap<String, Arc<Tool>>,
    cancel: Cancel,
    cancellable: bool,
    gate: ToolGate<DeferredCall>,
    gate_setting: GateSetting,
    /// What the run has taken from its budget.
    pub(super) taken: Option<Taken>,
    /// Whether the program is suspended, without a job or waiting for its own call. The figures are then exact.
    is_suspended: bool,
    threads: ToolThreads,
    ledger: Ledger,
    in_tools: Duration,
    /// The figures that were last reported, and when.
    figures: Option<(Figures, Instant)>,
    prints: Vec<String>,
    /// Whether a set-up program failed: its lines are not shown, so the outcome has them.
    set_up_failed: bool,
    /// Lines of workers that may not count, by the worker of the program.
    ahead: BTreeMap<u32, Vec<String>>,
    print_bytes: u64,
    /// Number of lines beyond the limit, until a report says which are kept.
    prints_dropped: u64,
    clock: Clock,
    max_readings: usize,
    on_print: Option<PrintHook>,
    heartbeat: Option<Heartbeat>,
    /// When the heartbeat was last called.
    beat_at: Option<Instant>,
    /// Why the run could not get the time.
    clock_fault: Option<Error>,
    observed: Observed,
    view: RunView,
    /// The id for the views of turns.
    named: Option<Arc<str>>,
    traceparent: Option<Arc<str>>,
    /// Number of lines that the hook has seen. A report may repeat all lines, in program order.
    hooked: usize,
    /// Number of turns of the session before the first one of the other half.
    turns_before: u64,
    /// Calls that wait for their turns, by number: the policy has decided on them.
    deferred: HashMap<u64, DeferredCall>,
    /// Whether the program may have workers, by its code.
    pub(super) may_have_workers: bool,
}

impl std::fmt::Debug for HostHalf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostHalf").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A call that waits for an equal call to end, or for its turn.
struct DeferredCall {
    tool: Arc<Tool>,
    number: u64,
    place: Place,
    asked: AllowedCall,
    has_turn: bool,
}

/// The result of starting a tool call.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
#[derive(Debug)]
pub enum CallStarted {
    /// The call already has its reply.
    Ready(CallReply),
    /// The call is in the ledger and must be made.
    Call(HostCall),
    /// An equal call is in progress: the decision follows when that ends.
    Later,
}

impl HostHalf {
    pub(super) fn new(started: Instant, engine: &Engine, input: &Input<'_>, limits: Limits, view: RunView) -> Self {
        let own = input.tools.as_deref().into_iter();
        // A tool of the run replaces the engine's.
        let tools = [engine.tools()].into_iter().chain(own).flat_map(Tools::all);
        let gate_setting = engine.gate_setting(input);
        let replay = gate_setting.journal.as_ref().and_then(|journal| journal.replay());
        let tools = tools.filter(|tool| gate_setting.shows(tool));
        HostHalf {
            started,
            time: RunTime::new(started, &limits, replay.clone()),
            replay,
            limits,
            tools: tools.map(|tool| (tool.name().to_owned(), tool.clone())).collect(),
            cancel: input.cancel.clone().unwrap_or_default(),
            cancellable: input.cancel.is_some(),
            gate: ToolGate::new(gate_setting.clone(), view.clone()),
            gate_setting,
            taken: None,
            is_suspended: true,
            clock_fault: None,
            threads: engine.tool_threads().clone(),
            ledger: Ledger::default(),
            in_tools: Duration::ZERO,
            figures: None,
            prints: Vec::new(),
            set_up_failed: false,
            ahead: BTreeMap::new(),
            print_bytes: 0,
            prints_dropped: 0,
            clock: engine.clock().clone(),
            max_readings: input.clock.len().max(RunClock::MAX),
            on_print: input.on_print.clone(),
            heartbeat: input.heartbeat.clone(),
            beat_at: None,
            observed: engine.observed().clone(),
            view,
            named: input.run_id.clone(),
            traceparent: input.traceparent.clone(),
            hooked: 0,
            turns_before: 0,
            deferred: HashMap::new(),
            may_have_workers: false,
        }
    }

    /// Returns the id of the run, or of the turn of a session.
    pub fn run_id(&self) -> &str {
        self.view.run_id()
    }

    /// Returns the span of the run.
    #[cfg(feature = "tracing")]
    pub fn span(&self) -> &tracing::Span {
        &self.view.span().0
    }

    /// Notes that the turn of a session runs a program, and notifies observers.
    pub fn observe_turn(&mut self) {
        self.gate_setting.in_session = true;
        self.look_by(RunView::begin_named(&self.observed, self.named.clone(), self.traceparent.clone(), self.started));
    }

    fn look_by(&mut self, view: RunView) {
        self.gate = ToolGate::new(self.gate_setting.clone(), view.clone());
        self.view = view;
    }

    /// Starts one more turn of a session.
    pub fn next_turn(&mut self) {
        self.started = Instant::now();
        self.time = RunTime::new(self.started, &self.limits, None);
        self.look_by(RunView::quiet(&self.observed));
        self.ledger = Ledger::default();
        self.in_tools = Duration::ZERO;
        self.figures = None;
        (self.prints, self.set_up_failed) = (Vec::new(), false);
        self.ahead.clear();
        self.print_bytes = 0;
        self.prints_dropped = 0;
        self.deferred.clear();
        self.hooked = 0;
    }

    /// Sets the number of turns of the session before the first turn of this guest half. Positions in earlier turns
    /// refer to turns by their number in the session.
    #[must_use]
    pub fn after_turns(mut self, turns: u64) -> Self {
        self.turns_before = turns;
        self
    }

    /// Notes that the other half has its job or a reply: from now on it uses fuel that it reports later.
    pub fn note_sent(&mut self) {
        self.is_suspended = false;
    }

    /// Returns when the turn started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Returns the deadline as far as it is known now; `None` is never. During a replay it is late; it comes nearer
    /// when the replay has ended.
    pub fn deadline(&self) -> Option<Instant> {
        self.time.deadline()
    }

    /// Returns whether the run is replaying, as far as the other half knows.
    pub fn replays(&self) -> bool {
        self.replay.is_some()
    }

    /// Returns, once, when the replay ended. Notify the other half before sending it anything else. Call this after
    /// each call that starts and each clock reading.
    pub fn replay_ended(&mut self) -> Option<Instant> {
        let at = self.replay.as_ref()?.reached()?;
        self.replay = None;
        Some(at)
    }

    /// Returns the time for an effect, in milliseconds since 1970-01-01T00:00:00Z, from the record or the engine's
    /// clock.
    ///
    /// `None` if the clock panicked or the run differs from its record: then the run ends.
    pub fn time(&mut self, place: &Place) -> Option<i64> {
        let clock = &self.clock;
        let read = || clock.read(place);
        let Some(journal) = &self.gate_setting.journal else { return read() };
        match journal.time(place, read) {
            Ok(time) => time,
            Err(error) => {
                self.clock_fault.get_or_insert(error);
                None
            }
        }
    }

    /// Returns the maximum number of clock readings in a report.
    pub fn max_readings(&self) -> usize {
        self.max_readings
    }

    /// Returns whether the program may have computing workers. If this half tells the time, they take turns on one
    /// thread.
    pub fn may_have_workers(&self) -> bool {
        self.may_have_workers
    }

    /// Returns the limits of the run.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the handle that cancels the run.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the maximum number of calls in progress: one of the program, or one of each worker.
    pub fn max_calls(&self) -> usize {
        usize::try_from(RunShared::slots(&self.limits)).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// Calls the host's heartbeat if there is one and it is due.
    pub fn beat(&mut self) {
        let Some(heartbeat) = &self.heartbeat else { return };
        if self.beat_at.is_none_or(|at| at.elapsed() >= Heartbeat::EVERY) {
            heartbeat.beat();
            self.beat_at = Some(Instant::now());
        }
    }

    /// Returns whether the host has a heartbeat, for which a wait must end from time to time.
    pub fn has_heartbeat(&self) -> bool {
        self.heartbeat.is_some()
    }

    /// Returns whether a handle outside this half can cancel the run.
    pub fn is_cancellable(&self) -> bool {
        self.cancellable
    }

    /// Takes lines that the program printed, up to the limit `prints_bytes`. Workers may print more than that together;
    /// the report says which lines are kept.
    pub fn printed(&mut self, lines: Vec<String>) {
        for line in lines {
            let bytes = (line.len() + Prints::LINE_BYTES) as u64;
            let full =
                self.limits.prints_bytes > 0 && self.print_bytes.saturating_add(bytes) > self.limits.prints_bytes;
            // After a line without room no other is kept: otherwise the gap would not show.
            if full || self.prints_dropped > 0 {
                self.prints_dropped = self.prints_dropped.saturating_add(1);
                continue;
            }
            self.print_bytes = self.print_bytes.saturating_add(bytes);
            self.prints.push(line);
        }
        self.show_prints();
    }

    /// Takes lines that the program or a worker printed. Lines of workers that may not count are not shown; if the
    /// process is killed before that is known, they are kept.
    pub fn printed_by(&mut self, by: PrintedBy, lines: Vec<String>) {
        let (PrintedBy::Worker(worker) | PrintedBy::Ahead(worker)) = by else {
            self.ahead.clear();
            return self.printed(lines);
        };
        if by == PrintedBy::Worker(worker) {
            self.ahead = self.ahead.split_off(&worker.saturating_add(1));
            return self.printed(lines);
        }
        let bytes =
            |lines: &Vec<String>| lines.iter().map(|line| line.len() + Prints::LINE_BYTES).sum::<usize>() as u64;
        let pending = self.ahead.values().map(bytes).fold(bytes(&lines), u64::saturating_add);
        if self.limits.prints_bytes == 0 || pending <= self.limits.prints_bytes {
            self.ahead.entry(worker).or_default().extend(lines);
        }
    }

    /// Takes the lines of a report: the remaining ones, or all of them in program order. Returns false if they exceed
    /// the limits, which means that the other half ignores them.
    #[must_use]
    fn reported(&mut self, lines: Vec<String>, whole: bool) -> bool {
        /// Bytes for the last line, which says how many more there were.
        const LAST: u64 = 200;
        if whole {
            (self.prints, self.print_bytes, self.prints_dropped) = (Vec::new(), 0, 0);
        }
        let bytes: usize = lines.iter().map(|line| line.len() + Prints::LINE_BYTES).sum();
        self.print_bytes = self.print_bytes.saturating_add(bytes as u64);
        let max = self.limits.prints_bytes;
        if max > 0 && self.print_bytes > max.saturating_add(LAST) {
            return false;
        }
        self.prints.extend(lines);
        self.show_prints();
        true
    }

    /// Shows the host's hook the lines that it has not seen.
    fn show_prints(&mut self) {
        if self.set_up_failed {
            return;
        }
        let lines = self.prints.get_mut(self.hooked..).unwrap_or_default();
        self.view.printed(lines);
        if let Some(hook) = &self.on_print {
            hook.show(lines);
            if !hook.keeps {
                // Empty lines stay in place: a report may repeat all lines.
                lines.iter_mut().for_each(|line| *line = String::new());
            }
        }
        self.hooked = self.hooked.max(self.prints.len());
    }

    /// Starts a call: the gate serves it from the cache, denies it, or adds it to the ledger.
    pub fn begin(&mut self, call: GuestCall<'_>) -> CallStarted {
        let is_of_program = call.place.is_of_program();
        let started = self.begin_call(call);
        self.is_suspended = is_of_program && !matches!(started, CallStarted::Ready(_));
        self.with_exactness(started)
    }

    fn begin_call(&mut self, call: GuestCall<'_>) -> CallStarted {
        let GuestCall { number, place, name, arguments, given_up, has_turn, figures } = call;
        if figures.is_none() && !place.is_of_program() {
            // A worker's call: its figures are not reported.
            self.taken.iter_mut().for_each(|taken| taken.note(None));
        }
        let has_turn = has_turn || place.is_of_program();
        given_up.iter().for_each(|from| self.gate.give_up(from));
        self.deferred.retain(|_, deferred| !given_up.iter().any(|from| deferred.place.is_given_up_by(from)));
        if let Some(deferred) = self.deferred.remove(&number)
            && deferred.place == *place
            && deferred.tool.name() == name
        {
            return self.admit(DeferredCall { has_turn, ..deferred });
        }
        if name == Tool::END_QUESTION {
            return CallStarted::Ready(match self.gate.settle(&place) {
                Ok(()) => CallReply::Ended(Reply::Echo),
                Err(error) => CallReply::refused(error),
            });
        }
        let Some(tool) = self.tool(&name) else {
            let error = Error::new(Reason::UnknownTool, format!("there is no tool/{name}"));
            return CallStarted::Ready(CallReply::refused(error));
        };
        drop(name);
        let decided = match tool.validate_arguments_by_schema(&arguments) {
            Err(error) => {
                self.gate.refuse(&mut self.ledger, &tool, &arguments, &error, place.worker());
                Err(error)
            }
            Ok(()) => self.gate.decide(&mut self.ledger, &tool, arguments.into_owned(), &place),
        };
        match decided {
            Ok(asked) => self.admit(DeferredCall { tool, number, place: place.into_owned(), asked, has_turn }),
            Err(error) => {
                self.ledger.number_last(number);
                CallStarted::Ready(CallReply::refused(error))
            }
        }
    }

    /// Notifies the other half, once calls made ahead may exceed the limit, that workers must end in turn.
    fn with_exactness(&self, started: CallStarted) -> CallStarted {
        match started {
            CallStarted::Ready(reply) if self.gate.is_exact() => CallStarted::Ready(CallReply::Exact(Box::new(reply))),
            started => started,
        }
    }

    /// Returns the tool of a name, or the internal tool behind `(doc tool/name)`.
    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        match name == TOOL_PAGE {
            true => Some(Arc::new(Tool::pages(self.tools.values().cloned().collect()))),
            false => self.tools.get(name).cloned(),
        }
    }

    fn admit(&mut self, asked: DeferredCall) -> CallStarted {
        let DeferredCall { tool, number, place, asked: allowed, has_turn } = &asked;
        let number = *number;
        match self.gate.admit(&mut self.ledger, tool, allowed, (place, *has_turn)) {
            Decision::Cached(result) => {
                self.ledger.number_last(number);
                CallStarted::Ready(match result {
                    CachedResult::Json(json) => match tool.validate_result_by_schema(&json) {
                        Err(error) => CallReply::refused(error),
                        Ok(()) => CallReply::Ended(Reply::Json(json.as_ref().to_owned())),
                    },
                    CachedResult::Arguments => CallReply::Ended(Reply::Echo),
                })
            }
            Decision::InProgress(key) => match self.gate.wait(&key, asked) {
                None => CallStarted::Later,
                Some(asked) => self.admit(asked),
            },
            Decision::Later => {
                if self.deferred.len() < self.max_calls() {
                    self.deferred.insert(number, asked);
                }
                CallStarted::Ready(CallReply::Later)
            }
            Decision::LeftOut(error) => CallStarted::Ready(CallReply::Ended(Reply::LeftOut(error))),
            // Only this thread asks this gate: there are no waiters.
            Decision::Refused(error, _) => {
                self.ledger.number_last(number);
                CallStarted::Ready(CallReply::refused(error))
            }
            Decision::Replayed(pending, reply) => {
                self.ledger.number_last(number);
                let (waited, kept) = self.gate.complete(&mut self.ledger, pending, &reply, Duration::ZERO);
                // Only this thread asks this gate.
                debug_assert!(waited.is_empty(), "an equal call waits");
                CallStarted::Ready(match kept.err().or_else(|| unfit(tool, &reply)) {
                    Some(error) => CallReply::refused(error),
                    None => CallReply::Ended(reply),
                })
            }
            Decision::Admitted(mut pending) => {
                self.ledger.number_last(number);
                let DeferredCall { tool, place, asked, .. } = asked;
                let time = (self.time.deadline(), self.cancel.clone());
                let call = self.gate.call(&mut pending, (number, place), &tool, asked, time);
                let threads = self.threads.clone();
                let (since, heartbeat) = (Instant::now(), self.heartbeat.clone());
                CallStarted::Call(HostCall { tool, call, number, pending, since, threads, heartbeat })
            }
        }
    }

    /// Returns whether the record of the run still needs to know how a call in progress ends: the call may not be
    /// repeated when the run resumes.
    pub fn awaits_ends(&self) -> bool {
        let Some(journal) = &self.gate_setting.journal else { return false };
        let is_repeatable = |tool: &Arc<Tool>| tool.effect() == Effect::Read || tool.is_idempotent();
        journal.has_open_call(|name| !self.tools.get(name).is_some_and(is_repeatable))
    }

    /// Notes how a call ended. Returns its number and reply, and the decision on each call that waited for it.
    pub fn end(&mut self, ended: CallDone) -> Vec<(u64, CallStarted)> {
        self.in_tools += ended.spent;
        let (waited, kept) = self.gate.complete(&mut self.ledger, ended.pending, &ended.reply, ended.spent);
        let reply = match (kept, &ended.unfit) {
            (Err(error), _) => CallReply::refused(error),
            (Ok(()), Some(error)) => CallReply::refused(error.clone()),
            // The process may receive this before it is notified of its cancellation.
            (Ok(()), None) if self.cancel.is_cancelled() && ended.reply.is_missing() => {
                let cancelled = Error::new(Reason::Cancelled, "the run was cancelled from outside");
                CallReply::refused(cancelled)
            }
            (Ok(()), None) => CallReply::Ended(ended.reply),
        };
        let mut started = vec![(ended.number, self.with_exactness(CallStarted::Ready(reply)))];
        for asked in waited {
            let number = asked.number;
            match self.admit(asked) {
                CallStarted::Later => {}
                ready => started.push((number, self.with_exactness(ready))),
            }
        }
        started
    }

    /// Returns the outcome for a report.
    pub fn finish(&mut self, mut report: Report) -> Outcome {
        if let Some(fault) = self.clock_fault.take() {
            return self.fail(fault, None);
        }
        let prints = std::mem::take(&mut report.prints);
        self.set_up_failed = report.set_up_failed();
        let clock = std::mem::take(&mut report.clock);
        if clock.len() > self.max_readings {
            return self
                .fail(Error::new(Reason::HostFault, "the run's process asked for the time more than it may"), None);
        }
        if !self.reported(prints, report.whole) {
            return self.fail(Error::new(Reason::HostFault, "the run's process printed more than it may"), None);
        }
        let mut profile = report.profile.take();
        if profile.as_ref().is_some_and(|profile| !profile.is_sound()) {
            return self.fail(Error::new(Reason::HostFault, "the run's process sent an invalid profile"), None);
        }
        let max = self.max_figures();
        profile.iter_mut().for_each(|profile| max.profile(profile));
        let turns = profile.iter_mut().flat_map(|profile| &mut profile.nodes).filter_map(|node| node.turn.as_mut());
        turns.for_each(|turn| *turn = turn.saturating_add(self.turns_before));
        self.ledger.part(&report.given_up);
        self.ledger.sort_by_numbers(&report.calls);
        for RefusedCall { place, worker, name, arguments, error, too_long } in std::mem::take(&mut report.refused) {
            let before = self.ledger.len();
            // The other half should not report redacted values, but it is not trusted.
            let arguments = match self.tools.get(&*name) {
                Some(tool) if tool.redacts() => Preview::of(&tool.arguments_shown(&arguments.text)),
                _ => arguments,
            };
            let reason = if too_long { Reason::ResultLimitExceeded } else { Reason::InvalidToolArgs };
            self.view.refused(&name, &worker, reason);
            self.ledger.refused(&name, arguments, &error, reason, worker);
            if self.ledger.len() > before {
                self.ledger.move_last(usize::try_from(place).unwrap_or(usize::MAX));
            }
        }
        self.ledger.count(max.count(report.more_refused));
        let mut warnings = std::mem::take(&mut report.warnings);
        warnings.truncate(Warning::MAX);
        let (mut answer, [prints_dropped, prints_cut], usage) = report.into_answer();
        let (prints_dropped, prints_cut) = (max.count(prints_dropped), max.count(prints_cut));
        let usage = max.usage(usage);
        if let Ok(answer) = &mut answer {
            answer.text_bytes = answer.text_bytes.min(usize::try_from(max.count(u64::MAX)).unwrap_or(usize::MAX));
        }
        if let Err(problem) = &mut answer {
            let turns = problem.calls.iter_mut().map(|call| &mut call.turn).chain([&mut problem.turn]);
            turns.flatten().for_each(|turn| *turn = turn.saturating_add(self.turns_before));
            if let Some(taken) = &self.taken {
                problem.error = taken.explain(problem.error.clone());
            }
        }
        if let (Ok(_), Some(journal)) = (&answer, &self.gate_setting.journal)
            && let Err(error) = journal.check_end()
        {
            answer = Err(Box::new(Problem::new(error, Phase::Eval)));
        }
        if let Some(taken) = self.taken.take() {
            taken.settle(&usage, true);
        }
        if answer.is_err() {
            warnings.retain(|warning| warning.kind.is_of_program());
        }
        Outcome { clock, prints_cut, profile, warnings, ..self.outcome(answer, prints_dropped, usage) }
    }

    /// Returns the definitions in a report.
    ///
    /// # Errors
    /// The outcome with the reason why there are none.
    pub fn finish_memory(&mut self, report: Report) -> Result<String, Box<Outcome>> {
        let outcome = self.finish(report);
        match outcome.memory() {
            Some(memory) => Ok(memory.to_owned()),
            None if outcome.problem().is_some() => Err(Box::new(outcome)),
            None => Err(Box::new(self.fail(Error::new(Reason::HostFault, "no definitions came"), Some(Phase::Result)))),
        }
    }

    /// Takes figures that the guest half reports.
    pub fn figures(&mut self, figures: Figures) {
        let figures = self.max_figures().figures(figures);
        self.taken.iter_mut().for_each(|taken| taken.note(Some(&figures)));
        self.figures = Some((figures, Instant::now()));
    }

    /// Returns the maximum plausible figures of the run by now.
    fn max_figures(&self) -> MaxFigures {
        let limits = Limits {
            fuel: self.taken.as_ref().and_then(|taken| taken.fuel).unwrap_or(self.limits.fuel),
            ..self.limits
        };
        MaxFigures::of(&limits, micros(self.started.elapsed()))
    }

    /// Returns the outcome of a run whose guest half failed or was killed, with the prints and the ledger so far, and
    /// the last reported figures.
    pub fn fail(&mut self, error: Error, phase: Option<Phase>) -> Outcome {
        let problem = Box::new(Problem::new(error, phase.unwrap_or(Phase::Eval)));
        let compute = self.started.elapsed().saturating_sub(self.in_tools);
        let usage = match self.figures {
            None => Usage { compute_us: micros(compute), ..Usage::default() },
            Some((figures, reported_at)) => Usage {
                compute_us: micros(compute),
                fuel: figures.fuel,
                baseline_bytes: Some(figures.baseline_bytes),
                heap_peak_bytes: figures.heap_peak_bytes,
                allocated_bytes: figures.allocated_bytes,
                compactions: figures.compactions,
                figures_age_us: Some(micros(reported_at.elapsed())),
                ..Usage::default()
            },
        };
        if let Some(taken) = self.taken.take() {
            taken.settle(&usage, self.is_suspended);
        }
        for (_, lines) in std::mem::take(&mut self.ahead) {
            self.printed(lines);
        }
        let dropped = std::mem::take(&mut self.prints_dropped);
        if dropped > 0 {
            self.prints.push(Prints::mark(dropped, self.limits.prints_bytes));
            self.show_prints();
        }
        self.outcome(Err(problem), dropped, usage)
    }

    fn outcome(&mut self, answer: Result<Answer, Box<Problem>>, prints_dropped: u64, mut usage: Usage) -> Outcome {
        usage.duration_us = micros(self.started.elapsed());
        let keeps = self.set_up_failed || self.on_print.as_ref().is_none_or(|hook| hook.keeps);
        let prints = std::mem::take(&mut self.prints).into_iter().filter(|_| keeps).collect::<Vec<_>>();
        let value = answer.as_ref().map_or(0, |a| a.json.as_ref().map_or(0, String::len));
        usage.output_bytes = (prints.iter().map(String::len).sum::<usize>() + value) as u64;
        let calls = self.ledger.numbers();
        let ledger = self.ledger.take();
        usage.tool_calls = ledger.made;
        self.view.ended(Outcome {
            run_id: self.view.run_id().clone(),
            answer: answer.map_err(|problem| ledger.in_doubt(problem)),
            warnings: Vec::new(),
            prints,
            prints_dropped,
            prints_cut: 0,
            usage,
            ledger: ledger.lines,
            ledger_dropped: ledger.dropped,
            given_up: ledger.given_up,
            given_up_calls: Vec::new(),
            clock: Vec::new(),
            calls,
            profile: None,
            limits: self.limits,
            cost_schedule: COST_SCHEDULE_VERSION,
        })
    }
}
