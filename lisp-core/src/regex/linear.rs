//! Converts patterns to the syntax tree of regex-automata, and decides on which texts both mean the same.

use super::sets::{self, LINE_ENDS};
use super::tree::{At, Lines, Pattern, Tree};
use regex_syntax::hir::{Capture, Class, Hir, Look, Repetition};

/// What a text must be like for a linear search to give the right result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// ASCII only, because the pattern checks for word boundaries. A stepped automaton stops at other characters by
    /// itself.
    ascii: bool,
    /// No line terminator at the end of the text, because the pattern can match before it.
    no_last_line_end: bool,
    /// No line terminators other than `\n`, `\r` and `\r\n`.
    plain_lines: bool,
    /// The pattern checks for line starts. For a linear search the end of the text can be a line start as well, so a
    /// match that ends there has to be checked.
    pub(super) line_starts: bool,
}

/// Returns whether a text ends with a line terminator.
pub(super) fn ends_in_line_end(text: &str) -> bool {
    text.chars().next_back().is_some_and(|c| LINE_ENDS.iter().any(|(first, last)| (*first..=*last).contains(&c)))
}

impl Needs {
    pub(super) fn of(tree: &Tree) -> Needs {
        let asks = |is: &dyn Fn(At) -> bool| tree.has(&|tree| matches!(tree, Tree::At(at) if is(*at)));
        let starts = asks(&|at| matches!(at, At::LineStart(_)));
        Needs {
            ascii: asks(&|at| matches!(at, At::Word { .. })),
            no_last_line_end: asks(&|at| matches!(at, At::LastLineEnd(_))),
            plain_lines: asks(&|at| matches!(at, At::LineStart(Lines::Any) | At::LineEnd(Lines::Any))),
            line_starts: starts,
        }
    }

    /// Returns whether a text meets the needs, for a stepped automaton or for the other engines.
    pub(super) fn allow(self, text: &str, stepped: bool) -> bool {
        (!self.ascii || stepped || text.is_ascii())
            && !(self.no_last_line_end && ends_in_line_end(text))
            && !(self.plain_lines && has_rare_line_ends(text))
    }

    /// Returns whether the answer needs a scan of the text.
    pub(super) fn look_through(self) -> bool {
        self.ascii || self.plain_lines
    }
}

/// Returns whether a text has a line terminator other than `\n` and `\r`.
fn has_rare_line_ends(text: &str) -> bool {
    let has = |end: &str| memchr::memmem::find(text.as_bytes(), end.as_bytes()).is_some();
    !text.is_ascii() && (has("\u{85}") || has("\u{2028}") || has("\u{2029}"))
}

/// Converts a pattern to the syntax tree of regex-automata.
pub(super) fn hir(pattern: &Pattern, tree: &Tree) -> Hir {
    let all = |parts: &[Tree]| parts.iter().map(|part| hir(pattern, part)).collect::<Vec<_>>();
    let class = |set| Hir::class(Class::Unicode(set));
    match tree {
        Tree::Class(number) => pattern.classes.get(*number as usize).cloned().map_or_else(Hir::fail, class),
        Tree::Text(text) => Hir::literal(text.as_bytes()),
        Tree::At(at) => Hir::look(look(*at)),
        Tree::Concat(parts) => Hir::concat(all(parts)),
        Tree::Any(ways) => Hir::alternation(all(ways)),
        Tree::Group(index, inside) => {
            let name = pattern.names.iter().find(|(_, group)| group == index).map(|(name, _)| name.clone());
            Hir::capture(Capture { index: *index, name, sub: hir(pattern, inside).into() })
        }
        Tree::Repeat { tree, least, max, greedy } => {
            Hir::repetition(Repetition { min: *least, max: *max, greedy: *greedy, sub: hir(pattern, tree).into() })
        }
        Tree::LineEnd { whole: false } => {
            let ends = sets::of_ranges(&[('\n', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')]);
            Hir::alternation(vec![Hir::literal(*b"\r\n"), class(ends)])
        }
        Tree::Cluster | Tree::LineEnd { whole: true } => {
            debug_assert!(false, "no linear search has these");
            Hir::fail()
        }
        Tree::Empty => Hir::empty(),
    }
}

/// Converts a condition on a position, for the texts that [`Needs`] allows.
fn look(at: At) -> Look {
    match at {
        At::Start | At::LastMatch => Look::Start,
        At::End | At::LastLineEnd(_) => Look::End,
        At::LineStart(Lines::Any) => Look::StartCRLF,
        At::LineStart(Lines::Unix) => Look::StartLF,
        At::LineEnd(Lines::Any) => Look::EndCRLF,
        At::LineEnd(Lines::Unix) => Look::EndLF,
        At::Word { not: false, .. } => Look::WordUnicode,
        At::Word { not: true, .. } => Look::WordUnicodeNegate,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    #[test]
    fn texts_that_linear_searches_may_have() {
        for (pattern, text, allowed) in [
            ("a", "é\n\u{2028}", true),
            (r"\ba", "a\n", true),
            (r"\ba", "é", false),
            ("a$", "a\nb", true),
            ("a$", "a\n", false),
            ("a$", "a\u{2029}", false),
            ("(?d)a$", "a\r", false),
            ("(?m)a$", "a\r\n", true),
            ("(?m)^a", "é\na", true),
            ("(?m)^a", "\u{85}a", false),
            ("(?dm)^a", "\u{85}a", true),
            ("(?m:^)", "", true),
        ] {
            let pattern = parse(pattern).expect(pattern);
            assert_eq!(Needs::of(&pattern.tree).allow(text, false), allowed, "{pattern:?} {text:?}");
        }
    }
}
