//! A run in two halves: one drives the machine where nothing else is, the other keeps the tools, the ledger and the
//! prints. What passes between them is data: a [`Job`] goes there, a [`Report`] comes back.
//!
//! The far half ([`Far`]) is the driver that runs in-process too. The near half ([`Home`]) has all that must outlive it,
//! so that an outcome can be made of a far half that was killed.

use crate::cancel::Cancel;
use crate::desk::{Admission, Desk, Ticket};
use crate::engine::Engine;
use crate::envelope::Request;
use crate::input::{Input, Source};
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::outcome::{Answer, Outcome, OutcomeKind, Phase, Position, Problem, Usage};
use crate::parallel::{Exec, Inline, work};
use crate::program::Program;
use crate::run::{Next, Run, deadline};
use crate::session::Session;
use crate::tool::{Reply, Tool, ToolCall, ToolError, ToolErrorKind, Tools};
use lisp_core::{Detail, Error, Reason, Span};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A program and all it gets, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job<'a> {
    #[serde(borrow)]
    program: Cow<'a, str>,
    setup: Vec<Cow<'a, str>>,
    sources: Vec<Given<'a>>,
    strict_data: bool,
    signature: Option<Cow<'a, str>>,
    limits: Limits,
    now_ms: Option<i64>,
    tools: Vec<Face<'a>>,
    session: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Given<'a> {
    Data(Cow<'a, str>, Result<Cow<'a, str>, String>),
    DataObject(Result<Cow<'a, str>, String>),
    Memory(Result<Cow<'a, str>, String>),
    History(Result<Cow<'a, str>, String>),
}

/// What the far half knows of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Face<'a> {
    name: Cow<'a, str>,
    signature: Option<Cow<'a, str>>,
    /// Arguments and results are checked against the signature.
    checked: bool,
}

impl<'a> From<&'a Source<'_>> for Given<'a> {
    fn from(source: &'a Source<'_>) -> Self {
        fn text<'a>(text: &'a crate::input::Text<'_>) -> Result<Cow<'a, str>, String> {
            text.as_deref().map(Cow::Borrowed).map_err(Clone::clone)
        }
        match source {
            Source::Data(name, json) => Given::Data(Cow::Borrowed(name), text(json)),
            Source::DataObject(json) => Given::DataObject(text(json)),
            Source::Memory(json) => Given::Memory(text(json)),
            Source::History(json) => Given::History(text(json)),
        }
    }
}

impl<'a> From<Given<'a>> for Source<'a> {
    fn from(given: Given<'a>) -> Self {
        match given {
            Given::Data(name, text) => Source::Data(name, text),
            Given::DataObject(text) => Source::DataObject(text),
            Given::Memory(text) => Source::Memory(text),
            Given::History(text) => Source::History(text),
        }
    }
}

impl Engine {
    /// Makes a job of a program and its input, and the half of the run that stays here. `session` keeps the far half
    /// for further turns.
    ///
    /// # Errors
    /// The outcome of a run that cannot begin: data sets are memory of this process and cannot be sent.
    pub fn send_off<'a>(
        &self,
        source: &'a str,
        input: &'a Input<'_>,
        session: bool,
    ) -> Result<(Job<'a>, Home), Box<Outcome>> {
        let started = Instant::now();
        if !input.sets.is_empty() {
            let error = Error::new(Reason::RuntimeError, "a data set cannot be sent to another process")
                .hint("give the data as JSON text");
            let problem = Box::new(Problem::new(error, Phase::Setup));
            return Err(Box::new(self.ended(started, problem, self.limits_for(input))));
        }
        let setup = input.setup.iter().map(|program| Cow::Borrowed(program.source())).collect();
        Ok(self.halves(started, source, setup, input, session))
    }

    /// As [`Engine::send_off`], for a request. Nothing of it is compiled on this side.
    ///
    /// # Errors
    /// The outcome of a request whose tools are at fault.
    pub fn send_off_request<'a>(
        &self,
        request: &'a Request<'_>,
        input: &'a mut Input<'a>,
    ) -> Result<(Job<'a>, Home), Box<Outcome>> {
        let started = Instant::now();
        *input = request.grant().map_err(|problem| {
            let limits = self.limits_for(&Input::new().limits(request.limits));
            Box::new(Outcome::of_problem(problem, limits))
        })?;
        let setup = request.setup.iter().map(|source| Cow::Borrowed(source.as_str())).collect();
        Ok(self.halves(started, &request.program, setup, input, false))
    }

    fn halves<'a>(
        &self,
        started: Instant,
        source: &'a str,
        setup: Vec<Cow<'a, str>>,
        input: &'a Input<'_>,
        session: bool,
    ) -> (Job<'a>, Home) {
        let limits = self.limits_for(input);
        let home = Home::new(started, self, input, limits);
        let job = Job {
            program: Cow::Borrowed(source),
            setup,
            sources: input.sources.iter().map(Given::from).collect(),
            strict_data: input.strict_data,
            signature: input.signature.as_deref().map(Cow::Borrowed),
            limits,
            // A host's clock cannot be asked from another process, so there it stands still.
            now_ms: input.now_ms.or_else(|| self.clock().now_of_host()),
            tools: home.tools.values().map(|tool| face(tool)).collect(),
            session,
        };
        (job, home)
    }
}

