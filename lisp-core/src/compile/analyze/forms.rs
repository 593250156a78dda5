//! The special forms: one row each, with its documentation and the analyzer's function for it. The rows are also the
//! source of `doc`, `apropos` and "did you mean".

use super::threading::Place;
use super::{Analyzer, Res};
use crate::compile::core::{Kind, Node};
use crate::error::Span;
use crate::syntax::Form;

/// Analyzes a form, given the parts after its name. The last argument is true if its value is the value of the loop or
/// function around it.
type Analyze = for<'a> fn(&mut Analyzer<'a>, &[Form], Span, bool) -> Res<Node>;

/// A special form.
pub struct SpecialForm {
    /// The name.
    pub name: &'static str,
    /// The syntax for people: `(if test then else?)`.
    pub usage: &'static str,
    /// The documentation, in one line.
    pub doc: &'static str,
    /// Programs and their results. A result that starts with `!` is an error's reason.
    pub examples: &'static [(&'static str, &'static str)],
    pub(super) analyze: Analyze,
    /// False for forms that local names hide, because they are macros in Clojure.
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
    /// Makes it a form that no local name hides.
    const fn fixed(mut self) -> Self {
        self.is_fixed = true;
        self
    }

    /// Returns the special form with this name.
    pub fn by_name(name: &str) -> Option<&'static SpecialForm> {
        let mut left = BY_LETTER.get(*name.as_bytes().first()? as usize).copied()?;
        while left != 0 {
            let form = &SPECIAL_FORMS[left.trailing_zeros() as usize];
            if form.name == name {
                return Some(form);
            }
            left &= left - 1;
        }
        None
    }
}

