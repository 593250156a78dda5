//! `ptcl run`: one program, its value on standard output.

use crate::exit::{Exit, Failure, detail, input_of};
use crate::isolation::IsolationOption;
use crate::options::{self, Grant, LimitOptions};
use crate::render::errors::{self, Text};
use lisp_runtime::{Answer, Cancel, Input, Outcome, OutcomeKind, Recording};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The program; - is standard input
    file: Option<PathBuf>,
    /// A program as it is
    #[arg(short, value_name = "EXPR", conflicts_with = "file")]
    expression: Option<String>,
    #[command(flatten)]
    grant: Grant,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    isolation: IsolationOption,
    /// Write the record of the run to a file as it goes on: `ptcl replay` runs it again
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print the whole answer as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let engine = arguments.limits.engine()?;
    let (name, source) = options::read_program(arguments.file.as_deref(), arguments.expression.as_deref())?;
    let input = match arguments.grant.input(&engine)? {
        Ok(input) => input,
        Err(setup) => {
            eprint!("{}", errors::draw(&setup.problem, &setup.file, &setup.source));
            return Ok(Exit::of_problem(&setup.problem));
        }
    };
    let cancel = Cancel::new();
    let interrupt = cancel.clone();
    // The run ends in order. What does not look at the handle, such as a write to a pipe that nobody reads, has a second.
    let handler = move || {
        interrupt.cancel();
        std::thread::sleep(Duration::from_secs(1));
        std::process::exit(130)
    };
    // Without a handler Ctrl-C ends the process, as everywhere.
    let _ = ctrlc::set_handler(handler);
    let input = input.cancel_with(&cancel);
    let (input, failed) = if arguments.json { (input.measure_live(), None) } else { streaming(input, &cancel) };
    let recording = arguments.record.as_deref().map(recording_to).transpose()?;
    let input = match &recording {
        Some(recording) => input.record(recording),
        None => input,
    };
    let outcome = arguments.isolation.open(engine, 1)?.eval(&source, input)?;
    let mut answer = Answer::new(None, &outcome);
    if let Some(recording) = &recording {
        finish_record(recording, &mut answer, arguments.record.as_deref())?;
    }
    if let Some(error) = failed.and_then(|failed| failed.try_recv().ok()) {
        return Err(Failure::Stream(error));
    }
    let mut out = std::io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", answer.to_json())?;
        out.flush()?;
        return Ok(Exit::of(&outcome));
    }
    if outcome.is_success() {
        writeln!(out, "{}", outcome.text().unwrap_or_default())?;
    }
    out.flush()?;
    complain(&outcome, arguments, &name, &source);
    Ok(Exit::of(&outcome))
}

/// A recording whose lines go to a file as they are written.
fn recording_to(path: &Path) -> Result<Recording, Failure> {
    let file = File::create(path).map_err(|error| Failure::File { path: path.to_owned(), error })?;
    let keep = move |line: &str| (&file).write_all(line.as_bytes()).map_err(Into::into);
    Ok(Recording::builder().recorder(keep).build())
}

/// Writes the answer behind the record. A program that cannot be compiled has no record.
fn finish_record(recording: &Recording, answer: &mut Answer, path: Option<&Path>) -> Result<(), Failure> {
    let path = path.unwrap_or(Path::new("")).to_owned();
    let run_id = recording.run_id();
    if run_id.is_empty() {
        return std::fs::remove_file(&path).map_err(|error| Failure::File { path, error });
    }
    answer.run_id = run_id;
    let kept = recording.answer(&answer.to_json());
    kept.map_err(|error| Failure::File { path, error: io::Error::other(error.message) })
}

/// Has each line printed as the program prints it. When standard output takes no more, the run is cancelled, and the
/// error is in the channel.
fn streaming<'a>(input: Input<'a>, cancel: &Cancel) -> (Input<'a>, Option<Receiver<io::Error>>) {
    let (fails, failed): (Sender<io::Error>, _) = channel();
    let cancel = cancel.clone();
    let show = move |line: &str| {
        let mut out = io::stdout().lock();
        if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
            // The first error is enough: nobody may be there to take this one.
            let _ = fails.send(error);
            cancel.cancel();
        }
    };
    (input.on_print(show), Some(failed))
}

/// Says on standard error what is wrong or left out.
fn complain(outcome: &Outcome, arguments: &Arguments, name: &str, source: &str) {
    if let Some(total) = outcome.text_cut() {
        eprintln!("ptcl: the value is cut; the whole of it has {total} bytes");
    }
    if outcome.kind() == Some(OutcomeKind::Fail) {
        eprintln!("failed: {}", outcome.text().unwrap_or_default());
    }
    let Some(problem) = outcome.problem() else { return };
    if let Some(option) = input_of(problem).and_then(|number| arguments.grant.input_option(number)) {
        let earlier = detail(problem, "earlier_input").and_then(|number| arguments.grant.input_option(number));
        let both = earlier.map(|earlier| format!(" and {earlier}")).unwrap_or_default();
        return eprintln!("ptcl: {option}{both}: {}", problem.error.message);
    }
    eprint!("{}", errors::draw_in(problem, &Texts { grant: &arguments.grant, name, source }));
}

/// The program and its set-up programs.
struct Texts<'a> {
    grant: &'a Grant,
    name: &'a str,
    source: &'a str,
}

impl errors::Texts for Texts<'_> {
    fn text(&self, setup: Option<usize>, _: Option<u64>) -> Option<Text> {
        match setup {
            Some(index) => self.grant.setup_text(index),
            None => Some(Text { name: self.name.to_owned(), source: self.source.to_owned() }),
        }
    }
}
