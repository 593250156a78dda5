//! The registers and the code of the running frame. The operands of instructions are checked when the code is made, and
//! the stack is checked for room when a frame is entered. In between nothing is checked again.

use super::Value;
use crate::code::{Bytecode, Instr};
use crate::meter::Fuel;
use std::marker::PhantomData;

/// The registers of one frame and the position in its code. While it is in use nothing else can access the stack.
pub(crate) struct FrameRegs<'w, 'h> {
    registers: *mut Value<'h>,
    room: usize,
    next: *const Instr,
    /// Where the slice of fuel would end if the code continued without a jump: an address that is only compared.
    end: usize,
    borrows: PhantomData<(&'w mut [Value<'h>], &'h Bytecode)>,
}

impl<'w, 'h> FrameRegs<'w, 'h> {
    /// Opens the registers from `base` on, at instruction `pc`, with `fuel` for the slice.
    ///
    /// # Panics
    /// Panics if the registers of the code are not on the stack, or the code has no such instruction.
    ///
    /// # Safety
    /// As long as it is used:
    /// - The registers, rows and distances given to [`FrameRegs::get`], [`FrameRegs::set`], [`FrameRegs::row`] and
    ///   [`FrameRegs::skip`] are operands of the instruction fetched last.
    /// - After an instruction that never continues with the next one (`Instr::leaves`), [`FrameRegs::skip`] is called
    ///   before the next fetch.
    /// - After [`FrameRegs::enter`] has returned true, the next operation is a fetch.
    #[inline(always)]
    pub(crate) unsafe fn open(
        stack: &'w mut [Value<'h>],
        base: usize,
        code: &'h Bytecode,
        pc: usize,
        fuel: Fuel,
    ) -> Self {
        let registers = &mut stack[base..];
        assert!(code.registers() <= registers.len(), "the registers of a frame are on the stack");
        let next: *const Instr = &raw const code.instrs()[pc];
        FrameRegs {
            registers: registers.as_mut_ptr(),
            room: registers.len(),
            next,
            end: (next as usize).wrapping_add_signed(fuel.bytes()),
            borrows: PhantomData,
        }
    }

    /// Continues with the registers after `row` and the start of `code`, for a call of a function whose arguments are
    /// there. Returns false, with nothing changed, if its registers are not on the stack.
    #[inline(always)]
    pub(crate) fn enter(&mut self, row: u16, code: &'h Bytecode) -> bool {
        let first = row as usize + 1;
        if first + code.registers() > self.room {
            return false;
        }
        let fuel = self.fuel();
        // SAFETY: `first` registers and those of the code are among the `room` registers on the stack, which is
        // borrowed for 'w.
        self.registers = unsafe { self.registers.add(first) };
        // It is at most `room`.
        self.room = self.room.wrapping_sub(first);
        // There is a first instruction, by `Bytecode::new`.
        self.next = code.instrs().as_ptr();
        self.refuel(fuel);
        true
    }

    /// Fetches the next instruction.
    #[inline(always)]
    pub(crate) fn fetch(&mut self) -> &'h Instr {
        // SAFETY: `next` is inside the code: `open` checked it, `skip` keeps to targets that `Bytecode::new` checked,
        // and the last instruction never continues with the one after it, by `Bytecode::new` and the caller of `open`.
        // So one more is at most one past the end.
        unsafe {
            let instr = &*self.next;
            self.next = self.next.add(1);
            instr
        }
    }

    /// Returns the position of the next instruction in the code, which must be the running one.
    #[inline(always)]
    pub(crate) fn pc(&self, code: &Bytecode) -> usize {
        (self.next as usize).wrapping_sub(code.instrs().as_ptr() as usize) / size_of::<Instr>()
    }

    /// Returns the fuel left after paying for the instruction fetched last.
    #[inline(always)]
    pub(crate) fn fuel(&self) -> Fuel {
        Fuel::of_bytes(self.end.wrapping_sub(self.next as usize).cast_signed())
    }

    /// Returns true if the slice of fuel is used up.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        (self.next as usize).cast_signed() > self.end.cast_signed()
    }

    /// Sets the fuel left, after a built-in was paid from it too.
    #[inline(always)]
    pub(crate) fn refuel(&mut self, fuel: Fuel) {
        self.end = (self.next as usize).wrapping_add_signed(fuel.bytes());
    }

    /// Jumps over `off` instructions, backwards if negative. The distance to the end of the slice stays the same.
    #[inline(always)]
    pub(crate) fn skip(&mut self, off: i32) {
        // SAFETY: `off` is the distance of a jump of the code, whose target is inside by `Bytecode::new`.
        self.next = unsafe { self.next.offset(off as isize) };
        self.end = self.end.wrapping_add_signed(off as isize * size_of::<Instr>().cast_signed());
    }

    /// Returns a register.
    #[inline(always)]
    pub(crate) fn get(&self, r: u16) -> &Value<'h> {
        debug_assert!((r as usize) < self.room);
        // SAFETY: `r` is an operand of the code, so below the number of registers by `Bytecode::new`, and `open`
        // checked that they are on the stack, which is borrowed for 'w.
        unsafe { &*self.registers.add(r as usize) }
    }

    /// Writes a register.
    #[inline(always)]
    pub(crate) fn set(&mut self, r: u16, value: Value<'h>) {
        debug_assert!((r as usize) < self.room);
        // SAFETY: as in `get`; the borrow of the stack is unique.
        unsafe { *self.registers.add(r as usize) = value }
    }

    /// Returns `n` registers from `base` on. Both are operands of the instruction fetched last.
    #[inline(always)]
    pub(crate) fn row(&self, base: u16, n: usize) -> &[Value<'h>] {
        debug_assert!(base as usize + n <= self.room);
        // SAFETY: `Bytecode::new` checked that the rows of instructions are inside the registers, and `open` that those
        // are on the stack, which is borrowed for 'w.
        unsafe { std::slice::from_raw_parts(self.registers.add(base as usize), n) }
    }

    /// Returns `n` registers from `base` on, with a check: the instruction does not have the length.
    #[inline(always)]
    pub(crate) fn row_of(&self, base: u16, n: usize) -> &[Value<'h>] {
        assert!(base as usize + n <= self.room, "a row of registers is on the stack");
        // SAFETY: the row ends before the stack does, which is borrowed for 'w.
        unsafe { std::slice::from_raw_parts(self.registers.add(base as usize), n) }
    }
}
