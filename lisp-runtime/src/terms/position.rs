//! Positions in a source.

use lisp_core::Span;
use lisp_core::syntax::LineIndex;
use serde::{Deserialize, Serialize};

/// A range of the source in lines and columns, from 1. Columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The line where it starts.
    pub line: u32,
    /// The column where it starts.
    pub column: u32,
    /// The line where it ends.
    pub end_line: u32,
    /// The column after its last character.
    pub end_column: u32,
}

impl Position {
    pub(crate) fn of(lines: &LineIndex, span: Span) -> Self {
        let ((line, column), (end_line, end_column)) = (lines.position(span.start), lines.position(span.end));
        Position { line, column, end_line, end_column }
    }
}
