//! The values that a program receives from a tagged tool, on success and on failure.

use crate::terms::keys::Keys;
use lisp_core::heap::{Heap, Res, Value};
use lisp_core::{Detail, Error};

fn name<'h>(h: &'h Heap, keys: Keys, text: &str) -> Res<Value<'h>> {
    match keys {
        Keys::Strings => h.str(text),
        Keys::Keywords => h.keyword(text),
    }
}

/// Returns `{:ok value}`.
pub(super) fn ok<'h>(h: &'h Heap, keys: Keys, value: Value<'h>) -> Res<Value<'h>> {
    h.map([(name(h, keys, "ok")?, value)].into_iter())
}

/// Returns `{:error {:reason .. :message .. :tool .. :code ..}}`.
pub(super) fn failed<'h>(h: &'h Heap, keys: Keys, tool: &str, error: &Error) -> Res<Value<'h>> {
    let field = |key: &str, text: &str| -> Res<_> { Ok((name(h, keys, key)?, h.str(text)?)) };
    let mut fields =
        vec![field("reason", error.reason.name())?, field("message", &error.message)?, field("tool", tool)?];
    match error.named_detail("code") {
        Some(Detail::Int(number)) => fields.push((name(h, keys, "code")?, Value::Int(*number))),
        Some(Detail::Text(text)) => fields.push(field("code", text)?),
        _ => {}
    }
    h.map([(name(h, keys, "error")?, h.map(fields.into_iter())?)].into_iter())
}
