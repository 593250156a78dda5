//! The part of a compiled program that runs use.

use crate::code::Proto;
use crate::heap::Frozen;
use std::sync::Arc;

/// The compiler's output for runs: functions, constants, and the names of definitions.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The source text.
    pub(crate) source: Arc<str>,
    /// The functions; the last is the program itself.
    pub(crate) protos: Vec<Proto>,
    pub(crate) constants: Frozen,
    /// The names of the definitions that it reads or creates.
    pub(crate) globals: Vec<Box<str>>,
    /// It has a lazy sequence, which is computed at once here, unlike in Clojure.
    pub(crate) has_lazy: bool,
}
