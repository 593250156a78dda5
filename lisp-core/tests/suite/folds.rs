//! Built-ins that make one value of many: what arises on the way does not count. Each call succeeds in a heap that holds its result twice
//! (what it works on is the host's), with the same value and fuel as in a large one, and twice the input takes about twice the fuel. What
//! they make is what a loop over the same values makes, whenever the heap is compacted.

use lisp_core::compile::Program;
use lisp_core::heap::{Heap, Res, TextBuf, Value};
use lisp_core::syntax::ReadLimits;
use lisp_core::text::pr_str;
use lisp_core::vm::{Ending, Grant, Machine, Settings};
use std::sync::Arc;

/// Calls over `data/NAME`, each of which has some thousands of elements.
const CALLS: &[&str] = &[
    "(apply merge data/rows)",
    "(apply merge {} data/same)",
    "(apply merge data/wide)",
    "(apply conj {} data/rows)",
    "(into {} data/rows)",
    "(into {} data/pairs)",
    "(into {:a 1} data/pairs)",
    "(into #{} data/ints)",
    "(set data/ints)",
    "(apply hash-set data/ints)",
    "(apply hash-map data/ints)",
    "(apply assoc {} data/ints)",
    "(apply assoc data/wide-map data/ints)",
    "(apply conj #{} data/ints)",
    "(zipmap data/ints data/ints)",
    "(select-keys data/wide-map data/ints)",
    "(apply union data/sets)",
    "(apply union data/large-sets)",
    "(apply intersection data/large-sets)",
    "(apply intersection data/shrinking)",
    "(apply difference data/large-set data/sets)",
    "(apply difference data/large-sets)",
    "(apply disj data/large-set data/ints)",
    "(apply disj data/large-set data/some)",
    "(apply dissoc data/wide-map data/ints)",
    "(apply dissoc data/wide-map data/some)",
    "(apply + data/bigs)",
    "(apply - data/bigs)",
    "(sum data/bigs)",
    "(reduce + data/bigs)",
    "(apply bit-or data/bigs)",
    "(apply bit-xor data/bigs)",
    "(apply max data/bigs)",
    "(apply str data/ints)",
    "(apply concat data/vectors)",
    "(apply concat data/sets)",
    "(apply vector data/ints)",
    "(apply conj [] data/ints)",
    "(apply interleave [data/ints data/ints])",
    "(join data/ints)",
    "(apply merge-with + data/same)",
    "(apply merge-with + data/rows)",
    "(apply merge-with + data/wide)",
    "(update-vals data/wide-map identity)",
    "(reduce-kv (fn [a k v] (assoc a k v)) {} data/wide-map)",
    "(group-by (fn [x] (mod x 10)) data/ints)",
    "(frequencies data/ints)",
    "(frequencies data/tens)",
    "(distinct data/tens)",
    "(dedupe data/ints)",
    "(flatten data/vectors)",
    "(mapcat identity data/vectors)",
    "(set data/tens)",
    "(into #{} data/tens)",
    "(into {} data/same)",
    "(apply conj {} data/same)",
    "(into data/wide-map data/pairs)",
    "(into data/wide-map data/few-pairs)",
    "(merge data/wide-map (zipmap data/few data/few))",
    "(apply conj data/large-set data/few)",
    "(apply union data/same-sets)",
    "(apply assoc data/ints data/some-pairs)",
    "(zipmap data/tens data/ints)",
    "(select-keys data/wide-map data/tens)",
    "(vec data/large-set)",
    "(keys data/wide-map)",
    "(vals data/wide-map)",
    "(seq data/wide-map)",
    "(sort data/ints)",
    "(sort-by - data/ints)",
    "(reverse data/ints)",
    "(partition 2 data/ints)",
    "(partition-by odd? data/ints)",
    "(partition-all 2 data/ints)",
    "(zip data/ints data/ints)",
    "(map vector data/ints data/ints)",
    "(map vector data/ints data/ints data/ints data/ints)",
    "(interpose 0 data/ints)",
    "(apply interleave data/vectors)",
    "(combinations (take 90 data/ints) 2)",
    "(apply * data/ones)",
    "(reduce * data/ones)",
    "(avg data/bigs)",
    "(sum-by identity data/bigs)",
    "(apply bit-and data/bigs)",
    "(apply bit-and-not data/bigs)",
    "(clojure.set/index (set data/same) [:k1])",
    "(rename-keys data/wide-map (zipmap data/some data/pairs))",
    "(map-invert data/new-names)",
    "(postwalk identity data/pairs)",
    "(stringify-keys data/same)",
    "(reductions + data/ints)",
    "(str data/ints)",
    "(pr-str data/ints)",
    "(json/generate-string data/ints)",
    "(clojure.string/replace (join \",\" data/ints) \",\" \";\")",
    "(into [] (map inc) data/ints)",
    "(for [x data/ints] x)",
    "(vec (range 0 4000 0.5))",
    "(apply comp (repeat 1000 inc))",
    "(apply max data/bigs)",
    "(list* 1 2 data/ints)",
    "(apply sorted-map data/ints)",
    "(apply sorted-set data/ints)",
    "(butlast data/ints)",
    "(drop-last 2 data/ints)",
    "(apply juxt (repeat 1000 inc))",
];

