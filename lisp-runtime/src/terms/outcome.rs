//! The outcome of a run: always there, failure included.

use crate::terms::clock::Reading;
use crate::terms::limits::Limits;
use crate::terms::misfit::Misfit;
pub use crate::terms::position::Position;
use crate::terms::profile::Profile;
use crate::terms::run_id::run_id;
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
    /// The program came to an end of its own.
    Ok,
    /// The program is at fault.
    Error,
    /// Its time or its fuel is used up.
    Timeout,
    /// It holds more memory than it may.
    OutOfMemory,
    /// It was cancelled from outside.
    Cancelled,
    /// A bug of the interpreter, contained.
    HostFault,
}

impl Verdict {
    /// The verdict that goes with a reason.
    pub fn of(reason: Reason) -> Self {
        match reason {
            Reason::Timeout | Reason::FuelExhausted => Verdict::Timeout,
            Reason::MemoryExceeded => Verdict::OutOfMemory,
            Reason::Cancelled => Verdict::Cancelled,
            Reason::HostFault => Verdict::HostFault,
            _ => Verdict::Error,
        }
    }

    /// The word as it stands in an answer.
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

/// The way in which a program ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// The value of the last expression
    Value,
    /// `(return v)`
    Return,
    /// `(fail v)`
    Fail,
}

/// When something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// While the program was read and analyzed
    Compile,
    /// While the host's grant was brought in
    Setup,
    /// While the program ran
    Eval,
    /// While the result was brought out
    Result,
}

impl Phase {
    /// The word as it stands in an answer.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Compile => "compile",
            Phase::Setup => "setup",
            Phase::Eval => "eval",
            Phase::Result => "result",
        }
    }
}

/// The error for a panic of the interpreter that was caught.
fn own_bug() -> Error {
    Error::new(Reason::HostFault, "the interpreter met a bug of its own and stopped the run")
}

/// The error of a run that was lost when its work unwound: by a bug, or as the machine had no memory left.
pub(crate) fn lost(panic: Box<dyn Any + Send>) -> Error {
    panic.downcast::<OutOfMemory>().map_or_else(|_| own_bug(), |machine| Error::from(*machine))
}

/// Why a run has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub struct Problem {
    /// The error itself: its reason, message, hint and figures.
    pub error: Error,
    /// When it happened.
    pub phase: Phase,
    /// Where in the source, when it has a place: the program's, unless `setup` or `turn` say otherwise.
    pub position: Option<Position>,
    /// The set-up program that the place is in, counted from 0.
    pub setup: Option<usize>,
    /// The earlier turn of a session that the place is in, counted from 1.
    pub turn: Option<u64>,
    /// The calls on the way to the fault, innermost first; of very many the innermost and the outermost.
    pub calls: Vec<Call>,
    /// The local names that had a value where the fault was, those that were bound last: at most
    /// [`Trace::LOCALS`](lisp_core::Trace::LOCALS). None when a tool of the run keeps arguments out of what is shown
    /// ([`Tool::redact`](crate::Tool::redact)), when the run was ended from outside, or when the error was caught and thrown on.
    pub locals: Vec<Local>,
    /// Of a program that cannot be compiled: what else is wrong in the same text, at most [`Error::MORE`](lisp_core::Error::MORE) further
    /// errors.
    pub more: Vec<FurtherError>,
}

/// A local name and its value where a fault was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Local {
    /// The name, as the program has it; of a very long one the beginning.
    pub name: String,
    /// A preview of the value: at most 120 characters.
    pub value: String,
}

impl From<lisp_core::LocalValue> for Local {
    fn from(local: lisp_core::LocalValue) -> Self {
        Local { name: local.name.into(), value: local.value.into() }
    }
}

/// One of several errors of a text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FurtherError {
    /// The error.
    pub error: Error,
    /// Where in the text.
    pub position: Option<Position>,
}

impl FurtherError {
    pub(crate) fn of(error: Error, lines: &LineIndex) -> Self {
        FurtherError { position: error.span.map(|span| Position::of(lines, span)), error }
    }
}

