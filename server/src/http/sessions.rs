//! The routes of sessions.

use super::body::{NoQuery, RUN_ENDED, Text, answer_to, json, last_of_equal, read};
use super::guard::RequestTenant;
use super::openapi::{BodyResponses, NameResponses, ProgramResponses, StoreResponses, TenantResponses};
use super::problem::ProblemDetails;
use crate::runs::schemas::{Answer, SessionRequest};
use crate::runs::{Opening, Service, SessionState, Turn};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use std::borrow::Cow;

type Answered = Result<Response, ProblemDetails>;

fn state(status: StatusCode, state: &impl serde::Serialize) -> Response {
    json(status, serde_json::to_string(state).unwrap_or_default())
}

/// Open a session
#[utoipa::path(
    post,
    path = "/v1/sessions",
    tag = "sessions",
    request_body(content = Option<SessionRequest>, content_type = "application/json"),
    responses((status = 201, description = "the new session", body = SessionState), TenantResponses, BodyResponses, ProgramResponses)
)]
pub(crate) async fn open(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    _: NoQuery,
    text: Text,
) -> Answered {
    let text = text.with(|text| match last_of_equal(&text) {
        Cow::Owned(last) => last,
        Cow::Borrowed(_) if text.trim().is_empty() => "{}".to_owned(),
        Cow::Borrowed(_) => text,
    });
    drop(read::<Opening<'_>>(&text)?);
    Ok(state(StatusCode::CREATED, &service.open_session(&tenant, text).await?))
}

/// Get the state of a session, without its definitions
#[utoipa::path(
    get,
    path = "/v1/sessions/{session_id}",
    tag = "sessions",
    params(("session_id" = String, Path, description = "the ID of the session")),
    responses((status = 200, description = "the session", body = SessionState), TenantResponses, NameResponses, StoreResponses)
)]
pub(crate) async fn show(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    Path(id): Path<String>,
) -> Answered {
    Ok(state(StatusCode::OK, &service.session_state(&tenant, &id).await?))
}

/// Delete a session
#[utoipa::path(
    delete,
    path = "/v1/sessions/{session_id}",
    tag = "sessions",
    params(("session_id" = String, Path, description = "the ID of the session")),
    responses(
        (status = 204, description = "the session is deleted"),
        (status = 409, description = "a turn is in progress", body = ProblemDetails, content_type = "application/problem+json"),
        TenantResponses, NameResponses, StoreResponses,
    )
)]
pub(crate) async fn delete(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    Path(id): Path<String>,
) -> Answered {
    service.delete_session(&tenant, &id).await?;
    Ok(Response::builder().status(StatusCode::NO_CONTENT).body(axum::body::Body::empty()).unwrap_or_default())
}

/// Run a program in a session; if the turn fails, the session does not change
#[utoipa::path(
    post,
    path = "/v1/sessions/{session_id}/turns",
    tag = "sessions",
    params(("session_id" = String, Path, description = "the ID of the session")),
    request_body(content = Turn, content_type = "application/json"),
    responses(
        (status = 200, description = "the answer", body = Answer),
        (status = 409, description = "another turn is in progress", body = ProblemDetails, content_type = "application/problem+json"),
        TenantResponses, NameResponses, BodyResponses, ProgramResponses,
    )
)]
pub(crate) async fn turn(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    Path(id): Path<String>,
    _: NoQuery,
    text: Text,
) -> Answered {
    let turn: Turn = read(&last_of_equal(&text))?;
    let (answer, slot) = service.turn_in_slot(&tenant, &id, turn).await?;
    answer_to(&tenant, RUN_ENDED, (answer.to_json(), slot)).await
}

/// Copy a session with its definitions
#[utoipa::path(
    post,
    path = "/v1/sessions/{session_id}/fork",
    tag = "sessions",
    params(("session_id" = String, Path, description = "the ID of the session")),
    responses(
        (status = 201, description = "the copy", body = SessionState),
        (status = 409, description = "a turn is in progress", body = ProblemDetails, content_type = "application/problem+json"),
        TenantResponses, NameResponses, ProgramResponses,
    )
)]
pub(crate) async fn fork(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    Path(id): Path<String>,
) -> Answered {
    Ok(state(StatusCode::CREATED, &service.fork(&tenant, &id).await?))
}

/// Undo the last successful turn
#[utoipa::path(
    post,
    path = "/v1/sessions/{session_id}/undo",
    tag = "sessions",
    params(("session_id" = String, Path, description = "the ID of the session")),
    responses(
        (status = 200, description = "the session before that turn", body = SessionState),
        (status = 409, description = "no turn to undo, or a turn is in progress", body = ProblemDetails, content_type = "application/problem+json"),
        TenantResponses, NameResponses, StoreResponses,
    )
)]
pub(crate) async fn undo(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    Path(id): Path<String>,
) -> Answered {
    Ok(state(StatusCode::OK, &service.undo(&tenant, &id).await?))
}
