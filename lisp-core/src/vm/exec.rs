//! The dispatch loop. An instruction that fails has changed nothing and can be run again.

use super::destructuring::{destructure, keyword_args, taken_apart};
use super::errors::{loop_limit, not_in_a_worker, unbound};
use super::machine::Ending;
use super::quick::{compare, fast_arithmetic, fast_compare};
use super::walks::{builder_of, elements_left, is_before_end, is_range, next_element, walk, walk_name};
use crate::builtins::streams::reduced;
use crate::builtins::{Imp, exceptions, instances, maps, numbers};
use crate::code::{ArithName, BuiltinId, Bytecode, Cmp, Instr, Rare};
use crate::context::Ctx;
use crate::cost::INSTRUCTION;
use crate::error::Error;
use crate::heap::{Fault, FrameRegs, Heap, Map, Res, Value};
use crate::meter::Fuel;
use crate::stack::{Call, Code, Control, Effect, Frame, State, Unit, slot_on_stack};

/// Why the dispatch loop was left.
pub(super) enum Exit {
    /// The driver must perform an effect.
    Effect(Effect),
    /// The program has ended.
    Done(Ending),
}

impl<'h> State<'h> {
    /// Runs until the program has ended, the driver must perform an effect, or a fault occurs.
    pub(super) fn run(&mut self, h: &'h Ctx) -> Res<Exit> {
        loop {
            match self.dispatch(h) {
                Err(Fault::NeedsFrame) if self.starts_anew(h)? => {}
                Err(Fault::NeedsFrame) => {
                    if let Some(effect) = self.call_with_frame(h)? {
                        return Ok(Exit::Effect(effect));
                    }
                }
                out => return out,
            }
        }
    }

