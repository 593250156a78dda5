//! Hoisted constants: numbers used as operands in a loop are loaded once, before it.

use super::{Function, Reg, Res, small_int};
use crate::builtins::Lowering;
use crate::compile::core::{Bind, Constant, FnNode, Kind, Node};
use crate::error::Span;

/// The maximum number of numbers hoisted out of a loop, including those of the loops around it.
const MAX: usize = 8;

/// The maximum number of nodes of a loop that are searched.
const LOOKED_AT: usize = 256;

/// A number; equal if all bits are.
#[derive(Clone, Copy, PartialEq)]
enum Number {
    Int(i64),
    Float(u64),
}

/// A number and the register that holds it.
pub(super) struct Held {
    number: Number,
    reg: Reg,
}

fn number(node: &Node) -> Option<Number> {
    match node.kind {
        Kind::Const(Constant::Int(i)) => Some(Number::Int(i)),
        Kind::Const(Constant::Float(f)) => Some(Number::Float(f.to_bits())),
        _ => None,
    }
}

impl<'p> Function<'_, 'p> {
    /// Returns the register that already holds a number.
    pub(super) fn held(&self, node: &Node) -> Option<Reg> {
        if self.held.is_empty() {
            return None;
        }
        let number = number(node)?;
        self.held.iter().find(|held| held.number == number).map(|held| held.reg)
    }

    /// Loads the numbers that a loop uses, before it. Returns how many were loaded already; the later ones must be
    /// forgotten after the loop.
    pub(super) fn hold(&mut self, of_loop: impl IntoIterator<Item = &'p Node>, span: Span) -> Res<usize> {
        let before = self.held.len();
        let (mut wanted, mut left) = (Vec::new(), LOOKED_AT);
        of_loop.into_iter().for_each(|node| self.operands(node, &mut left, &mut wanted));
        for node in wanted {
            if self.held.len() < MAX
                && self.held(node).is_none()
                && let (Some(number), Kind::Const(constant)) = (number(node), &node.kind)
            {
                let reg = self.alloc(span)?;
                self.constant(constant, span, reg);
                self.held.push(Held { number, reg });
            }
        }
        Ok(before)
    }

    /// Loads the numbers that the body of a function in a loop uses.
    pub(super) fn hold_of_function(&mut self, node: &'p FnNode, span: Span) -> Res<()> {
        let inits = node.prologue.iter().map(|bind| &bind.init);
        self.hold(inits.chain([&node.body]), span).map(drop)
    }

    /// Collects the numbers among the operands of instructions that have no room for them.
    fn operands(&self, node: &'p Node, left: &mut usize, out: &mut Vec<&'p Node>) {
        let Some(rest) = left.checked_sub(1) else { return };
        *left = rest;
        let mut each = |nodes: &'p [Node]| nodes.iter().for_each(|node| self.operands(node, left, out));
        match &node.kind {
            Kind::CallBuiltin(id, args) => {
                each(args);
                if let [a, b] = &**args {
                    let lowering = self.lowering(*id);
                    let has_place = matches!(lowering, Lowering::Add | Lowering::Sub | Lowering::Compare(_));
                    if has_place || lowering == Lowering::Mul {
                        out.extend([a, b].into_iter().filter(|node| number(node).is_some()).filter(|&node| {
                            let in_place = has_place && std::ptr::eq(node, b) && small_int(node).is_some();
                            !in_place
                        }));
                    }
                }
            }
            Kind::Vector(nodes)
            | Kind::Map(nodes)
            | Kind::Set(nodes)
            | Kind::Do(nodes)
            | Kind::And(nodes)
            | Kind::Or(nodes)
            | Kind::Recur(nodes)
            | Kind::Prim(_, nodes) => each(nodes),
            Kind::Call(head, args) => {
                each(std::slice::from_ref(head));
                each(args);
            }
            Kind::If(test, then, otherwise) => {
                [test, then, otherwise].into_iter().for_each(|node| each(std::slice::from_ref(node)));
            }
            Kind::Cond(clauses, default) => {
                for (test, then) in clauses {
                    [test, then].into_iter().for_each(|node| each(std::slice::from_ref(node)));
                }
                each(std::slice::from_ref(default));
            }
            Kind::Let(binds, body) => {
                binds.iter().for_each(|Bind { init, .. }| each(std::slice::from_ref(init)));
                each(std::slice::from_ref(body));
            }
            Kind::Loop(vars, body) => {
                vars.iter().for_each(|(_, init)| each(std::slice::from_ref(init)));
                each(std::slice::from_ref(body));
            }
            Kind::Key(map, _, _) => each(std::slice::from_ref(map)),
            // A function hoists its own numbers. Those in the other forms are loaded where they are used.
            Kind::Const(_)
            | Kind::Local(_)
            | Kind::Global(_)
            | Kind::Data(_)
            | Kind::Builtin(_)
            | Kind::Tool(_)
            | Kind::Fn(_)
            | Kind::Letfn(..)
            | Kind::Name(_)
            | Kind::Def(..)
            | Kind::DefOnce(..)
            | Kind::Case(..)
            | Kind::For(..)
            | Kind::Times(..)
            | Kind::While(..)
            | Kind::Try(..)
            | Kind::Finally(..)
            | Kind::Throw(_)
            | Kind::Rethrow(_)
            | Kind::Return(_)
            | Kind::Fail(_) => {}
        }
    }
}
