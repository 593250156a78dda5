//! The code generator: core forms to instructions. Locals are registers. Arguments of calls are in consecutive
//! registers, where the callee's frame starts.

mod branches;
mod effects;
mod held;
mod in_place;
mod pure;
mod rounds;

use super::constants::Pool;
use super::core::{Bind, Constant, FnNode, Kind, Node, Prim, Var};
use crate::Table;
use crate::builtins::{Lowering, Rows};
use crate::code::{
    ArithName, BuiltinId, Bytecode, Cmp, Definition, Handler, InPlace, Instr, Local, LocalPlace, Proto, Rare,
};
use crate::error::{Error, Reason, Span};
use crate::heap::{Frozen, SMALL};
use crate::syntax::Interrupt;
use std::sync::Arc;

type Res<T> = Result<T, Error>;
type Reg = u16;

/// The maximum number of registers of a frame; calls need a few above.
const MAX_REGISTERS: usize = 60_000;

/// Returns the error of a program with more of something than its instructions can address.
fn too_many(what: &str, span: Span) -> Error {
    Error::new(Reason::ProgramTooLarge, format!("the program has more than 65,535 {what}"))
        .at(span)
        .hint("pass large data as data, and run the program in parts; this limit cannot be raised")
        .detail("limit", usize::from(u16::MAX))
}

/// Returns the error of a function that does not fit its instructions.
fn too_large(message: impl Into<String>, span: Span) -> Error {
    Error::new(Reason::ProgramTooLarge, message).at(span).hint("split the form into several definitions")
}

/// Converts a number of values to an operand.
fn short(count: usize, span: Span) -> Res<u16> {
    u16::try_from(count).map_err(|_| too_large(format!("one form has {count} values; the maximum is 65,535"), span))
}

/// Converts the index of an instruction; there are at most [`Bytecode::MAX`].
fn instruction(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the distance of a jump from `from` to `to`.
fn distance(from: usize, to: usize) -> Option<i32> {
    let (from, to) = (i64::try_from(from).ok()?, i64::try_from(to).ok()?);
    i32::try_from(to - from - 1).ok()
}

/// The code of a program; the main function is last.
pub(super) struct Code {
    pub(super) protos: Vec<Proto>,
    pub(super) constants: Frozen,
    /// The core forms that it was generated from.
    pub(super) body: Node,
}

/// Generates the code of a program. `names` has the positions of the names of its variables.
pub(super) fn generate(
    body: Node,
    source: &Arc<str>,
    names: &[Option<Span>],
    rows: &Rows,
    interrupt: &Interrupt<'_>,
) -> Res<Code> {
    let main = FnNode {
        name: None,
        display: "".into(),
        params: Vec::new(),
        rest: None,
        captures: Vec::new(),
        prologue: Vec::new(),
        body,
        recurs: false,
        others: Vec::new(),
        definition: None,
    };
    let places = vec![Location::Unassigned; names.len()];
    let groups = Table::default();
    let (protos, pool) = (Vec::new(), Pool::new());
    let (defined, buffers) = (Definitions::default(), Vec::new());
    let mut generator = Generator {
        source,
        protos,
        groups,
        pool,
        places,
        names,
        defined,
        always: true,
        rows,
        interrupt,
        in_place: 0,
        buffers,
    };
    generator.function(&main, None)?;
    let mut protos = Vec::with_capacity(generator.protos.len());
    for proto in generator.protos {
        protos.push(proto.ok_or_else(|| Error::new(Reason::HostFault, "the compiler lost a function"))?);
    }
    let constants = generator.pool.freeze()?;
    Ok(Code { protos, constants, body: main.body })
}

/// The location of a variable's value, in the function being compiled.
#[derive(Clone, Copy, PartialEq)]
enum Location {
    Unassigned,
    Register(Reg),
    Captured(u16),
}

/// Which of the definitions are certain to exist, by number.
#[derive(Default)]
struct Definitions(Vec<bool>);

impl Definitions {
    fn set(&mut self, g: u32, is_there: bool) {
        let place = g as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, false);
        }
        self.0[place] = is_there;
    }

    fn is_there(&self, g: u32) -> bool {
        self.0.get(g as usize).copied().unwrap_or(false)
    }
}

