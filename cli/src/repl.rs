//! `ptcl repl`: a prompt.

use crate::exit::{Exit, Failure};
use crate::isolation::{IsolationOption, Runner, SessionProblem, TurnRunner};
use crate::options::{Grant, LimitOptions};
use crate::render::errors::{self, Text};
use lisp_runtime::{Input, Outcome, OutcomeKind, Problem, builtin_names, is_incomplete};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};
use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    grant: Grant,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    isolation: IsolationOption,
}

const HELP: &str = "\
Type a form; it is evaluated when it is complete. Definitions stay, *1 *2 *3 are the last results.
  :help   this text        :names  what is defined        :quit   leave (also Ctrl-D)
  :undo   take the last turn back    :save FILE, :load FILE   keep the session as text, go on with one
  Ctrl-C  drops what is typed, or ends the form that runs";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let engine = arguments.limits.engine()?;
    let input = match arguments.grant.input(&engine)? {
        Ok(input) => input,
        Err(setup) => {
            eprint!("{}", errors::draw(&setup.problem, &setup.file, &setup.source));
            return Ok(Exit::of_problem(&setup.problem));
        }
    };
    let runner = arguments.isolation.open(engine, 1)?;
    let mut session = runner.session(input.clone())?;
    let handler = session.cancel_handle().clone();
    ctrlc::set_handler(move || handler.cancel()).map_err(|error| Failure::Prompt(error.to_string()))?;
    let again = input.cancel_with(session.cancel_handle());
    let mut talk = Talk { runner, input: again, session: &mut session, texts: Texts::new(&arguments.grant) };
    if !std::io::stdin().is_terminal() {
        return talk.converse(&mut Typed::Piped { lines: 0 });
    }
    let mut editor: Editor<Prompt, FileHistory> = Editor::new().map_err(|error| Failure::Prompt(error.to_string()))?;
    editor.set_helper(Some(Prompt::default()));
    let history = history_file();
    if let Some(path) = &history {
        // There is none the first time.
        let _ = editor.load_history(path);
    }
    println!("PTC-Lisp {}. :help for help, Ctrl-D to leave.", env!("CARGO_PKG_VERSION"));
    let mut typed = Typed::AtTerminal(Box::new(editor));
    let done = talk.converse(&mut typed);
    if let Some(path) = &history
        && let Typed::AtTerminal(editor) = &mut typed
        && let Err(error) = editor.save_history(path)
    {
        eprintln!("ptcl: {}: {error}", path.display());
    }
    done
}

/// Where forms come from.
enum Typed {
    AtTerminal(Box<Editor<Prompt, FileHistory>>),
    /// A file or a pipe; lines are counted for its errors.
    Piped {
        lines: u64,
    },
}

impl Typed {
    /// The next form, or several, as they were typed; `None` at the end.
    fn next(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Typed::AtTerminal(editor) => loop {
                match editor.readline("ptc> ") {
                    Ok(line) => {
                        // A history that cannot be kept is no reason to stop.
                        let _ = editor.add_history_entry(line.trim());
                        return Ok(Some(line));
                    }
                    Err(ReadlineError::Interrupted) => {}
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                        eprintln!("ptcl: that is no UTF-8");
                    }
                    Err(error) => return Err(Failure::Prompt(error.to_string())),
                }
            },
            Typed::Piped { lines } => {
                let mut text = String::new();
                while let Some(line) = piped_line(lines)? {
                    text.push_str(&line);
                    if is_command(&text) || !is_incomplete(&text) {
                        return Ok(Some(text));
                    }
                }
                // What is not complete at the end gets its error.
                Ok((!text.trim().is_empty()).then_some(text))
            }
        }
    }

    /// Names that may complete what is typed.
    fn offer(&mut self, names: Vec<String>) {
        if let Typed::AtTerminal(editor) = self
            && let Some(prompt) = editor.helper_mut()
        {
            prompt.defined = names;
        }
    }
}

/// The next line that is UTF-8; of another it says so and goes on.
fn piped_line(lines: &mut u64) -> Result<Option<String>, Failure> {
    loop {
        let mut line = Vec::new();
        if std::io::stdin().lock().read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        *lines = lines.saturating_add(1);
        match String::from_utf8(line) {
            Ok(line) => return Ok(Some(line)),
            Err(error) => eprintln!("ptcl: line {lines} of standard input is skipped: {error}"),
        }
    }
}

/// Is it one word that begins like a command, or one of those that take a file?
fn is_command(text: &str) -> bool {
    let one_word = text.trim_start().starts_with(':') && !text.trim().contains(char::is_whitespace);
    one_word || file_of(text.trim(), ":save").or_else(|| file_of(text.trim(), ":load")).is_some()
}

/// The file of a command that takes one.
fn file_of<'t>(text: &'t str, command: &str) -> Option<&'t str> {
    let file = text.strip_prefix(command)?;
    (file.is_empty() || file.starts_with(' ')).then_some(file.trim())
}

/// The word that looks like a command in what is not one: a name behind a colon, first in its line.
fn unknown_command(text: &str) -> Option<&str> {
    let word = text.split_whitespace().next()?;
    let name = word.strip_prefix(':')?;
    (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '?' | '!'))).then_some(word)
}

/// The session, and what it takes to begin another one from a file.
struct Talk<'a> {
    runner: Runner,
    input: Input<'static>,
    session: &'a mut TurnRunner,
    texts: Texts<'a>,
}

