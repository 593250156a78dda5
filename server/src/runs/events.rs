//! Events of runs, for streams that watch them: in memory for runs that are not durable, in the store for others.

use super::admission::BodyRoom;
use super::metrics::Metrics;
use super::restored::RestoredCalls;
use super::writer::Writer;
use crate::store::EVENT_BYTES;
use lisp_runtime::observe::{CallEnded, CallStarted, HostFault, PrintedLine, RunEnded, RunStarted};
use lisp_runtime::outcome::CallStatus;
use lisp_runtime::{Cancel, Observer};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::sync::watch;

tokio::task_local! {
    /// The log of the attempt whose run the task polls. Another attempt of the run may be in the same process: one that
    /// has lost its lease, and does not know it yet.
    pub(super) static ATTEMPT: Arc<EventLog>;
}

/// The maximum bytes of a run's events: of those that its answer has too, and again of open calls. A run that continues
/// in another attempt starts anew.
const MAX_BYTES: usize = 8 << 20;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number in its run, from 1.
    pub number: u64,
    /// `started`, `print`, `call`, `waiting`, `cut`, `answer` or `problem`.
    pub kind: Cow<'static, str>,
    /// The event's data: JSON on one line.
    pub data: Arc<str>,
}

/// The events of one run while it runs in this process.
#[derive(Debug)]
pub(crate) struct EventLog {
    run_id: String,
    hub: Weak<Hub>,
    state: Mutex<LogState>,
    sink: Sink,
    /// The calls that are held back, of a run that came from a backup.
    pub(crate) restored: OnceLock<RestoredCalls>,
    /// What ends the attempt of a run that was cancelled, once it has replayed its journal.
    pub(crate) cancelled: OnceLock<Cancel>,
    /// The scripted tools of the request.
    scripted: OnceLock<HashSet<String>>,
}

/// Where the events go.
#[derive(Debug)]
enum Sink {
    /// They stay in memory, and are gone with their reader.
    Memory { unread: Mutex<Unread>, changed: watch::Sender<u64> },
    /// They go to the store.
    Store(Arc<Writer>),
}

/// The events of a run in memory that its reader has not taken.
#[derive(Debug, Default)]
struct Unread {
    events: VecDeque<Event>,
    /// The number of all events so far.
    count: u64,
    /// The room of these events, once the run has ended.
    room: Option<BodyRoom>,
}

#[derive(Debug, Default)]
struct LogState {
    bytes: usize,
    /// The bytes of open calls. They are reported beyond the maximum of the other events: no answer has them.
    waiting_bytes: usize,
    is_over: bool,
    /// Lines printed in earlier attempts.
    printed: u64,
    /// Lines printed in this attempt.
    reprinted: u64,
    /// Calls in progress, and a counter of prints, call starts and call ends.
    calls: usize,
    moved: u64,
    /// The number of calls in progress by tool.
    tools: BTreeMap<String, usize>,
    /// Counts steps of a run that continues. Calls that end because the run stops do not count.
    steps: u64,
    /// Calls whose start was reported. A later attempt starts them again.
    started: HashSet<String>,
    /// Calls whose end was reported. A later attempt replays them.
    ended: HashSet<String>,
}

impl Drop for EventLog {
    fn drop(&mut self) {
        let Some(hub) = self.hub.upgrade() else { return };
        let mut logs = hub.logs();
        // Another log of the run may exist by now.
        if logs.get(&self.run_id).is_some_and(|log| log.strong_count() == 0) {
            logs.remove(&self.run_id);
        }
    }
}

impl Event {
    /// Returns whether no event follows this one.
    pub(super) fn is_last(&self) -> bool {
        matches!(&*self.kind, "answer" | "problem")
    }
}

