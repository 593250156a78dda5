//! Why the tools of a service cannot be had.

/// Why the tools of a service cannot be had: what of the configuration it is, what is wrong, and one next step. No value of an
/// environment variable is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}; {next}")]
#[non_exhaustive]
pub struct ToolsError {
    /// What of the configuration it is: `tools.weather`, `mcp.files`.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub next: String,
}
