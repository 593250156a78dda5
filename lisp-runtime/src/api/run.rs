//! A run: drives the machine, with the clock, the tools and the ledger.

use super::grant::{granted, setup_exceeded};
use super::input::Input;
use super::program::Program;
use crate::drive::driver::{DriverEvent, MachineDriver};
use crate::drive::setting::Setting;
use crate::drive::shared::RunShared;
use crate::parallel::executor::{Executor, LocalExecutor};
use crate::parallel::group::{Group, Owner};
use crate::parallel::task::Task;
use crate::terms::budget::Taken;
use crate::terms::check::Check;
use crate::terms::deadline::{deadline, expired, micros, run_timeout, stop_of_compiling};
use crate::terms::limits::{Limits, bytes};
use crate::terms::outcome::{
    Answer, Call, Element, Figures, FurtherError, Outcome, OutcomeKind, Phase, Position, Problem, Usage, Verdict, lost,
};
use crate::terms::profile::Profile;
use crate::terms::run_view::RunView;
use crate::terms::warning::{Warning, WarningKind};
use crate::text::convert;
use crate::tools::signature::sentence;
use crate::tools::tool::{Reply, Tool, ToolCall};
use lisp_core::check::{Finding, FindingKind};
use lisp_core::cost::COST_SCHEDULE_VERSION;
use lisp_core::heap::Fault;
use lisp_core::syntax::LineIndex;
use lisp_core::vm::{Ending, Grant, Machine, Settings, TurnChange, Usage as MachineUsage};
use lisp_core::{CallSite, Error, Reason, Span, Trace};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The most of the value of a failed set-up program that its error shows, in bytes.
const SHOWN_OF_FAIL: usize = 200;

/// What a run does next.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(crate) enum RunEvent {
    /// It waits for a tool.
    Call(Arc<Tool>, Box<ToolCall>),
    /// It has printed these lines, and can continue.
    Printed(Vec<String>),
    /// It has computed for a while, and can continue.
    Beat,
    /// Its slices are used up, and it can continue.
    Turn,
    /// It waits for its workers.
    Workers,
    /// It has ended.
    Done(Box<Outcome>),
}

/// The program while its workers run: it is returned when they are done.
type Away = Receiver<Box<MachineDriver>>;

/// A run in progress.
pub(crate) struct Run {
    /// A stand-in while workers run for the program.
    pub(crate) driver: Box<MachineDriver>,
    away: Option<Away>,
    /// Where workers run unless the threads of a pool run them.
    pub(crate) local: Option<Arc<LocalExecutor>>,
    pub(crate) shared: Arc<RunShared>,
    /// The set-up programs, then the program.
    pub(super) programs: Vec<Program>,
    pub(super) current: usize,
    /// The number of set-up programs.
    pub(super) set_ups: usize,
    /// The turn of the session, from 1.
    pub(super) turn: u64,
    started: Instant,
    pub(super) baseline: u64,
    /// Bytes that the set-up programs hold; part of the baseline.
    pub(super) set_up_bytes: u64,
    /// Programs with greater numbers than this are not in the baseline.
    pub(super) in_baseline: u64,
    /// The number and bytes of the programs that were kept the last time others were dropped.
    pub(super) kept_programs: (usize, usize),
    /// What turns have changed since it was last taken.
    pub(crate) change: TurnChange,
    figures: MachineUsage,
    /// Warnings about the JSON of the result.
    warnings: Vec<Warning>,
    /// What a check of the program found before it ran.
    findings: Vec<Finding>,
    /// What the run has taken from its budget.
    pub(crate) taken: Option<Taken>,
    /// Whether results become `*1 *2 *3` of later turns.
    pub(crate) keeps_history: bool,
}

impl Run {
    /// A wait when there is nothing else to do.
    pub(crate) const LONG: Duration = Duration::from_secs(3_600);

