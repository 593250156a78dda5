//! Strings that contain values of environment variables.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A string that may contain values of environment variables. It is never shown in errors or by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: Arc<str>,
    /// The variable values that it contains.
    values: Arc<[String]>,
}

impl Secret {
    /// Returns a secret of these values.
    pub(super) fn of(values: impl IntoIterator<Item = String>) -> Self {
        Secret { text: "".into(), values: values.into_iter().collect() }
    }

    /// Returns the text.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

/// Removes secret values from text that others see. Values shorter than four bytes are not removed: they occur in too
/// many texts by chance.
#[derive(Clone, Default)]
pub struct Scrubber(Arc<[String]>);

/// Other spellings of JSON text: PHP writes `\/`, Go escapes HTML characters, Python writes ASCII only, and some do
/// several of these.
fn of_other_writers(text: &str) -> Vec<String> {
    let units = |c: char| {
        let mut units = [0; 2];
        c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>()
    };
    let slashes = |text: &str| text.replace('/', "\\/");
    let ascii =
        |text: &str| text.chars().map(|c| if c.is_ascii() { c.to_string() } else { units(c) }).collect::<String>();
    let html = |text: &str| {
        let is_sign = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        text.chars().map(|c| if is_sign(c) { units(c) } else { c.to_string() }).collect::<String>()
    };
    let upper = |text: &str| {
        let mut spelled = String::with_capacity(text.len());
        let mut rest = text;
        // Escapes may have uppercase hex digits.
        while let Some((before, after)) = rest.split_once("\\u") {
            let (digits, behind) = after.split_at_checked(4).unwrap_or((after, ""));
            spelled = spelled + before + "\\u" + &digits.to_ascii_uppercase();
            rest = behind;
        }
        spelled + rest
    };
    let spelled = [slashes(text), ascii(text), html(text), ascii(&slashes(text)), ascii(&html(text))];
    let capitals: Vec<String> = spelled.iter().map(|text| upper(text)).collect();
    spelled.into_iter().chain(capitals).collect()
}

impl Scrubber {
    /// The minimum bytes of a value.
    const LEAST: usize = 4;

    /// Returns a scrubber for these secrets.
    pub(crate) fn of<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let values = secrets.into_iter().flat_map(|secret| secret.values.iter()).filter(|v| v.len() >= Self::LEAST);
        // Also as spelled in JSON, and as a log shows strings.
        let spelled = values.flat_map(|value| {
            let quoted = [Some(format!("{value:?}")), serde_json::to_string(value).ok()];
            let within = quoted.into_iter().flatten().map(|quoted| quoted[1..quoted.len() - 1].to_owned());
            let within: Vec<String> = within.chain([value.clone()]).collect();
            let others: Vec<String> = within.iter().flat_map(|text| of_other_writers(text)).collect();
            within.into_iter().chain(others)
        });
        let distinct: BTreeSet<String> = spelled.collect();
        Scrubber(distinct.into_iter().collect())
    }

    /// Returns whether there are no values to remove.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces every value by a mark. Overlapping values get one mark.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.scrubbed(text, false)
    }

    /// Like [`Scrubber::scrub`], for text that was cut and may end inside a value.
    pub fn scrub_cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        // A character that was cut in half.
        self.scrubbed(text.trim_end_matches(char::REPLACEMENT_CHARACTER), true)
    }

    fn scrubbed<'t>(&self, text: &'t str, is_cut: bool) -> Cow<'t, str> {
        let mut found: Vec<(usize, usize)> = self.0.iter().flat_map(|value| places(text, value)).collect();
        if is_cut {
            found.extend(self.0.iter().filter_map(|value| Some((text.len() - beginning(text, value)?, text.len()))));
        }
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        found.sort_unstable();
        let (mut scrubbed, mut done) = (String::with_capacity(text.len()), 0);
        for (start, end) in found {
            if start >= done {
                scrubbed.push_str(&text[done..start]);
                scrubbed.push_str("[secret]");
            }
            done = done.max(end);
        }
        scrubbed.push_str(&text[done..]);
        Cow::Owned(scrubbed)
    }
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrubber")
    }
}

/// All positions of a value in a text, including overlapping ones.
fn places(text: &str, value: &str) -> Vec<(usize, usize)> {
    let (mut found, mut from) = (Vec::new(), 0);
    let step = value.chars().next().map_or(1, char::len_utf8);
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(value)) {
        found.push((from + at, from + at + value.len()));
        from += at + step;
    }
    found
}

