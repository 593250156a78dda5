//! The registers and the code of the frame that runs. What an instruction may touch is checked when the code is made,
//! and that its registers are on the stack when its frame is entered; between the two nothing is checked again.

use super::{METERED, Value};
use crate::compile::Instr;
use crate::cost::INSTRUCTION;
use std::marker::PhantomData;

/// The instructions of a function, each of which names registers below `registers` and places inside the code only.
#[derive(Debug)]
pub(crate) struct Bytecode {
    instrs: Box<[Instr]>,
    registers: u16,
}

impl Bytecode {
    /// The most instructions: a jump from one end to the other fits its 32 bits, and a place the 32 bits of a frame.
    pub(crate) const MOST: usize = i32::MAX as usize;

    /// The place of an instruction as frames keep it.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "there are no more than Bytecode::MOST instructions")]
    pub(crate) fn place(pc: usize) -> u32 {
        debug_assert!(pc <= Self::MOST);
        pc as u32
    }

    /// Checks the instructions; `None` when one of them reaches outside, or when the last does not end the function
    /// or jump.
    pub(crate) fn new(instrs: Vec<Instr>, registers: u16) -> Option<Bytecode> {
        let inside = |(at, instr): (usize, &Instr)| {
            instr.reach() <= registers as usize && instr.target(at).is_none_or(|to| to < instrs.len())
        };
        let ends = instrs.last().is_some_and(Instr::leaves);
        let fits = instrs.len() <= Self::MOST;
        (ends && fits && instrs.iter().enumerate().all(inside)).then(|| Bytecode { instrs: instrs.into(), registers })
    }

    /// The instructions.
    pub(crate) fn instrs(&self) -> &[Instr] {
        &self.instrs
    }

    /// Registers of a frame, parameters included.
    #[inline]
    pub(crate) fn registers(&self) -> usize {
        self.registers as usize
    }
}

/// The registers of one frame and where in its code it stands. While it is in use nothing else can reach the stack.
///
/// The registers and distances given to its methods must be operands of the instruction it fetched last.
pub(crate) struct Window<'w, 'h> {
    registers: *mut Value<'h>,
    room: usize,
    next: *const Instr,
    /// Where the slice of fuel would end if the code went on without a jump: an address that is only ever compared.
    end: usize,
    borrows: PhantomData<(&'w mut [Value<'h>], &'h Bytecode)>,
}

impl<'w, 'h> Window<'w, 'h> {
    /// Over the registers from `base` on, at instruction `pc`, with so much fuel. The caller has made sure that the
    /// registers are on the stack.
    #[inline(always)]
    pub(crate) fn open(stack: &'w mut [Value<'h>], base: usize, code: &'h Bytecode, pc: usize, fuel: Fuel) -> Self {
        let registers = &mut stack[base..];
        assert!(code.registers() <= registers.len(), "the registers of a frame are on the stack");
        let next: *const Instr = &raw const code.instrs[pc];
        Window {
            registers: registers.as_mut_ptr(),
            room: registers.len(),
            next,
            end: (next as usize).wrapping_add_signed(fuel.0),
            borrows: PhantomData,
        }
    }

    /// The next instruction.
    #[inline(always)]
    pub(crate) fn fetch(&mut self) -> &'h Instr {
        // SAFETY: `next` is inside the code: `open` checked it, `skip` keeps to targets that `Bytecode::new` checked, and
        // the last instruction is none that goes on behind itself. So one more is at most one past the end.
        unsafe {
            let instr = &*self.next;
            self.next = self.next.add(1);
            instr
        }
    }

    /// Where the next instruction stands in the code, which must be the one that is running.
    #[inline(always)]
    pub(crate) fn pc(&self, code: &Bytecode) -> usize {
        (self.next as usize).wrapping_sub(code.instrs.as_ptr() as usize) / size_of::<Instr>()
    }

    /// The fuel left now that the instruction fetched last is paid for.
    #[inline(always)]
    pub(crate) fn fuel(&self) -> Fuel {
        Fuel(self.end.wrapping_sub(self.next as usize).cast_signed())
    }

    /// Is the slice of fuel over?
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        (self.next as usize).cast_signed() > self.end.cast_signed()
    }

    /// Goes on with so much fuel: a built-in was paid from it too.
    #[inline(always)]
    pub(crate) fn refuel(&mut self, fuel: Fuel) {
        self.end = (self.next as usize).wrapping_add_signed(fuel.0);
    }

    /// Jumps over `off` instructions, backwards when negative. The end of the slice stays as far away as it was.
    #[inline(always)]
    pub(crate) fn skip(&mut self, off: i32) {
        // SAFETY: `off` is the distance of a jump of the code, whose target is inside by `Bytecode::new`.
        self.next = unsafe { self.next.offset(off as isize) };
        self.end = self.end.wrapping_add_signed(off as isize * INSTR_BYTES);
    }

    /// Slots of the stack from the first register on.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// A register.
    #[inline(always)]
    pub(crate) fn get(&self, r: u16) -> &Value<'h> {
        debug_assert!((r as usize) < self.room);
        // SAFETY: `r` is an operand of the code, so below the number of registers by `Bytecode::new`, and `open` checked that
        // so many are on the stack, which is borrowed for 'w.
        unsafe { &*self.registers.add(r as usize) }
    }

    /// Writes a register.
    #[inline(always)]
    pub(crate) fn set(&mut self, r: u16, value: Value<'h>) {
        debug_assert!((r as usize) < self.room);
        // SAFETY: as in `get`; the borrow of the stack is unique.
        unsafe { *self.registers.add(r as usize) = value }
    }

    /// `n` registers in a row, which must be an operand of the instruction fetched last, as `base` is.
    #[inline(always)]
    pub(crate) fn row(&self, base: u16, n: usize) -> &[Value<'h>] {
        debug_assert!(base as usize + n <= self.room);
        // SAFETY: an instruction that names a row has been checked by `Bytecode::new` to keep it inside the registers, and
        // `open` that so many are on the stack, which is borrowed for 'w.
        unsafe { std::slice::from_raw_parts(self.registers.add(base as usize), n) }
    }

    /// The same for a row whose length the instruction does not name.
    #[inline(always)]
    pub(crate) fn row_of(&self, base: u16, n: usize) -> &[Value<'h>] {
        assert!(base as usize + n <= self.room, "a row of registers is on the stack");
        // SAFETY: the row ends before the stack does, which is borrowed for 'w.
        unsafe { std::slice::from_raw_parts(self.registers.add(base as usize), n) }
    }
}