impl Talk<'_> {
    fn converse(&mut self, typed: &mut Typed) -> Result<Exit, Failure> {
        loop {
            let Some(line) = typed.next()? else { return Ok(Exit::Ok) };
            let text = line.trim();
            if text.is_empty() {
                continue;
            }
            match text {
                ":quit" | ":q" | ":exit" => return Ok(Exit::Ok),
                ":help" | ":h" => println!("{HELP}"),
                ":names" => println!("{}", self.session.names().join(" ")),
                ":undo" => {
                    let undone = self.session.undo();
                    self.said(undone);
                }
                ":save" | ":load" => eprintln!("{text} takes a file, as in {text} session.ptc"),
                _ => match (file_of(text, ":save"), file_of(text, ":load")) {
                    (Some(file), _) => self.save(file),
                    (_, Some(file)) => self.load(file)?,
                    _ => self.turn(line)?,
                },
            }
            typed.offer(self.session.names());
        }
    }

    fn turn(&mut self, line: String) -> Result<(), Failure> {
        self.session.cancel_handle().reset();
        if let Some(word) = unknown_command(&line) {
            eprintln!("{word} is read as a keyword: the commands are :help, :names, :undo, :save, :load and :quit");
        }
        self.texts.turns.push(line);
        let outcome = self.session.eval(self.texts.turns.last().map_or("", String::as_str));
        show(&outcome, &self.texts)
    }

    fn save(&mut self, file: &str) {
        self.session.cancel_handle().reset();
        let saved = self.session.save();
        if let Some(text) = self.said(saved)
            && let Err(error) = std::fs::write(file, text)
        {
            eprintln!("ptcl: {file}: {error}");
        }
    }

    fn load(&mut self, file: &str) -> Result<(), Failure> {
        self.session.cancel_handle().reset();
        match std::fs::read_to_string(file) {
            Err(error) => eprintln!("ptcl: {file}: {error}"),
            Ok(text) => {
                let loaded = self.runner.load(&text, self.input.clone())?;
                if let Some(loaded) = self.said(loaded) {
                    *self.session = loaded;
                    (self.texts.before, self.texts.turns) = (self.session.turns(), Vec::new());
                }
            }
        }
        Ok(())
    }

    /// What came of something, or nothing when it failed, which is said.
    fn said<T>(&self, done: Result<T, SessionProblem>) -> Option<T> {
        let say = |problem: Box<Problem>| eprint!("{}", errors::draw_in(&problem, &self.texts));
        done.map_err(|problem| problem.map(say)).ok()
    }
}

/// What has been typed, turn by turn, and the set-up programs.
struct Texts<'a> {
    grant: &'a Grant,
    /// The turns of a session that was loaded, whose texts are not here.
    before: u64,
    turns: Vec<String>,
}

impl<'a> Texts<'a> {
    fn new(grant: &'a Grant) -> Self {
        Texts { grant, before: 0, turns: Vec::new() }
    }
}

impl errors::Texts for Texts<'_> {
    fn text(&self, setup: Option<usize>, turn: Option<u64>) -> Option<Text> {
        if let Some(index) = setup {
            return self.grant.setup_text(index);
        }
        let (name, index) = match turn {
            Some(turn) => {
                (format!("turn {turn}"), usize::try_from(turn.checked_sub(self.before)?).ok()?.checked_sub(1)?)
            }
            None => ("prompt".to_owned(), self.turns.len().checked_sub(1)?),
        };
        Some(Text { name, source: self.turns.get(index)?.clone() })
    }
}

fn show(outcome: &Outcome, texts: &Texts<'_>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for printed in &outcome.prints {
        writeln!(out, "{printed}")?;
    }
    match (outcome.problem(), outcome.text()) {
        (Some(problem), _) => {
            out.flush()?;
            eprint!("{}", errors::draw_in(problem, texts));
        }
        (None, Some(text)) if outcome.kind() == Some(OutcomeKind::Fail) => writeln!(out, "failed: {text}")?,
        (None, text) => writeln!(out, "{}", text.unwrap_or_default())?,
    }
    if let Some(total) = outcome.text_cut() {
        writeln!(out, "... ({total} bytes in all)")?;
    }
    out.flush()?;
    Ok(())
}

/// Where earlier lines are kept: in the user's directory for state if there is one, else at home.
fn history_file() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| home.as_ref().map(|home| home.join(".local/state")))
        .filter(|dir| dir.is_dir());
    match state {
        Some(dir) => Some(dir.join("ptcl_history")),
        None => home.map(|home| home.join(".ptcl_history")),
    }
}

/// What the line editor asks: is the form complete, and how could this name go on?
#[derive(Default)]
struct Prompt {
    defined: Vec<String>,
}

impl Helper for Prompt {}
impl Highlighter for Prompt {}
impl Hinter for Prompt {
    type Hint = String;
}

impl Validator for Prompt {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        Ok(match !is_command(text) && is_incomplete(text) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Prompt {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..at];
        let start = before.rfind(|c: char| c.is_whitespace() || "()[]{}\",'#".contains(c)).map_or(0, |i| i + 1);
        let word = &before[start..];
        if word.is_empty() {
            return Ok((at, Vec::new()));
        }
        let defined = self.defined.iter().map(String::as_str);
        let built_in = builtin_names().map(|name: &str| name);
        let mut names: Vec<String> =
            defined.chain(built_in).filter(|name| name.starts_with(word)).map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        Ok((start, names))
    }
}
