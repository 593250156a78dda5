//! Formatting rules for each kind of form: where it may break, and how new lines are indented.

use super::tree::{Collection, Item};
use lisp_core::syntax::lexer::Delimiter;

/// The role of a collection in the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Code,
    /// The names and values of `let`.
    Bindings,
    /// The functions of `letfn`.
    Functions,
    /// One function of `letfn`.
    Function,
    /// Part of a quoted collection.
    Data,
}

/// The indentation of new lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indent {
    /// Under the first item.
    Aligned,
    /// Under the first argument, or under the function if the first argument is on a new line.
    Call,
    /// By two columns.
    Body,
    /// By two columns if the form after this many arguments starts a new line, otherwise like a call.
    Block(usize),
}

/// Which forms start a new line if the collection does not fit on one. The first form has index 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaks {
    /// Every form from this index on.
    From(usize),
    /// The form at this index, and every second one after it.
    Pairs(usize),
    /// Forms that do not fit on the current line.
    Filled,
}

impl Breaks {
    /// Returns whether the form at this index starts a new line.
    pub(super) fn before(self, form: usize) -> bool {
        match self {
            Breaks::From(first) => form >= first,
            Breaks::Pairs(first) => form >= first && (form - first).is_multiple_of(2),
            Breaks::Filled => false,
        }
    }
}

/// The formatting rules for a collection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style<'t> {
    pub(super) indent: Indent,
    pub(super) breaks: Breaks,
    role: Role,
    /// The name of the function or special form.
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

    /// The role of a form in the collection, by its index and the form before it.
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

/// Returns whether the first argument is a vector of names and values.
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

/// Names and numbers fill their lines; other elements get a line each.
fn elements(collection: &Collection<'_>) -> Breaks {
    match collection.forms().all(|item| item.name().is_some() && !item.broken) {
        true => Breaks::Filled,
        false => Breaks::From(1),
    }
}

fn call(collection: &Collection<'_>, head: Option<&str>) -> (Indent, Breaks) {
    let is_vector = |number: usize| collection.forms().nth(number).is_some_and(|item| item.is(Delimiter::Vector));
    let is_name = |number: usize| collection.forms().nth(number).is_some_and(|item| item.collection().is_none());
    // Parameters stay on the line of the name.
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
        // One of several bodies of a function: `([a b] body ...)`.
        _ if is_vector(0) => (Indent::Call, Breaks::From(1)),
        _ => (Indent::Call, Breaks::From(2)),
    }
}
