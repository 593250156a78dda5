//! Where a run stands, for those who look at what it costs.

use super::machine::Machine;
use crate::error::Span;

/// A place in a call in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot<'s> {
    /// The function that is at work; none for the program itself, or a function without a name.
    pub function: Option<&'s str>,
    /// The number of the program, and the form that is being evaluated; none in a function of the language.
    pub place: Option<(u64, Span)>,
}

impl Machine {
    /// Shows where the run stands: the calls in progress from the outermost on, `most` of them at most, and of more the innermost
    /// as well.
    pub fn see_spots(&mut self, most: usize, see: &mut dyn FnMut(Spot<'_>)) {
        self.at_rest(|state| state.see_spots(most, see));
    }
}
