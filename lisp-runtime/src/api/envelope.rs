//! Requests: the JSON format that the command line and the service read, and the answers to the lines of a batch.
//! Answers are in [`super::answer`].

use crate::api::answer::{Answer, AnswerPart};
use crate::api::engine::Engine;
use crate::api::input::Input;
use crate::api::request_fields::{self, json_text, request_setup, request_tools, request_word};
use crate::terms::deadline::{deadline, expired};
use crate::terms::keys::Keys;
use crate::terms::limits::{Limits, LimitsRequest};
use crate::terms::misfit::{Misfit, near_field, plain};
use crate::terms::outcome::{Outcome, Phase, Problem, lost};
use crate::terms::tool_code::ToolCode;
use crate::tools::json_contract::Allowance;
use crate::tools::naming::names_in;
use crate::tools::tool::{Tool, ToolError};
use crate::tools::tool_set::Tools;
use lisp_core::{Error, Reason};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// The isolation of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Isolation {
    /// On the caller's thread.
    #[default]
    InProcess,
    /// In its own process.
    Process,
}

/// A tool of a request, with fixed replies: for batches and tests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a tool")]
#[non_exhaustive]
pub struct ScriptedTool {
    /// The result of every call.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub returns: Option<Box<RawValue>>,
    /// The error message with which every call fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code of that error: a string or an integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ToolCode>,
    /// Whether a call returns its arguments.
    #[serde(default)]
    pub echo: bool,
    /// What models read about the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tool's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The JSON Schema of the arguments, in place of a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<RawValue>>,
    /// The JSON Schema of the results, in place of a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    /// Whether a repeated call returns the result of the first one.
    #[serde(default)]
    pub cache: bool,
    /// The delay before the call returns, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// Whether the client answers the calls. Only the service supports this; elsewhere such a call fails.
    #[serde(default)]
    pub client: bool,
}

/// Reads a value that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl ScriptedTool {
    /// Returns whether it says what its calls return, or who does.
    pub fn is_answered(&self) -> bool {
        self.client || self.echo || self.returns.is_some() || self.error.is_some()
    }

    /// Returns the tool under a name. If the client answers its calls, the tool is external; the server of the request
    /// gives it a handler. A signature or schema that is not valid is an error of [`Tools::add`].
    pub fn tool(&self, name: &str) -> Tool {
        self.tool_within(name, &mut Allowance::of_request())
    }

    /// Returns the tool, with schemas that are within the allowance of its request.
    fn tool_within(&self, name: &str, allowance: &mut Allowance) -> Tool {
        let ScriptedTool { returns, error, code, echo, description, signature, input, output, cache, delay_ms, client } =
            self;
        let tool = match (error, echo) {
            _ if *client => Tool::external(name),
            (Some(text), _) => {
                let mut error = ToolError::new(text.clone());
                if let Some(code) = code {
                    error = error.with_code(code.clone());
                }
                Tool::new(name, move |_| Err::<(), _>(error.clone()))
            }
            (None, true) => Tool::echo(name),
            (None, false) => {
                let returns = returns.clone();
                Tool::new(name, move |_| Ok(returns.clone()))
            }
        };
        let tool = tool.scripted().delay(Duration::from_millis(*delay_ms)).treat(|it| it.cached = *cache);
        let tool = tool.about(description.as_deref().unwrap_or_default());
        let tool = match signature {
            Some(text) => tool.signature(text),
            None => tool,
        };
        match (input.as_deref(), output.as_deref()) {
            (None, None) => tool,
            (input, output) => tool.schemas(input.map(RawValue::get), output.map(RawValue::get), allowance),
        }
    }
}

