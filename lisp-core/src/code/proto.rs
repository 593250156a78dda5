//! One function of a program.

use super::{BuiltinId, Bytecode};
use crate::error::Span;
use std::sync::Arc;

/// The code of one function.
#[derive(Debug)]
pub(crate) struct Proto {
    /// The name, if it has one.
    pub(crate) name: Option<Arc<str>>,
    /// The parameters as written; patterns as `_`.
    pub(crate) params: Arc<str>,
    /// The definition of a named function.
    pub(crate) definition: Option<Box<Definition>>,
    /// The number of parameters, without the rest parameter.
    pub(crate) arity: u16,
    /// Whether it takes more arguments, as a vector.
    pub(crate) variadic: bool,
    /// The number of values that a closure over it captures.
    pub(crate) captures: u16,
    /// The functions of the program, by number, that are its other arities; they have the same captures.
    pub(crate) others: Box<[u16]>,
    /// The instructions.
    pub(crate) code: Bytecode,
    /// The source position of each instruction.
    pub(crate) spans: Box<[Span]>,
    /// The names of its registers and captures, in the order in which they start.
    pub(crate) locals: Box<[Local]>,
    /// Calls for elements that are compiled in place, inner before outer.
    pub(crate) in_place: Box<[InPlace]>,
}

/// The definition of a function, for `doc` and `source`.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    /// The documentation string.
    pub(crate) doc: Option<Arc<str>>,
    /// The text of the program.
    program: Arc<str>,
    span: Span,
}

impl Definition {
    pub(crate) fn new(doc: Option<Arc<str>>, program: Arc<str>, span: Span) -> Self {
        Definition { doc, program, span }
    }

    /// Returns its bytes, without the text of the program.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.doc.as_deref().map_or(0, str::len)
    }

    /// Returns the text of the definition.
    pub(crate) fn text(&self) -> &str {
        self.program.get(self.span.start as usize..self.span.end as usize).unwrap_or_default()
    }
}

impl Proto {
    /// Returns true if it takes this many arguments.
    #[inline]
    pub(crate) fn takes(&self, argc: usize) -> bool {
        argc == self.arity as usize || self.variadic && argc > self.arity as usize
    }

    /// Returns the calls in place that contain the instruction at a position, innermost first.
    pub(crate) fn in_place_at(&self, at: u32) -> impl DoubleEndedIterator<Item = &InPlace> {
        self.in_place.iter().filter(move |body| (body.from..body.to).contains(&at))
    }
}

/// Instructions that replace the call of a function for an element, in a loop that replaces a native function. Errors
/// report both as calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPlace {
    /// The first instruction, and the first one after them.
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The native function, and the position of its call.
    pub(crate) native: BuiltinId,
    pub(crate) call: Span,
    /// The function called for an element.
    pub(crate) called: Called,
    /// The register that counts the elements, including the current one, and its initial value for a range. `None` if
    /// the elements are the results of other calls in place.
    pub(crate) index: Option<u16>,
    pub(crate) first: i32,
}

/// The function called for an element.
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
    /// The position of the name in the source.
    pub(crate) name: Span,
    pub(crate) place: LocalPlace,
    /// The first instruction at which it has its value, and the first at which it no longer does.
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// The location of the value of a local.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LocalPlace {
    Register(u16),
    Capture(u16),
}
