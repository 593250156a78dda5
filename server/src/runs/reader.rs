//! Reads the events of runs: of durable ones from the store, of others from memory.

use super::events::{Event, EventLog};
use super::state::{Refused, Service};
use super::watch::Watcher;
use crate::store::StoreError;
use std::sync::Arc;
use tokio::sync::watch;

/// Reads the events of a run.
#[derive(Debug)]
pub struct EventReader {
    service: Service,
    run_id: String,
    source: Source,
    /// The number of events read.
    read: u64,
    is_over: bool,
}

#[derive(Debug)]
enum Source {
    Memory(Arc<EventLog>, watch::Receiver<usize>),
    Store(Watcher),
}

impl EventReader {
    /// Creates the reader of a durable run, after some events.
    pub(crate) fn of_stored(service: &Service, run_id: &str, read: u64) -> Self {
        let source = Source::Store(service.watcher(run_id));
        EventReader { service: service.clone(), run_id: run_id.to_owned(), source, read, is_over: false }
    }

    /// Creates the reader of a run in memory.
    pub(crate) fn of_log(service: &Service, log: &Arc<EventLog>) -> Self {
        let Some(changes) = log.changes() else { return EventReader::of_stored(service, log.run_id(), 0) };
        let source = Source::Memory(log.clone(), changes);
        EventReader { service: service.clone(), run_id: log.run_id().to_owned(), source, read: 0, is_over: false }
    }

    /// Waits for more events. Returns `None` after the last one, or when the service shuts down and the run does not
    /// continue here.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, Refused> {
        loop {
            let events = self.ready().await?;
            if !events.is_empty() {
                return Ok(Some(events));
            }
            if self.is_over {
                return Ok(None);
            }
            match &mut self.source {
                Source::Memory(_, changes) => {
                    // The sender lives as long as the log.
                    let _ = changes.changed().await;
                }
                Source::Store(watcher) => tokio::select! {
                    () = watcher.changed() => {}
                    // There will be no more events here.
                    () = self.service.stopped(&self.run_id) => return Ok(None),
                },
            }
        }
    }

    /// Returns the events that are there after those that were read, without waiting.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn ready(&mut self) -> Result<Vec<Event>, Refused> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let events = match &mut self.source {
            Source::Memory(log, changes) => {
                changes.borrow_and_update();
                log.after(usize::try_from(self.read).unwrap_or(usize::MAX))
            }
            Source::Store(_) => self.stored().await?,
        };
        if let Some(last) = events.last() {
            self.read = last.number;
            self.is_over |= matches!(&*last.kind, "answer" | "problem");
        }
        Ok(events)
    }

    async fn stored(&mut self) -> Result<Vec<Event>, StoreError> {
        let read = self.service.0.store.events(&self.run_id, self.read).await?;
        let event = |event: crate::store::StoredEvent| Event {
            number: event.number,
            kind: event.kind.into(),
            data: event.data,
        };
        let mut events: Vec<Event> = read.events.into_iter().map(event).collect();
        if read.is_over && events.is_empty() && self.has_read_answer().await? {
            self.is_over = true;
        } else if read.is_over {
            let run = self.service.0.store.run(&self.run_id).await?;
            if let Some(data) = run.and_then(|run| run.answer) {
                let number = events.last().map_or(self.read, |event| event.number).saturating_add(1);
                events.push(Event { number, kind: "answer".into(), data });
            }
        }
        Ok(events)
    }

    /// Returns whether the last event that was read is the answer: the one after all that are stored.
    async fn has_read_answer(&self) -> Result<bool, StoreError> {
        let is_stored = async |number: u64| {
            Ok::<_, StoreError>(!self.service.0.store.events(&self.run_id, number - 1).await?.events.is_empty())
        };
        Ok(self.read > 0 && !is_stored(self.read).await? && (self.read == 1 || is_stored(self.read - 1).await?))
    }
}