struct Generator<'p> {
    /// The text of the program.
    source: &'p Arc<str>,
    /// The functions; those of a group get their numbers before they are compiled.
    protos: Vec<Option<Proto>>,
    /// The numbers of the functions of each group that is being compiled.
    groups: Table<usize, Vec<u16>>,
    pool: Pool<'p>,
    places: Vec<Location>,
    names: &'p [Option<Span>],
    /// The definitions that exist once the current code has run. Code written earlier runs earlier, or has not been
    /// called.
    defined: Definitions,
    /// The code being compiled always runs when the program does, in this order.
    always: bool,
    rows: &'p Rows,
    interrupt: &'p Interrupt<'p>,
    /// The number of nested bodies in place that are being compiled.
    in_place: usize,
    /// Buffers of functions that are finished, for reuse.
    buffers: Vec<Buffers>,
}

/// The buffers for the code of a function.
struct Buffers {
    code: Vec<Instr>,
    spans: Vec<Span>,
    handlers: Vec<Handler>,
    locals: Vec<Local>,
    visible: Vec<usize>,
    in_place: Vec<InPlace>,
}

impl Buffers {
    /// Enough for a usual function.
    fn new() -> Self {
        Buffers {
            code: Vec::with_capacity(32),
            spans: Vec::with_capacity(32),
            handlers: Vec::new(),
            locals: Vec::with_capacity(8),
            visible: Vec::with_capacity(8),
            in_place: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.code.clear();
        self.spans.clear();
        self.handlers.clear();
        self.locals.clear();
        self.visible.clear();
        self.in_place.clear();
    }
}

impl<'p> Generator<'p> {
    /// Reserves a number for a function.
    fn reserve(&mut self, span: Span) -> Res<u16> {
        let number = u16::try_from(self.protos.len()).map_err(|_| too_many("functions", span))?;
        self.protos.push(None);
        Ok(number)
    }

    /// Compiles a function, with the reserved number if there is one.
    fn function(&mut self, node: &'p FnNode, reserved: Option<u16>) -> Res<u16> {
        let span = node.body.span;
        // Captured variables have other locations inside; afterwards their locations are restored.
        let outside: Vec<(Var, Location)> = node.captures.iter().map(|&v| (v, self.places[v.0])).collect();
        let captures = short(outside.len(), span)?;
        for (index, &(var, _)) in (0..captures).zip(&outside) {
            self.places[var.0] = Location::Captured(index);
        }
        let mut others = Vec::with_capacity(node.others.len());
        for other in &node.others {
            let proto = self.proto(other, &outside, captures, Vec::new())?;
            let number = self.reserve(span)?;
            self.protos[number as usize] = Some(proto);
            others.push(number);
        }
        let proto = self.proto(node, &outside, captures, others)?;
        let number = match reserved {
            Some(number) => number,
            None => self.reserve(span)?,
        };
        self.protos[number as usize] = Some(proto);
        for (var, place) in outside {
            self.places[var.0] = place;
        }
        Ok(number)
    }

