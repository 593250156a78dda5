//! The values of literals, from the text of their tokens.

use super::form::FormKind;
use super::hidden::is_hidden;
use super::lexer::CHARACTER_NAMES;
use num_bigint::BigInt;
use unicode_segmentation::UnicodeSegmentation;

/// The maximum number of digits before the point of a number. A literal is read before any limit applies, in time
/// proportional to the square of its digits.
pub(super) const DIGITS: usize = 100;

/// Why a text that starts like a number is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberFault {
    /// It does not continue like a number: `10-3`, `3x`.
    Malformed,
    /// `010`, which is eight where leading zeros mean octal digits, and ten elsewhere.
    LeadingZero,
    /// An invalid radix, or a digit outside of it: `37r1`, `2r3`.
    Radix,
    /// `1/2`
    Ratio,
    /// `1.5M`
    ExactDecimal,
    /// More digits before the point than the limit.
    Digits(usize),
    /// A float beyond the largest one.
    OutOfRange,
}

/// Returns the value of a number's text.
pub(super) fn number(text: &str) -> Result<FormKind, NumberFault> {
    let is_negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = unsigned.strip_suffix('N').unwrap_or(unsigned);
    if are_digits(whole) {
        return decimal(whole, is_negative);
    }
    if let Some(digits) = whole.strip_prefix("0x").or_else(|| whole.strip_prefix("0X")) {
        return integer(digits, 16, is_negative)?.ok_or(NumberFault::Malformed);
    }
    if let Some((radix, digits)) = unsigned.split_once(['r', 'R'])
        && are_digits(radix)
        && !digits.is_empty()
    {
        let known = radix.parse().ok().filter(|radix| (2..=36).contains(radix) && !unsigned.starts_with('0'));
        return integer(digits, known.ok_or(NumberFault::Radix)?, is_negative)?.ok_or(NumberFault::Radix);
    }
    if unsigned.split_once('/').is_some_and(|(above, below)| are_digits(above) && are_digits(below)) {
        return Err(NumberFault::Ratio);
    }
    let float = unsigned.strip_suffix('M').unwrap_or(unsigned);
    match is_float(float) {
        false => Err(NumberFault::Malformed),
        true if float.len() < unsigned.len() => Err(NumberFault::ExactDecimal),
        true => self::float(text, float),
    }
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns true for `1.5e3`, with or without its point and exponent.
fn is_float(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    let rest = text.trim_start_matches(is_digit);
    let rest = rest.strip_prefix('.').map_or(rest, |fraction| fraction.trim_start_matches(is_digit));
    match rest.strip_prefix(['e', 'E']) {
        Some(exponent) => are_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)),
        None => rest.is_empty(),
    }
}

/// Returns an integer of decimal digits. Leading zeros are accepted if octal digits would mean the same.
fn decimal(digits: &str, is_negative: bool) -> Result<FormKind, NumberFault> {
    let digits = match digits.trim_start_matches('0') {
        significant if significant.len() == digits.len() => digits,
        "" => "0",
        octal @ ("1" | "2" | "3" | "4" | "5" | "6" | "7") => octal,
        _ => return Err(NumberFault::LeadingZero),
    };
    integer(digits, 10, is_negative)?.ok_or(NumberFault::Malformed)
}

/// Returns an integer of digits of any radix; `None` if there are other characters.
fn integer(digits: &str, radix: u32, is_negative: bool) -> Result<Option<FormKind>, NumberFault> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Ok(None);
    }
    if digits.len() > DIGITS {
        return Err(NumberFault::Digits(digits.len()));
    }
    let Some(value) = BigInt::parse_bytes(digits.as_bytes(), radix) else { return Ok(None) };
    let value = if is_negative { -value } else { value };
    Ok(Some(i64::try_from(&value).map_or_else(|_| FormKind::Big(value), FormKind::Int)))
}

fn float(text: &str, unsigned: &str) -> Result<FormKind, NumberFault> {
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    if digits > DIGITS {
        return Err(NumberFault::Digits(digits));
    }
    let value = text.parse().ok().filter(|value: &f64| value.is_finite());
    value.map(FormKind::Float).ok_or(NumberFault::OutOfRange)
}

/// Returns the value of a text such as `##Inf`.
pub(super) fn symbolic(text: &str) -> Option<f64> {
    match text {
        "##Inf" => Some(f64::INFINITY),
        "##-Inf" => Some(f64::NEG_INFINITY),
        "##NaN" => Some(f64::NAN),
        _ => None,
    }
}