    /// Imports the input and measures the baseline. `turn` is the session's turn that it is for, from 1.
    pub(crate) fn set_up(
        started: Instant,
        setting: Setting,
        program: &Program,
        input: &Input<'_>,
        turn: u64,
    ) -> Result<Run, Box<Problem>> {
        let limits = setting.limits;
        let ceiling = bytes(limits.setup_heap_bytes);
        let problem = |error: Error| {
            let too_much = error.reason == Reason::MemoryExceeded;
            let error = if too_much { error.detail("budget_bytes", limits.heap_bytes) } else { error };
            Box::new(Problem::new(error, Phase::Setup))
        };
        let mut programs = input.setup_programs(started, &limits)?;
        programs.push(program.clone());
        for (index, program) in programs.iter().enumerate() {
            if let Some(error) = setting.missing_tool(program.core()) {
                let mut problem = Problem::in_source(error, program.source(), Phase::Compile);
                problem.setup = (index < input.setup.len()).then_some(index);
                return Err(Box::new(problem));
            }
        }
        let code: usize = programs.iter().map(|program| program.core().bytes()).sum();
        let until = deadline(started, limits.timeout_ms);
        let (grants, baseline) = granted(&setting, input, code, until).map_err(problem)?;
        let set_up_first = programs.len() > 1;
        let heap_bytes = match set_up_first {
            true if ceiling == usize::MAX => 0,
            true => ceiling - baseline,
            false => heap_setting(&limits),
        };
        let set_ups = programs.len() - 1;
        let mut run = Run::over(started, setting, input, grants, (baseline, heap_bytes), programs);
        (run.set_ups, run.turn) = (set_ups, turn);
        run.in_baseline = (set_ups as u64).saturating_add(turn);
        match expired(&limits, Some(&run.shared.setting.cancel), until) {
            Some(error) => Err(problem(error)),
            None => run.load().map(|()| run),
        }
    }

    /// Creates a run over the imported input, with a baseline and a budget. None of its programs is loaded yet.
    pub(super) fn over(
        started: Instant,
        setting: Setting,
        input: &Input<'_>,
        grants: Vec<Arc<Grant>>,
        (baseline, heap_bytes): (usize, usize),
        programs: Vec<Program>,
    ) -> Run {
        let limits = setting.limits;
        let worker_heap = usize::try_from(limits.worker_heap_bytes).unwrap_or(0);
        let mut worker = settings(&limits, worker_heap, input);
        worker.fuel = setting.fuel.or(worker.fuel);
        worker.print_pauses = setting.streams_prints();
        worker.shows_locals = !setting.redacts();
        worker.notes = setting.makes.check != Check::Off;
        let machine = Machine::new(grants, Settings { heap_bytes, ..worker.clone() });
        let shared = Arc::new(RunShared::new(setting, started, worker));
        Run {
            driver: Box::new(MachineDriver::new(machine, shared.clone(), None)),
            away: None,
            local: None,
            shared,
            set_ups: 0,
            turn: 0,
            programs,
            current: 0,
            started,
            baseline: baseline as u64,
            set_up_bytes: 0,
            in_baseline: 0,
            kept_programs: (0, 0),
            // Nothing of it was taken yet.
            change: TurnChange { definitions: true, history: true },
            figures: MachineUsage::default(),
            warnings: Vec::new(),
            findings: Vec::new(),
            taken: None,
            keeps_history: false,
        }
    }

    /// Loads the current program.
    pub(super) fn load(&mut self) -> Result<(), Box<Problem>> {
        let whole = self.programs[self.current].clone();
        let program = whole.core();
        let number = self.number();
        self.driver.begin_program(self.current + 1 < self.programs.len());
        let setting = &self.shared.setting;
        let until = self.shared.run_time.deadline();
        let end = || expired(&setting.limits, Some(&setting.cancel), until);
        let stop = stop_of_compiling(&setting.limits, Some(&setting.cancel), until);
        match self.driver.machine.load_unless(program.clone(), number, &stop) {
            Ok(()) => {
                let check = self.shared.setting.makes.check;
                if !self.is_set_up() && check != Check::Off {
                    let tool = |name: &str| self.shared.setting.tool(name)?.shape();
                    let forms = whole.forms().map(|forms| (&**program, forms));
                    let findings = self.driver.machine.check(number, forms, &tool, &stop);
                    let refuses = check == Check::Refuse && self.shared.setting.replay.is_none();
                    if let Some(error) = refusal(&findings).filter(|_| refuses) {
                        return Err(self.problem(error, Phase::Compile));
                    }
                    self.findings = findings;
                }
                Ok(())
            }
            Err(error) if error.reason == Reason::Timeout => {
                let error = end().or_else(|| until.map(|_| run_timeout(&setting.limits))).unwrap_or(error);
                Err(self.problem(error, Phase::Compile))
            }
            Err(error) => Err(self.problem(error, Phase::Compile)),
        }
    }

