//! Checks a program against the data and the tools that its run has, before it runs.
//!
//! The core forms are interpreted over [`Shape`]s, the facts about a value that are certain. Everything else is unknown, and
//! the unknown is never a finding. A form that runs several times is a finding only if it is wrong each time.

mod branches;
mod builtins;
mod calls;
mod keys;
mod known;
mod names;
mod notes;
mod observe;
mod operands;
mod results;
mod shape;
mod tools;
mod walk;

pub(crate) use names::similar;
pub(crate) use notes::notes;
pub use shape::{Shape, Types};

use crate::compile::{Forms, Program};
use crate::error::Span;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// A key that no map at this place has, while they have one with a similar name.
    UnknownKey,
    /// A comparison that is never true.
    NeverEqual,
    /// An argument of a tool that the tool does not have.
    UnknownArgument,
    /// A call of a tool without an argument that the tool requires.
    MissingArgument,
    /// An argument of a type that the tool does not take.
    WrongArgument,
    /// An operand of a type with which the call fails.
    WrongType,
    /// A test that always goes the same way.
    ConstantTest,
    /// A program whose result is a function.
    FunctionResult,
    /// Data that is not given, while other data with a similar name is.
    UnknownData,
    /// A key that a run read and never found, while the maps there had one with a similar name.
    KeyNeverFound,
    /// A keyword that a run compared with a string of the same name.
    KeywordForString,
    /// A program that takes too much work to check. There may be more to find.
    Incomplete,
}

/// Something in a program that is surely not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// The position in the source.
    pub span: Span,
    /// The mistake, for a person or a model.
    pub message: String,
    /// One repair, as code where possible.
    pub repair: Option<String>,
    /// Whether a call of a tool surely fails.
    pub fails: bool,
}

/// What a program is checked against.
pub trait Facts {
    /// Returns the shape of `data/NAME`; `None` if it is not known.
    fn data(&self, name: &str) -> Option<Shape>;

    /// Returns what is known of data that is not given; `None` if it is given.
    fn missing_data(&self, name: &str) -> Option<MissingData>;

    /// Returns the arguments and the result of a tool; `None` if they are not known.
    fn tool(&self, name: &str) -> Option<ToolShape>;
}

/// Data that a program names and that is not given.
#[derive(Clone, Debug)]
pub struct MissingData {
    /// The name of data that is given and probably meant.
    pub meant: Option<String>,
    /// A hint that names the data that is given.
    pub hint: String,
}

/// The arguments and the result of a tool.
#[derive(Clone, Debug)]
pub struct ToolShape {
    /// The arguments, by name.
    pub parameters: Vec<Parameter>,
    /// Whether other arguments are allowed.
    pub is_open: bool,
    /// The result.
    pub result: Shape,
}

/// An argument of a tool.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name.
    pub name: Arc<str>,
    /// The values that are allowed.
    pub shape: Shape,
    /// Whether each call must have it.
    pub is_required: bool,
}

/// The maximum number of findings of a check.
pub const MAX_FINDINGS: usize = 16;

/// The maximum work of a check, in steps: forms, calls, and shapes that are joined. Notes have as much.
const MAX_WORK: u32 = 100_000;
/// The maximum nesting of forms and calls.
const MAX_DEPTH: usize = 400;

/// The maximum number of notes about a run.
pub const MAX_NOTES: usize = crate::heap::Misses::MAX;

/// Checks a program by its core forms. Findings are in the order of their positions, at most [`MAX_FINDINGS`]. The work of a
/// check is bounded: of a program that takes more, or for which `stop` returns true, only calls that fail before that are found, and
/// the last finding is [`FindingKind::Incomplete`].
pub fn check(program: &Program, forms: &Forms, facts: &dyn Facts, stop: &dyn Fn() -> bool) -> Vec<Finding> {
    /// How often a program is walked, because a definition turned out to be made again.
    const WALKS: usize = 4;
    let volatile = RefCell::new(BTreeSet::new());
    for _ in 0..WALKS {
        let before = volatile.borrow().len();
        let findings = walk::Checker::new(program, forms, facts, &volatile, stop).findings();
        if volatile.borrow().len() == before {
            return findings;
        }
    }
    vec![incomplete(forms.body.span)]
}

/// Returns the finding of a check that is not finished.
pub(crate) fn incomplete(span: Span) -> Finding {
    Finding {
        kind: FindingKind::Incomplete,
        span,
        message: "the check was not finished: this program takes too much work".to_owned(),
        repair: Some("check its parts alone".to_owned()),
        fails: false,
    }
}

#[cfg(test)]
mod tests;
