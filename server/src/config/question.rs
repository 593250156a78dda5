//! The questions that approvers are asked about calls.

use serde_json::{Map, Value};

/// The maximum bytes of a question as written.
const TEMPLATE_BYTES: usize = 1_000;
/// The maximum number of arguments in a question.
const ARGUMENTS: usize = 20;
/// The maximum characters shown of an argument.
const ARGUMENT_CHARS: usize = 200;

/// A question with argument names in braces: `Refund {amount} to {customer}?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Text, each followed by the name of an argument.
    parts: Vec<(String, String)>,
    end: String,
}

impl Question {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > TEMPLATE_BYTES {
            return Err(format!("it has {} bytes, and must have 1 to {TEMPLATE_BYTES}", text.len()));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                return Err("a { has no }".to_owned());
            };
            if name.is_empty() {
                return Err("missing name in {}".to_owned());
            }
            parts.push((before.to_owned(), name.to_owned()));
            rest = after;
        }
        if parts.len() > ARGUMENTS {
            return Err(format!("it names {} arguments; the maximum is {ARGUMENTS}", parts.len()));
        }
        Ok(Question { parts, end: rest.to_owned() })
    }

    /// The names of the arguments in the question.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|(_, name)| name.as_str())
    }

    /// Returns the question for a call with these arguments. Each argument is cut to 200 characters, with a mark.
    /// Control characters and characters that change the direction of text are escaped.
    pub fn fill(&self, arguments: &Map<String, Value>) -> String {
        let mut text = String::new();
        for (before, name) in &self.parts {
            text.push_str(before);
            match arguments.get(name) {
                None => text.push_str("(not given)"),
                Some(Value::String(value)) => push(&mut text, value),
                Some(value) => push(&mut text, &value.to_string()),
            }
        }
        text + &self.end
    }
}

/// Appends an argument, cut and escaped.
fn push(text: &mut String, value: &str) {
    for char in value.chars().take(ARGUMENT_CHARS) {
        if char.is_control()
            || matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            text.extend(char.escape_default());
        } else {
            text.push(char);
        }
    }
    let more = value.chars().skip(ARGUMENT_CHARS).count();
    if more > 0 {
        text.push_str(&format!("... ({more} more characters)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_in_the_question() {
        let question = Question::parse("Refund {amount} to {who}?").unwrap();
        let fill = |json: &str| question.fill(&serde_json::from_str(json).unwrap());
        assert_eq!(fill(r#"{"amount": 12.5, "who": "Ada"}"#), "Refund 12.5 to Ada?");
        assert_eq!(fill(r#"{"amount": [1, {"a": null}]}"#), r#"Refund [1,{"a":null}] to (not given)?"#);
        assert_eq!(fill("{\"amount\": 1, \"who\": \"a\\nb\u{202e}c\"}"), "Refund 1 to a\\nb\\u{202e}c?");
        let long = fill(&format!(r#"{{"amount": 1, "who": "{}"}}"#, "é".repeat(203)));
        assert_eq!(long, format!("Refund 1 to {}... (3 more characters)?", "é".repeat(200)));
        for (text, wanted) in
            [("", "0 bytes"), ("a {b", "no }"), ("{}", "missing name"), (&"{a}".repeat(21), "21 arguments")]
        {
            assert!(Question::parse(text).unwrap_err().contains(wanted), "{text}");
        }
    }
}
