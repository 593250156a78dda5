//! `ptcl run --lines`: runs a program for each line of its input, in parallel, with output in order.
//!
//! Input is passed to the workers in blocks of whole lines, so memory use does not depend on the length of the input.

use crate::exit::{Exit, Failure};
use crate::formats::JsonLines;
use crate::isolation::Runner;
use crate::ordered::{self, Next, Work};
use crate::output::{lost_prints, shown};
use crate::progress::Progress;
use crate::render::values::{self, CsvLines, Format};
use crate::sources::{Source, Sources};
use lisp_core::syntax::lexer::BYTE_ORDER_MARK;
use lisp_runtime::internal::visible;
use lisp_runtime::outcome::{OutcomeKind, Position, Warning, WarningKind};
use lisp_runtime::{Check, Input, Outcome, Program};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// The size of a read from standard input.
const BLOCK: usize = 256 << 10;

/// The number of lines for which the program is checked. Most programs have the same mistake on each line, and a check takes
/// longer than a short run.
const CHECKED: u64 = 100;

/// What to do with each line.
pub(crate) struct Each {
    pub(crate) runner: Runner,
    pub(crate) program: Program,
    /// The input of each run, besides the line.
    pub(crate) input: Input<'static>,
    pub(crate) format: Format,
    /// Whether to continue after a line whose run failed.
    pub(crate) keep_going: bool,
    /// Whether to write nothing for a line whose value is nil.
    pub(crate) skip_nil: bool,
    /// The maximum bytes of a line.
    pub(crate) line_bytes: usize,
    /// Formats the error of a run.
    pub(crate) complain: Box<dyn Fn(&Outcome) -> String + Send + Sync>,
}

/// The results of some lines, in order.
#[derive(Default)]
struct Done {
    parts: Vec<Part>,
    /// The number of lines run.
    lines: u64,
}

enum Part {
    /// Values and printed lines.
    Text(Vec<u8>),
    /// A value as JSON, to be written as a row.
    Row { place: String, json: String },
    /// A note about a value that is still written.
    Note(String),
    /// What a check found for a line.
    Warnings { place: String, warnings: Vec<Warning> },
    /// A run that failed.
    Failed { message: String, exit: Exit },
}

impl Done {
    /// Appends text.
    fn text(&mut self, text: &[u8]) {
        match self.parts.last_mut() {
            Some(Part::Text(before)) => before.extend_from_slice(text),
            _ => self.parts.push(Part::Text(text.to_vec())),
        }
    }

    fn failed(&mut self, place: &str, why: &str, exit: Exit) {
        self.parts.push(Part::Failed { message: message(place, &visible(why)), exit });
    }
}

/// Runs the program for each line. The exit code is the highest of all failed lines.
pub(crate) fn run(each: Each, sources: Sources, jobs: u16) -> Result<Exit, Failure> {
    let workers = each.runner.side_by_side(ordered::workers(jobs));
    let (keep_going, format) = (each.keep_going, each.format);
    let mut input = LinesOf::new(sources, each.line_bytes);
    // The caller has written those about the text.
    let warned = each.program.warnings().iter().map(|warning| (warning.kind, warning.position)).collect();
    let each = Arc::new(each);
    let (fails, failed) = std::sync::mpsc::channel();
    let next = move || match input.next() {
        Ok(None) => Ok(None),
        Ok(Some((source, block, first))) => {
            let each = each.clone();
            Ok(Some(Box::new(move || each.block(&block, &source, first)) as Work<Done>))
        }
        Err(failure) => {
            let error = io::Error::other(failure.to_string());
            let _ = fails.send(failure);
            Err(error)
        }
    };
    let progress = Progress::new("lines");
    let mut writer = Writer { csv: CsvLines::of(format), exit: Exit::Ok, keep_going, progress, warned };
    let (ended, end) = std::sync::mpsc::channel();
    let take = move |next: Next<Done>| {
        let taken = writer.take(next);
        // The last one sent counts.
        let _ = ended.send(writer.exit);
        taken
    };
    let done = ordered::in_order(workers, next, take);
    // The input failed, or a result could not be written.
    failed.try_iter().next().map_or(Ok(()), Err)?;
    done?;
    Ok(end.try_iter().last().unwrap_or(Exit::Ok))
}

