//! The programs that a machine has loaded.

use super::unit::Unit;
use crate::code::ProgramId;
use std::sync::Arc;

/// The programs that a machine has loaded, by number. Workers share their caller's.
#[derive(Clone)]
pub(crate) struct Units<'h> {
    loaded: Arc<Vec<&'h Unit>>,
    /// Finds a program that every machine has.
    shared: fn(ProgramId) -> Option<&'static Unit>,
}

impl<'h> Units<'h> {
    /// No programs but those that every machine has, which `shared` finds.
    pub(crate) fn new(shared: fn(ProgramId) -> Option<&'static Unit>) -> Self {
        Units { loaded: Arc::default(), shared }
    }

    /// The number for the next program.
    pub(crate) fn next(&self) -> ProgramId {
        // Each takes far more than one byte of memory.
        ProgramId(u32::try_from(self.loaded.len()).unwrap_or(u32::MAX - 1))
    }

    /// Adds the program that has the next number.
    pub(crate) fn add(&mut self, unit: &'h Unit) {
        debug_assert_eq!(unit.id, self.next());
        // The workers that shared it have ended: it is not copied.
        Arc::make_mut(&mut self.loaded).push(unit);
    }

    /// The program of a number, which is most often the one that is `running`. `None` for a number that no closure has.
    #[inline(always)]
    pub(crate) fn find(&self, id: ProgramId, running: &'h Unit) -> Option<&'h Unit> {
        if running.id == id { Some(running) } else { self.get(id) }
    }

    /// The program of a number; `None` for a number that no closure has.
    #[inline]
    pub(crate) fn get(&self, id: ProgramId) -> Option<&'h Unit> {
        match self.loaded.get(id.0 as usize) {
            Some(unit) => Some(unit),
            None => (self.shared)(id),
        }
    }
}
