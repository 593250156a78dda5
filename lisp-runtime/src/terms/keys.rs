//! What the keys of JSON objects become.

use serde::{Deserialize, Serialize};

/// What the keys of JSON objects become on their way into a program: in data, definitions of earlier turns, earlier results
/// and results of tools. What the program itself parses, with `json/parse-string`, has strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// Strings: `{"id" 7}`. A keyword reads and writes at the string of its name.
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
