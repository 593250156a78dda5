//! Records of suspended runs.

use crate::closing;
use crate::errors::of_record;
use crate::interrupt::{Interrupt, ends_the_run};
use crate::values::{Form, to_python, to_typed};
use ptc_lisp::record::{CallState, RecordingBuilder, Settled};
use ptc_lisp::value::TypedReader;
use ptc_lisp::{Cancel, Recording};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Returns a builder of recordings. A recorder stores each line before the call that it announces is made.
pub(crate) fn recording(recorder: Option<Py<PyAny>>, cancel: &Cancel) -> RecordingBuilder {
    let (builder, cancel) = (Recording::builder(), cancel.clone());
    match recorder {
        None => builder,
        Some(recorder) => builder.recorder(move |line: &str| {
            let stored = closing::attached(|py| {
                let stored = recorder.bind(py).call1((line,)).map(drop);
                stored.map_err(|error| {
                    let text = error.to_string();
                    if ends_the_run(py, &error) {
                        Interrupt::raise_for(&cancel, error);
                    }
                    text
                })
            });
            match stored {
                Some(Ok(())) => Ok(()),
                Some(Err(error)) => Err(error.into()),
                None => Err("Python is shutting down".into()),
            }
        }),
    }
}

/// The record of a run, with which another process can continue it.
#[pyclass(frozen, module = "ptc_lisp")]
pub(crate) struct Record(Mutex<ptc_lisp::Record>);

impl Record {
    pub(crate) fn parse(text: impl Into<Vec<u8>>) -> PyResult<Self> {
        let record = ptc_lisp::Record::parse_bytes(text).map_err(|error| of_record(&error))?;
        Ok(Record(Mutex::new(record)))
    }

    fn inner(&self) -> MutexGuard<'_, ptc_lisp::Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record(&self) -> ptc_lisp::Record {
        self.inner().clone()
    }
}

#[pymethods]
impl Record {
    #[new]
    fn new(content: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = content.cast::<PyBytes>() {
            return Record::parse(bytes.as_bytes());
        }
        match content.extract::<String>() {
            Ok(text) => Record::parse(text),
            Err(_) => Err(PyValueError::new_err("a record is bytes or str, as bytes(record) returns it")),
        }
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner().text().as_bytes())
    }

    fn __str__(&self) -> String {
        self.inner().text().to_owned()
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>,) {
        (self.__bytes__(py),)
    }

    #[getter]
    fn run_id(&self) -> String {
        self.inner().run_id().to_owned()
    }

    #[getter]
    fn program(&self) -> String {
        self.inner().program()
    }

    #[getter]
    fn answer(&self) -> Option<String> {
        self.inner().answer().map(str::to_owned)
    }

    /// Returns the calls that have not ended.
    #[getter]
    fn calls(&self) -> Vec<OpenCall> {
        let record = self.inner();
        let run_id: Arc<str> = record.run_id().into();
        record.open_calls().into_iter().map(|call| OpenCall::of(call, run_id.clone())).collect()
    }

    #[pyo3(signature = (call, arguments=None))]
    fn approve(&self, call: Named<'_>, arguments: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let arguments = arguments.map(|arguments| to_typed(arguments, Form::Json, "arguments")).transpose()?;
        let json = arguments.as_ref().and_then(|arguments| arguments.json());
        let name = self.name_of(&call)?;
        self.inner().approve(name, json).map_err(|error| of_record(&error))
    }

    fn reject(&self, call: Named<'_>, reason: &str) -> PyResult<()> {
        let name = self.name_of(&call)?;
        self.inner().reject(name, reason).map_err(|error| of_record(&error))
    }

    fn reply(&self, call: Named<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = to_typed(result, Form::Json, "the reply")?;
        self.settle(&call, Settled::Done(value.json().unwrap_or("null").to_owned()))
    }

    #[pyo3(signature = (call, message, code=None))]
    fn fail(&self, call: Named<'_>, message: String, code: Option<String>) -> PyResult<()> {
        self.settle(
            &call,
            match code {
                None => Settled::Failed(message),
                Some(code) => Settled::FailedWith(message, code.into()),
            },
        )
    }

    fn not_made(&self, call: Named<'_>) -> PyResult<()> {
        self.settle(&call, Settled::NotMade)
    }

    fn __repr__(&self) -> String {
        let record = self.inner();
        format!("<Record of run {} with {} open calls>", record.run_id(), record.open_calls().len())
    }
}

impl Record {
    /// Returns the name of a call, which must be of this run.
    fn name_of<'a>(&self, call: &'a Named<'_>) -> PyResult<&'a str> {
        if let Named::Call(call) = call {
            let (of, here) = (&*call.get().run_id, self.run_id());
            if of != here {
                let name = &call.get().name;
                return Err(PyValueError::new_err(format!(
                    "call {name} is of the run {of}, and this is the run {here}"
                )));
            }
        }
        Ok(call.name())
    }

    fn settle(&self, call: &Named<'_>, how: Settled) -> PyResult<()> {
        let name = self.name_of(call)?;
        self.inner().settle(name, how).map_err(|error| of_record(&error))
    }
}

/// A call as a parameter: one of the open calls, or its name.
#[derive(FromPyObject)]
enum Named<'py> {
    Name(String),
    Call(Bound<'py, OpenCall>),
}

impl Named<'_> {
    fn name(&self) -> &str {
        match self {
            Named::Name(name) => name,
            Named::Call(call) => &call.get().name,
        }
    }
}

/// A call of a suspended run that has not ended.
#[pyclass(frozen, module = "ptc_lisp")]
pub(crate) struct OpenCall {
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    tool: String,
    json: String,
    #[pyo3(get)]
    question: Option<String>,
    #[pyo3(get)]
    is_unknown: bool,
    run_id: Arc<str>,
}

impl OpenCall {
    fn of(call: ptc_lisp::record::OpenCall, run_id: Arc<str>) -> Self {
        let is_unknown = call.state == CallState::Started;
        OpenCall { name: call.name, tool: call.tool, json: call.arguments, question: call.question, is_unknown, run_id }
    }
}

#[pymethods]
impl OpenCall {
    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, TypedReader::of(&self.json))
    }

    fn __repr__(&self) -> String {
        let question = self.question.as_ref().map(|question| format!(": {question}")).unwrap_or_default();
        format!("<OpenCall {} of {} {}{question}>", self.name, self.tool, self.json)
    }
}
