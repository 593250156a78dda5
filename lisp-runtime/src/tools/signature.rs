//! Signatures: the arguments and results of tools, and the results of programs. `docs/signatures.md` describes them.
//!
//! ```text
//! signature = type | "(" fields ")" "->" type
//! fields    = [ name type { "," name type } [ "," "..." ] | "..." ]
//! type      = (":string" | ":int" | ":float" | ":bool" | ":keyword" | ":datetime" | ":map" | ":any"
//!              | "[" type "]" | "{" fields "}") ["?"]
//! ```

use lisp_core::check::{Parameter, Shape, ToolShape, Types};
use lisp_core::heap::{Heap, Map, Res, TimeValue, Value};
use lisp_core::text::is_instant_text;
use lisp_core::text::near_names;
use serde_json::{Map as JsonMap, Value as Json};
use std::collections::HashSet;
use std::fmt;

/// The maximum nesting of types.
const NESTING: usize = 32;
/// The maximum number of errors that one check reports.
pub(crate) const ERRORS: usize = 8;
/// The names of the primitive types.
const PRIMITIVES: &str = ":string :int :float :bool (or :boolean) :keyword :datetime :map :any";

/// A type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    String,
    Int,
    Float,
    Bool,
    Keyword,
    Datetime,
    Map,
    Any,
    List(Box<Type>),
    Fields(Fields),
    Optional(Box<Type>),
}

impl Type {
    /// Returns the shape of its values. Results may have more keys than a contract lists.
    fn shape(&self, is_result: bool) -> Shape {
        match self {
            Type::String => Shape::of(Types::STRING),
            Type::Int => Shape::of(Types::INT),
            Type::Float => Shape::of(Types::NUMBER),
            Type::Bool => Shape::of(Types::BOOL),
            Type::Keyword => Shape::of(Types::KEYWORD | Types::STRING),
            Type::Datetime => Shape::of(Types::STRING | Types::OTHER),
            Type::Map => Shape::of(Types::MAP),
            Type::Any => Shape::UNKNOWN,
            Type::List(of) => Shape::list(of.shape(is_result)),
            Type::Fields(fields) => {
                let field = |field: &Field| {
                    (field.name.as_str().into(), field.of.shape(is_result), !matches!(field.of, Type::Optional(_)))
                };
                match is_result && !fields.open {
                    true => Shape::listed(fields.all.iter().map(field)),
                    false => Shape::map(fields.all.iter().map(field), !fields.open),
                }
            }
            Type::Optional(of) => of.shape(is_result).or_nil(),
        }
    }
}

/// The fields of a map, or the parameters of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) all: Vec<Field>,
    /// Whether other keys are allowed in arguments.
    pub(super) open: bool,
}

/// A named type: a field of a map, or a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) of: Type,
}

/// A parsed signature.
///
/// ```
/// use lisp_runtime::tools::Signature;
/// assert!(Signature::parse("(sku :string, n :int?) -> {price :float}").is_ok());
/// assert!(Signature::parse("[:number]").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Absent if the signature has only a result.
    params: Option<Fields>,
    output: Type,
}

/// Why a signature is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {at}: expected {expected}")]
pub struct SignatureError {
    expected: String,
    /// The character position, from 1.
    at: usize,
}

/// A value that does not match: its path, the expected type, and the actual value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    path: String,
    message: String,
}

impl Mismatch {
    pub(crate) fn new(path: String, message: String) -> Self {
        Mismatch { path, message }
    }

