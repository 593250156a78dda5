//! Native frames: calls in progress of functions that call functions. Such a frame keeps its values in registers, so they
//! are roots. It makes one call and leaves the loop; when the call has ended, its result is in the first register and
//! the frame goes on.

use super::{Call, Code, Control, Frame, State, slot};
use crate::cost;
use crate::error::Reason;
use crate::heap::{Heap, Res, Value};

/// The register for the result of a call.
pub(crate) const RESULT: usize = 0;

/// Goes on with the native frame on top, until it makes a call that takes a frame or has its value. What it does between
/// two calls can be done again from the start, and the fuel mark says from where.
pub(crate) type Step = for<'h> fn(&'h Heap, &mut State<'h>) -> Res<Control<'h>>;

/// The function on top has returned this value to the native frame below it. When that would store it and call the same
/// function again, this does both, and the function's frame begins anew. Returns false, with nothing changed, when there
/// is anything else to do. The caller pays for it as for an instruction.
pub(crate) type NextCall = for<'h> fn(&mut State<'h>, &Value<'h>) -> bool;

/// Starts a function that calls functions. What stands on the stack stays as it is, so that the call can be made again
/// after a fault.
#[derive(Clone, Copy)]
pub struct Start(pub(crate) for<'h> fn(&'h Heap, &mut State<'h>, Call) -> Res<Control<'h>>);

/// What a native frame runs.
pub(crate) struct NativeFn {
    /// The name of the function, for its errors.
    pub(crate) name: &'static str,
    pub(crate) step: Step,
    pub(crate) next_call: NextCall,
    /// Are faults inside the functions that it calls named after it?
    pub(crate) names_faults: bool,
    /// What there is to know of one whose calls are made by workers.
    pub(crate) parallel: Option<ParallelFn>,
}

/// A function whose calls are made by workers.
pub(crate) struct ParallelFn {
    /// The reason that the error of a worker gets.
    pub(crate) reason: Reason,
    /// The call of the worker of this index, read from the registers of the frame on top.
    pub(crate) worker_call: for<'h> fn(&State<'h>, usize) -> Option<WorkerCall<'h>>,
}

/// One call of a parallel call: the function and its arguments.
pub(crate) struct WorkerCall<'h> {
    pub(crate) f: Value<'h>,
    pub(crate) args: [Value<'h>; 3],
    pub(crate) argc: usize,
}

impl NativeFn {
    pub(crate) const fn new(name: &'static str, step: Step) -> Self {
        NativeFn { name, step, next_call: |_, _| false, names_faults: true, parallel: None }
    }

    /// With a short way from one call to the next.
    pub(crate) const fn next_call(mut self, next_call: NextCall) -> Self {
        self.next_call = next_call;
        self
    }

    /// Faults inside the functions that it calls keep their reasons.
    pub(crate) const fn keeps_reasons(mut self) -> Self {
        self.names_faults = false;
        self
    }

    /// Its calls are made by workers.
    pub(crate) const fn parallel(mut self, parallel: ParallelFn) -> Self {
        self.parallel = Some(parallel);
        self.keeps_reasons()
    }
}

/// The native frame on top.
#[derive(Clone, Copy)]
pub(crate) struct NativeFrame {
    pub(crate) native: &'static NativeFn,
    /// The slot of its first register.
    pub(crate) base: usize,
    /// Has it made a call, so that there is a result in its first register?
    pub(crate) called: bool,
    /// What it counts: elements done, most often.
    pub(crate) index: usize,
}

impl<'h> State<'h> {
    /// Pushes a native frame in place of a call, with these registers; the first is for results.
    pub(crate) fn push_native(
        &mut self,
        h: &'h Heap,
        native: &'static NativeFn,
        call: Call,
        registers: &[Value<'h>],
    ) -> Res<Control<'h>> {
        let (at, count) = (call.at(), registers.len());
        self.ensure(h, at + count)?;
        self.reserve_frame(h)?;
        let (base, size) = (slot(at)?, slot(count)?);
        self.stack[at..at + count].copy_from_slice(registers);
        let code = Code::Native { native, called: false, index: 0, size };
        self.frames.push(Frame { code, base, dst: call.dst });
        Ok(Control::Frame)
    }

