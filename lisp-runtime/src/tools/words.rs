//! Texts made to fit where they are shown.

/// The first characters of a text.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}

/// A text without line breaks.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
