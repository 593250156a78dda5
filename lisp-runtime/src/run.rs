//! A run: the driver of the machine. It holds the clock, the tools and the ledger.

use crate::actor::{Actor, Common, Need, run_timeout};
use crate::cancel::Cancel;
use crate::clock::{Clock, Reading};
use crate::grant::{bring_in, in_setup, setup_exceeded};
use crate::input::{Input, Makes};
use crate::limits::{Limits, bytes};
use crate::observer::Observed;
use crate::outcome::{Answer, Call, Outcome, OutcomeKind, Phase, Position, Problem, Usage, Verdict};
use crate::parallel::{Exec, Group, Inline, Owner, Task};
use crate::print_hook::PrintHook;
use crate::program::Program;
use crate::project;
use crate::remote::Figures;
use crate::signature::{Signature, sentence};
use crate::tool::{Reply, Tool, ToolCall, Tools};
use crate::watchdog;
use lisp_core::builtins::near_names;
use lisp_core::heap::Fault;
use lisp_core::syntax::LineIndex;
use lisp_core::vm::{Ending, Grant, Machine, Settings, Usage as MachineUsage};
use lisp_core::{CallSite, Error, Reason, Span, Trace};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a run needs of its engine.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) limits: Limits,
    pub(crate) tools: Arc<Tools>,
    /// Tools of this run only.
    pub(crate) own_tools: Option<Arc<Tools>>,
    pub(crate) cancel: Cancel,
    pub(crate) signature: Option<Signature>,
    /// Names of tools are not looked up before the program runs.
    pub(crate) any_tool: bool,
    /// For a run whose prints go out as they happen, in a process without threads: what a signal sets at the deadline,
    /// in the watchdog's place.
    pub(crate) alarm: Option<Arc<AtomicBool>>,
    /// A thread may look after it: else a built-in at work is ended by cancellation only.
    pub(crate) watched: bool,
    pub(crate) clock: Clock,
    /// How many cores count for parallel calls, when it is not this process that says so.
    pub(crate) cores: Option<usize>,
    /// What the clock told in the run that is replayed.
    pub(crate) clock_replay: Vec<Reading>,
    pub(crate) on_print: Option<PrintHook>,
    pub(crate) observed: Observed,
    /// What is made of it besides its result.
    pub(crate) makes: Makes,
}

impl Setting {
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.own_tools.as_ref().and_then(|tools| tools.get(name)).or_else(|| self.tools.get(name))
    }

    /// Do printed lines leave the run as they happen?
    pub(crate) fn streams_prints(&self) -> bool {
        self.alarm.is_some() || self.on_print.is_some()
    }

    /// What ends a built-in at work at the deadline or on cancellation.
    pub(crate) fn flag(&self, deadline: Option<Instant>, cancel: &Cancel) -> Arc<AtomicBool> {
        let watched = || if self.watched { watchdog::flag(deadline, cancel) } else { None };
        // Without the thread that would set it at the deadline.
        self.alarm.clone().or_else(watched).unwrap_or_else(|| cancel.flag())
    }

    /// The first tool of a program's that nobody has granted.
    pub(crate) fn missing_tool(&self, program: &Program) -> Option<Error> {
        let name = program.tool_names().find(|name| !self.any_tool && self.tool(name).is_none())?;
        let error = self.unknown_tool(name);
        Some(match place_of(program.source(), &format!("tool/{name}")) {
            Some(span) => error.at(span),
            None => error,
        })
    }

    pub(crate) fn unknown_tool(&self, name: &str) -> Error {
        let mut names: Vec<&str> = self.tools.names().collect();
        names.extend(self.own_tools.iter().flat_map(|tools| tools.names()));
        names.sort_unstable();
        names.dedup();
        let hint = unknown_tool_hint(name, &names);
        Error::new(Reason::UnknownTool, format!("there is no tool/{name}")).hint(hint)
    }
}

