//! Policies: a Python function that decides on each tool call.

use crate::calls::text_of;
use crate::closing;
use crate::interrupt::{Interrupt, ends_the_run};
use crate::values::{Form, to_python, to_typed};
use ptc_lisp::tools::{self as parts, PolicyDecision};
use ptc_lisp::value::TypedReader;
use pyo3::prelude::*;

/// A call that a policy decides on.
#[pyclass(frozen, module = "ptc_lisp")]
pub(crate) struct AskedCall {
    #[pyo3(get)]
    tool: String,
    json: String,
    #[pyo3(get)]
    effect: &'static str,
    #[pyo3(get)]
    place: String,
    #[pyo3(get)]
    tenant: Option<String>,
    #[pyo3(get)]
    calls: u64,
    #[pyo3(get)]
    calls_of_tool: u64,
}

#[pymethods]
impl AskedCall {
    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, TypedReader::of(&self.json))
    }

    fn __repr__(&self) -> String {
        format!("<AskedCall {} {}>", self.tool, self.effect)
    }
}

impl AskedCall {
    fn of(call: &parts::AskedCall<'_>) -> Self {
        AskedCall {
            tool: call.name().to_owned(),
            json: call.json().to_owned(),
            effect: match call.effect() {
                parts::Effect::Read => "read",
                parts::Effect::Write => "write",
                _ => "unknown",
            },
            place: call.place().to_string(),
            tenant: call.tenant().map(str::to_owned),
            calls: call.calls(),
            calls_of_tool: call.calls_of_tool(),
        }
    }
}

/// Asks a Python function. If it raises or returns something else, the call is denied.
pub(crate) fn decide(policy: &Py<PyAny>, call: &parts::AskedCall<'_>) -> PolicyDecision {
    let denied = |why: String| PolicyDecision::Deny(why);
    let decided = closing::attached(|py| {
        let decision = policy.bind(py).call1((AskedCall::of(call),));
        decision.and_then(|decision| decision_of(&decision)).unwrap_or_else(|error| {
            let name = error.get_type(py).name();
            let name = name.map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
            if ends_the_run(py, &error) {
                Interrupt::raise_here(error);
            }
            denied(format!("the host's policy raised {name}"))
        })
    });
    decided.unwrap_or_else(|| denied("Python is shutting down".to_owned()))
}

fn decision_of(decision: &Bound<'_, PyAny>) -> PyResult<PolicyDecision> {
    let kind: String = decision.getattr("kind")?.extract()?;
    let text = text_of(&decision.getattr("text")?).unwrap_or_default();
    Ok(match kind.as_str() {
        "allow" => {
            let arguments = decision.getattr("arguments")?;
            match arguments.is_none() {
                true => PolicyDecision::Allow,
                false => {
                    let value = to_typed(&arguments, Form::Json, "arguments")?;
                    PolicyDecision::AllowWith(value.json().unwrap_or("{}").to_owned())
                }
            }
        }
        "ask" => PolicyDecision::Ask(text),
        _ => PolicyDecision::Deny(text),
    })
}
