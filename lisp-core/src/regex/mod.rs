//! Regular expressions in Java's syntax. There are three engines; all of them charge for their work and stop at the
//! deadline.
//!
//! A pattern is parsed into a tree (`parse`, `class_parse`). If it can be matched in linear time (`Tree::is_linear`),
//! the regex-automata crate searches a short text in one call, because that cannot take long. A long text is searched
//! piece by piece with its lazy automaton (`Stepped`). The backtracking engine (`Backtracker`) does the rest: large
//! Unicode classes, long counted repeats, the groups of long matches, and texts on which the automata would give a
//! different result (`linear::Needs`).
//!
//! Look-around, back-references and atomic groups are errors: none of 8,587 programs of the reference and of models
//! uses them.

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

use crate::Table;
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

/// The maximum bytes of an automaton's cache, for each direction of a search.
const SEARCH_BYTES: usize = 1 << 18;
/// The maximum bytes that an uninterrupted search may use to track the groups of a pattern.
const GROUP_BYTES: u64 = 1 << 17;

/// The maximum bytes of a pattern that an error shows.
const SHOWN_BYTES: usize = 200;

#[derive(Clone, Debug)]
pub(crate) enum Compiled {
    /// Matched in linear time.
    Linear(Arc<Linear>),
    /// Matched by backtracking.
    Backtracking(Arc<Program>),
}

#[derive(Debug)]
pub(crate) struct Linear {
    /// Searches short texts.
    pub(crate) quick: meta::Regex,
    text: Box<str>,
    extent: Extent,
    needs: Needs,
    bytes: usize,
    automata: OnceLock<Option<Arc<Automata>>>,
    program: OnceLock<Option<Arc<Program>>>,
    /// The number of groups, including the whole match.
    pub(crate) groups: usize,
    /// The names of groups, with their numbers.
    names: Arc<[(Box<str>, u32)]>,
    /// The backtracking program has to find the groups of each match, because `quick` does not track them. Either there
    /// are so many that tracking them would take too much memory, or a repeated group can match the empty string, and
    /// only going through the rounds shows what it matched last.
    pub(crate) is_traced: bool,
}

/// The states that searches with `Linear::quick` have found so far. They make the next search with the same pattern
/// faster.
pub(crate) type SearchCache = Box<meta::Cache>;

/// The caches of one heap's searches. When they become too large, all are discarded.
#[derive(Debug, Default)]
pub(crate) struct SearchCaches {
    /// That of the pattern that was used last, or nothing while it is in use: most searches follow one with the same
    /// pattern.
    last: Option<(Arc<Linear>, Option<SearchCache>)>,
    /// The others, by the address of the pattern, which stays that pattern's as long as it is kept here.
    others: Table<usize, (Arc<Linear>, SearchCache, usize)>,
    /// The bytes of the others.
    bytes: usize,
}

impl SearchCaches {
    /// The maximum bytes of the caches and of the compiled patterns that they keep, without those of the last pattern.
    const MAX_BYTES: usize = 3 << 20;

    /// Returns the cache of a pattern, or a new one. It has to be put back after the search.
    pub(crate) fn take(&mut self, linear: &Arc<Linear>) -> SearchCache {
        if let Some((last, cache)) = &mut self.last
            && Arc::ptr_eq(last, linear)
        {
            return cache.take().unwrap_or_else(|| Box::new(linear.quick.create_cache()));
        }
        match self.others.remove(&Arc::as_ptr(linear).addr()) {
            None => Box::new(linear.quick.create_cache()),
            Some((_, cache, bytes)) => {
                self.bytes -= bytes;
                cache
            }
        }
    }

    /// Keeps a cache for the next search with the same pattern.
    pub(crate) fn put(&mut self, linear: &Arc<Linear>, cache: SearchCache) {
        match &mut self.last {
            Some((last, kept)) if Arc::ptr_eq(last, linear) => *kept = Some(cache),
            last => {
                if let Some((before, Some(cache))) = last.replace((linear.clone(), Some(cache))) {
                    self.put_aside(before, cache);
                }
            }
        }
    }

