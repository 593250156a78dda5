//! Access control: tokens, origins and the Host header.

use super::connection::OfConnection;
use super::problem::ProblemDetails;
use super::{IDEMPOTENCY_KEY, LAST_EVENT_ID};
use crate::config::Tenant;
use crate::runs::{Refused, Service, TenantState};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The tenant of a request: the one its token belongs to, or the only one of a service without tenants.
#[derive(Debug)]
pub struct RequestTenant(pub Arc<TenantState>);

impl FromRequestParts<Service> for RequestTenant {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, ProblemDetails> {
        let config = service.config();
        if config.anonymous().is_some() {
            return config
                .anonymous()
                .and_then(|tenant| service.tenant(&tenant.name))
                .map(RequestTenant)
                .ok_or_else(|| unauthorized("there is no tenant"));
        }
        let token =
            bearer(&parts.headers).ok_or_else(|| unauthorized("send the header Authorization: Bearer TOKEN"))?;
        let tenant = config.tenant_of(token).and_then(|tenant| service.tenant(&tenant.name));
        tenant.map(RequestTenant).ok_or_else(|| match config.approver_of(token) {
            None => unauthorized("no tenant has this token"),
            Some(_) => ProblemDetails::new(
                StatusCode::FORBIDDEN,
                "this is the token of an approver, which is for runs and their calls; send the tenant's own",
            ),
        })
    }
}

/// A caller that may see a tenant's runs and answer their calls: the tenant itself or an approver.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: Arc<TenantState>,
    is_approver: bool,
}

impl FromRequestParts<Service> for Caller {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, ProblemDetails> {
        let approver = bearer(&parts.headers).and_then(|token| service.config().approver_of(token));
        if let Some(tenant) = approver.and_then(|tenant| service.tenant(&tenant.name)) {
            return Ok(Caller { tenant, is_approver: true });
        }
        let RequestTenant(tenant) = RequestTenant::from_request_parts(parts, service).await?;
        Ok(Caller { tenant, is_approver: false })
    }
}

impl Caller {
    /// Returns whether the caller may decide on calls: it is an approver, or the tenant has no approvers.
    pub(crate) fn may_decide(&self, service: &Service) -> bool {
        let tenant = service.config().tenant_named(&self.tenant.name);
        self.is_approver || !tenant.is_some_and(Tenant::has_approvers)
    }
}

/// Counts a request as in progress until its response has ended. Rejects it if its tenant has too many.
pub async fn bounded(State(service): State<Service>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    // A request of nobody is rejected by its route, or needs no tenant.
    let Ok(caller) = Caller::from_request_parts(&mut parts, &service).await else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    let in_progress = match caller.tenant.begin_request(caller.is_approver) {
        Ok(in_progress) => in_progress,
        Err(busy) => return ProblemDetails::from(Refused::Busy(busy)).into_response(),
    };
    parts.extensions.insert(caller.tenant.clone());
    let mut in_progress = Some(in_progress);
    if let Some(connection) = parts.extensions.get::<OfConnection>() {
        connection.is_of(in_progress.take());
    }
    let response = next.run(Request::from_parts(parts, body)).await;
    // Without a connection, it ends here.
    drop(in_progress);
    response
}

/// Rejects every request without an approver's token.
pub(super) async fn approvers_only(State(service): State<Service>, request: Request, next: Next) -> Response {
    match bearer(request.headers()).and_then(|token| service.config().approver_of(token)) {
        Some(_) => next.run(request).await,
        None => {
            unauthorized("send the header Authorization: Bearer TOKEN with the token of an approver").into_response()
        }
    }
}

fn unauthorized(why: &str) -> ProblemDetails {
    ProblemDetails::new(StatusCode::UNAUTHORIZED, why)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Marks requests that came over a Unix socket. No page of a browser can connect to one, so their host may have any
/// name: the file of the socket says who may connect.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
pub(super) struct OverUnixSocket;

fn is_over_unix_socket(request: &Request) -> bool {
    #[cfg(unix)]
    return request.extensions().get::<OverUnixSocket>().is_some();
    #[cfg(not(unix))]
    false
}

/// Rejects requests from pages of other origins. Without tenants, the host must also be a loopback name or address,
/// unless the request came over a Unix socket. Otherwise a page could make its own name resolve to this machine.
pub async fn own_origin(State(service): State<Service>, request: Request, next: Next) -> Response {
    let host = request.uri().host().map(str::to_owned).or_else(|| {
        let host = request.headers().get(header::HOST)?.to_str().ok()?;
        host.parse::<Uri>().ok()?.host().map(str::to_owned)
    });
    let host = host.unwrap_or_default();
    let forbidden = |why: &str| ProblemDetails::new(StatusCode::FORBIDDEN, why).into_response();
    if service.config().tenants.is_empty() && !is_over_unix_socket(&request) && !is_loopback(&host) {
        return forbidden(
            "without tenants the service is for this machine only: use localhost or 127.0.0.1 as its address",
        );
    }
    let origin = request.headers().get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let is_other = origin.is_some_and(|origin| {
        let named = origin.parse::<Uri>().ok().and_then(|origin| origin.authority().map(ToString::to_string));
        let asked = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
        let asked = asked.or_else(|| request.uri().authority().map(ToString::to_string));
        named.is_none() || named != asked
    });
    if is_other {
        return forbidden("web pages of other origins may not use the service");
    }
    next.run(request).await
}

/// Rejects requests with no Host header (HTTP/1.1), or one that differs from `:authority`, and those with several headers
/// of a kind that has one value: a proxy in front of the service could have read another of them.
pub async fn single_headers(request: Request, next: Next) -> Response {
    match repeated_header(&request).or_else(|| misnamed_host(&request)) {
        None => next.run(request).await,
        Some(why) => ProblemDetails::new(StatusCode::BAD_REQUEST, why).into_response(),
    }
}

fn repeated_header(request: &Request) -> Option<&'static str> {
    let is_repeated = |name: &HeaderName| request.headers().get_all(name).iter().nth(1).is_some();
    [
        (header::HOST, "there are two Host headers; send one"),
        (header::AUTHORIZATION, "there are two Authorization headers; send one"),
        (IDEMPOTENCY_KEY, "there are two Idempotency-Key headers; send one"),
        (LAST_EVENT_ID, "there are two Last-Event-ID headers; send one"),
    ]
    .into_iter()
    .find_map(|(name, why)| is_repeated(&name).then_some(why))
}

fn misnamed_host(request: &Request) -> Option<&'static str> {
    let Some(host) = request.headers().get(header::HOST) else {
        let needs_one = request.version() == Version::HTTP_11;
        return needs_one.then_some("missing Host header; send one");
    };
    let named = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()).filter(is_host);
    let Some(named) = named else {
        return Some("the Host header is not a valid name of a host, with a port or without");
    };
    let is_other = |asked: &Authority| request.version() >= Version::HTTP_2 && *asked != named;
    request.uri().authority().is_some_and(is_other).then_some("the Host header names another host than :authority")
}

/// Returns whether this is a valid host, with or without a port.
fn is_host(authority: &Authority) -> bool {
    let Some(port) = authority.as_str().strip_prefix(authority.host()) else { return false };
    let port = port.strip_prefix(':').unwrap_or(port);
    !authority.host().is_empty() && (port.is_empty() || port.parse::<u16>().is_ok())
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
