//! Calls with very many arguments, through `apply`: every built-in and every function made of others takes them or
//! refuses them, the same each time, and what it comes to is what another way to compute it comes to.

use lisp_core::builtins::Builtin;
use lisp_core::compile::Program;
use lisp_core::error::Reason;
use lisp_core::heap::{Heap, Res, TextBuf, Value};
use lisp_core::library::{BuiltinId, all};
use lisp_core::syntax::ReadLimits;
use lisp_core::text::pr_str;
use lisp_core::vm::{Ending, Grant, Machine, Settings};
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many arguments: few, around 65,536 with every number of registers of a frame, and far more.
const COUNTS: &[usize] = &[0, 1, 2, 65_533, 65_534, 65_535, 65_536, 65_537, 65_538, 65_539, 65_540, MAX];
const MAX: usize = 300_000;
/// The counts for what goes through no frame, and for debug builds, which are slow.
const FEW_COUNTS: &[usize] = &[0, 1, 2, 65_536];

/// What the arguments are: `data/KIND` has as many of each as there are arguments at most.
const KINDS: &[&str] = &["ints", "units", "texts", "nils", "functions", "vectors", "pairs", "maps"];

fn given() -> Arc<Grant> {
    let grant = Grant::build(usize::MAX, |h: &Heap, b| -> Res<()> {
        let max = MAX as i64;
        b.data("ints", h.vector_from(MAX, (0..max).map(Value::Int))?);
        b.data("units", h.vector_from(MAX, (0..max).map(|i| Value::Int(1 - 2 * (i % 2))))?);
        let texts = (0..MAX).map(|i| h.str(&format!("t{i}"))).collect::<Res<Vec<_>>>()?;
        b.data("texts", h.vector(&texts)?);
        b.data("nils", h.vector_from(MAX, std::iter::repeat(Value::Nil))?);
        let inc = BuiltinId::by_name("inc").map_or(Value::Nil, Value::Builtin);
        b.data("functions", h.vector_from(MAX, std::iter::repeat(inc))?);
        let one = h.vector(&[Value::Int(1)])?;
        b.data("vectors", h.vector_from(MAX, std::iter::repeat(one))?);
        let pairs = (0..max).map(|i| h.vector(&[Value::Int(i), Value::Int(-i)])).collect::<Res<Vec<_>>>()?;
        b.data("pairs", h.vector(&pairs)?);
        let a = h.keyword("a")?;
        let maps = (0..max).map(|i| h.map([(a, Value::Int(i))].into_iter())).collect::<Res<Vec<_>>>()?;
        b.data("maps", h.vector(&maps)?);
        Ok(())
    });
    Arc::new(grant.expect("the arguments"))
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
enum Came {
    /// A value: its length and hash when printed.
    Value(usize, u64),
    Error(&'static str),
}

struct Run {
    came: Came,
    /// The printed value or the message, cut.
    shown: String,
    fuel: u64,
}

struct Runner {
    grant: Arc<Grant>,
    hasher: RandomState,
}

impl Runner {
    fn new() -> Self {
        Runner { grant: given(), hasher: RandomState::new() }
    }

    /// Runs a program in slices; a panic or a fault of the host is an error of the test.
    fn run(&self, source: &str, slice: u64) -> Result<Run, String> {
        let program = Program::compile(source, &ReadLimits::default()).map_err(|e| format!("{source}: {e}"))?;
        let settings = Settings {
            heap_bytes: 400_000_000,
            fuel: Some(40_000_000),
            loop_iterations: 0,
            now_ms: Some(1_700_000_000_000),
            ..Settings::default()
        };
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let mut machine = Machine::new(vec![self.grant.clone()], settings.clone());
            machine.load(Arc::new(program)).map_err(|e| format!("{source}: {e}"))?;
            let reply = |machine: &mut Machine| drop(machine.reply(|_| Ok(Value::Nil)));
            let ending = crate::workers::to_end(&mut machine, &settings, slice, &reply);
            let fuel = machine.usage().fuel;
            Ok(match ending {
                Ending::Error(error) if error.reason == Reason::HostFault => return Err(format!("{source}: {error}")),
                Ending::Error(error) => {
                    Run { came: Came::Error(error.reason.name()), shown: cut(&error.to_string()), fuel }
                }
                _ => {
                    let text = printed(&mut machine);
                    Run { came: Came::Value(text.len(), self.hasher.hash_one(&text)), shown: cut(&text), fuel }
                }
            })
        }));
        ended.unwrap_or_else(|_| Err(format!("{source}: a panic")))
    }
}

fn printed(machine: &mut Machine) -> String {
    let text: Res<String> = machine.with_result(|h, v| {
        h.unmetered(usize::MAX, u64::MAX, || {
            let mut out = TextBuf::new(h);
            pr_str(h, v, &mut out)?;
            Ok(out.into_string())
        })
    });
    text.expect("nothing limits the text of a result here")
}

fn cut(text: &str) -> String {
    text.chars().take(120).collect()
}

