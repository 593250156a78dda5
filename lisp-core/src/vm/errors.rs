//! Errors that end a run: their reasons, and their places in the program.

use super::machine::Machine;
use crate::error::{CallSite, Error, Reason, Span, Trace};
use crate::heap::{Fault, Value};
use crate::stack::{Code, Frame, NativeFn, State};

/// With more calls than this inside each other it is they that take the memory.
const DEEP: usize = 10_000;

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
            error.trace = Some(Box::new(Trace { program, ..Trace::default() }));
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

    fn memory_error(&mut self, bytes: usize) -> Error {
        let held = self.store.heap().account().used;
        let error = self.over_budget(format!("holds {held} bytes and needs {bytes} more"));
        let calls = self.at_rest(|state| state.position()).frames;
        match calls > DEEP {
            true => Error {
                hint: Some(format!(
                    "{calls} calls are under way, each inside the one before: see that the recursion comes to an end, or use loop with recur"
                )),
                ..error
            },
            false => error,
        }
    }

    pub(super) fn over_budget(&self, what: String) -> Error {
        budget_error(self.parent.is_some(), self.baseline, self.store.heap().account().limit, what)
    }

    /// Gives the error the span of the instruction that failed, and the reason that callers of closures give it.
    pub(super) fn place_error(&mut self, error: Error) -> Error {
        let has_place = error.span.is_some();
        let mut error = self.at_rest(|state| state.place_error(error));
        if !has_place && self.settings.shows_locals && !self.store.is_compacting() && !is_of_host(error.reason) {
            error = self.store.enter(|h, state, _| state.show_locals(h, error));
        }
        error
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
        let frames = || self.frames.iter().enumerate().skip(first);
        let mut ways = frames().rev().filter_map(self.way());
        let mut function = None;
        if self.caught.as_deref().is_some_and(|c| c.at_home && error.trace.is_some() && error.span == c.error.span) {
            // Thrown again: where that stands is no call on the way.
            ways.next();
        }
        let mut calls = Vec::new();
        if error.span.is_none() {
            let Some(Way { span, program, name, native }) = ways.next() else { return };
            function = name.map(Into::into);
            error.span = Some(span);
            error.trace = Some(Box::new(Trace { program, ..Trace::default() }));
            // What a function such as `map` called without a frame.
            calls.extend(native.map(|(called, element)| {
                let function = called.map(Into::into);
                CallSite { function, span, program, element: Some(element) }
            }));
        }
        let Some(trace) = &mut error.trace else { return };
        trace.calls.append(&mut calls);
        for Way { span, program, name, native } in ways.by_ref() {
            let call =
                CallSite { function: function.take(), span, program, element: native.map(|(_, element)| element) };
            function = name.map(Into::into);
            if trace.calls.len() < Trace::CALLS {
                trace.calls.push(call);
                continue;
            }
            // There are more: the last to be shown is the outermost, the first that was made.
            let Some(Way { span, program, .. }) = frames().find_map(self.way()) else { break };
            trace.calls[Trace::CALLS - 1] = CallSite { function: None, span, program, element: None };
            break;
        }
    }

    /// Makes a frame a part of the way to an error. A native frame is none: it is told with the frame that called it.
    fn way<'s>(&'s self) -> impl FnMut((usize, &'s Frame<'h>)) -> Option<Way<'s>> {
        let mut native = None;
        move |(number, frame)| match frame.code {
            Code::Native { native: function, index, .. } => {
                native = self.element(frame, function, index);
                None
            }
            Code::Lisp { unit, proto, .. } => {
                let native = native.take();
                let span = proto.spans.get(self.place(number) as usize).copied().filter(|_| !unit.prelude)?;
                Some(Way { span, program: unit.number, name: proto.name.as_deref(), native })
            }
        }
    }

    /// The function that a native frame calls, if it is a built-in one, and the element that it calls it for. No object is
    /// looked at: a compaction may be under way.
    fn element(&self, frame: &Frame<'h>, native: &NativeFn, index: usize) -> Option<Native> {
        let function = native.counts.filter(|_| index != NativeFn::FINISHING)?;
        let called = match self.stack.get(frame.base as usize + function) {
            Some(Value::Builtin(id)) => Some(id.row().name),
            _ => None,
        };
        Some((called, (native.name, index)))
    }
}

/// The name of a built-in function that a native one calls, and that one's own with the number of the element.
type Native = (Option<&'static str>, (&'static str, usize));

/// A place on the way to an error.
struct Way<'s> {
    span: Span,
    program: u64,
    /// The name of the function that it is in.
    name: Option<&'s str>,
    /// The native function that was called there.
    native: Option<Native>,
}

/// The error of a worker that would end the program.
#[cold]
pub(super) fn not_in_a_worker(name: &str) -> Fault {
    Error::new(Reason::RuntimeError, format!("{name} cannot stand inside pmap or pcalls"))
        .hint("answer a value, and return after the parallel call")
        .into()
}

/// Does the reason say that the host ended the run, at a time of its own?
fn is_of_host(reason: Reason) -> bool {
    matches!(reason, Reason::Timeout | Reason::Cancelled | Reason::HostFault)
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
