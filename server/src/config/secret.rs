//! Texts with values of environment variables in them.

use std::fmt;
use std::sync::Arc;

/// A text that may have values of environment variables in it: it is in no error and in no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: Arc<str>,
    /// The values of variables in it.
    values: Arc<[String]>,
}

impl Secret {
    /// The text.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Takes what is secret of it out of a text that others see.
    ///
    /// Values of fewer than four bytes stay: they are in many texts by chance.
    pub(crate) fn scrub(&self, text: &mut String) {
        for value in self.values.iter().filter(|value| value.len() >= 4) {
            if text.contains(value.as_str()) {
                *text = text.replace(value.as_str(), "[secret]");
            }
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Puts the values of variables in the places of `${NAME}`.
///
/// # Errors
/// What is wrong, and what to do: without any value.
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
            return Err((format!("{name:?} is no name of an environment variable"), next));
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
        let mut text = "you sent Bearer s3cret".to_owned();
        fill("Bearer ${TOKEN}", &environment).unwrap().scrub(&mut text);
        assert_eq!(text, "you sent Bearer [secret]");
    }
}