/// The tools that may have been meant: the nearest names, or all of a few, and how many there are.
fn unknown_tool_hint(name: &str, names: &[&str]) -> String {
    /// The most names that are shown.
    const SHOWN: usize = 5;
    let listed = |names: &[&str]| names.iter().map(|name| format!("tool/{name}")).collect::<Vec<_>>().join(", ");
    let near = near_names(name, names.iter().copied(), SHOWN);
    match (names.len(), near.len()) {
        (0, _) => "there are no tools here; work on data/... alone".to_owned(),
        (_, 1..) => format!("did you mean {}?", listed(&near)),
        (count, 0) if count <= SHOWN => format!("there are {}", listed(names)),
        (count, 0) => format!("none of the {count} tools has a name like it; {} is the first", listed(&names[..1])),
    }
}

/// Where a symbol stands first in a source text.
fn place_of(source: &str, symbol: &str) -> Option<Span> {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_./?!*+<>=&".contains(c));
    let (start, _) = source.match_indices(symbol).find(|(at, _)| ends(&source[at + symbol.len()..]))?;
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(start + symbol.len()).ok()?))
}

/// What a run does next.
pub(crate) enum Next {
    /// It waits for a tool.
    Call(Arc<Tool>, ToolCall),
    /// It has printed these lines and goes on.
    Printed(Vec<String>),
    /// It has been at work for a while, and goes on.
    Beat,
    /// It waits for its workers.
    Workers,
    /// It is over.
    Done(Box<Outcome>),
}

/// The program while its workers are at work: it comes back when they are done.
type Away = Receiver<Box<Actor>>;

/// A run in progress.
pub(crate) struct Run {
    /// A stand-in while workers are at work for the program.
    pub(crate) actor: Box<Actor>,
    away: Option<Away>,
    /// Where workers run when the run is driven by hand.
    pub(crate) by_hand: Option<Arc<Inline>>,
    pub(crate) common: Arc<Common>,
    /// The set-up programs, then the program.
    programs: Vec<Program>,
    current: usize,
    /// How many set-up programs there were.
    set_ups: usize,
    /// The turn of the session, from 1.
    turn: u64,
    started: Instant,
    baseline: u64,
    /// What the set-up programs hold; part of the baseline.
    set_up_bytes: u64,
    /// What the programs of later turns take.
    turns_bytes: usize,
    figures: MachineUsage,
    /// The results become `*1 *2 *3` of the turns to come.
    pub(crate) keeps_history: bool,
}

/// The moment a number of milliseconds later; `None` is never.
pub(crate) fn deadline(from: Instant, ms: u64) -> Option<Instant> {
    from.checked_add(Duration::from_millis(ms))
}

impl Run {
    /// For waiting where nothing else is left to do.
    pub(crate) const LONG: Duration = Duration::from_secs(3_600);