    /// The native frame on top.
    #[inline]
    pub(crate) fn native_frame(&self) -> Option<NativeFrame> {
        match self.frames.last() {
            Some(&Frame { code: Code::Native { native, called, index, .. }, base, .. }) => {
                Some(NativeFrame { native, base: base as usize, called, index })
            }
            _ => None,
        }
    }

    /// Notes how far the native frame on top is: whether the result of a call is in its first register, and its count.
    #[inline]
    pub(crate) fn note(&mut self, now_called: bool, now_index: usize) {
        if let Some(Frame { code: Code::Native { called, index, .. }, .. }) = self.frames.last_mut() {
            (*called, *index) = (now_called, now_index);
        }
    }

    /// Stores a result that came at once in the native frame on top.
    #[inline]
    pub(crate) fn note_result(&mut self, value: Value<'h>) {
        if let Some(Frame { code: Code::Native { called, .. }, base, .. }) = self.frames.last_mut() {
            *called = true;
            self.stack[*base as usize + RESULT] = value;
        }
    }

    /// Calls `f` from the native frame on top. A function of the program that takes this many arguments gets its frame
    /// here; any other call is laid out for the loop, which makes it.
    #[inline]
    pub(crate) fn call_from_native(&mut self, h: &'h Heap, f: Value<'h>, args: &[Value<'h>]) -> Res<Control<'h>> {
        let Value::Closure(c) = f else { return self.lay_out_call(h, f, args) };
        let Some(unit) = self.units.get(c.program) else { return self.lay_out_call(h, f, args) };
        let Some(&Frame { code: Code::Native { size, .. }, base, .. }) = self.frames.last() else {
            return Ok(Control::Value(Value::Nil));
        };
        if c.proto.arity as usize != args.len() || c.proto.variadic {
            return self.lay_out_call(h, f, args);
        }
        let at = base as usize + size as usize;
        self.ensure(h, at + c.proto.code.registers())?;
        self.reserve_frame(h)?;
        let first = slot(at)?;
        if let Some(Frame { code: Code::Native { called, .. }, .. }) = self.frames.last_mut() {
            *called = true;
        }
        self.stack[at..at + args.len()].copy_from_slice(args);
        let code = Code::Lisp { unit, proto: c.proto, closure: Some(c), pc: 0 };
        self.frames.push(Frame { code, base: first, dst: base });
        Ok(Control::Frame)
    }

    /// Lays a call out above the native frame on top, which gets its result.
    fn lay_out_call(&mut self, h: &'h Heap, f: Value<'h>, args: &[Value<'h>]) -> Res<Control<'h>> {
        let Some(&Frame { code: Code::Native { size, .. }, base, .. }) = self.frames.last() else {
            return Ok(Control::Value(Value::Nil));
        };
        let at = base as usize + size as usize;
        self.ensure(h, at + 1 + args.len())?;
        self.stack[at] = f;
        self.stack[at + 1..at + 1 + args.len()].copy_from_slice(args);
        Ok(Control::Call(Call::new(at, args.len(), base)))
    }

    /// Lays out a call of `f` with the registers of the native frame on top from number `first` on.
    pub(crate) fn call_with_registers(&mut self, h: &'h Heap, f: Value<'h>, first: usize) -> Res<Control<'h>> {
        let Some(&Frame { code: Code::Native { size, .. }, base, .. }) = self.frames.last() else {
            return Ok(Control::Value(Value::Nil));
        };
        let (from, at) = (base as usize + first, base as usize + size as usize);
        let argc = at - from;
        h.charge(cost::moved(argc))?;
        self.ensure(h, at + 1 + argc)?;
        self.stack[at] = f;
        self.stack.copy_within(from..at, at + 1);
        Ok(Control::Call(Call::new(at, argc, base)))
    }

    /// The number of registers of the native frame on top from number `first` on.
    pub(crate) fn registers_from(&self, first: usize) -> usize {
        match self.frames.last() {
            Some(&Frame { code: Code::Native { size, .. }, .. }) => (size as usize).saturating_sub(first),
            _ => 0,
        }
    }
}
