//! A run: the driver of the machine. It holds the clock, the tools and the ledger.

use crate::cancel::Cancel;
use crate::input::{Input, Source};
use crate::ledger::Ledger;
use crate::limits::{Limits, bytes};
use crate::outcome::{Answer, Outcome, OutcomeKind, Phase, Problem, Usage, Verdict};
use crate::program::Program;
use crate::project;
use crate::signature::{Signature, sentence};
use crate::tool::{Reply, Tool, ToolCall, ToolError, Tools};
use crate::watchdog;
use lisp_core::heap::{Fault, Heap, Value};
use lisp_core::machine::{Ending, Grant, GrantBuilder, Machine, Settings, Step, Usage as MachineUsage};
use lisp_core::{Error, Reason, Span};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Units of fuel between two looks at the clock: well under a millisecond.
pub(crate) const SLICE: u64 = 20_000;

/// The most bytes of arguments and results that the cache of a run keeps; more is not kept, and called again.
const CACHE_BYTES: usize = 16 << 20;

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
}

impl Setting {
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.own_tools.as_ref().and_then(|tools| tools.get(name)).or_else(|| self.tools.get(name))
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
        let hint = match names.len() {
            0 => "there are no tools here; work on data/... alone".to_owned(),
            _ => format!("there are {}", names.iter().map(|n| format!("tool/{n}")).collect::<Vec<_>>().join(", ")),
        };
        Error::new(Reason::UnknownTool, format!("there is no tool/{name}")).hint(hint)
    }
}

/// Where a symbol stands first in a source text.
fn place_of(source: &str, symbol: &str) -> Option<Span> {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_./?!*+<>=&".contains(c));
    let (start, _) = source.match_indices(symbol).find(|(at, _)| ends(&source[at + symbol.len()..]))?;
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(start + symbol.len()).ok()?))
}

/// A tool call that waits for its reply.
struct Pending {
    tool: Arc<Tool>,
    since: Instant,
    /// Its place in the ledger.
    entry: Option<usize>,
    /// Its arguments as JSON, if the result is to be kept.
    cache_key: Option<String>,
}

/// What a run does next.
#[allow(clippy::large_enum_variant, reason = "there is one per run, and it is moved once")]
pub(crate) enum Next {
    /// It waits for a tool.
    Call(Arc<Tool>, ToolCall),
    /// It is over.
    Done(Box<Outcome>),
}

/// A run in progress.
pub(crate) struct Run {
    pub(crate) machine: Machine,
    setting: Setting,
    /// The set-up programs, then the program.
    programs: Vec<Program>,
    current: usize,
    started: Instant,
    deadline: Option<Instant>,
    in_tools: Duration,
    baseline: u64,
    /// What the set-up programs hold; part of the baseline.
    set_up_bytes: u64,
    figures: MachineUsage,
    ledger: Ledger,
    calls: u64,
    /// Results of cached tools, by name and arguments.
    cache: HashMap<(String, String), String>,
    cache_bytes: usize,
    pending: Option<Pending>,
    /// The results become `*1 *2 *3` of the turns to come.
    pub(crate) keeps_history: bool,
    /// The watchdog looks after the program that is loaded.
    watched: bool,
}

/// The moment a number of milliseconds later; `None` is never.
pub(crate) fn deadline(from: Instant, ms: u64) -> Option<Instant> {
    from.checked_add(Duration::from_millis(ms))
}

