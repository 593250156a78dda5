//! `ptcl explain`: what an error reason means.

mod texts;

use crate::exit::{Exit, Failure};
use crate::output;
use lisp_core::text::near_names;
use lisp_runtime::Reason;
use std::fmt::Write as _;
use texts::{EXPLANATIONS, Example, Explanation};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The reason, such as type_error; without it, lists all reasons
    reason: Option<String>,
}

/// The maximum width of a line.
const WIDTH: usize = 100;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let text = match &arguments.reason {
        Some(name) => page(explanation(name)?),
        None => list(),
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}

fn explanation(name: &str) -> Result<&'static Explanation, Failure> {
    let reason = Reason::from_name(&name.replace('-', "_").to_ascii_lowercase());
    let found = EXPLANATIONS.iter().find(|explanation| Some(explanation.reason) == reason);
    found.ok_or_else(|| {
        let near = near_names(name, Reason::ALL.iter().map(|reason| reason.name()), 3);
        let hint = match near.as_slice() {
            [] => "ptcl explain lists all reasons".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Failure::Usage(format!("unknown reason {name}: {hint}"))
    })
}

fn list() -> String {
    let longest = Reason::ALL.iter().map(|reason| reason.name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for Explanation { reason, means, .. } in EXPLANATIONS {
        let indent = " ".repeat(longest + 2);
        let options = textwrap::Options::new(WIDTH).subsequent_indent(&indent);
        let line = format!("{:longest$}  {means}", reason.name());
        let _ = writeln!(text, "{}", textwrap::fill(&line, options));
    }
    text
}

fn page(explanation: &Explanation) -> String {
    let Explanation { reason, means, why, mend, example } = explanation;
    let mut text = format!("{reason}\n\n{}\n", textwrap::fill(means, WIDTH));
    for (title, words) in [("Why", why), ("What to do", mend)] {
        let _ = write!(text, "\n{title}\n{}\n", indented(words));
    }
    let example = match example {
        Example::Program { wrong, limits: "", right } => {
            format!("  {wrong} ; => error: {reason}\n  {right}\n")
        }
        Example::Program { wrong, limits, right } => {
            format!("  {wrong} ; => error: {reason}, with --limits {limits}\n  {right}\n")
        }
        Example::Words(words) => format!("{}\n", indented(words)),
    };
    let _ = write!(text, "\nExample\n{example}");
    if !reason.is_catchable() {
        text.push_str("\nA program cannot catch this error.\n");
    }
    text
}

fn indented(words: &str) -> String {
    textwrap::fill(words, textwrap::Options::new(WIDTH).initial_indent("  ").subsequent_indent("  "))
}

#[cfg(test)]
mod tests {
    use super::{EXPLANATIONS, Example, page};
    use lisp_runtime::{Engine, Input, Limits, LimitsRequest, Reason};

    #[test]
    fn every_reason_is_explained_once_in_the_order_of_the_list() {
        let explained: Vec<Reason> = EXPLANATIONS.iter().map(|explanation| explanation.reason).collect();
        assert_eq!(explained, Reason::ALL);
        for explanation in EXPLANATIONS {
            let page = page(explanation);
            assert!(page.lines().all(|line| line.chars().count() <= 120), "{page}");
            for words in [explanation.means, explanation.why, explanation.mend] {
                assert!(words.len() > 20 && words.ends_with('.'), "{}: {words}", explanation.reason);
            }
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
            if came.as_ref().map(|(reason, _)| *reason) != Some(explanation.reason) {
                bad.push(format!("{wrong}: {came:?}"));
            }
            bad.extend(reason(&Engine::default(), right).map(|(_, problem)| format!("{right}: {problem}")));
            programs += 1;
        }
        assert!(bad.is_empty(), "{}", bad.join("\n"));
        assert!(programs >= 30, "{programs}");
    }
}
