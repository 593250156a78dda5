//! Reads JSON text into the arena.
//!
//! Objects with the same keys share their key array. The reader keeps a tree of the key sequences it has seen. A known
//! key leads from one node to the next with one comparison of bytes, before the end of the key is searched for. The
//! node of the last key holds the shape.

use super::cursor::{Cursor, Number, Text, Unexpected};
use super::escape::unescape;
use super::fault::{ReadError, fault_of};
use super::recent::RecentTexts;
use super::{Keys, MAX_DEPTH, MAX_DIGITS, MAX_NUMBER_BYTES, push};
use crate::Table;
use crate::cost;
use crate::heap::{Fault, Heap, KeyArray, MapBuilder, Res, SMALL, Str, TimeValue, Value, hash_bytes};
use crate::text::dates;
use crate::text::plain::is_plain;
use num_bigint::BigInt;

enum Stop {
    Error(ReadError),
    /// The next byte is not valid JSON.
    Unexpected,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Error(ReadError::Fault(fault))
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Stop::Error(error)
    }
}

impl From<Unexpected> for Stop {
    fn from(_: Unexpected) -> Self {
        Stop::Unexpected
    }
}

/// Reads one JSON text. If an object repeats a key, the last value is used.
///
/// # Errors
/// The text is not JSON or exceeds a limit, or the work stopped before its end.
pub fn read<'h>(h: &'h Heap, text: &str) -> Result<Value<'h>, ReadError> {
    Reader::new(h).read(text)
}

/// The maximum number of nodes in the tree of key sequences.
const MAX_NODES: usize = 4_096;
/// The maximum number of children of a node. An object with another key after it is built with a [`MapBuilder`].
const MAX_WAYS: u8 = 24;
/// The maximum length of a key that is compared before its end is known.
const MAX_WRITTEN: usize = 256;
/// The maximum number of shared key strings.
const MAX_SHARED: usize = 4_096;
const NONE: u32 = u32::MAX;
/// The node at which every object starts.
const ROOT: u32 = 0;

struct Node<'h> {
    key: Option<&'h Str<'h>>,
    /// The key as it is written in a text, with its quotation marks and colon; empty if it needs escapes or is too
    /// long.
    written: &'h str,
    parent: u32,
    first_child: u32,
    next_sibling: u32,
    /// The number of children.
    ways: u8,
    /// The number of keys on the path to this node.
    depth: u8,
    shape: Option<Shape<'h>>,
}

/// The sorted keys of an object and, for each of them, the position of its value in the text.
#[derive(Clone, Copy)]
struct Shape<'h> {
    keys: &'h KeyArray<'h>,
    places: [u8; SMALL],
}

/// An unfinished array or object. Its values are on the reader's stack from `base` on.
enum Open<'h> {
    Array { base: usize },
    Set { base: usize },
    Object { base: usize, node: u32 },
    Builder { builder: &'h MapBuilder<'h>, key: Value<'h> },
}

/// The result of a key: a node of the tree, or a key outside the tree.
enum Step<'h> {
    Node(u32),
    Other(&'h Str<'h>),
}

/// Consumes a comma and skips to the next element, or consumes the closing bracket. Returns whether there was a comma.
#[inline]
fn goes_on(cursor: &mut Cursor<'_>, close: u8) -> Result<bool, Unexpected> {
    let byte = cursor.next_part();
    if byte != Some(b',') && byte != Some(close) {
        return Err(Unexpected);
    }
    cursor.skip();
    if byte == Some(close) {
        return Ok(false);
    }
    cursor.next_part();
    Ok(true)
}

/// Consumes the colon after a key.
#[inline]
fn colon(cursor: &mut Cursor<'_>) -> Result<(), Unexpected> {
    cursor.next_part();
    cursor.take(b':')
}

/// Returns the value if nothing follows it.
fn end<'h>(cursor: &mut Cursor<'_>, value: Value<'h>) -> Result<Value<'h>, Stop> {
    cursor.next_part();
    if cursor.is_at_end() { Ok(value) } else { Err(Stop::Unexpected) }
}

