//! Metrics for Prometheus.

use lisp_runtime::observe::{CallEnded, RunEnded};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    verdict: String,
    reason: String,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    status: String,
}

/// How a request was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    status: u16,
}

/// Which requests took so long.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

/// All metrics of the service.
pub(crate) struct Metrics {
    registry: Registry,
    runs: Family<RunLabels, Counter>,
    running: Gauge,
    seconds: Histogram,
    fuel: Counter,
    calls: Family<CallLabels, Counter>,
    /// Runs whose attempt is being stopped, to continue later.
    stopping: Mutex<HashSet<String>>,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    /// Runs that wait for a slot.
    pub(crate) queued: Gauge,
    /// How often runs were suspended.
    pub(crate) suspended: Counter,
    /// How often runs resumed from their journal.
    pub(crate) resumed: Counter,
    /// How often runs became stuck.
    pub(crate) stuck: Counter,
    /// Open connections.
    pub(crate) connections: Gauge,
    /// Resources in use, measured when the metrics are read.
    pub(crate) resources: ResourceGauges,
}

/// Resources that requests use until they end.
#[derive(Default)]
pub(crate) struct ResourceGauges {
    /// Slots taken by runs.
    pub(crate) slots: Gauge,
    /// All slots.
    pub(crate) all_slots: Gauge,
    /// Durable runs in progress in this process.
    pub(crate) durable_runs: Gauge,
    /// Durable runs of the store that are stuck.
    pub(crate) stuck_runs: Gauge,
    /// Sessions with a turn in progress.
    pub(crate) session_turns: Gauge,
    /// Runs with events in memory.
    pub(crate) event_logs: Gauge,
    /// Durable runs that somebody waits for.
    pub(crate) watched_runs: Gauge,
    /// Tasks of the async runtime.
    pub(crate) tasks: Gauge,
}

impl ResourceGauges {
    fn register(&self, registry: &mut Registry) {
        for (name, help, gauge) in [
            ("slots_taken", "Slots in use", &self.slots),
            ("slots", "Slots of the service", &self.all_slots),
            ("durable_runs", "Durable runs in progress in this process", &self.durable_runs),
            (
                "stuck_runs",
                "Durable runs in the store that are stuck now; more than 1000 count as 1000",
                &self.stuck_runs,
            ),
            ("session_turns", "Sessions with a turn in progress", &self.session_turns),
            ("event_logs", "Runs whose events are in memory", &self.event_logs),
            ("watched_runs", "Durable runs that a request of this process waits for", &self.watched_runs),
            ("tasks", "Tasks of the async runtime", &self.tasks),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }
}

/// Sets a gauge to a count.
pub(crate) fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// Upper bounds of the histogram buckets, in seconds.
const BUCKETS: [f64; 14] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("ptc");
        let metrics = Metrics {
            runs: Family::default(),
            running: Gauge::default(),
            seconds: Histogram::new(BUCKETS),
            fuel: Counter::default(),
            calls: Family::default(),
            stopping: Mutex::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            queued: Gauge::default(),
            suspended: Counter::default(),
            resumed: Counter::default(),
            stuck: Counter::default(),
            connections: Gauge::default(),
            resources: ResourceGauges::default(),
            registry: Registry::default(),
        };
        registry.register(
            "runs",
            "Finished attempts of runs, by verdict and reason; after an attempt with the verdict stopped, another follows",
            metrics.runs.clone(),
        );
        registry.register("runs_in_progress", "Runs in progress", metrics.running.clone());
        let seconds = metrics.seconds.clone();
        registry.register_with_unit("run_duration", "Duration of attempts of runs", Unit::Seconds, seconds);
        registry.register("fuel", "Fuel used by runs", metrics.fuel.clone());
        registry.register("tool_calls", "Tool calls, by status", metrics.calls.clone());
        registry.register("http_requests", "HTTP requests, by route and status", metrics.requests.clone());
        let seconds = metrics.request_seconds.clone();
        registry.register_with_unit(
            "http_request_duration",
            "Duration of HTTP requests, by route; requests that wait for a run take as long",
            Unit::Seconds,
            seconds,
        );
        registry.register("runs_queued", "Runs that wait for a slot, without durable ones", metrics.queued.clone());
        registry.register(
            "runs_suspended",
            "Runs suspended until an outside answer arrives",
            metrics.suspended.clone(),
        );
        registry.register("runs_resumed", "Runs resumed from their journal", metrics.resumed.clone());
        registry.register(
            "runs_stuck",
            "How often a durable run of this process got stuck; runs that are stuck now are in ptc_stuck_runs",
            metrics.stuck.clone(),
        );
        registry.register("connections", "Open connections", metrics.connections.clone());
        metrics.resources.register(&mut registry);
        Metrics { registry, ..metrics }
    }
}

impl Metrics {
    pub(crate) fn run_started(&self) {
        self.running.inc();
    }

    /// Records that an attempt is being stopped, to continue later. Its end is then not counted as a cancellation, and
    /// its calls in progress not as lost.
    pub(crate) fn run_stops(&self, run_id: &str) {
        self.stopping().insert(run_id.to_owned());
    }

    /// Records that the attempt has ended.
    pub(crate) fn run_has_stopped(&self, run_id: &str) {
        self.stopping().remove(run_id);
    }

    fn stopping(&self) -> MutexGuard<'_, HashSet<String>> {
        self.stopping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn run_ended(&self, run: &RunEnded<'_>) {
        self.running.dec();
        let labels = match self.stopping().contains(run.run_id) {
            true => RunLabels { verdict: "stopped".to_owned(), reason: String::new() },
            false => RunLabels { verdict: run.verdict.to_string(), reason: run.reason.unwrap_or_default().to_owned() },
        };
        self.runs.get_or_create(&labels).inc();
        self.fuel.inc_by(run.usage.fuel);
        self.seconds.observe(Duration::from_micros(run.usage.duration_us).as_secs_f64());
    }

    pub(crate) fn call_ended(&self, call: &CallEnded<'_>) {
        if self.stopping().contains(call.run_id) {
            return;
        }
        let status = serde_json::to_value(call.status).ok();
        let status = status.as_ref().and_then(|status| status.as_str()).unwrap_or_default().to_owned();
        self.calls.get_or_create(&CallLabels { status }).inc();
    }

    pub(crate) fn answered(&self, route: &str, status: u16, took: Duration) {
        self.requests.get_or_create(&RequestLabels { route: route.to_owned(), status }).inc();
        self.request_seconds.get_or_create(&RouteLabels { route: route.to_owned() }).observe(took.as_secs_f64());
    }

    /// Returns the metrics in the OpenMetrics text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
