//! The values of literals, from the text of their tokens.

use super::form::FormKind;
use super::hidden::is_hidden;
use super::lexer::CHARACTER_NAMES;
use num_bigint::BigInt;

/// The most digits before the point of a number. A literal is read before any budget counts, and reading one takes time
/// in proportion to the square of its digits.
pub(super) const DIGITS: usize = 100;

/// The digits before the point or exponent of a number's text.
pub(super) fn digits(text: &str) -> usize {
    let text = text.trim_start_matches('-');
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => hex.len(),
        None => text.bytes().take_while(u8::is_ascii_digit).count(),
    }
}

/// The value of an integer's text.
pub(super) fn integer(text: &str) -> Option<FormKind> {
    let text = text.strip_suffix('N').unwrap_or(text);
    if let Some(digits) = text.trim_start_matches('-').strip_prefix(['0']).and_then(|t| t.strip_prefix(['x', 'X'])) {
        let value = BigInt::parse_bytes(digits.as_bytes(), 16)?;
        let value = if text.starts_with('-') { -value } else { value };
        return Some(i64::try_from(&value).map_or(FormKind::Big(value), FormKind::Int));
    }
    match text.parse() {
        Ok(small) => Some(FormKind::Int(small)),
        Err(_) => text.parse::<BigInt>().ok().map(FormKind::Big),
    }
}

/// The value of a float's text, unless it is beyond the largest float.
pub(super) fn float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The value of a text such as `##Inf`.
pub(super) fn symbolic(text: &str) -> Option<f64> {
    match text {
        "##Inf" => Some(f64::INFINITY),
        "##-Inf" => Some(f64::NEG_INFINITY),
        "##NaN" => Some(f64::NAN),
        _ => None,
    }
}

/// The value of a character literal's text, unless the character could not be seen there.
pub(super) fn character(text: &str) -> Option<Box<str>> {
    let name = text.strip_prefix('\\')?;
    if name.len() > 1
        && let Some(c) = unicode(name)
    {
        return Some(String::from(c).into());
    }
    if let Some((_, value)) = CHARACTER_NAMES.iter().find(|(known, _)| name == *known) {
        return Some(Box::from(*value));
    }
    let hidden = name.chars().any(|c| is_hidden(c) && !matches!(c, '\t' | '\n' | '\r'));
    (!hidden).then(|| Box::from(name))
}

/// The character of a text that begins with `uXXXX`, four hexadecimal digits; none for half of a character of two units.
pub(super) fn unicode(text: &str) -> Option<char> {
    char::from_u32(unit(text)?)
}

fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// The character that begins with `uXXXX`, or with two of them for its two units, and how long that is.
fn unicode_pair(text: &str) -> Option<(char, usize)> {
    const LENGTH: usize = "uXXXX".len();
    if let Some(c) = unicode(text) {
        return Some((c, LENGTH));
    }
    let second = text.get(LENGTH..)?.strip_prefix('\\')?;
    let units = [unit(text)?, unit(second)?].map(|unit| u16::try_from(unit).unwrap_or_default());
    Some((char::decode_utf16(units).next()?.ok()?, 2 * LENGTH + 1))
}

/// The value of what stands between the quotes of a string. A backslash before a character that it does not change
/// stays, so that a pattern in a string needs no second one; a regex literal is its pattern as it stands.
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
        assert_eq!(integer("-0"), Some(FormKind::Int(0)));
        assert_eq!(integer("0041"), Some(FormKind::Int(41)));
        assert_eq!(integer("9223372036854775807"), Some(FormKind::Int(i64::MAX)));
        assert_eq!(integer("-9223372036854775808"), Some(FormKind::Int(i64::MIN)));
        assert_eq!(integer("9223372036854775808"), Some(FormKind::Big(BigInt::from(1_u64 << 63))));
        assert_eq!(integer(&format!("-{big}")), big.parse().ok().map(|n: BigInt| FormKind::Big(-n)));
        assert_eq!(integer("10N"), Some(FormKind::Int(10)));
        assert_eq!(integer("-0xfF"), Some(FormKind::Int(-255)));
        assert_eq!(integer("0x8000000000000000"), Some(FormKind::Big(BigInt::from(1_u64 << 63))));
        assert_eq!((digits("-12"), digits("12.345"), digits("12e7"), digits(&big)), (2, 2, 2, 100));
    }

    #[test]
    fn floats() {
        assert_eq!(float("-2.5e10"), Some(-2.5e10));
        assert_eq!(float("1E5"), Some(100_000.0));
        assert_eq!(float("-0.0").map(f64::to_bits), Some((-0.0_f64).to_bits()));
        assert_eq!(float("1e-999"), Some(0.0));
        assert_eq!(float(&format!("0.{}", "1".repeat(100_000))), Some(1.0 / 9.0));
        assert_eq!((float("1e999"), float("-1e99999999999999999999")), (None, None));
    }

    #[test]
    fn characters() {
        assert_eq!(character("\\newline").as_deref(), Some("\n"));
        assert_eq!(character("\\n").as_deref(), Some("n"));
        assert_eq!(character("\\λ").as_deref(), Some("λ"));
        assert_eq!((character("\\u0041").as_deref(), character("\\u").as_deref()), (Some("A"), Some("u")));
        assert_eq!(character("\\\n").as_deref(), Some("\n"));
        assert_eq!((character("\\\0"), character("\\\u{202e}")), (None, None));
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
