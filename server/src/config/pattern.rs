//! Patterns for the tools that a tenant sees.

use std::fmt;

/// A tool name or a prefix with `*`: `weather`, `crm__*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern {
    text: String,
    is_open: bool,
}

impl ToolPattern {
    /// Parses a pattern: a name, or a prefix followed by `*`. Returns `None` if it is empty or has a `*` elsewhere.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (start, is_open) = text.strip_suffix('*').map_or((text, false), |start| (start, true));
        let is_pattern = !start.contains('*') && (is_open || !start.is_empty());
        is_pattern.then(|| ToolPattern { text: start.to_owned(), is_open })
    }

    /// Returns whether the pattern matches a tool's name.
    pub fn fits(&self, name: &str) -> bool {
        if self.is_open { name.starts_with(&self.text) } else { name == self.text }
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        f.write_str(if self.is_open { "*" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_its_beginning() {
        for (pattern, name, fits) in [
            ("weather", "weather", true),
            ("weather", "weather2", false),
            ("crm__*", "crm__get", true),
            ("crm__*", "crm_get", false),
            ("*", "anything", true),
        ] {
            assert_eq!(ToolPattern::parse(pattern).unwrap().fits(name), fits, "{pattern} {name}");
        }
        for pattern in ["", "*a", "a*b", "**"] {
            assert_eq!(ToolPattern::parse(pattern), None, "{pattern}");
        }
    }
}
