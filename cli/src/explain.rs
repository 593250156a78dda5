//! `ptcl explain`: what an error reason or a kind of warning means.

mod texts;

use crate::exit::{Exit, Failure};
use crate::output;
use lisp_core::text::near_names;
use std::fmt::Write as _;
use texts::{EXPLANATIONS, Example, Explanation, Subject, WARNINGS};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The reason of an error, such as type_error, or the kind of a warning, such as unknown_key; without it, lists them all
    name: Option<String>,
}

/// The maximum width of a line.
const WIDTH: usize = 100;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let text = match &arguments.name {
        Some(name) => page(explanation(name)?),
        None => list(),
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}

/// Returns the explanations of all errors, then those of all warnings.
fn all() -> impl Iterator<Item = &'static Explanation> {
    EXPLANATIONS.iter().chain(WARNINGS)
}

fn explanation(name: &str) -> Result<&'static Explanation, Failure> {
    let wanted = name.replace('-', "_").to_ascii_lowercase();
    all().find(|explanation| explanation.of.name() == wanted).ok_or_else(|| {
        let near = near_names(name, all().map(|explanation| explanation.of.name()), 3);
        let hint = match near.as_slice() {
            [] => "ptcl explain lists all of them".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Failure::Usage(format!("{name} is neither the reason of an error nor the kind of a warning: {hint}"))
    })
}

fn list() -> String {
    let longest = all().map(|explanation| explanation.of.name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (title, explanations) in [("Errors", EXPLANATIONS), ("\nWarnings", WARNINGS)] {
        let _ = writeln!(text, "{title}");
        for Explanation { of, means, .. } in explanations {
            let indent = " ".repeat(longest + 2);
            let options = textwrap::Options::new(WIDTH).subsequent_indent(&indent);
            let line = format!("{:longest$}  {means}", of.name());
            let _ = writeln!(text, "{}", textwrap::fill(&line, options));
        }
    }
    text
}

fn page(explanation: &Explanation) -> String {
    let Explanation { of, means, why, mend, example } = explanation;
    let name = of.name();
    let mut text = format!("{name}\n\n{}\n", textwrap::fill(means, WIDTH));
    for (title, words) in [("Why", why), ("What to do", mend)] {
        let _ = write!(text, "\n{title}\n{}\n", indented(words));
    }
    let what = if matches!(of, Subject::Error(_)) { "error" } else { "warning" };
    let example = match example {
        Example::Program { wrong, limits, right } => {
            let limits = if limits.is_empty() { String::new() } else { format!(", with --limits {limits}") };
            format!("{} ; => {what}: {name}{limits}\n{}\n", inset(wrong), inset(right))
        }
        Example::Words(words) => format!("{}\n", indented(words)),
    };
    let _ = write!(text, "\nExample\n{example}");
    text.push_str(match of {
        Subject::Error(reason) if reason.is_catchable() => "",
        Subject::Error(_) => "\nA program cannot catch this error.\n",
        Subject::Warning(_) => "\nThis is a warning: it does not change the outcome of a run.\n",
    });
    text
}

/// Returns the lines of a program, indented.
fn inset(program: &str) -> String {
    program.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn indented(words: &str) -> String {
    textwrap::fill(words, textwrap::Options::new(WIDTH).initial_indent("  ").subsequent_indent("  "))
}

#[cfg(test)]
mod tests {
    use super::{EXPLANATIONS, Example, Subject, WARNINGS, all, page};
    use lisp_runtime::outcome::WarningKind;
    use lisp_runtime::{Check, Engine, Input, Limits, LimitsRequest, Reason, Tool};

    #[test]
    fn every_reason_and_kind_is_explained_once_in_the_order_of_its_list() {
        let explained: Vec<Subject> = all().map(|explanation| explanation.of).collect();
        let reasons = Reason::ALL.iter().map(|reason| Subject::Error(*reason));
        let kinds = WarningKind::ALL.iter().map(|kind| Subject::Warning(*kind));
        assert_eq!(explained, reasons.chain(kinds).collect::<Vec<_>>());
        for explanation in all() {
            let page = page(explanation);
            assert!(page.lines().all(|line| line.chars().count() <= 120), "{page}");
            for words in [explanation.means, explanation.why, explanation.mend] {
                assert!(words.len() > 20 && words.ends_with('.'), "{}: {words}", explanation.of.name());
            }
        }
    }

    /// The language's page has a row for each kind, and no other.
    #[test]
    fn every_kind_of_warning_is_in_the_documentation() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/language.md")).expect("the page");
        let section = page.split("\n## ").find(|section| section.starts_with("Warnings\n")).expect("the section");
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
        let kinds: Vec<&str> = WarningKind::ALL.iter().map(|kind| kind.name()).collect();
        let mut documented: Vec<&str> = rows.map(|(name, _)| name).collect();
        documented.sort_by_key(|name| kinds.iter().position(|kind| kind == name));
        assert_eq!(documented, kinds);
    }

    #[test]
    fn examples_have_their_warning_and_the_mended_ones_have_none() {
        let price = Tool::new("price", |_| Ok(1.5)).signature("(sku :string, quantity :int?) -> :float");
        let engine = Engine::builder().grant(price).check(Check::Warn).build().expect("an engine");
        for explanation in WARNINGS {
            let Example::Program { wrong, right, .. } = explanation.example else { panic!("it has a program") };
            let kinds = |program: &str| {
                let input = Input::new().json("orders", "[1]");
                let outcome = engine.eval(program, input.clone());
                // A run that fails does not tell again why.
                let checked = engine.compile(program).and_then(|program| engine.check(&program, &input));
                let warnings =
                    if outcome.is_success() { outcome.warnings().to_vec() } else { checked.expect("a program") };
                warnings.iter().map(|warning| warning.kind.name()).collect::<Vec<_>>()
            };
            assert_eq!((kinds(wrong), kinds(right)), (vec![explanation.of.name()], vec![]), "{wrong}");
        }
    }

    #[test]
    fn examples_fail_for_their_reason_and_the_mended_ones_do_not() {
        let (mut programs, mut bad) = (0, Vec::new());
        for explanation in EXPLANATIONS {
            let Example::Program { wrong, limits, right } = explanation.example else { continue };
            let mut asked = LimitsRequest::default();
            for limit in limits.split(',').filter(|limit| !limit.is_empty()) {
                let (name, value) = limit.split_once('=').expect("NAME=N");
                asked.set(name, value.parse().expect("a number")).expect("a limit");
            }
            let limited = Engine::builder().limits(Limits::default().with(&asked)).build().expect("an engine");
            let reason = |engine: &Engine, program: &str| {
                engine.eval(program, Input::new()).problem().map(|problem| (problem.reason(), problem.to_string()))
            };
            let came = reason(&limited, wrong);
            if came.as_ref().map(|(reason, _)| Subject::Error(*reason)) != Some(explanation.of) {
                bad.push(format!("{wrong}: {came:?}"));
            }
            bad.extend(reason(&Engine::default(), right).map(|(_, problem)| format!("{right}: {problem}")));
            programs += 1;
        }
        assert!(bad.is_empty(), "{}", bad.join("\n"));
        assert!(programs >= 30, "{programs}");
    }
}
