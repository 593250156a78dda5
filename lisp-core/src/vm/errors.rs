//! Errors that end a run: their reasons, and their places in the program.

use super::machine::Machine;
use crate::error::{CallSite, Error, Reason, Trace};
use crate::heap::Fault;
use crate::stack::{Code, Frame, State};

impl Machine {
    pub(super) fn fuel_error(&mut self) -> Error {
        let limit = self.settings.fuel.unwrap_or_default();
        let error = Error::new(
            Reason::FuelExhausted,
            format!("the program used up its fuel, {limit} unit{}", if limit == 1 { "" } else { "s" }),
        )
        .hint("do less work, or raise the limit fuel")
        .detail("limit", limit);
        let mut error = self.place_error(error);
        // The frames of a program that has come to its end are gone.
        if let (None, Some((span, program))) = (error.span, self.whole) {
            error.span = Some(span);
            error.trace = Some(Box::new(Trace { program, calls: Vec::new() }));
        }
        error
    }

    /// The error for a fault that ends the run, with its place in the source.
    pub(super) fn error_of(&mut self, fault: Fault) -> Error {
        let error = match fault {
            Fault::Error(error) => *error,
            Fault::NeedsFrame => Error::endless("this"),
            Fault::Pause(_) | Fault::Clock => return self.fuel_error(),
            Fault::Collect(bytes) => self.memory_error(bytes),
        };
        self.place_error(error)
    }

    fn memory_error(&self, bytes: usize) -> Error {
        let held = self.store.heap().account().used;
        self.over_budget(format!("holds {held} bytes and needs {bytes} more"))
    }

    pub(super) fn over_budget(&self, what: String) -> Error {
        budget_error(self.parent.is_some(), self.baseline, self.store.heap().account().limit, what)
    }

    /// Gives the error the span of the instruction that failed, and the reason that callers of closures give it.
    pub(super) fn place_error(&mut self, error: Error) -> Error {
        self.at_rest(|state| state.place_error(error))
    }
}

/// The error of a program, or a worker, whose data does not fit its budget.
pub(super) fn budget_error(worker: bool, baseline: usize, budget: usize, what: String) -> Error {
    let (who, limit) = if worker { ("a worker", "worker_heap_bytes") } else { ("the program", "heap_bytes") };
    Error::new(Reason::MemoryExceeded, format!("{who} {what}; its budget is {budget}"))
        .hint(format!("keep less data at once, or raise the limit {limit}"))
        .detail("phase", "eval")
        .detail("limit_bytes", baseline.saturating_add(budget))
        .detail("baseline_bytes", baseline)
        .detail("budget_bytes", budget)
}

impl<'h> State<'h> {
    pub(super) fn place_error(&self, error: Error) -> Error {
        self.place_among(0, error)
    }

    /// Gives an error the place and the reason that it has by the frames from number `first` on.
    pub(super) fn place_among(&self, first: usize, mut error: Error) -> Error {
        use Reason::{ArithmeticError, DestructureError, NotCallable, RuntimeError, UnboundVar};
        let native = self.frames[first..].iter().rposition(|f| match f.code {
            Code::Native { native, .. } => native.names_faults,
            Code::Lisp { unit, .. } => unit.prelude,
        });
        if let Some(at) = native.map(|at| first + at) {
            // The reference names a fault inside a function that map, reduce or update calls by the caller.
            let in_closure = self.frames[at + 1..].iter().any(|f| matches!(f.code, Code::Lisp { .. }));
            error.reason = match error.reason {
                Reason::ArityMismatch if !in_closure => RuntimeError,
                ArithmeticError
                | DestructureError
                | NotCallable
                | UnboundVar
                | RuntimeError
                | Reason::ArityError
                | Reason::ArityMismatch
                    if in_closure =>
                {
                    Reason::TypeError
                }
                ArithmeticError if !in_closure => RuntimeError,
                other => other,
            };
        }
        self.trace(first, &mut error);
        error
    }

    /// The place in its code at which a frame stands. The instruction of the frame on top has not been done; that of a frame
    /// which has called another has, and so has one that waits for a tool.
    pub(super) fn place(&self, frame: usize) -> u32 {
        let done = frame + 1 != self.frames.len() || self.pending.is_some();
        match self.frames[frame].code {
            Code::Lisp { pc, .. } => pc.saturating_sub(u32::from(done)),
            Code::Native { .. } => 0,
        }
    }

    /// Gives the error its place, and the calls on the way to it. An error of a worker has a place: the call of the worker
    /// is on the way.
    fn trace(&self, first: usize, error: &mut Error) {
        let place = |(i, frame): (usize, &Frame<'h>)| match frame.code {
            Code::Lisp { unit, proto, .. } if !unit.prelude => {
                Some((proto.spans.get(self.place(i) as usize).copied()?, unit.number, &proto.name))
            }
            _ => None,
        };
        let frames = || self.frames.iter().enumerate().skip(first);
        let mut places = frames().rev().filter_map(place);
        let mut function = None;
        if self.caught.as_deref().is_some_and(|c| c.at_home && error.trace.is_some() && error.span == c.error.span) {
            // Thrown again: where that stands is no call on the way.
            places.next();
        }
        if error.span.is_none() {
            let Some((span, program, name)) = places.next() else { return };
            function.clone_from(name);
            error.span = Some(span);
            error.trace = Some(Box::new(Trace { program, calls: Vec::new() }));
        }
        let Some(trace) = &mut error.trace else { return };
        for (span, program, name) in places.by_ref() {
            let call = CallSite { function: function.take(), span, program };
            function.clone_from(name);
            if trace.calls.len() < Trace::CALLS {
                trace.calls.push(call);
                continue;
            }
            // There are more: the last to be shown is the outermost, the first that was made.
            let Some((span, program, _)) = frames().find_map(place) else { break };
            trace.calls[Trace::CALLS - 1] = CallSite { function: None, span, program };
            break;
        }
    }
}

/// The error of a worker that would end the program.
#[cold]
pub(super) fn not_in_a_worker(name: &str) -> Fault {
    Error::new(Reason::RuntimeError, format!("{name} cannot stand inside pmap or pcalls"))
        .hint("answer a value, and return after the parallel call")
        .into()
}

/// Does the reason say that a limit of the whole run was reached, or that its host would not have it go on? A worker's caller must not give it another name.
pub(super) fn is_limit(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::MemoryExceeded
            | Reason::FuelExhausted
            | Reason::Timeout
            | Reason::Cancelled
            | Reason::ParallelCapacityExceeded
            | Reason::RecordLimitExceeded
            | Reason::ReplayDiverged
            | Reason::UnknownCall
            | Reason::ToolDenied
            | Reason::ApprovalRequired
            | Reason::BudgetExceeded
            | Reason::HostFault
    )
}