/// Those that keep what they have seen, and an index of it, or what they have to do, beside their result: these need five of it.
const SEEING: &[&str] = &[
    "(distinct data/ints)",
    "(distinct-by identity data/ints)",
    "(group-by identity data/ints)",
    "(update-keys data/wide-map identity)",
    "(rename-keys data/wide-map data/new-names)",
];

const ELEMENTS: i64 = 4_000;

fn set<'h>(h: &'h Heap, items: Vec<Value<'h>>) -> Res<Value<'h>> {
    h.set(items.into_iter())
}

fn all<'h>(h: &'h Heap, items: Res<Vec<Value<'h>>>) -> Res<Value<'h>> {
    h.vector(&items?)
}

fn given(size: i64) -> Arc<Grant> {
    let grant = Grant::build(usize::MAX, |h: &Heap, b| -> Res<()> {
        let len = usize::try_from(size).expect("a size");
        let ints = |from: i64, to: i64, step: usize| (from..to).step_by(step).map(Value::Int).collect::<Vec<_>>();
        let name = |i: i64| h.keyword(&format!("k{i}"));
        b.data("ints", h.vector(&ints(0, size, 1))?);
        b.data("some", h.vector(&ints(0, size, 50))?);
        b.data("rows", all(h, (0..size).map(|i| h.map([(name(i)?, Value::Int(i))].into_iter())).collect())?);
        b.data("same", all(h, (0..size).map(|i| h.map([(name(i % 7)?, Value::Int(i))].into_iter())).collect())?);
        let wide = |of: i64| {
            h.map((0..100).map(|i| (Value::Int(of * 50 + i), Value::Int(of))).collect::<Vec<_>>().into_iter())
        };
        b.data("wide", all(h, (0..size / 100).map(wide).collect())?);
        b.data("wide-map", h.map((0..2 * size).map(|i| (Value::Int(i), Value::Nil)).collect::<Vec<_>>().into_iter())?);
        b.data("pairs", all(h, (0..size).map(|i| h.vector(&[Value::Int(i), Value::Int(-i)])).collect())?);
        b.data("vectors", all(h, (0..size / 10).map(|i| h.vector(&ints(i, i + 10, 1))).collect())?);
        b.data("sets", all(h, (0..size / 10).map(|i| set(h, ints(i * 5, i * 5 + 10, 1))).collect())?);
        b.data("large-set", set(h, ints(0, 2 * size, 1))?);
        b.data("large-sets", all(h, (0..8).map(|i| set(h, ints(i * size / 16, size, 1))).collect())?);
        b.data("shrinking", all(h, (0..size / 40).map(|i| set(h, ints(i, 1_000, 1))).collect())?);
        let big = |i: i64| h.integer(&(num_bigint::BigInt::from(i + 1) << 3_200));
        let new_names = (0..size / 2).map(|i| (Value::Int(i), Value::Int(size + i))).collect::<Vec<_>>();
        b.data("new-names", h.map(new_names.into_iter())?);
        b.data("tens", h.vector(&(0..size).map(|i| Value::Int(i % 10)).collect::<Vec<_>>())?);
        b.data("few", h.vector(&(0..size / 5).map(|i| Value::Int(7 * i)).collect::<Vec<_>>())?);
        b.data("few-pairs", all(h, (0..size / 5).map(|i| h.vector(&[Value::Int(7 * i), Value::Int(-i)])).collect())?);
        b.data(
            "some-pairs",
            h.vector(&(0..size / 5).flat_map(|i| [Value::Int(i), Value::Int(-i)]).collect::<Vec<_>>())?,
        );
        b.data("same-sets", all(h, (0..size / 10).map(|i| set(h, ints(i % 3, i % 3 + 10, 1))).collect())?);
        let ones = (0..size).map(|i| h.integer(&(num_bigint::BigInt::from(1) << if i == 0 { 3_200 } else { 0 })));
        b.data("ones", all(h, ones.collect())?);
        b.data("bigs", all(h, (0..i64::try_from(len).expect("a size")).map(big).collect())?);
        Ok(())
    });
    Arc::new(grant.expect("the data"))
}

