//! `map` and its like as loops in the code around them: a call of a function for an element takes no native frame, and the body
//! of a function literal stands in the loop itself, without a call. What cannot be walked at once, such as an endless sequence,
//! takes the plain call, which stands behind the loop.

use super::{Function, Reg, Res, short};
use crate::builtins::{Imp, Lowering, Round};
use crate::code::{ArithName, BuiltinId, Bytecode, Called, InPlace, Instr};
use crate::compile::core::{Constant, FnNode, Kind, Node};
use crate::error::Span;

/// How deep in each other the bodies of literals stand in place. Each is compiled once more as a function, without others in
/// place inside it: so this bounds the factor by which code grows.
const DEEPEST: usize = 4;

/// What is done for each element.
enum Step {
    /// the body of a literal
    Body(FnNode),
    /// a keyword reads it
    Key(Constant),
    /// a built-in that calls nothing
    Builtin(BuiltinId),
    /// a call of the function in [`Registers::function`]
    Call,
}

/// The registers of a loop, in a row but for the first.
#[derive(Clone, Copy)]
struct Registers {
    /// What is built, or combined.
    acc: Reg,
    /// How many elements were walked, and the one at hand.
    index: Reg,
    element: Reg,
    /// The function, where it is called.
    function: Reg,
    /// The first argument of a call, and the result for an element.
    result: Reg,
}

/// The call that is made a loop.
struct Site {
    round: Round,
    native: BuiltinId,
    span: Span,
}

impl Function<'_, '_> {
    /// A call of a built-in as a loop. Returns the arguments when it is none that can be.
    pub(super) fn in_place(&mut self, id: BuiltinId, args: Vec<Node>, span: Span, dst: Reg) -> Res<Option<Vec<Node>>> {
        let Lowering::Round(round) = self.lowering(id) else { return Ok(Some(args)) };
        let step = args.first().filter(|_| round.takes(args.len())).and_then(|f| self.step_of(f, round));
        let Some(step) = step else { return Ok(Some(args)) };
        self.round(&Site { round, native: id, span }, step, args, dst).map(|()| None)
    }

    /// What is done for each element, if it can be done in place.
    fn step_of(&self, f: &Node, round: Round) -> Option<Step> {
        match &f.kind {
            Kind::Fn(node) => {
                let plain = node.name.is_none() && node.rest.is_none() && node.others.is_empty() && !node.recurs;
                let in_place = plain && node.params.len() == round.params() && self.generator.in_place < DEEPEST;
                Some(if in_place { Step::Body((**node).clone()) } else { Step::Call })
            }
            Kind::Const(key @ Constant::Keyword(_)) if round != Round::Reduce => Some(Step::Key(key.clone())),
            Kind::Builtin(id) => {
                let row = self.generator.rows.row(*id);
                (matches!(row.imp, Imp::Direct(_)) && row.takes(round.params())).then_some(Step::Builtin(*id))
            }
            Kind::Local(_) | Kind::Global(_) => Some(Step::Call),
            _ => None,
        }
    }

    fn round(&mut self, site: &Site, step: Step, args: Vec<Node>, dst: Reg) -> Res<()> {
        let &Site { round, span, .. } = site;
        let mut next = || self.alloc(span);
        let (acc, items, index, element) = (next()?, next()?, next()?, next()?);
        let (function, result, _second) = (next()?, next()?, next()?);
        let r = Registers { acc, index, element, function, result };
        let mut args = args.into_iter();
        let (Some(f), Some(coll)) = (args.next(), args.next_back()) else { return Ok(()) };
        // The others have no effect before they are called.
        let calls = matches!(step, Step::Call);
        let f = match calls {
            true => {
                self.into(f, function)?;
                None
            }
            false => Some(f),
        };
        let init = args.next();
        let has_init = init.is_some();
        if let Some(init) = init {
            self.into(init, acc)?;
        }
        self.into(coll, items)?;
        let enter = match calls {
            true => Instr::EnterCalls { base: items, off: 0 },
            false => Instr::Enter { base: items, off: 0 },
        };
        let mut fall_back = vec![self.emit(enter, span)];
        let mut ends = Vec::new();
        match round {
            Round::Map => drop(self.emit(Instr::CollectAll { dst: acc, base: items }, span)),
            Round::Filter | Round::Remove | Round::Keep => drop(self.emit(Instr::Collect { dst: acc }, span)),
            Round::Reduce if has_init => {}
            Round::Reduce => {
                // Of no elements it is what the function makes of nothing.
                fall_back.push(self.emit(Instr::Next { base: items, off: 0 }, span));
                self.emit(Instr::Move { dst: acc, src: element }, span);
            }
        }
        let top = self.here();
        ends.push(self.emit(Instr::Next { base: items, off: 0 }, span));
        self.step(site, step, &r)?;
        self.take(round, &r, top, span)?;
        let off = self.back_to(top, span)?;
        self.emit(Instr::Repeat { off }, span);
        for end in ends {
            self.patch(end)?;
        }
        match round {
            Round::Reduce => self.emit(Instr::Move { dst, src: acc }, span),
            _ => self.emit(Instr::Finish { dst, builder: acc }, span),
        };
        let end = self.emit(Instr::Jump { off: 0 }, span);
        for enter in fall_back {
            self.patch(enter)?;
        }
        let args = [Some(function), has_init.then_some(acc), Some(items)];
        self.plain_call(site, f.map(|f| (f, function)), args.into_iter().flatten(), dst)?;
        self.patch(end)
    }

