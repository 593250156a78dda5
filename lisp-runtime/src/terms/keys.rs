//! How JSON object keys are represented.

use serde::{Deserialize, Serialize};

/// How JSON object keys are represented in a program.
///
/// Applies to data, definitions of earlier turns, earlier results and tool results. JSON that the program itself parses
/// with `json/parse-string` always has strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// Strings: `{"id" 7}`. A keyword also reads and writes the entry of the string with its name.
    #[default]
    Strings,
    /// Keywords, whatever their text: `{:id 7}`.
    Keywords,
}

impl From<Keys> for lisp_core::json::Keys {
    fn from(keys: Keys) -> Self {
        match keys {
            Keys::Strings => lisp_core::json::Keys::Strings,
            Keys::Keywords => lisp_core::json::Keys::Keywords,
        }
    }
}
