//! One function of a program.

use super::{BuiltinId, Bytecode};
use crate::error::Span;
use std::sync::Arc;

/// The code of one function.
#[derive(Debug)]
pub(crate) struct Proto {
    /// Its name, if it has one.
    pub(crate) name: Option<Arc<str>>,
    /// The parameters as written; patterns as `_`.
    pub(crate) params: Arc<str>,
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
    /// What its registers and captures are called, in the order of their beginnings.
    pub(crate) locals: Box<[Local]>,
    /// Calls for elements that stand in the code, inner before outer.
    pub(crate) in_place: Box<[InPlace]>,
}

impl Proto {
    /// Does it take this many arguments?
    #[inline]
    pub(crate) fn takes(&self, argc: usize) -> bool {
        argc == self.arity as usize || self.variadic && argc > self.arity as usize
    }

    /// The calls for an element that the instruction at a place is part of, from the innermost on.
    pub(crate) fn in_place_at(&self, at: u32) -> impl DoubleEndedIterator<Item = &InPlace> {
        self.in_place.iter().filter(move |body| (body.from..body.to).contains(&at))
    }
}

/// Instructions that stand for the call of a function for an element, in a loop that stands for a native function. Errors tell
/// of both as if they were called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPlace {
    /// The first instruction, and the first behind them.
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The native function, and where it is called.
    pub(crate) native: BuiltinId,
    pub(crate) call: Span,
    /// What it calls.
    pub(crate) called: Called,
    /// The register that counts the elements, with the one at hand, and what it begins with where that is a range. None where the
    /// elements are not those that are walked, but what other calls have left of them.
    pub(crate) index: Option<u16>,
    pub(crate) first: i32,
}

/// What is called for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// A function literal: the instructions are its body.
    Literal,
    Builtin(BuiltinId),
    Other,
}

/// A local name in the code of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local {
    /// The name, where the source uses it.
    pub(crate) name: Span,
    pub(crate) place: LocalPlace,
    /// The first instruction at which it has its value, and the first at which it has it no more.
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// Where the value of a local is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LocalPlace {
    Register(u16),
    Capture(u16),
}
