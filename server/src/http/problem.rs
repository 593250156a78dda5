//! Errors of the service as problem details (RFC 9457).

use crate::runs::{Busy, Refused};
use crate::store::StoreError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::time::Duration;

/// A problem document (RFC 9457): why a request was not served.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct ProblemDetails {
    /// Always `about:blank`: the status says what kind of problem it is.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The name of the HTTP status.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, and a next step.
    pub detail: String,
    /// The invalid field of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    #[serde(skip)]
    retry_after: Option<Duration>,
}

/// Returns the beginning of a text that is long because what a client sent is in it: such responses take no room.
fn short(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    format!("{}... ({} bytes in all)", &text[..text.floor_char_boundary(max)], text.len())
}

impl ProblemDetails {
    /// The longest texts of a problem, in bytes.
    const DETAIL: usize = 2_000;
    const FIELD: usize = 200;

    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        ProblemDetails {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: short(detail.into(), Self::DETAIL),
            field: None,
            retry_after: None,
        }
    }

    pub(crate) fn of_field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let field = Some(field.into()).filter(|field| !matches!(field.as_str(), "" | "." | "?"));
        let field = field.map(|field| short(field, Self::FIELD));
        ProblemDetails { field, ..ProblemDetails::new(StatusCode::BAD_REQUEST, detail) }
    }
}

impl ProblemDetails {
    /// What was asked for is done, and the response to it cannot be sent. It has no `Retry-After`: a client that asks once more
    /// could have it done twice.
    pub(crate) fn unsent(done: &str, busy: &Busy) -> Self {
        let detail = format!("{done}, and there is no room for the response: {busy}");
        ProblemDetails::new(StatusCode::INSUFFICIENT_STORAGE, detail)
    }
}

impl From<Refused> for ProblemDetails {
    fn from(refused: Refused) -> Self {
        let detail = refused.to_string();
        match refused {
            Refused::NotFound(_) => ProblemDetails::new(StatusCode::NOT_FOUND, detail),
            Refused::NeedsApprover(_) => ProblemDetails::new(StatusCode::FORBIDDEN, detail),
            Refused::Conflict(_) => ProblemDetails::new(StatusCode::CONFLICT, detail),
            Refused::Invalid { field, .. } => ProblemDetails::of_field(field, detail),
            Refused::Unprocessable(_) => ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail),
            Refused::Busy(busy) => ProblemDetails {
                retry_after: Some(busy.retry_after),
                ..ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, detail)
            },
            Refused::Draining => ProblemDetails {
                retry_after: Some(Duration::from_secs(5)),
                ..ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            },
            // A client that asks once more could have calls made twice.
            Refused::CutOff => ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, detail),
            Refused::Fault(error) => {
                tracing::error!(error, "a fault of the service");
                ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "a fault of the service; its log says more")
            }
            Refused::TooLarge(_) => ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, detail),
            Refused::Store(error @ StoreError::Unavailable(_)) => {
                tracing::warn!(%error, "a request is not served");
                let detail = "the store is not available; try again later; the log of the service says more";
                ProblemDetails {
                    retry_after: Some(Duration::from_secs(5)),
                    ..ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                }
            }
            Refused::Store(error) => {
                tracing::error!(%error, "the store failed");
                let detail = "the store failed; try again later; the log of the service says more";
                ProblemDetails {
                    retry_after: Some(Duration::from_secs(5)),
                    ..ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                }
            }
        }
    }
}

impl IntoResponse for ProblemDetails {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0)).max(1);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The rest of the request was not read, so the connection cannot carry another one.
        if matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
