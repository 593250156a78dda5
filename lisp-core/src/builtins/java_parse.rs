//! The parsers of `java.lang.Integer`, `Long`, `Double`, `Float` and `Boolean`. Unlike `parse-long` and its kin they
//! fail on what they cannot read.

use super::Builtin;
use super::java::{null, out_of_domain, text};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Heap, Res, Value};

const fn parser(
    name: &'static str,
    usage: &'static str,
    imp: super::DirectImp,
    alias: &'static [&'static str],
) -> Builtin {
    Builtin::direct(name, 1, 1, usage, imp).aliases(alias).namespace("java")
}

const fn with_radix(
    name: &'static str,
    usage: &'static str,
    imp: super::DirectImp,
    alias: &'static [&'static str],
) -> Builtin {
    Builtin::direct(name, 1, 2, usage, imp).aliases(alias).namespace("java")
}

pub(super) const TABLE: &[Builtin] = &[
    with_radix(
        "Integer/parseInt",
        "(Integer/parseInt s radix)",
        parse_int,
        &[
            "java.lang.Integer/parseInt",
            "Integer/valueOf",
            "java.lang.Integer/valueOf",
            "Integer.",
            "java.lang.Integer.",
        ],
    )
    .doc(
        "The integer of 32 bits that a text says, exactly, in decimal digits or those of another base.",
        &[
            ("(Integer/parseInt \"-42\")", "-42"),
            ("(Integer/parseInt \"ff\" 16)", "255"),
            ("(Integer/parseInt \"42.5\")", "!java_domain_error"),
            ("(Integer/parseInt \"2147483648\")", "!java_domain_error"),
            ("(Integer/parseInt 42)", "!java_type_error"),
        ],
    ),
    with_radix(
        "Long/parseLong",
        "(Long/parseLong s radix)",
        parse_long,
        &["java.lang.Long/parseLong", "Long/valueOf", "java.lang.Long/valueOf", "Long.", "java.lang.Long."],
    )
    .doc(
        "The integer of 64 bits that a text says, exactly, in decimal digits or those of another base.",
        &[
            ("(Long/parseLong \"+42\")", "42"),
            ("(Long/parseLong \" 1\")", "!java_domain_error"),
            ("(Long/parseLong 42)", "!java_type_error"),
        ],
    ),
    parser(
        "Double/parseDouble",
        "(Double/parseDouble s)",
        parse_double,
        &["java.lang.Double/parseDouble", "Double/valueOf", "java.lang.Double/valueOf", "Double.", "java.lang.Double."],
    )
    .doc(
        "The float that a text says: decimal, hexadecimal, Infinity or NaN; white space around it does not matter.",
        &[
            ("(Double/parseDouble \" 1.5 \")", "1.5"),
            ("(Double/parseDouble \"0x1.8p0\")", "1.5"),
            ("(Double/parseDouble \"x\")", "!java_domain_error"),
            ("(Double/parseDouble 1)", "!java_type_error"),
        ],
    ),
    parser("Float/parseFloat", "(Float/parseFloat s)", parse_float, &["java.lang.Float/parseFloat"]).doc(
        "The float of 32 bits that a text says.",
        &[
            ("(Float/parseFloat \"1.5\")", "1.5"),
            ("(Float/parseFloat \"x\")", "!java_domain_error"),
            ("(Float/parseFloat 1)", "!java_type_error"),
        ],
    ),
    parser("Boolean/parseBoolean", "(Boolean/parseBoolean s)", parse_boolean, &["java.lang.Boolean/parseBoolean"]).doc(
        "Is the text \"true\", in capitals or not? Every other text, and nil, is false.",
        &[
            ("(Boolean/parseBoolean \"TRUE\")", "true"),
            ("(Boolean/parseBoolean \"yes\")", "false"),
            ("(Boolean/parseBoolean true)", "!java_type_error"),
        ],
    ),
];

fn parse_int<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    integer(h, "Integer/parseInt", args, i64::from(i32::MIN), i64::from(i32::MAX))
}

fn parse_long<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    integer(h, "Long/parseLong", args, i64::MIN, i64::MAX)
}

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

/// The beginning of a text, in quotation marks.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(40).collect::<String>())
}

/// An optional sign and digits of a base, nothing else.
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

/// The zeroes of the scripts of the basic plane that write decimal numbers; the other nine digits follow each.
const ZEROES: &[u32] = &[
    0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6,
    0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40,
    0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
];

/// The number that a decimal digit of any script is.
pub(super) fn decimal_digit(c: char) -> Option<u32> {
    let code = u32::from(c);
    let after = ZEROES.partition_point(|&zero| zero <= code);
    let zero = ZEROES.get(after.checked_sub(1)?)?;
    Some(code - zero).filter(|&digit| digit < 10)
}

fn parse_double<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    floating(h, "Double/parseDouble", args[0], &Format { bits: 53, least: -1_074 }, |text| text.parse().ok())
}

fn parse_float<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    // Rounded once, to 32 bits: by way of 64 bits it would be rounded twice.
    let decimal = |text: &str| text.parse::<f32>().ok().map(f64::from);
    floating(h, "Float/parseFloat", args[0], &Format { bits: 24, least: -149 }, decimal)
}

