//! Limits are raised step by step: every failure is exactly that limit's error, the same every time, and the first
//! success is what comes without the limit.

use crate::corpus::{Came, Case};
use lisp_core::compile::Program;
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::Settings;

const WHOLE: u64 = u64::MAX / 2;

fn unlimited() -> Settings {
    Settings { heap_bytes: 0, loop_iterations: 0, ..Settings::default() }
}

fn with_heap(case: &Case, heap_bytes: usize) -> Came {
    crate::corpus::run(case, &Settings { heap_bytes, ..unlimited() }, WHOLE).0
}

fn with_fuel(case: &Case, fuel: u64) -> Came {
    crate::corpus::run(case, &Settings { fuel: Some(fuel), ..unlimited() }, WHOLE).0
}

#[test]
fn raising_the_heap_budget() {
    for case in crate::corpus::programs() {
        let (free, usage) = crate::corpus::run(&case, &unlimited(), WHOLE);
        assert!(free.succeeded(), "{}: {}", case.name, free.ending);
        let (mut budget, mut failures) = (64, 0);
        while budget < 2 * usage.allocated_bytes as usize {
            let came = with_heap(&case, budget);
            if came.succeeded() {
                assert_eq!(came, free, "{} in {budget} bytes", case.name);
            } else {
                assert!(came.failed_with("memory_exceeded"), "{} in {budget} bytes: {}", case.name, came.ending);
                assert_eq!(came, with_heap(&case, budget), "{} in {budget} bytes again", case.name);
                failures += 1;
            }
            budget += budget / 16 + 8;
        }
        assert!(failures > 0, "{} needs memory", case.name);
        assert_eq!(with_heap(&case, budget), free, "{} in twice what it allocates", case.name);
    }
}

/// The smallest budget in which a program gets through, between one that is too small and one that is enough.
fn edge(case: &Case) -> usize {
    let (mut low, mut high) = (64, 64 << 20);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if with_heap(case, middle).succeeded() { high = middle } else { low = middle }
    }
    high
}

#[test]
fn the_edge_of_the_heap_budget_is_the_same_every_time() {
    for case in [
        Case::new("held", "(let [held (vec (range 50000))] (count held))"),
        Case::new("grown", "(count (reduce conj [] (range 20000)))"),
        Case::new("deep", "(defn f [n] (if (= n 0) 0 (+ 1 (f (dec n))))) (f 5000)"),
        Case::new("text", "(count (reduce (fn [s i] (str s \"0123456789\")) \"\" (range 1000)))"),
    ] {
        let first = edge(&case);
        assert_eq!(edge(&case), first, "{}", case.name);
        assert!(with_heap(&case, first - 1).failed_with("memory_exceeded"), "{}", case.name);
        assert!(with_heap(&case, first).succeeded(), "{}", case.name);
    }
}

#[test]
fn the_error_of_the_heap_budget_has_its_figures() {
    let came = with_heap(&Case::new("", "(vec (range 1000000000))"), 1_000_000);
    assert!(came.failed_with("memory_exceeded"), "{}", came.ending);
    assert!(came.ending.contains("its budget is 1000000"), "{}", came.ending);
}

#[test]
fn raising_the_fuel_limit() {
    for case in crate::corpus::programs() {
        let free = with_fuel(&case, u64::MAX);
        assert!(free.succeeded(), "{}: {}", case.name, free.ending);
        let step = if cfg!(debug_assertions) { free.fuel / 150 + 1 } else { free.fuel / 2_000 + 1 };
        let near = free.fuel.saturating_sub(20)..free.fuel + 3;
        for limit in (1..free.fuel + 3).filter(|limit| limit % step == 0 || near.contains(limit)) {
            let came = with_fuel(&case, limit);
            if limit >= free.fuel {
                assert_eq!(came, free, "{} with {limit} units", case.name);
            } else {
                assert!(came.failed_with("fuel_exhausted"), "{} with {limit} units: {}", case.name, came.ending);
                assert!(came.fuel <= limit, "{} spent {} of {limit} units", case.name, came.fuel);
                assert_eq!(came, with_fuel(&case, limit), "{} with {limit} units again", case.name);
            }
        }
    }
}

#[test]
fn a_limit_keeps_its_name_inside_workers() {
    let case = Case::new("", "(pmap (fn [x] (count (vec (range x)))) [100000])");
    assert!(with_fuel(&case, 5_000).failed_with("fuel_exhausted"));
    assert!(with_heap(&case, 5_000).failed_with("memory_exceeded"));
}

