//! Where in a source text.

use lisp_core::Span;
use lisp_core::syntax::LineIndex;
use serde::{Deserialize, Serialize};

/// A range of the source text for people: lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The line it begins on.
    pub line: u32,
    /// The column it begins at.
    pub column: u32,
    /// The line it ends on.
    pub end_line: u32,
    /// One past the column it ends at.
    pub end_column: u32,
}

impl Position {
    pub(crate) fn of(lines: &LineIndex, span: Span) -> Self {
        let ((line, column), (end_line, end_column)) = (lines.position(span.start), lines.position(span.end));
        Position { line, column, end_line, end_column }
    }
}