    /// Returns the number of the current program for errors: set-up programs come first, then the turns.
    fn number(&self) -> u64 {
        match self.is_set_up() {
            true => self.current as u64,
            false => (self.set_ups as u64).saturating_add(self.turn),
        }
    }

    /// Resets its account and its deadline.
    pub(super) fn renew(&mut self, started: Instant, view: RunView) {
        self.started = started;
        let setting = Setting { view, ..self.shared.setting.clone() };
        self.shared = Arc::new(RunShared::new(setting, started, self.shared.worker.clone()));
        let stand_in = Box::new(MachineDriver::stand_in(&self.shared));
        let MachineDriver { machine, .. } = *std::mem::replace(&mut self.driver, stand_in);
        *self.driver = MachineDriver::new(machine, self.shared.clone(), None);
    }

    /// Returns whether the machine can run another turn. It cannot if a set-up program did not end, or after a caught
    /// bug.
    pub(crate) fn is_of_use(&self) -> bool {
        !self.is_set_up() && !self.shared.is_broken()
    }

    /// Calls the host's heartbeat, if there is one.
    pub(crate) fn beat(&self) {
        if let Some(heartbeat) = &self.shared.setting.heartbeat {
            heartbeat.beat();
        }
    }

    /// Returns whether a set-up program is running.
    pub(crate) fn is_set_up(&self) -> bool {
        self.current + 1 < self.programs.len()
    }

    /// Continues to the next tool call, the next parallel call, or the end.
    pub(crate) fn advance(&mut self) -> RunEvent {
        self.advance_by(u32::MAX)
    }

    /// Like [`Run::advance`], for at most `slices` slices of fuel.
    pub(crate) fn advance_by(&mut self, slices: u32) -> RunEvent {
        match catch_unwind(AssertUnwindSafe(|| self.advance_inner(slices))) {
            Ok(next) => next,
            Err(panic) => {
                self.shared.set_broken();
                RunEvent::Done(Box::new(self.outcome(Err(Box::new(Problem::new(lost(panic), Phase::Eval))))))
            }
        }
    }

    fn advance_inner(&mut self, slices: u32) -> RunEvent {
        loop {
            if self.shared.setting.makes.check_only && !self.is_set_up() {
                return RunEvent::Done(Box::new(self.outcome(Ok(Answer::none()))));
            }
            let ending = match self.driver.advance(slices, None) {
                DriverEvent::Turn => return RunEvent::Turn,
                DriverEvent::Call(tool, call) => return RunEvent::Call(tool, call),
                DriverEvent::Printed(lines) => return RunEvent::Printed(lines),
                DriverEvent::Beat => return RunEvent::Beat,
                DriverEvent::Workers => return RunEvent::Workers,
                // While the program itself calls a tool, no worker does.
                DriverEvent::SameCall(_) | DriverEvent::Later => {
                    self.driver.lose("a call that is under way");
                    continue;
                }
                DriverEvent::Done(ending) => ending,
            };
            if self.is_set_up() {
                match self.next_program(&ending) {
                    Ok(()) => continue,
                    Err(problem) => return RunEvent::Done(Box::new(self.outcome(Err(problem)))),
                }
            }
            // Converting the result is work of the host, not of the program.
            self.figures = self.driver.machine.usage();
            let answer = match ending {
                Ending::Error(mut error) => {
                    // Missing data is nil, which few functions accept.
                    if error.of_nil || error.reason == Reason::InvalidToolArgs {
                        let whole = self.programs[self.current].clone();
                        let program = whole.core();
                        let missing = self.driver.machine.hint_of_missing_data(program);
                        error.hint = match (missing, error.hint.take()) {
                            (Some(missing), Some(hint)) => Some(format!("{missing}; {hint}")),
                            (missing, hint) => missing.or(hint),
                        };
                    }
                    Err(self.problem(*error, Phase::Eval))
                }
                Ending::Value => self.export_result(OutcomeKind::Value),
                Ending::Return => self.export_result(OutcomeKind::Return),
                Ending::Fail => self.export_result(OutcomeKind::Fail),
            };
            let answer = match (answer, &self.shared.setting.gate.journal) {
                (Ok(answer), Some(journal)) => match journal.check_end() {
                    Ok(()) => Ok(answer),
                    Err(error) => {
                        let problem = self.problem(error, Phase::Eval);
                        self.driver.machine.undo();
                        Err(problem)
                    }
                },
                (answer, _) => answer,
            };
            let outcome = Box::new(self.outcome(answer));
            return RunEvent::Done(outcome);
        }
    }

