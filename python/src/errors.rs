//! Exceptions of misuse. What a program does wrong is never an exception: it is in the outcome.

use ptc_lisp::record::RecordError;
use ptc_lisp::{BuildError, Problem};
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

pub(crate) fn of_build(error: &BuildError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn of_record(error: &RecordError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn of_problem(problem: &Problem) -> PyErr {
    let hint = problem.error.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    PyValueError::new_err(format!("{problem}{hint}"))
}
