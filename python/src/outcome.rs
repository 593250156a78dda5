//! What a run returns.

use crate::values::to_python;
use crate::wording::in_python;
use ptc_lisp::outcome::{self as parts, OutcomeKind};
use ptc_lisp::value::TypedReader;
use ptc_lisp::{Answer, Problem};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use std::borrow::Cow;
use std::sync::Arc;

/// The outcome of a run. Every run has one, also if the program failed.
#[pyclass(frozen, module = "ptc_lisp")]
pub(crate) struct Outcome {
    outcome: Arc<ptc_lisp::Outcome>,
    source: Arc<str>,
    value: PyOnceLock<Py<PyAny>>,
}

impl Outcome {
    pub(crate) fn new(outcome: ptc_lisp::Outcome, source: Arc<str>) -> Self {
        Outcome { outcome: Arc::new(outcome), source, value: PyOnceLock::new() }
    }

    fn failed(&self) -> bool {
        !self.outcome.is_success() || self.outcome.json_error().is_some()
    }
}

#[pymethods]
impl Outcome {
    /// Returns what happened as text for the model that wrote the program.
    fn report(&self) -> String {
        in_python(&self.outcome.report(&self.source)).into_owned()
    }

    #[getter]
    fn ok(&self) -> bool {
        !self.failed()
    }

    #[getter]
    fn value(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let value = self.value.get_or_try_init(py, || match self.outcome.typed() {
            Some(parts) if !self.failed() => to_python(py, parts).map(Bound::unbind),
            _ => Ok(py.None()),
        });
        value.map(|value| value.clone_ref(py))
    }

    #[getter]
    fn failure(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match (self.outcome.kind(), self.outcome.typed()) {
            (Some(OutcomeKind::Fail), Some(parts)) => to_python(py, parts).map(Bound::unbind),
            _ => Ok(py.None()),
        }
    }

    #[getter]
    fn error(&self) -> Option<Error> {
        if let Some(problem) = self.outcome.problem() {
            return Some(Error::of_problem(problem, self.source.clone()));
        }
        if let Some(error) = self.outcome.json_error() {
            let hint = error.hint.clone();
            return Some(Error::plain(error.reason.name(), error.message.clone(), hint));
        }
        (self.outcome.kind() == Some(OutcomeKind::Fail)).then(|| {
            let message = format!("the program ended with (fail {})", self.outcome.text().unwrap_or_default());
            Error::plain("fail", message, None)
        })
    }

    #[getter]
    fn verdict(&self) -> &'static str {
        self.outcome.verdict().name()
    }

    #[getter]
    fn text(&self) -> Option<&str> {
        self.outcome.text()
    }

    #[getter]
    fn json(&self) -> Option<&str> {
        self.outcome.json()
    }

    #[getter]
    fn prints(&self) -> Vec<String> {
        self.outcome.prints.clone()
    }

    #[getter]
    fn prints_dropped(&self) -> u64 {
        self.outcome.prints_dropped
    }

    #[getter]
    fn ledger(&self) -> Vec<LedgerEntry> {
        self.outcome.ledger.iter().map(|entry| LedgerEntry(entry.clone())).collect()
    }

    #[getter]
    fn usage(&self) -> Usage {
        Usage(self.outcome.usage)
    }

    #[getter]
    fn warnings(&self) -> Vec<Warning> {
        self.outcome.warnings().iter().map(|warning| Warning(warning.clone())).collect()
    }

    #[getter]
    fn run_id(&self) -> &str {
        &self.outcome.run_id
    }

    #[getter]
    fn memory(&self) -> Option<&str> {
        self.outcome.memory()
    }

    /// Returns the whole outcome as JSON text.
    fn to_json(&self) -> String {
        in_python(&Answer::new(None, &self.outcome).to_json()).into_owned()
    }

    /// Returns this outcome if the run succeeded.
    fn raise_for_error(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        static RUN_ERROR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if !slf.get().failed() {
            return Ok(slf);
        }
        let error = RUN_ERROR.import(slf.py(), "ptc_lisp._errors", "RunError")?.call1((slf.clone(),))?;
        Err(PyErr::from_value(error))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "an outcome cannot be pickled; pass on outcome.value, outcome.text or outcome.to_json()",
        ))
    }

    fn __repr__(&self) -> String {
        let cut = |text: &str| text.chars().take(120).collect::<String>();
        match (self.error(), self.outcome.text()) {
            (Some(error), _) => format!("<Outcome {}: {}>", error.reason, cut(&error.message)),
            (None, text) => format!("<Outcome ok: {}>", cut(text.unwrap_or_default())),
        }
    }
}

/// What was wrong with a program.
#[pyclass(frozen, module = "ptc_lisp", get_all)]
pub(crate) struct Error {
    reason: String,
    message: String,
    hint: Option<String>,
    phase: Option<&'static str>,
    position: Option<Position>,
    #[pyo3(name = "_problem")]
    problem: Option<Report>,
}

/// The text for a model.
#[pyclass(frozen, module = "ptc_lisp")]
#[derive(Clone)]
pub(crate) struct Report {
    problem: Arc<Problem>,
    source: Arc<str>,
}

impl Error {
    fn of_problem(problem: &Problem, source: Arc<str>) -> Self {
        Error {
            reason: problem.reason().name().to_owned(),
            message: in_python(&problem.error.message).into_owned(),
            hint: problem.error.hint.as_deref().map(|hint| in_python(hint).into_owned()),
            phase: Some(problem.phase.name()),
            position: problem.position.map(Position::of),
            problem: Some(Report { problem: Arc::new(problem.clone()), source }),
        }
    }

