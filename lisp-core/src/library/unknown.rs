//! Errors and suggestions for unknown names.

use super::{BuiltinId, all};
use crate::builtins::{Absent, exception_classes};
use crate::compile::{SPECIAL_FORMS, SpecialForm};
use crate::error::{Error, Reason};
use crate::text::near::{MAX, distance};

/// Namespaces with functions that have no plain name.
const NAMESPACES: [&str; 3] = ["clojure.set", "clojure.string", "clojure.math"];

/// Returns what to write instead of an unknown name: its replacement, or the most similar name.
pub fn repair(name: &str) -> Option<String> {
    match Absent::of(name) {
        Some(absent) => Some(absent.hint()),
        None => nearest(name, std::iter::empty()).map(did_you_mean),
    }
}

/// Returns the error for a name that is neither defined nor built in, with the most similar name.
pub(crate) fn unknown_name<'a>(name: &'a str, defined: impl Iterator<Item = &'a str>) -> Error {
    let error = Error::new(Reason::UnboundVar, format!("{name} is not defined"));
    if let Some(absent) = Absent::of(name) {
        return error.hint(absent.hint());
    }
    if let Some(form) = SpecialForm::by_name(name) {
        let error = Error::new(Reason::UnboundVar, format!("{name} is a special form, not a value"));
        return error.hint(format!("write {}; as a function, wrap it in fn", form.usage));
    }
    if exception_classes::class_number(name).is_some() {
        return error.hint(format!(
            "classes are not values: (instance? {name} x) asks for one, (catch {name} e ...) takes one"
        ));
    }
    if let Some(namespace) = NAMESPACES.iter().find(|namespace| BuiltinId::in_namespace(namespace, name).is_some()) {
        return error.hint(format!("write {namespace}/{name}"));
    }
    match nearest(name, defined) {
        Some(other) => error.hint(did_you_mean(other)),
        None => error.hint("define it with def or defn before it is used, or pass it in as data/name"),
    }
}

fn did_you_mean(other: &str) -> String {
    // The question mark of a predicate is not that of the question.
    if other.ends_with('?') { format!("did you mean `{other}`?") } else { format!("did you mean {other}?") }
}

/// Returns the most similar name to an unknown one, if any is similar.
fn nearest<'a>(name: &str, defined: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let like = |other: &&str| *other != name && other.len().abs_diff(name.len()) <= 2;
    let forms = SPECIAL_FORMS.iter().map(|form| form.name);
    let rows = all().iter().flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied()));
    let (far, other) = rows
        .chain(forms)
        .chain(defined.filter(like).take(MAX))
        .filter(like)
        .filter(|other| !is_another_word(name, other))
        .map(|other| (distance(name, other), other))
        .min()?;
    (far <= (name.len().min(other.len()) / 3).min(2)).then_some(other)
}

/// Returns whether both names have three letters, and not the same ones: `foo` is no misspelt `for`.
fn is_another_word(name: &str, other: &str) -> bool {
    let letters = |name: &str| {
        let mut bytes = name.as_bytes().to_vec();
        bytes.sort_unstable();
        bytes
    };
    name.len() == 3 && other.len() == 3 && letters(name) != letters(other)
}

#[cfg(test)]
mod tests {
    use super::unknown_name;

    #[test]
    fn names_of_other_languages_are_known() {
        for (wrong, right) in
            [("len", "write (count [1 2])"), ("flatMap", "mapcat"), ("elif", "cond"), ("sleep", "pmap")]
        {
            let error = unknown_name(wrong, std::iter::empty());
            assert!(error.hint.as_deref().is_some_and(|hint| hint.contains(right)), "{wrong}: {:?}", error.hint);
        }
    }

    #[test]
    fn near_names_are_suggested() {
        for (wrong, right) in
            [("fliter", "filter"), ("group-bye", "group-by"), ("mpa", "map"), ("total", "totals"), ("cnod", "cond")]
        {
            let error = unknown_name(wrong, ["totals"].into_iter());
            assert_eq!(error.hint.as_deref(), Some(format!("did you mean {right}?").as_str()), "{wrong}");
        }
        assert!(unknown_name("and", std::iter::empty()).message.contains("special form"));
        for unlike in ["zzzzzz", "foo"] {
            assert!(
                unknown_name(unlike, std::iter::empty()).hint.is_some_and(|h| !h.contains("did you mean")),
                "{unlike}"
            );
        }
    }
}
