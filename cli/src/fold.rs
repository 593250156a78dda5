//! `ptcl run --lines --fold INIT EXPR`: reduces the lines of the input to one value.
//!
//! A session holds the value so far. EXPR becomes a function in it, which each line calls once: the line comes from a tool, so
//! that the text of the turn, and what is compiled, is the same for all lines.

use crate::exit::{Exit, Failure, input_of};
use crate::given::{self, Texts};
use crate::isolation::{Runner, TurnRunner};
use crate::lines::{LinesOf, lines_of};
use crate::progress::Progress;
use crate::render::errors::{self, Text};
use crate::render::values;
use crate::sources::Sources;
use lisp_core::Span;
use lisp_core::syntax::lexer::tokens;
use lisp_core::syntax::{ReadLimits, read};
use lisp_runtime::internal::visible;
use lisp_runtime::outcome::{OutcomeKind, Position};
use lisp_runtime::{Check, Input, Outcome, Problem, Tool, Tools};
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, PoisonError};

/// What EXPR writes for the line.
const IN: &str = "data/in";
/// The parameter that takes its place; as long, so that columns stay.
const PARAMETER: &str = "*input*";
/// The text of the turn of each line.
const TURN: &str = "(def acc (ptcl-fold-step acc (tool/ptcl-fold-line {})))";
const TOOL: &str = "ptcl-fold-line";

/// What to do.
pub(crate) struct Fold<'a> {
    pub(crate) runner: Runner,
    /// The input of the session, besides the line.
    pub(crate) input: Input<'static>,
    pub(crate) init: &'a str,
    pub(crate) expression: &'a str,
    /// Whether to continue after a line that failed.
    pub(crate) keep_going: bool,
    /// The maximum bytes of a line.
    pub(crate) line_bytes: usize,
}

/// The value of the fold, and the highest exit code of the lines that failed.
pub(crate) struct Folded {
    pub(crate) outcome: Outcome,
    pub(crate) exit: Exit,
}

/// A text that the user wrote, as the body of a form on lines of its own.
#[derive(Clone, Copy)]
struct Part<'a> {
    name: &'static str,
    text: &'a str,
    before: &'static str,
}

impl Part<'_> {
    fn source(&self) -> String {
        format!("{}\n{}\n)", self.before, self.text)
    }

    /// Returns the problem of a text that cannot be read: inside the form it would be another one.
    fn unreadable(&self) -> Option<Problem> {
        let limits = ReadLimits { source_bytes: 0, names: 0, ..ReadLimits::default() };
        read(self.text, &limits).err().map(|error| errors::unreadable(error, self.text))
    }

    /// Moves a position in the form to the text.
    fn place(position: Position) -> Position {
        let line = |line: u32| line.saturating_sub(1).max(1);
        Position { line: line(position.line), end_line: line(position.end_line), ..position }
    }

    fn span(&self, span: Span) -> Span {
        let before = u32::try_from(self.before.len() + 1).unwrap_or(u32::MAX);
        Span { start: span.start.saturating_sub(before), end: span.end.saturating_sub(before) }
    }
}

/// The two texts of the options.
struct Parts<'a> {
    grant: &'a Texts<'a>,
    parts: [Part<'a>; 2],
}

impl errors::Texts for Parts<'_> {
    fn text(&self, setup: Option<usize>, turn: Option<u64>) -> Option<Text> {
        if setup.is_some() {
            return errors::Texts::text(self.grant, setup, turn);
        }
        let part = self.parts.get(usize::try_from(turn?).ok()?.checked_sub(1)?)?;
        Some(Text { name: part.name.to_owned(), source: part.text.to_owned() })
    }
}

impl Parts<'_> {
    /// Returns the problem as one of the user's texts: of turn 1 or 2, or of the current turn.
    fn told(&self, mut problem: Problem, current: u64) -> String {
        if problem.setup.is_none() {
            let turn = problem.turn.unwrap_or(current);
            if let Some(part) = usize::try_from(turn - 1).ok().and_then(|index| self.parts.get(index)) {
                problem.position = problem.position.map(Part::place);
                problem.error.span = problem.error.span.map(|span| part.span(span));
                for more in &mut problem.more {
                    more.position = more.position.map(Part::place);
                    more.error.span = more.error.span.map(|span| part.span(span));
                }
                problem.turn = Some(turn);
            }
        }
        problem.calls.retain(|call| call.setup.is_some() || call.turn.is_some_and(|turn| turn <= 2));
        for call in problem.calls.iter_mut().filter(|call| call.setup.is_none()) {
            call.position = Part::place(call.position);
        }
        match input_of(&problem) {
            Some(_) => given::draw(&problem, self.grant),
            None => errors::draw_in(&problem, self).replace(PARAMETER, IN),
        }
    }
}

