//! Streamable HTTP at `/mcp`.

use crate::handler::{Handler, Mcp};
use crate::message::read_message;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use lisp_server::http::{Asking, Text, own_origin};
use lisp_server::runs::Service;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The most sessions that clients of one tenant have open. A session without requests ends after five minutes.
const SESSIONS: usize = 1_000;

/// The doors of the tenants: a session of one is nothing to another.
#[derive(Clone)]
struct Doors {
    mcp: Mcp,
    by_tenant: Arc<Mutex<HashMap<String, Endpoint>>>,
}

#[derive(Clone)]
struct Endpoint {
    serves: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
}

impl Mcp {
    /// The routes for HTTP clients: `/mcp`, `/healthz` and `/readyz`. Who may ask is decided as the service's own routes do: by
    /// bearer tokens when there are tenants, and by `Host` and `Origin`.
    pub fn router(&self) -> Router {
        let doors = Doors { mcp: self.clone(), by_tenant: Arc::default() };
        let service = self.service.clone();
        Router::new()
            .route("/mcp", any(endpoint))
            .with_state(doors)
            .route_layer(from_fn_with_state(service.clone(), own_origin))
            .merge(Router::new().route("/readyz", any(ready)).with_state(service))
            .route("/healthz", any(|| async { "ok\n" }))
            .fallback(|| async { (StatusCode::NOT_FOUND, "the MCP endpoint is at /mcp\n") })
    }
}

async fn ready(State(service): State<Service>) -> (StatusCode, &'static str) {
    match service.is_draining() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "going down\n"),
        false => (StatusCode::OK, "ready\n"),
    }
}

impl Doors {
    /// The endpoint of a tenant.
    fn of(&self, asking: &Asking) -> Endpoint {
        let mut all = self.by_tenant.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            // Whoever leaves cancels its requests; there is no other sign of it here.
            let handler = self.mcp.handler(asking.0.clone(), CancellationToken::new());
            let sessions = Arc::<LocalSessionManager>::default();
            // Hosts and origins were looked at before.
            let config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .with_max_request_body_bytes(usize::MAX)
                .with_cancellation_token(self.mcp.ended.clone());
            let serves = StreamableHttpService::new(move || Ok(handler.for_another()), sessions.clone(), config);
            Endpoint { serves, sessions }
        };
        all.entry(asking.0.name.clone()).or_insert_with(made).clone()
    }
}

/// Is it a request for a session?
fn opens_session(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(asked) if matches!(asked.request, ClientRequest::InitializeRequest(_)))
}

async fn endpoint(State(doors): State<Doors>, request: Request) -> Response {
    let service = &doors.mcp.service;
    let (mut parts, body) = request.into_parts();
    let asking = match Asking::from_request_parts(&mut parts, service).await {
        Ok(asking) => asking,
        Err(refused) => return refused.into_response(),
    };
    let body = match parts.method {
        Method::POST => match Text::from_request(Request::from_parts(parts.clone(), body), service).await {
            Ok(Text(text)) => text,
            Err(refused) => return refused.into_response(),
        },
        _ => String::new(),
    };
    let message = match parts.method {
        Method::POST => match read_message(body.as_bytes()) {
            Ok(message) => Some(message),
            Err(answer) => return (StatusCode::BAD_REQUEST, axum::Json(answer)).into_response(),
        },
        _ => None,
    };
    let endpoint = doors.of(&asking);
    if message.is_some_and(|message| opens_session(&message))
        && endpoint.sessions.sessions.read().await.len() >= SESSIONS
    {
        let why = format!("{SESSIONS} sessions are open, the most there may be; close some, or try again later\n");
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, HeaderValue::from_static("60"))], why)
            .into_response();
    }
    let response = endpoint.serves.handle(Request::from_parts(parts, Body::from(body))).await;
    let (mut parts, body) = response.into_parts();
    parts.headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    Response::from_parts(parts, Body::new(body))
}
