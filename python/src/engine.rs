//! The engine.

use crate::closing::detached;
use crate::driven::{Progressed, drive};
use crate::errors::{of_build, of_problem, of_resumed};
use crate::interrupt::Interrupt;
use crate::options::{self, Options};
use crate::outcome::Outcome;
use crate::policy::decide;
use crate::record::Record;
use crate::runs::{AsyncRun, Future};
use crate::session::CoreSession;
use crate::tools::ToolSet;
use crate::values::{Form, to_python, to_typed};
use crate::wakeups::Wakeups;
use crate::wording::in_python;
use ptc_lisp::tools::AskedCall;
use ptc_lisp::value::TypedReader;
use ptc_lisp::{Engine, Input, Limits, LimitsRequest, Recording};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeSet;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use ptc_lisp::sandbox::Sandbox;

/// Data that is imported once and shared by many runs.
#[pyclass(frozen, module = "ptc_lisp")]
pub(crate) struct DataSet {
    #[pyo3(get)]
    name: String,
    set: ptc_lisp::DataSet,
}

impl DataSet {
    pub(crate) fn set(&self) -> &ptc_lisp::DataSet {
        &self.set
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

#[pymethods]
impl DataSet {
    #[getter]
    fn bytes(&self) -> usize {
        self.set.bytes()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a data set cannot be pickled; import it in each process: engine.import_data(name, value)",
        ))
    }

    fn __repr__(&self) -> String {
        format!("<DataSet {} of {} bytes>", self.name, self.set.bytes())
    }
}

/// Where programs run.
#[derive(Clone)]
pub(crate) enum Place {
    InProcess(Engine),
    #[cfg(target_os = "linux")]
    Process(Sandbox),
}

impl Place {
    fn new(engine: Engine, isolation: &str, template: Option<&str>) -> PyResult<Self> {
        match isolation {
            "in_process" => Ok(Place::InProcess(engine)),
            #[cfg(target_os = "linux")]
            "process" => {
                let Some(template) = template else {
                    return Err(PyRuntimeError::new_err(
                        "isolation=\"process\" needs the program ptcl as the template of its processes; pass template=\"/path/to/ptcl\"",
                    ));
                };
                let built = Sandbox::builder().engine(engine).template(template).build();
                built.map(Place::Process).map_err(|error| not_set_up(&error.to_string()))
            }
            #[cfg(not(target_os = "linux"))]
            "process" => {
                Err(PyRuntimeError::new_err("isolation=\"process\" needs Linux; use isolation=\"in_process\""))
            }
            other => {
                Err(PyValueError::new_err(format!("isolation must be \"in_process\" or \"process\", not {other:?}")))
            }
        }
    }

    /// Runs a program to its end, in a domain if one is named.
    fn eval(&self, source: &str, input: Input<'static>, domain: Option<&str>) -> PyResult<ptc_lisp::Outcome> {
        match (self, domain) {
            (Place::InProcess(engine), None) => Ok(engine.eval(source, input)),
            (Place::InProcess(_), Some(_)) => Err(no_domain()),
            #[cfg(target_os = "linux")]
            (Place::Process(sandbox), None) => Ok(sandbox.eval(source, &input)),
            #[cfg(target_os = "linux")]
            (Place::Process(sandbox), Some(name)) => {
                Ok(sandbox.domain(name).map_err(|error| not_set_up(&error.to_string()))?.eval(source, &input))
            }
        }
    }

