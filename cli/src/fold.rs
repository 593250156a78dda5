//! `ptcl run --fold INIT EXPR`: reduces the lines of the input to one value.
//!
//! A session holds the value so far. EXPR becomes a function in it, which each line calls once: the line comes from a tool, so
//! that the text of the turn, and what is compiled, is the same for all lines.

use crate::exit::{Exit, Failure, input_of};
use crate::given::{self, Texts};
use crate::isolation::{Runner, TurnRunner};
use crate::lines::{LinesOf, lines_of, message};
use crate::options::Grant;
use crate::output;
use crate::progress::Progress;
use crate::render::errors::{self, Text};
use crate::render::values;
use crate::sources::Sources;
use lisp_core::Span;
use lisp_core::syntax::lexer::tokens;
use lisp_core::syntax::{ReadLimits, read};
use lisp_runtime::internal::{near_names, visible};
use lisp_runtime::outcome::{OutcomeKind, Phase, Position};
use lisp_runtime::{Check, Engine, Input, Outcome, Problem, Reason, Tool, Tools};
use serde_json::value::RawValue;
use std::io;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

/// What EXPR writes for the line.
const IN: &str = "data/in";
/// The parameter that takes its place; as long, so that columns stay.
const PARAMETER: &str = "*input*";
/// The text of the turn of each line.
const TURN: &str = "(def acc (ptcl-fold-step acc (tool/ptcl-fold-line {})))";
const TOOL: &str = "ptcl-fold-line";
/// The text of the turn after the last line.
const LAST: &str = "acc";
const LAST_WITH_THEN: &str = "(ptcl-fold-then acc)";
/// The names that the texts must not have: the fold would break, or its errors would name what nobody has written.
const RESERVED: [&str; 4] = [PARAMETER, "ptcl-fold-step", "ptcl-fold-then", "tool/ptcl-fold-line"];
/// The name of the value so far.
const ACC: &str = "acc";

/// The texts that the user wrote.
#[derive(Clone, Copy)]
pub(crate) struct Expressions<'a> {
    pub(crate) init: &'a str,
    pub(crate) step: &'a str,
    pub(crate) then: Option<&'a str>,
}

/// What to do.
pub(crate) struct Fold<'a> {
    pub(crate) runner: Runner,
    /// The input of the session, besides the line.
    pub(crate) input: Input<'static>,
    pub(crate) expressions: Expressions<'a>,
    /// Whether to continue after a line that failed.
    pub(crate) keep_going: bool,
    /// The maximum bytes of a line.
    pub(crate) line_bytes: usize,
    /// Gets the error of standard output, which cancels the turns.
    pub(crate) failed: Receiver<io::Error>,
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
    after: &'static str,
}

impl Part<'_> {
    fn source(&self) -> String {
        format!("{}\n{}\n{}", self.before, self.text, self.after)
    }

    /// Returns the number of forms in the text, or its problem: inside the form it would be another one.
    fn forms(&self) -> Result<usize, Box<Problem>> {
        let limits = ReadLimits { source_bytes: 0, names: 0, ..ReadLimits::default() };
        read(self.text, &limits)
            .map(|source| source.forms.len())
            .map_err(|error| Box::new(errors::unreadable(error, self.text)))
    }

    /// Returns the first of these words that the text has outside of strings and comments.
    fn first_of<'w>(&self, words: &[&'w str]) -> Option<&'w str> {
        let is = |span: Span, word: &str| self.text.get(span.start as usize..span.end as usize) == Some(word);
        tokens(self.text).find_map(|(_, span)| words.iter().copied().find(|word| is(span, word)))
    }

    /// Moves a position in the form to the text.
    fn place(position: Position) -> Position {
        let line = |line: u32| line.saturating_sub(1).max(1);
        Position { line: line(position.line), end_line: line(position.end_line), ..position }
    }

    fn span(&self, span: Span) -> Span {
        let [before, end] = [self.before.len() + 1, self.text.len()].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        let inside = |at: u32| at.saturating_sub(before).min(end);
        Span { start: inside(span.start), end: inside(span.end) }
    }
}

