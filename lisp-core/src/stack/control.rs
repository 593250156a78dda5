//! The results of calls and of steps of native functions.

use super::slots::slot_on_stack;
use crate::heap::Value;

/// What the machine cannot do itself, such as a tool call. Its driver, the caller that resumes it, does it and informs the
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A tool must be called: see [`Machine::with_call`](crate::vm::Machine::with_call) and
    /// [`Machine::reply`](crate::vm::Machine::reply).
    ToolCall,
    /// Workers must be run: see [`Machine::parallel_call`](crate::vm::Machine::parallel_call),
    /// [`Machine::branch`](crate::vm::Machine::branch) and [`Machine::join`](crate::vm::Machine::join).
    Parallel,
    /// The time is needed: see [`Machine::tell_time`](crate::vm::Machine::tell_time).
    Clock,
}

/// A call: the function is in stack slot `at`, its `argc` arguments are in the slots after it, and its value goes to
/// slot `dst`.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    at: u32,
    argc: u32,
    pub(crate) dst: u32,
}

impl Call {
    /// Creates a call that is prepared on the stack.
    #[inline]
    pub(crate) fn new(at: usize, argc: usize, dst: u32) -> Self {
        Call { at: slot_on_stack(at), argc: slot_on_stack(argc), dst }
    }

    /// Returns the slot of the function.
    #[inline]
    pub(crate) fn at(self) -> usize {
        self.at as usize
    }

    /// Returns the number of arguments.
    #[inline]
    pub(crate) fn argc(self) -> usize {
        self.argc as usize
    }

    /// Returns the slots of the arguments.
    #[inline]
    pub(crate) fn args(self) -> std::ops::Range<usize> {
        self.at() + 1..self.at() + 1 + self.argc()
    }
}

/// The result of a call, or of a step of a native function.
pub(crate) enum Control<'h> {
    /// The value of the call, or of the native frame.
    Value(Value<'h>),
    /// The frame on top continues.
    Frame,
    /// This call must be made: in place of the one that returned it, or for the native frame on top.
    Call(Call),
    /// The driver must perform an effect.
    Effect(Effect),
}
