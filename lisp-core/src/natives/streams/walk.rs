//! The state of a walk: the registers of its frame.

use crate::heap::{Compose, Step, Value};

/// The register for the number of the sink.
pub(super) const SINK: usize = 1;
/// The register for what else the sink needs: its function, the collection it adds to, its default.
pub(super) const TARGET: usize = 2;
/// The register for the source: a vector or an endless sequence.
pub(super) const SOURCE: usize = 3;
/// The register for the position in the source.
pub(super) const PLACE: usize = 4;
/// The register for rows that a source has prepared.
pub(super) const ROWS: usize = 5;
/// The register for the vector of steps.
pub(super) const STEPS: usize = 6;
/// The register for the current element.
pub(super) const CURRENT: usize = 7;
/// The register for the last step that has a list to continue with, counted from one; 0 for none.
pub(super) const DEEPEST: usize = 8;
/// The register for the last step that needs no more elements, counted from one; 0 for none.
pub(super) const ENOUGH: usize = 9;
/// The register for the step to flush: unset before the end, nil if there is none.
pub(super) const FLUSHED: usize = 10;
/// The register for what the sink builds.
pub(super) const ACC: usize = 11;
/// The register for the first step's cells.
pub(super) const CELLS: usize = 12;

/// The number of cells of a step.
pub(super) const CELLS_EACH: usize = 4;
/// The cell for the state of a step.
pub(super) const OWN: usize = 0;
/// The cell for further state, or for the list that it continues with.
pub(super) const LIST: usize = 1;
/// The cell for the position in that list.
pub(super) const AT: usize = 2;
/// The cell for the step before it that has a list, as in [`DEEPEST`].
pub(super) const BEFORE: usize = 3;

/// The counter of a frame is its position in the walk. After these values come the steps, and then the sink.
pub(super) const NEXT: usize = 0;
pub(super) const BEGIN: usize = 1;
pub(super) const END: usize = 2;
pub(super) const ENTER: usize = 3;

/// What comes after a transition.
pub(super) enum Then<'h> {
    Go(usize),
    Done(Value<'h>),
    Call(Value<'h>, [Value<'h>; 2], usize),
    CallWith(Value<'h>, &'h [Value<'h>]),
}

/// Returns the number in a register.
pub(super) fn number(v: Value<'_>) -> usize {
    match v {
        Value::Int(i) => usize::try_from(i).unwrap_or(0),
        _ => 0,
    }
}

/// Returns the kind of a step and its parts.
pub(super) fn step_of<'h>(v: Value<'h>) -> Option<(Step, &'h [Value<'h>])> {
    match v {
        Value::Composed(c) => match c.kind {
            Compose::Step(step) => Some((step, c.parts())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the cells of a step.
pub(super) fn cells<'s, 'h>(own: &'s mut [Value<'h>], step: usize) -> &'s mut [Value<'h>] {
    let from = CELLS + CELLS_EACH * step;
    &mut own[from..from + CELLS_EACH]
}
