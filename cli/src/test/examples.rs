//! The examples in a text.

use lisp_core::Error;
use lisp_core::syntax::lexer::{Token, tokens};
use lisp_core::syntax::{LineIndex, ReadLimits, read};

/// A top-level form and its expected result.
#[derive(Debug)]
pub(super) struct Example<'t> {
    /// The text of the form, with everything after the previous form: marks are not part of a form.
    pub(super) source: &'t str,
    /// The first line of the form.
    pub(super) title: &'t str,
    /// The byte offset of the form.
    pub(super) start: u32,
    pub(super) expected: Option<Expected<'t>>,
}

/// The expected result, from a comment after the form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expected<'t> {
    Value(&'t str),
    /// The reason of an error.
    Error(&'t str),
}

/// Returns the forms of a text, and the positions of expectations without a form before them.
///
/// # Errors
/// If the text cannot be read.
pub(super) fn examples(text: &str) -> Result<(Vec<Example<'_>>, Vec<u32>), Error> {
    // The limits on programs apply to each form, not to the whole text.
    let source = read(text, &ReadLimits { source_bytes: 0, names: 0, ..ReadLimits::default() })?;
    let lines = LineIndex::new(text);
    let part = |start: u32, end: u32| text.get(start as usize..end as usize).unwrap_or("");
    let mut comments = expectations(text).into_iter().peekable();
    let (mut forms, mut strays) = (Vec::with_capacity(source.forms.len()), Vec::new());
    let mut before = 0;
    let mut spans = source.forms.iter().map(|form| form.span).peekable();
    // Expectations before the first form have no form.
    let first = spans.peek().map_or(u32::MAX, |span| span.start);
    while let Some((at, _)) = comments.next_if(|(at, _)| *at < first) {
        strays.push(at);
    }
    while let Some(span) = spans.next() {
        let next = spans.peek().map_or(u32::MAX, |span| span.start);
        let last_line = lines.position(span.end).0;
        let mut expected = None;
        while let Some((at, value)) = comments.next_if(|(at, _)| *at < next) {
            match lines.position(at).0 <= last_line + 1 && expected.is_none() {
                true => expected = Some(value),
                false => strays.push(at),
            }
        }
        let title = part(span.start, span.end).lines().next().unwrap_or("");
        forms.push(Example { source: part(before, span.end), title, start: span.start, expected });
        before = span.end;
    }
    Ok((forms, strays))
}

/// The comments `; => ...` and `; !reason` outside of forms, with their positions.
fn expectations(text: &str) -> Vec<(u32, Expected<'_>)> {
    let mut depth = 0usize;
    let mut found = Vec::new();
    for (token, span) in tokens(text) {
        match token {
            Ok(Token::Open(_)) => depth += 1,
            Ok(Token::Close(_)) => depth = depth.saturating_sub(1),
            Ok(Token::Comment) if depth == 0 => {
                let comment = text.get(span.start as usize..span.end as usize).unwrap_or("");
                let comment = comment.trim_start_matches(';').trim();
                let expected = match comment.strip_prefix("=>").map(str::trim) {
                    Some(value) => match value.strip_prefix("error:") {
                        Some(reason) => Some(Expected::Error(reason.trim())),
                        None => Some(short_error(value).map_or(Expected::Value(value), Expected::Error)),
                    },
                    None => short_error(comment).map(Expected::Error),
                };
                found.extend(expected.map(|expected| (span.start, expected)));
            }
            _ => {}
        }
    }
    found
}

/// The reason in `!type_error`. No value prints like that.
fn short_error(value: &str) -> Option<&str> {
    let reason = value.strip_prefix('!')?;
    (!reason.is_empty() && reason.chars().all(|c| c.is_ascii_lowercase() || c == '_')).then_some(reason)
}

/// Returns whether a text is exactly one form, apart from comments.
pub(super) fn is_one_form(text: &str) -> bool {
    read(text, &ReadLimits::default()).is_ok_and(|source| source.forms.len() == 1)
}
