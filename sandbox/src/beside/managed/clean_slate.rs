//! Programs on a clean slate: each in its own process, after set-up programs, with its output as text within a limit.
//! Nothing of it is left for the next one.

use crate::host::sandbox::Sandbox;
use lisp_runtime::outcome::{Position, ValueError};
use lisp_runtime::{Input, LimitsRequest, Outcome, Problem, Program, Reason, Verdict};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Runs programs one by one, each as if it were the first.
///
/// ```no_run
/// # use lisp_sandbox::{CleanSlate, Sandbox};
/// # fn example(sandbox: &Sandbox) -> Result<(), Box<dyn std::error::Error>> {
/// let slate = CleanSlate::new(sandbox).setup("(defn twice [x] (* 2 x))")?;
/// let run = slate.run("(println :half) (twice 21)");
/// assert_eq!((run.output.as_str(), run.value::<i64>()?), (":half\n", 42));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CleanSlate {
    sandbox: Sandbox,
    input: Input<'static>,
    output_bytes: usize,
    timeout: Duration,
}

/// The result of a program on a clean slate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SlateRun {
    /// What the program printed, one line per print. It is cut, with a mark, at the limit, and partial if the program
    /// was killed.
    pub output: String,
    /// The length of the whole output, in bytes.
    pub output_bytes: usize,
    /// The value in Clojure syntax, as `pr-str` writes it; `None` if there is no value.
    pub text: Option<String>,
    /// Why there is no value.
    pub failure: Option<SlateFailure>,
    /// The complete outcome of the run.
    pub outcome: Outcome,
}

/// The ways in which a program on a clean slate can fail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlateFailure {
    /// It took too long.
    #[error("timeout")]
    Timeout,
    /// Its process died.
    #[error("connection lost: {0}")]
    ConnectionLost(String),
    /// It ended with an error, or with `(fail v)`.
    #[error("{kind}: {reason}")]
    Error {
        /// The stable name of the error; `fail` for `(fail v)`.
        kind: String,
        /// The message of the error.
        reason: String,
        /// Where it happened, followed by the calls that led there, innermost first.
        trace: Vec<String>,
    },
}

impl CleanSlate {
    /// The default limit of the output, in bytes.
    pub const OUTPUT_BYTES: usize = 50_000;
    /// The default time limit of a program. The engine's limit applies too.
    pub const TIMEOUT: Duration = Duration::from_secs(60);

    /// Creates a clean slate whose programs have the sandbox's tools and no data.
    pub fn new(sandbox: &Sandbox) -> Self {
        CleanSlate {
            sandbox: sandbox.clone(),
            input: Input::new(),
            output_bytes: Self::OUTPUT_BYTES,
            timeout: Self::TIMEOUT,
        }
    }

    /// Adds a program that runs before each program; its output is not included. Can be called several times.
    ///
    /// # Errors
    /// Returns an error if the program cannot be read or analyzed.
    pub fn setup(mut self, source: &str) -> Result<Self, Box<lisp_runtime::Problem>> {
        let program: Program = self.sandbox.engine().compile(source)?;
        self.input = self.input.setup(&program);
        Ok(self)
    }

    /// Sets the maximum number of bytes of output that are kept.
    #[must_use]
    pub fn output_bytes(mut self, bytes: usize) -> Self {
        self.output_bytes = bytes;
        self
    }

    /// Sets the time limit of a program, including its set-up programs.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs one program.
    pub fn run(&self, source: &str) -> SlateRun {
        let mut limits = LimitsRequest::default();
        limits.timeout_ms = Some(u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX));
        let outcome = self.sandbox.eval(source, &self.input.clone().limits(limits));
        let mut output: String = outcome.prints.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let output_bytes = output.len();
        cut(&mut output, self.output_bytes);
        let text = outcome.is_success().then(|| outcome.text().unwrap_or_default().to_owned());
        SlateRun { output, output_bytes, text, failure: failure(&outcome), outcome }
    }
}

impl SlateRun {
    /// Returns the value of the last expression.
    ///
    /// # Errors
    /// Returns an error if the run failed or the value does not have this type.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        self.outcome.value()
    }
}

/// Cuts a text between two characters, with a mark.
fn cut(text: &mut String, bytes: usize) {
    if text.len() <= bytes {
        return;
    }
    let all = text.len();
    let end = text.floor_char_boundary(bytes);
    text.truncate(end);
    text.push_str(&format!("\n... ({end} of {all} bytes)"));
}

fn failure(outcome: &Outcome) -> Option<SlateFailure> {
    let Some(problem) = outcome.problem() else {
        let failed = !outcome.is_success();
        return failed.then(|| SlateFailure::Error {
            kind: "fail".to_owned(),
            reason: outcome.text().unwrap_or_default().to_owned(),
            trace: Vec::new(),
        });
    };
    match (outcome.verdict(), problem.reason()) {
        (Verdict::Timeout, _) => Some(SlateFailure::Timeout),
        (_, Reason::HostFault) => Some(SlateFailure::ConnectionLost(problem.error.message.clone())),
        _ => Some(SlateFailure::Error {
            kind: problem.reason().name().to_owned(),
            reason: problem.error.message.clone(),
            trace: trace(problem),
        }),
    }
}

fn trace(problem: &Problem) -> Vec<String> {
    let place = |setup: Option<usize>, at: &Position| {
        let text = setup.map_or_else(String::new, |setup| format!("set-up program {}, ", setup + 1));
        format!("{text}line {}, column {}", at.line, at.column)
    };
    let calls = problem.calls.iter().map(|call| {
        let function = call.function.as_deref().unwrap_or("a function");
        format!("{function} was called at {}", place(call.setup, &call.position))
    });
    problem.position.iter().map(|at| place(problem.setup, at)).chain(calls).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_cut_between_characters() {
        let mut text = "äöü".to_owned();
        cut(&mut text, 3);
        assert_eq!(text, "ä\n... (2 of 6 bytes)");
        let mut text = "abc".to_owned();
        cut(&mut text, 3);
        assert_eq!(text, "abc");
    }
}