impl EventLog {
    /// Ends a run that was cancelled, where it would go on from its journal. Returns whether it was.
    pub(crate) fn ends_here(&self) -> bool {
        self.cancelled.get().inspect(|cancel| cancel.cancel()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event. The data is serialized directly: a `serde_json::Value` could not be nested deeply.
    pub(crate) fn push(&self, kind: &'static str, data: &impl serde::Serialize) {
        let (kind, data) = match serde_json::to_string(data) {
            Ok(data) => (kind, data),
            Err(error) => ("cut", json!({ "message": format!("an event cannot be sent: {error}") }).to_string()),
        };
        let kept = self.lock().keep(kind, data);
        self.send(kept);
    }

    fn send(&self, kept: Option<(&'static str, Arc<str>)>) {
        let Some((kind, data)) = kept else { return };
        match &self.sink {
            Sink::Store(writer) => writer.event(kind, data),
            Sink::Memory { unread, changed } => {
                let mut unread = unread.lock().unwrap_or_else(PoisonError::into_inner);
                unread.count += 1;
                let number = unread.count;
                unread.events.push_back(Event { number, kind: kind.into(), data });
                changed.send_replace(number);
            }
        }
    }

    /// Returns a receiver that is notified of more events in memory; `None` if they are in the store.
    pub(super) fn changes(&self) -> Option<watch::Receiver<u64>> {
        match &self.sink {
            Sink::Memory { changed, .. } => Some(changed.subscribe()),
            Sink::Store(_) => None,
        }
    }

    /// Returns the ID of the run.
    pub(super) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the events in memory that were not taken; `None` if they are in the store.
    fn unread(&self) -> Option<MutexGuard<'_, Unread>> {
        match &self.sink {
            Sink::Memory { unread, .. } => Some(unread.lock().unwrap_or_else(PoisonError::into_inner)),
            Sink::Store(_) => None,
        }
    }

    /// Returns a page of the events in memory after the first ones: at most [`EVENT_BYTES`], or one event.
    pub(super) fn page(&self, read: u64) -> Vec<Event> {
        let Some(unread) = self.unread() else { return Vec::new() };
        let mut bytes = 0_usize;
        let next = unread.events.iter().filter(|event| event.number > read);
        let fits = next.take_while(|event| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(event.data.len().max(1));
            is_first || bytes <= EVENT_BYTES
        });
        fits.cloned().collect()
    }

    /// Drops the events in memory up to a number: they were taken.
    pub(super) fn forget(&self, number: u64) {
        let Some(mut unread) = self.unread() else { return };
        while unread.events.front().is_some_and(|event| event.number <= number) {
            unread.events.pop_front();
        }
    }

    /// Returns the bytes of the events in memory that were not taken.
    pub(crate) fn bytes_left(&self) -> usize {
        self.unread().map_or(0, |unread| unread.events.iter().map(|event| event.data.len()).sum())
    }

    /// Takes the room of the events in memory, once the run has ended.
    pub(super) fn take_room(&self) -> Option<BodyRoom> {
        self.unread()?.room.take()
    }

    /// Adds the answer, the last event of a run in memory. The room is that of all events that were not taken.
    pub(crate) fn finish(&self, answer: &str, room: Option<BodyRoom>) {
        if let Some(mut unread) = self.unread() {
            unread.room = room;
        }
        self.end("answer", answer.into());
    }

    /// Adds a problem as the last event, in place of those that were not taken: the run did not start, or its answer cannot
    /// be sent.
    pub(crate) fn fail(&self, problem: &impl serde::Serialize) {
        if let Some(mut unread) = self.unread() {
            unread.events.clear();
        }
        self.end("problem", serde_json::to_string(problem).unwrap_or_default().into());
    }

    fn end(&self, kind: &'static str, data: Arc<str>) {
        let was_over = std::mem::replace(&mut self.lock().is_over, true);
        self.send((!was_over).then_some((kind, data)));
    }

    /// Adds the `started` event.
    pub(crate) fn started(&self) {
        self.push("started", &json!({ "run_id": self.run_id }));
    }

    /// Returns the writer of a durable run.
    pub(crate) fn writer(&self) -> Option<&Arc<Writer>> {
        match &self.sink {
            Sink::Store(writer) => Some(writer),
            Sink::Memory { .. } => None,
        }
    }

    /// Returns the number of calls in progress, and a number that changes with every print and call.
    pub(crate) fn pace(&self) -> (usize, u64) {
        let state = self.lock();
        (state.calls, state.moved)
    }

    /// Notes which tools of the request are scripted.
    pub(crate) fn is_scripted(&self, tools: impl Iterator<Item = String>) {
        let _ = self.scripted.set(tools.collect());
    }

    /// Returns the number of calls of scripted tools in progress.
    pub(crate) fn scripted(&self) -> usize {
        let Some(scripted) = self.scripted.get() else { return 0 };
        self.lock().tools.iter().filter(|(name, _)| scripted.contains(*name)).map(|(_, calls)| calls).sum()
    }

    /// Returns the tools of the calls in progress.
    pub(crate) fn tools_in_progress(&self) -> Vec<String> {
        self.lock().tools.keys().cloned().collect()
    }

    /// Returns a number that changes when the program continues.
    pub(crate) fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// Returns how many lines were printed, in this attempt and before.
    pub(crate) fn printed(&self) -> u64 {
        self.lock().printed
    }

    fn print(&self, line: &str) {
        let mut state = self.lock();
        state.moved += 1;
        state.steps += 1;
        state.reprinted += 1;
        if state.reprinted <= state.printed {
            return;
        }
        state.printed = state.reprinted;
        let kept = state.keep("print", json!({ "line": line }).to_string());
        // In the order of the prints.
        self.send(kept);
        drop(state);
    }

    fn call(&self, name: &str, begins: bool, is_step: bool, data: Option<&serde_json::Value>) {
        let mut state = self.lock();
        state.count(name, begins);
        state.moved += 1;
        state.steps += u64::from(is_step);
        state.calls = if begins { state.calls.saturating_add(1) } else { state.calls.saturating_sub(1) };
        let Some(data) = data else { return };
        let call = data["call"].to_string();
        if begins && (state.bytes > MAX_BYTES || !state.started.insert(call.clone())) {
            return;
        }
        if !begins && state.ended.contains(&call) {
            return;
        }
        let kept = state.keep("call", data.to_string());
        self.send(kept);
        drop(state);
    }
}

impl LogState {
    /// Counts a call of a tool that begins or ends.
    fn count(&mut self, name: &str, begins: bool) {
        match (self.tools.get_mut(name), begins) {
            (Some(calls), true) => *calls += 1,
            (Some(calls), false) if *calls > 1 => *calls -= 1,
            (Some(_), false) => drop(self.tools.remove(name)),
            (None, true) => drop(self.tools.insert(name.to_owned(), 1)),
            (None, false) => {}
        }
    }

