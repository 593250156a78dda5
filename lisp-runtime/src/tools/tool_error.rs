//! Errors of tools.

use crate::terms::tool_code::ToolCode;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An error of a tool. `?` and `into` convert texts and errors into it.
///
/// ```
/// use lisp_runtime::ToolError;
/// fn stock(sku: &str) -> Result<i64, ToolError> {
///     match sku {
///         "" => Err("the sku is empty".into()),
///         sku => Ok(sku.parse()?),
///     }
/// }
/// assert_eq!(stock("").unwrap_err().to_string(), "the sku is empty");
/// assert_eq!(stock("seven").unwrap_err().to_string(), "invalid digit found in string");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    pub(crate) message: String,
    pub(crate) kind: ToolErrorKind,
    pub(crate) code: Option<ToolCode>,
}

/// [`ToolError`] as a message.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolError")]
pub(super) struct ToolErrorFields {
    message: String,
    kind: ToolErrorKind,
    code: Option<ToolCode>,
}

/// The cause of a tool's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToolErrorKind {
    /// The tool failed.
    Failed,
    /// The program called the tool with wrong arguments.
    Arguments,
    /// The tool's closure panicked.
    Panic,
    /// Whether the call had its effect is not known.
    Unknown,
}

impl ToolError {
    /// Creates the error of a tool that failed. The program ends with `tool_error`.
    pub fn new(message: impl Into<String>) -> Self {
        ToolError { message: message.into(), kind: ToolErrorKind::Failed, code: None }
    }

    /// Creates the error of a tool that was called with wrong arguments. The program ends with `invalid_tool_args`.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        ToolError { message: message.into(), kind: ToolErrorKind::Arguments, code: None }
    }

    /// Creates the error of a call that was interrupted, so that it is not known whether it had its effect.
    ///
    /// The run ends with `unknown_call`, which no program catches. The record of the run keeps the call as started: before the
    /// run can resume, [`Record::settle`](crate::Record::settle) says what became of it, unless the tool only reads.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Reason, Recording, Tool, ToolError};
    /// let pay = Tool::new("pay", |_| Err::<(), _>(ToolError::unknown("the connection broke")));
    /// let engine = Engine::builder().grant(pay).build()?;
    /// let recording = Recording::new();
    /// let outcome = engine.eval("(try (tool/pay {}) (catch Exception e nil))", Input::new().record(&recording));
    /// assert_eq!(outcome.problem().map(|problem| problem.reason()), Some(Reason::UnknownCall));
    /// assert_eq!(recording.record()?.open_calls().len(), 1);
    /// assert_eq!(outcome.ledger[0].status.name(), "unknown");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unknown(message: impl Into<String>) -> Self {
        ToolError { message: message.into(), kind: ToolErrorKind::Unknown, code: None }
    }

    /// Sets the code of the error.
    ///
    /// A program that catches the error reads the code as `(:code e)`. Otherwise the details of the answer have it.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, ToolError};
    /// let find = Tool::new("find", |_| Err::<(), _>(ToolError::new("no order 7").with_code("NOT_FOUND")));
    /// let engine = Engine::builder().grant(find).build()?;
    /// let program = engine.compile("(try (tool/find {:id 7}) (catch Exception e (:code e)))")?;
    /// assert_eq!(engine.run(&program, Input::default()).json(), Some("\"NOT_FOUND\""));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_code(mut self, code: impl Into<ToolCode>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Replaces the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Returns the code.
    pub fn code(&self) -> Option<&ToolCode> {
        self.code.as_ref()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// `ToolError` does not implement [`std::error::Error`], and is not converted into a box: otherwise `?` could not convert
/// everything that a box takes into it.
impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        ToolError::new(error.into().to_string())
    }
}
