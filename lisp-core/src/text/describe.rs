//! Values in error messages.

use super::number::float_text;
use crate::heap::Value;

/// Returns a short text for a value in a message: its kind, and a scalar's text.
pub(crate) fn describe(v: Value<'_>) -> String {
    match v {
        Value::Nil => "nil".to_owned(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Int(i) => format!("the integer {i}"),
        Value::Float(f) => format!("the float {}", float_text(f)),
        Value::Keyword(_, s) if s.text().len() <= 40 => format!("the keyword :{}", s.text()),
        Value::Str(s) if s.text().len() <= 40 => format!("the string {:?}", s.text()),
        Value::Map(m) => format!("a map of {} entries", m.len()),
        Value::Set(m) => format!("a set of {} members", m.len()),
        Value::Vector(v) => format!("a vector of {} elements", v.len()),
        other => with_article(other.type_name()),
    }
}

/// Returns a number of arguments with its noun.
pub(crate) fn arguments(count: usize) -> String {
    format!("{count} argument{}", if count == 1 { "" } else { "s" })
}

/// Returns as much of a name or a list of names as a message shows.
pub(crate) fn beginning(text: &str) -> &str {
    const MAX: usize = 200;
    &text[..text.floor_char_boundary(MAX)]
}

/// Returns a noun with its indefinite article.
fn with_article(noun: &str) -> String {
    let is_vowel = |c: char| matches!(c.to_ascii_lowercase(), 'a' | 'e' | 'i' | 'o' | 'u');
    let article = if noun.starts_with(is_vowel) { "an" } else { "a" };
    format!("{article} {noun}")
}
