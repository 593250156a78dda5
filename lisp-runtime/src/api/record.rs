//! Recordings: runs that another process can resume, or that can be replayed without their tools.

use super::engine::Engine;
use super::input::{DataSet, Input, SetUp};
use super::program::Program;
use super::record_error::{RECORD_SCHEMA, RecordError};
use super::record_header::{Given, Header, Terms, header};
use super::recorded_tools::RecordedTools;
use super::waiting::Progress;
use crate::recording::journal::{BadLine, Ceilings, Journal, Recorder};
use crate::recording::line::{CallState, Ended, Failure, Gated, Line, RecordEntry};
use crate::terms::outcome::{Phase, Problem};
use crate::terms::place::Place;
use crate::terms::run_view::RunView;
use crate::terms::tool_code::ToolCode;
use crate::tools::contract::Effect;
use crate::tools::tool::Tool;
use crate::tools::tool_set::Tools;
use lisp_core::Error;
use lisp_core::cost::COST_SCHEDULE_VERSION;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Records a run. Pass it to [`Input::record`]; take the [`Record`] whenever the run is suspended or has ended.
///
/// A record has the program, its input, and the complete result of each tool call and clock reading. Runs are
/// deterministic: with its record, a run can be replayed without its tools. An interrupted run can be resumed in
/// another process ([`Engine::resume`]), with any isolation.
#[derive(Clone, Debug)]
pub struct Recording(pub(crate) Arc<Journal>);

/// Builds a [`Recording`].
#[derive(Clone, Default)]
pub struct RecordingBuilder {
    ceilings: Ceilings,
    recorder: Option<Arc<dyn Recorder>>,
}

impl fmt::Debug for RecordingBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingBuilder").field("ceilings", &self.ceilings).finish_non_exhaustive()
    }
}

impl RecordingBuilder {
    /// Sets the maximum bytes of the arguments or the result of one call. The default is 1 MiB; 0 is unlimited. A call
    /// beyond it ends the run with `record_limit_exceeded`.
    #[must_use]
    pub fn max_value_bytes(mut self, bytes: usize) -> Self {
        self.ceilings.value = bytes;
        self
    }

    /// Sets the maximum bytes of all calls together. The default is 8 MiB; 0 is unlimited.
    ///
    /// Each call in the answer counts with its arguments, its result and 100 bytes, in program order. Discarded calls
    /// of workers and clock readings do not count, so the record can be longer.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.ceilings.calls = bytes;
        self
    }

    /// Sets a recorder that stores each line as it is written, so that a killed process loses nothing. A call is made
    /// only after its line is stored.
    #[must_use]
    pub fn recorder(mut self, recorder: impl Recorder + 'static) -> Self {
        self.recorder = Some(Arc::new(recorder));
        self
    }

    /// Builds a recording for one run.
    pub fn build(self) -> Recording {
        Recording(Arc::new(Journal::new(self.ceilings, self.recorder)))
    }
}

impl Default for Recording {
    fn default() -> Self {
        RecordingBuilder::default().build()
    }
}

impl Recording {
    /// Creates a recording with the default limits, kept in memory.
    pub fn new() -> Self {
        Recording::default()
    }

    /// Returns a builder, to set limits or a recorder.
    pub fn builder() -> RecordingBuilder {
        RecordingBuilder::default()
    }

    /// Returns the id of the run; empty before it starts.
    pub fn run_id(&self) -> String {
        self.0.run_id().to_string()
    }

    /// Returns the current record as text; empty before the run starts.
    pub fn text(&self) -> String {
        self.0.text()
    }

    /// Returns the current record.
    ///
    /// # Errors
    /// The run has not started.
    pub fn record(&self) -> Result<Record, RecordError> {
        Record::parse_within(self.text(), usize::MAX)
    }

