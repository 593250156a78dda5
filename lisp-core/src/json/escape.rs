//! Decodes the escapes in JSON strings.

use super::cursor::Unexpected;
use crate::heap::{Heap, Res};
use crate::text::plain::end_of_plain;

/// Decodes a string and appends it to `out`. `text` is the part between the quotation marks. The work is already
/// charged, with the text as a whole.
pub(super) fn unescape(h: &Heap, text: &str, out: &mut String) -> Res<Result<(), Unexpected>> {
    let mut rest = text;
    loop {
        let Some((plain, escaped)) = rest.split_at_checked(end_of_plain(rest.as_bytes(), 0)) else {
            return Ok(Err(Unexpected));
        };
        out.push_str(plain);
        if escaped.is_empty() {
            return Ok(Ok(()));
        }
        h.poll_every(1)?;
        let Some((c, after)) = escape(escaped) else { return Ok(Err(Unexpected)) };
        out.push(c);
        rest = after;
    }
}

/// Returns the character of an escape, and the text after it.
fn escape(text: &str) -> Option<(char, &str)> {
    let after = text.strip_prefix('\\')?;
    let (kind, after) = after.split_at_checked(1)?;
    let c = match kind {
        "\"" | "\\" | "/" => char::from(kind.as_bytes()[0]),
        "b" => '\u{8}',
        "f" => '\u{c}',
        "n" => '\n',
        "r" => '\r',
        "t" => '\t',
        "u" => return unicode(after),
        _ => return None,
    };
    Some((c, after))
}

/// Returns the character of four hexadecimal digits, or of a surrogate pair.
fn unicode(text: &str) -> Option<(char, &str)> {
    let (unit, after) = unit(text)?;
    if !(0xd800..0xdc00).contains(&unit) {
        // A lone surrogate is not a character.
        return Some((char::from_u32(unit)?, after));
    }
    let (low, after) = self::unit(after.strip_prefix(r"\u")?)?;
    let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    Some((char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + low)?, after))
}

/// Parses four hexadecimal digits.
fn unit(text: &str) -> Option<(u32, &str)> {
    let (digits, after) = text.split_at_checked(4)?;
    let unit = digits.bytes().try_fold(0, |unit, digit| Some(unit << 4 | char::from(digit).to_digit(16)?))?;
    Some((unit, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn what_is_a_string_is_read(parts in proptest::collection::vec(proptest::sample::select(vec![
            "a", "é", "😀", r"\n", r"\t", r"\r", r"\b", r"\f", r"\/", r"\\", "\\\"", r"\u00e9", r"\u0000", r"\uD83D", r"\uDE00",
            r"\ud83d\ude00", r"\udbff\udfff", r"\u+12f", r"\u12", r"\x", r"\é", "\\", "\n", "x\u{7f}",
        ]), 0..8)) {
            let text = parts.concat();
            let h = Heap::new(1, usize::MAX / 2);
            let mut out = String::from("before ");
            let read = matches!(unescape(&h, &text, &mut out), Ok(Ok(()))).then_some(out);
            let quoted = format!("\"{text}\"");
            let mut parser = jiter::Jiter::new(quoted.as_bytes());
            let known = parser.next_str().ok().map(|text| format!("before {text}"));
            // After a single backslash, the quotation mark of an escape ends the string.
            let known = known.filter(|_| parser.finish().is_ok());
            prop_assert_eq!(read, known, "{}", text);
        }
    }
}
