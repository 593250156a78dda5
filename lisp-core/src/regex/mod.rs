//! Regular expressions: patterns compiled for three engines, all of which are charged for what they do and end at the
//! deadline.
//!
//! A short text is searched by the regex-automata crate at one go, because that cannot take long. In a long one its lazy
//! automaton is stepped piece by piece (`Stepped`). Look-around and back-references, and the groups of long matches,
//! are the business of the backtracking machine (`Backtracker`).

mod backtrack;
mod class;
mod effort;
mod program;
mod stepped;
mod translate;

pub(crate) use backtrack::Backtracker;
pub(crate) use program::Program;
pub(crate) use stepped::{Automata, Found, Stepped};

use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::Res;
use program::Invalid;
use regex_automata::{PatternID, meta};
use regex_syntax::hir::{Hir, HirKind};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use translate::{translate, translate_for_effort, translate_whole};

/// The most bytes that a search may keep of what it learned, in each direction.
const SEARCH_BYTES: usize = 1 << 18;

/// What ends a line, in front of which a pattern's `$` matches too where it ends the text.
const LINE_ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) enum Compiled {
    /// In linear time.
    Linear(Arc<Linear>),
    /// With look-around or back-references: by backtracking.
    Backtracking(Arc<Program>),
}

impl Compiled {
    /// Forgets what searches have learned.
    fn forget(&mut self) {
        if let Compiled::Linear(linear) = self {
            let Linear { text, bytes, automata, program, line_end, empty_rounds, .. } = &**linear;
            *linear = Arc::new(Linear {
                quick: linear.quick.clone(),
                text: text.clone(),
                bytes: *bytes,
                automata: automata.clone(),
                program: program.clone(),
                line_end: line_end.clone(),
                empty_rounds: *empty_rounds,
            });
        }
    }
}

/// A pattern without look-around and back-references.
#[derive(Debug)]
pub(crate) struct Linear {
    /// For short texts.
    pub(crate) quick: meta::Regex,
    text: String,
    bytes: usize,
    automata: OnceLock<Option<Arc<Automata>>>,
    program: OnceLock<Option<Arc<Program>>>,
    /// The pattern for texts that end in a line's end, where it can match before that.
    line_end: Option<Arc<LineEnd>>,
    /// Can a group that is repeated match nothing? Then what it matched last is found by going through the rounds.
    pub(crate) empty_rounds: bool,
}

/// A pattern that can match before the line's end that a text ends in.
#[derive(Debug)]
struct LineEnd {
    text: String,
    program: OnceLock<Option<Arc<Program>>>,
}

impl Linear {
    /// For long texts; there is none for some word boundaries.
    pub(crate) fn automata(&self) -> Option<Arc<Automata>> {
        self.automata.get_or_init(|| Automata::compile(&self.text, self.bytes).map(Arc::new)).clone()
    }

    /// The number of the group with this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.quick.group_info().to_index(PatternID::ZERO, name)
    }

    /// For a text that ends in a line's end, when the pattern can match before it. `None` as well when it is too large for
    /// that.
    pub(crate) fn before_line_end(&self, text: &str) -> Option<Arc<Program>> {
        let line_end = self.line_end.as_ref().filter(|_| text.ends_with(LINE_ENDS))?;
        line_end.program.get_or_init(|| Program::compile(&line_end.text).ok().map(Arc::new)).clone()
    }

    /// For what the automata cannot tell, and for the groups of long matches.
    pub(crate) fn program(&self) -> Res<Arc<Program>> {
        let program = self.program.get_or_init(|| Program::compile(&self.text).ok().map(Arc::new));
        program.clone().ok_or_else(|| {
            Error::new(Reason::RuntimeError, "this regular expression is too large to search so long a text")
                .hint("search line by line with `split-lines`, or use fewer counted repeats such as {1,100}")
                .into()
        })
    }
}

/// What a compiled regular expression costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternCost {
    /// The bytes that stay in use, those for long texts too.
    pub(crate) kept: usize,
    /// At how many places of the pattern a search can be at once, at most.
    pub(crate) weight: u64,
    /// The bytes that the compiled form takes, at most.
    pub(crate) bytes: usize,
}

