//! The names of the language and their documentation.

use lisp_core::builtins::java::CONSTANTS;
use lisp_core::compile::SPECIAL_FORMS;
use lisp_runtime::internal::near_names;
use lisp_runtime::language::{builtin_names, describe_name};

/// Returns the documentation of a name.
///
/// # Errors
/// The language does not have the name; with the nearest one, if any is near.
pub(crate) fn described(name: &str) -> Result<String, String> {
    describe_name(name).map_err(|hint| match hint.or_else(|| near(name)) {
        Some(hint) => format!("unknown function or form {name}: {hint}"),
        None => format!("unknown function or form {name}"),
    })
}

/// Every name of the language: functions, special forms and constants.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let others = SPECIAL_FORMS.iter().map(|form| form.name).chain(CONSTANTS.iter().map(|constant| constant.name));
    builtin_names().chain(others)
}

/// Returns the names in a namespace, such as `str/upper-case`.
pub(crate) fn names_in(namespace: &str) -> impl Iterator<Item = String> {
    let plain = builtin_names().filter(|name| !name.contains('/'));
    let named = plain.map(move |name| format!("{namespace}/{name}"));
    named.filter(|name| describe_name(name).is_ok())
}

/// Names the most similar name of a namespace.
fn near(name: &str) -> Option<String> {
    let (namespace, _) = name.split_once('/').filter(|(namespace, _)| !namespace.is_empty())?;
    let known: Vec<String> = names_in(namespace).collect();
    let near = near_names(name, known.iter().map(String::as_str), 1);
    near.first().map(|near| format!("did you mean {near}{}", if near.ends_with('?') { "" } else { "?" }))
}

#[cfg(test)]
mod tests {
    use super::described;

    #[test]
    fn an_unknown_name_has_its_nearest_one() {
        for (name, says) in [
            ("fliter", "unknown function or form fliter: did you mean filter?"),
            ("str/upper-cas", "unknown function or form str/upper-cas: did you mean str/upper-case?"),
            ("zzz", "unknown function or form zzz"),
        ] {
            assert_eq!(described(name).unwrap_err(), says);
        }
        assert!(described("str/upper-case").is_ok_and(|page| page.starts_with("(upper-case")));
    }
}
