//! The special forms: one row each, with what is said of it and the function of the analyzer that takes it apart. From the
//! rows come `doc`, `apropos` and "did you mean" besides.

use super::threading::Place;
use super::{Analyzer, Res};
use crate::compile::core::{Kind, Node};
use crate::error::Span;
use crate::syntax::Form;

/// Takes a form apart, whose parts behind the name are given. The last argument says that its value is the value of the
/// loop or function around it.
type Analyze = for<'a> fn(&mut Analyzer<'a>, &[Form], Span, bool) -> Res<Node>;

/// A special form.
pub struct SpecialForm {
    /// Its name.
    pub name: &'static str,
    /// How it is written, for people: `(if test then else?)`.
    pub usage: &'static str,
    /// One line: what it does.
    pub doc: &'static str,
    /// Programs and what they return. An answer that begins with `!` is an error's reason.
    pub examples: &'static [(&'static str, &'static str)],
    pub(super) analyze: Analyze,
    /// As in Clojure, a local name hides what is a macro there, but none of the forms beneath.
    pub(super) is_fixed: bool,
}

const fn form(
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    examples: &'static [(&'static str, &'static str)],
    analyze: Analyze,
) -> SpecialForm {
    SpecialForm { name, usage, doc, examples, analyze, is_fixed: false }
}

impl SpecialForm {
    /// No local name hides it.
    const fn fixed(mut self) -> Self {
        self.is_fixed = true;
        self
    }

    /// The special form of this name.
    pub fn by_name(name: &str) -> Option<&'static SpecialForm> {
        SPECIAL_FORMS.iter().find(|form| form.name == name)
    }
}

