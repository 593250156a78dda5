//! The registers and the code of the frame that runs. What an instruction may touch is checked when the code is made,
//! and that its registers are on the stack when its frame is entered; between the two nothing is checked again.

use super::Value;
use crate::code::{Bytecode, Instr};
use crate::meter::Fuel;
use std::marker::PhantomData;

/// The registers of one frame and where in its code it stands. While it is in use nothing else can reach the stack.
pub(crate) struct FrameRegs<'w, 'h> {
    registers: *mut Value<'h>,
    room: usize,
    next: *const Instr,
    /// Where the slice of fuel would end if the code went on without a jump: an address that is only ever compared.
    end: usize,
    borrows: PhantomData<(&'w mut [Value<'h>], &'h Bytecode)>,
}

impl<'w, 'h> FrameRegs<'w, 'h> {
    /// The registers from `base` on, at instruction `pc`, with `fuel` for the slice.
    ///
    /// # Panics
    /// When the registers of the code are not on the stack, or the code has no such instruction.
    ///
    /// # Safety
    /// As long as it is used, the registers, rows and distances given to [`FrameRegs::get`], [`FrameRegs::set`],
    /// [`FrameRegs::row`] and [`FrameRegs::skip`] are operands of the instruction that it fetched last; and after an instruction
    /// that never goes on to the next one (`Instr::leaves`) nothing is fetched before a [`FrameRegs::skip`];
    /// and behind a [`FrameRegs::enter`] that returned true nothing else is done with it before a fetch.
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

    /// Goes on with the registers behind `row` and the beginning of `code`, for a call of a function whose arguments stand
    /// there. Returns false, with nothing changed, when its registers are not on the stack.
    #[inline(always)]
    pub(crate) fn enter(&mut self, row: u16, code: &'h Bytecode) -> bool {
        let first = row as usize + 1;
        if first + code.registers() > self.room {
            return false;
        }
        let fuel = self.fuel();
        // SAFETY: `first` registers and those of the code are among the `room` that are on the stack, which is borrowed
        // for 'w.
        self.registers = unsafe { self.registers.add(first) };
        // It is not more than `room`.
        self.room = self.room.wrapping_sub(first);
        // There is a first instruction, by `Bytecode::new`.
        self.next = code.instrs().as_ptr();
        self.refuel(fuel);
        true
    }

    /// The next instruction.
    #[inline(always)]
    pub(crate) fn fetch(&mut self) -> &'h Instr {
        // SAFETY: `next` is inside the code: `open` checked it, `skip` keeps to targets that `Bytecode::new` checked, and
        // the last instruction is none that goes on behind itself, by `Bytecode::new` and the caller of `open`. So one more
        // is at most one past the end.
        unsafe {
            let instr = &*self.next;
            self.next = self.next.add(1);
            instr
        }
    }

    /// Where the next instruction stands in the code, which must be the one that is running.
    #[inline(always)]
    pub(crate) fn pc(&self, code: &Bytecode) -> usize {
        (self.next as usize).wrapping_sub(code.instrs().as_ptr() as usize) / size_of::<Instr>()
    }

    /// The fuel left now that the instruction fetched last is paid for.
    #[inline(always)]
    pub(crate) fn fuel(&self) -> Fuel {
        Fuel::of_bytes(self.end.wrapping_sub(self.next as usize).cast_signed())
    }

    /// Is the slice of fuel over?
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        (self.next as usize).cast_signed() > self.end.cast_signed()
    }

    /// Sets the fuel that is left, after a built-in was paid from it too.
    #[inline(always)]
    pub(crate) fn refuel(&mut self, fuel: Fuel) {
        self.end = (self.next as usize).wrapping_add_signed(fuel.bytes());
    }

    /// Jumps over `off` instructions, backwards when negative. The end of the slice stays as far away as it was.
    #[inline(always)]
    pub(crate) fn skip(&mut self, off: i32) {
        // SAFETY: `off` is the distance of a jump of the code, whose target is inside by `Bytecode::new`.
        self.next = unsafe { self.next.offset(off as isize) };
        self.end = self.end.wrapping_add_signed(off as isize * size_of::<Instr>().cast_signed());
    }

    /// A register.
    #[inline(always)]
    pub(crate) fn get(&self, r: u16) -> &Value<'h> {
        debug_assert!((r as usize) < self.room);
        // SAFETY: `r` is an operand of the code, so below the number of registers by `Bytecode::new`, and `open` checked that
        // they are on the stack, which is borrowed for 'w.
        unsafe { &*self.registers.add(r as usize) }
    }

    /// Writes a register.
    #[inline(always)]
    pub(crate) fn set(&mut self, r: u16, value: Value<'h>) {
        debug_assert!((r as usize) < self.room);
        // SAFETY: as in `get`; the borrow of the stack is unique.
        unsafe { *self.registers.add(r as usize) = value }
    }

    /// `n` registers in a row from `base` on. Both are operands of the instruction fetched last.
    #[inline(always)]
    pub(crate) fn row(&self, base: u16, n: usize) -> &[Value<'h>] {
        debug_assert!(base as usize + n <= self.room);
        // SAFETY: an instruction that names a row has been checked by `Bytecode::new` to keep it inside the registers, and
        // `open` that they are on the stack, which is borrowed for 'w.
        unsafe { std::slice::from_raw_parts(self.registers.add(base as usize), n) }
    }

    /// `n` registers in a row from `base` on, which is checked: the instruction does not name the length.
    #[inline(always)]
    pub(crate) fn row_of(&self, base: u16, n: usize) -> &[Value<'h>] {
        assert!(base as usize + n <= self.room, "a row of registers is on the stack");
        // SAFETY: the row ends before the stack does, which is borrowed for 'w.
        unsafe { std::slice::from_raw_parts(self.registers.add(base as usize), n) }
    }
}
