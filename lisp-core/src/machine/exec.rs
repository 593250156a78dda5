//! The dispatch loop. An instruction that fails has changed nothing: it can be run again.

use super::call::{Called, key_of};
use super::state::{Code, Frame, State, Unit};
use crate::builtins::{BuiltinId, Imp, args, numbers};
use crate::compile::{Cmp, Instr, Via};
use crate::error::{Error, Reason};
use crate::heap::{Heap, METERED, Res, Value};

/// Why the machine came out of its loop.
pub(crate) enum Out {
    /// No frame is left: the value is in `State::result`.
    Done,
    /// A tool is to be called.
    Tool,
    /// Workers are to be run.
    Parallel,
    /// `(return v)`
    Return,
    /// `(fail v)`
    Fail,
}

/// What the loop does next.
enum Next {
    /// Another frame is on top.
    Switch,
    Out(Out),
}

impl<'h> State<'h> {
    /// Runs until there is nothing to do, or something that a driver must do, or a fault.
    pub(crate) fn run(&mut self, h: &'h Heap) -> Res<Out> {
        loop {
            let Some(&frame) = self.frames.last() else { return Ok(Out::Done) };
            match frame.code {
                Code::Lisp { .. } => match self.lisp(h, frame)? {
                    Next::Switch => {}
                    Next::Out(out) => return Ok(out),
                },
                Code::Native { op, .. } => {
                    if let Some(out) = crate::frames::step(op, h, self)? {
                        return Ok(out);
                    }
                }
            }
        }
    }

    fn save_pc(&mut self, at: usize) {
        if let Some(Frame { code: Code::Lisp { pc, .. }, .. }) = self.frames.last_mut() {
            *pc = at as u32;
        }
    }