    /// Executes the instructions of the frames.
    #[cfg_attr(
        not(test),
        expect(clippy::too_many_lines, reason = "the loop of the machine has an arm for each instruction")
    )]
    fn dispatch(&mut self, h: &'h Ctx) -> Res<Exit> {
        'frame: loop {
            let Some(&Frame { code, base, .. }) = self.frames.last() else { return Ok(Exit::Done(Ending::Value)) };
            let (mut unit, mut proto, mut closure, pc) = match code {
                Code::Lisp { unit, proto, closure, pc } => (unit, proto, closure, pc as usize),
                Code::Native { native, .. } => match self.step_native(h, native)? {
                    Some(effect) => return Ok(Exit::Effect(effect)),
                    None => continue 'frame,
                },
            };
            let mut base = base as usize;
            let mut constants = unit.code.constants.values();
            let mut w = frame_regs(&mut self.stack, base, &proto.code, pc, h.meter.left());

            // Tells the heap the fuel left, before anything that may read or spend it.
            macro_rules! sync_fuel {
                () => {
                    h.meter.set_left(w.fuel())
                };
            }
            // For work that can fail: the instruction will be run again, from the same fuel.
            macro_rules! fallible {
                ($work:expr) => {{
                    sync_fuel!();
                    h.meter.set_restart();
                    match $work {
                        Ok(value) => {
                            w.refuel(h.meter.left());
                            value
                        }
                        Err(fault) => {
                            let pc = w.pc(&proto.code);
                            return Err(self.stopped(h, fault, pc));
                        }
                    }
                }};
            }
            // For rare cases: the loop is entered again, so that it need not keep state for the return.
            macro_rules! slow_path {
                (|$next:ident| $work:expr) => {{
                    sync_fuel!();
                    h.meter.set_restart();
                    let $next = w.pc(&proto.code);
                    match $work? {
                        Some(effect) => return Ok(Exit::Effect(effect)),
                        None => continue 'frame,
                    }
                }};
            }
            macro_rules! unless {
                ($op:expr, $a:ident, $b:ident, $off:ident) => {{
                    let holds = match (w.get($a), w.get($b)) {
                        (&Value::Int(a), &Value::Int(b)) => $op.holds_for(a, b),
                        (&Value::Float(a), &Value::Float(b)) => $op.holds_for(a, b),
                        (&a, &b) => fallible!(compare(h, $op, a, b)),
                    };
                    if !holds {
                        w.skip($off.into());
                    }
                }};
            }
            macro_rules! unless_int {
                ($op:expr, $a:ident, $imm:ident, $off:ident) => {{
                    let holds = match *w.get($a) {
                        Value::Int(a) => $op.holds_for(a, i64::from($imm)),
                        Value::Float(a) => $op.holds_for(a, f64::from($imm)),
                        a => fallible!(compare(h, $op, a, Value::Int($imm.into()))),
                    };
                    if !holds {
                        w.skip($off.into());
                    }
                }};
            }
            // The common call: a function of the program with the right number of arguments. Continues with its code.
            macro_rules! enter {
                ($function:expr, $dst:ident, $row:ident, $argc:expr) => {
                    if let Value::Closure(c) = $function
                        && c.proto.arity == $argc
                        && !c.proto.variadic
                    {
                        set_pc(&mut self.frames, w.pc(&proto.code));
                        if c.program != unit.id
                            && let Some(callee) = self.units.get(c.program)
                        {
                            unit = callee;
                            constants = unit.code.constants.values();
                        }
                        if c.program == unit.id
                            && self.frames.len() < self.frames.capacity()
                            && w.enter($row, &c.proto.code)
                        {
                            let dst = slot_on_stack(base.wrapping_add($dst as usize));
                            base = base.wrapping_add($row as usize + 1);
                            let code = Code::Lisp { unit, proto: c.proto, closure: Some(c), pc: 0 };
                            self.frames.push(Frame { code, base: slot_on_stack(base), dst });
                            (proto, closure) = (c.proto, Some(c));
                            continue;
                        }
                    }
                };
            }
            loop {
                let instr = w.fetch();
                match *instr {
                    Instr::Move { dst, src } => match w.get(src) {
                        // A number that was just written: reading tag and word at once would stall the processor.
                        &Value::Int(x) => w.set(dst, Value::Int(x)),
                        value => w.set(dst, *value),
                    },
                    Instr::Const { dst, k } => w.set(dst, constants[k as usize]),
                    Instr::Int { dst, value } => w.set(dst, Value::Int(i64::from(value))),
                    Instr::Nil { dst } => w.set(dst, Value::Nil),
                    Instr::Unset { dst } => w.set(dst, Value::Unset),
                    Instr::Bool { value, dst } => w.set(dst, Value::Bool(value)),
                    Instr::Builtin { dst, id } => w.set(dst, Value::Builtin(id)),
                    Instr::Capture { dst, index } => {
                        w.set(dst, closure.map_or(Value::Nil, |c| c.captures()[index as usize]));
                    }
                    Instr::SelfFn { dst } => {
                        let value = match closure {
                            Some(c) => Value::Closure(c),
                            None => fallible!(h.closure(unit.id, proto, std::iter::empty())),
                        };
                        w.set(dst, value);
                    }
                    Instr::Tool { dst, k } => {
                        if let Value::Str(name) = constants[k as usize] {
                            w.set(dst, Value::Tool(name));
                        }
                    }
                    Instr::Global { dst, g } => {
                        let value = &self.globals[unit.links[g as usize]];
                        if let Value::Unset = value {
                            fallible!(Err(unbound(unit, g)));
                        }
                        w.set(dst, *value);
                    }
                    Instr::Data { dst, g } => match &self.globals[unit.links[g as usize]] {
                        Value::Unset => w.set(dst, Value::Nil),
                        value => w.set(dst, *value),
                    },
                    Instr::Define { src, g } => self.globals[unit.links[g as usize]] = *w.get(src),
                    Instr::JumpDefined { g, off } => {
                        if !matches!(self.globals[unit.links[g as usize]], Value::Unset) {
                            w.skip(off);
                        }
                    }
                    Instr::VarName { dst, g } => {
                        let name = fallible!(h.text(&unit.code.globals[g as usize]));
                        w.set(dst, Value::Var(name));
                    }
                    Instr::Jump { off } => w.skip(off),
                    Instr::Repeat { off } => {
                        if w.is_over() {
                            slow_path!(|next| self.slice_over(h, next));
                        }
                        w.skip(off);
                    }
                    Instr::Loop { counter, off } => {
                        if w.is_over() {
                            slow_path!(|next| self.slice_over(h, next));
                        }
                        let round = match *w.get(counter) {
                            Value::Int(n) => n + 1,
                            _ => 1,
                        };
                        if round.cast_unsigned() > self.loop_limit && !unit.prelude {
                            fallible!(Err(loop_limit(self.loop_limit)));
                        }
                        w.set(counter, Value::Int(round));
                        w.skip(off);
                    }
                    Instr::JumpFalse { src, off } => {
                        if !w.get(src).truthy() {
                            w.skip(off);
                        }
                    }
                    Instr::JumpTrue { src, off } => {
                        if w.get(src).truthy() {
                            w.skip(off);
                        }
                    }
                    Instr::JumpSome { src, off } => {
                        if !w.get(src).is_nil() {
                            w.skip(off);
                        }
                    }
                    Instr::JumpSet { src, off } => {
                        if !matches!(w.get(src), Value::Unset) {
                            w.skip(off);
                        }
                    }
                    Instr::UnlessLt { a, b, off } => unless!(Cmp::Lt, a, b, off),
                    Instr::UnlessLe { a, b, off } => unless!(Cmp::Le, a, b, off),
                    Instr::UnlessGt { a, b, off } => unless!(Cmp::Gt, a, b, off),
                    Instr::UnlessGe { a, b, off } => unless!(Cmp::Ge, a, b, off),
                    Instr::UnlessEq { a, b, off } => unless!(Cmp::Eq, a, b, off),
                    Instr::UnlessLtInt { a, imm, off } => unless_int!(Cmp::Lt, a, imm, off),
                    Instr::UnlessLeInt { a, imm, off } => unless_int!(Cmp::Le, a, imm, off),
                    Instr::UnlessGtInt { a, imm, off } => unless_int!(Cmp::Gt, a, imm, off),
                    Instr::UnlessGeInt { a, imm, off } => unless_int!(Cmp::Ge, a, imm, off),
                    Instr::UnlessEqInt { a, imm, off } => unless_int!(Cmp::Eq, a, imm, off),
                    Instr::Compare { op, dst, a, b } => {
                        let holds = match fast_compare(op, w.get(a), w.get(b)) {
                            Some(holds) => holds,
                            None => fallible!(compare(h, op, *w.get(a), *w.get(b))),
                        };
                        w.set(dst, Value::Bool(holds));
                    }
                    Instr::Times { dst, a, b } => {
                        let holds = match fast_compare(Cmp::Lt, w.get(a), w.get(b)) {
                            Some(holds) => holds,
                            None => fallible!(is_before_end(h, *w.get(a), *w.get(b))),
                        };
                        w.set(dst, Value::Bool(holds));
                    }
                    Instr::CompareInt { op, dst, a, imm } => {
                        let holds = match *w.get(a) {
                            Value::Int(a) => op.holds(a.cmp(&imm.into())),
                            Value::Float(a) => a.partial_cmp(&imm.into()).is_some_and(|order| op.holds(order)),
                            a => fallible!(compare(h, op, a, Value::Int(imm.into()))),
                        };
                        w.set(dst, Value::Bool(holds));
                    }
                    Instr::Add { dst, a, b } => {
                        if !fast_arithmetic(&mut w, [dst, a, b], i64::checked_add, |x, y| x + y) {
                            slow_path!(|next| self.arithmetic(h, numbers::add, base, [dst, a, b], next));
                        }
                    }
                    Instr::Sub { dst, a, b } => {
                        if !fast_arithmetic(&mut w, [dst, a, b], i64::checked_sub, |x, y| x - y) {
                            slow_path!(|next| self.arithmetic(h, numbers::sub, base, [dst, a, b], next));
                        }
                    }
                    Instr::Mul { dst, a, b } => {
                        if !fast_arithmetic(&mut w, [dst, a, b], i64::checked_mul, |x, y| x * y) {
                            slow_path!(|next| self.arithmetic(h, numbers::mul, base, [dst, a, b], next));
                        }
                    }
                    Instr::AddInt { name, dst, a, imm } => match *w.get(a) {
                        Value::Int(x) if let Some(sum) = x.checked_add(imm.into()) => w.set(dst, Value::Int(sum)),
                        _ => slow_path!(|next| self.add_int(h, name, base, [dst, a], imm, next)),
                    },
                    Instr::Key { dst, src, k } => {
                        let key = constants[k as usize];
                        if let Value::Map(map) = w.get(src)
                            && let Some(value) = map.get_known(h, key)
                        {
                            w.set(dst, *value);
                        } else {
                            let found = fallible!(maps::key_of(h, *w.get(src), key));
                            w.set(dst, found.unwrap_or(Value::Nil));
                        }
                    }
                    Instr::KeyUnset { dst, src, k } => {
                        let found = fallible!(maps::key_of(h, *w.get(src), constants[k as usize]));
                        w.set(dst, found.unwrap_or(Value::Unset));
                    }
                    Instr::CallBuiltin { argc, dst, base: row, id } => {
                        match id.imp() {
                            // It needs nothing of the run, so neither fuel nor the slice is checked.
                            Imp::Test(test) => {
                                let holds = w.row(row, argc as usize).first().is_some_and(|value| test(*value));
                                w.set(dst, Value::Bool(holds));
                            }
                            _ if w.is_over() => slow_path!(|next| self.slice_over(h, next)),
                            Imp::Direct(f) => {
                                let value = fallible!(f(h, w.row(row, argc as usize)));
                                w.set(dst, value);
                            }
                            Imp::Calling(_) | Imp::Prelude | Imp::Either(..) => {
                                slow_path!(|next| self.call_builtin(h, id, base, [dst, row], argc.into(), next))
                            }
                        }
                    }
                    Instr::Call { dst, base: row, argc } => {
                        if w.is_over() {
                            slow_path!(|next| self.slice_over(h, next));
                        }
                        enter!(*w.get(row), dst, row, argc);
                        let call = Call::new(base + row as usize, argc.into(), slot_on_stack(base + dst as usize));
                        slow_path!(|next| self.make_call(h, call, next));
                    }
                    Instr::CallGlobal { argc, dst, base: row, g } => {
                        if w.is_over() {
                            slow_path!(|next| self.slice_over(h, next));
                        }
                        let function = self.globals[unit.links[g as usize]];
                        enter!(function, dst, row, argc.into());
                        let call = Call::new(base + row as usize, argc.into(), slot_on_stack(base + dst as usize));
                        slow_path!(|next| self.call_global(h, unit, g, call, next));
                    }
                    Instr::Return { src } => {
                        let value = *w.get(src);
                        let [.., below, done] = self.frames.as_slice() else {
                            sync_fuel!();
                            let next = w.pc(&proto.code);
                            return self.finish_run(value, next);
                        };
                        let (&Frame { code, base: caller, .. }, dst) = (below, done.dst);
                        let (u, p, c, pc) = match code {
                            Code::Lisp { unit, proto, closure, pc } => (unit, proto, closure, pc),
                            Code::Native { native, .. } => {
                                let fuel = w.fuel();
                                // The native frame may prepare its next call in the frame of the returning function.
                                if let Some(left) = fuel.less(Fuel::ONE)
                                    && (native.next_call)(self, &value)
                                {
                                    w = frame_regs(&mut self.stack, base, &proto.code, 0, left);
                                    continue;
                                }
                                h.meter.set_left(fuel);
                                self.finish_frame(value);
                                continue 'frame;
                            }
                        };
                        let fuel = w.fuel();
                        self.frames.pop();
                        self.stack[dst as usize] = value;
                        if !std::ptr::eq(unit, u) {
                            unit = u;
                            constants = unit.code.constants.values();
                        }
                        (proto, closure, base) = (p, c, caller as usize);
                        w = frame_regs(&mut self.stack, base, &proto.code, pc as usize, fuel);
                    }
                    Instr::StopReturn { src } => {
                        sync_fuel!();
                        let (value, next) = (*w.get(src), w.pc(&proto.code));
                        return self.stop(h, value, next);
                    }
                    Instr::StopFail { src } => {
                        sync_fuel!();
                        let (value, next) = (*w.get(src), w.pc(&proto.code));
                        match self.raising(h, next, |state| state.fail(h, value))? {
                            Some(exit) => return Ok(exit),
                            None => continue 'frame,
                        }
                    }
                    Instr::Closure { dst, proto: inner, base: row } => {
                        let inner = &unit.code.protos[inner as usize];
                        let captured = w.row_of(row, inner.captures as usize).iter().copied();
                        let value = fallible!(h.closure(unit.id, inner, captured));
                        w.set(dst, value);
                    }
                    Instr::Vector { dst, base: row, n } => {
                        let value = fallible!(h.vector(w.row(row, n as usize)));
                        w.set(dst, value);
                    }
                    Instr::Map { dst, base: row, n } => {
                        let pairs = w.row(row, n as usize).chunks_exact(2).map(|p| (p[0], p[1]));
                        let value = fallible!(h.map(pairs));
                        w.set(dst, value);
                    }
                    Instr::Record { dst, base: row, k } => {
                        if let Value::Map(model) = constants[k as usize] {
                            let value = fallible!(record(h, model, w.row_of(row, model.len())));
                            w.set(dst, value);
                        }
                    }
                    Instr::Set { dst, base: row, n } => {
                        let value = fallible!(h.set(w.row(row, n as usize).iter().copied()));
                        w.set(dst, value);
                    }
                    Instr::Walk { collects, base: row, src } => {
                        let items = fallible!(walk(h, walk_name(collects), *w.get(src)));
                        w.set(row, items);
                        w.set(row + 1, Value::Int(0));
                    }
                    Instr::Next { base: row, off } => {
                        if w.is_over() {
                            slow_path!(|next| self.slice_over(h, next));
                        }
                        if !next_element(&mut w, row) {
                            w.skip(off);
                        }
                    }
                    Instr::Again { base: row, off } => {
                        if w.is_over() {
                            slow_path!(|next| self.slice_over(h, next));
                        }
                        if next_element(&mut w, row) {
                            w.skip(off);
                        }
                    }
                    Instr::EnterRange { calls, base: row, off } => {
                        if !is_range(w.get(row + 1), w.get(row))
                            || calls && !matches!(w.get(row + 3), Value::Closure(_))
                        {
                            w.skip(off);
                        }
                    }
                    Instr::Enter { calls, base: row, off } => match *w.get(row) {
                        _ if calls && !matches!(w.get(row + 3), Value::Closure(_)) => w.skip(off),
                        Value::Vector(_) => w.set(row + 1, Value::Int(0)),
                        Value::Nil | Value::Map(_) | Value::Set(_) | Value::Str(_) => {
                            let items = fallible!(walk(h, "map", *w.get(row)));
                            w.set(row, items);
                            w.set(row + 1, Value::Int(0));
                        }
                        _ => w.skip(off),
                    },
                    Instr::Collect { dst } => {
                        let builder = fallible!(h.vec_builder(8));
                        w.set(dst, Value::VecBuilder(builder));
                    }
                    Instr::CollectAll { dst, base: row } => {
                        let room = match w.get(row) {
                            Value::Vector(items) => items.len(),
                            &Value::Int(end) => elements_left(w.get(row + 1), end),
                            _ => 0,
                        };
                        let builder = fallible!(builder_of(h, room));
                        w.set(dst, Value::VecBuilder(builder));
                    }
                    Instr::Combine { dst, src, off } => match *w.get(src) {
                        Value::Composed(_) if let Some(last) = reduced(*w.get(src)) => {
                            w.set(dst, last);
                            w.skip(off.into());
                        }
                        value => w.set(dst, value),
                    },
                    Instr::Push { builder, src } => {
                        if let Value::VecBuilder(builder) = *w.get(builder)
                            && !builder.push_in_place(w.get(src))
                        {
                            fallible!(builder.push(h, *w.get(src)));
                        }
                    }
                    Instr::Finish { dst, builder } => {
                        if let Value::VecBuilder(builder) = *w.get(builder) {
                            let value = fallible!(builder.finish(h));
                            w.set(dst, value);
                        }
                    }
                    Instr::SeqArg { dst, src, rest } => {
                        let mut value = *w.get(src);
                        if !matches!(value, Value::Vector(_) | Value::Nil) {
                            value = fallible!(taken_apart(h, value, rest));
                        }
                        w.set(dst, value);
                    }
                    Instr::MapArg { dst, src } => {
                        let value = *w.get(src);
                        if !matches!(value, Value::Map(_) | Value::Nil) {
                            fallible!(Err(destructure("a map or nil", value)));
                        }
                        w.set(dst, value);
                    }
                    Instr::Nth { dst, src, index } => {
                        let value = match w.get(src) {
                            Value::Vector(v) => v.get(index as usize).unwrap_or(Value::Nil),
                            _ => Value::Nil,
                        };
                        w.set(dst, value);
                    }
                    Instr::Rest { dst, src, index } => {
                        let value = match *w.get(src) {
                            Value::Vector(v) => fallible!(h.slice(v, index as usize, v.len())),
                            _ => fallible!(h.vector(&[])),
                        };
                        w.set(dst, value);
                    }
                    Instr::Seq { dst, src } => match fallible!(walk(h, "when-first", *w.get(src))) {
                        Value::Vector(v) if !v.is_empty() => w.set(dst, Value::Vector(v)),
                        _ => w.set(dst, Value::Nil),
                    },
                    Instr::KeywordArgs { dst, src } => {
                        let value = fallible!(keyword_args(h, *w.get(src)));
                        w.set(dst, value);
                    }
                    Instr::IsNil { dst, src } => w.set(dst, Value::Bool(w.get(src).is_nil())),
                    Instr::IsCase { dst, src, k } => {
                        let same = fallible!(compare(h, Cmp::Eq, *w.get(src), constants[k as usize]));
                        w.set(dst, Value::Bool(same));
                    }
                    Instr::Rare { op, dst, src, n } => {
                        sync_fuel!();
                        let next = w.pc(&proto.code);
                        match self.raising(h, next, |state| state.rare(h, op, [dst, src, n], next))? {
                            Some(exit) => return Ok(exit),
                            None => continue 'frame,
                        }
                    }
                }
            }
        }
    }

    /// Stores the value of the instruction before `next`.
    #[cold]
    fn finish_slow(&mut self, h: &Ctx, value: Res<Value<'h>>, to: usize, next: usize) -> Res<Option<Effect>> {
        self.stack[to] = value.map_err(|fault| self.stopped(h, fault, next))?;
        self.save_pc(next);
        Ok(None)
    }

    /// Arithmetic with numbers that the loop does not handle.
    #[cold]
    fn arithmetic(
        &mut self,
        h: &'h Ctx,
        f: fn(&'h Heap, Value<'h>, Value<'h>) -> Res<Value<'h>>,
        base: usize,
        [dst, a, b]: [u16; 3],
        next: usize,
    ) -> Res<Option<Effect>> {
        let [dst, a, b] = [dst, a, b].map(|register| base + register as usize);
        self.finish_slow(h, f(h, self.stack[a], self.stack[b]), dst, next)
    }

    /// `(+ a n)` and the like with numbers that the loop does not handle.
    #[cold]
    fn add_int(
        &mut self,
        h: &'h Ctx,
        name: ArithName,
        base: usize,
        [dst, a]: [u16; 2],
        imm: i16,
        next: usize,
    ) -> Res<Option<Effect>> {
        let (a, n) = (self.stack[base + a as usize], i64::from(imm));
        let sum = match name {
            ArithName::Plus => numbers::add(h, a, Value::Int(n)),
            ArithName::Minus => numbers::sub(h, a, Value::Int(-n)),
            ArithName::Inc => numbers::inc(h, a),
            ArithName::Dec => numbers::dec(h, a),
        };
        self.finish_slow(h, sum, base + dst as usize, next)
    }

    /// Makes the call of the instruction before `next`.
    fn make_call(&mut self, h: &'h Ctx, call: Call, next: usize) -> Res<Option<Effect>> {
        match self.call(h, call).map_err(|fault| self.stopped(h, fault, next))? {
            Control::Value(value) => {
                self.stack[call.dst as usize] = value;
                self.save_pc(next);
            }
            Control::Frame | Control::Call(_) => self.save_caller_pc(next),
            Control::Effect(effect) => {
                self.save_pc(next);
                return Ok(Some(effect));
            }
        }
        Ok(None)
    }

    /// Calls a definition that is not a function of the program, or takes other arguments.
    #[cold]
    fn call_global(&mut self, h: &'h Ctx, unit: &Unit, g: u16, call: Call, next: usize) -> Res<Option<Effect>> {
        let function = self.globals[unit.links[g as usize]];
        if let Value::Unset = function {
            return Err(self.stopped(h, unbound(unit, g.into()), next));
        }
        self.stack[call.at()] = function;
        self.make_call(h, call, next)
    }

    /// Calls a built-in with the arguments in the registers from `row` on. Calls expect the function before the
    /// arguments, so these are copied above the frame.
    fn call_builtin(
        &mut self,
        h: &'h Ctx,
        id: BuiltinId,
        base: usize,
        [dst, row]: [u16; 2],
        argc: usize,
        next: usize,
    ) -> Res<Option<Effect>> {
        let Some(&Frame { code: Code::Lisp { proto, .. }, .. }) = self.frames.last() else { return Ok(None) };
        let (first, at) = (base + row as usize, base + proto.code.registers());
        if let Imp::Either(calls, _, f) = id.imp()
            && !calls(&self.stack[first..first + argc])
        {
            let before = h.spent();
            match f(h, &self.stack[first..first + argc]) {
                // The call below makes it again, in a frame.
                Err(Fault::NeedsFrame) => h.meter.set_spent(before),
                done => {
                    self.stack[base + dst as usize] = done.map_err(|fault| self.stopped(h, fault, next))?;
                    self.save_pc(next);
                    return Ok(None);
                }
            }
        }
        self.ensure(h, at + 1 + argc).map_err(|fault| self.stopped(h, fault, next))?;
        self.stack[at] = Value::Builtin(id);
        self.stack.copy_within(first..first + argc, at + 1);
        self.make_call(h, Call::new(at, argc, slot_on_stack(base + dst as usize)), next)
    }

    /// Makes a call again that failed because it needs a frame for its arguments.
    #[cold]
    fn call_with_frame(&mut self, h: &'h Ctx) -> Res<Option<Effect>> {
        let began = h.meter.restart_fuel();
        h.meter.set_spent(began);
        let Some(&Frame { code, base, .. }) = self.frames.last() else { return Err(Fault::NeedsFrame) };
        let what = match code {
            Code::Lisp { proto, pc, .. } => match proto.code.instrs().get(pc as usize) {
                Some(&Instr::CallBuiltin { argc, dst, base: row, id }) => {
                    h.meter.set_spent(began + INSTRUCTION);
                    h.meter.set_restart();
                    let next = pc as usize + 1;
                    return self.call_builtin(h, id, base as usize, [dst, row], argc.into(), next);
                }
                Some(&Instr::Walk { collects, .. }) => walk_name(collects),
                _ => "this",
            },
            // Its next call, if any, is made through the machine.
            Code::Native { called: false, .. } if h.framed_at.replace(Some(began)) != Some(began) => return Ok(None),
            Code::Native { native, .. } => native.name,
        };
        h.framed_at.set(None);
        Err(Error::endless(what).into())
    }

    /// At the end of a slice, pauses the run, or runs the instruction before `next` again with more fuel.
    #[cold]
    fn slice_over(&mut self, h: &'h Ctx, next: usize) -> Res<Option<Effect>> {
        if let Err(fault) = h.meter.pause_or_go_on() {
            return Err(self.stopped(h, fault, next));
        }
        h.meter.set_spent(h.spent() - INSTRUCTION);
        self.save_pc(next - 1);
        Ok(None)
    }

    /// The outermost function has returned, by the instruction before `next`.
    #[cold]
    fn finish_run(&mut self, value: Value<'h>, next: usize) -> Res<Exit> {
        self.check_result(value).inspect_err(|_| self.save_pc(next - 1))?;
        self.frames.clear();
        self.result = value;
        Ok(Exit::Done(Ending::Value))
    }

    /// Fails if the result of the program is an endless sequence.
    fn check_result(&self, value: Value<'h>) -> Res<()> {
        match value {
            Value::Endless(_) if !self.worker => Err(Error::without_end("the result is an endless sequence").into()),
            _ => Ok(()),
        }
    }

    /// Ends the program with a value, at the instruction before `next`. A worker cannot end the program: it must return
    /// a value.
    #[cold]
    fn stop(&mut self, h: &'h Ctx, value: Value<'h>, next: usize) -> Res<Exit> {
        h.meter.set_restart();
        // If the fuel ran out before this instruction, this is its position.
        self.save_pc(next - 1);
        if self.worker {
            return Err(self.stopped(h, not_in_a_worker("return"), next));
        }
        self.check_result(value).map_err(|fault| self.stopped(h, fault, next))?;
        self.result = value;
        Ok(Exit::Done(Ending::Return))
    }

    /// Runs the instruction before `next`, which may continue at a handler, or end the program.
    #[cold]
    fn raising(
        &mut self,
        h: &'h Ctx,
        next: usize,
        work: impl FnOnce(&mut Self) -> Res<Option<Exit>>,
    ) -> Res<Option<Exit>> {
        h.meter.set_restart();
        self.save_pc(next - 1);
        work(self).map_err(|fault| self.stopped(h, fault, next))
    }

    /// Runs the rare instruction before `next`.
    fn rare(&mut self, h: &'h Ctx, op: Rare, [dst, src, n]: [u16; 3], next: usize) -> Res<Option<Exit>> {
        let Some(&Frame { code: Code::Lisp { unit, closure, .. }, base, .. }) = self.frames.last() else {
            return Ok(None);
        };
        let [dst, src] = [dst, src].map(|register| base as usize + register as usize);
        match op {
            Rare::Throw => return self.throw(h, self.stack[src], false),
            Rare::Rethrow if self.stack[src].is_nil() => {}
            Rare::Rethrow => return self.throw(h, self.stack[src], true),
            Rare::IsCaught => self.stack[dst] = Value::Bool(exceptions::is_caught(h, n, self.stack[src])?),
            Rare::IsInstance => self.stack[dst] = Value::Bool(instances::is_instance(h, n, self.stack[src])?),
            Rare::Sibling => {
                let captures = closure.map_or(&[][..], |c| c.captures());
                h.charge(captures.len() as u64)?;
                let captured = captures.iter().copied();
                self.stack[dst] = h.closure(unit.id, &unit.code.protos[n as usize], captured)?;
            }
        }
        self.save_pc(next);
        Ok(None)
    }

    /// Saves the position of the run after a fault, at the instruction before `next`, and takes back the fuel charged
    /// for it.
    #[cold]
    fn stopped(&mut self, h: &Ctx, fault: Fault, next: usize) -> Fault {
        h.meter.move_restart_before(Fuel::ONE);
        self.save_pc(next - 1);
        fault
    }

    fn save_pc(&mut self, at: usize) {
        set_pc(&mut self.frames, at);
    }

    /// Saves where the caller continues, below the frame that was just pushed.
    fn save_caller_pc(&mut self, at: usize) {
        let below = self.frames.len().wrapping_sub(2);
        if let Some(Frame { code: Code::Lisp { pc, .. }, .. }) = self.frames.get_mut(below) {
            *pc = Bytecode::place(at);
        }
    }
}

