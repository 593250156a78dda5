//! Forms without effects: they print nothing, call nothing of the program or the host, and can be evaluated again.

use super::Function;
use crate::code::BuiltinId;
use crate::compile::core::{Bind, FnNode, Kind, Node, Prim};

/// Larger bodies gain little.
const LARGEST: usize = 64;

impl Function<'_, '_> {
    pub(super) fn is_pure_builtin(&self, id: BuiltinId) -> bool {
        self.generator.rows.row(id).is_pure
    }

    /// Returns true for a function whose body is small and has no effects.
    pub(super) fn is_pure_function(&self, node: &FnNode) -> bool {
        let mut left = LARGEST;
        self.are_pure_binds(&node.prologue, &mut left) && self.is_pure(&node.body, &mut left)
    }

    /// Returns true for a few values without effects.
    pub(super) fn are_pure_values(&self, nodes: &[Node]) -> bool {
        let mut left = LARGEST;
        self.are_pure(nodes, &mut left)
    }

    fn are_pure_binds(&self, binds: &[Bind], left: &mut usize) -> bool {
        binds.iter().all(|bind| self.is_pure(&bind.init, left))
    }

    fn are_pure(&self, nodes: &[Node], left: &mut usize) -> bool {
        nodes.iter().all(|node| self.is_pure(node, left))
    }

    /// `left` is the number of nodes that may still be visited.
    fn is_pure(&self, node: &Node, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        match &node.kind {
            Kind::Const(_) | Kind::Local(_) | Kind::Global(_) | Kind::Data(_) | Kind::Builtin(_) => true,
            Kind::Vector(nodes) | Kind::Map(nodes) | Kind::Set(nodes) => self.are_pure(nodes, left),
            Kind::Do(nodes) | Kind::And(nodes) | Kind::Or(nodes) => self.are_pure(nodes, left),
            Kind::If(test, then, otherwise) => [test, then, otherwise].into_iter().all(|node| self.is_pure(node, left)),
            Kind::Cond(clauses, default) => {
                clauses.iter().all(|(test, then)| self.is_pure(test, left) && self.is_pure(then, left))
                    && self.is_pure(default, left)
            }
            Kind::Let(binds, body) => self.are_pure_binds(binds, left) && self.is_pure(body, left),
            Kind::CallBuiltin(id, args) => self.is_pure_builtin(*id) && self.are_pure(args, left),
            Kind::Prim(prim, args) => is_pure_prim(*prim) && self.are_pure(args, left),
            Kind::Key(map, _, default) => {
                self.is_pure(map, left) && default.as_ref().is_none_or(|default| self.is_pure(default, left))
            }
            Kind::Tool(_)
            | Kind::Loop(..)
            | Kind::Recur(_)
            | Kind::Fn(_)
            | Kind::Letfn(..)
            | Kind::Call(..)
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
            | Kind::Fail(_) => false,
        }
    }
}

/// Returns whether an operation has no effects; it may fail.
fn is_pure_prim(prim: Prim) -> bool {
    match prim {
        Prim::SeqArg(_) | Prim::MapArg | Prim::Nth(_) | Prim::Rest(_) | Prim::IsNil => true,
        Prim::KeywordArgs | Prim::SelfFn | Prim::Seq | Prim::IsCaught(_) | Prim::IsInstance(_) | Prim::Sibling(..) => {
            false
        }
    }
}