/// A call of a function on the way to a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Call {
    /// The function that was called, if it has a name.
    pub function: Option<String>,
    /// Where the call stands: in the program, unless `setup` or `turn` say otherwise.
    pub position: Position,
    /// The set-up program that the call is in, counted from 0.
    pub setup: Option<usize>,
    /// The earlier turn of a session that the call is in, counted from 1.
    pub turn: Option<u64>,
    /// Of a function that `map`, `reduce` or the like called: the element that it was called for.
    pub element: Option<Element>,
}

/// An element of a collection on the way to a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Element {
    /// The function that went through the collection, such as `map`.
    pub of: String,
    /// The number of the element, from 0. An entry of a map counts as one.
    pub index: usize,
}

impl fmt::Display for Element {
    /// `in map, element 17`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {}, element {}", self.of, self.index)
    }
}

impl Problem {
    /// An error that ends a run in a phase, at no place of the program.
    pub fn new(error: Error, phase: Phase) -> Self {
        let (calls, locals, more) = (Vec::new(), Vec::new(), Vec::new());
        Problem { error, phase, position: None, setup: None, turn: None, calls, locals, more }
    }

    /// A problem with the place in its source.
    pub(crate) fn in_source(mut error: Error, source: &str, phase: Phase) -> Self {
        let lines = LineIndex::new(source);
        let position = error.span.map(|span| Position::of(&lines, span));
        let more = std::mem::take(&mut error.more).into_iter().map(|error| FurtherError::of(error, &lines)).collect();
        Problem { position, more, ..Problem::new(error, phase) }
    }

    /// The stable name of the fault.
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

/// The figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Work done, the same on every machine; of a run whose time was over, up to the moment at which it was stopped.
    pub fuel: u64,
    /// Wall time less the time spent in tools, in microseconds.
    pub compute_us: u64,
    /// Wall time, in microseconds.
    pub duration_us: u64,
    /// What the host's grant takes. Absent when it could not be brought in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_bytes: Option<u64>,
    /// The most the program held at once, above the baseline.
    pub heap_peak_bytes: u64,
    /// What it held at the end, garbage not counted. Measured when [`Input::measure_live`](crate::Input::measure_live) asks
    /// for it, as requests do; absent too when it is more than about four megabytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_live_bytes: Option<u64>,
    /// What it allocated in all.
    pub allocated_bytes: u64,
    /// How often its heap was compacted.
    pub compactions: u64,
    /// Tool calls, cached ones not counted.
    pub tool_calls: u64,
    /// The most parallel workers alive at once.
    pub workers_peak: u64,
    /// Bytes of the prints and of the result as JSON.
    pub output_bytes: u64,
    /// Processor time of the run's process, in microseconds. Behind the process door only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// The most memory the run's process had resident, what it shares with its template included. Behind the process
    /// door only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_peak_bytes: Option<u64>,
    /// How old `fuel`, `baseline_bytes`, `heap_peak_bytes`, `allocated_bytes` and `compactions` are, in microseconds: of a run
    /// behind the process door that was killed they are the last that its process told, and its workers are not in them.
    /// Absent when they are of the end of the run, or when nothing was told before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures_age_us: Option<u64>,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallStatus {
    /// With a result
    Ok,
    /// With an error
    Error,
    /// From the result of an earlier call
    Cached,
    /// Nobody knows: the run was over first
    Unknown,
}

impl CallStatus {
    /// The word as it stands in an answer.
    pub const fn name(self) -> &'static str {
        match self {
            CallStatus::Ok => "ok",
            CallStatus::Error => "error",
            CallStatus::Cached => "cached",
            CallStatus::Unknown => "unknown",
        }
    }
}

/// One tool call in the host's own ledger; the program cannot forge it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// The tool.
    pub name: String,
    /// The arguments as JSON text; cut beyond [`LedgerEntry::PREVIEW_BYTES`].
    pub arguments: Preview,
    /// How it ended.
    pub status: CallStatus,
    /// The tool was not called, and the error says why: the arguments did not fit, a policy or a person denied it, a limit or a budget
    /// was used up, or the run was over before the call's turn came.
    pub refused: bool,
    /// The result as JSON text; cut likewise.
    pub result: Option<Preview>,
    /// The error, when it failed.
    pub error: Option<String>,
    /// How long the tool took.
    pub duration_us: u64,
    /// The path of worker indexes that leads to the caller; empty for the main program.
    pub worker: Vec<u32>,
}

