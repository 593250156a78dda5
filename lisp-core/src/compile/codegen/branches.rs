//! Forms that evaluate one part or another.

use super::{Function, Reg, Res, is_done_in_order, small_int};
use crate::builtins::Lowering;
use crate::code::{Cmp, Instr};
use crate::compile::core::{Constant, Kind, Node, Prim};
use crate::error::Span;

impl<'p> Function<'_, 'p> {
    /// Compiles the value of a function: each branch of its last form returns by itself.
    pub(super) fn returned(&mut self, node: &'p Node, end: Span) -> Res<()> {
        self.generator.interrupt.tick()?;
        let (saved, visible) = (self.top, self.visible.len());
        let always = self.generator.always;
        self.generator.always &= is_done_in_order(&node.kind);
        match &node.kind {
            Kind::If(test, then, otherwise) => {
                let skip = self.jump_over(test, then)?;
                self.returned(then, end)?;
                self.patch(skip)?;
                self.returned(otherwise, end)?;
            }
            Kind::Cond(clauses, default) => {
                for (test, then) in clauses {
                    let skip = self.jump_over(test, then)?;
                    self.returned(then, end)?;
                    self.patch(skip)?;
                }
                self.returned(default, end)?;
            }
            Kind::Do(nodes) if let Some((last, first)) = nodes.split_last() => {
                for node in first {
                    self.any(node)?;
                    self.top = saved;
                }
                self.returned(last, end)?;
            }
            Kind::Let(binds, body) => {
                self.binds(binds)?;
                self.returned(body, end)?;
            }
            _ => {
                self.generator.always = always;
                let src = self.any(node)?;
                self.emit(Instr::Return { src }, end);
            }
        }
        self.generator.always = always;
        self.top = saved;
        self.forget_locals(visible);
        Ok(())
    }

    /// Compiles a jump over a branch if `test` is false; the jump must be patched.
    pub(super) fn jump_over(&mut self, test: &'p Node, branch: &Node) -> Res<usize> {
        // Near jumps have 16 bits; no branch of a source of this length needs more.
        const NEAR_TEXT: u32 = 4_000;
        let is_near = |span: Span| span.end.saturating_sub(span.start) < NEAR_TEXT;
        if !is_near(branch.span) {
            return self.far_jump_unless(test);
        }
        let near = is_near(test.span);
        let span = test.span;
        let saved = self.top;
        let at = match &test.kind {
            Kind::CallBuiltin(id, args) if near && args.len() == 2 && self.comparison(*id).is_some() => {
                let op = self.comparison(*id).unwrap_or(Cmp::Eq);
                match small_int(&args[1]) {
                    Some(imm) => {
                        let a = self.first(args)?;
                        self.emit(Instr::unless_int(op, a, imm, 0), span)
                    }
                    None => {
                        let (a, b) = self.two(args)?;
                        self.emit(Instr::unless(op, a, b, 0), span)
                    }
                }
            }
            Kind::CallBuiltin(id, args) if args.len() == 1 && self.lowering(*id) == Lowering::Not => {
                let src = self.first(args)?;
                self.emit(Instr::JumpTrue { src, off: 0 }, span)
            }
            Kind::Prim(Prim::IsNil, args) => {
                let src = self.first(args)?;
                self.emit(Instr::JumpSome { src, off: 0 }, span)
            }
            _ => {
                let src = self.any(test)?;
                self.emit(Instr::JumpFalse { src, off: 0 }, span)
            }
        };
        self.top = saved;
        Ok(at)
    }

    pub(super) fn far_jump_unless(&mut self, test: &'p Node) -> Res<usize> {
        let span = test.span;
        let saved = self.top;
        let src = self.any(test)?;
        self.top = saved;
        Ok(self.emit(Instr::JumpFalse { src, off: 0 }, span))
    }

    pub(super) fn branch(&mut self, test: &'p Node, then: &'p Node, otherwise: &'p Node, dst: Reg) -> Res<()> {
        let span = then.span;
        let skip = self.jump_over(test, then)?;
        self.into(then, dst)?;
        let end = self.emit(Instr::Jump { off: 0 }, span);
        self.patch(skip)?;
        self.into(otherwise, dst)?;
        self.patch(end)
    }

    pub(super) fn cond(&mut self, clauses: &'p [(Node, Node)], default: &'p Node, span: Span, dst: Reg) -> Res<()> {
        let mut ends = Vec::with_capacity(clauses.len());
        for (test, then) in clauses {
            let skip = self.jump_over(test, then)?;
            self.into(then, dst)?;
            ends.push(self.emit(Instr::Jump { off: 0 }, span));
            self.patch(skip)?;
        }
        self.into(default, dst)?;
        ends.into_iter().try_for_each(|end| self.patch(end))
    }

    /// `and`, `or`: compiles each value into `dst`, and leaves at the first that decides.
    pub(super) fn chain(&mut self, nodes: &'p [Node], dst: Reg, jump: impl Fn(Reg) -> Instr) -> Res<()> {
        let mut ends = Vec::new();
        let last = nodes.len().saturating_sub(1);
        for (i, node) in nodes.iter().enumerate() {
            let span = node.span;
            self.into(node, dst)?;
            if i < last {
                ends.push(self.emit(jump(dst), span));
            }
        }
        ends.into_iter().try_for_each(|end| self.patch(end))
    }

    pub(super) fn case(
        &mut self,
        subject: &'p Node,
        clauses: &'p [(Vec<Constant>, Node)],
        default: &'p Node,
        span: Span,
        dst: Reg,
    ) -> Res<()> {
        let src = self.any(subject)?;
        let test = self.alloc(span)?;
        let mut ends = Vec::with_capacity(clauses.len());
        for (tests, then) in clauses {
            let mut hits = Vec::new();
            for constant in tests {
                let k = self.short_constant(constant, span)?;
                self.emit(Instr::IsCase { dst: test, src, k }, span);
                hits.push(self.emit(Instr::JumpTrue { src: test, off: 0 }, span));
            }
            let skip = self.emit(Instr::Jump { off: 0 }, span);
            for hit in hits {
                self.patch(hit)?;
            }
            self.into(then, dst)?;
            ends.push(self.emit(Instr::Jump { off: 0 }, span));
            self.patch(skip)?;
        }
        self.into(default, dst)?;
        ends.into_iter().try_for_each(|end| self.patch(end))
    }
}
