//! Tests of whole programs on a bare machine.

use super::{Effect, Ending, Grant, Machine, Settings, Step};
use crate::compile::Program;
use crate::error::Reason;
use crate::heap::{Heap, Res, Value};
use crate::syntax::ReadLimits;
use crate::text::describe;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn int(source: &str, settings: Settings) -> Result<i64, String> {
    let program = Program::compile(source, &ReadLimits::default()).map_err(|e| e.to_string())?;
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
    machine.load(Arc::new(program)).map_err(|e| e.to_string())?;
    loop {
        match machine.resume(10_000) {
            Step::Paused => {}
            Step::Effect(_) => return Err("an effect".into()),
            Step::Done(Ending::Error(error)) => return Err(error.to_string()),
            Step::Done(_) => {
                return machine.with_result(|_, v| match v {
                    Value::Int(i) => Ok(i),
                    other => Err(describe(other)),
                });
            }
        }
    }
}

#[test]
fn programs_compute() {
    let rows = [
        ("(+ 1 2)", 3),
        ("(let [x 1 y (+ x 1)] (* y 10))", 20),
        ("(defn f [n] (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (f 20)", 6765),
        ("(loop [i 0 a 0] (if (< i 100) (recur (inc i) (+ a i)) a))", 4950),
        ("(reduce + (map inc [1 2 3]))", 9),
        ("(reduce + (map + [1 2 3] [10 20 30]))", 66),
        ("(let [k 5] (reduce + (map (fn [x] (* x k)) [1 2 3])))", 30),
        ("(reduce + (for [x [1 2 3] y [10 20] :when (odd? x)] (* x y)))", 120),
        ("(->> [1 2 3 4] (filter even?) (reduce +))", 6),
        ("(-> {:a {:b 7}} :a :b)", 7),
        ("(let [{:keys [a b] :or {b 5}} {:a 1}] (+ a b))", 6),
        ("(let [[a [b & c]] [1 [2 3 4]]] (+ a b (reduce + c)))", 10),
        ("(apply + 1 [2 3])", 6),
        ("((comp inc (partial * 2)) 5)", 11),
        ("(reduce (fn [a [k v]] (+ a v)) 0 {:x 1 :y 2})", 3),
        ("(case :b :a 1 (:b :c) 2 3)", 2),
        ("(cond false 1 :else 2)", 2),
        ("(or nil false 3)", 3),
        ("(and 1 2)", 2),
        ("(first (sort > [1 3 2]))", 3),
        ("(first (sort (fn [a b] (> a b)) [1 3 2 9 4 5 8 7 6]))", 9),
        ("(:n (first (sort-by :n (fn [a b] (> a b)) [{:n 1} {:n 3} {:n 2}])))", 3),
        ("(:n (last (sort-by :n [{:n 1} {:n 3} {:n 2}])))", 3),
        ("(#(+ %1 %2) 1 2)", 3),
        ("(some-> {:a 1} :a inc)", 2),
        ("(cond-> 1 true inc false (* 100))", 2),
        ("(as-> 1 x (+ x 1) (* x 10))", 20),
        ("(:a (update {:a 1} :a + 5))", 6),
        ("(get-in (update-in {:a {:b 1}} [:a :b] inc) [:a :b])", 2),
        ("(:b (postwalk (fn [x] (if (number? x) (inc x) x)) {:a 1 :b 2}))", 3),
        ("(def x 1) (def y (+ x 1)) (+ x y)", 3),
        ("(return 5) 6", 5),
        ("(count (get (group-by odd? [1 2 3]) true))", 2),
        ("(do (defn g [& xs] (count xs)) (g 1 2 3))", 3),
    ];
    for (source, want) in rows {
        assert_eq!(int(source, Settings::default()), Ok(want), "{source}");
    }
}

#[test]
fn deep_recursion_is_bounded_by_the_heap_budget() {
    let source = "(defn f [n] (if (= n 0) 0 (+ 1 (f (dec n))))) (f 100000)";
    let with = |heap_bytes| int(source, Settings { heap_bytes, ..Settings::default() });
    assert_eq!(with(64 << 20), Ok(100_000));
    assert!(with(1 << 20).is_err_and(|e| e.starts_with("memory_exceeded")));
}