    fn plain(reason: &str, message: String, hint: Option<String>) -> Self {
        let said = |text: String| in_python(&text).into_owned();
        let (message, hint) = (said(message), hint.map(said));
        Error { reason: reason.to_owned(), message, hint, phase: None, position: None, problem: None }
    }
}

#[pymethods]
impl Error {
    /// Returns the error as text for a model that repairs the program.
    fn report(&self) -> String {
        match &self.problem {
            Some(Report { problem, source }) => in_python(&problem.report(source)).into_owned(),
            None => {
                let hint = self.hint.as_deref().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
                format!("{}: {}\n{hint}", self.reason, self.message)
            }
        }
    }

    /// Returns the values of local names where the error happened.
    #[getter]
    fn locals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let locals = PyDict::new(py);
        for local in self.problem.iter().flat_map(|report| &report.problem.locals) {
            locals.set_item(&local.name, &local.value)?;
        }
        Ok(locals)
    }

    /// Returns figures and names about the error, such as `limit_bytes`.
    #[getter]
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let details = PyDict::new(py);
        for (name, detail) in self.problem.iter().flat_map(|report| &report.problem.error.details) {
            match detail {
                parts::Detail::Int(number) => details.set_item(&**name, number)?,
                parts::Detail::Text(text) => details.set_item(&**name, text)?,
                other => details.set_item(&**name, format!("{other:?}"))?,
            }
        }
        Ok(details)
    }

    fn __str__(&self) -> String {
        format!("{}: {}", self.reason, self.message)
    }

    fn __repr__(&self) -> String {
        format!("<Error {}>", self.__str__())
    }
}

/// A range of the source in lines and columns, from 1.
#[pyclass(frozen, module = "ptc_lisp", get_all)]
#[derive(Clone, Copy)]
pub(crate) struct Position {
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
}

impl Position {
    fn of(at: parts::Position) -> Self {
        Position { line: at.line, column: at.column, end_line: at.end_line, end_column: at.end_column }
    }
}

#[pymethods]
impl Position {
    fn __repr__(&self) -> String {
        format!("<Position line {}, column {}>", self.line, self.column)
    }
}

/// The figures of a run.
#[pyclass(frozen, module = "ptc_lisp")]
pub(crate) struct Usage(parts::Usage);

macro_rules! figures {
    ($($name:ident: $kind:ty),* $(,)?) => {
        #[pymethods]
        impl Usage {
            $(#[getter] fn $name(&self) -> $kind { self.0.$name })*

            fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let all = PyDict::new(py);
                $(all.set_item(stringify!($name), self.0.$name)?;)*
                Ok(all)
            }

            fn __repr__(&self) -> String {
                format!("<Usage fuel={} duration_us={} tool_calls={}>", self.0.fuel, self.0.duration_us, self.0.tool_calls)
            }
        }
    };
}

figures! {
    fuel: u64, compute_us: u64, duration_us: u64, baseline_bytes: Option<u64>, heap_peak_bytes: u64,
    heap_live_bytes: Option<u64>, allocated_bytes: u64, compactions: u64, tool_calls: u64, workers_peak: u64,
    output_bytes: u64, cpu_us: Option<u64>, rss_peak_bytes: Option<u64>,
}

/// A tool call of a run, as the host saw it.
#[pyclass(frozen, module = "ptc_lisp")]
pub(crate) struct LedgerEntry(parts::LedgerEntry);

#[pymethods]
impl LedgerEntry {
    #[getter]
    fn tool(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.0.arguments)
    }

    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.result.as_ref().map(|result| shown(py, result)).transpose()
    }

    #[getter]
    fn status(&self) -> &'static str {
        self.0.status.name()
    }

    #[getter]
    fn refused(&self) -> bool {
        self.0.refused
    }

    #[getter]
    fn error(&self) -> Option<Cow<'_, str>> {
        self.0.error.as_deref().map(in_python)
    }

    #[getter]
    fn duration_us(&self) -> u64 {
        self.0.duration_us
    }

    #[getter]
    fn worker<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.0.worker)
    }

    fn __repr__(&self) -> String {
        format!("<LedgerEntry {} {} {}>", self.0.name, self.0.arguments.text, self.0.status.name())
    }
}

/// Returns a value that is shown in the ledger; if it was cut, the beginning of its text.
fn shown<'py>(py: Python<'py>, preview: &parts::Preview) -> PyResult<Bound<'py, PyAny>> {
    match preview.is_whole() {
        true => to_python(py, TypedReader::of(&preview.text)),
        false => Ok(format!("{}...", preview.text).into_pyobject(py)?.into_any()),
    }
}

/// A probable mistake in a program, found before or during its run.
#[pyclass(frozen, module = "ptc_lisp")]
pub(crate) struct Warning(pub(crate) parts::Warning);

#[pymethods]
impl Warning {
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.name()
    }

    #[getter]
    fn message(&self) -> Cow<'_, str> {
        in_python(&self.0.message)
    }

    #[getter]
    fn repair(&self) -> Option<Cow<'_, str>> {
        self.0.repair.as_deref().map(in_python)
    }

    #[getter]
    fn position(&self) -> Option<Position> {
        self.0.position.map(Position::of)
    }

    fn __repr__(&self) -> String {
        let repair = self.repair().map(|repair| format!("; {repair}")).unwrap_or_default();
        format!("<Warning {}: {}{repair}>", self.kind(), self.message())
    }
}
