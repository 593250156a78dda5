//! Errors and warnings shown under their source line.

use super::colour;
use lisp_core::Trace;
use lisp_core::syntax::LineIndex;
use lisp_runtime::internal::{visible, visible_in_place};
use lisp_runtime::outcome::{Phase, Position, Warning};
use lisp_runtime::{Error, Problem};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity, SourceCode};
use std::fmt::{self, Write};
use std::io::IsTerminal;
use std::ops::Range;

/// If a line of the text is longer than this, the position is given in words instead.
const LINE_BYTES: usize = 2_000;

/// A problem or a warning with its text, as the report library needs it.
#[derive(Debug)]
struct Drawing<'a> {
    severity: Severity,
    code: &'a str,
    message: &'a str,
    help: Option<&'a str>,
    position: Option<Position>,
    /// The bytes of the source that it is about.
    span: Option<Range<usize>>,
    name: &'a str,
    source: Option<NamedSource<String>>,
}

impl fmt::Display for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(self.message))?;
        match (&self.source, self.position) {
            (None, Some(place)) => write!(f, " ({}:{}:{})", visible(self.name), place.line, place.column),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Drawing<'_> {}

impl Diagnostic for Drawing<'_> {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.map(|help| Box::new(visible(help)) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.source.as_ref().and(self.span.clone())?;
        Some(Box::new(std::iter::once(LabeledSpan::underline(span))))
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
    if let (Some(text), None) = (texts.text(problem.setup, problem.turn), &problem.position)
        && problem.setup.is_some()
    {
        let _ = writeln!(drawn, "  in {}", visible(&text.name));
    }
    for (i, local) in problem.locals.iter().enumerate() {
        let (name, value) = (visible(&local.name), visible(&local.value));
        let _ = writeln!(drawn, "  {} {name} = {value}", if i == 0 { "with" } else { "    " });
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
    let error = &problem.error;
    let drawing = Drawing {
        severity: Severity::Error,
        code: error.reason.name(),
        message: &error.message,
        help: error.hint.as_deref(),
        position: problem.position,
        span: error.span.map(|span| span.start as usize..span.end.max(span.start) as usize),
        name,
        source: None,
    };
    drawing.draw(source).unwrap_or_else(|| format!("{}\n", visible(&format!("{name}: {problem}"))))
}

/// Formats a warning about a program for people, with its source line.
pub(crate) fn draw_warning(warning: &Warning, name: &str, source: &str) -> String {
    let Warning { kind, message, position, repair, .. } = warning;
    let at = |line, column| offset(source, line, column);
    let drawing = Drawing {
        severity: Severity::Warning,
        code: kind.name(),
        message,
        help: repair.as_deref(),
        position: *position,
        span: position.and_then(|p| Some(at(p.line, p.column)?..at(p.end_line, p.end_column)?)),
        name,
        source: None,
    };
    drawing.draw(source).unwrap_or_else(|| format!("{}\n", visible(&format!("{name}: {message}"))))
}

/// Returns the index of the byte at a line and a column, both from 1.
fn offset(source: &str, line: u32, column: u32) -> Option<usize> {
    let start: usize = source.split_inclusive('\n').take(line.checked_sub(1)? as usize).map(str::len).sum();
    let mut characters = source.get(start..)?.char_indices();
    let before = column.checked_sub(1)? as usize;
    Some(start + characters.nth(before).map_or(source.len() - start, |(at, _)| at))
}

impl Drawing<'_> {
    /// Returns the text, with its source line if that is short enough.
    fn draw(mut self, source: &str) -> Option<String> {
        let short = source.lines().all(|line| line.len() <= LINE_BYTES);
        let drawn = self.span.is_some() && short;
        self.source = drawn.then(|| NamedSource::new(visible(self.name), visible_in_place(source).into_owned()));
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
        handler.render_report(&mut text, &self).ok().map(|()| text)
    }
}

#[cfg(test)]
mod tests {
    use super::offset;

    #[test]
    fn a_position_is_a_byte_of_the_source() {
        let source = "ab\nä(c\n";
        for (line, column, at) in [(1, 1, 0), (1, 2, 1), (2, 1, 3), (2, 2, 5), (2, 3, 6), (3, 1, 8), (3, 9, 8)] {
            assert_eq!(offset(source, line, column), Some(at), "{line}:{column}");
        }
        assert_eq!(offset(source, 0, 1), None);
    }
}