    /// Returns what is to be sent of an event, within the maximum.
    fn keep(&mut self, kind: &'static str, data: String) -> Option<(&'static str, Arc<str>)> {
        if self.is_over {
            return None;
        }
        let bytes = data.len().saturating_add(64);
        if kind == "waiting" && self.waiting_bytes <= MAX_BYTES {
            self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
            return Some((kind, data.into()));
        }
        if self.bytes > MAX_BYTES {
            return None;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        Some(match self.bytes > MAX_BYTES {
            // The answer has what is left out.
            true => {
                let why = format!("more than {MAX_BYTES} bytes of events: the answer has the rest");
                ("cut", json!({ "message": why }).to_string().into())
            }
            false => (kind, data.into()),
        })
    }
}

/// The observer of all runs: passes their events on and counts them in the metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventHub(Arc<Hub>);

#[derive(Debug, Default)]
struct Hub {
    /// Logs in use, by run ID.
    logs: Mutex<HashMap<String, Weak<EventLog>>>,
    metrics: Metrics,
}

impl Hub {
    fn logs(&self) -> MutexGuard<'_, HashMap<String, Weak<EventLog>>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventHub {
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Creates the log of a run that is not durable.
    pub(crate) fn in_memory(&self, run_id: &str) -> Arc<EventLog> {
        let sink = Sink::Memory { unread: Mutex::default(), changed: watch::Sender::new(0) };
        self.add(run_id, sink, LogState::default())
    }

    /// Creates the log of an attempt of a durable run that has printed lines, and started and ended calls before.
    pub(crate) fn in_store(
        &self,
        run_id: &str,
        writer: Arc<Writer>,
        printed: u64,
        (started, ended): (HashSet<String>, HashSet<String>),
    ) -> Arc<EventLog> {
        self.add(run_id, Sink::Store(writer), LogState { printed, started, ended, ..LogState::default() })
    }

