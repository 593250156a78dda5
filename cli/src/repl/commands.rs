//! The commands of the REPL: words that start with a colon.

use lisp_core::syntax::lexer::{Token, tokens};
use lisp_runtime::language::is_incomplete;

/// A command, its argument and its description.
pub(super) struct Command {
    pub(super) name: &'static str,
    /// The argument; empty for none, in brackets if it is optional.
    pub(super) takes: &'static str,
    pub(super) does: &'static str,
}

impl Command {
    /// Returns the form in an argument, if the command takes one.
    fn form<'a>(&self, argument: &'a str) -> Option<&'a str> {
        match self.takes {
            "FORM" | "[FORM]" => Some(argument),
            "NAME FORM" => argument.split_once(char::is_whitespace).map(|(_, form)| form),
            _ => None,
        }
    }
}

const fn command(name: &'static str, takes: &'static str, does: &'static str) -> Command {
    Command { name, takes, does }
}

/// All commands, in the order of `:help`.
pub(super) const COMMANDS: &[Command] = &[
    command(":help", "", "show this help"),
    command(":doc", "NAME", "show the documentation of a function, form or tool/NAME"),
    command(":apropos", "TEXT", "search names and documentation"),
    command(":type", "FORM", "show the type of a form's value"),
    command(":time", "[FORM]", "show time and fuel of a form; without one, switch it on or off for every form"),
    command(":fuel", "FORM", "show the fuel of each part of a form"),
    command(":limits", "[NAME=N]", "show the limits, or one (NAME), or change one for this session"),
    command(":usage", "", "show what the last form used, and the session"),
    command(":defs", "", "list the definitions"),
    command(":data", "[FILE]", "list the data, or add that of FILE or NAME=FILE, as --data does"),
    command(":tools", "", "list the tools"),
    command(":mock", "NAME FORM", "make tool/NAME return the value of FORM"),
    command(":record", "[FILE]", "add forms and values to FILE for ptcl test; without FILE, stop"),
    command(":isolation", "", "show where forms run"),
    command(":undo", "", "undo the last form that changed a definition, or :load"),
    command(":save", "FILE", "save the session to a new file, or over a saved session"),
    command(":save!", "FILE", "save the session over any file"),
    command(":load", "FILE", "load a saved session; it replaces all definitions"),
    command(":reload", "", "load the last saved session again"),
    command(":json", "[FORM]", "show the value of a form as JSON; without one, switch JSON output on or off"),
    command(":table", "[FORM]", "show the value of a form as a table; without one, the last value"),
    command(":more", "", "show the next lines of the last value"),
    command(":page", "", "show the whole last value in a pager ($PAGER, or less)"),
    command(":quit", "", "leave; same as Ctrl-D"),
];

/// Parses a command line into the command and its argument.
pub(super) fn parse(text: &str) -> Option<(&'static Command, &str)> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let name = match word {
        ":h" => ":help",
        ":q" | ":exit" => ":quit",
        ":names" => ":defs",
        word => word,
    };
    let command = COMMANDS.iter().find(|command| command.name == name)?;
    // It may also be a keyword in front of a form.
    let rest = rest.trim();
    (!command.takes.is_empty() || rest.is_empty()).then_some((command, rest))
}

/// Returns whether the input is complete: a command or complete forms.
pub(super) fn is_whole(text: &str) -> bool {
    match parse(text) {
        Some((command, argument)) => !command.form(argument).is_some_and(is_incomplete),
        None => !is_incomplete(text),
    }
}

/// Returns whether a required argument is missing.
pub(super) fn lacks(command: &Command, argument: &str) -> bool {
    argument.is_empty() && !command.takes.is_empty() && !command.takes.starts_with('[')
}

/// The command, if it takes no argument but the line has one.
pub(super) fn with_too_much(text: &str) -> Option<&'static str> {
    let (word, rest) = text.trim().split_once(char::is_whitespace)?;
    let command = COMMANDS.iter().find(|command| command.name == word && command.takes.is_empty())?;
    // A keyword with forms after it is a program.
    (!rest.trim_start().starts_with(['(', '[', '{', ':'])).then_some(command.name)
}

