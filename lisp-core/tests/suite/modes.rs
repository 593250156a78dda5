//! Neither compaction nor the slices of a driver may be seen by a program: whole programs in several modes give the
//! same value, prints, error and fuel.

use crate::corpus::{Came, Case};
use lisp_core::vm::Settings;

/// Bounds that keep the slowest mode fast: at every allocation all that is live is copied.
fn settings() -> Settings {
    Settings { heap_bytes: 2_000_000, fuel: Some(100_000), now_ms: Some(1_700_000_000_000), ..Settings::default() }
}

/// Programs that use less fuel than this are also run in the smallest slices.
const SHORT: u64 = 6_000;

const WHOLE: u64 = u64::MAX / 2;

/// What differs between the modes, if anything.
fn difference(case: &Case) -> Option<String> {
    let (plain, _) = crate::corpus::run(case, &settings(), WHOLE);
    let mut others: Vec<(&str, Came)> = Vec::new();
    for (name, every) in [("compact at every allocation", 1), ("compact at every third", 3)] {
        let settings = Settings { compact_every: Some(every), ..settings() };
        others.push((name, crate::corpus::run(case, &settings, WHOLE).0));
    }
    if plain.fuel < SHORT {
        for (name, slice) in [("slices of 1", 1), ("slices of 7", 7)] {
            others.push((name, crate::corpus::run(case, &settings(), slice).0));
        }
        if plain.succeeded() {
            others.push(("slices of 3 with a flag", crate::corpus::run_watched(case, &settings(), 3).0));
        }
        let settings = Settings { compact_every: Some(3), ..settings() };
        others.push(("slices of 5, compact at every third", crate::corpus::run(case, &settings, 5).0));
    }
    let out_of_memory = plain.failed_with("memory_exceeded");
    for (name, came) in others {
        // How much was held when memory ran out, and so the message, depends on the garbage; nothing else does.
        let part = |came: &Came| (came.failed_with("memory_exceeded"), came.prints.clone(), came.fuel);
        let same = if out_of_memory { part(&came) == part(&plain) } else { came == plain };
        if !same {
            return Some(format!("{}: {name}\n  {}\n  {plain:?}\n  {came:?}", case.name, case.source));
        }
    }
    None
}

fn check(cases: &[Case]) {
    let halves = cases.split_at(cases.len() / 2);
    let differences: Vec<String> = std::thread::scope(|scope| {
        let other = scope.spawn(|| halves.1.iter().filter_map(difference).collect::<Vec<_>>());
        let mut all: Vec<String> = halves.0.iter().filter_map(difference).collect();
        all.extend(other.join().expect("the other half"));
        all
    });
    let (count, shown) = (differences.len(), differences.iter().take(40).map(String::as_str).collect::<Vec<_>>());
    assert!(count == 0, "{count} of {} programs differ:\n{}", cases.len(), shown.join("\n"));
}

#[test]
fn the_examples_of_all_built_ins() {
    let cases = crate::corpus::builtin_examples();
    assert!(cases.len() > 300);
    check(&cases);
}

#[test]
fn programs_that_hold_what_they_build() {
    let cases = crate::corpus::programs();
    for case in &cases {
        let (came, _) = crate::corpus::run(case, &settings(), WHOLE);
        assert!(came.succeeded(), "{}: {}", case.name, came.ending);
    }
    check(&cases);
}

/// What a built-in adds to a vector is added at once, whatever it has to make room for in between.
#[test]
fn adding_several_elements_costs_the_same_at_every_budget() {
    let source =
        "(count (reduce (fn [v i] (let [w (conj v i (str i) [i])] (str i \"garbage\" (range 200)) w)) [] (range 300)))";
    let case = Case::new("conj of several", source);
    let fuel_of = |heap_bytes| {
        let (came, usage) = crate::corpus::run(&case, &Settings { heap_bytes, ..Settings::default() }, WHOLE);
        assert!(came.succeeded(), "{heap_bytes}: {}", came.ending);
        (came.fuel, usage.compactions)
    };
    let (plenty, never) = fuel_of(100_000_000);
    assert_eq!(never, 0);
    for heap_bytes in (100_000..400_000).step_by(1_777) {
        let (fuel, compactions) = fuel_of(heap_bytes);
        assert!(compactions > 0, "{heap_bytes}");
        assert_eq!(fuel, plenty, "{heap_bytes}");
    }
    check(&[case]);
}

