//! The HTTP requests that tools of an API stand for.

/// The HTTP request that a tool of an API stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// `GET`, `POST` ...
    pub method: String,
    /// The path with its `{parameters}`, as the description has it.
    pub path: String,
    /// Where the arguments go.
    pub parameters: Vec<OperationParameter>,
    /// The argument that is the body, and its media type.
    pub body: Option<(String, String)>,
}

/// Where an argument of a tool goes in the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationParameter {
    /// The name of the argument.
    pub argument: String,
    /// The name in the request.
    pub name: String,
    /// `path`, `query`, `header` or `cookie`.
    pub location: String,
}
