//! Rewords serde errors about JSON that does not match a type.

use lisp_core::text::near_names;
use serde::Deserialize;
use serde_path_to_error::Segment;

/// A value that does not match its type.
pub(crate) struct Misfit {
    /// Where the value is, such as `rows[2].name`; empty for the whole text.
    pub(crate) path: String,
    /// The message of serde, without the position in a text that the program has never seen.
    pub(crate) message: String,
}

impl Misfit {
    /// Reads a text that does not match once more, to find the path. Only errors pay for this.
    pub(crate) fn of<'de, T: Deserialize<'de>>(json: &'de str, error: &serde_json::Error) -> Self {
        match serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_str(json)) {
            Err(error) => {
                let message = plain(error.inner());
                let mut steps: Vec<&Segment> = error.path().iter().collect();
                // A key that the type does not have is part of the message.
                if let Some((name, _)) = unknown(&message, "unknown field `")
                    && matches!(steps.last(), Some(Segment::Map { key }) if key == name)
                {
                    steps.pop();
                }
                Misfit { path: path(&steps), message }
            }
            Ok(_) => Misfit { path: String::new(), message: plain(error) },
        }
    }

    /// Returns the message in terms of the language.
    pub(crate) fn in_words(&self) -> String {
        in_words(&self.message)
    }

    /// Returns the name of a missing field.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.message.strip_prefix("missing field `")?.strip_suffix('`')
    }
}

fn path(steps: &[&Segment]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Segment::Seq { index } => path.push_str(&format!("[{index}]")),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(name);
            }
            Segment::Unknown => path.push_str("[?]"),
        }
    }
    path
}

/// Returns the message of a JSON error without the position.
pub(crate) fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).map_or_else(|| text.clone(), str::to_owned)
}

/// Returns the unknown name in a serde error, and the known names.
fn unknown<'m>(message: &'m str, prefix: &str) -> Option<(&'m str, Vec<&'m str>)> {
    let rest = message.strip_prefix(prefix)?;
    let (name, known) = rest.rsplit_once("`, expected ").or_else(|| rest.rsplit_once("`, there are no "))?;
    Some((name, known.split('`').skip(1).step_by(2).collect()))
}

/// Returns the known field that is closest to an unknown one, from the message of a serde error.
///
/// For ``unknown field `dta`, expected one of `id`, `data` `` it returns `data`.
pub fn near_field(message: &str) -> Option<&str> {
    let (name, known) = unknown(message, "unknown field `")?;
    near_names(name, known.into_iter(), 1).first().copied()
}

fn in_words(message: &str) -> String {
    if let Some((name, known)) = unknown(message, "unknown field `") {
        let hint = match near_names(name, known.iter().copied(), 1).first() {
            Some(near) => format!("did you mean {near}?"),
            None if known.is_empty() => "expected none".to_owned(),
            None => format!("expected {}", known.join(", ")),
        };
        return format!("unknown field {}: {hint}", shown(name));
    }
    if let Some((name, known)) = unknown(message, "unknown variant `") {
        let near = near_names(name, known.iter().copied(), 1);
        let hint = near.first().map(|near| format!(": did you mean {near}?")).unwrap_or_default();
        let all: Vec<String> = known.iter().map(|known| shown(known)).collect();
        return format!("expected {}, got the string {}{hint}", all.join(" or "), shown(name));
    }
    if let Some(name) = message.strip_prefix("missing field `").and_then(|name| name.strip_suffix('`')) {
        return format!("the field {name} is missing");
    }
    if let Some((length, wanted)) =
        message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("expected {}, got {length}", expected(wanted));
    }
    let mismatch = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match mismatch.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((came, wanted)) => format!("expected {}, got {}{}", expected(wanted), got(came), next_step(came, wanted)),
        None => message.to_owned(),
    }
}

fn shown(text: &str) -> String {
    let (cut, more) = (text.chars().take(60).collect::<String>(), if text.chars().count() > 60 { "..." } else { "" });
    format!("{cut:?}{more}")
}

fn is_integer(wanted: &str) -> bool {
    matches!(wanted.strip_prefix(['i', 'u']), Some("8" | "16" | "32" | "64" | "128" | "size"))
}

/// Returns the expected type, in terms of the language.
fn expected(wanted: &str) -> String {
    let range = match wanted {
        "u8" => Some((0, i64::from(u8::MAX))),
        "u16" => Some((0, i64::from(u16::MAX))),
        "u32" => Some((0, i64::from(u32::MAX))),
        "i8" => Some((i64::from(i8::MIN), i64::from(i8::MAX))),
        "i16" => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
        "i32" => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        _ => None,
    };
    let elements = |prefix: &str| wanted.rsplit_once(prefix).map(|(_, count)| format!("a vector of {count} elements"));
    match (wanted, range) {
        (_, Some((least, max))) => format!("an integer from {least} to {max}"),
        ("u64" | "u128" | "usize", _) => "an integer of 0 or more".to_owned(),
        _ if is_integer(wanted) => "an integer".to_owned(),
        ("f32" | "f64", _) => "a number".to_owned(),
        ("a boolean", _) => "true or false".to_owned(),
        ("a sequence", _) => "a vector".to_owned(),
        ("unit", _) => "nil".to_owned(),
        ("a borrowed string" | "a string or bytes", _) => "a string".to_owned(),
        ("a character", _) => "a string of one character".to_owned(),
        _ if wanted.starts_with("struct ") => "a map".to_owned(),
        _ => elements(" of size ").or_else(|| elements(" of length ")).unwrap_or_else(|| wanted.to_owned()),
    }
}

