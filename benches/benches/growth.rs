//! How the collection operations grow: units of time for one element at sizes from 100 to 1,000,000, and the order that
//! follows from the last two. An operation that is worse than it should be ends the program with an error.
//!
//! `cargo bench -p ptc-lisp-benches --bench growth`

use cpu_time::ThreadTime;
use lisp_runtime::{Engine, Input, Limits};

const SIZES: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// What an operation may cost for `n` elements.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// n
    Linear,
    /// n log n
    Sorting,
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Order::Linear => "n",
            Order::Sorting => "n log n",
        }
    }
}

/// Programs over `N` elements; each does O(N) or O(N log N) work in all.
const OPERATIONS: &[(&str, Order, &str)] = &[
    ("conj", Order::Linear, "(count (reduce conj [] (range N)))"),
    ("cons", Order::Linear, "(count (reduce (fn [v i] (cons i v)) [] (range N)))"),
    ("rest", Order::Linear, "(loop [v (range N) n 0] (if (empty? v) n (recur (rest v) (inc n))))"),
    ("pop", Order::Linear, "(loop [v (vec (range N)) n 0] (if (empty? v) n (recur (pop v) (inc n))))"),
    ("nth", Order::Linear, "(let [v (range N)] (reduce (fn [s i] (+ s (nth v i))) 0 v))"),
    ("map", Order::Linear, "(count (map (fn [x] (+ x 1)) (range N)))"),
    ("filter", Order::Linear, "(count (filter odd? (range N)))"),
    ("reverse", Order::Linear, "(count (reverse (range N)))"),
    ("concat", Order::Linear, "(count (concat (range N) (range N)))"),
    ("into a vector", Order::Linear, "(count (into [] (range N)))"),
    ("partition", Order::Linear, "(count (partition 10 (range N)))"),
    ("assoc, integer keys", Order::Sorting, "(count (reduce (fn [m i] (assoc m i i)) {} (range N)))"),
    ("assoc, string keys", Order::Sorting, "(count (reduce (fn [m i] (assoc m (str i) i)) {} (range N)))"),
    ("dissoc", Order::Sorting, "(count (reduce dissoc (zipmap (range N) (range N)) (range N)))"),
    ("get", Order::Sorting, "(let [m (zipmap (range N) (range N))] (reduce (fn [s i] (+ s (get m i))) 0 (range N)))"),
    ("into a map", Order::Sorting, "(count (into {} (map (fn [i] [i i]) (range N))))"),
    ("into a set", Order::Sorting, "(count (into #{} (range N)))"),
    ("keys", Order::Sorting, "(count (keys (zipmap (range N) (range N))))"),
    ("group-by", Order::Sorting, "(count (group-by (fn [i] (mod i 1000)) (range N)))"),
    ("frequencies", Order::Sorting, "(count (frequencies (map (fn [i] (mod i 1000)) (range N))))"),
    ("distinct", Order::Sorting, "(count (distinct (range N)))"),
    ("sort", Order::Sorting, "(count (sort (map (fn [i] (mod (* i 7919) 1000003)) (range N))))"),
    ("sort with a comparator", Order::Sorting, "(count (sort > (map (fn [i] (mod (* i 7919) 1000003)) (range N))))"),
    ("sort-by", Order::Sorting, "(count (sort-by (fn [i] (mod (* i 7919) 1000003)) (range N)))"),
    ("join", Order::Linear, "(count (str/join \",\" (range N)))"),
    ("JSON out and in", Order::Linear, "(count (json/parse-string (json/generate-string (range N))))"),
];

/// So many times worse than its order between the last two sizes is too bad: a quadratic would be ten times worse.
/// What no longer fits the caches costs several times as much.
const TOLERANCE: f64 = 5.0;

fn main() {
    let limits = Limits::default()
        .with_timeout_ms(120_000)
        .with_loop_iterations(0)
        .with_fuel(u64::MAX / 2)
        .with_heap_bytes(2 << 30);
    let engine = Engine::builder().limits(limits).build().expect("an engine");
    println!("| nanoseconds for one element | order |{}", SIZES.map(|n| format!(" {n} |")).concat());
    println!("|---|---|{}", "---|".repeat(SIZES.len()));
    let mut bad = Vec::new();
    for (name, order, source) in OPERATIONS {
        let times = SIZES.map(|n| nanoseconds(&engine, &source.replace('N', &n.to_string()), n));
        println!("| {name} | {} |{}", order.name(), times.map(|t| format!(" {t:.0} |")).concat());
        let log = |n: usize| if *order == Order::Sorting { (n as f64).ln() } else { 1.0 };
        let [.., before, last] = times;
        if last / before > TOLERANCE * log(SIZES[4]) / log(SIZES[3]) {
            bad.push(*name);
        }
    }
    assert!(bad.is_empty(), "worse than their order: {bad:?}");
}

/// The best of several runs, for one element.
fn nanoseconds(engine: &Engine, source: &str, n: usize) -> f64 {
    let program = engine.compile(source).expect("a program");
    let runs = (2_000_000 / n).clamp(2, 200);
    let times = (0..runs).map(|_| {
        let start = ThreadTime::now();
        let outcome = engine.run(&program, Input::new());
        assert!(outcome.is_success(), "{source}: {:?}", outcome.problem());
        start.elapsed().as_nanos() as f64 / n as f64
    });
    times.fold(f64::INFINITY, f64::min)
}
