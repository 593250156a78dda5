//! An outcome and its problem as plain text, for a model that repairs its program.

use super::visible::{visible, visible_in_place};
use crate::terms::outcome::{Call, Outcome, OutcomeKind, Problem};
use crate::terms::position::Position;
use std::fmt::Write;

/// The maximum number of characters that are shown of a source line.
const LINE_CHARS: usize = 160;

impl Outcome {
    /// Returns what happened as plain text, for the model that wrote the program: the printed lines, then the value or the
    /// [problem](Problem::report), then the warnings with their repairs.
    ///
    /// `source` is the text of the program.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    ///
    /// let source = r#"(println "orders:" (count data/orders)) (sum-by :totl data/orders)"#;
    /// let outcome = Engine::default().eval(source, Input::new().json("orders", r#"[{"total": 9}]"#));
    /// let report = outcome.report(source);
    /// assert!(report.starts_with("orders: 1\n0\nwarning: line 1, column 49: no map here has the key :totl"), "{report}");
    /// assert!(report.ends_with("write :total\n"), "{report}");
    /// ```
    pub fn report(&self, source: &str) -> String {
        let mut out = String::new();
        for line in &self.prints {
            let _ = writeln!(out, "{}", visible(line));
        }
        let dropped = self.prints_dropped;
        if dropped > 0 {
            let _ = writeln!(out, "[{dropped} more lines were printed and not kept]");
        }
        match (self.problem(), self.text()) {
            (Some(problem), _) => out.push_str(&problem.report(source)),
            (None, text) => {
                let failed = if self.kind() == Some(OutcomeKind::Fail) { "(fail v): " } else { "" };
                let _ = writeln!(out, "{failed}{}", visible(text.unwrap_or("nil")));
                if let Some(bytes) = self.text_cut() {
                    let _ = writeln!(out, "[cut: the value has {bytes} bytes; return a part of it]");
                }
            }
        }
        for warning in self.warnings() {
            let _ = writeln!(out, "warning: {}", visible(&warning.to_string()));
        }
        out
    }
}

impl Problem {
    /// Returns the problem as plain text, for a model that repairs its program.
    ///
    /// It has the reason and the message, the source line with a mark under the error, the hint, the local variables
    /// and the call chain. The command line shows the same with colours and frames.
    ///
    /// `source` is the text of the program. A position in a set-up program or in an earlier turn is described in words.
    /// A source line of more than 160 characters is cut around the position. Terminal control characters are escaped.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    ///
    /// let source = "(let [price 5]\n  (+ price nil))";
    /// let outcome = Engine::default().eval(source, Input::new());
    /// let problem = outcome.problem().expect("nil is not a number");
    /// assert_eq!(
    ///     problem.report(source).lines().take(3).collect::<Vec<_>>(),
    ///     ["type_error: + expects numbers, got nil (line 2, column 3)", "2 |   (+ price nil))", "  |   ^^^^^^^^^^^^^"],
    /// );
    /// ```
    pub fn report(&self, source: &str) -> String {
        let mut out = format!("{}\n", visible(&self.to_string()));
        if let (Some(at), None, None) = (self.position, self.setup, self.turn) {
            excerpt(&mut out, source, at);
        }
        hint(&mut out, self.error.hint.as_deref());
        for further in &self.more {
            let place = further.position.map(|at| format!(" (line {}, column {})", at.line, at.column));
            let text = format!("{}{}", further.error, place.unwrap_or_default());
            let _ = writeln!(out, "{}", visible(&text));
            if let Some(at) = further.position {
                excerpt(&mut out, source, at);
            }
            hint(&mut out, further.error.hint.as_deref());
        }
        for local in &self.locals {
            let _ = writeln!(out, "{} = {}", visible(&local.name), visible(&local.value));
        }
        let mut before = None;
        for call in &self.calls {
            let text = called(call);
            if before.as_ref() != Some(&text) {
                let _ = writeln!(out, "{}", visible(&text));
            }
            before = Some(text);
        }
        out
    }
}

fn hint(out: &mut String, hint: Option<&str>) {
    if let Some(hint) = hint {
        let _ = writeln!(out, "hint: {}", visible(hint));
    }
}

