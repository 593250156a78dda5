//! A program that a machine has loaded.

use super::compiled::Compiled;
use crate::code::{ProgramId, Proto};
use std::sync::Arc;

/// A program loaded into a machine: its definitions are linked to the machine's.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) code: Arc<Compiled>,
    /// What closures over its functions call it by.
    pub(crate) id: ProgramId,
    /// What errors in it call it by.
    pub(crate) number: u64,
    /// For each definition the program names, its place in the machine.
    pub(crate) links: Box<[usize]>,
    /// Its place among the things that the machine's store keeps alive.
    pub(crate) pinned: usize,
    /// Part of the language: its frames are no place for an error, and its loops have no round limit.
    pub(crate) prelude: bool,
}

impl Unit {
    /// The function that takes this many arguments, of those that are one function with `first`, which does not: of a fixed number, or
    /// with a rest.
    pub(crate) fn other_arity(&self, first: &Proto, argc: usize) -> Option<&Proto> {
        let others = || first.others.iter().filter_map(|&number| self.code.protos.get(number as usize));
        let fixed = others().find(|proto| proto.arity as usize == argc && !proto.variadic);
        fixed.or_else(|| others().find(|proto| proto.takes(argc)))
    }
}
