//! Errors of JSON Schemas.

/// Why a schema or a list of tools cannot be used.
///
/// ```
/// use lisp_runtime::Tool;
/// let error = Tool::from_json_schema("f", "", r##"{"$ref": "http://example.com/x"}"##, None).unwrap_err();
/// assert!(error.to_string().contains("http://example.com/x"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    message: String,
}

impl SchemaError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        SchemaError { message: message.into() }
    }

    /// Returns the error with a location in front.
    #[cfg(feature = "json-schema")]
    pub(crate) fn at(self, place: &str) -> Self {
        SchemaError { message: format!("{place}: {}", self.message) }
    }
}
