//! Programs that a machine has loaded.

use super::prelude;
use crate::code::ProgramId;
use crate::compile::Program;
use std::sync::Arc;

/// A program loaded into a machine: its definitions are linked to the machine's.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) program: Arc<Program>,
    /// What closures over its functions call it by.
    pub(crate) id: ProgramId,
    /// What errors in it call it by.
    pub(crate) number: u64,
    /// For each definition the program names, its place in the machine.
    pub(crate) links: Box<[usize]>,
    /// Part of the language: its frames are no place for an error, and its loops have no round limit.
    pub(crate) prelude: bool,
}

/// The programs that a machine has loaded, by number. Workers have a copy of their caller's.
#[derive(Clone, Default)]
pub(crate) struct Units<'h>(Vec<&'h Unit>);

impl<'h> Units<'h> {
    /// The number that the prelude has in every machine.
    pub(crate) const PRELUDE: ProgramId = ProgramId(u32::MAX);

    /// The number for the next program.
    pub(crate) fn next(&self) -> ProgramId {
        // Each takes far more than one byte of memory.
        ProgramId(u32::try_from(self.0.len()).unwrap_or(u32::MAX - 1))
    }

    /// Adds the program that has the next number.
    pub(crate) fn add(&mut self, unit: &'h Unit) {
        debug_assert_eq!(unit.id, self.next());
        self.0.push(unit);
    }

    /// The program of a number, which is most often the one that is `running`. `None` for a number that no closure has.
    #[inline(always)]
    pub(crate) fn find(&self, id: ProgramId, running: &'h Unit) -> Option<&'h Unit> {
        if running.id == id { Some(running) } else { self.get(id) }
    }

    /// The program of a number; `None` for a number that no closure has.
    #[inline]
    pub(crate) fn get(&self, id: ProgramId) -> Option<&'h Unit> {
        match self.0.get(id.0 as usize) {
            Some(unit) => Some(unit),
            None => prelude::unit(id),
        }
    }
}