/// A reader of JSON texts. All texts read by the same reader share keys and shapes. If an object repeats a key, the
/// last value is used.
pub struct Reader<'h> {
    h: &'h Heap,
    /// The maximum nesting of arrays and objects.
    depth: usize,
    keys: Keys,
    typed: bool,
    nodes: Vec<Node<'h>>,
    shared: Table<&'h str, &'h Str<'h>>,
    recent: RecentTexts<'h>,
    open: Vec<Open<'h>>,
    values: Vec<Value<'h>>,
    scratch: String,
}

impl<'h> Reader<'h> {
    /// Creates a reader that returns keys as strings.
    pub fn new(h: &'h Heap) -> Self {
        Reader {
            h,
            depth: MAX_DEPTH,
            keys: Keys::Strings,
            typed: false,
            nodes: Vec::new(),
            shared: Table::default(),
            recent: RecentTexts::default(),
            open: Vec::new(),
            values: Vec::new(),
            scratch: String::new(),
        }
    }

    /// Sets whether the keys of objects become strings or keywords.
    #[must_use]
    pub fn keys(self, keys: Keys) -> Self {
        Reader { keys, ..self }
    }

    /// Reads what JSON does not have, as [`Style::Typed`](super::Style::Typed) writes it: sets and times.
    #[must_use]
    pub fn typed(self) -> Self {
        Reader { typed: true, ..self }
    }

    /// Allows one more level of nesting, for a text that is a list of values or an object of named values. Each of
    /// these values can then be as deep as one that is written.
    #[must_use]
    pub fn of_several(self) -> Self {
        Reader { depth: MAX_DEPTH + 1, ..self }
    }

