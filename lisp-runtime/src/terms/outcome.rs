//! The outcome of a run, returned even on failure.

use crate::terms::clock::Reading;
use crate::terms::limits::Limits;
use crate::terms::misfit::Misfit;
pub use crate::terms::position::Position;
use crate::terms::profile::Profile;
use crate::terms::run_id::run_id;
use crate::terms::typed::TypedReader;
use crate::terms::warning::Warning;
use lisp_core::cost::COST_SCHEDULE_VERSION;
use lisp_core::heap::OutOfMemory;
use lisp_core::syntax::LineIndex;
use lisp_core::{Error, Reason};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// How a run ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The program ended by itself.
    Ok,
    /// The program failed with an error.
    Error,
    /// The run used up its time or its fuel.
    Timeout,
    /// The program used too much memory.
    OutOfMemory,
    /// The run was cancelled.
    Cancelled,
    /// An internal failure, contained: a bug of the interpreter, a recorder that cannot write, or a process that the system killed.
    HostFault,
}

impl Verdict {
    /// Returns the verdict for a reason.
    pub fn of(reason: Reason) -> Self {
        match reason {
            Reason::Timeout | Reason::FuelExhausted => Verdict::Timeout,
            Reason::MemoryExceeded => Verdict::OutOfMemory,
            Reason::Cancelled => Verdict::Cancelled,
            Reason::HostFault => Verdict::HostFault,
            _ => Verdict::Error,
        }
    }

    /// Returns the name that answers use.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Error => "error",
            Verdict::Timeout => "timeout",
            Verdict::OutOfMemory => "out_of_memory",
            Verdict::Cancelled => "cancelled",
            Verdict::HostFault => "host_fault",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a program ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// With the value of its last expression.
    Value,
    /// With `(return v)`.
    Return,
    /// With `(fail v)`.
    Fail,
}

/// The phase of a run in which an error happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Reading and analyzing the program.
    Compile,
    /// Importing the host's data and running set-up programs.
    Setup,
    /// Running the program.
    Eval,
    /// Converting the result.
    Result,
}

impl Phase {
    /// Returns the name that answers use.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Compile => "compile",
            Phase::Setup => "setup",
            Phase::Eval => "eval",
            Phase::Result => "result",
        }
    }
}

/// Returns the error for a caught panic of the interpreter.
fn own_bug() -> Error {
    Error::new(Reason::HostFault, "an internal error stopped the run")
}

/// Returns the error of a run that was lost to a panic: by a bug, or because the process had no memory left.
pub(crate) fn lost(panic: Box<dyn Any + Send>) -> Error {
    panic.downcast::<OutOfMemory>().map_or_else(|_| own_bug(), |machine| Error::from(*machine))
}

/// The error that ended a run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub struct Problem {
    /// The error itself: its reason, message, hint and details.
    pub error: Error,
    /// The phase in which it happened.
    pub phase: Phase,
    /// The position in the source, if there is one. The source is the program's, unless `setup` or `turn` is set.
    pub position: Option<Position>,
    /// The index of the set-up program that contains the position, from 0.
    pub setup: Option<usize>,
    /// The number of the earlier turn of a session that contains the position, from 1.
    pub turn: Option<u64>,
    /// The call chain, innermost call first. If it is very long, its middle is left out.
    pub calls: Vec<Call>,
    /// The local variables where the error happened, latest bindings first: at most
    /// [`Trace::LOCALS`](lisp_core::Trace::LOCALS).
    ///
    /// Empty if a tool of the run redacts arguments ([`Tool::redact`](crate::Tool::redact)), if the run was ended from
    /// outside, or if the error was caught and rethrown.
    pub locals: Vec<Local>,
    /// Further errors of a program that does not compile, in the same source: at most
    /// [`Error::MORE`](lisp_core::Error::MORE).
    pub more: Vec<FurtherError>,
}

/// A local variable and its value where an error happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Local {
    /// The name in the program; cut if it is very long.
    pub name: String,
    /// A preview of the value: at most 120 characters.
    pub value: String,
}

