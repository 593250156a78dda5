//! Exceptions of misuse. What a program does wrong is never an exception: it is in the outcome.

use crate::wording::in_python;
use ptc_lisp::record::RecordError;
use ptc_lisp::{BuildError, Problem};
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

pub(crate) fn of_build(error: &BuildError) -> PyErr {
    PyValueError::new_err(in_python(&error.to_string()).into_owned())
}

pub(crate) fn of_record(error: &RecordError) -> PyErr {
    PyValueError::new_err(in_python(&error.to_string()).into_owned())
}

/// The exception for a record that cannot be resumed with these data sets.
pub(crate) fn of_resumed(error: &RecordError, data_sets: &[String]) -> PyErr {
    let RecordError::DataSet(_) = error else { return of_record(error) };
    let given = match data_sets {
        [] => "there are none".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    PyValueError::new_err(format!(
        "the run had a data set that was not given again, or that has changed since; pass all data sets of the run, as in \
         engine.resume(record, data_sets=[engine.import_data(name, value)]); {given}"
    ))
}

pub(crate) fn of_problem(problem: &Problem) -> PyErr {
    let hint = problem.error.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    PyValueError::new_err(in_python(&format!("{problem}{hint}")).into_owned())
}