    /// Returns the text, without the value if it is, or is part of, one of these arguments.
    fn shown(&self, redacted: &[String]) -> String {
        match redacted.iter().find(|name| self.path.contains(name.as_str())) {
            Some(name) => format!("{name}: it is missing or does not fit; its value is not shown"),
            None => self.to_string(),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// Returns all mismatches of arguments in one line, without the values of redacted ones.
pub(crate) fn sentence_of_arguments(mismatches: &[Mismatch], redacted: &[String]) -> String {
    mismatches.iter().map(|mismatch| mismatch.shown(redacted)).collect::<Vec<_>>().join("; ")
}

/// Returns all mismatches in one line.
pub(crate) fn sentence(mismatches: &[Mismatch]) -> String {
    mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::String => f.write_str(":string"),
            Type::Int => f.write_str(":int"),
            Type::Float => f.write_str(":float"),
            Type::Bool => f.write_str(":bool"),
            Type::Keyword => f.write_str(":keyword"),
            Type::Datetime => f.write_str(":datetime"),
            Type::Map => f.write_str(":map"),
            Type::Any => f.write_str(":any"),
            Type::List(of) => write!(f, "[{of}]"),
            Type::Fields(fields) => write!(f, "{{{fields}}}"),
            Type::Optional(of) => write!(f, "{of}?"),
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, field) in self.all.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{} {}", field.name, field.of)?;
        }
        match (self.open, self.all.is_empty()) {
            (true, true) => f.write_str("..."),
            (true, false) => f.write_str(", ..."),
            (false, _) => Ok(()),
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.params {
            Some(params) => write!(f, "({params}) -> {}", self.output),
            None => write!(f, "{}", self.output),
        }
    }
}

impl Signature {
    #[cfg(feature = "json-schema")]
    pub(super) fn new(params: Fields, output: Type) -> Self {
        Signature { params: Some(params), output }
    }

    /// Returns the shape of the arguments and the result; `None` if it has no arguments.
    pub(crate) fn shape(&self) -> Option<ToolShape> {
        let params = self.params.as_ref()?;
        let parameter = |field: &Field| Parameter {
            name: field.name.as_str().into(),
            shape: field.of.shape(false),
            is_required: !matches!(field.of, Type::Optional(_)),
        };
        Some(ToolShape {
            parameters: params.all.iter().map(parameter).collect(),
            is_open: params.open,
            result: self.output.shape(true),
        })
    }

    /// Parses a signature.
    ///
    /// # Errors
    /// The first character that does not match the grammar, and what was expected there.
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        parser.space();
        let params = if parser.eat('(') {
            let params = parser.fields(')')?;
            parser.space();
            if !parser.eat_str("->") {
                return Err(parser.expected("->"));
            }
            parser.space();
            Some(params)
        } else {
            None
        };
        let output = parser.of()?;
        parser.space();
        match parser.rest().is_empty() {
            true => Ok(Signature { params, output }),
            false => Err(parser.expected("the end")),
        }
    }

    /// Returns whether this is another signature, but for parameters that are new and optional.
    pub(crate) fn extends(&self, was: &Signature) -> bool {
        let grows = |was: &Fields, is: &Fields| {
            let is_old = |field: &Field| was.all.iter().any(|known| known == field);
            is.open == was.open
                && was.all.iter().all(|field| is.all.contains(field))
                && is.all.iter().all(|field| is_old(field) || matches!(field.of, Type::Optional(_)))
        };
        self.output == was.output
            && match (&was.params, &self.params) {
                (Some(was), Some(is)) => grows(was, is),
                (was, is) => was == is,
            }
    }

    /// Returns the type of the result.
    pub(crate) fn output(&self) -> &impl fmt::Display {
        &self.output
    }

