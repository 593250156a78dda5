//! UUIDs, which are strings.

use super::Builtin;
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Res, Value};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("parse-uuid", 1, 1, "(parse-uuid s)", parse_uuid).doc(
        "Parses a UUID and returns it as a lower-case string; nil for any other string.",
        &[
            ("(parse-uuid \"9F4A7B7E-6D1F-4D53-9A3E-0D2F7A3B1C55\")", "\"9f4a7b7e-6d1f-4d53-9a3e-0d2f7a3b1c55\""),
            ("(parse-uuid \"9f4a7b7e\")", "nil"),
            ("(parse-uuid)", "!arity_error"),
        ],
    ),
    Builtin::test("uuid?", "(uuid? x)", |v| v.as_str().is_some_and(is_uuid)).doc(
        "Returns whether the value is a UUID string.",
        &[
            ("(uuid? \"9f4a7b7e-6d1f-4d53-9a3e-0d2f7a3b1c55\")", "true"),
            ("(uuid? \"a\")", "false"),
            ("(uuid?)", "!arity_error"),
        ],
    ),
];

/// Returns true for groups of 8, 4, 4, 4 and 12 hexadecimal digits with `-` between them.
fn is_uuid(text: &str) -> bool {
    let is_right = |(i, b): (usize, u8)| match i {
        8 | 13 | 18 | 23 => b == b'-',
        _ => b.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_right)
}

fn parse_uuid<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Some(text) = args[0].as_str().filter(|text| is_uuid(text)) else { return Ok(Value::Nil) };
    h.charge(cost::scanned(text.len()))?;
    h.str(&text.to_ascii_lowercase())
}
