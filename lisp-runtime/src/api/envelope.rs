//! One request, one answer: the JSON that every door speaks, by one type each way.

use crate::api::engine::Engine;
use crate::api::input::Input;
use crate::api::program::Program;
use crate::api::request_fields::{self, json_text};
use crate::terms::deadline::{deadline, expired};
use crate::terms::keys::Keys;
use crate::terms::limits::{Limits, LimitsRequest};
use crate::terms::outcome::{
    Call, CallStatus, FurtherError, LedgerEntry, Local, Outcome, OutcomeKind, Phase, Position, Preview, Problem, Usage,
    Verdict, own_bug,
};
use crate::terms::tool_code::ToolCode;
use crate::terms::warning::{WarningKind, WarningReport};
use crate::tools::tool::{Tool, ToolError, Tools};
use lisp_core::cost::COST_SCHEDULE_VERSION;
use lisp_core::{Detail, Error, Reason};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// The name of the format.
pub const SCHEMA: &str = "ptc-lisp/1";

/// Which door a program runs behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Isolation {
    /// On the caller's thread.
    #[default]
    InProcess,
    /// In a process of its own.
    Process,
}

/// A part of an answer that a request may do without: it is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerPart {
    /// [`Answer::value`]
    Value,
    /// [`Answer::text`]
    Text,
    /// [`Answer::memory`]
    Memory,
    /// [`Answer::ledger`]
    Ledger,
    /// [`Answer::limits`]
    Limits,
}

/// A tool with scripted replies, for batches and tests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a tool")]
#[non_exhaustive]
pub struct ScriptedTool {
    /// The result of every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Box<RawValue>>,
    /// Fails with this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code of that error: a string or an integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ToolCode>,
    /// The result of a call is its arguments.
    #[serde(default)]
    pub echo: bool,
    /// What it takes and gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// A repeated call has the result of the first.
    #[serde(default)]
    pub cache: bool,
    /// The time it waits before it returns.
    #[serde(default)]
    pub delay_ms: u64,
    /// Who sent the request answers its calls, where there is a way to: in the service. At other doors a call of it fails.
    #[serde(default)]
    pub client: bool,
}

impl ScriptedTool {
    /// The tool, by a name. Calls of one that the client answers are external: whoever serves the request gives it a function.
    pub fn tool(&self, name: &str) -> Tool {
        let tool = match (&self.error, self.echo) {
            _ if self.client => Tool::external(name),
            (Some(text), _) => {
                let mut error = ToolError::new(text.clone());
                if let Some(code) = &self.code {
                    error = error.with_code(code.clone());
                }
                Tool::new(name, move |_| Err::<(), _>(error.clone()))
            }
            (None, true) => Tool::echo(name),
            (None, false) => {
                let returns = self.returns.clone();
                Tool::new(name, move |_| Ok(returns.clone()))
            }
        };
        let tool = tool.scripted().delay(Duration::from_millis(self.delay_ms));
        let tool = match &self.signature {
            // A script may say in free text what a tool takes.
            Some(text) => tool.signature(text).lenient(),
            None => tool,
        };
        if self.cache { tool.cached() } else { tool }
    }
}

