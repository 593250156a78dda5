//! The characters of names and numbers, and where one ends.
//!
//! Names are written as in Clojure, with any letters. Characters are compared one by one, so two compositions of the
//! same letter are two names.

use super::hidden::is_hidden;

/// The ASCII characters of names besides letters and digits. The last three have special meanings in some positions.
const MARKS: &str = "*+!-_'?<>=.&$%|#:/";

/// The role of an ASCII character.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Ends,
    /// A part of names in any position.
    Plain,
    /// A part of some names.
    Special,
}

const CLASSES: [Class; 128] = {
    let mut classes = [Class::Ends; 128];
    let mut c = 0_u8;
    while c < 128 {
        classes[c as usize] = match c {
            0..=b' ' | 0x7F => Class::Ends,
            c if c.is_ascii_alphanumeric() => Class::Plain,
            b'#' | b':' | b'/' => Class::Special,
            c if has(MARKS, c) => Class::Plain,
            _ => Class::Ends,
        };
        c += 1;
    }
    classes
};

const fn has(text: &str, c: u8) -> bool {
    let (bytes, mut at) = (text.as_bytes(), 0);
    while at < bytes.len() {
        if bytes[at] == c {
            return true;
        }
        at += 1;
    }
    false
}

fn class(byte: u8) -> Class {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(Class::Special)
}

/// Returns how many bytes at the start of a text belong to one name, valid or not.
pub fn name_length(text: &str) -> usize {
    atom_length(text, |_| true)
}

/// Returns how many bytes at the start of a text belong to one number, valid or not: a quote, a `#` or a `%` after it
/// starts something new.
pub(super) fn number_length(text: &str) -> usize {
    atom_length(text, |byte| !matches!(byte, b'\'' | b'#' | b'%'))
}

fn atom_length(text: &str, goes_on: impl Fn(u8) -> bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii() {
            if class(byte) == Class::Ends || !goes_on(byte) {
                break;
            }
            at += 1;
        } else {
            match text.get(at..).and_then(|rest| rest.chars().next()) {
                Some(c) if !c.is_whitespace() && !is_hidden(c) => at += c.len_utf8(),
                _ => break,
            }
        }
    }
    at
}

/// Why a text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameFault {
    /// Nothing before or after a slash.
    BesideSlash,
    /// A colon at an end, or beside another.
    Colon,
    /// The character at this byte is not allowed in names.
    Character(usize),
}

/// Returns what is wrong with a name. The lexer rejects empty names and invalid first characters.
pub(super) fn name_fault(text: &str) -> Option<NameFault> {
    if text.bytes().all(|byte| class(byte) == Class::Plain) || text == "/" {
        return None;
    }
    if let Some((at, _)) = text.char_indices().find(|(_, c)| !is_name_character(*c)) {
        return Some(NameFault::Character(at));
    }
    // The name `/` may have a namespace too.
    let (space, name) = match text.strip_suffix("//") {
        Some(space) => (Some(space), "/"),
        None => text.rsplit_once('/').map_or((None, text), |(space, name)| (Some(space), name)),
    };
    if name.is_empty() || space.is_some_and(|space| space.is_empty() || space.starts_with('/')) {
        return Some(NameFault::BesideSlash);
    }
    let ends_in_colon = |part: &str| part.ends_with(':');
    let wrong = text.contains("::") || text.starts_with(':') || ends_in_colon(name) || space.is_some_and(ends_in_colon);
    wrong.then_some(NameFault::Colon)
}

fn is_name_character(c: char) -> bool {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => class(byte) != Class::Ends,
        _ => !is_hidden(c) && (c.is_alphanumeric() || regex_syntax::try_is_word_character(c).unwrap_or(false)),
    }
}

/// Returns true if a name can start with this character, which is not ASCII.
pub(super) fn begins_name(c: char) -> bool {
    is_name_character(c) && c.is_alphabetic()
}

/// Returns true if a program can write this after a prefix such as `data/`.
pub fn is_name_part(text: &str) -> bool {
    !text.is_empty() && name_fault(&format!("data/{text}")).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The characters besides whitespace that end a name.
    const ENDS: &str = "\",;@^`~()[]{}\\";

    #[test]
    fn the_marks_of_names_end_nothing() {
        for c in (0..128_u8).map(char::from) {
            let ends = c.is_control() || c == ' ' || ENDS.contains(c);
            assert!(ends != is_name_character(c), "{c:?}");
            assert_eq!(is_name_character(c), c.is_ascii_alphanumeric() || MARKS.contains(c), "{c:?}");
        }
    }

    #[test]
    fn names() {
        for text in ["a", "größe", "x²", "日本", "a/b", "a/b/c", "/", "a//", "a:b", "a#", "'", "o\u{308}", "a.b/c:d"]
        {
            assert_eq!(name_fault(text), None, "{text}");
        }
        use NameFault::{BesideSlash, Character, Colon};
        for (text, fault) in [
            ("/a", BesideSlash),
            ("a/", BesideSlash),
            ("//", BesideSlash),
            ("a:", Colon),
            (":a", Colon),
            ("a::b", Colon),
            ("a:/b", Colon),
            ("a“", Character(1)),
            ("ä−b", Character(2)),
            ("a😀", Character(1)),
            ("a\u{200d}b", Character(1)),
        ] {
            assert_eq!(name_fault(text), Some(fault), "{text}");
        }
        assert!(is_name_part("größe") && is_name_part("2024") && is_name_part("a/b"));
        assert!(!is_name_part("") && !is_name_part("a b") && !is_name_part("a/") && !is_name_part("a\u{202e}"));
    }

    #[test]
    fn lengths() {
        for (text, name, number) in [
            ("ab c", 2, 2),
            ("a'b#c%", 6, 1),
            ("1-2)", 3, 3),
            ("ä\u{a0}b", 2, 2),
            ("a\u{202e}b", 1, 1),
            ("a\"b\"", 1, 1),
            ("", 0, 0),
        ] {
            assert_eq!((name_length(text), number_length(text)), (name, number), "{text}");
        }
    }
}
