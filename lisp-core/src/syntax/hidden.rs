//! Characters that mislead the readers of a text.

/// Returns whether a character is invisible or changes how its neighbours look: control characters, characters that set
/// the writing direction, and those without width.
pub(super) fn is_hidden(character: char) -> bool {
    character.is_control() || is_bidirectional(character) || is_invisible(character)
}

pub(super) fn is_bidirectional(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(super) fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}