/// A request: a program and what it gets. Unknown fields are an error that names them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
#[non_exhaustive]
pub struct Request<'a> {
    /// Echoed in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<RawValue>>,
    /// The source text.
    #[serde(borrow)]
    pub program: Cow<'a, str>,
    /// Programs evaluated first, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// What `data/name` reads: an object, as JSON text, which is read when the request is run.
    #[serde(borrow, default, with = "json_text", skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a str>,
    /// Definitions of earlier turns: an object, as JSON text, which is read when the request is run.
    #[serde(borrow, default, with = "json_text", skip_serializing_if = "Option::is_none")]
    pub memory: Option<&'a str>,
    /// Earlier results, oldest first: an array, as JSON text, which is read when the request is run.
    #[serde(borrow, default, with = "json_text", skip_serializing_if = "Option::is_none")]
    pub history: Option<&'a str>,
    /// Scripted tools by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ScriptedTool>,
    /// The limits it asks for.
    #[serde(default)]
    pub limits: LimitsRequest,
    /// What the result is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// A missing `data/name` is an error instead of nil.
    #[serde(default)]
    pub strict_data: bool,
    /// What the keys of JSON objects become; without it, what the engine makes of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_keys: Option<Keys>,
    /// Which door it runs behind.
    #[serde(default)]
    pub isolation: Isolation,
    /// The domain whose runs it shares processes with. It asks for the process door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The parts of the answer that are not made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omit: Vec<AnswerPart>,
    /// The trace that it is part of: see [`Input::traceparent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl<'a> Request<'a> {
    /// Reads a request from JSON text. Of equal fields the last counts. What is large in it is borrowed, and may be no JSON: that shows when the request is run.
    ///
    /// # Errors
    /// What serde says: unknown fields by name, missing ones, wrong types.
    pub fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        // Values in the order of the fields would be taken for them.
        if json.trim_start().starts_with('[') {
            return Err(serde::de::Error::invalid_type(serde::de::Unexpected::Seq, &"a JSON object"));
        }
        match request_fields::read::<Self>(json) {
            Ok((request, large)) => {
                Ok(Request { data: large.data, memory: large.memory, history: large.history, ..request })
            }
            // What is wrong with a text serde says best, and where. A field that is there again is nothing wrong.
            Err(wrong) => match serde_json::from_str(json) {
                Err(error) if error.to_string().starts_with("duplicate field") => Err(wrong),
                read => read,
            },
        }
    }

    /// Runs it on this thread.
    pub fn run(&self, engine: &Engine) -> Answer {
        self.answer(&self.outcome(engine))
    }

    /// The answer to it: with its id, and without the parts that it omits.
    pub fn answer(&self, outcome: &Outcome) -> Answer {
        Answer::without(&self.omit, self.id.clone(), outcome)
    }

    /// What comes of it on this thread.
    pub fn outcome(&self, engine: &Engine) -> Outcome {
        let started = Instant::now();
        match self.in_process().and_then(|()| self.own_input(engine, started)) {
            Ok(input) => engine.eval_since(started, &self.program, input),
            Err(problem) => self.not_begun(engine, started, problem),
        }
    }

    /// The outcome of a request whose run could not begin: its program, or what [`Request::input`] makes, has a problem.
    pub fn failed(&self, engine: &Engine, problem: Box<Problem>) -> Outcome {
        self.not_begun(engine, Instant::now(), problem)
    }

    /// The outcome of a request whose run cannot begin.
    pub(crate) fn not_begun(&self, engine: &Engine, started: Instant, problem: Box<Problem>) -> Outcome {
        let input = self.traced(Input::new().limits(self.limits));
        engine.ended(&engine.view(&input, started), started, problem, engine.limits_for(&input))
    }

    fn traced<'b>(&self, input: Input<'b>) -> Input<'b> {
        match &self.traceparent {
            Some(header) => input.traceparent(header),
            None => input,
        }
    }

    /// The outcome when the door it asks for cannot be had.
    pub fn refused(&self, engine: &Engine, why: &str) -> Outcome {
        let error = Error::new(Reason::RuntimeError, format!("no process layer: {why}"))
            .hint("leave out `isolation` and `domain`");
        let problem = Box::new(Problem::new(error, Phase::Setup));
        Outcome::of_problem(problem, engine.limits_for(&Input::new().limits(self.limits)))
    }

    /// What its program gets, for a host that adds to it, and runs the program by itself at the door that the request asks for: a
    /// tenant, a budget, a recording, tools of its own.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Request};
    /// let engine = Engine::default();
    /// let request = Request::parse(r#"{"program": "(inc data/n)", "data": {"n": 1}}"#)?;
    /// let input = request.input(&engine)?.tenant("acme").run_id("r-1");
    /// assert_eq!(engine.eval(&request.program, input).text(), Some("2"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The fault of a set-up program, or of a tool of the request.
    pub fn input(&self, engine: &Engine) -> Result<Input<'a>, Box<Problem>> {
        self.own_input(engine, Instant::now())
    }

    /// Does it ask for the process door, by its isolation or by a domain?
    pub fn asks_for_process(&self) -> bool {
        self.isolation == Isolation::Process || self.domain.is_some()
    }

    fn in_process(&self) -> Result<(), Box<Problem>> {
        if !self.asks_for_process() {
            return Ok(());
        }
        let error = Error::new(Reason::RuntimeError, "no process layer is connected to this engine")
            .hint("leave out `isolation` and `domain`, or run it by a Sandbox");
        Err(Box::new(Problem::new(error, Phase::Setup)))
    }

    fn own_input(&self, engine: &Engine, started: Instant) -> Result<Input<'a>, Box<Problem>> {
        let mut input = self.grant(engine, started)?;
        let limits = engine.limits_for(&input);
        for (index, source) in self.setup.iter().enumerate() {
            let program = Program::compile_since(started, source, &limits, None).map_err(|mut problem| {
                problem.setup = Some(index);
                problem
            })?;
            input = input.setup(&program);
        }
        Ok(input)
    }

    /// All of the input but the set-up programs.
    pub(crate) fn grant(&self, engine: &Engine, started: Instant) -> Result<Input<'a>, Box<Problem>> {
        let mut input = Input::new().strict_data(self.strict_data).limits(self.limits).measure_live();
        input.keys = self.json_keys;
        if self.omit.contains(&AnswerPart::Memory) {
            input = input.without_memory();
        }
        input = self.traced(input);
        if let Some(data) = self.data {
            input = input.json_object(data);
        }
        if let Some(memory) = self.memory {
            input = input.memory(memory);
        }
        if let Some(history) = self.history {
            input = input.history(history);
        }
        if let Some(signature) = &self.signature {
            input = input.signature(signature.clone());
        }
        if !self.tools.is_empty() {
            let limits = engine.limits_for(&input);
            let tools = self.tools(&limits, started);
            input = input.tools(tools.map_err(|error| Box::new(Problem::new(error, Phase::Setup)))?);
        }
        Ok(input)
    }

    /// The tools, whose signatures take time to read: it is the run's.
    fn tools(&self, limits: &Limits, started: Instant) -> Result<Tools, Error> {
        let until = deadline(started, limits.timeout_ms);
        let mut tools = Tools::new();
        for (name, script) in &self.tools {
            if let Some(error) = expired(limits, None, until) {
                return Err(error);
            }
            let added = tools.add(script.tool(name));
            added.map_err(|error| Error::new(Reason::ParseError, format!("the tools of the request: {error}")))?;
        }
        Ok(tools)
    }
}