/// A request: a program and its input. Unknown fields are errors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
#[non_exhaustive]
pub struct Request<'a> {
    /// An id that the answer repeats.
    #[serde(default, deserialize_with = "request_id", skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<RawValue>>,
    /// The source of the program.
    #[serde(borrow)]
    pub program: Cow<'a, str>,
    /// Programs that are evaluated first, in order; at most 1,000.
    #[serde(default, deserialize_with = "request_setup", skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// The data, read as `data/name`: a JSON object as text, parsed when the request is run.
    #[serde(borrow, default, with = "json_text", skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a str>,
    /// Definitions of earlier turns: a JSON object as text, parsed when the request is run.
    #[serde(borrow, default, with = "json_text", skip_serializing_if = "Option::is_none")]
    pub memory: Option<&'a str>,
    /// Earlier results, oldest first: a JSON array as text, parsed when the request is run.
    #[serde(borrow, default, with = "json_text", skip_serializing_if = "Option::is_none")]
    pub history: Option<&'a str>,
    /// Scripted tools by name; at most 1,000.
    #[serde(default, deserialize_with = "request_tools", skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ScriptedTool>,
    /// The limits that the request asks for.
    #[serde(default)]
    pub limits: LimitsRequest,
    /// The signature of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Whether a missing `data/name` is an error instead of nil.
    #[serde(default)]
    pub strict_data: bool,
    /// How JSON object keys are represented. The default is the engine's setting.
    #[serde(default, deserialize_with = "request_word", skip_serializing_if = "Option::is_none")]
    pub json_keys: Option<Keys>,
    /// The isolation of the run.
    #[serde(default, deserialize_with = "request_fields::word")]
    pub isolation: Isolation,
    /// The domain whose runs share processes with this one. Setting it asks for process isolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The sections that are left out of the answer.
    #[serde(default, deserialize_with = "request_fields::words", skip_serializing_if = "Vec::is_empty")]
    pub omit: Vec<AnswerPart>,
    /// The trace that the run is part of; see [`Input::traceparent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl<'a> Request<'a> {
    /// Parses a request from JSON text.
    ///
    /// If a field occurs more than once, the last one counts. `data`, `memory` and `history` are borrowed; whether they
    /// are valid JSON is checked when the request is run.
    ///
    /// # Errors
    /// Unknown fields, missing fields, wrong types, and invalid JSON, as reported by serde.
    pub fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        // serde would take an array of values for the fields in order.
        if json.trim_start().starts_with('[') {
            return Err(serde::de::Error::invalid_type(serde::de::Unexpected::Seq, &"a JSON object"));
        }
        match request_fields::read::<Self>(json) {
            Ok((request, large)) => {
                Ok(Request { data: large.data, memory: large.memory, history: large.history, ..request })
            }
            // serde gives the best error, with its position. A repeated field is not an error.
            Err(wrong) => match serde_json::from_str(json) {
                Err(error) if error.to_string().starts_with("duplicate field") => Err(wrong),
                read => read,
            },
        }
    }

    /// Runs the request on this thread and returns its answer.
    pub fn run(&self, engine: &Engine) -> Answer {
        self.answer(&self.outcome(engine))
    }

    /// Returns the answer for an outcome, with the request's id and without the sections that it omits.
    pub fn answer(&self, outcome: &Outcome) -> Answer {
        Answer::without(&self.omit, self.id.clone(), outcome)
    }

    /// Runs the request on this thread and returns its outcome.
    pub fn outcome(&self, engine: &Engine) -> Outcome {
        let started = Instant::now();
        match self.in_process().and_then(|()| self.input_since(engine, started)) {
            Ok(input) => engine.eval_since(started, &self.program, input),
            Err(problem) => self.not_begun(engine, started, problem),
        }
    }

    /// Returns the outcome for a problem in the program or from [`Request::input`]: the run could not start.
    pub fn failed(&self, engine: &Engine, problem: Box<Problem>) -> Outcome {
        self.not_begun(engine, Instant::now(), problem)
    }

    /// Returns the outcome of a request whose run cannot start.
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

    /// Returns the outcome for a request whose isolation is not available.
    pub fn refused(&self, engine: &Engine, why: &str) -> Outcome {
        let error = Error::new(Reason::RuntimeError, format!("no process layer: {why}"))
            .hint("leave out `isolation` and `domain`");
        let problem = Box::new(Problem::new(error, Phase::Setup));
        Outcome::of_problem(problem, engine.limits_for(&Input::new().limits(self.limits)))
    }

    /// Returns the input of the run.
    ///
    /// For a host that adds to it (a tenant, a budget, a recording, its own tools) and runs the program itself, with
    /// the isolation that the request asks for.
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
    /// The set-up programs are sources: they are compiled when the run is set up.
    ///
    /// # Errors
    /// An error in a tool of the request.
    pub fn input(&self, engine: &Engine) -> Result<Input<'a>, Box<Problem>> {
        self.input_since(engine, Instant::now())
    }

    /// Returns the input of the run with tools that [`Request::own_tools`] returned.
    pub fn input_with(&self, own: Tools) -> Input<'a> {
        let input = self.given();
        if self.tools.is_empty() { input } else { input.tools(own) }
    }

    /// Returns the tools of the request. Those that the client answers are external.
    ///
    /// Reading their signatures and JSON Schemas takes time: at most the timeout of the run, and less than a second for
    /// schemas. A server reads them on a thread that may block.
    ///
    /// # Errors
    /// An error in a tool.
    pub fn own_tools(&self, engine: &Engine) -> Result<Tools, Box<Problem>> {
        let limits = engine.limits_for(&Input::new().limits(self.limits));
        self.tools(&limits, Instant::now()).map_err(|error| Box::new(Problem::new(error, Phase::Setup)))
    }

    /// Returns the names of the tools that the program and its set-up programs mention as `tool/name`, in comments and
    /// strings too. A request calls no other tools. Nothing is compiled for this.
    pub fn mentioned_tools(&self) -> impl Iterator<Item = &str> {
        let programs = std::iter::once(&*self.program).chain(self.setup.iter().map(String::as_str));
        programs.flat_map(names_in)
    }

    /// Returns whether the request asks for process isolation, by its isolation or by a domain.
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

    pub(crate) fn input_since(&self, engine: &Engine, started: Instant) -> Result<Input<'a>, Box<Problem>> {
        let input = self.given();
        if self.tools.is_empty() {
            return Ok(input);
        }
        let limits = engine.limits_for(&input);
        let tools = self.tools(&limits, started);
        Ok(input.tools(tools.map_err(|error| Box::new(Problem::new(error, Phase::Setup)))?))
    }

    /// Returns the input without tools.
    fn given(&self) -> Input<'a> {
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
        for source in &self.setup {
            input = input.setup_source(source.clone());
        }
        if let Some(signature) = &self.signature {
            input = input.signature(signature.clone());
        }
        input
    }

    /// Returns the tools. Reading their signatures and schemas counts against the time of the run.
    fn tools(&self, limits: &Limits, started: Instant) -> Result<Tools, Error> {
        let until = deadline(started, limits.timeout_ms);
        let (mut tools, mut allowance) = (Tools::new(), Allowance::of_request());
        for (name, script) in &self.tools {
            if let Some(error) = expired(limits, None, until) {
                return Err(error);
            }
            let added = tools.add(script.tool_within(name, &mut allowance));
            added.map_err(|error| Error::new(Reason::ParseError, format!("the tools of the request: {error}")))?;
        }
        Ok(tools)
    }
}

