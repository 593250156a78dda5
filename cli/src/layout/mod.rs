//! Source text laid out anew.
//!
//! The text is cut into tokens by the interpreter's own lexer and nested into [`tree`]s; [`style`] knows how each kind of form
//! is written, and [`mod@write`] puts it on lines. Line breaks of the author stay where forms allow them. A form that does not fit
//! gets the breaks of its kind, from the outside in, so a text that was laid out once stays as it is.
//!
//! The layout goes down the nesting of the text by calls: it takes only what [`read`] takes with its default nesting, 64 levels.
//! Marks such as `#_` may follow each other without an end, and do not nest here.

mod style;
mod tree;
mod write;

use lisp_core::Error;
use lisp_core::syntax::lexer::{Token, tokens};
use lisp_core::syntax::{ReadLimits, read};

/// No line is longer, unless a name, a string or a comment is.
pub(crate) const WIDTH: usize = 100;

/// Why a text has no layout.
#[derive(Debug)]
pub(crate) enum LayoutError {
    /// It cannot be read.
    Unreadable(Error),
    /// The layout would not have been the same program: a bug of this code.
    Changed,
}

/// A text laid out. It has the tokens and the comments of the original, in their order.
pub(crate) fn lay_out(text: &str) -> Result<String, LayoutError> {
    // Text that is too large to run can still be laid out; text that is nested too deeply cannot.
    let limits = ReadLimits { source_bytes: 0, names: 0, ..ReadLimits::default() };
    read(text, &limits).map_err(LayoutError::Unreadable)?;
    let laid_out = write::write(&tree::nest(text));
    match read(&laid_out, &limits) {
        Ok(_) if parts(text).eq(parts(&laid_out)) => Ok(laid_out),
        _ => Err(LayoutError::Changed),
    }
}

/// All that the reader makes forms of, and the comments. Two texts with the same parts have the same forms.
fn parts(text: &str) -> impl Iterator<Item = (Option<Token>, &str)> {
    tokens(text).filter(|(token, _)| *token != Ok(Token::Space)).map(move |(token, span)| {
        let part = text.get(span.start as usize..span.end as usize).unwrap_or("");
        match token {
            Ok(Token::Comment) => (Some(Token::Comment), part.trim_end()),
            token => (token.ok(), part),
        }
    })
}

#[cfg(test)]
mod tests;
