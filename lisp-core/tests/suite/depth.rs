//! Values nested deep, of every kind in every other, through all that takes values apart, on a native stack that is too small
//! for any recursion over them: a level has less than a dozen bytes of it.

use crate::common::{Answer, answer_with_tools};
use lisp_core::error::Reason;
use lisp_core::vm::{Machine, Settings};

/// The stack of the threads here. That of the main thread is 64 times as large.
const STACK: usize = 128 << 10;
/// The depth of a value that takes more stack than there is, whatever a level takes.
const DEPTH: usize = 10_000;

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
fn with_towers(levels: &[&str], depth: usize, heap_bytes: usize) -> Option<Machine> {
    let mut machine = machine(heap_bytes, u64::MAX / 4);
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

fn calls(machine: &mut Machine, kind: &str) -> Vec<Answer> {
    CALLS
        .iter()
        .map(|call| {
            let came = answer(machine, call);
            let is_host_fault = matches!(came, Err((reason, _)) if reason == Reason::HostFault.name());
            assert!(!is_host_fault, "{kind}: {call}: {came:?}");
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

fn check(levels: &[&str]) -> bool {
    let Some(mut machine) = with_towers(levels, DEPTH, 30_000_000) else { return false };
    let came = calls(&mut machine, &format!("{levels:?}"));
    if is_plain(levels) {
        let wanted =
            [(0, "[true true false false true true true]"), (4, "[1 nil true false 1 true]"), (6, "2"), (12, ":found")];
        for (place, wanted) in wanted {
            let got = came[place].as_ref().map_or_else(|error| error.1.as_str(), String::as_str);
            assert!(got == wanted, "{levels:?}: {}: wanted {wanted}, got {got:.100}", CALLS[place]);
        }
    }
    true
}

#[test]
fn every_kind_of_value() {
    let work = |part: usize| {
        let built = LEVELS.iter().skip(part).step_by(2).filter(|level| check(&[level])).count();
        assert!(built > 12, "{built}");
    };
    with_small_stacks([&|| work(0), &|| work(1)]);
}
