//! Sorting and grouping against the plainest ways to do them, at the sizes where the ways they are done change, with
//! keys whose hashes collide, comparators that contradict themselves, and compactions in the middle.

use super::extremes;
use crate::corpus::{Came, Case};
use lisp_core::vm::Settings;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::OnceLock;

const WHOLE: u64 = u64::MAX / 2;

fn settings() -> Settings {
    Settings { heap_bytes: 200_000_000, loop_iterations: 0, ..Settings::default() }
}

fn case(source: &str, data: &str) -> Case {
    Case { name: source.to_owned(), source: source.to_owned(), given: Some(format!("{{\"context\": {data}}}")) }
}

/// What a program comes to; the same however often the heap is compacted and however short the slices are.
fn run(case: &Case) -> Came {
    let (plain, _) = crate::corpus::run(case, &settings(), WHOLE);
    // The slow ones for what is short.
    for (every, slice, max) in [(Some(1), WHOLE, 3_000), (Some(3), 11, 8_000), (None, 1, 1_500), (None, 50, 40_000)] {
        if plain.fuel > max {
            continue;
        }
        let (other, _) = crate::corpus::run(case, &Settings { compact_every: every, ..settings() }, slice);
        assert_eq!(other, plain, "{}: compacted at every {every:?}, slices of {slice}", case.name);
    }
    plain
}

fn answers(source: &str, data: &str, wanted: &str) {
    let came = run(&case(source, data));
    assert!(came.succeeded(), "{source}: {}", came.ending);
    if came.text != wanted {
        let at = came.text.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
        let near = |s: &str| {
            String::from_utf8_lossy(&s.as_bytes()[at.saturating_sub(40).min(s.len())..(at + 60).min(s.len())])
                .into_owned()
        };
        panic!("{source} with {:.200}\n  wanted ...{}\n  got    ...{}", data, near(wanted), near(&came.text));
    }
}

fn list(items: impl IntoIterator<Item = impl Display>) -> String {
    let mut out = String::from("[");
    for (i, item) in items.into_iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(out, "{}{item}", if i > 0 { " " } else { "" });
    }
    out + "]"
}

fn json(items: impl IntoIterator<Item = impl Display>) -> String {
    list(items).replace(' ', ",")
}

/// The same numbers every time, below `n`.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Strings of one hash, in order, that can be written as they are.
fn colliding() -> &'static [String] {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    ALL.get_or_init(|| {
        let is_plain = |word: &String| word.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'));
        let mut all: Vec<String> = extremes::colliding().filter(is_plain).take(300).collect();
        all.sort();
        all
    })
}

/// A key: as JSON and as a program prints it. Keys of a kind stand in the order of their numbers.
fn key(kind: usize, n: usize) -> (String, String) {
    let same = |text: String| (text.clone(), text);
    match kind {
        0 => same(format!("{}", n as i64 - 20)),
        1 => same(format!("\"k{n:06}\"")),
        2 => same(format!("\"{}\"", colliding()[n % colliding().len()])),
        3 => same(format!("[{n}]")),
        4 => same(format!("{n}.5")),
        5 => (format!("{{\"a\":{n}}}"), format!("{{\"a\" {n}}}")),
        _ => same(format!("1{n:025}")),
    }
}

/// How many keys of a kind there are.
fn kinds(kind: usize, n: usize) -> usize {
    if kind == 2 { n.min(colliding().len()) } else { n }
}