/// Returns the answer to one line of a batch. If the line is not a request, the answer says why.
pub fn answer_line(engine: &Engine, line: &str) -> Answer {
    answer_line_by(engine, line, |request| request.outcome(engine))
}

/// Like [`answer_line`], with `run` running the request. If `run` or the interpreter panics, the answer is
/// `host_fault` and still has the request's id.
pub fn answer_line_by(engine: &Engine, line: &str, run: impl FnOnce(&Request<'_>) -> Outcome) -> Answer {
    let answer = || match Request::parse(line) {
        Ok(request) => request.answer(&run(&request)),
        Err(error) => no_request(engine, id_of(line), &error.to_string(), &field_of(line, &error)),
    };
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|panic| {
        let (started, problem) = (Instant::now(), Box::new(Problem::new(lost(panic), Phase::Eval)));
        let view = engine.view(&Input::new(), started);
        Answer::new(id_of(line), &engine.ended(&view, started, problem, *engine.limits()))
    })
}

/// Reads the id of a request, as JSON text.
///
/// # Errors
/// The id is not JSON, or could not be read back from the answer: a number beyond the largest float, an unpaired
/// surrogate, or arrays and objects nested too deep.
pub fn request_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    let id = Option::<Box<RawValue>>::deserialize(deserializer)?;
    match id.as_ref().and_then(|id| unreadable(id)) {
        Some(why) => Err(D::Error::custom(format!("the id cannot be echoed: {why}; send a string or an integer"))),
        None => Ok(id),
    }
}

