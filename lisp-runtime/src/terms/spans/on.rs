//! Spans of the crate `tracing`, all with the target `ptc_lisp` and the level `INFO`.

use crate::terms::outcome::{CallStatus, Usage, Verdict};
use crate::terms::place::Place;
use tracing::field::Empty;
use tracing::{Span, info_span};

/// The span `run`: a child of the caller's current span.
#[derive(Clone, Debug)]
pub(crate) struct RunSpan(pub(crate) Span);

impl RunSpan {
    /// Creates a disabled span.
    pub(crate) const fn none() -> Self {
        RunSpan(Span::none())
    }

    pub(crate) fn begin(run_id: &str, traceparent: Option<&str>) -> Self {
        RunSpan(info_span!(
            target: "ptc_lisp",
            "run",
            run_id,
            traceparent,
            verdict = Empty,
            reason = Empty,
            fuel = Empty,
            heap_peak_bytes = Empty,
            tool_calls = Empty,
            workers_peak = Empty,
            duration_us = Empty,
        ))
    }

    pub(crate) fn end(&self, verdict: Verdict, reason: Option<&'static str>, usage: &Usage) {
        let span = &self.0;
        span.record("verdict", verdict.name());
        if let Some(reason) = reason {
            span.record("reason", reason);
        }
        span.record("fuel", usage.fuel);
        span.record("heap_peak_bytes", usage.heap_peak_bytes);
        span.record("tool_calls", usage.tool_calls);
        span.record("workers_peak", usage.workers_peak);
        span.record("duration_us", usage.duration_us);
    }
}

/// The span `tool_call`: a child of the run's span. The tool is called in it.
#[derive(Clone, Debug)]
pub(crate) struct CallSpan(Span);

impl Default for CallSpan {
    fn default() -> Self {
        CallSpan(Span::none())
    }
}

impl CallSpan {
    pub(crate) fn begin(run: &RunSpan, tool: &str, place: &Place, number: u64, replayed: bool) -> Self {
        CallSpan(info_span!(
            target: "ptc_lisp",
            parent: &run.0,
            "tool_call",
            tool,
            %place,
            number,
            replayed,
            status = Empty,
        ))
    }

    pub(crate) fn is_seen(&self) -> bool {
        !self.0.is_disabled()
    }

    pub(crate) fn end(&self, status: CallStatus) {
        self.0.record("status", status.name());
    }

    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.in_scope(work)
    }
}

/// The span `parallel` of a `pmap` or `pcalls`: a child of the run's span. The names of its workers' calls begin with
/// its own.
#[derive(Debug)]
pub(crate) struct GroupSpan {
    _span: Span,
}

impl GroupSpan {
    pub(crate) fn begin(run: &RunSpan, effect: u32, calls: usize) -> Self {
        GroupSpan { _span: info_span!(target: "ptc_lisp", parent: &run.0, "parallel", effect, calls) }
    }
}

/// A step of a run that ends in the function where it started: the spans `compile` and `set_up`.
#[derive(Debug)]
pub(crate) struct StepSpan(Span);

impl StepSpan {
    pub(crate) fn compile(run: Option<&RunSpan>, program_bytes: usize) -> Self {
        StepSpan(match run {
            Some(run) => {
                info_span!(target: "ptc_lisp", parent: &run.0, "compile", program_bytes, reason = Empty)
            }
            None => info_span!(target: "ptc_lisp", "compile", program_bytes, reason = Empty),
        })
    }

    pub(crate) fn set_up(run: &RunSpan, programs: usize) -> Self {
        StepSpan(info_span!(target: "ptc_lisp", parent: &run.0, "set_up", programs, reason = Empty))
    }

    pub(crate) fn end(self, reason: Option<&'static str>) {
        if let Some(reason) = reason {
            self.0.record("reason", reason);
        }
    }
}