#[test]
fn garbage_without_end_is_no_matter() {
    // Debug builds do a tenth of the work.
    let total: u64 = if cfg!(debug_assertions) { 100_000_000 } else { 1_000_000_000 };
    let rounds = total / 16_000;
    for garbage in ["(vec (range 1000))", "(apply str (range 4000))", "(zipmap (range 100) (range 100))"] {
        let source = format!(
            "(loop [i 0 allocated 0 held (vec (range 50))]
               (if (< i {rounds}) (recur (inc i) (+ allocated (count {garbage})) (assoc held (mod i 50) i)) held))"
        );
        let settings = Settings { loop_iterations: 0, ..Settings::default() };
        let (came, usage) = crate::corpus::run(&Case::new(garbage, source), &settings, WHOLE);
        assert!(came.succeeded(), "{garbage}: {}", came.ending);
        assert!(usage.allocated_bytes >= total, "{garbage}: {usage:?}");
        assert!(usage.heap_peak_bytes <= 10_000_000 && usage.compactions > 2, "{garbage}: {usage:?}");
    }
}

#[test]
fn the_peak_has_what_the_frames_took() {
    let (depth, held) = (20_000, "(vec (range 100000))");
    let peak_of = |body: &str| {
        let source = format!("(defn f [n] (if (zero? n) {body} (+ 0 (f (dec n))))) (f {depth})");
        let (came, usage) = crate::corpus::run(&Case::new("", source), &Settings::default(), WHOLE);
        assert!(came.succeeded(), "{}", came.ending);
        usage.heap_peak_bytes
    };
    let (frames, both) = (peak_of("0"), peak_of(&format!("(do (def big {held}) 0)")));
    assert!(frames > depth * 40, "{frames}");
    assert!(both >= frames + 1_600_000, "{frames} {both}");
}

/// What an error's local values take to be shown is the host's.
#[test]
fn the_peak_of_an_error_is_that_of_the_program() {
    let source = "(reduce (fn [a i] (assoc a (str \"k\" i) i)) {} (range))";
    let peak_of = |shows_locals| {
        let settings = Settings { heap_bytes: 32_768, shows_locals, ..Settings::default() };
        let (came, usage) = crate::corpus::run(&Case::new("", source), &settings, WHOLE);
        assert!(came.failed_with("memory_exceeded"), "{}", came.ending);
        usage.heap_peak_bytes
    };
    assert_eq!(peak_of(true), peak_of(false));
    assert!(peak_of(true) <= 32_768, "{}", peak_of(true));
}

#[test]
fn memory_that_a_tool_hands_over_is_charged() {
    let case = Case::new(
        "",
        "(loop [kept [] i 0] (if (< i 500) (recur (conj kept (tool/echo (vec (range 1000)))) (inc i)) 1))",
    );
    let settings = Settings { heap_bytes: 1_000_000, ..unlimited() };
    let (came, _) = crate::corpus::run(&case, &settings, WHOLE);
    assert!(came.failed_with("memory_exceeded"), "{}", came.ending);
}

/// Where the fuel ran out does not depend on when the heap was compacted last: not in the last instructions either, after
/// which nothing is charged any more.
#[test]
fn the_place_where_the_fuel_ran_out_is_the_same_in_every_rhythm() {
    for source in [
        "(def f (fn [x] [x x])) (let [x 1 xs [3 1]] [xs (return 0)])",
        "(def f (fn [x] [x x])) (let [x [1 2]] [x (fail x)])",
        r##"(def f (fn [x] [x x])) [#"(a+)+" (return 0)]"##,
        "(def a [1 2]) (def b [a a]) [a b]",
        "(try (+ 1 (count (map inc [1 nil]))) (catch ArithmeticException e [(:message e) (:reason e)]))",
        "(try (try (fail [1]) (finally (str [2] 3))) (catch Exception e (ex-data e)))",
        "(defn f [n] (if (= n 0) (throw {:n n}) (inc (f (dec n))))) [(try (f 3) (catch Exception e (ex-data e)))]",
    ] {
        let case = Case::new("", source);
        let all = with_fuel(&case, u64::MAX).fuel;
        for fuel in 0..=all {
            let came = |compact_every, slice| {
                let settings = Settings { fuel: Some(fuel), compact_every, ..unlimited() };
                crate::corpus::run(&case, &settings, slice).0
            };
            let whole = came(None, WHOLE);
            assert_eq!(whole.failed_with("fuel_exhausted"), fuel < all, "{source} with {fuel}: {}", whole.ending);
            for (every, slice) in [(Some(1), WHOLE), (Some(3), 2), (None, 1)] {
                assert_eq!(came(every, slice), whole, "{source} with {fuel} units, compacted at every {every:?}");
            }
        }
    }
}

