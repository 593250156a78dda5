//! The dispatch loop. An instruction that fails has changed nothing: it can be run again.

use super::Ending;
use crate::builtins::{Imp, args, maps, numbers};
use crate::code::{ArithName, BuiltinId, Bytecode, Cmp, Instr};
use crate::context::Ctx;
use crate::cost::{self, INSTRUCTION};
use crate::error::{Error, Reason};
use crate::heap::{Fault, Map, Res, Value, Window};
use crate::meter::{Fuel, METERED};
use crate::stack::{Call, Code, Control, Effect, Frame, State, Unit, slot_on_stack};

/// Why the dispatch loop was left.
pub(super) enum Exit {
    /// The driver is to do something.
    Effect(Effect),
    /// The program has ended.
    Done(Ending),
}

impl<'h> State<'h> {
    /// Runs until the program has ended, or there is something that its driver must do, or a fault.
    pub(super) fn run(&mut self, h: &'h Ctx) -> Res<Exit> {
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
            let mut constants = unit.program.constants().values();
            let mut w = Window::open(&mut self.stack, base, &proto.code, pc, h.meter.left());

            // Tells the heap what fuel is left. Before anything that may look at it or spend some.
            macro_rules! settle {
                () => {
                    if METERED {
                        h.meter.set_left(w.fuel())
                    }
                };
            }
            // What can fail goes through here: the instruction will be run again, from the same fuel.
            macro_rules! attempt {
                ($work:expr) => {{
                    settle!();
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
            // For work on the state itself: the window is closed meanwhile.
            macro_rules! attempt_on_state {
                ($work:expr) => {{
                    settle!();
                    h.meter.set_restart();
                    let pc = w.pc(&proto.code);
                    match $work {
                        Ok(value) => {
                            w = Window::open(&mut self.stack, base, &proto.code, pc, h.meter.left());
                            value
                        }
                        Err(fault) => return Err(self.stopped(h, fault, pc)),
                    }
                }};
            }
            macro_rules! check_slice {
                () => {
                    if METERED && w.is_over() {
                        settle!();
                        let pc = w.pc(&proto.code);
                        self.slice_over(h, pc)?;
                        continue 'frame;
                    }
                };
            }
            macro_rules! jump {
                ($off:expr) => {
                    w.skip($off)
                };
            }
            // For what is rare: the loop is entered anew, so that it need not keep anything ready for the way back.
            macro_rules! rare {
                ($dst:expr, $work:expr) => {{
                    settle!();
                    h.meter.set_restart();
                    let (pc, to) = (w.pc(&proto.code), base + $dst as usize);
                    let came_to = $work;
                    self.settle_rare(h, came_to, to, pc)?;
                    continue 'frame;
                }};
            }
            // Integers that fit and floats here, everything else in the built-in.
            macro_rules! arithmetic {
                ($dst:expr, $a:expr, $b:expr, $checked:ident, $float:tt, $slow:path) => {
                    match (w.get($a), w.get($b)) {
                        (&Value::Int(x), &Value::Int(y)) => match x.$checked(y) {
                            Some(value) => w.set($dst, Value::Int(value)),
                            None => rare!($dst, $slow(h, Value::Int(x), Value::Int(y))),
                        },
                        (&Value::Float(x), &Value::Float(y)) => w.set($dst, Value::Float(x $float y)),
                        (&Value::Int(x), &Value::Float(y)) => w.set($dst, Value::Float(x as f64 $float y)),
                        (&Value::Float(x), &Value::Int(y)) => w.set($dst, Value::Float(x $float y as f64)),
                        (&a, &b) => rare!($dst, $slow(h, a, b)),
                    }
                };
            }
            macro_rules! holds_int {
                ($op:expr, $a:expr, $imm:expr) => {
                    match *w.get($a) {
                        Value::Int(a) => $op.holds(a.cmp(&i64::from($imm))),
                        a => attempt!(compare(h, $op, a, Value::Int(i64::from($imm)))),
                    }
                };
            }
            macro_rules! holds {
                ($op:expr, $a:expr, $b:expr) => {
                    match (w.get($a), w.get($b)) {
                        (&Value::Int(a), &Value::Int(b)) => $op.holds(a.cmp(&b)),
                        (&Value::Float(a), &Value::Float(b)) => a.partial_cmp(&b).is_some_and(|order| $op.holds(order)),
                        (&a, &b) => attempt!(compare(h, $op, a, b)),
                    }
                };
            }
            // Where a call that has been made leads.
            macro_rules! follow {
                ($called:expr, $dst:expr) => {
                    match $called {
                        Control::Value(value) => w.set($dst, value),
                        Control::Frame | Control::Call(_) => {
                            let pc = w.pc(&proto.code);
                            self.save_caller_pc(pc);
                            continue 'frame;
                        }
                        Control::Effect(effect) => {
                            let pc = w.pc(&proto.code);
                            self.save_pc(pc);
                            return Ok(Exit::Effect(effect));
                        }
                    }
                };
            }
            loop {
                let instr = w.fetch();
                match *instr {
                    Instr::Move { dst, src } => match w.get(src) {
                        // A number that was just written: the processor waits when tag and word are read as one.
                        &Value::Int(x) => w.set(dst, Value::Int(x)),
                        value => w.set(dst, *value),
                    },
                    Instr::Const { dst, k } => w.set(dst, constants[k as usize]),
                    Instr::Int { dst, value } => w.set(dst, Value::Int(i64::from(value))),
                    Instr::Nil { dst } => w.set(dst, Value::Nil),
                    Instr::Bool { value, dst } => w.set(dst, Value::Bool(value)),
                    Instr::Builtin { dst, id } => w.set(dst, Value::Builtin(id)),
                    Instr::Capture { dst, index } => {
                        w.set(dst, closure.map_or(Value::Nil, |c| c.captures[index as usize]));
                    }
                    Instr::SelfFn { dst } => {
                        let value = match closure {
                            Some(c) => Value::Closure(c),
                            None => attempt!(h.closure(unit.id, proto, std::iter::empty())),
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
                            attempt!(Err(unbound(unit, g)));
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
                            jump!(off);
                        }
                    }
                    Instr::VarName { dst, g } => {
                        let name = attempt!(h.text(&unit.program.globals()[g as usize]));
                        w.set(dst, Value::Var(name));
                    }
                    Instr::Jump { off } => jump!(off),
                    Instr::Repeat { off } => {
                        check_slice!();
                        jump!(off);
                    }
                    Instr::Loop { counter, off } => {
                        check_slice!();
                        let round = match *w.get(counter) {
                            Value::Int(n) => n + 1,
                            _ => 1,
                        };
                        if round.cast_unsigned() > self.loop_limit && !unit.prelude {
                            attempt!(Err(loop_limit(self.loop_limit)));
                        }
                        w.set(counter, Value::Int(round));
                        jump!(off);
                    }
                    Instr::JumpFalse { src, off } => {
                        if !w.get(src).truthy() {
                            jump!(off);
                        }
                    }
                    Instr::JumpTrue { src, off } => {
                        if w.get(src).truthy() {
                            jump!(off);
                        }
                    }
                    Instr::JumpSome { src, off } => {
                        if !w.get(src).is_nil() {
                            jump!(off);
                        }
                    }
                    Instr::JumpSet { src, off } => {
                        if !matches!(w.get(src), Value::Unset) {
                            jump!(off);
                        }
                    }
                    Instr::JumpUnless { op, a, b, off } => {
                        if !holds!(op, a, b) {
                            jump!(i32::from(off));
                        }
                    }
                    Instr::JumpUnlessInt { op, a, imm, off } => {
                        if !holds_int!(op, a, imm) {
                            jump!(i32::from(off));
                        }
                    }
                    Instr::Compare { op, dst, a, b } => {
                        let holds = holds!(op, a, b);
                        w.set(dst, Value::Bool(holds));
                    }
                    Instr::CompareInt { op, dst, a, imm } => {
                        let holds = holds_int!(op, a, imm);
                        w.set(dst, Value::Bool(holds));
                    }
                    Instr::Add { dst, a, b } => arithmetic!(dst, a, b, checked_add, +, numbers::add),
                    Instr::Sub { dst, a, b } => arithmetic!(dst, a, b, checked_sub, -, numbers::sub),
                    Instr::Mul { dst, a, b } => arithmetic!(dst, a, b, checked_mul, *, numbers::mul),
                    Instr::AddInt { name, dst, a, imm } => {
                        let a = w.get(a);
                        if let Value::Int(x) = *a
                            && let Some(sum) = x.checked_add(i64::from(imm))
                        {
                            w.set(dst, Value::Int(sum));
                        } else {
                            let a = *a;
                            rare!(dst, add_int(h, name, a, imm));
                        }
                    }
                    Instr::Key { dst, src, k } => {
                        let found = attempt!(maps::key_of(h, *w.get(src), constants[k as usize]));
                        w.set(dst, found.unwrap_or(Value::Nil));
                    }
                    Instr::KeyUnset { dst, src, k } => {
                        let found = attempt!(maps::key_of(h, *w.get(src), constants[k as usize]));
                        w.set(dst, found.unwrap_or(Value::Unset));
                    }
                    Instr::CallBuiltin { argc, dst, base: row, id } => {
                        check_slice!();
                        match id.row().imp {
                            Imp::Native(f) => {
                                let value = attempt!(f(h, w.row(row, argc as usize)));
                                w.set(dst, value);
                            }
                            Imp::Calling(_) | Imp::Prelude => {
                                let (at, ret) = (base + row as usize, slot_on_stack(base + dst as usize));
                                let called = attempt_on_state!(self.call_row(h, id, at, argc.into(), ret));
                                follow!(called, dst);
                            }
                        }
                    }
                    Instr::Call { dst, base: row, argc } => {
                        check_slice!();
                        let (at, ret) = (base + row as usize, slot_on_stack(base + dst as usize));
                        // The usual call, of a function of the program with as many arguments as it takes.
                        if let Value::Closure(c) = *w.get(row)
                            && c.proto.arity == argc
                            && !c.proto.variadic
                            && self.frames.len() < self.frames.capacity()
                            && row as usize + 1 + c.proto.code.registers() <= w.room()
                            && let Some(callee) = self.units.find(c.program, unit)
                        {
                            let (pc, fuel) = (w.pc(&proto.code), w.fuel());
                            self.save_pc(pc);
                            if !std::ptr::eq(unit, callee) {
                                unit = callee;
                                constants = unit.program.constants().values();
                            }
                            (proto, closure, base) = (c.proto, Some(c), at + 1);
                            let code = Code::Lisp { unit, proto, closure, pc: 0 };
                            self.frames.push(Frame { code, base: slot_on_stack(base), dst: ret });
                            w = Window::open(&mut self.stack, base, &proto.code, 0, fuel);
                            continue;
                        }
                        let call = Call::new(at, argc as usize, ret);
                        follow!(attempt_on_state!(self.call(h, call)), dst);
                    }
                    Instr::Return { src } => {
                        let value = *w.get(src);
                        let [.., below, done] = self.frames.as_slice() else {
                            settle!();
                            self.frames.clear();
                            self.result = value;
                            return Ok(Exit::Done(Ending::Value));
                        };
                        let (&Frame { code, base: caller, .. }, dst) = (below, done.dst);
                        let (u, p, c, pc) = match code {
                            Code::Lisp { unit, proto, closure, pc } => (unit, proto, closure, pc),
                            Code::Native { native, .. } => {
                                let fuel = w.fuel();
                                if let Some(left) = fuel.less(Fuel::ONE)
                                    && (native.next_call)(self, &value)
                                {
                                    w = Window::open(&mut self.stack, base, &proto.code, 0, left);
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
                            constants = unit.program.constants().values();
                        }
                        (proto, closure, base) = (p, c, caller as usize);
                        w = Window::open(&mut self.stack, base, &proto.code, pc as usize, fuel);
                    }
                    Instr::StopReturn { src } => {
                        settle!();
                        h.meter.set_restart();
                        let (value, pc) = (*w.get(src), w.pc(&proto.code));
                        // The fuel may have run out before it: then this is the place.
                        self.save_pc(pc - 1);
                        let left = self.leave("return", value).map(|()| Exit::Done(Ending::Return));
                        return left.map_err(|fault| self.stopped(h, fault, pc));
                    }
                    Instr::StopFail { src } => {
                        settle!();
                        h.meter.set_restart();
                        let (value, pc) = (*w.get(src), w.pc(&proto.code));
                        // The fuel may have run out before it: then this is the place.
                        self.save_pc(pc - 1);
                        let left = self.leave("fail", value).map(|()| Exit::Done(Ending::Fail));
                        return left.map_err(|fault| self.stopped(h, fault, pc));
                    }
                    Instr::Closure { dst, proto: inner, base: row } => {
                        let inner = &unit.program.protos()[inner as usize];
                        let captured = w.row_of(row, inner.captures as usize).iter().copied();
                        let value = attempt!(h.closure(unit.id, inner, captured));
                        w.set(dst, value);
                    }
                    Instr::Vector { dst, base: row, n } => {
                        let value = attempt!(h.vector(w.row(row, n as usize)));
                        w.set(dst, value);
                    }
                    Instr::Map { dst, base: row, n } => {
                        let pairs = w.row(row, n as usize).chunks_exact(2).map(|p| (p[0], p[1]));
                        let value = attempt!(h.map(pairs));
                        w.set(dst, value);
                    }
                    Instr::Record { dst, base: row, k } => {
                        if let Value::Map(model) = constants[k as usize] {
                            let value = attempt!(record(h, model, w.row_of(row, model.len())));
                            w.set(dst, value);
                        }
                    }
                    Instr::Set { dst, base: row, n } => {
                        let value = attempt!(h.set(w.row(row, n as usize).iter().copied()));
                        w.set(dst, value);
                    }
                    Instr::Walk { base: row, src } => {
                        let items = attempt!(walk(h, *w.get(src)));
                        w.set(row, items);
                        w.set(row + 1, Value::Int(0));
                    }
                    Instr::Next { base: row, off } => {
                        check_slice!();
                        let next = match (w.get(row), w.get(row + 1)) {
                            (Value::Vector(items), &Value::Int(i)) => {
                                let item = usize::try_from(i).ok().and_then(|i| items.get(i));
                                item.map(|item| (item, i + 1))
                            }
                            _ => None,
                        };
                        match next {
                            Some((item, i)) => {
                                w.set(row + 1, Value::Int(i));
                                w.set(row + 2, item);
                            }
                            None => jump!(off),
                        }
                    }
                    Instr::Collect { dst } => {
                        let builder = attempt!(h.vec_builder(8));
                        w.set(dst, Value::VecBuilder(builder));
                    }
                    Instr::Push { builder, src } => {
                        if let Value::VecBuilder(builder) = *w.get(builder) {
                            attempt!(builder.push(h, *w.get(src)));
                        }
                    }
                    Instr::Finish { dst, builder } => {
                        if let Value::VecBuilder(builder) = *w.get(builder) {
                            let value = attempt!(builder.finish(h));
                            w.set(dst, value);
                        }
                    }
                    Instr::SeqArg { dst, src } => {
                        let value = *w.get(src);
                        if !matches!(value, Value::Vector(_) | Value::Nil) {
                            attempt!(Err(destructure("a vector or nil", value)));
                        }
                        w.set(dst, value);
                    }
                    Instr::MapArg { dst, src } => {
                        let value = *w.get(src);
                        if !matches!(value, Value::Map(_) | Value::Nil) {
                            attempt!(Err(destructure("a map or nil", value)));
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
                            Value::Vector(v) => attempt!(h.slice(v, index as usize, v.len())),
                            _ => attempt!(h.vector(&[])),
                        };
                        w.set(dst, value);
                    }
                    Instr::Seq { dst, src } => match attempt!(walk(h, *w.get(src))) {
                        Value::Vector(v) if !v.is_empty() => w.set(dst, Value::Vector(v)),
                        _ => w.set(dst, Value::Nil),
                    },
                    Instr::KeywordArgs { dst, src } => {
                        let value = attempt!(keyword_args(h, *w.get(src)));
                        w.set(dst, value);
                    }
                    Instr::IsNil { dst, src } => w.set(dst, Value::Bool(w.get(src).is_nil())),
                    Instr::IsCase { dst, src, k } => {
                        let same = attempt!(h.equal(*w.get(src), constants[k as usize]));
                        w.set(dst, Value::Bool(same));
                    }
                }
            }
        }
    }

    /// Stores what a rare case came to and notes where to go on.
    #[cold]
    fn settle_rare(&mut self, h: &Ctx, came_to: Res<Value<'h>>, to: usize, next: usize) -> Res<()> {
        self.stack[to] = came_to.map_err(|fault| self.stopped(h, fault, next))?;
        self.save_pc(next);
        Ok(())
    }

    /// At the end of a slice the run pauses, or the instruction before `next` is done again with more fuel.
    #[cold]
    fn slice_over(&mut self, h: &'h Ctx, next: usize) -> Res<()> {
        h.meter.set_restart();
        if let Err(fault) = h.meter.pause_or_go_on() {
            return Err(self.stopped(h, fault, next));
        }
        h.meter.set_spent(h.spent() - INSTRUCTION);
        self.save_pc(next - 1);
        Ok(())
    }

    /// Notes where the run stands after a fault: at the instruction before `next`, with the fuel that it was charged
    /// taken back.
    #[cold]
    fn stopped(&mut self, h: &Ctx, fault: Fault, next: usize) -> Fault {
        h.meter.move_restart_before(Fuel::ONE);
        self.save_pc(next - 1);
        fault
    }

    #[inline(always)]
    fn save_pc(&mut self, at: usize) {
        if let Some(Frame { code: Code::Lisp { pc, .. }, .. }) = self.frames.last_mut() {
            *pc = Bytecode::place(at);
        }
    }

    /// Ends the program with a value. A parallel call must answer: it cannot end the program.
    fn leave(&mut self, name: &str, value: Value<'h>) -> Res<()> {
        if self.worker {
            return Err(Error::new(Reason::RuntimeError, format!("{name} cannot stand inside pmap or pcalls"))
                .hint("answer a value, and return after the parallel call")
                .into());
        }
        self.result = value;
        Ok(())
    }

    /// Notes where the caller goes on, beneath the frame that was just pushed.
    fn save_caller_pc(&mut self, at: usize) {
        let below = self.frames.len().wrapping_sub(2);
        if let Some(Frame { code: Code::Lisp { pc, .. }, .. }) = self.frames.get_mut(below) {
            *pc = Bytecode::place(at);
        }
    }

    /// Calls a built-in whose arguments begin at slot `first`. Calls have the function in front of them, so the
    /// arguments are laid out again above.
    fn call_row(&mut self, h: &'h Ctx, id: BuiltinId, first: usize, argc: usize, dst: u32) -> Res<Control<'h>> {
        let Some(&Frame { code: Code::Lisp { proto, .. }, base, .. }) = self.frames.last() else {
            return Ok(Control::Value(Value::Nil));
        };
        let at = base as usize + proto.code.registers();
        self.ensure(h, at + 1 + argc)?;
        self.stack[at] = Value::Builtin(id);
        self.stack.copy_within(first..first + argc, at + 1);
        self.call(h, Call::new(at, argc, dst))
    }
}

/// A comparison of other things than two integers.
#[cold]
fn compare<'h>(h: &'h Ctx, op: Cmp, a: Value<'h>, b: Value<'h>) -> Res<bool> {
    match op {
        Cmp::Eq => h.equal(a, b),
        Cmp::Lt => numbers::less(h, a, b),
        Cmp::Le => numbers::less_eq(h, a, b),
        Cmp::Gt => numbers::greater(h, a, b),
        Cmp::Ge => numbers::greater_eq(h, a, b),
    }
}

#[cold]
fn add_int<'h>(h: &'h Ctx, name: ArithName, a: Value<'h>, imm: i16) -> Res<Value<'h>> {
    match name {
        ArithName::Plus => numbers::add(h, a, Value::Int(i64::from(imm))),
        ArithName::Minus => numbers::sub(h, a, Value::Int(-i64::from(imm))),
        ArithName::Inc => numbers::inc(h, a),
        ArithName::Dec => numbers::dec(h, a),
    }
}

/// What `for` and `doseq` walk, as a vector.
fn walk<'h>(h: &'h Ctx, coll: Value<'h>) -> Res<Value<'h>> {
    match coll {
        Value::Vector(_) => Ok(coll),
        other => h.vector(args::seq(h, "for", other)?),
    }
}

/// A map of the shape of another. It costs what it would with its keys laid out and put in order.
fn record<'h>(h: &'h Ctx, model: &'h Map<'h>, values: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(cost::placed(values.len()))?;
    match model.shape() {
        Some((keys, _)) => h.map_of_shape(keys, values).map(Value::Map),
        None => Ok(Value::Nil),
    }
}

fn keyword_args<'h>(h: &'h Ctx, rest: Value<'h>) -> Res<Value<'h>> {
    let Value::Vector(v) = rest else { return Ok(rest) };
    if v.len() % 2 != 0 {
        return Err(Error::new(
            Reason::DestructureError,
            format!("keyword arguments come in pairs, got {} values", v.len()),
        )
        .into());
    }
    h.charge(v.len() as u64)?;
    h.map(v.items().chunks_exact(2).map(|p| (p[0], p[1])))
}

#[cold]
fn destructure(expects: &str, got: Value<'_>) -> crate::heap::Fault {
    Error::new(Reason::DestructureError, format!("the pattern expects {expects}, got {}", args::describe(got))).into()
}

#[cold]
fn unbound(unit: &Unit, g: u32) -> crate::heap::Fault {
    let name = unit.program.globals().get(g as usize).map_or("", |n| n);
    Error::new(Reason::UnboundVar, format!("{name} is not defined yet")).hint("define it before it is used").into()
}

#[cold]
fn loop_limit(limit: u64) -> crate::heap::Fault {
    Error::new(Reason::LoopLimitExceeded, format!("the loop went round more than {limit} times"))
        .hint("use map, filter or reduce over the collection, or raise the limit loop_iterations")
        .detail("limit", limit)
        .detail("reached", limit + 1)
        .into()
}
