//! Regular expressions as Java has them: patterns compiled for three engines, all of which are charged for what they do and
//! end at the deadline.
//!
//! A pattern is read into a tree (`parse`, `class_parse`). If it can be matched in linear time (`Tree::is_linear`), a short text
//! is searched by the regex-automata crate at one go, because that cannot take long, and a long one by its lazy automaton, which
//! is stepped piece by piece (`Stepped`). The backtracking machine (`Backtracker`) has the rest: large classes of Unicode, long counted
//! repeats, the groups of long matches, and texts on which the automata do not mean the same (`linear::Needs`).
//!
//! Look-around, back-references and atomic groups are errors: none of 8,587 programs of the reference and of models has them.

mod backtrack;
mod class;
mod class_parse;
mod doubled;
mod effort;
mod linear;
mod parse;
mod program;
mod sets;
mod stepped;
mod tree;

pub(crate) use backtrack::Backtracker;
pub(crate) use doubled::doubled_backslash;
pub(crate) use program::Program;
pub(crate) use stepped::{Automata, Found, Stepped};

use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Heap, Res};
use linear::Needs;
use parse::{Wrong, parse};
use program::TooBig;
use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::Hir;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use tree::{At, Pattern, Tree};

/// The most bytes that a search may keep of what it learned, in each direction.
const SEARCH_BYTES: usize = 1 << 18;
/// The most bytes that a search at one go may take to follow the groups of a pattern.
const GROUP_BYTES: u64 = 1 << 17;

/// The most bytes of a pattern that an error shows.
const SHOWN_BYTES: usize = 200;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) enum Compiled {
    /// In linear time.
    Linear(Arc<Linear>),
    /// By backtracking.
    Backtracking(Arc<Program>),
}

impl Compiled {
    /// Forgets what searches have learned.
    fn forget(&mut self) {
        if let Compiled::Linear(linear) = self {
            let Linear { text, extent, needs, bytes, automata, program, groups, names, is_traced, .. } = &**linear;
            *linear = Arc::new(Linear {
                quick: linear.quick.clone(),
                text: text.clone(),
                extent: *extent,
                needs: *needs,
                bytes: *bytes,
                automata: automata.clone(),
                program: program.clone(),
                groups: *groups,
                names: names.clone(),
                is_traced: *is_traced,
            });
        }
    }
}

/// A pattern that is matched in linear time.
#[derive(Debug)]
pub(crate) struct Linear {
    /// For short texts.
    pub(crate) quick: meta::Regex,
    text: Box<str>,
    extent: Extent,
    needs: Needs,
    bytes: usize,
    automata: OnceLock<Option<Arc<Automata>>>,
    program: OnceLock<Option<Arc<Program>>>,
    /// Groups, the whole match included.
    pub(crate) groups: usize,
    /// The names of groups, and their numbers.
    names: Arc<[(Box<str>, u32)]>,
    /// The program follows the groups through each match, because `quick` does not know them: to follow so many would take too much
    /// memory, or one that is repeated can match nothing, and what it matched last is found by going through the rounds.
    pub(crate) is_traced: bool,
}

impl Linear {
    /// For long texts, if they can be made.
    pub(crate) fn automata(&self) -> Option<Arc<Automata>> {
        let compile = || {
            let pattern = read(&self.text, self.extent).ok()?;
            Automata::compile(&linear::hir(&pattern, &pattern.tree), self.bytes).map(Arc::new)
        };
        self.automata.get_or_init(compile).clone()
    }