impl Each {
    fn block(&self, block: &[u8], source: &Source, first: u64) -> Done {
        let mut done = Done::default();
        for (number, line) in lines_of(block, first, self.line_bytes) {
            done.lines += 1;
            let place = || source.place(number);
            let failed = match line {
                Ok(line) => self.line(line, (number, &place), &mut done),
                Err((why, exit)) => {
                    done.failed(&place(), &why, exit);
                    true
                }
            };
            if failed && !self.keep_going {
                break;
            }
        }
        done
    }

    /// Runs the program for one line. Returns whether it failed.
    fn line(&self, line: &str, (number, place): (u64, &dyn Fn() -> String), done: &mut Done) -> bool {
        let check = if number <= CHECKED { Check::Warn } else { Check::Off };
        let input = self.input.clone().json("in", line).check(check);
        let outcome = match self.runner.run_program(&self.program, input) {
            Ok(outcome) => outcome,
            Err(failure) => {
                done.failed(&place(), &failure.to_string(), failure.exit());
                return true;
            }
        };
        if !outcome.warnings().is_empty() {
            done.parts.push(Part::Warnings { place: place(), warnings: outcome.warnings().to_vec() });
        }
        // What a setup program printed is part of its error.
        let of_setup = outcome.problem().is_some_and(|problem| problem.setup.is_some());
        for printed in outcome.prints.iter().filter(|_| !of_setup) {
            done.text(printed.as_bytes());
            done.text(b"\n");
        }
        if !outcome.is_success() {
            let exit = Exit::of(&outcome);
            match outcome.kind() {
                Some(OutcomeKind::Fail) => {
                    done.failed(&place(), &format!("failed: {}", outcome.text().unwrap_or_default()), exit);
                }
                _ => {
                    let drawn = (self.complain)(&outcome);
                    let message = message(&place(), drawn.trim_start_matches("ptcl: ").trim_end());
                    done.parts.push(Part::Failed { message, exit });
                }
            }
            return true;
        }
        if let Some(why) = lost_prints(&outcome) {
            done.failed(&place(), &why, Exit::Limit);
            return true;
        }
        if self.skip_nil && outcome.text() == Some("nil") {
            return false;
        }
        if self.format != Format::Clojure {
            for note in values::notes(&outcome) {
                done.parts.push(Part::Note(message(&place(), &visible(note))));
            }
        }
        let written = match (self.format, outcome.text_cut()) {
            (Format::Clojure, Some(bytes)) => Err(values::Unfit::Cut(bytes)),
            (Format::Csv | Format::Tsv, _) => {
                values::json(&outcome).map(|json| done.parts.push(Part::Row { place: place(), json: json.to_owned() }))
            }
            (format, _) => {
                let mut text = format.separator().to_vec();
                values::line(&outcome, format, &mut text).map(|()| done.text(&text))
            }
        };
        if let Err(unfit) = &written {
            done.failed(&place(), &unfit.to_string(), unfit.exit());
        }
        written.is_err()
    }
}

struct Writer {
    csv: CsvLines,
    exit: Exit,
    keep_going: bool,
    progress: Progress,
    /// The kinds and positions of the warnings that were written.
    warned: Vec<(WarningKind, Option<Position>)>,
}

impl Writer {
    fn take(&mut self, next: Next<Done>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match next {
            Next::Nothing => out.flush(),
            Next::Lost => Err(io::Error::other("a worker failed; the lines after it are not run")),
            Next::Done(done) => {
                self.progress.add(done.lines);
                done.parts.into_iter().try_for_each(|part| self.part(part, &mut out))
            }
        }
    }

