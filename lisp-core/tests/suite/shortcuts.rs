//! What the code generator makes shorter: calls of definitions that are surely there, numbers that are loaded before a
//! loop, branches that return for themselves. Values, errors and the order of effects are those of the long way.

use crate::corpus::{Came, steady};
use lisp_core::vm::Settings;
use proptest::prelude::*;

fn outcome(source: &str) -> Came {
    steady(source, &Settings { heap_bytes: 4_000_000, ..Settings::default() })
}

#[test]
fn a_call_of_a_definition_means_what_it_was_before_the_arguments() {
    for (source, wanted) in [
        ("(defn f [x] [:old x]) (f (do (def f (fn [x] [:new x])) 1))", "[:old 1]"),
        ("(defn f [x] [:old x]) (defn g [] (def f (fn [x] [:new x])) 1) [(f (g)) (f 1)]", "[[:old 1] [:new 1]]"),
        ("(defn f [n] (if (= n 0) :done (f (do (def f (fn [_] :new)) (dec n))))) (f 3)", ":new"),
        ("(defn f [n] (when (= n 2) (def f (fn [n] [:new n]))) (if (= n 0) :old (f (dec n)))) (f 3)", "[:new 1]"),
        ("(def f (fn [n] (if (< n 1) [n] (f (- n 1))))) (f 2)", "[0]"),
        ("(def g (let [f (fn [x] (if (> x 1) :end x))] (f 5))) (defn h [] g) (h)", ":end"),
        ("(def m {:a 1}) (m :a)", "1"),
        ("(def k :a) (k {:a 3})", "3"),
        ("(def i inc) (i 3)", "4"),
        ("(def c (comp inc inc)) (c 3)", "5"),
        ("(def s #{1 2}) [(s 1) (s 3)]", "[1 nil]"),
        ("(defn f [& xs] xs) [(f) (f 1 2)]", "[[] [1 2]]"),
        ("(defn f ([] :none) ([a] (f a 2)) ([a b] [a b])) [(f) (f 1)]", "[:none [1 2]]"),
        ("(if true (def f inc) (def g dec)) (f 3)", "4"),
        ("(def a 1) (def a 2) (defn f [] a) (f)", "2"),
    ] {
        let came = outcome(source);
        assert_eq!(came.text, wanted, "{source}: {}", came.ending);
    }
}

#[test]
fn a_definition_that_is_missing_is_the_first_error() {
    for source in
        ["(defn a [x] (b (/ 1 x))) (a 0) (defn b [x] x)", "(defn a [x] (b (/ 1 x))) (if nil (defn b [x] x) (a 0))"]
    {
        let came = outcome(source);
        assert!(came.failed_with("unbound_var"), "{source}: {} {}", came.ending, came.text);
    }
    let came = outcome("(defn b [x] x) (defn a [x] (b (/ 1 x))) (a 0)");
    assert!(came.failed_with("arithmetic_error"), "{} {}", came.ending, came.text);
}

#[test]
fn calls_of_what_is_no_function_fail_alike() {
    for (definition, call) in [
        ("(def x 5)", "(x 1)"),
        ("(def x nil)", "(x 1)"),
        ("(def x \"text\")", "(x)"),
        ("(defn x [a] a)", "(x 1 2)"),
        ("(defn x ([a] a) ([a b c] b))", "(x 1 2)"),
        ("(defn x [a & b] a)", "(x)"),
        ("(def x inc)", "(x 1 2)"),
        ("(def x :k)", "(x 1 2 3)"),
    ] {
        let short = outcome(&format!("{definition}        {call}"));
        // Behind a conditional definition nothing is surely there.
        let long = outcome(&format!("(if 1 {definition}) {call} "));
        let places = |came: &Came| came.ending.split(" at ").next().map(str::to_owned);
        assert_eq!(places(&short), places(&long), "{definition} {call}");
        assert!(!short.succeeded(), "{definition} {call}: {}", short.text);
    }
}

