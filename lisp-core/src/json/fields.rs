//! The fields of an object as texts, for hosts that parse each value in their own way.

use super::cursor::{Cursor, Unexpected};

/// The fields of an object, in order. The values are not parsed: they need not be JSON, and keys can repeat.
///
/// ```
/// use lisp_core::json::Fields;
/// let mut fields = Fields::of(r#"{"n": [1, "]"], "m": nil}"#);
/// assert_eq!(fields.next_field()?, Some((r#""n""#, r#"[1, "]"]"#)));
/// assert_eq!(fields.next_field()?, Some((r#""m""#, "nil")));
/// assert_eq!(fields.next_field()?, None);
/// # Ok::<(), lisp_core::json::Unexpected>(())
/// ```
pub struct Fields<'t> {
    cursor: Cursor<'t>,
    is_open: bool,
}

impl<'t> Fields<'t> {
    /// Creates a reader of the fields of a text, which should be an object.
    pub fn of(text: &'t str) -> Self {
        Fields { cursor: Cursor::new(text), is_open: false }
    }

    /// Returns the text of the next key, with its quotation marks, and the text of its value. The end of the value is
    /// found by its brackets and strings. Returns `None` at the end of the text.
    ///
    /// # Errors
    /// The text is not an object.
    pub fn next_field(&mut self) -> Result<Option<(&'t str, &'t str)>, Unexpected> {
        let cursor = &mut self.cursor;
        let is_first = !std::mem::replace(&mut self.is_open, true);
        let next = cursor.next_part();
        cursor.skip();
        let is_end = match (is_first, next) {
            (true, Some(b'{')) => cursor.next_part() == Some(b'}') && cursor.take(b'}').is_ok(),
            (false, Some(b',')) => {
                cursor.next_part();
                false
            }
            (false, Some(b'}')) => true,
            _ => return Err(Unexpected),
        };
        if is_end {
            return if cursor.next_part().is_none() { Ok(None) } else { Err(Unexpected) };
        }
        let from = cursor.at();
        cursor.string()?;
        let key = cursor.since(from);
        cursor.next_part();
        cursor.take(b':')?;
        Ok(Some((key, cursor.value()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Result<Vec<(&str, &str)>, Unexpected> {
        let (mut fields, mut all) = (Fields::of(text), Vec::new());
        while let Some(field) = fields.next_field()? {
            all.push(field);
        }
        Ok(all)
    }

    const KEYS: [&str; 4] = [r#""a""#, r#""""#, r#""\"{""#, r#""\u0066é""#];
    const VALUES: [&str; 8] = [
        "-1.5e3",
        "null",
        r#""""#,
        r#""]\"\\""#,
        "[]",
        "{}",
        r#"{"b": [1, {"c": "}\""}] , "d":[[]]}"#,
        r#"["[", "\\"]"#,
    ];
    const SPACES: [&str; 3] = ["", " ", "\r\n\t"];

    #[test]
    fn what_is_no_object_is_an_error() {
        let texts = [
            "",
            " ",
            "[]",
            "1",
            "{",
            "}",
            "{,}",
            "{a:1}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a" 1}"#,
            r#"{"a":1 2}"#,
            r#"{"a":1}}"#,
            r#"{"a":1}{"#,
            r#"{"a":[}"#,
            r#"{"a":[1}"#,
            r#"{"a":"}"#,
            r#"{"a":1"#,
            r#"{"a":1]"#,
            r#"{"a":1 "b":2}"#,
            "{\"a\n\":1}",
            "{\"a\":\"\n\"}",
        ];
        for text in texts {
            assert_eq!(all(text), Err(Unexpected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn values_end_where_their_brackets_and_strings_do(
            of in proptest::collection::vec((0..KEYS.len(), 0..VALUES.len()), 0..6),
            space in 0..SPACES.len(),
        ) {
            let (fields, space): (Vec<_>, _) = (of.iter().map(|&(k, v)| (KEYS[k], VALUES[v])).collect(), SPACES[space]);
            let inside: Vec<_> = fields.iter().map(|(k, v)| format!("{space}{k}{space}:{space}{v}{space}")).collect();
            let text = format!("{space}{{{space}{}}}{space}", inside.join(","));
            prop_assert_eq!(all(&text), Ok(fields));
        }

        #[test]
        fn any_text_has_an_end(text in r#"[{}\[\],:"a1 \\é]{0,40}"#) {
            if let Ok(fields) = all(&text) {
                prop_assert!(fields.iter().all(|(key, value)| key.len() >= 2 && !value.is_empty()));
            }
        }
    }
}