    /// Writes the answer of the run, the JSON of [`crate::Answer::to_json`], as the last line of the record.
    ///
    /// # Errors
    /// The recorder cannot store it.
    pub fn answer(&self, json: &str) -> Result<(), Error> {
        self.0.answer(json)
    }
}

/// An open call of a record: one that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall {
    /// The name of the call in its run, such as `3`, for [`Record::approve`], [`Record::reject`] and
    /// [`Record::settle`]. It is not the name of the tool.
    pub name: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments, a JSON object.
    pub arguments: String,
    /// The state: [`CallState::Asked`] or [`CallState::Started`].
    pub state: CallState,
    /// The question, if the call needs approval before it is made.
    pub question: Option<String>,
}

/// What the host found out about a call that had started when its run was interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settled {
    /// The call was made, with this result as JSON text.
    Done(String),
    /// The call was made and failed with this message.
    Failed(String),
    /// The call was made and failed with this message and this code, which the program reads as `:code`.
    FailedWith(String, ToolCode),
    /// The call was not made. It is made when the run is resumed.
    NotMade,
}

/// The record of a run, as text: the first line describes the run, each further line one event.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    pub(super) text: String,
    /// The length of the first line in bytes.
    header: usize,
    run_id: String,
    cost_schedule: u32,
    open: OpenCalls,
    /// The tools that keep arguments out of the record.
    redacting: BTreeSet<String>,
}

/// The open calls of a record, as its lines describe them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OpenCalls {
    calls: BTreeMap<Place, OpenCall>,
    /// Calls that are denied or that need approval.
    gates: BTreeMap<Place, Gated>,
    /// The last effect of each worker and of the program.
    last: BTreeMap<Vec<(u32, u32)>, u32>,
}

impl OpenCalls {
    fn apply(&mut self, entry: RecordEntry<'_>) {
        if let Some(place) = entry.place() {
            let last = self.last.entry(place.way().to_vec()).or_default();
            *last = place.effect().max(*last);
        }
        match entry {
            RecordEntry::Call { place, tool, arguments, state } => {
                let call = OpenCall {
                    name: place.to_string(),
                    tool: tool.into_owned(),
                    arguments: arguments.to_owned(),
                    state,
                    question: None,
                };
                self.calls.insert(place, call);
            }
            RecordEntry::State(place, state) => {
                if let Some(call) = self.calls.get_mut(&place) {
                    call.state = state;
                }
            }
            RecordEntry::Ends(place, _) => {
                self.calls.remove(&place);
                self.gates.remove(&place);
            }
            RecordEntry::Gate { place, gated: Gated::Allow { .. }, .. } => drop(self.gates.remove(&place)),
            RecordEntry::Gate { place, gated, .. } => drop(self.gates.insert(place, gated)),
            RecordEntry::Clock(..) | RecordEntry::Answer(_) => {}
        }
    }

    fn all(&self) -> impl Iterator<Item = OpenCall> {
        let counts = |(place, _): &(&Place, &OpenCall)| !place.is_behind(|way| self.last.get(way).copied());
        self.calls.iter().filter(counts).filter_map(|(place, call)| match self.gates.get(place) {
            Some(Gated::Deny { .. }) => None,
            Some(Gated::Ask { question }) => Some(OpenCall { question: Some(question.clone()), ..call.clone() }),
            _ => Some(call.clone()),
        })
    }

    /// Returns the tool of an open call, by the name of the call.
    fn tool(&self, name: &str) -> Option<&str> {
        let (place, _) = self.place(name)?;
        self.calls.get(&place).map(|call| &*call.tool)
    }

