//! The code of one function. It is checked once; after that neither its registers nor its jumps are checked again.

use super::Instr;

/// Where a program continues after an error in one of the instructions from `from` up to, but not including, `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handler {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The position of the next instruction.
    pub(crate) target: u32,
    pub(crate) by: HandledBy,
}

/// The purpose of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandledBy {
    /// Catches an error; the register gets the value that stands for it.
    Register(u16),
    /// Does the work again in another way, after an error or when it needs a frame. The error is dropped, because it
    /// will occur again there.
    DoingAgain,
    /// Does the work again when it needs a frame; errors continue to the next handler.
    DoingAgainForFrames,
}

/// The instructions of a function, which refer only to registers below `registers` and to positions inside the code,
/// and its handlers, for which the same holds.
#[derive(Debug)]
pub(crate) struct Bytecode {
    instrs: Box<[Instr]>,
    /// Inner before outer.
    handlers: Box<[Handler]>,
    registers: u16,
}

impl Bytecode {
    /// The maximum number of instructions: the distance of a jump fits 32 bits, and so does a position in a frame.
    pub(crate) const MAX: usize = i32::MAX as usize;

    /// Converts the position of an instruction for frames.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "there are no more than Bytecode::MOST instructions")]
    pub(crate) fn place(pc: usize) -> u32 {
        debug_assert!(pc <= Self::MAX);
        pc as u32
    }

    /// Checks the instructions and handlers. `None` if one of them refers outside, or if the last instruction neither
    /// ends the function nor jumps.
    pub(crate) fn new(instrs: Box<[Instr]>, handlers: Box<[Handler]>, registers: u16) -> Option<Bytecode> {
        let inside = |(at, instr): (usize, &Instr)| {
            instr.reach() <= registers as usize && instr.target(at).is_none_or(|to| to < instrs.len())
        };
        let ends = instrs.last().is_some_and(Instr::leaves);
        let fits = instrs.len() <= Self::MAX;
        let has = |by| !matches!(by, HandledBy::Register(register) if register >= registers);
        let caught = handlers.iter().all(|h| (h.target as usize) < instrs.len() && has(h.by));
        let sound = ends && fits && caught && instrs.iter().enumerate().all(inside);
        sound.then_some(Bytecode { instrs, handlers, registers })
    }

    /// Returns the innermost handler for errors of the instruction at a position, and the number of handlers checked.
    pub(crate) fn handler(&self, at: u32) -> (Option<Handler>, usize) {
        let of_errors = |h: &Handler| h.by != HandledBy::DoingAgainForFrames;
        let found = self.handlers.iter().position(|h| h.from <= at && at < h.to && of_errors(h));
        (found.map(|i| self.handlers[i]), found.map_or(self.handlers.len(), |i| i + 1))
    }

    /// Returns where the work of the instruction at a position is done again when it needs a frame.
    pub(crate) fn doing_anew(&self, at: u32) -> Option<Handler> {
        let here = self.handlers.iter().find(|h| h.from <= at && at < h.to)?;
        (!matches!(here.by, HandledBy::Register(_))).then_some(*here)
    }

    /// Returns the number of handlers.
    pub(crate) fn handlers(&self) -> usize {
        self.handlers.len()
    }

    /// Returns the instructions.
    pub(crate) fn instrs(&self) -> &[Instr] {
        &self.instrs
    }

    /// Returns the number of registers of a frame, including parameters.
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
