//! `ptcl repl`: a REPL.

mod commands;
mod complete;
mod files;
mod last_error;
mod lines;
mod prompt;
mod renew;
mod shown;
mod typed;
mod words;

use crate::exit::{Exit, Failure};
use crate::given;
use crate::isolation::{IsolationOption, Runner, SessionProblem, TurnRunner};
use crate::limits::{self, LimitOptions, TrustOption};
use crate::names::described;
use crate::options::Grant;
use crate::output;
use crate::pager::{self, Paged};
use crate::render::colour;
use crate::render::errors::{self, Text};
use crate::render::keys;
use crate::render::profile::Drawn;
use crate::render::values;
use commands::Command;
use lisp_runtime::language::{builtin_names, describe_name};
use lisp_runtime::outcome::{OutcomeKind, Usage};
use lisp_runtime::{DataSet, Input, Limits, Outcome, Problem, Reason};
use prompt::Prompt;
use renew::Earlier;
use shown::{Rest, Shown, View};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{IsTerminal, Write};
use typed::Typed;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    grant: Grant,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    trust: TrustOption,
    #[command(flatten)]
    isolation: IsolationOption,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let defaults = arguments.trust.limits();
    let engine = arguments.limits.engine_over(defaults)?;
    let input = match arguments.grant.input(&engine)? {
        Ok(input) => input.print_to(print_line).profile(),
        Err(setup) => {
            tell!("{}", errors::draw(&setup.problem, &setup.file, &setup.source));
            return Ok(Exit::of_problem(&setup.problem));
        }
    };
    let limits = engine.limits_for(&input);
    let input = input.limits_over(&renew::with_room_to_save(&limits, &defaults));
    let runner = arguments.isolation.open(engine, 1)?;
    let mut session = runner.session(input.clone())?;
    let handler = session.cancel_handle().clone();
    ctrlc::set_handler(move || handler.cancel()).map_err(|error| Failure::Prompt(error.to_string()))?;
    let again = input.cancel_with(session.cancel_handle());
    let at_terminal = std::io::stdin().is_terminal();
    let mut talk = Talk {
        runner,
        input: again,
        limits,
        defaults,
        earlier: Earlier::new(),
        session: &mut session,
        texts: Texts::new(&arguments.grant),
        shown: Shown { view: View::Clojure, time: false, fits: at_terminal && std::io::stdout().is_terminal() },
        data: arguments.grant.data_names(),
        last: None,
        viewed: View::Clojure,
        rest: Rest::default(),
        fuel: 0,
        added: BTreeMap::new(),
        loaded: None,
        error: None,
        mocks: BTreeMap::new(),
        recorded: None,
        exit: Exit::Ok,
    };
    if !at_terminal {
        return talk.converse(&mut Typed::Piped { lines: 0 }).map(|()| talk.exit);
    }
    let colours = colour::is_wanted(true);
    let mut typed = Typed::at_terminal(Prompt { names: talk.names(), colours })?;
    show(&format!("PTC-Lisp {}. :help for help, Ctrl-D to leave.\n", env!("CARGO_PKG_VERSION")))?;
    let done = talk.converse(&mut typed);
    typed.end();
    done.map(|()| Exit::Ok)
}

/// Prints a line right away. If standard output is closed, the command ends with the next value.
fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", output::shown(line)).and_then(|()| out.flush());
}

/// The session, and what is needed to start another one from a file.
struct Talk<'a> {
    runner: Runner,
    input: Input<'static>,
    /// The limits that were asked for. The session has more room to be saved.
    limits: Limits,
    defaults: Limits,
    session: &'a mut TurnRunner,
    /// The sessions that this one continues, for `:undo`.
    earlier: Earlier,
    texts: Texts<'a>,
    shown: Shown,
    /// The names of the data, and the keys in it.
    data: BTreeSet<String>,
    /// The last value.
    last: Option<Outcome>,
    /// How it was shown, for `:page`.
    viewed: View,
    /// What of it was not shown yet.
    rest: Rest,
    /// The fuel of all turns.
    fuel: u64,
    /// The data of `:data`, which `input` does not have.
    added: BTreeMap<String, DataSet>,
    /// The file of the last `:load`.
    loaded: Option<String>,
    /// The last error, as source text.
    error: Option<String>,
    /// The mock tools, with the JSON that each returns.
    mocks: BTreeMap<String, String>,
    /// The file that forms and their values are recorded to.
    recorded: Option<File>,
    /// The exit code of the last form or command that failed.
    exit: Exit,
}

