//! What is wrong with a configuration, and where.

use std::fmt;

/// Why a configuration cannot be used: the place, the field, what is wrong, and one next step. No value of an environment
/// variable is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The file, or the name that the text was given.
    pub file: String,
    /// Line and column, from 1; absent when it is about the file as a whole.
    pub at: Option<(usize, usize)>,
    /// The field, such as `tools.weather.url`; empty when it is about the file as a whole.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
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
