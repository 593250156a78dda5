//! `format`: text with placeholders for values.

use super::args::{fault, string};
use super::{Builtin, MANY};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap, Res, TextBuf, Value};
use crate::text::characters;
use crate::text::describe;
use crate::text::number::FloatDigits;
use crate::text::scan;
use crate::text::{number, to_str};

pub(super) const TABLE: &[Builtin] = &[Builtin::direct("format", 1, MANY, "(format text & values)", format)
    .shown_as_fn()
    .aliases(&["String/format", "java.lang.String/format"])
    .doc(
        "Returns the string with values in place of %s %d %f %e %g %x %o %b %c; %n is a newline, %% a percent sign. \
         Flags (- 0 + , ( # space), width and precision as in %,.2f; %2$s is the second value.",
        &[
            ("(format \"%s has %d items\" \"cart\" 3)", "\"cart has 3 items\""),
            ("(format \"%05.2f|%-4s|%04x\" 3.1 \"x\" 15)", "\"03.10|x   |000f\""),
            ("(format \"%,d %+.1f%%\" 1234567 2.25)", "\"1,234,567 +2.3%\""),
            ("(format \"%.2e\" 1500.0)", "\"1.50e+03\""),
            ("(format \"%d\" \"x\")", "!runtime_error"),
            ("(format nil)", "!type_error"),
        ],
    )];

/// The maximum width of a field, in characters.
const WIDTH: u64 = 1_000_000;
/// The maximum number of digits after the point.
const PRECISION: u64 = 250;
/// The maximum length of a specifier in an error message, in characters.
const SHOWN: usize = 20;

/// The part of a specifier between `%` and its letter.
#[derive(Clone, Copy, Default)]
struct Field {
    left: bool,
    zeros: bool,
    plus: bool,
    space: bool,
    commas: bool,
    parentheses: bool,
    marked: bool,
    width: usize,
    precision: Option<usize>,
    /// The value to show, if it is not the next one.
    which: Option<Which>,
}

impl Field {
    /// Returns whether it has only a width and an alignment.
    fn is_plain(&self) -> bool {
        let signs = self.plus || self.space || self.commas || self.parentheses || self.marked || self.zeros;
        !signs && self.precision.is_none() && self.which.is_none()
    }
}

/// All flags, and a space.
const FLAGS: &str = "-0+ ,(#";
/// For each conversion, the flags that it refuses, and whether it takes a precision, as in Java. `%x` and `%o` refuse the
/// flags for a sign too, but not for nil.
const REFUSED: &[(char, &str, bool)] = &[
    ('s', "0+ ,(#", true),
    ('b', "0+ ,(#", true),
    ('c', "0+ ,(#", false),
    ('d', "#", false),
    ('x', ",", false),
    ('o', ",", false),
    ('f', "", true),
    ('e', ",", true),
    ('g', "#", true),
];

impl Field {
    fn has(&self, flag: char) -> bool {
        match flag {
            '-' => self.left,
            '0' => self.zeros,
            '+' => self.plus,
            ' ' => self.space,
            ',' => self.commas,
            '(' => self.parentheses,
            _ => self.marked,
        }
    }

    /// Checks that a conversion takes the flags and the precision. `shown` is the specifier.
    fn check(&self, letter: char, shown: &str) -> Res<()> {
        let lower = letter.to_ascii_lowercase();
        let Some(&(_, refused, takes_precision)) = REFUSED.iter().find(|(row, ..)| *row == lower) else {
            return Ok(());
        };
        self.refuse(letter, refused, shown)?;
        if self.precision.is_some() && !takes_precision {
            return Err(misfit(format!("format's %{letter} takes no precision, got %{shown}"))
                .hint(format!("leave out the precision; %{letter} takes a width, as in %8{letter}"))
                .into());
        }
        let is_number = !matches!(lower, 's' | 'b' | 'c');
        if is_number && (self.plus && self.space || self.left && self.zeros) {
            let both = if self.left && self.zeros { "- and 0" } else { "+ and a space" };
            return Err(misfit(format!("a format takes only one of the flags {both}, got %{shown}"))
                .hint("leave out one of them")
                .into());
        }
        if self.width == 0 && (self.left || self.zeros) {
            let flag = if self.left { '-' } else { '0' };
            return Err(misfit(format!("the flag {flag} of a format needs a width, got %{shown}"))
                .hint(format!("write a width after it, as in %{flag}8{letter}"))
                .into());
        }
        Ok(())
    }