    /// Brings the grant in and measures the baseline. `turn` is the turn of a session that it is for, from 1.
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
        let mut programs = input.setup.clone();
        programs.push(program.clone());
        for (index, program) in programs.iter().enumerate() {
            if let Some(error) = setting.missing_tool(program) {
                let mut problem = Problem::in_source(error, program.source(), Phase::Compile);
                problem.setup = (index < input.setup.len()).then_some(index);
                return Err(Box::new(problem));
            }
        }
        let code: usize = programs.iter().map(|program| program.core().bytes()).sum();
        let shared: usize = input.sets.iter().map(|set| set.bytes()).sum();
        let held = code.saturating_add(shared);
        let until = deadline(started, limits.timeout_ms);
        let grant = bring_in(ceiling.saturating_sub(held), input, until, &setting).map_err(|fault| {
            let late =
                matches!(fault, Fault::Pause(_)).then(|| expired(&limits, Some(&setting.cancel), until)).flatten();
            problem(late.unwrap_or_else(|| in_setup(fault, ceiling)))
        })?;
        let baseline = held.saturating_add(grant.as_ref().map_or(0, |grant| grant.bytes()));
        if baseline > ceiling {
            return Err(problem(setup_exceeded(ceiling)));
        }
        let mut grants: Vec<Arc<Grant>> = input.sets.iter().map(|set| set.grant.clone()).collect();
        grants.extend(grant.map(Arc::new));
        let set_up_first = programs.len() > 1;
        let heap_bytes = match set_up_first {
            true if ceiling == usize::MAX => 0,
            true => ceiling - baseline,
            false => heap_setting(&limits),
        };
        let worker_heap = usize::try_from(limits.worker_heap_bytes).unwrap_or(0);
        let mut worker = settings(&limits, worker_heap, input);
        worker.print_pauses = setting.streams_prints();
        let machine = Machine::new(grants, Settings { heap_bytes, ..worker.clone() });
        let common = Arc::new(Common::new(setting, started, worker));
        let mut run = Run {
            actor: Box::new(Actor::new(machine, common.clone(), None)),
            away: None,
            by_hand: None,
            common,
            set_ups: programs.len() - 1,
            turn,
            programs,
            current: 0,
            started,
            baseline: baseline as u64,
            set_up_bytes: 0,
            turns_bytes: 0,
            figures: MachineUsage::default(),
            keeps_history: false,
        };
        match expired(&limits, Some(&run.common.setting.cancel), until) {
            Some(error) => Err(problem(error)),
            None => run.load().map(|()| run),
        }
    }

    /// Loads the current program.
    fn load(&mut self) -> Result<(), Box<Problem>> {
        let program = self.programs[self.current].core().clone();
        let number = self.number();
        self.actor.begin_program(self.current + 1 < self.programs.len());
        let setting = &self.common.setting;
        let until = deadline(self.started, setting.limits.timeout_ms);
        let end = || expired(&setting.limits, Some(&setting.cancel), until);
        let stop = stop_of_compiling(&setting.limits, Some(&setting.cancel), until);
        match self.actor.machine.load_unless(program, number, &stop) {
            Ok(()) => Ok(()),
            Err(error) if error.reason == Reason::Timeout => {
                let error = end().or_else(|| until.map(|_| run_timeout(&setting.limits))).unwrap_or(error);
                Err(self.problem(error, Phase::Compile))
            }
            Err(error) => Err(self.problem(error, Phase::Compile)),
        }
    }

    /// What errors in the current program call it by: set-up programs come first, then the turns.
    fn number(&self) -> u64 {
        match self.is_set_up() {
            true => self.current as u64,
            false => (self.set_ups as u64).saturating_add(self.turn),
        }
    }

    /// Loads one more program on the same machine and begins its account anew.
    pub(crate) fn next_turn(&mut self, started: Instant, turn: u64, program: &Program) -> Result<(), Box<Problem>> {
        if let Some(error) = self.common.setting.missing_tool(program) {
            return Err(Box::new(Problem::in_source(error, program.source(), Phase::Compile)));
        }
        (self.programs, self.current, self.turn) = (vec![program.clone()], 0, turn);
        self.renew(started);
        self.make_room_for_turn(program)?;
        self.load()
    }

    /// A session keeps the programs of its turns, as values and functions of theirs may be in use: all together, with what
    /// the host has given, have the ceiling of the set-up.
    fn make_room_for_turn(&mut self, program: &Program) -> Result<(), Box<Problem>> {
        let ceiling = bytes(self.common.setting.limits.setup_heap_bytes);
        let kept = self.turns_bytes.saturating_add(program.core().bytes());
        let held = usize::try_from(self.baseline).unwrap_or(usize::MAX).saturating_add(kept);
        if held > ceiling {
            let message = format!(
                "the programs of the session take {kept} bytes, and with what the host gives {held}; the limit setup_heap_bytes is {ceiling}"
            );
            let error = Error::new(Reason::MemoryExceeded, message)
                .hint("begin a new session with the memory of this one, or raise the limit setup_heap_bytes")
                .detail("limit_bytes", ceiling);
            return Err(self.problem(error, Phase::Compile));
        }
        self.turns_bytes = kept;
        Ok(())
    }

    /// Begins its account and its deadline anew.
    fn renew(&mut self, started: Instant) {
        self.started = started;
        self.common = Arc::new(Common::new(self.common.setting.clone(), started, self.common.worker.clone()));
        let stand_in = Box::new(Actor::stand_in(&self.common));
        let Actor { machine, .. } = *std::mem::replace(&mut self.actor, stand_in);
        *self.actor = Actor::new(machine, self.common.clone(), None);
    }

    /// Is a set-up program running?
    pub(crate) fn is_set_up(&self) -> bool {
        self.current + 1 < self.programs.len()
    }

    /// Goes on to the next tool call, the next parallel call, or the end.
    pub(crate) fn advance(&mut self) -> Next {
        match catch_unwind(AssertUnwindSafe(|| self.advance_inner())) {
            Ok(next) => next,
            Err(_) => {
                let error = Error::new(Reason::HostFault, "the interpreter met a bug of its own and stopped the run");
                Next::Done(Box::new(self.outcome(Err(Box::new(Problem::new(error, Phase::Eval))))))
            }
        }
    }

    fn advance_inner(&mut self) -> Next {
        loop {
            let ending = match self.actor.advance(u32::MAX, None) {
                Need::Turn => continue,
                Need::Call(tool, call) => return Next::Call(tool, call),
                Need::Printed(lines) => return Next::Printed(lines),
                Need::Beat => return Next::Beat,
                Need::Workers => return Next::Workers,
                // While the program itself calls a tool, no worker does.
                Need::SameCall(_) => {
                    self.actor.lose("a call that is under way");
                    continue;
                }
                Need::Done(ending) => ending,
            };
            if self.is_set_up() {
                match self.next_program(&ending) {
                    Ok(()) => continue,
                    Err(problem) => return Next::Done(Box::new(self.outcome(Err(problem)))),
                }
            }
            // Bringing the result out is the host's work, not the program's.
            self.figures = self.actor.machine.usage();
            let answer = match ending {
                Ending::Error(mut error) => {
                    // Data that is not given is nil, which few functions take.
                    if error.message.contains("nil") {
                        let program = self.programs[self.current].core().clone();
                        let missing = self.actor.machine.hint_of_missing_data(&program);
                        error.hint = match (missing, error.hint.take()) {
                            (Some(missing), Some(hint)) => Some(format!("{missing}; {hint}")),
                            (missing, hint) => missing.or(hint),
                        };
                    }
                    Err(self.problem(*error, Phase::Eval))
                }
                Ending::Value => self.bring_out(OutcomeKind::Value),
                Ending::Return => self.bring_out(OutcomeKind::Return),
                Ending::Fail => self.bring_out(OutcomeKind::Fail),
            };
            let outcome = Box::new(self.outcome(answer));
            return Next::Done(outcome);
        }
    }

    /// A set-up program is over: goes on to the next one. After the last one the baseline is measured anew.
    fn next_program(&mut self, ending: &Ending) -> Result<(), Box<Problem>> {
        match ending {
            Ending::Error(error) => return Err(self.problem(Error::clone(error), Phase::Setup)),
            Ending::Fail => {
                let error = Error::new(Reason::RuntimeError, "a set-up program ended with (fail ...)");
                return Err(self.problem(error, Phase::Setup));
            }
            Ending::Value | Ending::Return => {}
        }
        drop(self.actor.machine.take_prints());
        self.current += 1;
        if !self.is_set_up() {
            let live = self.actor.machine.rebaseline(heap_setting(&self.common.setting.limits));
            self.set_up_bytes = live as u64;
            self.baseline = self.baseline.saturating_add(self.set_up_bytes);
        }
        self.load()
    }

    /// Gives the tool's reply to the program.
    pub(crate) fn reply(&mut self, reply: Reply) {
        self.actor.reply(reply);
    }

    /// Gives a tool's reply to the worker, or the program, that made the call.
    pub(crate) fn reply_to(&mut self, number: u64, reply: Reply) {
        match &self.by_hand {
            Some(inline) if self.away.is_some() => drop(inline.reply(number, reply)),
            _ if self.actor.waits_for(number) => self.actor.reply(reply),
            _ => {}
        }
    }

    /// Sends workers to work for the program. Answers the first, to be taken on by this thread.
    pub(crate) fn send_workers(&mut self, exec: Exec) -> Option<Task> {
        let stand_in = Box::new(Actor::stand_in(&self.common));
        let (driver, away) = channel();
        self.away = Some(away);
        let actor = std::mem::replace(&mut self.actor, stand_in);
        Group::begin(exec, Owner::Program(actor, driver))
    }

    /// When its time is over, should it wait until then.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        self.common.deadline
    }

    /// Takes the program back when its workers are done. Waits for that for a moment, the first argument; returns whether it
    /// is back.
    pub(crate) fn is_back(&mut self, wait: Duration) -> bool {
        let Some(away) = &self.away else { return true };
        match away.recv_timeout(wait) {
            Ok(actor) => self.actor = actor,
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => {
                self.actor.lose("a parallel call was lost by a bug of the interpreter");
            }
        }
        self.away = None;
        true
    }

    /// Brings the result out, and the definitions when they are asked for. A program whose result cannot be brought out has
    /// failed: its definitions are undone. Definitions that cannot be brought out are no reason to fail.
    fn bring_out(&mut self, kind: OutcomeKind) -> Result<Answer, Box<Problem>> {
        match self.in_time(|run| run.result(kind)) {
            Ok(mut answer) => {
                if self.keeps_history && kind != OutcomeKind::Fail {
                    self.actor.machine.push_history();
                }
                answer.memory = self.common.setting.makes.memory.then(|| self.in_time(Run::definitions));
                Ok(answer)
            }
            Err(error) => {
                let problem = self.problem(error, Phase::Result);
                self.actor.machine.undo();
                Err(problem)
            }
        }
    }

    /// Does a part of bringing values out. What takes longer than a moment is looked after.
    fn in_time<T>(&mut self, work: impl Fn(&mut Run) -> Result<T, Error>) -> Result<T, Error> {
        match work(self) {
            Err(error) if error.reason == Reason::Timeout && !self.actor.is_looked_after() => {
                self.actor.look_after();
                work(self)
            }
            done => done,
        }
        .map_err(|error| {
            let late = (error.reason == Reason::Timeout).then(|| self.actor.over()).flatten();
            late.map_or(error, |(_, error)| error)
        })
    }

    /// The definitions as they are now, as a JSON object. It has the time of a turn, which began at `started`.
    pub(crate) fn memory(&mut self, started: Instant) -> Result<String, Box<Problem>> {
        self.renew(started);
        self.in_time(Run::definitions).map_err(|error| self.problem(error, Phase::Result))
    }

    fn definitions(&mut self) -> Result<String, Error> {
        let limit = bytes(self.common.setting.limits.result_bytes);
        self.actor.machine.with_definitions(|h, all| match all {
            [] => Ok("{}".to_owned()),
            all => project::with_room(h, limit, || project::definitions(h, all, limit)),
        })
    }

    fn result(&mut self, kind: OutcomeKind) -> Result<Answer, Error> {
        let limit = bytes(self.common.setting.limits.result_bytes);
        let signature = self.common.setting.signature.as_ref().filter(|_| kind != OutcomeKind::Fail);
        self.actor.machine.with_result(|h, value| {
            project::with_room(h, limit, || {
                if let Some(signature) = signature {
                    let mismatches = signature.check_result(h, value)?;
                    if !mismatches.is_empty() {
                        return Err(Error::new(Reason::ValidationError, sentence(&mismatches))
                            .hint("return a value of the shape that the signature says")
                            .into());
                    }
                }
                let json = match project::json(h, value, "the result", limit) {
                    Ok(json) => Ok(json),
                    Err(Fault::Error(error)) if error.reason == Reason::TypeError => Err(*error),
                    Err(fault) => return Err(fault),
                };
                let (text, text_bytes) = project::text(h, value, limit)?;
                Ok(Answer { kind, json, text, text_bytes, memory: None })
            })
        })
    }

    /// An error with its place in the program that runs, and its figures.
    fn problem(&self, mut error: Error, phase: Phase) -> Box<Problem> {
        let phase = if self.is_set_up() && phase != Phase::Compile { Phase::Setup } else { phase };
        let limits = &self.common.setting.limits;
        // A worker's error says what its own budget was.
        let of_worker = error.details.iter().any(|(name, _)| name == "index");
        if error.reason == Reason::MemoryExceeded && phase == Phase::Eval && !of_worker {
            error.details.retain(|(name, _)| !matches!(&**name, "limit_bytes" | "baseline_bytes" | "budget_bytes"));
            error = error
                .detail("limit_bytes", self.baseline.saturating_add(limits.heap_bytes))
                .detail("baseline_bytes", self.baseline)
                .detail("budget_bytes", limits.heap_bytes);
        }
        if error.reason == Reason::MemoryExceeded && phase == Phase::Setup && !of_worker {
            let ceiling = bytes(limits.setup_heap_bytes);
            let message = format!(
                "what the host gives the run takes {} bytes; a set-up program {}",
                self.baseline, error.message
            );
            error = Error { span: error.span, trace: error.trace, ..setup_exceeded(ceiling) };
            error.message = message;
            error = error.detail("budget_bytes", limits.heap_bytes);
        }
        let trace = error.trace.take().map(|trace| *trace);
        let mut problem = Problem::new(error, phase);
        problem.setup = self.is_set_up().then_some(self.current);
        self.place(&mut problem, trace);
        Box::new(problem)
    }

    /// Gives a problem the place of its error, and the calls on the way to it, in the texts that they are in.
    fn place(&self, problem: &mut Problem, trace: Option<Trace>) {
        let current = self.number();
        let Trace { program, calls } = trace.unwrap_or_else(|| Trace { program: current, calls: Vec::new() });
        let mut texts: Vec<(u64, LineIndex)> = Vec::new();
        let mut position = |span: Span, number: u64| {
            if !texts.iter().any(|(known, _)| *known == number) {
                let lines = match number == current {
                    true => LineIndex::new(self.programs[self.current].source()),
                    false => LineIndex::new(self.actor.machine.program(number)?.source()),
                };
                texts.push((number, lines));
            }
            texts.iter().find(|(known, _)| *known == number).map(|(_, lines)| Position::of(lines, span))
        };
        let text = |number: u64| match number.checked_sub(self.set_ups as u64) {
            _ if number == current => (problem.setup, None),
            None => (usize::try_from(number).ok(), None),
            Some(turn) => (None, Some(turn)),
        };
        let calls = calls
            .into_iter()
            .filter_map(|CallSite { function, span, program }| {
                let (setup, turn) = text(program);
                Some(Call { function: function.map(Into::into), position: position(span, program)?, setup, turn })
            })
            .collect();
        let (setup, turn) = text(program);
        problem.position = problem.error.span.and_then(|span| position(span, program));
        if problem.position.is_none() {
            problem.error.span = None;
        }
        (problem.setup, problem.turn, problem.calls) = (setup, turn, calls);
    }

    /// What the program holds at its end, when that is asked for.
    fn live_bytes(&mut self) -> Option<u64> {
        /// A compaction of more than this takes too long for a figure.
        const MOST: usize = 4 << 20;
        if !self.common.setting.makes.live {
            return None;
        }
        let live = self.actor.machine.live_bytes(MOST)? as u64;
        Some(live.saturating_sub(self.set_up_bytes))
    }

    /// Where the program stands.
    pub(crate) fn figures(&self) -> Figures {
        let figures = self.actor.machine.usage();
        Figures {
            fuel: figures.fuel,
            baseline_bytes: self.baseline,
            heap_peak_bytes: (figures.heap_peak_bytes as u64).saturating_sub(self.set_up_bytes),
            allocated_bytes: figures.allocated_bytes,
            compactions: figures.compactions,
        }
    }

    fn outcome(&mut self, answer: Result<Answer, Box<Problem>>) -> Outcome {
        let figures = self.figures;
        let heap_live_bytes = self.live_bytes();
        let prints_dropped = self.actor.machine.prints_dropped();
        let prints_cut = self.actor.machine.prints_cut();
        let prints = self.actor.machine.take_prints();
        self.actor.show_rest(&prints);
        let duration = self.started.elapsed();
        let workers = self.common.worker_nanos.load(Ordering::Relaxed) / 1_000;
        let output = prints.iter().map(String::len).sum::<usize>()
            + answer.as_ref().map_or(0, |a| a.json.as_ref().map_or(0, String::len));
        let usage = Usage {
            fuel: figures.fuel,
            compute_us: micros(duration.saturating_sub(self.actor.away)).saturating_add(workers),
            duration_us: micros(duration),
            baseline_bytes: Some(self.baseline),
            heap_peak_bytes: (figures.heap_peak_bytes as u64).saturating_sub(self.set_up_bytes),
            heap_live_bytes,
            allocated_bytes: figures.allocated_bytes,
            compactions: figures.compactions,
            tool_calls: self.common.desk.calls(),
            workers_peak: self.common.budget.peak() as u64,
            output_bytes: output as u64,
            ..Usage::default()
        };
        let calls = self.actor.ledger.numbers();
        let (ledger, ledger_dropped) = self.actor.ledger.take();
        debug_assert!(answer.as_ref().err().is_none_or(|problem| Verdict::of(problem.error.reason) != Verdict::Ok));
        self.common.setting.observed.ended(Outcome {
            answer,
            prints,
            prints_dropped,
            prints_cut,
            usage,
            ledger,
            ledger_dropped,
            clock: self.common.clock.take(),
            calls,
            limits: self.common.setting.limits,
        })
    }
}

