//! Errors as messages between the halves of a run: `#[serde(with = "error_data")]`.

use lisp_core::{Detail, Error, Reason, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

pub(crate) fn serialize<S: Serializer>(error: &Error, serializer: S) -> Result<S::Ok, S::Error> {
    ErrorData::from(error).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Error, D::Error> {
    ErrorData::deserialize(deserializer).map(Error::from)
}

/// An error as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ErrorData {
    reason: String,
    message: String,
    span: Option<(u32, u32)>,
    hint: Option<String>,
    details: Vec<(String, DetailData)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum DetailData {
    Int(i64),
    Text(String),
}

impl From<&Error> for ErrorData {
    fn from(error: &Error) -> Self {
        let figure = |(name, detail): &(Cow<'static, str>, Detail)| {
            let figure = match detail {
                Detail::Int(n) => DetailData::Int(*n),
                Detail::Text(text) => DetailData::Text(text.clone()),
                _ => return None,
            };
            Some((name.to_string(), figure))
        };
        ErrorData {
            reason: error.reason.name().to_owned(),
            message: error.message.clone(),
            span: error.span.map(|span| (span.start, span.end)),
            hint: error.hint.clone(),
            details: error.details.iter().filter_map(figure).collect(),
        }
    }
}

impl From<ErrorData> for Error {
    fn from(fault: ErrorData) -> Self {
        let mut error = Error::new(Reason::from_name(&fault.reason).unwrap_or(Reason::HostFault), "");
        // It is already cut, and a mark may follow the cut.
        error.message = fault.message;
        error.span = fault.span.map(|(start, end)| Span::new(start, end));
        error.hint = fault.hint;
        let detail = |(name, figure): (String, DetailData)| {
            let detail = match figure {
                DetailData::Int(n) => Detail::Int(n),
                DetailData::Text(text) => Detail::Text(text),
            };
            (Cow::Owned(name), detail)
        };
        error.details = fault.details.into_iter().map(detail).collect();
        error
    }
}