/// Folds the lines. `None` if the fold failed and standard error has its problem.
pub(crate) fn run(fold: Fold<'_>, sources: Sources, texts: &Texts<'_>) -> Result<Result<Folded, Exit>, Failure> {
    let expression = with_parameter(fold.expression);
    let parts = Parts {
        grant: texts,
        parts: [
            Part { name: "--fold INIT", text: fold.init, before: "(def acc" },
            Part { name: "--fold EXPR", text: fold.expression, before: "(defn ptcl-fold-step [acc *input*]" },
        ],
    };
    for part in &parts.parts {
        if let Some(problem) = part.unreadable() {
            tell!("{}", errors::draw(&problem, part.name, part.text));
            return Ok(Err(Exit::of_problem(&problem)));
        }
    }
    let line = Arc::new(Mutex::new(RawValue::NULL.to_owned()));
    let mut session = fold.runner.session(fold.input.clone().check(Check::Off).tools(tool(line.clone())?))?;
    let [init, step] = parts.parts;
    for source in [init.source(), Part { text: &expression, ..step }.source()] {
        let outcome = session.eval(&source);
        values::notes_on_program(outcome.warnings()).for_each(|note| tell_line!("ptcl: {note}"));
        if !outcome.is_success() {
            tell!("{}", complaint(&outcome, &parts, session.turns()));
            return Ok(Err(Exit::of(&outcome)));
        }
    }
    let mut turns = Turns { session, line, parts: &parts, keep_going: fold.keep_going, exit: Exit::Ok };
    if !turns.all(LinesOf::new(sources, fold.line_bytes), fold.line_bytes)? {
        return Ok(Err(turns.exit));
    }
    Ok(Ok(Folded { outcome: turns.session.eval("acc"), exit: turns.exit }))
}

/// Returns the tool that returns the line.
fn tool(line: Arc<Mutex<Box<RawValue>>>) -> Result<Tools, Failure> {
    let mut tools = Tools::new();
    let tool = Tool::new(TOOL, move |_| Ok(line.lock().unwrap_or_else(PoisonError::into_inner).clone()));
    tools.add(tool).map_err(|error| Failure::Bug(error.to_string()))?;
    Ok(tools)
}

/// Returns EXPR with the parameter for the line, except in strings and comments.
fn with_parameter(expression: &str) -> String {
    let mut text = expression.to_owned();
    for (_, span) in tokens(expression) {
        let range = span.start as usize..span.end as usize;
        if expression.get(range.clone()) == Some(IN) {
            text.replace_range(range, PARAMETER);
        }
    }
    text
}

fn complaint(outcome: &Outcome, parts: &Parts<'_>, turn: u64) -> String {
    match outcome.problem() {
        Some(problem) => given::printed_by_setup(outcome) + &parts.told(problem.clone(), turn),
        None => format!("failed: {}\n", visible(outcome.text().unwrap_or_default())),
    }
}

struct Turns<'a> {
    session: TurnRunner,
    line: Arc<Mutex<Box<RawValue>>>,
    parts: &'a Parts<'a>,
    keep_going: bool,
    exit: Exit,
}

impl Turns<'_> {
    /// Runs the turn of each line. Returns whether all were run.
    fn all(&mut self, mut input: LinesOf, line_bytes: usize) -> Result<bool, Failure> {
        let progress = Progress::new("lines");
        while let Some((source, block, first)) = input.next()? {
            for (number, line) in lines_of(&block, first, line_bytes) {
                progress.add(1);
                let done = line.and_then(|line| self.one(line));
                let Err((why, exit)) = done else { continue };
                let message = format!("ptcl: {}: {}\n", source.place(number), why.trim_end());
                let _ = progress.aside(|| std::io::Write::write_all(&mut std::io::stderr().lock(), message.as_bytes()));
                self.exit = self.exit.max(exit);
                if !self.keep_going || exit == Exit::Interrupted {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Runs the turn of a line.
    fn one(&mut self, line: &str) -> Result<(), (String, Exit)> {
        let json: Box<RawValue> =
            serde_json::from_str(line).map_err(|error| (format!("invalid JSON: {error}"), Exit::Usage))?;
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = json;
        let outcome = self.session.eval(TURN);
        match outcome.kind() {
            _ if outcome.problem().is_some() => {}
            Some(OutcomeKind::Fail) => {}
            _ => return Ok(()),
        }
        let why = complaint(&outcome, self.parts, self.session.turns());
        Err((why, Exit::of(&outcome)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_a_parameter_outside_of_strings() {
        assert_eq!(with_parameter("(f data/in \"data/in\") ; data/in"), "(f *input* \"data/in\") ; data/in");
        assert_eq!(with_parameter("data/input #(+ data/in %)"), "data/input #(+ *input* %)");
    }
}
