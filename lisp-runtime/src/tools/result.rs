//! Results of tools as programs receive them: read into an arena, and checked against the tool's signature.

use super::signature::sentence;
use super::tool::Tool;
use crate::terms::keys::Keys;
use crate::text::convert;
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

/// Checks without a run that a program can receive a result, JSON text. A result that takes much memory passes: whether
/// there is room for it is decided by the limits of its run.
pub(super) fn validate(tool: &Tool, json: &str) -> Result<(), Error> {
    /// The bytes of the arena beside those for the text.
    const ROOM: usize = 1 << 20;
    let limit = json.len().saturating_mul(32).saturating_add(ROOM);
    let read = Grant::build(limit, |h, _| {
        read(h, tool, json, Keys::Strings).and_then(|value| checked(h, tool, value)).map(drop)
    });
    match read {
        Err(Fault::Error(error)) if error.reason != Reason::MemoryExceeded => Err(*error),
        _ => Ok(()),
    }
}