    /// Runs the function on top and those it calls.
    fn lisp(&mut self, h: &'h Heap, frame: Frame<'h>) -> Res<Next> {
        let Code::Lisp { mut unit, mut proto, mut closure, pc } = frame.code else { return Ok(Next::Switch) };
        let (mut pc, mut base) = (pc as usize, frame.base as usize);
        let mut constants = unit.program.constants().values();
        let mut code: &'h [Instr] = &proto.code;

        macro_rules! reg {
            ($r:expr) => {
                self.stack[base + $r as usize]
            };
        }
        loop {
            let before = h.spent();
            if METERED {
                h.set_spent(before + 1);
            }
            let instr = code[pc];
            pc += 1;
            // What can fail goes through here: the instruction will be run again, from the same fuel.
            macro_rules! attempt {
                ($work:expr) => {
                    match $work {
                        Ok(value) => value,
                        Err(fault) => {
                            self.mark = before;
                            self.save_pc(pc - 1);
                            return Err(fault);
                        }
                    }
                };
            }
            macro_rules! check_slice {
                () => {
                    if METERED && h.spent() > h.stop_at() {
                        attempt!(h.pause_or_go_on())
                    }
                };
            }
            match instr {
                Instr::Move { dst, src } => reg!(dst) = reg!(src),
                Instr::Const { dst, k } => reg!(dst) = constants[k as usize],
                Instr::Int { dst, value } => reg!(dst) = Value::Int(i64::from(value)),
                Instr::Nil { dst } => reg!(dst) = Value::Nil,
                Instr::Bool { value, dst } => reg!(dst) = Value::Bool(value),
                Instr::Builtin { dst, id } => reg!(dst) = Value::Builtin(BuiltinId(id)),
                Instr::Capture { dst, index } => {
                    reg!(dst) = closure.map_or(Value::Nil, |c| c.captures[index as usize]);
                }
                Instr::SelfFn { dst } => {
                    reg!(dst) = match closure {
                        Some(c) => Value::Closure(c),
                        None => attempt!(h.closure(unit, proto, std::iter::empty())),
                    };
                }
                Instr::Tool { dst, k } => {
                    if let Value::Str(name) = constants[k as usize] {
                        reg!(dst) = Value::Tool(name);
                    }
                }
                Instr::Global { dst, g } => {
                    let value = self.globals[unit.links[g as usize] as usize];
                    if let Value::Unset = value {
                        attempt!(Err(unbound(unit, g)));
                    }
                    reg!(dst) = value;
                }
                Instr::Data { dst, g } => {
                    reg!(dst) = match self.globals[unit.links[g as usize] as usize] {
                        Value::Unset => Value::Nil,
                        value => value,
                    };
                }
                Instr::Define { src, g } => self.globals[unit.links[g as usize] as usize] = reg!(src),
                Instr::JumpDefined { g, to } => {
                    if !matches!(self.globals[unit.links[g as usize] as usize], Value::Unset) {
                        pc = to as usize;
                    }
                }
                Instr::VarName { dst, g } => {
                    let name = attempt!(h.text(&unit.program.globals()[g as usize]));
                    reg!(dst) = Value::Var(name);
                }
                Instr::Jump { to } => pc = to as usize,
                Instr::Repeat { to } => {
                    check_slice!();
                    pc = to as usize;
                }
                Instr::Loop { counter, to } => {
                    check_slice!();
                    let round = match reg!(counter) {
                        Value::Int(n) => n + 1,
                        _ => 1,
                    };
                    if round as u64 > self.loop_limit && !unit.prelude {
                        attempt!(Err(loop_limit(self.loop_limit)));
                    }
                    reg!(counter) = Value::Int(round);
                    pc = to as usize;
                }
                Instr::JumpFalse { src, to } => {
                    if !reg!(src).truthy() {
                        pc = to as usize;
                    }
                }
                Instr::JumpTrue { src, to } => {
                    if reg!(src).truthy() {
                        pc = to as usize;
                    }
                }
                Instr::JumpSome { src, to } => {
                    if !reg!(src).is_nil() {
                        pc = to as usize;
                    }
                }
                Instr::JumpSet { src, to } => {
                    if !matches!(reg!(src), Value::Unset) {
                        pc = to as usize;
                    }
                }
                Instr::JumpUnless { op, a, b, off } => {
                    if !attempt!(compare(h, op, reg!(a), reg!(b))) {
                        pc = pc.wrapping_add_signed(off as isize);
                    }
                }
                Instr::JumpUnlessInt { op, a, imm, off } => {
                    if !attempt!(compare(h, op, reg!(a), Value::Int(i64::from(imm)))) {
                        pc = pc.wrapping_add_signed(off as isize);
                    }
                }
                Instr::Compare { op, dst, a, b } => {
                    reg!(dst) = Value::Bool(attempt!(compare(h, op, reg!(a), reg!(b))));
                }
                Instr::CompareInt { op, dst, a, imm } => {
                    reg!(dst) = Value::Bool(attempt!(compare(h, op, reg!(a), Value::Int(i64::from(imm)))));
                }
                Instr::Add { dst, a, b } => {
                    reg!(dst) = match (reg!(a), reg!(b)) {
                        (Value::Int(a), Value::Int(b)) if a.checked_add(b).is_some() => Value::Int(a.wrapping_add(b)),
                        (a, b) => attempt!(numbers::add(h, a, b)),
                    };
                }
                Instr::Sub { dst, a, b } => {
                    reg!(dst) = match (reg!(a), reg!(b)) {
                        (Value::Int(a), Value::Int(b)) if a.checked_sub(b).is_some() => Value::Int(a.wrapping_sub(b)),
                        (a, b) => attempt!(numbers::sub(h, a, b)),
                    };
                }
                Instr::Mul { dst, a, b } => reg!(dst) = attempt!(numbers::mul(h, reg!(a), reg!(b))),
                Instr::AddInt { via, dst, a, imm } => {
                    reg!(dst) = match reg!(a) {
                        Value::Int(a) if a.checked_add(i64::from(imm)).is_some() => {
                            Value::Int(a.wrapping_add(i64::from(imm)))
                        }
                        a => attempt!(add_int(h, via, a, imm)),
                    };
                }
                Instr::Key { dst, src, k } => {
                    let found = attempt!(key_of(h, reg!(src), constants[k as usize]));
                    reg!(dst) = found.unwrap_or(Value::Nil);
                }
                Instr::KeyUnset { dst, src, k } => {
                    let found = attempt!(key_of(h, reg!(src), constants[k as usize]));
                    reg!(dst) = found.unwrap_or(Value::Unset);
                }
                Instr::CallBuiltin { argc, dst, base: row, id } => {
                    check_slice!();
                    let at = base + row as usize;
                    match BuiltinId(id).row().imp {
                        Imp::Native(f) => {
                            let value = attempt!(f(h, &self.stack[at..at + argc as usize]));
                            reg!(dst) = value;
                        }
                        Imp::Frame(_) | Imp::Prelude => {
                            let ret = (base + dst as usize) as u32;
                            match attempt!(self.call_row(h, BuiltinId(id), at, argc as usize, ret)) {
                                Called::Value(value) => reg!(dst) = value,
                                Called::Frame => {
                                    self.save_caller_pc(pc);
                                    return Ok(Next::Switch);
                                }
                                Called::Tool => {
                                    self.save_pc(pc);
                                    return Ok(Next::Out(Out::Tool));
                                }
                            }
                        }
                    }
                }
                Instr::Call { dst, base: row, argc } => {
                    check_slice!();
                    let (at, ret) = (base + row as usize, (base + dst as usize) as u32);
                    // The usual call, of a function of the program with as many arguments as it takes.
                    if let Value::Closure(c) = self.stack[at]
                        && c.proto.arity == argc
                        && !c.proto.variadic
                        && at + 1 + c.proto.registers as usize <= self.stack.len()
                        && self.frames.len() < self.frames.capacity()
                    {
                        self.save_pc(pc);
                        if !std::ptr::eq(unit, c.unit) {
                            unit = c.unit;
                            constants = unit.program.constants().values();
                        }
                        (proto, closure, pc, base) = (c.proto, Some(c), 0, at + 1);
                        code = &proto.code;
                        self.frames.push(Frame {
                            code: Code::Lisp { unit, proto, closure, pc: 0 },
                            base: base as u32,
                            dst: ret,
                        });
                        continue;
                    }
                    match attempt!(self.call(h, at, argc as usize, ret)) {
                        Called::Value(value) => reg!(dst) = value,
                        Called::Frame => {
                            self.save_caller_pc(pc);
                            return Ok(Next::Switch);
                        }
                        Called::Tool => {
                            self.save_pc(pc);
                            return Ok(Next::Out(Out::Tool));
                        }
                    }
                }
                Instr::Return { src } => {
                    let value = reg!(src);
                    let Some(done) = self.frames.pop() else { return Ok(Next::Out(Out::Done)) };
                    match self.frames.last() {
                        Some(&Frame {
                            code: Code::Lisp { unit: u, proto: p, closure: c, pc: at }, base: b, ..
                        }) => {
                            self.stack[done.dst as usize] = value;
                            if !std::ptr::eq(unit, u) {
                                unit = u;
                                constants = unit.program.constants().values();
                            }
                            (proto, closure, pc, base) = (p, c, at as usize, b as usize);
                            code = &proto.code;
                        }
                        Some(_) => {
                            self.stack[done.dst as usize] = value;
                            return Ok(Next::Switch);
                        }
                        None => {
                            self.result = value;
                            return Ok(Next::Out(Out::Done));
                        }
                    }
                }
                Instr::StopReturn { src } => {
                    attempt!(self.refuse_in_worker("return"));
                    self.result = reg!(src);
                    return Ok(Next::Out(Out::Return));
                }
                Instr::StopFail { src } => {
                    attempt!(self.refuse_in_worker("fail"));
                    self.result = reg!(src);
                    return Ok(Next::Out(Out::Fail));
                }
                Instr::Closure { dst, proto: inner, base: row } => {
                    let inner = &unit.program.protos()[inner as usize];
                    let from = base + row as usize;
                    let captured = self.stack[from..from + inner.captures as usize].iter().copied();
                    reg!(dst) = attempt!(h.closure(unit, inner, captured));
                }
                Instr::Vector { dst, base: row, n } => {
                    let from = base + row as usize;
                    reg!(dst) = attempt!(h.vector(&self.stack[from..from + n as usize]));
                }
                Instr::Map { dst, base: row, n } => {
                    let from = base + row as usize;
                    let pairs = self.stack[from..from + n as usize].chunks_exact(2).map(|p| (p[0], p[1]));
                    reg!(dst) = attempt!(h.map(pairs));
                }
                Instr::Set { dst, base: row, n } => {
                    let from = base + row as usize;
                    reg!(dst) = attempt!(h.set(self.stack[from..from + n as usize].iter().copied()));
                }
                Instr::Walk { base: row, src } => {
                    let items = attempt!(walk(h, reg!(src)));
                    reg!(row) = items;
                    reg!(row + 1) = Value::Int(0);
                }
                Instr::Next { base: row, to } => {
                    check_slice!();
                    let next = match (reg!(row), reg!(row + 1)) {
                        (Value::Vector(items), Value::Int(i)) => items.get(i as usize).map(|item| (item, i + 1)),
                        _ => None,
                    };
                    match next {
                        Some((item, i)) => {
                            reg!(row + 1) = Value::Int(i);
                            reg!(row + 2) = item;
                        }
                        None => pc = to as usize,
                    }
                }
                Instr::Collect { dst } => reg!(dst) = Value::VecBuilder(attempt!(h.vec_builder(8))),
                Instr::Push { builder, src } => {
                    if let Value::VecBuilder(builder) = reg!(builder) {
                        attempt!(builder.push(h, reg!(src)));
                    }
                }
                Instr::Finish { dst, builder } => {
                    if let Value::VecBuilder(builder) = reg!(builder) {
                        reg!(dst) = attempt!(builder.finish(h));
                    }
                }
                Instr::SeqArg { dst, src } => {
                    let value = reg!(src);
                    if !matches!(value, Value::Vector(_) | Value::Nil) {
                        attempt!(Err(destructure("a vector or nil", value)));
                    }
                    reg!(dst) = value;
                }
                Instr::MapArg { dst, src } => {
                    let value = reg!(src);
                    if !matches!(value, Value::Map(_) | Value::Nil) {
                        attempt!(Err(destructure("a map or nil", value)));
                    }
                    reg!(dst) = value;
                }
                Instr::Nth { dst, src, index } => {
                    reg!(dst) = match reg!(src) {
                        Value::Vector(v) => v.get(index as usize).unwrap_or(Value::Nil),
                        _ => Value::Nil,
                    };
                }
                Instr::Rest { dst, src, index } => {
                    reg!(dst) = match reg!(src) {
                        Value::Vector(v) => attempt!(h.slice(v, index as usize, v.len())),
                        _ => attempt!(h.vector(&[])),
                    };
                }
                Instr::Seq { dst, src } => {
                    let items = attempt!(walk(h, reg!(src)));
                    reg!(dst) = match items {
                        Value::Vector(v) if !v.is_empty() => items,
                        _ => Value::Nil,
                    };
                }
                Instr::KeywordArgs { dst, src } => reg!(dst) = attempt!(keyword_args(h, reg!(src))),
                Instr::IsNil { dst, src } => reg!(dst) = Value::Bool(reg!(src).is_nil()),
                Instr::IsCase { dst, src, k } => {
                    reg!(dst) = Value::Bool(attempt!(h.equal(reg!(src), constants[k as usize])));
                }
            }
        }
    }

