//! Tools: the Python half describes them, and here they become tools of an engine.

use crate::calls::{Function, Queue};
use ptc_lisp::Tool;
use ptc_lisp::tools::Effect;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The tools of an engine.
#[derive(Default)]
pub(crate) struct ToolSet {
    /// For runs on the thread of their caller: async functions are waited for.
    pub(crate) direct: Vec<Tool>,
    /// For runs that are futures.
    pub(crate) futures: Vec<Tool>,
    pub(crate) external: BTreeSet<String>,
    pub(crate) has_async: bool,
}

/// The fields of a `ptc_lisp.Tool`.
#[derive(FromPyObject)]
struct Described {
    name: String,
    description: String,
    input_schema: Option<String>,
    output_schema: Option<String>,
    signature: Option<String>,
    effect: Option<String>,
    idempotent: bool,
    cached: bool,
    detached: bool,
    tagged: bool,
    max_calls: Option<u64>,
    concurrency: Option<usize>,
    redact: Vec<String>,
    function: Option<Py<PyAny>>,
    is_async: bool,
    adapt: Option<Py<PyAny>>,
    dump: Option<Py<PyAny>>,
    call_parameter: Option<String>,
}

impl ToolSet {
    pub(crate) fn read(tools: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut set = ToolSet::default();
        for tool in tools.try_iter()? {
            set.add(tool?.extract()?)?;
        }
        Ok(set)
    }

    fn add(&mut self, described: Described) -> PyResult<()> {
        let tool = described.tool()?;
        let Described { name, function, is_async, adapt, dump, call_parameter, .. } = described;
        let Some(function) = function else {
            self.external.insert(tool.name().to_owned());
            self.direct.push(tool.clone());
            self.futures.push(tool);
            return Ok(());
        };
        let function = Arc::new(Function { name, function, adapt, dump, call_parameter });
        if is_async {
            let direct = function.clone();
            self.direct.push(tool.clone().with_handler(move |call: &ptc_lisp::ToolCall| direct.serve_blocking(call)));
            self.futures.push(tool.with_async_handler(move |call| Queue::submit(&function, call)));
            self.has_async = true;
        } else {
            let tool = tool.with_handler(move |call: &ptc_lisp::ToolCall| function.serve(call));
            self.direct.push(tool.clone());
            self.futures.push(tool);
        }
        Ok(())
    }
}

type Change = fn(Tool) -> Tool;

impl Described {
    /// Returns the tool without a handler.
    fn tool(&self) -> PyResult<Tool> {
        let mut tool = match (&self.input_schema, &self.signature) {
            (Some(input), None) => {
                Tool::from_json_schema(&self.name, &self.description, input, self.output_schema.as_deref())
                    .map_err(|error| PyValueError::new_err(format!("tool {}: {error}", self.name)))?
            }
            (None, Some(signature)) => Tool::external(&self.name).signature(signature).about(&self.description),
            (None, None) => Tool::external(&self.name).about(&self.description),
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err(format!(
                    "tool {}: it has a signature and a JSON Schema; leave out one of them",
                    self.name
                )));
            }
        };
        tool = match self.effect.as_deref() {
            None | Some("unknown") => tool,
            Some("read") => tool.with_effect(Effect::Read),
            Some("write") => tool.with_effect(Effect::Write),
            Some(other) => {
                return Err(PyValueError::new_err(format!(
                    "tool {}: effect must be \"read\", \"write\" or \"unknown\", not {other:?}",
                    self.name
                )));
            }
        };
        let changes: [(bool, Change); 4] = [
            (self.idempotent, Tool::idempotent),
            (self.cached, Tool::cached),
            (self.detached, Tool::detached),
            (self.tagged, Tool::tagged),
        ];
        tool = changes.into_iter().filter(|(is_set, _)| *is_set).fold(tool, |tool, (_, change)| change(tool));
        tool = self.max_calls.into_iter().fold(tool, Tool::max_calls);
        tool = self.concurrency.into_iter().fold(tool, Tool::concurrency);
        Ok(if self.redact.is_empty() { tool } else { tool.redact(self.redact.clone()) })
    }
}