    fn proto(&mut self, node: &'p FnNode, captured: &[(Var, Location)], captures: u16, others: Vec<u16>) -> Res<Proto> {
        let end = node.body.span;
        let arity = short(node.params.len(), end)?;
        let mut f = Function::new(self);
        for (index, &(var, _)) in (0..captures).zip(captured) {
            f.name(var, LocalPlace::Capture(index));
        }
        for &var in node.params.iter().chain(&node.rest) {
            let reg = f.alloc(node.body.span)?;
            f.set_place(var, reg);
        }
        if node.recurs {
            let params = (0..f.top).collect();
            let counter = f.alloc(end)?;
            f.emit(Instr::Int { dst: counter, value: 0 }, end);
            f.hold_of_function(node, end)?;
            f.recur.push(Recur { counter, start: f.code.len(), vars: params });
        }
        f.binds(&node.prologue)?;
        f.returned(&node.body, end)?;
        if f.code.len() > Bytecode::MAX {
            let message = format!("one function compiles to more than {} instructions", Bytecode::MAX);
            return Err(too_large(message, end));
        }
        f.forget_locals(0);
        let Function { code, spans, handlers, locals, visible, in_place, max, .. } = f;
        let mut written = Buffers { code, spans, handlers, locals, visible, in_place };
        let code = Bytecode::new((&*written.code).into(), (&*written.handlers).into(), max);
        let code =
            code.ok_or_else(|| Error::new(Reason::HostFault, "the compiler made code that is not sound").at(end))?;
        let (spans, locals, in_place) =
            ((&*written.spans).into(), (&*written.locals).into(), (&*written.in_place).into());
        written.clear();
        self.buffers.push(written);
        Ok(Proto {
            name: node.name.clone(),
            params: node.display.clone(),
            definition: node
                .definition
                .as_ref()
                .map(|(doc, span)| Box::new(Definition::new(doc.clone(), self.source.clone(), *span))),
            arity,
            variadic: node.rest.is_some(),
            captures,
            others: others.into(),
            code,
            spans,
            locals,
            in_place,
        })
    }
}

/// A target of `recur`.
struct Recur {
    counter: Reg,
    start: usize,
    vars: Vec<Reg>,
}

struct Function<'u, 'p> {
    generator: &'u mut Generator<'p>,
    code: Vec<Instr>,
    spans: Vec<Span>,
    handlers: Vec<Handler>,
    locals: Vec<Local>,
    /// The locals that have their value at this position.
    visible: Vec<usize>,
    in_place: Vec<InPlace>,
    top: Reg,
    max: Reg,
    recur: Vec<Recur>,
    held: Vec<held::Held>,
}

impl<'u, 'p> Function<'u, 'p> {
    fn new(generator: &'u mut Generator<'p>) -> Self {
        let buffers = generator.buffers.pop().unwrap_or_else(Buffers::new);
        let Buffers { code, spans, handlers, locals, visible, in_place } = buffers;
        let (recur, held) = (Vec::new(), Vec::new());
        Function { generator, code, spans, handlers, locals, visible, in_place, top: 0, max: 0, recur, held }
    }

    fn emit(&mut self, instr: Instr, span: Span) -> usize {
        self.code.push(instr);
        self.spans.push(span);
        self.code.len() - 1
    }

    fn here(&self) -> usize {
        self.code.len()
    }

    fn alloc(&mut self, span: Span) -> Res<Reg> {
        if self.top as usize >= MAX_REGISTERS {
            return Err(too_large(format!("one function needs more than {MAX_REGISTERS} values at once"), span));
        }
        self.top += 1;
        self.max = self.max.max(self.top);
        Ok(self.top - 1)
    }

    fn set_place(&mut self, var: Var, reg: Reg) {
        self.generator.places[var.0] = Location::Register(reg);
        self.name(var, LocalPlace::Register(reg));
    }

    /// From here on the value of a variable, if it has a name, is in this location.
    fn name(&mut self, var: Var, place: LocalPlace) {
        let Some(name) = self.generator.names[var.0] else { return };
        self.visible.push(self.locals.len());
        self.locals.push(Local { name, place, from: instruction(self.code.len()), to: u32::MAX });
    }

    /// From here on a variable's name counts as bound at this position.
    fn name_again(&mut self, var: Var) {
        match self.generator.places[var.0] {
            Location::Register(reg) => self.name(var, LocalPlace::Register(reg)),
            Location::Captured(index) => self.name(var, LocalPlace::Capture(index)),
            Location::Unassigned => {}
        }
    }

    /// Ends the names after the first `visible` ones at this position.
    fn forget_locals(&mut self, visible: usize) {
        let here = instruction(self.code.len());
        for local in self.visible.drain(visible..) {
            self.locals[local].to = here;
        }
    }

    /// Makes the jump at `at` lead to this position.
    fn patch(&mut self, at: usize) -> Res<()> {
        let span = self.spans[at];
        let long = || too_large("a branch of the function is too long", span);
        let distance = distance(at, self.here()).ok_or_else(long)?;
        if self.code[at].jump_by(distance) { Ok(()) } else { Err(long()) }
    }

