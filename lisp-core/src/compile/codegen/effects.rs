//! Loops for effects, error handling, and functions that refer to each other.

use super::{Function, Reg, Res};
use crate::code::{ArithName, Bytecode, HandledBy, Handler, Instr, Rare};
use crate::compile::core::{FnGroup, Node, Var};
use crate::error::Span;

impl<'p> Function<'_, 'p> {
    pub(super) fn letfn(&mut self, group: &'p FnGroup, body: &'p Node, span: Span, dst: Reg) -> Res<()> {
        let numbers = group.functions.iter().map(|_| self.generator.reserve(span)).collect::<Res<Vec<u16>>>()?;
        self.generator.groups.insert(group.number, numbers.clone());
        for ((var, node), number) in group.functions.iter().zip(numbers) {
            let reg = self.alloc(span)?;
            let saved = self.top;
            self.closure(node, Some(number), span, reg)?;
            self.top = saved;
            self.set_place(*var, reg);
        }
        self.generator.groups.remove(&group.number);
        self.into(body, dst)
    }

    /// Compiles the body for 0, 1 ... below a number. There is no other limit of iterations.
    pub(super) fn times(&mut self, var: Var, count: &'p Node, body: &'p Node, span: Span, dst: Reg) -> Res<()> {
        let limit = self.alloc(span)?;
        self.into(count, limit)?;
        let (i, test) = (self.alloc(span)?, self.alloc(span)?);
        self.emit(Instr::Int { dst: i, value: 0 }, span);
        let top = self.here();
        self.emit(Instr::Times { dst: test, a: i, b: limit }, span);
        let exit = self.emit(Instr::JumpFalse { src: test, off: 0 }, span);
        self.set_place(var, i);
        self.into(body, test)?;
        self.emit(Instr::AddInt { name: ArithName::Inc, dst: i, a: i, imm: 1 }, span);
        let off = self.back_to(top, span)?;
        self.emit(Instr::Repeat { off }, span);
        self.patch(exit)?;
        self.emit(Instr::Nil { dst }, span);
        Ok(())
    }

    pub(super) fn while_form(&mut self, test: &'p Node, body: &'p Node, span: Span, dst: Reg) -> Res<()> {
        let counter = self.alloc(span)?;
        self.emit(Instr::Int { dst: counter, value: 0 }, span);
        let top = self.here();
        let exit = self.far_jump_unless(test)?;
        let value = self.alloc(span)?;
        self.into(body, value)?;
        let off = self.back_to(top, span)?;
        self.emit(Instr::Loop { counter, off }, span);
        self.patch(exit)?;
        self.emit(Instr::Nil { dst }, span);
        Ok(())
    }

    /// The handler comes after the body. Only an error leads to it.
    pub(super) fn try_form(&mut self, body: &'p Node, var: Var, handler: &'p Node, span: Span, dst: Reg) -> Res<()> {
        let register = self.alloc(span)?;
        let from = self.here();
        self.into(body, dst)?;
        let end = self.emit(Instr::Jump { off: 0 }, span);
        self.handle(from, end, HandledBy::Register(register));
        self.set_place(var, register);
        self.into(handler, dst)?;
        self.patch(end)
    }

    /// The last part is compiled once. A register tells whether an error led to it, which is then rethrown.
    pub(super) fn finally(&mut self, body: &'p Node, last: &'p Node, span: Span, dst: Reg) -> Res<()> {
        let register = self.alloc(span)?;
        self.emit(Instr::Nil { dst: register }, span);
        let from = self.here();
        self.into(body, dst)?;
        self.handle(from, self.here(), HandledBy::Register(register));
        let value = self.alloc(span)?;
        self.into(last, value)?;
        self.emit(Instr::Rare { op: Rare::Rethrow, dst: register, src: register, n: 0 }, span);
        Ok(())
    }

    pub(super) fn raise(&mut self, src: Reg, op: Rare, span: Span) {
        self.emit(Instr::Rare { op, dst: src, src, n: 0 }, span);
    }

    /// Errors of the instructions from `from` up to `to` continue here.
    pub(super) fn handle(&mut self, from: usize, to: usize, by: HandledBy) {
        let [from, to, target] = [from, to, self.here()].map(Bytecode::place);
        self.handlers.push(Handler { from, to, target, by });
    }
}
