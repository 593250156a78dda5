//! A run as seen from outside: its id, its trace, its observer and its span.

use super::observer::{CallEnded, CallRefused, CallStarted, HostFault, Observed, PrintedLine, RunEnded, RunStarted};
use super::outcome::{CallStatus, Outcome, Usage, Verdict};
use super::place::Place;
use super::run_id::run_id;
use super::spans::{CallSpan, RunSpan};
use crate::terms::deadline::micros;
use lisp_core::Reason;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A run as seen from outside. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RunView(Arc<View>);

struct View {
    run_id: Arc<str>,
    traceparent: Option<Arc<str>>,
    observed: Observed,
    span: RunSpan,
    started: Instant,
    /// No more events are reported, except host faults.
    is_over: AtomicBool,
}

impl fmt::Debug for RunView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunView").field(&self.0.run_id).finish()
    }
}

impl RunView {
    /// Starts a run and notifies the observer.
    pub(crate) fn begin(
        observed: &Observed,
        run_id: Arc<str>,
        traceparent: Option<Arc<str>>,
        started: Instant,
    ) -> RunView {
        let span = RunSpan::begin(&run_id, traceparent.as_deref());
        observed.tell(|observer| {
            observer.run_started(&RunStarted { run_id: &run_id, traceparent: traceparent.as_deref() });
        });
        let is_over = AtomicBool::new(false);
        RunView(Arc::new(View { run_id, traceparent, observed: observed.clone(), span, started, is_over }))
    }

    /// Starts a run with this id, or with a new one.
    pub(crate) fn begin_named(
        observed: &Observed,
        named: Option<Arc<str>>,
        traceparent: Option<Arc<str>>,
        started: Instant,
    ) -> RunView {
        RunView::begin(observed, named.unwrap_or_else(run_id), traceparent, started)
    }

    /// Returns the view for work that is not a run: only host faults are reported.
    pub(crate) fn quiet(observed: &Observed) -> RunView {
        RunView(Arc::new(View {
            run_id: run_id(),
            traceparent: None,
            observed: observed.clone(),
            span: RunSpan::none(),
            started: Instant::now(),
            is_over: AtomicBool::new(true),
        }))
    }

    /// Returns the id of the run.
    pub(crate) fn run_id(&self) -> &Arc<str> {
        &self.0.run_id
    }

    /// Returns the trace that the run is part of.
    pub(crate) fn traceparent(&self) -> Option<Arc<str>> {
        self.0.traceparent.clone()
    }

    pub(crate) fn span(&self) -> &RunSpan {
        &self.0.span
    }

    fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }

    /// Returns whether the observer sees printed lines.
    pub(crate) fn sees_prints(&self) -> bool {
        self.0.observed.is_some() && !self.is_over()
    }

    /// Reports lines that the program printed.
    pub(crate) fn printed(&self, lines: &[String]) {
        if self.sees_prints() {
            for line in lines {
                self.0.observed.tell(|observer| observer.printed(&PrintedLine { run_id: &self.0.run_id, line }));
            }
        }
    }

    /// Starts a call. Returns `None` if nothing observes it.
    pub(crate) fn begin_call(&self, name: &str, place: &Place, number: u64, replayed: bool) -> Option<CallView> {
        if self.is_over() {
            return None;
        }
        let span = CallSpan::begin(&self.0.span, name, place, number, replayed);
        if !self.0.observed.is_some() && !span.is_seen() {
            return None;
        }
        let run_id = &self.0.run_id;
        self.0.observed.tell(|observer| observer.call_started(&CallStarted { run_id, name, place, number, replayed }));
        let (name, place) = (name.into(), place.clone());
        Some(CallView { run: self.clone(), name, place, number, since: Instant::now(), span, is_over: false })
    }

    /// Reports a call that is not made.
    pub(crate) fn refused(&self, name: &str, worker: &[u32], reason: Reason) {
        if self.0.observed.is_some() && !self.is_over() {
            let (run_id, reason) = (&self.0.run_id, reason.name());
            self.0.observed.tell(|observer| observer.call_refused(&CallRefused { run_id, name, worker, reason }));
        }
    }

    /// Reports the outcome, and returns it with the id of the run.
    pub(crate) fn ended(&self, mut outcome: Outcome) -> Outcome {
        outcome.run_id = self.0.run_id.clone();
        let view = &self.0;
        let (verdict, reason) = (outcome.verdict(), outcome.problem().map(|problem| problem.error.reason.name()));
        if let Some(problem) = outcome.problem().filter(|_| verdict == Verdict::HostFault) {
            let message = &problem.error.message;
            view.observed.tell(|observer| observer.host_fault(&HostFault { run_id: &view.run_id, message }));
        }
        view.end(verdict, reason, &outcome.usage);
        outcome
    }
}

impl View {
    fn end(&self, verdict: Verdict, reason: Option<&'static str>, usage: &Usage) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        self.span.end(verdict, reason, usage);
        self.observed.tell(|observer| observer.run_ended(&RunEnded { run_id: &self.run_id, verdict, reason, usage }));
    }
}

impl Drop for View {
    /// Reports a run that was dropped before its end.
    fn drop(&mut self) {
        if *self.is_over.get_mut() {
            return;
        }
        let usage = Usage { duration_us: micros(self.started.elapsed()), ..Usage::default() };
        self.end(Verdict::Cancelled, Some("cancelled"), &usage);
    }
}

/// A call as seen from outside. Every call that starts also ends, at the latest when this is dropped.
#[derive(Debug)]
pub(crate) struct CallView {
    run: RunView,
    name: Box<str>,
    place: Place,
    number: u64,
    since: Instant,
    span: CallSpan,
    is_over: bool,
}

impl CallView {
    /// Returns the span in which the tool is called.
    pub(crate) fn span(&self) -> CallSpan {
        self.span.clone()
    }

    /// Reports the end of the call.
    pub(crate) fn end(mut self, status: CallStatus) {
        self.tell_end(status);
    }

    fn tell_end(&mut self, status: CallStatus) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.span.end(status);
        let CallView { run, name, place, number, since, .. } = self;
        let duration = since.elapsed();
        let (run_id, number) = (&run.0.run_id, *number);
        run.0.observed.tell(|observer| {
            observer.call_ended(&CallEnded { run_id, name, place, number, status, duration });
        });
    }
}

impl Drop for CallView {
    /// Reports a call whose reply is no longer needed.
    fn drop(&mut self) {
        self.tell_end(CallStatus::Unknown);
    }
}