    /// Returns the distance of a jump from this position to position `to`.
    fn back_to(&self, to: usize, span: Span) -> Res<i32> {
        distance(self.here(), to).ok_or_else(|| too_large("a loop of the function is too long", span))
    }

    /// Compiles a value into any register: a local's own, or a new one on top.
    fn any(&mut self, node: &'p Node) -> Res<Reg> {
        if let Kind::Local(var) = node.kind {
            return self.any_local(var, node.span);
        }
        if let Some(reg) = self.held(node) {
            return Ok(reg);
        }
        let dst = self.alloc(node.span)?;
        self.into(node, dst)?;
        Ok(dst)
    }

    fn any_local(&mut self, var: Var, span: Span) -> Res<Reg> {
        if let Location::Register(reg) = self.generator.places[var.0] {
            return Ok(reg);
        }
        let dst = self.alloc(span)?;
        self.local(var, span, dst);
        Ok(dst)
    }

    /// Copies the value of a variable into register `dst`.
    fn local(&mut self, var: Var, span: Span, dst: Reg) {
        match self.generator.places[var.0] {
            Location::Register(src) if src == dst => {}
            Location::Register(src) => drop(self.emit(Instr::Move { dst, src }, span)),
            Location::Captured(index) => drop(self.emit(Instr::Capture { dst, index }, span)),
            Location::Unassigned => drop(self.emit(Instr::Nil { dst }, span)),
        }
    }

    /// Compiles values into consecutive new registers on top; returns the first.
    fn row(&mut self, nodes: &'p [Node], span: Span) -> Res<Reg> {
        let base = self.top;
        for node in nodes {
            let reg = self.alloc(span)?;
            self.into(node, reg)?;
        }
        Ok(base)
    }

    fn binds(&mut self, binds: &'p [Bind]) -> Res<()> {
        for bind in binds {
            let saved = self.top;
            let reg = self.any(&bind.init)?;
            match bind.var {
                Some(var) => self.set_place(var, reg),
                None => self.top = saved,
            }
        }
        Ok(())
    }

    /// Compiles a value into register `dst`.
    fn into(&mut self, node: &'p Node, dst: Reg) -> Res<()> {
        self.generator.interrupt.tick()?;
        let (saved, visible) = (self.top, self.visible.len());
        let always = self.generator.always;
        self.generator.always &= is_done_in_order(&node.kind);
        self.kind_into(&node.kind, node.span, dst)?;
        self.generator.always = always;
        self.top = saved;
        self.forget_locals(visible);
        Ok(())
    }