    /// Continues with the next set-up program. After the last one, the baseline is measured again.
    fn next_program(&mut self, ending: &Ending) -> Result<(), Box<Problem>> {
        match ending {
            Ending::Error(error) => return Err(self.problem(Error::clone(error), Phase::Setup)),
            Ending::Fail => {
                let failed = self.driver.machine.with_result(|h, value| {
                    convert::with_room(h, SHOWN_OF_FAIL, || convert::text(h, value, SHOWN_OF_FAIL))
                });
                let value = failed.map_or_else(|_| "...".to_owned(), |(text, _)| text);
                let error = Error::new(Reason::RuntimeError, format!("a set-up program ended with (fail {value})"))
                    .hint("a set-up program may end with any value, but not with fail");
                return Err(self.problem(error, Phase::Setup));
            }
            Ending::Value | Ending::Return => {}
        }
        drop(self.driver.machine.take_prints());
        self.current += 1;
        if !self.is_set_up() {
            let live = self.driver.machine.rebaseline(heap_setting(&self.shared.setting.limits));
            self.set_up_bytes = live as u64;
            self.baseline = self.baseline.saturating_add(self.set_up_bytes);
        }
        self.load()
    }

    /// Passes the tool's reply to the program.
    pub(crate) fn reply(&mut self, reply: Reply) {
        self.driver.reply(reply);
    }

    /// Returns where workers run if the caller of [`Run::advance`] runs them too.
    pub(crate) fn local_executor(&mut self) -> Arc<LocalExecutor> {
        self.local.get_or_insert_default().clone()
    }

    /// Passes a tool's reply to the worker, or the program, that made the call.
    pub(crate) fn reply_to(&mut self, number: u64, reply: Reply) {
        match &self.local {
            Some(inline) if self.away.is_some() => drop(inline.reply(number, reply)),
            _ if self.driver.waits_for(number) => self.driver.reply(reply),
            _ => {}
        }
    }

    /// Starts the workers of the parallel call that the program waits for. Returns the worker for this thread.
    pub(crate) fn send_workers(&mut self, executor: Executor) -> Option<Task> {
        let stand_in = Box::new(MachineDriver::stand_in(&self.shared));
        let (sender, away) = channel();
        self.away = Some(away);
        let driver = std::mem::replace(&mut self.driver, stand_in);
        Group::begin(executor, Owner::Program(driver, sender))
    }