    /// Begins a run that an event loop drives.
    fn begin(&self, source: &str, input: Input<'static>, domain: Option<&str>) -> PyResult<Future> {
        match (self, domain) {
            (Place::InProcess(engine), None) => Ok(Future::InProcess(Box::new(engine.eval_async(source, input)))),
            (Place::InProcess(_), Some(_)) => Err(no_domain()),
            #[cfg(target_os = "linux")]
            (Place::Process(sandbox), None) => Ok(Future::Process(Box::new(sandbox.eval_async(source, &input)))),
            #[cfg(target_os = "linux")]
            (Place::Process(sandbox), Some(name)) => {
                let domain = sandbox.domain(name).map_err(|error| not_set_up(&error.to_string()))?;
                Ok(Future::Process(Box::new(domain.eval_async(source, &input))))
            }
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        match self {
            Place::InProcess(engine) => engine,
            #[cfg(target_os = "linux")]
            Place::Process(sandbox) => sandbox.engine(),
        }
    }
}

fn no_domain() -> PyErr {
    PyValueError::new_err("a domain is a group of runs that share processes; it needs Engine(isolation=\"process\")")
}

#[cfg(target_os = "linux")]
fn not_set_up(why: &str) -> PyErr {
    PyRuntimeError::new_err(in_python(why).into_owned())
}

/// An engine, as the Python half uses it.
#[pyclass(frozen, module = "ptc_lisp._engine")]
pub(crate) struct CoreEngine {
    /// For runs on the thread of their caller.
    direct: Place,
    /// For runs that are futures; the same if no tool is async.
    futures: Place,
    external: Arc<BTreeSet<String>>,
    #[pyo3(get)]
    has_async_tools: bool,
}

/// What an engine is built of.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Setting<'py> {
    tools: Bound<'py, PyAny>,
    limits: Bound<'py, PyDict>,
    ceiling: Option<Bound<'py, PyDict>>,
    policy: Option<Py<PyAny>>,
    check: String,
    json_keys: String,
    isolation: String,
    template: Option<String>,
    prompt_tools_bytes: Option<usize>,
}