/// Adds the source line of a position, with a mark under it.
fn excerpt(out: &mut String, source: &str, at: Position) {
    let Some(line) = source.lines().nth((at.line as usize).saturating_sub(1)) else { return };
    let length = line.chars().count();
    let from = (at.column as usize).saturating_sub(1).min(length);
    let to = if at.end_line == at.line { (at.end_column as usize).saturating_sub(1) } else { length };
    let to = to.clamp(from, length).max(from + 1);
    // The part that is shown starts shortly before the position.
    let start = if length <= LINE_CHARS { 0 } else { from.saturating_sub(LINE_CHARS / 4) };
    let end = (start + LINE_CHARS).min(length);
    let shown: String = line.chars().skip(start).take(end - start).collect();
    let shown: String = visible_in_place(&shown).chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let (dots, more) = (if start > 0 { "..." } else { "" }, if end < length { "..." } else { "" });
    let number = at.line.to_string();
    let _ = writeln!(out, "{number} | {dots}{shown}{more}");
    let before = " ".repeat(dots.len() + from - start);
    let marks = "^".repeat(to.min(end.max(from + 1)) - from);
    let _ = writeln!(out, "{} | {before}{marks}", " ".repeat(number.len()));
}

fn called(call: &Call) -> String {
    let function = call.function.as_deref().unwrap_or("a function");
    let text = match (call.setup, call.turn) {
        (Some(setup), _) => format!("set-up program {}, ", setup + 1),
        (None, Some(turn)) => format!("turn {turn}, "),
        (None, None) => String::new(),
    };
    let element = call.element.as_ref().map_or_else(String::new, |element| format!(", {element}"));
    format!("{function} was called at {text}line {}, column {}{element}", call.position.line, call.position.column)
}

#[cfg(test)]
mod tests {
    use crate::{Engine, Input};

    fn report(source: &str) -> String {
        let outcome = Engine::default().eval(source, Input::new());
        outcome.problem().expect("an error").report(source)
    }

    #[test]
    fn a_report_has_the_line_the_hint_the_values_and_the_calls() {
        let source = "(defn half [x]\n  (/ x 0))\n(map half [4])";
        assert_eq!(
            report(source),
            "type_error: /: division by zero (line 2, column 3)\n2 |   (/ x 0))\n  |   ^^^^^^^\n\
             hint: test the divisor with zero? first\nx = 4\nhalf was called at line 3, column 1, in map, element 0\n"
        );
        let unbound = report("(fliter odd? [1])");
        assert!(unbound.contains("1 | (fliter odd? [1])\n  |  ^^^^^^\nhint: "), "{unbound}");
    }

    #[test]
    fn all_errors_of_a_text_are_in_it() {
        let several = report("(do (nope1 1)\n    (nope2 2))");
        assert!(several.contains("nope1") && several.contains("2 |     (nope2 2))"), "{several}");
    }

    #[test]
    fn long_lines_and_strange_characters_are_bounded() {
        let long = format!("(do {} (inc nil) {})", "1 ".repeat(5_000), "2 ".repeat(5_000));
        let text = report(&long);
        assert!(text.lines().all(|line| line.chars().count() < 200) && text.contains("^^^^^^^^^"), "{text}");
        let marked = text.lines().nth(1).zip(text.lines().nth(2)).map(|(line, marks)| {
            let at = marks.find('^').unwrap_or(0);
            line.chars().skip(at).take(9).collect::<String>()
        });
        assert_eq!(marked.as_deref(), Some("(inc nil)"), "{text}");
        let strange = report("(inc \"\u{1b}[31m\u{202e}\")");
        assert!(!strange.contains('\u{1b}') && !strange.contains('\u{202e}'), "{strange}");
        for source in ["(", "\"", "(inc", "\n\n(inc nil", "", "😀(inc nil)"] {
            let outcome = Engine::default().eval(source, Input::new());
            let text = outcome.problem().map(|problem| problem.report(source));
            assert!(text.is_none_or(|text| text.ends_with('\n')), "{source}");
        }
    }
}