#[test]
fn garbage_does_not_count() {
    // Allocates about 40 MB in total and holds almost nothing, with a limit of 1 MB.
    let source = "(loop [i 0 v []] (if (< i 2000) (recur (inc i) (vec (range 1000))) (+ i (count v))))";
    let settings = Settings { heap_bytes: 1 << 20, loop_iterations: 0, ..Settings::default() };
    assert_eq!(int(source, settings), Ok(3_000));
    let source = "(defn f [n] (if (= n 0) [] (conj (f (dec n)) (map inc (range 100))))) (count (f 300))";
    let settings = Settings { heap_bytes: 2 << 20, ..Settings::default() };
    assert_eq!(int(source, settings), Ok(300));
}

/// A driver finds out only afterwards that a program ended too late.
#[test]
fn a_run_stopped_after_its_end_has_failed() {
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), Settings::default());
    let load = |machine: &mut Machine, source: &str| {
        let program = Program::compile(source, &ReadLimits::default()).expect("a program");
        machine.load(Arc::new(program)).expect("it can be loaded");
        machine.resume(10_000)
    };
    assert!(matches!(load(&mut machine, "(def x 1)"), Step::Done(Ending::Value)));
    assert!(matches!(load(&mut machine, "(def x 2) x"), Step::Done(Ending::Value)));
    machine.stop(crate::Error::new(crate::Reason::Timeout, "too late"));
    assert!(
        matches!(machine.resume(10_000), Step::Done(Ending::Error(error)) if error.reason == crate::Reason::Timeout)
    );
    assert!(matches!(load(&mut machine, "x"), Step::Done(Ending::Value)));
    assert!(machine.with_result(|_, v| matches!(v, Value::Int(1))));
}

/// A compaction continues as long as the driver allows. A run that is stopped during it leaves the definitions
/// unchanged, and the next run finishes it.
#[test]
fn a_run_may_be_stopped_in_a_compaction() {
    let settings = || Settings { heap_bytes: 4 << 20, loop_iterations: 0, ..Settings::default() };
    let load = |machine: &mut Machine, source: &str| {
        let program = Program::compile(source, &ReadLimits::default()).expect("a program");
        machine.load(Arc::new(program)).expect("it can be loaded");
    };
    let kept =
        "(def kept {:rows (mapv (fn [i] {:id i :name (str \"row \" i)}) (range 3000)) :text (join (range 9000))})";
    let hungry = "(def kept nil)
        (defn deep [n] (if (zero? n) (count (mapv (fn [i] [i (str i)]) (range 12000))) (inc (deep (dec n)))))
        (loop [i 0] (deep 400) (if (< i 10) (recur (inc i)) i))";
    let check = "(= [3000 \"row 2999\" 34890 4498500]
        [(count (:rows kept)) (:name (last (:rows kept))) (count (:text kept)) (reduce + (map :id (:rows kept)))])";
    let mut stops = 0;
    for stop_after in (1..).step_by(3) {
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings());
        load(&mut machine, kept);
        while !matches!(machine.resume(100_000), Step::Done(_)) {}
        load(&mut machine, hungry);
        let mut pauses = 0;
        let ended = loop {
            match machine.resume(100_000) {
                Step::Done(_) => break true,
                _ => pauses += usize::from(machine.compacting_for.is_some()),
            }
            if pauses == stop_after {
                break false;
            }
        };
        if ended {
            break;
        }
        machine.stop(crate::Error::new(crate::Reason::Timeout, "stopped"));
        load(&mut machine, check);
        while !matches!(machine.resume(100_000), Step::Done(_)) {}
        let same = machine.with_result(|_, v| matches!(v, Value::Bool(true)));
        assert!(same, "stopped at pause {stop_after} of a compaction");
        stops += 1;
    }
    assert!(stops > 20, "{stops} pauses");
}