impl Talk<'_> {
    fn converse(&mut self, typed: &mut Typed) -> Result<(), Failure> {
        while let Some(line) = typed.next()? {
            if commands::is_empty(&line) {
                continue;
            }
            match commands::parse(&line).or_else(|| self.meant(&line)) {
                Some((command, _)) if command.name == ":quit" => break,
                Some((command, argument)) if commands::lacks(command, argument) => {
                    self.refuse(&format!("{} takes {}: {}", command.name, command.takes, command.does));
                }
                Some((command, argument)) => self.command(command, argument)?,
                None => self.form(line)?,
            }
            if let Some(prompt) = typed.prompt() {
                prompt.names = self.names();
            }
        }
        Ok(())
    }

    /// Says why a command does nothing.
    pub(super) fn refuse(&mut self, why: &str) {
        tell_line!("{why}");
        self.exit = Exit::Usage;
    }

    /// Returns the command that is meant by `exit` or `help`, unless the session defines the name.
    fn meant(&mut self, line: &str) -> Option<(&'static Command, &'static str)> {
        let (command, word) = commands::meant(line)?;
        let is_defined = self.session.names().iter().any(|name| name == word);
        commands::COMMANDS.iter().find(|known| known.name == command && !is_defined).map(|command| (command, ""))
    }

    /// All names that can be completed.
    fn names(&mut self) -> BTreeSet<String> {
        let mut names = self.data.clone();
        names.extend(self.session.names());
        names.extend(self.mocks.keys().map(|name| format!("tool/{name}")));
        names.extend(["*1", "*2", "*3", "*e"].map(str::to_owned));
        if let Some(json) = self.last.as_ref().and_then(Outcome::json).filter(|json| json.len() < 1 << 20) {
            keys::collect(json, &mut names);
        }
        names
    }

    fn command(&mut self, command: &Command, argument: &str) -> Result<(), Failure> {
        match command.name {
            ":help" => show(&commands::help())?,
            ":doc" => self.doc(argument)?,
            ":apropos" => apropos(argument)?,
            ":type" => self.turn(format!("(type {argument})"))?,
            ":time" if argument.is_empty() => {
                self.shown.time = !self.shown.time;
                say_whether("the time and fuel of each form are shown", self.shown.time);
            }
            ":time" => {
                let before = std::mem::replace(&mut self.shown.time, true);
                let done = self.turn(argument.to_owned());
                self.shown.time = before;
                done?;
            }
            ":fuel" => self.fuel(argument)?,
            ":tools" => show(&self.tools())?,
            ":mock" => self.mock(argument)?,
            ":record" => self.record(argument),
            ":limits" if argument.is_empty() => show(&limits::listed(&self.limits))?,
            ":limits" => self.one_limit(argument)?,
            ":usage" => match &self.last {
                Some(last) => show(&format!("the last form: {}; all: {} fuel\n", figures(&last.usage), self.fuel))?,
                None => show("nothing has run yet\n")?,
            },
            ":defs" => show(&(self.session.names().join(" ") + "\n"))?,
            ":data" if !argument.is_empty() => self.add_data(argument)?,
            ":data" => {
                let names: Vec<&str> =
                    self.data.iter().map(String::as_str).filter(|name| name.starts_with("data/")).collect();
                match names.is_empty() {
                    true => show("no data; add some with :data FILE\n")?,
                    false => show(&(names.join(" ") + "\n"))?,
                }
            }
            ":isolation" => show(&format!("{}\n", self.runner.place()))?,
            ":undo" => self.undo()?,
            ":save" => self.save(argument, false),
            ":save!" => self.save(argument, true),
            ":load" => self.load(argument.to_owned())?,
            ":reload" => match self.loaded.clone() {
                Some(file) => self.load(file)?,
                None => self.refuse("nothing to reload: :load FILE loads a saved session"),
            },
            ":json" if argument.is_empty() => {
                let is_json = self.shown.view == View::Json;
                self.shown.view = if is_json { View::Clojure } else { View::Json };
                self.viewed = self.shown.view;
                say_whether("JSON output", !is_json);
            }
            ":json" => self.turn_in(View::Json, argument)?,
            ":table" if argument.is_empty() => self.table()?,
            ":table" => self.turn_in(View::Table, argument)?,
            ":more" if self.rest.is_empty() => tell_line!("there is no more to show"),
            ":more" => show_formatted(&self.rest.next(output::rows()))?,
            _ => self.page()?,
        }
        Ok(())
    }

    /// Evaluates a form and shows its value in a view.
    fn turn_in(&mut self, view: View, form: &str) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.shown.view, view);
        let done = self.turn(form.to_owned());
        self.shown.view = before;
        done
    }

    /// Shows the last value as a table.
    fn table(&mut self) -> Result<(), Failure> {
        let Some(last) = self.last.as_ref().filter(|last| last.is_success()) else {
            self.refuse("no last value yet");
            return Ok(());
        };
        match (Shown { view: View::Table, ..self.shown }).value(last) {
            Ok((text, rest)) => {
                (self.viewed, self.rest) = (View::Table, rest);
                show_formatted(&text)?;
            }
            Err(unfit) => self.refuse(&unfit.at_prompt()),
        }
        Ok(())
    }

    /// Shows the whole last value, in a pager at a terminal.
    fn page(&mut self) -> Result<(), Failure> {
        let Some(last) = self.last.as_ref().filter(|last| last.is_success()) else {
            self.refuse("no last value yet");
            return Ok(());
        };
        let shown = Shown { view: self.viewed, ..self.shown };
        let what = if shown.table(last).is_some() { Paged::Table } else { Paged::Text };
        match shown.whole(last) {
            Ok(text) => {
                let text = text + "\n";
                if !self.shown.fits || !pager::show(&text, what)? {
                    show_formatted(&text)?;
                }
            }
            Err(unfit) => self.refuse(&unfit.at_prompt()),
        }
        Ok(())
    }

    /// Evaluates input.
    fn form(&mut self, line: String) -> Result<(), Failure> {
        if let Some(command) = commands::with_too_much(&line) {
            self.refuse(&format!("{command} takes no argument"));
            return Ok(());
        }
        if commands::is_timing(&line) {
            self.refuse("for the time of a form, write :time FORM");
            return Ok(());
        }
        if let Some(word) = commands::unknown(&line) {
            tell_line!("{word} is not a command, so it is read as a keyword; the commands are {}", commands::names());
        }
        let forms = lines::forms(&line);
        if forms.len() == 1 {
            return self.turn(line);
        }
        // Each form of a block has its value, and the others go on after an error.
        for form in forms {
            self.turn(form.to_owned())?;
            if self.session.cancel_handle().is_cancelled() {
                break;
            }
        }
        Ok(())
    }

    fn turn(&mut self, line: String) -> Result<(), Failure> {
        self.session.cancel_handle().reset();
        self.texts.turns.push(last_error::put_into(line, self.error.as_deref()));
        let outcome = self.session.eval(self.texts.turns.last().map_or("", String::as_str));
        self.fuel = self.fuel.saturating_add(outcome.usage.fuel);
        let shown = self.show(&outcome);
        if !outcome.is_success() {
            self.rest = Rest::default();
        }
        if let Some(error) = last_error::literal(&outcome) {
            self.error = Some(error);
        }
        if outcome.is_success() {
            self.earlier.count(self.texts.turns.last().map_or("", String::as_str));
        }
        if !outcome.is_success() {
            self.exit = Exit::of(&outcome);
        } else if outcome.text_cut().is_some() || output::lost_prints(&outcome).is_some() {
            self.exit = Exit::Limit;
        }
        self.keep(&outcome);
        self.last = Some(outcome);
        shown
    }

    fn show(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        match outcome.problem() {
            Some(problem) => {
                out.flush()?;
                let problem = with_own_hint(problem);
                tell!("{}{}", given::printed_by_setup(outcome), errors::draw_in(&problem, &self.texts));
            }
            None if outcome.kind() == Some(OutcomeKind::Fail) => {
                writeln!(out, "failed: {}", output::shown(outcome.text().unwrap_or_default()))?;
            }
            None => match self.shown.value(outcome) {
                Ok((text, rest)) => {
                    (self.viewed, self.rest) = (self.shown.view, rest);
                    write!(out, "{text}")?;
                }
                Err(unfit) => {
                    out.flush()?;
                    (self.viewed, self.rest) = (View::Clojure, Rest::default());
                    tell_line!("{}", unfit.at_prompt());
                    self.exit = unfit.exit();
                }
            },
        }
        for note in values::notes_on_program(outcome.warnings()) {
            writeln!(out, "; {}", output::shown(&note))?;
        }
        if let Some(total) = outcome.text_cut() {
            writeln!(out, "... ({total} bytes in all: the limit is result_bytes)")?;
        }
        if let Some(why) = output::lost_prints(outcome) {
            writeln!(out, "; {why}")?;
        }
        if self.shown.time {
            writeln!(out, "; {}", figures(&outcome.usage))?;
        }
        Ok(out.flush()?)
    }

    /// Shows the fuel that each form inside a form used.
    fn fuel(&mut self, form: &str) -> Result<(), Failure> {
        self.turn(form.to_owned())?;
        let profile = self.last.as_ref().and_then(|last| last.profile.as_ref());
        profile.map_or(Ok(()), |profile| show(&Drawn::new(profile, &self.texts).table()))
    }

    fn tools(&self) -> String {
        if self.mocks.is_empty() {
            return "no tools; add one with :mock NAME FORM\n".to_owned();
        }
        self.mocks.iter().map(|(name, json)| format!("tool/{name} always returns {json}\n")).collect()
    }

    /// Shows the documentation of a name of the language. For a tool, the session has it.
    fn doc(&mut self, name: &str) -> Result<(), Failure> {
        let is_tool = name
            .strip_prefix("tool/")
            .is_some_and(|tool| tool.chars().all(|c| c.is_ascii_graphic() && !"()[]{}\";,`".contains(c)));
        match described(name) {
            Ok(text) => show(&text)?,
            Err(_) if is_tool => self.turn(format!("(doc {name})"))?,
            Err(why) if why.contains(": ") => self.refuse(&why),
            Err(why) => self.refuse(&format!("{why}: :apropos TEXT finds names")),
        }
        Ok(())
    }

    /// Returns the result, or reports the problem and returns `None`.
    fn reported<T>(&mut self, done: Result<T, SessionProblem>) -> Option<T> {
        done.map_err(|problem| {
            if let Some(problem) = problem {
                tell!("{}", errors::draw_in(&problem, &self.texts));
                self.exit = Exit::of_problem(&problem);
            }
        })
        .ok()
    }
}

