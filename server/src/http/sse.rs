//! Run events as server-sent events.

use super::body::read_request;
use crate::runs::{Event, EventLog, RunState, Service, TenantState};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, StreamExt, iter, unfold};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// The interval of keep-alive comments on a stream without events.
const ALIVE: Duration = Duration::from_secs(15);

/// The reader of an event log.
struct Reader {
    service: Service,
    log: Arc<EventLog>,
    changes: tokio::sync::watch::Receiver<usize>,
    next: usize,
    is_over: bool,
    /// The run, if it exists for this reader only; it is aborted with the reader.
    run: Option<AbortOnDropHandle<()>>,
}

fn sse_event((id, event): (String, Event)) -> Result<SseEvent, Infallible> {
    Ok(SseEvent::default().id(id).event(event.kind).data(&*event.data))
}

fn stream(reader: Reader) -> impl Stream<Item = Result<SseEvent, Infallible>> {
    unfold(reader, |mut reader| async move {
        loop {
            if reader.is_over {
                return None;
            }
            reader.changes.borrow_and_update();
            let (events, is_over) = reader.log.from(reader.next);
            let first = reader.next;
            (reader.next, reader.is_over) = (first + events.len(), is_over);
            if !events.is_empty() {
                let name = |(at, event)| (reader.log.id(first + at), event);
                let named: Vec<_> = events.into_iter().enumerate().map(name).collect();
                return Some((iter(named).map(sse_event), reader));
            }
            if reader.is_over {
                return None;
            }
            tokio::select! {
                changed = reader.changes.changed() => changed.ok()?,
                // The service is shutting down and the run no longer runs in this process: there will be no more events
                // here.
                () = reader.service.stopped(reader.log.run_id()), if reader.run.is_none() => return None,
            }
        }
    })
    .flatten()
}

fn respond(stream: impl Stream<Item = Result<SseEvent, Infallible>> + Send + 'static) -> Response {
    Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE)).into_response()
}

/// Streams the events of a durable run that this process has seen. For a finished run it sends its prints and answer.
pub(crate) fn of_run(service: &Service, tenant: &str, run_id: &str, last: &str) -> Response {
    let log = service.watch(run_id);
    let changes = log.changes();
    match service.state(tenant, run_id) {
        Ok(RunState { answer: Some(answer), .. }) => log.tell_of_the_past(answer.get()),
        Ok(state) if !service.is_active(run_id) => log.tell_of_waiting(&state.calls),
        _ => {}
    }
    let seen = log.behind(last);
    respond(stream(Reader { service: service.clone(), log, changes, next: seen, is_over: false, run: None }))
}

/// Starts a run and streams its events. The run ends with the connection.
pub(crate) fn of_new_run(service: Service, tenant: Arc<TenantState>, request: String, run_id: String) -> Response {
    let log = service.watch(&run_id);
    let changes = log.changes();
    let (its, its_log) = (service.clone(), log.clone());
    let run = tokio::spawn(async move {
        its_log.started();
        let done = match read_request(&request) {
            Ok(request) => its.run(&tenant, &request, &run_id).await,
            Err(_) => return,
        };
        match done {
            Ok(answer) => its_log.finish(&answer.to_json()),
            Err(refused) => its_log.fail(&super::problem::ProblemDetails::from(refused)),
        }
    });
    let run = Some(AbortOnDropHandle::new(run));
    respond(stream(Reader { service, log, changes, next: 0, is_over: false, run }))
}
