//! The options of a run: what the Python half passes as a dict becomes the input of a run.

use crate::closing;
use crate::engine::DataSet;
use crate::interrupt::{Interrupt, ends_the_run};
use crate::values::{Form, to_typed};
use ptc_lisp::{Cancel, Check, Input, Keys, LimitsRequest};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns limits, by their names.
pub(crate) fn limits(all: &Bound<'_, PyDict>) -> PyResult<LimitsRequest> {
    let mut asked = LimitsRequest::default();
    for (name, value) in all.iter() {
        let name: String = name.extract()?;
        asked.set(&name, value.extract()?).map_err(|error| PyValueError::new_err(error.to_string()))?;
    }
    Ok(asked)
}

pub(crate) fn check(name: &str) -> PyResult<Check> {
    match name {
        "off" => Ok(Check::Off),
        "warn" => Ok(Check::Warn),
        "refuse" => Ok(Check::Refuse),
        other => Err(PyValueError::new_err(format!("check must be \"off\", \"warn\" or \"refuse\", not {other:?}"))),
    }
}

pub(crate) fn keys(name: &str) -> PyResult<Keys> {
    match name {
        "strings" => Ok(Keys::Strings),
        "keywords" => Ok(Keys::Keywords),
        other => Err(PyValueError::new_err(format!("json_keys must be \"strings\" or \"keywords\", not {other:?}"))),
    }
}

/// The options of a run. All are optional.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) input: Input<'static>,
    pub(crate) cancel: Cancel,
    /// The group of runs that share processes.
    pub(crate) domain: Option<String>,
}

impl Options {
    /// Reads the options that a run is given.
    pub(crate) fn read(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let given = options.get_item("cancellation")?;
        let cancel = match &given {
            Some(given) => given.cast::<Cancellation>()?.get().0.clone(),
            None => Cancel::new(),
        };
        let mut domain = None;
        let mut input = Input::new().cancel_with(&cancel).typed_result().heartbeat(Interrupt::look_here);
        for (name, value) in options.iter() {
            if value.is_none() {
                continue;
            }
            let name: String = name.extract()?;
            input = match name.as_str() {
                "data" => data(input, &value.cast_into::<PyDict>()?)?,
                "data_sets" => sets(input, &value)?,
                "limits" => input.limits(limits(&value.cast_into::<PyDict>()?)?),
                "tenant" => input.tenant(&value.extract::<String>()?),
                "run_id" => input.run_id(value.extract::<String>()?),
                "traceparent" => input.traceparent(&value.extract::<String>()?),
                "signature" => input.signature(value.extract::<String>()?),
                "strict_data" => input.strict_data(value.extract()?),
                "memory" => input.memory(value.extract::<String>()?),
                "now_ms" => input.now_ms(value.extract()?),
                "check" => input.check(check(&value.extract::<String>()?)?),
                "domain" => {
                    domain = Some(value.extract()?);
                    input
                }
                // Read above.
                "cancellation" => input,
                "on_print" => on_print(input, value.unbind(), cancel.clone()),
                "setup" => {
                    value.extract::<Vec<String>>()?.into_iter().fold(input, |input, source| input.setup_source(source))
                }
                other => return Err(PyValueError::new_err(format!("unknown option {other}"))),
            };
        }
        Ok(Options { input: input.without_memory_unless(options)?, cancel, domain })
    }
}

/// Ends a run that another thread waits for.
#[pyclass(frozen, module = "ptc_lisp._engine")]
pub(crate) struct Cancellation(Cancel);

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Self {
        Cancellation(Cancel::new())
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

trait Memory: Sized {
    fn without_memory_unless(self, options: &Bound<'_, PyDict>) -> PyResult<Self>;
}

impl Memory for Input<'static> {
    /// Definitions are only returned to who gave some: writing them takes time.
    fn without_memory_unless(self, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let is_given = options.get_item("memory")?.is_some_and(|memory| !memory.is_none());
        Ok(if is_given { self } else { self.without_memory() })
    }
}

fn data(mut input: Input<'static>, all: &Bound<'_, PyDict>) -> PyResult<Input<'static>> {
    for (name, value) in all.iter() {
        let name: String =
            name.extract().map_err(|_| PyValueError::new_err("data: names are strings; pass {\"name\": value}"))?;
        let value = to_typed(&value, Form::Typed, &format!("data[{name:?}]"))?;
        input = input.typed(name, value);
    }
    Ok(input)
}

fn sets(mut input: Input<'static>, all: &Bound<'_, PyAny>) -> PyResult<Input<'static>> {
    for set in all.try_iter().map_err(|_| no_set(all))? {
        let set = set?;
        input = input.data_set(set.cast::<DataSet>().map_err(|_| no_set(&set))?.get().set());
    }
    Ok(input)
}

fn no_set(given: &Bound<'_, PyAny>) -> PyErr {
    let kind = given.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "data_sets is a list of what engine.import_data(name, value) returned; it has {kind}; pass other values as data={{name: value}}"
    ))
}

/// Returns the names of the data sets of a run.
pub(crate) fn set_names(options: &Bound<'_, PyDict>) -> PyResult<Vec<String>> {
    let Some(all) = options.get_item("data_sets")? else { return Ok(Vec::new()) };
    all.try_iter()?.map(|set| Ok(set?.cast::<DataSet>()?.get().name().to_owned())).collect()
}

/// Calls a Python function with each printed line. If it raises, the exception is reported as one that cannot be raised,
/// unless it ends the run.
fn on_print(input: Input<'static>, hook: Py<PyAny>, cancel: Cancel) -> Input<'static> {
    input.on_print(move |line| {
        closing::attached(|py| match hook.bind(py).call1((line,)) {
            Err(error) if ends_the_run(py, &error) => Interrupt::raise_for(&cancel, error),
            Err(error) => error.write_unraisable(py, Some(hook.bind(py))),
            Ok(_) => {}
        });
    })
}