impl From<lisp_core::LocalValue> for Local {
    fn from(local: lisp_core::LocalValue) -> Self {
        Local { name: local.name.into(), value: local.value.into() }
    }
}

/// One of several errors of a source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FurtherError {
    /// The error.
    pub error: Error,
    /// Its position in the source.
    pub position: Option<Position>,
}

impl FurtherError {
    pub(crate) fn of(error: Error, lines: &LineIndex) -> Self {
        FurtherError { position: error.span.map(|span| Position::of(lines, span)), error }
    }
}

/// A call in the call chain of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Call {
    /// The function that was called, if it has a name.
    pub function: Option<String>,
    /// The position of the call, in the program unless `setup` or `turn` is set.
    pub position: Position,
    /// The index of the set-up program that contains the call, from 0.
    pub setup: Option<usize>,
    /// The number of the earlier turn of a session that contains the call, from 1.
    pub turn: Option<u64>,
    /// The element for which `map`, `reduce` or a similar function made the call.
    pub element: Option<Element>,
}

/// An element of a collection in the call chain of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Element {
    /// The function that processed the collection, such as `map`.
    pub of: String,
    /// The index of the element, from 0. Entries of maps count as elements.
    pub index: usize,
}

impl fmt::Display for Element {
    /// Writes `in map, element 17`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {}, element {}", self.of, self.index)
    }
}

impl Problem {
    /// Creates a problem without a position.
    pub fn new(error: Error, phase: Phase) -> Self {
        let (calls, locals, more) = (Vec::new(), Vec::new(), Vec::new());
        Problem { error, phase, position: None, setup: None, turn: None, calls, locals, more }
    }

    /// Creates a problem with the position in its source.
    pub(crate) fn in_source(mut error: Error, source: &str, phase: Phase) -> Self {
        let lines = LineIndex::new(source);
        let position = error.span.map(|span| Position::of(&lines, span));
        let more = std::mem::take(&mut error.more).into_iter().map(|error| FurtherError::of(error, &lines)).collect();
        Problem { position, more, ..Problem::new(error, phase) }
    }

    /// Returns the stable name of the error.
    pub fn reason(&self) -> Reason {
        self.error.reason
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        let text = match (self.setup, self.turn) {
            (Some(setup), _) => format!("set-up program {}", setup + 1),
            (None, Some(turn)) => format!("turn {turn}"),
            (None, None) => String::new(),
        };
        match self.position {
            Some(at) if text.is_empty() => write!(f, " (line {}, column {})", at.line, at.column),
            Some(at) => write!(f, " ({text}, line {}, column {})", at.line, at.column),
            None if text.is_empty() => Ok(()),
            None => write!(f, " ({text})"),
        }
    }
}

/// The usage figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Units of fuel: work, counted the same on every machine. For a run that timed out, the work until it was stopped.
    pub fuel: u64,
    /// Wall time without the time in tools, in microseconds.
    pub compute_us: u64,
    /// Wall time, in microseconds.
    pub duration_us: u64,
    /// Bytes of the host's data, memory and programs. Absent if they could not be imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_bytes: Option<u64>,
    /// Peak bytes that the program held, above the baseline.
    pub heap_peak_bytes: u64,
    /// Bytes that the program held at the end, without garbage. Measured if
    /// [`Input::measure_live`](crate::Input::measure_live) is set, as it is for requests. Absent if it is more than
    /// about four megabytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_live_bytes: Option<u64>,
    /// Bytes that the program allocated in total.
    pub allocated_bytes: u64,
    /// Number of heap compactions.
    pub compactions: u64,
    /// Number of tool calls, without cached ones.
    pub tool_calls: u64,
    /// Peak number of parallel workers.
    pub workers_peak: u64,
    /// Bytes of the prints and of the result as JSON.
    pub output_bytes: u64,
    /// CPU time of the run's process, in microseconds. Only with process isolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// Peak resident memory of the run's process, in bytes, including what it shares with its template. Only with
    /// process isolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_peak_bytes: Option<u64>,
    /// The age of `fuel`, `baseline_bytes`, `heap_peak_bytes`, `allocated_bytes` and `compactions`, in microseconds.
    ///
    /// Present for a run that was killed with process isolation: these are the last figures that its process reported,
    /// without its workers. Absent if the figures are final, or if none were reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures_age_us: Option<u64>,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallStatus {
    /// It returned a result.
    Ok,
    /// It failed.
    Error,
    /// It returned the result of an earlier call.
    Cached,
    /// Unknown, because the run ended first.
    Unknown,
}

