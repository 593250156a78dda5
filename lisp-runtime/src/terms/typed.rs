//! Values as text with their types, and how it is written and read. The text is JSON with a mark before what JSON does not
//! have; `lisp_core::json` reads and writes the same text from and into an arena. There is no recursion.

use lisp_core::json::{MAX_DEPTH, MAX_DIGITS};
use std::borrow::Cow;
use std::fmt::{self, Write};

/// A value with its types, for [`Input::typed`](crate::Input::typed). A [`TypedWriter`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedValue {
    text: String,
    is_json: bool,
}

impl TypedValue {
    /// Returns the value as JSON text; `None` if it has sets or times.
    pub fn json(&self) -> Option<&str> {
        self.is_json.then_some(&*self.text)
    }

    /// Returns a reader of its parts.
    pub fn parts(&self) -> TypedReader<'_> {
        TypedReader::of(&self.text)
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// A part of a value, in the order in which it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a> {
    /// `nil`.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond 64 bits, as decimal digits.
    Digits(&'a str),
    /// A float.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
    /// A date: days since 1970-01-01.
    Date(i64),
    /// An instant: seconds since 1970-01-01T00:00:00Z, and nanoseconds.
    Instant(i64, u32),
    /// A date with a time and no zone: seconds since 1970-01-01T00:00, and nanoseconds.
    DateTime(i64, u32),
    /// A duration: seconds, and nanoseconds that are added.
    Duration(i64, u32),
    /// The start of a list. Its elements follow, and then [`Part::End`].
    BeginList,
    /// The start of a set. Its elements follow, and then [`Part::End`].
    BeginSet,
    /// The start of a map. A key and a value for each entry follow, and then [`Part::End`].
    BeginMap,
    /// A key of a map. Its value follows.
    Key(Cow<'a, str>),
    /// The end of the innermost list, set or map.
    End,
}

/// Why a value cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypedError {
    /// It is nested deeper than programs can read.
    #[error("nested more than {MAX_DEPTH} lists and maps deep, which is the limit; make it flatter")]
    TooDeep,
    /// An integer has too many digits.
    #[error("an integer of more than {MAX_DIGITS} digits, which is the limit; send it as a string")]
    TooLong,
    /// A float is NaN or infinite.
    #[error("{0} is not a number that programs have as data; send None or a finite number")]
    NotFinite(String),
    /// Parts are missing or in the wrong order, or a number is out of its range.
    #[error("not a value: {0}")]
    Malformed(&'static str),
}

/// An open list, set or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    List,
    Map,
}

/// Writes a value, part by part.
///
/// ```
/// use lisp_runtime::value::{Part, TypedWriter};
/// let mut writer = TypedWriter::new();
/// for part in [Part::BeginMap, Part::Key("due".into()), Part::Date(19_724), Part::End] {
///     writer.write(&part)?;
/// }
/// let value = writer.finish()?;
/// assert_eq!(value.parts().nth(2), Some(Ok(Part::Date(19_724))));
/// # Ok::<(), lisp_runtime::value::TypedError>(())
/// ```
#[derive(Debug, Default)]
pub struct TypedWriter {
    text: String,
    open: Vec<Open>,
    /// Whether the innermost list or map has an element, or the value is complete.
    is_later: bool,
    /// Whether a key was written whose value is missing.
    has_key: bool,
    has_typed: bool,
}

impl TypedWriter {
    /// Creates a writer.
    pub fn new() -> Self {
        TypedWriter::default()
    }

    /// Writes the next part.
    ///
    /// # Errors
    /// The part cannot come here, or is out of its range.
    pub fn write(&mut self, part: &Part<'_>) -> Result<(), TypedError> {
        if *part == Part::End {
            return self.end();
        }
        self.separate(matches!(part, Part::Key(_)))?;
        match part {
            Part::Nil => self.text.push_str("null"),
            Part::Bool(true) => self.text.push_str("true"),
            Part::Bool(false) => self.text.push_str("false"),
            Part::Int(number) => self.text.push_str(itoa::Buffer::new().format(*number)),
            Part::Digits(digits) => self.digits(digits)?,
            Part::Float(number) if number.is_finite() => self.text.push_str(ryu::Buffer::new().format_finite(*number)),
            Part::Float(number) => return Err(TypedError::NotFinite(number.to_string())),
            Part::String(text) => self.quoted(text),
            Part::Key(text) => {
                self.quoted(text);
                self.text.push(':');
            }
            Part::Date(days) => self.marked(format_args!("#D{days}")),
            Part::Instant(seconds, nanos) => self.marked(format_args!("#I{seconds}:{nanos}")),
            Part::DateTime(seconds, nanos) => self.marked(format_args!("#L{seconds}:{nanos}")),
            Part::Duration(seconds, nanos) => self.marked(format_args!("#P{seconds}:{nanos}")),
            Part::BeginList => self.begin("[", Open::List)?,
            Part::BeginSet => {
                self.has_typed = true;
                self.begin("#[", Open::List)?;
            }
            Part::BeginMap => self.begin("{", Open::Map)?,
            Part::End => {}
        }
        Ok(())
    }

