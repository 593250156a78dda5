//! The record of a run: what its calls and its looks at the clock gave, so that it can be run again, or go on elsewhere.

pub(crate) mod journal;
pub(crate) mod line;