impl CallStatus {
    /// Returns the name that answers use.
    pub const fn name(self) -> &'static str {
        match self {
            CallStatus::Ok => "ok",
            CallStatus::Error => "error",
            CallStatus::Cached => "cached",
            CallStatus::Unknown => "unknown",
        }
    }
}

/// One tool call in the ledger. The host keeps the ledger; programs cannot change it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// The name of the tool.
    pub name: String,
    /// The arguments as JSON text, cut after [`LedgerEntry::PREVIEW_BYTES`].
    pub arguments: Preview,
    /// How the call ended.
    pub status: CallStatus,
    /// Whether the tool was not called. The error says why: the arguments did not match, a policy or an approver denied
    /// the call, a limit or a budget was used up, or the run ended before the call's turn came.
    pub refused: bool,
    /// The result as JSON text, cut in the same way.
    pub result: Option<Preview>,
    /// The error message, if the call failed.
    pub error: Option<String>,
    /// The duration of the call, in microseconds.
    pub duration_us: u64,
    /// The path of worker indexes to the caller; empty for the main program.
    pub worker: Vec<u32>,
}

impl LedgerEntry {
    /// The maximum bytes of arguments and results that are kept; longer ones are cut.
    pub const PREVIEW_BYTES: usize = 2_000;
    /// The number of a call that was not made.
    pub(crate) const REFUSED: u64 = u64::MAX;
    /// The number of a call that was not made because its arguments were too long.
    pub(crate) const TOO_LONG: u64 = u64::MAX - 1;
}

/// JSON text, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// The text. It is valid JSON if it is whole.
    pub text: String,
    /// The length of the whole text in bytes.
    pub bytes_total: usize,
}

impl Preview {
    pub(crate) fn of(json: &str) -> Self {
        let end = json.floor_char_boundary(LedgerEntry::PREVIEW_BYTES);
        Preview { text: json[..end].to_owned(), bytes_total: json.len() }
    }

    /// Returns whether the text is whole.
    pub fn is_whole(&self) -> bool {
        self.text.len() == self.bytes_total
    }
}

/// The result of a run that ended by itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) kind: OutcomeKind,
    /// An error if the value has no JSON form, because two keys would become one.
    pub(crate) json: Result<String, Error>,
    /// The text of the typed value, if it was asked for and is not the JSON.
    pub(crate) typed: Option<String>,
    pub(crate) text: String,
    /// The length of the whole text; if `text` is shorter, it is cut.
    pub(crate) text_bytes: usize,
    /// `None` if it was not asked for.
    pub(crate) memory: Option<Result<String, Error>>,
}

impl Answer {
    /// Returns the answer of a program that was not run: nil.
    pub(crate) fn none() -> Self {
        let (json, text) = (Ok("null".to_owned()), "nil".to_owned());
        Answer { kind: OutcomeKind::Value, json, typed: None, text_bytes: text.len(), text, memory: None }
    }
}

