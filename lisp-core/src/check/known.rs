//! Values during the walk.

use super::shape::{Shape, Types};
use crate::code::BuiltinId;
use crate::compile::core::{Constant, FnNode, Var};
use crate::error::Span;
use std::rc::Rc;
use std::sync::Arc;

/// A value during the walk.
#[derive(Clone)]
pub(super) struct Known<'p> {
    pub(super) shape: Shape,
    /// The function that it is.
    pub(super) function: Option<Rc<Function<'p>>>,
    /// The constant that it is, and where it stands.
    pub(super) constant: Option<(&'p Constant, Span)>,
    /// Whether a condition with this value holds, if that is sure.
    pub(super) truth: Option<bool>,
    /// The key that was looked for and not found, if it is nil for that, or tells whether it is.
    pub(super) missed: Option<Rc<Missed>>,
    /// The pass for which its types are exact: each of them is there at least once while the code of the pass runs.
    pub(super) exact: Option<Pass>,
    /// A property that tests often get wrong.
    pub(super) habit: Option<Habit>,
}

/// A part of the program that runs under conditions of its own, such as a branch or the function of a `map`: 0 is the program.
pub(super) type Pass = u32;

/// A property of a value that tests often get wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    /// A list, which is true even if it is empty.
    List,
    /// A quotient, which is never an integer.
    Quotient,
}

/// A key that no map at a place has, or data that is not given.
#[derive(Clone)]
pub(super) struct Missed {
    pub(super) span: Span,
    pub(super) name: Arc<str>,
    /// The name that is probably meant.
    pub(super) meant: Option<Arc<str>>,
    /// Whether the key was read of something that is no map.
    pub(super) is_no_map: bool,
}

/// The variables of enclosing functions that a function uses, and their values when it was made.
pub(super) type Captured<'p> = Rc<[(Var, Known<'p>)]>;

/// A function.
pub(super) enum Function<'p> {
    Closure(&'p FnNode, Captured<'p>),
    Builtin(BuiltinId),
    Tool(&'p str),
    /// `(comp f g ...)`
    Composed(Vec<Known<'p>>),
    /// `(partial f x ...)`
    Partial(Known<'p>, Vec<Known<'p>>),
    /// `(juxt f ...)`
    Juxtaposed(Vec<Known<'p>>),
    /// `(complement f)`, `(every-pred f ...)`, `(some-fn f ...)`: functions of the same arguments, whose results matter as
    /// conditions
    Tests(Vec<Known<'p>>),
    /// `(constantly x)`
    Constant(Known<'p>),
    /// `(fnil f x ...)`
    WithDefaults(Known<'p>),
    /// One or the other
    Either(Known<'p>, Known<'p>),
}

impl<'p> Known<'p> {
    pub(super) fn unknown() -> Self {
        Known::of(Shape::UNKNOWN)
    }

    pub(super) fn never() -> Self {
        Known::of(Shape::of(Types::NEVER))
    }

    pub(super) fn of(shape: Shape) -> Self {
        Known { shape, function: None, constant: None, truth: None, missed: None, exact: None, habit: None }
    }

    pub(super) fn types(types: Types) -> Self {
        Known::of(Shape::of(types))
    }

    pub(super) fn function(function: Function<'p>) -> Self {
        Known { function: Some(Rc::new(function)), ..Known::types(Types::FN) }
    }

    pub(super) fn test(truth: Option<bool>) -> Self {
        Known { truth, ..Known::types(Types::BOOL) }
    }

    /// Returns whether it holds as a condition, if that is sure.
    pub(super) fn holds(&self) -> Option<bool> {
        if self.truth.is_some() {
            return self.truth;
        }
        match self.constant {
            Some((Constant::Nil | Constant::Bool(false), _)) => Some(false),
            Some((Constant::Bool(true), _)) => Some(true),
            _ if self.shape.is_never() => None,
            _ if self.shape.types == Types::NIL => Some(false),
            _ => (!self.shape.types.may_be(Types::NIL | Types::BOOL)).then_some(true),
        }
    }
}