/// Saves where the innermost frame continues.
#[inline(always)]
fn set_pc(frames: &mut [Frame<'_>], at: usize) {
    if let Some(Frame { code: Code::Lisp { pc, .. }, .. }) = frames.last_mut() {
        *pc = Bytecode::place(at);
    }
}

/// Returns the registers of a frame, for [`State::run`] and what it calls. They must be operands of the last
/// instruction fetched.
#[allow(unsafe_code, reason = "each access is checked when the code is made, not when it is done")]
#[inline(always)]
fn frame_regs<'w, 'h>(
    stack: &'w mut [Value<'h>],
    base: usize,
    code: &'h Bytecode,
    pc: usize,
    fuel: Fuel,
) -> FrameRegs<'w, 'h> {
    // SAFETY: `run` matches on the instruction it has fetched, and passes on its operands.
    unsafe { FrameRegs::open(stack, base, code, pc, fuel) }
}

/// Returns a map with the shape of another. The instructions that prepared its values pay for it.
#[inline(always)]
fn record<'h>(h: &'h Ctx, model: &'h Map<'h>, values: &[Value<'h>]) -> Res<Value<'h>> {
    match model.shape() {
        Some((keys, _)) => h.map_of_shape(keys, values.iter().copied()).map(Value::Map),
        None => Ok(Value::Nil),
    }
}
