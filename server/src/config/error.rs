//! Configuration errors.

use std::fmt;

/// An error in a configuration: where it is, what is wrong, and a next step. It never contains the value of an
/// environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The file, or the name given to the text.
    pub file: String,
    /// Line and column, from 1; `None` if the error is about the whole file.
    pub at: Option<(usize, usize)>,
    /// The field, such as `tools.weather.url`; empty if the error is about the whole file.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// A next step that resolves the error.
    pub next: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}; {}", self.message, self.next)
    }
}

impl std::error::Error for ConfigError {}