    /// Returns the position of an open call, by its name.
    fn place(&self, name: &str) -> Option<(Place, bool)> {
        let place = name.parse::<Place>().ok()?;
        self.calls.get(&place).filter(|call| call.name == name)?;
        match self.gates.get(&place) {
            Some(Gated::Deny { .. }) => None,
            gate => Some((place, gate.is_some())),
        }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("run_id", &self.run_id).field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

impl Record {
    /// The maximum bytes that [`Record::parse`] reads.
    pub const MAX_BYTES: usize = 64 << 20;

    /// Parses a record. A truncated last line is ignored: what it announces was not done.
    ///
    /// # Errors
    /// The first line that is not valid, or more than [`Record::MAX_BYTES`] bytes.
    pub fn parse(text: impl Into<String>) -> Result<Record, RecordError> {
        Record::parse_within(text.into(), Record::MAX_BYTES)
    }

    /// Parses a record from the bytes of a file, which may end in the middle of a character.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Record, Recording};
    /// use lisp_runtime::record::RecordError;
    /// let recording = Recording::new();
    /// Engine::default().eval("(System/currentTimeMillis)", Input::new().record(&recording));
    /// let mut bytes = recording.text().into_bytes();
    /// bytes.extend("{\"call\":\"2\",\"tool\":\"é".as_bytes());
    /// bytes.pop();
    /// assert_eq!(Record::parse_bytes(bytes)?.text(), recording.text());
    /// # Ok::<(), RecordError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Record::parse`]. Bytes that are not UTF-8 make a line not valid.
    pub fn parse_bytes(bytes: impl Into<Vec<u8>>) -> Result<Record, RecordError> {
        let mut bytes: Vec<u8> = bytes.into();
        if bytes.len() > Record::MAX_BYTES {
            return Err(RecordError::TooLarge { bytes: bytes.len(), limit: Record::MAX_BYTES });
        }
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(whole);
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
            RecordError::Line { line, why: "it is not UTF-8".to_owned() }
        })?;
        Record::parse(text)
    }

