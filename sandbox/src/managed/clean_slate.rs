//! A clean slate for each program: a process of its own, set-up programs first, output as text within a limit, and nothing
//! that stays.

use crate::host::sandbox::Sandbox;
use lisp_runtime::{Input, LimitsRequest, Outcome, Position, Problem, Program, Reason, ValueError, Verdict};
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
    /// What it printed, a line each, cut with a mark when it is longer than the limit; partial when the program was ended.
    pub output: String,
    /// The length of the whole output in bytes.
    pub output_bytes: usize,
    /// The value in Clojure syntax, as `pr-str` writes it; absent when there is none.
    pub text: Option<String>,
    /// Why there is no value.
    pub failure: Option<SlateFailure>,
    /// All of it.
    pub outcome: Outcome,
}

/// How a program on a clean slate can fail.
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
        /// What was wrong.
        reason: String,
        /// Where it happened, then the calls on the way to it, innermost first.
        trace: Vec<String>,
    },
}

impl CleanSlate {
    /// Longer output is cut here, unless the host says otherwise.
    pub const OUTPUT_BYTES: usize = 50_000;
    /// A program may take so long, unless the host says otherwise; the engine's ceiling holds besides.
    pub const TIMEOUT: Duration = Duration::from_secs(60);

    /// Programs with nothing but the sandbox's tools.
    pub fn new(sandbox: &Sandbox) -> Self {
        CleanSlate {
            sandbox: sandbox.clone(),
            input: Input::new(),
            output_bytes: Self::OUTPUT_BYTES,
            timeout: Self::TIMEOUT,
        }
    }

    /// A program that runs before each; its output is not included. There may be several.
    ///
    /// # Errors
    /// It cannot be read or analyzed.
    pub fn setup(mut self, source: &str) -> Result<Self, Box<lisp_runtime::Problem>> {
        let program: Program = self.sandbox.engine().compile(source)?;
        self.input = self.input.setup(&program);
        Ok(self)
    }

    /// The most bytes of output that are kept.
    #[must_use]
    pub fn output_bytes(mut self, bytes: usize) -> Self {
        self.output_bytes = bytes;
        self
    }

    /// How long a program may take, set-up programs included.
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
    /// The value of the last expression.
    ///
    /// # Errors
    /// The run failed, or the value is not of the type.
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