    /// Fails if the field has one of these flags. `shown` is the specifier, or empty.
    fn refuse(&self, letter: char, refused: &str, shown: &str) -> Res<()> {
        let Some(flag) = refused.chars().find(|&flag| self.has(flag)) else { return Ok(()) };
        let name = |flag: char| if flag == ' ' { "space".to_owned() } else { flag.to_string() };
        let takes: Vec<String> = FLAGS.chars().filter(|flag| !refused.contains(*flag)).map(name).collect();
        let plural = if takes.len() == 1 { "" } else { "s" };
        let got = if shown.is_empty() { String::new() } else { format!(", got %{shown}") };
        Err(misfit(format!("format's %{letter} does not take the flag {}{got}", name(flag)))
            .hint(format!("leave it out; %{letter} takes the flag{plural} {}", takes.join(" ")))
            .into())
    }
}

#[cold]
fn misfit(message: String) -> Error {
    Error::new(Reason::RuntimeError, message)
}

/// A value by its number, or the value of the previous specifier.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    Number(usize),
    Last,
}

pub(super) fn format<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Some((&text, values)) = args.split_first() else {
        return Err(fault(Reason::ArityError, "format takes at least 1 argument, got 0"));
    };
    let mut rest = string("format", text)?;
    let mut out = TextBuf::new(h);
    h.charge(values.len() as u64 * cost::TEXT_PART + cost::copied(rest.len()))?;
    let (mut next, mut last) = (0, None);
    while let Some((plain, place)) = next_place(rest) {
        out.push_str(plain)?;
        // The most frequent specifiers are handled without parsing a field.
        let usual = match (place.bytes().next(), values.get(next)) {
            (Some(b'd' | b's'), Some(&Value::Int(i))) => {
                out.push_str(itoa::Buffer::new().format(i))?;
                true
            }
            (Some(b's'), Some(&Value::Str(s))) => {
                out.push_str(s.text())?;
                true
            }
            _ => false,
        };
        if usual {
            (rest, last, next) = (place.get(1..).unwrap_or_default(), Some(next), next + 1);
            continue;
        }
        if let Some(after) = place.strip_prefix(['%', 'n']) {
            h.charge(1)?;
            out.push(if place.starts_with('n') { '\n' } else { '%' })?;
            rest = after;
            continue;
        }
        let (field, letter, after) = read_field(place)?;
        if letter == '%' {
            pad(h, field, "%", None, &mut out)?;
            rest = after;
            continue;
        }
        let index = match field.which {
            None => {
                next += 1;
                Some(next - 1)
            }
            // Several fields can show the same value.
            Some(which) => {
                h.charge(cost::TEXT_PART)?;
                match which {
                    Which::Number(number) => number.checked_sub(1),
                    Which::Last => last,
                }
            }
        };
        let Some(&value) = index.and_then(|index| values.get(index)) else {
            return Err(no_value(place, field.which, values.len()));
        };
        show(h, field, letter, value, &mut out)?;
        (rest, last) = (after, index);
    }
    out.push_str(rest)?;
    out.finish()
}

/// Returns the text before the next percent sign and the text after it.
fn next_place(text: &str) -> Option<(&str, &str)> {
    // The pieces are short: setting up a vectorized search would take longer.
    let at = text.bytes().position(|byte| byte == b'%')?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Parses flags, width, precision and the letter. Returns them with the text after them.
fn read_field(place: &str) -> Res<(Field, char, &str)> {
    let (mut field, mut rest) = (Field::default(), place);
    if let (Some(number), after) = read_number(rest)
        && let Some(after) = after.strip_prefix('$')
    {
        field.which = Some(Which::Number(usize::try_from(number).unwrap_or(usize::MAX)));
        rest = after;
    }
    loop {
        let flag = match rest.bytes().next() {
            Some(b'-') => &mut field.left,
            Some(b'0') => &mut field.zeros,
            Some(b'+') => &mut field.plus,
            Some(b' ') => &mut field.space,
            Some(b',') => &mut field.commas,
            Some(b'(') => &mut field.parentheses,
            Some(b'#') => &mut field.marked,
            Some(b'<') if field.which != Some(Which::Last) => {
                field.which = Some(Which::Last);
                &mut false
            }
            Some(b'<') => &mut true,
            _ => break,
        };
        if std::mem::replace(flag, true) {
            return Err(unsupported(place));
        }
        rest = rest.get(1..).unwrap_or_default();
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
        // A percent sign can only have a width and an alignment.
        Some('%') if field.width > 0 && field.is_plain() => Ok((field, '%', letters.as_str())),
        Some(letter @ ('s' | 'S' | 'd' | 'f' | 'e' | 'E' | 'g' | 'G' | 'x' | 'X' | 'o' | 'b' | 'B' | 'c' | 'C')) => {
            let after = letters.as_str();
            // No search: what follows can be long. Errors show only the start of a long specifier.
            let specifier = (place.len() - after.len()).min(SHOWN);
            field.check(letter, place.get(..specifier).unwrap_or_default())?;
            Ok((field, letter, after))
        }
        _ => Err(unsupported(place)),
    }
}

/// Parses the decimal number at the start, if there is one. Returns it with the text after it. A number that is too
/// large is saturated.
fn read_number(text: &str) -> (Option<u64>, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.get(..text.len() - rest.len()).unwrap_or_default();
    ((!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX)), rest)
}