    /// Parses a record of at most `max` bytes.
    ///
    /// # Errors
    /// Those of [`Record::parse`].
    pub fn parse_within(text: impl Into<String>, max: usize) -> Result<Record, RecordError> {
        let mut text: String = text.into();
        if text.len() > max {
            return Err(RecordError::TooLarge { bytes: text.len(), limit: max });
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text.truncate(whole);
        // Left by recorders that end each line once more.
        if text.contains("\n\n") {
            text = text.split_inclusive('\n').filter(|line| *line != "\n").collect();
        }
        let Some(end) = text.find('\n') else {
            return Err(RecordError::NoRecord("it has no whole line".to_owned()));
        };
        let header = end + 1;
        let first = Record::header_of(&text[..end])?;
        let (run_id, cost_schedule) = (first.run_id, first.cost_schedule);
        let tools = first.contracts.0.into_iter();
        let redacting = tools.filter(|(_, it)| !it.treatment.redacted.is_empty()).map(|(name, _)| name.into_owned());
        let redacting = redacting.collect();
        let mut record = Record { header, run_id, cost_schedule, text, open: OpenCalls::default(), redacting };
        record.journal(Ceilings::default(), None)?;
        let mut open = OpenCalls::default();
        record.entries().for_each(|entry| open.apply(entry));
        record.open = open;
        Ok(record)
    }

    fn header_of(line: &str) -> Result<Header<'_>, RecordError> {
        #[derive(Deserialize)]
        struct Schema<'a> {
            #[serde(borrow, default)]
            schema: Option<Cow<'a, str>>,
            #[serde(default)]
            sealed: Option<IgnoredAny>,
        }
        let fault = |why: String| RecordError::Line { line: 1, why };
        let Schema { schema, sealed } =
            serde_json::from_str(line).map_err(|error| RecordError::NoRecord(error.to_string()))?;
        let schema = match (schema, sealed) {
            (Some(schema), _) => schema,
            (None, Some(_)) => return Err(RecordError::Sealed),
            (None, None) => return Err(RecordError::NoRecord("its first line has no `schema`".to_owned())),
        };
        if schema != RECORD_SCHEMA {
            return Err(RecordError::Schema(schema.chars().take(100).collect()));
        }
        Header::read(line).map_err(|error| fault(error.to_string()))
    }

    /// Returns the lines after the first one, parsed.
    fn lines(&self) -> impl DoubleEndedIterator<Item = (&str, Result<RecordEntry<'_>, BadLine>)> {
        self.text[self.header..].split_inclusive('\n').map(|line| {
            let entry = match serde_json::from_str::<Line<'_>>(line) {
                Ok(read) => read.entry().map_err(BadLine::from),
                Err(error) => Err(error.to_string().into()),
            };
            (line, entry)
        })
    }

    fn entries(&self) -> impl DoubleEndedIterator<Item = RecordEntry<'_>> {
        self.lines().filter_map(|(_, entry)| entry.ok())
    }

    fn journal(&self, ceilings: Ceilings, recorder: Option<Arc<dyn Recorder>>) -> Result<Journal, RecordError> {
        Journal::new(ceilings, recorder)
            .take_up(&self.text[..self.header], &self.run_id, self.lines())
            .map_err(|(line, why)| RecordError::Line { line, why: why.into_owned() })
    }

    /// Returns the record as text: one JSON line about the run, then one per event.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the id of the run: the first part of every [`ToolCall::key`](crate::ToolCall::key).
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the source of the program.
    pub fn program(&self) -> String {
        Record::header_of(self.text[..self.header].trim_end())
            .map(|header| header.program.into_owned())
            .unwrap_or_default()
    }

    /// Returns the names of the run's tools with their signatures, in order.
    pub fn tools(&self) -> Vec<(String, Option<String>)> {
        let header = Record::header_of(self.text[..self.header].trim_end());
        let tools = header.map(|header| header.contracts.0).unwrap_or_default();
        tools.into_iter().map(|(name, tool)| (name.into_owned(), tool.signature.map(Cow::into_owned))).collect()
    }

    /// Returns the effect that a tool declared when the run started, and whether it declared to be idempotent. `None` if
    /// the record does not say: it is of an earlier version.
    pub fn declared(&self, tool: &str) -> Option<(Effect, bool)> {
        Record::header_of(self.text[..self.header].trim_end()).ok()?.contracts.declared(tool)
    }

    /// Returns the run's tools as external ones, with their signatures and schemas, for a replay without the real
    /// tools.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Progress, Recording, Tool};
    /// let engine = Engine::builder().grant(Tool::new("double", |call| Ok(2 * call.get::<i64>("n")?))).build()?;
    /// let recording = Recording::new();
    /// engine.eval("(tool/double {:n 21})", Input::new().record(&recording));
    ///
    /// let record = recording.record()?;
    /// let engine = record.external_tools()?.into_iter().fold(Engine::builder(), |builder, tool| builder.grant(tool)).build()?;
    /// let Progress::Done(outcome) = engine.resume(&record)? else { panic!() };
    /// assert_eq!(outcome.value::<i64>()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A schema in the record is not valid.
    pub fn external_tools(&self) -> Result<Vec<Tool>, RecordError> {
        Record::header_of(self.text[..self.header].trim_end())?.contracts.external()
    }

    /// Returns the version of the cost schedule that counted the run.
    ///
    /// If it differs from [`COST_SCHEDULE_VERSION`](crate::language::COST_SCHEDULE_VERSION), a replay has no fuel limit, and its
    /// fuel differs.
    pub fn cost_schedule(&self) -> u32 {
        self.cost_schedule
    }

    /// Returns the answer of the run as JSON text, or `None` if the run was interrupted.
    pub fn answer(&self) -> Option<&str> {
        self.entries().rev().find_map(|entry| match entry {
            RecordEntry::Answer(json) => Some(json),
            _ => None,
        })
    }

    /// Returns the open calls. Those that had started are [unknown](Record::settle) once their process has ended.
    pub fn open_calls(&self) -> Vec<OpenCall> {
        self.open.all().collect()
    }

    /// Approves a call that needs approval. `arguments`, a JSON object, replaces its arguments. The call is made when
    /// the run is resumed.
    ///
    /// # Errors
    /// No open call of this name needs approval; the arguments are not a JSON object; or the tool
    /// [redacts](Tool::redact) arguments, which the record would have to keep.
    pub fn approve(&mut self, name: &str, arguments: Option<&str>) -> Result<(), RecordError> {
        if let Some(text) = arguments {
            if let Some(tool) = self.open.tool(name).filter(|tool| self.redacting.contains(*tool)) {
                return Err(RecordError::Redacted(tool.to_owned()));
            }
            let read = serde_json::from_str::<BTreeMap<String, &RawValue>>(text);
            drop(read.map_err(|error| RecordError::Json(error.to_string()))?);
        }
        self.settle_gate(name, &Gated::Allow { given: arguments.map(str::to_owned) })
    }

    /// Rejects a call that needs approval. When the run is resumed, it ends with `tool_denied` and this reason.
    ///
    /// # Errors
    /// No open call of this name needs approval.
    pub fn reject(&mut self, name: &str, why: &str) -> Result<(), RecordError> {
        self.settle_gate(name, &Gated::Deny { why: why.to_owned() })
    }

    fn settle_gate(&mut self, name: &str, gated: &Gated) -> Result<(), RecordError> {
        match self.open.place(name) {
            Some((place, true)) => {
                self.text.push_str(&Line::of_gate(&place, None, gated).text());
                self.open.apply(RecordEntry::Gate { place, asked: None, gated: gated.clone() });
                Ok(())
            }
            _ => Err(RecordError::NoQuestion(name.to_owned())),
        }
    }

    /// Reports what happened to an open call.
    ///
    /// If the process of the run ended after the call had started, it is unknown whether the call was made. If the
    /// record says that the tool only reads, it is called again. For other tools the host finds out, with the
    /// [key](crate::ToolCall::key) of the call, and reports it here. A call that waits for approval or for a reply can be
    /// reported as done too, if it was done by other means.
    ///
    /// # Errors
    /// There is no open call of this name, or the result is not JSON.
    pub fn settle(&mut self, name: &str, how: Settled) -> Result<(), RecordError> {
        let Some((place, _)) = self.open.place(name) else { return Err(RecordError::NoCall(name.to_owned())) };
        let call = Some(Cow::Borrowed(name));
        let line = match &how {
            Settled::NotMade => Line { call, state: Some(CallState::Asked), ..Line::default() },
            Settled::Failed(message) => failed_line(call, message, None),
            Settled::FailedWith(message, code) => failed_line(call, message, Some(code)),
            Settled::Done(json) => {
                let raw: &RawValue =
                    serde_json::from_str(json).map_err(|error| RecordError::Json(error.to_string()))?;
                Line { call, state: Some(CallState::Done), result: Some(raw), ..Line::default() }
            }
        };
        self.text.push_str(&line.text());
        self.open.apply(match how {
            Settled::NotMade => RecordEntry::State(place, CallState::Asked),
            _ => RecordEntry::Ends(place, Ended::Echo),
        });
        Ok(())
    }
}