/// Returns the answer to one line of a batch. For a line that is no request the answer says why.
pub fn answer_line(engine: &Engine, line: &str) -> Answer {
    answer_line_by(engine, line, |request| request.outcome(engine))
}

/// [`answer_line`] with requests run by `door`. When that panics, or the interpreter does, the answer says `host_fault`, and has
/// the request's id as every other.
pub fn answer_line_by(engine: &Engine, line: &str, door: impl FnOnce(&Request<'_>) -> Outcome) -> Answer {
    let answer = || match Request::parse(line) {
        Ok(request) => request.answer(&door(&request)),
        Err(error) => no_request(engine, id_of(line), &error.to_string()),
    };
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
        let (started, problem) = (Instant::now(), Box::new(Problem::new(own_bug(), Phase::Eval)));
        let view = engine.view(&Input::new(), started);
        Answer::new(id_of(line), &engine.ended(&view, started, problem, *engine.limits()))
    })
}

/// The id of a line that may be no request.
fn id_of(line: &str) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Id {
        id: Option<Box<RawValue>>,
    }
    // An array is no request, though its elements could be taken for the fields.
    let fields = line.trim_start().starts_with('{').then(|| serde_json::from_str::<Id>(line).ok()).flatten();
    fields.and_then(|request| request.id)
}

/// [`answer_line`] for bytes that may be no text.
pub fn answer_bytes(engine: &Engine, line: &[u8]) -> Answer {
    answer_bytes_by(engine, line, |request| request.outcome(engine))
}

