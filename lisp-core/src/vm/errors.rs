//! Errors that end a run: their reasons, and their positions in the program.

use super::machine::Machine;
use super::ways::{Start, Way};
use crate::builtins::LAZY;
use crate::code::Called;
use crate::error::{CallSite, Error, Reason, Trace};
use crate::heap::Fault;
use crate::natives::walks_without_end;
use crate::stack::{Code, Frame, State, Unit};
use crate::text::beginning;

/// With more nested calls than this, the calls themselves use up the memory.
const DEEP: usize = 10_000;
/// More nested calls than this are a recursion, and this many show of which function.
const MANY_CALLS: usize = 500;
const SOME_CALLS: usize = 16;

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
        // The frames of a program that has ended are gone.
        if let (None, Some((span, program))) = (error.span, self.whole) {
            error.span = Some(span);
            error.trace = Some(Box::new(Trace { program, ..Trace::default() }));
        }
        error
    }

    /// Returns the error of a fault that ends the run, with its position in the source.
    pub(super) fn error_of(&mut self, fault: Fault) -> Error {
        let error = match fault {
            Fault::Error(error) => *error,
            Fault::NeedsFrame => Error::endless("this"),
            Fault::Pause(_) | Fault::Clock | Fault::Place => return self.fuel_error(),
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
                    "{calls} nested calls are in progress: make sure that the recursion ends, or use loop with recur"
                )),
                ..error
            },
            false => error,
        }
    }

    pub(super) fn over_budget(&self, what: String) -> Error {
        budget_error(self.parent.is_some(), self.baseline, self.store.heap().account().limit, what)
    }

    /// Gives an error the span of the failed instruction, and the reason by which callers of closures report it.
    pub(super) fn place_error(&mut self, error: Error) -> Error {
        let has_place = error.span.is_some();
        let mut error = self.at_rest(|state| state.place_error(error));
        if !has_place && self.settings.shows_locals && !self.store.is_compacting() && !is_of_host(error.reason) {
            error = self.store.enter(|h, state, _| state.show_locals(h, error));
        }
        error
    }
}

/// Returns the error of a program, or a worker, whose data does not fit its memory limit.
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
        self.place_among(Start::OUTERMOST, error)
    }

    /// Gives an error its position and reason according to the calls from `start` on.
    pub(super) fn place_among(&self, start: Start, mut error: Error) -> Error {
        use Reason::{ArithmeticError, DestructureError, NotCallable, RuntimeError, UnboundVar};
        if let Some(in_closure) = self.named_by_native(start) {
            // As in the reference implementation, an error inside a function that map, reduce or update calls is named
            // after the caller.
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
        self.trace(start, &mut error);
        if self.is_endless_recursion(error.reason) {
            error.hint = Some(LAZY.hint());
        } else if is_at_limit(error.reason) && walks_without_end(self) {
            let hint = "an endless sequence was walked up to the limit: take some of it first, as in (take-while f (take 1000 s))";
            error.hint = Some(match error.hint.take() {
                Some(limit) => format!("{hint}; {limit}"),
                None => hint.to_owned(),
            });
        }
        error
    }

    /// Returns true if an endless sequence, which Clojure would compute lazily, reached a limit.
    fn is_endless_recursion(&self, reason: Reason) -> bool {
        let is_lazy = |frame: &Frame<'_>| matches!(frame.code, Code::Lisp { unit, .. } if unit.code.has_lazy);
        is_at_limit(reason) && self.frames.len() > MANY_CALLS && self.frames.iter().rev().take(SOME_CALLS).any(is_lazy)
    }

    /// Returns whether one of the calls from `start` on is a native function after which errors inside it are named.
    /// The value is true if a function of the program is running in it.
    fn named_by_native(&self, start: Start) -> Option<bool> {
        let mut in_closure = false;
        for (number, frame) in self.frames.iter().enumerate().skip(start.frame).rev() {
            let is_named = match frame.code {
                Code::Native { native, .. } => native.names_faults,
                Code::Lisp { unit, .. } if unit.prelude => true,
                Code::Lisp { proto, .. } => {
                    let innermost = self.in_place(number, proto, start).next();
                    in_closure |= innermost.is_none_or(|call| call.called == Called::Literal);
                    innermost.is_some()
                }
            };
            if is_named {
                return Some(in_closure);
            }
        }
        None
    }

    /// Gives an error its position and call chain. An error of a worker has a position already: the call of the worker
    /// is in the chain.
    fn trace(&self, start: Start, error: &mut Error) {
        let mut ways = self.ways(start);
        let mut function = None;
        if self.caught.as_deref().is_some_and(|c| c.at_home && error.trace.is_some() && error.span == c.error.span) {
            // Rethrown: the position of the rethrow is not part of the call chain.
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
            // There are more calls: the last one shown is the outermost, made first.
            let Some(Way { span, program, .. }) = self.outermost(start) else { break };
            trace.calls[Trace::CALLS - 1] = CallSite { function: None, span, program, element: None };
            break;
        }
    }
}

/// Returns the error of a worker that tries to end the program.
#[cold]
pub(super) fn not_in_a_worker(name: &str) -> Fault {
    Error::new(Reason::RuntimeError, format!("{name} cannot be used inside pmap or pcalls"))
        .hint(format!("return a value, and call {name} after the parallel call"))
        .into()
}

/// Returns true if the run reached its limit of memory, fuel or time.
fn is_at_limit(reason: Reason) -> bool {
    matches!(reason, Reason::MemoryExceeded | Reason::FuelExhausted | Reason::Timeout)
}

/// Returns true if the host ended the run, at a time of its choice.
fn is_of_host(reason: Reason) -> bool {
    matches!(reason, Reason::Timeout | Reason::Cancelled | Reason::HostFault)
}

/// Returns true if a limit of the whole run was reached, or the host ended the run. The caller of a worker must not
/// change such a reason.
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

#[cold]
pub(super) fn unbound(unit: &Unit, g: u32) -> Fault {
    let name = unit.code.globals.get(g as usize).map_or("", |n| n);
    Error::new(Reason::UnboundVar, format!("{} is not defined yet", beginning(name)))
        .hint("define it before it is used")
        .into()
}

#[cold]
pub(super) fn loop_limit(limit: u64) -> Fault {
    Error::new(Reason::LoopLimitExceeded, format!("the loop ran more than {limit} times"))
        .hint("use map, filter or reduce over the collection, or raise the limit loop_iterations")
        .detail("limit", limit)
        .detail("reached", limit + 1)
        .into()
}
