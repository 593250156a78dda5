//! The routes of runs.

use super::body::{NoQuery, RUN_ENDED, StrictQuery, Text, answer_to, flag, json_read, read, read_request, whole};
use super::guard::{Caller, RequestTenant};
use super::openapi::{
    ApproverResponses, BodyResponses, DecisionResponses, NameResponses, ProgramResponses, QueryResponses,
    RoomResponses, SlotResponses, StoreResponses, TenantResponses, UnsentResponses,
};
use super::problem::ProblemDetails;
use super::sse;
use super::{IDEMPOTENCY_KEY, LAST_EVENT_ID};
use crate::runs::schemas::{Answer, CheckReport, RunRequest};
use crate::runs::{Done, ListQuery, Refused, Reply, RunList, RunState, Service, TenantState};
use crate::store::{RequestKey, RunStatus};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use lisp_runtime::Request;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The maximum length of an idempotency key.
const KEY_BYTES: usize = 255;
/// The maximum number of runs in a list.
const LIST: usize = 1_000;
/// The maximum number of seconds that a request may wait.
const WAIT_SECONDS: u64 = 60;

/// The query of `POST /v1/run`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunQuery {
    #[serde(default, deserialize_with = "flag")]
    stream: bool,
}

fn request_of(text: &str) -> Result<Request<'_>, ProblemDetails> {
    let request = read_request(text)?;
    match request.domain {
        None => Ok(request),
        Some(_) => Err(ProblemDetails::of_field(
            "domain",
            "a request cannot choose whether runs share processes; omit it, or set `domain = true` for the tenant",
        )),
    }
}

/// Returns the `traceparent` of the header, if a request has none.
fn trace<'h>(request: &Request<'_>, headers: &'h HeaderMap) -> Option<&'h str> {
    let header = headers.get("traceparent").and_then(|header| header.to_str().ok());
    let is_one = |trace: &&str| trace.len() == 55 && trace.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    header.filter(is_one).filter(|_| request.traceparent.is_none())
}

/// Adds a `traceparent` to the text of a request that has none.
fn traced(text: Text, trace: Option<&str>) -> Text {
    let Some(trace) = trace else { return text };
    text.with(|mut text| {
        // The object has a `program`, so a field follows the brace.
        if let Some(brace) = text.find('{') {
            text.insert_str(brace + 1, &format!("\"traceparent\":\"{trace}\","));
        }
        text
    })
}

fn key(headers: &HeaderMap, text: &str) -> Result<Option<RequestKey>, ProblemDetails> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let fits = |key: &&str| (1..=KEY_BYTES).contains(&key.len());
    let why =
        || ProblemDetails::of_field("Idempotency-Key", format!("the key has 1 to {KEY_BYTES} characters of ASCII"));
    let key = key.to_str().ok().filter(fits).ok_or_else(why)?;
    Ok(Some(RequestKey { key: key.to_owned(), digest: crate::runs::digest(text) }))
}

/// Run a program and wait for its answer; with `?stream`, get its events as they happen
#[utoipa::path(
    post,
    path = "/v1/run",
    tag = "runs",
    params(
        ("stream" = Option<String>, Query, description = "stream the events of the run: no value, true or 1; false and 0 turn this off"),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 ASCII characters; a repeated request with the same key is not run again"),
    ),
    request_body(content = RunRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "the answer, or the events if a stream was requested", content((Answer = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "the run is not done: it waits for an outside answer, is stuck, or resumes after a restart", body = RunState),
        TenantResponses, BodyResponses, ProgramResponses,
    )
)]
pub(crate) async fn run(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    StrictQuery(query): StrictQuery<RunQuery>,
    headers: HeaderMap,
    text: Text,
) -> Result<Response, ProblemDetails> {
    let mut text = text;
    let request = request_of(&text)?;
    let key = key(&headers, &text)?;
    let (trace, is_durable) = (trace(&request, &headers), key.is_some() || service.needs_journal(&tenant, &request));
    if is_durable {
        drop(request);
        let run_id = accept(&service, &tenant, traced(text, trace), key).await?;
        if query.stream {
            return Ok(sse::of_run(service.events(&tenant.name, &run_id, 0), &tenant));
        }
        return json_read(&tenant, Some(&accepted(&run_id)), || async {
            let waited = service.wait_in_turn(&tenant.name, &run_id).await?;
            Ok(waited.map(|state| match Done::from(state) {
                Done::Answer(answer) => (StatusCode::OK, answer),
                Done::Waiting(state) => text_of(StatusCode::ACCEPTED, &*state),
            }))
        })
        .await;
    }
    let run_id = uuid::Uuid::now_v7().to_string();
    if query.stream {
        drop(request);
        return Ok(sse::of_new_run(service, Arc::clone(&tenant), traced(text, trace), run_id));
    }
    let request = match trace {
        None => request,
        Some(_) => {
            drop(request);
            text = traced(text, trace);
            read_request(&text)?
        }
    };
    let (answer, slot) = service.run_in_slot(&tenant, &request, &run_id).await?;
    answer_to(&tenant, RUN_ENDED, (answer.to_json(), slot)).await
}