    /// Returns the deadline of a wait.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        self.shared.run_time.deadline()
    }

    /// Takes the program back when its workers are done, waiting at most for `wait`. Returns whether it is back.
    pub(crate) fn is_back(&mut self, wait: Duration) -> bool {
        let Some(away) = &self.away else { return true };
        match away.recv_timeout(wait) {
            Ok(driver) => self.driver = driver,
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => {
                self.driver.lose("a parallel call was lost by a bug of the interpreter");
            }
        }
        self.away = None;
        true
    }

    /// Converts the result, and the definitions if they are asked for. If the result cannot be converted, the program
    /// has failed and its definitions are undone. Definitions that cannot be converted are not a failure.
    fn export_result(&mut self, kind: OutcomeKind) -> Result<Answer, Box<Problem>> {
        match self.check_definitions(kind).and_then(|()| self.in_time(|run| run.result(kind))) {
            Ok((mut answer, warnings)) => {
                self.warnings = warnings;
                if self.keeps_history && kind != OutcomeKind::Fail {
                    self.keep_turn();
                }
                if self.shared.setting.makes.memory {
                    let made = self.in_time(Run::definitions).map(|(memory, warnings)| {
                        self.warnings.extend(warnings);
                        memory
                    });
                    answer.memory = Some(made);
                }
                Ok(answer)
            }
            Err(error) => {
                let problem = self.problem(error, Phase::Result);
                self.driver.machine.undo();
                Err(problem)
            }
        }
    }

    /// Does a part of the conversion. What takes longer than a moment is watched.
    pub(super) fn in_time<T>(&mut self, work: impl Fn(&mut Run) -> Result<T, Error>) -> Result<T, Error> {
        match work(self) {
            Err(error) if error.reason == Reason::Timeout && !self.driver.is_watched() => {
                self.driver.watch_host_work();
                work(self)
            }
            done => done,
        }
        .map_err(|error| {
            let late = (error.reason == Reason::Timeout).then(|| self.driver.over()).flatten();
            late.map_or(error, |(_, error)| error)
        })
    }

    fn result(&mut self, kind: OutcomeKind) -> Result<(Answer, Vec<Warning>), Error> {
        let limit = bytes(self.shared.setting.limits.result_bytes);
        let is_typed = self.shared.setting.makes.typed;
        let signature = self.shared.setting.signature.as_ref().filter(|_| kind != OutcomeKind::Fail);
        self.driver.machine.with_result(|h, value| {
            convert::with_room(h, limit, || {
                if let Some(signature) = signature {
                    let mismatches = signature.check_result(h, value)?;
                    if !mismatches.is_empty() {
                        return Err(Error::new(Reason::ValidationError, sentence(&mismatches))
                            .hint(format!("the program must end with a value of the type {}", signature.output()))
                            .into());
                    }
                }
                let mut warnings = Vec::new();
                let mut typed = None;
                let json = match convert::project(h, value) {
                    Ok((json, nulls)) => {
                        if is_typed && nulls.has_typed {
                            typed = Some(convert::within(convert::typed(h, value)?, "the result", limit)?);
                        }
                        Warning::of_nulls(&nulls, None, &mut warnings);
                        Ok(convert::within(json, "the result", limit)?)
                    }
                    Err(Fault::Error(error))
                        if matches!(error.reason, Reason::TypeError | Reason::ResultLimitExceeded) =>
                    {
                        Err(*error)
                    }
                    Err(fault) => return Err(fault),
                };
                let (text, text_bytes) = convert::text(h, value, limit)?;
                Ok((Answer { kind, json, typed, text, text_bytes, memory: None }, warnings))
            })
        })
    }

    /// Returns an error with its position in the current program, and its figures.
    pub(super) fn problem(&self, mut error: Error, phase: Phase) -> Box<Problem> {
        if let Some(taken) = &self.taken {
            error = taken.explain(error);
        }
        let phase = if self.is_set_up() && phase != Phase::Compile { Phase::Setup } else { phase };
        let limits = &self.shared.setting.limits;
        // A worker's error already has the worker's own limit.
        let of_worker = error.index().is_some();
        let of_machine = error.named_detail("needed_bytes").is_some();
        if error.reason == Reason::MemoryExceeded && phase == Phase::Eval && !of_worker {
            error.details.retain(|(name, _)| !matches!(&**name, "limit_bytes" | "baseline_bytes" | "budget_bytes"));
            error = error
                .detail("limit_bytes", self.baseline.saturating_add(limits.heap_bytes))
                .detail("baseline_bytes", self.baseline)
                .detail("budget_bytes", limits.heap_bytes);
        }
        if error.reason == Reason::MemoryExceeded && phase == Phase::Setup && !of_worker && !of_machine {
            let ceiling = bytes(limits.setup_heap_bytes);
            let message = format!(
                "a set-up program takes too much memory, besides the {} bytes of the data: {}",
                self.baseline, error.message
            );
            error = Error { span: error.span, trace: error.trace, ..setup_exceeded(ceiling) };
            error.message = message;
            error = error
                .hint("let it hold less at once, or raise the limit setup_heap_bytes")
                .detail("budget_bytes", limits.heap_bytes);
        }
        let trace = error.trace.take().map(|trace| *trace);
        let mut problem = Problem::new(error, phase);
        problem.setup = self.is_set_up().then_some(self.current);
        self.place(&mut problem, trace);
        Box::new(problem)
    }

    /// Adds the position of an error and its call chain, each in its source.
    fn place(&self, problem: &mut Problem, trace: Option<Trace>) {
        let current = self.number();
        let Trace { program, calls, locals } = trace.unwrap_or_else(|| Trace { program: current, ..Trace::default() });
        problem.locals = locals.into_iter().map(Into::into).collect();
        let mut texts: Vec<(u64, LineIndex)> = Vec::new();
        let mut position = |span: Span, number: u64| {
            if !texts.iter().any(|(known, _)| *known == number) {
                let lines = match number == current {
                    true => LineIndex::new(self.programs[self.current].source()),
                    false => LineIndex::new(self.driver.machine.program(number)?.source()),
                };
                texts.push((number, lines));
            }
            texts.iter().find(|(known, _)| *known == number).map(|(_, lines)| Position::of(lines, span))
        };
        let text = |number: u64| match number == current {
            true => (problem.setup, None),
            false => self.text_of(number),
        };
        let calls = calls
            .into_iter()
            .filter_map(|CallSite { function, span, program, element }| {
                let ((setup, turn), function) = (text(program), function.map(Into::into));
                let element = element.map(|(of, index)| Element { of: of.to_owned(), index });
                Some(Call { function, position: position(span, program)?, setup, turn, element })
            })
            .collect();
        let more = std::mem::take(&mut problem.error.more).into_iter();
        let more =
            more.map(|error| FurtherError { position: error.span.and_then(|span| position(span, program)), error });
        let more = more.collect();
        let (setup, turn) = text(program);
        problem.position = problem.error.span.and_then(|span| position(span, program));
        if problem.position.is_none() {
            problem.error.span = None;
        }
        (problem.setup, problem.turn, problem.calls, problem.more) = (setup, turn, calls, more);
    }

    /// Returns the set-up program, or the earlier turn, that has this number.
    fn text_of(&self, number: u64) -> (Option<usize>, Option<u64>) {
        match number.checked_sub(self.set_ups as u64) {
            None => (usize::try_from(number).ok(), None),
            Some(turn) => (None, Some(turn)),
        }
    }

    /// Returns the profile, if it is asked for.
    fn profile(&self) -> Option<Profile> {
        let current = self.number();
        let text = |number: u64| if number == current { (None, None) } else { self.text_of(number) };
        self.shared.setting.makes.profile.then(|| self.shared.profiled.take(text))
    }

    /// Returns the bytes that the program holds at its end, if they are asked for.
    fn live_bytes(&mut self) -> Option<u64> {
        /// A compaction of more than this takes too long for a figure.
        const MAX: usize = 4 << 20;
        if !self.shared.setting.makes.live || self.shared.is_broken() {
            return None;
        }
        let live = self.driver.machine.live_bytes(MAX)? as u64;
        Some(live.saturating_sub(self.set_up_bytes))
    }

    /// Returns the current figures.
    pub(crate) fn figures(&self) -> Figures {
        let figures = self.driver.machine.usage();
        Figures {
            fuel: figures.fuel,
            baseline_bytes: self.baseline,
            heap_peak_bytes: (figures.heap_peak_bytes as u64).saturating_sub(self.set_up_bytes),
            allocated_bytes: figures.allocated_bytes,
            compactions: figures.compactions,
        }
    }

    /// Takes what the check of the program found before it ran, and what it read in vain. A wrong operand is not told again if the
    /// run has failed for its type.
    fn findings_and_notes(&mut self, has_failed_for_type: bool) -> Vec<Warning> {
        let mut findings = std::mem::take(&mut self.findings);
        findings.retain(|finding| finding.kind != FindingKind::WrongType || !has_failed_for_type);
        let whole = self.programs[self.current].clone();
        let setting = &self.shared.setting;
        // Who runs a program did not ask whether the check was finished.
        findings.retain(|finding| finding.kind != FindingKind::Incomplete || setting.makes.check_only);
        // A program is also checked without its data.
        let has_data = self.driver.machine.has_data();
        findings.retain(|finding| finding.kind != FindingKind::UnknownData || !setting.makes.check_only || has_data);
        if !self.is_set_up() && setting.makes.check != Check::Off {
            let until = self.shared.run_time.deadline();
            let stop = stop_of_compiling(&setting.limits, Some(&setting.cancel), until);
            let forms = whole.forms().map(|forms| (&**whole.core(), forms));
            let notes = self.driver.machine.notes(self.number(), forms, &findings, &stop);
            findings.extend(notes);
        }
        Warning::of_findings(whole.core(), findings)
    }

    fn outcome(&mut self, answer: Result<Answer, Box<Problem>>) -> Outcome {
        let figures = self.figures;
        let heap_live_bytes = self.live_bytes();
        let prints_dropped = self.driver.machine.prints_dropped();
        let prints_cut = self.driver.machine.prints_cut();
        let prints = self.driver.machine.take_prints();
        self.driver.show_rest(&prints);
        // Lines of a set-up program are not shown, so an error has them.
        let keeps = self.driver.keeps_prints() || self.is_set_up();
        let prints = if keeps { prints } else { Vec::new() };
        let duration = self.started.elapsed();
        let workers = self.shared.worker_nanos.load(Ordering::Relaxed) / 1_000;
        let output = prints.iter().map(String::len).sum::<usize>()
            + answer.as_ref().map_or(0, |a| a.json.as_ref().map_or(0, String::len));
        let (calls, given_up_calls) = (self.driver.ledger.numbers(), self.driver.ledger.numbers_given_up());
        let ledger = self.driver.ledger.take();
        let max_fuel = self.shared.worker.fuel.unwrap_or(u64::MAX);
        let usage = Usage {
            fuel: figures.fuel.saturating_add(figures.cut_off_fuel).min(max_fuel.max(figures.fuel)),
            compute_us: micros(duration.saturating_sub(self.driver.away)).saturating_add(workers),
            duration_us: micros(duration),
            baseline_bytes: Some(self.baseline),
            heap_peak_bytes: (figures.heap_peak_bytes as u64).saturating_sub(self.set_up_bytes),
            heap_live_bytes,
            allocated_bytes: figures.allocated_bytes,
            compactions: figures.compactions,
            tool_calls: ledger.made,
            workers_peak: self.shared.budget.peak() as u64,
            output_bytes: output as u64,
            ..Usage::default()
        };
        if let Some(taken) = self.taken.take() {
            taken.settle(&usage, true);
        }
        let mut warnings = self.programs.last().map_or_else(Vec::new, Program::warnings);
        // It is no mistake, and whoever runs only programs without warnings would never run it.
        warnings.retain(|warning| warning.kind != WarningKind::CodeFence || !self.shared.setting.makes.check_only);
        let has_failed_for_type = answer.as_ref().is_err_and(|problem| problem.reason() == Reason::TypeError);
        warnings.extend(self.findings_and_notes(has_failed_for_type));
        warnings.extend(std::mem::take(&mut self.warnings).into_iter().filter(|_| answer.is_ok()));
        debug_assert!(answer.as_ref().err().is_none_or(|problem| Verdict::of(problem.error.reason) != Verdict::Ok));
        let view = &self.shared.setting.view;
        view.ended(Outcome {
            run_id: view.run_id().clone(),
            answer: answer.map_err(|problem| ledger.in_doubt(problem)),
            warnings,
            prints,
            prints_dropped,
            prints_cut,
            usage,
            ledger: ledger.lines,
            ledger_dropped: ledger.dropped,
            given_up: ledger.given_up,
            given_up_calls,
            clock: self.shared.clock.take(),
            calls,
            profile: self.profile(),
            limits: self.shared.setting.limits,
            cost_schedule: COST_SCHEDULE_VERSION,
        })
    }
}