/// Returns the line of a call that failed.
fn failed_line<'a>(call: Option<Cow<'a, str>>, message: &str, code: Option<&ToolCode>) -> Line<'a> {
    let error = Failure { message: message.to_owned(), arguments: false, panic: false, code: code.cloned() };
    Line { call, state: Some(CallState::Failed), error: Some(error), ..Line::default() }
}

impl Input<'_> {
    /// Records the run, with any isolation. A recording is for one run. Sessions cannot be recorded: with a recording,
    /// every turn fails.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Progress, Record, Recording, Tool};
    /// let engine = Engine::builder().grant(Tool::external("ask")).build()?;
    /// let recording = Recording::new();
    /// let program = engine.compile("(str \"it is \" (tool/ask {:about \"tea\"}))")?;
    /// let Progress::ToolCall(waiting) = engine.start(&program, Input::new().record(&recording)) else { panic!() };
    /// drop(waiting); // The process ends. What is kept is the record, as text:
    /// let text = recording.text();
    ///
    /// let record = Record::parse(text)?;
    /// let Progress::ToolCall(waiting) = engine.resume(&record)? else { panic!() };
    /// assert_eq!(waiting.call().json(), r#"{"about":"tea"}"#);
    /// let Progress::Done(outcome) = waiting.reply(&"hot") else { panic!() };
    /// assert_eq!(outcome.value::<String>()?, "it is hot");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn record(mut self, recording: &Recording) -> Self {
        self.journal = Some(recording.0.clone());
        self
    }
}

