//! The parsers of `java.lang.Integer`, `Long`, `Double`, `Float` and `Boolean`. Unlike `parse-long` and the like they
//! fail on invalid input.

use super::Builtin;
use super::java::{null, out_of_domain, text};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Heap, Res, Value};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::java("Integer/parseInt", 1, 2, "(Integer/parseInt s radix)", |h, args| {
        integer(h, "Integer/parseInt", args, i64::from(i32::MIN), i64::from(i32::MAX))
    })
    .aliases(&["Integer/valueOf", "Integer."])
    .doc(
        "Parses a 32-bit integer, in base 10 or the given base.",
        &[
            ("(Integer/parseInt \"-42\")", "-42"),
            ("(Integer/parseInt \"ff\" 16)", "255"),
            ("(Integer/parseInt \"42.5\")", "!java_domain_error"),
            ("(Integer/parseInt \"2147483648\")", "!java_domain_error"),
            ("(Integer/parseInt 42)", "!java_type_error"),
        ],
    ),
    Builtin::java("Long/parseLong", 1, 2, "(Long/parseLong s radix)", |h, args| {
        integer(h, "Long/parseLong", args, i64::MIN, i64::MAX)
    })
    .aliases(&["Long/valueOf", "Long."])
    .doc(
        "Parses a 64-bit integer, in base 10 or the given base.",
        &[
            ("(Long/parseLong \"+42\")", "42"),
            ("(Long/parseLong \" 1\")", "!java_domain_error"),
            ("(Long/parseLong 42)", "!java_type_error"),
        ],
    ),
    Builtin::java("Double/parseDouble", 1, 1, "(Double/parseDouble s)", |h, args| {
        floating(h, "Double/parseDouble", args[0], |text| text.parse().ok())
    })
    .aliases(&["Double/valueOf", "Double."])
    .doc(
        "Parses a float: decimal, Infinity or NaN; surrounding white space is ignored.",
        &[
            ("(Double/parseDouble \" 1.5 \")", "1.5"),
            ("(Double/parseDouble \"0x1.8p0\")", "!java_domain_error"),
            ("(Double/parseDouble \"x\")", "!java_domain_error"),
            ("(Double/parseDouble 1)", "!java_type_error"),
        ],
    ),
    Builtin::java("Float/parseFloat", 1, 1, "(Float/parseFloat s)", parse_float).doc(
        "Parses a 32-bit float.",
        &[
            ("(Float/parseFloat \"1.5\")", "1.5"),
            ("(Float/parseFloat \"x\")", "!java_domain_error"),
            ("(Float/parseFloat 1)", "!java_type_error"),
        ],
    ),
    Builtin::java("Boolean/parseBoolean", 1, 1, "(Boolean/parseBoolean s)", parse_boolean).doc(
        "Returns true for \"true\" in any case, and false for any other string and nil.",
        &[
            ("(Boolean/parseBoolean \"TRUE\")", "true"),
            ("(Boolean/parseBoolean \"yes\")", "false"),
            ("(Boolean/parseBoolean true)", "!java_type_error"),
        ],
    ),
];

fn integer<'h>(h: &'h Heap, name: &str, args: &[Value<'h>], min: i64, max: i64) -> Res<Value<'h>> {
    let given = text(name, args[0])?;
    let radix = args.get(1).map_or(Ok(10), |&radix| super::java::int(name, radix))?;
    let text = given.ok_or_else(|| null(name))?;
    h.charge(cost::parsed(text.len()) + 1)?;
    if !(2..=36).contains(&radix) {
        return Err(out_of_domain(name, &format!("a base is from 2 to 36, got {radix}")));
    }
    match exact_integer(text, radix) {
        None if radix != 10 => Err(out_of_domain(
            name,
            &format!("{} is not a whole number of 64 bits in digits of base {radix}", shown(text)),
        )),
        Some(n) if (min..=max).contains(&n) => Ok(Value::Int(n)),
        Some(_) => Err(out_of_domain(name, &format!("{} is not from {min} to {max}", shown(text)))),
        None => Err(out_of_domain(name, &format!("{} is not a whole number in decimal digits", shown(text)))),
    }
}

/// Returns the beginning of a text, in quotation marks.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(40).collect::<String>())
}