/// [`answer_bytes`] with requests run by `door`.
pub fn answer_bytes_by(engine: &Engine, line: &[u8], door: impl FnOnce(&Request<'_>) -> Outcome) -> Answer {
    match std::str::from_utf8(line) {
        Ok(line) => answer_line_by(engine, line, door),
        Err(error) => no_request(engine, None, &error.to_string()),
    }
}

/// The answer to a line that is refused before it is read, for example because it is too long.
pub fn answer_refused(engine: &Engine, error: Error) -> Answer {
    Answer::new(None, &Outcome::of_problem(Box::new(Problem::new(error, Phase::Setup)), *engine.limits()))
}

fn no_request(engine: &Engine, id: Option<Box<RawValue>>, why: &str) -> Answer {
    let error = Error::new(Reason::ParseError, format!("not a request: {why}"))
        .hint("a request is one JSON object with at least `program`");
    Answer::new(id, &Outcome::of_problem(Box::new(Problem::new(error, Phase::Setup)), *engine.limits()))
}

/// How much of something is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cut {
    /// All of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_total: Option<u64>,
    /// What is shown of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_shown: Option<u64>,
    /// All lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_total: Option<u64>,
    /// Those that are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_shown: Option<u64>,
    /// Those of them that are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_cut: Option<u64>,
    /// All tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries_total: Option<u64>,
    /// Those that are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries_shown: Option<u64>,
    /// Those of them whose arguments or result are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries_cut: Option<u64>,
    /// Why nothing is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What an outcome does not show in full.
fn truncated(outcome: &Outcome) -> BTreeMap<String, Cut> {
    let mut truncated = BTreeMap::new();
    if let (Some(total), Some(text)) = (outcome.text_cut(), outcome.text()) {
        let cut = Cut { bytes_total: Some(total as u64), bytes_shown: Some(text.len() as u64), ..Cut::default() };
        truncated.insert("text".to_owned(), cut);
    }
    if let Some(error) = outcome.json_error() {
        truncated.insert("value".to_owned(), Cut { message: Some(error.message.clone()), ..Cut::default() });
    }
    if let Some(error) = outcome.memory_error() {
        truncated.insert("memory".to_owned(), Cut { message: Some(error.message.clone()), ..Cut::default() });
    }
    let is_cut = |entry: &&LedgerEntry| {
        !entry.arguments.is_whole() || entry.result.as_ref().is_some_and(|result| !result.is_whole())
    };
    let entries_cut = outcome.ledger.iter().filter(is_cut).count() as u64;
    if outcome.ledger_dropped > 0 || entries_cut > 0 {
        let shown = outcome.ledger.len() as u64;
        let total = shown.saturating_add(outcome.ledger_dropped);
        let entries_cut = (entries_cut > 0).then_some(entries_cut);
        let cut = Cut { entries_total: Some(total), entries_shown: Some(shown), entries_cut, ..Cut::default() };
        truncated.insert("ledger".to_owned(), cut);
    }
    if outcome.prints_dropped > 0 || outcome.prints_cut > 0 {
        // When there were more lines, the last one says so.
        let shown = outcome.prints.len().saturating_sub(usize::from(outcome.prints_dropped > 0)) as u64;
        let total = shown.saturating_add(outcome.prints_dropped);
        let lines_cut = (outcome.prints_cut > 0).then_some(outcome.prints_cut);
        let cut = Cut { lines_total: Some(total), lines_shown: Some(shown), lines_cut, ..Cut::default() };
        truncated.insert("prints".to_owned(), cut);
    }
    truncated
}

/// An error as an answer has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorReport {
    /// The stable name of the fault.
    pub reason: String,
    /// The expected and the actual value.
    pub message: String,
    /// The line it begins on, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column it begins at, in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The line it ends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// One past the column it ends at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// One next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Figures such as `limit_bytes`, and the phase.
    pub details: BTreeMap<String, serde_json::Value>,
}