    fn part(&mut self, part: Part, out: &mut impl Write) -> io::Result<()> {
        let (message, exit) = match part {
            Part::Text(text) => return out.write_all(shown(&String::from_utf8_lossy(&text)).as_bytes()),
            Part::Row { place, json } => {
                let mut row = Vec::new();
                match self.csv.row(&json, &mut row) {
                    Ok(()) => return out.write_all(shown(&String::from_utf8_lossy(&row)).as_bytes()),
                    Err(unfit) => (message(&place, &visible(&unfit.to_string())), Exit::Error),
                }
            }
            Part::Note(message) => return self.note(&message, out),
            Part::Warnings { place, warnings } => return self.warn(&place, warnings, out),
            Part::Failed { message, exit } => (message, exit),
        };
        out.flush()?;
        // If standard error is closed, the message is lost.
        let _ = self.progress.aside(|| io::stderr().lock().write_all(message.as_bytes()));
        if !self.keep_going {
            // The reader is blocked in a read whose line is not needed any more.
            std::process::exit(exit as i32);
        }
        self.exit = self.exit.max(exit);
        Ok(())
    }
}

impl Writer {
    /// Writes a note to standard error, after what was written for earlier lines.
    fn note(&self, message: &str, out: &mut impl Write) -> io::Result<()> {
        out.flush()?;
        // If standard error is closed, the note is lost.
        let _ = self.progress.aside(|| io::stderr().lock().write_all(message.as_bytes()));
        Ok(())
    }

    /// Writes warnings about the program, each once: most lines have the same.
    fn warn(&mut self, place: &str, mut warnings: Vec<Warning>, out: &mut impl Write) -> io::Result<()> {
        warnings.retain(|warning| !self.warned.contains(&(warning.kind, warning.position)));
        self.warned.extend(warnings.iter().map(|warning| (warning.kind, warning.position)));
        let notes =
            values::notes_on_program(&warnings).map(|note| format!("ptcl: {note} (for {place} of the input)\n"));
        let notes: String = notes.collect();
        if notes.is_empty() { Ok(()) } else { self.note(&visible(&notes), out) }
    }
}

/// Returns the message about a line. What `why` shows has to be visible already: it may have colours.
pub(crate) fn message(place: &str, why: &str) -> String {
    format!("ptcl: {}: {}\n", visible(place), why.trim_end())
}

fn too_long(max: usize) -> String {
    format!("the line has more than {max} bytes: raise --line-bytes, or write one JSON value on each line")
}

/// Returns the lines of a block that are not blank, with their numbers, or why one cannot be used.
pub(crate) fn lines_of(
    block: &[u8],
    first: u64,
    max: usize,
) -> impl Iterator<Item = (u64, Result<&str, (String, Exit)>)> {
    block.split(|&byte| byte == b'\n').zip(first..).filter_map(move |(line, number)| {
        // Skip a byte order mark at the start of the input.
        let line = match line.strip_prefix(BYTE_ORDER_MARK.as_bytes()) {
            Some(rest) if number == 1 => rest,
            _ => line,
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let line = match std::str::from_utf8(line) {
            _ if line.len() > max => Err((too_long(max), Exit::InputOutput)),
            Ok(line) => Ok(line),
            Err(_) => Err(("the line is not UTF-8".to_owned(), Exit::InputOutput)),
        };
        Some((number, line))
    })
}

/// The lines of all sources, one after the other.
pub(crate) struct LinesOf {
    sources: Sources,
    opened: Option<(Arc<Source>, Blocks<JsonLines>)>,
    line_bytes: usize,
}

/// A source, a block of its lines, and the number of the first one.
pub(crate) type Block = (Arc<Source>, Vec<u8>, u64);

impl LinesOf {
    pub(crate) fn new(sources: Sources, line_bytes: usize) -> Self {
        LinesOf { sources, opened: None, line_bytes }
    }

    /// Returns the next block of lines.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, Failure> {
        loop {
            if let Some((source, blocks)) = &mut self.opened
                && let Some((block, first)) = blocks.next().map_err(|error| source.failed(error))?
            {
                return Ok(Some((source.clone(), block, first)));
            }
            let Some((source, lines)) = self.sources.open_next(self.line_bytes)? else { return Ok(None) };
            self.opened = Some((Arc::new(source), Blocks::new(lines, self.line_bytes)));
        }
    }
}

