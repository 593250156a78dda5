//! The output of the reader: forms with spans.

use crate::error::Span;
use num_bigint::BigInt;

/// A name as a number; [`Names`](super::Names) has its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// A form and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The kind of the form.
    pub kind: FormKind,
    /// Its position.
    pub span: Span,
}

/// The kinds of form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormKind {
    /// `nil`
    Nil,
    /// `true`, `false`
    Bool(bool),
    /// `42`
    Int(i64),
    /// `123456789012345678901234567890`
    Big(BigInt),
    /// `1.5`, `##Inf`
    Float(f64),
    /// `"text"`, `\a`
    Str(Box<str>),
    /// `#"pattern"`
    Regex(Box<str>),
    /// `:name`, without the colon
    Keyword(NameId),
    /// `name`
    Symbol(NameId),
    /// `'form`
    Quote(Box<Form>),
    /// `#'name`
    Var(NameId),
    /// `( ... )`
    List(Vec<Form>),
    /// `[ ... ]`
    Vector(Vec<Form>),
    /// `{ ... }`, alternating keys and values; their number is even
    Map(Vec<Form>),
    /// `#{ ... }`
    Set(Vec<Form>),
    /// `#( ... )`
    ShortFn(Vec<Form>),
}
