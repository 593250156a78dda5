//! Equality of forms as keys.
//!
//! Each form that may matter gets a number, its shape, as soon as it is read, from the shapes of its parts. Equal forms
//! have equal shapes, whatever their depth, and no comparison descends into a form.

use super::form::{FormKind, NameId};
use super::lexer::Delimiter;
use crate::Table;
use num_bigint::BigInt;
use num_traits::FromPrimitive;

/// The number of a form among those that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Shape(u32);

/// The shapes of one program.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    known: Table<Content, Shape>,
    next: u32,
}

/// What a shape stands for. A whole float is the integer that it equals.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Content {
    Nil,
    Bool(bool),
    Int(i64),
    Big(BigInt),
    Float(u64),
    Text(Box<str>),
    Keyword(NameId),
    Symbol(NameId),
    Quote(Shape),
    Var(NameId),
    /// `%` is another way to write `%1`, in a short function only.
    FirstArgument,
    /// Lists and vectors: `(= '(1 2) [1 2])`.
    Sequence(Vec<Shape>),
    /// Keys with their values, sorted.
    Map(Vec<(Shape, Shape)>),
    /// Sorted.
    Set(Vec<Shape>),
}

impl Shapes {
    /// Returns the shape of `%` and `%1` in a short function.
    pub(super) fn first_argument(&mut self) -> Shape {
        self.of(Content::FirstArgument)
    }

    /// Returns the shape of a form that contains no other.
    pub(super) fn atom(&mut self, kind: &FormKind) -> Shape {
        let content = match kind {
            FormKind::Nil => Content::Nil,
            FormKind::Bool(value) => Content::Bool(*value),
            FormKind::Int(value) => Content::Int(*value),
            FormKind::Big(value) => Content::Big(value.clone()),
            FormKind::Float(value) => match BigInt::from_f64(*value) {
                Some(whole) if value.fract() == 0.0 => i64::try_from(&whole).map_or(Content::Big(whole), Content::Int),
                // Fractions, infinities, and NaN, which is always written the same.
                _ => Content::Float(value.to_bits()),
            },
            FormKind::Str(text) => Content::Text(text.clone()),
            FormKind::Keyword(name) => Content::Keyword(*name),
            FormKind::Symbol(name) => Content::Symbol(*name),
            FormKind::Var(name) => Content::Var(*name),
            // Each regex literal creates its own pattern.
            FormKind::Regex(_) => return self.fresh(),
            FormKind::List(_)
            | FormKind::Vector(_)
            | FormKind::Map(_)
            | FormKind::Set(_)
            | FormKind::ShortFn(_)
            | FormKind::Quote(_) => return self.fresh(),
        };
        self.of(content)
    }

    /// Returns the shape of a collection, from the shapes of its forms.
    pub(super) fn collection(&mut self, delimiter: Delimiter, mut shapes: Vec<Shape>) -> Shape {
        let content = match delimiter {
            Delimiter::List | Delimiter::Vector => Content::Sequence(shapes),
            Delimiter::Map => {
                let mut pairs: Vec<_> = shapes.as_chunks::<2>().0.iter().map(|[key, value]| (*key, *value)).collect();
                pairs.sort_unstable();
                Content::Map(pairs)
            }
            Delimiter::Set => {
                shapes.sort_unstable();
                Content::Set(shapes)
            }
            // Each short function literal creates its own function.
            Delimiter::ShortFn => return self.fresh(),
        };
        self.of(content)
    }

    /// Returns the shape of a quoted form.
    pub(super) fn quoted(&mut self, shape: Shape) -> Shape {
        self.of(Content::Quote(shape))
    }

    fn of(&mut self, content: Content) -> Shape {
        let fresh = Shape(self.next);
        let shape = *self.known.entry(content).or_insert(fresh);
        if shape == fresh {
            self.next += 1;
        }
        shape
    }

    /// Returns a shape that no other form has.
    fn fresh(&mut self) -> Shape {
        let shape = Shape(self.next);
        self.next += 1;
        shape
    }
}

/// Among the shapes at each `step`th index, returns the index of the first one that appeared before.
pub(super) fn first_repeated(shapes: &[Shape], step: usize) -> Option<usize> {
    // For a few, comparing all pairs is faster than sorting.
    const FEW: usize = 16;
    let picked = || shapes.iter().step_by(step);
    if shapes.len() <= FEW {
        return picked()
            .enumerate()
            .find(|(index, shape)| picked().take(*index).any(|other| other == *shape))
            .map(|x| x.0);
    }
    let mut order: Vec<_> = picked().enumerate().map(|(index, shape)| (shape, index)).collect();
    order.sort_unstable();
    let pairs = order.iter().zip(order.iter().skip(1));
    pairs.filter(|(one, other)| one.0 == other.0).map(|(_, (_, index))| *index).min()
}