impl Job<'_> {
    /// Is the far half kept for further turns? Then their programs come later, the first one's too.
    pub fn is_session(&self) -> bool {
        self.session
    }

    /// How long a turn may take; `None` is for ever.
    pub fn time(&self) -> Option<Duration> {
        (self.limits.timeout_ms < u64::MAX).then(|| Duration::from_millis(self.limits.timeout_ms))
    }
}

fn face(tool: &Tool) -> Face<'static> {
    Face {
        name: Cow::Owned(tool.name.clone()),
        signature: tool.signature.clone().map(Cow::Owned),
        checked: tool.contract.is_some(),
    }
}

/// What a far half asks of the one that sent it.
pub trait RunHost {
    /// The program has printed these lines.
    fn printed(&mut self, lines: Vec<String>);
    /// The program, or a worker of it, calls a tool. Several calls may be under way at once.
    fn call(&mut self, call: FarCall<'_>);
    /// Waits for the reply to any of the calls under way; answers it with the call's number. To end the wait,
    /// [`CallReply::Late`] is a reply.
    fn next_reply(&mut self) -> (u64, CallReply);
}

/// A call of a tool on its way to the other half.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FarCall<'a> {
    /// Its number in the run, from 1.
    pub number: u64,
    /// The way to the worker that makes it; empty for the program itself.
    pub worker: Cow<'a, [u32]>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// Its arguments, a JSON object.
    pub arguments: Cow<'a, str>,
}

/// The half that drives the machine, turn after turn.
pub struct Far {
    job: Result<Seat, Box<Problem>>,
    limits: Limits,
    cancel: Cancel,
}

/// Who runs a job's programs.
enum Seat {
    Once(Engine, Program, Box<Input<'static>>, Arc<AtomicBool>),
    Session(Box<Session>),
}

impl std::fmt::Debug for Far {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Far").finish_non_exhaustive()
    }
}

impl Far {
    /// Takes a job up: what can be wrong with it is in the first report. `alarm` is to be set at the deadline by
    /// whoever has no watchdog thread, and when `cancel` is used.
    pub fn new(job: Job<'_>, alarm: Arc<AtomicBool>, cancel: Cancel) -> Self {
        let limits = job.limits;
        Far { job: seat(job, alarm, &cancel), limits, cancel }
    }

    /// Runs the job's program, or in a session the program of one more turn. The deadline counts from `started`.
    pub fn run(&mut self, started: Instant, turn: Option<&str>, host: &mut dyn RunHost) -> Report {
        let mut shown = Shown::default();
        let mut drive = |run: &mut Run| {
            let outcome = drive(run, host);
            shown = Shown { lines: run.actor.shown, mixed: run.actor.mixed };
            outcome
        };
        let outcome = match &mut self.job {
            Err(problem) => Outcome::of_problem(problem.clone(), self.limits),
            Ok(Seat::Once(engine, program, input, alarm)) => {
                let mut setting = match engine.setting(input) {
                    Ok(setting) => setting,
                    Err(problem) => return Report::of(engine.ended(started, problem, self.limits), shown, Vec::new()),
                };
                setting.alarm = Some(alarm.clone());
                match Run::set_up(started, setting, program, input) {
                    Ok(mut run) => drive(&mut run),
                    Err(problem) => engine.ended(started, problem, self.limits),
                }
            }
            Ok(Seat::Session(session)) => {
                self.cancel.reset();
                session.eval_since(started, turn.unwrap_or_default(), &mut drive)
            }
        };
        let names = match &mut self.job {
            Ok(Seat::Session(session)) => session.names(),
            _ => Vec::new(),
        };
        Report::of(outcome, shown, names)
    }
}

