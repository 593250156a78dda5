//! `format`: text with places for values.

use super::args::{fault, string};
use super::{Builtin, MANY};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap, Res, TextBuf, Value};
use crate::text::characters;
use crate::text::describe;
use crate::text::{number, to_str};

/// The rows of this area.
pub(super) const TABLE: &[Builtin] =
    &[Builtin::direct("format", 1, MANY, "(format text & values)", format).shown_as_fn().doc(
        "The text with %s, %d, %f, %e, %x, %o replaced by the values; %% is a percent sign. Width, precision and the \
     flags - and 0 are understood.",
        &[
            ("(format \"%s has %d items\" \"cart\" 3)", "\"cart has 3 items\""),
            ("(format \"%05.2f|%-4s|%04x\" 3.1 \"x\" 15)", "\"03.10|x   |000f\""),
            ("(format \"%.2e\" 1500.0)", "\"1.50e+03\""),
            ("(format \"100%%\")", "\"100%\""),
            ("(format \"%d\" \"x\")", "!runtime_error"),
            ("(format nil)", "!type_error"),
        ],
    )];

/// The widest field, in characters.
const WIDTH: u64 = 1_000_000;
/// The most digits after the point.
const PRECISION: u64 = 250;

/// What stands between `%` and the letter.
#[derive(Clone, Copy, Default)]
struct Field {
    left: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
}

fn format<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Some((&text, mut values)) = args.split_first() else {
        return Err(fault(Reason::ArityError, "format takes at least 1 argument(s), got 0"));
    };
    let mut rest = string("format", text)?;
    let mut out = TextBuf::new(h);
    // It is gone through and copied.
    h.charge(values.len() as u64 * cost::TEXT_PART + 2 * cost::copied(rest.len()))?;
    while let Some((plain, place)) = next_place(rest) {
        out.push_paid(plain)?;
        if let Some(after) = place.strip_prefix('%') {
            h.charge(1)?;
            out.push('%')?;
            rest = after;
            continue;
        }
        let (field, letter, after) = read_field(place)?;
        let Some((&value, others)) = values.split_first() else {
            return Err(fault(
                Reason::RuntimeError,
                format!("format has {} value(s), and its text has places for more", args.len() - 1),
            ));
        };
        show(h, field, letter, value, &mut out)?;
        (values, rest) = (others, after);
    }
    out.push_paid(rest)?;
    out.finish()
}

/// The text before the next percent sign and that behind it.
fn next_place(text: &str) -> Option<(&str, &str)> {
    // The pieces are short: a search by larger steps takes longer to begin than this to end.
    let at = text.bytes().position(|byte| byte == b'%')?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Reads flags, width and precision, and the letter.
fn read_field(place: &str) -> Res<(Field, char, &str)> {
    let mut field = Field::default();
    if let Some(letter @ (b's' | b'd')) = place.bytes().next() {
        return Ok((field, char::from(letter), place.get(1..).unwrap_or_default()));
    }
    let mut rest = place;
    loop {
        rest = match rest.split_at_checked(1) {
            Some(("-", after)) => {
                field.left = true;
                after
            }
            Some(("0", after)) => {
                field.zeros = true;
                after
            }
            _ => break,
        };
    }
    let (width, after) = read_number(rest);
    if let Some(width) = width {
        field.width = within("width", width, 1, WIDTH)?;
    }
    rest = after;
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, after) = read_number(after);
        let Some(precision) = precision else { return Err(unsupported(place)) };
        field.precision = Some(within("precision", precision, 0, PRECISION)?);
        rest = after;
    }
    let mut letters = rest.chars();
    match letters.next() {
        Some(letter @ ('s' | 'd' | 'f' | 'e' | 'x' | 'o')) => Ok((field, letter, letters.as_str())),
        _ => Err(unsupported(place)),
    }
}

/// The decimal number at the beginning, if there is one; what is too large stays too large.
fn read_number(text: &str) -> (Option<u64>, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.strip_suffix(rest).unwrap_or_default();
    ((!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX)), rest)
}

fn within(what: &str, number: u64, least: u64, most: u64) -> Res<usize> {
    match usize::try_from(number) {
        Ok(size) if (least..=most).contains(&number) => Ok(size),
        _ => Err(fault(Reason::RuntimeError, format!("the {what} of a format is {least} to {most}, got {number}"))),
    }
}

