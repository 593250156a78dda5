//! `map` and the like, compiled in place as loops. A call of a function for an element takes no native frame, and the
//! body of a function literal is part of the loop, without a call.
//!
//! A chain of such calls, each over the result of the next, becomes one loop without collections in between, if all its
//! functions have no effects (`pure.rs`). Collections that cannot be walked in place, such as endless sequences, use
//! the plain calls, which follow the loop. So does a chain in which another step than the first fails: called one after
//! the other, an earlier step may fail first.

use super::{Function, Reg, Res, short};
use crate::builtins::{Imp, Lowering, Round, id_of};
use crate::code::{ArithName, BuiltinId, Bytecode, Called, HandledBy, InPlace, Instr};
use crate::compile::core::{Constant, FnNode, Kind, Node};
use crate::error::Span;

/// The maximum nesting of bodies of literals in place. Each is also compiled as a function, without other bodies in
/// place. So this bounds the factor by which code grows.
const DEEPEST: usize = 4;

/// The maximum number of steps of a chain that become one loop.
const LONGEST: usize = 16;

const RANGE: BuiltinId = id_of("range");

/// The expression that is evaluated for each element.
enum Step<'p> {
    /// the body of a literal
    Body(&'p FnNode),
    /// a lookup by a keyword
    Key(&'p Constant),
    /// a built-in that calls nothing
    Builtin(BuiltinId),
    /// a call of the function in [`Registers::function`]
    Call,
}

/// The registers of a loop, in a row.
#[derive(Clone, Copy)]
struct Registers {
    /// The value being built, or combined.
    acc: Reg,
    /// The collection being walked.
    items: Reg,
    /// The number of elements walked, and the current one.
    index: Reg,
    element: Reg,
    /// The function, if it is called.
    function: Reg,
    /// The first argument of a call, and the result for an element.
    result: Reg,
}

/// A call that becomes a loop, or a part of one.
#[derive(Clone, Copy)]
struct Site {
    round: Round,
    native: BuiltinId,
    span: Span,
}

/// One step of a chain.
struct Stage<'p> {
    site: Site,
    step: Step<'p>,
    /// The function, unless it is in its register.
    function: Option<&'p Node>,
}

/// How a collection is walked.
struct Walk {
    /// For a range, its first number and its source position.
    range: Option<(Option<i32>, Span)>,
    /// The jump to the plain calls.
    otherwise: usize,
}

impl Walk {
    /// Returns how many elements count as walked at the start.
    fn first(&self) -> i32 {
        self.range.and_then(|(start, _)| start).unwrap_or(0)
    }
}

/// A range that can be walked without creating its elements: integers up to a number, from a first one, which may be
/// left out.
struct Range<'p> {
    start: Option<i32>,
    end: &'p Node,
    span: Span,
}

/// Returns the first number of such a range.
fn range_start(args: &[Node]) -> Option<Option<i32>> {
    match args {
        [_] => Some(None),
        [Node { kind: Kind::Const(Constant::Int(start)), .. }, _] => i32::try_from(*start).ok().map(Some),
        _ => None,
    }
}

/// Returns the collection as a range, if it is one.
fn as_range(source: &Node) -> Option<Range<'_>> {
    let Kind::CallBuiltin(RANGE, args) = &source.kind else { return None };
    Some(Range { start: range_start(args)?, end: args.last()?, span: source.span })
}

