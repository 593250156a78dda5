//! Why the tools of a service cannot be had.

use crate::config::Config;
use std::fmt;

/// Why the tools of a service cannot be had: what of the configuration it is and where, what is wrong, and one next step. No value of
/// an environment variable is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolsError {
    /// The file of the configuration, or the name that its text was given; empty for one that has no text.
    pub file: String,
    /// Line and column, from 1.
    pub position: Option<(usize, usize)>,
    /// What of the configuration it is: `tools.weather`, `mcp.files`.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub next: String,
    pub(super) path: Vec<String>,
}

impl ToolsError {
    /// One at a field, of which nothing is said yet.
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

    /// With the place that its field has in the configuration.
    pub(super) fn placed(self, config: &Config) -> Self {
        let Some((file, position)) = config.place_of(&self.path) else { return self };
        ToolsError { file, position, ..self }
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