/// The texts of the options. Each is a turn, in this order; each later turn is that of a line.
struct Parts<'a> {
    grant: &'a Texts<'a>,
    init: Part<'a>,
    step: Part<'a>,
    then: Option<Part<'a>>,
}

impl errors::Texts for Parts<'_> {
    fn text(&self, setup: Option<usize>, turn: Option<u64>) -> Option<Text> {
        if setup.is_some() {
            return errors::Texts::text(self.grant, setup, turn);
        }
        let part = self.of_turn(turn?)?;
        Some(Text { name: part.name.to_owned(), source: part.text.to_owned() })
    }
}

impl<'a> Parts<'a> {
    fn all(&self) -> impl Iterator<Item = Part<'a>> {
        [self.init, self.step].into_iter().chain(self.then)
    }

    fn of_turn(&self, turn: u64) -> Option<Part<'a>> {
        self.all().nth(usize::try_from(turn.checked_sub(1)?).ok()?)
    }

    /// Returns the problem as one of the user's texts.
    fn drawn(&self, mut problem: Problem, current: u64) -> String {
        if input_of(&problem).is_some() {
            return given::draw(&problem, self.grant);
        }
        if problem.setup.is_none() {
            let turn = problem.turn.unwrap_or(current);
            let part = self.of_turn(turn);
            // The text of the turn of a line is not the user's.
            let place = |position: Option<Position>| position.filter(|_| part.is_some()).map(Part::place);
            let span = |span: Option<Span>| span.zip(part).map(|(span, part)| part.span(span));
            problem.position = place(problem.position);
            problem.error.span = span(problem.error.span);
            for more in &mut problem.more {
                more.position = place(more.position);
                more.error.span = span(more.error.span);
            }
            problem.turn = part.map(|_| turn);
        }
        problem.calls.retain(|call| call.setup.is_some() || call.turn.is_some_and(|turn| self.of_turn(turn).is_some()));
        for call in problem.calls.iter_mut().filter(|call| call.setup.is_none()) {
            call.position = Part::place(call.position);
        }
        with_names_of_fold(&mut problem);
        errors::draw_in(&problem, self)
    }
}

/// Shows the parameter of the line as what EXPR writes for it, and suggests `acc`, which is a parameter too. Nothing that the
/// program made is changed.
fn with_names_of_fold(problem: &mut Problem) {
    problem.locals.iter_mut().filter(|local| local.name == PARAMETER).for_each(|local| local.name = IN.into());
    if problem.phase == Phase::Compile {
        // INIT has none.
        let has_acc = problem.turn != Some(1);
        let errors = problem.more.iter_mut().map(|more| &mut more.error).chain([&mut problem.error]);
        for error in errors {
            error.message = error.message.replace(PARAMETER, IN);
            error.hint = error.hint.as_ref().map(|hint| hint.replace(PARAMETER, IN));
            let unknown = error.message.strip_suffix(" is not defined").filter(|_| error.reason == Reason::UnboundVar);
            if unknown.is_some_and(|name| has_acc && !near_names(name, [ACC].into_iter(), 1).is_empty()) {
                error.hint = Some(format!("did you mean {ACC}?"));
            }
        }
    }
}