/// Why a text after a backslash is not a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharacterFault {
    /// It would be invisible there.
    Hidden,
    /// `\u` without exactly four hexadecimal digits of a complete character
    Unicode,
    /// `\o` without octal digits up to 377
    Octal,
    /// More than one character, and not a name
    Unknown,
}

/// Returns the value of a character literal's text.
pub(super) fn character(text: &str) -> Result<Box<str>, CharacterFault> {
    let name = text.strip_prefix('\\').unwrap_or(text);
    if let Some((_, value)) = CHARACTER_NAMES.iter().find(|(known, _)| name == *known) {
        return Ok(Box::from(*value));
    }
    if name.graphemes(true).nth(1).is_none() {
        let hidden = name.chars().any(|c| is_hidden(c) && !matches!(c, '\t' | '\n' | '\r'));
        return if hidden { Err(CharacterFault::Hidden) } else { Ok(Box::from(name)) };
    }
    let of_code = |c: char| Box::from(c.encode_utf8(&mut [0; 4]) as &str);
    if let Some(octal) = name.strip_prefix('o') {
        let code = Some(octal).filter(|octal| octal.len() <= 3 && octal.bytes().all(|b| matches!(b, b'0'..=b'7')));
        let code = code.and_then(|octal| u8::from_str_radix(octal, 8).ok());
        return code.map(|code| of_code(code.into())).ok_or(CharacterFault::Octal);
    }
    if name.starts_with('u') && name.chars().skip(1).all(|c| c.is_ascii_hexdigit()) {
        let code = Some(name).filter(|name| name.len() == "uXXXX".len()).and_then(unicode);
        return code.map(of_code).ok_or(CharacterFault::Unicode);
    }
    Err(CharacterFault::Unknown)
}

/// Returns the character of a text that starts with `uXXXX`, four hexadecimal digits; `None` for half of a surrogate
/// pair.
pub(super) fn unicode(text: &str) -> Option<char> {
    char::from_u32(unit(text)?)
}

fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// Returns the character that starts with `uXXXX`, or with two of them for a surrogate pair, and the length of that.
fn unicode_pair(text: &str) -> Option<(char, usize)> {
    const LENGTH: usize = "uXXXX".len();
    if let Some(c) = unicode(text) {
        return Some((c, LENGTH));
    }
    let second = text.get(LENGTH..)?.strip_prefix('\\')?;
    let units = [unit(text)?, unit(second)?].map(|unit| u16::try_from(unit).unwrap_or_default());
    Some((char::decode_utf16(units).next()?.ok()?, 2 * LENGTH + 1))
}