impl LedgerEntry {
    /// Longer arguments and results are cut.
    pub const PREVIEW_BYTES: usize = 2_000;
    /// The number of a call that was refused.
    pub(crate) const REFUSED: u64 = u64::MAX;
    /// That of one whose arguments were too long.
    pub(crate) const TOO_LONG: u64 = u64::MAX - 1;
}

/// JSON text, or the beginning of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// The text. It is valid JSON when it is whole.
    pub text: String,
    /// The length of the whole text in bytes.
    pub bytes_total: usize,
}

impl Preview {
    pub(crate) fn of(json: &str) -> Self {
        let end = json.floor_char_boundary(LedgerEntry::PREVIEW_BYTES);
        Preview { text: json[..end].to_owned(), bytes_total: json.len() }
    }

    /// Is it the whole text?
    pub fn is_whole(&self) -> bool {
        self.text.len() == self.bytes_total
    }
}

/// The result of a run that ended by itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) kind: OutcomeKind,
    /// Without it when JSON cannot say the value: two of its keys would become one.
    pub(crate) json: Result<String, Error>,
    pub(crate) text: String,
    /// The length of the whole text; the text is cut when it is shorter.
    pub(crate) text_bytes: usize,
    /// `None` when it was not asked for.
    pub(crate) memory: Option<Result<String, Error>>,
}

/// The outcome of a run. It is always there: a failed run has its prints, its figures and its ledger too.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The name of the run, which no other run has: [`Input::run_id`](crate::Input::run_id), or one that was made.
    pub run_id: Arc<str>,
    pub(crate) answer: Result<Answer, Box<Problem>>,
    pub(crate) warnings: Vec<Warning>,
    /// What the program printed, also when it failed.
    pub prints: Vec<String>,
    /// Lines it printed beyond the limit, which were not kept.
    pub prints_dropped: u64,
    /// Lines that are cut, with a mark, because they are longer than `print_chars`.
    pub prints_cut: u64,
    /// The figures of the run.
    pub usage: Usage,
    /// Every tool call, in program order, refused ones too; of very many the first.
    pub ledger: Vec<LedgerEntry>,
    /// Tool calls beyond those in the ledger.
    pub ledger_dropped: u64,
    /// What the clock told the program, in the order in which it asked: [`Input::clock`](crate::Input::clock) tells it
    /// again. Empty when it never asked, or its clock stood still, or the run was in a process that was killed.
    pub clock: Vec<Reading>,
    /// Calls of tools that workers of `pmap` and `pcalls` made for nothing: a call before theirs failed, and nothing of what they did counts.
    /// How many they are depends on the moment; what the program did else does not. At most 10,000, the first.
    pub given_up: Vec<LedgerEntry>,
    /// Their numbers.
    pub(crate) given_up_calls: Vec<u64>,
    /// The numbers of the calls in the ledger; [`LedgerEntry::REFUSED`] is that of a call which was not made.
    pub(crate) calls: Vec<u64>,
    /// Where the work was done, when [`Input::profile`](crate::Input::profile) asked for it.
    pub profile: Option<Profile>,
    /// The limits that were in force.
    pub limits: Limits,
    /// The version of the cost schedule that the fuel was counted by: [`COST_SCHEDULE_VERSION`](crate::COST_SCHEDULE_VERSION).
    pub cost_schedule: u32,
}

impl Outcome {
    /// An outcome of nothing but a problem.
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

    /// Adds a next step to that of the problem, if there is one: what the host knows and the run does not.
    pub fn add_hint(&mut self, hint: &str) {
        if let Err(problem) = &mut self.answer {
            let error = &mut problem.error;
            error.hint = Some(error.hint.take().map_or_else(|| hint.to_owned(), |known| format!("{known}; {hint}")));
        }
    }

    /// An outcome of nothing but the definitions.
    pub(crate) fn of_memory(memory: String, limits: Limits) -> Self {
        let problem = Box::new(Problem::new(Error::new(Reason::HostFault, "no result"), Phase::Result));
        let answer = Answer {
            kind: OutcomeKind::Value,
            json: Ok("null".to_owned()),
            text: "nil".to_owned(),
            text_bytes: 3,
            memory: Some(Ok(memory)),
        };
        Outcome { answer: Ok(answer), ..Outcome::of_problem(problem, limits) }
    }