    /// The number of the group with this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(own, _)| &**own == name).map(|(_, group)| *group as usize)
    }

    /// Do linear searches in a text, stepped or at one go, find what the pattern means?
    pub(crate) fn suits(&self, h: &Heap, text: &str, stepped: bool) -> Res<bool> {
        if self.needs.look_through() {
            h.charge(cost::scanned(text.len()))?;
        }
        Ok(self.needs.allow(text, stepped))
    }

    /// Is a match that ends at the end of the text to be looked at once more, by the program?
    pub(crate) fn is_unsure_at_end(&self) -> bool {
        self.needs.line_starts
    }

    /// For what the automata cannot tell, and for the groups of long matches.
    pub(crate) fn program(&self) -> Res<Arc<Program>> {
        let compile = || Program::compile(&read(&self.text, self.extent).ok()?).ok().map(Arc::new);
        self.program.get_or_init(compile).clone().ok_or_else(|| {
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
    /// At how many places of the pattern a search can be at once: an estimate.
    pub(crate) weight: u64,
    /// What a byte can take at most: the states of the pattern as an automaton, and the ways between them.
    pub(crate) states: u64,
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
    /// repeat of `[^a]`, is for the backtracking machine, because compiling it takes too long.
    pub const COMPILED_BYTES: [usize; 2] = [1 << 16, 1 << 18];
    /// The effort of checking the patterns of a program when it is compiled: 64 usual ones, about ten milliseconds.
    pub(crate) const CHECKED: u64 = 64 * effort::CHECK;
    /// The longest pattern, in bytes.
    pub const PATTERN_BYTES: usize = 10_000;

    /// Fuel for compiling a pattern.
    pub(crate) fn fuel(pattern: &str) -> u64 {
        let estimate = effort::effort(pattern);
        let repeats = effort::repeats(pattern) + effort::open_repeats(pattern);
        let effort = effort::CHECK + estimate.any + estimate.ranges + repeats;
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
        // A search learns in two directions, and has tables for groups and for places beside it.
        if (self.learned + 1) * 4 * SEARCH_BYTES > Self::LEARNED_BYTES {
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
        let estimate = effort::effort(pattern);
        Ok(effort::CHECK + estimate.any + estimate.ranges)
    }
}

fn quick(hir: &Hir, bytes: usize, groups: WhichCaptures) -> Result<meta::Regex, Box<meta::BuildError>> {
    let config =
        meta::Config::new().nfa_size_limit(Some(bytes)).hybrid_cache_capacity(SEARCH_BYTES).which_captures(groups);
    meta::Builder::new().configure(config).build_from_hir(hir).map_err(Box::new)
}

/// Reads a pattern that is to match a part of a text, or all of it.
fn read(text: &str, extent: Extent) -> Result<Pattern, Wrong> {
    let pattern = parse(text)?;
    Ok(match extent {
        Extent::Part => pattern,
        Extent::Whole => {
            let tree = Tree::Concat(vec![Tree::At(At::Start), pattern.tree, Tree::At(At::End)]);
            Pattern { tree, ..pattern }
        }
    })
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
    let effort = effort::effort(pattern);
    if effort.any > effort::MOST {
        return Err(Error::new(
            Reason::RuntimeError,
            r"the regular expression takes too long to compile: it has too many classes such as \w, or too large ones under (?iu)",
        )
        .hint("write it with fewer classes, or put several searches together with `or`"));
    }
    let wrong = |what: &str| {
        let begin = pattern.floor_char_boundary(SHOWN_BYTES);
        let (begin, dots) = if begin < pattern.len() { (&pattern[..begin], "...") } else { (pattern, "") };
        Error::new(Reason::RuntimeError, format!("invalid regular expression #\"{begin}{dots}\": {what}"))
            .class(ErrorClass::PatternSyntax)
    };
    let tree = read(pattern, extent).map_err(|why| wrong(&why.what).hint(why.hint))?;
    let (weight, states) = (tree.weight(), tree.states());
    if effort.linear <= effort::MOST_LINEAR
        && tree.tree.is_linear()
        && !tree.has_wide_class()
        && let Some(linear) = compile_linear(pattern, extent, &tree)
    {
        // It is compiled once more for each direction of long texts.
        let kept = 3 * (linear.quick.memory_usage() + pattern.len());
        let bytes = linear.bytes;
        return Ok((Compiled::Linear(Arc::new(linear)), PatternCost { kept, weight, states, bytes }));
    }
    match Program::compile(&tree) {
        Ok(program) => {
            let bytes = program.bytes();
            Ok((Compiled::Backtracking(Arc::new(program)), PatternCost { kept: bytes, weight, states, bytes }))
        }
        Err(TooBig) => Err(wrong(&format!("its compiled form has more than {} instructions", Program::MOST_INSNS))
            .hint("use fewer or smaller counted repeats such as {1,100}")),
    }
}

/// Compiles a pattern for linear searches; none when it is too large for that.
fn compile_linear(text: &str, extent: Extent, pattern: &Pattern) -> Option<Linear> {
    let hir = linear::hir(pattern, &pattern.tree);
    // Two tables have a place for both ends of each group in each state.
    let tables = pattern.states().saturating_mul(pattern.groups as u64).saturating_mul(4 * size_of::<usize>() as u64);
    let is_traced = pattern.groups > 1 && (tables > GROUP_BYTES || pattern.tree.has_empty_rounds());
    let groups = if is_traced { WhichCaptures::Implicit } else { WhichCaptures::All };
    let (quick, bytes) =
        Regexes::COMPILED_BYTES.iter().find_map(|&bytes| Some((quick(&hir, bytes, groups).ok()?, bytes)))?;
    Some(Linear {
        quick,
        text: text.into(),
        extent,
        needs: Needs::of(&pattern.tree),
        bytes,
        automata: OnceLock::new(),
        program: OnceLock::new(),
        groups: pattern.groups,
        names: pattern.names.clone().into(),
        is_traced,
    })
}

#[cfg(test)]
mod tests;
