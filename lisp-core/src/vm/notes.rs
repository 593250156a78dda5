//! What a run has read and compared in vain.

use super::machine::Machine;
use super::ways::Start;
use crate::check::{Finding, notes};
use crate::compile::{Forms, Program};

impl Machine {
    /// Gives the miss that was noted last its position, and prepares its instruction to run again.
    pub(super) fn place_miss(&mut self) {
        let start = self.store.heap().meter.restart_fuel();
        self.take_back(start);
        self.store.enter(|h, state, _| {
            let place = state.ways(Start::OUTERMOST).next();
            h.place_miss(place.map(|way| (way.program, way.span)));
        });
    }

    /// Takes what the program that was last loaded with this number has read and compared in vain since it was loaded, in the
    /// order of the positions. Empty without [`Settings::notes`](super::Settings::notes). `found` is what a check of the
    /// program has found before. See [`Machine::check`] for `forms` and `stop`.
    pub fn notes(
        &mut self,
        number: u64,
        forms: Option<(&Program, &Forms)>,
        found: &[Finding],
        stop: &dyn Fn() -> bool,
    ) -> Vec<Finding> {
        let misses = self.store.heap().take_misses();
        if misses.noted.is_empty() {
            return Vec::new();
        }
        let Some(program) = self.program(number) else { return Vec::new() };
        match forms {
            Some((of, forms)) if std::ptr::eq(of, &raw const *program) => notes(number, forms, &misses, found),
            _ => program.forms(stop).map(|forms| notes(number, &forms, &misses, found)).unwrap_or_default(),
        }
    }
}
