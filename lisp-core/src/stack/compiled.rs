//! The part of a compiled program that a run works with.

use crate::code::Proto;
use crate::heap::Frozen;

/// What the compiler makes of a program for its runs: functions, constants, and the names of definitions.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The text that it was made of.
    pub(crate) source: Box<str>,
    /// The functions; the last is the program itself.
    pub(crate) protos: Vec<Proto>,
    pub(crate) constants: Frozen,
    /// The names of the definitions that it reads or makes.
    pub(crate) globals: Vec<Box<str>>,
    /// It has a sequence that Clojure would make bit by bit, and that is made at once here.
    pub(crate) has_lazy: bool,
}