fn seat(job: Job<'_>, alarm: Arc<AtomicBool>, cancel: &Cancel) -> Result<Seat, Box<Problem>> {
    // The other half counts the calls.
    let limits = Limits { tool_calls: 0, ..job.limits };
    let mut builder = Engine::builder().limits(limits);
    for face in job.tools {
        let tool = Tool::external(face.name);
        builder = builder.grant(match face.signature {
            Some(text) if face.checked => tool.signature(text),
            Some(text) => tool.described(text.into_owned()),
            None => tool,
        });
    }
    let broken = |error: crate::BuildError| {
        Box::new(Problem::new(Error::new(Reason::HostFault, error.to_string()), Phase::Setup))
    };
    let engine = builder.build().map_err(broken)?;
    let mut input = Input::new().strict_data(job.strict_data).cancel_with(cancel);
    for (index, source) in job.setup.iter().enumerate() {
        let program = engine.compile(source).map_err(|mut problem| {
            problem.setup = Some(index);
            problem
        })?;
        input = input.setup(&program);
    }
    input.sources = job.sources.into_iter().map(|given| owned(given.into())).collect();
    input.signature = job.signature.map(|text| Cow::Owned(text.into_owned()));
    input.now_ms = job.now_ms;
    if job.session {
        let mut session = engine.session(input);
        session.alarm = Some(alarm);
        return Ok(Seat::Session(Box::new(session)));
    }
    let program = engine.compile(&job.program)?;
    Ok(Seat::Once(engine, program, Box::new(input), alarm))
}

fn owned(source: Source<'_>) -> Source<'static> {
    let text = |text: crate::input::Text<'_>| text.map(|text| Cow::Owned(text.into_owned()));
    match source {
        Source::Data(name, json) => Source::Data(Cow::Owned(name.into_owned()), text(json)),
        Source::DataObject(json) => Source::DataObject(text(json)),
        Source::Memory(json) => Source::Memory(text(json)),
        Source::History(json) => Source::History(text(json)),
    }
}

fn drive(run: &mut Run, host: &mut dyn RunHost) -> Outcome {
    let inline = run.by_hand.get_or_insert_with(|| Arc::new(Inline::by_hand())).clone();
    // Calls up to this number are with the host.
    let mut sent = 0;
    loop {
        if !run.is_back(false) {
            inline.run_showing(&mut |lines| host.printed(lines));
            let calls = inline.waiting();
            if run.is_back(calls.is_empty()) {
                continue;
            }
            for call in calls.iter().filter(|call| call.number > sent) {
                host.call(FarCall::of(call));
            }
            sent = calls.last().map_or(sent, |call| sent.max(call.number));
            let (number, reply) = host.next_reply();
            run.reply_to(number, reply.into());
            continue;
        }
        match run.advance() {
            Next::Printed(lines) => host.printed(lines),
            Next::Call(_, call) => {
                host.call(FarCall::of(&call));
                sent = call.number;
                while run.actor.waits_for(call.number) {
                    let (number, reply) = host.next_reply();
                    run.reply_to(number, reply.into());
                }
            }
            Next::Workers => {
                if let Some(first) = run.send_workers(Exec::Inline(inline.clone())) {
                    work(first);
                }
            }
            Next::Done(outcome) => return *outcome,
        }
    }
}

impl<'a> FarCall<'a> {
    fn of(call: &'a ToolCall) -> Self {
        FarCall {
            number: call.number,
            worker: Cow::Owned(call.worker()),
            name: Cow::Borrowed(&call.name),
            arguments: Cow::Borrowed(&call.arguments),
        }
    }
}

/// The reply to a tool call, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CallReply {
    /// A result as JSON text
    Json(String),
    /// The call's own arguments
    Echo,
    /// The tool failed
    Error(String),
    /// The program called the tool wrongly
    Arguments(String),
    /// The tool's closure panicked
    Panic(String),
    /// The run may not make the call
    Refused(Fault),
    /// There was none in time
    Late,
}