#[cold]
fn unsupported(place: &str) -> Fault {
    let shown: String = place.chars().take(20).collect();
    Error::new(Reason::RuntimeError, format!("format does not know %{shown}"))
        .hint("use %s, %d, %f, %e, %x, %o or %%, with the flags - and 0, a width and a precision")
        .into()
}

#[cold]
fn wrong(letter: char, expects: &str, got: Value<'_>) -> Fault {
    let got = describe(got);
    fault(Reason::RuntimeError, format!("format's %{letter} expects {expects}, got {got}"))
}

fn show<'h>(h: &'h Heap, field: Field, letter: char, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match letter {
        's' => {
            if field.width == 0 && field.precision.is_none() {
                return to_str(h, value, out);
            }
            let mut text = TextBuf::new(h);
            to_str(h, value, &mut text)?;
            let text = text.as_str();
            h.charge(cost::parsed(text.len()))?;
            let shown = match field.precision {
                Some(most) => characters::first(h, text, most)?,
                None => text,
            };
            pad(h, field, shown, false, out)
        }
        'd' => match value {
            Value::Int(i) if field.width == 0 => out.push_paid(itoa::Buffer::new().format(i)),
            Value::Int(i) => pad(h, field, itoa::Buffer::new().format(i), true, out),
            _ => pad(h, field, &decimal(h, value)?, true, out),
        },
        'x' | 'o' => pad(h, field, &radix(h, letter, value)?, true, out),
        _ => {
            let Some(f) = value.as_f64() else { return Err(wrong(letter, "a number", value)) };
            if !f.is_finite() && matches!(value, Value::Float(_)) {
                let mut text = TextBuf::new(h);
                to_str(h, value, &mut text)?;
                return pad(h, field, text.as_str(), false, out);
            }
            if !f.is_finite() {
                return Err(wrong(letter, "a number within the range of floats", value));
            }
            let precision = field.precision.unwrap_or(6);
            let whole = if letter == 'f' { whole_digits(f) } else { 1 };
            h.charge(cost::float_written(whole + precision))?;
            let text = if letter == 'f' { fixed(f, precision) } else { scientific(f, precision) };
            pad(h, field, &text, true, out)
        }
    }
}

/// Adds a text in its field: to the right, filled with zeros behind a sign or with spaces, or to the left.
fn pad(h: &Heap, field: Field, text: &str, number: bool, out: &mut TextBuf<'_>) -> Res<()> {
    let fill = if field.width == 0 { 0 } else { field.width.saturating_sub(characters::count(h, text)?) };
    if fill == 0 {
        return out.push_str(text);
    }
    if field.left {
        out.push_str(text)?;
        return out.fill(' ', fill);
    }
    if field.zeros && number {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.len() < text.len() {
            out.push('-')?;
        }
        out.fill('0', fill)?;
        return out.push_str(digits);
    }
    out.fill(' ', fill)?;
    out.push_str(text)
}

/// About how many digits a float has before its point.
fn whole_digits(f: f64) -> usize {
    let exponent = (f.to_bits() >> 52 & 0x7FF).saturating_sub(1_023);
    exponent as usize * 1_233 / 4_096 + 1
}

/// The decimal digits of an integer beyond 64 bits, or of a float that is whole.
fn decimal<'h>(h: &'h Heap, value: Value<'h>) -> Res<String> {
    match value {
        Value::Big(_) => big_text(h, value, 10),
        Value::Float(0.0) => Ok("0".to_owned()),
        Value::Float(f) if f.is_finite() && f.fract() == 0.0 => {
            h.charge(cost::float_written(whole_digits(f)))?;
            Ok(format!("{f:.0}"))
        }
        other => Err(wrong('d', "an integer", other)),
    }
}

fn radix<'h>(h: &'h Heap, letter: char, value: Value<'h>) -> Res<String> {
    match (value, letter) {
        (Value::Int(i), _) => {
            let (sign, size) = (if i < 0 { "-" } else { "" }, i.unsigned_abs());
            Ok(if letter == 'x' { format!("{sign}{size:x}") } else { format!("{sign}{size:o}") })
        }
        (Value::Big(_), 'x') => big_text(h, value, 16),
        (Value::Big(_), _) => big_text(h, value, 8),
        (other, _) => Err(wrong(letter, "an integer", other)),
    }
}