    /// Returns whether there is a parameter with this exact name.
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        self.params.as_ref().is_some_and(|params| params.all.iter().any(|field| field.name == name))
    }

    /// Checks the result of a program. Returns no mismatches on success.
    pub(crate) fn check_result<'h>(&self, h: &'h Heap, value: Value<'h>) -> Res<Vec<Mismatch>> {
        self.check_output(h, value, Of::Result)
    }

    /// Checks the result of a tool.
    pub(crate) fn check_reply<'h>(&self, h: &'h Heap, value: Value<'h>) -> Res<Vec<Mismatch>> {
        self.check_output(h, value, Of::Reply)
    }

    fn check_output<'h>(&self, h: &'h Heap, value: Value<'h>, of: Of) -> Res<Vec<Mismatch>> {
        let mut check = Check { h, of, path: vec![Step::Name("result")], found: Vec::new(), seen: HashSet::new() };
        check.value(value, &self.output)?;
        Ok(check.found)
    }

    /// Checks the arguments of a call: a map with string keys.
    pub(crate) fn check_arguments<'h>(&self, h: &'h Heap, arguments: &'h Map<'h>) -> Res<Vec<Mismatch>> {
        let mut check = Check { h, of: Of::Arguments, path: Vec::new(), found: Vec::new(), seen: HashSet::new() };
        if let Some(params) = &self.params {
            check.fields(arguments, params)?;
        }
        Ok(check.found)
    }
}

/// Checks arguments that a policy or an approver supplies as JSON, not the program.
impl Signature {
    /// Returns the first argument that does not match.
    pub(crate) fn check_json_arguments(&self, arguments: &JsonMap<String, Json>) -> Result<(), Mismatch> {
        self.params.as_ref().map_or(Ok(()), |params| params.check_json(arguments, ""))
    }
}

impl Fields {
    fn check_json(&self, map: &JsonMap<String, Json>, path: &str) -> Result<(), Mismatch> {
        let unknown = map.keys().find(|key| !self.all.iter().any(|field| **key == field.name));
        if let Some(key) = unknown.filter(|_| !self.open) {
            return Err(Mismatch::new(path.to_owned(), format!("unknown field {key:?}")));
        }
        self.all.iter().try_for_each(|field| {
            let path = if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
            match (map.get(&field.name), &field.of) {
                (Some(value), kind) => kind.check_json(value, &path),
                (None, Type::Optional(_)) => Ok(()),
                (None, _) => Err(Mismatch::new(path, "the field is missing".to_owned())),
            }
        })
    }
}

impl Type {
    /// The recursion is as deep as the signature.
    fn check_json(&self, value: &Json, path: &str) -> Result<(), Mismatch> {
        let (fits, expected) = match (self, value) {
            (Type::Optional(_), Json::Null) => (true, ""),
            (Type::Optional(kind), value) => return kind.check_json(value, path),
            (Type::List(kind), Json::Array(items)) => {
                return items
                    .iter()
                    .enumerate()
                    .try_for_each(|(index, item)| kind.check_json(item, &format!("{path}[{index}]")));
            }
            (Type::Fields(fields), Json::Object(map)) => return fields.check_json(map, path),
            (Type::Any, _) => (true, ""),
            (Type::String | Type::Keyword, value) => (value.is_string(), "a string"),
            (Type::Datetime, value) => {
                (value.as_str().is_some_and(is_instant_text), "a string such as \"2024-01-31T12:00:00Z\"")
            }
            (Type::Int, value) => (is_integer(value), "an integer"),
            (Type::Float, value) => (value.is_number(), "a number"),
            (Type::Bool, value) => (value.is_boolean(), "true or false"),
            (Type::Map, value) => (value.is_object(), "a map"),
            (Type::List(_), _) => (false, "a vector"),
            (Type::Fields(_), _) => (false, "a map"),
        };
        if fits { Ok(()) } else { Err(Mismatch::new(path.to_owned(), format!("expected {expected}"))) }
    }
}