impl From<CallReply> for Reply {
    fn from(reply: CallReply) -> Self {
        match reply {
            CallReply::Json(json) => Reply::Json(json),
            CallReply::Echo => Reply::Echo,
            CallReply::Error(message) => Reply::Error(ToolError::new(message)),
            CallReply::Arguments(message) => Reply::Error(ToolError::invalid_arguments(message)),
            CallReply::Panic(message) => Reply::Error(ToolError { message, kind: ToolErrorKind::Panic }),
            CallReply::Refused(fault) => Reply::Refused(fault.into()),
            CallReply::Late => Reply::Late,
        }
    }
}

impl From<Reply> for CallReply {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Json(json) => CallReply::Json(json),
            Reply::Echo => CallReply::Echo,
            Reply::Error(error) => match error.kind {
                ToolErrorKind::Failed => CallReply::Error(error.message),
                ToolErrorKind::Arguments => CallReply::Arguments(error.message),
                ToolErrorKind::Panic => CallReply::Panic(error.message),
            },
            Reply::Refused(error) => CallReply::Refused((&error).into()),
            Reply::Late => CallReply::Late,
        }
    }
}

/// An error, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    reason: String,
    message: String,
    span: Option<(u32, u32)>,
    hint: Option<String>,
    details: Vec<(String, Figure)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Figure {
    Int(i64),
    Text(String),
}

impl From<&Error> for Fault {
    fn from(error: &Error) -> Self {
        let figure = |(name, detail): &(Cow<'static, str>, Detail)| {
            let figure = match detail {
                Detail::Int(n) => Figure::Int(*n),
                Detail::Text(text) => Figure::Text(text.clone()),
                _ => return None,
            };
            Some((name.to_string(), figure))
        };
        Fault {
            reason: error.reason.name().to_owned(),
            message: error.message.clone(),
            span: error.span.map(|span| (span.start, span.end)),
            hint: error.hint.clone(),
            details: error.details.iter().filter_map(figure).collect(),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let mut error = Error::new(Reason::from_name(&fault.reason).unwrap_or(Reason::HostFault), "");
        // It is cut already, and a mark may stand behind the cut.
        error.message = fault.message;
        error.span = fault.span.map(|(start, end)| Span::new(start, end));
        error.hint = fault.hint;
        let detail = |(name, figure): (String, Figure)| {
            let detail = match figure {
                Figure::Int(n) => Detail::Int(n),
                Figure::Text(text) => Detail::Text(text),
            };
            (Cow::Owned(name), detail)
        };
        error.details = fault.details.into_iter().map(detail).collect();
        error
    }
}

/// What came of a far half, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    end: Result<Value, Trouble>,
    /// Lines that were not sent before.
    prints: Vec<String>,
    /// The lines above are all there are: those sent before may be in another order.
    whole: bool,
    /// The numbers of the tool calls in the program's order.
    calls: Vec<u64>,
    prints_dropped: u64,
    usage: Usage,
    /// What a session has defined.
    names: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Value {
    kind: OutcomeKind,
    json: Result<String, Fault>,
    text: String,
    text_bytes: usize,
    memory: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Trouble {
    fault: Fault,
    phase: Phase,
    position: Option<[u32; 4]>,
    setup: Option<usize>,
}

/// What of the prints has been sent.
#[derive(Clone, Copy, Default)]
struct Shown {
    lines: usize,
    mixed: bool,
}

impl Report {
    fn of(outcome: Outcome, shown: Shown, names: Vec<String>) -> Self {
        let calls = outcome.calls;
        let end = match outcome.answer {
            Ok(answer) => Ok(Value {
                kind: answer.kind,
                json: answer.json.map_err(|error| (&error).into()),
                text: answer.text,
                text_bytes: answer.text_bytes,
                memory: answer.memory,
            }),
            Err(problem) => Err(Trouble {
                fault: (&problem.error).into(),
                phase: problem.phase,
                position: problem.position.map(|p| [p.line, p.column, p.end_line, p.end_column]),
                setup: problem.setup,
            }),
        };
        let prints = outcome.prints.into_iter().skip(if shown.mixed { 0 } else { shown.lines }).collect();
        let prints_dropped = outcome.prints_dropped;
        Report { end, prints, whole: shown.mixed, calls, prints_dropped, usage: outcome.usage, names }
    }

    /// What a session has defined, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    fn into_answer(self) -> (Result<Answer, Box<Problem>>, u64, Usage) {
        let end = match self.end {
            Ok(value) => Ok(Answer {
                kind: value.kind,
                json: value.json.map_err(Error::from),
                text: value.text,
                text_bytes: value.text_bytes,
                memory: value.memory,
            }),
            Err(trouble) => {
                let position = trouble.position.map(|[line, column, end_line, end_column]| Position {
                    line,
                    column,
                    end_line,
                    end_column,
                });
                let mut problem = Problem::new(trouble.fault.into(), trouble.phase);
                (problem.position, problem.setup) = (position, trouble.setup);
                Err(Box::new(problem))
            }
        };
        (end, self.prints_dropped, self.usage)
    }
}

/// The half of a run that stays: tools, ledger, prints so far, clock.
pub struct Home {
    started: Instant,
    deadline: Option<Instant>,
    limits: Limits,
    tools: BTreeMap<String, Arc<Tool>>,
    cancel: Cancel,
    cancellable: bool,
    desk: Desk<Asked>,
    ledger: Ledger,
    in_tools: Duration,
    prints: Vec<String>,
    print_bytes: u64,
}

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Home").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A call that waits for the same one to end.
struct Asked {
    tool: Arc<Tool>,
    call: FarCall<'static>,
}

/// What a call of a tool began with.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
#[derive(Debug)]
pub enum Begun {
    /// It has its reply already.
    Ready(CallReply),
    /// It is in the ledger, and to be made.
    Call(PendingCall),
    /// The same call is under way: what becomes of it comes with that one's end.
    Later,
}

/// A call in the ledger that is to be made, on any thread.
pub struct PendingCall {
    tool: Arc<Tool>,
    call: ToolCall,
    /// The other half's number of it.
    number: u64,
    ticket: Ticket,
    since: Instant,
}

impl std::fmt::Debug for PendingCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingCall").field("call", &self.call).finish_non_exhaustive()
    }
}