/// Returns why an id could not be read in an answer, where it is one level deeper.
fn unreadable(id: &RawValue) -> Option<String> {
    serde_json::from_str::<[serde_json::Value; 1]>(&format!("[{id}]")).err().map(|error| plain(&error))
}

/// Returns the id of a line that may not be a request.
fn id_of(line: &str) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Id {
        id: Option<Box<RawValue>>,
    }
    // An array is not a request, although serde would take its elements for the fields.
    let fields = line.trim_start().starts_with('{').then(|| serde_json::from_str::<Id>(line).ok()).flatten();
    fields.and_then(|request| request.id).filter(|id| unreadable(id).is_none())
}

/// Like [`answer_line`], for bytes that may not be UTF-8.
pub fn answer_bytes(engine: &Engine, line: &[u8]) -> Answer {
    answer_bytes_by(engine, line, |request| request.outcome(engine))
}

/// Like [`answer_bytes`], with `run` running the request.
pub fn answer_bytes_by(engine: &Engine, line: &[u8], run: impl FnOnce(&Request<'_>) -> Outcome) -> Answer {
    match std::str::from_utf8(line) {
        Ok(line) => answer_line_by(engine, line, run),
        Err(error) => no_request(engine, None, &error.to_string(), ""),
    }
}

/// Returns the answer for a line that is rejected before it is read, for example because it is too long.
pub fn answer_refused(engine: &Engine, error: Error) -> Answer {
    Answer::new(None, &Outcome::of_problem(Box::new(Problem::new(error, Phase::Setup)), *engine.limits()))
}

/// Returns the path of the field that an error of a request is about, followed by a colon and a space; empty if there
/// is none.
fn field_of(line: &str, error: &serde_json::Error) -> String {
    let misfit = Misfit::of::<Request<'_>>(line.strip_prefix('\u{feff}').unwrap_or(line), error);
    // A repeated field is an error for serde alone.
    let is_same = error.is_data() && misfit.message == plain(error);
    if is_same && !misfit.path.is_empty() { format!("{}: ", misfit.path) } else { String::new() }
}

fn no_request(engine: &Engine, id: Option<Box<RawValue>>, why: &str, field: &str) -> Answer {
    let near = near_field(why).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let next = match field {
        "" if why.starts_with("unknown field") => "correct the name of this field, or leave it out",
        "" => "a request is one JSON object with at least `program`",
        _ => "correct this field, or leave it out",
    };
    let error = Error::new(Reason::ParseError, format!("not a request: {field}{why}")).hint(format!("{near}{next}"));
    Answer::new(id, &Outcome::of_problem(Box::new(Problem::new(error, Phase::Setup)), *engine.limits()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::outcome::Verdict;

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
    fn a_bad_line_is_answered_with_its_id() {
        let answer = answer_line(&Engine::default(), r#"{"id": 7, "porgram": "1"}"#);
        assert_eq!(answer.verdict, Verdict::Error);
        assert_eq!(answer.id.unwrap().get(), "7");
        for (id, why) in [("1E400", "number out of range"), (r#""\ud800""#, "hex escape"), (&"[".repeat(130), "")] {
            let (id, close) = (id, "]".repeat(id.matches('[').count()));
            for field in [r#""program": "1""#, r#""porgram": "1""#] {
                let json = answer_line(&Engine::default(), &format!(r#"{{"id": {id}{close}, {field}}}"#)).to_json();
                let answer: serde_json::Value = serde_json::from_str(&json).expect(&json);
                assert!(answer.get("id").is_none() && answer["verdict"] == "error", "{json}");
                let message = answer["error"]["message"].as_str().unwrap_or_default();
                assert!(message.contains("the id cannot be echoed") && message.contains(why), "{json}");
            }
        }
        for (request, near) in [
            (r#"{"program": "1", "dta": {}}"#, "did you mean `data`?"),
            (r#"{"program": "1", "limits": {"timout_ms": 1}}"#, "did you mean `timeout_ms`?"),
            (r#"{"program": "1", "tools": {"f": {"retrns": 1}}}"#, "did you mean `returns`?"),
        ] {
            let hint = answer_line(&Engine::default(), request).error.expect("an error").hint.unwrap_or_default();
            assert!(hint.starts_with(near), "{request}: {hint}");
        }
        let answer = answer_line(&Engine::default(), "nonsense");
        assert_eq!(answer.error.unwrap().reason, "parse_error");
    }
}
