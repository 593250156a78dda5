//! Calls of tools: how a Python function is called, what its exceptions become, and calls that an event loop serves.

use crate::closing;
use crate::interrupt::{Interrupt, Serving, ends_the_run};
use crate::values::{Form, to_python, to_typed};
use ptc_lisp::ToolError;
use ptc_lisp::value::TypedReader;
use pyo3::exceptions::PyException;
use pyo3::exceptions::asyncio::CancelledError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a call, as JSON text.
pub(crate) type Served = Result<Box<RawValue>, ToolError>;

/// The Python function of a tool.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) function: Py<PyAny>,
    /// Converts the dict of arguments to what the function's parameters are annotated with.
    pub(crate) adapt: Option<Py<PyAny>>,
    /// Converts the result to plain values.
    pub(crate) dump: Option<Py<PyAny>>,
    /// The name of the parameter that receives the call itself.
    pub(crate) call_parameter: Option<String>,
}

impl Function {
    /// Returns the arguments of the function.
    fn arguments<'py>(&self, py: Python<'py>, call: &ptc_lisp::ToolCall) -> PyResult<Bound<'py, PyDict>> {
        let mut arguments = to_python(py, TypedReader::of(call.json()))?;
        if let Some(adapt) = &self.adapt {
            arguments = adapt.bind(py).call1((arguments,))?;
        }
        let arguments = arguments.cast_into::<PyDict>()?;
        if let Some(name) = &self.call_parameter {
            arguments.set_item(name, ToolCall(call.clone()))?;
        }
        Ok(arguments)
    }

    /// Calls the function. An async function returns its coroutine.
    pub(crate) fn begin<'py>(&self, py: Python<'py>, call: &ptc_lisp::ToolCall) -> PyResult<Bound<'py, PyAny>> {
        let arguments = self.arguments(py, call)?;
        self.function.bind(py).call((), Some(&arguments))
    }

    /// Returns a result as JSON text.
    pub(crate) fn served(&self, result: &Bound<'_, PyAny>) -> PyResult<Box<RawValue>> {
        let dumped = match &self.dump {
            Some(dump) => &dump.bind(result.py()).call1((result,))?,
            None => result,
        };
        let value = to_typed(dumped, Form::Json, "its result")?;
        let text = value.json().unwrap_or("null").to_owned();
        RawValue::from_string(text).map_err(|error| PyException::new_err(error.to_string()))
    }

    /// Calls a function that is not async, on this thread.
    pub(crate) fn serve(&self, call: &ptc_lisp::ToolCall) -> Served {
        let _serving = Serving::of(call);
        let served = closing::attached(|py| {
            let result = self.begin(py, call).and_then(|result| self.served(&result));
            result.map_err(|error| tool_error(py, &self.name, call, error))
        });
        served.unwrap_or_else(|| Err(ToolError::new("Python is shutting down")))
    }

    /// Calls an async function on the event loop of the package, and waits for it on this thread.
    pub(crate) fn serve_blocking(&self, call: &ptc_lisp::ToolCall) -> Served {
        static WAIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let _serving = Serving::of(call);
        let served = closing::attached(|py| {
            let result = WAIT.import(py, "ptc_lisp._loop", "wait_for").and_then(|wait| {
                let coroutine = self.begin(py, call)?;
                let result = wait.call1((coroutine, ToolCall(call.clone())))?;
                self.served(&result)
            });
            result.map_err(|error| tool_error(py, &self.name, call, error))
        });
        served.unwrap_or_else(|| Err(ToolError::new("Python is shutting down")))
    }
}

/// Returns the error of a tool whose function raised. An exception that the tool did not mean for the program is logged.
fn tool_error(py: Python<'_>, tool: &str, call: &ptc_lisp::ToolCall, error: PyErr) -> ToolError {
    static LOG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static TOOL_ERROR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static INVALID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static INTERRUPTED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if ends_the_run(py, &error) {
        let message = format!("interrupted by {}", name_of(py, &error));
        Interrupt::raise_for(call.cancel_handle(), error);
        return ToolError::unknown(message);
    }
    let value = error.value(py);
    let is = |class: PyResult<&Bound<'_, PyAny>>| class.and_then(|class| value.is_instance(class)).unwrap_or(false);
    let text = value.str().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    if is(INTERRUPTED.import(py, "ptc_lisp._errors", "CallInterrupted")) {
        return ToolError::unknown(text);
    }
    if is(INVALID.import(py, "ptc_lisp._errors", "InvalidArguments")) {
        return ToolError::invalid_arguments(text);
    }
    if is(TOOL_ERROR.import(py, "ptc_lisp._errors", "ToolError")) {
        let code = value.getattr("code").ok();
        let number = code.as_ref().and_then(|code| code.extract::<i64>().ok());
        let name = code.as_ref().and_then(|code| code.extract::<String>().ok());
        let failed = ToolError::new(text);
        return match (number, name) {
            (Some(number), _) => failed.with_code(number),
            (None, Some(name)) => failed.with_code(name),
            (None, None) => failed,
        };
    }
    // With its traceback, which the value alone does not have.
    let whole = error.clone_ref(py).into_value(py);
    let logged = LOG.import(py, "ptc_lisp._errors", "log_raised").and_then(|log| log.call1((tool, whole)));
    if let Err(broken) = logged {
        broken.write_unraisable(py, None);
    }
    let name = name_of(py, &error);
    ToolError::new(if text.is_empty() { name } else { format!("{name}: {text}") })
}

