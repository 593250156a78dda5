//! A program that a machine has loaded.

use super::compiled::Compiled;
use crate::code::{ProgramId, Proto};
use std::sync::Arc;

/// A program loaded into a machine: its definitions are linked to the machine's.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) code: Arc<Compiled>,
    /// The number by which closures over its functions refer to it.
    pub(crate) id: ProgramId,
    /// The number by which errors refer to it.
    pub(crate) number: u64,
    /// For each definition that the program names, its slot in the machine.
    pub(crate) links: Box<[usize]>,
    /// Its index among the things that the machine's store keeps alive.
    pub(crate) pinned: usize,
    /// Whether it is part of the language: errors have no position in its frames, and its loops have no iteration
    /// limit.
    pub(crate) prelude: bool,
}

impl Unit {
    /// Returns the arity that takes this many arguments, of a function whose first arity `first` does not: one with a
    /// fixed number, or with a rest parameter.
    pub(crate) fn other_arity(&self, first: &Proto, argc: usize) -> Option<&Proto> {
        let others = || first.others.iter().filter_map(|&number| self.code.protos.get(number as usize));
        let fixed = others().find(|proto| proto.arity as usize == argc && !proto.variadic);
        fixed.or_else(|| others().find(|proto| proto.takes(argc)))
    }
}
