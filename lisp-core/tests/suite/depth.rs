//! Values nested deep, of every kind in every other, through all that takes values apart, on a native stack that is too small
//! for any recursion over them: a level has 26 bytes of it.

use crate::common::{Answer, answer_with_tools};
use lisp_core::builtins::{Builtin, MANY};
use lisp_core::compile::Program;
use lisp_core::error::Reason;
use lisp_core::library::all;
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::{Machine, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The stack of the threads here. That of the main thread is 64 times as large.
const STACK: usize = 128 << 10;
/// Fuel for anything.
const WITHOUT_END: u64 = u64::MAX / 4;
/// The depth of a value that takes more stack than there is, whatever a level takes.
const DEPTH: usize = 5_000;
/// That of each kind and of pairs of kinds, of which there are many: two thousand native frames are more than the small stack has, too.
const PAIR_DEPTH: usize = 2_000;

/// Values made of another one, `a`.
const LEVELS: &[&str] = &[
    "[a]",
    "[0 a [1]]",
    "(conj [0] a)",
    "(subvec [0 a 1] 1 2)",
    "{:k a}",
    "{a 1}",
    "{0 1 a 2 \"k\" []}",
    "#{a}",
    "#{0 a []}",
    "(fn [] a)",
    "(fn [x] (fn [] [x a]))",
    "(partial vector a)",
    "(comp vector (constantly a))",
    "(juxt (partial vector a) vector)",
    "(complement (constantly a))",
    "(fnil vector a)",
    "(every-pred (constantly a))",
    "(some-fn (constantly a))",
    "(map (constantly a))",
    "(interpose a)",
    "(ex-info \"m\" {:a a})",
    "(ex-info \"m\" {} (ex-info \"n\" {:a a}))",
    "(reduced (reduced a))",
    "(repeat a)",
    "(iterate vector a)",
    "(cycle [0 a])",
    "(cons a (range))",
    "(map (constantly a) (range))",
];

/// A value of `depth` levels, each of which makes one of each of `levels`.
fn tower(levels: &[&str], depth: usize, lowest: &str) -> String {
    let inner = levels.iter().fold("a".to_owned(), |inner, level| format!("(let [a {inner}] {level})"));
    format!("(reduce (fn [a _] {inner}) {lowest} (range {}))", depth / levels.len())
}

/// Runs work on threads with small stacks.
fn with_small_stacks(works: [&(dyn Fn() + Sync); 2]) {
    std::thread::scope(|scope| {
        let small = |work| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).expect("a thread");
        works.map(small).into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

fn machine(heap_bytes: usize, fuel: u64) -> Machine {
    let settings = Settings {
        heap_bytes,
        fuel: Some(fuel),
        loop_iterations: 0,
        now_ms: Some(1_700_000_000_000),
        ..Settings::default()
    };
    Machine::new(Vec::new(), settings)
}

/// What a program answers; a tool answers its arguments.
fn answer(machine: &mut Machine, source: &str) -> Answer {
    let answer = answer_with_tools(machine, source, 1_000_000, |machine| {
        drop(machine.reply_from_call(|h, _, args| h.vector(args)));
    });
    drop(machine.take_prints());
    answer
}

/// A machine with the definitions `d` and `e`, which are equal, and `c`, which differs from them at the lowest level; `None`
/// where there is no such value.
fn with_towers(levels: &[&str], depth: usize, heap_bytes: usize, fuel: u64) -> Option<Machine> {
    let mut machine = machine(heap_bytes, fuel);
    let [d, e, c] = ["1", "1", "2"].map(|lowest| tower(levels, depth, lowest));
    match answer(&mut machine, &format!("(def d {d}) (def e {e}) (def c {c}) nil")) {
        Ok(_) => Some(machine),
        Err(("type_error" | "endless_sequence", _)) => None,
        Err((_, error)) => panic!("{levels:?}: {error}"),
    }
}

/// What comes of deep values is no matter here, but for this.
const CALLS: &[&str] = &[
    "[(= d d) (= d e) (= d c) (= c d) (= [d] [e]) (= {d 1} {e 1}) (= #{d} #{e})]",
    "(if (= d e) 1 2)",
    "(case d 1 2 3)",
    "(case 1 [1] 2 3)",
    "[(get {d 1} e) (get {d 1} c) (contains? #{d 1} e) (contains? #{d 1} c) ({d 1} e) (= d (#{d} e))]",
    "(get-in {d {e 1}} [e d])",
    "(count (distinct [d e c]))",
    "(count (set [d e c]))",
    "(count (frequencies [d e c d]))",
    "(count (group-by identity [d e c]))",
    "(map count (partition-by identity [d e c]))",
    "(count (dedupe [d e c]))",
    "(get (assoc (zipmap (range 40) (range 40)) d :found) e)",
    "(count (into (set (range 40)) [d e c]))",
    "(count (dissoc (assoc (zipmap (range 40) (range 40)) d 1) e))",
    "(count (disj #{d 1} e))",
    "(count (str d))",
    "(count (pr-str d))",
    "(println d e)",
    "(prn d)",
    "(count (format \"%s\" d))",
    "(count (json/generate-string d))",
    "(compare [d] [e])",
    "(sort [[d] [e]])",
    "(count (sort-by identity [d e]))",
    "(count (sort-by count [#{d 1} #{e 2} #{d e}]))",
    "(count (flatten [d e]))",
    "(count (tree-seq coll? seq d))",
    "(count (str (postwalk identity d)))",
    "(count (str (prewalk identity d)))",
    "(count (str (walk identity identity d)))",
    "(count (describe d))",
    "(count (pmap (fn [x] [x (= x d) #{x}]) [d e]))",
    "(first (tool/echo {:x d}))",
    "(try (throw (ex-info \"m\" {:d d})) (catch Exception e (count (str (ex-data e)))))",
    "(try (throw d) (catch Exception e (count (str e))))",
    "(throw d)",
    "(throw (ex-info \"m\" {:d d} e))",
    "(let [x d y {e 1}] (+ x y))",
    "(d 1 2 3)",
    "(return d)",
    "(fail d)",
    "[d e]",
];

fn calls(machine: &mut Machine, kind: &str, calls: &[&str]) -> Vec<Answer> {
    calls
        .iter()
        .map(|call| {
            let came = answer(machine, call);
            let is_host_fault = matches!(came, Err((reason, _)) if reason == Reason::HostFault.name());
            assert!(!is_host_fault, "{kind}: {call}: {came:.300?}");
            came
        })
        .collect()
}

/// The kinds of which there are two that are equal: they hold no functions and no endless sequences.
fn is_plain(levels: &[&str]) -> bool {
    levels.iter().all(|level| {
        matches!(level.as_bytes()[0], b'[' | b'{' | b'#')
            || level.starts_with("(conj")
            || level.starts_with("(subvec")
            || level.starts_with("(ex-info")
    })
}

/// What must come of some of the calls where values are plain.
const WANTED: &[(usize, &str)] =
    &[(0, "[true true false false true true true]"), (4, "[1 nil true false 1 true]"), (6, "2"), (12, ":found")];

fn check(levels: &[&str], depth: usize, calls_of: &[&str]) -> bool {
    let Some(mut machine) = with_towers(levels, depth, 30_000_000, WITHOUT_END) else { return false };
    let came = calls(&mut machine, &format!("{levels:?}"), calls_of);
    for (place, wanted) in WANTED.iter().filter(|_| is_plain(levels)) {
        let got = came[*place].as_ref().map_or_else(|error| error.1.as_str(), String::as_str);
        assert!(got == *wanted, "{levels:?}: {}: wanted {wanted}, got {got:.100}", CALLS[*place]);
    }
    true
}

#[test]
fn every_kind_of_value() {
    let work = |part: usize| {
        let built = LEVELS.iter().skip(part).step_by(2).filter(|level| check(&[level], PAIR_DEPTH, CALLS)).count();
        assert!(built > 12, "{built}");
    };
    with_small_stacks([&|| work(0), &|| work(1)]);
}

/// Two kinds by turns, through the first calls, which take a value apart in each of the ways there are.
#[test]
fn every_kind_of_value_in_every_other() {
    let first = &CALLS[..CALLS.iter().position(|call| call.starts_with("(compare")).expect("a call")];
    let work = |part: usize| {
        let mut built = 0;
        for (i, one) in LEVELS.iter().enumerate().skip(part).step_by(2) {
            built += LEVELS[i + 1..].iter().filter(|other| check(&[one, other], PAIR_DEPTH, first)).count();
        }
        assert!(built > 100, "{built}");
    };
    with_small_stacks([&|| work(0), &|| work(1)]);
}

#[test]
fn a_million_levels() {
    const MILLION: usize = 1_000_000;
    let few = &[CALLS[0], CALLS[4], "(count (pr-str d))", "(count (json/generate-string d))", "(compare [d] [e])"];
    let check = |levels: &[&str]| {
        let Some(mut machine) = with_towers(levels, MILLION, 2_000_000_000, WITHOUT_END) else {
            panic!("{levels:?}: no such value");
        };
        let came = calls(&mut machine, &format!("{levels:?}"), few);
        for (i, wanted) in [(0, WANTED[0].1), (1, WANTED[1].1)] {
            let got = came[i].as_ref().map_or_else(|error| error.1.as_str(), String::as_str);
            assert!(got == wanted, "{levels:?}: {}: wanted {wanted}, got {got:.100}", few[i]);
        }
    };
    with_small_stacks([&|| check(&["[a]", "{:k a}"]), &|| check(&["#{a}", "{a 1}"])]);
}

/// Arguments of the calls of every function: some that it takes, and deep ones in all places.
fn calls_of(row: &Builtin) -> Vec<String> {
    const MANY_KINDS: &[&str] = &["d", "e", "[d e]", "{d e}", "identity", "2", "[[d e] [e d]]"];
    const FEW_KINDS: &[&str] = &["d", "[d e]", "identity", "{d 1}"];
    let mut calls = Vec::new();
    for count in row.min.max(1)..=if row.max == MANY { row.min.max(3) } else { row.max.min(3) } {
        let kinds = if count < 3 { MANY_KINDS } else { FEW_KINDS };
        for mut number in 0..kinds.len().pow(count.into()) {
            let mut call = format!("({}", row.name);
            for _ in 0..count {
                call = format!("{call} {}", kinds[number % kinds.len()]);
                number /= kinds.len();
            }
            calls.push(call + ")");
        }
    }
    calls
}

#[test]
fn every_function_of_the_table() {
    const FUEL: u64 = 40_000_000;
    let towers: &[&[&str]] =
        &[&["[a]", "{:k a}", "{a 1}", "#{a}"], &["(fn [] a)", "[a]", "(partial vector a)", "{a a}"]];
    let values = AtomicUsize::new(0);
    let work = |levels: &[&str]| {
        let build = || with_towers(levels, DEPTH, 30_000_000, FUEL).expect("such a value");
        let mut machine = build();
        for row in all() {
            for call in calls_of(row) {
                match answer(&mut machine, &call) {
                    Err((reason, error)) if reason == Reason::HostFault.name() => panic!("{call}: {error:.300}"),
                    Err((reason, _)) if reason == Reason::FuelExhausted.name() => machine = build(),
                    Err(_) => {}
                    Ok(_) => {
                        values.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            // The definitions are still there.
            let same = answer(&mut machine, "(= d d)");
            let is_exhausted = matches!(&same, Err((reason, _)) if *reason == Reason::FuelExhausted.name());
            assert!(is_exhausted || same.as_deref() == Ok("true"), "{}: {same:.300?}", row.name);
        }
    };
    with_small_stacks([&|| work(towers[0]), &|| work(towers[1])]);
    let values = values.into_inner();
    assert!(values > 10 * all().len(), "of so many calls came a value: {values}");
}

/// What is saved of deep values is restored, and equals them.
#[test]
fn deep_definitions_are_saved_and_restored() {
    let check = |levels: &[&str]| {
        let mut machine = with_towers(levels, DEPTH, 100_000_000, WITHOUT_END).expect("such a value");
        let text = machine.save(false, 1 << 30, |h, write| h.unmetered(1 << 30, u64::MAX, write)).expect("a text");
        let mut other = self::machine(100_000_000, WITHOUT_END);
        let mut compile = |saved: lisp_core::vm::SavedProgram<'_>| {
            Program::compile(&saved.source, &ReadLimits::default()).map(Arc::new)
        };
        assert!(other.restore(&text, 1, None, &mut compile).is_ok(), "{levels:?}");
        let mut other = calls(&mut other, &format!("{levels:?}"), &["[(= d e) (= d c) (= d d)]"]);
        let wanted = if is_plain(levels) { "[true false true]" } else { "[false false true]" };
        assert_eq!(other.pop().expect("an answer").as_deref(), Ok(wanted), "{levels:?}");
    };
    with_small_stacks([&|| check(&["[a]", "{:k a}", "{a 1}", "#{a}"]), &|| {
        check(&["(fn [] a)", "(partial vector a)", "(map (constantly a))", "[a]", "{a 1}"]);
    }]);
}

/// Paths of many keys, paths in paths, and texts of one long token, of deep patterns and of deep JSON.
#[test]
fn long_paths_and_texts() {
    const ROWS: &[(&str, &str)] = &[
        ("(get-in (assoc-in {} (range 30000) :end) (range 30000))", ":end"),
        ("(get-in (update-in {} (range 30000) (fn [_] :end)) (range 30000))", ":end"),
        ("(get-in {1 {2 :end}} [(reduce (fn [a _] [a]) [1] (range 30000)) 2])", ":end"),
        ("(count (json/generate-string (reduce (fn [a _] [a]) 1 (range 500))))", "1001"),
        ("(count (json/generate-string (reduce (fn [a _] [a]) 1 (range 30000))))", "?"),
        ("(json/parse-string (apply str (repeat 30000 \"[\")))", "nil"),
        ("(re-find (re-pattern (str (apply str (repeat 30000 \"(\")) \"a\")) \"a\")", "?"),
        ("(re-find (re-pattern (str (apply str (repeat 30000 \"(a\")) (apply str (repeat 30000 \")\")))) \"a\")", "?"),
        ("(re-find (re-pattern (str (apply str (repeat 200 \"(a?\")) (apply str (repeat 200 \")*\")))) \"a\")", "?"),
        ("(read-string (apply str (repeat 30000 \"[\")))", "?"),
        ("(format (apply str (repeat 30000 \"%s \")) 1)", "?"),
    ];
    let programs = || {
        for (source, wanted) in ROWS {
            let came = answer(&mut machine(100_000_000, WITHOUT_END), source);
            // What is too deep is refused, or found.
            assert!(*wanted == "?" || came.as_deref() == Ok(*wanted), "{source}: {came:.100?}");
        }
    };
    let tokens = || {
        for part in
            ["a", "1", " ", ",", ";", ":k", "\\", "\\a", "%", "é", "'", "#_", "@", "^", "(", "[", "{", "#{", "#("]
        {
            for (before, after) in [("", ""), ("\"", "\""), ("#\"", "\""), (":", ""), (";", "\n1")] {
                let source = format!("{before}{}{after}", part.repeat(300_000 / part.len()));
                drop(Program::compile(&source, &ReadLimits::default()));
            }
        }
    };
    with_small_stacks([&programs, &tokens]);
}
