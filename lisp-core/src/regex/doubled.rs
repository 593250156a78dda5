//! Doubled backslashes in patterns, as in the string literals of other languages.

/// Returns the byte offset of two backslashes that are probably meant as one: before the letter of a class or of a
/// boundary, if no word starts with that letter.
///
/// `\\d+` matches a backslash and some letters `d`, which is rarely intended; `\\(.)` and `C:\\data` do search for a
/// backslash.
pub(crate) fn doubled_backslash(pattern: &str) -> Option<usize> {
    // Between \Q and \E a backslash is literal.
    if pattern.contains(r"\Q") {
        return None;
    }
    let bytes = pattern.as_bytes();
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
        let start = at + next;
        let run = bytes[start..].iter().take_while(|byte| **byte == b'\\').count();
        at = start + run;
        let is_class = matches!(bytes.get(at), Some(b'd' | b'D' | b'w' | b'W' | b's' | b'S' | b'b' | b'B'));
        let in_word = pattern.get(at + 1..).and_then(|rest| rest.chars().next());
        if run == 2 && is_class && !in_word.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return Some(start);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_backslashes_before_a_class_are_likely_one() {
        for (pattern, at) in [
            (r"\\d", 0),
            (r"a\\d+", 1),
            (r"^[\\w.-]+@", 2),
            (r"[\\s\\S]*", 1),
            (r"\\bword\\b", 7),
            (r"\d\\\\x\\s", 7),
            (r"é\\W", 2),
        ] {
            assert_eq!(doubled_backslash(pattern), Some(at), "{pattern}");
        }
        let meant = [
            "",
            r"\d",
            r"\\",
            r"\\(.)",
            r"[\\/]",
            r"\\.",
            r"\\\d",
            r"\\\\d",
            r"C:\\data",
            r"\\begin\{",
            r"\\d_1",
            r"\\dé",
            r"\\n",
            r"\Q\\d\E",
            r#"((?:[^\"\\]|\\.)*)"#,
        ];
        for pattern in meant {
            assert_eq!(doubled_backslash(pattern), None, "{pattern}");
        }
    }
}
