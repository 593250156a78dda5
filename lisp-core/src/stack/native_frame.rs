//! Native frames: calls in progress of functions that call functions. Such a frame keeps its values in registers, so
//! they are roots. It makes one call and returns to the dispatch loop. When the call has ended, its result is in the
//! first register and the frame continues.

use super::frame::{Code, Frame};
use super::{Call, Control, NativeFn, State, slot};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Res, Value};

/// The register for the result of a call.
pub(crate) const RESULT: usize = 0;

/// The native frame on top.
#[derive(Clone, Copy)]
pub(crate) struct NativeFrame {
    pub(crate) native: &'static NativeFn,
    /// The slot of its first register.
    pub(crate) base: usize,
    /// Whether it has made a call, whose result is in its first register.
    pub(crate) called: bool,
    /// Its counter, usually of the elements done.
    pub(crate) index: usize,
}

impl<'h> State<'h> {
    /// Pushes a native frame in place of a call, with these registers; the first is for results.
    pub(crate) fn push_native(
        &mut self,
        h: &'h Ctx,
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

    /// Pushes a native frame in place of a call, with these registers followed by the arguments from number `from` on.
    pub(crate) fn push_native_over(
        &mut self,
        h: &'h Ctx,
        native: &'static NativeFn,
        call: Call,
        registers: &[Value<'h>],
        from: usize,
    ) -> Res<Control<'h>> {
        let (at, args) = (call.at(), call.args().start + from..call.args().end);
        let count = registers.len() + args.len();
        self.ensure(h, at + count)?;
        self.reserve_frame(h)?;
        let (base, size) = (slot(at)?, slot(count)?);
        self.stack.copy_within(args, at + registers.len());
        self.stack[at..at + registers.len()].copy_from_slice(registers);
        let code = Code::Native { native, called: false, index: 0, size };
        self.frames.push(Frame { code, base, dst: call.dst });
        Ok(Control::Frame)
    }

    /// Returns the native frame on top.
    #[inline]
    pub(crate) fn native_frame(&self) -> Option<NativeFrame> {
        match self.frames.last() {
            Some(&Frame { code: Code::Native { native, called, index, .. }, base, .. }) => {
                Some(NativeFrame { native, base: base as usize, called, index })
            }
            _ => None,
        }
    }

    /// Saves the progress of the native frame on top: whether the result of a call is in its first register, and its
    /// count.
    #[inline]
    pub(crate) fn note(&mut self, now_called: bool, now_index: usize) {
        if let Some(Frame { code: Code::Native { called, index, .. }, .. }) = self.frames.last_mut() {
            (*called, *index) = (now_called, now_index);
        }
    }

    /// Stores a result that was available at once in the native frame on top.
    #[inline]
    pub(crate) fn note_result(&mut self, value: Value<'h>) {
        if let Some(Frame { code: Code::Native { called, .. }, base, .. }) = self.frames.last_mut() {
            *called = true;
            self.stack[*base as usize + RESULT] = value;
        }
    }

    /// Calls `f` from the native frame on top. A function of the program that takes this many arguments gets its frame
    /// here; any other call is prepared for the dispatch loop, which makes it.
    #[inline]
    pub(crate) fn call_from_native(&mut self, h: &'h Ctx, f: Value<'h>, args: &[Value<'h>]) -> Res<Control<'h>> {
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

    /// Prepares a call above the native frame on top, which gets its result.
    fn lay_out_call(&mut self, h: &'h Ctx, f: Value<'h>, args: &[Value<'h>]) -> Res<Control<'h>> {
        let Some(&Frame { code: Code::Native { size, .. }, base, .. }) = self.frames.last() else {
            return Ok(Control::Value(Value::Nil));
        };
        let at = base as usize + size as usize;
        self.ensure(h, at + 1 + args.len())?;
        self.stack[at] = f;
        self.stack[at + 1..at + 1 + args.len()].copy_from_slice(args);
        Ok(Control::Call(Call::new(at, args.len(), base)))
    }

    /// Prepares a call of `f` with the registers of the native frame on top from number `first` on.
    pub(crate) fn call_with_registers(&mut self, h: &'h Ctx, f: Value<'h>, first: usize) -> Res<Control<'h>> {
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

    /// Returns the number of registers of the native frame on top from number `first` on.
    pub(crate) fn registers_from(&self, first: usize) -> usize {
        match self.frames.last() {
            Some(&Frame { code: Code::Native { size, .. }, .. }) => (size as usize).saturating_sub(first),
            _ => 0,
        }
    }
}