impl Run {
    /// Brings the grant in and measures the baseline.
    pub(crate) fn set_up(
        started: Instant,
        setting: Setting,
        program: &Program,
        input: &Input<'_>,
    ) -> Result<Run, Box<Problem>> {
        let limits = setting.limits;
        let ceiling = bytes(limits.setup_heap_bytes);
        let problem = |error| Box::new(Problem::new(error, Phase::Setup));
        let mut programs = input.setup.clone();
        programs.push(program.clone());
        for program in &programs {
            if let Some(error) = setting.missing_tool(program) {
                return Err(Box::new(Problem::in_source(error, program.source(), Phase::Compile)));
            }
        }
        let code: usize = programs.iter().map(|program| program.core().bytes()).sum();
        let shared: usize = input.sets.iter().map(|set| set.bytes()).sum();
        let held = code.saturating_add(shared);
        let until = deadline(started, limits.timeout_ms);
        let grant =
            bring_in(ceiling.saturating_sub(held), &input.sources, until, &setting.cancel).map_err(|fault| {
                let late = matches!(fault, Fault::Pause(_)).then(|| expired(&setting, until)).flatten();
                problem(late.unwrap_or_else(|| in_setup(fault, ceiling)))
            })?;
        let baseline = held.saturating_add(grant.as_ref().map_or(0, |grant| grant.bytes()));
        if baseline > ceiling {
            return Err(problem(setup_exceeded(ceiling)));
        }
        let mut grants: Vec<Arc<Grant>> = input.sets.iter().map(|set| set.0.clone()).collect();
        grants.extend(grant.map(Arc::new));
        let set_up_first = programs.len() > 1;
        let heap_bytes = match set_up_first {
            true if ceiling == usize::MAX => 0,
            true => ceiling - baseline,
            false => heap_setting(&limits),
        };
        let machine = Machine::new(grants, settings(&limits, heap_bytes, input));
        let mut run = Run::with_machine(machine, started, setting, programs, baseline as u64);
        match run.expired() {
            Some(error) => Err(problem(error)),
            None => run.load().map(|()| run),
        }
    }

    /// A run on a machine that is ready.
    pub(crate) fn with_machine(
        machine: Machine,
        started: Instant,
        setting: Setting,
        programs: Vec<Program>,
        baseline: u64,
    ) -> Run {
        Run {
            machine,
            deadline: deadline(started, setting.limits.timeout_ms),
            setting,
            programs,
            current: 0,
            started,
            in_tools: Duration::ZERO,
            baseline,
            set_up_bytes: 0,
            figures: MachineUsage::default(),
            ledger: Ledger::default(),
            calls: 0,
            cache: HashMap::new(),
            cache_bytes: 0,
            pending: None,
            keeps_history: false,
            watched: false,
        }
    }

    /// Loads the current program.
    pub(crate) fn load(&mut self) -> Result<(), Box<Problem>> {
        let program = self.programs[self.current].core().clone();
        self.watched = false;
        self.machine.load(program).map_err(|error| self.problem(error, Phase::Compile))
    }

    /// Loads one more program on the same machine and begins its account anew.
    pub(crate) fn next_turn(&mut self, started: Instant, program: &Program) -> Result<(), Box<Problem>> {
        if let Some(error) = self.setting.missing_tool(program) {
            return Err(Box::new(Problem::in_source(error, program.source(), Phase::Compile)));
        }
        (self.programs, self.current) = (vec![program.clone()], 0);
        (self.started, self.deadline) = (started, deadline(started, self.setting.limits.timeout_ms));
        (self.in_tools, self.calls, self.pending) = (Duration::ZERO, 0, None);
        self.ledger = Ledger::default();
        (self.cache, self.cache_bytes) = (HashMap::new(), 0);
        self.load()
    }

    /// Is a set-up program running?
    pub(crate) fn is_set_up(&self) -> bool {
        self.current + 1 < self.programs.len()
    }