/// What a pattern has to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Any part of a text.
    Part,
    /// The whole text.
    Whole,
}

/// The compiled regular expressions of a run, by pattern and extent.
#[derive(Debug, Default)]
pub struct Regexes {
    by_pattern: [HashMap<Box<str>, (Compiled, PatternCost)>; 2],
    bytes: usize,
    /// How many of them may have learned something in searches since that was last forgotten.
    learned: usize,
}

impl Regexes {
    /// The most bytes of what searches learn; beyond it that is forgotten.
    pub const LEARNED_BYTES: usize = 8 << 20;
    /// The bytes a compiled pattern may take: as few of these as it needs. What would need more, such as a long counted
    /// repeat of `\w`, is for the backtracking machine, because compiling it takes too long.
    pub const COMPILED_BYTES: [usize; 2] = [1 << 16, 1 << 18];
    /// The effort of checking the patterns of a program when it is compiled: 64 usual ones, about ten milliseconds.
    pub(crate) const CHECKED: u64 = 64 * effort::CHECK;
    /// The longest pattern, in bytes.
    pub const PATTERN_BYTES: usize = 10_000;

    /// Fuel for compiling a pattern.
    pub(crate) fn fuel(pattern: &str) -> u64 {
        let effort = effort::CHECK + effort::effort(&translate_for_effort(pattern)).any + effort::repeats(pattern);
        effort.saturating_mul(cost::PATTERN_EFFORT)
    }

    /// The compiled form of a pattern and what it costs. When all take more than `kept` bytes they are forgotten, and
    /// compiled anew when used again.
    pub(crate) fn get(&mut self, pattern: &str, extent: Extent, kept: usize) -> Res<(Compiled, PatternCost)> {
        if let Some(compiled) = self.by_pattern[extent as usize].get(pattern) {
            return Ok(compiled.clone());
        }
        let compiled = compile(pattern, extent)?;
        if self.bytes + compiled.1.kept > kept {
            self.by_pattern.iter_mut().for_each(HashMap::clear);
            (self.bytes, self.learned) = (0, 0);
        }
        // A search learns in two directions.
        if (self.learned + 1) * 2 * SEARCH_BYTES > Self::LEARNED_BYTES {
            let all = self.by_pattern.iter_mut().flat_map(HashMap::values_mut);
            all.for_each(|(compiled, _)| compiled.forget());
            self.learned = 0;
        }
        self.bytes += compiled.1.kept;
        self.learned += 1;
        self.by_pattern[extent as usize].insert(pattern.into(), compiled.clone());
        Ok(compiled)
    }

    /// What the compiled forms take.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Compiles the pattern of a literal to see whether it is one; returns an estimate of the effort.
    pub(crate) fn check(pattern: &str) -> Result<u64, Error> {
        compile(pattern, Extent::Part).map_err(|error| match written_once(pattern) {
            Some(once) => error.hint(format!("in #\"...\" each backslash is written once: #\"{once}\"")),
            None => error,
        })?;
        Ok(effort::CHECK + effort::effort(&translate_for_effort(pattern)).any)
    }
}

fn quick(text: &str, bytes: usize) -> Result<meta::Regex, Box<meta::BuildError>> {
    let config = meta::Config::new().nfa_size_limit(Some(bytes)).hybrid_cache_capacity(SEARCH_BYTES);
    meta::Builder::new().configure(config).build(text).map_err(Box::new)
}

