//! `ptcl batch`: answers requests, one JSON object per line, in order, on all cores.

use crate::exit::{Exit, Failure};
use crate::isolation::{IsolationOption, Runner};
use crate::limits::LimitOptions;
use crate::ordered::{self, Next, Work};
use crate::output::shown;
use crate::progress::Progress;
use lisp_core::syntax::lexer::BYTE_ORDER_MARK;
use lisp_runtime::request::{answer_bytes_by, answer_refused};
use lisp_runtime::{Answer, Engine, Error, Reason};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::sync::Arc;

/// The size of a read from standard input.
const BLOCK: usize = 256 << 10;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    limits: LimitOptions,
    /// Maximum limits that requests may ask for, such as timeout_ms=1000,heap_bytes=10000000; --limits sets the defaults.
    /// NAME=0 sets no maximum for that limit, if it can be turned off. Without --ceiling there is no maximum
    #[arg(long, value_name = "NAME=N", value_delimiter = ',')]
    ceiling: Vec<String>,
    /// Maximum length of a line, in bytes; a longer one is skipped, and its answer is an error
    #[arg(long, value_name = "N", default_value_t = 256 << 20, value_parser = clap::value_parser!(u64).range(1..))]
    line_bytes: u64,
    #[command(flatten)]
    isolation: IsolationOption,
    /// Requests processed in parallel, at most 1,024; 0 means one per core. Each may hold up to eight finished answers until
    /// earlier ones are written
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    jobs: u16,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let engine = arguments.limits.engine_under(&arguments.ceiling)?;
    let workers = arguments.isolation.side_by_side(ordered::workers(arguments.jobs), &engine);
    let runner = Arc::new(arguments.isolation.open(engine, workers)?);
    let line_bytes = arguments.line_bytes;
    let mut is_first = true;
    let mut input = BufReader::with_capacity(BLOCK, io::stdin());
    let next = move || {
        let line = next_request(&mut input, line_bytes, std::mem::take(&mut is_first))?;
        let runner = runner.clone();
        Ok(line.map(|line| Box::new(move || answer(&runner, &line, line_bytes)) as Work<String>))
    };
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
    let progress = Progress::new("answers");
    let write = move |next: Next<String>| match next {
        Next::Nothing => out.flush(),
        Next::Done(answer) => {
            progress.add(1);
            writeln!(out, "{}", shown(&answer))
        }
        // The line must have an answer.
        Next::Lost => writeln!(out, r#"{{"schema":"ptc-lisp/1","verdict":"host_fault"}}"#),
    };
    ordered::in_order(workers, next, write)?;
    Ok(Exit::Ok)
}

/// Returns the next line that is not blank. A byte order mark before the first line is skipped.
fn next_request(input: &mut impl BufRead, line_bytes: u64, mut is_first: bool) -> io::Result<Option<Line>> {
    loop {
        let mut line = read_line(input, line_bytes)?;
        if let Line::Text(text) = &mut line
            && std::mem::take(&mut is_first)
            && text.starts_with(BYTE_ORDER_MARK.as_bytes())
        {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        match line {
            Line::End => return Ok(None),
            Line::Text(line) if line.iter().all(u8::is_ascii_whitespace) => {}
            line => return Ok(Some(line)),
        }
    }
}

fn answer(runner: &Runner, line: &Line, line_bytes: u64) -> String {
    let answered = match line {
        Line::Text(line) => answer_bytes_by(runner.engine(), line, |request| runner.run(request)),
        Line::TooLong | Line::End => answer_to_long_line(runner.engine(), line_bytes),
    };
    answered.to_json()
}

/// A line of standard input.
enum Line {
    Text(Vec<u8>),
    /// The line is too long; it was skipped.
    TooLong,
    End,
}

/// Reads the next line. Keeps no more of a line than its maximum length.
fn read_line(input: &mut impl BufRead, max: u64) -> io::Result<Line> {
    let mut line = Vec::new();
    // One more byte for the newline.
    let read = input.by_ref().take(max.saturating_add(1)).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(Line::End);
    }
    if read as u64 > max && line.last() != Some(&b'\n') {
        drop(line);
        skip_line(input)?;
        return Ok(Line::TooLong);
    }
    Ok(Line::Text(line))
}

fn answer_to_long_line(engine: &Engine, max: u64) -> Answer {
    let error = Error::new(Reason::ProgramTooLarge, format!("not a request: the line has more than {max} bytes"))
        .hint("send less data, or raise the limit with --line-bytes")
        .detail("limit_bytes", max);
    answer_refused(engine, error)
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let (used, done) = match buffer.iter().position(|&b| b == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(used);
        if done {
            return Ok(());
        }
    }
}