    fn kind_into(&mut self, kind: &'p Kind, span: Span, dst: Reg) -> Res<()> {
        match kind {
            Kind::Const(constant) => self.constant(constant, span, dst),
            &Kind::Local(var) => self.local(var, span, dst),
            &Kind::Global(g) => drop(self.emit(Instr::Global { dst, g }, span)),
            &Kind::Data(g) => drop(self.emit(Instr::Data { dst, g }, span)),
            &Kind::Builtin(id) => drop(self.emit(Instr::Builtin { dst, id }, span)),
            Kind::Tool(name) => {
                let k = self.generator.pool.string(name);
                self.emit(Instr::Tool { dst, k }, span);
            }
            Kind::Vector(nodes) => self.collection(nodes, span, |base, n| Instr::Vector { dst, base, n })?,
            Kind::Map(nodes) => match record_order(nodes) {
                Some(order) => self.record(nodes, &order, span, dst)?,
                None => self.collection(nodes, span, |base, n| Instr::Map { dst, base, n })?,
            },
            Kind::Set(nodes) => self.collection(nodes, span, |base, n| Instr::Set { dst, base, n })?,
            Kind::Do(nodes) => {
                for node in nodes {
                    self.into(node, dst)?;
                }
            }
            Kind::If(test, then, otherwise) => self.branch(test, then, otherwise, dst)?,
            Kind::Cond(clauses, default) => self.cond(clauses, default, span, dst)?,
            Kind::And(nodes) => self.chain(nodes, dst, |src| Instr::JumpFalse { src, off: 0 })?,
            Kind::Or(nodes) => self.chain(nodes, dst, |src| Instr::JumpTrue { src, off: 0 })?,
            Kind::Let(binds, body) => {
                self.binds(binds)?;
                self.into(body, dst)?;
            }
            Kind::Loop(vars, body) => self.loop_form(vars, body, span, dst)?,
            Kind::Recur(args) => self.recur_form(args, span)?,
            Kind::Fn(node) => self.closure(node, None, span, dst)?,
            Kind::Letfn(group, body) => self.letfn(group, body, span, dst)?,
            Kind::Call(head, args) => self.call(head, args, span, dst)?,
            Kind::CallBuiltin(id, args) => self.call_builtin(*id, args, span, dst)?,
            Kind::Prim(op, args) => self.prim(*op, args, span, dst)?,
            Kind::Key(map, key, default) => self.key(map, key, default.as_deref(), span, dst)?,
            &Kind::Name(g) => drop(self.emit(Instr::VarName { dst, g }, span)),
            &Kind::Def(g, ref value) => {
                let (always, was_there) = (self.generator.always, self.generator.defined.is_there(g));
                // Nothing can call a function before it is defined.
                self.generator.defined.set(g, was_there || matches!(value.kind, Kind::Fn(_)));
                let src = self.any(value)?;
                self.generator.defined.set(g, was_there || always);
                self.emit(Instr::Define { src, g }, span);
                self.emit(Instr::VarName { dst, g }, span);
            }
            Kind::DefOnce(g, value) => self.def_once(*g, value, span, dst)?,
            Kind::Case(subject, clauses, default) => self.case(subject, clauses, default, span, dst)?,
            Kind::For(clauses, body, collects) => self.for_form(clauses, body, *collects, span, dst)?,
            Kind::Times(var, count, body) => self.times(*var, count, body, span, dst)?,
            Kind::While(test, body) => self.while_form(test, body, span, dst)?,
            Kind::Try(body, var, handler) => self.try_form(body, *var, handler, span, dst)?,
            Kind::Finally(body, last) => self.finally(body, last, span, dst)?,
            Kind::Throw(value) => {
                let src = self.any(value)?;
                self.raise(src, Rare::Throw, span);
            }
            &Kind::Rethrow(var) => {
                let src = self.any_local(var, span)?;
                self.raise(src, Rare::Rethrow, span);
            }
            Kind::Return(value) => {
                let src = self.any(value)?;
                self.emit(Instr::StopReturn { src }, span);
            }
            Kind::Fail(value) => {
                let src = self.any(value)?;
                self.emit(Instr::StopFail { src }, span);
            }
        }
        Ok(())
    }

    fn constant(&mut self, constant: &'p Constant, span: Span, dst: Reg) {
        let instr = match *constant {
            Constant::Nil => Instr::Nil { dst },
            Constant::Bool(value) => Instr::Bool { value, dst },
            Constant::Int(i) => match i32::try_from(i) {
                Ok(value) => Instr::Int { dst, value },
                Err(_) => Instr::Const { dst, k: self.generator.pool.add(constant) },
            },
            _ => Instr::Const { dst, k: self.generator.pool.add(constant) },
        };
        self.emit(instr, span);
    }

    fn collection(&mut self, nodes: &'p [Node], span: Span, instr: impl FnOnce(Reg, u16) -> Instr) -> Res<()> {
        let n = short(nodes.len(), span)?;
        let base = self.row(nodes, span)?;
        self.emit(instr(base, n), span);
        Ok(())
    }

    /// Compiles a map whose keys are known: each value is compiled into the position of its key in the order of keys.
    fn record(&mut self, nodes: &'p [Node], order: &[Reg], span: Span, dst: Reg) -> Res<()> {
        let mut keys = Vec::with_capacity(order.len());
        let base = self.top;
        order.iter().try_for_each(|_| self.alloc(span).map(drop))?;
        for (entry, &place) in nodes.chunks_exact(2).zip(order) {
            if let Kind::Const(Constant::Keyword(key)) = &entry[0].kind {
                keys.push(&**key);
            }
            self.into(&entry[1], base + place)?;
        }
        let k = self.generator.pool.keys(keys);
        let k = self.short_place(k, span)?;
        self.emit(Instr::Record { dst, base, k }, span);
        Ok(())
    }

