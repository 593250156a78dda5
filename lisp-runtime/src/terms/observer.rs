//! What a host may see of its runs besides their outcomes.

use crate::terms::outcome::{CallStatus, Usage, Verdict};
use crate::terms::place::Place;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Told of what happens in runs, behind both doors, on the thread on which it happens:
/// [`EngineBuilder::observer`](crate::EngineBuilder::observer). Every method does nothing unless it is written, so more of them may
/// come. The run waits for the observer; a panic of it changes nothing for the run. Nobody is told arguments or results.
///
/// For each run there is one [`Observer::run_started`], and at the end one [`Observer::run_ended`], also when the run is dropped
/// before its end. A turn of a session is a run.
pub trait Observer: Send + Sync {
    /// A run begins; its program may still have to be compiled.
    fn run_started(&self, run: &RunStarted<'_>) {
        let _ = run;
    }

    /// A run is over, and its outcome is about to be there. It is the last that is told of the run, but for the end of calls that do
    /// not return in time behind the process door.
    fn run_ended(&self, run: &RunEnded<'_>) {
        let _ = run;
    }

    /// The program has printed a line. When, and in which order lines of workers come, is said at
    /// [`Input::on_print`](crate::Input::on_print).
    fn printed(&self, line: &PrintedLine<'_>) {
        let _ = line;
    }

    /// A tool is about to be called, or a call is served from a cache or a record. A call that is refused does not begin.
    fn call_begun(&self, call: &CallBegun<'_>) {
        let _ = call;
    }

    /// A call that began is over: each is, with [`CallStatus::Unknown`] when the run was over first.
    fn call_ended(&self, call: &CallEnded<'_>) {
        let _ = call;
    }

    /// A call was not made, because the run may not make it: its arguments do not fit, the policy denies it or asks somebody who is
    /// not there, a limit of calls or a budget is used up, or the record of the run cannot have it. Behind the process door those whose
    /// arguments do not fit a signature are told with the end of the run, and at most 64 of them. A call that somebody who drives the
    /// run rejects has begun, and ends with [`Observer::call_ended`].
    fn call_refused(&self, call: &CallRefused<'_>) {
        let _ = call;
    }

    /// A run has tripped a bug of the interpreter or the process layer, which was contained: its outcome has the verdict
    /// `host_fault`. Called once for each such run, before its outcome is there.
    fn host_fault(&self, fault: &HostFault<'_>) {
        let _ = fault;
    }
}

/// A run that begins.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RunStarted<'a> {
    /// The name of the run.
    pub run_id: &'a str,
    /// The trace that it is part of: [`Input::traceparent`](crate::Input::traceparent).
    pub traceparent: Option<&'a str>,
}

/// A run that is over.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RunEnded<'a> {
    /// The name of the run.
    pub run_id: &'a str,
    /// How it ended; [`Verdict::Cancelled`] for one that was dropped before its end.
    pub verdict: Verdict,
    /// The stable name of what went wrong.
    pub reason: Option<&'static str>,
    /// Fuel, bytes, counts and durations. Of one that was dropped only the duration is known. What the door adds when the
    /// process is reaped (`cpu_us`, `rss_peak_bytes`) is not among them.
    pub usage: &'a Usage,
}

/// A printed line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PrintedLine<'a> {
    /// The name of the run.
    pub run_id: &'a str,
    /// The line, without its end.
    pub line: &'a str,
}

/// A call that begins.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallBegun<'a> {
    /// The name of the run.
    pub run_id: &'a str,
    /// The tool, as programs call it.
    pub name: &'a str,
    /// The name of the call in its run.
    pub place: &'a Place,
    /// The number of the call in its run, from 1; 0 for one that is served from the cache.
    pub number: u64,
    /// It ended in an earlier life of the recorded run: the tool is not called again.
    pub replayed: bool,
}

/// A call that is over.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallEnded<'a> {
    /// The name of the run.
    pub run_id: &'a str,
    /// The tool, as programs call it.
    pub name: &'a str,
    /// The name of the call in its run.
    pub place: &'a Place,
    /// The number of the call in its run, from 1; 0 for one that is served from the cache.
    pub number: u64,
    /// How it ended, as the ledger has it.
    pub status: CallStatus,
    /// How long it took, with the time that it waited for a thread.
    pub duration: Duration,
}

/// A call that was not made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallRefused<'a> {
    /// The name of the run.
    pub run_id: &'a str,
    /// The tool, as programs call it.
    pub name: &'a str,
    /// The indexes on the way to the parallel worker that called it; empty for the program itself.
    pub worker: &'a [u32],
    /// The stable name of why, such as `tool_denied`, `tool_call_limit_exceeded` or `budget_exceeded`. The message, which may have
    /// something of the arguments, is in the ledger of the outcome.
    pub reason: &'static str,
}

/// A contained bug that a run has tripped.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HostFault<'a> {
    /// The name of the run.
    pub run_id: &'a str,
    /// What is known of it; nothing of the program or its data.
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

    /// Is there one?
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Tells it something. An observer that panics is not to take the run with it.
    pub(crate) fn tell(&self, what: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| what(&**observer)));
        }
    }
}