struct Run {
    /// The value printed, or the error.
    came: Result<String, String>,
    fuel: u64,
    live: usize,
}

fn run(grant: &Arc<Grant>, source: &str, heap_bytes: usize) -> Run {
    run_with(grant, source, Settings { heap_bytes, loop_iterations: 0, ..Settings::default() })
}

fn run_with(grant: &Arc<Grant>, source: &str, settings: Settings) -> Run {
    let program = Program::compile(source, &ReadLimits::default()).expect("a program");
    let mut machine = Machine::new(vec![grant.clone()], settings.clone());
    machine.load(Arc::new(program)).expect("it loads");
    let ending = crate::workers::to_end(&mut machine, &settings, 1_000_000, &|_| {});
    let fuel = machine.usage().fuel;
    let came = match ending {
        Ending::Error(error) => Err(error.to_string()),
        _ => Ok(machine
            .with_result(|h, v| {
                h.unmetered(usize::MAX / 4, u64::MAX, || -> Res<String> {
                    let mut out = TextBuf::new(h);
                    pr_str(h, v, &mut out)?;
                    Ok(out.into_string())
                })
            })
            .expect("nothing limits the text of a result here")),
    };
    let live = machine.live_bytes(usize::MAX).unwrap_or(0);
    Run { came, fuel, live }
}

#[test]
fn garbage_inside_a_call_does_not_count() {
    /// What arguments take on the stack, each.
    const ARGUMENT: usize = 24;
    /// Frames, and what is put into small maps one by one.
    const SLACK: usize = 32 << 10;
    let (grant, double) = (given(ELEMENTS), given(2 * ELEMENTS));
    let elements = usize::try_from(ELEMENTS).expect("a size");
    let mut wrong = Vec::new();
    for (call, results) in CALLS.iter().map(|call| (call, 2)).chain(SEEING.iter().map(|call| (call, 5))) {
        let large = run(&grant, call, 0);
        let arguments = if call.starts_with("(apply") { elements * ARGUMENT } else { 0 };
        let small = run(&grant, call, arguments + results * large.live + SLACK);
        if large.came.is_err() || small.came != large.came || small.fuel != large.fuel {
            let shown = |run: &Run| format!("{:.150} ({} units)", format!("{:?}", run.came), run.fuel);
            wrong.push(format!("{call}: {} live\n  {}\n  {}", large.live, shown(&large), shown(&small)));
        }
        let twice = run(&double, call, 0);
        if twice.fuel > large.fuel * 5 / 2 + 5_000 {
            wrong.push(format!("{call}: {} units, and {} for twice as much", large.fuel, twice.fuel));
        }
    }
    assert!(wrong.is_empty(), "{} calls:\n{}", wrong.len(), wrong.join("\n"));
}

/// Numbers that look random, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn key(&mut self, kinds: u64) -> String {
        let n = self.below(30);
        match self.below(kinds) {
            0 => format!("{n}"),
            1 => format!("{n}.0"),
            2 => format!(":k{n}"),
            3 => format!("[{n} :a]"),
            4 => format!("{}", i128::from(n) << 70),
            5 => format!("\"k{n}\""),
            6 => format!(":a{n}-b"),
            _ => format!(":a{n}_b"),
        }
    }

    /// The literal of a set or a map; in literals keys may not come twice.
    fn collection(&mut self, max: u64, is_map: bool) -> String {
        let keys: std::collections::BTreeSet<String> = (0..self.below(max + 1)).map(|_| self.key(8)).collect();
        match is_map {
            true => {
                format!("(hash-map {})", keys.iter().map(|k| format!("{k} {} ", self.below(9))).collect::<String>())
            }
            false => format!("(hash-set {})", keys.into_iter().map(|k| k + " ").collect::<String>()),
        }
    }

    fn number(&mut self) -> String {
        let n = i128::from(self.below(1 << 30)) - (1 << 29);
        match self.below(3) {
            0 => n.to_string(),
            1 => (n << self.below(90)).to_string(),
            _ => (n << 70).to_string(),
        }
    }
}