    fn add(&self, run_id: &str, sink: Sink, state: LogState) -> Arc<EventLog> {
        let (run_id, hub) = (run_id.to_owned(), Arc::downgrade(&self.0));
        let log = Arc::new(EventLog {
            run_id: run_id.clone(),
            hub,
            state: Mutex::new(state),
            sink,
            restored: OnceLock::new(),
            cancelled: OnceLock::new(),
            scripted: OnceLock::new(),
        });
        let former = self.0.logs().insert(run_id, Arc::downgrade(&log));
        // Its drop takes the lock.
        drop(former);
        log
    }

    /// Returns the log of the run that the task polls: that of its attempt, or that of a run in memory.
    fn log(&self, run_id: &str) -> Option<Arc<EventLog>> {
        let of_attempt = ATTEMPT.try_with(Arc::clone).ok();
        of_attempt.or_else(|| self.0.logs().get(run_id).and_then(Weak::upgrade))
    }

    /// Returns the number of logs.
    pub(crate) fn count(&self) -> usize {
        self.0.logs().len()
    }
}

impl Observer for EventHub {
    fn run_started(&self, _run: &RunStarted<'_>) {
        self.0.metrics.run_started();
    }

    fn run_ended(&self, run: &RunEnded<'_>) {
        self.0.metrics.run_ended(run);
    }

    fn printed(&self, line: &PrintedLine<'_>) {
        if let Some(log) = self.log(line.run_id) {
            log.print(line.line);
        }
    }

    fn call_started(&self, call: &CallStarted<'_>) {
        let Some(log) = self.log(call.run_id) else { return };
        let data = json!({ "call": call.place.to_string(), "name": call.name, "status": "begun" });
        log.call(call.name, true, true, Some(&data).filter(|_| !call.replayed));
    }

    fn call_ended(&self, call: &CallEnded<'_>) {
        self.0.metrics.call_ended(call);
        let Some(log) = self.log(call.run_id) else { return };
        let ms = u64::try_from(call.duration.as_millis()).unwrap_or(u64::MAX);
        let data =
            json!({ "call": call.place.to_string(), "name": call.name, "status": call.status, "duration_ms": ms });
        // A call replayed from the record took no time. How a call ends that is left when the run stops is unknown, and
        // not reported.
        let is_known = call.status != CallStatus::Unknown;
        log.call(call.name, false, is_known, Some(&data).filter(|_| is_known && !call.duration.is_zero()));
    }

    fn host_fault(&self, fault: &HostFault<'_>) {
        tracing::error!(run_id = fault.run_id, message = fault.message, "host_fault");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Open calls are in no answer: they are reported however much the program has printed.
    #[test]
    fn open_calls_are_reported_after_the_cut() {
        let hub = EventHub::default();
        let log = hub.in_memory("run");
        for _ in 0..10 {
            log.push("print", &"x".repeat(MAX_BYTES / 8));
        }
        log.push("waiting", &1);
        let kinds = || {
            let (mut kinds, mut read) = (Vec::new(), 0);
            loop {
                let page = log.page(read);
                let Some(last) = page.last() else { return kinds };
                assert!(page.len() == 1 || page.iter().map(|event| event.data.len()).sum::<usize>() <= EVENT_BYTES);
                read = last.number;
                kinds.extend(page.into_iter().map(|event| event.kind.into_owned()));
            }
        };
        assert_eq!(kinds(), [&["print"; 7][..], &["cut", "waiting"]].concat());
        // They have a maximum of their own.
        for _ in 0..10 {
            log.push("waiting", &"x".repeat(MAX_BYTES / 8));
        }
        assert_eq!(kinds().len(), 9 + 8);
        // What was taken is gone.
        log.forget(15);
        assert_eq!((kinds().len(), log.bytes_left()), (2, 2 * (MAX_BYTES / 8 + 2)));
        drop(log);
        assert_eq!(hub.count(), 0);
    }
}
