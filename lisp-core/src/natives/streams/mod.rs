//! Walks: elements of a source, one at a time, through steps into a sink. Transducers are steps. Endless sequences are
//! sources with deferred steps.

mod endless;
mod engine;
mod sources;
mod steps;
mod transduce;
mod walk;

pub(crate) use endless::start_with_frame;
pub(crate) use engine::walks_without_end;
pub(super) use engine::{Plan, Sink, start};

use crate::builtins::Builtin;

pub(super) const REPEATEDLY: &[Builtin] = sources::TABLE;
pub(super) const SINKS: &[Builtin] = transduce::TABLE;