#[test]
fn what_is_made_at_once_is_what_a_loop_makes() {
    let mut numbers = Numbers(7);
    let mut list = |n: u64, mut item: Box<dyn FnMut(&mut Numbers) -> String>| {
        let count = numbers.below(n) + 3;
        let items: Vec<String> = (0..count).map(|_| item(&mut numbers)).collect();
        format!("[{}]", items.join(" "))
    };
    let mut programs = Vec::new();
    for round in 0..12 {
        let max = [3, 20, 60][round % 3];
        let args = list(25, Box::new(move |n| n.collection(max, true)));
        programs.push([format!("a {args}"), "(apply merge a)".to_string(), "(reduce merge a)".to_string()]);
        programs.push([
            format!("a {args}"),
            "(apply merge-with + a)".to_string(),
            "(reduce (fn [x y] (merge-with + x y)) a)".to_string(),
        ]);
        let args = list(25, Box::new(move |n| n.collection(max, false)));
        for f in ["union", "intersection", "difference"] {
            programs.push([format!("a {args}"), format!("(apply {f} a)"), format!("(reduce {f} a)")]);
        }
        programs.push([
            format!("a (apply union {args}) b (vec (apply union (rest {args})))"),
            "(apply disj a b)".to_string(),
            "(reduce disj a b)".to_string(),
        ]);
        let args = list(40, Box::new(Numbers::number));
        for f in ["+", "-", "*", "bit-and", "bit-or", "bit-xor", "bit-and-not"] {
            programs.push([format!("a {args}"), format!("(apply {f} a)"), format!("(reduce {f} a)")]);
        }
        programs.push([format!("a {args}"), "(sum a)".to_string(), "(reduce + a)".to_string()]);
        let keys = list(120, Box::new(|n| n.key(5)));
        let others = list(120, Box::new(|n| n.key(5)));
        programs.push([
            format!("m (zipmap {keys} (range)) n (zipmap {others} {keys})"),
            "(rename-keys m n)".to_string(),
            "(reduce (fn [out [old new]] (if (contains? m old) (assoc out new (get m old)) out)) (reduce dissoc m (keys n)) n)".to_string(),
        ]);
        programs.push([format!("k {keys}"), "(set k)".to_string(), "(reduce conj #{} k)".to_string()]);
        programs.push([
            format!("k {keys} s (set {others})"),
            "(into s k)".to_string(),
            "(reduce conj s k)".to_string(),
        ]);
        programs.push([
            format!("k {keys} s (set {others})"),
            "(apply conj s k)".to_string(),
            "(reduce conj s k)".to_string(),
        ]);
        programs.push([
            format!("k {keys}"),
            "(distinct k)".to_string(),
            "(reduce (fn [v x] (if (some #{x} v) v (conj v x))) [] k)".to_string(),
        ]);
        programs.push([
            format!("k {keys}"),
            "(frequencies k)".to_string(),
            "(reduce (fn [m x] (assoc m x (inc (or (m x) 0)))) {} k)".to_string(),
        ]);
        programs.push([
            format!("k {keys} m (zipmap {others} (range))"),
            "(apply dissoc m k)".to_string(),
            "(reduce dissoc m k)".to_string(),
        ]);
        programs.push([
            format!("k {keys} m (zipmap {others} (range))"),
            "(into m (map vector k (range)))".to_string(),
            "(reduce (fn [m [k v]] (assoc m k v)) m (map vector k (range)))".to_string(),
        ]);
        programs.push([
            format!("k {keys}"),
            "(zipmap k (range))".to_string(),
            "(reduce (fn [m [k v]] (assoc m k v)) {} (map vector k (range)))".to_string(),
        ]);
        programs.push([
            format!("m (zipmap {keys} (range))"),
            "(update-vals m inc)".to_string(),
            "(into {} (map (fn [[k v]] [k (inc v)]) m))".to_string(),
        ]);
        programs.push([
            format!("m (zipmap {keys} (range))"),
            "(update-keys m str)".to_string(),
            "(into {} (map (fn [[k v]] [(str k) v]) m))".to_string(),
        ]);
        programs.push([
            format!("m (zipmap {keys} (range))"),
            "(reduce-kv (fn [a k v] (conj a k v)) [] m)".to_string(),
            "(vec (mapcat identity m))".to_string(),
        ]);
        programs.push([
            format!("v (vec (range 9)) p (mapcat (fn [i] [(mod (* 7 i) 9) i]) (range {}))", 3 + round * 5),
            "(apply assoc v p)".to_string(),
            "(reduce (fn [v [i x]] (assoc v i x)) v (partition 2 p))".to_string(),
        ]);
    }
    let none = given(0);
    for [given, at_once, in_a_loop] in &programs {
        let program =
            format!("(let [{given} x {at_once} y {in_a_loop}] [(= x y) (if (= (pr-str x) (pr-str y)) true [x y])])");
        for compact_every in [None, Some(7)] {
            let settings = Settings { heap_bytes: 0, loop_iterations: 0, compact_every, ..Settings::default() };
            assert_eq!(run_with(&none, &program, settings).came.as_deref(), Ok("[true true]"), "{program}");
        }
    }
}