/// Returns the heap limit for the machine's settings: 0 is no limit.
pub(crate) fn heap_setting(limits: &Limits) -> usize {
    usize::try_from(limits.heap_bytes).unwrap_or(0)
}

pub(crate) fn settings(limits: &Limits, heap_bytes: usize, input: &Input<'_>) -> Settings {
    Settings {
        heap_bytes,
        loop_iterations: limits.loop_iterations,
        fuel: (limits.fuel > 0).then_some(limits.fuel),
        print_chars: usize::try_from(limits.print_chars).unwrap_or(usize::MAX),
        prints_bytes: usize::try_from(limits.prints_bytes).unwrap_or(usize::MAX),
        strict_data: input.strict_data,
        now_ms: input.now_ms,
        ..Settings::default()
    }
}

impl Drop for Run {
    /// Waiting workers, in the cache or for the host, refer to the run.
    fn drop(&mut self) {
        if let Some(inline) = &self.local {
            inline.abandon();
        }
        if let Some(mut taken) = self.taken.take() {
            // While workers run, what they have used is not known.
            taken.note(self.away.is_none().then(|| self.figures()).as_ref());
        }
        self.shared.clear();
    }
}

/// Returns the error of a program with calls of tools that would fail.
fn refusal(findings: &[Finding]) -> Option<Error> {
    Error::of_several(findings.iter().filter(|finding| finding.fails).map(|finding| {
        let error = Error::new(Reason::CheckFailed, finding.message.clone()).at(finding.span);
        match &finding.repair {
            Some(repair) => error.hint(repair.clone()),
            None => error,
        }
    }))
}
