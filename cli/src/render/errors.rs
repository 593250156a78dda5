//! Errors shown under their source line.

use super::colour;
use lisp_core::Trace;
use lisp_core::syntax::LineIndex;
use lisp_runtime::internal::{visible, visible_in_place};
use lisp_runtime::outcome::{Phase, Position};
use lisp_runtime::{Error, Problem};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use std::fmt::{self, Write};
use std::io::IsTerminal;

/// If a line of the text is longer than this, the position is given in words instead.
const LINE_BYTES: usize = 2_000;

/// A problem with its text, as the report library needs it.
struct Drawing<'a> {
    problem: &'a Problem,
    name: &'a str,
    source: Option<NamedSource<String>>,
}

impl fmt::Debug for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl fmt::Display for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(&self.problem.error.message))?;
        match (&self.source, self.problem.position) {
            (None, Some(place)) => write!(f, " ({}:{}:{})", self.name, place.line, place.column),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Drawing<'_> {}

impl Diagnostic for Drawing<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.problem.error.reason))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.error.hint.as_ref().map(|hint| Box::new(visible(hint)) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.source.as_ref().and(self.problem.error.span)?;
        let label = LabeledSpan::underline(span.start as usize..span.end.max(span.start) as usize);
        Some(Box::new(std::iter::once(label)))
    }
}

/// A source text and its name.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) source: String,
}

/// The source texts that the position of a problem, or of a call in its call chain, may refer to.
pub(crate) trait Texts {
    /// Returns the program, a setup program or an earlier turn.
    fn text(&self, setup: Option<usize>, turn: Option<u64>) -> Option<Text>;
}

/// Formats a problem for people: the source line, the values involved and the call chain.
pub(crate) fn draw_in(problem: &Problem, texts: &impl Texts) -> String {
    let mut drawn = match texts.text(problem.setup, problem.turn) {
        Some(text) => draw(problem, &text.name, &text.source),
        None => {
            let hint = problem.error.hint.as_ref().map(|hint| format!("  help: {}\n", visible(hint)));
            format!("{}\n{}", visible(&problem.to_string()), hint.unwrap_or_default())
        }
    };
    for (i, local) in problem.locals.iter().enumerate() {
        let value = visible(&local.value);
        let _ = writeln!(drawn, "  {} {} = {value}", if i == 0 { "with" } else { "    " }, local.name);
    }
    let mut before = (String::new(), 0);
    for call in &problem.calls {
        let function = call.function.as_deref().unwrap_or("a function");
        let name = texts.text(call.setup, call.turn).map_or_else(|| "an earlier text".to_owned(), |text| text.name);
        let element = call.element.as_ref().map_or_else(String::new, |element| format!(", {element}"));
        let (line, column) = (call.position.line, call.position.column);
        let said = format!("  {function} was called at {name}:{line}:{column}{element}");
        let said = visible(&said).into_owned();
        if said == before.0 {
            before.1 += 1;
            continue;
        }
        say_again(&mut drawn, before.1);
        let _ = writeln!(drawn, "{said}");
        before = (said, 0);
    }
    say_again(&mut drawn, before.1);
    if problem.calls.len() >= Trace::CALLS {
        let _ = writeln!(drawn, "  (at most {} calls are shown)", Trace::CALLS);
    }
    drawn
}

/// Notes that a call in the chain was made repeatedly from the same position.
fn say_again(drawn: &mut String, times: u32) {
    match times {
        0 => {}
        1 => drawn.push_str("  and once more from there\n"),
        times => drop(writeln!(drawn, "  and {times} more times from there")),
    }
}

/// The problem of a text that cannot be read, with its position.
pub(crate) fn unreadable(error: Error, source: &str) -> Problem {
    let lines = LineIndex::new(source);
    let place = error.span.map(|span| (lines.position(span.start), lines.position(span.end)));
    let mut problem = Problem::new(error, Phase::Compile);
    problem.position =
        place.map(|((line, column), (end_line, end_column))| Position { line, column, end_line, end_column });
    problem
}

/// Formats a problem for people: the source line if there is one, and the other errors in the text.
pub(crate) fn draw(problem: &Problem, name: &str, source: &str) -> String {
    let mut drawn = draw_one(problem, name, source);
    for more in &problem.more {
        let mut further = Problem::new(more.error.clone(), problem.phase);
        further.position = more.position;
        drawn.push_str(&draw_one(&further, name, source));
    }
    drawn
}

fn draw_one(problem: &Problem, name: &str, source: &str) -> String {
    let short = source.lines().all(|line| line.len() <= LINE_BYTES);
    let drawn = problem.error.span.is_some() && short;
    let source = drawn.then(|| NamedSource::new(visible(name), visible_in_place(source).into_owned()));
    let theme = if colour::is_wanted(std::io::stderr().is_terminal()) {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(100)
        // Break code in hints at spaces only.
        .with_break_words(false)
        .with_word_separator(textwrap::WordSeparator::AsciiSpace);
    match handler.render_report(&mut text, &Drawing { problem, name, source }) {
        Ok(()) => text,
        Err(_) => format!("{}\n", visible(&format!("{name}: {problem}"))),
    }
}