/// Returns whether a number of JSON is an integer. Those beyond 64 bits are read as floating-point numbers.
fn is_integer(value: &Json) -> bool {
    const BEYOND: f64 = 9.0e18;
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.abs() > BEYOND)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn expected(&self, expected: impl Into<String>) -> SignatureError {
        SignatureError { expected: expected.into(), at: self.text[..self.at].chars().count() + 1 }
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    fn eat_str(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn name(&mut self) -> Result<String, SignatureError> {
        let start = self.at;
        let word = self.word();
        if !word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            self.at = start;
            return Err(self.expected("a name"));
        }
        Ok(word.to_owned())
    }

    /// Parses the fields up to the closing character.
    fn fields(&mut self, close: char) -> Result<Fields, SignatureError> {
        let mut fields = Fields { all: Vec::new(), open: false };
        self.space();
        if self.eat(close) {
            return Ok(fields);
        }
        loop {
            if self.eat_str("...") {
                fields.open = true;
                self.space();
                return if self.eat(close) { Ok(fields) } else { Err(self.expected(close)) };
            }
            let start = self.at;
            let name = self.name()?;
            if fields.all.iter().any(|field| same_name(&field.name, &name)) {
                self.at = start;
                return Err(self.expected(format!("another name: {name} occurs twice")));
            }
            self.space();
            fields.all.push(Field { name, of: self.of()? });
            self.space();
            if self.eat(close) {
                return Ok(fields);
            }
            if !self.eat(',') {
                return Err(self.expected(format!(", or {close}")));
            }
            self.space();
        }
    }

    fn of(&mut self) -> Result<Type, SignatureError> {
        self.depth += 1;
        if self.depth > NESTING {
            return Err(self.expected(format!("at most {NESTING} nested types")));
        }
        let of = if self.eat('{') {
            Type::Fields(self.fields('}')?)
        } else if self.eat('[') {
            self.space();
            let element = self.of()?;
            self.space();
            if !self.eat(']') {
                return Err(self.expected("]"));
            }
            Type::List(Box::new(element))
        } else {
            self.primitive()?
        };
        self.depth -= 1;
        Ok(if self.eat('?') { Type::Optional(Box::new(of)) } else { of })
    }

    fn primitive(&mut self) -> Result<Type, SignatureError> {
        let start = self.at;
        let of = if self.eat(':') {
            match self.word() {
                "string" => Some(Type::String),
                "int" => Some(Type::Int),
                "float" => Some(Type::Float),
                "bool" | "boolean" => Some(Type::Bool),
                "keyword" => Some(Type::Keyword),
                "datetime" => Some(Type::Datetime),
                "map" => Some(Type::Map),
                "any" => Some(Type::Any),
                _ => None,
            }
        } else {
            None
        };
        of.ok_or_else(|| {
            self.at = start;
            self.expected(format!("a type, such as [:int], {{name :string}} or one of {PRIMITIVES}"))
        })
    }
}

/// One step of a path to a value.
#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The arguments of a call, before they become JSON: their keys are the names as the tool receives them.
    Arguments,
    /// The result of a tool, which was JSON.
    Reply,
    /// The result of a program.
    Result,
}

struct Check<'a, 'h> {
    h: &'h Heap,
    of: Of,
    path: Vec<Step<'a>>,
    found: Vec<Mismatch>,
    /// The vectors and maps that were checked, by their addresses and the addresses of their types. A shared object is
    /// checked, and its mismatches are reported, only once.
    seen: HashSet<(usize, usize)>,
}

impl<'a, 'h> Check<'a, 'h> {
    /// Returns whether a vector or map is checked against a type for the first time.
    fn is_new(&mut self, object: *const (), of: &'a Type) -> Res<bool> {
        /// The bytes of an entry in the table.
        const ENTRY: usize = 40;
        if self.seen.len() == self.seen.capacity() {
            self.h.check_available((self.seen.len() + 1).saturating_mul(2 * ENTRY))?;
        }
        self.h.charge(4)?;
        Ok(self.seen.insert((object.addr(), std::ptr::from_ref(of).addr())))
    }