/// Returns the problem with a hint for the REPL, where that has a command for what the form wanted.
fn with_own_hint(problem: &Problem) -> Cow<'_, Problem> {
    if problem.reason() != Reason::UnboundVar || problem.error.message != "time is not defined" {
        return Cow::Borrowed(problem);
    }
    let mut problem = problem.clone();
    problem.error.hint = Some("for the time of a form, write :time FORM".into());
    Cow::Owned(problem)
}

/// Reports that a setting was turned on or off.
fn say_whether(what: &str, on: bool) {
    match on {
        true => tell_line!("{what}: on"),
        false => tell_line!("{what}: off"),
    }
}

/// Lists functions and special forms whose name or documentation contains a text, with their first lines.
fn apropos(text: &str) -> Result<(), Failure> {
    let wanted = text.to_lowercase();
    let mut found = BTreeSet::new();
    for name in builtin_names() {
        let Ok(page) = describe_name(name) else { continue };
        if name.contains(&wanted) || page.to_lowercase().contains(&wanted) {
            let mut lines = page.lines();
            let (call, does) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default().trim());
            // Functions in several namespaces may share their documentation.
            if found.insert(call.to_owned()) {
                show(&format!("{call}\n  {does}\n"))?;
            }
        }
    }
    if found.is_empty() {
        tell_line!("no name or documentation contains {text}");
    }
    Ok(())
}

/// Prints text, as [`output::shown`] prepares it.
fn show(text: &str) -> Result<(), Failure> {
    show_formatted(&output::shown(text))
}

/// Prints text that is prepared, and may have colours.
fn show_formatted(text: &str) -> Result<(), Failure> {
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

/// The resources a turn used, on one line.
fn figures(usage: &Usage) -> String {
    let ms = usage.duration_us as f64 / 1_000.0;
    format!(
        "{ms:.3} ms, {} fuel, {} bytes allocated, {} tool calls",
        usage.fuel, usage.allocated_bytes, usage.tool_calls
    )
}

/// The programs typed so far, turn by turn, and the setup programs.
struct Texts<'a> {
    grant: &'a Grant,
    /// The number of turns of a loaded session, whose text is not available.
    before: u64,
    turns: Vec<String>,
}

impl<'a> Texts<'a> {
    fn new(grant: &'a Grant) -> Self {
        Texts { grant, before: 0, turns: Vec::new() }
    }

    /// Forgets the programs after this number of turns.
    fn cut_to(&mut self, turns: u64) {
        let kept = usize::try_from(turns.saturating_sub(self.before)).unwrap_or(usize::MAX);
        self.turns.truncate(kept);
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
