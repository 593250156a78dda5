//! Event logs of runs, for streams that watch them.

use super::metrics::Metrics;
use lisp_runtime::Observer;
use lisp_runtime::observe::{CallBegun, CallEnded, HostFault, PrintedLine, RunEnded, RunStarted};
use lisp_runtime::outcome::CallStatus;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::watch;

/// The maximum bytes of a run's events: of those that its answer has too, and again of open calls.
const MAX_BYTES: usize = 8 << 20;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `started`, `print`, `call`, `waiting`, `cut`, `answer` or `problem`.
    pub kind: &'static str,
    /// The event's data: JSON on one line.
    pub data: Arc<str>,
}

/// The events of one run, from its start. A run that is suspended and resumed keeps its log. A log is kept while it is
/// in use: by the attempt that writes it, and by its readers.
#[derive(Debug)]
pub struct EventLog {
    run_id: String,
    hub: Weak<Hub>,
    /// Identifies this log of the run. Another process has another log, and so does this process once the old log was
    /// dropped.
    name: u32,
    state: Mutex<LogState>,
    changed: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct LogState {
    events: Vec<Event>,
    bytes: usize,
    /// The bytes of open calls. They are reported beyond the maximum of the other events: no answer has them.
    waiting_bytes: usize,
    is_over: bool,
    /// Lines printed in earlier attempts.
    printed: usize,
    /// Lines printed in this attempt.
    reprinted: usize,
    /// Calls in progress, and a counter of prints, call starts and call ends.
    calls: usize,
    moved: u64,
    /// Counts steps of a run that continues. Calls that end because the run stops do not count.
    steps: u64,
    /// Calls whose start was reported. A later attempt starts them again.
    begun: HashSet<String>,
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

impl EventLog {
    fn new(run_id: &str, hub: &Arc<Hub>) -> Arc<Self> {
        // The first 32 bits of a random UUID.
        let name = uuid::Uuid::new_v4().as_fields().0;
        let (run_id, hub) = (run_id.to_owned(), Arc::downgrade(hub));
        Arc::new(EventLog { run_id, hub, name, state: Mutex::default(), changed: watch::Sender::new(0) })
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an attempt. Lines that it prints again are not reported again.
    pub(crate) fn begin_attempt(&self) {
        let mut state = self.lock();
        (state.reprinted, state.calls) = (0, 0);
    }

    /// Adds an event. The data is serialized directly: a `serde_json::Value` could not be nested deeply.
    pub(crate) fn push(&self, kind: &'static str, data: &impl serde::Serialize) {
        let (kind, data) = match serde_json::to_string(data) {
            Ok(data) => (kind, data),
            Err(error) => ("cut", json!({ "message": format!("an event cannot be sent: {error}") }).to_string()),
        };
        let mut state = self.lock();
        state.push(kind, &data);
        let count = state.events.len();
        drop(state);
        self.changed.send_replace(count);
    }

    /// Adds the answer, the last event.
    pub(crate) fn finish(&self, answer: &str) {
        let mut state = self.lock();
        if !state.is_over {
            state.is_over = true;
            state.events.push(Event { kind: "answer", data: answer.into() });
        }
        let count = state.events.len();
        drop(state);
        self.changed.send_replace(count);
    }

    /// Adds the `started` event if the log is empty.
    pub(crate) fn started(&self) {
        let mut state = self.lock();
        if state.events.is_empty() {
            state.push("started", &json!({ "run_id": self.run_id }).to_string());
        }
        let count = state.events.len();
        drop(state);
        self.changed.send_replace(count);
    }

    /// Adds the open calls of a run that this process has not run.
    pub(crate) fn tell_of_waiting(&self, calls: &[impl serde::Serialize]) {
        if !self.lock().events.is_empty() {
            return;
        }
        self.started();
        calls.iter().for_each(|call| self.push("waiting", call));
    }

    /// The ID of the run.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the ID of an event by its index from 0. A reader that has seen it continues after it.
    pub fn id(&self, number: usize) -> String {
        format!("{:08x}-{}", self.name, number.saturating_add(1))
    }

    /// Returns the index of the first event after the one with this ID; 0 if the ID is from another log.
    pub fn behind(&self, id: &str) -> usize {
        let (log, number) = id.split_once('-').unwrap_or_default();
        let is_own = u32::from_str_radix(log, 16).is_ok_and(|name| name == self.name);
        let seen = number.parse().ok().filter(|&number| is_own && number <= self.lock().events.len());
        seen.unwrap_or(0)
    }

    /// Adds a problem as the last event: the run did not start.
    pub(crate) fn fail(&self, problem: &impl serde::Serialize) {
        self.push("problem", problem);
        let mut state = self.lock();
        state.is_over = true;
        let count = state.events.len();
        drop(state);
        self.changed.send_replace(count + 1);
    }

    /// Adds the events of a run that had finished before anyone watched: `started`, its prints and its answer.
    pub(crate) fn tell_of_the_past(&self, answer: &str) {
        #[derive(serde::Deserialize)]
        struct Prints {
            prints: Vec<String>,
        }
        if self.lock().is_over {
            return;
        }
        self.started();
        let prints = serde_json::from_str::<Prints>(answer).map(|answer| answer.prints).unwrap_or_default();
        prints.iter().for_each(|line| self.print(line));
        self.finish(answer);
    }

    /// Returns the events from an index on, and whether the log is complete.
    pub fn from(&self, number: usize) -> (Vec<Event>, bool) {
        let state = self.lock();
        (state.events.get(number..).unwrap_or_default().to_vec(), state.is_over)
    }

    /// Returns a receiver that is notified when there are more events.
    pub fn changes(&self) -> watch::Receiver<usize> {
        self.changed.subscribe()
    }

    /// Returns the number of calls in progress, and a number that changes with every print and call.
    pub(crate) fn pace(&self) -> (usize, u64) {
        let state = self.lock();
        (state.calls, state.moved)
    }

    /// Returns a number that changes when the program continues.
    pub(crate) fn steps(&self) -> u64 {
        self.lock().steps
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
        state.push("print", &json!({ "line": line }).to_string());
        let count = state.events.len();
        drop(state);
        self.changed.send_replace(count);
    }

    fn call(&self, begins: bool, is_step: bool, data: Option<&serde_json::Value>) {
        let mut state = self.lock();
        state.moved += 1;
        state.steps += u64::from(is_step);
        state.calls = if begins { state.calls.saturating_add(1) } else { state.calls.saturating_sub(1) };
        let Some(data) = data else { return };
        if begins && (state.bytes > MAX_BYTES || !state.begun.insert(data["call"].to_string())) {
            return;
        }
        state.push("call", &data.to_string());
        let count = state.events.len();
        drop(state);
        self.changed.send_replace(count);
    }
}

impl LogState {
    fn push(&mut self, kind: &'static str, data: &str) {
        if self.is_over {
            return;
        }
        if kind == "waiting" && self.waiting_bytes <= MAX_BYTES {
            self.waiting_bytes = self.waiting_bytes.saturating_add(data.len()).saturating_add(64);
            self.events.push(Event { kind, data: data.into() });
            return;
        }
        if self.bytes > MAX_BYTES {
            return;
        }
        self.bytes = self.bytes.saturating_add(data.len()).saturating_add(64);
        match self.bytes > MAX_BYTES {
            // The answer has what is left out.
            true => {
                let data =
                    json!({ "message": format!("more than {MAX_BYTES} bytes of events: the answer has the rest") });
                self.events.push(Event { kind: "cut", data: data.to_string().into() });
            }
            false => self.events.push(Event { kind, data: data.into() }),
        }
    }
}

/// The observer of all runs: writes their event logs and counts them in the metrics.
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

    /// Returns the log of a run; it is created if there is none.
    pub(crate) fn watch(&self, run_id: &str) -> Arc<EventLog> {
        let mut logs = self.0.logs();
        if let Some(log) = logs.get(run_id).and_then(Weak::upgrade) {
            return log;
        }
        let log = EventLog::new(run_id, &self.0);
        logs.insert(run_id.to_owned(), Arc::downgrade(&log));
        log
    }

    /// Returns the log of a run if it is in use.
    pub(crate) fn log(&self, run_id: &str) -> Option<Arc<EventLog>> {
        self.0.logs().get(run_id).and_then(Weak::upgrade)
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

    fn call_begun(&self, call: &CallBegun<'_>) {
        let Some(log) = self.log(call.run_id) else { return };
        let data = json!({ "call": call.place.to_string(), "name": call.name, "status": "begun" });
        log.call(true, true, Some(&data).filter(|_| !call.replayed));
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
        log.call(false, is_known, Some(&data).filter(|_| is_known && !call.duration.is_zero()));
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
        let log = hub.watch("run");
        for _ in 0..10 {
            log.push("print", &"x".repeat(MAX_BYTES / 8));
        }
        log.push("waiting", &1);
        let kinds: Vec<&str> = log.from(0).0.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [&["print"; 7][..], &["cut", "waiting"]].concat());
        // They have a maximum of their own.
        for _ in 0..10 {
            log.push("waiting", &"x".repeat(MAX_BYTES / 8));
        }
        assert_eq!(log.from(0).0.len(), 9 + 8);
    }
}