/// Does all the work on two threads.
fn each<T: Sync>(items: &[T], check: impl Fn(&T) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(check(item).err());
        }
        failures
    };
    let failures = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut failures = work();
        failures.extend(other.join().expect("the other half"));
        failures
    });
    let shown: Vec<&str> = failures.iter().take(40).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} calls:\n{}", failures.len(), shown.join("\n"));
}

/// The calls that a built-in takes or refuses: with all arguments from the collection, or one in front of them, which
/// most functions that call functions ask for. How many are too many matters, not which.
fn calls(row: &Builtin) -> Vec<(String, usize)> {
    let mut calls = Vec::new();
    for (i, kind) in KINDS.iter().enumerate() {
        for &count in if cfg!(debug_assertions) { FEW_COUNTS } else { COUNTS } {
            let rest = format!("(take {count} data/{kind})");
            let given = [
                (format!("(apply {} {rest})", row.name), count),
                (format!("(apply {} max {rest})", row.name), count + 1),
                (format!("(apply {} {{}} {rest})", row.name), count + 1),
            ];
            calls.extend(given.into_iter().filter(|&(_, count)| i == 0 || row.takes(count)));
        }
    }
    calls
}

#[test]
fn every_built_in_takes_or_refuses_many_arguments() {
    let runner = Runner::new();
    let rows: Vec<&Builtin> = all().iter().collect();
    each(&rows, |row| {
        for (source, count) in calls(row) {
            let run = runner.run(&source, u64::MAX / 2)?;
            let refused = matches!(run.came, Came::Error("arity_error" | "java_arity_error"))
                && run.shown.contains(&format!("{} takes", row.name));
            if row.takes(count) == refused {
                return Err(format!("{source}: {count} arguments came to {}", run.shown));
            }
            // Once more, with pauses in between.
            if row.takes(count) && [2, 65_536].contains(&count) {
                let again = runner.run(&source, 20_000)?;
                if (&again.came, again.fuel) != (&run.came, run.fuel) {
                    return Err(format!("{source}: {} and {}, not the same twice", run.shown, again.shown));
                }
            }
        }
        Ok(())
    });
}

/// Two ways to compute the same of `xs`, the elements of `data/KIND` for each kind named. `N` stands for how many there are.
const LAWS: &[(&str, &str, &str)] = &[
    // Folds of two arguments at a time.
    ("ints", "(apply + xs)", "(if (empty? xs) 0 (reduce + xs))"),
    ("units", "(apply * xs)", "(if (empty? xs) 1 (reduce * xs))"),
    ("ints units", "(if (seq xs) (apply - xs))", "(if (seq xs) (if (next xs) (reduce - xs) (- (first xs))))"),
    ("ints units", "(if (seq xs) (apply max xs))", "(reduce max xs)"),
    ("ints units", "(if (seq xs) (apply min xs))", "(reduce min xs)"),
    ("ints units", "(if (next xs) (apply bit-xor xs))", "(if (next xs) (reduce bit-xor xs))"),
    ("ints texts nils units", "(apply str xs)", "(join \"\" (remove nil? xs))"),
    ("ints texts vectors nils", "(apply vector xs)", "(vec xs)"),
    ("ints texts vectors nils", "(apply list xs)", "(into [] xs)"),
    ("ints nils", "(apply hash-set xs)", "(set xs)"),
    ("vectors pairs", "(apply concat xs)", "(vec (mapcat identity xs))"),
    ("ints texts nils vectors", "(apply conj [] xs)", "(into [] xs)"),
    ("ints nils", "(apply conj #{} xs)", "(into #{} xs)"),
    ("pairs", "(apply conj {} xs)", "(into {} xs)"),
    ("ints texts", "(apply disj (set (take 100 xs)) xs)", "#{}"),
    ("maps nils", "(if (seq xs) (apply merge xs))", "(reduce (fn [a b] (merge a b)) nil xs)"),
    ("maps", "(apply merge-with + {} xs)", "(if (seq xs) {:a (reduce + (map :a xs))} {})"),
    ("ints texts", "(apply dissoc {:b 1} xs)", "{:b 1}"),
    ("pairs", "(apply assoc {:b 1} :b 2 (mapcat identity xs))", "(into {:b 2} xs)"),
    ("pairs", "(apply hash-map (mapcat identity xs))", "(into {} xs)"),
    // Chains of comparisons.
    (
        "ints units",
        "(if (seq xs) (apply < xs))",
        "(if (seq xs) (every? (fn [[a b]] (< a b)) (map vector xs (rest xs))))",
    ),
    (
        "ints units",
        "(if (seq xs) (apply >= xs))",
        "(if (seq xs) (every? (fn [[a b]] (>= a b)) (map vector xs (rest xs))))",
    ),
    (
        "ints units texts nils",
        "(if (seq xs) (apply = xs))",
        "(if (seq xs) (apply = (vec (distinct (conj xs (first xs))))))",
    ),
    ("ints units nils", "(if (seq xs) (apply distinct? xs))", "(if (seq xs) (= (count xs) (count (set xs))))"),
];