impl From<&Problem> for ErrorReport {
    fn from(problem: &Problem) -> Self {
        let mut details = BTreeMap::from([("phase".to_owned(), serde_json::Value::from(problem.phase.name()))]);
        if let Some(setup) = problem.setup {
            details.insert("setup".to_owned(), serde_json::Value::from(setup));
        }
        if let Some(turn) = problem.turn {
            details.insert("turn".to_owned(), serde_json::Value::from(turn));
        }
        if !problem.calls.is_empty() {
            details.insert("calls".to_owned(), problem.calls.iter().map(call).collect());
        }
        if !problem.locals.is_empty() {
            let shown = |local: &Local| (local.name.clone(), serde_json::Value::from(local.value.as_str()));
            let locals: serde_json::Map<_, _> = problem.locals.iter().map(shown).collect();
            details.insert("locals".to_owned(), locals.into());
        }
        if !problem.more.is_empty() {
            details.insert("more".to_owned(), problem.more.iter().map(further).collect());
        }
        for (name, detail) in &problem.error.details {
            let value = match detail {
                Detail::Int(n) => serde_json::Value::from(*n),
                Detail::Text(text) => serde_json::Value::from(text.as_str()),
                _ => continue,
            };
            details.insert(name.to_string(), value);
        }
        let at = |part: fn(Position) -> u32| problem.position.map(part);
        ErrorReport {
            reason: problem.error.reason.name().to_owned(),
            message: problem.error.message.clone(),
            line: at(|p| p.line),
            column: at(|p| p.column),
            end_line: at(|p| p.end_line),
            end_column: at(|p| p.end_column),
            hint: problem.error.hint.clone(),
            details,
        }
    }
}

/// The part of an answer that a warning is about, if it is about one.
fn part_of(kind: WarningKind) -> Option<AnswerPart> {
    match kind {
        WarningKind::NullInValue => Some(AnswerPart::Value),
        WarningKind::NullInMemory => Some(AnswerPart::Memory),
        WarningKind::CodeFence | WarningKind::DoubledBackslash => None,
    }
}

/// One more error of a text, as an answer has it.
fn further(more: &FurtherError) -> serde_json::Value {
    let mut shown = serde_json::json!({ "reason": more.error.reason.name(), "message": more.error.message });
    if let Some(at) = more.position {
        (shown["line"], shown["column"]) = (at.line.into(), at.column.into());
    }
    if let Some(hint) = &more.error.hint {
        shown["hint"] = hint.as_str().into();
    }
    shown
}

/// A call on the way to a fault, as an answer has it.
fn call(call: &Call) -> serde_json::Value {
    let mut shown = serde_json::json!({ "line": call.position.line, "column": call.position.column });
    let parts = [
        ("function", call.function.as_deref().map(serde_json::Value::from)),
        ("setup", call.setup.map(serde_json::Value::from)),
        ("turn", call.turn.map(serde_json::Value::from)),
        ("in", call.element.as_ref().map(|element| serde_json::Value::from(element.of.as_str()))),
        ("element", call.element.as_ref().map(|element| serde_json::Value::from(element.index))),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            shown[name] = value;
        }
    }
    shown
}

/// One tool call as an answer has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LedgerLine {
    /// The tool.
    pub name: String,
    /// Its arguments; the beginning of their text when they are long.
    pub arguments: Box<RawValue>,
    /// How the call ended.
    pub status: CallStatus,
    /// The bytes of the whole text of the arguments, when they are the beginning of it, as a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_bytes: Option<u64>,
    /// Its result; the beginning of its text when it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// The bytes of the whole text of the result, when it is the beginning of it, as a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    pub duration_us: u64,
    /// Which worker called it; empty for the main program.
    pub worker: Vec<u32>,
}

impl From<&LedgerEntry> for LedgerLine {
    fn from(entry: &LedgerEntry) -> Self {
        LedgerLine {
            name: entry.name.clone(),
            arguments: preview(&entry.arguments),
            status: entry.status,
            arguments_bytes: cut_of(&entry.arguments),
            result: entry.result.as_ref().map(preview),
            result_bytes: entry.result.as_ref().and_then(cut_of),
            error: entry.error.clone(),
            duration_us: entry.duration_us,
            worker: entry.worker.clone(),
        }
    }
}

