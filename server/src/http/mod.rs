//! The HTTP interface: routes, access control, limits on connections, and errors.

mod about;
mod body;
mod connection;
mod descriptors;
mod guard;
mod listen;
mod openapi;
mod problem;
mod runs;
mod sessions;
#[cfg(unix)]
mod socket;
mod sse;

pub use body::{Text, in_room};
pub use guard::{RequestTenant, bounded, own_origin, single_headers};
pub use listen::{ListenError, Listener, Server};
pub use problem::ProblemDetails;

use crate::runs::Service;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use std::time::Instant;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The header with the key under which a client may repeat a request.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header with the ID of the last event that a client has received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Returns all routes of the service.
pub fn router(service: Service) -> Router {
    let api = OpenApiRouter::new()
        .routes(routes!(runs::run))
        .routes(routes!(runs::check))
        .routes(routes!(runs::submit, runs::list))
        .routes(routes!(runs::state, runs::cancel))
        .routes(routes!(runs::events))
        // A call's name may contain slashes.
        .routes(routes!(runs::reply))
        .routes(routes!(sessions::open))
        .routes(routes!(sessions::show, sessions::delete))
        .routes(routes!(sessions::turn))
        .routes(routes!(sessions::fork))
        .routes(routes!(sessions::undo))
        .routes(routes!(about::functions))
        .routes(routes!(about::function))
        .routes(routes!(about::prompt, about::prompt_with))
        .routes(routes!(about::metrics))
        .route_layer(from_fn_with_state(service.clone(), guard::own_origin));
    let (router, api) = OpenApiRouter::with_openapi(openapi::blank())
        .merge(api)
        .routes(routes!(about::alive))
        .routes(routes!(about::ready))
        .routes(routes!(about::description))
        .split_for_parts();
    let description = about::Description(openapi::text(api).into());
    let router = router.route("/", get(about::page)).merge(page_files()).layer(Extension(description));
    finished(router, service, "/openapi.json lists all routes")
}

/// Returns the routes for approvers: the tenant's runs, their open calls and the answers, with a page at `/`. The paths
/// are those of [`router`]. Every request except those for the page needs an approver's token.
///
/// `ptcl mcp` serves these to people while a model uses the same service over MCP.
pub fn approvals(service: Service) -> Router {
    let runs = OpenApiRouter::new()
        .routes(routes!(runs::list))
        .routes(routes!(runs::state, runs::cancel))
        .routes(routes!(runs::events))
        .routes(routes!(runs::reply))
        .route_layer(from_fn_with_state(service.clone(), guard::approvers_only))
        .route_layer(from_fn_with_state(service.clone(), guard::own_origin));
    let (router, _) = runs.split_for_parts();
    let router = router.route("/", get(about::page_of_approvals)).merge(page_files());
    finished(router, service, "approvers ask at / and /v1/runs, MCP clients at /mcp")
}

/// Returns the routes of a worker: `/healthz`, `/readyz` and `/metrics`, as [`router`] has them.
pub fn operation(service: Service) -> Router {
    let metrics = Router::new()
        .route("/metrics", get(about::metrics))
        .route_layer(from_fn_with_state(service.clone(), guard::own_origin));
    let router = metrics.route("/healthz", get(about::alive)).route("/readyz", get(about::ready));
    finished(router, service, "a worker has /healthz, /readyz and /metrics")
}

fn page_files() -> Router<Service> {
    Router::new().route("/page.js", get(about::script)).route("/page.css", get(about::style))
}

/// Adds what all routes share: request counting, problem documents, panic handling and the check of the Host header.
fn finished(router: Router<Service>, service: Service, more: &'static str) -> Router {
    router
        .route_layer(from_fn_with_state(service.clone(), bounded))
        .route_layer(from_fn_with_state(service.clone(), count))
        .fallback(move || async move { ProblemDetails::new(StatusCode::NOT_FOUND, format!("unknown route; {more}")) })
        .method_not_allowed_fallback(move || async move {
            ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, format!("the route has other methods; {more}"))
        })
        .layer(CatchPanicLayer::custom(|_| {
            ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "a fault of the service; its log says more")
                .into_response()
        }))
        .layer(from_fn(single_headers))
        .layer(axum::middleware::map_response(finish))
        .with_state(service)
}

/// Turns plain-text errors of libraries into problem documents, and disables caching.
async fn finish(response: Response) -> Response {
    /// The maximum bytes of such an error's text.
    const MAX: usize = 4_096;
    let is_bare = |response: &Response| {
        let kind = response.headers().get(header::CONTENT_TYPE);
        let status = response.status();
        (status.is_client_error() || status.is_server_error())
            && kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/"))
    };
    let mut response = match is_bare(&response) {
        false => response,
        true => {
            let status = response.status();
            let text = axum::body::to_bytes(response.into_body(), MAX).await.unwrap_or_default();
            ProblemDetails::new(status, String::from_utf8_lossy(&text)).into_response()
        }
    };
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Counts requests by route.
async fn count(State(service): State<Service>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let started = Instant::now();
    let response = next.run(request).await;
    service.count_request(&route, response.status().as_u16(), started.elapsed());
    response
}
