//! Reads the events of a run as they happen: of durable runs from the store, of others from memory.

use super::admission::{BodyRoom, InTurn, TenantState};
use super::events::{Event, EventLog};
use super::state::{Refused, Service};
use super::watch::Watcher;
use crate::store::StoredEvent;
use std::sync::Arc;
use tokio::sync::watch;

/// Reads the events of a run, a bounded page at a time.
#[derive(Debug)]
pub struct EventReader {
    service: Service,
    /// The name of the run's tenant.
    tenant: String,
    run_id: String,
    source: Source,
    /// The number of events read.
    read: u64,
    is_over: bool,
    /// Whose room pages take; `None` if they take none.
    takes_room: Option<Arc<TenantState>>,
    /// The room of the page that was returned last, or of all that is left.
    room: Option<BodyRoom>,
    /// Whether the room is that of all that is left.
    has_all_room: bool,
}

#[derive(Debug)]
enum Source {
    Memory(Arc<EventLog>, watch::Receiver<u64>),
    Store(Watcher),
}

impl EventReader {
    /// Creates the reader of a durable run, after some events.
    pub(crate) fn of_stored(service: &Service, tenant: &str, run_id: &str, read: u64) -> Self {
        EventReader {
            service: service.clone(),
            tenant: tenant.to_owned(),
            run_id: run_id.to_owned(),
            source: Source::Store(service.watcher(run_id)),
            read,
            is_over: false,
            takes_room: None,
            room: None,
            has_all_room: false,
        }
    }

    /// Creates the reader of a run in memory. What it returns leaves the log.
    pub(crate) fn of_log(service: &Service, tenant: &str, log: &Arc<EventLog>) -> Self {
        let reader = EventReader::of_stored(service, tenant, log.run_id(), 0);
        match log.changes() {
            Some(changes) => EventReader { source: Source::Memory(log.clone(), changes), ..reader },
            None => reader,
        }
    }

    /// From now on each page takes room of a tenant's responses until the next one is asked for. A page that finds no room
    /// is not kept meanwhile: it is read once there is.
    #[must_use]
    pub(crate) fn taking_room(self, tenant: &Arc<TenantState>) -> Self {
        EventReader { takes_room: Some(tenant.clone()), ..self }
    }

    /// Waits for more events. Returns `None` after the last one, or when the service shuts down and the run does not
    /// continue here.
    ///
    /// # Errors
    /// If the store fails, or no longer has the run.
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

    /// Returns a page of the events that are there after those that were read, without waiting for more.
    ///
    /// # Errors
    /// If the store fails, or no longer has the run.
    pub async fn ready(&mut self) -> Result<Vec<Event>, Refused> {
        if !self.has_all_room {
            self.room = None;
        }
        let mut free: Option<(usize, BodyRoom)> = None;
        loop {
            if self.is_over {
                return Ok(Vec::new());
            }
            let InTurn { value: events, turn } = self.page().await?;
            let bytes = events.iter().map(|event| event.data.len()).sum();
            let has_room = match &self.takes_room {
                Some(tenant) if bytes > TenantState::SMALL_RESPONSE && !self.has_all_room => {
                    // What was read may have grown meanwhile.
                    let known = free.take().filter(|(has, _)| *has >= bytes).map(|(_, room)| room);
                    self.room = known.or_else(|| tenant.response_room_now(bytes));
                    self.room.is_some()
                }
                _ => true,
            };
            if has_room {
                return Ok(self.taken(events));
            }
            drop((events, turn));
            if let Some(tenant) = self.takes_room.clone() {
                free = self.room_or_news(&tenant, bytes).await;
            }
        }
    }

    /// Waits until there is room for so many bytes, or something changes: a run in memory that ends takes the room of all that
    /// is left, and nothing more is read of a run that stops here.
    async fn room_or_news(&mut self, tenant: &TenantState, bytes: usize) -> Option<(usize, BodyRoom)> {
        match &mut self.source {
            Source::Memory(_, changes) => tokio::select! {
                room = tenant.response_room_when_free(bytes) => Some((bytes, room)),
                // The sender lives as long as the log.
                _ = changes.changed() => None,
            },
            Source::Store(_) => tokio::select! {
                room = tenant.response_room_when_free(bytes) => Some((bytes, room)),
                () = self.service.stopped(&self.run_id) => {
                    self.is_over = true;
                    None
                }
            },
        }
    }

