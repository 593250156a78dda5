//! What a call, or a step of a native function, leads to.

use super::slots::slot_on_stack;
use crate::heap::Value;

/// What the machine cannot do by itself. Its driver does it, tells the machine, and resumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A tool is to be called: see [`Machine::with_call`](crate::vm::Machine::with_call) and
    /// [`Machine::reply`](crate::vm::Machine::reply).
    ToolCall,
    /// Workers are to be run: see [`Machine::parallel_call`](crate::vm::Machine::parallel_call),
    /// [`Machine::branch`](crate::vm::Machine::branch) and [`Machine::join`](crate::vm::Machine::join).
    Parallel,
    /// The time is asked for: see [`Machine::tell_time`](crate::vm::Machine::tell_time).
    Clock,
}

/// A call: the function is in stack slot `at`, its `argc` arguments are in the slots behind it, and its value goes to slot
/// `dst`.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    at: u32,
    argc: u32,
    pub(crate) dst: u32,
}

impl Call {
    /// A call that is laid out on the stack.
    #[inline]
    pub(crate) fn new(at: usize, argc: usize, dst: u32) -> Self {
        Call { at: slot_on_stack(at), argc: slot_on_stack(argc), dst }
    }

    /// The slot of the function.
    #[inline]
    pub(crate) fn at(self) -> usize {
        self.at as usize
    }

    /// The number of arguments.
    #[inline]
    pub(crate) fn argc(self) -> usize {
        self.argc as usize
    }

    /// The slots of the arguments.
    #[inline]
    pub(crate) fn args(self) -> std::ops::Range<usize> {
        self.at() + 1..self.at() + 1 + self.argc()
    }
}

/// What a call, or a step of a native function, leads to.
pub(crate) enum Control<'h> {
    /// The value of the call, or of the native frame, is known.
    Value(Value<'h>),
    /// A frame is on top that is to go on.
    Frame,
    /// This call is to be made: in place of the one that led to it, or for the native frame on top.
    Call(Call),
    /// The driver is to do something.
    Effect(Effect),
}