/// Fails if an option or a set-up program has `data/in`: only EXPR has it.
pub(crate) fn check(grant: &Grant, engine: &Engine) -> Result<(), Failure> {
    if grant.given_names().contains(given::IN) {
        return Err(Failure::Usage("with --fold, data/in is the line: give the data another name".to_owned()));
    }
    match grant.setup_that_names(given::IN, engine) {
        Some(path) => Err(Failure::Usage(format!(
            "{}: with --fold, only EXPR has data/in: pass it to the function as an argument",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Folds the lines. `None` if the fold failed and standard error has its problem.
pub(crate) fn run(fold: Fold<'_>, sources: Sources, texts: &Texts<'_>) -> Result<Result<Folded, Exit>, Failure> {
    // Not in tail position, where `recur` would run the function again.
    let part = |name, text, before| Part { name, text, before, after: ")] acc))" };
    let Expressions { init, step, then } = fold.expressions;
    let parts = Parts {
        grant: texts,
        init: Part { name: "--fold INIT", text: init, before: "(def acc", after: ")" },
        step: part("--fold EXPR", step, "(defn ptcl-fold-step [acc *input*] (let [acc (do"),
        then: then.map(|then| part("--then EXPR", then, "(defn ptcl-fold-then [acc] (let [acc (do")),
    };
    for part in &parts.all().collect::<Vec<_>>() {
        match part.forms() {
            Ok(forms) => check_part(part, forms)?,
            Err(problem) => {
                tell!("{}", errors::draw(&problem, part.name, part.text));
                return Ok(Err(Exit::of_problem(&problem)));
            }
        }
    }
    let line = Arc::new(Mutex::new(RawValue::NULL.to_owned()));
    let session = fold.runner.session(fold.input.clone().check(Check::Off).tools(tool(line.clone())?))?;
    let Fold { runner, keep_going, line_bytes, failed, .. } = fold;
    let turns = Turns {
        session,
        line,
        engine: runner.engine(),
        parts: &parts,
        keep_going,
        exit: Exit::Ok,
        lost: (0, 0),
        failed,
    };
    turns.run(LinesOf::new(sources, line_bytes), line_bytes)
}

/// Fails if a text has not the forms that it must have, or a name that it must not have.
fn check_part(part: &Part<'_>, forms: usize) -> Result<(), Failure> {
    let (is_init, is_then) = (part.name.ends_with("INIT"), part.name.starts_with("--then"));
    let why = if is_init && forms != 1 {
        format!("must be one form, such as 0 or []; this has {forms}")
    } else if forms == 0 && is_then {
        "must have a form, such as acc".to_owned()
    } else if forms == 0 {
        "must have a form, whose value is acc for the next line".to_owned()
    } else if is_init && part.first_of(&[IN]).is_some() {
        "has data/in, and there is no line yet: only EXPR has it".to_owned()
    } else if is_then && part.first_of(&[IN]).is_some() {
        "has data/in, and there is no line any more: it has acc".to_owned()
    } else if let Some(name) = part.first_of(&RESERVED) {
        format!("has the name {name}, which --fold uses itself: write another one")
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!("{} {why}", part.name)))
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
        Some(problem) => given::printed_by_setup(outcome) + &parts.drawn(problem.clone(), turn),
        None => format!("failed: {}\n", visible(outcome.text().unwrap_or_default())),
    }
}

struct Turns<'a> {
    session: TurnRunner,
    line: Arc<Mutex<Box<RawValue>>>,
    engine: &'a Engine,
    parts: &'a Parts<'a>,
    keep_going: bool,
    exit: Exit,
    /// The printed lines that were left out, and those that were cut.
    lost: (u64, u64),
    failed: Receiver<io::Error>,
}

impl Turns<'_> {
    /// Runs all turns, and returns the value.
    fn run(mut self, input: LinesOf, line_bytes: usize) -> Result<Result<Folded, Exit>, Failure> {
        if !self.begin()? || !self.all(input, line_bytes)? {
            if let Some(why) = output::lost_lines(self.lost) {
                tell_line!("ptcl: {why}");
            }
            return Ok(Err(self.exit));
        }
        let last = if self.parts.then.is_some() { LAST_WITH_THEN } else { LAST };
        let mut outcome = self.turn(last)?;
        if self.parts.then.is_some() && !outcome.is_success() {
            tell!("{}\n", complaint(&outcome, self.parts, self.session.turns()).trim_end());
            return Ok(Err(Exit::of(&outcome)));
        }
        (outcome.prints_dropped, outcome.prints_cut) = self.lost;
        Ok(Ok(Folded { outcome, exit: self.exit }))
    }

    /// Runs a turn. Fails if what it printed cannot be written.
    fn turn(&mut self, source: &str) -> Result<Outcome, Failure> {
        let outcome = self.session.eval(source);
        if let Ok(error) = self.failed.try_recv() {
            return Err(Failure::Stream(error));
        }
        self.lost.0 += outcome.prints_dropped;
        self.lost.1 += outcome.prints_cut;
        Ok(outcome)
    }

    /// Runs INIT, and defines the functions of the others. Returns false if one failed and standard error has its problem.
    fn begin(&mut self) -> Result<bool, Failure> {
        let Parts { init, step, then, .. } = *self.parts;
        let expression = with_parameter(step.text);
        let sources = [init.source(), Part { text: &expression, ..step }.source()];
        for source in sources.into_iter().chain(then.map(|then| then.source())) {
            let outcome = self.turn(&source)?;
            values::notes_on_program(outcome.warnings()).for_each(|note| tell_line!("ptcl: {note}"));
            if let Err((why, exit)) = self.result(&outcome, &init) {
                tell!("{}\n", why.trim_end());
                self.exit = exit;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns why a turn failed, and its exit code. The value of `part` would be lost if it is that of `return`.
    fn result(&self, outcome: &Outcome, part: &Part<'_>) -> Result<(), (String, Exit)> {
        if outcome.kind() == Some(OutcomeKind::Return) {
            let why = format!("{} called (return v): leave return out, so that v is its value", part.name);
            return Err((why, Exit::Error));
        }
        match outcome.is_success() {
            true => Ok(()),
            false => Err((complaint(outcome, self.parts, self.session.turns()), Exit::of(outcome))),
        }
    }

    /// Runs the turn of each line. Returns whether all were run.
    fn all(&mut self, mut input: LinesOf, line_bytes: usize) -> Result<bool, Failure> {
        let progress = Progress::new("lines");
        while let Some((source, block, first)) = input.next()? {
            for (number, line) in lines_of(&block, first, line_bytes) {
                progress.add(1);
                let done = match line {
                    Ok(line) => self.one(line)?,
                    Err(error) => Err(error),
                };
                let Err((why, exit)) = done else { continue };
                let message = message(&source.place(number), &why);
                let _ = progress.aside(|| std::io::Write::write_all(&mut std::io::stderr().lock(), message.as_bytes()));
                self.exit = self.exit.max(exit);
                if !self.keep_going || exit == Exit::Interrupted {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns why a line cannot be read, as a run without a fold says it, and the exit code.
    fn can_be_read(&self, line: &str) -> Result<(), (String, Exit)> {
        let Err(problem) = self.engine.import(given::IN, line) else { return Ok(()) };
        let exit = if Exit::of_problem(&problem) == Exit::Limit { Exit::Limit } else { Exit::Usage };
        Err((visible(&given::of_line(&problem.error.message)).into_owned(), exit))
    }

    /// Runs the turn of a line. Returns why it failed, and the exit code.
    fn one(&mut self, line: &str) -> Result<Result<(), (String, Exit)>, Failure> {
        let json = match serde_json::from_str(line) {
            Ok(json) => json,
            Err(error) => return Ok(self.can_be_read(line).and(Err((format!("invalid JSON: {error}"), Exit::Usage)))),
        };
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = json;
        let outcome = self.turn(TURN)?;
        let is_of_line = outcome.problem().is_some_and(|problem| problem.reason() == Reason::ToolError);
        let read = if is_of_line { self.can_be_read(line) } else { Ok(()) };
        Ok(read.and_then(|()| self.result(&outcome, &self.parts.step)))
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
