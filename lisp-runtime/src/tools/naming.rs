//! Names of tools as symbols. Characters that a symbol cannot have are percent-encoded, `%2F` for a slash, and so is
//! `%` itself. The original name can be decoded from the symbol.

use lisp_core::syntax::name_length;
use std::fmt::Write;

/// Returns what follows `tool/` in a source, including comments and strings: a program only calls tools that it names.
pub(crate) fn names_in(source: &str) -> impl Iterator<Item = &str> {
    source.split("tool/").skip(1).map(|rest| &rest[..name_length(rest)])
}

/// Returns the name as programs write it after `tool/`.
///
/// ```text
/// issues/list  issues%2Flist      get user  get%20user      100%  100%25      math.sum  math.sum
/// ```
pub(crate) fn symbol(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'_' | b'-' | b'.' | b'?' | b'!' | b'*' | b'+' | b'<' | b'>' | b'=' | b'&' | b'\'' => {
                out.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// Returns the name that a symbol stands for.
pub(crate) fn name(symbol: &str) -> String {
    percent_decoded(symbol)
}

/// Decodes `%XX` in a text. If the result is not UTF-8, returns the text unchanged.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match digits.filter(|two| two.bytes().all(|c| c.is_ascii_hexdigit())).map(|two| u8::from_str_radix(two, 16)) {
            Some(Ok(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_source_are_whole() {
        let source = "(tool/pay {}) [tool/get-user] #(tool/käufer %) \"tool/a%2Fb\" ; tool/x.y'\n(toolx/no tool/)";
        assert_eq!(names_in(source).collect::<Vec<_>>(), ["pay", "get-user", "käufer", "a%2Fb", "x.y'", ""]);
    }

    #[test]
    fn names_are_read_from_symbols() {
        for (given, wanted) in [
            ("math.sum", "math.sum"),
            ("issues/list-for-user", "issues%2Flist-for-user"),
            ("get user", "get%20user"),
            ("100%", "100%25"),
            ("a%2Fb", "a%252Fb"),
            ("größe", "gr%C3%B6%C3%9Fe"),
            ("f(x){}", "f%28x%29%7B%7D"),
        ] {
            assert_eq!(symbol(given), wanted);
            assert_eq!(name(wanted), given);
            assert!(lisp_core::syntax::is_name_part(wanted));
        }
    }
}
