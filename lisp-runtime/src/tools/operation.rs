//! The HTTP requests that tools of an API stand for.

use std::collections::BTreeMap;

/// The HTTP request that a tool of an API stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// `GET`, `POST` ...
    pub method: String,
    /// The path with its `{parameters}`, as the description has it.
    pub path: String,
    /// Where the arguments go.
    pub parameters: Vec<OperationParameter>,
    /// The argument that is the body, and how it is written.
    pub body: Option<OperationBody>,
    /// The address of the first server that the description names for it, with its variables as they are by default.
    pub server: Option<String>,
}

/// Where an argument of a tool goes in the request, and how it is written there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationParameter {
    /// The name of the argument.
    pub argument: String,
    /// The name in the request.
    pub name: String,
    /// `path`, `query`, `header` or `cookie`.
    pub location: String,
    /// How lists and maps are written.
    pub style: ParameterStyle,
    /// Each part of a list or map is written on its own.
    pub explode: bool,
    /// Reserved characters of a query stay as they are.
    pub allow_reserved: bool,
}

/// How a parameter is written: the styles of OpenAPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterStyle {
    /// `a,b`
    Simple,
    /// `.a.b`
    Label,
    /// `;name=a,b`
    Matrix,
    /// `name=a&name=b`
    #[default]
    Form,
    /// `name=a%20b`
    SpaceDelimited,
    /// `name=a%7Cb`
    PipeDelimited,
    /// `name[key]=a`
    DeepObject,
    /// JSON text
    Json,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationBody {
    /// The name of the argument.
    pub argument: String,
    /// The media type.
    pub media: String,
    /// Of a form, the fields that are not written as usual.
    pub fields: BTreeMap<String, BodyField>,
}

/// How a field of a form is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BodyField {
    /// As a parameter of a query of this style.
    pub style: Option<ParameterStyle>,
    /// With a style: each part of a list or map is written on its own.
    pub explode: bool,
    /// With a style: reserved characters stay as they are.
    pub allow_reserved: bool,
    /// Its media type.
    pub media: Option<String>,
}
