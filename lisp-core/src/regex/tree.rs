//! The syntax tree of a pattern. The nesting of groups is bounded (`parse::MAX_DEPTH`), and so is every recursion over
//! the tree.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::sync::Arc;

/// A parsed pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) tree: Tree,
    /// The character classes that the tree refers to.
    pub(super) classes: Vec<ClassUnicode>,
    /// The number of groups, including the whole match.
    pub(super) groups: usize,
    /// The names of groups, with their numbers.
    pub(super) names: Vec<(Box<str>, u32)>,
}

impl Pattern {
    /// Returns whether the pattern has a class of more than 16 ranges. Such a class has hundreds of states as an
    /// automaton over bytes, especially in the reverse one; for the backtracking engine it is one step.
    pub(super) fn has_wide_class(&self) -> bool {
        const NARROW: usize = 16;
        self.classes.iter().any(|class| class.ranges().len() > NARROW)
    }

    /// Estimates the number of positions of the pattern at which a search can be at once, with counted repeats
    /// expanded. The cost of a search depends on it.
    pub(super) fn weight(&self) -> u64 {
        self.sum(&self.tree, &Measure { of_class: |_| 1, of_repeat: weight_of_repeat }).max(1)
    }

    /// Returns an upper bound on the work for one byte: the states of the pattern as an automaton over bytes, and their
    /// transitions.
    pub(super) fn states(&self) -> u64 {
        self.sum(&self.tree, &Measure { of_class: states_of_class, of_repeat: |_| 2 }).max(1)
    }

    fn sum(&self, tree: &Tree, measure: &Measure) -> u64 {
        match tree {
            Tree::Empty => 0,
            Tree::Text(text) => text.chars().count() as u64,
            Tree::Class(number) => self.classes.get(*number as usize).map_or(1, measure.of_class),
            Tree::Repeat { tree, least, max, .. } => {
                let times = u64::from((*least).max(max.unwrap_or(0)).max(1));
                self.sum(tree, measure).saturating_add((measure.of_repeat)(tree)).saturating_mul(times)
            }
            Tree::Group(_, tree) => self.sum(tree, measure).saturating_add(1),
            Tree::Concat(parts) | Tree::Any(parts) => {
                parts.iter().map(|part| self.sum(part, measure)).fold(1, |sum: u64, own| sum.saturating_add(own))
            }
            Tree::At(_) | Tree::LineEnd { .. } | Tree::Cluster => 1,
        }
    }
}

/// The weights of classes and repeats in a sum over the tree.
struct Measure {
    of_class: fn(&ClassUnicode) -> u64,
    of_repeat: fn(&Tree) -> u64,
}

/// After each round of a repeat, a search is at the start of all repeats nested in it.
fn weight_of_repeat(inside: &Tree) -> u64 {
    if inside.has(&|tree| matches!(tree, Tree::Repeat { .. })) { 3 } else { 0 }
}

/// Returns a bound on the states of a class: the byte sequences that it consists of, and the bytes of each.
fn states_of_class(class: &ClassUnicode) -> u64 {
    let of_range = |range: &ClassUnicodeRange| {
        let (first, last) = (range.start().len_utf8(), range.end().len_utf8());
        // A range from one encoded length to another has several sequences of each length.
        match last {
            1 => 0,
            _ if first == last => 2 * last as u64,
            _ => 6 * last as u64,
        }
    };
    1 + class.iter().map(of_range).sum::<u64>()
}

#[derive(Debug)]
pub(super) enum Tree {
    /// The empty string.
    Empty,
    /// One character of a class, given by its index in [`Pattern::classes`].
    Class(u32),
    /// These characters in this order.
    Text(Arc<str>),
    /// A condition on the position; matches no characters.
    At(At),
    /// These parts in sequence.
    Concat(Vec<Tree>),
    /// The first of these alternatives that matches.
    Any(Vec<Tree>),
    Group(u32, Box<Tree>),
    /// Unbounded if `max` is `None`.
    Repeat {
        tree: Box<Tree>,
        least: u32,
        max: Option<u32>,
        greedy: bool,
    },
    /// A line terminator: `\R`. If `whole`, `\r\n` matches only as one, never its `\r` alone.
    LineEnd {
        whole: bool,
    },
    /// An extended grapheme cluster: `\X`.
    Cluster,
}

/// A condition on a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Start,
    End,
    /// The end of the text, or the position before a line terminator at its end.
    LastLineEnd(Lines),
    /// `^` with the flag `m`; never at the end of the text.
    LineStart(Lines),
    /// `$` with the flag `m`.
    LineEnd(Lines),
    /// `\b`, or `\B` if `not`.
    Word {
        unicode: bool,
        not: bool,
    },
    /// The end of the previous match: `\G`.
    LastMatch,
}

/// Which characters end a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    Any,
    /// Only `\n`: the flag `d`.
    Unix,
}

/// Which letters are equal if their case is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    Ascii,
    Unicode,
}