/// Groups, counts, runs and sets of pairs `[key place]`.
fn grouped(kind: usize, numbers: &[usize]) {
    let names: Vec<(String, String)> = numbers.iter().map(|&n| key(kind, n)).collect();
    let data = format!(
        "{{\"ks\": [{}], \"pairs\": [{}]}}",
        names.iter().map(|(json, _)| json.as_str()).collect::<Vec<_>>().join(","),
        names.iter().enumerate().map(|(i, (json, _))| format!("[{json},{i}]")).collect::<Vec<_>>().join(","),
    );
    let shown = |n: usize| key(kind, n).1;
    let pair = |i: &usize| format!("[{} {i}]", names[*i].1);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut firsts: Vec<usize> = Vec::new();
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for (i, n) in numbers.iter().enumerate() {
        if !groups.contains_key(n) {
            firsts.push(i);
        }
        groups.entry(*n).or_default().push(i);
        match runs.last_mut() {
            Some(run) if numbers[run[0]] == *n => run.push(i),
            _ => runs.push(vec![i]),
        }
    }
    let map = |value: &dyn Fn(&Vec<usize>) -> String| {
        let entries: Vec<String> =
            groups.iter().map(|(n, places)| format!("{} {}", shown(*n), value(places))).collect();
        format!("{{{}}}", entries.join(" "))
    };
    let last = |places: &Vec<usize>| places.last().map(usize::to_string).unwrap_or_default();
    let of_lasts = map(&last);
    let pairs = |places: &Vec<usize>| list(places.iter().map(pair));
    let key_of = |i: &usize| names[*i].1.clone();
    let wanted = [
        ("(group-by first data/pairs)", map(&pairs)),
        ("(frequencies data/ks)", map(&|places| places.len().to_string())),
        ("(into {} data/pairs)", of_lasts.clone()),
        ("(zipmap data/ks (range))", of_lasts.clone()),
        ("(reduce (fn [m [k i]] (assoc m k i)) {} data/pairs)", of_lasts.clone()),
        ("(apply hash-map (mapcat identity data/pairs))", of_lasts),
        ("(partition-by first data/pairs)", list(runs.iter().map(pairs))),
        ("(distinct data/ks)", list(firsts.iter().map(key_of))),
        ("(distinct-by first data/pairs)", list(firsts.iter().map(pair))),
        ("(dedupe data/ks)", list(runs.iter().map(|run| key_of(&run[0])))),
        ("(vec (set data/ks))", list(groups.keys().map(|n| shown(*n)))),
        ("(count (reduce disj (set data/ks) (take 7 data/ks)))", {
            let gone: std::collections::BTreeSet<usize> = numbers.iter().take(7).copied().collect();
            (groups.len() - gone.len()).to_string()
        }),
    ];
    for (source, wanted) in wanted {
        let source = source.replace("(range)", &format!("(range {})", numbers.len()));
        answers(&source, &data, &wanted);
    }
    // A vector is a path of keys where something is looked up.
    if kind != 3 {
        let is_last = |i: usize| groups[&numbers[i]].last() == Some(&i);
        let source = "(let [m (into {} data/pairs)] (map (fn [[k i]] (= i (m k))) data/pairs))";
        answers(source, &data, &list((0..numbers.len()).map(is_last)));
    }
    if kind != 5 {
        let mut sorted: Vec<usize> = (0..numbers.len()).collect();
        sorted.sort_by_key(|&i| numbers[i]);
        answers("(sort-by first data/pairs)", &data, &list(sorted.iter().map(pair)));
        answers("(sort data/ks)", &data, &list(sorted.iter().map(key_of)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn groups_are_like_plain_ones(kind in 0usize..7, max in 1usize..60, numbers in prop::collection::vec(0usize..10_000, 0..90)) {
        let numbers: Vec<usize> = numbers.into_iter().map(|n| n % kinds(kind, max)).collect();
        grouped(kind, &numbers);
    }
}

#[test]
fn groups_where_the_way_to_build_them_changes() {
    let mut random = Random(1);
    for kind in 0..7 {
        for size in [15, 16, 17, 31, 32, 33, 255, 256, 257, 1_000] {
            // Nearly all different, and many of the same.
            for max in [size * 20, size / 5 + 1] {
                let numbers: Vec<usize> = (0..size).map(|_| random.below(kinds(kind, max))).collect();
                grouped(kind, &numbers);
            }
        }
    }
}

/// Comparators whose order is known, and the same with a test around it that hides it. `A` and `B` are what is compared.
const KNOWN: [(&str, &str); 6] = [
    ("<", "(fn [a b] (if (< A B) true false))"),
    (">", "(fn [a b] (if (> A B) true false))"),
    ("compare", "(fn [a b] (- (compare B A)))"),
    ("(fn [a b] (< B A))", "(fn [a b] (if (> A B) true false))"),
    ("(fn [a b] (compare B A))", "(fn [a b] (- (compare A B)))"),
    ("(fn [a b] (> A B))", "(fn [a b] (if (> A B) true false))"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn known_comparators_order_as_they_say(keys in prop::collection::vec(prop_oneof![
        20 => (-9i64..9).prop_map(|n| n.to_string()),
        6 => (-9i64..9).prop_map(|n| format!("{n}.5")),
        2 => prop_oneof![Just("-0.0"), Just("0.0"), Just("1e300"), Just("-1e300")].prop_map(str::to_owned),
        1 => prop_oneof![Just("9007199254740993"), Just("9007199254740992"), Just("9223372036854775807"),
                         Just("-9223372036854775808"), Just("12345678901234567890"), Just("null"), Just("\"a\"")]
            .prop_map(str::to_owned),
    ], 0..40)) {
        let rows: Vec<String> = keys.iter().enumerate().map(|(i, key)| format!("{{\"k\":{key},\"i\":{i}}}")).collect();
        let data = format!("{{\"ks\": [{}], \"rows\": [{}]}}", keys.join(","), rows.join(","));
        let sorts = [
            ("(sort F data/ks)", "a", "b"),
            ("(map :i (sort-by :k F data/rows))", "a", "b"),
            ("(map :i (sort F data/rows))", "(:k a)", "(:k b)"),
        ];
        for (known, hidden) in KNOWN {
            for (sort, a, b) in sorts {
                if !known.contains('A') && a != "a" {
                    continue;
                }
                let [known, hidden] = [known, hidden].map(|comparator| {
                    let comparator = comparator.replace('A', a).replace('B', b);
                    run(&case(&sort.replace('F', &comparator), &data))
                });
                prop_assert_eq!((known.succeeded(), known.text), (hidden.succeeded(), hidden.text));
            }
        }
    }
}

/// Maps built at once are the ones built entry by entry, up to a hundred thousand entries.
#[test]
fn maps_of_every_size_hold_what_was_put_into_them() {
    let sizes: &[usize] = if cfg!(debug_assertions) {
        &[17, 255, 256, 257, 1_023, 1_025, 10_000]
    } else {
        &[255, 256, 257, 1_000, 65_536, 100_000]
    };
    for &n in sizes {
        for make in ["i", "(str \"k\" i)", "{:i i :s (str i)}", "(* i 0.5)", "(if (odd? i) i (str i))"] {
            let source = format!(
                "(let [others (fn [xs] (keep-indexed (fn [i x] (if (even? i) x)) xs))
                       order (fn [i] (mod (* i 7919) {n}))
                       ks (map (fn [j] (let [i (order j)] {make})) (range {n}))
                       built (zipmap ks (range {n}))
                       grown (reduce (fn [m [k i]] (assoc m k i)) {{}} (map-indexed (fn [i k] [k i]) ks))
                       less (reduce dissoc built (others ks))
                       again (merge less (zipmap (others ks) (others (range {n}))))]
                   [(count built) (= built grown) (= grown again) (count less) (= (set ks) (set (keys built)))
                    (every? (fn [[k i]] (= i (get built k))) (map-indexed (fn [i k] [k i]) ks))
                    (some (fn [k] (contains? less k)) (others ks)) (contains? built :none)
                    (= (frequencies ks) (update-vals built (fn [_] 1)))
                    (count (group-by identity ks)) (count (into #{{}} ks)) (count (distinct ks))])"
            );
            let wanted = format!("[{n} true true {} true true nil false true {n} {n} {n}]", n / 2);
            let (came, _) = crate::corpus::run(&case(&source, "{}"), &settings(), WHOLE);
            assert_eq!(came.text, wanted, "{n} of {make}: {}", came.ending);
        }
    }
}

/// Whatever the budget, a map under construction is as if there had been no end of memory, or the run ends of it.
#[test]
fn maps_are_whole_whatever_memory_is_left() {
    let ks = json((0..400).map(|i| format!("\"{}\"", colliding()[i % 50].clone() + &i.to_string())));
    let data = format!("{{\"ks\": {ks}}}");
    for source in [
        "(frequencies data/ks)",
        "(zipmap data/ks data/ks)",
        "(group-by count data/ks)",
        "(count (set data/ks))",
        "(distinct data/ks)",
    ] {
        let case = case(source, &data);
        let (free, usage) = crate::corpus::run(&case, &settings(), WHOLE);
        let (mut failures, mut successes) = (0, 0);
        for heap_bytes in (1_000..usage.allocated_bytes as usize + 20_000).step_by(1_013) {
            let (came, _) = crate::corpus::run(&case, &Settings { heap_bytes, ..settings() }, WHOLE);
            if came.succeeded() {
                assert_eq!(came, free, "{source} in {heap_bytes}");
                successes += 1;
            } else {
                assert!(came.failed_with("memory_exceeded"), "{source} in {heap_bytes}: {}", came.ending);
                failures += 1;
            }
        }
        assert!(failures > 0 && successes > 0, "{source}: {failures} and {successes}");
    }
}

/// Comparators of pairs `[key place]` that all mean: the smaller key first.
const BY_FIRST: &[&str] = &[
    "(fn [a b] (< (first a) (first b)))",
    "(fn [[a] [b]] (< a b))",
    "(fn [a b] (- (first a) (first b)))",
    "(fn [a b] (compare (first a) (first b)))",
    "(fn [a b] (* 0.25 (- (first a) (first b))))",
    "(fn [a b] (* 99999999999999999999 (- (first a) (first b))))",
    "(fn [& both] (apply < (map first both)))",
    "(fn [a & [b]] (< (first a) (first b)))",
    "(fn f [a b] (if (vector? a) (f (first a) (first b)) (< a b)))",
    "(fn [a b] (if (= (first a) (first b)) nil (< (first a) (first b))))",
    "(fn [a b] (let [garbage (map str (range 9)) x (first a) y (first b)] (< x y)))",
    "(fn [a b] (let [a (first a) b (first b)] (loop [i 0] (if (< i 3) (recur (inc i)) (< a b)))))",
    "(fn [a b] (= (first (sort [(first a) (first b) (+ 1 (first b))])) (first a) (min (first a) (- (first b) 1))))",
    "(fn [a b] (apply (fn [x y] (< x y)) (map first [a b])))",
    "(comp neg? (fn [a b] (- (first a) (first b))))",
    "(partial (fn [_ a b] (< (first a) (first b))) nil)",
    "(fn [a b] (reduce (fn [_ [x y]] (< x y)) nil [[(first a) (first b)]]))",
];

fn sorted_pairs(keys: &[i64]) -> String {
    let mut pairs: Vec<(i64, usize)> = keys.iter().copied().zip(0..).collect();
    // An insertion sort: nothing about it is clever.
    for i in 1..pairs.len() {
        let mut at = i;
        while at > 0 && pairs[at].0 < pairs[at - 1].0 {
            pairs.swap(at, at - 1);
            at -= 1;
        }
    }
    list(pairs.iter().map(|(key, place)| format!("[{key} {place}]")))
}

fn pairs_of(keys: &[i64]) -> String {
    format!("{{\"pairs\": {}}}", json(keys.iter().enumerate().map(|(i, key)| format!("[{key},{i}]"))))
}

#[test]
fn a_sort_is_stable_at_every_size() {
    let mut random = Random(3);
    let sizes = (0..20).chain([31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 511, 513, 1_000]);
    for (i, size) in sizes.enumerate() {
        let max = [1, 3, size + 1, 10 * size + 1][i % 4];
        let random_keys: Vec<i64> = (0..size).map(|_| random.below(max) as i64).collect();
        let upwards: Vec<i64> = (0..size as i64).collect();
        let downwards: Vec<i64> = (0..size as i64).rev().collect();
        for keys in [random_keys, upwards, downwards] {
            let (data, wanted) = (pairs_of(&keys), sorted_pairs(&keys));
            for round in 0..if size < 70 { BY_FIRST.len() } else { 3 } {
                let comparator = BY_FIRST[(i + round) % BY_FIRST.len()];
                answers(&format!("(sort {comparator} data/pairs)"), &data, &wanted);
            }
            for source in [
                "(sort-by first data/pairs)",
                "(sort-by first < data/pairs)",
                "(sort-by first (fn [a b] (< a b)) data/pairs)",
                "(sort-by (fn [[k _]] (str \"garbage\" k) (* 2 k)) (fn [a b] (str a b) (- a b)) data/pairs)",
            ] {
                answers(source, &data, &wanted);
            }
        }
    }
}

/// Comparators that contradict themselves lose nothing and add nothing, and end.
#[test]
fn contradictory_comparators_give_some_order() {
    let contradictions = [
        "(fn [a b] true)",
        "(fn [a b] false)",
        "(fn [a b] nil)",
        "(fn [a b] 0)",
        "(fn [a b] -1)",
        "(fn [a b] ##NaN)",
        "(fn [a b] (odd? (+ a b)))",
        "(fn [a b] (< (mod (* a 7919) 31) (mod (* b 104729) 37)))",
        "(fn [a b] (not= a b))",
        "<=",
        "(fn [a b] (< (mod (- a b) 3) 1))",
    ];
    for size in [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 65, 257] {
        let data = format!("{{\"xs\": {}}}", json((0..size).map(|i| i * 7 % (size + 1))));
        let mut all: Vec<i64> = (0..size).map(|i| i * 7 % (size + 1)).collect();
        all.sort_unstable();
        for comparator in contradictions {
            answers(&format!("(sort (sort {comparator} data/xs))"), &data, &list(&all));
            answers(&format!("(sort (sort-by - {comparator} data/xs))"), &data, &list(&all));
        }
    }
}

/// A comparator is not called more often than a merge from below needs it, and its failure is the sort's.
#[test]
fn comparators_are_called_as_often_as_needed() {
    for size in [2usize, 3, 5, 8, 16, 33, 64, 100] {
        let data = format!("{{\"xs\": {}}}", json((0..size).map(|i| i * 37 % 101)));
        let came = run(&case("(count (sort (fn [a b] (println a b) (< a b)) data/xs))", &data));
        assert_eq!(came.text, size.to_string());
        let calls = came.prints.len();
        assert!(calls >= size - 1 && calls <= size * size.next_power_of_two().ilog2() as usize, "{size}: {calls}");
        for fails_at in [0, calls / 3, calls / 2, calls - 1] {
            // The call is told by what it is asked.
            let asked = &came.prints[fails_at];
            let source = format!("(sort (fn [a b] (if (= (str a \" \" b) \"{asked}\") (inc nil) (< a b))) data/xs)");
            let failed = run(&case(&source, &data));
            assert!(!failed.succeeded(), "{source}: {}", failed.text);
        }
    }
    for answer in ["\"x\"", ":k", "[]"] {
        let came = run(&case(&format!("(sort (fn [a b] {answer}) [3 1 2])"), "{}"));
        assert!(came.failed_with("type_error"), "{answer}: {}", came.ending);
    }
}

/// A sort whose comparator fills the heap comes to the same, or to the end of memory, whatever the budget.
#[test]
fn a_sort_in_little_memory() {
    let keys: Vec<i64> = (0..130).map(|i| i * 7_919 % 61).collect();
    let case = case("(sort (fn [a b] (str a b (range 12)) (< (first a) (first b))) data/pairs)", &pairs_of(&keys));
    let (free, usage) = crate::corpus::run(&case, &settings(), WHOLE);
    assert_eq!(free.text, sorted_pairs(&keys));
    let (mut failures, mut compacted) = (0, 0);
    for heap_bytes in (2_000..60_000).step_by(503) {
        let (came, usage) = crate::corpus::run(&case, &Settings { heap_bytes, ..settings() }, WHOLE);
        if came.succeeded() {
            assert_eq!(came, free, "in {heap_bytes}");
            compacted += u64::from(usage.compactions > 0);
        } else {
            assert!(came.failed_with("memory_exceeded"), "in {heap_bytes}: {}", came.ending);
            failures += 1;
        }
    }
    assert!(failures > 0 && compacted > 20, "{failures}, {compacted}, {usage:?}");
}