    /// The call that the loop stands for, with the arguments in these registers. A function that is not in its register yet goes
    /// there first.
    fn plain_call(
        &mut self,
        site: &Site,
        function: Option<(Node, Reg)>,
        args: impl Iterator<Item = Reg>,
        dst: Reg,
    ) -> Res<()> {
        let &Site { native, span, .. } = site;
        if let Some((f, reg)) = function {
            let before = std::mem::replace(&mut self.generator.in_place, DEEPEST);
            self.into(f, reg)?;
            self.generator.in_place = before;
        }
        let (base, mut argc) = (self.top, 0);
        for src in args {
            let arg = self.alloc(span)?;
            self.emit(Instr::Move { dst: arg, src }, span);
            argc += 1;
        }
        self.emit(Instr::CallBuiltin { argc, dst, base, id: native }, span);
        Ok(())
    }

    /// Computes the result for an element.
    fn step(&mut self, site: &Site, step: Step, r: &Registers) -> Res<()> {
        let &Site { round, native, span } = site;
        let folds = round == Round::Reduce;
        let args = &[r.acc, r.element][usize::from(!folds)..];
        let from = self.here();
        let called = match step {
            Step::Key(key) => {
                let k = self.short_constant(key, span)?;
                self.emit(Instr::Key { dst: r.result, src: r.element, k }, span);
                Called::Other
            }
            Step::Body(node) => {
                self.generator.in_place += 1;
                self.body(node, args, r.result)?;
                self.generator.in_place -= 1;
                Called::Literal
            }
            Step::Builtin(id) => {
                self.built_in(id, folds, r, span);
                Called::Builtin(id)
            }
            Step::Call => {
                for (dst, &src) in (r.result..).zip(args) {
                    self.emit(Instr::Move { dst, src }, span);
                }
                let argc = short(args.len(), span)?;
                self.emit(Instr::Call { dst: r.result, base: r.function, argc }, span);
                Called::Other
            }
        };
        let [from, to] = [from, self.here()].map(Bytecode::place);
        self.in_place.push(InPlace { from, to, native, called, index: r.index, call: span });
        Ok(())
    }

    /// The body of a literal, with its parameters in these registers.
    fn body(&mut self, node: FnNode, params: &[Reg], dst: Reg) -> Res<()> {
        let (visible, saved) = (self.visible.len(), self.top);
        for &var in &node.captures {
            self.name_again(var);
        }
        for (&var, &reg) in node.params.iter().zip(params) {
            self.set_place(var, reg);
        }
        self.binds(node.prologue)?;
        self.into(node.body, dst)?;
        self.top = saved;
        self.forget_locals(visible);
        Ok(())
    }

    /// A built-in of an element, or of what is combined and an element.
    fn built_in(&mut self, id: BuiltinId, folds: bool, r: &Registers, span: Span) {
        let Registers { acc: a, element: b, result: dst, .. } = *r;
        let instr = match (self.lowering(id), folds) {
            (Lowering::Add, true) => Instr::Add { dst, a, b },
            (Lowering::Sub, true) => Instr::Sub { dst, a, b },
            (Lowering::Mul, true) => Instr::Mul { dst, a, b },
            (Lowering::Compare(op), true) => Instr::Compare { op, dst, a, b },
            (Lowering::Inc, false) => Instr::AddInt { name: ArithName::Inc, dst, a: b, imm: 1 },
            (Lowering::Dec, false) => Instr::AddInt { name: ArithName::Dec, dst, a: b, imm: -1 },
            (_, false) => Instr::CallBuiltin { argc: 1, dst, base: b, id },
            (_, true) => {
                self.emit(Instr::Move { dst, src: a }, span);
                self.emit(Instr::Move { dst: dst + 1, src: b }, span);
                Instr::CallBuiltin { argc: 2, dst, base: dst, id }
            }
        };
        self.emit(instr, span);
    }

    /// Takes the result for an element. What is not taken goes on with the next one.
    fn take(&mut self, round: Round, r: &Registers, top: usize, span: Span) -> Res<()> {
        let &Registers { acc, element, result, .. } = r;
        let next = self.back_to(top, span)?;
        let instr = match round {
            Round::Map => Instr::Push { builder: acc, src: result },
            Round::Filter => {
                self.emit(Instr::JumpFalse { src: result, off: next }, span);
                Instr::Push { builder: acc, src: element }
            }
            Round::Remove => {
                self.emit(Instr::JumpTrue { src: result, off: next }, span);
                Instr::Push { builder: acc, src: element }
            }
            Round::Keep => {
                // To the instruction behind the next.
                self.emit(Instr::JumpSome { src: result, off: 1 }, span);
                let off = self.back_to(top, span)?;
                self.emit(Instr::Repeat { off }, span);
                Instr::Push { builder: acc, src: result }
            }
            // At the end it goes behind the jump that follows.
            Round::Reduce => Instr::Combine { dst: acc, src: result, off: 1 },
        };
        self.emit(instr, span);
        Ok(())
    }
}