/// The outcome of a run. Every run has one, with its prints, figures and ledger, even if it failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The unique id of the run: from [`Input::run_id`](crate::Input::run_id), or generated.
    pub run_id: Arc<str>,
    pub(crate) answer: Result<Answer, Box<Problem>>,
    pub(crate) warnings: Vec<Warning>,
    /// The lines that the program printed, even if it failed.
    pub prints: Vec<String>,
    /// Number of printed lines beyond the limit, which were not kept.
    pub prints_dropped: u64,
    /// Number of lines that were cut, with a mark, because they are longer than `print_chars`.
    pub prints_cut: u64,
    /// The usage figures of the run.
    pub usage: Usage,
    /// Every tool call in program order, including calls that were not made. If there are very many, the first ones.
    pub ledger: Vec<LedgerEntry>,
    /// Number of tool calls that are not in the ledger.
    pub ledger_dropped: u64,
    /// The clock readings of the program, in order; [`Input::clock`](crate::Input::clock) replays them. Empty if the
    /// program did not read the clock, if its time was fixed, or if its process was killed.
    pub clock: Vec<Reading>,
    /// Tool calls of `pmap` and `pcalls` workers that were discarded because an earlier call failed.
    ///
    /// Their number depends on timing; nothing else in the outcome does. At most 10,000, the first ones.
    pub given_up: Vec<LedgerEntry>,
    /// The numbers of these calls.
    pub(crate) given_up_calls: Vec<u64>,
    /// The numbers of the calls in the ledger; [`LedgerEntry::REFUSED`] for a call that was not made.
    pub(crate) calls: Vec<u64>,
    /// Where the work was done, if [`Input::profile`](crate::Input::profile) was set.
    pub profile: Option<Profile>,
    /// The limits of the run.
    pub limits: Limits,
    /// The version of the cost schedule that counted the fuel: [`COST_SCHEDULE_VERSION`](crate::language::COST_SCHEDULE_VERSION).
    pub cost_schedule: u32,
}

impl Outcome {
    /// Creates an outcome that has only a problem.
    pub(crate) fn of_problem(problem: Box<Problem>, limits: Limits) -> Self {
        Outcome {
            run_id: run_id(),
            answer: Err(problem),
            warnings: Vec::new(),
            prints: Vec::new(),
            prints_dropped: 0,
            prints_cut: 0,
            usage: Usage::default(),
            ledger: Vec::new(),
            ledger_dropped: 0,
            clock: Vec::new(),
            given_up: Vec::new(),
            given_up_calls: Vec::new(),
            calls: Vec::new(),
            profile: None,
            limits,
            cost_schedule: COST_SCHEDULE_VERSION,
        }
    }

    /// Adds a next step to the hint of the problem, if there is one. Use it for what only the host knows.
    pub fn add_hint(&mut self, hint: &str) {
        if let Err(problem) = &mut self.answer {
            let error = &mut problem.error;
            error.hint = Some(error.hint.take().map_or_else(|| hint.to_owned(), |known| format!("{known}; {hint}")));
        }
    }

    /// Creates an outcome that has only the definitions.
    pub(crate) fn of_memory(memory: String, limits: Limits) -> Self {
        let problem = Box::new(Problem::new(Error::new(Reason::HostFault, "no result"), Phase::Result));
        let answer = Answer {
            kind: OutcomeKind::Value,
            json: Ok("null".to_owned()),
            typed: None,
            text: "nil".to_owned(),
            text_bytes: 3,
            memory: Some(Ok(memory)),
        };
        Outcome { answer: Ok(answer), ..Outcome::of_problem(problem, limits) }
    }

    /// Returns how the run ended, in one word.
    ///
    /// A program that ends with `(fail v)` ended by itself, so that is [`Verdict::Ok`] too; see
    /// [`Outcome::is_success`].
    pub fn verdict(&self) -> Verdict {
        match &self.answer {
            Ok(_) => Verdict::Ok,
            Err(problem) => Verdict::of(problem.error.reason),
        }
    }

    /// Returns how the program ended by itself, or `None` if it did not.
    pub fn kind(&self) -> Option<OutcomeKind> {
        self.answer.as_ref().ok().map(|answer| answer.kind)
    }

    /// Returns whether the program ended with a value or `(return v)`.
    pub fn is_success(&self) -> bool {
        matches!(self.kind(), Some(OutcomeKind::Value | OutcomeKind::Return))
    }

    /// Returns the result as JSON text.
    ///
    /// Objects have their keys in the order in which they were written, in JSON or in the program. Keywords become their
    /// names, sets become sorted arrays, and NaN and infinities become null with a
    /// [warning](Outcome::warnings). `None` if the run failed or the result has no lossless JSON form
    /// ([`Outcome::json_error`]).
    pub fn json(&self) -> Option<&str> {
        self.answer.as_ref().ok()?.json.as_deref().ok()
    }

