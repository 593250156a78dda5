//! The code of one function, checked once: after that neither its registers nor its jumps are looked at again.

use super::Instr;

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
        let near = |off| vec![Instr::JumpUnlessInt { op: crate::code::Cmp::Lt, a: 0, imm: 0, off }, END];
        assert!(Bytecode::new(near(0), 1).is_some());
        assert!(Bytecode::new(near(1), 1).is_none(), "a near jump behind the end");
        assert!(Bytecode::new(near(-2), 1).is_none(), "a near jump before the beginning");
        let row = |n| vec![Instr::Vector { dst: 0, base: 1, n }, END];
        assert!(Bytecode::new(row(2), 3).is_some());
        assert!(Bytecode::new(row(3), 3).is_none(), "a row beyond the registers");
    }
}