impl Tree {
    /// Creates a sequence of these parts. Adjacent strings are joined.
    pub(super) fn concat(parts: Vec<Tree>) -> Tree {
        let mut merged: Vec<Tree> = Vec::with_capacity(parts.len());
        let mut text = String::new();
        for part in parts {
            match part {
                Tree::Empty => {}
                Tree::Text(more) => text.push_str(&more),
                other => {
                    if !text.is_empty() {
                        merged.push(Tree::Text(std::mem::take(&mut text).into()));
                    }
                    merged.push(other);
                }
            }
        }
        if !text.is_empty() {
            merged.push(Tree::Text(text.into()));
        }
        match merged.len() {
            0 => Tree::Empty,
            1 => merged.pop().unwrap_or(Tree::Empty),
            _ => Tree::Concat(merged),
        }
    }

    /// Returns the direct children.
    pub(super) fn parts(&self) -> &[Tree] {
        match self {
            Tree::Concat(parts) | Tree::Any(parts) => parts,
            Tree::Group(_, tree) | Tree::Repeat { tree, .. } => std::slice::from_ref(tree),
            _ => &[],
        }
    }

    /// Makes every `\R` in the tree a whole one.
    pub(super) fn keep_line_ends(&mut self) {
        match self {
            Tree::LineEnd { whole } => *whole = true,
            Tree::Concat(parts) | Tree::Any(parts) => parts.iter_mut().for_each(Tree::keep_line_ends),
            Tree::Group(_, tree) | Tree::Repeat { tree, .. } => tree.keep_line_ends(),
            Tree::Empty | Tree::Class(_) | Tree::Text(_) | Tree::At(_) | Tree::Cluster => {}
        }
    }

    /// Returns whether the predicate holds for the tree or any part of it.
    pub(super) fn has(&self, is: &impl Fn(&Tree) -> bool) -> bool {
        is(self) || self.parts().iter().any(|part| part.has(is))
    }

    /// Returns the minimum and maximum number of characters that it matches. A maximum of `None` is unbounded.
    pub(super) fn width(&self) -> (usize, Option<usize>) {
        match self {
            Tree::Class(_) => (1, Some(1)),
            Tree::Text(text) => (text.chars().count(), Some(text.chars().count())),
            Tree::LineEnd { .. } => (1, Some(2)),
            Tree::Cluster => (1, None),
            Tree::Empty | Tree::At(_) => (0, Some(0)),
            Tree::Group(_, tree) => tree.width(),
            Tree::Concat(parts) => parts
                .iter()
                .map(Tree::width)
                .fold((0, Some(0)), |(a, b), (c, d)| (a.saturating_add(c), b.zip(d).map(|(b, d)| b.saturating_add(d)))),
            Tree::Any(ways) => ways
                .iter()
                .map(Tree::width)
                .reduce(|(a, b), (c, d)| (a.min(c), b.zip(d).map(|(b, d)| b.max(d))))
                .unwrap_or((0, Some(0))),
            Tree::Repeat { tree, least, max, .. } => {
                let (a, b) = tree.width();
                let max = match b {
                    Some(0) => Some(0),
                    b => max.zip(b).map(|(n, b)| b.saturating_mul(n as usize)),
                };
                (a.saturating_mul(*least as usize), max)
            }
        }
    }

    /// Returns whether it can match the empty string.
    pub(super) fn may_be_empty(&self) -> bool {
        self.width().0 == 0
    }

    /// Returns whether there is only one way for it to match at a position, apart from `\R`. Java does not backtrack
    /// into such a group when it is repeated.
    pub(super) fn is_single_way(&self) -> bool {
        match self {
            Tree::Any(_) | Tree::Cluster => false,
            Tree::Repeat { tree, least, max, .. } => *max == Some(*least) && tree.is_single_way(),
            other => other.parts().iter().all(Tree::is_single_way),
        }
    }

    /// Returns whether a linear search gives the same matches as backtracking.
    pub(super) fn is_linear(&self) -> bool {
        match self {
            Tree::Cluster | Tree::LineEnd { whole: true } | Tree::At(At::LastMatch) => false,
            // The groups of a part that never matches would have no numbers.
            Tree::Repeat { max: Some(0), tree, .. } if tree.has(&Tree::is_group) => false,
            // A round that matches the empty string ends the repeat, where a linear search would go on to the next
            // alternatives. The matches differ if a round prefers the empty string, or if the position decides what it
            // can match.
            Tree::Repeat { tree, max, .. }
                if *max != Some(1)
                    && tree.may_be_empty()
                    && tree.has(&|tree| tree.prefers_nothing() || matches!(tree, Tree::At(_))) =>
            {
                false
            }
            other => other.parts().iter().all(Tree::is_linear),
        }
    }

    fn is_group(&self) -> bool {
        matches!(self, Tree::Group(..))
    }

    /// Returns whether it tries to match the empty string before anything else.
    fn prefers_nothing(&self) -> bool {
        match self {
            Tree::Repeat { least: 0, greedy: false, .. } => true,
            Tree::Any(ways) => ways.split_last().is_some_and(|(_, before)| before.iter().any(Tree::may_be_empty)),
            _ => false,
        }
    }

    /// Returns whether it has a repeated group that can match the empty string. What such a group matched last is found
    /// by going through the rounds.
    pub(super) fn has_empty_rounds(&self) -> bool {
        self.has(&|tree| matches!(tree, Tree::Repeat { tree, .. } if tree.may_be_empty() && tree.has(&Tree::is_group)))
    }
}