/// Laws of functions that are called through frames, or lay their arguments out again.
const LAWS_OF_FRAMES: &[(&str, &str, &str)] = &[
    // Functions of the program.
    ("ints texts nils", "(apply (fn [& more] (count more)) xs)", "N"),
    ("ints texts nils", "(apply (fn [a & more] [a (count more) (last more)]) :x xs)", "[:x N (last xs)]"),
    ("ints nils", "(apply (fn f [& more] (if (< (count more) N) 0 (last more))) xs)", "(last xs)"),
    // Functions made of others.
    ("ints", "(apply (juxt + max) 0 xs)", "[(apply + xs) (apply max 0 xs)]"),
    ("ints texts", "(apply (juxt vector (fn [& more] (count more))) xs)", "[(vec xs) N]"),
    ("ints", "(apply (comp inc +) xs)", "(inc (apply + xs))"),
    ("ints", "(apply (comp inc (fn [& more] (apply + more))) xs)", "(inc (apply + xs))"),
    ("ints texts", "(apply (partial vector 1 2) xs)", "(into [1 2] xs)"),
    ("ints", "(apply (partial + 1) xs)", "(inc (apply + xs))"),
    ("ints texts", "((apply partial vector xs) 1 2)", "(conj (vec xs) 1 2)"),
    ("ints nils", "(apply (complement (fn [& more] (= N (count more)))) xs)", "false"),
    ("ints", "(apply (complement <) -1 xs)", "(not (apply < -1 xs))"),
    ("ints", "(apply (every-pred int? (fn [x] (< x 5000))) xs)", "(every? (fn [x] (< x 5000)) xs)"),
    ("ints nils", "(apply (every-pred (constantly true)) xs)", "true"),
    ("ints nils", "(apply (every-pred int? (constantly true)) xs)", "(every? int? xs)"),
    ("ints", "(apply (every-pred (fn [x] (not= x (dec N)))) xs)", "(= 0 N)"),
    ("ints", "(apply (some-fn (fn [x] (when (= x (dec N)) :last))) xs)", "(if (= 0 N) nil :last)"),
    ("ints nils", "(apply (some-fn nil? string?) 0 xs)", "(true? (some nil? xs))"),
    ("ints", "(apply (fnil + 7) nil xs)", "(+ 7 (apply + xs))"),
    ("ints nils", "(apply (constantly :c) xs)", ":c"),
    ("ints", "(apply update {:a 1} :a + xs)", "{:a (inc (apply + xs))}"),
    ("ints", "(apply update {:a 1} :a (fn [& more] (apply + more)) xs)", "{:a (inc (apply + xs))}"),
    ("ints", "(apply update-in {:a {:b 1}} [:a :b] + xs)", "{:a {:b (inc (apply + xs))}}"),
    // Very many functions.
    ("functions", "((apply juxt identity xs) 1)", "(into [1] (map (constantly 2) xs))"),
    ("functions", "((apply comp xs) 0)", "N"),
    ("functions", "((apply comp identity xs) 0)", "N"),
    ("functions", "((apply every-pred int? xs) 1)", "true"),
    ("functions", "((apply every-pred int? (conj (vec xs) nil?)) 1)", "false"),
    ("functions", "((apply some-fn nil? (map (constantly nil?) xs)) 1)", "false"),
    (
        "functions",
        "(reduce (fn [f g] (comp f g)) identity (take 1000 xs))",
        "(if (= 0 N) identity (apply comp identity (take 1000 xs)))",
    ),
    // The best of many arguments.
    ("ints", "(apply max-key - 1 xs)", "(if (= 0 N) 1 0)"),
    ("ints", "(apply min-key - 0 xs)", "(if (= 0 N) 0 (dec N))"),
    ("ints", "(apply max-by identity -2 -1 xs)", "(if (= 0 N) -1 (dec N))"),
    ("ints", "(apply min-by identity 2 1 xs)", "(if (= 0 N) 1 0)"),
    ("ints", "(apply apply [+ xs])", "(apply + xs)"),
    ("ints", "(apply apply + 1 [xs])", "(apply + 1 xs)"),
];

#[test]
fn many_arguments_come_to_what_another_way_comes_to() {
    let runner = Runner::new();
    let mut laws = Vec::new();
    for (table, counts) in [(LAWS, FEW_COUNTS), (LAWS_OF_FRAMES, COUNTS)] {
        for (kinds, a, b) in table {
            for kind in kinds.split(' ') {
                laws.extend(counts.iter().map(|&count| (kind, count, *a, *b)));
            }
        }
    }
    each(&laws, |&(kind, count, a, b)| {
        let write =
            |e: &str| format!("(let [xs (vec (take {count} data/{kind}))] {})", e.replace('N', &count.to_string()));
        let (left, right) = (runner.run(&write(a), 50_000)?, runner.run(&write(b), u64::MAX / 2)?);
        if left.came != right.came || matches!(left.came, Came::Error(_)) {
            return Err(format!("{kind} x {count}: {a} is {}\n    {b} is {}", left.shown, right.shown));
        }
        Ok(())
    });
}