fn within(what: &str, number: u64, least: u64, max: u64) -> Res<usize> {
    match usize::try_from(number) {
        Ok(size) if (least..=max).contains(&number) => Ok(size),
        _ => Err(fault(Reason::RuntimeError, format!("the {what} of a format is {least} to {max}, got {number}"))),
    }
}

/// Returns the error for a specifier without a value.
#[cold]
fn no_value(place: &str, which: Option<Which>, values: usize) -> Fault {
    let shown: String = place.chars().take(SHOWN).collect();
    match which {
        Some(Which::Last) => {
            Error::new(Reason::RuntimeError, format!("no specifier with a value comes before %{shown}"))
                .hint("%<s shows the value of the specifier before it once more, as in \"%s %<s\"")
                .into()
        }
        Some(Which::Number(0)) => {
            Error::new(Reason::RuntimeError, format!("the values of format are numbered from 1, got %{shown}"))
                .hint("the first value is %1$s")
                .into()
        }
        Some(Which::Number(_)) | None => {
            fault(Reason::RuntimeError, format!("format got {values} value(s), and its string needs more"))
        }
    }
}

#[cold]
fn unsupported(place: &str) -> Fault {
    let shown: String = place.chars().take(SHOWN).collect();
    Error::new(Reason::RuntimeError, format!("format does not know %{shown}"))
        .hint("use %s %d %f %e %g %x %o %b %c %n or %%, as in %,d %05d %-8s %.2f; dates are shown by %s")
        .into()
}

#[cold]
fn wrong(letter: char, expects: &str, got: Value<'_>) -> Fault {
    let got = describe(got);
    fault(Reason::RuntimeError, format!("format's %{letter} expects {expects}, got {got}"))
}

fn show<'h>(h: &'h Heap, field: Field, letter: char, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    if letter.is_ascii_uppercase() {
        return in_capitals(h, field, letter, value, out);
    }
    match (letter, value) {
        ('s', _) => {
            if field.width == 0 && field.precision.is_none() {
                return to_str(h, &value, out);
            }
            let mut text = TextBuf::new(h);
            to_str(h, &value, &mut text)?;
            let text = text.as_str();
            h.charge(cost::parsed(text.len()))?;
            let shown = match field.precision {
                Some(max) => characters::first(h, text, max)?,
                None => text,
            };
            pad(h, field, shown, None, out)
        }
        ('b', _) => {
            let text = if value.truthy() { "true" } else { "false" };
            pad(h, field, text.get(..field.precision.unwrap_or(text.len())).unwrap_or(text), None, out)
        }
        (_, Value::Nil) => {
            pad(h, field, "null".get(..field.precision.unwrap_or(4).min(4)).unwrap_or_default(), None, out)
        }
        ('c', _) => match value {
            Value::Str(s) if characters::is_one(h, s.text())? => pad(h, field, s.text(), None, out),
            Value::Int(code) if u32::try_from(code).ok().and_then(char::from_u32).is_some() => {
                let c = u32::try_from(code).ok().and_then(char::from_u32).unwrap_or_default();
                pad(h, field, c.encode_utf8(&mut [0; 4]), None, out)
            }
            other => Err(wrong('c', "a character or its code", other)),
        },
        ('d', Value::Int(i)) => number(h, field, itoa::Buffer::new().format(i), out),
        ('d', _) => number(h, field, &decimal(h, value)?, out),
        ('x' | 'o', _) => {
            field.refuse(letter, ",+ (", "")?;
            let digits = radix(h, letter, value)?;
            let mark = match (field.marked, letter) {
                (false, _) => "",
                (true, 'x') => "0x",
                (true, _) => "0",
            };
            let text = format!("{mark}{digits}");
            pad(h, field, &text, Some(mark.len() + usize::from(digits.starts_with('-'))), out)
        }
        _ => float(h, field, letter, value, out),
    }
}