    fn mismatch(&mut self, message: String) {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Name(name) if path.is_empty() => path.push_str(name),
                Step::Name(name) => path = format!("{path}.{name}"),
                Step::Index(index) => path = format!("{path}[{index}]"),
            }
        }
        self.found.push(Mismatch { path, message });
    }

    /// Checks one value. The recursion is as deep as the signature.
    fn value(&mut self, value: Value<'h>, of: &'a Type) -> Res<()> {
        self.h.charge(1)?;
        let (fits, expected) = match of {
            Type::Any => (true, ""),
            Type::Optional(_) if value.is_nil() => (true, ""),
            Type::Optional(of) => return self.value(value, of),
            // A keyword in a result becomes a string.
            Type::String => (matches!(value, Value::Str(_) | Value::Keyword(..)), "a string"),
            Type::Int => (matches!(value, Value::Int(_) | Value::Big(_)), "an integer"),
            Type::Float => {
                (value.as_f64().is_some_and(|f| f.is_finite() || matches!(value, Value::Big(_))), "a number")
            }
            Type::Bool => (matches!(value, Value::Bool(_)), "true or false"),
            // JSON has strings for these.
            Type::Keyword => match self.of {
                Of::Result => (matches!(value, Value::Keyword(..)), "a keyword"),
                _ => (matches!(value, Value::Keyword(..) | Value::Str(_)), "a keyword, or a string that names one"),
            },
            Type::Datetime => match (self.of, value) {
                (Of::Arguments | Of::Reply, Value::Str(text)) => {
                    let shown = "a datetime, or a string such as \"2024-01-31T12:00:00Z\"";
                    if !is_instant_text(text.text()) {
                        let shape = if text.text().len() > 40 { "a longer text" } else { text.text() };
                        self.mismatch(format!("expected {shown}, got the string {shape:?}"));
                        return Ok(());
                    }
                    (true, shown)
                }
                (Of::Result, _) => (is_datetime(value), "a datetime"),
                _ => (is_datetime(value), "a datetime, or a string such as \"2024-01-31T12:00:00Z\""),
            },
            Type::Map => (matches!(value, Value::Map(_)), "a map"),
            Type::List(element) => match value {
                Value::Vector(items) => {
                    if !self.is_new(std::ptr::from_ref(items).cast(), of)? {
                        return Ok(());
                    }
                    for (index, &item) in items.items().iter().enumerate() {
                        self.path.push(Step::Index(index));
                        self.value(item, element)?;
                        self.path.pop();
                        if self.found.len() >= ERRORS {
                            break;
                        }
                    }
                    return Ok(());
                }
                _ => (false, "a vector"),
            },
            Type::Fields(fields) => match value {
                Value::Map(map) if !self.is_new(std::ptr::from_ref(map).cast(), of)? => return Ok(()),
                Value::Map(map) => return self.fields(map, fields),
                _ => (false, "a map"),
            },
        };
        if !fits {
            let got = match value {
                Value::Float(f) if f.is_nan() => "##NaN, which JSON does not have",
                Value::Float(f) if f.is_infinite() => "an infinite number, which JSON does not have",
                other => other.type_name(),
            };
            self.mismatch(format!("expected {expected}, got {got}"));
        }
        Ok(())
    }

    fn fields(&mut self, map: &'h Map<'h>, fields: &'a Fields) -> Res<()> {
        let entries = map.entries(self.h)?;
        self.h.charge((entries.len() as u64).saturating_mul(fields.all.len() as u64))?;
        let of = self.of;
        let is = |key: Value<'_>, field: &Field| match of {
            Of::Arguments => key.as_str() == Some(&field.name),
            Of::Reply | Of::Result => names(key, &field.name),
        };
        if of == Of::Arguments && !fields.open {
            let unknown: Vec<&str> = entries
                .iter()
                .filter(|(key, _)| !fields.all.iter().any(|field| is(*key, field)))
                .filter_map(|(key, _)| key.as_str())
                .take(ERRORS)
                .collect();
            for key in unknown {
                self.unknown(key, fields);
            }
        }
        for field in &fields.all {
            let mut named = entries.iter().filter(|&(key, _)| is(key, field)).map(|(_, value)| value);
            let (value, more) = (named.next(), named.next().is_some());
            self.path.push(Step::Name(&field.name));
            match value {
                _ if more => {
                    self.mismatch("more than one key of the map means this field; keep one of them".to_owned());
                }
                Some(value) => self.value(value, &field.of)?,
                None if matches!(field.of, Type::Optional(_)) => {}
                None => self.mismatch("the field is missing".to_owned()),
            }
            self.path.pop();
            if self.found.len() >= ERRORS {
                break;
            }
        }
        Ok(())
    }

    /// Reports a key that the signature does not have; usually a misspelled name.
    fn unknown(&mut self, key: &str, fields: &Fields) {
        /// The maximum number of characters of a key that are shown.
        const KEY: usize = 60;
        let all = || fields.all.iter().map(|field| field.name.as_str());
        let near = all().find(|name| same_name(name, key)).or_else(|| near_names(key, all(), 1).first().copied());
        let hint = match near {
            Some(name) => format!("did you mean {name}?"),
            None if fields.all.is_empty() => "expected none".to_owned(),
            None => format!("expected {}", listed(all())),
        };
        let shown: String = key.chars().take(KEY).collect();
        let more = if shown.len() < key.len() { "..." } else { "" };
        let what = if self.path.is_empty() { "argument" } else { "field" };
        self.mismatch(format!("unknown {what} {shown:?}{more}: {hint}"));
    }
}