#[pymethods]
impl CoreEngine {
    #[new]
    fn new(py: Python<'_>, setting: Bound<'_, PyAny>) -> PyResult<Self> {
        let setting: Setting<'_> = setting.extract()?;
        let tools = ToolSet::read(&setting.tools)?;
        let limits = Limits::default().with(&options::limits(&setting.limits)?);
        let ceiling = setting.ceiling.as_ref().map(options::limits).transpose()?.map(|asked| limits.with(&asked));
        let policy = setting.policy.map(Arc::new);
        let (check, keys) = (options::check(&setting.check)?, options::keys(&setting.json_keys)?);
        let build = |tools: Vec<ptc_lisp::Tool>| {
            let mut builder = Engine::builder().limits(limits).check(check).json_keys(keys);
            builder = ceiling.into_iter().fold(builder, |builder, ceiling| builder.ceiling(ceiling));
            builder =
                setting.prompt_tools_bytes.into_iter().fold(builder, |builder, max| builder.prompt_tools_bytes(max));
            if let Some(policy) = &policy {
                let policy = policy.clone();
                builder = builder.policy(move |call: &AskedCall<'_>| decide(&policy, call));
            }
            let engine = tools.into_iter().fold(builder, |builder, tool| builder.grant(tool)).build();
            engine.map_err(|error| of_build(&error))
        };
        let (isolation, template) = (setting.isolation.as_str(), setting.template.as_deref());
        let engine = build(tools.direct)?;
        let direct = py.detach(|| Place::new(engine, isolation, template))?;
        let futures = match tools.has_async {
            false => direct.clone(),
            true => {
                let engine = build(tools.futures)?;
                py.detach(|| Place::new(engine, isolation, template))?
            }
        };
        Ok(CoreEngine { direct, futures, external: Arc::new(tools.external), has_async_tools: tools.has_async })
    }

    /// Runs a program to its end on this thread.
    fn run(&self, py: Python<'_>, source: &str, options: &Bound<'_, PyDict>) -> PyResult<Outcome> {
        let Options { input, cancel, domain } = Options::read(options)?;
        let interrupt = Interrupt::new(cancel);
        let outcome = detached(py, || interrupt.during(|| self.direct.eval(source, input, domain.as_deref())))?;
        match interrupt.take() {
            Some(error) => Err(error),
            None => Ok(Outcome::new(outcome?, source.into())),
        }
    }

    /// Begins a run that an event loop drives. `number` names it in `wakeups`.
    fn begin(
        &self,
        py: Python<'_>,
        source: &str,
        options: &Bound<'_, PyDict>,
        wakeups: &Bound<'_, Wakeups>,
        number: u64,
    ) -> PyResult<AsyncRun> {
        let Options { input, cancel, domain } = Options::read(options)?;
        let future = detached(py, || self.futures.begin(source, input, domain.as_deref()))??;
        Ok(AsyncRun::new(future, cancel, wakeups.get().hub(), number, source.into()))
    }

    /// Starts a run that may suspend. Returns an outcome, or the record of the suspended run.
    #[pyo3(signature = (source, options, recorder=None))]
    fn start(
        &self,
        py: Python<'_>,
        source: &str,
        options: &Bound<'_, PyDict>,
        recorder: Option<Py<PyAny>>,
    ) -> PyResult<Progressed> {
        let Options { input, cancel, .. } = Options::read(options)?;
        let recording = crate::record::recording(recorder, &cancel).build();
        let interrupt = Interrupt::new(cancel);
        let input = input.record(&recording);
        let (place, external) = (&self.direct, &self.external);
        let progressed = detached(py, || interrupt.during(|| drive(place, external, source, input, &recording)))?;
        interrupt.take().map_or(progressed, Err)
    }

    /// Continues a suspended run.
    #[pyo3(signature = (record, options, recorder=None))]
    fn resume(
        &self,
        py: Python<'_>,
        record: &Bound<'_, Record>,
        options: &Bound<'_, PyDict>,
        recorder: Option<Py<PyAny>>,
    ) -> PyResult<Progressed> {
        let Options { input, cancel, .. } = Options::read(options)?;
        let record = record.get().record();
        let data_sets = options::set_names(options)?;
        let builder = crate::record::recording(recorder, &cancel);
        let (source, input, recording): (String, _, Recording) = self
            .direct
            .engine()
            .open_record_source(&record, input, &builder)
            .map_err(|error| of_resumed(&error, &data_sets))?;
        let input = input.typed_result().without_memory();
        let interrupt = Interrupt::new(cancel);
        let (place, external) = (&self.direct, &self.external);
        let progressed = detached(py, || interrupt.during(|| drive(place, external, &source, input, &recording)))?;
        interrupt.take().map_or(progressed, Err)
    }

    /// Checks a program without running it.
    fn check(&self, py: Python<'_>, source: &str, options: &Bound<'_, PyDict>) -> PyResult<Outcome> {
        let Options { input, .. } = Options::read(options)?;
        let input = input.check_only();
        let outcome = detached(py, || self.direct.eval(source, input, None))??;
        Ok(Outcome::new(outcome, source.into()))
    }

    /// Imports data once, for many runs.
    fn import_data(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<DataSet> {
        let value = to_typed(value, Form::Typed, name)?;
        let set =
            py.detach(|| self.direct.engine().import_typed(name, value)).map_err(|problem| of_problem(&problem))?;
        Ok(DataSet { name: name.to_owned(), set })
    }

    /// Returns the limits of a run that asks for some, by their names: what is above the ceiling is lowered to it.
    fn limits_for<'py>(&self, py: Python<'py>, asked: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let limits = self.direct.engine().limits_for(&Input::new().limits(options::limits(asked)?));
        let text = serde_json::to_string(&LimitsRequest::all(&limits));
        to_python(py, TypedReader::of(&text.map_err(|error| PyValueError::new_err(error.to_string()))?))
    }

    /// Returns the system prompt.
    fn prompt(&self, tenant: Option<&str>) -> String {
        match tenant {
            None => self.direct.engine().prompt(),
            Some(tenant) => self.direct.engine().prompt_for(Some(tenant)),
        }
    }

    /// Returns the signatures of the tools, by their names.
    fn signatures(&self) -> Vec<(String, String)> {
        let tools = self.direct.engine().tools().all();
        tools.map(|tool| (tool.name().to_owned(), tool.signature_text().to_owned())).collect()
    }

    /// Returns a session, or continues a saved one.
    #[pyo3(signature = (options, saved=None))]
    fn session(&self, py: Python<'_>, options: &Bound<'_, PyDict>, saved: Option<String>) -> PyResult<CoreSession> {
        let Options { input, cancel, .. } = Options::read(options)?;
        let place = &self.direct;
        py.detach(|| CoreSession::new(place, input, cancel, saved.as_deref()))
    }
}

/// Raises what an engine with this tool would raise, so that one tool of many can be left out.
#[pyfunction]
pub(crate) fn check_tool(tool: Bound<'_, PyAny>) -> PyResult<()> {
    let tools = ToolSet::read(PyList::new(tool.py(), [&tool])?.as_any())?;
    let engine = tools.direct.into_iter().fold(Engine::builder(), |builder, tool| builder.grant(tool)).build();
    engine.map(drop).map_err(|error| of_build(&error))
}

/// Returns the documentation of a function of the language, if there is one of this name.
#[pyfunction]
pub(crate) fn describe(name: &str) -> Option<String> {
    ptc_lisp::language::describe_name(name).ok()
}