/// The special forms.
pub const SPECIAL_FORMS: &[SpecialForm] = &[
    form(
        "def",
        "(def name value), (def name docstring value)",
        "Gives a value a name for the rest of the program.",
        &[("(def limit 10) (inc limit)", "11"), ("(def limit)", "!invalid_arity")],
        |a, args, span, _| a.def_form(args, span, false),
    )
    .fixed(),
    form(
        "defn",
        "(defn name [parameters] body ...), (defn name docstring [parameters] body ...)",
        "Defines a function; it may call itself by its name.",
        &[("(defn twice [x] (* 2 x)) (twice 21)", "42"), ("(defn twice x)", "!invalid_form")],
        |a, args, span, _| a.defn_form(args, span),
    ),
    form(
        "defonce",
        "(defonce name value), (defonce name docstring value)",
        "Gives a value a name unless the name has a value from an earlier program.",
        &[("(defonce a 1) (defonce a 2) a", "1"), ("(defonce a)", "!invalid_arity")],
        |a, args, span, _| a.def_form(args, span, true),
    ),
    form(
        "fn",
        "(fn [parameters] body ...), (fn name [parameters] body ...)",
        "A function; parameters may be patterns, and & collects the rest. Short form: #(+ % 1).",
        &[
            ("((fn [a & more] [a more]) 1 2 3)", "[1 [2 3]]"),
            ("(map (fn double [x] (* 2 x)) [1 2])", "[2 4]"),
            ("((fn [a] a))", "!arity_mismatch"),
        ],
        |a, args, span, _| a.fn_form(args, span, None),
    ),
    form(
        "let",
        "(let [name value ...] body ...)",
        "Names values for the body; a name may be a pattern such as [a & more] or {:keys [a b] :or {b 0}}.",
        &[("(let [a 1 [b c] [2 3]] (+ a b c))", "6"), ("(let [a 1 b] a)", "!invalid_form")],
        |a, args, span, tail| a.let_form(args, span, tail),
    ),
    form(
        "loop",
        "(loop [name value ...] body ...)",
        "Names values for the body, which recur runs again with new ones.",
        &[
            ("(loop [n 3 v []] (if (zero? n) v (recur (dec n) (conj v n))))", "[3 2 1]"),
            ("(loop [i 0] (recur (inc i)))", "!loop_limit_exceeded"),
        ],
        |a, args, span, _| a.loop_form(args, span),
    ),
    form(
        "recur",
        "(recur value ...)",
        "Runs the loop or function around it again; it must be the last thing done.",
        &[
            ("(defn down [n] (if (zero? n) :done (recur (dec n)))) (down 9)", ":done"),
            ("(loop [n 3] (inc (recur (dec n))))", "!invalid_form"),
        ],
        |a, args, span, tail| a.recur_form(args, span, tail),
    )
    .fixed(),
    form(
        "case",
        "(case value constant result ... default?)",
        "The result behind the literal equal to the value, else the default or nil. Several literals: (:a :b).",
        &[("(case :b :a 1 (:b :c) 2 3)", "2"), ("(case 9 1 :one)", "nil"), ("(case)", "!invalid_form")],
        |a, args, span, tail| a.case_form(args, span, tail),
    ),
    form(
        "cond",
        "(cond test result ... :else result)",
        "The result behind the first true test, else nil.",
        &[("(cond (> 1 2) :a :else :b)", ":b"), ("(cond true)", "!invalid_cond_form")],
        |a, args, span, tail| a.cond_form(args, span, tail),
    ),
    form(
        "condp",
        "(condp f value test result ... default?)",
        "The result behind the first test for which (f test value) is true, else the default or nil.",
        &[("(condp < 50 100 :high 10 :middle :low)", ":middle"), ("(condp =)", "!invalid_form")],
        |a, args, span, tail| a.condp_form(args, span, tail),
    ),
    form(
        "if",
        "(if test then else?)",
        "One of two values; only nil and false count as false.",
        &[("(if (> 2 1) :yes :no)", ":yes"), ("(if nil 1)", "nil"), ("(if)", "!invalid_arity")],
        |a, args, span, tail| a.if_form(args, span, tail, false),
    )
    .fixed(),
    form(
        "if-let",
        "(if-let [name value] then else)",
        "Names the value for then if it is true, else does else.",
        &[("(if-let [x (:a {:a 1})] (inc x) 0)", "2"), ("(if-let [x 1] x)", "!invalid_arity")],
        |a, args, span, tail| a.if_bound(args, span, tail, false),
    ),
    form(
        "if-not",
        "(if-not test then else?)",
        "As if, with the test turned round.",
        &[("(if-not (empty? [1]) :some :none)", ":some"), ("(if-not)", "!invalid_arity")],
        |a, args, span, tail| a.if_form(args, span, tail, true),
    ),
    form(
        "if-some",
        "(if-some [name value] then else)",
        "Names the value for then if it is not nil, else does else.",
        &[("(if-some [x false] [x] :nil)", "[false]"), ("(if-some [x 1] x)", "!invalid_arity")],
        |a, args, span, tail| a.if_bound(args, span, tail, true),
    ),
    form(
        "when",
        "(when test body ...)",
        "The body's value if the test is true, else nil.",
        &[("(when (pos? 1) :a :b)", ":b"), ("(when)", "!invalid_arity")],
        |a, args, span, tail| a.when_form(args, span, tail, false),
    ),
    form(
        "when-first",
        "(when-first [name coll] body ...)",
        "Names the first element for the body; nil if there is none.",
        &[("(when-first [x [5 6]] (inc x))", "6"), ("(when-first [x 5] x)", "!type_error")],
        |a, args, span, tail| a.when_first(args, span, tail),
    ),
    form(
        "when-let",
        "(when-let [name value] body ...)",
        "Names the value for the body if it is true, else nil.",
        &[
            ("(when-let [x (get {} :a)] x)", "nil"),
            ("(when-let [x 1] (inc x))", "2"),
            ("(when-let x)", "!invalid_arity"),
        ],
        |a, args, span, tail| a.when_bound(args, span, tail, false),
    ),
    form(
        "when-not",
        "(when-not test body ...)",
        "The body's value if the test is false or nil, else nil.",
        &[("(when-not false 1)", "1"), ("(when-not)", "!invalid_arity")],
        |a, args, span, tail| a.when_form(args, span, tail, true),
    ),
    form(
        "when-some",
        "(when-some [name value] body ...)",
        "Names the value for the body if it is not nil, else nil.",
        &[("(when-some [x false] [x])", "[false]"), ("(when-some x)", "!invalid_arity")],
        |a, args, span, tail| a.when_bound(args, span, tail, true),
    ),
    form(
        "->",
        "(-> value step ...)",
        "Puts the value into each step as its first argument, one step after the other.",
        &[("(-> {:a 1} (assoc :b 2) :b)", "2"), ("(->)", "!invalid_thread_form")],
        |a, args, span, tail| a.thread(args, span, tail, Place::First),
    ),
    form(
        "->>",
        "(->> value step ...)",
        "Puts the value into each step as its last argument, one step after the other.",
        &[("(->> [1 2 3] (filter odd?) (map inc))", "[2 4]"), ("(->>)", "!invalid_thread_form")],
        |a, args, span, tail| a.thread(args, span, tail, Place::Last),
    ),
    form(
        "as->",
        "(as-> value name form ...)",
        "Names the value, then each form's result anew, for the next form.",
        &[("(as-> 5 n (+ n 1) (* n n))", "36"), ("(as-> 1 [x] x)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_as(args, span),
    ),
    form(
        "cond->",
        "(cond-> value test step ...)",
        "As ->, leaving out the steps whose test is not true.",
        &[("(cond-> 1 true inc false (* 100))", "2"), ("(cond-> 1 true)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_cond(args, span, Place::First),
    ),
    form(
        "cond->>",
        "(cond->> value test step ...)",
        "As ->>, leaving out the steps whose test is not true.",
        &[("(cond->> [1 2] true (map inc))", "[2 3]"), ("(cond->> 1 true)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_cond(args, span, Place::Last),
    ),
    form(
        "some->",
        "(some-> value step ...)",
        "As ->, with nil as the answer as soon as a step answers nil.",
        &[("(some-> {:a {}} :a :b inc)", "nil"), ("(some-> {:a 1} :a inc)", "2"), ("(some->)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_some(args, span, Place::First),
    ),
    form(
        "some->>",
        "(some->> value step ...)",
        "As ->>, with nil as the answer as soon as a step answers nil.",
        &[("(some->> [1 2] (map inc) first)", "2"), ("(some->>)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_some(args, span, Place::Last),
    ),
    form(
        "and",
        "(and x ...)",
        "The first value that is nil or false, else the last; true without any.",
        &[("(and 1 nil 2)", "nil"), ("(and 1 2)", "2")],
        |a, args, span, tail| a.and_form(args, span, tail),
    ),
    form(
        "or",
        "(or x ...)",
        "The first value that is neither nil nor false, else the last; nil without any.",
        &[("(or nil 0 1)", "0"), ("(or)", "nil")],
        |a, args, span, tail| a.or_form(args, span, tail),
    ),
    form(
        "comment",
        "(comment ...)",
        "Leaves out what it holds, and answers nil.",
        &[("(do 1 (comment (left out)))", "nil"), ("(comment (unclosed)", "!parse_error")],
        |_, _, span, _| Ok(Node::nil(span)),
    ),
    form(
        "do",
        "(do form ...)",
        "Does the forms in turn; the value is that of the last.",
        &[("(do 1 2)", "2"), ("(do (/ 1 0) 2)", "!arithmetic_error")],
        |a, args, span, tail| a.body(args, span, tail),
    )
    .fixed(),
    form(
        "program",
        "(program form ...)",
        "Does the forms in turn, as a whole program; the value is that of the last.",
        &[("(program (def a 1) (inc a))", "2"), ("(program (/ 1 0))", "!arithmetic_error")],
        |a, args, span, tail| a.program_form(args, span, tail),
    ),
    form(
        "for",
        "(for [name coll ...] body ...)",
        "The body's value for each element, as a vector; also :when test, :while test and :let [name value].",
        &[
            ("(for [x [1 2 3] :when (odd? x) y [:a :b]] [x y])", "[[1 :a] [1 :b] [3 :a] [3 :b]]"),
            ("(for [x 5] x)", "!type_error"),
        ],
        |a, args, span, _| a.for_form(args, span, true),
    ),
    form(
        "doseq",
        "(doseq [name coll ...] body ...)",
        "Does the body for each element and answers nil; also :when test, :while test and :let [name value].",
        &[("(def n 0) (doseq [x [1 2]] (def n (+ n x))) n", "3"), ("(doseq [x 5] x)", "!type_error")],
        |a, args, span, _| a.for_form(args, span, false),
    ),
    form(
        "quote",
        "(quote symbol)",
        "The symbol itself, unevaluated. Short form: 'symbol.",
        &[("'total", "'total"), ("(quote (1 2))", "!invalid_form")],
        |a, args, span, _| a.quote_form(args, span),
    )
    .fixed(),
    form(
        "return",
        "(return value)",
        "Ends the whole program with the value, from any depth.",
        &[("(do (map #(return %) [7 8]) :not-reached)", "7"), ("(return)", "!invalid_arity")],
        |a, args, span, _| a.end_form("return", Kind::Return, args, span),
    ),
    form(
        "fail",
        "(fail value)",
        "Ends the whole program as failed, with the value as the reason, from any depth.",
        &[("(fail {:missing :rows})", "{:missing :rows}"), ("(fail)", "!invalid_arity")],
        |a, args, span, _| a.end_form("fail", Kind::Fail, args, span),
    ),
];
