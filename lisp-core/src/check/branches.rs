//! Branches, and keys that are not wrong because of them.

use super::MAX_FINDINGS;
use super::known::{Known, Missed};
use super::shape::name_of;
use super::walk::Checker;
use crate::compile::core::{Constant, Kind, Node};
use crate::error::Span;
use std::rc::Rc;

impl<'p> Checker<'p> {
    pub(super) fn branches(&mut self, node: &'p Node) -> Known<'p> {
        match &node.kind {
            Kind::If(condition, then, otherwise) => {
                let test = self.visit(condition);
                self.condition(condition, &test);
                self.either(&test, then, otherwise)
            }
            Kind::Cond(clauses, last) => {
                let mut value = Known::never();
                let (before, mut missed) = (self.found.len(), Vec::new());
                for (condition, then) in clauses {
                    let test = self.visit_perhaps(condition);
                    self.condition(condition, &test);
                    missed.extend(test.missed.clone());
                    if test.holds() != Some(false) {
                        let then = self.visit_perhaps(then);
                        value = self.join(value, then);
                    }
                    if test.holds() == Some(true) {
                        self.excuse_missed(missed.iter(), before);
                        return value;
                    }
                }
                let last = self.visit_perhaps(last);
                self.excuse_missed(missed.iter(), before);
                self.join(value, last)
            }
            Kind::And(nodes) => {
                let mut value = Known::never();
                let mut truth = Some(true);
                for node in nodes {
                    let next = self.visit_perhaps(node);
                    value = self.join(value, next.clone());
                    truth = next.holds().filter(|holds| !holds || truth.is_some());
                    if truth == Some(false) {
                        break;
                    }
                }
                Known { truth, constant: None, ..value }
            }
            Kind::Or(nodes) => self.first_of(nodes),
            Kind::Case(value, clauses, default) => {
                let value = self.visit(value);
                let constants = clauses.iter().flat_map(|(constants, _)| constants);
                self.compare_with_all(&value, constants, node.span);
                let mut result = self.visit_perhaps(default);
                for (_, then) in clauses {
                    let then = self.visit_perhaps(then);
                    result = self.join(result, then);
                }
                result
            }
            _ => Known::unknown(),
        }
    }

    fn either(&mut self, test: &Known<'p>, then: &'p Node, otherwise: &'p Node) -> Known<'p> {
        let before = self.found.len();
        let value = match test.holds() {
            Some(true) => self.visit(then),
            Some(false) => self.visit(otherwise),
            None => {
                let then = self.visit_perhaps(then);
                let otherwise = self.visit_perhaps(otherwise);
                self.join(then, otherwise)
            }
        };
        self.excuse_missed(test.missed.iter(), before);
        value
    }

    /// A key that is tested is not wrong if the one that is probably meant is read then, as in
    /// `(if-let [t (:totals r)] t (:total r))`. `before` is how many keys had been found before.
    pub(super) fn excuse_missed<'m>(&mut self, missed: impl Iterator<Item = &'m Rc<Missed>>, before: usize) {
        for missed in missed {
            // What is read of no map is tested for that.
            let found = self.found.get(before..).unwrap_or_default();
            if missed.meant.as_ref().is_none_or(|meant| found.contains(meant)) {
                self.right(missed.span, &missed.name);
                self.excuse_data(&missed.name);
            }
        }
    }

    /// A key that is read of no map is not wrong where just that is tested, or there is a default for it.
    pub(super) fn excuse_no_map(&mut self, value: &Known<'p>) {
        if let Some(missed) = value.missed.as_deref().filter(|missed| missed.is_no_map) {
            self.right(missed.span, &missed.name);
        }
    }

    /// `or`. Keys of alternative names are not wrong: `(or (:total r) (:totals r))`.
    fn first_of(&mut self, nodes: &'p [Node]) -> Known<'p> {
        let mut value = Known::never();
        let (before, mut missed) = (self.found.len(), Vec::new());
        let mut truth = Some(false);
        for node in nodes {
            let next = self.visit_perhaps(node);
            missed.extend(next.missed.clone());
            truth = next.holds().filter(|holds| *holds || truth.is_some());
            value = self.join(value, next);
            if truth == Some(true) {
                break;
            }
        }
        self.excuse_missed(missed.iter(), before);
        self.excuse_spellings(nodes);
        Known { truth, constant: None, ..value }
    }

    /// A comparison with a keyword and with its text is not wrong: `(or (= s :paid) (= s "paid"))`.
    fn excuse_spellings(&mut self, nodes: &'p [Node]) {
        let compared = |node: &'p Node| match &node.kind {
            Kind::CallBuiltin(id, arguments) if self.rows.row(*id).name == "=" => {
                arguments.iter().find_map(|argument| match &argument.kind {
                    Kind::Const(Constant::Keyword(text)) => Some((node.span, &**text, true)),
                    Kind::Const(Constant::Str(text)) => Some((node.span, &**text, false)),
                    _ => None,
                })
            }
            _ => None,
        };
        let all: Vec<_> = nodes.iter().take(MAX_FINDINGS).filter_map(compared).collect();
        for (span, text, is_keyword) in &all {
            if all.iter().any(|(_, other, other_is)| other == text && other_is != is_keyword) {
                self.right(*span, "=");
            }
        }
    }

    /// A key whose default is another key is not wrong: `(:totals r (:total r))` reads the first of two names.
    pub(super) fn excuse(&mut self, key: &Constant, span: Span, default: &Node) {
        if matches!(default.kind, Kind::Key(..))
            && let Some(name) = name_of(key)
        {
            self.right(span, &name);
        }
    }
}