/// Whether compiling, which begins now, is to stop. What it has made must be dropped then, which takes up to a third of
/// the time that it took: that time is kept free before the deadline.
pub(crate) fn stop_of_compiling<'a>(
    limits: &'a Limits,
    cancel: Option<&'a Cancel>,
    deadline: Option<Instant>,
) -> impl Fn() -> bool + 'a {
    let begun = Instant::now();
    move || {
        let until = deadline.map(|deadline| deadline.checked_sub(begun.elapsed() / 3).unwrap_or(deadline));
        expired(limits, cancel, until).is_some()
    }
}

/// The error of a run past its deadline or cancelled, while it is compiled or set up.
pub(crate) fn expired(limits: &Limits, cancel: Option<&Cancel>, deadline: Option<Instant>) -> Option<Error> {
    if cancel.is_some_and(Cancel::is_cancelled) {
        return Some(Error::new(Reason::Cancelled, "the run was cancelled from outside"));
    }
    deadline.is_some_and(|deadline| Instant::now() >= deadline).then(|| run_timeout(limits))
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The heap budget as the machine's settings say it: 0 is no limit.
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
    /// Workers that wait, in the cache or for the host, refer to the run.
    fn drop(&mut self) {
        if let Some(inline) = &self.by_hand {
            inline.abandon();
        }
        self.common.desk.clear();
    }
}
