//! The OpenAPI description of the service. The attributes of the handlers describe the routes.

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

/// Returns the description without routes.
pub(super) fn blank() -> OpenApi {
    let info = InfoBuilder::new()
        .title("PTC-Lisp")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Runs programs of a bounded Clojure-like language: at once, durably, or turn by turn in sessions. If the service \
             has tenants, requests need a bearer token.",
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
        // A service without tenants needs no token.
        .security(Some([SecurityRequirement::new("tenant", [""; 0]), SecurityRequirement::default()]))
        .build()
}

/// Returns the description as JSON. Catch-all path parameters are written as OpenAPI writes parameters.
pub(super) fn text(mut api: OpenApi) -> String {
    let paths = std::mem::replace(&mut api.paths, Paths::new());
    api.paths.paths = paths.paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    // Cannot fail: the description contains only names and strings.
    serde_json::to_string(&api).unwrap_or_default()
}

/// Problem responses for the given statuses.
fn problems(statuses: &[(StatusCode, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let one = |&(status, about): &(StatusCode, &str)| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemDetails::name()))).build();
        let response = ResponseBuilder::new().description(about).content("application/problem+json", content).build();
        (status.as_u16().to_string(), RefOr::T(response))
    };
    statuses.iter().map(one).collect()
}

/// The response to an internal error.
const INTERNAL: (StatusCode, &str) =
    (StatusCode::INTERNAL_SERVER_ERROR, "an internal error, which no program can cause");

/// Problem responses of routes for tenants only.
pub(crate) struct TenantResponses;

impl IntoResponses for TenantResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (StatusCode::UNAUTHORIZED, "no tenant has this token"),
            (
                StatusCode::FORBIDDEN,
                "an approver's token, a page of another origin, or, without tenants, a host other than this machine",
            ),
            INTERNAL,
        ])
    }
}

/// Problem responses of routes for tenants and approvers.
pub(crate) struct ApproverResponses;

impl IntoResponses for ApproverResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (StatusCode::UNAUTHORIZED, "no tenant or approver has this token"),
            (StatusCode::FORBIDDEN, "a page of another origin, or, without tenants, a host other than this machine"),
            INTERNAL,
        ])
    }
}

/// Problem responses of the route that answers open calls: those of [`ApproverResponses`], and the one for decisions.
pub(crate) struct DecisionResponses;

impl IntoResponses for DecisionResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut responses = ApproverResponses::responses();
        responses.extend(problems(&[(
            StatusCode::FORBIDDEN,
            "a decision that needs an approver's token, a page of another origin, or, without tenants, a host other \
             than this machine",
        )]));
        responses
    }
}

/// Problem responses of routes that use the store and run no programs.
pub(crate) struct StoreResponses;

impl IntoResponses for StoreResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[(
            StatusCode::SERVICE_UNAVAILABLE,
            "the store failed, or another process owns it; Retry-After may say when to try again",
        )])
    }
}

/// Problem responses of routes that read runs, whose states may be large.
pub(crate) struct RoomResponses;

impl IntoResponses for RoomResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[(
            StatusCode::TOO_MANY_REQUESTS,
            "unread responses of the tenant take all of max_bodies_bytes; Retry-After says when to try again",
        )])
    }
}

/// The response to a request that was carried out.
const UNSENT: (StatusCode, &str) = (
    StatusCode::INSUFFICIENT_STORAGE,
    "done, but the response cannot be sent: unread responses of the tenant take all of max_bodies_bytes",
);

/// Problem responses of routes that change a run, whose state may be large.
pub(crate) struct UnsentResponses;

impl IntoResponses for UnsentResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[UNSENT])
    }
}

/// Problem responses of routes that name a run, call, session or function.
pub(crate) struct NameResponses;

impl IntoResponses for NameResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (StatusCode::BAD_REQUEST, "a percent escape of the path is invalid"),
            (StatusCode::NOT_FOUND, "not found for this tenant"),
        ])
    }
}

/// Problem responses of routes with a query.
pub(crate) struct QueryResponses;

impl IntoResponses for QueryResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[(StatusCode::BAD_REQUEST, "the query or a header is invalid")])
    }
}

/// Problem responses of routes with a body.
pub(crate) struct BodyResponses;

impl IntoResponses for BodyResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                StatusCode::BAD_REQUEST,
                "the body, the query or a percent escape of the path is invalid; field says where",
            ),
            (StatusCode::REQUEST_TIMEOUT, "the body took longer than body_seconds"),
            (
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body is larger than max_body_bytes, or a text of a reply is larger than 1 MB",
            ),
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is compressed"),
        ])
    }
}

/// The response to a request that cannot have a slot.
const NO_SLOT: (StatusCode, &str) =
    (StatusCode::TOO_MANY_REQUESTS, "rate exceeded, queue full or no free slot; Retry-After says when to try again");

/// Problem responses of routes that take a slot and use no store.
pub(crate) struct SlotResponses;

impl IntoResponses for SlotResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[NO_SLOT, (StatusCode::SERVICE_UNAVAILABLE, "shutting down")])
    }
}

/// Problem responses of routes that run programs.
pub(crate) struct ProgramResponses;

impl IntoResponses for ProgramResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                StatusCode::UNPROCESSABLE_ENTITY,
                "the Idempotency-Key belongs to another request, the tenant's maximum of runs or sessions, or of \
                 their bytes, is reached, or a tenant with a budget opens a session",
            ),
            NO_SLOT,
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "shutting down, the store failed, or another process owns it; Retry-After may say when to try again",
            ),
            UNSENT,
        ])
    }
}