impl Engine {
    /// Starts the journal of a run that is recorded.
    pub(crate) fn begin_record(
        &self,
        source: &str,
        setup: impl FnOnce() -> Vec<String>,
        input: &Input<'_>,
        step_by_step: bool,
        view: &RunView,
    ) -> Result<(), Box<Problem>> {
        let Some(journal) = input.journal.as_ref().filter(|_| !input.makes.check_only) else { return Ok(()) };
        let own = input.tools.as_deref().into_iter();
        let tools = [self.tools()].into_iter().chain(own).flat_map(Tools::all).map(|tool| &**tool);
        let run = |run_id: &str| {
            let setup = setup();
            let sources: Vec<&str> = setup.iter().map(|source| &**source).chain([source]).collect();
            let tools = RecordedTools::of(tools, &sources);
            let terms = Terms { keys: self.keys_for(input), limits: self.limits_for(input), tools };
            header(run_id.to_owned(), source, &setup, input, terms)
        };
        journal.begin_run(step_by_step, view.run_id(), run).map_err(|error| Box::new(Problem::new(error, Phase::Setup)))
    }

    /// Opens a record: returns its program and its input, ready to be run again.
    ///
    /// A run with them, with any isolation, replays what the recorded run did without calling a tool, and continues
    /// from where it stopped. `sets` are the data sets of the run, in any order. The tenant ([`Input::tenant`]) is in
    /// the record and is not given again. Set options that a record does not have, such as a budget, on the returned
    /// input, or give them to [`Engine::open_record_given`].
    ///
    /// # Errors
    /// A tool, a data set or the program of the record does not fit this engine.
    pub fn open_record(
        &self,
        record: &Record,
        sets: &[DataSet],
    ) -> Result<(Program, Input<'static>, Recording), RecordError> {
        self.open_record_with(record, sets, &RecordingBuilder::default())
    }

    /// Like [`Engine::open_record`], with limits and with a recorder that stores the new lines.
    ///
    /// # Errors
    /// Those of [`Engine::open_record`].
    pub fn open_record_with(
        &self,
        record: &Record,
        sets: &[DataSet],
        recording: &RecordingBuilder,
    ) -> Result<(Program, Input<'static>, Recording), RecordError> {
        let given = sets.iter().fold(Input::new(), |input, set| input.data_set(set));
        self.open_record_given(record, given, recording)
    }

    /// Like [`Engine::open_record_with`], for a run with options that a record does not have, given again in `given`.
    ///
    /// These can be the run's own tools ([`Input::tools`]), its data sets, limits that replace the recorded ones, a
    /// budget, a cancel handle, print hooks, and a trace.
    ///
    /// # Errors
    /// Those of [`Engine::open_record`], and when `given` sets an option that the record already has.
    pub fn open_record_given(
        &self,
        record: &Record,
        given: Input<'static>,
        recording: &RecordingBuilder,
    ) -> Result<(Program, Input<'static>, Recording), RecordError> {
        let (source, mut input, recording) = self.open_record_source(record, given, recording)?;
        let compile = |source: &str| {
            self.compile(source).map_err(|problem: Box<Problem>| RecordError::Program(problem.error.to_string()))
        };
        let program = compile(&source)?;
        for set_up in &mut input.setup {
            *set_up = SetUp::Compiled(compile(set_up.source())?);
        }
        Ok((program, input, recording))
    }