/// A binary floating-point format.
struct Format {
    /// Bits of precision.
    bits: u32,
    /// The exponent of the least positive number.
    least: i64,
}

fn floating<'h>(
    h: &'h Heap,
    name: &str,
    arg: Value<'h>,
    format: &Format,
    decimal: impl Fn(&str) -> Option<f64>,
) -> Res<Value<'h>> {
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
        _ if magnitude.starts_with("0x") || magnitude.starts_with("0X") => hexadecimal(&magnitude[2..], format),
        _ => decimal_text(magnitude).and_then(decimal),
    };
    match number {
        Some(number) => Ok(Value::Float(if negative { -number } else { number })),
        None => Err(out_of_domain(name, &format!("{} is not a floating-point number", shown(whole)))),
    }
}

/// The text without the letter of a type, when the rest is digits with an optional point and exponent.
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

/// Hexadecimal digits with an optional point, and a binary exponent: `1.8p0`.
fn hexadecimal(text: &str, format: &Format) -> Option<f64> {
    let text = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (sign, exponent) = match exponent.as_bytes().first()? {
        b'-' => (-1, &exponent[1..]),
        b'+' => (1, &exponent[1..]),
        _ => (1, exponent),
    };
    if exponent.is_empty() || !exponent.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // An exponent too long to read is larger than any length of the text can make up for.
    const HUGE: i64 = 1 << 48;
    let exponent = sign * exponent.parse::<i64>().unwrap_or(HUGE).min(HUGE);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The first sixteen significant digits, how many came after them, and whether one of those is not 0.
    let (mut mantissa, mut dropped, mut inexact) = (0u64, 0i64, false);
    for c in whole.chars().chain(fraction.chars()) {
        let digit = c.to_digit(16)?;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | u64::from(digit);
        } else {
            dropped += 1;
            inexact |= digit != 0;
        }
    }
    let places = i64::try_from(fraction.len()).unwrap_or(HUGE);
    Some(nearest(mantissa, exponent + 4 * (dropped - places), inexact, format))
}

/// The number of a format that is nearest to `mantissa` times two to the power of `exponent`, plus a little more when
/// `inexact`; of two equally near ones the even one.
fn nearest(mantissa: u64, exponent: i64, inexact: bool, format: &Format) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let order = i64::from(63 - mantissa.leading_zeros()) + exponent;
    if order > 1_100 {
        return f64::INFINITY;
    }
    // The exponent of the result's last bit.
    let last = (order - i64::from(format.bits) + 1).max(format.least);
    let rounded = match last - exponent {
        shift if shift <= 0 => mantissa << (-shift).min(63),
        shift if shift > 64 => 0,
        shift => {
            let (kept, rest) =
                if shift == 64 { (0, mantissa) } else { (mantissa >> shift, mantissa & ((1 << shift) - 1)) };
            let half = 1u64 << (shift - 1);
            let up = rest > half || (rest == half && (inexact || kept & 1 == 1));
            kept + u64::from(up)
        }
    };
    // In two steps, so that neither power of two is out of range; the product is exact.
    let Ok(last) = i32::try_from(last) else { return 0.0 };
    let number = rounded as f64 * 2f64.powi(last / 2) * 2f64.powi(last - last / 2);
    if format.bits == 24 && number > f64::from(f32::MAX) { f64::INFINITY } else { number }
}

fn parse_boolean<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(1)?;
    let text = text("Boolean/parseBoolean", args[0])?.unwrap_or_default();
    Ok(Value::Bool(text.eq_ignore_ascii_case("true")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: Format = Format { bits: 53, least: -1_074 };
    const FLOAT: Format = Format { bits: 24, least: -149 };

    #[test]
    fn hexadecimal_numbers() {
        for (text, number) in [
            ("1.8p0", 1.5),
            ("1p-0000001", 0.5),
            (".8p1", 1.0),
            ("1.fffffffffffff8p1023", f64::INFINITY),
            ("1.fffffffffffff7p1023", f64::MAX),
            ("0.0000000000001p-1022", 5e-324),
            ("0.00000000000008p-1022", 0.0),
            ("0.000000000000080001p-1022", 5e-324),
            ("1.00000000000008p0", 1.0),
            ("1.000000000000080000000000000000001p0", 1.0 + f64::EPSILON),
            ("1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON),
            ("10000000000000000000000000p-100", 1.0),
            ("0p99999999999999999999", 0.0),
            ("1p99999999999999999999", f64::INFINITY),
            ("1p-99999999999999999999", 0.0),
        ] {
            assert_eq!(hexadecimal(text, &DOUBLE), Some(number), "{text}");
        }
        assert_eq!(hexadecimal("1.ffffffp127f", &FLOAT), Some(f64::INFINITY));
        assert_eq!(hexadecimal("0.000001p-126", &FLOAT), Some(0.0));
        for text in ["p0", "1", "1p", "1p+", ".p0", "1.g", "1p0x", "-1p0"] {
            assert_eq!(hexadecimal(text, &DOUBLE), None, "{text}");
        }
    }

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