    /// Goes on to the next tool call or the end.
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
            let ending = match self.machine.resume(SLICE) {
                Step::Paused => match self.expired() {
                    // The machine ends the program: the next step is its end.
                    Some(error) => {
                        self.machine.stop(error);
                        continue;
                    }
                    None if !self.watched => {
                        // A run that takes more than a slice is worth looking after.
                        if let Some(flag) = watchdog::flag(self.deadline, &self.setting.cancel) {
                            self.machine.watch(flag);
                        }
                        self.watched = true;
                        continue;
                    }
                    None => continue,
                },
                Step::ToolCall => match self.call() {
                    Some((tool, call)) => return Next::Call(tool, call),
                    None => continue,
                },
                Step::Done(ending @ Ending::Error(_)) => ending,
                // The last slice may have ended after the deadline.
                Step::Done(ending) => match self.expired() {
                    Some(error) => {
                        self.machine.stop(error);
                        continue;
                    }
                    None => ending,
                },
            };
            if self.is_set_up() {
                match self.next_program(&ending) {
                    Ok(()) => continue,
                    Err(problem) => return Next::Done(Box::new(self.outcome(Err(problem)))),
                }
            }
            // Bringing the result out is the host's work, not the program's.
            self.figures = self.machine.usage();
            let answer = match ending {
                Ending::Error(error) => Err(self.problem(*error, Phase::Eval)),
                Ending::Value => {
                    let answer = self.bring_out(OutcomeKind::Value);
                    if self.keeps_history && answer.is_ok() {
                        self.machine.push_history();
                    }
                    answer
                }
                Ending::Return => self.bring_out(OutcomeKind::Return),
                Ending::Fail => self.bring_out(OutcomeKind::Fail),
            };
            return Next::Done(Box::new(self.outcome(answer)));
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
        drop(self.machine.take_prints());
        self.current += 1;
        if !self.is_set_up() {
            let live = self.machine.rebaseline(heap_setting(&self.setting.limits));
            self.set_up_bytes = live as u64;
            self.baseline = self.baseline.saturating_add(self.set_up_bytes);
        }
        self.load()
    }

    /// The error of a run past its deadline or cancelled.
    fn expired(&self) -> Option<Error> {
        expired(&self.setting, self.deadline)
    }

    /// Takes the tool call the machine waits for. `None` when it has its reply already.
    fn call(&mut self) -> Option<(Arc<Tool>, ToolCall)> {
        let name = self.machine.with_call(|_, name, _| name.to_owned()).unwrap_or_default();
        let Some(tool) = self.setting.tool(&name).cloned() else {
            self.machine.reply_error(self.setting.unknown_tool(&name));
            return None;
        };
        let limit = bytes(self.setting.limits.result_bytes);
        let contract = tool.contract.clone();
        let taken = self.machine.with_call(|h, name, args| {
            project::with_room(h, limit, || {
                let map = project::arguments(h, name, args)?;
                if let Some(contract) = &contract {
                    let mismatches = contract.check_arguments(h, map)?;
                    if !mismatches.is_empty() {
                        let text = format!("tool/{name}: {}", sentence(&mismatches));
                        return Err(Error::new(Reason::InvalidToolArgs, text).into());
                    }
                }
                project::json(h, Value::Map(map), limit)
            })
        });
        let arguments = match taken {
            Some(Ok(arguments)) => arguments,
            Some(Err(error)) => {
                self.machine.reply_error(with_signature(error, &tool));
                return None;
            }
            None => {
                self.machine.reply_error(Error::new(Reason::HostFault, "a tool call without a call"));
                return None;
            }
        };
        self.admit(tool, arguments)
    }

    /// Answers a call from the cache, refuses it, or enters it into the ledger.
    fn admit(&mut self, tool: Arc<Tool>, arguments: String) -> Option<(Arc<Tool>, ToolCall)> {
        if tool.cached
            && let Some(result) = self.cache.get(&(tool.name.clone(), arguments.clone())).cloned()
        {
            self.ledger.cached(&tool.name, &arguments, &result);
            self.reply_json(&tool, &result);
            return None;
        }
        let limit = self.setting.limits.tool_calls;
        if limit > 0 && self.calls >= limit {
            let error = Error::new(Reason::ToolCallLimitExceeded, format!("a run may call tools {limit} times"))
                .hint("call tools less often, for example once for all rows, or raise the limit tool_calls")
                .detail("limit", limit);
            self.machine.reply_error(error);
            return None;
        }
        self.calls += 1;
        self.pending = Some(Pending {
            tool: tool.clone(),
            since: Instant::now(),
            entry: self.ledger.begin(&tool.name, &arguments),
            cache_key: tool.cached.then(|| arguments.clone()),
        });
        let call = ToolCall {
            name: tool.name.clone(),
            arguments,
            deadline: self.deadline,
            cancel: self.setting.cancel.clone(),
        };
        Some((tool, call))
    }

    /// Gives the tool's reply to the program.
    pub(crate) fn reply(&mut self, reply: Reply) {
        let Some(pending) = self.pending.take() else { return };
        let spent = pending.since.elapsed();
        self.in_tools += spent;
        self.ledger.end(pending.entry, &reply, spent);
        // A reply that comes after the deadline is dropped.
        if let Some(error) = self.expired() {
            self.machine.stop(error);
            return;
        }
        match reply {
            Reply::Json(json) => {
                if let Some(arguments) = pending.cache_key {
                    self.remember(&pending.tool, arguments, &json);
                }
                self.reply_json(&pending.tool, &json);
            }
            Reply::Echo => self.reply_echo(&pending.tool),
            Reply::Error(error) => self.machine.reply_error(tool_failed(&pending.tool, &error)),
            Reply::Late => self.machine.stop(Error::new(Reason::Timeout, "a tool did not return in time")),
        }
    }

    /// Keeps a result for the next call with the same arguments, as long as there is room.
    fn remember(&mut self, tool: &Tool, arguments: String, json: &str) {
        let bytes = arguments.len() + json.len();
        if self.cache_bytes.saturating_add(bytes) <= CACHE_BYTES {
            self.cache_bytes += bytes;
            self.cache.insert((tool.name.clone(), arguments), json.to_owned());
        }
    }

    fn reply_json(&mut self, tool: &Tool, json: &str) {
        // A result that does not fit has ended the run: the next step says so.
        let _ = self.machine.reply(|h| {
            let value = project::read_json(h, json).map_err(|fault| no_result(fault, tool))?;
            checked(h, tool, value)
        });
    }

    fn reply_echo(&mut self, tool: &Tool) {
        let _ = self.machine.reply_from_call(|h, name, args| {
            let value = Value::Map(project::arguments(h, name, args)?);
            checked(h, tool, value)
        });
    }

    /// Brings the result and the definitions out.
    fn bring_out(&mut self, kind: OutcomeKind) -> Result<Answer, Box<Problem>> {
        let limit = bytes(self.setting.limits.result_bytes);
        let signature = self.setting.signature.as_ref().filter(|_| kind != OutcomeKind::Fail);
        let result = self.machine.with_result(|h, value| {
            project::with_room(h, limit, || {
                if let Some(signature) = signature {
                    let mismatches = signature.check_output(h, value)?;
                    if !mismatches.is_empty() {
                        return Err(Error::new(Reason::ValidationError, sentence(&mismatches))
                            .hint("return a value of the shape that the signature says")
                            .into());
                    }
                }
                let json = match project::json(h, value, limit) {
                    Ok(json) => Ok(json),
                    Err(Fault::Error(error)) if error.reason == Reason::TypeError => Err(*error),
                    Err(fault) => return Err(fault),
                };
                let (text, whole) = project::text(h, value, limit)?;
                Ok((json, text, whole))
            })
        });
        let memory = self.machine.with_definitions(|h, all| match all {
            [] => Ok("{}".to_owned()),
            all => project::with_room(h, limit, || project::definitions(h, all, limit)),
        });
        match (result, memory) {
            (Ok((json, text, text_bytes)), Ok(memory)) => Ok(Answer { kind, json, text, text_bytes, memory }),
            (Err(error), _) | (_, Err(error)) => Err(self.problem(error, Phase::Result)),
        }
    }

    /// An error with its place in the program that runs, and its figures.
    fn problem(&self, mut error: Error, phase: Phase) -> Box<Problem> {
        let phase = if self.is_set_up() { Phase::Setup } else { phase };
        let limits = &self.setting.limits;
        if error.reason == Reason::MemoryExceeded && phase == Phase::Eval {
            error.details.retain(|(name, _)| !matches!(*name, "limit_bytes" | "baseline_bytes" | "budget_bytes"));
            error = error
                .detail("limit_bytes", self.baseline.saturating_add(limits.heap_bytes))
                .detail("baseline_bytes", self.baseline)
                .detail("budget_bytes", limits.heap_bytes);
        }
        let mut problem = Problem::in_source(error, self.programs[self.current].source(), phase);
        problem.setup = self.is_set_up().then_some(self.current);
        Box::new(problem)
    }

    fn outcome(&mut self, answer: Result<Answer, Box<Problem>>) -> Outcome {
        let figures = self.figures;
        let prints_dropped = self.machine.prints_dropped();
        let prints = self.machine.take_prints();
        let duration = self.started.elapsed();
        let output = prints.iter().map(String::len).sum::<usize>()
            + answer.as_ref().map_or(0, |a| a.json.as_ref().map_or(0, String::len));
        let usage = Usage {
            fuel: figures.fuel,
            compute_us: micros(duration.saturating_sub(self.in_tools)),
            duration_us: micros(duration),
            baseline_bytes: Some(self.baseline),
            heap_peak_bytes: (figures.heap_peak_bytes as u64).saturating_sub(self.set_up_bytes),
            heap_live_bytes: (figures.heap_live_bytes as u64).saturating_sub(self.set_up_bytes),
            allocated_bytes: figures.allocated_bytes,
            compactions: figures.compactions,
            tool_calls: self.calls,
            workers_peak: 0,
            output_bytes: output as u64,
        };
        let (ledger, ledger_dropped) = self.ledger.take();
        debug_assert!(answer.as_ref().err().is_none_or(|problem| Verdict::of(problem.error.reason) != Verdict::Ok));
        Outcome { answer, prints, prints_dropped, usage, ledger, ledger_dropped, limits: self.setting.limits }
    }
}

