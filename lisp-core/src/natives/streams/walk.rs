//! The state of a walk: what is in the registers of its frame.

use crate::heap::{Compose, Step, Value};

/// The register for the number of the sink.
pub(super) const SINK: usize = 1;
/// The register for what the sink has besides: its function, what it adds to, its default.
pub(super) const TARGET: usize = 2;
/// The register for the source: a vector or an endless sequence.
pub(super) const SOURCE: usize = 3;
/// The register for where the source stands.
pub(super) const PLACE: usize = 4;
/// The register for rows that a source has in store.
pub(super) const ROWS: usize = 5;
/// The register for the vector of steps.
pub(super) const STEPS: usize = 6;
/// The register for the element on its way.
pub(super) const CURRENT: usize = 7;
/// The register for the last step that has a list to go on with, counted from one; 0 for none.
pub(super) const DEEPEST: usize = 8;
/// The register for the last step that has enough, counted from one; 0 for none.
pub(super) const ENOUGH: usize = 9;
/// The register for the step that is to give what it holds back: unset before the end, nil when none is to.
pub(super) const FLUSHED: usize = 10;
/// The register for what the sink builds.
pub(super) const ACC: usize = 11;
/// The register for the first step's cells.
pub(super) const CELLS: usize = 12;

/// How many cells a step has.
pub(super) const CELLS_EACH: usize = 4;
/// The cell for what a step keeps.
pub(super) const OWN: usize = 0;
/// The cell for what else it keeps, or for the list that it goes on with.
pub(super) const LIST: usize = 1;
/// The cell for the place in that list.
pub(super) const AT: usize = 2;
/// The cell for the step before it that has a list, as in [`DEEPEST`].
pub(super) const BEFORE: usize = 3;

/// What a frame counts: its place in the walk. Beyond these are the steps, and behind them the sink.
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

/// The number in a register.
pub(super) fn number(v: Value<'_>) -> usize {
    match v {
        Value::Int(i) => usize::try_from(i).unwrap_or(0),
        _ => 0,
    }
}

/// The kind of a step and its parts.
pub(super) fn step_of<'h>(v: Value<'h>) -> Option<(Step, &'h [Value<'h>])> {
    match v {
        Value::Composed(c) => match c.kind {
            Compose::Step(step) => Some((step, c.parts())),
            _ => None,
        },
        _ => None,
    }
}

/// The cells of a step.
pub(super) fn cells<'s, 'h>(own: &'s mut [Value<'h>], step: usize) -> &'s mut [Value<'h>] {
    let from = CELLS + CELLS_EACH * step;
    &mut own[from..from + CELLS_EACH]
}
