//! Escapes characters that control a terminal, reorder text, or are invisible.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes characters that a reader would not see as they are, as UTF-16 code units such as `\u001b`.
///
/// These are control characters (except tabs and line ends), bidirectional controls, and invisible characters. Inside
/// the strings of JSON and of source text, the escaped text means the same.
///
/// ```
/// use lisp_runtime::internal::visible;
/// assert_eq!(visible("a\tb\n"), "a\tb\n");
/// assert_eq!(visible("\u{1b}[2J \u{202e}gpj.exe"), r"\u001b[2J \u202egpj.exe");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Replaces the characters that [`visible`] escapes with a mark of the same length in bytes, so that positions in the
/// text stay valid.
pub fn visible_in_place(text: &str) -> Cow<'_, str> {
    replaced(text, |c, out| {
        out.push_str(match c.len_utf8() {
            1 => "?",
            2 => "\u{bf}",
            3 => "\u{fffd}",
            _ => "\u{fffd}?",
        });
    })
}

fn replaced(text: &str, replace: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_control() || byte == b'\n' || byte == b'\t') {
        return Cow::Borrowed(text);
    }
    let (mut out, mut from) = (String::new(), 0);
    for (at, c) in text.char_indices().filter(|&(at, c)| is_hidden(c) && !text[at..].starts_with("\r\n")) {
        out.push_str(&text[from..at]);
        replace(c, &mut out);
        from = at + c.len_utf8();
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Joiners are part of how scripts and emoji are written.
        '\u{200c}' | '\u{200d}' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_hides_is_left() {
        let all = || (0..=0x0010_ffff).filter_map(char::from_u32);
        for c in all() {
            let text = format!("a{c}b");
            let (shown, marked) = (visible(&text), visible_in_place(&text));
            assert_eq!(matches!(shown, Cow::Borrowed(_)), shown == text, "{c:?}");
            assert_eq!(marked.len(), text.len(), "{c:?}");
            assert_eq!(shown == text, marked == text, "{c:?}");
            assert!(!shown.chars().chain(marked.chars()).any(is_hidden), "{c:?}");
            // JSON escapes, so that reading it gives the same value.
            if shown != text {
                assert_eq!(serde_json::from_str::<String>(&format!("\"{shown}\"")).unwrap(), text);
            }
        }
        let bidi = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        assert!(bidi.chars().all(is_hidden));
        assert_eq!(all().filter(|c| c.is_control() && !is_hidden(*c)).collect::<String>(), "\t\n");
    }

    #[test]
    fn what_people_write_stays() {
        for text in ["", "plain", "a\r\nb\n\tc", "日本語 é ü", "👩‍👩‍👧", "می‌خواهم", "שלום", "e\u{301}"]
        {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text), "{text}");
        }
        assert_eq!(visible("a\rb\r\n"), "a\\u000db\r\n");
    }
}
