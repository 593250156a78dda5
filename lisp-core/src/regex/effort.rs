//! What compiling a pattern may take: an estimate made before, because nothing can look at the flag meanwhile.

/// A character class of Unicode's, such as `\w`: some 20 microseconds.
const WIDE: u64 = 64;
/// The effort when both cases of each of its characters are added.
const FOLDED: u64 = 10 * WIDE;
/// A range whose ends cannot be told from the text, when both cases of each of its characters are added.
const UNKNOWN_RANGE: u64 = 100 * WIDE;
/// The characters of a range that take as long as a wide class, when both cases of each are added.
const FOLDED_RANGE_PER_WIDE: u64 = 2_048;

/// What a character takes in an automaton when both cases of it are added.
const FOLDED_CHAR: u64 = 8;

/// What checking a pattern takes besides: automata that turn out to be too large are given up after this effort.
pub(super) const CHECK: u64 = 8 * WIDE;

/// The most effort: about two milliseconds for the backtracking machine, which takes each class apart but once.
pub(super) const MOST: u64 = 256 * WIDE;
/// The most effort for automata, for which each class is taken apart where it stands: about two milliseconds too.
pub(super) const MOST_LINEAR: u64 = 64 * WIDE;

/// An estimate in parts of a [`WIDE`], not too low.
pub(super) struct Effort {
    /// For any engine.
    pub(super) any: u64,
    /// For an automaton, if its size is no limit.
    pub(super) linear: u64,
}

/// The effort of compiling a pattern in the notation of the engines.
pub(super) fn effort(text: &str) -> Effort {
    let folded = is_folded(text);
    let mut total = 0u64;
    let (mut inside, mut before) = (false, '\0');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        total += match c {
            '\\' => match chars.next() {
                Some('p' | 'P') if folded => FOLDED,
                Some('w' | 'W' | 'd' | 'D' | 's' | 'S') if folded && inside => FOLDED,
                Some('w' | 'W' | 'd' | 'D' | 's' | 'S' | 'p' | 'P' | 'b' | 'B') => WIDE,
                Some('x' | 'u' | 'U') if folded && inside => UNKNOWN_RANGE,
                _ => 2,
            },
            '[' => {
                inside = true;
                4
            }
            ']' => {
                inside = false;
                1
            }
            '-' if folded && inside => {
                let size = chars.peek().map_or(0, |&end| u64::from(u32::from(end).saturating_sub(u32::from(before))));
                2 + WIDE * size / FOLDED_RANGE_PER_WIDE
            }
            _ => 2,
        };
        before = c;
    }
    let folding = if folded { FOLDED_CHAR * text.len() as u64 } else { 0 };
    Effort { any: total, linear: total + folding }
}

/// The effort of the counted repeats of a pattern: an automaton for them may turn out to be too large twice before it is
/// given up.
pub(super) fn repeats(pattern: &str) -> u64 {
    WIDE * pattern.matches('{').count() as u64
}

/// Does the pattern ask somewhere for both cases of its characters?
fn is_folded(text: &str) -> bool {
    let flags = |rest: &str| rest.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '-').any(|c| c == 'i');
    text.match_indices("(?").any(|(at, sign)| flags(text.get(at + sign.len()..).unwrap_or_default()))
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
            assert!(effort(pattern).linear * 3 < MOST_LINEAR * 2, "{pattern}: {}", effort(pattern).linear);
        }
        for pattern in [
            format!("(?i){}", r"\p{L}\p{N}".repeat(700)),
            format!("(?i){}", "[\u{100}-\u{10ffff}]".repeat(2)),
            format!("(?i){}", r"[\x{100}-\x{10ffff}]".repeat(2)),
            format!("(?s-x)(?m-s:a(?xi){})", r"[\w-]".repeat(100)),
            r"\w".repeat(1_000),
            ".".repeat(9_999),
        ] {
            assert!(effort(&pattern).any > MOST, "{}: {}", pattern.len(), effort(&pattern).any);
        }
        for pattern in [format!("(?i){}", "abcdefk".repeat(1_000)), r"\w".repeat(65)] {
            let effort = effort(&pattern);
            assert!(effort.any <= MOST && effort.linear > MOST_LINEAR, "{}: {}", effort.any, effort.linear);
        }
    }
}