/// For each letter, a bit for each form whose name starts with it. Every list of a program is looked up here, and few
/// are special forms.
const BY_LETTER: [u64; 128] = {
    let (mut forms, mut i) = ([0; 128], 0);
    while i < SPECIAL_FORMS.len() {
        forms[SPECIAL_FORMS[i].name.as_bytes()[0] as usize] |= 1 << i;
        i += 1;
    }
    forms
};

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
        "(defn name [parameters] body ...), (defn name docstring ([a] body ...) ([a b] body ...))",
        "Defines a function; it may call itself by its name.",
        &[("(defn twice [x] (* 2 x)) (twice 21)", "42"), ("(defn twice x)", "!invalid_form")],
        |a, args, span, _| a.defn_form(args, span),
    ),
    form(
        "defn-",
        "(defn- name [parameters] body ...)",
        "Same as defn.",
        &[("(defn- twice [x] (* 2 x)) (twice 21)", "42"), ("(defn- twice x)", "!invalid_form")],
        |a, args, span, _| a.defn_form(args, span),
    ),
    form(
        "declare",
        "(declare name ...)",
        "Announces names that are defined further down.",
        &[
            ("(declare b) (defn a [] (b)) (defn b [] 1) (a)", "1"),
            ("(declare b) (b)", "!unbound_var"),
            ("(declare 1)", "!invalid_form"),
        ],
        |a, args, span, _| a.declare_form(args, span),
    ),
    form(
        "letfn",
        "(letfn [(name [parameters] body ...) ...] body ...)",
        "Names functions for the body; each can call the others.",
        &[
            ("(letfn [(f [n] (if (> n 0) (g n) :end)) (g [n] (f (dec n)))] (f 3))", ":end"),
            ("(letfn [f] 1)", "!invalid_form"),
        ],
        |a, args, span, tail| a.letfn_form(args, span, tail),
    ),
    form(
        "defonce",
        "(defonce name value), (defonce name docstring value)",
        "Gives a value a name unless the name already has a value, from this program or an earlier one.",
        &[("(defonce a 1) (defonce a 2) a", "1"), ("(defonce a)", "!invalid_arity")],
        |a, args, span, _| a.def_form(args, span, true),
    ),
    form(
        "fn",
        "(fn [parameters] body ...), (fn name [parameters] body ...), (fn ([a] body ...) ([a b] body ...))",
        "Creates a function; parameters may be patterns, and & collects the rest. Short form: #(+ % 1).",
        &[
            ("((fn [a & more] [a more]) 1 2 3)", "[1 [2 3]]"),
            ("(map (fn double [x] (* 2 x)) [1 2])", "[2 4]"),
            ("((fn ([a] [a]) ([a b] {a b})) 1 2)", "{1 2}"),
            ("((fn [a] a))", "!arity_mismatch"),
        ],
        |a, args, span, _| a.fn_form(args, span),
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
        "Repeats the enclosing loop or function with new values; must be in last position.",
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
        "Returns the result after the literal equal to the value, otherwise the default or nil. Several literals: (:a :b).",
        &[
            ("(case :b :a 1 (:b :c) 2 3)", "2"),
            ("(case [1] [1] :one)", ":one"),
            ("(case 9 1 :one)", "nil"),
            ("(case)", "!invalid_form"),
        ],
        |a, args, span, tail| a.case_form(args, span, tail),
    ),
    form(
        "cond",
        "(cond test result ... :else result)",
        "Returns the result after the first true test, otherwise nil.",
        &[("(cond (> 1 2) :a :else :b)", ":b"), ("(cond true)", "!invalid_cond_form")],
        |a, args, span, tail| a.cond_form(args, span, tail),
    ),
    form(
        "condp",
        "(condp f value test result ... default?), (condp f value test :>> function ...)",
        "Returns the result after the first test for which (f test value) is true, otherwise the default or nil.",
        &[
            ("(condp < 50 100 :high 10 :middle :low)", ":middle"),
            ("(condp some [2] #{2} :>> inc)", "3"),
            ("(condp =)", "!invalid_form"),
        ],
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
        "(if-let [name value] then else?)",
        "If the value is true, evaluates then with the name bound to it; otherwise evaluates else.",
        &[
            ("(if-let [x (:a {:a 1})] (inc x) 0)", "2"),
            ("(if-let [[a b] [1 2]] (+ a b))", "3"),
            ("(if-let [x 1])", "!invalid_arity"),
        ],
        |a, args, span, tail| a.if_bound(args, span, tail, false),
    ),
    form(
        "if-not",
        "(if-not test then else?)",
        "Like if, with the test negated.",
        &[("(if-not (empty? [1]) :some :none)", ":some"), ("(if-not)", "!invalid_arity")],
        |a, args, span, tail| a.if_form(args, span, tail, true),
    ),
    form(
        "if-some",
        "(if-some [name value] then else?)",
        "If the value is not nil, evaluates then with the name bound to it; otherwise evaluates else.",
        &[("(if-some [x false] [x] :nil)", "[false]"), ("(if-some [x 1])", "!invalid_arity")],
        |a, args, span, tail| a.if_bound(args, span, tail, true),
    ),
    form(
        "when",
        "(when test body ...)",
        "Returns the body's value if the test is true, else nil.",
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
        "Returns the body's value if the test is false or nil, else nil.",
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
        "Binds the name to the value, then to the result of each form, for the next form.",
        &[("(as-> 5 n (+ n 1) (* n n))", "36"), ("(as-> 1 [x] x)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_as(args, span),
    ),
    form(
        "cond->",
        "(cond-> value test step ...)",
        "Like ->, but skips the steps whose test is not true.",
        &[("(cond-> 1 true inc false (* 100))", "2"), ("(cond-> 1 true)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_cond(args, span, Place::First),
    ),
    form(
        "cond->>",
        "(cond->> value test step ...)",
        "Like ->>, but skips the steps whose test is not true.",
        &[("(cond->> [1 2] true (map inc))", "[2 3]"), ("(cond->> 1 true)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_cond(args, span, Place::Last),
    ),
    form(
        "some->",
        "(some-> value step ...)",
        "Like ->, but stops and returns nil as soon as a step returns nil.",
        &[("(some-> {:a {}} :a :b inc)", "nil"), ("(some-> {:a 1} :a inc)", "2"), ("(some->)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_some(args, span, Place::First),
    ),
    form(
        "some->>",
        "(some->> value step ...)",
        "Like ->>, but stops and returns nil as soon as a step returns nil.",
        &[("(some->> [1 2] (map inc) first)", "2"), ("(some->>)", "!invalid_thread_form")],
        |a, args, span, _| a.thread_some(args, span, Place::Last),
    ),
    form(
        "and",
        "(and x ...)",
        "Returns the first value that is nil or false, otherwise the last; true without arguments.",
        &[("(and 1 nil 2)", "nil"), ("(and 1 2)", "2")],
        |a, args, span, tail| a.and_form(args, span, tail),
    ),
    form(
        "or",
        "(or x ...)",
        "Returns the first value that is neither nil nor false, otherwise the last; nil without arguments.",
        &[("(or nil 0 1)", "0"), ("(or)", "nil")],
        |a, args, span, tail| a.or_form(args, span, tail),
    ),
    form(
        "comment",
        "(comment ...)",
        "Ignores its content and returns nil.",
        &[("(do 1 (comment (left out)))", "nil"), ("(comment (unclosed)", "!parse_error")],
        |_, _, span, _| Ok(Node::nil(span)),
    ),
    form(
        "ns",
        "(ns name (:require [namespace :as alias :refer [name ...]]) (:import class))",
        "Defines aliases; all namespaces and classes exist without it.",
        &[
            ("(ns my.app (:require [clojure.string :as s])) (s/trim \" a \")", "\"a\""),
            ("(ns my.app (:require [clojure.data.csv :as csv]))", "!invalid_form"),
            ("(ns)", "!invalid_arity"),
        ],
        |a, args, span, _| a.ns_form(args, span),
    ),
    form(
        "require",
        "(require '[namespace :as alias :refer [name ...]])",
        "Defines aliases; all namespaces exist without it.",
        &[
            ("(require '[clojure.string :as s]) (s/trim \" a \")", "\"a\""),
            ("(require 'clojure.data.csv)", "!invalid_form"),
            ("(require)", "!invalid_arity"),
        ],
        |a, args, span, _| a.require_form(args, span),
    ),
    form(
        "use",
        "(use 'namespace), (use '[namespace :only (name ...)])",
        "Like require; its functions can then be written without their namespace.",
        &[
            ("(use '[clojure.string :only (reverse)]) (reverse \"abc\")", "\"cba\""),
            ("(use 'clojure.data.csv)", "!invalid_form"),
            ("(use)", "!invalid_arity"),
        ],
        |a, args, span, _| a.use_form(args, span),
    ),
    form(
        "import",
        "(import class ...)",
        "Checks that the classes exist; importing them is not necessary.",
        &[
            ("(import java.time.LocalDate) (str (LocalDate/parse \"2024-02-28\"))", "\"2024-02-28\""),
            ("(import java.io.File)", "!unsupported_java_class"),
            ("(import)", "!invalid_arity"),
        ],
        |a, args, span, _| a.import_form(args, span),
    ),
    form(
        "in-ns",
        "(in-ns 'name)",
        "Returns nil: a program has no namespace of its own.",
        &[("(in-ns 'my.app)", "nil"), ("(in-ns)", "!invalid_arity")],
        |a, args, span, _| a.in_ns_form(args, span),
    ),
    form(
        "do",
        "(do form ...)",
        "Evaluates the forms in order and returns the value of the last.",
        &[("(do 1 2)", "2"), ("(do (/ 1 0) 2)", "!arithmetic_error")],
        |a, args, span, tail| a.body(args, span, tail),
    )
    .fixed(),
    form(
        "program",
        "(program form ...)",
        "Evaluates the forms in order, as a program does, and returns the value of the last.",
        &[("(program (def a 1) (inc a))", "2"), ("(program (/ 1 0))", "!arithmetic_error")],
        |a, args, span, tail| a.program_form(args, span, tail),
    ),
    form(
        "dotimes",
        "(dotimes [name n] body ...)",
        "Evaluates the body for each number from 0 to n-1 and returns nil.",
        &[("(def n 0) (dotimes [i 4] (def n (+ n i))) n", "6"), ("(dotimes [i] i)", "!invalid_arity")],
        |a, args, span, _| a.dotimes_form(args, span),
    ),
    form(
        "while",
        "(while test body ...)",
        "Evaluates the body as long as the test is true and returns nil; def, tools and functions of the program can change the test.",
        &[
            ("(def n 0) (while (< n 5) (def n (inc n))) n", "5"),
            ("(while true 1)", "!invalid_form"),
            ("(while)", "!invalid_arity"),
        ],
        |a, args, span, _| a.while_form(args, span),
    ),
    form(
        "for",
        "(for [name coll ...] body ...)",
        "Returns the body's values for each element, as a vector; also :when test, :while test and :let [name value].",
        &[
            ("(for [x [1 2 3] :when (odd? x) y [:a :b]] [x y])", "[[1 :a] [1 :b] [3 :a] [3 :b]]"),
            ("(for [x 5] x)", "!type_error"),
        ],
        |a, args, span, _| a.for_form(args, span, true),
    ),
    form(
        "doseq",
        "(doseq [name coll ...] body ...)",
        "Evaluates the body for each element and returns nil; also takes :when test, :while test and :let [name value].",
        &[("(def n 0) (doseq [x [1 2]] (def n (+ n x))) n", "3"), ("(doseq [x 5] x)", "!type_error")],
        |a, args, span, _| a.for_form(args, span, false),
    ),
    form(
        "lazy-seq",
        "(lazy-seq body ...)",
        "Returns the elements of the body's value, computed at once, so the sequence must end. For endless ones use iterate.",
        &[
            ("(defn down [n] (lazy-seq (when (pos? n) (cons n (down (dec n)))))) (down 3)", "[3 2 1]"),
            ("(lazy-seq nil)", "[]"),
            ("(lazy-seq 5)", "!type_error"),
        ],
        |a, args, span, _| a.lazy_seq_form(args, span),
    ),
    form(
        "lazy-cat",
        "(lazy-cat coll ...)",
        "Same as concat.",
        &[("(lazy-cat [1] [2 3])", "[1 2 3]"), ("(lazy-cat 5)", "!type_error")],
        |a, args, span, _| a.lazy_cat_form(args, span),
    ),
    form(
        "assert",
        "(assert test message?)",
        "Returns nil if the test is true; otherwise throws an error with the message.",
        &[
            ("(assert (pos? 1))", "nil"),
            (
                "(try (assert (pos? -1) \"n must be positive\") (catch Error e (ex-message e)))",
                "\"Assert failed: n must be positive\"",
            ),
            ("(try (assert (= 1 2)) (catch Error e (ex-message e)))", "\"Assert failed: (= 1 2)\""),
            ("(assert nil)", "!uncaught_exception"),
            ("(assert)", "!invalid_arity"),
        ],
        |a, args, span, _| a.assert_form(args, span),
    ),
    form(
        "new",
        "(new Class argument ...)",
        "Same as (Class. argument ...).",
        &[
            ("(new String \"a\")", "\"a\""),
            ("(new java.util.ArrayList)", "!unsupported_java_class"),
            ("(new)", "!invalid_arity"),
        ],
        |a, args, span, _| a.new_form(args, span),
    ),
    form(
        ".",
        "(. x method argument ...), (. Class method argument ...)",
        "Same as (.method x argument ...) and (Class/method argument ...).",
        &[
            ("(. \"abc\" substring 1)", "\"bc\""),
            ("(. Math (abs -1))", "1"),
            ("(. \"abc\" nope)", "!unsupported_method"),
            ("(. 1)", "!invalid_arity"),
        ],
        |a, args, span, _| a.dot_form(args, span),
    ),
    form(
        "..",
        "(.. x (method argument ...) method ...)",
        "Calls one method after the other, each on the result of the previous one.",
        &[("(.. \" ab \" trim (concat \"c\"))", "\"abc\""), ("(.. 1)", "!invalid_arity")],
        |a, args, span, _| a.dots_form(args, span),
    ),
    form(
        "instance?",
        "(instance? Class x)",
        "Returns whether a value is of the class: String, Number, Long, clojure.lang.Keyword and similar ones, LocalDate and other times, exceptions.",
        &[
            ("(instance? String \"a\")", "true"),
            ("(instance? clojure.lang.IPersistentMap [])", "false"),
            ("(instance? RuntimeException (ex-info \"a\" {}))", "true"),
            ("(instance? java.io.File 1)", "!unsupported_java_class"),
            ("(instance? String)", "!invalid_arity"),
        ],
        |a, args, span, _| a.instance_form(args, span),
    ),
    form(
        "quote",
        "(quote form)",
        "Returns the form as data: names are symbols, lists vectors. Short form: 'form.",
        &[("'total", "'total"), ("(quote (1 a))", "[1 'a]"), ("(quote)", "!invalid_form")],
        |a, args, span, _| a.quote_form(args, span),
    )
    .fixed(),
    form(
        "try",
        "(try body ... (catch Exception e body ...) (finally body ...))",
        "Evaluates the body; after an error the first catch with a matching class gives the value. finally runs at the end, but not after return or a limit.",
        &[
            ("(try (/ 1 0) (catch Exception e :none))", ":none"),
            ("(try (inc nil) (catch Exception e (:reason e)))", ":type_error"),
            ("(try (throw (ex-info \"no\" {:id 7})) (catch ExceptionInfo e (ex-data e)))", "{:id 7}"),
            ("(try (/ 1 0) (finally 2))", "!arithmetic_error"),
            ("(try (loop [] (recur)) (catch Exception e 1))", "!loop_limit_exceeded"),
        ],
        |a, args, span, _| a.try_form(args, span),
    ),
    form(
        "catch",
        "(catch class name body ...)",
        "Handles errors of the class, as a part of try, and gives the value of try. The name is bound to the error, a \
         map.",
        &[
            ("(try (throw 5) (catch ArithmeticException e 1) (catch Exception e (ex-data e)))", "5"),
            ("(catch Exception e 1)", "!invalid_form"),
        ],
        |a, _, span, _| a.part_of_try("catch", span),
    ),
    form(
        "finally",
        "(finally body ...)",
        "Evaluates the body for its effects, as the last part of try, with or without an error.",
        &[("(def n 1) (try 1 (finally (def n 2))) n", "2"), ("(finally 1)", "!invalid_form")],
        |a, _, span, _| a.part_of_try("finally", span),
    ),
    form(
        "throw",
        "(throw value)",
        "Throws a value as an error, usually the result of ex-info or (Exception. message).",
        &[
            ("(try (throw (ex-info \"no\" {})) (catch Exception e (ex-message e)))", "\"no\""),
            ("(throw (ex-info \"no\" {}))", "!uncaught_exception"),
            ("(throw)", "!invalid_arity"),
        ],
        |a, args, span, _| a.end_form("throw", Kind::Throw, args, span),
    ),
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