#[test]
fn numbers_of_a_loop_are_told_apart_by_their_bits() {
    for (source, wanted) in [
        (
            "(loop [i 0 all []] (if (< i 2) (recur (+ i 1) (conj all (/ 1.0 (* i -0.0)) (* 1 0.0) (+ -0.0 -0.0))) all))",
            "loop",
        ),
        ("(loop [x 1.5 n 0] (if (< n 100000) (recur (+ x 0.25) (+ n 50000)) [x n]))", "[2.0 100000]"),
        ("(loop [x 0] (if (< x 100000) (recur (+ (* x 70000) 70000)) x))", "4900070000"),
        ("(reduce (fn [a x] (+ a (* x 100000) (* 1.5 x))) 0 [1 2 3])", "600009.0"),
        (
            "(map (fn [x] [(* 2 x) (- 100 x) (+ x 40000) (= x 40000)]) [1 40000])",
            "[[2 99 40001 false] [80000 -39900 80000 true]]",
        ),
        ("(loop [i 0] (let [k 50000 j (+ i k)] (if (> j 100000) [i j k] (recur j))))", "[100000 150000 50000]"),
        (
            "(loop [i 0 a 0] (if (< i 3) (recur (+ 1 i) (loop [j 0 b a] (if (< j 70000) (recur (+ j 35000) (+ b (* 3 j))) b))) [i a]))",
            "[3 315000]",
        ),
        (
            "(for [x [2.0 2.5 1.5 ##NaN ##Inf -0.0 2]] [(if (= x 2) 1 0) (if (< x 2) 1 0) (if (<= x 2) 1 0) (if (> x 2) 1 0) (if (>= x 2) 1 0)])",
            "[[1 0 1 0 1] [0 0 0 1 1] [0 1 1 0 0] [0 0 0 0 0] [0 0 0 1 1] [0 1 1 0 0] [1 0 1 0 1]]",
        ),
        (
            "(for [x [2.0 2.5 1.5 ##NaN ##Inf -0.0 2]] [(= x 2) (< x 2) (<= x 2) (> x 2) (>= x 2)])",
            "[[true false true false true] [false false false true true] [false true true false false] \
             [false false false false false] [false false false true true] [false true true false false] \
             [true false true false true]]",
        ),
        ("((fn [n a] (if (> n 0) (recur (dec n) (+ a (* 1.5 n) 0.5)) a)) 3 0)", "10.5"),
    ] {
        let came = outcome(source);
        if wanted == "loop" {
            // 0.0 times an integer keeps its sign, each time.
            assert_eq!(came.text.matches("-0.0").count(), 2, "{}", came.text);
        } else {
            assert_eq!(came.text, wanted, "{source}: {}", came.ending);
        }
    }
}

/// The numbers of an expression, which may be held, or are hidden from the compiler.
const NUMBERS: [&str; 9] = ["0.0", "-0.0", "0.5", "40000", "-40000", "3", "0", "9223372036854775807", "1e300"];

fn expression(depth: u32) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(&NUMBERS[..]).prop_map(|number| format!("#{number}#")),
        Just("x".to_owned()),
        Just("i".to_owned()),
    ];
    leaf.prop_recursive(depth, 24, 3, |inner| {
        prop_oneof![
            (prop::sample::select(&["+", "-", "*"][..]), inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| format!("({op} {a} {b})")),
            (prop::sample::select(&["<", "<=", ">", ">=", "="][..]), inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(op, a, b, c)| format!("(if ({op} {a} {b}) {c} (inc {a}))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(let [y {a}] (do {b} (+ y {b})))")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("(cond (> {a} 0) {b} (zero? {b}) {c} :else [{a} {c}])")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn short_ways_lead_where_long_ones_do(
        body in expression(3),
        around in prop::sample::select(&[
            "(loop [i 0 x #1#] (if (< i #3#) (recur (+ i #1#) BODY) x))",
            "(map (fn [i] (let [x #2#] BODY)) [0 1 0.5])",
            "(reduce (fn [x i] BODY) #1# (range 3))",
            "(defn f [i x] BODY) [(f 0 #1#) (f 1 #0.5#)]",
            "(defn f [i x] (if (> i 2) x (f (+ i #1#) BODY))) (f 0 1)",
            "((fn [i x] (if (< i 2) (recur (+ i #1#) BODY) x)) #0# #2#)",
        ][..]),
    ) {
        let program = around.replace("BODY", &body);
        let plain = program.replace('#', "");
        // Each number behind a look-up, and each definition behind a condition.
        let mut hidden = String::new();
        for (i, piece) in program.split('#').enumerate() {
            if i % 2 == 1 { hidden.push_str(&format!("(get {{:n {piece}}} :n)")) } else { hidden.push_str(piece) }
        }
        let hidden = match hidden.strip_prefix("(defn f").and_then(|rest| rest.split_once(") [")) {
            Some((function, rest)) => format!("(if 1 (defn f{function})) [{rest}"),
            None => hidden,
        };
        let [short, long] = [plain, hidden].map(|source| outcome(&source));
        let reason = |came: &Came| came.ending.split(':').next().map(str::to_owned);
        prop_assert_eq!(&short.text, &long.text, "{}", program);
        prop_assert_eq!(reason(&short), reason(&long), "{}", program);
    }
}

/// `str` has a buffer of its own for short texts; and what it costs does not tell which way was taken.
#[test]
fn str_is_the_same_on_either_side_of_a_short_text() {
    for len in 55..75 {
        let text = "x".repeat(len);
        for (source, wanted) in [
            (format!("(str \"{text}\" 12)"), format!("\"{text}12\"")),
            (format!("(str -7 \"{text}\")"), format!("\"-7{text}\"")),
            (format!("(str \"{text}\" nil :k)"), format!("\"{text}:k\"")),
            (format!("(str \"{text}\" \"\" -9223372036854775808)"), format!("\"{text}-9223372036854775808\"")),
        ] {
            let came = outcome(&source);
            assert_eq!(came.text, wanted, "{source}: {}", came.ending);
        }
    }
}
