//! The native half of the Python package `ptc_lisp`: the interpreter, and how values, tools and runs cross to Python.
//! Everything that a Python function can do better is in `ptc_lisp/*.py`.

#![forbid(unsafe_code)]

mod calls;
mod closing;
mod driven;
mod engine;
mod errors;
mod interrupt;
mod options;
mod outcome;
mod policy;
mod record;
mod runs;
mod session;
mod tools;
mod values;
mod wakeups;
mod wording;

use pyo3::prelude::*;

/// The native half of the package. Use `ptc_lisp` instead.
#[pymodule(gil_used = true)]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<engine::CoreEngine>()?;
    module.add_class::<engine::DataSet>()?;
    module.add_class::<options::Cancellation>()?;
    module.add_class::<runs::AsyncRun>()?;
    module.add_class::<calls::AsyncCall>()?;
    module.add_class::<calls::ToolCall>()?;
    module.add_class::<policy::AskedCall>()?;
    module.add_class::<record::Record>()?;
    module.add_class::<record::OpenCall>()?;
    module.add_class::<session::CoreSession>()?;
    module.add_class::<wakeups::Wakeups>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<outcome::Error>()?;
    module.add_class::<outcome::Position>()?;
    module.add_class::<outcome::Usage>()?;
    module.add_class::<outcome::LedgerEntry>()?;
    module.add_class::<outcome::Warning>()?;
    module.add_function(wrap_pyfunction!(values::to_json, module)?)?;
    module.add_function(wrap_pyfunction!(values::from_json, module)?)?;
    module.add_function(wrap_pyfunction!(engine::describe, module)?)?;
    module.add_function(wrap_pyfunction!(engine::check_tool, module)?)?;
    module.add_function(wrap_pyfunction!(closing::close, module)?)?;
    module.add_function(wrap_pyfunction!(closing::forked, module)?)?;
    module.add_function(wrap_pyfunction!(wording::reworded, module)?)?;
    Ok(())
}
