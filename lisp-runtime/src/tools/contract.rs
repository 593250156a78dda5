//! What a tool takes and returns, and how its calls are treated.

use super::json_contract::JsonContract;
use super::signature::{Signature, sentence_of_arguments};
use lisp_core::check::ToolShape;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The contract of a tool: its name, what it takes and what it returns.
#[derive(Clone, Default)]
pub(crate) struct Contract {
    /// The name as programs write it.
    pub(crate) name: String,
    /// The original name, if it is not a symbol.
    pub(crate) given_name: Option<String>,
    pub(crate) description: Option<String>,
    /// The signature as models see it: as it was written, or derived from the schemas.
    pub(crate) text: Option<String>,
    /// The signature that arguments and results are checked against.
    pub(crate) signature: Option<Signature>,
    /// The JSON Schemas that arguments and results are checked against.
    pub(crate) schemas: Option<Arc<JsonContract>>,
    /// The signature that schemas imply, where the schemas are not: in the other half of a run.
    pub(crate) derived: Option<String>,
    /// The parameters with hyphens in their names, for a tool without a signature.
    pub(crate) hyphenated: Vec<String>,
}

impl fmt::Debug for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contract").field("name", &self.name).field("signature", &self.text).finish_non_exhaustive()
    }
}

impl Contract {
    /// Returns the original name.
    pub(crate) fn given_name(&self) -> &str {
        self.given_name.as_deref().unwrap_or(&self.name)
    }

    /// Returns whether the signature or schema has a parameter with this exact name, which has hyphens.
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        self.hyphenated.iter().any(|known| known == name)
            || self.signature.as_ref().is_some_and(|signature| signature.has_parameter(name))
    }

    /// Returns what is known of its arguments and its result before it is called.
    pub(crate) fn shape(&self) -> Option<ToolShape> {
        match &self.signature {
            Some(signature) => signature.shape(),
            None => Signature::parse(self.derived()?).ok()?.shape(),
        }
    }

    /// Returns the signature that schemas imply.
    pub(crate) fn derived(&self) -> Option<&str> {
        self.derived.as_deref().or_else(|| self.schemas.as_ref()?.derived())
    }

    /// Returns why arguments do not match the signature, without the values of redacted ones.
    pub(crate) fn misfit(&self, arguments: &Map<String, Value>, redacted: &[String]) -> Option<String> {
        let mismatch = self.signature.as_ref()?.check_json_arguments(arguments).err()?;
        Some(sentence_of_arguments(&[mismatch], redacted))
    }
}

/// The effect of a tool's calls on the outside world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call changes nothing and can be repeated.
    Read,
    /// The call changes something.
    Write,
    /// Not declared. Treated like [`Effect::Write`].
    #[default]
    Unknown,
}

/// How calls of a tool are treated: by the gate, in the ledger, in a record, and in the other half of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Treatment {
    pub(crate) effect: Effect,
    /// Whether a repeated call has no further effect.
    pub(crate) idempotent: bool,
    /// Whether a call with equal arguments returns the first result.
    pub(crate) cached: bool,
    /// Whether the caller stops waiting at its deadline. Only the process that makes the call knows it.
    #[serde(skip)]
    pub(crate) detached: bool,
    /// Whether failures are values.
    pub(crate) tagged: bool,
    /// The maximum number of calls in a run; 0 is no limit. Older records have it as `most_calls`.
    #[serde(alias = "most_calls")]
    pub(crate) max_calls: u64,
    /// The arguments that only the tool sees.
    pub(crate) redacted: Vec<String>,
}