/// The pattern with each doubled backslash written once, when that is a pattern: in a literal nothing has to be doubled.
fn written_once(pattern: &str) -> Option<String> {
    let once = pattern.replace(r"\\", r"\");
    (once.len() < pattern.len() && compile(&once, Extent::Part).is_ok()).then_some(once)
}

/// Compiles a pattern: linear if it can be, with backtracking if it must.
fn compile(pattern: &str, extent: Extent) -> Result<(Compiled, PatternCost), Error> {
    if pattern.len() > Regexes::PATTERN_BYTES {
        return Err(Error::new(
            Reason::RuntimeError,
            format!("a regular expression has at most {} bytes, this one {}", Regexes::PATTERN_BYTES, pattern.len()),
        )
        .hint("use a shorter pattern, or test for several with `or`"));
    }
    let translated = match extent {
        Extent::Part => translate(pattern),
        Extent::Whole => translate_whole(pattern),
    };
    let weight = translated.weight;
    let effort = effort::effort(&translate_for_effort(pattern));
    if effort.any > effort::MOST {
        return Err(Error::new(
            Reason::RuntimeError,
            r"the regular expression takes too long to compile: it has too many classes such as \w, or too large ones under (?i)",
        )
        .hint("write it with fewer classes, or put several searches together with `or`"));
    }
    let mut first = None;
    let without_line_end = translated.without_line_end();
    let text = without_line_end.as_deref().unwrap_or(&translated.text);
    let linear = if effort.linear <= effort::MOST_LINEAR { &Regexes::COMPILED_BYTES[..] } else { &[] };
    for &bytes in linear {
        match quick(text, bytes) {
            Ok(quick) => {
                // It is compiled once more for each direction of long texts.
                let kept = 3 * (quick.memory_usage() + text.len());
                let line_end = without_line_end
                    .is_some()
                    .then(|| Arc::new(LineEnd { text: translated.text.clone(), program: OnceLock::new() }));
                let linear = Linear {
                    empty_rounds: quick.captures_len() > 1 && has_empty_rounds(text),
                    quick,
                    text: text.to_owned(),
                    bytes,
                    automata: OnceLock::new(),
                    program: OnceLock::new(),
                    line_end,
                };
                return Ok((Compiled::Linear(Arc::new(linear)), PatternCost { kept, weight, bytes }));
            }
            Err(error) if error.size_limit().is_some() => {}
            Err(error) => {
                first = Some(error);
                break;
            }
        }
    }
    let wrong =
        |text: &str| Error::new(Reason::RuntimeError, format!("invalid regular expression #\"{pattern}\": {text}"));
    match Program::compile(&translated.text) {
        Ok(program) => {
            let bytes = program.bytes();
            Ok((Compiled::Backtracking(Arc::new(program)), PatternCost { kept: bytes, weight, bytes }))
        }
        Err(Invalid::TooBig) => {
            Err(wrong(&format!("its compiled form has more than {} instructions", Program::MOST_INSNS))
                .hint("use fewer or smaller counted repeats such as {1,100}"))
        }
        Err(Invalid::Syntax(why)) => {
            let said = match first.as_ref().and_then(|first| first.syntax_error()) {
                Some(regex_syntax::Error::Parse(error)) => error.kind().to_string(),
                Some(regex_syntax::Error::Translate(error)) => error.kind().to_string(),
                _ => why.to_owned(),
            };
            let said = if has_look_around(pattern) { why.to_owned() } else { said };
            Err(wrong(&said)
                .hint("mend the pattern; a special character that stands for itself has a backslash before it"))
        }
    }
}

/// Is there a group, repeated without end, that can match nothing? The depth of the tree is bounded by its parser.
fn has_empty_rounds(text: &str) -> bool {
    fn look(tree: &Hir) -> bool {
        match tree.kind() {
            HirKind::Repetition(repeat) => {
                let inside = repeat.sub.properties();
                let empty = inside.minimum_len() == Some(0) && inside.explicit_captures_len() > 0;
                (repeat.max.is_none() && empty) || look(&repeat.sub)
            }
            HirKind::Capture(group) => look(&group.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(look),
            _ => false,
        }
    }
    let repeats = [")*", ")+", "){"].iter().any(|sign| text.contains(sign));
    repeats && regex_syntax::parse(text).is_ok_and(|tree| look(&tree))
}

/// Does a pattern ask for what only backtracking can do? Then the linear engine's complaint is beside the point.
fn has_look_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!", "(?>", "(?("].iter().any(|sign| pattern.contains(sign))
}

#[cfg(test)]
mod tests;
