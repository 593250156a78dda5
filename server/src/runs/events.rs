//! What happens in runs, for those who watch while they go on.

use super::metrics::Metrics;
use lisp_runtime::{CallBegun, CallEnded, CallStatus, HostFault, Observer, PrintedLine, RunEnded, RunStarted};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::watch;

/// The most bytes of events that a run has for those who watch; its answer has everything.
const MOST_BYTES: usize = 8 << 20;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `started`, `print`, `call`, `waiting`, `cut` or `answer`.
    pub kind: &'static str,
    /// What, as JSON text in one line.
    pub data: Arc<str>,
}

/// The events of one run, from its beginning. A run that goes on after a stop goes on with its events. A log is kept as long as
/// somebody holds it: the attempt that writes it, and those who read it.
#[derive(Debug)]
pub struct EventLog {
    run_id: String,
    hub: Weak<Hub>,
    /// Which log of the run it is: another process, or this one after nobody has watched for a while, has another.
    name: u32,
    state: Mutex<LogState>,
    changed: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct LogState {
    events: Vec<Event>,
    bytes: usize,
    is_over: bool,
    /// Lines that earlier lives have printed.
    printed: usize,
    /// Lines that this life has printed.
    reprinted: usize,
    /// Calls that are under way, and when something last happened.
    calls: usize,
    moved: u64,
    /// Steps that only a run that goes on makes: a call that ends with it is none.
    steps: u64,
    /// Calls whose beginning was told. A later life begins them again.
    begun: HashSet<String>,
}

impl Drop for EventLog {
    fn drop(&mut self) {
        let Some(hub) = self.hub.upgrade() else { return };
        let mut logs = hub.logs();
        // Somebody may have begun another log of the run meanwhile.
        if logs.get(&self.run_id).is_some_and(|log| log.strong_count() == 0) {
            logs.remove(&self.run_id);
        }
    }
}

impl EventLog {
    fn new(run_id: &str, hub: &Arc<Hub>) -> Arc<Self> {
        // The beginning of a random name.
        let name = uuid::Uuid::new_v4().as_fields().0;
        let (run_id, hub) = (run_id.to_owned(), Arc::downgrade(hub));
        Arc::new(EventLog { run_id, hub, name, state: Mutex::default(), changed: watch::Sender::new(0) })
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A life of the run begins: what it prints again is not told again.
    pub(crate) fn begin_life(&self) {
        let mut state = self.lock();
        (state.reprinted, state.calls) = (0, 0);
    }

    /// Adds an event. Its data becomes text as it is: as a value of `serde_json` it could not be nested deeply.
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

    /// The last event.
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

    /// The run that this log is of begins, or what is known of it is told from the beginning.
    pub(crate) fn started(&self) {
        let mut state = self.lock();
        if state.events.is_empty() {
            state.push("started", &json!({ "run_id": self.run_id }).to_string());
        }
        let count = state.events.len();
        drop(state);
        self.changed.send_replace(count);
    }

    /// What is known of a run that waits, and that this process has seen nothing of.
    pub(crate) fn tell_of_waiting(&self, calls: &[impl serde::Serialize]) {
        if !self.lock().events.is_empty() {
            return;
        }
        self.started();
        calls.iter().for_each(|call| self.push("waiting", call));
    }

    /// The run that it is of.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The name of an event, by its number from 0: who has seen it goes on behind it.
    pub fn id(&self, number: usize) -> String {
        format!("{:08x}-{}", self.name, number.saturating_add(1))
    }

    /// The number of the first event behind the one of this name; that of an event of another log is 0.
    pub fn behind(&self, id: &str) -> usize {
        let (log, number) = id.split_once('-').unwrap_or_default();
        let is_own = u32::from_str_radix(log, 16).is_ok_and(|name| name == self.name);
        let seen = number.parse().ok().filter(|&number| is_own && number <= self.lock().events.len());
        seen.unwrap_or(0)
    }

    /// The run did not begin.
    pub(crate) fn fail(&self, problem: &impl serde::Serialize) {
        self.push("problem", problem);
        let mut state = self.lock();
        state.is_over = true;
        let count = state.events.len();
        drop(state);
        self.changed.send_replace(count + 1);
    }

    /// The run was over before anybody watched: all that is left of it is its answer.
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

    /// The events from a number on, and whether these are the last.
    pub fn from(&self, number: usize) -> (Vec<Event>, bool) {
        let state = self.lock();
        (state.events.get(number..).unwrap_or_default().to_vec(), state.is_over)
    }

    /// Changes when there are more events.
    pub fn changes(&self) -> watch::Receiver<usize> {
        self.changed.subscribe()
    }

    /// How many calls are under way, and a number that changes when something happens.
    pub(crate) fn pace(&self) -> (usize, u64) {
        let state = self.lock();
        (state.calls, state.moved)
    }

    /// A number that changes when the program goes on.
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
        if begins && (state.bytes > MOST_BYTES || !state.begun.insert(data["call"].to_string())) {
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
        if self.is_over || self.bytes > MOST_BYTES {
            return;
        }
        self.bytes = self.bytes.saturating_add(data.len()).saturating_add(64);
        match self.bytes > MOST_BYTES {
            // What was left out is in the answer.
            true => {
                let data =
                    json!({ "message": format!("more than {MOST_BYTES} bytes of events: the answer has the rest") });
                self.events.push(Event { kind: "cut", data: data.to_string().into() });
            }
            false => self.events.push(Event { kind, data: data.into() }),
        }
    }
}

/// Tells those who watch what happens in runs, and counts it.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventHub(Arc<Hub>);

#[derive(Debug, Default)]
struct Hub {
    /// Those that somebody holds.
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

    /// The events of a run, from now on, for as long as they are held.
    pub(crate) fn watch(&self, run_id: &str) -> Arc<EventLog> {
        let mut logs = self.0.logs();
        if let Some(log) = logs.get(run_id).and_then(Weak::upgrade) {
            return log;
        }
        let log = EventLog::new(run_id, &self.0);
        logs.insert(run_id.to_owned(), Arc::downgrade(&log));
        log
    }

    /// The events of a run that somebody holds.
    pub(crate) fn log(&self, run_id: &str) -> Option<Arc<EventLog>> {
        self.0.logs().get(run_id).and_then(Weak::upgrade)
    }

    /// How many logs there are.
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
        // One that was taken from the record took no time; of one that is left when the run stops nothing is known, and nothing told.
        let is_known = call.status != CallStatus::Unknown;
        log.call(false, is_known, Some(&data).filter(|_| is_known && !call.duration.is_zero()));
    }

    fn host_fault(&self, fault: &HostFault<'_>) {
        tracing::error!(run_id = fault.run_id, message = fault.message, "host_fault");
    }
}
