//! The routes about the service itself: functions, the prompt for models, health, metrics and the page.

use super::body::{NoQuery, StrictQuery, Text, json, json_for, last_of_equal, read};
use super::guard::RequestTenant;
use super::openapi::{BodyResponses, NameResponses, QueryResponses, SlotResponses, TenantResponses};
use super::problem::ProblemDetails;
use crate::runs::schemas::PromptSchema;
use crate::runs::{PromptRequest, Service};
use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::{Deserialize, Serialize};

/// The maximum number of words in a search.
const WORDS: usize = 12;

/// The query of a search for functions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    q: Option<String>,
}

/// The documentation of a function or special form.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct FunctionPage {
    /// Name of the function or special form.
    name: String,
    /// Usage, description and an example.
    doc: String,
}

/// A list of functions and special forms.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct FunctionList {
    functions: Vec<FunctionPage>,
}

fn text_of(of: &impl Serialize) -> Response {
    json(StatusCode::OK, serde_json::to_string(of).unwrap_or_default())
}

/// Search the functions and special forms
#[utoipa::path(
    get,
    path = "/v1/functions",
    tag = "language",
    params(("q" = Option<String>, Query, description = "words that the name or documentation must contain; at most 12")),
    responses((status = 200, description = "the matching functions and special forms", body = FunctionList), TenantResponses, QueryResponses)
)]
pub(crate) async fn functions(
    RequestTenant(tenant): RequestTenant,
    StrictQuery(search): StrictQuery<Search>,
) -> Result<Response, ProblemDetails> {
    let asked = search.q.unwrap_or_default().to_lowercase();
    let words: Vec<&str> = asked.split_whitespace().take(WORDS + 1).collect();
    if words.len() > WORDS {
        let why = format!("a search has at most {WORDS} words; ask for fewer");
        return Err(ProblemDetails::of_field("q", why));
    }
    let found = lisp_runtime::language::builtin_names().filter_map(|name| {
        let doc = lisp_runtime::language::describe_name(name).ok()?;
        let lower = doc.to_lowercase();
        let fits = words.iter().all(|word| lower.contains(word));
        fits.then(|| FunctionPage { name: name.to_owned(), doc: doc.to_string() })
    });
    let list = FunctionList { functions: found.collect() };
    json_for(&tenant, serde_json::to_string(&list).unwrap_or_default()).await
}

/// Get the documentation of a function or special form
#[utoipa::path(
    get,
    path = "/v1/functions/{*name}",
    tag = "language",
    params(("name" = String, Path, description = "the name, such as clojure.string/join")),
    responses((status = 200, description = "the documentation", body = FunctionPage), TenantResponses, NameResponses)
)]
pub(crate) async fn function(
    RequestTenant(_): RequestTenant,
    Path(name): Path<String>,
) -> Result<Response, ProblemDetails> {
    let text = lisp_runtime::language::describe_name(&name).map_err(|like| {
        let like = like.map(|like| format!("; {like}")).unwrap_or_default();
        ProblemDetails::new(StatusCode::NOT_FOUND, format!("unknown function {name}{like}"))
    })?;
    Ok(text_of(&FunctionPage { name, doc: text.to_string() }))
}

/// Get the text that tells a model the language and the tenant's tools
#[utoipa::path(
    get,
    path = "/v1/prompt",
    tag = "language",
    responses((status = 200, description = "Markdown", body = String, content_type = "text/markdown"), TenantResponses)
)]
pub(crate) async fn prompt(State(service): State<Service>, RequestTenant(tenant): RequestTenant) -> Response {
    markdown(service.prompt(&tenant))
}

/// Get that text with the tools of a request too
#[utoipa::path(
    post,
    path = "/v1/prompt",
    tag = "language",
    request_body(content = PromptSchema, content_type = "application/json"),
    responses(
        (status = 200, description = "Markdown", body = String, content_type = "text/markdown"),
        TenantResponses, BodyResponses, SlotResponses,
    )
)]
pub(crate) async fn prompt_with(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    _: NoQuery,
    text: Text,
) -> Result<Response, ProblemDetails> {
    let asked: PromptRequest = read(&last_of_equal(&text))?;
    Ok(markdown(service.prompt_with(&tenant, asked).await?))
}

fn markdown(text: String) -> Response {
    ([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], text).into_response()
}

/// Check that the service is alive
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "operation",
    security(()),
    responses((status = 200, description = "the service is alive", body = String, content_type = "text/plain"))
)]
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// Check that the service accepts requests
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operation",
    security(()),
    responses(
        (status = 200, description = "the service accepts requests", body = String, content_type = "text/plain"),
        (status = 503, description = "shutting down, the store cannot be written, or another process owns it", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn ready(State(service): State<Service>) -> Result<&'static str, ProblemDetails> {
    service.is_ready().await?;
    Ok("ready\n")
}

/// Get metrics for Prometheus, in the OpenMetrics text format
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    responses((status = 200, description = "the metrics", body = String, content_type = "application/openmetrics-text"), TenantResponses)
)]
pub(crate) async fn metrics(State(service): State<Service>, RequestTenant(_): RequestTenant) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], service.metrics().await).into_response()
}

/// The OpenAPI description, as JSON.
#[derive(Clone)]
pub(crate) struct Description(pub(crate) Bytes);

/// Get this description
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "operation",
    security(()),
    responses((status = 200, description = "an OpenAPI 3.1 document", body = std::collections::BTreeMap<String, serde_json::Value>, content_type = "application/json"))
)]
pub(crate) async fn description(Extension(Description(text)): Extension<Description>) -> Response {
    json(StatusCode::OK, text)
}

/// `GET /`: the page for programs and open calls.
pub(crate) async fn page() -> Response {
    (page_headers(), Html(include_str!("../page/index.html"))).into_response()
}

/// `GET /` of the approver routes: a page with open calls only.
pub(crate) async fn page_of_approvals() -> Response {
    let page = include_str!("../page/index.html").replacen("<body>", "<body class=\"approvals\">", 1);
    (page_headers(), Html(page)).into_response()
}

/// `GET /page.js`
pub(crate) async fn script() -> Response {
    let kind = [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (page_headers(), kind, include_str!("../page/page.js")).into_response()
}

/// `GET /page.css`
pub(crate) async fn style() -> Response {
    (page_headers(), [(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../page/page.css"))
        .into_response()
}

/// Headers that let the page run only its own script and connect only to this service.
fn page_headers() -> [(header::HeaderName, &'static str); 3] {
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                  form-action 'none'; frame-ancestors 'none'";
    [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    /// However many responses wait for their clients, the description is in memory once.
    #[tokio::test]
    async fn the_description_is_not_copied() {
        let text = Bytes::from(vec![b' '; 100]);
        let response = description(Extension(Description(text.clone()))).await;
        let sent = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!((sent.as_ptr(), sent.len()), (text.as_ptr(), 100));
    }
}