    /// A parallel call must answer: it cannot end the program.
    fn refuse_in_worker(&self, name: &str) -> Res<()> {
        if self.worker {
            return Err(Error::new(Reason::RuntimeError, format!("{name} cannot stand inside pmap or pcalls"))
                .hint("answer a value, and return after the parallel call")
                .into());
        }
        Ok(())
    }

    /// Notes where the caller goes on, beneath the frame that was just pushed.
    fn save_caller_pc(&mut self, at: usize) {
        let below = self.frames.len().wrapping_sub(2);
        if let Some(Frame { code: Code::Lisp { pc, .. }, .. }) = self.frames.get_mut(below) {
            *pc = at as u32;
        }
    }

    /// Calls a built-in whose arguments begin at slot `first`. Calls have the function in front of them, so the
    /// arguments are laid out again above.
    fn call_row(&mut self, h: &'h Heap, id: BuiltinId, first: usize, argc: usize, dst: u32) -> Res<Called<'h>> {
        let Some(&Frame { code: Code::Lisp { proto, .. }, base, .. }) = self.frames.last() else {
            return Ok(Called::Value(Value::Nil));
        };
        let at = base as usize + proto.registers as usize;
        self.ensure(h, at + 1 + argc)?;
        self.stack[at] = Value::Builtin(id);
        self.stack.copy_within(first..first + argc, at + 1);
        self.call(h, at, argc, dst)
    }
}

#[inline(always)]
fn compare<'h>(h: &'h Heap, op: Cmp, a: Value<'h>, b: Value<'h>) -> Res<bool> {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        return Ok(match op {
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::Eq => a == b,
        });
    }
    compare_others(h, op, a, b)
}