    /// Returns the index of a constant for a 16-bit operand.
    fn short_constant(&mut self, constant: &'p Constant, span: Span) -> Res<u16> {
        let place = self.generator.pool.add(constant);
        self.short_place(place, span)
    }

    fn short_place(&self, place: u32, span: Span) -> Res<u16> {
        u16::try_from(place).map_err(|_| too_many("constants", span))
    }

    fn first(&mut self, args: &'p [Node]) -> Res<Reg> {
        match args.first() {
            Some(node) => self.any(node),
            None => Ok(0),
        }
    }

    fn two(&mut self, args: &'p [Node]) -> Res<(Reg, Reg)> {
        match args {
            [a, b, ..] => Ok((self.any(a)?, self.any(b)?)),
            _ => Ok((0, 0)),
        }
    }

    fn closure(&mut self, node: &'p FnNode, reserved: Option<u16>, span: Span, dst: Reg) -> Res<()> {
        let base = self.top;
        for &var in &node.captures {
            let reg = self.alloc(span)?;
            self.local(var, span, reg);
        }
        let proto = self.generator.function(node, reserved)?;
        self.emit(Instr::Closure { dst, proto, base }, span);
        Ok(())
    }

    fn call(&mut self, head: &'p Node, args: &'p [Node], span: Span, dst: Reg) -> Res<()> {
        let argc = short(args.len(), span)?;
        let base = self.alloc(span)?;
        // The call itself reads the definition if it is certain to exist and the arguments cannot change it.
        if let Kind::Global(g) = head.kind
            && let (Ok(g), Ok(argc)) = (u16::try_from(g), u8::try_from(args.len()))
            && self.generator.defined.is_there(g.into())
            && self.are_pure_values(args)
        {
            self.row(args, span)?;
            self.emit(Instr::CallGlobal { argc, dst, base, g }, span);
            return Ok(());
        }
        self.into(head, base)?;
        self.row(args, span)?;
        self.emit(Instr::Call { dst, base, argc }, span);
        Ok(())
    }

    /// Returns the comparison that a built-in performs, if there is an instruction for it.
    fn comparison(&self, id: BuiltinId) -> Option<Cmp> {
        match self.lowering(id) {
            Lowering::Compare(op) => Some(op),
            _ => None,
        }
    }

    fn lowering(&self, id: BuiltinId) -> Lowering {
        self.generator.rows.row(id).lowering
    }

    fn call_builtin(&mut self, id: BuiltinId, args: &'p [Node], span: Span, dst: Reg) -> Res<()> {
        if self.in_place(id, args, span, dst)? {
            return Ok(());
        }
        let lowering = self.lowering(id);
        if args.len() == 2
            && let Some(op) = self.comparison(id)
        {
            let instr = match small_int(&args[1]) {
                Some(imm) => Instr::CompareInt { op, dst, a: self.first(args)?, imm },
                None => {
                    let (a, b) = self.two(args)?;
                    Instr::Compare { op, dst, a, b }
                }
            };
            self.emit(instr, span);
            return Ok(());
        }
        let add_int = match (lowering, args.len()) {
            (Lowering::Inc, 1) => Some((ArithName::Inc, 1)),
            (Lowering::Dec, 1) => Some((ArithName::Dec, -1)),
            (Lowering::Add, 2) => small_int(&args[1]).map(|imm| (ArithName::Plus, imm)),
            (Lowering::Sub, 2) => small_int(&args[1]).and_then(i16::checked_neg).map(|imm| (ArithName::Minus, imm)),
            _ => None,
        };
        if let Some((name, imm)) = add_int {
            let a = self.first(args)?;
            self.emit(Instr::AddInt { name, dst, a, imm }, span);
            return Ok(());
        }
        if args.len() == 2 && matches!(lowering, Lowering::Add | Lowering::Sub | Lowering::Mul) {
            let (a, b) = self.two(args)?;
            let instr = match lowering {
                Lowering::Add => Instr::Add { dst, a, b },
                Lowering::Sub => Instr::Sub { dst, a, b },
                _ => Instr::Mul { dst, a, b },
            };
            self.emit(instr, span);
            return Ok(());
        }
        let argc = u8::try_from(args.len()).map_err(|_| too_large("a call has too many arguments", span))?;
        let base = if argc == 1 { self.first(args)? } else { self.row(args, span)? };
        self.emit(Instr::CallBuiltin { argc, dst, base, id }, span);
        Ok(())
    }