/// The bytes of the whole text when this is the beginning of it.
fn cut_of(of: &Preview) -> Option<u64> {
    (!of.is_whole()).then_some(of.bytes_total as u64)
}

fn preview(of: &Preview) -> Box<RawValue> {
    match of.is_whole() {
        true => raw(of.text.clone()),
        false => raw(serde_json::Value::from(format!("{}... ({} bytes)", of.text, of.bytes_total)).to_string()),
    }
}

/// JSON text of our own as a value.
fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_default()
}

/// The answer to a request: the outcome of its run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// [`SCHEMA`]
    pub schema: String,
    /// That of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<RawValue>>,
    /// Unique; made by the host.
    pub run_id: String,
    /// How the run ended, in one word.
    pub verdict: Verdict,
    /// The way in which the program ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeKind>,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<RawValue>>,
    /// The value in Clojure syntax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What is cut.
    pub truncated: BTreeMap<String, Cut>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
    /// Notes on the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<WarningReport>,
    /// What the program printed.
    pub prints: Vec<String>,
    /// The definitions after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<RawValue>>,
    /// The figures of the run.
    pub usage: Usage,
    /// Every tool call, in program order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Vec<LedgerLine>>,
    /// Calls that workers made for nothing, as a call before theirs failed: [`Outcome::given_up`]. They go with the ledger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<LedgerLine>,
    /// The limits that were in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The version of the cost schedule that `usage.fuel` was counted by: [`COST_SCHEDULE_VERSION`].
    #[serde(default)]
    pub cost_schedule: u32,
}

impl Answer {
    /// The answer for an outcome.
    pub fn new(id: Option<Box<RawValue>>, outcome: &Outcome) -> Self {
        Answer::without(&[], id, outcome)
    }

    fn without(omitted: &[AnswerPart], id: Option<Box<RawValue>>, outcome: &Outcome) -> Self {
        let has = |part| !omitted.contains(&part);
        let mut truncated = truncated(outcome);
        let cut = [
            (AnswerPart::Value, "value"),
            (AnswerPart::Text, "text"),
            (AnswerPart::Memory, "memory"),
            (AnswerPart::Ledger, "ledger"),
        ];
        cut.iter().filter(|(part, _)| !has(*part)).for_each(|(_, name)| drop(truncated.remove(*name)));
        Answer {
            schema: SCHEMA.to_owned(),
            id,
            run_id: outcome.run_id.as_ref().to_owned(),
            verdict: outcome.verdict(),
            outcome: outcome.kind(),
            value: outcome.json().filter(|_| has(AnswerPart::Value)).map(|json| raw(json.to_owned())),
            text: outcome.text().filter(|_| has(AnswerPart::Text)).map(str::to_owned),
            truncated,
            error: outcome.problem().map(ErrorReport::from),
            warnings: outcome
                .warnings()
                .iter()
                .filter(|warning| part_of(warning.kind).is_none_or(has))
                .map(Into::into)
                .collect(),
            prints: outcome.prints.clone(),
            memory: outcome.memory().filter(|_| has(AnswerPart::Memory)).map(|json| raw(json.to_owned())),
            usage: outcome.usage,
            ledger: has(AnswerPart::Ledger).then(|| outcome.ledger.iter().map(LedgerLine::from).collect()),
            given_up: match has(AnswerPart::Ledger) {
                true => outcome.given_up.iter().map(LedgerLine::from).collect(),
                false => Vec::new(),
            },
            limits: has(AnswerPart::Limits).then_some(outcome.limits),
            cost_schedule: COST_SCHEDULE_VERSION,
        }
    }

    /// The answer as one line of JSON.
    pub fn to_json(&self) -> String {
        // Maps with string keys and texts of our own: there is nothing in it that JSON cannot say.
        let json = serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned());
        one_line(json)
    }
}

