//! The OpenAPI description of the service. The routes are registered with the functions that serve them, whose attributes say what
//! they take and give.

use super::problem::ProblemDetails;
use crate::runs::schemas::{ErrorReport, LedgerLine, Usage};
use axum::http::StatusCode;
use std::collections::BTreeMap;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Paths, Ref, RefOr, Response,
    ResponseBuilder,
};
use utoipa::{IntoResponses, ToSchema};

/// The description before the routes are in it.
pub(super) fn blank() -> OpenApi {
    let info = InfoBuilder::new()
        .title("PTC-Lisp")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Runs programs of a bounded Clojure-like language: at once, durably, or turn by turn in sessions. With tenants every \
             request has a bearer token.",
        ))
        .build();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    OpenApiBuilder::new()
        .info(info)
        .components(Some(
            ComponentsBuilder::new()
                .security_scheme("tenant", bearer)
                .schema_from::<ErrorReport>()
                .schema_from::<Usage>()
                .schema_from::<LedgerLine>()
                .build(),
        ))
        // A service without tenants asks for no token.
        .security(Some([SecurityRequirement::new("tenant", [""; 0]), SecurityRequirement::default()]))
        .build()
}

/// The description as JSON text. A path that takes the rest of an address is written as OpenAPI writes it.
pub(super) fn text(mut api: OpenApi) -> String {
    let paths = std::mem::replace(&mut api.paths, Paths::new());
    api.paths.paths = paths.paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    // Names and texts of our own: there is nothing in it that JSON cannot say.
    serde_json::to_string(&api).unwrap_or_default()
}

/// Problem details under these statuses.
fn problems(statuses: &[(StatusCode, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let one = |&(status, about): &(StatusCode, &str)| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemDetails::name()))).build();
        let response = ResponseBuilder::new().description(about).content("application/problem+json", content).build();
        (status.as_u16().to_string(), RefOr::T(response))
    };
    statuses.iter().map(one).collect()
}

/// How a request of a tenant may end whatever it asks for.
pub(crate) struct OfTenant;

impl IntoResponses for OfTenant {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (StatusCode::UNAUTHORIZED, "no tenant has the token"),
            (
                StatusCode::FORBIDDEN,
                "a page of another origin, or a service without tenants that is not asked for as localhost",
            ),
            (StatusCode::INTERNAL_SERVER_ERROR, "a fault of the service, which no program can cause"),
        ])
    }
}

/// How a request may end that names a thing.
pub(crate) struct OfName;

impl IntoResponses for OfName {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[(StatusCode::NOT_FOUND, "there is no such thing for this tenant")])
    }
}

/// How a request with a query may end.
pub(crate) struct OfQuery;

impl IntoResponses for OfQuery {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[(StatusCode::BAD_REQUEST, "the query does not fit")])
    }
}

/// How a request with a body may end.
pub(crate) struct OfBody;

impl IntoResponses for OfBody {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (StatusCode::BAD_REQUEST, "the body is not JSON, or does not fit; field names the place"),
            (StatusCode::REQUEST_TIMEOUT, "the body was too slow"),
            (StatusCode::PAYLOAD_TOO_LARGE, "the body has too many bytes"),
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is compressed"),
        ])
    }
}

/// How a request may end that has something run.
pub(crate) struct OfWork;

impl IntoResponses for OfWork {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                StatusCode::UNPROCESSABLE_ENTITY,
                "the Idempotency-Key names another request, or the tenant has as many as it may",
            ),
            (
                StatusCode::TOO_MANY_REQUESTS,
                "more than the rate of the tenant, or no place; Retry-After says when to try again",
            ),
            (StatusCode::SERVICE_UNAVAILABLE, "the service is going down"),
        ])
    }
}