impl PendingCall {
    /// Makes the call; this is where the host's closure runs.
    pub fn make(self) -> Ended {
        let reply = self.tool.call(self.call);
        Ended { reply, number: self.number, ticket: self.ticket, spent: self.since.elapsed() }
    }
}

/// A call that has ended.
pub struct Ended {
    reply: Reply,
    number: u64,
    ticket: Ticket,
    spent: Duration,
}

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ended").field("spent", &self.spent).finish_non_exhaustive()
    }
}

impl Home {
    fn new(started: Instant, engine: &Engine, input: &Input<'_>, limits: Limits) -> Self {
        let own = input.tools.as_deref().into_iter();
        // A tool of the run takes the place of the engine's.
        let tools = [engine.tools()].into_iter().chain(own).flat_map(Tools::all);
        Home {
            started,
            deadline: deadline(started, limits.timeout_ms),
            limits,
            tools: tools.map(|tool| (tool.name.clone(), tool.clone())).collect(),
            cancel: input.cancel.clone().unwrap_or_default(),
            cancellable: input.cancel.is_some(),
            desk: Desk::new(limits.tool_calls),
            ledger: Ledger::default(),
            in_tools: Duration::ZERO,
            prints: Vec::new(),
            print_bytes: 0,
        }
    }

    /// Begins one more turn of a session.
    pub fn next_turn(&mut self) {
        self.started = Instant::now();
        self.deadline = deadline(self.started, self.limits.timeout_ms);
        self.desk = Desk::new(self.limits.tool_calls);
        self.ledger = Ledger::default();
        self.in_tools = Duration::ZERO;
        self.prints = Vec::new();
        self.print_bytes = 0;
    }

    /// When the turn began.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// When it is to be over; `None` is never.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The handle that ends the run.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Has anybody but this half the handle?
    pub fn is_cancellable(&self) -> bool {
        self.cancellable
    }

    /// Takes lines that the program printed. False when they are more than the limits allow: then the other half does
    /// not keep to them.
    #[must_use]
    pub fn printed(&mut self, lines: Vec<String>) -> bool {
        let bytes: usize = lines.iter().map(|line| line.len() + lisp_core::meter::Prints::LINE_BYTES).sum();
        self.print_bytes = self.print_bytes.saturating_add(bytes as u64);
        // Each worker may print as much as the run, and a last line says how many more there were.
        let sources = self.limits.parallel_workers.saturating_add(2);
        if self.limits.prints_bytes > 0 && self.print_bytes > self.limits.prints_bytes.saturating_mul(sources) {
            return false;
        }
        self.prints.extend(lines);
        true
    }