/// Input in blocks of whole lines. Keeps just enough of a line that is too long to detect it.
struct Blocks<R> {
    input: R,
    /// The start of a line.
    rest: Vec<u8>,
    /// Whether that line is too long, so that the rest of it is dropped.
    drops: bool,
    /// The number of that line.
    line: u64,
    line_bytes: usize,
    ended: bool,
}

impl<R: Read> Blocks<R> {
    fn new(input: R, line_bytes: usize) -> Self {
        Blocks { input, rest: Vec::new(), drops: false, line: 1, line_bytes, ended: false }
    }

    /// Returns the next block and the number of its first line.
    fn next(&mut self) -> io::Result<Option<(Vec<u8>, u64)>> {
        while !self.ended {
            let before = self.rest.len();
            self.rest.resize(before + BLOCK, 0);
            let read = loop {
                match self.input.read(&mut self.rest[before..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
            self.rest.truncate(before + read);
            if self.drops {
                let end = self.rest[before..].iter().position(|&byte| byte == b'\n');
                self.rest.drain(before..end.map_or(self.rest.len(), |end| before + end));
                self.drops = end.is_none();
            }
            let lines = if read == 0 {
                self.ended = true;
                self.rest.len()
            } else {
                self.rest[before..].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| before + at + 1)
            };
            if self.rest.len() - lines > self.line_bytes {
                self.rest.truncate(lines + self.line_bytes + 1);
                self.drops = true;
            }
            if lines > 0 {
                let rest = self.rest.split_off(lines);
                let block = std::mem::replace(&mut self.rest, rest);
                let first = self.line;
                self.line += block.iter().filter(|&&byte| byte == b'\n').count() as u64;
                return Ok(Some((block, first)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns this many bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            let (now, later) = self.0.split_at(count);
            into[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn blocks_are_whole_lines_and_know_their_numbers() {
        let text = b"a\nbc\n\ndefg\nh";
        for step in 1..15 {
            let mut blocks = Blocks::new(Slow(text, step), 100);
            let mut all = Vec::new();
            while let Some((block, first)) = blocks.next().unwrap() {
                assert_eq!(first, 1 + all.iter().filter(|&&byte| byte == b'\n').count() as u64, "{step}");
                assert!(block.ends_with(b"\n") || block.ends_with(b"h"), "{step}");
                all.extend(block);
            }
            assert_eq!(all, text, "{step}");
        }
    }

    /// Of a line that is too long, one byte more than the limit is kept, however the bytes arrive. The lines after it
    /// are whole.
    #[test]
    fn a_line_beyond_the_limit_is_cut_behind_it() {
        for end in ["", "\n", "\n3", "\n3\n\n4"] {
            let long = format!("1\n2\n{}{end}", "x".repeat(50));
            for step in 1..60 {
                let mut blocks = Blocks::new(Slow(long.as_bytes(), step), 20);
                let mut all = Vec::new();
                while let Some((block, first)) = blocks.next().unwrap() {
                    assert_eq!(first, 1 + all.iter().filter(|&&byte| byte == b'\n').count() as u64, "{step}");
                    all.extend(block);
                }
                let mut lines: Vec<usize> = all.split(|&byte| byte == b'\n').map(<[u8]>::len).collect();
                assert!(lines[2] > 20, "{step} {lines:?}");
                lines[2] = 50;
                let wanted: Vec<usize> = long.split('\n').map(str::len).collect();
                assert_eq!(lines, wanted, "{step}");
            }
        }
    }
}