/// The digits of an integer beyond 64 bits.
fn big_text<'h>(h: &'h Heap, value: Value<'h>, radix: u32) -> Res<String> {
    let Value::Big(big) = value else { return Ok(String::new()) };
    if radix != 10 {
        return number::in_base(h, big, radix);
    }
    let mut out = TextBuf::new(h);
    number::decimal(h, big, &mut out)?;
    Ok(out.into_string())
}

/// A float with a fixed number of digits after the point. The fraction is scaled, then rounded half away from zero, so that
/// `%.2f` of 0.125 is 0.13; where floats have no fraction or the digits exceed them, the exact expansion.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole and fraction are floats without a fraction, neither negative nor above 2^63"
)]
fn fixed(f: f64, precision: usize) -> String {
    let size = f.abs();
    let unit = match u32::try_from(precision) {
        Ok(digits @ ..=18) if size <= (1u64 << 52) as f64 => 10u64.pow(digits),
        _ => return format!("{f:.precision$}"),
    };
    let (whole, fraction) = (size.trunc() as u64, (size.fract() * unit as f64).round() as u64);
    let (whole, fraction) = if fraction >= unit { (whole + 1, 0) } else { (whole, fraction) };
    let sign = if f.is_sign_negative() { "-" } else { "" };
    if precision == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction:0precision$}") }
}

/// A float with one digit before the point, a fixed number after it, and an exponent of at least two digits.
fn scientific(f: f64, precision: usize) -> String {
    let text = format!("{f:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(below) => ('-', below),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'h>(h: &'h Ctx, form: &str, values: &[Value<'h>]) -> Result<String, Reason> {
        let mut args = vec![h.str(form).expect("there is room")];
        args.extend_from_slice(values);
        match format(h, &args) {
            Ok(v) => Ok(v.as_str().unwrap_or_default().to_owned()),
            Err(Fault::Error(error)) => Err(error.reason),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn fields() -> Res<()> {
        let h = Ctx::new(Heap::new(1, usize::MAX / 2));
        let float = Value::Float;
        let s = h.str("äb")?;
        for (form, value, answer) in [
            ("%d", Value::Int(-7), "-7"),
            ("%05d", Value::Int(-7), "-0007"),
            ("%-5d|", Value::Int(-7), "-7   |"),
            ("%d", float(2.0), "2"),
            ("%d", float(1e20), "100000000000000000000"),
            ("%x", Value::Int(-255), "-ff"),
            ("%o", Value::Int(8), "10"),
            ("%f", Value::Int(3), "3.000000"),
            ("%.2f", float(0.125), "0.13"),
            ("%.2f", float(2.675), "2.67"),
            ("%.1f", float(-0.04), "-0.0"),
            ("%.0f", float(2.5), "3"),
            ("%.1f", float(9.96), "10.0"),
            ("%.1f", float(1e20), "100000000000000000000.0"),
            ("%08.2f", float(3.1), "00003.10"),
            ("%e", float(1234.5), "1.234500e+03"),
            ("%.0e", float(1e-100), "1e-100"),
            ("%09f", float(f64::NEG_INFINITY), "-Infinity"),
            ("%5s", s, "   äb"),
            ("%.1s", s, "ä"),
            ("%-4s|", s, "äb  |"),
            ("%s", Value::Nil, ""),
        ] {
            assert_eq!(text(&h, form, &[value]).as_deref(), Ok(answer), "{form}");
        }
        Ok(())
    }

    #[test]
    fn faults() {
        let h = Ctx::new(Heap::new(1, usize::MAX / 2));
        let one = [Value::Int(1)];
        for form in [
            "%",
            "%z",
            "%+d",
            "%,d",
            "%1$s",
            "%.s",
            "%1000000000d",
            "%.999999999f",
            "%99999999999999999999d",
            "%s%s",
            "%5%",
        ] {
            assert_eq!(text(&h, form, &one), Err(Reason::RuntimeError), "{form}");
        }
        for form in ["%d", "%x", "%f", "%e", "%o"] {
            assert_eq!(text(&h, form, &[Value::Nil]), Err(Reason::RuntimeError), "{form}");
        }
        assert_eq!(text(&h, "%d", &[Value::Float(f64::NAN)]), Err(Reason::RuntimeError));
        assert_eq!(text(&h, "a", &one).as_deref(), Ok("a"), "more values than places");
    }
}
