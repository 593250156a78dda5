//! Functions that call functions, as referred to by rows and frames.

use super::{Call, Control, State};
use crate::context::Ctx;
use crate::error::Reason;
use crate::heap::{Res, Value};

/// Continues the native frame on top until it makes a call that takes a frame, or has its value. What it does between
/// two calls can be done again from the start; the fuel at the restart point tells from where.
pub(crate) type Step = for<'h> fn(&'h Ctx, &mut State<'h>) -> Res<Control<'h>>;

/// Called when the function on top has returned this value to the native frame below it. If the native frame would
/// store the value and call the same function again, this does both, and the function's frame starts over. Returns
/// false, with nothing changed, in all other cases. The caller pays for it as for an instruction.
pub(crate) type NextCall = for<'h> fn(&mut State<'h>, &Value<'h>) -> bool;

/// Starts a function that calls functions, in place of its call. Existing values on the stack stay unchanged, so that
/// the call can be made again after a fault.
pub(crate) type Start = for<'h> fn(&'h Ctx, &mut State<'h>, Call) -> Res<Control<'h>>;

/// What a native frame runs.
pub(crate) struct NativeFn {
    /// The name of the function, for its errors.
    pub(crate) name: &'static str,
    pub(crate) step: Step,
    pub(crate) next_call: NextCall,
    /// Whether errors inside the functions that it calls are named after it.
    pub(crate) names_faults: bool,
    /// If its frame counts the elements for which it calls a function: the register of that function.
    pub(crate) counts: Option<usize>,
    /// Set if its calls are made by workers.
    pub(crate) parallel: Option<ParallelFn>,
}

/// A function whose calls are made by workers.
pub(crate) struct ParallelFn {
    /// The reason for the error of a worker.
    pub(crate) reason: Reason,
    /// Returns the call of the worker with this index, read from the registers of the frame on top.
    pub(crate) worker_call: for<'h> fn(&State<'h>, usize) -> Option<WorkerCall<'h>>,
}

/// One call of a parallel call: the function and its arguments.
pub(crate) struct WorkerCall<'h> {
    pub(crate) f: Value<'h>,
    pub(crate) args: [Value<'h>; 3],
    pub(crate) argc: usize,
}

impl NativeFn {
    /// The count of a function that counts elements, when all are done.
    pub(crate) const FINISHING: usize = usize::MAX;

    pub(crate) const fn new(name: &'static str, step: Step) -> Self {
        NativeFn { name, step, next_call: |_, _| false, names_faults: true, counts: None, parallel: None }
    }

    /// Sets a fast path from one call to the next.
    pub(crate) const fn next_call(mut self, next_call: NextCall) -> Self {
        self.next_call = next_call;
        self
    }

    /// Sets that its frame counts elements, and that the function called for them is in this register.
    pub(crate) const fn counts(mut self, function: usize) -> Self {
        self.counts = Some(function);
        self
    }

    /// Sets that errors inside the functions that it calls keep their reasons.
    pub(crate) const fn keeps_reasons(mut self) -> Self {
        self.names_faults = false;
        self
    }

    /// Sets that its calls are made by workers.
    pub(crate) const fn parallel(mut self, parallel: ParallelFn) -> Self {
        self.parallel = Some(parallel);
        self.keeps_reasons()
    }
}
