//! Streamable HTTP at `/mcp`.

use crate::accept::{Accepts, JsonOnly};
use crate::handler::{Handler, Mcp};
use crate::in_progress::InProgress;
use crate::message::read_message;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use lisp_server::http::{ProblemDetails, RequestTenant, Text, approvals, bounded, in_room, own_origin, single_headers};
use lisp_server::runs::Service;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, JsonRpcMessage};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The maximum number of open sessions per tenant. A session without requests ends after five minutes.
const SESSIONS: usize = 1_000;

/// One endpoint per tenant, so that sessions of one tenant do not exist for another.
#[derive(Clone)]
struct Endpoints {
    mcp: Mcp,
    by_tenant: Arc<Mutex<HashMap<String, Endpoint>>>,
}

#[derive(Clone)]
struct Endpoint {
    serves: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    in_progress: InProgress,
}

impl Mcp {
    /// Returns the routes for HTTP clients: `/mcp`, `/healthz`, `/readyz` and those of
    /// [`lisp_server::http::approvals`]. Access is controlled as in the service: by bearer tokens if there are tenants,
    /// and by `Host` and `Origin`.
    pub fn router(&self) -> Router {
        let endpoints = Endpoints { mcp: self.clone(), by_tenant: Arc::default() };
        let service = self.service.clone();
        Router::new()
            .route("/mcp", any(endpoint))
            .with_state(endpoints)
            .route_layer(from_fn_with_state(service.clone(), bounded))
            .route_layer(from_fn_with_state(service.clone(), own_origin))
            .merge(Router::new().route("/readyz", any(ready)).with_state(service.clone()))
            .route("/healthz", any(|| async { "ok\n" }))
            .fallback_service(approvals(service))
            .layer(from_fn(single_headers))
    }
}

async fn ready(State(service): State<Service>) -> Result<&'static str, ProblemDetails> {
    service.is_ready().await?;
    Ok("ready\n")
}

impl Endpoints {
    /// Returns the endpoint of a tenant.
    fn of(&self, tenant: &RequestTenant) -> Endpoint {
        let mut all = self.by_tenant.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            // A disconnected client is noticed only by its cancelled requests.
            let handler = self.mcp.handler(tenant.0.clone(), CancellationToken::new());
            let in_progress = handler.in_progress();
            let sessions = Arc::<LocalSessionManager>::default();
            // Hosts and origins were checked before.
            let config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .with_max_request_body_bytes(usize::MAX)
                .with_cancellation_token(self.mcp.ended.clone());
            let serves = StreamableHttpService::new(move || Ok(handler.for_another()), sessions.clone(), config);
            Endpoint { serves, sessions, in_progress }
        };
        all.entry(tenant.0.name.clone()).or_insert_with(made).clone()
    }
}

/// Returns whether the message opens a session.
fn opens_session(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(asked) if matches!(asked.request, ClientRequest::InitializeRequest(_)))
}

/// The response to a request whose own response finds no room.
fn unsent(message: &ClientJsonRpcMessage) -> String {
    let id = match message {
        JsonRpcMessage::Request(asked) => serde_json::to_value(&asked.id).unwrap_or_default(),
        _ => serde_json::Value::Null,
    };
    let message = "done, but the response cannot be sent: unread responses of the tenant take all of max_bodies_bytes";
    let code = ErrorCode::INTERNAL_ERROR.0;
    serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

/// A plain response with a reason.
fn refused(status: StatusCode, why: &'static str) -> Response {
    let mut response = (status, why).into_response();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST, DELETE"));
    }
    response
}

async fn endpoint(State(endpoints): State<Endpoints>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let tenant = match RequestTenant::from_request_parts(&mut parts, &endpoints.mcp.service).await {
        Ok(tenant) => tenant,
        Err(refused) => return refused.into_response(),
    };
    let endpoint = endpoints.of(&tenant);
    let mut response = match parts.method {
        Method::POST => endpoint.post(&endpoints.mcp.service, tenant, parts, body).await,
        Method::GET => endpoint.get(parts).await.map(|events| in_room(tenant, events, "")),
        Method::DELETE => endpoint.delete(parts).await,
        _ => endpoint.pass(parts, Body::empty()).await,
    };
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

impl Endpoint {
    async fn pass(&self, parts: Parts, body: Body) -> Response {
        self.serves.handle(Request::from_parts(parts, body)).await.map(Body::new)
    }

    async fn post(&self, service: &Service, tenant: RequestTenant, mut parts: Parts, body: Body) -> Response {
        let accepts = Accepts::of(&parts.headers);
        if !accepts.json && !accepts.events {
            let why = "Accept must allow application/json or text/event-stream\n";
            return refused(StatusCode::NOT_ACCEPTABLE, why);
        }
        let body = match Text::from_request(Request::from_parts(parts.clone(), body), service).await {
            Ok(text) => text,
            Err(refused) => return refused.into_response(),
        };
        let message = match read_message(body.as_bytes()) {
            Ok(message) => message,
            Err(answer) => return (StatusCode::BAD_REQUEST, axum::Json(answer)).into_response(),
        };
        let unsent = unsent(&message);
        if opens_session(&message) && self.sessions.sessions.read().await.len() >= SESSIONS {
            let why = format!("the maximum of {SESSIONS} sessions is open; delete some, or try again later\n");
            return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, HeaderValue::from_static("60"))], why)
                .into_response();
        }
        parts.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if !accepts.events {
            parts.extensions.insert(JsonOnly);
        }
        let response = self.pass(parts, Body::from(Bytes::from_owner(body))).await;
        match accepts.events {
            true => response.map(|events| in_room(tenant, events, format!("data: {unsent}\n\n"))),
            false => as_json(response).await.map(|answer| in_room(tenant, answer, unsent)),
        }
    }

    /// Opens the event stream of a session. Fails without a session, or if the client does not accept event streams.
    async fn get(&self, mut parts: Parts) -> Response {
        if !Accepts::of(&parts.headers).events || !parts.headers.contains_key(HEADER_SESSION_ID) {
            let why = "an event stream needs a session and Accept: text/event-stream; send messages with POST\n";
            return refused(StatusCode::METHOD_NOT_ALLOWED, why);
        }
        parts.headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.pass(parts, Body::empty()).await
    }

    /// Ends a session and its calls in progress.
    async fn delete(&self, parts: Parts) -> Response {
        let session = parts.headers.get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let is_known = match &session {
            Some(session) => self.sessions.sessions.read().await.contains_key(&**session),
            None => true,
        };
        if !is_known {
            return refused(StatusCode::NOT_FOUND, "unknown session\n");
        }
        let response = self.pass(parts, Body::empty()).await;
        let Some(session) = session.filter(|_| response.status().is_success()) else { return response };
        self.in_progress.end(&session);
        StatusCode::NO_CONTENT.into_response()
    }
}

/// Turns an event stream into a JSON response: its last message, which is the answer to the request.
async fn as_json(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(events) = axum::body::to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let answer = events.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:")).rev();
    let Some(answer) = answer.map(<[u8]>::trim_ascii).find(|data| !data.is_empty()) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(answer.to_vec()))
}