/// A program that fails is exhausted under every limit below what it spends, like one that succeeds: nothing charges between
/// the last look at the ceiling and the instruction that fails.
#[test]
fn a_fault_beyond_the_fuel_limit_is_exhausted_fuel() {
    for source in [
        "(inc nil)",
        "(map (fn [x] (> x 1)) [:a])",
        "(let [a 1 b 2 c [a b] {:keys [d]} 5] c)",
        r##"(if (inc nil) #"(a+)+")"##,
        "(def f (fn [x] (+ x :a))) (let [v [1 2] w [v v]] (f w))",
        "(pmap (fn [x] (let [a 1 [b] x] b)) [1])",
    ] {
        let case = Case::new("", source);
        let free = with_fuel(&case, u64::MAX);
        assert!(!free.succeeded() && !free.failed_with("fuel_exhausted"), "{source}: {}", free.ending);
        for fuel in 1..=free.fuel {
            let came = with_fuel(&case, fuel);
            assert!(came.fuel <= fuel, "{source} spent {} of {fuel} units", came.fuel);
            assert_eq!(came.failed_with("fuel_exhausted"), fuel < free.fuel, "{source} with {fuel}: {}", came.ending);
            for (compact_every, slice) in [(Some(1), WHOLE), (Some(3), 2), (None, 1)] {
                let settings = Settings { fuel: Some(fuel), compact_every, ..unlimited() };
                assert_eq!(crate::corpus::run(&case, &settings, slice).0, came, "{source} with {fuel} units");
            }
        }
    }
}

/// Without room beyond the fuel limit it is the fuel that is exhausted.
#[test]
fn a_full_heap_beyond_the_fuel_limit_is_exhausted_fuel() {
    // There is room for the stack, not for the vector.
    let case = Case::new("", "(let [a 1 b 2] [a b a b a b a b])");
    let with = |fuel| crate::corpus::run(&case, &Settings { fuel, heap_bytes: 700, ..unlimited() }, WHOLE).0;
    let free = with(None);
    assert!(free.failed_with("memory_exceeded") && free.fuel > 5, "{} after {}", free.ending, free.fuel);
    for fuel in 1..=free.fuel {
        let came = with(Some(fuel));
        assert!(came.fuel <= fuel, "spent {} of {fuel} units", came.fuel);
        assert_eq!(came.failed_with("fuel_exhausted"), fuel < free.fuel, "{fuel} units: {}", came.ending);
    }
}

/// Whether there is room does not depend on the slices: steps of one native function that cost nothing begin at the same fuel,
/// and a compaction that helped one of them says nothing of the next.
#[test]
fn the_edge_of_the_heap_budget_is_the_same_in_every_slice() {
    let case = Case::new("", "(count (reverse (keep identity (range 65537))))");
    let (mut values, mut errors) = (0, 0);
    for heap_bytes in (1_500_000..5_000_000).step_by(50_000) {
        let settings = Settings { heap_bytes, ..unlimited() };
        let whole = crate::corpus::run(&case, &settings, WHOLE).0;
        assert_eq!(crate::corpus::run(&case, &settings, 1_000).0, whole, "in {heap_bytes} bytes");
        if whole.succeeded() { values += 1 } else { errors += 1 }
    }
    assert!(values > 5 && errors > 5, "{values} values, {errors} errors");
}

#[test]
fn functions_in_place_make_code_grow_by_a_bounded_factor() {
    let size = |depth: usize| {
        let program = format!("{}x{}", "(map (fn [x] ".repeat(depth), ") [1])".repeat(depth));
        Program::compile(&program, &ReadLimits::default()).expect("a program").bytes()
    };
    // Each level stands there once, and up to four times more around it.
    let (short, long) = (size(7), size(28));
    assert!(long < 6 * short, "{short} bytes at 7 levels, {long} at 28");
}
