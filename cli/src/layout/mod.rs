//! Formats source text.
//!
//! The text is split into tokens by the interpreter's own lexer and nested into [`tree`]s. [`style`] has the rules for
//! each kind of form, and [`mod@write`] writes the lines. Line breaks of the author are kept where forms allow them. A
//! form that does not fit gets the breaks of its kind, from the outside in. Formatting a formatted text changes
//! nothing.
//!
//! The formatter recurses over the nesting of the text. It therefore accepts only what [`read`] accepts at its default
//! nesting limit, 64 levels. Any number of marks such as `#_` may follow each other; they do not count as nesting.

mod style;
mod tree;
mod write;

use lisp_core::Error;
use lisp_core::syntax::lexer::{Token, tokens};
use lisp_core::syntax::{ReadLimits, read};

/// The maximum line width, unless a name, a string or a comment is longer.
pub(crate) const WIDTH: usize = 100;

/// Why a text cannot be formatted.
#[derive(Debug)]
pub(crate) enum LayoutError {
    /// It cannot be read.
    Unreadable(Error),
    /// The formatted text would not be the same program: a bug in the formatter.
    Changed,
}

/// Formats a text. The result has the same tokens and comments, in the same order.
pub(crate) fn lay_out(text: &str) -> Result<String, LayoutError> {
    // Text that is too large to run can be formatted; text nested too deeply cannot.
    let limits = ReadLimits { source_bytes: 0, names: 0, ..ReadLimits::default() };
    read(text, &limits).map_err(LayoutError::Unreadable)?;
    let laid_out = write::write(&tree::nest(text));
    match read(&laid_out, &limits) {
        Ok(_) if parts(text).eq(parts(&laid_out)) => Ok(laid_out),
        _ => Err(LayoutError::Changed),
    }
}

/// The tokens that the reader builds forms from, and the comments. Texts with the same parts have the same forms.
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
