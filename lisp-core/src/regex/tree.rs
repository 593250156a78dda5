//! A pattern as a tree. Groups stand in each other to a bound (`parse::MOST_DEPTH`), and so has every recursion over it one.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::sync::Arc;

/// A pattern that was read.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) tree: Tree,
    /// The classes of characters that the tree refers to.
    pub(super) classes: Vec<ClassUnicode>,
    /// Groups, the whole match included.
    pub(super) groups: usize,
    /// The names of groups, and their numbers.
    pub(super) names: Vec<(Box<str>, u32)>,
}

impl Pattern {
    /// Does it have a class of many ranges? As bytes it has hundreds of states, most of all backwards; for the backtracking machine
    /// it is one step.
    pub(super) fn has_wide_class(&self) -> bool {
        const NARROW: usize = 16;
        self.classes.iter().any(|class| class.ranges().len() > NARROW)
    }

    /// At how many places of the pattern a search can be at once, counted repeats written out: an estimate by which it pays.
    pub(super) fn weight(&self) -> u64 {
        self.sum(&self.tree, &Measure { of_class: |_| 1, of_repeat: weight_of_repeat }).max(1)
    }

    /// How many states the pattern has as an automaton over bytes, with the ways between them: an upper bound to what a byte can
    /// take.
    pub(super) fn states(&self) -> u64 {
        self.sum(&self.tree, &Measure { of_class: states_of_class, of_repeat: |_| 2 }).max(1)
    }

    fn sum(&self, tree: &Tree, measure: &Measure) -> u64 {
        match tree {
            Tree::Empty => 0,
            Tree::Text(text) => text.chars().count() as u64,
            Tree::Class(number) => self.classes.get(*number as usize).map_or(1, measure.of_class),
            Tree::Repeat { tree, least, most, .. } => {
                let times = u64::from((*least).max(most.unwrap_or(0)).max(1));
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

/// What classes and repeats count for.
struct Measure {
    of_class: fn(&ClassUnicode) -> u64,
    of_repeat: fn(&Tree) -> u64,
}

/// Behind each round of a repeat a search is at the beginning of all that are nested in it.
fn weight_of_repeat(inside: &Tree) -> u64 {
    if inside.has(&|tree| matches!(tree, Tree::Repeat { .. })) { 3 } else { 0 }
}

/// The sequences of bytes that a class consists of, and the bytes of each.
fn states_of_class(class: &ClassUnicode) -> u64 {
    let of_range = |range: &ClassUnicodeRange| {
        let (first, last) = (range.start().len_utf8(), range.end().len_utf8());
        // A range from one length to another has several sequences of each.
        match last {
            1 => 0,
            _ if first == last => 2 * last as u64,
            _ => 6 * last as u64,
        }
    };
    1 + class.iter().map(of_range).sum::<u64>()
}

/// A part of a pattern.
#[derive(Debug)]
pub(super) enum Tree {
    /// Nothing.
    Empty,
    /// One character of a class.
    Class(u32),
    /// These characters.
    Text(Arc<str>),
    /// What stands around the place, without going on.
    At(At),
    /// One after the other.
    Concat(Vec<Tree>),
    /// One of these, the first that goes.
    Any(Vec<Tree>),
    Group(u32, Box<Tree>),
    /// As often as there is text when there is no `most`.
    Repeat {
        tree: Box<Tree>,
        least: u32,
        most: Option<u32>,
        greedy: bool,
    },
    /// Any end of a line: `\R`. If it is `whole`, `\r\n` is one only.
    LineEnd {
        whole: bool,
    },
    /// An extended grapheme cluster: `\X`.
    Cluster,
}

/// A condition on a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Start,
    End,
    /// The end, or what stands before the line's end there.
    LastLineEnd(Lines),
    /// `^` with the flag `m`: not at the end of the text.
    LineStart(Lines),
    /// `$` with the flag `m`.
    LineEnd(Lines),
    /// `\b`, or `\B` when it is `not`.
    Word {
        unicode: bool,
        not: bool,
    },
    /// Where the match before ended: `\G`.
    LastMatch,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    Any,
    /// `\n` only: the flag `d`.
    Unix,
}

/// Which letters are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    Ascii,
    Unicode,
}

impl Tree {
    /// These one after the other.
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

    /// The parts that it consists of.
    pub(super) fn parts(&self) -> &[Tree] {
        match self {
            Tree::Concat(parts) | Tree::Any(parts) => parts,
            Tree::Group(_, tree) | Tree::Repeat { tree, .. } => std::slice::from_ref(tree),
            _ => &[],
        }
    }

    /// Makes every `\R` in it a whole one.
    pub(super) fn keep_line_ends(&mut self) {
        match self {
            Tree::LineEnd { whole } => *whole = true,
            Tree::Concat(parts) | Tree::Any(parts) => parts.iter_mut().for_each(Tree::keep_line_ends),
            Tree::Group(_, tree) | Tree::Repeat { tree, .. } => tree.keep_line_ends(),
            Tree::Empty | Tree::Class(_) | Tree::Text(_) | Tree::At(_) | Tree::Cluster => {}
        }
    }

    /// Is it, or a part of it, one of these?
    pub(super) fn has(&self, is: &impl Fn(&Tree) -> bool) -> bool {
        is(self) || self.parts().iter().any(|part| part.has(is))
    }

    /// The least and the most characters that it matches.
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
            Tree::Repeat { tree, least, most, .. } => {
                let (a, b) = tree.width();
                let most = match b {
                    Some(0) => Some(0),
                    b => most.zip(b).map(|(n, b)| b.saturating_mul(n as usize)),
                };
                (a.saturating_mul(*least as usize), most)
            }
        }
    }

    /// Can it match nothing?
    pub(super) fn may_be_empty(&self) -> bool {
        self.width().0 == 0
    }

    /// Is there one way only in which it matches at a place, but for `\R`? Java then matches it whole or not when it is
    /// repeated.
    pub(super) fn is_single_way(&self) -> bool {
        match self {
            Tree::Any(_) | Tree::Cluster => false,
            Tree::Repeat { tree, least, most, .. } => *most == Some(*least) && tree.is_single_way(),
            other => other.parts().iter().all(Tree::is_single_way),
        }
    }

    /// Can a linear search match it as backtracking does?
    pub(super) fn is_linear(&self) -> bool {
        match self {
            Tree::Cluster | Tree::LineEnd { whole: true } | Tree::At(At::LastMatch) => false,
            // The groups of what is not there would have no numbers.
            Tree::Repeat { most: Some(0), tree, .. } if tree.has(&Tree::is_group) => false,
            // A round that matches nothing is the last, where a linear search would go on to the ways behind it. These lead to other
            // matches where a round tries nothing first, or where what it may match depends on the place.
            Tree::Repeat { tree, most, .. }
                if *most != Some(1)
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

    /// Does it try to match nothing before it tries something?
    fn prefers_nothing(&self) -> bool {
        match self {
            Tree::Repeat { least: 0, greedy: false, .. } => true,
            Tree::Any(ways) => ways.split_last().is_some_and(|(_, before)| before.iter().any(Tree::may_be_empty)),
            _ => false,
        }
    }

    /// Is there a repeat of a group that can match nothing? Then what the group matched last is found by going through
    /// the rounds.
    pub(super) fn has_empty_rounds(&self) -> bool {
        self.has(&|tree| matches!(tree, Tree::Repeat { tree, .. } if tree.may_be_empty() && tree.has(&Tree::is_group)))
    }
}
