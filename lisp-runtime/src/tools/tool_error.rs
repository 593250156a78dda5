//! Why a tool failed.

use crate::terms::tool_code::ToolCode;
use std::fmt;

/// Why a tool failed. Any error becomes one by `?`, and by `?` it becomes a boxed error.
///
/// ```
/// use lisp_runtime::ToolError;
/// fn check() -> Result<(), ToolError> {
///     "seven".parse::<i64>()?;
///     Ok(())
/// }
/// fn main_of_host() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///     Ok(check()?)
/// }
/// assert_eq!(main_of_host().unwrap_err().to_string(), "invalid digit found in string");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    pub(crate) message: String,
    pub(crate) kind: ToolErrorKind,
    pub(crate) code: Option<ToolCode>,
}

/// Whose fault it is that a tool failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolErrorKind {
    /// The tool says that it failed.
    Failed,
    /// The program called it wrongly.
    Arguments,
    /// Its closure panicked.
    Panic,
}

impl ToolError {
    /// The tool failed; the program ends with `tool_error`.
    pub fn new(message: impl Into<String>) -> Self {
        ToolError { message: message.into(), kind: ToolErrorKind::Failed, code: None }
    }

    /// The program called the tool wrongly; it ends with `invalid_tool_args`.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        ToolError { message: message.into(), kind: ToolErrorKind::Arguments, code: None }
    }

    /// Sets the code, which the program reads as `(:code e)` of the error that it catches, and which is in the details of the answer
    /// when it catches none.
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

/// It is no [`std::error::Error`] itself, or not every error could become one by `?`; boxed it is one.
impl From<ToolError> for Box<dyn std::error::Error + Send + Sync> {
    fn from(error: ToolError) -> Self {
        Box::new(ErrorOfTool(error))
    }
}

impl From<ToolError> for Box<dyn std::error::Error> {
    fn from(error: ToolError) -> Self {
        Box::new(ErrorOfTool(error))
    }
}

/// A [`ToolError`] in a box.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ErrorOfTool(ToolError);

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        ToolError::new(error.to_string())
    }
}