    /// Reads one text: one value with white space around it, and optionally a byte order mark at the start.
    ///
    /// # Errors
    /// The text is not JSON or exceeds a limit, or the work stopped before its end.
    pub fn read(&mut self, text: &str) -> Result<Value<'h>, ReadError> {
        match text.strip_prefix('\u{feff}') {
            Some(rest) => self.read_plain(rest).map_err(|error| error.after(text.len() - rest.len())),
            None => self.read_plain(text),
        }
    }

    fn read_plain(&mut self, text: &str) -> Result<Value<'h>, ReadError> {
        self.h.charge(cost::parsed(text.len()) + 1)?;
        if text.contains('\\') {
            // Strings with escapes are decoded in a scratch buffer.
            self.h.check_available(text.len() + 8_192)?;
        }
        self.recent.expect(self.h, text.len())?;
        self.open.clear();
        self.values.clear();
        match self.document(&mut Cursor::of_run(self.h, text)) {
            Ok(value) => Ok(value),
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::Unexpected) => Err(fault_of(self.h, text)),
        }
    }

    fn document(&mut self, cursor: &mut Cursor<'_>) -> Result<Value<'h>, Stop> {
        'value: loop {
            // The text itself is already charged.
            self.h.charge(cost::VALUE_READ)?;
            let Some(mut value) = self.begin(cursor)? else { continue };
            loop {
                let is_open = match self.open.last() {
                    None => return end(cursor, value),
                    Some(Open::Array { .. } | Open::Set { .. }) => {
                        push(self.h, &mut self.values, value)?;
                        goes_on(cursor, b']')?
                    }
                    Some(_) => self.next_entry(cursor, value)?,
                };
                if is_open {
                    continue 'value;
                }
                value = self.complete()?;
            }
        }
    }

    /// Reads a value. Returns `None` after the start of an array or object that is not empty.
    #[inline]
    fn begin(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Value<'h>>, Stop> {
        let h = self.h;
        Ok(Some(match cursor.next_part() {
            Some(b'"') => match cursor.string()? {
                Text::Plain(text) => Value::Str(self.recent.text(h, text)?),
                Text::Escaped(escaped) => self.decoded(escaped, |reader, text| reader.h.str(text))?,
            },
            Some(b'-' | b'0'..=b'9') => {
                let start = cursor.at();
                match cursor.number()? {
                    Number::Int(number) => Value::Int(number),
                    Number::Float(number) => Value::Float(number),
                    Number::Long | Number::Exact => self.number(start, cursor.since(start))?,
                }
            }
            Some(b'{') => {
                self.check_depth(cursor.at())?;
                self.root()?;
                cursor.skip();
                if cursor.next_part() == Some(b'}') {
                    cursor.skip();
                    return Ok(Some(Value::Map(h.empty_map()?)));
                }
                let base = self.values.len();
                let object = match self.key_step(cursor, ROOT)? {
                    Step::Node(node) => Open::Object { base, node },
                    Step::Other(key) => Open::Builder { builder: h.map_builder(SMALL)?, key: self.key_of(key) },
                };
                push(h, &mut self.open, object)?;
                return Ok(None);
            }
            Some(b'[') => {
                self.check_depth(cursor.at())?;
                cursor.skip();
                if cursor.next_part() == Some(b']') {
                    cursor.skip();
                    return Ok(Some(h.vector(&[])?));
                }
                push(h, &mut self.open, Open::Array { base: self.values.len() })?;
                return Ok(None);
            }
            Some(b'n') => {
                cursor.word("null")?;
                Value::Nil
            }
            Some(b't') => {
                cursor.word("true")?;
                Value::Bool(true)
            }
            Some(b'f') => {
                cursor.word("false")?;
                Value::Bool(false)
            }
            Some(b'#') if self.typed => return self.begin_typed(cursor),
            _ => return Err(Stop::Unexpected),
        }))
    }

    /// Reads a value that JSON does not have. Returns `None` after the start of a set that is not empty.
    #[cold]
    fn begin_typed(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Value<'h>>, Stop> {
        let h = self.h;
        let place = cursor.at();
        cursor.skip();
        let kind = cursor.peek();
        if kind == Some(b'[') {
            self.check_depth(place)?;
            cursor.skip();
            if cursor.next_part() == Some(b']') {
                cursor.skip();
                return Ok(Some(h.set(std::iter::empty())?));
            }
            push(h, &mut self.open, Open::Set { base: self.values.len() })?;
            return Ok(None);
        }
        cursor.skip();
        let whole = |cursor: &mut Cursor<'_>| {
            let start = cursor.at();
            match cursor.number()? {
                Number::Int(number) => Ok(number),
                Number::Long => cursor.since(start).parse().map_err(|_| Stop::Unexpected),
                _ => Err(Stop::Unexpected),
            }
        };
        let number = match cursor.peek() {
            Some(b'-' | b'0'..=b'9') => whole(cursor)?,
            _ => return Err(Stop::Unexpected),
        };
        let mut nanos = || {
            cursor.take(b':')?;
            let nanos = match cursor.peek() {
                Some(b'0'..=b'9') => u32::try_from(whole(cursor)?).ok(),
                _ => None,
            };
            nanos.filter(|nanos| *nanos < dates::NANOS).ok_or(Stop::Unexpected)
        };
        let time = match kind {
            Some(b'D') if dates::DAYS.contains(&number) => TimeValue::LocalDate(number),
            Some(b'I') if dates::SECONDS.contains(&number) => TimeValue::Instant(number, nanos()?),
            Some(b'L') if dates::SECONDS.contains(&number) => TimeValue::LocalDateTime(number, nanos()?),
            Some(b'P') => TimeValue::Duration(number, nanos()?),
            _ => return Err(Stop::Unexpected),
        };
        Ok(Some(h.time(time)?))
    }

    /// Decodes a string with escapes and passes it to `work`.
    fn decoded<T>(&mut self, escaped: &str, work: impl FnOnce(&mut Self, &str) -> Res<T>) -> Result<T, Stop> {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        unescape(self.h, escaped, &mut text)??;
        let done = work(self, &text)?;
        self.scratch = text;
        Ok(done)
    }

    fn check_depth(&self, place: usize) -> Result<(), ReadError> {
        if self.open.len() >= self.depth {
            return Err(ReadError::syntax(place, format!("nested more than {} deep", self.depth)));
        }
        Ok(())
    }

    /// Converts the text of a number that is known to be well-formed.
    fn number(&self, start: usize, text: &str) -> Result<Value<'h>, ReadError> {
        // The standard library converts it without interruption.
        if text.len() > MAX_NUMBER_BYTES {
            let message = format!("a number of {} bytes, where {MAX_NUMBER_BYTES} is the limit", text.len());
            return Err(ReadError::syntax(start, message));
        }
        if text.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            if let Ok(small) = text.parse::<i64>() {
                return Ok(Value::Int(small));
            }
            let digits = text.trim_start_matches('-').len();
            if digits > MAX_DIGITS {
                let message = format!("an integer of {digits} digits, where {MAX_DIGITS} is the limit");
                return Err(ReadError::syntax(start, message));
            }
            // The conversion takes quadratic time in the number of groups of digits.
            let groups = cost::copied(text.len()) + 1;
            self.h.charge(groups * groups)?;
            self.h.check_available(text.len() * 2)?;
            let big = text.parse::<BigInt>().map_err(|_| ReadError::syntax(start, "invalid number"))?;
            return Ok(self.h.integer(&big)?);
        }
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Value::Float(float)),
            _ => Err(ReadError::syntax(start, "number out of range")),
        }
    }

    fn root(&mut self) -> Res<()> {
        if self.nodes.is_empty() {
            let root = Node {
                key: None,
                written: "",
                parent: NONE,
                first_child: NONE,
                next_sibling: NONE,
                ways: 0,
                depth: 0,
                shape: None,
            };
            push(self.h, &mut self.nodes, root)?;
        }
        Ok(())
    }

    /// Reads a key and the colon after it.
    #[inline]
    fn key_step(&mut self, cursor: &mut Cursor<'_>, from: u32) -> Result<Step<'h>, Stop> {
        let mut next = self.nodes[from as usize].first_child;
        while next != NONE {
            let node = &self.nodes[next as usize];
            if !node.written.is_empty() && cursor.take_text(node.written) {
                return Ok(Step::Node(next));
            }
            next = node.next_sibling;
        }
        let step = self.new_step(cursor, from)?;
        colon(cursor)?;
        Ok(step)
    }

    /// Reads a key that is new at this node, or written differently than before.
    fn new_step(&mut self, cursor: &mut Cursor<'_>, from: u32) -> Result<Step<'h>, Stop> {
        match cursor.string()? {
            Text::Plain(key) => Ok(self.step(from, key)?),
            Text::Escaped(escaped) => self.decoded(escaped, |reader, key| reader.step(from, key)),
        }
    }

    /// Adds the value of the last key to the open object and reads the next key. Returns whether there is one.
    fn next_entry(&mut self, cursor: &mut Cursor<'_>, value: Value<'h>) -> Result<bool, Stop> {
        match self.open.last() {
            Some(&Open::Object { base, node }) => {
                push(self.h, &mut self.values, value)?;
                if !goes_on(cursor, b'}')? {
                    return Ok(false);
                }
                let next = match self.key_step(cursor, node)? {
                    Step::Node(node) => Open::Object { base, node },
                    Step::Other(key) => {
                        let room = self.values.len() - base;
                        let builder = self.h.map_builder((room + 1) * 2)?;
                        self.pour(builder, node, base)?;
                        self.values.truncate(base);
                        Open::Builder { builder, key: self.key_of(key) }
                    }
                };
                if let Some(open) = self.open.last_mut() {
                    *open = next;
                }
            }
            Some(&Open::Builder { builder, key }) => {
                builder.insert(self.h, key, value)?;
                if !goes_on(cursor, b'}')? {
                    return Ok(false);
                }
                let key = match cursor.string()? {
                    Text::Plain(key) => self.shared_text(key)?,
                    Text::Escaped(escaped) => self.decoded(escaped, |reader, key| reader.shared_text(key))?,
                };
                colon(cursor)?;
                let key = self.key_of(key);
                if let Some(open) = self.open.last_mut() {
                    *open = Open::Builder { builder, key };
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// Returns the value of the array or object that has just ended.
    fn complete(&mut self) -> Res<Value<'h>> {
        match self.open.pop() {
            Some(Open::Array { base }) => {
                let value = self.h.vector(&self.values[base..])?;
                self.values.truncate(base);
                Ok(value)
            }
            Some(Open::Set { base }) => {
                let value = self.h.set(self.values[base..].iter().copied())?;
                self.values.truncate(base);
                Ok(value)
            }
            Some(Open::Object { base, node }) => {
                let value = self.object(node, base)?;
                self.values.truncate(base);
                Ok(value)
            }
            Some(Open::Builder { builder, .. }) => Ok(Value::Map(builder.finish_as_written(self.h)?)),
            None => Ok(Value::Nil),
        }
    }

    /// Returns the map of the keys on the path to `node` and the values from `base` on.
    fn object(&mut self, node: u32, base: usize) -> Res<Value<'h>> {
        let h = self.h;
        let values = &self.values[base..];
        if let Some(shape) = &self.nodes[node as usize].shape {
            let sorted = shape.places[..values.len()].iter().map(|&place| values[place as usize]);
            return Ok(Value::Map(h.map_of_shape(shape.keys, sorted)?));
        }
        let builder = h.map_builder(SMALL)?;
        self.pour(builder, node, base)?;
        let map = builder.finish_as_written(h)?;
        if map.len() == self.values.len() - base
            && let Some((keys, _)) = map.shape()
        {
            let (came, count) = self.path(node);
            let place = |key: Value<'_>| {
                let (Value::Str(name) | Value::Keyword(_, name)) = key else { return None };
                let at = came[..count].iter().position(|k| k.is_some_and(|k| name.text() == k.text()))?;
                u8::try_from(at).ok()
            };
            let mut places = [0; SMALL];
            for (to, (key, _)) in places.iter_mut().zip(map.entries(h)?.iter()) {
                // If the position of a key is not found, the shape stays unknown, and the next such object is built in
                // the same way.
                let Some(at) = place(key) else { return Ok(Value::Map(map)) };
                *to = at;
            }
            self.nodes[node as usize].shape = Some(Shape { keys, places });
        }
        Ok(Value::Map(map))
    }

    /// Returns the keys on the path to a node, in order, and their number.
    fn path(&self, mut node: u32) -> ([Option<&'h Str<'h>>; SMALL], usize) {
        let mut keys = [None; SMALL];
        let count = usize::from(self.nodes[node as usize].depth);
        for place in (0..count).rev() {
            keys[place] = self.nodes[node as usize].key;
            node = self.nodes[node as usize].parent;
        }
        (keys, count)
    }

    /// Adds the keys on the path to a node and the values from `base` on to a builder.
    fn pour(&self, builder: &'h MapBuilder<'h>, node: u32, base: usize) -> Res<()> {
        let (keys, count) = self.path(node);
        let values = self.values.iter().skip(base);
        for (key, &value) in keys[..count].iter().flatten().zip(values) {
            builder.insert(self.h, self.key_of(key), value)?;
        }
        Ok(())
    }

    /// Finds or adds the step for a key.
    fn step(&mut self, from: u32, key: &str) -> Res<Step<'h>> {
        let mut next = self.nodes[from as usize].first_child;
        while next != NONE {
            let node = &self.nodes[next as usize];
            if node.key.is_some_and(|k| k.text() == key) {
                return Ok(Step::Node(next));
            }
            next = node.next_sibling;
        }
        match self.add_node(from, key)? {
            Some(node) => Ok(Step::Node(node)),
            None => Ok(Step::Other(self.shared_text(key)?)),
        }
    }

    /// Adds a node for a key. Returns `None` if the sequence is too long or there are too many children or nodes.
    fn add_node(&mut self, from: u32, key: &str) -> Res<Option<u32>> {
        let Node { ways, depth, first_child, .. } = self.nodes[from as usize];
        if ways >= MAX_WAYS || usize::from(depth) >= SMALL || self.nodes.len() >= MAX_NODES {
            return Ok(None);
        }
        let text = self.shared_text(key)?;
        let written = match key.len() <= MAX_WRITTEN && is_plain(key.as_bytes()) {
            true => self.h.text(&format!("\"{key}\":"))?.text(),
            false => "",
        };
        let node = Node {
            key: Some(text),
            written,
            parent: from,
            first_child: NONE,
            next_sibling: first_child,
            ways: 0,
            depth: depth + 1,
            shape: None,
        };
        let Ok(place) = u32::try_from(self.nodes.len()) else { return Ok(None) };
        push(self.h, &mut self.nodes, node)?;
        let parent = &mut self.nodes[from as usize];
        parent.first_child = place;
        parent.ways += 1;
        Ok(Some(place))
    }

    /// Returns the key value for a string.
    fn key_of(&self, text: &'h Str<'h>) -> Value<'h> {
        match self.keys {
            Keys::Strings => Value::Str(text),
            // The text is already charged.
            Keys::Keywords => Value::Keyword(hash_bytes(text.text().as_bytes()), text),
        }
    }

    /// Returns a string object that equal keys share, unless the table is full.
    fn shared_text(&mut self, key: &str) -> Res<&'h Str<'h>> {
        if let Some(text) = self.shared.get(key) {
            return Ok(text);
        }
        self.h.charge(cost::PLACED)?;
        let text = self.h.text(key)?;
        if self.shared.len() < MAX_SHARED {
            self.h.check_available((self.shared.len() + 1) * 64)?;
            self.shared.insert(text.text(), text);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap() -> Heap {
        Heap::new(1, 1 << 26)
    }

    fn parse<'h>(h: &'h Heap, text: &str) -> Option<Value<'h>> {
        match read(h, text) {
            Ok(value) => Some(value),
            Err(ReadError::Syntax { .. }) => None,
            Err(ReadError::Fault(fault)) => panic!("{fault:?}"),
        }
    }

    fn at<'h>(h: &'h Heap, value: Value<'h>, key: &str) -> Option<Value<'h>> {
        match value {
            Value::Map(map) => map.get_text(h, key, false).ok().flatten(),
            _ => None,
        }
    }

    #[test]
    fn numbers_and_marks_have_their_limits_and_places() {
        let h = Heap::new(1, 1 << 24);
        let fault = |text: &str| match Reader::new(&h).read(text) {
            Err(ReadError::Syntax { offset, message }) => (offset, message),
            _ => panic!("{text} is read"),
        };
        assert!(Reader::new(&h).read(&format!("0.{}", "1".repeat(MAX_NUMBER_BYTES - 2))).is_ok());
        let (offset, message) = fault(&format!("[0.{}]", "1".repeat(MAX_NUMBER_BYTES - 1)));
        assert!(offset == 1 && message.contains("65537 bytes"), "{offset} {message}");
        assert_eq!(fault("\u{feff}{\"a\":x}").0, 8);
        assert_eq!(fault(r#"{"a":1,}"#), (6, "trailing comma".to_owned()));
        assert_eq!(fault(r#"["\u12"]"#), (6, "invalid escape".to_owned()));
    }

    #[test]
    fn scalars() {
        let h = heap();
        assert!(matches!(parse(&h, " 42 "), Some(Value::Int(42))));
        assert!(matches!(parse(&h, "-0"), Some(Value::Int(0))));
        assert!(matches!(parse(&h, "-9223372036854775808"), Some(Value::Int(i64::MIN))));
        assert!(matches!(parse(&h, "9223372036854775808"), Some(Value::Big(_))));
        assert!(matches!(parse(&h, "1e3"), Some(Value::Float(f)) if f == 1000.0));
        assert!(matches!(parse(&h, "null"), Some(Value::Nil)));
        assert_eq!(parse(&h, r#""a\u00e9\ud83d\ude00\n""#).and_then(Value::as_str), Some("aé😀\n"));
    }

    #[test]
    fn what_is_not_json() {
        let h = heap();
        for text in [
            "",
            "{",
            "[1,",
            "01",
            "1.",
            "+1",
            "1e999",
            "NaN",
            "nul",
            "[1]x",
            "{\"a\":1,}",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"\u{1}\"",
            "'a'",
            "{a:1}",
            "[1 2]",
            "-",
            "\u{0}",
        ] {
            assert!(parse(&h, text).is_none(), "{text:?} was accepted");
        }
    }

    #[test]
    fn depth_and_digits_are_bounded() {
        let h = heap();
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(parse(&h, &nested(512)).is_some());
        assert!(parse(&h, &nested(513)).is_none());
        assert!(parse(&h, &"[".repeat(1 << 20)).is_none());
        assert!(Reader::new(&h).of_several().read(&nested(513)).is_ok());
        assert!(parse(&h, &"7".repeat(4_300)).is_some());
        assert!(parse(&h, &format!("-{}", "7".repeat(4_300))).is_some());
        assert!(parse(&h, &"7".repeat(4_301)).is_none());
    }

    #[test]
    fn short_strings_that_repeat_are_one_object() {
        let h = heap();
        let rows: Vec<String> =
            (0..1_000).map(|i| format!(r#"["paid","{}","a longer string than those"]"#, i % 40)).collect();
        let before = h.account().used;
        let Some(Value::Vector(rows)) = parse(&h, &format!("[{}]", rows.join(","))) else { panic!("not a vector") };
        for (i, row) in rows.items().iter().enumerate() {
            let Value::Vector(row) = row else { panic!("not a vector") };
            let texts: Vec<Option<&str>> = row.items().iter().map(|value| value.as_str()).collect();
            let number = (i % 40).to_string();
            assert_eq!(texts, [Some("paid"), Some(&*number), Some("a longer string than those")]);
        }
        // The vectors, the long strings, and a few others.
        let used = h.account().used - before;
        assert!(used < 1_000 * (16 + 32 + 3 * 16 + 56) + 8_000, "{used} bytes");
    }

    #[test]
    fn objects_of_one_shape_share_their_keys() {
        let h = heap();
        let Some(Value::Vector(rows)) = parse(&h, r#"[{"b":1,"a":2},{"b":3,"a":4},{"a":5,"b":6},{"b":7}]"#) else {
            panic!("not a vector")
        };
        let shapes: Vec<_> =
            rows.items().iter().filter_map(|v| if let Value::Map(m) = v { m.shape() } else { None }).collect();
        assert!(std::ptr::eq(shapes[0].0, shapes[1].0));
        let numbers: Vec<_> = rows
            .items()
            .iter()
            .map(|&row| (at(&h, row, "a").and_then(Value::as_f64), at(&h, row, "b").and_then(Value::as_f64)))
            .collect();
        assert_eq!(
            numbers,
            [(Some(2.0), Some(1.0)), (Some(4.0), Some(3.0)), (Some(5.0), Some(6.0)), (None, Some(7.0))]
        );
    }

    #[test]
    fn duplicates_and_wide_objects() {
        let h = heap();
        let twice = r#"[{"a":1,"b":2,"a":3},{"a":1,"b":2,"a":3}]"#;
        let Some(Value::Vector(rows)) = parse(&h, twice) else { panic!("not a vector") };
        for &row in rows.items() {
            assert!(matches!(at(&h, row, "a"), Some(Value::Int(3))));
        }
        let wide: Vec<String> = (0..5_000).map(|i| format!("\"k{i}\":{{\"v{}\":{i}}}", i % 100)).collect();
        let wide = parse(&h, &format!("{{{},\"k7\":0}}", wide.join(","))).unwrap_or(Value::Nil);
        let inner = at(&h, wide, "k8").and_then(|v| at(&h, v, "v8"));
        assert!(matches!(inner, Some(Value::Int(8))));
        assert!(matches!(at(&h, wide, "k7"), Some(Value::Int(0))));
        assert!(matches!(wide, Value::Map(m) if m.len() == 5_000));
    }

    #[test]
    fn little_memory_is_a_fault_and_nothing_worse() {
        let text = r#"[{"a":[1,2,{"b\u0041":"x"}],"c":12345678901234567890123},{"a":[],"c":1.5},{"d":null}]"#;
        let mut read_at = None;
        for limit in (0..20_000).step_by(64) {
            let h = Heap::new(1, limit);
            match read(&h, text) {
                Ok(_) => read_at = read_at.or(Some(limit)),
                Err(ReadError::Fault(Fault::Collect(_))) => assert_eq!(read_at, None, "{limit}"),
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(read_at.is_some());
    }
}