    /// Begins a call: answers it from the cache, refuses it, or enters it into the ledger.
    pub fn begin(&mut self, call: FarCall<'_>) -> Begun {
        let Some(tool) = self.tools.get(&*call.name).cloned() else {
            let error = Error::new(Reason::UnknownTool, format!("there is no tool/{}", call.name));
            return Begun::Ready(CallReply::Refused((&error).into()));
        };
        let FarCall { number, worker, name, arguments } = call;
        let call = FarCall {
            number,
            worker: Cow::Owned(worker.into_owned()),
            name: Cow::Owned(name.into_owned()),
            arguments: Cow::Owned(arguments.into_owned()),
        };
        self.admit(Asked { tool, call })
    }

    fn admit(&mut self, asked: Asked) -> Begun {
        let Asked { tool, call } = &asked;
        let number = call.number;
        match self.desk.admit(&mut self.ledger, tool, &call.arguments, call.worker.to_vec()) {
            Admission::Cached(json) => {
                self.ledger.number_last(number);
                Begun::Ready(CallReply::Json(json.as_ref().to_owned()))
            }
            Admission::UnderWay(key) => match self.desk.wait(&key, asked) {
                None => Begun::Later,
                Some(asked) => self.admit(asked),
            },
            Admission::Refused(error) => Begun::Ready(CallReply::Refused((&error).into())),
            Admission::Made(ticket) => {
                self.ledger.number_last(number);
                let Asked { tool, call } = asked;
                let call = ToolCall {
                    number,
                    name: tool.name.clone(),
                    arguments: call.arguments.into_owned(),
                    deadline: self.deadline,
                    cancel: self.cancel.clone(),
                };
                Begun::Call(PendingCall { tool, call, number, ticket, since: Instant::now() })
            }
        }
    }

    /// Records how a call ended. Answers its number and reply, and what becomes of calls that waited for it.
    pub fn end(&mut self, ended: Ended) -> Vec<(u64, Begun)> {
        self.in_tools += ended.spent;
        let waited = self.desk.settle(&mut self.ledger, ended.ticket, &ended.reply, ended.spent);
        let mut begun = vec![(ended.number, Begun::Ready(ended.reply.into()))];
        for asked in waited {
            let number = asked.call.number;
            match self.admit(asked) {
                Begun::Later => {}
                ready => begun.push((number, ready)),
            }
        }
        begun
    }

    /// The outcome of a report.
    pub fn finish(&mut self, mut report: Report) -> Outcome {
        let prints = std::mem::take(&mut report.prints);
        if report.whole {
            (self.prints, self.print_bytes) = (Vec::new(), 0);
        }
        if !self.printed(prints) {
            return self.fail(Error::new(Reason::HostFault, "the run's process printed more than it may"), None);
        }
        self.ledger.sort_by_numbers(&report.calls);
        let (answer, prints_dropped, usage) = report.into_answer();
        self.outcome(answer, prints_dropped, usage)
    }

    /// The outcome of a far half that broke or was killed: with the prints and the ledger up to then.
    pub fn fail(&mut self, error: Error, phase: Option<Phase>) -> Outcome {
        let problem = Box::new(Problem::new(error, phase.unwrap_or(Phase::Eval)));
        let compute = self.started.elapsed().saturating_sub(self.in_tools);
        let usage = Usage { compute_us: micros(compute), ..Usage::default() };
        self.outcome(Err(problem), 0, usage)
    }

    fn outcome(&mut self, answer: Result<Answer, Box<Problem>>, prints_dropped: u64, mut usage: Usage) -> Outcome {
        usage.duration_us = micros(self.started.elapsed());
        usage.tool_calls = self.desk.calls();
        let prints = std::mem::take(&mut self.prints);
        let value = answer.as_ref().map_or(0, |a| a.json.as_ref().map_or(0, String::len));
        usage.output_bytes = (prints.iter().map(String::len).sum::<usize>() + value) as u64;
        let calls = self.ledger.numbers();
        let (ledger, ledger_dropped) = self.ledger.take();
        Outcome {
            answer,
            prints,
            prints_dropped,
            usage,
            ledger,
            ledger_dropped,
            clock: Vec::new(),
            calls,
            limits: self.limits,
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
