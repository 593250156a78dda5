//! Estimates the effort of compiling a pattern in advance, because a compilation cannot be interrupted.

/// A Unicode character class such as `\w`: about 20 microseconds.
pub(super) const WIDE: u64 = 64;
/// The maximum effort of adding both cases of each character of a range whose ends are not known from the text alone.
/// No letter beyond U+1FFFF has two cases.
const UNKNOWN_RANGE: u64 = 64 * WIDE;
/// The number of characters in a range that take as long as a wide class when both cases of each are added.
const FOLDED_RANGE_PER_WIDE: u64 = 2_048;

/// Returns the effort of adding both cases of each of this number of characters.
pub(super) fn of_cases(characters: usize) -> u64 {
    WIDE * characters as u64 / FOLDED_RANGE_PER_WIDE
}

/// The effort of a character in an automaton when both its cases are added.
const FOLDED_CHAR: u64 = 8;

/// The additional effort of checking a pattern: an automaton that turns out to be too large is abandoned after this.
pub(super) const CHECK: u64 = 8 * WIDE;

/// The maximum effort: about two milliseconds for the backtracking engine, which compiles each class only once.
pub(super) const MAX: u64 = 256 * WIDE;
/// The maximum effort for automata, also about two milliseconds. They compile each occurrence of a class.
pub(super) const MAX_LINEAR: u64 = 64 * WIDE;

/// An estimate in parts of a [`WIDE`] that is not too low.
pub(super) struct Effort {
    /// The effort for any engine.
    pub(super) any: u64,
    /// The effort for an automaton, if its size is not limited.
    pub(super) linear: u64,
    /// The maximum effort of adding the other cases of ranges. The actual effort is counted, and limited, by the
    /// parser.
    pub(super) ranges: u64,
}

/// Estimates the effort of compiling a pattern.
pub(super) fn effort(text: &str) -> Effort {
    let folded = is_folded(text);
    let (mut total, mut ranges) = (0u64, 0u64);
    let (mut inside, mut before) = (0u32, '\0');
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        total += match c {
            '\\' => match rest.next() {
                Some('Q') => {
                    let (quoted, after) = rest.as_str().split_once(r"\E").unwrap_or((rest.as_str(), ""));
                    rest = after.chars();
                    2 * quoted.len() as u64
                }
                Some('w' | 'W' | 'd' | 'D' | 's' | 'S' | 'p' | 'P' | 'b' | 'B' | 'X' | 'h' | 'H') => WIDE,
                _ => 2,
            },
            '[' => {
                inside += 1;
                // A `]` in first position is literal.
                let members = rest.as_str();
                let members = members.strip_prefix('^').unwrap_or(members);
                rest = members.strip_prefix(']').unwrap_or(members).chars();
                4
            }
            ']' => {
                inside = inside.saturating_sub(1);
                1
            }
            '-' if folded && inside > 0 => {
                ranges += match rest.clone().next() {
                    Some(end) if before.is_alphanumeric() && end.is_alphanumeric() => {
                        of_cases(u32::from(end).saturating_sub(u32::from(before)) as usize).min(UNKNOWN_RANGE)
                    }
                    _ => UNKNOWN_RANGE,
                };
                2
            }
            '.' => 2,
            _ => 1,
        };
        before = c;
    }
    let folding = if folded { FOLDED_CHAR * text.len() as u64 } else { 0 };
    Effort { any: total, linear: total + folding, ranges }
}

/// Returns the effort of the counted repeats of a pattern. An automaton for them may turn out to be too large twice
/// before it is abandoned.
pub(super) fn repeats(pattern: &str) -> u64 {
    WIDE * pattern.bytes().filter(|byte| *byte == b'{').count() as u64
}

/// Returns the effort of the other repeats of a pattern. Each of them joins the paths around it.
pub(super) fn open_repeats(pattern: &str) -> u64 {
    2 * pattern.bytes().filter(|byte| matches!(byte, b'?' | b'*' | b'+')).count() as u64
}

/// Returns whether any part of the pattern asks for all cases of letters beyond ASCII.
fn is_folded(text: &str) -> bool {
    has_flag(text, &['i']) && has_flag(text, &['u', 'U'])
}

/// Returns whether any part of the pattern sets or clears one of these flags.
fn has_flag(text: &str, flags: &[char]) -> bool {
    text.match_indices("(?").any(|(at, sign)| {
        let rest = text.get(at + sign.len()..).unwrap_or_default();
        rest.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '-').any(|c| flags.contains(&c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_patterns_are_cheap_and_costly_ones_are_not() {
        for pattern in [
            r"(?i)\b[\w.%+-]+@[\w.-]+\.[a-z]{2,}\b",
            r"(?i)[а-яё]+",
            r"^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?:\.\d+)?Z$",
            r"(?<=\$)\d+(?:,\d{3})*",
            r"\w{1,255}",
        ] {
            assert!(effort(pattern).linear * 3 < MAX_LINEAR * 2, "{pattern}: {}", effort(pattern).linear);
        }
        for pattern in [
            format!("(?iu){}", r"\p{L}\p{N}".repeat(700)),
            format!("(?s-x)(?m-s:a(?xi){})", r"[\w-]".repeat(300)),
            r"\w".repeat(1_000),
            ".".repeat(9_999),
        ] {
            assert!(effort(&pattern).any > MAX, "{}: {}", pattern.len(), effort(&pattern).any);
        }
        for (pattern, ranges) in [
            ("[a-z]", 0),
            ("(?iu)[a-z]", 0),
            ("(?iu)[\u{100}-\u{1100}]", 2 * WIDE),
            (r"(?i)(?U:[\x{100}-\x{10ffff}])", UNKNOWN_RANGE),
            (r"(?iux)[]\Q]\E-a- \x{10ffff}]", 2 * UNKNOWN_RANGE),
        ] {
            assert_eq!(effort(pattern).ranges, ranges, "{pattern}");
        }
        for pattern in [format!("(?iu){}", "abcdefk".repeat(1_000)), r"\w".repeat(65)] {
            let effort = effort(&pattern);
            assert!(effort.any <= MAX && effort.linear > MAX_LINEAR, "{}: {}", effort.any, effort.linear);
        }
    }
}
