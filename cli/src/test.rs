//! `ptcl test`: runs the examples in programs and pages.

mod examples;
mod pages;

use crate::exit::{Exit, Failure};
use crate::limits::LimitOptions;
use crate::options;
use crate::output::shown;
use crate::render::errors;
use crate::watch;
use examples::{Example, Expected, examples};
use lisp_core::syntax::LineIndex;
use lisp_runtime::outcome::OutcomeKind;
use lisp_runtime::{Engine, Input, Outcome};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Programs and Markdown pages (.md). A program is one session, and so is each clojure, clj or lisp block of a page
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Run again whenever one of the files changes
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    limits: LimitOptions,
}

/// The number of examples that passed and failed.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

/// Runs the command. Exits with 0 if all examples pass, and with 1 if one fails.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if !arguments.watch {
        return once(arguments);
    }
    watch::check(&arguments.files)?;
    watch::again(&arguments.files, || once(arguments))
}

fn once(arguments: &Arguments) -> Result<Exit, Failure> {
    let engine = arguments.limits.engine()?;
    let mut tally = Tally::default();
    for path in &arguments.files {
        let text = options::read_file(path)?;
        let name = path.display().to_string();
        if is_page(path) {
            for block in pages::blocks(&text) {
                session(&engine, &name, &block, &mut tally)?;
            }
        } else {
            session(&engine, &name, &text, &mut tally)?;
        }
    }
    writeln!(io::stdout(), "{} passed, {} failed", tally.passed, tally.failed)?;
    Ok(if tally.failed == 0 { Exit::Ok } else { Exit::Fail })
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md") || end.eq_ignore_ascii_case("markdown"))
}

/// Evaluates the forms of a text in order, and compares their values.
fn session(engine: &Engine, name: &str, text: &str, tally: &mut Tally) -> Result<(), Failure> {
    let (forms, strays) = match examples(text) {
        Ok(found) => found,
        Err(error) => {
            tally.failed += 1;
            let problem = errors::unreadable(error, text);
            tell!("{}", errors::draw(&problem, name, text));
            return Ok(());
        }
    };
    let lines = LineIndex::new(text);
    let mut session = engine.session(Input::new());
    for example in &forms {
        let outcome = session.eval(example.source);
        let got = Got::of(&outcome);
        match (&example.expected, &got) {
            (None, Got::Value(_)) => {}
            (Some(expected), got) if got.is(expected, engine) => tally.passed += 1,
            _ => {
                tally.failed += 1;
                let line = lines.position(example.start).0;
                report(&format!("{name}:{line}"), example, &got)?;
            }
        }
    }
    for stray in strays {
        tally.failed += 1;
        let line = lines.position(stray).0;
        let name = shown(name);
        writeln!(io::stdout(), "{name}:{line}: no expression before this comment, on its line or the line above")?;
    }
    Ok(())
}

/// The result of an expression.
enum Got {
    Value(String),
    /// `(fail v)`.
    Failed(String),
    Error {
        reason: &'static str,
        message: String,
    },
}

impl Got {
    fn of(outcome: &Outcome) -> Self {
        let text = outcome.text().unwrap_or_default().to_owned();
        match outcome.problem() {
            Some(problem) => Got::Error { reason: problem.reason().name(), message: problem.error.message.clone() },
            None if outcome.kind() == Some(OutcomeKind::Fail) => Got::Failed(text),
            None => Got::Value(text),
        }
    }

    fn is(&self, expected: &Expected<'_>, engine: &Engine) -> bool {
        match (self, expected) {
            (Got::Error { reason, .. }, Expected::Error(expected)) => reason == expected,
            (Got::Value(text), Expected::Value(value)) => {
                text == value || printed(value, engine).as_ref() == Some(text)
            }
            (Got::Failed(text), Expected::Value(value)) => value
                .strip_prefix("failed: ")
                .is_some_and(|value| text == value || printed(value, engine).as_ref() == Some(text)),
            _ => false,
        }
    }
}

/// How a value written as data prints.
fn printed(value: &str, engine: &Engine) -> Option<String> {
    if !examples::is_one_form(value) {
        return None;
    }
    // After a space the quote turns a list into data, and leaves nil, true and false unchanged.
    let program = engine.compile(&format!("' {value}")).ok()?;
    let outcome = engine.run(&program, Input::new());
    outcome.text().filter(|_| outcome.is_success()).map(str::to_owned)
}

fn report(place: &str, example: &Example<'_>, got: &Got) -> io::Result<()> {
    let expected = match &example.expected {
        None => "no error".to_owned(),
        Some(Expected::Value(value)) => (*value).to_owned(),
        Some(Expected::Error(reason)) => format!("error: {reason}"),
    };
    let got = match got {
        Got::Value(text) => text.clone(),
        Got::Failed(text) => format!("failed: {text}"),
        Got::Error { reason, message } => format!("error: {reason}: {message}"),
    };
    let report = format!("{place}: {}\n  expected  {expected}\n  got       {got}", example.title);
    writeln!(io::stdout(), "{}", shown(&report))
}