    fn put_aside(&mut self, linear: Arc<Linear>, cache: SearchCache) {
        let bytes = size_of::<meta::Cache>() + cache.memory_usage() + linear.quick.memory_usage();
        if self.bytes + bytes > Self::MAX_BYTES {
            self.others.clear();
            self.bytes = 0;
        }
        if bytes > Self::MAX_BYTES {
            return;
        }
        self.bytes += bytes;
        if let Some((.., replaced)) = self.others.insert(Arc::as_ptr(&linear).addr(), (linear, cache, bytes)) {
            // Two searches with the same pattern were open at once.
            self.bytes -= replaced;
        }
    }
}

impl Linear {
    /// Returns the automata for long texts, or `None` if they cannot be compiled.
    pub(crate) fn automata(&self) -> Option<Arc<Automata>> {
        let compile = || {
            let pattern = read(&self.text, self.extent).ok()?;
            Automata::compile(&linear::hir(&pattern, &pattern.tree), self.bytes).map(Arc::new)
        };
        self.automata.get_or_init(compile).clone()
    }

    /// Returns the number of the group with this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(own, _)| &**own == name).map(|(_, group)| *group as usize)
    }

    /// Returns whether linear searches in `text`, stepped or not, find what the pattern means. Charges for the scan of
    /// the text if one is needed.
    pub(crate) fn suits(&self, h: &Heap, text: &str, stepped: bool) -> Res<bool> {
        if self.needs.look_through() {
            h.charge(cost::scanned(text.len()))?;
        }
        Ok(self.needs.allow(text, stepped))
    }

    /// Returns whether the program has to check a match that ends at the end of the text.
    pub(crate) fn is_unsure_at_end(&self) -> bool {
        self.needs.line_starts
    }

    /// Returns the backtracking program: for texts that the automata cannot decide, and for the groups of long matches.
    pub(crate) fn program(&self) -> Res<Arc<Program>> {
        let compile = || Program::compile(&read(&self.text, self.extent).ok()?).ok().map(Arc::new);
        self.program.get_or_init(compile).clone().ok_or_else(|| {
            Error::new(Reason::RuntimeError, "this regular expression is too large to search a text of this length")
                .hint("search line by line with `split-lines`, or use fewer counted repeats such as {1,100}")
                .into()
        })
    }
}

/// The cost of a compiled regular expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternCost {
    /// The bytes that stay in use, including those of the automata for long texts.
    pub(crate) kept: usize,
    /// An estimate of the number of positions of the pattern at which a search can be at once.
    pub(crate) weight: u64,
    /// An upper bound on the work for one byte: the states of the pattern as an automaton, and their transitions.
    pub(crate) states: u64,
    /// An upper bound on the bytes of the compiled form.
    pub(crate) bytes: usize,
}

/// How much of a text a pattern has to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Any part of a text.
    Part,
    /// The whole text.
    Whole,
}

/// The compiled regular expressions of a run, by extent and pattern.
#[derive(Debug, Default)]
pub struct Regexes {
    by_pattern: [HashMap<Box<str>, (Compiled, PatternCost)>; 2],
    bytes: usize,
}

impl Regexes {
    /// The bytes that a compiled pattern may take; the smallest sufficient limit is used. A pattern that needs more,
    /// such as a long counted repeat of `[^a]`, takes too long to compile and is left to the backtracking engine.
    pub const COMPILED_BYTES: [usize; 2] = [1 << 16, 1 << 18];
    /// The maximum effort of checking the patterns of a program when it is compiled: 64 typical ones, about ten
    /// milliseconds.
    pub(crate) const CHECKED: u64 = 64 * effort::CHECK;
    /// The maximum length of a pattern, in bytes.
    pub const PATTERN_BYTES: usize = 10_000;

    /// Returns the fuel for compiling a pattern.
    pub(crate) fn fuel(pattern: &str) -> u64 {
        let estimate = effort::effort(pattern);
        let repeats = effort::repeats(pattern) + effort::open_repeats(pattern);
        let effort = effort::CHECK + estimate.any + estimate.ranges + repeats;
        effort.saturating_mul(cost::PATTERN_EFFORT)
    }

