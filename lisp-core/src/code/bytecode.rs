//! The code of one function, checked once: after that neither its registers nor its jumps are looked at again.

use super::Instr;

/// Where a program goes on after an error in one of the instructions from `from` up to, not including, `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handler {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The place of the next instruction.
    pub(crate) target: u32,
    pub(crate) by: HandledBy,
}

/// What a handler is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandledBy {
    /// An error; the register gets the value which stands for it.
    Register(u16),
    /// The work is done anew in another way, after an error or where it needs a frame. The error is of no interest: it is met
    /// there.
    DoingAnew,
    /// The work is done anew where it needs a frame; errors go on to the next handler.
    DoingAnewForFrames,
}

/// The instructions of a function, each of which names registers below `registers` and places inside the code only, and
/// its handlers, of which the same holds.
#[derive(Debug)]
pub(crate) struct Bytecode {
    instrs: Box<[Instr]>,
    /// Inner before outer.
    handlers: Box<[Handler]>,
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

    /// Checks the instructions and handlers; `None` when one of them reaches outside, or when the last instruction does
    /// not end the function or jump.
    pub(crate) fn new(instrs: Box<[Instr]>, handlers: Box<[Handler]>, registers: u16) -> Option<Bytecode> {
        let inside = |(at, instr): (usize, &Instr)| {
            instr.reach() <= registers as usize && instr.target(at).is_none_or(|to| to < instrs.len())
        };
        let ends = instrs.last().is_some_and(Instr::leaves);
        let fits = instrs.len() <= Self::MOST;
        let has = |by| !matches!(by, HandledBy::Register(register) if register >= registers);
        let caught = handlers.iter().all(|h| (h.target as usize) < instrs.len() && has(h.by));
        let sound = ends && fits && caught && instrs.iter().enumerate().all(inside);
        sound.then_some(Bytecode { instrs, handlers, registers })
    }

    /// The innermost handler of errors of the instruction at a place, and how many were looked at.
    pub(crate) fn handler(&self, at: u32) -> (Option<Handler>, usize) {
        let of_errors = |h: &Handler| h.by != HandledBy::DoingAnewForFrames;
        let found = self.handlers.iter().position(|h| h.from <= at && at < h.to && of_errors(h));
        (found.map(|i| self.handlers[i]), found.map_or(self.handlers.len(), |i| i + 1))
    }

    /// Where the work of the instruction at a place is done anew that needs a frame.
    pub(crate) fn doing_anew(&self, at: u32) -> Option<Handler> {
        let here = self.handlers.iter().find(|h| h.from <= at && at < h.to)?;
        (!matches!(here.by, HandledBy::Register(_))).then_some(*here)
    }

    /// How many handlers there are.
    pub(crate) fn handlers(&self) -> usize {
        self.handlers.len()
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

    fn checked(instrs: Vec<Instr>, registers: u16) -> Option<Bytecode> {
        Bytecode::new(instrs.into(), Box::default(), registers)
    }

    #[test]
    fn handlers_that_reach_outside_are_refused() {
        let with = |target, register| {
            let handler = Handler { from: 0, to: 1, target, by: HandledBy::Register(register) };
            Bytecode::new([Instr::Nil { dst: 0 }, END].into(), [handler].into(), 1)
        };
        assert!(with(1, 0).is_some_and(|code| code.handler(0).0.is_some() && code.handler(1).0.is_none()));
        assert!(with(2, 0).is_none(), "goes on behind the end");
        assert!(with(1, 1).is_none(), "a register too many");
    }

    #[test]
    fn code_that_reaches_outside_is_refused() {
        assert!(checked(vec![END], 1).is_some());
        assert!(checked(vec![END], 0).is_none(), "a register too many");
        assert!(checked(vec![], 1).is_none(), "nothing to run");
        assert!(checked(vec![Instr::Nil { dst: 0 }], 1).is_none(), "goes on behind its end");
        assert!(checked(vec![Instr::Jump { off: 0 }, END], 1).is_some());
        assert!(checked(vec![Instr::Jump { off: 1 }, END], 1).is_none(), "a jump behind the end");
        let near = |off| vec![Instr::UnlessLtInt { a: 0, imm: 0, off }, END];
        assert!(checked(near(0), 1).is_some());
        assert!(checked(near(1), 1).is_none(), "a near jump behind the end");
        assert!(checked(near(-2), 1).is_none(), "a near jump before the beginning");
        let row = |n| vec![Instr::Vector { dst: 0, base: 1, n }, END];
        assert!(checked(row(2), 3).is_some());
        assert!(checked(row(3), 3).is_none(), "a row beyond the registers");
    }
}