/// Returns the command that is meant by a word of other REPLs, and that word.
pub(super) fn meant(text: &str) -> Option<(&'static str, &str)> {
    let word = text.trim();
    let word = word.strip_prefix('(').and_then(|call| call.strip_suffix(')')).unwrap_or(word);
    match word {
        "quit" | "exit" => Some((":quit", word)),
        "help" | "?" => Some((":help", word)),
        _ => None,
    }
}

/// Returns whether a line begins with a command of another REPL that measures time.
pub(super) fn is_timing(text: &str) -> bool {
    matches!(text.split_whitespace().next(), Some("%time" | "%timeit" | "%%time" | "%%timeit"))
}

/// Returns whether the input has only whitespace and comments.
pub(super) fn is_empty(text: &str) -> bool {
    tokens(text).all(|(token, _)| matches!(token, Ok(Token::Space | Token::Comment)))
}

/// The first word if it looks like an unknown command: a colon and a name.
pub(super) fn unknown(text: &str) -> Option<&str> {
    let word = text.split_whitespace().next()?;
    let name = word.strip_prefix(':')?;
    (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '?' | '!'))).then_some(word)
}

/// The command names, for an error.
pub(super) fn names() -> String {
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    names.join(" ")
}

/// The text of `:help`.
pub(super) fn help() -> String {
    let mut text =
        "Type a form: it is evaluated when it is complete. Definitions stay.\n*1 *2 *3 are the last values, *e is the last error.\n"
            .to_owned();
    for Command { name, takes, does } in COMMANDS {
        text.push_str(&format!("  {:<16} {does}\n", format!("{name} {takes}")));
    }
    text + "  Tab completes. Ctrl-C drops what you typed, or stops the running form.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_keywords() {
        let parsed = |text| parse(text).map(|(command, rest)| (command.name, rest));
        assert_eq!(parsed(" :doc  map \n"), Some((":doc", "map")));
        assert_eq!(parsed(":q"), Some((":quit", "")));
        assert_eq!(parsed(":names"), Some((":defs", "")));
        assert_eq!(parsed(":time"), Some((":time", "")));
        assert_eq!(parsed(":time (+ 1 2)"), Some((":time", "(+ 1 2)")));
        assert_eq!((with_too_much(":undo 3"), with_too_much(":usage a=1")), (Some(":undo"), Some(":usage")));
        assert_eq!((with_too_much(":undo (a)"), with_too_much(":doc map"), with_too_much(":a 1")), (None, None, None));
        assert!(is_empty(" ; nothing\n") && is_empty(",") && !is_empty("; a\n1") && !is_empty("#_"));
        // A keyword with forms after it.
        assert_eq!((parsed(":a"), parsed(":undo (+ 1 2)"), parsed("(:doc m)"), parsed("")), (None, None, None, None));
        assert_eq!((unknown(":frob x"), unknown("(:frob)"), unknown(": a")), (Some(":frob"), None, None));
    }

    #[test]
    fn the_form_of_a_command_goes_on_over_lines() {
        for (text, is_complete) in [
            (":mock o {:a 1", false),
            (":mock o {:a 1\n:b 2}", true),
            (":mock o", true),
            (":time", true),
            (":time [1", false),
            (":type \"a", false),
            (":type \"a\nb\"", true),
            (":fuel (f (g)", false),
            (":save a(b", true),
            (":limits fuel=1", true),
            ("(a", false),
        ] {
            assert_eq!(is_whole(text), is_complete, "{text}");
        }
    }

    #[test]
    fn the_help_names_all() {
        assert!(COMMANDS.iter().all(|command| help().contains(command.does) && names().contains(command.name)));
        assert!(help().lines().all(|line| line.len() <= 105), "{}", help());
    }
}
