//! `map`, `filter`, `reduce` ... one over what the other makes, and over ranges. As one loop they are what they are one after
//! the other: the value, the error and its place, with every rhythm of compaction and slices.

use crate::corpus::{Came, Case, run, steady};
use lisp_core::vm::Settings;
use proptest::prelude::*;

const WHOLE: u64 = u64::MAX / 2;

/// What stands in every body: it hides nothing, and of the same length what has an effect for all that is known.
const PLAIN: &str = "(identity [1 2])";
const HIDING: &str = "(dotimes [_ 0] )";

/// Bodies of functions of one argument: `x`, and what is done with it.
const BODIES: [&str; 14] = [
    "x",
    "(inc x)",
    "(/ 60 x)",
    "(even? x)",
    "(if (odd? x) nil x)",
    "(:a x)",
    "(let [{:keys [a b]} x] (or a b))",
    "(let [[a b] x] b)",
    "(some? x)",
    "[x {:x x}]",
    "(str x)",
    "(count x)",
    "(+ x (get {1 10 2 20} x 0))",
    "(cond (nil? x) :none (= x 3) false :else x)",
];

const FOLDS: [&str; 5] = ["(+ a x)", "(if (nil? a) x a)", "x", "[a x]", "(max a x)"];

const SOURCES: [&str; 16] = [
    "[]",
    "nil",
    "[1 2 3 4 5]",
    "[5 4 0 3 -1 nil 7]",
    "[{:a 1} {:a 2 :b 3} {:b 4} {}]",
    "[1 (reduced 2) 3 0]",
    "{:a 1 :b 2}",
    "#{3 1 2}",
    "\"abc\"",
    "7",
    "(range 6)",
    "(range -2 3)",
    "(range 0)",
    "(range 2.5)",
    "(take 4 (iterate inc 1))",
    "[(iterate inc 0) [1 2] (repeat 3)]",
];

const STEPS: [&str; 6] = ["map", "mapv", "filter", "filterv", "remove", "keep"];

fn outcome(source: &str) -> Came {
    steady(source, &Settings { heap_bytes: 4_000_000, loop_iterations: 0, ..Settings::default() })
}

fn same(program: &str) -> Result<(), TestCaseError> {
    let [one, several] = [PLAIN, HIDING].map(|first| outcome(&program.replace("FIRST", first)));
    prop_assert_eq!(&one.ending, &several.ending, "{}", program);
    prop_assert_eq!(&one.text, &several.text, "{}", program);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_chain_is_what_its_steps_are_one_after_the_other(
        steps in prop::collection::vec((prop::sample::select(&STEPS[..]), prop::sample::select(&BODIES[..])), 1..4),
        fold in prop::option::of((prop::sample::select(&FOLDS[..]), prop::option::of(prop::sample::select(&["0", "nil", "(do 9)"][..])))),
        source in prop::sample::select(&SOURCES[..]),
        around in prop::sample::select(&["X", "(try X (catch Exception e (ex-message e)))", "(let [f (fn [y] X)] [(f 1) 2])",
            "(loop [i 0 all []] (if (< i 3) (recur (inc i) (conj all X)) all))", "(doall (take 3 X))"][..]),
    ) {
        let mut chain = source.to_owned();
        for (step, body) in steps {
            chain = format!("({step} (fn [x] (do FIRST {body})) {chain})");
        }
        if let Some((fold, init)) = fold {
            chain = format!("(reduce (fn [a x] (do FIRST {fold})) {} {chain})", init.unwrap_or_default());
        }
        same(&around.replace('X', &chain))?;
    }
}

