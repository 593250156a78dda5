//! Says what is wrong with a text that is not JSON, and where. The reader only detects that it cannot continue, so the
//! text is parsed a second time.

use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap};

/// The reason why a text could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The text is not JSON, or exceeds a limit.
    Syntax {
        /// The byte offset at which the error was found.
        offset: usize,
        /// A description of the error.
        message: String,
    },
    /// The work stopped before the end of the text, for example because there is not enough memory or fuel.
    Fault(Fault),
}

impl ReadError {
    /// Converts this to the error of a built-in or host, with the given reason.
    pub fn into_fault(self, reason: Reason) -> Fault {
        match self {
            ReadError::Syntax { offset, message } => {
                Error::new(reason, format!("invalid JSON at byte {offset}: {message}")).detail("offset", offset).into()
            }
            ReadError::Fault(fault) => fault,
        }
    }

    /// Moves the error by the length of a prefix that was removed from the text.
    pub(super) fn after(self, bytes: usize) -> Self {
        match self {
            ReadError::Syntax { offset, message } => ReadError::Syntax { offset: offset + bytes, message },
            fault => fault,
        }
    }

    pub(super) fn syntax(offset: usize, message: impl Into<String>) -> Self {
        ReadError::Syntax { offset, message: message.into() }
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        ReadError::Fault(fault)
    }
}

/// Why the walk stopped: an error at a byte, or the end of the run.
enum Stop {
    Wrong(usize, &'static str),
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

type Walked<T = ()> = Result<T, Stop>;

/// Returns the error in a text that a [`Reader`](super::Reader) rejects. It is not charged: the text was charged when
/// it was read.
pub(super) fn fault_of(h: &Heap, text: &str) -> ReadError {
    // An interrupt stops the reader as well.
    if let Err(fault) = h.meter.poll_interrupt() {
        return ReadError::Fault(fault);
    }
    match (Walk { h, bytes: text.as_bytes(), at: 0 }).document() {
        Err(Stop::Fault(fault)) => ReadError::Fault(fault),
        Err(Stop::Wrong(offset, message)) => ReadError::syntax(offset, message),
        Ok(()) => ReadError::syntax(0, NO_VALUE),
    }
}

const NO_VALUE: &str = "expected a value: an object, array, string in double quotes, number, true, false or null";
const END_OF_VALUE: &str = "EOF while parsing a value";
const END_OF_LIST: &str = "EOF while parsing a list";
const END_OF_OBJECT: &str = "EOF while parsing an object";
const END_OF_STRING: &str = "EOF while parsing a string";
const NO_KEY: &str = "key must be a string";
const NO_NUMBER: &str = "invalid number";
const NO_ESCAPE: &str = "invalid escape";
const LONE_SURROGATE: &str = "half of a surrogate pair";
const NO_LOW_SURROGATE: &str = "expected the other half of a surrogate pair";

/// A walk through a text up to its first error.
struct Walk<'a> {
    h: &'a Heap,
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn wrong<T>(&self, message: &'static str) -> Walked<T> {
        Err(Stop::Wrong(self.at, message))
    }

    /// Skips a byte.
    fn skip(&mut self) -> Walked {
        self.at += 1;
        Ok(self.h.poll_every(1)?)
    }

    /// Skips white space. `end` is the error if the text ends after it.
    fn next_part(&mut self, end: &'static str) -> Walked<u8> {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.skip()?;
        }
        self.peek().map_or_else(|| self.wrong(end), Ok)
    }

