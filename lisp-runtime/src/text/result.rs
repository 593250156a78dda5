//! Results of tools as programs receive them: read into an arena, and checked against the tool's signature.

use super::convert;
use crate::terms::keys::Keys;
use crate::tools::signature::sentence;
use crate::tools::tool::Tool;
use lisp_core::heap::{Fault, Heap, Res, Value};
use lisp_core::vm::Grant;
use lisp_core::{Error, Reason};

/// Reads a result, JSON text, into the arena of a run.
pub(crate) fn read<'h>(h: &'h Heap, tool: &Tool, json: &str, keys: Keys) -> Res<Value<'h>> {
    convert::read_json(h, json, keys).map_err(|fault| match fault {
        Fault::Error(error) if error.reason != Reason::MemoryExceeded => {
            let text = format!("tool/{}: its result cannot be read: {}", tool.name(), error.message);
            Error::new(Reason::ToolError, text).into()
        }
        fault => fault,
    })
}

/// Returns the result if it matches the tool's signature.
pub(crate) fn checked<'h>(h: &'h Heap, tool: &Tool, value: Value<'h>) -> Res<Value<'h>> {
    let Some(signature) = &tool.contract.signature else { return Ok(value) };
    let mismatches = signature.check_reply(h, value)?;
    if mismatches.is_empty() {
        return Ok(value);
    }
    let text = format!("tool/{}: its result does not fit its signature: {}", tool.name(), sentence(&mismatches));
    Err(Error::new(Reason::ToolError, text).into())
}

impl Tool {
    /// Checks that a program can receive a result, JSON text: that it can be read, and matches the tool's signature and
    /// JSON Schema of results. A result that takes much memory passes: the limits of a run decide whether there is room.
    ///
    /// # Errors
    /// It cannot be read, or does not match.
    pub fn validate_result(&self, result: &str) -> Result<(), Error> {
        /// The bytes of the arena beside those for the text.
        const ROOM: usize = 1 << 20;
        let limit = result.len().saturating_mul(32).saturating_add(ROOM);
        let received = Grant::build(limit, |h, _| {
            let value = read(h, self, result, Keys::Strings)?;
            checked(h, self, value).map(drop)
        });
        match received {
            Err(Fault::Error(error)) if error.reason != Reason::MemoryExceeded => Err(*error),
            _ => self.validate_result_by_schema(result),
        }
    }
}