/// The fuel spent on interrupted work is known when the time of a run is over; the fuel of any other run does not
/// include it.
#[test]
fn work_that_is_cut_off_is_counted() {
    let grown = "(def f (fn [] (reduce (fn [m i] [m m]) [1] (range 40)))) (= (f) (f))";
    let filled = "(loop [i 0 v []] (if (< i 90) (recur (inc i) (conj v (vec (range 3000)))) (count v)))";
    let paid_at_once = "(count (vec (repeat 1000000 1)))";
    for (source, slices, least, max) in [
        // Restarted in each slice, with twice as much.
        (grown, 1, 9_000, 11_000),
        (grown, 4, 100_000, 400_000),
        // Stopped at the charge for work that was not started.
        (paid_at_once, 1, 0, 100),
        // Between two instructions there is nothing to count.
        (filled, 3, 0, 3_100),
        ("(loop [i 0] (if (< i 900000) (recur (inc i)) i))", 3, 0, 0),
    ] {
        let settings = Settings { loop_iterations: 0, ..Settings::default() };
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
        let program = Arc::new(Program::compile(source, &ReadLimits::default()).expect("a program"));
        machine.load(program.clone()).expect("it can be loaded");
        for _ in 0..slices {
            assert!(matches!(machine.resume(10_000), Step::Paused), "{source}");
        }
        let before = machine.usage();
        assert_eq!(before.cut_off_fuel, 0, "it may go on");
        machine.stop(crate::Error::new(crate::Reason::Timeout, "stopped"));
        let (fuel, cut_off) = (machine.usage().fuel, machine.usage().cut_off_fuel);
        assert_eq!(fuel, before.fuel);
        assert!((least..=max).contains(&cut_off), "{source}, {slices} slices: {cut_off}");
        machine.load(program).expect("it can be loaded");
        assert_eq!(machine.usage().cut_off_fuel, 0, "of the program before");
    }
    let ended = |slice: u64| {
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), Settings::default());
        let source = "(count (mapv (fn [n] (count (vec (range n)))) [9 90000 900 30000]))";
        machine.load(Arc::new(Program::compile(source, &ReadLimits::default()).expect("a program"))).expect("loaded");
        while !matches!(machine.resume(slice), Step::Done(_)) {}
        let usage = machine.usage();
        (usage.fuel, usage.cut_off_fuel)
    };
    assert_eq!(ended(50), ended(1_000_000));
    assert_eq!(ended(50).1, 0);
}

/// While room is made for a tool's result, the flag that ends the run is polled.
#[test]
fn a_run_may_be_stopped_while_there_is_room_made_for_a_reply() {
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), Settings { heap_bytes: 4 << 20, ..Settings::default() });
    let load = |machine: &mut Machine, source: &str| {
        let program = Program::compile(source, &ReadLimits::default()).expect("a program");
        machine.load(Arc::new(program)).expect("it can be loaded");
    };
    load(&mut machine, "(def kept (mapv (fn [i] {:id i}) (range 3000)))");
    while !matches!(machine.resume(100_000), Step::Done(_)) {}
    load(&mut machine, "(count (tool/get (vec (range 60000))))");
    while !matches!(machine.resume(100_000), Step::Effect(Effect::ToolCall)) {}
    let flag = Arc::new(AtomicBool::new(true));
    machine.watch(flag);
    let before = machine.usage().compactions;
    let replied = machine.reply(|h| h.vector_from(180_000, std::iter::repeat(Value::Nil)));
    assert!(replied.is_err(), "the flag is raised");
    assert_eq!(machine.usage().compactions, before, "it was not waited for");
    load(&mut machine, "(= [3000 4498500] [(count kept) (reduce + (map :id kept))])");
    while !matches!(machine.resume(100_000), Step::Done(_)) {}
    assert!(machine.with_result(|_, v| matches!(v, Value::Bool(true))));
}

