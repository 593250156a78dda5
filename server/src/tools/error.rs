//! Errors of the configured tools.

use crate::config::{Config, FieldPlace};
use std::fmt;

/// A configured tool cannot be used: where it is in the configuration, what is wrong, and a next step. Contains no
/// value of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolsError {
    /// The file of the configuration, or the name given to its text. Empty if the configuration was not read from text.
    pub file: String,
    /// Line and column, from 1.
    pub position: Option<(usize, usize)>,
    /// The part of the configuration: `tools.weather`, `mcp.files`.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// A next step that resolves the error.
    pub next: String,
    pub(super) path: Vec<String>,
}

impl ToolsError {
    /// An error at a field, with empty messages.
    pub(super) fn at(path: &[&str]) -> Self {
        ToolsError {
            file: String::new(),
            position: None,
            field: path.join("."),
            message: String::new(),
            next: String::new(),
            path: path.iter().map(|step| (*step).to_owned()).collect(),
        }
    }

    /// Adds the position of the field in the configuration.
    pub(super) fn placed(self, config: &Config) -> Self {
        let Some(FieldPlace { file, at, field }) = config.place_of(&self.path) else { return self };
        ToolsError { file, position: at, field, ..self }
    }
}

impl fmt::Display for ToolsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            f.write_str(&self.file)?;
            if let Some((line, column)) = self.position {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}: {}; {}", self.field, self.message, self.next)
    }
}

impl std::error::Error for ToolsError {}

/// Cuts a text after a number of characters, with a mark.
pub(super) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}... (cut after {max} characters)", &text[..end]),
    }
}
