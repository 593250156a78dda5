//! The programs that a machine has loaded.

use super::unit::Unit;
use crate::code::ProgramId;
use std::sync::Arc;

/// The programs that a machine has loaded, by number. Workers share their caller's.
#[derive(Clone)]
pub(crate) struct Units<'h> {
    loaded: Arc<Vec<Option<&'h Unit>>>,
    /// Finds a program that every machine has.
    shared: fn(ProgramId) -> Option<&'static Unit>,
}

impl<'h> Units<'h> {
    /// Creates a table with only the programs that every machine has, which `shared` finds.
    pub(crate) fn new(shared: fn(ProgramId) -> Option<&'static Unit>) -> Self {
        Units { loaded: Arc::default(), shared }
    }

    /// Returns the number for the next program: a free one of a forgotten program, if there is one.
    pub(crate) fn next(&self) -> ProgramId {
        let free = self.loaded.iter().position(Option::is_none).unwrap_or(self.loaded.len());
        // Each takes far more than one byte of memory.
        ProgramId(u32::try_from(free).unwrap_or(u32::MAX - 1))
    }

    /// Adds the program with the next number.
    pub(crate) fn add(&mut self, unit: &'h Unit) {
        debug_assert_eq!(unit.id, self.next());
        // The workers that shared it have ended, so it is not copied.
        let loaded = Arc::make_mut(&mut self.loaded);
        match loaded.get_mut(unit.id.0 as usize) {
            Some(free) => *free = Some(unit),
            None => loaded.push(Some(unit)),
        }
    }

    /// Forgets the programs that are not marked in `seen`, by number, and returns where they are pinned. Programs
    /// beyond its end are kept.
    pub(crate) fn retain(&mut self, seen: &[bool]) -> Vec<usize> {
        let units = Arc::make_mut(&mut self.loaded).iter_mut().zip(seen);
        units.filter(|(_, seen)| !**seen).filter_map(|(unit, _)| Some(unit.take()?.pinned)).collect()
    }

    /// Returns the program with a number; `None` for a number that no closure has.
    #[inline]
    pub(crate) fn get(&self, id: ProgramId) -> Option<&'h Unit> {
        match self.loaded.get(id.0 as usize) {
            Some(unit) => *unit,
            None => (self.shared)(id),
        }
    }
}
