//! One function of a program.

use super::Bytecode;
use crate::error::Span;

/// The code of one function.
#[derive(Debug)]
pub(crate) struct Proto {
    /// Its name, if it has one.
    pub(crate) name: Option<Box<str>>,
    /// The parameters as written; patterns as `_`.
    pub(crate) params: Box<str>,
    /// How many parameters, without the rest.
    pub(crate) arity: u16,
    /// Takes more arguments, as a vector.
    pub(crate) variadic: bool,
    /// Values captured by a closure over it.
    pub(crate) captures: u16,
    /// The functions of the program, by number, that take other numbers of arguments; they have the same captures.
    pub(crate) others: Box<[u16]>,
    /// The instructions.
    pub(crate) code: Bytecode,
    /// For each instruction, where it comes from.
    pub(crate) spans: Box<[Span]>,
}