/// Keywords and built-ins are steps too; a chain of many steps is several loops.
#[test]
fn chains_of_what_has_a_name() {
    for (source, wanted) in [
        ("(reduce + (map :n (filter :n [{:n 1} {} {:n 4}])))", "5"),
        ("(reduce + (keep :n []))", "0"),
        ("(reduce max 3 (map inc (remove even? (range 10))))", "10"),
        ("(reduce + (map count [\"a\" \"bcd\" nil]))", "4"),
        ("(map inc (map - (filter pos? [3 -1 2])))", "[-2 -1]"),
        ("(for [i (range 4) :when (odd? i) j (range i 4)] [i j])", "for"),
    ] {
        let wanted = if wanted == "for" { "[[1 1] [1 2] [1 3] [3 3]]" } else { wanted };
        assert_eq!(outcome(source).text, wanted, "{source}");
    }
    let deep = (0..60).fold("[1 2]".to_owned(), |chain, _| format!("(map inc {chain})"));
    assert_eq!(outcome(&deep).text, "[61 62]");
}

/// `for` recognizes every call whose result is endless.
#[test]
fn endless_sequences_are_walked_by_for() {
    for (call, wanted) in [
        ("(range)", "[0 1]"),
        ("(iterate inc 3)", "[3 4]"),
        ("(cycle [7])", "[7 7]"),
        ("(repeat 8)", "[8 8]"),
        ("(repeatedly (fn [] 9))", "[9 9]"),
        ("(map inc (range))", "[1 2]"),
        ("(mapcat (fn [x] [x x]) (range))", "[0 0]"),
        ("(filter odd? (range))", "[1 3]"),
        ("(remove odd? (range))", "[0 2]"),
        ("(keep identity (range))", "[0 1]"),
        ("(map-indexed + (range))", "[0 2]"),
        ("(keep-indexed + (range))", "[0 2]"),
        ("(drop 2 (range))", "[2 3]"),
        ("(drop-while zero? (range))", "[1 2]"),
        ("(rest (range))", "[1 2]"),
        ("(next (range))", "[1 2]"),
        ("(nnext (range))", "[2 3]"),
        ("(nthrest (range) 3)", "[3 4]"),
        ("(nthnext (range) 4)", "[4 5]"),
        ("(seq (range))", "[0 1]"),
        ("(not-empty (range))", "[0 1]"),
        ("(cons 5 (range))", "[5 0]"),
        ("(concat [6] (range))", "[6 0]"),
        ("(partition 2 (range))", "[[0 1] [2 3]]"),
        ("(partition-all 2 (range))", "[[0 1] [2 3]]"),
        ("(partition-by odd? (range))", "[[0] [1]]"),
        ("(distinct (range))", "[0 1]"),
        ("(dedupe (range))", "[0 1]"),
        ("(reductions + (range))", "[0 1]"),
        ("(take-nth 3 (range))", "[0 3]"),
        ("(interpose :x (range))", "[0 :x]"),
        ("(interleave (range) (range))", "[0 0]"),
    ] {
        let source = format!("(take 2 (for [x {call}] x))");
        let came = outcome(&source);
        assert_eq!(came.text, wanted, "{source}: {}", came.ending);
    }
}

/// What prints keeps its order: such steps are no part of a chain.
#[test]
fn effects_keep_their_order() {
    let source = "(reduce + (map (fn [x] (println \"second\" x) x) (map (fn [x] (println \"first\" x) x) [1 2])))";
    assert_eq!(outcome(source).prints, ["first 1", "first 2", "second 1", "second 2"]);
    let source = "(reduce (fn [a x] (println a) (+ a x)) 0 (map inc (filter odd? (range 5))))";
    assert_eq!(outcome(source).prints, ["0", "2"]);
}

/// A range that is walked is never made: it takes no memory.
#[test]
fn ranges_are_walked_without_being_made() {
    for (source, wanted) in [
        ("(reduce + (range 1000000))", "499999500000"),
        ("(reduce (fn [a x] (+ a x)) 0 (filter even? (map inc (range 1 1000000))))", "250000500000"),
        ("(count (filter (fn [x] (= 0 (mod x 250000))) (range 1000000)))", "4"),
        ("(let [n 700000] (count (for [i (range n) :when (= i 5)] i)))", "1"),
    ] {
        let settings = Settings { heap_bytes: 100_000, loop_iterations: 0, ..Settings::default() };
        let (came, _) = run(&Case::new(source, source), &settings, WHOLE);
        assert_eq!(came.text, wanted, "{source}: {}", came.ending);
    }
}