/// The clock is asked once for each time the program asks, however often an instruction is done again.
#[test]
fn the_clock_is_asked_once() {
    let now = "(System/currentTimeMillis)";
    let cases = [
        (format!("[{now} {now} (.getTime (java.util.Date.))]"), "[1000 2000 3000]"),
        (
            format!("(map (fn [i] [i (str {now}) (range 9)]) (range 2))"),
            "[[0 \"1000\" [0 1 2 3 4 5 6 7 8]] [1 \"2000\" [0 1 2 3 4 5 6 7 8]]]",
        ),
        ("(map (fn [f] [(f) (apply f [])]) [System/currentTimeMillis])".to_owned(), "[[1000 2000]]"),
        (format!("(reduce (fn [a _] (conj a {now} (str {now}))) [] (range 2))"), "[1000 \"2000\" 3000 \"4000\"]"),
        ("(let [f (comp str System/currentTimeMillis)] [(f) (f)])".to_owned(), "[\"1000\" \"2000\"]"),
    ];
    for (source, text) in &cases {
        let case = Case::new("clock", source.clone());
        for every in [None, Some(1), Some(2), Some(3)] {
            for slice in [1, 3, WHOLE] {
                let settings = Settings { now_ms: None, compact_every: every, ..settings() };
                let (came, _) = crate::corpus::run(&case, &settings, slice);
                assert_eq!(came.text, *text, "{source}, compact at {every:?}, slices of {slice}: {}", came.ending);
            }
        }
    }
}

/// What is remembered of key arrays goes with a compaction: looking a key up costs the same with it as without.
#[test]
fn keys_that_are_looked_at_in_full() {
    let wide = |text: &str| format!("(zipmap (map (fn [i] {text}) (range 31)) (range))");
    let names = "(map (fn [i] (keyword (str \"a-name-of-some-length-that-is-not-there-\" (+ 10 i)))) (range 40))";
    let strings = wide("(str \"a_name_of_some_length_that_is_not_there_\" (+ 30 i))");
    let keywords = wide("(keyword (str \"k\" (+ 10 i)))");
    let cases = [
        Case::new("look-ups", format!("(let [m {strings}] [(map m {names}) (map m {names})])")),
        Case::new("select-keys", format!("(let [m {strings}] [(select-keys m {names}) (select-keys m {names})])")),
        Case::new("dissoc", format!("(let [m {strings}] [(apply dissoc m {names}) (apply dissoc m {names})])")),
        Case::new(
            "one key",
            format!(
                "(let [m {strings}] (map (fn [_] [(:a-name-of-some-length-that-is-not-there-35 m) (:a-name m)]) (range 9)))"
            ),
        ),
        Case::new("assoc", format!("(let [m {keywords}] (map (fn [_] (assoc m :k99 1)) (range 9)))")),
        Case::new("assoc to strings", format!("(let [m {strings}] (map (fn [_] (assoc m :k99 1)) (range 9)))")),
        Case::new("conj", format!("(let [m {keywords}] (reduce (fn [m i] (conj m [:k99 i])) m (range 9)))")),
    ];
    for case in &cases {
        let (came, _) = crate::corpus::run(case, &settings(), WHOLE);
        assert!(came.succeeded(), "{}: {}", case.name, came.ending);
    }
    check(&cases);
}

#[test]
fn whole_programs() {
    let mut cases = crate::corpus::example_programs();
    assert!(cases.len() >= 4);
    cases.extend(crate::corpus::case_files());
    check(&cases);
}

#[test]
fn conformance_cases_beside_the_repository() {
    let cases = crate::corpus::conformance_cases();
    check(&cases);
    println!("{} cases", cases.len());
}
