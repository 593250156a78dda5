//! Shortens texts for display.

/// Returns the first characters of a text.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let end = text.floor_char_boundary(max);
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}

/// Returns a text without line breaks.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