    /// Notes that events are read.
    fn taken(&mut self, events: Vec<Event>) -> Vec<Event> {
        if let Some(last) = events.last() {
            self.read = last.number;
            self.is_over |= last.is_last();
            if let Source::Memory(log, _) = &self.source {
                log.forget(last.number);
            }
        }
        events
    }

    /// Reads the next page. It has no event if there is none yet.
    async fn page(&mut self) -> Result<InTurn<Vec<Event>>, Refused> {
        match &mut self.source {
            Source::Memory(log, changes) => {
                changes.borrow_and_update();
                if let Some(room) = log.take_room() {
                    (self.room, self.has_all_room) = (Some(room), true);
                }
                Ok(InTurn { value: log.page(self.read), turn: None })
            }
            Source::Store(_) => self.stored().await,
        }
    }

    async fn stored(&mut self) -> Result<InTurn<Vec<Event>>, Refused> {
        let read = self.stored_after(self.read).await?;
        if !read.value.0.is_empty() || !read.value.1 {
            return Ok(read.map(|(events, _)| events.into_iter().map(Event::from).collect()));
        }
        drop(read);
        if self.has_read_answer().await? {
            self.is_over = true;
            return Ok(InTurn { value: Vec::new(), turn: None });
        }
        let number = self.read.saturating_add(1);
        let run = self.service.0.stored_in_turn(&self.tenant, &self.run_id).await?;
        Ok(run.map(|run| run.answer.map(|data| Event { number, kind: "answer".into(), data }).into_iter().collect()))
    }

    /// Reads a page of stored events after the first ones, and whether these are all of a run that is done.
    async fn stored_after(&self, skip: u64) -> Result<InTurn<(Vec<StoredEvent>, bool)>, Refused> {
        let (store, run_id) = (self.service.0.store.clone(), self.run_id.clone());
        let read = self.service.0.read(&self.tenant, async move { store.events(&run_id, skip).await }).await?;
        Ok(read.map(|read| (read.events, read.is_over)))
    }

    /// Returns whether the last event that was read is one of the run, which is done or not.
    ///
    /// # Errors
    /// If the store fails, or no longer has the run.
    pub(crate) async fn knows_last(&self, is_done: bool) -> Result<bool, Refused> {
        let is_stored = self.read > 0 && !self.stored_after(self.read - 1).await?.value.0.is_empty();
        Ok(is_stored || (is_done && self.has_read_answer().await?))
    }

    /// Returns whether the last event that was read is the answer: the one after all that are stored.
    async fn has_read_answer(&self) -> Result<bool, Refused> {
        let is_stored = async |number: u64| Ok::<_, Refused>(!self.stored_after(number - 1).await?.value.0.is_empty());
        Ok(self.read > 0 && !is_stored(self.read).await? && (self.read == 1 || is_stored(self.read - 1).await?))
    }
}

impl From<StoredEvent> for Event {
    fn from(event: StoredEvent) -> Self {
        Event { number: event.number, kind: event.kind.into(), data: event.data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::store::MemoryStore;
    use std::time::Duration;

    /// A run in memory that ends has the room of all that its client has not read. A stream that waits for room until then
    /// goes on with it: nobody else would give that room back.
    #[tokio::test]
    async fn a_stream_that_waits_for_room_goes_on_with_that_of_its_run() {
        let text = "isolation = \"in-process\"\n[service]\nmax_bodies_bytes = 1048576\n";
        let config = Config::parse_with(text, "test.toml", &|_| None).unwrap();
        let service = Service::open_front(config, Arc::new(MemoryStore::new())).await.unwrap();
        let tenant = service.0.tenants[0].clone();
        let log = service.log_in_memory("run");
        let mut reader = EventReader::of_log(&service, &tenant.name, &log).taking_room(&tenant);
        let room = tenant.response_room_now(1_048_576).expect("the room of a tenant");
        log.push("print", &"x".repeat(TenantState::SMALL_RESPONSE + 1));
        let read = tokio::spawn(async move {
            let mut kinds = Vec::new();
            while let Some(events) = reader.next().await.unwrap() {
                kinds.extend(events.into_iter().map(|event| event.kind.into_owned()));
            }
            kinds
        });
        assert!(tenant.response_room_now(TenantState::SMALL_RESPONSE).is_none());
        log.finish("{}", Some(room));
        let kinds = tokio::time::timeout(Duration::from_secs(60), read).await.expect("the stream goes on").unwrap();
        assert_eq!(kinds, ["print", "answer"]);
        assert!(tenant.response_room_now(1_048_576).is_some());
    }
}
