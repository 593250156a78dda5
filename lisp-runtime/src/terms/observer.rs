//! What a host may see of its runs besides their outcomes.

use crate::terms::outcome::{Outcome, Verdict};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Told of what happens in runs, on the thread on which it happens: [`crate::EngineBuilder::observer`]. Every method does
/// nothing unless it is written, so more of them may come.
pub trait Observer: Send + Sync {
    /// A run has tripped a bug of the interpreter or the process layer, which was contained: its outcome has the verdict
    /// `host_fault`. Called once for each such run, before its outcome is there, behind both doors.
    fn host_fault(&self, fault: &HostFault<'_>) {
        let _ = fault;
    }
}

/// A contained bug that a run has tripped.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HostFault<'a> {
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

    /// The outcome of a run, after its observer has been told of it.
    pub(crate) fn ended(&self, outcome: Outcome) -> Outcome {
        if let (Some(observer), Some(problem)) = (&self.0, outcome.problem())
            && Verdict::of(problem.error.reason) == Verdict::HostFault
        {
            // An observer that panics is not to take the outcome with it.
            let told = || observer.host_fault(&HostFault { message: &problem.error.message });
            let _ = catch_unwind(AssertUnwindSafe(told));
        }
        outcome
    }
}