/// Check a program against its data and tools without running it
#[utoipa::path(
    post,
    path = "/v1/check",
    tag = "runs",
    request_body(content = RunRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "what was found", body = CheckReport),
        TenantResponses, BodyResponses, SlotResponses, UnsentResponses,
    )
)]
pub(crate) async fn check(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    _: NoQuery,
    text: Text,
) -> Result<Response, ProblemDetails> {
    let (report, slot) = service.check_in_slot(&tenant, &request_of(&text)?).await?;
    answer_to(&tenant, "the program is checked", (report.to_json(), slot)).await
}

fn text_of(status: StatusCode, of: &impl serde::Serialize) -> (StatusCode, String) {
    (status, serde_json::to_string(of).unwrap_or_default())
}

/// Submits a durable run. What waits for it has no need of its text.
async fn accept(
    service: &Service,
    tenant: &TenantState,
    text: Text,
    key: Option<RequestKey>,
) -> Result<String, Refused> {
    service.accept(tenant, &text, key).await
}

/// What a request has done that submits a run.
fn accepted(run_id: &str) -> String {
    format!("the run is accepted, and GET /v1/runs/{run_id} has its state")
}

/// The response with the state of a run as it is now, to a request that has done this.
async fn state_of(
    service: &Service,
    tenant: &TenantState,
    (run_id, done): (&str, Option<&str>),
) -> Result<Response, ProblemDetails> {
    let read = || async {
        Ok(service.state_in_turn(&tenant.name, run_id).await?.map(|state| text_of(StatusCode::OK, &state)))
    };
    json_read(tenant, done, read).await
}

/// Submit a durable run
#[utoipa::path(
    post,
    path = "/v1/runs",
    tag = "runs",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 ASCII characters; a repeated request with the same key is not run again"),
    ),
    request_body(content = RunRequest, content_type = "application/json"),
    responses(
        (status = 202, description = "accepted; the run starts", body = RunState, headers(("Location" = String, description = "the path of the run"))),
        TenantResponses, BodyResponses, ProgramResponses,
    )
)]
pub(crate) async fn submit(
    State(service): State<Service>,
    RequestTenant(tenant): RequestTenant,
    headers: HeaderMap,
    _: NoQuery,
    text: Text,
) -> Result<Response, ProblemDetails> {
    let request = request_of(&text)?;
    let (key, trace) = (key(&headers, &text)?, trace(&request, &headers));
    drop(request);
    let run_id = accept(&service, &tenant, traced(text, trace), key).await?;
    let location = format!("/v1/runs/{run_id}");
    let mut response = state_of(&service, &tenant, (&run_id, Some(&accepted(&run_id)))).await?;
    *response.status_mut() = StatusCode::ACCEPTED;
    if let Ok(location) = location.parse() {
        response.headers_mut().insert(axum::http::header::LOCATION, location);
    }
    Ok(response)
}

/// The query of `GET /v1/runs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsQuery {
    status: Option<RunStatus>,
    #[serde(default, deserialize_with = "whole")]
    limit: Option<usize>,
    cursor: Option<String>,
}

/// List the tenant's newest runs, without their answers
#[utoipa::path(
    get,
    path = "/v1/runs",
    tag = "runs",
    params(
        ("status" = Option<RunStatus>, Query, description = "only runs with this status"),
        ("limit" = Option<usize>, Query, description = "the maximum number of runs, 1 to 1000; 100 by default"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before; omit it for the first page"),
    ),
    responses((status = 200, description = "the runs, newest first; a page may end early if its open calls are large", body = RunList), ApproverResponses, QueryResponses, StoreResponses, RoomResponses)
)]
pub(crate) async fn list(
    State(service): State<Service>,
    caller: Caller,
    StrictQuery(query): StrictQuery<RunsQuery>,
) -> Result<Response, ProblemDetails> {
    let max = query.limit.unwrap_or(100);
    if !(1..=LIST).contains(&max) {
        return Err(ProblemDetails::of_field("limit", format!("it must be 1 to {LIST}; `next` leads to more")));
    }
    let query = ListQuery { status: query.status, cursor: query.cursor.as_deref(), max };
    let (service, tenant) = (&service, &caller.tenant.name);
    let read = || async { Ok(service.runs_in_turn(tenant, query).await?.map(|runs| text_of(StatusCode::OK, &runs))) };
    json_read(&caller.tenant, None, read).await
}

/// The query of a request that may wait.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    #[serde(default, deserialize_with = "whole")]
    wait: Option<u64>,
    #[serde(default, deserialize_with = "whole")]
    since: Option<i64>,
}

impl Wait {
    fn time(&self) -> Result<Option<Duration>, ProblemDetails> {
        match self.wait {
            None => Ok(None),
            Some(seconds) if seconds <= WAIT_SECONDS => Ok(Some(Duration::from_secs(seconds))),
            Some(_) => Err(ProblemDetails::of_field("wait", format!("it must be 0 to {WAIT_SECONDS} seconds"))),
        }
    }
}