/// Conversions of a call by the host are charged to the program, and done again when interrupted.
#[test]
fn a_call_is_taken_on_the_bill_of_the_program() {
    let source = "(tool/f (vec (range 1000)))";
    let program = Arc::new(Program::compile(source, &ReadLimits::default()).expect("a program"));
    let called = |settings: Settings| {
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
        machine.load(program.clone()).expect("it can be loaded");
        while !matches!(machine.resume(100_000), Step::Effect(Effect::ToolCall)) {}
        machine
    };
    fn copies<'h>(h: &'h Heap, args: &[Value<'h>], times: usize) -> Res<()> {
        (0..times).try_for_each(|_| {
            h.charge(1_000)?;
            h.vector(args).map(drop)
        })
    }
    let mut machine = called(Settings { heap_bytes: 100_000, ..Settings::default() });
    let before = machine.usage();
    assert!(machine.take_call(10_000, |h, _, args| copies(h, args, 5)).is_ok());
    assert_eq!(machine.usage().fuel, before.fuel + 5_000, "its fuel is the program's");
    assert!(matches!(machine.take_call(10_000, |h, _, args| copies(h, args, 50)), Err(None)), "it is not looked after");
    assert_eq!(machine.usage().fuel, before.fuel + 5_000, "nothing is spent then");
    machine.watch(Arc::new(AtomicBool::new(false)));
    assert!(machine.take_call(10_000, |h, _, args| copies(h, args, 50)).is_ok());
    assert_eq!(machine.usage().fuel, before.fuel + 55_000);
    let large = machine.take_call(10_000, |h, _, _| h.vector_from(50_000, std::iter::repeat(Value::Nil)).map(drop));
    assert!(matches!(large, Err(Some(error)) if error.reason == Reason::MemoryExceeded));
    machine.watch(Arc::new(AtomicBool::new(true)));
    assert!(matches!(machine.take_call(10_000, |h, _, args| copies(h, args, 50)), Err(None)), "the flag is raised");
    let mut poor = called(Settings { fuel: Some(before.fuel + 3_000), ..Settings::default() });
    let taken = poor.take_call(u64::MAX, |h, _, args| copies(h, args, 5));
    assert!(matches!(taken, Err(Some(error)) if error.reason == Reason::FuelExhausted));
}

