//! The position of a JSON reader in its text. It only detects that the text is invalid; `fault.rs` says what is wrong.

use super::extent::end_of_brackets;
use crate::heap::Heap;
use crate::text::plain::{end_of_plain, is_stop};

/// The text is not valid from the current position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected;

/// A number, converted if that needs no allocation and no exact decimal conversion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
    /// An integer with too many digits.
    Long,
    /// A float that one division cannot convert to the nearest binary one.
    Exact,
}

/// The text of a string between its quotation marks.
pub(super) enum Text<'t> {
    Plain(&'t str),
    Escaped(&'t str),
}

/// A position in a text.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// The heap of the run that reads. When the run is interrupted, the cursor stops in a long string, number or white
    /// space as at an unexpected byte. `fault_of` checks for the interrupt before it looks for an error in the text.
    run: Option<&'t Heap>,
}

/// The bytes of a string, a number or white space between two checks for an interrupt.
const PIECE: usize = 1 << 16;

/// Powers of ten that floats represent exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// A number of decimal digits that always fits in an `i64`.
const DIGITS: usize = 18;

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Cursor { text, at: 0, run: None }
    }

    /// Creates a cursor that stops when the run is interrupted.
    pub(super) fn of_run(h: &'t Heap, text: &'t str) -> Self {
        Cursor { text, at: 0, run: Some(h) }
    }

    #[cold]
    fn is_to_end(&self) -> bool {
        self.run.is_some_and(|h| h.meter.poll_interrupt().is_err())
    }

    /// Returns the byte offset of the position.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns whether the text ends here.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space. Returns the byte after it.
    #[inline]
    pub(super) fn next_part(&mut self) -> Option<u8> {
        loop {
            match self.peek() {
                // In most cases there is no white space.
                Some(byte) if byte > b' ' => return Some(byte),
                Some(b' ' | b'\n' | b'\t' | b'\r') => {
                    self.at += 1;
                    if self.at.is_multiple_of(PIECE) && self.is_to_end() {
                        return None;
                    }
                }
                byte => return byte,
            }
        }
    }

    /// Skips a byte that was checked before.
    #[inline]
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// Consumes this byte, which must come next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> Result<(), Unexpected> {
        match self.peek() == Some(byte) {
            true => {
                self.at += 1;
                Ok(())
            }
            false => Err(Unexpected),
        }
    }

    /// Consumes `null`, `true` or `false`.
    #[inline]
    pub(super) fn word(&mut self, word: &str) -> Result<(), Unexpected> {
        if self.take_text(word) { Ok(()) } else { Err(Unexpected) }
    }

    /// Consumes these characters if they come next. Returns whether they did.
    #[inline]
    pub(super) fn take_text(&mut self, text: &str) -> bool {
        let end = self.at.saturating_add(text.len());
        let comes = self.text.as_bytes().get(self.at..end) == Some(text.as_bytes());
        if comes {
            self.at = end;
        }
        comes
    }

    /// Consumes a string. The text between the quotation marks is returned as it is, with its escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Text<'t>, Unexpected> {
        self.take(b'"')?;
        let (from, bytes) = (self.at, self.text.as_bytes());
        let (mut at, mut escapes, mut end) = (from, false, from + PIECE);
        loop {
            at = end_of_plain(bytes.get(..end).unwrap_or(bytes), at);
            match bytes.get(at) {
                Some(b'"') => break,
                // Escapes are checked when they are decoded.
                Some(b'\\') => (at, escapes) = (at + 2, true),
                Some(&byte) if !is_stop(byte) => {}
                _ => return Err(Unexpected),
            }
            while bytes.get(at) == Some(&b'\\') && at < end {
                at += 2;
            }
            if at >= end {
                if self.is_to_end() {
                    return Err(Unexpected);
                }
                end = at + PIECE;
            }
        }
        self.at = at + 1;
        let text = self.text.get(from..at).ok_or(Unexpected)?;
        Ok(if escapes { Text::Escaped(text) } else { Text::Plain(text) })
    }

    /// Consumes a number. The caller has checked its first byte.
    #[inline]
    pub(super) fn number(&mut self) -> Result<Number, Unexpected> {
        let bytes = self.text.as_bytes();
        let negative = bytes.get(self.at) == Some(&b'-');
        let mut at = self.at + usize::from(negative);
        let (begin, mut digits) = (at, 0u64);
        let mut run = |at: &mut usize| {
            while let Some(digit @ b'0'..=b'9') = bytes.get(*at) {
                digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
                *at += 1;
                if at.is_multiple_of(PIECE) && self.is_to_end() {
                    return Err(Unexpected);
                }
            }
            Ok(())
        };
        run(&mut at)?;
        let whole = at - begin;
        if whole == 0 || (whole > 1 && bytes.get(begin) == Some(&b'0')) {
            return Err(Unexpected);
        }
        let mut fraction = 0;
        if bytes.get(at) == Some(&b'.') {
            let point = at + 1;
            at = point;
            run(&mut at)?;
            fraction = at - point;
            if fraction == 0 {
                return Err(Unexpected);
            }
        }
        let is_exponential = matches!(bytes.get(at), Some(b'e' | b'E'));
        if is_exponential {
            at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let power = at;
            while let Some(b'0'..=b'9') = bytes.get(at) {
                at += 1;
                if at.is_multiple_of(PIECE) && self.is_to_end() {
                    return Err(Unexpected);
                }
            }
            if at == power {
                return Err(Unexpected);
            }
        }
        self.at = at;
        let fits = whole + fraction <= DIGITS;
        Ok(match (fraction, is_exponential) {
            (0, false) if fits => match i64::try_from(digits) {
                Ok(number) => Number::Int(if negative { -number } else { number }),
                Err(_) => Number::Long,
            },
            (0, false) => Number::Long,
            // Both operands are exact, so their quotient is the nearest float.
            (1..=22, false) if fits && digits < 1 << 53 => {
                let number = digits as f64 / TENS[fraction];
                Number::Float(if negative { -number } else { number })
            }
            _ => Number::Exact,
        })
    }

    /// Consumes a value and returns its text. Only its brackets and strings are checked, not whether it is valid JSON.
    pub(super) fn value(&mut self) -> Result<&'t str, Unexpected> {
        let first = self.next_part();
        let from = self.at;
        match first {
            Some(b'"') => {
                self.string()?;
            }
            Some(b'[' | b'{') => self.at = end_of_brackets(self.text.as_bytes(), from).ok_or(Unexpected)?,
            _ => {
                while self.peek().is_some_and(|byte| byte > b' ' && !matches!(byte, b',' | b':' | b'"' | b']' | b'}')) {
                    self.at += 1;
                }
            }
        }
        if self.at == from { Err(Unexpected) } else { Ok(self.since(from)) }
    }

    /// Returns the text from an offset to the current position.
    pub(super) fn since(&self, from: usize) -> &'t str {
        self.text.get(from..self.at).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::{ReadError, fault_of};
    use super::*;
    use crate::heap::Fault;
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(
            text in "-?(0|[1-9][0-9]{0,19})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?"
        ) {
            let mut cursor = Cursor::new(&text);
            let number = cursor.number();
            prop_assert!(cursor.is_at_end());
            match number {
                Ok(Number::Int(number)) => prop_assert_eq!(Ok(number), text.parse()),
                Ok(Number::Float(number)) => prop_assert_eq!(Ok(number.to_bits()), text.parse::<f64>().map(f64::to_bits)),
                Ok(Number::Long | Number::Exact) => {}
                Err(Unexpected) => prop_assert!(false, "{}", text),
            }
        }
    }

    #[test]
    fn long_parts_are_left_when_the_run_is_to_end() {
        let h = Heap::new(1, 1 << 24);
        let flag = Arc::new(AtomicBool::new(false));
        h.meter.watch(Some(flag.clone()));
        let digits = ["1", "0.1", "1e1"].map(|start| format!("{start}{}", "1".repeat(2 * PIECE)));
        assert!(digits.iter().all(|text| Cursor::of_run(&h, text).number().is_ok()));
        flag.store(true, Ordering::Relaxed);
        assert!(digits.iter().all(|text| Cursor::of_run(&h, text).number().is_err()));
        for part in [" ", "a", r"\n", r"a\n", r"\\"] {
            let text = part.repeat(3 * PIECE);
            let quoted = format!("\"{text}\"");
            let ends = |h| (Cursor::of_run(h, &text).next_part(), Cursor::of_run(h, &quoted).string().is_ok());
            flag.store(false, Ordering::Relaxed);
            assert_eq!(ends(&h), (text.bytes().next().filter(|&byte| byte != b' '), true), "{part}");
            flag.store(true, Ordering::Relaxed);
            let mut cursor = Cursor::of_run(&h, &text);
            if part == " " {
                assert_eq!((cursor.next_part(), cursor.at()), (None, PIECE));
            }
            assert_eq!(Cursor::of_run(&h, &quoted).string().err(), Some(Unexpected), "{part}");
            assert!(matches!(fault_of(&h, &quoted), ReadError::Fault(Fault::Pause(_))), "{part}");
        }
    }

    #[test]
    fn numbers_that_are_none() {
        for text in ["", "-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "x"] {
            assert_eq!(Cursor::new(text).number(), Err(Unexpected), "{text}");
        }
        for (text, number) in [
            ("0", Number::Int(0)),
            ("-0", Number::Int(0)),
            ("-17", Number::Int(-17)),
            ("999999999999999999", Number::Int(999_999_999_999_999_999)),
            ("9999999999999999999", Number::Long),
            ("2.5", Number::Float(2.5)),
            ("1e3", Number::Exact),
        ] {
            assert_eq!(Cursor::new(text).number(), Ok(number), "{text}");
        }
    }
}
