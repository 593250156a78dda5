//! Characters that mislead whoever reads a text.

/// Whether a character shows nothing of its own, or changes how its neighbours show: control characters, those that set
/// the direction of writing, and those without width. Outside strings and comments they only mislead.
pub(super) fn is_hidden(character: char) -> bool {
    character.is_control() || is_bidirectional(character) || is_invisible(character)
}

pub(super) fn is_bidirectional(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(super) fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}