/// Returns the value of the text between the quotes of a string. A backslash before a character that it does not change
/// is kept, so that a pattern in a string needs no second one. A regex literal is its pattern unchanged.
pub(super) fn unescape(body: &str) -> Box<str> {
    let mut rest = body;
    let mut value = String::with_capacity(body.len());
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        value.push_str(before);
        if let Some((c, length)) = unicode_pair(&escape[1..]) {
            value.push(c);
            rest = &escape[1 + length..];
            continue;
        }
        let decoded = match escape.as_bytes().get(1) {
            Some(b'\\') => Some('\\'),
            Some(b'"') => Some('"'),
            Some(b'n') => Some('\n'),
            Some(b't') => Some('\t'),
            Some(b'r') => Some('\r'),
            _ => None,
        };
        value.push(decoded.unwrap_or('\\'));
        rest = escape.get(if decoded.is_some() { 2 } else { 1 }..).unwrap_or("");
    }
    value.push_str(rest);
    value.into_boxed_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        let big = "1".repeat(DIGITS);
        for (text, value) in [
            ("-0", 0),
            ("+41", 41),
            ("007", 7),
            ("-00", 0),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("10N", 10),
            ("-0xfF", -255),
            ("0X1fN", 31),
            ("2r101", 5),
            ("-36rZz", -1295),
        ] {
            assert_eq!(number(text), Ok(FormKind::Int(value)), "{text}");
        }
        for text in [
            "9223372036854775808",
            "0x8000000000000000",
            "2r1000000000000000000000000000000000000000000000000000000000000000",
        ] {
            assert_eq!(number(text), Ok(FormKind::Big(BigInt::from(1_u64 << 63))), "{text}");
        }
        assert_eq!(number(&format!("-{big}")).ok(), big.parse().ok().map(|n: BigInt| FormKind::Big(-n)));
    }

    #[test]
    fn what_is_no_number() {
        use NumberFault::{Digits, ExactDecimal, LeadingZero, Malformed, OutOfRange, Radix, Ratio};
        for (text, fault) in [
            ("10-3", Malformed),
            ("3x", Malformed),
            ("1_000", Malformed),
            ("1e", Malformed),
            ("1.5.2", Malformed),
            ("0x", Malformed),
            ("0xg", Malformed),
            ("1/", Malformed),
            ("1/-2", Malformed),
            ("1.5N", Malformed),
            ("1r", Malformed),
            ("010", LeadingZero),
            ("-08", LeadingZero),
            ("0017N", LeadingZero),
            ("37r1", Radix),
            ("1r0", Radix),
            ("2r2", Radix),
            ("08r1", Radix),
            ("99999999999r1", Radix),
            ("1/2", Ratio),
            ("1/0", Ratio),
            ("1M", ExactDecimal),
            ("-1.5e3M", ExactDecimal),
            ("1e999", OutOfRange),
            ("-1e99999999999999999999", OutOfRange),
        ] {
            assert_eq!(number(text), Err(fault), "{text}");
        }
        for text in
            ["1".repeat(DIGITS + 1), format!("0x{}", "f".repeat(DIGITS + 1)), format!("{}.5", "1".repeat(DIGITS + 1))]
        {
            assert_eq!(number(&text), Err(Digits(DIGITS + 1)), "{text}");
        }
    }

    #[test]
    fn floats() {
        for (text, value) in
            [("-2.5e10", -2.5e10), ("1E5", 100_000.0), ("5.", 5.0), ("1.e+2", 100.0), ("08.5", 8.5), ("+1e-999", 0.0)]
        {
            assert_eq!(number(text), Ok(FormKind::Float(value)), "{text}");
        }
        let Ok(FormKind::Float(zero)) = number("-0.0") else { panic!("no float") };
        assert_eq!(zero.to_bits(), (-0.0_f64).to_bits());
        assert_eq!(number(&format!("0.{}", "1".repeat(100_000))), Ok(FormKind::Float(1.0 / 9.0)));
    }

    #[test]
    fn characters() {
        for (text, value) in [
            ("\\newline", "\n"),
            ("\\n", "n"),
            ("\\λ", "λ"),
            ("\\o\u{308}", "o\u{308}"),
            ("\\😀", "😀"),
            ("\\u0041", "A"),
            ("\\u", "u"),
            ("\\o", "o"),
            ("\\o101", "A"),
            ("\\o7", "\u{7}"),
            ("\\o377", "ÿ"),
            ("\\\n", "\n"),
        ] {
            assert_eq!(character(text).as_deref(), Ok(value), "{text}");
        }
        use CharacterFault::{Hidden, Octal, Unicode, Unknown};
        for (text, fault) in [
            ("\\\0", Hidden),
            ("\\\u{202e}", Hidden),
            ("\\u12", Unicode),
            ("\\u00410", Unicode),
            ("\\ud800", Unicode),
            ("\\o400", Octal),
            ("\\o8", Octal),
            ("\\o0101", Octal),
            ("\\newlines", Unknown),
            ("\\ab", Unknown),
            ("\\uwe", Unknown),
        ] {
            assert_eq!(character(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn escapes() {
        let cases = [
            ("", ""),
            ("abc", "abc"),
            (r#"a\"b"#, "a\"b"),
            (r"\\n", r"\n"),
            (r"\n\t\r\\", "\n\t\r\\"),
            (r"a\qb", r"a\qb"),
            (r"\d\λ\0", r"\d\λ\0"),
            (r"\u00zz", r"\u00zz"),
            (r"\q\\\q", r"\q\\q"),
            (r"\u0041b", "Ab"),
            (r"\\u0041", r"\u0041"),
            (r"\u00e", r"\u00e"),
            (r"C:\users", r"C:\users"),
            (r"\uD83D\uDE00!", "\u{1F600}!"),
            (r"\uD83D", r"\uD83D"),
            (r"\u", r"\u"),
        ];
        for (body, expected) in cases {
            assert_eq!(&*unescape(body), expected, "{body}");
        }
    }
}