    /// Returns the value.
    ///
    /// # Errors
    /// It is not complete.
    pub fn finish(self) -> Result<TypedValue, TypedError> {
        match self.open.is_empty() && self.is_later {
            true => Ok(TypedValue { text: self.text, is_json: !self.has_typed }),
            false => Err(TypedError::Malformed("it is not complete")),
        }
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }

    fn marked(&mut self, text: fmt::Arguments<'_>) {
        self.has_typed = true;
        self.push(text);
    }

    /// Writes what comes before a part, and notes that it came.
    fn separate(&mut self, is_key: bool) -> Result<(), TypedError> {
        match self.open.last() {
            Some(Open::Map) if self.has_key == is_key => {
                return Err(TypedError::Malformed("a map has keys and values"));
            }
            Some(Open::List) | None if is_key => return Err(TypedError::Malformed("only maps have keys")),
            None if self.is_later => return Err(TypedError::Malformed("it has a second value")),
            _ => {}
        }
        if self.is_later && !self.has_key {
            self.text.push(',');
        }
        (self.has_key, self.is_later) = (is_key, true);
        Ok(())
    }

    fn begin(&mut self, mark: &str, open: Open) -> Result<(), TypedError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(TypedError::TooDeep);
        }
        self.text.push_str(mark);
        self.open.push(open);
        self.is_later = false;
        Ok(())
    }

    fn end(&mut self) -> Result<(), TypedError> {
        let open = self.open.pop().filter(|_| !self.has_key);
        let open = open.ok_or(TypedError::Malformed("an end without a start"))?;
        self.text.push(if open == Open::Map { '}' } else { ']' });
        self.is_later = true;
        Ok(())
    }

    fn digits(&mut self, digits: &str) -> Result<(), TypedError> {
        let number = digits.strip_prefix('-').unwrap_or(digits);
        if number.len() > MAX_DIGITS {
            return Err(TypedError::TooLong);
        }
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) || number.starts_with('0') {
            return Err(TypedError::Malformed("an integer has digits only"));
        }
        self.text.push_str(digits);
        Ok(())
    }

    fn quoted(&mut self, text: &str) {
        self.text.push('"');
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate() {
            if !matches!(byte, b'"' | b'\\' | 0..0x20) {
                continue;
            }
            self.text.push_str(&text[from..at]);
            match byte {
                b'"' => self.text.push_str("\\\""),
                b'\\' => self.text.push_str("\\\\"),
                b'\n' => self.text.push_str("\\n"),
                other => self.push(format_args!("\\u{other:04x}")),
            }
            from = at + 1;
        }
        self.text.push_str(&text[from..]);
        self.text.push('"');
    }
}

/// Reads JSON text or a [`TypedValue`], part by part. After an error there are no more parts.
#[derive(Clone, Debug)]
pub struct TypedReader<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Open>,
    /// Whether the innermost list or map has an element, or the value is complete.
    is_later: bool,
    has_key: bool,
    is_over: bool,
}

