//! Operands of a wrong type, and tests that always go the same way.

use super::known::{Habit, Known};
use super::shape::Types;
use super::walk::Checker;
use super::{Finding, FindingKind};
use crate::compile::core::{Constant, FnNode, Kind, Node, Var};
use crate::error::Span;

/// Types that are not numbers.
const NO_NUMBER: Types = Types(
    Types::NIL.0 | Types::BOOL.0 | Types::STRING.0 | Types::KEYWORD.0 | Types::LIST.0 | Types::MAP.0 | Types::SET.0,
);
/// Types that functions of strings refuse.
const NO_STRING: Types =
    Types(Types::NIL.0 | Types::BOOL.0 | Types::NUMBER.0 | Types::LIST.0 | Types::MAP.0 | Types::SET.0);

/// Returns what a function needs, the types of operands with which it fails, and how many of its operands that holds for; `None`
/// if none is known.
pub(super) fn refused(name: &str) -> Option<(&'static str, Types, usize)> {
    Some(match name {
        "+" | "-" | "*" | "/" => ("numbers", NO_NUMBER, usize::MAX),
        "inc" | "dec" | "quot" | "rem" | "mod" => ("numbers", NO_NUMBER, 2),
        "sum-by" | "avg-by" => ("numbers", NO_NUMBER.without(Types::NIL), usize::MAX),
        "upper-case" | "lower-case" | "capitalize" | "trim" | "triml" | "trimr" | "split" | "split-lines"
        | "starts-with?" | "ends-with?" => ("a string", NO_STRING, 1),
        _ => return None,
    })
}

impl<'p> Checker<'p> {
    /// Looks at the operands of a call of a function by name.
    pub(super) fn operands(&mut self, name: &str, arguments: &[Known<'p>], span: Span) {
        match (name, arguments) {
            ("sum-by" | "avg-by", _) => {}
            ("sort", [list]) => {
                let element = Known { exact: list.exact, ..Known::of(list.shape.element()) };
                self.order(name, &element, span);
            }
            _ if refused(name).is_some() => self.operand(name, &arguments.iter().collect::<Vec<_>>(), span),
            _ => {}
        }
    }

    /// Looks at operands of a function.
    pub(super) fn operand(&mut self, name: &str, operands: &[&Known<'p>], span: Span) {
        let Some((needs, refused, count)) = refused(name) else { return };
        let exact = operands.iter().take(count).filter_map(|value| self.exact_types(value));
        // The first operand that is wrong is told.
        let wrong = exact.clone().find(|types| types.may_be(refused));
        let finding = wrong.map(|types| {
            let how_often = if types.is_within(refused) { "gets" } else { "sometimes gets" };
            let wrong = types.and(refused);
            let repair = match (wrong, needs) {
                (Types::NIL, "numbers") => Some("give nil a value: (or x 0)"),
                (Types::NIL, _) => Some("give nil a value: (or s \"\")"),
                (Types::STRING, "numbers") => Some("convert it: (parse-double s)"),
                (_, "a string") if wrong.is_within(Types::NUMBER) => Some("convert it: (str n)"),
                _ => None,
            };
            Finding {
                kind: FindingKind::WrongType,
                span,
                message: format!("{name} needs {needs}, and {how_often} {} here: the call fails", wrong.named()),
                repair: repair.map(str::to_owned),
                fails: false,
            }
        });
        self.judge(span, finding);
    }

    /// Looks at values that are put in order.
    pub(super) fn order(&mut self, name: &str, key: &Known<'p>, span: Span) {
        // In a part that runs several times they may be of one type each time.
        let is_mixed = self.pass == 0
            && self.exact_types(key).is_some_and(|types| types.may_be(Types::NUMBER) && types.may_be(Types::STRING));
        let finding = is_mixed.then(|| Finding {
            kind: FindingKind::WrongType,
            span,
            message: format!("{name} compares numbers with strings here, which have no order: the call fails"),
            repair: Some("convert them: (parse-double s), or (str n)".to_owned()),
            fails: false,
        });
        self.judge(span, finding);
    }

    /// Returns the types of a value if each of them surely occurs.
    fn exact_types(&self, value: &Known<'p>) -> Option<Types> {
        let types = value.shape.types;
        (value.exact == Some(self.pass) && types != Types::ANY && types != Types::NEVER).then_some(types)
    }

    /// Looks at a test that always goes the same way.
    pub(super) fn condition(&mut self, node: &'p Node, test: &Known<'p>) {
        let (message, repair) = match (&node.kind, test.habit) {
            (Kind::Builtin(_) | Kind::Fn(_) | Kind::Tool(_), _) => {
                ("this test is a function, which is always true".to_owned(), "call it, as in (even? n)")
            }
            // A parameter may be tested for other calls.
            (Kind::Local(var), Some(Habit::List)) if self.is_parameter(*var) => return self.right(node.span, "test"),
            (_, Some(Habit::List)) => {
                ("this test is a list, which is true even if it is empty".to_owned(), "write (seq ...) around it")
            }
            _ => return self.right(node.span, "test"),
        };
        self.constant_test("test", node.span, message, repair);
    }

    fn is_parameter(&self, var: Var) -> bool {
        let has = |function: &FnNode| function.params.contains(&var);
        self.active.last().is_some_and(|(function, _)| has(function) || function.others.iter().any(has))
    }

    /// `(int? (/ a b))`
    pub(super) fn whole_quotient(&mut self, name: &str, value: &Known<'p>, span: Span) {
        match value.habit {
            Some(Habit::Quotient) => {
                let message = format!("{name} of a quotient is never true: / returns a float");
                self.constant_test("int", span, message, "write (zero? (mod a b))");
            }
            _ => self.right(span, "int"),
        }
    }

    /// `(contains? list 0)`
    pub(super) fn index_for_member(&mut self, list: &Known<'p>, value: &Known<'p>, span: Span) {
        let of_numbers = list.shape.element().types.may_be(Types::NUMBER);
        match (list.shape.types, value.constant) {
            (Types::LIST, Some((Constant::Int(_), _))) if !of_numbers => {
                let message =
                    "contains? looks for an element of a list, not for an index, and none is a number".to_owned();
                self.constant_test("member", span, message, "compare with the length: (< index (count list))");
            }
            _ => self.right(span, "member"),
        }
    }

    fn constant_test(&mut self, what: &str, span: Span, message: String, repair: &str) {
        let finding =
            Finding { kind: FindingKind::ConstantTest, span, message, repair: Some(repair.to_owned()), fails: false };
        self.wrong(what, finding);
    }

    /// Looks at the result of the program. A function that is named or made on purpose may be what is wanted, as at a prompt.
    pub(super) fn result(&mut self, value: &Known<'p>, span: Span) {
        if value.shape.types == Types::FN && value.function.is_none() {
            let finding = Finding {
                kind: FindingKind::FunctionResult,
                span,
                message: "the result of the program is a function".to_owned(),
                repair: Some("call it, or pass the list that it lacks: (map f list)".to_owned()),
                fails: false,
            };
            self.wrong("result", finding);
        }
    }
}
