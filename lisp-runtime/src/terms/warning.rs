//! Warnings about a run.

use crate::terms::position::Position;
use lisp_core::check::{Finding, FindingKind, MAX_FINDINGS, MAX_NOTES};
use lisp_core::compile::Program;
use lisp_core::json::{Null, Nulls};
use lisp_core::syntax::{LineIndex, fence_of};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The source.
    Program,
    /// The result in JSON.
    Value,
    /// The definitions in JSON.
    Memory,
}

macro_rules! warning_kinds {
    ($($(#[$doc:meta])* $variant:ident => $name:literal, $subject:ident;)*) => {
        /// The kind of a warning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum WarningKind { $($(#[$doc])* #[serde(rename = $name)] $variant,)* }

        impl WarningKind {
            /// All kinds.
            pub const ALL: &'static [WarningKind] = &[$(WarningKind::$variant,)*];

            /// Returns the name that answers use.
            pub const fn name(self) -> &'static str {
                match self { $(WarningKind::$variant => $name,)* }
            }

            pub(crate) const fn subject(self) -> Subject {
                match self { $(WarningKind::$variant => Subject::$subject,)* }
            }
        }
    };
}

warning_kinds! {
    /// A number of the result is null in JSON, or a key and a string there.
    NullInValue => "null_in_value", Value;
    /// A number of a definition is null in JSON, or a key and a string there.
    NullInMemory => "null_in_memory", Memory;
    /// The program is in a Markdown code fence.
    CodeFence => "code_fence", Program;
    /// A regex literal has two backslashes where probably one is meant.
    DoubledBackslash => "doubled_backslash", Program;
    /// A key is read that no map at this place has, while they have one with a similar name.
    UnknownKey => "unknown_key", Program;
    /// A comparison is never true.
    NeverEqual => "never_equal", Program;
    /// An argument is passed that the tool does not have.
    UnknownArgument => "unknown_argument", Program;
    /// A tool is called without an argument that it requires.
    MissingArgument => "missing_argument", Program;
    /// An argument has a type that the tool does not take.
    WrongArgument => "wrong_argument", Program;
    /// An operand has a type with which the call fails.
    WrongType => "wrong_type", Program;
    /// A test always goes the same way.
    ConstantTest => "constant_test", Program;
    /// The result of the program is a function.
    FunctionResult => "function_result", Program;
    /// Data is not given, so it is nil, and the program does not test for that.
    UnknownData => "unknown_data", Program;
    /// A key was read and never found, while the maps there had one with a similar name.
    KeyNeverFound => "key_never_found", Program;
    /// A keyword was compared with a string of the same name.
    KeywordForString => "keyword_for_string", Program;
    /// A program is too much work to check: there may be more to find. Only checks without a run say so.
    CheckIncomplete => "check_incomplete", Program;
}

impl WarningKind {
    /// Returns whether it is about the source, not about the result.
    pub const fn is_of_program(self) -> bool {
        matches!(self.subject(), Subject::Program)
    }

    fn of_finding(kind: FindingKind) -> Self {
        match kind {
            FindingKind::UnknownKey => WarningKind::UnknownKey,
            FindingKind::NeverEqual => WarningKind::NeverEqual,
            FindingKind::UnknownArgument => WarningKind::UnknownArgument,
            FindingKind::MissingArgument => WarningKind::MissingArgument,
            FindingKind::WrongArgument => WarningKind::WrongArgument,
            FindingKind::WrongType => WarningKind::WrongType,
            FindingKind::ConstantTest => WarningKind::ConstantTest,
            FindingKind::FunctionResult => WarningKind::FunctionResult,
            FindingKind::UnknownData => WarningKind::UnknownData,
            FindingKind::KeyNeverFound => WarningKind::KeyNeverFound,
            FindingKind::KeywordForString => WarningKind::KeywordForString,
            FindingKind::Incomplete => WarningKind::CheckIncomplete,
        }
    }
}

/// A warning about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// What the warning is about.
    pub kind: WarningKind,
    /// What happened, for a person or a model.
    pub message: String,
    /// The position in the program, if there is one.
    pub position: Option<Position>,
    /// One next step.
    pub repair: Option<String>,
}