/// JSON text without the characters beyond ASCII that some readers take for the end of a line. Outside of strings
/// JSON has none of them.
fn one_line(json: String) -> String {
    let mut json = json;
    // Text that is taken over as it is, from a request or from a run's process, may be laid out over several lines. In a
    // string they would be escaped.
    if json.contains(['\n', '\r']) {
        json = json.replace(['\n', '\r'], " ");
    }
    for (separator, escape) in [("\u{85}", "\\u0085"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")] {
        if json.contains(separator) {
            json = json.replace(separator, escape);
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_named() {
        let error = Request::parse(r#"{"program": "1", "dta": {}}"#).unwrap_err();
        assert!(error.to_string().contains("`dta`"), "{error}");
        let error = Request::parse(r#"{"program": "1", "limits": {"heap": 1}}"#).unwrap_err();
        assert!(error.to_string().contains("`heap`"), "{error}");
        let error = Request::parse(r#"{"program": "1", "tools": {"f": {"retrns": 1}}}"#).unwrap_err();
        assert!(error.to_string().contains("`retrns`"), "{error}");
        assert!(Request::parse("{}").unwrap_err().to_string().contains("`program`"));
    }

    #[test]
    fn an_answer_is_one_line_for_everyone() {
        let request = r#"{"program": "data/x", "data": {"x": "a\u2028b\u2029c\u0085d\u000be"}}"#;
        let json = answer_line(&Engine::default(), request).to_json();
        assert!(!json.contains(['\u{2028}', '\u{2029}', '\u{85}', '\u{b}']), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["value"], "a\u{2028}b\u{2029}c\u{85}d\u{b}e");
    }

    #[test]
    fn a_value_that_json_cannot_say_is_a_value_all_the_same() {
        let json = answer_line(&Engine::default(), r#"{"program": "{:a 1 \"a\" 2}"}"#).to_json();
        let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(answer["verdict"], "ok");
        assert_eq!(answer["text"], "{:a 1 \"a\" 2}");
        assert!(answer["value"].is_null());
        assert!(answer["truncated"]["value"]["message"].as_str().is_some_and(|m| m.contains("JSON key")), "{json}");
    }

    #[test]
    fn a_memory_that_json_cannot_say_is_left_out_and_named() {
        for program in ["(def m2 {:a 1 \"a\" 2}) :done", "(def big (vec (range 300))) :done"] {
            let request = serde_json::json!({ "program": program, "limits": { "result_bytes": 1000 } }).to_string();
            let json = answer_line(&Engine::default(), &request).to_json();
            let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!((&answer["verdict"], &answer["value"]), (&"ok".into(), &"done".into()), "{json}");
            assert!(answer.get("memory").is_none());
            assert!(answer["truncated"]["memory"]["message"].is_string(), "{json}");
        }
    }

    #[test]
    fn what_is_cut_is_named() {
        let program = "(tool/e {:long (apply str (map (constantly \"x\") (range 3000)))}) (tool/e {}) \
            (println (vec (range 2000))) (println 1)";
        let request = serde_json::json!({ "program": program, "tools": { "e": { "echo": true } } }).to_string();
        let json = answer_line(&Engine::default(), &request).to_json();
        let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
        let truncated = serde_json::json!({
            "ledger": { "entries_total": 2, "entries_shown": 2, "entries_cut": 1 },
            "prints": { "lines_total": 2, "lines_shown": 2, "lines_cut": 1 },
        });
        assert_eq!(answer["truncated"], truncated, "{json}");
        let (cut, whole) = (&answer["ledger"][0], &answer["ledger"][1]);
        assert_eq!((&cut["arguments_bytes"], &cut["result_bytes"]), (&3011.into(), &3011.into()));
        assert!(cut["arguments"].is_string() && cut["result"].is_string());
        assert!(whole.get("arguments_bytes").is_none() && whole["arguments"].is_object());
    }

    #[test]
    fn a_bad_line_is_answered_with_its_id() {
        let answer = answer_line(&Engine::default(), r#"{"id": 7, "porgram": "1"}"#);
        assert_eq!(answer.verdict, Verdict::Error);
        assert_eq!(answer.id.unwrap().get(), "7");
        let answer = answer_line(&Engine::default(), "nonsense");
        assert_eq!(answer.error.unwrap().reason, "parse_error");
    }
}