/// Writes a field for `%f`, `%e` or `%g`.
fn float<'h>(h: &'h Heap, field: Field, letter: char, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    let Some(f) = value.as_f64() else { return Err(wrong(letter, "a number", value)) };
    if !f.is_finite() && matches!(value, Value::Float(_)) {
        let text = match f {
            _ if f.is_nan() => "NaN",
            _ if f < 0.0 && field.parentheses => "(Infinity)",
            _ if f < 0.0 => "-Infinity",
            _ if field.plus => "+Infinity",
            _ if field.space => " Infinity",
            _ => "Infinity",
        };
        return pad(h, field, text, None, out);
    }
    if !f.is_finite() {
        return Err(wrong(letter, "a number within the range of floats", value));
    }
    let precision = field.precision.unwrap_or(6);
    let whole = if letter == 'e' { 1 } else { whole_digits(f) };
    h.charge(cost::float_written(whole + precision))?;
    let digits = Digits::of(f);
    let mut text = match letter {
        'f' => digits.fixed(precision),
        'e' => digits.scientific(precision),
        _ => digits.general(precision),
    };
    if field.marked && precision == 0 {
        let end = text.find('e').unwrap_or(text.len());
        text.insert(end, '.');
    }
    let sign = if f.is_sign_negative() { "-" } else { "" };
    number(h, field, &format!("{sign}{text}"), out)
}

/// Writes a field in upper case: `%X`, `%S` and so on.
fn in_capitals<'h>(h: &'h Heap, field: Field, letter: char, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    let mut text = TextBuf::new(h);
    show(h, field, letter.to_ascii_lowercase(), value, &mut text)?;
    let text = text.as_str();
    h.charge(cost::parsed(text.len()))?;
    for piece in scan::pieces(h, text) {
        out.push_str(&piece?.to_uppercase())?;
    }
    Ok(())
}

impl Field {
    /// Returns whether a flag changes the sign of a number or groups its digits.
    fn is_marked(self) -> bool {
        self.plus || self.space || self.commas || self.parentheses
    }
}

/// Writes a decimal number in its field, with the sign that the flags require and commas between groups of three
/// digits.
fn number(h: &Heap, field: Field, text: &str, out: &mut TextBuf<'_>) -> Res<()> {
    if !field.is_marked() {
        return pad(h, field, text, Some(usize::from(text.starts_with('-'))), out);
    }
    h.charge(cost::parsed(text.len()))?;
    h.check_available(text.len().saturating_mul(3))?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (before, after) = match (negative, field) {
        (true, Field { parentheses: true, .. }) => ("(", ")"),
        (true, _) => ("-", ""),
        (false, Field { plus: true, .. }) => ("+", ""),
        (false, Field { space: true, .. }) => (" ", ""),
        (false, _) => ("", ""),
    };
    let end = digits.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
    let (whole, rest) = digits.split_at_checked(end).unwrap_or((digits, ""));
    let mut shown = String::with_capacity(2 * text.len() + 2);
    shown.push_str(before);
    for (i, digit) in whole.chars().enumerate() {
        if field.commas && i > 0 && (whole.len() - i) % 3 == 0 {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown.push_str(rest);
    shown.push_str(after);
    pad(h, field, &shown, Some(before.len()), out)
}

/// Writes a text in its field, aligned to the right with spaces, or to the left. If `sign` is given, the text is a
/// number whose sign has this many bytes; zeros are then inserted after the sign if the flags require it.
fn pad(h: &Heap, field: Field, text: &str, sign: Option<usize>, out: &mut TextBuf<'_>) -> Res<()> {
    let fill = if field.width == 0 { 0 } else { field.width.saturating_sub(characters::count(h, text)?) };
    if fill == 0 {
        return out.push_str(text);
    }
    if field.left {
        out.push_str(text)?;
        return out.fill(' ', fill);
    }
    match sign.filter(|_| field.zeros).and_then(|sign| text.split_at_checked(sign)) {
        Some((sign, digits)) => {
            if !sign.is_empty() {
                out.push_str(sign)?;
            }
            out.fill('0', fill)?;
            out.push_str(digits)
        }
        None => {
            out.fill(' ', fill)?;
            out.push_str(text)
        }
    }
}

/// Estimates the number of digits of a float before its point.
fn whole_digits(f: f64) -> usize {
    let exponent = (f.to_bits() >> 52 & 0x7FF).saturating_sub(1_023);
    exponent as usize * 1_233 / 4_096 + 1
}

/// Returns the decimal digits of an integer beyond 64 bits, or of a whole float.
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
        // As in Java, the 64 bits of a negative integer.
        (Value::Int(i), 'x') => Ok(format!("{i:x}")),
        (Value::Int(i), _) => Ok(format!("{i:o}")),
        (Value::Big(_), 'x') => big_text(h, value, 16),
        (Value::Big(_), _) => big_text(h, value, 8),
        (other, _) => Err(wrong(letter, "an integer", other)),
    }
}