    /// Returns the result with its sets and times, if [`Input::typed_result`](crate::Input::typed_result) was set.
    ///
    /// Otherwise sets are arrays and times are strings, as in [`Outcome::json`]. `None` in the same cases.
    pub fn typed(&self) -> Option<TypedReader<'_>> {
        let answer = self.answer.as_ref().ok()?;
        let json = answer.json.as_deref().ok()?;
        Some(TypedReader::of(answer.typed.as_deref().unwrap_or(json)))
    }

    /// Returns why the result of a successful run has no JSON text.
    ///
    /// Two keys of a map, such as `:a` and `"a"`, would become one key. Or the JSON could not be read back, because it
    /// is nested too deep or has an integer that is too long.
    pub fn json_error(&self) -> Option<&Error> {
        self.answer.as_ref().ok()?.json.as_ref().err()
    }

    /// Returns the warnings about the source and, for a successful run, about numbers that are null in its JSON.
    ///
    /// The numbers are those of the result and of the definitions. If there are very many, the first ones and the
    /// number of the others. A run whose process was killed has none.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns the result in Clojure syntax, cut if it is longer than `result_bytes`.
    pub fn text(&self) -> Option<&str> {
        self.answer.as_ref().ok().map(|answer| answer.text.as_str())
    }

    /// Returns the length of the whole text in bytes, if [`Outcome::text`] is cut.
    pub fn text_cut(&self) -> Option<usize> {
        let answer = self.answer.as_ref().ok()?;
        (answer.text.len() < answer.text_bytes).then_some(answer.text_bytes)
    }

    /// Returns the result as a Rust type.
    ///
    /// # Errors
    /// The run failed, ended with `(fail v)`, or its result does not match the type.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        let answer = self.answer.as_ref().map_err(|problem| ValueError::Problem(problem.clone()))?;
        if answer.kind == OutcomeKind::Fail {
            return Err(ValueError::Fail(answer.text.clone()));
        }
        let json = answer.json.as_ref().map_err(|error| ValueError::Json(error.clone()))?;
        serde_json::from_str(json).map_err(|error| {
            let Misfit { path, message } = Misfit::of::<T>(json, &error);
            ValueError::Type(if path.is_empty() { message } else { format!("{path}: {message}") })
        })
    }

    /// Returns the definitions after the run as a JSON object, for [`crate::Input::memory`] of a later run. Functions
    /// are left out.
    ///
    /// `None` if the run failed, if the definitions cannot be converted ([`Outcome::memory_error`]), or with
    /// [`crate::Input::without_memory`]. Also `None` for a turn of a session: use
    /// [`Session::memory`](crate::Session::memory).
    pub fn memory(&self) -> Option<&str> {
        self.answer.as_ref().ok()?.memory.as_ref()?.as_deref().ok()
    }

    /// Returns why the definitions of a successful run cannot be converted.
    ///
    /// Together they take more than `result_bytes`, or two keys of a map would become one in JSON. The message names
    /// the definition.
    pub fn memory_error(&self) -> Option<&Error> {
        self.answer.as_ref().ok()?.memory.as_ref()?.as_ref().err()
    }

    /// Returns the error, if the run failed.
    pub fn problem(&self) -> Option<&Problem> {
        self.answer.as_ref().err().map(|problem| &**problem)
    }
}

/// Why an outcome has no value of a type.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The run failed.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// The program ended with `(fail v)`; this is `v` in Clojure syntax.
    #[error("the program failed with {0}")]
    Fail(String),
    /// The result has no JSON form; use [`Outcome::text`].
    #[error("{0}")]
    Json(Error),
    /// The result does not match the type. The text says where and how, such as `rows[2].name: invalid type: integer 5,
    /// expected a string`.
    #[error("the value is of another type: {0}")]
    Type(String),
}

/// Figures of a run in progress. For a run that is killed, the last ones that were reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Fuel spent, as in [`Usage`].
    pub fuel: u64,
    /// Bytes of the run's data, memory and programs, including set-up programs.
    pub baseline_bytes: u64,
    /// Peak bytes above the baseline.
    pub heap_peak_bytes: u64,
    /// Bytes allocated in total.
    pub allocated_bytes: u64,
    /// Number of compactions so far.
    pub compactions: u64,
}
