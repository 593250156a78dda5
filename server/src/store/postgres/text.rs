//! Text of the service in columns of the database.
//!
//! PostgreSQL cannot store U+0000 in text. Payloads are bytes for this reason; identifiers are text, in which that character
//! is escaped.

use super::super::{Result, StoreError};
use std::borrow::Cow;

/// Starts an escaped character.
const ESCAPE: char = '\u{1}';

/// Returns an identifier as it is stored.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(ESCAPE, "\u{1}1").replace('\0', "\u{1}0"))
}

/// Returns the identifier that is stored as this.
pub(super) fn unescape(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}")
}

/// Returns the text of a payload.
///
/// # Errors
/// If it is not UTF-8: somebody else has written it.
pub(super) fn text(what: &str, run_id: &str, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| StoreError::Damaged(format!("the {what} of {run_id} (not UTF-8)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identifier_comes_back() {
        for id in ["", "run-1", "\0", "a\0b", "\u{1}", "\u{1}0", "\u{1}1", "\0\u{1}\0", "\u{1}\u{1}01", "é\0"] {
            let stored = escape(id);
            assert!(!stored.contains('\0'), "{id:?}");
            assert_eq!(unescape(stored.into_owned()), id, "{id:?}");
        }
    }
}
