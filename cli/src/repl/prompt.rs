//! Callbacks of the line editor: is the input complete, how can a name be completed, what does a function take, and
//! which colours does the line have?

use super::commands;
use super::complete::complete;
use super::lines::{CONTINUED, PADDING, indentation};
use super::words::{ends_word, words_of};
use crate::render::colour::{FAINT, KEYWORD, KNOWN, NUMBER, STRING, in_colour};
use lisp_runtime::language::describe_name;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, ConditionalEventHandler, Context, Event, EventContext, Helper, RepeatCount};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Names for completion, and whether to use colours.
#[derive(Default)]
pub(super) struct Prompt {
    /// Definitions, data names and keys.
    pub(super) names: BTreeSet<String>,
    pub(super) colours: bool,
}

impl Helper for Prompt {}

impl Validator for Prompt {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match commands::is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Completer for Prompt {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        Ok(complete(&line[..at], &self.names))
    }
}

impl Hinter for Prompt {
    type Hint = String;

    /// The arguments of the function whose name was just typed, shown after the end of the line.
    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<String> {
        if at < line.len() {
            return None;
        }
        let name = line.strip_suffix(' ')?.rsplit(ends_word).next().filter(|name| !name.is_empty())?;
        if !line[..line.len() - 1 - name.len()].ends_with('(') {
            return None;
        }
        let page = describe_name(name).ok()?;
        let call = page.lines().next()?.strip_prefix('(')?.strip_prefix(name)?.trim_start();
        Some(call.split(')').next()?.to_owned())
    }
}

impl Highlighter for Prompt {
    fn highlight<'l>(&self, line: &'l str, at: usize) -> Cow<'l, str> {
        Cow::Owned(painted(line, at, self.colours))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        match self.colours {
            true => Cow::Owned(in_colour(hint, FAINT)),
            false => Cow::Borrowed(hint),
        }
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        self.colours || line.contains('\n')
    }
}

/// Return: a form that is not complete continues on the next line, under what is open.
pub(super) struct Return;

impl ConditionalEventHandler for Return {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        if commands::is_whole(context.line()) {
            return None;
        }
        let before = &context.line()[..context.pos()];
        Some(Cmd::Insert(1, "\n".to_owned() + &indentation(before).unwrap_or_default()))
    }
}

const MATCH: &str = "1;7";

/// Colours a line, highlights the matching brackets at the cursor, and shows the prompt of lines that continue a form.
fn painted(line: &str, at: usize, has_colours: bool) -> String {
    let (words, pairs) = words_of(line);
    let of_cursor = pairs.into_iter().find(|(open, close)| *open == at || *close == at || *close + 1 == at);
    let mut text = String::with_capacity(line.len() * 2);
    let mut padded_to = 0;
    for (start, word) in words {
        if start < padded_to {
            continue;
        }
        if word == "\n" && line[start + 1..].starts_with(PADDING) {
            padded_to = start + 1 + PADDING.len();
            text.push('\n');
            text.push_str(&in_colour(CONTINUED, if has_colours { FAINT } else { "" }));
            continue;
        }
        let first = word.chars().next().unwrap_or(' ');
        let is_match = of_cursor.is_some_and(|(open, close)| start == open || start == close);
        let colour = match first {
            _ if is_match => MATCH,
            '"' => STRING,
            ';' => FAINT,
            ':' if start > 0 || commands::parse(line).is_none() => KEYWORD,
            '0'..='9' => NUMBER,
            '-' if word[1..].starts_with(|c: char| c.is_ascii_digit()) => NUMBER,
            '(' | ')' | '[' | ']' | '{' | '}' => "",
            _ if first.is_whitespace() => "",
            _ if describe_name(word).is_ok() => KNOWN,
            _ => "",
        };
        text.push_str(&in_colour(word, if has_colours { colour } else { "" }));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustyline::history::MemHistory;

    fn plain(painted: &str) -> String {
        let mut text = String::new();
        let mut rest = painted;
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            text.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        text + rest
    }

    #[test]
    fn colours_change_nothing_else_and_show_the_other_bracket() {
        for line in ["(map #(inc %) [1 -2.5 \"a\\\"(b\" :k]) ; c (", "\\( )", "\"open", "é(ü \"日", "", "{:a [}"] {
            for at in 0..=line.len() {
                assert_eq!(plain(&painted(line, at, true)), line);
                assert_eq!(painted(line, at, false), line);
            }
        }
        assert_eq!(painted("(f (g))", 7, true), "\u{1b}[1;7m(\u{1b}[0mf (g)\u{1b}[1;7m)\u{1b}[0m");
        assert_eq!(painted("(f\n       x\n     \"a\n     b\"", 0, false), "(f\n...>   x\n...> \"a\n     b\"");
        assert!(painted("(str \")\" 1)", 0, true).contains("\u{1b}[32m\")\"\u{1b}[0m"));
    }

    #[test]
    fn names_go_on_and_functions_say_what_they_take() {
        let history = MemHistory::new();
        let context = Context::new(&history);
        let names =
            [":total", "data/orders", "data/o\u{1b}[31m", "data/o\u{9b}1m\u{202e}", "data/or der", "data/größe"];
        let prompt = Prompt { names: names.map(str::to_owned).into(), colours: false };
        let go_on = |line: &str| {
            let (start, pairs) = prompt.complete(line, line.len(), &context).unwrap();
            (start, pairs.into_iter().map(|pair| pair.replacement).collect::<Vec<_>>())
        };
        assert_eq!(go_on("(map :to"), (5, vec![":total".to_owned()]));
        assert_eq!(go_on("(count data/o"), (7, vec!["data/orders".to_owned()]));
        assert_eq!(go_on("data/gr"), (0, vec!["data/größe".to_owned()]));
        assert!(go_on("(filt").1.contains(&"filter".to_owned()));
        assert_eq!(go_on(":und"), (0, vec![":undo".to_owned()]));
        assert_eq!(prompt.hint("(map ", 5, &context).as_deref(), Some("f coll"));
        assert_eq!(prompt.hint("(map inc ", 9, &context), None);
        assert_eq!(prompt.hint("(nope ", 6, &context), None);
    }
}