/// Parses an optional sign and digits of a base, and nothing else.
fn exact_integer(text: &str, radix: i64) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    let mut sum: i64 = 0;
    for c in digits.chars() {
        let digit = i64::from(decimal_digit(c).or_else(|| c.to_digit(36))?);
        if digit >= radix {
            return None;
        }
        sum = sum.checked_mul(radix)?;
        sum = if negative { sum.checked_sub(digit)? } else { sum.checked_add(digit)? };
    }
    Some(sum)
}

/// The zeros of the scripts of the basic plane with decimal digits; the other nine digits follow each.
const ZEROES: &[u32] = &[
    0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6,
    0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40,
    0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
];

/// Returns the value of a decimal digit of any script.
pub(super) fn decimal_digit(c: char) -> Option<u32> {
    let code = u32::from(c);
    let after = ZEROES.partition_point(|&zero| zero <= code);
    let zero = ZEROES.get(after.checked_sub(1)?)?;
    Some(code - zero).filter(|&digit| digit < 10)
}

fn parse_float<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    // Rounded once, to 32 bits: via 64 bits it would be rounded twice.
    floating(h, "Float/parseFloat", args[0], |text| text.parse::<f32>().ok().map(f64::from))
}

fn floating<'h>(h: &'h Heap, name: &str, arg: Value<'h>, decimal: impl Fn(&str) -> Option<f64>) -> Res<Value<'h>> {
    let whole = text(name, arg)?.ok_or_else(|| null(name))?;
    h.charge(whole.len() as u64 / cost::NUMBER_BYTES_PER_UNIT + 1)?;
    let text = whole.trim_matches(|c| c <= ' ');
    let (negative, magnitude) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let number = match magnitude {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        _ => decimal_text(magnitude).and_then(decimal),
    };
    match number {
        Some(number) => Ok(Value::Float(if negative { -number } else { number })),
        None if magnitude.starts_with("0x") || magnitude.starts_with("0X") => Err(out_of_domain(
            name,
            &format!("{} is not a decimal number, and other notations of floats are not supported", shown(whole)),
        )),
        None => Err(out_of_domain(name, &format!("{} is not a floating-point number", shown(whole)))),
    }
}

/// Returns the text without the letter of a type, if the rest is digits with an optional point and exponent.
fn decimal_text(text: &str) -> Option<&str> {
    let text = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.get(from..).map_or(0, |b| b.iter().take_while(|b| b.is_ascii_digit()).count());
    let mut at = digits(0);
    let mut count = at;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        at += 1 + fraction;
        count += fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        let exponent = digits(at);
        if exponent == 0 {
            return None;
        }
        at += exponent;
    }
    (count > 0 && at == bytes.len()).then_some(text)
}

fn parse_boolean<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(1)?;
    let text = text("Boolean/parseBoolean", args[0])?.unwrap_or_default();
    Ok(Value::Bool(text.eq_ignore_ascii_case("true")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_texts() {
        for text in ["1", "1.", ".5", "1e5", "1.5E-0000001d", "007f"] {
            assert!(decimal_text(text).is_some(), "{text}");
        }
        for text in ["", ".", "e5", "1e", "1e+", "1_0", "1.5.2", "inf", "nan", "1ff", "d"] {
            assert!(decimal_text(text).is_none(), "{text}");
        }
    }

    #[test]
    fn integers() {
        for (text, number) in [
            ("+2147483647", Some(2_147_483_647)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("١٢", Some(12)),
            ("１２", Some(12)),
            ("00000000000000000000000007", Some(7)),
            ("", None),
            ("-", None),
            ("+-1", None),
            ("1 ", None),
            ("\u{1D7CE}", None),
        ] {
            assert_eq!(exact_integer(text, 10), number, "{text}");
        }
    }
}
