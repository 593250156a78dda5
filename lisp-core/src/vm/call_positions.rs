//! The position of a run, for samplers of its cost.

use super::machine::Machine;
use crate::error::Span;

/// A position in a call in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPosition<'s> {
    /// The running function; `None` for the program itself, or a function without a name.
    pub function: Option<&'s str>,
    /// The number of the program, and the form being evaluated; `None` in a function of the language.
    pub place: Option<(u64, Span)>,
}

impl Machine {
    /// Passes the calls in progress to `see`, from the outermost on, at most `max`; if there are more, the innermost
    /// one too.
    pub fn see_calls(&mut self, max: usize, see: &mut dyn FnMut(CallPosition<'_>)) {
        self.at_rest(|state| state.see_calls(max, see));
    }
}
