//! Numbers and booleans from text. Invalid input gives nil, never an error.

use super::Builtin;
use super::numbers::integer_of;
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Res, Value};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("parse-long", 1, 1, "(parse-long s)", parse_long).aliases(&["parse-int"]).doc(
        "Parses a 64-bit integer; nil for any other string.",
        &[
            ("(parse-long \"42\")", "42"),
            ("(parse-long \"-7\")", "-7"),
            ("(parse-long \"3.14\")", "nil"),
            ("(parse-long nil)", "nil"),
            ("(parse-long)", "!arity_error"),
        ],
    ),
    Builtin::direct("parse-double", 1, 1, "(parse-double s)", parse_double).doc(
        "Parses a float; nil for any other string.",
        &[
            ("(parse-double \"1e3\")", "1000.0"),
            ("(parse-double \"42\")", "42.0"),
            ("(parse-double \"-Infinity\")", "##-Inf"),
            ("(parse-double \"abc\")", "nil"),
            ("(parse-double)", "!arity_error"),
        ],
    ),
    Builtin::direct("parse-number", 1, 1, "(parse-number x)", parse_number).aliases(&["to-number"]).doc(
        "Parses a number, ignoring surrounding spaces; returns a number unchanged, and nil for anything else.",
        &[
            ("(map parse-number [\"42\" \" -1.5 \" 7 \"n/a\" nil])", "[42 -1.5 7 nil nil]"),
            ("(parse-number \"12345678901234567890\")", "12345678901234567890"),
            ("(parse-number)", "!arity_error"),
        ],
    ),
    Builtin::direct("parse-boolean", 1, 1, "(parse-boolean s)", parse_boolean).doc(
        "true for \"true\", false for \"false\", else nil.",
        &[
            ("(parse-boolean \"true\")", "true"),
            ("(parse-boolean \"TRUE\")", "nil"),
            ("(parse-boolean)", "!arity_error"),
        ],
    ),
];

/// Parses an integer: an optional sign and decimal digits, within 64 bits.
pub(super) fn long(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Parses a float: decimal, with digits on both sides of a point and an optional exponent; or a name such as that of
/// NaN. `None` beyond the range of floats.
pub(super) fn double(text: &str) -> Option<f64> {
    match text {
        "Infinity" | "+Infinity" => return Some(f64::INFINITY),
        "-Infinity" => return Some(f64::NEG_INFINITY),
        "NaN" => return Some(f64::NAN),
        _ => {}
    }
    let mut rest = after_digits(text.strip_prefix(['+', '-']).unwrap_or(text))?;
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = after_digits(fraction)?;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        rest = after_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))?;
    }
    if !rest.is_empty() {
        return None;
    }
    text.parse::<f64>().ok().filter(|f| f.is_finite())
}

/// Returns the rest of the text after at least one digit.
fn after_digits(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}

fn parse_long<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let &[Value::Str(s)] = args else { return Ok(Value::Nil) };
    h.charge(cost::scanned(s.text().len()))?;
    Ok(long(s.text()).map_or(Value::Nil, Value::Int))
}

fn parse_double<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let &[Value::Str(s)] = args else { return Ok(Value::Nil) };
    h.charge(cost::parsed(s.text().len()))?;
    Ok(double(s.text()).map_or(Value::Nil, Value::Float))
}

fn parse_number<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = match args[0] {
        Value::Int(_) | Value::Big(_) | Value::Float(_) => return Ok(args[0]),
        Value::Str(s) => s.text(),
        _ => return Ok(Value::Nil),
    };
    h.charge(cost::parsed(text.len()))?;
    let text = text.trim();
    if let Some(i) = long(text) {
        return Ok(Value::Int(i));
    }
    if let Some(big) = integer_of(h, "parse-number", text)? {
        return Ok(big);
    }
    Ok(double(text).filter(|f| f.is_finite()).map_or(Value::Nil, Value::Float))
}

fn parse_boolean<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(match args.first().and_then(|v| v.as_str()) {
        Some("true") => Value::Bool(true),
        Some("false") => Value::Bool(false),
        _ => Value::Nil,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_need_digits_on_both_sides() {
        for bad in ["", "+", ".5", "5.", "1e", "1e+", " 1", "1 ", "0x1", "1_0", "inf", "1e400", "١"] {
            assert_eq!(double(bad), None, "{bad:?}");
        }
        for (text, f) in [("1", 1.0), ("-1.5", -1.5), ("+2E2", 200.0), ("1e-2", 0.01), ("007", 7.0)] {
            assert_eq!(double(text), Some(f), "{text:?}");
        }
    }

    #[test]
    fn integers_fit_64_bits() {
        for bad in ["", "-", "+-1", "1.0", " 1", "9223372036854775808", "1_000"] {
            assert_eq!(long(bad), None, "{bad:?}");
        }
        assert_eq!(long("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(long("+5"), Some(5));
    }
}