    fn prim(&mut self, op: Prim, args: &'p [Node], span: Span, dst: Reg) -> Res<()> {
        if op == Prim::SelfFn {
            self.emit(Instr::SelfFn { dst }, span);
            return Ok(());
        }
        if let Prim::Sibling(group, index) = op {
            let number = self.generator.groups.get(&group).and_then(|group| group.get(index)).copied();
            let n = number.ok_or_else(|| Error::new(Reason::HostFault, "the compiler lost a function").at(span))?;
            self.emit(Instr::Rare { op: Rare::Sibling, dst, src: dst, n }, span);
            return Ok(());
        }
        let src = self.first(args)?;
        let instr = match op {
            Prim::IsCaught(n) => Instr::Rare { op: Rare::IsCaught, dst, src, n },
            Prim::IsInstance(n) => Instr::Rare { op: Rare::IsInstance, dst, src, n },
            Prim::SeqArg(rest) => Instr::SeqArg { dst, src, rest },
            Prim::MapArg => Instr::MapArg { dst, src },
            Prim::Nth(index) => Instr::Nth { dst, src, index },
            Prim::Rest(index) => Instr::Rest { dst, src, index },
            Prim::KeywordArgs => Instr::KeywordArgs { dst, src },
            Prim::Seq => Instr::Seq { dst, src },
            Prim::IsNil | Prim::SelfFn | Prim::Sibling(..) => Instr::IsNil { dst, src },
        };
        self.emit(instr, span);
        Ok(())
    }

    fn key(&mut self, map: &'p Node, key: &'p Constant, default: Option<&'p Node>, span: Span, dst: Reg) -> Res<()> {
        let src = self.any(map)?;
        let k = self.short_constant(key, span)?;
        match default {
            None => drop(self.emit(Instr::Key { dst, src, k }, span)),
            Some(default) => {
                self.emit(Instr::KeyUnset { dst, src, k }, span);
                let end = self.emit(Instr::JumpSet { src: dst, off: 0 }, span);
                self.into(default, dst)?;
                self.patch(end)?;
            }
        }
        Ok(())
    }

    fn def_once(&mut self, g: u32, value: &'p Node, span: Span, dst: Reg) -> Res<()> {
        let short = u16::try_from(g).map_err(|_| too_many("definitions", span))?;
        let end = self.emit(Instr::JumpDefined { g: short, off: 0 }, span);
        let src = self.any(value)?;
        self.emit(Instr::Define { src, g }, span);
        self.patch(end)?;
        self.emit(Instr::VarName { dst, g }, span);
        Ok(())
    }
}

/// Returns true if the parts of such a form are always evaluated, one after the other.
fn is_done_in_order(kind: &Kind) -> bool {
    matches!(kind, Kind::Do(_) | Kind::Def(..))
}

/// Returns the position of each key of a map literal in the order of keys; `None` unless they are a few distinct
/// keywords of usual length, which need no comparison at run time.
fn record_order(nodes: &[Node]) -> Option<Vec<Reg>> {
    const USUAL: usize = 64;
    if nodes.is_empty() || nodes.len() > 2 * SMALL {
        return None;
    }
    let keys: Vec<&str> = nodes
        .iter()
        .step_by(2)
        .map(|key| match &key.kind {
            Kind::Const(Constant::Keyword(text)) if text.len() <= USUAL => Some(&**text),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let place = |key| Reg::try_from(keys.iter().filter(|other| *other < key).count()).ok();
    let order = keys.iter().map(place).collect::<Option<Vec<Reg>>>()?;
    let different = keys.iter().enumerate().all(|(i, key)| !keys[..i].contains(key));
    different.then_some(order)
}

fn small_int(node: &Node) -> Option<i16> {
    match node.kind {
        Kind::Const(Constant::Int(i)) => i16::try_from(i).ok(),
        _ => None,
    }
}