fn name_of(py: Python<'_>, error: &PyErr) -> String {
    error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string())
}

thread_local! {
    static QUEUE: RefCell<Option<Arc<Queue>>> = const { RefCell::new(None) };
}

/// The calls of async tools that a run has started and its event loop has not seen yet.
#[derive(Default)]
pub(crate) struct Queue {
    calls: Mutex<Vec<AsyncCall>>,
    /// The numbers of calls whose results nobody needs any more.
    dropped: Mutex<Vec<u64>>,
    next: Mutex<u64>,
}

impl Queue {
    /// Polls a run, whose calls are queued here.
    pub(crate) fn during<T>(self: &Arc<Self>, poll: impl FnOnce() -> T) -> T {
        let before = QUEUE.replace(Some(self.clone()));
        let done = poll();
        QUEUE.set(before);
        done
    }

    pub(crate) fn take_calls(&self) -> Vec<AsyncCall> {
        std::mem::take(&mut *locked(&self.calls))
    }

    pub(crate) fn is_empty(&self) -> bool {
        locked(&self.calls).is_empty()
    }

    pub(crate) fn take_dropped(&self) -> Vec<u64> {
        std::mem::take(&mut *locked(&self.dropped))
    }

    /// Queues a call of the run that this thread polls. Returns the future of its result.
    pub(crate) fn submit(function: &Arc<Function>, call: ptc_lisp::ToolCall) -> Awaited {
        let slot = Arc::new(Slot::default());
        let Some(queue) = QUEUE.with_borrow(Clone::clone) else {
            locked(&slot.0).result = Some(Err(ToolError::new("it is async, and no event loop runs the program")));
            return Awaited { slot, queue: None };
        };
        let number = {
            let mut next = locked(&queue.next);
            *next += 1;
            *next
        };
        let queued = AsyncCall { number, function: function.clone(), call, slot: slot.clone() };
        locked(&queue.calls).push(queued);
        Awaited { slot, queue: Some((queue, number)) }
    }
}

#[derive(Default)]
struct Slot(Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    result: Option<Served>,
    waker: Option<Waker>,
}

/// The future result of a call.
pub(crate) struct Awaited {
    slot: Arc<Slot>,
    queue: Option<(Arc<Queue>, u64)>,
}

impl Future for Awaited {
    type Output = Served;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Served> {
        let result = {
            let mut state = locked(&self.slot.0);
            if state.result.is_none() {
                state.waker = Some(context.waker().clone());
            }
            state.result.take()
        };
        match result {
            Some(result) => {
                self.queue = None;
                Poll::Ready(result)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if let Some((queue, number)) = self.queue.take() {
            locked(&queue.dropped).push(number);
        }
    }
}

/// A call of an async tool that an event loop serves.
#[pyclass(frozen, module = "ptc_lisp._engine")]
pub(crate) struct AsyncCall {
    #[pyo3(get)]
    number: u64,
    function: Arc<Function>,
    call: ptc_lisp::ToolCall,
    slot: Arc<Slot>,
}

impl AsyncCall {
    fn end(&self, result: Served) {
        let waker = {
            let mut state = locked(&self.slot.0);
            state.result.get_or_insert(result);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

#[pymethods]
impl AsyncCall {
    /// Calls the function. Returns its coroutine.
    fn begin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.begin(py, &self.call)
    }

    /// Passes the result to the program.
    pub(crate) fn reply(&self, py: Python<'_>, result: &Bound<'_, PyAny>) {
        self.end(self.function.served(result).map_err(|error| tool_error(py, &self.function.name, &self.call, error)));
    }

    /// Passes an exception to the program as the error of the tool.
    pub(crate) fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) {
        let error = PyErr::from_value(error);
        let failed = match error.is_instance_of::<CancelledError>(py) {
            true => ToolError::new("the tool was cancelled"),
            false => tool_error(py, &self.function.name, &self.call, error),
        };
        self.end(Err(failed));
    }

    #[getter]
    fn name(&self) -> &str {
        &self.function.name
    }
}

/// A call as the function of a tool sees it, in a parameter that is annotated with `ToolCall`.
#[pyclass(frozen, module = "ptc_lisp")]
pub(crate) struct ToolCall(pub(crate) ptc_lisp::ToolCall);

#[pymethods]
impl ToolCall {
    #[getter]
    fn tool(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn place(&self) -> String {
        self.0.place().to_string()
    }

    #[getter]
    fn key(&self) -> Option<&str> {
        self.0.key()
    }

    #[getter]
    fn traceparent(&self) -> Option<&str> {
        self.0.traceparent()
    }

    #[getter]
    fn remaining(&self) -> Option<f64> {
        self.0.remaining().map(|left| left.as_secs_f64())
    }

    #[getter]
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn __repr__(&self) -> String {
        format!("<ToolCall {} at {}>", self.0.name(), self.0.place())
    }
}

/// Returns a text, if the object is one.
pub(crate) fn text_of(object: &Bound<'_, PyAny>) -> Option<String> {
    object.cast::<PyString>().ok().and_then(|text| text.to_str().ok().map(str::to_owned))
}
