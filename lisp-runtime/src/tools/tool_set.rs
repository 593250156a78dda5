//! Sets of tools, and why a tool cannot be in one.

use super::schema_error::SchemaError;
use super::signature::SignatureError;
use super::threads::ToolThreads;
#[cfg(feature = "async")]
use super::tool::Body;
use super::tool::{Fault, Tool};
use lisp_core::syntax::is_name_part;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A set of tools by name.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    by_name: BTreeMap<String, Arc<Tool>>,
    /// Whether one of them, or one that was replaced, has redacted arguments.
    redacts: bool,
}

impl Tools {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// The name is empty, taken, or not valid in a program after `tool/`; the signature or schema is not valid; the tool is async
    /// and has a delay; or it is cached and redacts arguments.
    pub fn add(&mut self, tool: Tool) -> Result<(), BuildError> {
        let name = tool.name().to_owned();
        // After its first slash, a symbol has no other slash.
        if name.contains('/') || !is_name_part(&name) {
            return Err(BuildError::Name(name));
        }
        #[cfg(feature = "async")]
        if matches!(tool.body, Body::Async(_)) && !tool.delay.is_zero() {
            return Err(BuildError::Delay(name));
        }
        match tool.fault {
            None => {}
            Some(Fault::Signature(error)) => return Err(BuildError::Signature { tool: name, error }),
            Some(Fault::Schema(error)) => return Err(BuildError::Schema { tool: name, error }),
            Some(Fault::Both) => return Err(BuildError::SignatureAndSchema(name)),
        }
        if self.by_name.contains_key(&name) {
            return Err(BuildError::Twice(name));
        }
        if tool.treatment.cached && tool.redacts() {
            return Err(BuildError::CachedAndRedacted(name));
        }
        self.redacts |= tool.redacts();
        self.by_name.insert(name, Arc::new(tool));
        Ok(())
    }

    /// Returns whether one of them has redacted arguments.
    pub(crate) fn redacts(&self) -> bool {
        self.redacts
    }

    /// Returns the tool of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name)
    }

    /// Adds a tool whose name was checked. It replaces a tool of that name.
    pub(crate) fn insert(&mut self, tool: Tool) {
        self.redacts |= tool.redacts();
        self.by_name.insert(tool.name().to_owned(), Arc::new(tool));
    }

    /// Returns all tools by value.
    pub(crate) fn into_all(self) -> impl Iterator<Item = Tool> {
        self.by_name.into_values().map(Arc::unwrap_or_clone)
    }

    /// Returns all tools, sorted by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.by_name.values()
    }

    /// Returns all names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

/// Why an engine cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The name of a tool is empty or has characters that a program cannot write.
    #[error("{0:?} is not a valid tool name: use letters, digits and _ - . ? ! * + < > = & % '")]
    Name(String),
    /// Two tools have the same name.
    #[error("there are two tools named {0}")]
    Twice(String),
    /// A cached tool has redacted arguments: the cache would keep them as keys.
    #[error(
        "tool {0} is cached and redacts arguments; results are cached by their arguments, so it can be only one of the two"
    )]
    CachedAndRedacted(String),
    /// An async tool has a delay.
    #[error("tool {0} is async and has a delay: it waits by itself, with a timer of its runtime")]
    Delay(String),
    /// The number of tool threads exceeds the maximum.
    #[error("tool_threads is {0}; it must be 0 to {max}", max = ToolThreads::MAX)]
    ToolThreads(usize),
    /// The signature of a tool is not valid.
    #[error("the signature of tool {tool}: {error}")]
    Signature {
        /// The name of the tool.
        tool: String,
        /// What is wrong with the signature.
        error: SignatureError,
    },
    /// A JSON Schema of a tool cannot be used.
    #[error("tool {tool}: {error}")]
    Schema {
        /// The name of the tool.
        tool: String,
        /// What is wrong with the schema.
        error: SchemaError,
    },
    /// A tool has a signature and a JSON Schema.
    #[error("tool {0} has a signature and a JSON Schema (input or output); give one of the two")]
    SignatureAndSchema(String),
}
