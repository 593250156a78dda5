//! Notes on a run that succeeded.

use crate::terms::position::Position;
use lisp_core::json::{Null, Nulls};
use serde::{Deserialize, Serialize};

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningKind {
    /// A number of the value is null in JSON
    NullInValue,
    /// A number of a definition is null in JSON
    NullInMemory,
}

impl WarningKind {
    /// The word as it stands in an answer.
    pub const fn name(self) -> &'static str {
        match self {
            WarningKind::NullInValue => "null_in_value",
            WarningKind::NullInMemory => "null_in_memory",
        }
    }
}

/// A note on a run that succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// What happened, for a person or a model.
    pub message: String,
    /// Where in the program, when it has a place.
    pub position: Option<Position>,
    /// One next step.
    pub repair: Option<String>,
}

impl Warning {
    /// The maximum number in an outcome.
    pub(crate) const MAX: usize = 4 * (Nulls::TOLD + 1);

    /// Adds what is to be said of numbers that are null in the JSON text of the value, or of a definition.
    pub(crate) fn of_nulls(nulls: &Nulls, definition: Option<&str>, to: &mut Vec<Warning>) {
        /// The maximum number of characters of a name in a message.
        const NAME: usize = 100;
        let (kind, of) = match definition {
            Some(name) => {
                let name: String = name.chars().take(NAME).collect();
                (WarningKind::NullInMemory, format!(" of the definition {name}"))
            }
            None => (WarningKind::NullInValue, " of the value".to_owned()),
        };
        let mut add = |message: String| {
            let repair = match kind {
                WarningKind::NullInValue => "`text` has the value exactly; (if (NaN? x) nil x) says that nil is meant",
                WarningKind::NullInMemory => "define nil instead, as in (if (NaN? x) nil x)",
            };
            to.push(Warning { kind, message, position: None, repair: Some(repair.to_owned()) });
        };
        for Null { path, number } in &nulls.first {
            add(format!("{path}{of} is {number}, which JSON does not have: it is null there"));
        }
        match nulls.count - nulls.first.len() {
            0 => {}
            more => add(format!("{more} more numbers{of} are null in JSON, which does not have them")),
        }
    }
}

/// A note as an answer has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WarningReport {
    /// The stable name of what it is about.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// The line it begins on, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column it begins at, in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The line it ends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// One past the column it ends at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// One next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
}

impl From<&Warning> for WarningReport {
    fn from(warning: &Warning) -> Self {
        let at = |part: fn(Position) -> u32| warning.position.map(part);
        WarningReport {
            kind: warning.kind.name().to_owned(),
            message: warning.message.clone(),
            line: at(|p| p.line),
            column: at(|p| p.column),
            end_line: at(|p| p.end_line),
            end_column: at(|p| p.end_column),
            repair: warning.repair.clone(),
        }
    }
}