/// Get the state of a run, with its answer once it is done
#[utoipa::path(
    get,
    path = "/v1/runs/{run_id}",
    tag = "runs",
    params(
        ("run_id" = String, Path, description = "the ID of the run"),
        ("wait" = Option<u64>, Query, description = "seconds to wait until the run is done, stuck, or has open calls; at most 60"),
        ("since" = Option<i64>, Query, description = "with `wait`: `updated_ms` of the state that the client knows; waits for a later one"),
    ),
    responses((status = 200, description = "the state of the run", body = RunState), ApproverResponses, NameResponses, QueryResponses, StoreResponses, RoomResponses)
)]
pub(crate) async fn state(
    State(service): State<Service>,
    caller: Caller,
    Path(run_id): Path<String>,
    StrictQuery(wait): StrictQuery<Wait>,
) -> Result<Response, ProblemDetails> {
    let tenant = &caller.tenant.name;
    if let Some(time) = wait.time()? {
        service.wait_for_news(tenant, &run_id, time, wait.since).await?;
    }
    state_of(&service, &caller.tenant, (&run_id, None)).await
}

/// Returns the ID of the last event that the client has; `None` if it has none.
fn last_event(headers: &HeaderMap) -> Result<Option<u64>, ProblemDetails> {
    let Some(id) = headers.get(LAST_EVENT_ID).filter(|id| !id.is_empty()) else { return Ok(None) };
    let number = id.to_str().ok().and_then(|id| Some((id, id.parse::<u64>().ok()?)));
    // It is compared as it was sent.
    number.filter(|(id, number)| *id == number.to_string()).map(|(_, number)| Some(number)).ok_or_else(no_event)
}

fn no_event() -> ProblemDetails {
    let why = "it must be the `id` of an event of this run; leave the header out to get all events";
    ProblemDetails::of_field("Last-Event-ID", why)
}

/// Stream the events of a run as server-sent events: started, print, call, waiting, cut, answer, problem
#[utoipa::path(
    get,
    path = "/v1/runs/{run_id}/events",
    tag = "runs",
    params(
        ("run_id" = String, Path, description = "the ID of the run"),
        ("Last-Event-ID" = Option<String>, Header, description = "the ID of the last event received; the stream continues after it"),
    ),
    responses((status = 200, description = "the events", body = String, content_type = "text/event-stream"), ApproverResponses, NameResponses, QueryResponses, StoreResponses)
)]
pub(crate) async fn events(
    State(service): State<Service>,
    caller: Caller,
    Path(run_id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    let last = last_event(&headers)?;
    let tenant = &caller.tenant;
    let state = service.state(&tenant.name, &run_id).await?;
    let reader = service.events(&tenant.name, &state.run_id, last.unwrap_or(0));
    if last.is_some() && !reader.knows_last(state.answer.is_some()).await? {
        return Err(no_event());
    }
    Ok(sse::of_run(reader, tenant))
}

/// Cancel a run; a run that is done does not change
#[utoipa::path(
    delete,
    path = "/v1/runs/{run_id}",
    tag = "runs",
    params(("run_id" = String, Path, description = "the ID of the run")),
    responses((status = 200, description = "the state of the run", body = RunState), ApproverResponses, NameResponses, StoreResponses, UnsentResponses)
)]
pub(crate) async fn cancel(
    State(service): State<Service>,
    caller: Caller,
    Path(run_id): Path<String>,
) -> Result<Response, ProblemDetails> {
    service.cancel_run(&caller.tenant.name, &run_id).await?;
    state_of(&service, &caller.tenant, (&run_id, Some("the run is cancelled, or was done before"))).await
}

/// Answer an open call with its result or error, or approve or reject it
#[utoipa::path(
    post,
    path = "/v1/runs/{run_id}/calls/{*call}",
    tag = "runs",
    params(
        ("run_id" = String, Path, description = "the ID of the run"),
        ("call" = String, Path, description = "the name of the call in the run; write slashes in it as they are"),
        ("wait" = Option<u64>, Query, description = "seconds to wait after the reply until the run is done, stuck, or has open calls; at most 60"),
    ),
    request_body(content = Reply, content_type = "application/json"),
    responses(
        (status = 200, description = "the state of the run", body = RunState),
        (status = 409, description = "the call is already answered, or the run is stuck or done", body = ProblemDetails, content_type = "application/problem+json"),
        DecisionResponses, NameResponses, BodyResponses, StoreResponses, RoomResponses, UnsentResponses,
    )
)]
pub(crate) async fn reply(
    State(service): State<Service>,
    caller: Caller,
    Path((run_id, call)): Path<(String, String)>,
    StrictQuery(wait): StrictQuery<Wait>,
    text: Text,
) -> Result<Response, ProblemDetails> {
    let reply: Reply = read(&text)?;
    let (tenant, time) = (&caller.tenant.name, wait.time()?);
    service.take_reply(tenant, &run_id, (&call, &reply), caller.may_decide(&service)).await?;
    drop((reply, text));
    if let Some(time) = time {
        service.wait_for_news(tenant, &run_id, time, wait.since).await?;
    }
    state_of(&service, &caller.tenant, (&run_id, Some("the reply is taken"))).await
}
