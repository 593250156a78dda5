//! Notifications during a run: progress, and printed lines as log messages.

#![expect(deprecated, reason = "clients of revision 2025-11-25 read log messages; the next one has no replacement yet")]

use crate::connection::Client;
use lisp_server::runs::{Event, EventReader};
use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// The fields of an event, unparsed, because one may be nested too deeply for a parsed value.
type Fields = BTreeMap<String, Box<RawValue>>;

/// Returns whether this log level includes printed lines.
pub(crate) fn has_prints(level: LoggingLevel) -> bool {
    matches!(level, LoggingLevel::Debug | LoggingLevel::Info)
}

/// The notifications that a client wants.
pub(crate) struct Notes {
    peer: Peer<RoleServer>,
    progress: Option<ProgressToken>,
    logs: bool,
}

impl Notes {
    /// `logs` is the session's setting. A request without a session has its own.
    pub(crate) fn new(client: &Client, logs: bool) -> Self {
        let logs = if client.is_stateless { client.meta.log_level().is_some_and(has_prints) } else { logs };
        Notes { peer: client.peer.clone(), progress: client.progress.clone(), logs }
    }

    /// Runs `work`, and notifies the client of events meanwhile.
    pub(crate) async fn follow<T>(&self, reader: &mut EventReader, work: impl Future<Output = T>) -> T {
        if self.progress.is_none() && !self.logs {
            return work.await;
        }
        let done = CancellationToken::new();
        let work = async {
            let result = work.await;
            done.cancel();
            result
        };
        // If the client has disconnected, the run continues until its request is cancelled.
        let (result, _) = tokio::join!(work, self.send_events(reader, &done));
        result
    }

    async fn send_events(&self, reader: &mut EventReader, done: &CancellationToken) -> Result<(), ServiceError> {
        loop {
            let is_done = done.is_cancelled();
            let events = match is_done {
                true => reader.ready().await.ok().filter(|events| !events.is_empty()),
                false => tokio::select! {
                    events = reader.next() => events.ok().flatten(),
                    () = done.cancelled() => continue,
                },
            };
            // After the last event, or if they cannot be read, there is nothing more to tell.
            let Some(events) = events else { return Ok(()) };
            for event in &events {
                self.event(event).await?;
            }
        }
    }

    async fn event(&self, event: &Event) -> Result<(), ServiceError> {
        let data: Fields = serde_json::from_str(&event.data).unwrap_or_default();
        let value = |name: &str| data.get(name).and_then(|field| serde_json::from_str::<Value>(field.get()).ok());
        let text = |name: &str| value(name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
        let message = match &*event.kind {
            "print" => text("line"),
            "call" => match value("duration_ms").unwrap_or_default() {
                Value::Null => format!("call tool/{}", text("name")),
                ms => format!("tool/{}: {} after {ms} ms", text("name"), text("status")),
            },
            "waiting" => format!("tool/{} waits for an answer", text("name")),
            "cut" => text("message"),
            _ => return Ok(()),
        };
        if self.logs && event.kind == "print" {
            self.log(&message).await?;
        }
        if let Some(token) = &self.progress {
            // Event counts stay far below 2^53, so the conversion is exact.
            let progress = ProgressNotificationParam::new(token.clone(), event.number as f64).with_message(message);
            self.peer.notify_progress(progress).await?;
        }
        Ok(())
    }

    async fn log(&self, line: &str) -> Result<(), ServiceError> {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, line.into()).with_logger("program");
        self.peer.notify_logging_message(message).await
    }
}
