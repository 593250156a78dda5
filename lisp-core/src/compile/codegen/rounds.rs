//! Loops with a value: `loop` with `recur`, and `for`.

use super::{Function, Location, Recur, Reg, Res};
use crate::builtins::Lowering;
use crate::code::Instr;
use crate::compile::core::{Clause, Kind, Node, Var};
use crate::error::Span;

impl<'p> Function<'_, 'p> {
    pub(super) fn loop_form(&mut self, vars: &'p [(Var, Node)], body: &'p Node, span: Span, dst: Reg) -> Res<()> {
        let mut regs = Vec::with_capacity(vars.len());
        for (var, init) in vars {
            let reg = self.alloc(span)?;
            self.into(init, reg)?;
            self.set_place(*var, reg);
            regs.push(reg);
        }
        let counter = self.alloc(span)?;
        self.emit(Instr::Int { dst: counter, value: 0 }, span);
        let held = self.hold([body], span)?;
        self.recur.push(Recur { counter, start: self.code.len(), vars: regs });
        self.into(body, dst)?;
        self.recur.pop();
        self.held.truncate(held);
        Ok(())
    }

    pub(super) fn recur_form(&mut self, args: &'p [Node], span: Span) -> Res<()> {
        let Some(target) = self.recur.last() else { return Ok(()) };
        let (counter, start, vars) = (target.counter, target.start, target.vars.clone());
        let (mut moves, mut direct) = (Vec::with_capacity(vars.len()), false);
        for (node, dst) in args.iter().zip(vars) {
            // A value that is already in its register needs no move.
            if let Kind::Local(var) = node.kind
                && self.generator.places[var.0] == Location::Register(dst)
            {
                continue;
            }
            let src = self.alloc(span)?;
            direct = match node.kind {
                // A loop writes its value in several places.
                Kind::CallBuiltin(id, _) => !matches!(self.lowering(id), Lowering::Round(_)),
                Kind::Key(_, _, None) => true,
                _ => false,
            };
            self.into(node, src)?;
            moves.push((dst, src));
        }
        // The last value can be computed directly into its register: nothing reads the old one any more.
        if direct
            && let Some(&(dst, src)) = moves.last()
            && let Some(last) = self.code.last_mut()
            && retarget(last, src, dst)
        {
            moves.pop();
        }
        for (dst, src) in moves {
            self.emit(Instr::Move { dst, src }, span);
        }
        let off = self.back_to(start, span)?;
        self.emit(Instr::Loop { counter, off }, span);
        Ok(())
    }

    pub(super) fn for_form(
        &mut self,
        clauses: &'p [Clause],
        body: &'p Node,
        collects: bool,
        span: Span,
        dst: Reg,
    ) -> Res<()> {
        struct Open {
            base: Reg,
            /// Where the steps for an element start.
            top: usize,
            /// The jumps out of the walk, and to the next element.
            exits: Vec<usize>,
            skips: Vec<usize>,
        }
        let builder = self.alloc(span)?;
        if collects {
            self.emit(Instr::Collect { dst: builder }, span);
        }
        let mut open: Vec<Open> = Vec::new();
        for clause in clauses {
            match clause {
                Clause::Each(var, coll, binds) => {
                    let at = coll.span;
                    let base = self.alloc(at)?;
                    self.alloc(at)?;
                    let element = self.alloc(at)?;
                    self.walk(coll, base, collects)?;
                    let exit = self.emit(Instr::Next { base, off: 0 }, at);
                    open.push(Open { base, top: self.here(), exits: vec![exit], skips: Vec::new() });
                    self.set_place(*var, element);
                    self.binds(binds)?;
                }
                Clause::Let(binds) => self.binds(binds)?,
                Clause::When(test) => {
                    let at = test.span;
                    let saved = self.top;
                    let src = self.any(test)?;
                    self.top = saved;
                    let skip = self.emit(Instr::JumpFalse { src, off: 0 }, at);
                    if let Some(inner) = open.last_mut() {
                        inner.skips.push(skip);
                    }
                }
                Clause::While(test) => {
                    let exit = self.far_jump_unless(test)?;
                    if let Some(inner) = open.last_mut() {
                        inner.exits.push(exit);
                    }
                }
            }
        }
        let src = self.any(body)?;
        if collects {
            self.emit(Instr::Push { builder, src }, span);
        }
        while let Some(inner) = open.pop() {
            for skip in inner.skips {
                self.patch(skip)?;
            }
            let off = self.back_to(inner.top, span)?;
            self.emit(Instr::Again { base: inner.base, off }, span);
            for exit in inner.exits {
                self.patch(exit)?;
            }
        }
        self.emit(if collects { Instr::Finish { dst, builder } } else { Instr::Nil { dst } }, span);
        Ok(())
    }
}

/// Makes an arithmetic instruction that has just written `from` write `to` instead.
fn retarget(instr: &mut Instr, from: Reg, to: Reg) -> bool {
    match instr {
        Instr::Add { dst, .. }
        | Instr::Sub { dst, .. }
        | Instr::Mul { dst, .. }
        | Instr::AddInt { dst, .. }
        | Instr::CallBuiltin { dst, .. }
        | Instr::Key { dst, .. }
            if *dst == from =>
        {
            *dst = to;
            true
        }
        _ => false,
    }
}