    /// Like [`Engine::open_record_given`], but compiles nothing: returns the source of the program, for a run in a
    /// separate process. If the source does not compile, the run says so.
    ///
    /// # Errors
    /// Those of [`Engine::open_record_given`], except for a program that does not compile.
    pub fn open_record_source(
        &self,
        record: &Record,
        given: Input<'static>,
        recording: &RecordingBuilder,
    ) -> Result<(String, Input<'static>, Recording), RecordError> {
        if let Some(what) = given.of_record() {
            return Err(RecordError::Given(what));
        }
        let header = Record::header_of(record.text[..record.header].trim_end())?;
        let sources: Vec<&str> = header.setup.iter().chain([&header.program]).map(|source| &**source).collect();
        header.contracts.check(self.tools(), given.tools.as_deref(), &sources)?;
        let mut input = Input { sets: Vec::new(), ..given.clone() };
        input = input.strict_data(header.strict_data).json_keys(header.json_keys);
        for source in &header.setup {
            input = input.setup_source(source.clone().into_owned());
        }
        for digest in &header.data_sets {
            let set = given.sets.iter().find(|set| set.digest().is_some_and(|its| its == *digest));
            input = input.data_set(set.ok_or_else(|| RecordError::DataSet(digest.to_string()))?);
        }
        input.sources = header.given.iter().map(Given::source).collect();
        input.signature = header.signature.map(|text| Cow::Owned(text.into_owned()));
        input.now_ms = header.now_ms;
        input.tenant = header.tenant.as_deref().map(Arc::from);
        let mut limits = header.limits;
        if header.cost_schedule != COST_SCHEDULE_VERSION {
            limits.fuel = Some(0);
        }
        input.limits = given.limits.or(&limits);
        let journal = record.journal(recording.ceilings, recording.recorder.clone())?;
        let recording = Recording(Arc::new(journal.with_changing(header.contracts.changing())));
        Ok((header.program.into_owned(), input.record(&recording), recording))
    }

    /// Resumes a recorded run where it stopped.
    ///
    /// The run replays what it did without calling a tool, and suspends at the open calls. The caller drives it like a
    /// run of [`Engine::start`]. The tenant ([`Input::tenant`]) is in the record. For a run with data sets, a budget or
    /// its own tools, use [`Engine::resume_with`].
    ///
    /// # Errors
    /// Those of [`Engine::open_record`].
    pub fn resume(&self, record: &Record) -> Result<Progress, RecordError> {
        self.resume_with(record, Input::new())
    }

    /// Like [`Engine::resume`], for a run with options that a record does not have; see [`Engine::open_record_given`].
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Progress, Recording, Tool, Tools};
    /// let ask = || {
    ///     let mut tools = Tools::new();
    ///     tools.add(Tool::external("ask")).map(|()| tools)
    /// };
    /// let (engine, recording) = (Engine::default(), Recording::new());
    /// let program = engine.compile("(inc (tool/ask {}))")?;
    /// drop(engine.start(&program, Input::new().tools(ask()?).record(&recording)));
    ///
    /// let record = recording.record()?;
    /// assert!(engine.resume(&record).unwrap_err().to_string().contains("tool/ask"));
    /// let Progress::ToolCall(waiting) = engine.resume_with(&record, Input::new().tools(ask()?))? else { panic!() };
    /// let Progress::Done(outcome) = waiting.reply(&41) else { panic!() };
    /// assert_eq!(outcome.value::<i64>()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Engine::open_record_given`].
    pub fn resume_with(&self, record: &Record, given: Input<'static>) -> Result<Progress, RecordError> {
        let (program, input, _) = self.open_record_given(record, given, &RecordingBuilder::default())?;
        Ok(self.start(&program, input))
    }
}
