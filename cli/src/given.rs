//! Errors of programs that run with what the options give them.

use crate::exit::{detail, input_of};
use crate::formats::in_plain_words;
use crate::options::Grant;
use crate::render::errors::{self, Text};
use lisp_runtime::internal::visible;
use lisp_runtime::{Outcome, Problem, Reason};

/// The name of the input as data.
pub(crate) const IN: &str = "in";

/// The program and its setup programs.
pub(crate) struct Texts<'a> {
    pub(crate) grant: &'a Grant,
    pub(crate) name: &'a str,
    pub(crate) source: &'a str,
    /// Whether the data from files is shared by several runs ([`Grant::shared_input`]).
    pub(crate) is_shared: bool,
    /// Where `data/in` comes from.
    pub(crate) name_of_in: &'a str,
}

impl errors::Texts for Texts<'_> {
    fn text(&self, setup: Option<usize>, _: Option<u64>) -> Option<Text> {
        match setup {
            Some(index) => self.grant.setup_text(index),
            None => Some(Text { name: self.name.to_owned(), source: self.source.to_owned() }),
        }
    }
}

/// Formats a problem for people. If an option caused it, names the option.
pub(crate) fn draw(problem: &Problem, texts: &Texts<'_>) -> String {
    let given = |number: usize| texts.grant.input_option(number, texts.is_shared);
    let option = |number: usize| given(number).unwrap_or_else(|| texts.name_of_in.to_owned());
    let Some(number) = input_of(problem) else { return errors::draw_in(problem, texts) };
    let earlier = detail(problem, "earlier_input").map(|number| format!(" and {}", option(number)));
    let message = &problem.error.message;
    let is_of_input = given(number).is_none() && problem.reason() == Reason::ParseError;
    if is_of_input && texts.is_shared {
        return visible(&of_line(message)).into_owned() + "\n";
    }
    let is_syntax = is_of_input && is_of_json(message);
    let several = message.contains("trailing characters") || message.contains("an empty string");
    let help = match (is_syntax, several) {
        (true, true) => {
            "\n  help: data/in must be one JSON value; use --lines for one on each line, --slurp for several, --from for another format"
        }
        (true, false) => "\n  help: correct the JSON there, or name another format with --from",
        (false, _) => "",
    };
    let message = in_plain_words(message);
    let said = format!("ptcl: {}{}: {message}{help}\n", option(number), earlier.unwrap_or_default());
    visible(&said).into_owned()
}

/// Returns whether an error of data is about its JSON.
fn is_of_json(message: &str) -> bool {
    message.contains("invalid JSON") || message.contains("an empty string")
}

/// Returns what is wrong with a line, for behind its place.
pub(crate) fn of_line(message: &str) -> String {
    match is_of_json(message) {
        true => {
            let message = in_plain_words(message).replacen(" at line 1, column", " at column", 1);
            format!("{message}\n  help: each line must be one JSON value; --keep-going skips others")
        }
        false => message.to_owned(),
    }
}

/// What a setup program printed before it failed. What setup programs print is not shown otherwise.
pub(crate) fn printed_by_setup(outcome: &Outcome) -> String {
    let lines = || outcome.prints.iter().map(|line| visible(line).into_owned() + "\n");
    match outcome.problem() {
        Some(problem) if problem.setup.is_some() => lines().collect(),
        _ => String::new(),
    }
}