#[inline(never)]
fn compare_others<'h>(h: &'h Heap, op: Cmp, a: Value<'h>, b: Value<'h>) -> Res<bool> {
    match op {
        Cmp::Eq => h.equal(a, b),
        Cmp::Lt => numbers::less(h, a, b),
        Cmp::Le => numbers::less_eq(h, a, b),
        Cmp::Gt => numbers::greater(h, a, b),
        Cmp::Ge => numbers::greater_eq(h, a, b),
    }
}

#[cold]
fn add_int<'h>(h: &'h Heap, via: Via, a: Value<'h>, imm: i16) -> Res<Value<'h>> {
    match via {
        Via::Plus => numbers::add(h, a, Value::Int(i64::from(imm))),
        Via::Minus => numbers::sub(h, a, Value::Int(-i64::from(imm))),
        Via::Inc => numbers::inc(h, a),
        Via::Dec => numbers::dec(h, a),
    }
}

/// What `for` and `doseq` walk, as a vector.
pub(crate) fn walk<'h>(h: &'h Heap, coll: Value<'h>) -> Res<Value<'h>> {
    match coll {
        Value::Vector(_) => Ok(coll),
        other => h.vector(args::seq(h, "for", other)?),
    }
}

fn keyword_args<'h>(h: &'h Heap, rest: Value<'h>) -> Res<Value<'h>> {
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
        .hint("use map, filter or reduce over the collection, or ask the host to raise Limits::loop_iterations")
        .detail("limit", limit)
        .detail("reached", limit + 1)
        .into()
}