    /// Returns the compiled form of a pattern and its cost. If all compiled forms together would take more than `kept`
    /// bytes, the earlier ones are discarded; they are compiled again when they are next used.
    pub(crate) fn get(&mut self, pattern: &str, extent: Extent, kept: usize) -> Res<(Compiled, PatternCost)> {
        if let Some(compiled) = self.by_pattern[extent as usize].get(pattern) {
            return Ok(compiled.clone());
        }
        let compiled = compile(pattern, extent)?;
        if self.bytes + compiled.1.kept > kept {
            self.by_pattern.iter_mut().for_each(HashMap::clear);
            self.bytes = 0;
        }
        self.bytes += compiled.1.kept;
        self.by_pattern[extent as usize].insert(pattern.into(), compiled.clone());
        Ok(compiled)
    }

    /// Returns the bytes of the compiled forms.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Compiles the pattern of a literal to check it. Returns an estimate of the effort.
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

/// Parses a pattern that has to match a part of a text, or all of it.
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

/// Returns the pattern with each doubled backslash written once, if that compiles: literals need no doubled
/// backslashes.
fn written_once(pattern: &str) -> Option<String> {
    let once = pattern.replace(r"\\", r"\");
    (once.len() < pattern.len() && compile(&once, Extent::Part).is_ok()).then_some(once)
}

/// Compiles a pattern for linear searches if possible, else for backtracking.
fn compile(pattern: &str, extent: Extent) -> Result<(Compiled, PatternCost), Error> {
    if pattern.len() > Regexes::PATTERN_BYTES {
        return Err(Error::new(
            Reason::RuntimeError,
            format!("a regular expression has at most {} bytes, this one {}", Regexes::PATTERN_BYTES, pattern.len()),
        )
        .hint("use a shorter pattern, or test for several with `or`"));
    }
    let effort = effort::effort(pattern);
    if effort.any > effort::MAX {
        return Err(Error::new(
            Reason::RuntimeError,
            r"the regular expression takes too long to compile: it has too many classes such as \w, or too large ones under (?iu)",
        )
        .hint("use fewer classes, or combine several searches with `or`"));
    }
    let wrong = |what: &str| {
        let begin = pattern.floor_char_boundary(SHOWN_BYTES);
        let (begin, dots) = if begin < pattern.len() { (&pattern[..begin], "...") } else { (pattern, "") };
        Error::new(Reason::RuntimeError, format!("invalid regular expression #\"{begin}{dots}\": {what}"))
            .class(ErrorClass::PatternSyntax)
    };
    let tree = read(pattern, extent).map_err(|why| wrong(&why.what).hint(why.hint))?;
    let (weight, states) = (tree.weight(), tree.states());
    if effort.linear <= effort::MAX_LINEAR
        && tree.tree.is_linear()
        && !tree.has_wide_class()
        && let Some(linear) = compile_linear(pattern, extent, &tree)
    {
        // Long texts need it compiled once more for each direction.
        let kept = 3 * (linear.quick.memory_usage() + pattern.len());
        let bytes = linear.bytes;
        return Ok((Compiled::Linear(Arc::new(linear)), PatternCost { kept, weight, states, bytes }));
    }
    match Program::compile(&tree) {
        Ok(program) => {
            let bytes = program.bytes();
            Ok((Compiled::Backtracking(Arc::new(program)), PatternCost { kept: bytes, weight, states, bytes }))
        }
        Err(TooBig) => Err(wrong(&format!("its compiled form has more than {} instructions", Program::MAX_INSNS))
            .hint("use fewer or smaller counted repeats such as {1,100}")),
    }
}

/// Compiles a pattern for linear searches. Returns `None` if it is too large for them.
fn compile_linear(text: &str, extent: Extent, pattern: &Pattern) -> Option<Linear> {
    let hir = linear::hir(pattern, &pattern.tree);
    // Two tables store both ends of each group for each state.
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
