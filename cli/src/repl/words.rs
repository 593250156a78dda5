//! The words of a line that is typed, which need not be complete.

/// Returns whether a character is no part of a name.
pub(super) fn ends_word(c: char) -> bool {
    c.is_whitespace() || "()[]{}\",'#@".contains(c)
}

type Words<'l> = Vec<(usize, &'l str)>;

/// The tokens of a line with their positions, and the pairs of matching brackets. Works for any text.
pub(super) fn words_of(line: &str) -> (Words<'_>, Vec<(usize, usize)>) {
    let (mut words, mut open, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(first) = line[at..].chars().next() {
        let rest = &line[at..];
        let long = match first {
            '"' => end_of_string(rest).unwrap_or(rest.len()),
            ';' => rest.find('\n').unwrap_or(rest.len()),
            '(' | '[' | '{' => {
                open.push((first, at));
                1
            }
            ')' | ']' | '}' => {
                if let Some((opened, place)) = open.pop()
                    && matches!((opened, first), ('(', ')') | ('[', ']') | ('{', '}'))
                {
                    pairs.push((place, at));
                }
                1
            }
            // A character such as `\(` is not a bracket.
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ if ends_word(first) => first.len_utf8(),
            _ => rest.find(|c: char| ends_word(c) || c == ';').unwrap_or(rest.len()),
        };
        words.push((at, &rest[..long]));
        at += long;
    }
    (words, pairs)
}

/// Returns the end of the string at the start of a text, if it has one.
pub(super) fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}
