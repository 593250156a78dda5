//! The record of a run: the results of its calls and clock readings, so that it can be replayed or resumed elsewhere.

pub(crate) mod journal;
pub(crate) mod line;