    fn document(&mut self) -> Walked {
        // One entry for each open array or object: whether it is an object.
        let mut open: Vec<bool> = Vec::new();
        'value: loop {
            match self.next_part(END_OF_VALUE)? {
                b'"' => self.string()?,
                b'n' => self.word("null")?,
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'-' | b'0'..=b'9' => self.number()?,
                b'[' => {
                    self.skip()?;
                    if self.next_part(END_OF_LIST)? != b']' {
                        open.push(false);
                        continue;
                    }
                    self.skip()?;
                }
                b'{' => {
                    self.skip()?;
                    if self.next_part(END_OF_OBJECT)? != b'}' {
                        self.key()?;
                        open.push(true);
                        continue;
                    }
                    self.skip()?;
                }
                _ => return self.wrong(NO_VALUE),
            }
            while let Some(&is_object) = open.last() {
                if self.goes_on(is_object)? {
                    continue 'value;
                }
                open.pop();
            }
            // The value is complete.
            return match self.next_part("") {
                Ok(_) => self.wrong("trailing characters"),
                Err(Stop::Wrong(..)) => Ok(()),
                Err(fault) => Err(fault),
            };
        }
    }

    /// Consumes a comma and the key after it, or the end of an array or object. Returns whether there was a comma.
    fn goes_on(&mut self, is_object: bool) -> Walked<bool> {
        let (close, end, other) = match is_object {
            true => (b'}', END_OF_OBJECT, "expected `,` or `}`"),
            false => (b']', END_OF_LIST, "expected `,` or `]`"),
        };
        match self.next_part(end)? {
            b',' => {
                let comma = self.at;
                self.skip()?;
                if self.next_part(END_OF_VALUE)? == close {
                    return Err(Stop::Wrong(comma, "trailing comma"));
                }
                if is_object {
                    self.key()?;
                }
                Ok(true)
            }
            byte if byte == close => {
                self.skip()?;
                Ok(false)
            }
            _ => self.wrong(other),
        }
    }

    /// Consumes a key and its colon.
    fn key(&mut self) -> Walked {
        if self.peek() != Some(b'"') {
            return self.wrong(NO_KEY);
        }
        self.string()?;
        match self.next_part(END_OF_OBJECT)? {
            b':' => self.skip(),
            _ => self.wrong("expected `:`"),
        }
    }

    fn word(&mut self, word: &str) -> Walked {
        for byte in word.bytes() {
            match self.peek() {
                Some(next) if next == byte => self.skip()?,
                Some(_) => return self.wrong("expected `null`, `true` or `false`"),
                None => return self.wrong(END_OF_VALUE),
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Walked {
        if self.peek() == Some(b'-') {
            self.skip()?;
        }
        if self.peek() == Some(b'0') {
            self.skip()?;
            if let Some(b'0'..=b'9') = self.peek() {
                return self.wrong(NO_NUMBER);
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.skip()?;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.skip()?;
            if let Some(b'+' | b'-') = self.peek() {
                self.skip()?;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Consumes at least one digit.
    fn digits(&mut self) -> Walked {
        match self.peek() {
            Some(b'0'..=b'9') => {}
            Some(_) => return self.wrong(NO_NUMBER),
            None => return self.wrong(END_OF_VALUE),
        }
        while let Some(b'0'..=b'9') = self.peek() {
            self.skip()?;
        }
        Ok(())
    }

    fn string(&mut self) -> Walked {
        self.skip()?;
        loop {
            match self.peek() {
                Some(b'"') => return self.skip(),
                Some(b'\\') => {
                    self.skip()?;
                    self.escape()?;
                }
                Some(..0x20) => return self.wrong("control character (\\u0000-\\u001F) found while parsing a string"),
                Some(_) => self.skip()?,
                None => return self.wrong(END_OF_STRING),
            }
        }
    }

    /// Consumes an escape after its backslash.
    fn escape(&mut self) -> Walked {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.skip(),
            Some(b'u') => self.character(),
            Some(_) => self.wrong(NO_ESCAPE),
            None => self.wrong(END_OF_STRING),
        }
    }

    /// Consumes the `u` and its digits, and a second such escape if the first is a high surrogate.
    fn character(&mut self) -> Walked {
        let unit = self.unit()?;
        let is_low = |unit| (0xdc00..0xe000).contains(&unit);
        let lone = |walk: &Self| Err(Stop::Wrong(walk.at - 1, LONE_SURROGATE));
        if is_low(unit) {
            return lone(self);
        }
        if !(0xd800..0xdc00).contains(&unit) {
            return Ok(());
        }
        for byte in *b"\\u" {
            match self.peek() {
                Some(next) if next == byte => self.at += 1,
                Some(_) => return self.wrong(NO_LOW_SURROGATE),
                None => return self.wrong(END_OF_STRING),
            }
        }
        self.at -= 1;
        if is_low(self.unit()?) { Ok(()) } else { lone(self) }
    }

    /// Consumes the `u` and its four digits.
    fn unit(&mut self) -> Walked<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            self.at += 1;
            let Some(byte) = self.peek() else { return self.wrong(END_OF_STRING) };
            let Some(digit) = char::from(byte).to_digit(16) else { return self.wrong(NO_ESCAPE) };
            unit = unit << 4 | digit;
        }
        self.at += 1;
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};
    use proptest::prelude::*;
    use proptest::sample::select;

    /// Generates fragments of JSON, and fragments that make a text invalid.
    fn piece() -> impl Strategy<Value = String> {
        let fixed = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\n",
            "\"",
            "\\",
            "null",
            "true",
            "false",
            "tru",
            "0",
            "01",
            "-",
            "-0",
            "1.",
            "2.50",
            "1e9",
            "1E+",
            "-7.25e-3",
            "123456789012345678",
            "9223372036854775808",
            "1e400",
            "\"a\"",
            "\"b\"",
            "\"a\":",
            "\"\\u0061\":",
            "\"b c\":",
            "\"\\n\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\ud83d\\u0041\"",
            "\"\\ud83d\\n\"",
            "\"\\ud83d\\ude0",
            "\"\\udc00\"",
            "\"\\u12",
            "\"\\u12g4\"",
            "\"\\x\"",
            "\"\u{1}\"",
            "\"λ\"",
            "\u{feff}",
            "{\"a\":1,\"b\":[]}",
            "{\"a\":2,\"b\":{}}",
            "[1,2]",
            "\"a\\\"\":",
            "\"long enough for more than a word\"",
        ];
        select(fixed.to_vec()).prop_map(str::to_owned)
    }

    /// Parses a text with the `jiter` crate.
    fn known(text: &str) -> Result<(), JiterError> {
        let mut parser = Jiter::new(text.as_bytes());
        let mut open: Vec<bool> = Vec::new();
        let mut peek = parser.peek()?;
        'value: loop {
            match peek {
                Peek::String => drop(parser.known_str()?),
                Peek::Null => parser.known_null()?,
                Peek::True | Peek::False => drop(parser.known_bool(peek)?),
                Peek::Array => {
                    if let Some(first) = parser.known_array()? {
                        open.push(false);
                        peek = first;
                        continue;
                    }
                }
                Peek::Object => {
                    if parser.known_object()?.is_some() {
                        open.push(true);
                        peek = parser.peek()?;
                        continue;
                    }
                }
                _ => drop(parser.known_number_bytes(peek)?),
            }
            loop {
                let next = match open.last() {
                    None => return parser.finish(),
                    Some(true) => match parser.next_key()? {
                        Some(_) => Some(parser.peek()?),
                        None => None,
                    },
                    Some(false) => parser.array_step()?,
                };
                if let Some(next) = next {
                    peek = next;
                    continue 'value;
                }
                open.pop();
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        /// The reader accepts the same texts as the library, and reports the same errors.
        #[test]
        fn texts_are_taken_by_both_or_by_neither(pieces in proptest::collection::vec(piece(), 0..9), open in 0usize..4) {
            let ways = ["", "[", "{\"a\":", "[{\"a\":1,\"b\":2},{\"a\":"];
            let closes = ["", "]", "}", "}]"];
            for text in [pieces.concat(), format!("{}{}{}", ways[open], pieces.join(","), closes[open])] {
                // The reader skips a byte order mark, the library does not.
                let text = text.trim_start_matches('\u{feff}').to_owned();
                let heap = Heap::new(1, 1 << 24);
                let walked = known(&text);
                match read(&heap, &text) {
                    Ok(_) => prop_assert!(walked.is_ok(), "{:?}", text),
                    // Only the reader rejects numbers that are too large for a float, before anything that follows.
                    Err(ReadError::Syntax { message, .. }) if message == "number out of range" => {}
                    Err(ReadError::Syntax { offset, message }) => {
                        let Some(error) = walked.err() else { panic!("{text:?} {message}") };
                        let JiterErrorType::JsonError(kind) = error.error_type else { panic!("{text:?} {error}") };
                        let (at, why) = match kind {
                            // The library reports the bracket; the comma is the character to remove.
                            JsonErrorType::TrailingComma => {
                                (text[..error.index].rfind(',').expect("a comma"), kind.to_string())
                            }
                            JsonErrorType::ExpectedSomeIdent => (error.index, "expected `null`, `true` or `false`".to_owned()),
                            // The library expects four bytes before it checks them.
                            JsonErrorType::EofWhileParsingString if message == NO_ESCAPE => (offset, message.clone()),
                            JsonErrorType::LoneLeadingSurrogateInHexEscape => (error.index, LONE_SURROGATE.to_owned()),
                            JsonErrorType::UnexpectedEndOfHexEscape => (error.index, NO_LOW_SURROGATE.to_owned()),
                            JsonErrorType::ExpectedSomeValue => (error.index, NO_VALUE.to_owned()),
                            kind => (error.index, kind.to_string()),
                        };
                        prop_assert_eq!((offset, message), (at, why), "{:?}", text);
                    }
                    Err(ReadError::Fault(fault)) => prop_assert!(false, "{:?} {:?}", text, fault),
                }
            }
        }
    }
}