impl<'a> TypedReader<'a> {
    /// Creates a reader of JSON text, such as [`ToolCall::json`](crate::ToolCall::json).
    pub fn of(text: &'a str) -> Self {
        TypedReader { text, at: 0, open: Vec::new(), is_later: false, has_key: false, is_over: false }
    }

    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r')).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn part(&mut self) -> Result<Option<Part<'a>>, TypedError> {
        const NO_VALUE: TypedError = TypedError::Malformed("the text is not JSON");
        let mut byte = self.peek();
        let close = match self.open.last() {
            None if self.is_later => return if byte.is_none() { Ok(None) } else { Err(NO_VALUE) },
            None => 0,
            Some(Open::List) => b']',
            Some(Open::Map) => b'}',
        };
        if byte == Some(close) && !self.has_key {
            self.open.pop();
            (self.at, self.is_later) = (self.at + 1, true);
            return Ok(Some(Part::End));
        }
        if self.is_later && !self.has_key {
            if byte != Some(b',') {
                return Err(NO_VALUE);
            }
            self.at += 1;
            byte = self.peek();
        }
        self.is_later = true;
        if close == b'}' && !self.has_key {
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return Err(NO_VALUE);
            }
            self.at += 1;
            self.has_key = true;
            return Ok(Some(Part::Key(key)));
        }
        self.has_key = false;
        Ok(Some(match byte.ok_or(NO_VALUE)? {
            b'"' => Part::String(self.string()?),
            b'[' => self.begin(1, Open::List, Part::BeginList)?,
            b'{' => self.begin(1, Open::Map, Part::BeginMap)?,
            b'#' => self.marked()?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => {
                let words = [("null", Part::Nil), ("true", Part::Bool(true)), ("false", Part::Bool(false))];
                let rest = self.text.get(self.at..).unwrap_or_default();
                let (word, part) = words.into_iter().find(|(word, _)| rest.starts_with(word)).ok_or(NO_VALUE)?;
                self.at += word.len();
                part
            }
        }))
    }

    fn begin(&mut self, mark: usize, open: Open, part: Part<'a>) -> Result<Part<'a>, TypedError> {
        // Lists of values may be one level deeper than a value.
        if self.open.len() > MAX_DEPTH {
            return Err(TypedError::TooDeep);
        }
        self.at += mark;
        self.open.push(open);
        self.is_later = false;
        Ok(part)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, TypedError> {
        const NO_STRING: TypedError = TypedError::Malformed("a string is missing or has no end");
        if self.peek() != Some(b'"') {
            return Err(NO_STRING);
        }
        let (bytes, from) = (self.text.as_bytes(), self.at + 1);
        let (mut at, mut escapes) = (from, false);
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => (at, escapes) = (at + 2, true),
                Some(_) => at += 1,
                None => return Err(NO_STRING),
            }
        }
        self.at = at + 1;
        if escapes {
            let quoted = self.text.get(from - 1..self.at).ok_or(NO_STRING)?;
            return serde_json::from_str(quoted).map(Cow::Owned).map_err(|_| NO_STRING);
        }
        self.text.get(from..at).map(Cow::Borrowed).ok_or(NO_STRING)
    }

    /// Returns the text of the number that comes next.
    fn digits(&mut self, is_part: impl Fn(u8) -> bool) -> &'a str {
        let from = self.at;
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        self.at += rest.iter().take_while(|&&byte| is_part(byte)).count();
        self.text.get(from..self.at).unwrap_or_default()
    }

    fn number(&mut self) -> Result<Part<'a>, TypedError> {
        let text = self.digits(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'));
        if !text.bytes().all(|byte| matches!(byte, b'-' | b'0'..=b'9')) {
            let float = text.parse::<f64>().ok().filter(|float| float.is_finite());
            return float.map(Part::Float).ok_or(TypedError::Malformed("a number out of range"));
        }
        if let Ok(number) = text.parse() {
            return Ok(Part::Int(number));
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        match digits.len() {
            0 => Err(TypedError::Malformed("a number without digits")),
            _ if digits.contains('-') => Err(TypedError::Malformed("a number with two signs")),
            len if len > MAX_DIGITS => Err(TypedError::TooLong),
            _ => Ok(Part::Digits(text)),
        }
    }

    fn marked(&mut self) -> Result<Part<'a>, TypedError> {
        const NO_TIME: TypedError = TypedError::Malformed("a time out of range");
        let kind = self.text.as_bytes().get(self.at + 1).copied();
        if kind == Some(b'[') {
            return self.begin(2, Open::List, Part::BeginSet);
        }
        self.at += 2;
        let is_digit = |byte: u8| matches!(byte, b'-' | b'0'..=b'9');
        let whole = self.digits(is_digit).parse::<i64>().map_err(|_| NO_TIME)?;
        if kind == Some(b'D') {
            return Ok(Part::Date(whole));
        }
        if self.text.as_bytes().get(self.at) != Some(&b':') {
            return Err(NO_TIME);
        }
        self.at += 1;
        let nanos = self.digits(is_digit).parse::<u32>().ok().filter(|nanos| *nanos < 1_000_000_000).ok_or(NO_TIME)?;
        match kind {
            Some(b'I') => Ok(Part::Instant(whole, nanos)),
            Some(b'L') => Ok(Part::DateTime(whole, nanos)),
            Some(b'P') => Ok(Part::Duration(whole, nanos)),
            _ => Err(NO_TIME),
        }
    }
}