    /// How the run ended, in one word. A program that ends with `(fail v)` came to an end of its own, so that is
    /// [`Verdict::Ok`] too; [`Outcome::is_success`] tells them apart.
    pub fn verdict(&self) -> Verdict {
        match &self.answer {
            Ok(_) => Verdict::Ok,
            Err(problem) => Verdict::of(problem.error.reason),
        }
    }

    /// The way in which the program ended by itself.
    pub fn kind(&self) -> Option<OutcomeKind> {
        self.answer.as_ref().ok().map(|answer| answer.kind)
    }

    /// Did it end with a value or `(return v)`?
    pub fn is_success(&self) -> bool {
        matches!(self.kind(), Some(OutcomeKind::Value | OutcomeKind::Return))
    }

    /// The value as JSON text: keywords as their names, sets as sorted arrays, NaN and infinities as null with a
    /// [warning](Outcome::warnings). `None` when the run failed, and when JSON cannot say the value without losing something:
    /// [`Outcome::json_error`] says what.
    pub fn json(&self) -> Option<&str> {
        self.answer.as_ref().ok()?.json.as_deref().ok()
    }

    /// Why the value of a successful run has no JSON text: two keys of a map, such as `:a` and `"a"`, would become one, or it is
    /// nested too deep, or an integer in it is too long, to be read again.
    pub fn json_error(&self) -> Option<&Error> {
        self.answer.as_ref().ok()?.json.as_ref().err()
    }

    /// Returns notes on the text of the program, and, when it succeeded, on the numbers of its value and its definitions that are null in
    /// JSON. Of very many numbers the first, and how many more there are. A run whose process was killed has none.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The value in Clojure syntax, cut when it is longer than `result_bytes`.
    pub fn text(&self) -> Option<&str> {
        self.answer.as_ref().ok().map(|answer| answer.text.as_str())
    }

    /// The length of the whole text in bytes, when what [`Outcome::text`] gives is cut.
    pub fn text_cut(&self) -> Option<usize> {
        let answer = self.answer.as_ref().ok()?;
        (answer.text.len() < answer.text_bytes).then_some(answer.text_bytes)
    }

    /// The value as a type of the host's.
    ///
    /// # Errors
    /// The run failed, ended with `(fail v)`, or its value is not of the type.
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

    /// The definitions after the run as a JSON object, to be given to the next one by [`crate::Input::memory`].
    /// Functions are left out. `None` when the run failed, when the definitions cannot be brought out
    /// ([`Outcome::memory_error`] says why), after [`crate::Input::without_memory`], and for a turn of a session:
    /// [`Session::memory`](crate::Session::memory) makes it there.
    pub fn memory(&self) -> Option<&str> {
        self.answer.as_ref().ok()?.memory.as_ref()?.as_deref().ok()
    }

    /// Why the definitions of a successful run cannot be brought out: together they take more than `result_bytes`, or two
    /// keys of a map in them would become one in JSON. The message names the definition.
    pub fn memory_error(&self) -> Option<&Error> {
        self.answer.as_ref().ok()?.memory.as_ref()?.as_ref().err()
    }

    /// Why there is no value.
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
    /// The program ended with `(fail v)`; this is v in Clojure syntax.
    #[error("the program failed with {0}")]
    Fail(String),
    /// JSON cannot say the value; [`Outcome::text`] does.
    #[error("{0}")]
    Json(Error),
    /// The value is not of the type that was asked for: where in it, and how, such as `rows[2].name: invalid type: integer
    /// `5`, expected a string`.
    #[error("the value is of another type: {0}")]
    Type(String),
}

/// The figures of a run while it goes on: those of a run that is killed are the last that were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Fuel spent, as in [`Usage`]
    pub fuel: u64,
    /// Of the run's grant, set-up programs included
    pub baseline_bytes: u64,
    /// Above the baseline
    pub heap_peak_bytes: u64,
    /// In all
    pub allocated_bytes: u64,
    /// So far
    pub compactions: u64,
}
