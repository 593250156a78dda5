//! Why a tool failed.

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
        ToolError { message: message.into(), kind: ToolErrorKind::Failed }
    }

    /// The program called the tool wrongly; it ends with `invalid_tool_args`.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        ToolError { message: message.into(), kind: ToolErrorKind::Arguments }
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