impl<'p> Function<'_, 'p> {
    /// Compiles a call of a built-in as a loop. Returns false if that is not possible.
    pub(super) fn in_place(&mut self, id: BuiltinId, args: &'p [Node], span: Span, dst: Reg) -> Res<bool> {
        let Lowering::Round(round) = self.lowering(id) else { return Ok(false) };
        let (Some((function, [init @ .., source])), true) = (args.split_first(), round.takes(args.len())) else {
            return Ok(false);
        };
        let Some(step) = self.step_of(function, round) else { return Ok(false) };
        let mut stages = Vec::with_capacity(4);
        stages.push(Stage { site: Site { round, native: id, span }, step, function: Some(function) });
        let source = self.stages_before(&mut stages, source);
        stages.reverse();
        self.round(stages, init.first(), source, dst)?;
        Ok(true)
    }

    /// Returns what is evaluated for each element, if that can be done in place.
    fn step_of(&self, f: &'p Node, round: Round) -> Option<Step<'p>> {
        match &f.kind {
            Kind::Fn(node) => {
                let plain = node.name.is_none() && node.rest.is_none() && node.others.is_empty() && !node.recurs;
                let in_place = plain && node.params.len() == round.params() && self.generator.in_place < DEEPEST;
                Some(if in_place { Step::Body(node) } else { Step::Call })
            }
            Kind::Const(key @ Constant::Keyword(_)) if round != Round::Reduce => Some(Step::Key(key)),
            Kind::Builtin(id) => {
                let row = self.generator.rows.row(*id);
                (matches!(row.imp, Imp::Direct(_) | Imp::Test(_)) && row.takes(round.params()))
                    .then_some(Step::Builtin(*id))
            }
            Kind::Local(_) | Kind::Global(_) => Some(Step::Call),
            _ => None,
        }
    }

    /// Adds the calls that produce the elements after the stage that consumes them, while they have no effects. Returns
    /// what the last of the stages walks.
    fn stages_before(&self, stages: &mut Vec<Stage<'p>>, mut source: &'p Node) -> &'p Node {
        while stages.len() < LONGEST
            && stages.last().is_some_and(|taker| self.is_pure_step(&taker.step))
            && let Some((stage, coll)) = self.stage_of(source)
        {
            stages.push(stage);
            source = coll;
        }
        source
    }

    /// Returns the call as a stage of a chain, and the collection it walks, if it has no effects and maps one
    /// collection to another.
    fn stage_of(&self, call: &'p Node) -> Option<(Stage<'p>, &'p Node)> {
        let Kind::CallBuiltin(native, args) = &call.kind else { return None };
        let (Lowering::Round(round), [function, coll]) = (self.lowering(*native), &**args) else { return None };
        if round == Round::Reduce || !round.takes(args.len()) {
            return None;
        }
        let step = self.step_of(function, round).filter(|step| self.is_pure_step(step))?;
        let site = Site { round, native: *native, span: call.span };
        Some((Stage { site, step, function: Some(function) }, coll))
    }

    fn is_pure_step(&self, step: &Step<'p>) -> bool {
        match step {
            Step::Body(node) => self.is_pure_function(node),
            Step::Key(_) => true,
            Step::Builtin(id) => self.is_pure_builtin(*id),
            Step::Call => false,
        }
    }

    fn registers(&mut self, span: Span) -> Res<Registers> {
        let mut next = || self.alloc(span);
        let (acc, items, index, element) = (next()?, next()?, next()?, next()?);
        let (function, result, _second) = (next()?, next()?, next()?);
        Ok(Registers { acc, items, index, element, function, result })
    }

    /// Compiles a chain of calls, each over the result of the next. `init` is the initial value of a reduction.
    fn round(&mut self, mut stages: Vec<Stage<'p>>, init: Option<&'p Node>, source: &'p Node, dst: Reg) -> Res<()> {
        let is_chain = stages.len() > 1;
        let Some(last) = stages.last_mut() else { return Ok(()) };
        let (site, calls) = (last.site, matches!(last.step, Step::Call));
        let called = last.function.take_if(|_| calls);
        let r = self.registers(site.span)?;
        let bodies = stages.iter().filter_map(|stage| match &stage.step {
            Step::Body(node) => Some(&node.body),
            _ => None,
        });
        let held = self.hold(bodies, site.span)?;
        if let Some(called) = called {
            self.into(called, r.function)?;
        }
        // The others have no effects before they are called.
        let init = match init {
            // In a chain it is needed again after a failure.
            Some(init) if is_chain => Some(self.any(init)?),
            Some(init) => {
                self.into(init, r.acc)?;
                Some(r.acc)
            }
            None => None,
        };
        let walk = self.enter(source, r.items, calls)?;
        match is_chain {
            true => self.chain_of(&stages, site, init, walk, &r, dst)?,
            false => self.single(&stages, site, init, walk, &r, dst)?,
        }
        self.held.truncate(held);
        Ok(())
    }

    /// Compiles the loop of one call.
    fn single(
        &mut self,
        stages: &[Stage<'p>],
        site: Site,
        init: Option<Reg>,
        walk: Walk,
        r: &Registers,
        dst: Reg,
    ) -> Res<()> {
        let Registers { acc, items: base, element, .. } = *r;
        let mut of_none = None;
        match site.round {
            Round::Map => drop(self.emit(Instr::CollectAll { dst: acc, base }, site.span)),
            Round::Filter | Round::Remove | Round::Keep => drop(self.emit(Instr::Collect { dst: acc }, site.span)),
            Round::Reduce if init.is_some() => {}
            Round::Reduce => {
                // Without elements the result is that of the function without arguments.
                of_none = Some(self.emit(Instr::Next { base, off: 0 }, site.span));
                self.emit(Instr::Move { dst: acc, src: element }, site.span);
            }
        }
        let exit = self.emit(Instr::Next { base, off: 0 }, site.span);
        self.turn(stages, walk.first(), false, r)?;
        self.patch(exit)?;
        let end = self.finish(site, r, dst);
        [Some(walk.otherwise), of_none].into_iter().flatten().try_for_each(|jump| self.patch(jump))?;
        self.plain_calls(stages, init, r, dst)?;
        self.patch(end)
    }

    /// Compiles the loop of several calls without effects. If another step than the first fails, everything is done
    /// again, call by call.
    fn chain_of(
        &mut self,
        stages: &[Stage<'p>],
        site: Site,
        init: Option<Reg>,
        walk: Walk,
        r: &Registers,
        dst: Reg,
    ) -> Res<()> {
        let Registers { acc, items: base, .. } = *r;
        let (span, reduces) = (site.span, site.round == Round::Reduce);
        let maps = stages.iter().all(|stage| stage.site.round == Round::Map);
        let begin = match init {
            _ if maps => Instr::CollectAll { dst: acc, base },
            _ if !reduces => Instr::Collect { dst: acc },
            Some(src) => Instr::Move { dst: acc, src },
            None => Instr::Unset { dst: acc },
        };
        self.emit(begin, span);
        let from = self.here();
        let exit = self.emit(Instr::Next { base, off: 0 }, span);
        let first_done = self.turn(stages, walk.first(), reduces && init.is_none(), r)?;
        let to = self.here();
        let mut redo = Vec::new();
        if reduces {
            // A `reduced` value does not end the steps before the reduction.
            self.emit(Instr::Jump { off: 1 }, span);
            redo.push(self.emit(Instr::Jump { off: 0 }, span));
        }
        self.patch(exit)?;
        if reduces && init.is_none() {
            // Without elements the result is that of the function without arguments.
            self.emit(Instr::JumpSet { src: acc, off: 1 }, span);
            redo.push(self.emit(Instr::Jump { off: 0 }, span));
        }
        let end = self.finish(site, r, dst);
        redo.into_iter().try_for_each(|jump| self.patch(jump))?;
        // If the first step fails, no other step has failed before, in either order.
        self.handle(from, first_done, HandledBy::DoingAgainForFrames);
        self.handle(first_done, to, HandledBy::DoingAgain);
        // The partial results are released.
        for dst in [acc, r.element, r.result] {
            self.emit(Instr::Unset { dst }, span);
        }
        if let Some((start, span)) = walk.range {
            let plain = self.emit(Instr::EnterRange { calls: false, base, off: 0 }, span);
            self.make_range(start, base, span)?;
            self.patch(plain)?;
        }
        self.patch(walk.otherwise)?;
        self.plain_calls(stages, init, r, dst)?;
        self.patch(end)
    }

    /// Puts the collection to walk into the registers from `base` on.
    fn enter(&mut self, source: &'p Node, base: Reg, calls: bool) -> Res<Walk> {
        let span = source.span;
        let (range, walk) = match as_range(source) {
            Some(range) => (Some((range.start, span)), Some(self.enter_range(range, base, calls)?)),
            None => {
                self.into(source, base)?;
                (None, None)
            }
        };
        let otherwise = self.emit(Instr::Enter { calls, base, off: 0 }, span);
        if let Some(walk) = walk {
            self.patch(walk)?;
        }
        Ok(Walk { range, otherwise })
    }

    /// Puts the end of a range into register `base`, followed by the position of the walk. If it is not a range of
    /// integers that can be walked, the code that continues here creates its elements. Returns the jump of a walk.
    fn enter_range(&mut self, range: Range<'p>, base: Reg, calls: bool) -> Res<usize> {
        let Range { start, end, span } = range;
        self.into(end, base)?;
        self.emit(Instr::Int { dst: base + 1, value: start.unwrap_or(0) }, span);
        let enter = self.emit(Instr::EnterRange { calls, base, off: 0 }, span);
        let walk = self.emit(Instr::Jump { off: 0 }, span);
        self.patch(enter)?;
        self.make_range(start, base, span)?;
        Ok(walk)
    }

    /// Creates the elements of the range whose end is in register `base`.
    fn make_range(&mut self, start: Option<i32>, base: Reg, span: Span) -> Res<()> {
        let row = self.top;
        if let Some(value) = start {
            let dst = self.alloc(span)?;
            self.emit(Instr::Int { dst, value }, span);
        }
        let dst = self.alloc(span)?;
        self.emit(Instr::Move { dst, src: base }, span);
        let argc = if start.is_some() { 2 } else { 1 };
        self.emit(Instr::CallBuiltin { argc, dst: base, base: row, id: RANGE }, span);
        self.top = row;
        Ok(())
    }

    /// Puts the collection that `for` or `doseq` walks into the registers from `base` on.
    pub(super) fn walk(&mut self, source: &'p Node, base: Reg, collects: bool) -> Res<()> {
        let (span, saved) = (source.span, self.top);
        match as_range(source) {
            Some(range) => {
                let walk = self.enter_range(range, base, false)?;
                self.emit(Instr::Walk { collects, base, src: base }, span);
                self.patch(walk)?;
            }
            None => {
                let src = self.any(source)?;
                self.emit(Instr::Walk { collects, base, src }, span);
            }
        }
        self.top = saved;
        Ok(())
    }

    /// Compiles the steps for each element, and the jump to the next. Returns where the first step ends.
    fn turn(&mut self, stages: &[Stage<'p>], first: i32, sets_acc: bool, r: &Registers) -> Res<usize> {
        let (is_chain, last) = (stages.len() > 1, stages.len() - 1);
        let (saved, top) = (self.top, self.here());
        let (mut element, mut skips) = (r.element, Vec::new());
        let (mut span, mut first_done, mut all_pass) = (Span::default(), top, true);
        for (number, &Stage { site, ref step, .. }) in stages.iter().enumerate() {
            let is_last = number == last;
            span = site.span;
            if is_last && sets_acc {
                // The others are combined with the first element.
                self.emit(Instr::JumpSet { src: r.acc, off: 2 }, span);
                self.emit(Instr::Move { dst: r.acc, src: element }, span);
                skips.push(self.emit(Instr::Jump { off: 0 }, span));
            }
            let result = if is_last { r.result } else { self.alloc(span)? };
            let stage = Registers { element, result, ..*r };
            let (from, called) = (self.here(), self.step(site, step, &stage)?);
            if number == 0 {
                first_done = self.here();
            }
            let ([from, to], index) = ([from, self.here()].map(Bytecode::place), all_pass.then_some(r.index));
            self.in_place.push(InPlace { from, to, native: site.native, called, index, first, call: span });
            all_pass &= site.round == Round::Map;
            element = self.pass(site, &stage, &mut skips);
            match site.round {
                // It skips the jump to the next element, and in a chain also the following one.
                Round::Reduce => {
                    let off = if is_chain { 2 } else { 1 };
                    self.emit(Instr::Combine { dst: r.acc, src: element, off }, span);
                }
                _ if is_last => drop(self.emit(Instr::Push { builder: r.acc, src: element }, span)),
                _ => {}
            }
        }
        skips.into_iter().try_for_each(|skip| self.patch(skip))?;
        let off = self.back_to(top, span)?;
        self.emit(Instr::Again { base: r.items, off }, span);
        self.top = saved;
        Ok(first_done)
    }

    /// Moves the value of a loop to its destination. The jump to what follows must be patched.
    fn finish(&mut self, site: Site, r: &Registers, dst: Reg) -> usize {
        match site.round {
            Round::Reduce => self.emit(Instr::Move { dst, src: r.acc }, site.span),
            _ => self.emit(Instr::Finish { dst, builder: r.acc }, site.span),
        };
        self.emit(Instr::Jump { off: 0 }, site.span)
    }

    /// Compiles the calls that the loop replaces, over the collection in the register of the elements. A function that
    /// is not in its register yet is loaded first.
    fn plain_calls(&mut self, stages: &[Stage<'p>], init: Option<Reg>, r: &Registers, dst: Reg) -> Res<()> {
        let last = stages.len() - 1;
        for (number, &Stage { site: Site { native, span, .. }, function, .. }) in stages.iter().enumerate() {
            if let Some(f) = function {
                let before = std::mem::replace(&mut self.generator.in_place, DEEPEST);
                self.into(f, r.function)?;
                self.generator.in_place = before;
            }
            let (base, mut argc) = (self.top, 0);
            for src in [Some(r.function), init.filter(|_| number == last), Some(r.items)].into_iter().flatten() {
                let arg = self.alloc(span)?;
                self.emit(Instr::Move { dst: arg, src }, span);
                argc += 1;
            }
            self.top = base;
            let dst = if number == last { dst } else { r.items };
            self.emit(Instr::CallBuiltin { argc, dst, base, id: native }, span);
        }
        Ok(())
    }

    /// Computes the result for an element.
    fn step(&mut self, site: Site, step: &Step<'p>, r: &Registers) -> Res<Called> {
        let Site { round, span, .. } = site;
        let folds = round == Round::Reduce;
        let args = &[r.acc, r.element][usize::from(!folds)..];
        Ok(match *step {
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
        })
    }

    /// Compiles the body of a literal, with its parameters in these registers.
    fn body(&mut self, node: &'p FnNode, params: &[Reg], dst: Reg) -> Res<()> {
        let (visible, saved) = (self.visible.len(), self.top);
        for &var in &node.captures {
            self.name_again(var);
        }
        for (&var, &reg) in node.params.iter().zip(params) {
            self.set_place(var, reg);
        }
        self.binds(&node.prologue)?;
        self.into(&node.body, dst)?;
        self.top = saved;
        self.forget_locals(visible);
        Ok(())
    }

    /// Compiles a built-in of an element, or of the accumulator and an element.
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

    /// Skips to the next element depending on a result. Returns the register of the value to keep.
    fn pass(&mut self, site: Site, r: &Registers, skips: &mut Vec<usize>) -> Reg {
        let &Registers { element, result: src, .. } = r;
        let (taken, skip) = match site.round {
            Round::Map | Round::Reduce => return src,
            Round::Filter => (element, Instr::JumpFalse { src, off: 0 }),
            Round::Remove => (element, Instr::JumpTrue { src, off: 0 }),
            Round::Keep => {
                self.emit(Instr::JumpSome { src, off: 1 }, site.span);
                (src, Instr::Jump { off: 0 })
            }
        };
        skips.push(self.emit(skip, site.span));
        taken
    }
}
