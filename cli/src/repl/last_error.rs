//! `*e`: the error of the last form that failed.

use lisp_core::syntax::lexer::tokens;
use lisp_core::syntax::{ReadLimits, read};
use lisp_runtime::Outcome;
use lisp_runtime::outcome::OutcomeKind;

/// The error of an outcome as source text: an error as a map, the value of `fail` as it is. `None` if it did not fail.
pub(super) fn literal(outcome: &Outcome) -> Option<String> {
    let Some(problem) = outcome.problem() else {
        let failed = outcome.kind() == Some(OutcomeKind::Fail) && outcome.text_cut().is_none();
        let text = outcome.text().unwrap_or("nil");
        // A quote turns printed text back into data, if it can be read. Functions, for example, cannot.
        let is_data = is_one_form(text) && !text.contains("#<");
        let value = if is_data { format!("' {text}") } else { quoted(text) };
        return failed.then(|| format!("{{:reason :failed :value {value}}}"));
    };
    let error = &problem.error;
    let mut map = format!("{{:reason :{} :message {}", error.reason.name(), quoted(&error.message));
    if let Some(hint) = &error.hint {
        map.push_str(&format!(" :hint {}", quoted(hint)));
    }
    if let Some(place) = problem.position {
        map.push_str(&format!(" :line {} :column {}", place.line, place.column));
    }
    Some(map + "}")
}

fn is_one_form(text: &str) -> bool {
    read(text, &ReadLimits::default()).is_ok_and(|source| source.forms.len() == 1)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Replaces `*e` in a line by the error, except in strings and comments.
pub(super) fn put_into(line: String, error: Option<&str>) -> String {
    let part = |start: u32, end: u32| line.get(start as usize..end as usize).unwrap_or("");
    let places: Vec<_> = tokens(&line).filter(|(_, span)| part(span.start, span.end) == "*e").collect();
    if places.is_empty() {
        return line;
    }
    let (mut text, mut from) = (String::new(), 0);
    for (_, span) in places {
        text.push_str(part(from, span.start));
        text.push_str(error.unwrap_or("nil"));
        from = span.end;
    }
    text + &line[from as usize..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisp_runtime::{Engine, Input};

    #[test]
    fn the_error_takes_the_place_of_its_name() {
        let put = |line: &str| put_into(line.to_owned(), Some("{:a 1}"));
        assert_eq!(put("(:message *e) ; *e"), "(:message {:a 1}) ; *e");
        assert_eq!(put("[\"*e\" *e1 *e]"), "[\"*e\" *e1 {:a 1}]");
        assert_eq!(put_into("*e".to_owned(), None), "nil");
        assert_eq!(put("(é *e"), "(é {:a 1}");
    }

    #[test]
    fn an_error_is_a_map() {
        let outcome = Engine::default().eval("(throw (ex-info \"a \\\"b\\\" \\\\ c\" {}))", Input::new());
        let map = literal(&outcome).expect("an error");
        let read = Engine::default().eval(&format!("[(:message {map}) (:line {map}) (:reason {map})]"), Input::new());
        let value: (String, u32, String) = read.value().expect("a value");
        let failed = literal(&Engine::default().eval("(fail {:a [1 \"x\"]})", Input::new())).expect("a failure");
        let read = Engine::default().eval(&format!("(get-in {failed} [:value :a 1])"), Input::new());
        assert_eq!(read.value::<String>().expect("a value"), "x");
        assert_eq!(literal(&Engine::default().eval("1", Input::new())), None);
        assert!(value.0.contains("a \"b\" \\ c") && value.1 == 1 && !value.2.is_empty(), "{value:?}");
    }
}
