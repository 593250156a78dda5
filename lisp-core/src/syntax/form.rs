//! What the reader makes of source text: forms with spans.

use crate::error::Span;
use num_bigint::BigInt;

/// A name as a small number; [`Names`](super::Names) knows its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// One form and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// What it is.
    pub kind: FormKind,
    /// Where it stands.
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
    /// `{ ... }`, keys and values in turn; their number is even
    Map(Vec<Form>),
    /// `#{ ... }`
    Set(Vec<Form>),
    /// `#( ... )`
    ShortFn(Vec<Form>),
}
