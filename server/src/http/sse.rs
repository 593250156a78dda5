//! Run events as server-sent events.

use super::body::{FrameByFrame, RUN_ENDED, Text, read_request};
use super::problem::ProblemDetails;
use crate::runs::{Event, EventReader, Service, TenantState};
use axum::body::Body;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, StreamExt, iter, unfold};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// The interval of keep-alive comments on a stream without events.
const ALIVE: Duration = Duration::from_secs(15);

fn sse_event(event: Event) -> Result<SseEvent, Infallible> {
    Ok(SseEvent::default().id(event.number.to_string()).event(event.kind).data(&*event.data))
}

/// Streams events. `run` is the task of a run that exists for this stream only; it is aborted with the stream.
fn stream(reader: EventReader, run: Option<AbortOnDropHandle<()>>) -> impl Stream<Item = Result<SseEvent, Infallible>> {
    unfold((reader, run), |(mut reader, run)| async move {
        match reader.next().await {
            Ok(Some(events)) => Some((iter(events).map(sse_event), (reader, run))),
            Ok(None) => None,
            Err(refused) => {
                // The client connects again after the last event it has.
                let problem = ProblemDetails::from(refused);
                tracing::warn!(detail = problem.detail, "a stream ends early");
                None
            }
        }
    })
    .flatten()
}

fn respond(stream: impl Stream<Item = Result<SseEvent, Infallible>> + Send + 'static) -> Response {
    // A client that does not read has one page of events here, in room of its tenant.
    let response = Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    response.map(|events| Body::new(FrameByFrame::new(events)))
}

/// Streams the events of a durable run.
pub(crate) fn of_run(reader: EventReader, tenant: &Arc<TenantState>) -> Response {
    respond(stream(reader.taking_room(tenant), None))
}

/// Starts a run and streams its events. The run ends with the connection.
pub(crate) fn of_new_run(service: Service, tenant: Arc<TenantState>, request: Text, run_id: String) -> Response {
    let log = service.log_in_memory(&run_id);
    let reader = EventReader::of_log(&service, &tenant.name, &log).taking_room(&tenant);
    let run = tokio::spawn(async move {
        log.started();
        let done = match read_request(&request) {
            Ok(request) => service.run_in_slot(&tenant, &request, &run_id).await,
            Err(problem) => return log.fail(&problem),
        };
        match done {
            Ok((answer, slot)) => {
                let answer = answer.to_json();
                // What its client has not read takes room like a response. Until there is some, it has the slot.
                let bytes = log.bytes_left().saturating_add(answer.len());
                let room = match bytes {
                    0..=TenantState::SMALL_RESPONSE => Ok(None),
                    bytes => tenant.response_room(bytes).await.map(Some),
                };
                drop(slot);
                match room {
                    Ok(room) => log.finish(&answer, room),
                    Err(busy) => log.fail(&ProblemDetails::unsent(RUN_ENDED, &busy)),
                }
            }
            Err(refused) => log.fail(&ProblemDetails::from(refused)),
        }
    });
    respond(stream(reader, Some(AbortOnDropHandle::new(run))))
}