/// The text for a model: the position, what happened, and one next step.
///
/// ```
/// use lisp_runtime::{Engine, Input};
/// let outcome = Engine::default().eval("(:totl data/order)", Input::new().json("order", r#"{"total": 9}"#));
/// let text = outcome.warnings()[0].to_string();
/// assert_eq!(text, "line 1, column 1: no map here has the key :totl; they have :total: write :total");
/// ```
impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Position { line, column, .. }) = self.position {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.repair {
            Some(repair) => write!(f, ": {repair}"),
            None => Ok(()),
        }
    }
}

impl Warning {
    /// The maximum number of warnings in an outcome.
    pub(crate) const MAX: usize = 8 * (Nulls::TOLD + 1) + MAX_FINDINGS + MAX_NOTES;

    /// Returns the warnings about the source of a program.
    pub(crate) fn of_program(program: &Program) -> Vec<Warning> {
        let (source, doubled) = (program.source(), program.doubled_backslashes());
        let fence = fence_of(source);
        if fence.is_none() && doubled.is_empty() {
            return Vec::new();
        }
        let lines = LineIndex::new(source);
        let at = |kind, span, message: String, repair: String| Warning {
            kind,
            message,
            position: Some(Position::of(&lines, span)),
            repair: Some(repair),
        };
        let fence = fence.map(|span| {
            let message = "the program is in a Markdown code fence, whose lines are skipped".to_owned();
            at(WarningKind::CodeFence, span, message, "send the program without the lines of the fence".to_owned())
        });
        let doubled = doubled.iter().filter_map(|span| {
            let letter = source.get(span.start as usize..span.end as usize)?.chars().last()?;
            let meant = escape(letter)?;
            let message = format!(r"\\{letter} in a pattern literal is a backslash and the letter {letter}");
            let repair = format!(r"if you mean {meant}, write \{letter}: a pattern literal is raw");
            Some(at(WarningKind::DoubledBackslash, *span, message, repair))
        });
        fence.into_iter().chain(doubled).collect()
    }

    /// Returns the warnings of a check of a program, and of its notes.
    pub(crate) fn of_findings(program: &Program, findings: Vec<Finding>) -> Vec<Warning> {
        if findings.is_empty() {
            return Vec::new();
        }
        let lines = LineIndex::new(program.source());
        let warning = |finding: Finding| Warning {
            kind: WarningKind::of_finding(finding.kind),
            message: finding.message,
            position: Some(Position::of(&lines, finding.span)),
            repair: finding.repair,
        };
        findings.into_iter().map(warning).collect()
    }

    /// Adds the warnings about numbers that are null, or the text of a key, in the JSON of the result or of a definition.
    pub(crate) fn of_nulls(nulls: &Nulls, definition: Option<&str>, to: &mut Vec<Warning>) {
        /// The maximum number of characters of a name in a message.
        const NAME: usize = 100;
        let (kind, of, repair) = match definition {
            Some(name) => {
                let name: String = name.chars().take(NAME).collect();
                let repair = "define nil instead, as in (if (NaN? x) nil x)";
                (WarningKind::NullInMemory, format!(" of the definition {name}"), repair)
            }
            None => {
                let repair = "`text` has the exact value; to return nil instead, write (if (NaN? x) nil x)";
                (WarningKind::NullInValue, " of the value".to_owned(), repair)
            }
        };
        let mut add = |message: String| {
            to.push(Warning { kind, message, position: None, repair: Some(repair.to_owned()) });
        };
        for Null { path, number, is_key } in &nulls.first {
            add(match is_key {
                true => {
                    format!("{path}{of} has the key {number}, which JSON cannot express: it is written as a string")
                }
                false => format!("{path}{of} is {number}, which JSON cannot express: it is written as null"),
            });
        }
        match nulls.count - nulls.first.len() {
            0 => {}
            more => add(format!(
                "{more} more numbers{of} are null, or a string as a key, in JSON, which does not have them"
            )),
        }
    }
}

/// Returns the meaning of a backslash and this letter in a pattern.
fn escape(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "a digit",
        'D' => "anything but a digit",
        'w' => "a character of a word",
        'W' => "anything but a character of a word",
        's' => "whitespace",
        'S' => "anything but whitespace",
        'b' => "the edge of a word",
        'B' => "any place but the edge of a word",
        _ => return None,
    })
}

/// A warning in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WarningReport {
    /// The stable name of the kind.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// The line where it starts, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column where it starts, in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The line where it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The column after its last character.
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