/// Returns names in a row; of very many, the first ones.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const SHOWN: usize = 12;
    let all: Vec<&str> = names.collect();
    let more = if all.len() > SHOWN { format!(" and {} more", all.len() - SHOWN) } else { String::new() };
    format!("{}{more}", all[..all.len().min(SHOWN)].join(", "))
}

/// Returns whether a key names a field. Hyphens equal underscores, and keywords equal strings.
fn names(key: Value<'_>, field: &str) -> bool {
    let text = match key {
        Value::Str(s) | Value::Keyword(_, s) => s.text(),
        _ => return false,
    };
    same_name(text, field)
}

/// Returns whether a text is a name in signatures.
#[cfg(feature = "json-schema")]
pub(super) fn is_name(text: &str) -> bool {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.name().is_ok_and(|name| name == text)
}

/// Returns whether two names are equal, with hyphens equal to underscores.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    let plain = |c: u8| if c == b'-' { b'_' } else { c };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| plain(a) == plain(b))
}

fn is_datetime(value: Value<'_>) -> bool {
    matches!(value, Value::Time(t) if matches!(t.value, TimeValue::Instant(..) | TimeValue::Date(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        for good in [
            ":int",
            "{count :int}",
            "() -> {total :float, rows [:map]}",
            "(user {id :int, name :string}, limit :int) -> [{order_id :int}]",
            " ( cursor :string? )  ->\n {items [:any?]?, next-cursor :string?} ",
            "{}",
            "(x :boolean) -> [{}]",
            "(...) -> :any",
            "(a :int, ... ) -> {b :int, ...}",
        ] {
            assert!(Signature::parse(good).is_ok(), "{good}: {:?}", Signature::parse(good));
        }
        for (bad, at) in [
            ("invalid syntax", 1),
            ("", 1),
            (":integer", 1),
            ("[:int", 6),
            ("[]", 2),
            ("{a :int b :int}", 9),
            ("{a :int, a :int}", 10),
            ("{a-b :int, a_b :int}", 12),
            ("(a :int)", 9),
            ("(a :int) ->", 12),
            (":int :int", 6),
            ("{1a :int}", 2),
            ("(..., a :int) -> :any", 5),
            ("(a :int ...) -> :any", 9),
        ] {
            let error = Signature::parse(bad).expect_err(bad);
            assert_eq!(error.at, at, "{bad}: {error}");
        }
        assert!(Signature::parse(&"[".repeat(100_000)).is_err());
    }
}
