//! Observers: events of runs, for the host.

use crate::terms::outcome::{CallStatus, Usage, Verdict};
use crate::terms::place::Place;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Receives events of runs. Set one with [`EngineBuilder::observer`](crate::EngineBuilder::observer).
///
/// Methods are called on the thread where the event happens, with any isolation. The run waits for them; a panic in one
/// does not affect the run. Every method does nothing by default, and more may be added. Events do not contain
/// arguments or results, but [`Observer::printed`] has printed lines.
///
/// Every run has one [`Observer::run_started`] and one [`Observer::run_ended`], even if it is dropped early. A turn of
/// a session is a run.
pub trait Observer: Send + Sync {
    /// Called when a run starts. Its program may not be compiled yet.
    fn run_started(&self, run: &RunStarted<'_>) {
        let _ = run;
    }

    /// Called when a run has ended, just before its outcome is returned. It is the last event of the run, except for
    /// the end of calls that do not return in time with process isolation.
    fn run_ended(&self, run: &RunEnded<'_>) {
        let _ = run;
    }

    /// Called when the program has printed a line. [`Input::on_print`](crate::Input::on_print) describes when lines of
    /// workers arrive, and in which order.
    fn printed(&self, line: &PrintedLine<'_>) {
        let _ = line;
    }

    /// Called before a tool is called, or when a call is served from the cache or a record. A denied call does not
    /// start.
    fn call_started(&self, call: &CallStarted<'_>) {
        let _ = call;
    }

    /// Called when a call that started has ended. Each one does, with [`CallStatus::Unknown`] if the run ended first.
    fn call_ended(&self, call: &CallEnded<'_>) {
        let _ = call;
    }

    /// Called when a call is not made because the run may not make it.
    ///
    /// Reasons: its arguments do not match, the policy denies it or asks for an approver that is absent, a call limit
    /// or a budget is used up, or the record cannot store it. With process isolation, calls whose arguments do not
    /// match a signature are reported at the end of the run, at most 64 of them. A call that is rejected in a run
    /// driven step by step has started, and ends with [`Observer::call_ended`].
    fn call_refused(&self, call: &CallRefused<'_>) {
        let _ = call;
    }

    /// Called when a run hits a bug of the interpreter or the process layer, which was contained. The outcome has the
    /// verdict `host_fault`. Called once for each such run, before its outcome is returned.
    fn host_fault(&self, fault: &HostFault<'_>) {
        let _ = fault;
    }
}

/// The start of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RunStarted<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// The trace that the run is part of: [`Input::traceparent`](crate::Input::traceparent).
    pub traceparent: Option<&'a str>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RunEnded<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// How the run ended; [`Verdict::Cancelled`] if it was dropped early.
    pub verdict: Verdict,
    /// The stable name of the error, if it failed.
    pub reason: Option<&'static str>,
    /// Fuel, bytes, counts and durations. For a run that was dropped early, only the duration is known. `cpu_us` and
    /// `rss_peak_bytes` are not included: they are known only after the process has ended.
    pub usage: &'a Usage,
}

/// A printed line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PrintedLine<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// The line, without its line end.
    pub line: &'a str,
}

/// The start of a tool call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallStarted<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// The tool, as programs call it.
    pub name: &'a str,
    /// The name of the call in its run.
    pub place: &'a Place,
    /// The number of the call in its run, from 1; 0 if it is served from the cache.
    pub number: u64,
    /// Whether the call ended in an earlier attempt of the recorded run, so that the tool is not called again.
    pub replayed: bool,
}

/// The end of a tool call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallEnded<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// The tool, as programs call it.
    pub name: &'a str,
    /// The name of the call in its run.
    pub place: &'a Place,
    /// The number of the call in its run, from 1; 0 if it is served from the cache.
    pub number: u64,
    /// How the call ended, as in the ledger.
    pub status: CallStatus,
    /// The duration of the call, including the wait for a thread.
    pub duration: Duration,
}

/// A tool call that is not made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallRefused<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// The tool, as programs call it.
    pub name: &'a str,
    /// The path of indexes to the worker that made the call; empty for the program itself.
    pub worker: &'a [u32],
    /// The stable name of the reason, such as `tool_denied`, `tool_call_limit_exceeded` or `budget_exceeded`. The
    /// message, which may contain parts of the arguments, is in the ledger of the outcome.
    pub reason: &'static str,
}

/// A contained bug that a run hit.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HostFault<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// A description of the bug, with nothing of the program or its data.
    pub message: &'a str,
}

/// The observer of an engine, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Observed(Option<Arc<dyn Observer>>);

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.0.is_some()).finish()
    }
}

impl Observed {
    pub(crate) fn by(observer: impl Observer + 'static) -> Self {
        Observed(Some(Arc::new(observer)))
    }

    /// Returns whether there is an observer.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Notifies the observer. A panic of the observer does not affect the run.
    pub(crate) fn tell(&self, what: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| what(&**observer)));
        }
    }
}
