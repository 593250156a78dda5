//! Named functions in separate processes, for hosts with threads. The host's program is started again, finds the
//! function by its name and, having one thread, forks like [`run_bounded`](crate::run_bounded).

use super::bounded::run_bounded_measured;
use super::bounds::{BoundedError, Bounds, Used, decoded, failed, too_long};
use crate::guest::lockdown;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The argument that starts a process for a function.
pub(crate) const ARGUMENT: &str = "--ptc-lisp-function";
/// The time allowed for everything but the function itself: starting the process and returning the answer.
const START: Duration = Duration::from_secs(10);
/// The maximum size of an answer besides the encoded result, in bytes.
const FRONT: usize = 4_096;

type Call = Box<dyn Fn(&[u8]) -> Result<Vec<u8>, String>>;

/// A named function that [`run_function`] can call in a separate process. It is registered with
/// [`init_with`](crate::init_with).
pub struct Function {
    name: &'static str,
    call: Call,
}

impl Function {
    /// Creates a function of one argument. Argument and result are sent as [postcard](https://docs.rs/postcard).
    pub fn new<A: DeserializeOwned, R: Serialize>(name: &'static str, function: impl Fn(A) -> R + 'static) -> Self {
        let call = move |argument: &[u8]| {
            let argument = decoded(argument).map_err(|error| format!("its argument: {error}"))?;
            postcard::to_allocvec(&function(argument)).map_err(|error| format!("its result: {error}"))
        };
        Function { name, call: Box::new(call) }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What the started process is sent besides the argument.
#[derive(Debug, Serialize, Deserialize)]
struct FunctionOrder {
    name: String,
    parent: i32,
    timeout: Duration,
    memory_bytes: u64,
    result_bytes: usize,
    threads: bool,
}

type Answer = Result<(Result<Vec<u8>, String>, Used), BoundedError>;

/// Calls a function registered with [`init_with`](crate::init_with) in a separate, locked-down process.
///
/// The host can have any number of threads. A call starts the host's program and forks, which takes some milliseconds.
///
/// # Errors
/// Returns a [`BoundedError`] if the function exceeds its limits or fails, if it is not registered, or if the host's
/// `main` does not call `init_with`.
pub fn run_function<A: Serialize, R: DeserializeOwned>(
    bounds: &Bounds,
    name: &str,
    argument: &A,
) -> Result<R, BoundedError> {
    run_function_measured(bounds, name, argument).map(|(result, _)| result)
}

/// Like [`run_function`], and also returns the resources that the process of the function used.
///
/// # Errors
/// Returns the errors of [`run_function`].
pub fn run_function_measured<A: Serialize, R: DeserializeOwned>(
    bounds: &Bounds,
    name: &str,
    argument: &A,
) -> Result<(R, Used), BoundedError> {
    if let Some(error) = bounds.refused() {
        return Err(error);
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == ARGUMENT) {
        return Err(failed("refused: main must call lisp_sandbox::init_with() first"));
    }
    let argument = postcard::to_allocvec(argument).map_err(|error| failed(format!("the argument: {error}")))?;
    let order = FunctionOrder {
        name: name.to_owned(),
        parent: rustix::process::getpid().as_raw_nonzero().get(),
        timeout: bounds.timeout,
        memory_bytes: bounds.memory_bytes,
        result_bytes: bounds.result_bytes,
        threads: bounds.threads,
    };
    let answer = started(&order, &argument)?;
    let answer: Answer = postcard::from_bytes(&answer).map_err(|_| {
        failed(format!("the process of {name} gave no answer; main must call lisp_sandbox::init_with() first"))
    })?;
    let (result, used) = answer?;
    let result = result.map_err(failed)?;
    Ok((decoded(&result)?, used))
}

/// Starts the process, sends it the argument, and returns everything it writes.
fn started(order: &FunctionOrder, argument: &[u8]) -> Result<Vec<u8>, BoundedError> {
    let order_text = serde_json::to_string(order).map_err(failed)?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(ARGUMENT)
        .arg(order_text)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", path);
    }
    let mut process = command.spawn().map_err(|error| failed(format!("sandbox set-up: process: {error}")))?;
    let max = order.result_bytes.saturating_add(FRONT);
    let deadline = Instant::now().checked_add(order.timeout).and_then(|at| at.checked_add(START));
    let answer = exchange(&mut process, argument, max, deadline);
    // A process that has closed its output exits by itself. In any other case its answer is no longer wanted.
    if answer.is_err() {
        let _ = process.kill();
    }
    let ended = process.wait();
    let answer = answer.map_err(|why| match why {
        Errno::TIMEDOUT => BoundedError::Timeout(u64::try_from(order.timeout.as_millis()).unwrap_or(u64::MAX)),
        Errno::MSGSIZE => too_long(order.result_bytes),
        error => failed(format!("sandbox set-up: channel: {error}")),
    })?;
    ended.map_err(|error| failed(format!("sandbox set-up: wait: {error}")))?;
    Ok(answer)
}

/// Writes the argument and reads the answer concurrently, until the process closes its output.
fn exchange(process: &mut Child, argument: &[u8], max: usize, deadline: Option<Instant>) -> Result<Vec<u8>, Errno> {
    let (Some(input), Some(mut output)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(Errno::BADF);
    };
    let mut input = Some(input);
    for pipe in input.iter() {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    rustix::io::ioctl_fionbio(&output, true)?;
    let (mut rest, mut answer, mut buffer) = (argument, Vec::new(), [0; 16 << 10]);
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Errno::TIMEDOUT);
        }
        let left = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut fds = vec![PollFd::new(&output, PollFlags::IN)];
        fds.extend(input.iter().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        drop(fds);
        if let Some(pipe) = &mut input {
            match pipe.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if is_transient(&error) => {}
                // The process no longer reads; its answer, or the lack of one, tells why.
                Err(_) => rest = &[],
            }
            if rest.is_empty() {
                input = None;
            }
        }
        match output.read(&mut buffer) {
            Ok(0) => return Ok(answer),
            Ok(read) => answer.extend_from_slice(&buffer[..read]),
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
        if answer.len() > max {
            return Err(Errno::MSGSIZE);
        }
    }
}

fn is_transient(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}

/// Runs in the started process: calls the function, writes the answer and exits.
pub(crate) fn main(argument: &str, functions: &[Function]) -> ! {
    let answer = postcard::to_allocvec(&answered(argument, functions)).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    let written = out.write_all(&answer).and_then(|()| out.flush());
    std::process::exit(i32::from(written.is_err()))
}

fn answered(argument: &str, functions: &[Function]) -> Answer {
    let order: FunctionOrder = serde_json::from_str(argument).map_err(|error| failed(format!("the order: {error}")))?;
    // If the host ends, this process and the function's process end too.
    let parent = rustix::process::Pid::from_raw(order.parent).ok_or_else(|| failed("the parent is gone"))?;
    lockdown::die_with_parent(parent).map_err(failed)?;
    let function = functions.iter().find(|function| function.name == order.name);
    let function = function.ok_or_else(|| {
        let names: Vec<&str> = functions.iter().map(|function| function.name).collect();
        failed(format!("no function {:?} was registered; there are {names:?}", order.name))
    })?;
    let mut argument = Vec::new();
    std::io::stdin().lock().read_to_end(&mut argument).map_err(|error| failed(format!("the argument: {error}")))?;
    let mut bounds = Bounds::new(order.timeout, order.memory_bytes).result_bytes(order.result_bytes);
    bounds.threads = order.threads;
    let (result, used) = run_bounded_measured(&bounds, || (function.call)(&argument));
    result.map(|result| (result, used))
}
