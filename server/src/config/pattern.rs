//! Which tools a tenant sees.

/// A name of tools, or its beginning: `weather`, `crm__*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern {
    text: String,
    is_open: bool,
}

impl ToolPattern {
    /// Reads a pattern: a name, or its beginning and `*`. `None` for a `*` elsewhere, and for an empty one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (start, is_open) = text.strip_suffix('*').map_or((text, false), |start| (start, true));
        let is_pattern = !start.contains('*') && (is_open || !start.is_empty());
        is_pattern.then(|| ToolPattern { text: start.to_owned(), is_open })
    }

    /// Is it the pattern of this tool?
    pub fn fits(&self, name: &str) -> bool {
        if self.is_open { name.starts_with(&self.text) } else { name == self.text }
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