/// An error of the first step is the first error, whatever the order: nothing is done anew, which may take memory that there
/// is not.
#[test]
fn the_first_step_of_a_chain_fails_as_it_is() {
    let settings = Settings { heap_bytes: 100_000, loop_iterations: 0, ..Settings::default() };
    let fails = |source: &str| run(&Case::new(source, source), &settings, WHOLE).0;
    let came = fails("(->> (range 100000) (map #(/ 1 (- % 99999))) (filter pos?) (reduce +))");
    assert!(came.ending.contains("division by zero") && came.ending.contains("99999"), "{}", came.ending);
    let came = fails("(->> (range 100000) (map #(* 2 %)) (reduce (fn [a x] (+ a (/ 1 (- x 199998)))) 0))");
    assert!(came.failed_with("memory_exceeded"), "{}", came.ending);
}

/// Room for elements is paid for before there is any.
#[test]
fn room_for_the_elements_of_a_range_is_charged_for() {
    let settings = Settings { heap_bytes: 4_000_000, loop_iterations: 0, ..Settings::default() };
    let source = "(try (map (fn [x] (/ 1 x)) (range 100000)) (catch Exception e :caught))";
    let (came, _) = run(&Case::new(source, source), &settings, WHOLE);
    assert_eq!(came.text, ":caught");
    assert!(came.fuel > 50_000, "{} units", came.fuel);
}

/// What a chain has made so far is let go of before it is done anew.
#[test]
fn a_chain_that_is_done_anew_takes_no_more_memory_than_its_steps() {
    let source =
        "(try (map (fn [x] (/ 1 (- x 9999))) (map (fn [y] (+ y 0)) (vec (range 10000)))) (catch Exception e :caught))";
    let settings = Settings { heap_bytes: 500_000, loop_iterations: 0, ..Settings::default() };
    let (came, _) = run(&Case::new(source, source), &settings, WHOLE);
    assert_eq!(came.text, ":caught", "{}", came.ending);
}

/// Where a chain runs out of memory the step is named, and the element where it is known.
#[test]
fn limits_that_end_a_chain_tell_of_its_step() {
    let settings = Settings { heap_bytes: 150_000, loop_iterations: 0, ..Settings::default() };
    let step = "(fn [x] (str x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x))";
    for (chain, told) in [("(map F (map inc v))", true), ("(map F (filter pos? v))", false)] {
        let source = format!("(let [v (vec (range 3000))] {})", chain.replace('F', step));
        let (came, _) = run(&Case::new(&source, &source), &settings, WHOLE);
        assert!(came.failed_with("memory_exceeded"), "{}", came.ending);
        assert_eq!(came.ending.contains("element: Some((\"map\""), told, "{}", came.ending);
    }
}

/// The element at which something failed is counted from the beginning of the range.
#[test]
fn elements_of_ranges_are_counted_from_their_beginning() {
    let ranges = [
        ("(range 3 9  )", "(range 3 9 1)"),
        ("(range 9    )", "(range 0 9 1)"),
        // This one is made after all.
        ("(range 3 9.0  )", "(range 3 9.0 1)"),
    ];
    for (walked, made) in ranges {
        for body in ["(/ 6 (- x 5))", "(do (println x) (/ 6 (- x 5)))"] {
            let [walked, made] = [walked, made].map(|range| outcome(&format!("(map (fn [x] {body}) {range})")));
            assert!(walked.ending.contains("element: Some"), "{}", walked.ending);
            assert_eq!((walked.ending, walked.prints), (made.ending, made.prints));
        }
    }
}
