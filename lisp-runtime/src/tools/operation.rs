//! HTTP requests of tools that are operations of an API.

use std::collections::BTreeMap;

/// The HTTP request that an API tool stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// The method, such as `GET` or `POST`.
    pub method: String,
    /// The path with its `{parameters}`, as in the description.
    pub path: String,
    /// Where the arguments go.
    pub parameters: Vec<OperationParameter>,
    /// The body, if the operation has one.
    pub body: Option<OperationBody>,
    /// The URL of the first server that the description names for the operation, with default values for its variables.
    pub server: Option<String>,
}

/// Where an argument goes in the request, and how it is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationParameter {
    /// The name of the argument.
    pub argument: String,
    /// The name in the request.
    pub name: String,
    /// The location: `path`, `query`, `header` or `cookie`.
    pub location: String,
    /// How arrays and objects are encoded.
    pub style: ParameterStyle,
    /// Whether each part of an array or object is encoded separately.
    pub explode: bool,
    /// Whether reserved characters in a query are left as they are.
    pub allow_reserved: bool,
}

/// The encoding of a parameter: a style of OpenAPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterStyle {
    /// Encodes as `a,b`.
    Simple,
    /// Encodes as `.a.b`.
    Label,
    /// Encodes as `;name=a,b`.
    Matrix,
    /// Encodes as `name=a&name=b`.
    #[default]
    Form,
    /// Encodes as `name=a%20b`.
    SpaceDelimited,
    /// Encodes as `name=a%7Cb`.
    PipeDelimited,
    /// Encodes as `name[key]=a`.
    DeepObject,
    /// Encodes as JSON text.
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
    /// For a form, the fields with a non-default encoding.
    pub fields: BTreeMap<String, BodyField>,
}

/// The encoding of a form field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BodyField {
    /// The style of a query parameter, if the field is encoded like one.
    pub style: Option<ParameterStyle>,
    /// With a style: whether each part of an array or object is encoded separately.
    pub explode: bool,
    /// With a style: whether reserved characters are left as they are.
    pub allow_reserved: bool,
    /// The media type of the field.
    pub media: Option<String>,
}