/// The error of a run past its deadline or cancelled.
fn expired(setting: &Setting, deadline: Option<Instant>) -> Option<Error> {
    if setting.cancel.is_cancelled() {
        return Some(Error::new(Reason::Cancelled, "the run was cancelled from outside"));
    }
    if deadline.is_none_or(|deadline| Instant::now() < deadline) {
        return None;
    }
    let limit = setting.limits.timeout_ms;
    let error = Error::new(Reason::Timeout, format!("the run takes longer than {limit} ms"))
        .hint("do less work, for example on fewer rows, or raise the limit timeout_ms")
        .detail("limit_ms", limit);
    Some(error)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The heap budget as the machine's settings say it: 0 is no limit.
pub(crate) fn heap_setting(limits: &Limits) -> usize {
    usize::try_from(limits.heap_bytes).unwrap_or(0)
}

pub(crate) fn settings(limits: &Limits, heap_bytes: usize, input: &Input<'_>) -> Settings {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|t| i64::try_from(t.as_millis()).ok());
    Settings {
        heap_bytes,
        loop_iterations: limits.loop_iterations,
        fuel: (limits.fuel > 0).then_some(limits.fuel),
        print_chars: usize::try_from(limits.print_chars).unwrap_or(usize::MAX),
        prints_bytes: usize::try_from(limits.prints_bytes).unwrap_or(usize::MAX),
        strict_data: input.strict_data,
        now_ms: input.now_ms.or_else(clock),
        ..Settings::default()
    }
}

/// Builds the grant of one run. `None` when there is nothing to bring in.
fn bring_in(
    limit: usize,
    sources: &[Source<'_>],
    until: Option<Instant>,
    cancel: &Cancel,
) -> Result<Option<Grant>, Fault> {
    /// Work on the usual grant: with more, somebody looks at the clock.
    const USUAL: u64 = 2_000_000;
    if sources.is_empty() {
        return Ok(None);
    }
    let build = |fuel: u64, flag: Option<Arc<AtomicBool>>| {
        Grant::build(limit, |h, builder| {
            h.ration(fuel, flag);
            let built = sources.iter().try_for_each(|source| bring_in_one(h, builder, source));
            h.ration(u64::MAX, None);
            built
        })
    };
    match build(USUAL, None) {
        Err(Fault::Pause(_)) => match watchdog::flag(until, cancel) {
            Some(flag) => build(USUAL, Some(flag)).map(Some),
            None => build(u64::MAX, None).map(Some),
        },
        built => built.map(Some),
    }
}

pub(crate) fn bring_in_one<'h>(
    h: &'h Heap,
    builder: &mut GrantBuilder<'_, 'h>,
    source: &Source<'_>,
) -> Result<(), Fault> {
    let (what, text) = match source {
        Source::Data(name, text) => (format!("data/{name}"), text),
        Source::DataObject(text) => ("the data".to_owned(), text),
        Source::Memory(text) => ("the memory".to_owned(), text),
        Source::History(text) => ("the history".to_owned(), text),
    };
    let text = text.as_ref().map_err(|reason| bad_input(&what, reason))?;
    let value = project::read_json(h, text).map_err(|fault| match fault {
        Fault::Error(error) if error.reason != Reason::MemoryExceeded => bad_input(&what, &error.message),
        fault => fault,
    })?;
    let wrong = |expected: &str| bad_input(&what, &format!("expected {expected}, got {}", value.type_name()));
    match (source, value) {
        (Source::Data(name, _), value) => builder.data(name, value),
        (Source::DataObject(_), Value::Map(map)) => {
            for (key, value) in map.entries(h)?.iter() {
                builder.data(key.as_str().unwrap_or_default(), value);
            }
        }
        (Source::Memory(_), Value::Map(map)) => {
            for (key, value) in map.entries(h)?.iter() {
                builder.define(key.as_str().unwrap_or_default(), value);
            }
        }
        (Source::History(_), Value::Vector(items)) => items.items().iter().for_each(|&item| builder.history(item)),
        (Source::DataObject(_) | Source::Memory(_), _) => return Err(wrong("an object")),
        (Source::History(_), _) => return Err(wrong("an array")),
    }
    Ok(())
}

fn bad_input(what: &str, reason: &str) -> Fault {
    Error::new(Reason::ParseError, format!("{what} cannot be brought in: {reason}")).into()
}

/// An error of the set-up from a fault in it.
pub(crate) fn in_setup(fault: Fault, ceiling: usize) -> Error {
    match fault {
        Fault::Error(error) if error.reason != Reason::MemoryExceeded => *error,
        _ => setup_exceeded(ceiling),
    }
}

fn setup_exceeded(ceiling: usize) -> Error {
    Error::new(Reason::MemoryExceeded, format!("what the host gives the run takes more than {ceiling} bytes"))
        .hint("give less data, or raise the limit setup_heap_bytes")
        .detail("limit_bytes", ceiling)
}

fn with_signature(error: Error, tool: &Tool) -> Error {
    match (&tool.signature, error.reason) {
        (Some(signature), Reason::InvalidToolArgs) => error.hint(format!("tool/{}: {signature}", tool.name)),
        _ => error,
    }
}

fn tool_failed(tool: &Tool, error: &ToolError) -> Error {
    let reason = if error.arguments { Reason::InvalidToolArgs } else { Reason::ToolError };
    with_signature(Error::new(reason, format!("tool/{}: {}", tool.name, error.message)), tool)
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
    let mismatches = contract.check_output(h, value)?;
    if mismatches.is_empty() {
        return Ok(value);
    }
    let text = format!("tool/{}: its result does not fit its signature: {}", tool.name, sentence(&mismatches));
    Err(Error::new(Reason::ToolError, text).into())
}