/// Returns the number, boolean or string in serde's description of a value.
fn inside<'m>(came: &'m str, prefix: &str) -> Option<&'m str> {
    came.strip_prefix(prefix)?.strip_prefix('`')?.strip_suffix('`')
}

/// Returns the actual value, in terms of the language.
fn got(came: &str) -> String {
    /// The maximum number of characters that are shown.
    const SHOWN: usize = 80;
    let inner = inside(came, "integer ").map(|n| format!("the integer {n}"));
    let inner = inner.or_else(|| inside(came, "floating point ").map(|n| format!("the number {n}")));
    let inner = inner.or_else(|| inside(came, "boolean ").map(str::to_owned));
    match (inner, came) {
        (Some(inner), _) => inner,
        (_, "null" | "unit value" | "Option value") => "nil".to_owned(),
        (_, "sequence") => "a vector".to_owned(),
        (_, "map") => "a map".to_owned(),
        _ if came.starts_with("string ") && came.chars().count() > SHOWN => {
            format!("the {}...", came.chars().take(SHOWN).collect::<String>())
        }
        _ if came.starts_with("string ") => format!("the {came}"),
        _ => came.to_owned(),
    }
}

/// Returns what to write instead, where that is clear.
fn next_step(came: &str, wanted: &str) -> String {
    let text = came.strip_prefix("string ").and_then(|text| serde_json::from_str::<String>(text).ok());
    let number = || inside(came, "integer ").or_else(|| inside(came, "floating point "));
    match (text.as_deref().map(str::trim), wanted) {
        (Some(text), _) if is_integer(wanted) && text.parse::<i64>().is_ok() => {
            format!("; write {text}, without quotes")
        }
        (Some(text), "f32" | "f64") if text.parse::<f64>().is_ok_and(f64::is_finite) => {
            format!("; write {text}, without quotes")
        }
        (Some(text @ ("true" | "false")), "a boolean") => format!("; write {text}, without quotes"),
        (_, "a string" | "a borrowed string") => match number() {
            Some(n) => format!("; write \"{n}\", in quotes"),
            None => String::new(),
        },
        (_, "a sequence") if !matches!(came, "null" | "map") => "; put it into a vector".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the reading of them is looked at")]
    struct Order {
        id: u8,
        #[serde(default)]
        lines: Vec<Line>,
        #[serde(default)]
        place: Option<(f64, f64)>,
        #[serde(default)]
        state: Option<State>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only the reading of them is looked at")]
    struct Line {
        sku: String,
        amount: f64,
        gift: Option<bool>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum State {
        Open,
        Closed,
    }

    #[test]
    fn misfits_are_told_in_the_words_of_the_language() {
        for (json, path, words) in [
            (
                r#"{"id": "7"}"#,
                "id",
                "expected an integer from 0 to 255, got the string \"7\"; write 7, without quotes",
            ),
            (r#"{"id": 300}"#, "id", "expected an integer from 0 to 255, got the integer 300"),
            (r#"{"id": 1.5}"#, "id", "expected an integer from 0 to 255, got the number 1.5"),
            (r#"{"id": null}"#, "id", "expected an integer from 0 to 255, got nil"),
            (r#"{"id": [1]}"#, "id", "expected an integer from 0 to 255, got a vector"),
            (r#"{}"#, "", "the field id is missing"),
            (r#"{"id": 1, "liens": []}"#, "", "unknown field \"liens\": did you mean lines?"),
            (r#"{"id": 1, "zzz": []}"#, "", "unknown field \"zzz\": expected id, lines, place, state"),
            (r#"{"id": 1, "lines": {}}"#, "lines", "expected a vector, got a map"),
            (r#"{"id": 1, "lines": "a"}"#, "lines", "expected a vector, got the string \"a\"; put it into a vector"),
            (
                r#"{"id": 1, "lines": [{"sku": 5}]}"#,
                "lines[0].sku",
                "expected a string, got the integer 5; write \"5\", in quotes",
            ),
            (
                r#"{"id": 1, "lines": [{"sku": "a", "amount": "2.5"}]}"#,
                "lines[0].amount",
                "expected a number, got the string \"2.5\"; write 2.5, without quotes",
            ),
            (
                r#"{"id": 1, "lines": [{"sku": "a", "amount": 1, "gift": "true"}]}"#,
                "lines[0].gift",
                "expected true or false, got the string \"true\"; write true, without quotes",
            ),
            (r#"{"id": 1, "lines": [{"amount": 1}]}"#, "lines[0]", "the field sku is missing"),
            (r#"{"id": 1, "lines": [7]}"#, "lines[0]", "expected a map, got the integer 7"),
            (r#"{"id": 1, "place": [1]}"#, "place", "expected a vector of 2 elements, got 1"),
            (
                r#"{"id": 1, "state": "opne"}"#,
                "state",
                "expected \"open\" or \"closed\", got the string \"opne\": did you mean open?",
            ),
        ] {
            let error = serde_json::from_str::<Order>(json).map(|order| format!("{order:?}")).expect_err(json);
            let misfit = Misfit::of::<Order>(json, &error);
            let came = (misfit.path.as_str(), misfit.in_words());
            assert_eq!(came, (path, words.to_owned()), "{json}: {error}");
        }
        assert_eq!(near_field("unknown field `dta`, expected one of `id`, `data`"), Some("data"));
        assert_eq!(near_field("unknown field `zzz`, expected `id` or `data`"), None);
    }
}