/// Compiling a pattern is charged once in a run: with the program that contains it, or when the program creates it.
#[test]
fn patterns_are_paid_for_once() {
    let fuel = |source: &str, compact_every: Option<u64>| {
        let program = Program::compile(source, &ReadLimits::default()).expect("a program");
        let settings = Settings { heap_bytes: 1 << 20, compact_every, ..Settings::default() };
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
        machine.load(Arc::new(program)).expect("it can be loaded");
        while !matches!(machine.resume(1_000), Step::Done(_)) {}
        machine.usage().fuel
    };
    let compiling = crate::regex::Regexes::fuel(r"\p{L}+");
    assert!(compiling > 10_000, "{compiling}");
    for (once, twice) in [
        (r#"(re-find #"\p{L}+" "a")"#, r#"(do (re-find #"\p{L}+" "a") (re-find #"\p{L}+" "a"))"#),
        (r#"(extract "\\p{L}+" "a" 0)"#, r#"(do (extract "\\p{L}+" "a" 0) (extract (str "\\p{L}" "+") "a" 0))"#),
    ] {
        let (first, both) = (fuel(once, None), fuel(twice, None));
        assert!(first > compiling, "{once}: {first}");
        assert!(both - first < compiling / 10, "{twice}: {first}, {both}");
        for every in [1, 2, 3, 7] {
            assert_eq!(fuel(twice, Some(every)), both, "{twice}, compacted at every {every}");
        }
    }
}

/// A name is found in a large grant quickly, and looking up names ends when stopped.
#[test]
fn names_of_grants_are_looked_up_in_a_table() {
    let grant = Grant::build(usize::MAX, |_, b| {
        for i in (0..1_000).rev() {
            b.data(&format!("n{i}"), Value::Int(i));
            b.data(&format!("n{i}"), Value::Int(-1));
        }
        b.history(Value::Int(7));
        b.define("f", Value::Int(8));
        Ok(())
    })
    .expect("a grant");
    let int = |name: &str| match grant.get(name) {
        Some(Value::Int(i)) => Some(i),
        _ => None,
    };
    for i in 0..1_000 {
        assert_eq!(int(&format!("data/n{i}")), Some(i), "of equal names the first counts");
    }
    assert_eq!((int("*1"), int("f"), int("data/n1000"), int(""), int("zzz")), (Some(7), Some(8), None, None, None));
    let source: String = (0..500).map(|i| format!("data/n{i} ")).collect();
    let program = Arc::new(Program::compile(&source, &ReadLimits::default()).expect("a program"));
    let mut machine = Machine::new(vec![Arc::new(grant)], Settings::default());
    let stopped = machine.load_unless(program.clone(), 0, &|| true);
    assert_eq!(stopped.expect_err("it may not").reason, Reason::Timeout);
    machine.load(program).expect("it may");
    while !matches!(machine.resume(100_000), Step::Done(_)) {}
    assert!(machine.with_result(|_, v| matches!(v, Value::Int(499))));
}

/// Near its memory limit a program neither runs forever nor exceeds the limit.
#[test]
fn a_run_without_room_ends_soon() {
    let source = "(let [v (vec (range 60000))] (loop [i 0] (if (< i 200000) (do [i i i] (recur (inc i))) (count v))))";
    let program = Arc::new(Program::compile(source, &ReadLimits::default()).expect("a program"));
    let run = |heap_bytes| {
        let settings = Settings { heap_bytes, loop_iterations: 0, ..Settings::default() };
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
        machine.load(program.clone()).expect("it can be loaded");
        let ending = loop {
            if let Step::Done(ending) = machine.resume(10_000) {
                break ending;
            }
        };
        (matches!(ending, Ending::Value), machine.usage())
    };
    let (mut low, mut high) = (960_000, 1_500_000);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let (fits, usage) = run(middle);
        assert!(usage.heap_peak_bytes <= middle && usage.compactions < 10_000, "{middle}: {usage:?}");
        if fits { high = middle } else { low = middle }
    }
    assert!(run(high).0 && !run(high - 1).0 && high < 1_100_000, "{high}");
}

/// Definitions from before a failed run are kept, although the run redefined them and the heap was compacted.
#[test]
fn definitions_of_before_outlive_a_failure_and_compactions() {
    for every in [None, Some(1), Some(5)] {
        let settings = Settings { compact_every: every, heap_bytes: 60_000, ..Settings::default() };
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
        let mut run = |source: &str| {
            let program = Program::compile(source, &ReadLimits::default()).expect("a program");
            machine.load(Arc::new(program)).expect("it can be loaded");
            let ending = loop {
                if let Step::Done(ending) = machine.resume(10_000) {
                    break ending;
                }
            };
            let shown = machine.with_result(|h, v| {
                let mut text = crate::heap::TextBuf::new(h);
                crate::text::pr_str(h, v, &mut text).expect("room");
                text.into_string()
            });
            (matches!(ending, Ending::Value), shown)
        };
        assert!(run("(def v (map str (range 3))) (def m {:a v \"b\" (str 1 2)}) (defn f [x] [x m v])").0);
        let known = "[[\"0\" \"1\" \"2\"] [4 {:a [\"0\" \"1\" \"2\"] \"b\" \"12\"} [\"0\" \"1\" \"2\"]]]";
        assert_eq!(run("[v (f 4)]"), (true, known.to_owned()));
        let garbage = "(count (reduce (fn [a i] (map str (range 100))) [] (range 100)))";
        for end in ["(inc nil)", "(fail 1)", "(vec (range 100000))"] {
            let (went_well, _) = run(&format!("(def v nil) (def m 1) (def f inc) {garbage} {end}"));
            assert!(!went_well, "{end}");
            assert_eq!(run(&format!("{garbage} [v (f 4)]")), (true, known.to_owned()), "{end}, every {every:?}");
        }
    }
}

/// A machine accepts only its own heap back. With the empty heap that it has meanwhile, it can only run out of memory.
#[test]
fn a_branch_goes_back_to_its_machine_only() {
    let waiting = || {
        let program = Program::compile("(pmap identity [[1] [2]])", &ReadLimits::default()).expect("a program");
        let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), Settings::default());
        machine.load(Arc::new(program)).expect("it can be loaded");
        assert!(matches!(machine.resume(100_000), Step::Effect(Effect::Parallel)));
        machine
    };
    let (mut one, mut other) = (waiting(), waiting());
    let (first, second) = (one.branch(), other.branch());
    let Err(second) = one.rejoin(second) else { panic!("it is another machine's") };
    assert!(other.rejoin(second).is_ok());
    assert!(one.rejoin(first).is_ok());
    let late = one.branch();
    assert!(other.rejoin(late).is_err(), "it has its own already");
}