impl<'a> Iterator for TypedReader<'a> {
    type Item = Result<Part<'a>, TypedError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let part = self.part().transpose();
        self.is_over = !matches!(part, Some(Ok(_)));
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Input, Recording};
    use proptest::prelude::*;

    fn written(parts: &[Part<'_>]) -> Result<TypedValue, TypedError> {
        let mut writer = TypedWriter::new();
        parts.iter().try_for_each(|part| writer.write(part))?;
        writer.finish()
    }

    fn scalars() -> impl Strategy<Value = Part<'static>> {
        prop_oneof![
            Just(Part::Nil),
            any::<bool>().prop_map(Part::Bool),
            any::<i64>().prop_map(Part::Int),
            Just(Part::Digits("-123456789012345678901234567890")),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Part::Float),
            any::<String>().prop_map(|text| Part::String(text.into())),
            (-1_000_000_i64..1_000_000).prop_map(Part::Date),
            (any::<i32>(), 0_u32..1_000_000_000).prop_map(|(s, n)| Part::Instant(s.into(), n)),
            (any::<i32>(), 0_u32..1_000_000_000).prop_map(|(s, n)| Part::DateTime(s.into(), n)),
            (any::<i64>(), 0_u32..1_000_000_000).prop_map(|(s, n)| Part::Duration(s, n)),
        ]
    }

    fn values() -> impl Strategy<Value = Vec<Part<'static>>> {
        scalars().prop_map(|part| vec![part]).prop_recursive(4, 40, 5, |inner| {
            let around =
                |begin: Part<'static>, inside: Vec<Part<'static>>| [vec![begin], inside, vec![Part::End]].concat();
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5)
                    .prop_map(move |all| around(Part::BeginList, all.concat())),
                scalars().prop_map(move |part| around(Part::BeginSet, vec![part])),
                proptest::collection::btree_map(any::<String>(), inner, 0..5).prop_map(move |all| {
                    let entries =
                        all.into_iter().flat_map(|(key, value)| [vec![Part::Key(key.into())], value].concat());
                    around(Part::BeginMap, entries.collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_pass_through_a_program_unchanged(parts in values()) {
            let value = written(&parts).expect("a value");
            let read: Vec<_> = value.parts().map(|part| part.expect("a part")).collect();
            prop_assert_eq!(&read, &parts);
            let input = Input::new().typed("v", value).typed_result();
            let outcome = Engine::default().eval("data/v", input);
            let back: Vec<_> = outcome.typed().expect("a value").map(|part| part.expect("a part")).collect();
            prop_assert_eq!(back, parts);
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "[\\[\\]{}#DILP:,\"\\\\a0-9.eE-]{0,30}") {
            prop_assert!(TypedReader::of(&text).count() <= text.len() + 1);
        }
    }

    #[test]
    fn a_recorded_run_has_its_typed_data_again() {
        let engine = Engine::default();
        let recording = Recording::new();
        let value = written(&[Part::BeginSet, Part::Date(1), Part::End]).expect("a set");
        let program = "(contains? data/days (java.time.LocalDate/parse \"1970-01-02\"))";
        let first = engine.eval(program, Input::new().typed("days", value).record(&recording));
        assert_eq!(first.json(), Some("true"));
        let (program, input, _) = engine.open_record(&recording.record().expect("a record"), &[]).expect("it opens");
        assert_eq!(engine.run(&program, input).json(), Some("true"));
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let deep = vec![Part::BeginList; MAX_DEPTH + 1];
        assert_eq!(written(&deep), Err(TypedError::TooDeep));
        let long = "1".repeat(MAX_DIGITS + 1);
        assert_eq!(written(&[Part::Digits(&long)]), Err(TypedError::TooLong));
        assert_eq!(written(&[Part::Float(f64::NAN)]), Err(TypedError::NotFinite("NaN".to_owned())));
        for parts in [
            vec![],
            vec![Part::End],
            vec![Part::Nil, Part::Nil],
            vec![Part::BeginMap, Part::Nil],
            vec![Part::BeginMap, Part::Key("a".into()), Part::End],
            vec![Part::BeginList, Part::Key("a".into())],
            vec![Part::Key("a".into())],
            vec![Part::Digits("1e5")],
        ] {
            assert!(matches!(written(&parts), Err(TypedError::Malformed(_))), "{parts:?}");
        }
    }

    #[test]
    fn a_result_without_sets_and_times_is_its_json() {
        let outcome = Engine::default().eval("{:a [1 2.5 \"x\"]}", Input::new().typed_result());
        let parts: Result<Vec<_>, _> = outcome.typed().expect("a value").collect();
        let a = Part::Key("a".into());
        let inside = [Part::BeginList, Part::Int(1), Part::Float(2.5), Part::String("x".into()), Part::End];
        assert_eq!(parts.expect("parts"), [vec![Part::BeginMap, a], inside.to_vec(), vec![Part::End]].concat());
        let without = Engine::default().eval("#{1}", Input::new());
        assert_eq!(without.typed().and_then(|mut parts| parts.next()), Some(Ok(Part::BeginList)));
    }
}