/// The length in bytes of the longest prefix of a value that the text ends with.
fn beginning(text: &str, value: &str) -> Option<usize> {
    let ends = value.char_indices().map(|(at, _)| at).filter(|at| *at > 0);
    ends.rev().find(|end| text.ends_with(&value[..*end]))
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Replaces each `${NAME}` by the value of that environment variable.
///
/// # Errors
/// What is wrong, and a next step. Neither contains a value.
pub(super) fn fill(template: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Secret, (String, String)> {
    let (mut text, mut values) = (String::new(), Vec::new());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        text.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            return Err((
                "a ${ has no }".to_owned(),
                "write ${NAME} for the value of an environment variable".to_owned(),
            ));
        };
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            let next = "write letters, digits and underscores between ${ and }".to_owned();
            return Err((format!("{name:?} is not a valid name of an environment variable"), next));
        }
        match environment(name).filter(|value| !value.is_empty()) {
            Some(value) => {
                text.push_str(&value);
                values.push(value);
            }
            None => {
                let message = format!("the environment variable {name} is not set, or empty");
                return Err((message, format!("set {name} where the service starts")));
            }
        }
        rest = after;
    }
    text.push_str(rest);
    Ok(Secret { text: text.into(), values: values.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "TOKEN" => Some("s3cret".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_filled_in_and_never_shown() {
        for (template, text) in
            [("Bearer ${TOKEN}", "Bearer s3cret"), ("a$b{c}", "a$b{c}"), ("${TOKEN}${TOKEN}", "s3crets3cret")]
        {
            let secret = fill(template, &environment).unwrap();
            assert_eq!(secret.expose(), text);
            assert!(!format!("{secret:?}").contains("s3cret"));
        }
        for (template, wanted) in [
            ("${NONE}", "NONE is not set"),
            ("${EMPTY}", "EMPTY is not set, or empty"),
            ("${TOKEN", "no }"),
            ("${a b}", "\"a b\""),
        ] {
            assert!(fill(template, &environment).unwrap_err().0.contains(wanted), "{template}");
        }
    }

    #[test]
    fn nothing_of_a_secret_is_left() {
        let of = |values: &[&str]| {
            let secrets = values.iter().map(|value| Secret { text: "".into(), values: [(*value).to_owned()].into() });
            Scrubber::of(&secrets.collect::<Vec<_>>())
        };
        for (values, text, scrubbed) in [
            (&["s3cret"][..], "you sent Bearer s3cret", "you sent Bearer [secret]"),
            (&["abc"], "abc", "abc"),
            // JSON as PHP, Go and Python write it.
            (&["abc/def"], r#"{"k": "abc\/def"}"#, r#"{"k": "[secret]"}"#),
            (&["abc&d<e"], r#"{"k": "abc\u0026d\u003ce"}"#, r#"{"k": "[secret]"}"#),
            (
                &["ab\u{e4}c\u{1f600}/"],
                r#"["ab\u00e4c\ud83d\ude00/", "ab\u00E4c\uD83D\uDE00\/"]"#,
                r#"["[secret]", "[secret]"]"#,
            ),
            // Values inside, overlapping, or overlapping themselves, in any order.
            (&["abcd", "abcdefghijkl"], "A:abcd B:abcdefghijkl", "A:[secret] B:[secret]"),
            (&["abcdefghijkl", "abcd", "efgh"], "abcdefghijkl, efgh", "[secret], [secret]"),
            (&["abcdef", "defghi"], "-abcdefghi-", "-[secret]-"),
            (&["abab"], "-ababab-", "-[secret]-"),
            (&["a\"b\\c"], r#"{"x":"a\"b\\c"} a"b\c"#, r#"{"x":"[secret]"} [secret]"#),
            (&["grüße"], "viele grüße", "viele [secret]"),
        ] {
            assert_eq!(of(values).scrub(text), scrubbed, "{values:?}");
        }
        for (values, text, scrubbed) in [
            (&["s3cret"][..], "Bearer s3cre", "Bearer [secret]"),
            (&["s3cret"], "Bearer s", "Bearer [secret]"),
            (&["s3cret"], "Bearer s3cret", "Bearer [secret]"),
            (&["grüße"], "viele gr\u{fffd}", "viele [secret]"),
            (&["abcd", "cdefgh"], "-abcdef", "-[secret]"),
            (&["s3cret"], "Bearer ", "Bearer "),
        ] {
            assert_eq!(of(values).scrub_cut(text), scrubbed, "{values:?}");
        }
    }
}