/// Returns the digits of an integer beyond 64 bits.
fn big_text<'h>(h: &'h Heap, value: Value<'h>, radix: u32) -> Res<String> {
    let Value::Big(big) = value else { return Ok(String::new()) };
    if radix != 10 {
        return number::in_base(h, big, radix);
    }
    let mut out = TextBuf::new(h);
    number::decimal(h, big, &mut out)?;
    Ok(out.into_string())
}

/// The digits of the shortest decimal representation of a float, and the number of digits before the point. They are
/// rounded half up as in Java: `%.2f` of 1.005 is 1.01, although the float is slightly smaller.
struct Digits {
    digits: Vec<u8>,
    point: i64,
}

impl Digits {
    fn of(f: f64) -> Digits {
        let digits = FloatDigits::of(f);
        Digits { point: digits.point().into(), digits: digits.digits().as_bytes().to_vec() }
    }

    fn is_zero(&self) -> bool {
        self.digits.iter().all(|&digit| digit == b'0')
    }

    /// Keeps this number of digits, rounding half up.
    fn round(&mut self, keep: i64) {
        let Ok(keep) = usize::try_from(keep) else {
            self.digits.clear();
            return;
        };
        let Some(&next) = self.digits.get(keep) else { return };
        self.digits.truncate(keep);
        if next < b'5' {
            return;
        }
        for digit in self.digits.iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        self.digits.insert(0, b'1');
        self.point += 1;
    }

    /// Returns the float with these digits, without a sign.
    fn number(&self) -> f64 {
        let digits = if self.digits.is_empty() { "0" } else { std::str::from_utf8(&self.digits).unwrap_or("0") };
        format!("0.{digits}e{}", self.point).parse().unwrap_or(f64::NAN)
    }

    /// Returns the digit at a position relative to the point; 0 outside the digits.
    fn at(&self, place: i64) -> char {
        let digit = usize::try_from(self.point + place).ok().and_then(|at| self.digits.get(at));
        char::from(digit.copied().unwrap_or(b'0'))
    }

    /// Returns the text with this number of digits after the point.
    fn fixed(mut self, precision: usize) -> String {
        let after = i64::try_from(precision).unwrap_or(i64::MAX);
        self.round(self.point + after);
        let mut text: String = (-self.point.max(1)..0).map(|place| self.at(place)).collect();
        if precision > 0 {
            text.push('.');
            text.extend((0..after).map(|place| self.at(place)));
        }
        text
    }

    /// Returns the text with one digit before the point, this number after it, and an exponent of at least two digits.
    fn scientific(mut self, precision: usize) -> String {
        let after = i64::try_from(precision).unwrap_or(i64::MAX);
        self.round(after.saturating_add(1));
        let exponent = if self.is_zero() { 0 } else { self.point - 1 };
        self.point = 1;
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", self.fixed(precision), exponent.unsigned_abs())
    }

    /// Returns the text with this number of digits in total. It has an exponent if the number is smaller than 0.0001 or
    /// has more digits than this before the point.
    fn general(mut self, precision: usize) -> String {
        let precision = precision.max(1);
        if self.is_zero() {
            return self.fixed(precision - 1);
        }
        let count = i64::try_from(precision).unwrap_or(i64::MAX);
        self.round(count);
        match usize::try_from(count - self.point) {
            Ok(after) if self.point > -4 => self.fixed(after),
            _ => self.scientific(precision - 1),
        }
    }
}

/// Returns a finite float rounded to this number of digits after the point, or before it if negative. The digits of its
/// shortest representation are rounded half up, as by `%.2f`. A zero has no sign.
pub(super) fn rounded(f: f64, places: i64) -> f64 {
    let mut digits = Digits::of(f);
    digits.round(digits.point.saturating_add(places));
    match digits.number() {
        0.0 => 0.0,
        rounded => rounded.copysign(f),
    }
}

#[cfg(test)]
mod tests;