/// Fuel as the bytes of code that it pays for, if no built-in takes its part; negative when more was spent than there
/// was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fuel(isize);

const INSTR_BYTES: isize = size_of::<Instr>().cast_signed();

/// Bytes of code that one unit of fuel pays for.
const BYTES_PER_UNIT: i64 = INSTR_BYTES as i64 / INSTRUCTION.cast_signed();

const _: () = assert!(BYTES_PER_UNIT * INSTRUCTION.cast_signed() == INSTR_BYTES as i64);
const _: () = assert!(size_of::<usize>() == size_of::<u64>(), "fuel of 64 bits is counted in an address");

impl Fuel {
    /// What one instruction costs.
    pub(crate) const ONE: Fuel = Fuel::of(INSTRUCTION.cast_signed());

    /// So many units, which are never so many that the bytes could overflow.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    pub(crate) const fn of(units: i64) -> Fuel {
        Fuel(units.saturating_mul(BYTES_PER_UNIT) as isize)
    }

    /// In units.
    #[inline(always)]
    pub(crate) const fn units(self) -> i64 {
        (self.0 as i64).div_euclid(BYTES_PER_UNIT)
    }

    /// What is left of it; `None` when it is less.
    #[inline(always)]
    pub(crate) fn less(self, cost: Fuel) -> Option<Fuel> {
        (!METERED || self.0 >= cost.0).then(|| Fuel(self.0 - cost.0))
    }

    /// So much more.
    pub(crate) const fn plus(self, more: Fuel) -> Fuel {
        Fuel(self.0.saturating_add(more.0))
    }

    /// What is left of it when so many units are spent, whether it is so much or not.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    pub(crate) fn spend(self, units: u64) -> Fuel {
        const BYTES: usize = BYTES_PER_UNIT.cast_unsigned() as usize;
        const SMALL: u64 = 1 << 32;
        // What is above it stays so far above the least number that small ones, each of which is looked at, never get there.
        const LEAST: isize = isize::MIN + (1 << 60);
        if units < SMALL {
            return Fuel(self.0.wrapping_sub_unsigned(units as usize * BYTES));
        }
        let bytes = (units as usize).saturating_mul(BYTES);
        Fuel(self.0.saturating_sub_unsigned(bytes).max(LEAST))
    }

    /// Was more spent than there was?
    #[inline(always)]
    pub(crate) fn is_over(self) -> bool {
        self.0 < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Instr = Instr::Return { src: 0 };

    #[test]
    fn code_that_reaches_outside_is_refused() {
        assert!(Bytecode::new(vec![END], 1).is_some());
        assert!(Bytecode::new(vec![END], 0).is_none(), "a register too many");
        assert!(Bytecode::new(vec![], 1).is_none(), "nothing to run");
        assert!(Bytecode::new(vec![Instr::Nil { dst: 0 }], 1).is_none(), "goes on behind its end");
        assert!(Bytecode::new(vec![Instr::Jump { off: 0 }, END], 1).is_some());
        assert!(Bytecode::new(vec![Instr::Jump { off: 1 }, END], 1).is_none(), "a jump behind the end");
        let near = |off| vec![Instr::JumpUnlessInt { op: crate::compile::Cmp::Lt, a: 0, imm: 0, off }, END];
        assert!(Bytecode::new(near(0), 1).is_some());
        assert!(Bytecode::new(near(1), 1).is_none(), "a near jump behind the end");
        assert!(Bytecode::new(near(-2), 1).is_none(), "a near jump before the beginning");
        let row = |n| vec![Instr::Vector { dst: 0, base: 1, n }, END];
        assert!(Bytecode::new(row(2), 3).is_some());
        assert!(Bytecode::new(row(3), 3).is_none(), "a row beyond the registers");
    }
}
