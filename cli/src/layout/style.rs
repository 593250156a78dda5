//! How each kind of form is written: where it may break, and how far what stands on a new line is indented.

use super::tree::{Collection, Item};
use lisp_core::syntax::lexer::Delimiter;

/// What a collection is to the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Code,
    /// The names and values of `let`.
    Bindings,
    /// The functions of `letfn`.
    Functions,
    /// One of these.
    Function,
    /// Part of a quoted collection.
    Data,
}

/// How far what stands on a new line is indented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indent {
    /// Under the first item.
    Aligned,
    /// Under the first argument; under the function when that stands on a line of its own.
    Call,
    /// By two.
    Body,
    /// By two when what stands behind so many arguments begins a line, else as a call.
    Block(usize),
}

/// Which forms begin a line when not all fit on one. The first form has the number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaks {
    /// Each from this one on.
    From(usize),
    /// This one and every second behind it.
    Pairs(usize),
    /// Those that do not fit on the line.
    Filled,
}

impl Breaks {
    /// Whether the form of this number begins a line.
    pub(super) fn before(self, form: usize) -> bool {
        match self {
            Breaks::From(first) => form >= first,
            Breaks::Pairs(first) => form >= first && (form - first).is_multiple_of(2),
            Breaks::Filled => false,
        }
    }
}

/// How a collection is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style<'t> {
    pub(super) indent: Indent,
    pub(super) breaks: Breaks,
    role: Role,
    /// What is called.
    head: Option<&'t str>,
}

impl<'t> Style<'t> {
    pub(super) fn of(collection: &Collection<'t>, role: Role) -> Self {
        let role = if collection.quoted { Role::Data } else { role };
        let head = match collection.delimiter {
            Delimiter::List | Delimiter::ShortFn if role != Role::Data => {
                collection.forms().next().and_then(Item::name)
            }
            _ => None,
        };
        let (indent, breaks) = match (collection.delimiter, role) {
            (Delimiter::Map, _) | (Delimiter::Vector, Role::Bindings) => (Indent::Aligned, Breaks::Pairs(2)),
            (Delimiter::List, Role::Function) => (Indent::Body, Breaks::From(2)),
            (Delimiter::Vector | Delimiter::Set, _) | (_, Role::Data) => (Indent::Aligned, elements(collection)),
            (Delimiter::List | Delimiter::ShortFn, _) => call(collection, head),
        };
        Style { indent, breaks, role, head }
    }

    /// The role of a form in the collection, by its number and the form before it.
    pub(super) fn role_of(&self, number: usize, before: Option<&str>) -> Role {
        match (self.role, self.head) {
            (Role::Data, _) => Role::Data,
            (Role::Bindings, _) if number % 2 == 1 && before == Some(":let") => Role::Bindings,
            (Role::Functions, _) => Role::Function,
            (_, Some("letfn")) if number == 1 => Role::Functions,
            (_, Some(head)) if number == 1 && binds(head) => Role::Bindings,
            _ => Role::Code,
        }
    }
}

/// Whether what is called takes names and values in a vector first.
fn binds(head: &str) -> bool {
    matches!(
        head,
        "let"
            | "loop"
            | "for"
            | "doseq"
            | "dotimes"
            | "if-let"
            | "if-some"
            | "when-let"
            | "when-some"
            | "when-first"
            | "binding"
    )
}

/// Words and numbers fill their lines; of other elements each has a line.
fn elements(collection: &Collection<'_>) -> Breaks {
    match collection.forms().all(|item| item.name().is_some() && !item.broken) {
        true => Breaks::Filled,
        false => Breaks::From(1),
    }
}

fn call(collection: &Collection<'_>, head: Option<&str>) -> (Indent, Breaks) {
    let is_vector = |number: usize| collection.forms().nth(number).is_some_and(|item| item.is(Delimiter::Vector));
    let is_name = |number: usize| collection.forms().nth(number).is_some_and(|item| item.collection().is_none());
    // Parameters stay behind the name.
    let behind_parameters = |name: usize| name + 1 + usize::from(is_vector(name + 1));
    match head.unwrap_or("") {
        "def" | "defonce" | "ns" => (Indent::Body, Breaks::From(2)),
        "defn" | "defn-" => (Indent::Body, Breaks::From(behind_parameters(1))),
        "fn" => (Indent::Body, Breaks::From(behind_parameters(usize::from(is_name(1))))),
        "do" | "try" | "finally" | "comment" => (Indent::Block(0), Breaks::From(1)),
        "cond" => (Indent::Block(0), Breaks::Pairs(1)),
        "let" | "letfn" | "loop" | "for" | "doseq" | "dotimes" | "binding" | "while" | "if" | "if-not" | "if-let"
        | "if-some" | "when" | "when-not" | "when-let" | "when-some" | "when-first" => {
            (Indent::Block(1), Breaks::From(2))
        }
        "case" | "cond->" | "cond->>" => (Indent::Block(1), Breaks::Pairs(2)),
        "catch" | "as->" => (Indent::Block(2), Breaks::From(3)),
        "condp" => (Indent::Block(2), Breaks::Pairs(3)),
        "assoc" => (Indent::Call, Breaks::Pairs(2)),
        "hash-map" | "array-map" => (Indent::Call, Breaks::Pairs(3)),
        // One of several bodies of a function: ([a b] body ...).
        _ if is_vector(0) => (Indent::Call, Breaks::From(1)),
        _ => (Indent::Call, Breaks::From(2)),
    }
}
