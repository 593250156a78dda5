//! What a unit of fuel takes: no call of a built-in takes much more time for a unit than a loop does, whatever it is given.
//!
//! Each call is made over and over for a moment, so that a cheap one that is charged for too little shows as well as a
//! long one. `RATES_ONLY=name` measures one built-in, `RATES_ONLY=programs` the programs, `RATES_TIMES=1` prints the slowest.

mod cpu;
#[path = "suite/extremes.rs"]
mod extremes;
#[path = "suite/workers/mod.rs"]
mod workers;

use cpu::thread_time;
use extremes::{colliding, nested};
use lisp_core::builtins::{Builtin, MANY};
use lisp_core::compile::Program;
use lisp_core::error::Reason;
use lisp_core::heap::{Heap, Res, Value};
use lisp_core::library::all;
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::{Ending, Grant, Machine, Settings};
use num_bigint::BigInt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The most time that a unit of fuel may take, as a multiple of what it takes in a loop. Without the optimizer the loop is
/// favoured, and what it inlines elsewhere differs from build to build.
const MAX: f64 = if cfg!(debug_assertions) { 60.0 } else { 20.0 };
/// Calls are made over and over for so long, and what takes less than [`SHORT`] says nothing.
const LONG: Duration = Duration::from_micros(500);
const SHORT: Duration = Duration::from_micros(200);
/// Other work on the machine may be in the way a few times.
const ATTEMPTS: usize = 8;
/// Of one built-in no more calls are told.
const TOLD: usize = 4;
const FUEL: u64 = 10_000_000;

/// Arguments: those that the host grants have a twin that is equal and not the same.
const KINDS: &[&str] = &[
    "text",
    "accents",
    "cluster",
    "lines",
    "umlauts",
    "keys_json",
    "digits",
    "decimals",
    "signs",
    "json",
    "floats_json",
    "nested_json",
    "big",
    "bigs",
    "middling",
    "huge_floats",
    "numbers",
    "floats",
    "texts",
    "letters",
    "keys",
    "pairs",
    "rows",
    "deep",
    "shared",
    "map",
    "set",
    "colliding",
    "colliding_keys",
    "wide_keys",
    "wide_keywords",
    "wide",
    "short",
    "names",
    "mixed",
    "spellings",
    "path",
    "classes",
    "repeats",
    "vectors",
];
const TWINS: &[&str] = &[
    "big",
    "bigs",
    "middling",
    "texts",
    "text",
    "umlauts",
    "deep",
    "shared",
    "map",
    "set",
    "vectors",
    "rows",
    "colliding",
    "wide_keywords",
    "mixed",
    "spellings",
];
const WRITTEN: &[&str] = &[
    "1e300",
    "-1.7976931348623157e308",
    "5e-324",
    "\"%f\"",
    "\"%.250e\"",
    "\"%250.3f|%x\"",
    "\"\"",
    "#\"\\\\p{L}+\"",
    "9223372036854775807",
    "[]",
    "{}",
    "(cycle [1 2])",
];
/// What the calls of one built-in with such arguments do not do.
const PROGRAMS: &[&str] = &[
    "(map data/wide data/names)",
    "(map (fn [k] (k data/wide)) data/names)",
    "(map (fn [k] (assoc data/wide k 1)) data/names)",
    "(reduce (fn [m k] (dissoc m k)) data/wide data/names)",
    "(map (fn [m] (:a-key m)) [data/wide data/wide_keys data/wide_keywords])",
    "(map (fn [k] (get data/wide k)) data/texts)",
    "(let [m data/short l \"a40\"] (map (fn [i] (update m l identity)) data/numbers))",
    "(let [m data/short l \"a40\"] (map (fn [i] (update-in m [l] inc)) data/numbers))",
    "(let [m data/short l \"a40\"] (map (fn [i] (assoc m l i)) data/numbers))",
    "(let [m data/short l \"a40\"] (map (fn [i] (dissoc m l \"z\" \"z\" \"z\" \"z\" \"z\")) data/numbers))",
    "(let [m data/short l \"a40\"] (map (fn [i] (contains? m \"z\")) data/numbers))",
    "(let [s (set (keys data/short))] (map (fn [i] (do (disj s \"a40\") (s \"z\"))) data/numbers))",
    "(let [ks (map (fn [i] (keyword (str \"b-\" i))) (range 10 100))] (map (fn [i] (map (fn [k] (merge data/short {k 1})) ks)) (range 99)))",
    "(let [m (update-keys data/short keyword)] (map (fn [i] (update m :a40 inc)) data/numbers))",
    // Names that are equally long, written in another order than that of keys.
    "(let [m (into {} (map (fn [i] [(keyword (str (.repeat \"a-\" 30) (- 99 i))) i]) (range 32)))] (map (fn [i] (merge {} m)) data/numbers))",
    "(let [m (into {} (map (fn [i] [(- 99 i) i]) (range 32)))] (map (fn [i] (dissoc (assoc m 1 1) 98)) data/numbers))",
    "(map (fn [i] (str (java.util.Date. i))) data/numbers)",
    "(map (fn [i] (pr-str (java.util.Date. i))) data/numbers)",
    "(map (fn [i] (ex-info \"a\" {:i i})) data/numbers)",
    "(map (fn [i] (try (throw (ex-info \"a\" {:i i})) (catch Exception e (ex-data e)))) data/numbers)",
    "(map (fn [i] (try (inc :a) (catch Exception e (ex-message e)))) data/numbers)",
    "(json/parse-string data/keys_json true)",
    "(json/parse-string data/keys_json)",
    "(.compareToIgnoreCase data/text data/text_too)",
    "(.compareToIgnoreCase data/umlauts data/umlauts_too)",
    "(format (.repeat \"%1$s\" 20000) \"\")",
    "(apply format (.repeat \"%5s\" 20000) (repeat 20000 \"\"))",
    "(json/parse-lines (.repeat \"\\n\" 20000))",
    "(lower-case (.repeat \"Σ\" 20000))",
    // Keys that are missing while there is a similar one, and comparisons in vain.
    "(let [m {:total 1 :status 2}] (map (fn [i] (:totl m)) data/numbers))",
    "(map (fn [i] (:totl (assoc {:total 1} :i i))) data/numbers)",
    "(map (fn [i] (:totl {:total 1 (keyword (str \"k\" i)) 2})) data/numbers)",
    "(let [m (into {} (map (fn [i] [(keyword (str \"a-rather-long-name-of-a-key-\" i)) i]) (range 10 40)))] (map (fn [i] (get m (keyword (str \"a-rather-long-name-of-a-key-\" i)))) (range 100 2000)))",
    "(sort-by :totl (map (fn [i] {:total i}) (range 3000)))",
    // More such keys than are noted: the last one is read often.
    "(let [m (into {} (map (fn [i] [(keyword (str (char i) \"-total\")) i]) (range 97 117)))] (map (fn [i] (:t-totl m)) (concat (map (fn [i] (get m (keyword (str (char i) \"-totl\")))) (range 97 117)) data/numbers)))",
    "(let [m {:a-rather-long-name-of-a-key 1} ks (map (fn [i] (keyword (str \"a-rather-long-name-of-a-key\" i))) (range 10))] (map (fn [k] (sort-by k (map (fn [_] m) (range 2000)))) ks))",
    "(let [s \"paid\"] (map (fn [i] (= s :paid)) data/numbers))",
    "(let [e (java.time.format.DateTimeParseException. \"a\" \"b\" 1)] (map (fn [i] (instance? AssertionError e)) data/numbers))",
    "(map (fn [i] (try (inc :a) (catch ArityException e 1) (catch AssertionError e 2) (catch ClassCastException e 3))) data/numbers)",
    "(map {\"k_0\" 1 \"k_1\" 2 \"k_2\" 3 \"k_3\" 4 \"k_4\" 5 \"k_5\" 6 \"k_6\" 7 \"k_7\" 8} (map (fn [i] (keyword (str \"k-\" i))) (range 30 99)))",
    "(re-seq #\"(?:a?b?){0,500}\" (.repeat \"ab\" 5000))",
    "(re-seq #\"[ab]*a[ab]{20}c\" (apply str (map (fn [i] (if (zero? (rem (* i i i 7919) 5)) \"a\" \"b\")) (range 9000))))",
    "(re-seq #\"[ab]*a[ab]{100}c\" (apply str (map (fn [i] (if (zero? (rem (* i i i 7919) 5)) \"a\" \"b\")) (range 9000))))",
    "(re-find (re-pattern (str (.repeat \"a?\" 1000) \"b\")) (.repeat \"a\" 1000))",
    "(map (fn [i] (re-pattern (str (.repeat \"a?\" 1000) i))) (range 5))",
    "(re-seq #\"a*b|a\" (.repeat \"a\" 790))",
    "(re-seq #\"a*b|a\" (.repeat \"a\" 8000))",
    "(re-seq #\"\\p{L}.{0,30}\\p{Lu}{3}~\" (.repeat \"abcéÜxyzABCDéé中文字ab \" 60))",
    "(let [s (apply str (map (fn [i] (if (zero? (rem (* i i i 7919) 5)) \"a\" \"b\")) (range 9000)))] (map (fn [i] (re-find (re-pattern (str (.repeat \"(?:\" 45) \"[ab]\" (.repeat \")*\" 45) \"a[ab]{20}\\\\x01\")) s)) (range 5)))",
    "(let [s (apply str (map (fn [i] (char (+ (nth [97 945 1072 1377 1488 1575 2309 3585 4304 4608 12354 19968] (rem (* i 7919) 12)) (rem (* i i 31) 23)))) (range 9000)))] (map (fn [i] (re-find #\"(?:\\p{L}\\p{L}?)+~\" s)) (range 9)))",
    "(let [s (apply str (map (fn [i] (char (+ (nth [97 945 1072 1377 1488 1575 2309 3585 4304 4608 12354 19968] (rem (* i 7919) 12)) (rem (* i i 31) 23)))) (range 9000)))] (map (fn [i] (count (re-find #\"\\p{L}+\" s))) (range 9)))",
    "(let [s (apply str (map (fn [i] (char (+ (nth [97 945 1072 1377 1488 1575 2309 3585 4304 4608 12354 19968] (rem (* i 7919) 12)) (rem (* i i 31) 23)))) (range 9000)))] (map (fn [i] (re-find #\"[^,]*[αaё][^,]{20},\" s)) (range 9)))",
    "(let [s (apply str (map (fn [i] (char (+ (nth [97 945 1072 1377 1488 1575 2309 3585 4304 4608 12354 19968] (rem (* i 7919) 12)) (rem (* i i 31) 23)))) (range 9000)))] (let [parts (map (fn [i] (subs s (* i 90) (* (inc i) 90))) (range 99))] (map (fn [i] (map (fn [t] (count (re-find #\"(?:\\p{L}\\p{L}?)+\" t))) parts)) (range 9))))",
    "(map (fn [i] (re-pattern (str \"\\\\p{L}{20}\" i))) (range 5))",
    "(map (fn [i] (re-pattern (str \"(?U)\\\\w{9}\" i))) (range 5))",
    "(map (fn [i] (re-pattern (str \"(?:\\\\p{L}{3}){3}\" i))) (range 5))",
    "(lower-case (str \"a\" (.repeat \"Σ\\u0301\\u0301\\u0301\" 9000)))",
    "(lower-case (str \"Σ\" (.repeat \"中\" 30000)))",
    "(sum-by :id data/rows)",
    "(avg-by :id data/rows)",
    "(min-by :id data/rows)",
    "(max-by :id data/rows)",
];
/// Values for the other places.
const USUAL: &[&str] = &["2", "identity", "\"a\"", "[1 2]"];

/// An integer of so many bits.
fn number(h: &Heap, bits: u32) -> Res<Value<'_>> {
    h.integer(&(BigInt::from(7).pow(bits / 3)))
}

fn texts_of<'h>(h: &'h Heap, kind: &str) -> Option<Res<Value<'h>>> {
    let text = match kind {
        "text" => "ab".repeat(50_000),
        "accents" => "e\u{301}\u{1f469}\u{200d}\u{1f469} ".repeat(4_000),
        "cluster" => format!("e{}", "\u{301}".repeat(20_000)),
        "lines" => "a b\r\n".repeat(8_000),
        "umlauts" => "\u{fc}\u{df}".repeat(10_000),
        "keys_json" => format!("{{{}\"last\":1}}", (0..3_000).map(|i| format!("\"key{i}\":1,")).collect::<String>()),
        "digits" => "9".repeat(20_000),
        "decimals" => format!("{}.{}e-17", "9".repeat(20_000), "3".repeat(20_000)),
        "signs" => "+".repeat(500_000),
        "json" => format!("[{}1]", "[1,{\"a\":\"\\u00e9\"}],".repeat(4_000)),
        "floats_json" => format!("[{}1]", "1.2345678901234567e300,".repeat(4_000)),
        "nested_json" => format!("[{}1]", format!("{}{},", "[".repeat(400), "]".repeat(400)).repeat(20)),
        "classes" => "\\w\\p{L}\\P{Lu}".repeat(10),
        "repeats" => "((a{1,40}b?){1,40}){1,30}".to_owned(),
        _ => return None,
    };
    Some(h.str(&text))
}

fn vectors_of<'h>(h: &'h Heap, kind: &str) -> Option<Res<Value<'h>>> {
    let many = |count: usize, item: &dyn Fn(usize) -> Res<Value<'h>>| {
        let items = (0..count).map(item).collect::<Res<Vec<_>>>()?;
        h.vector(&items)
    };
    let id = |i: usize| -> Res<Value<'h>> {
        h.map([(h.keyword("id")?, Value::Int(i as i64)), (h.keyword("name")?, h.str("n")?)].into_iter())
    };
    Some(match kind {
        "bigs" => (|| {
            let two = [number(h, 1_000_000)?, number(h, 1_000_000)?];
            many(2_000, &|i| Ok(two[i % 2]))
        })(),
        "middling" => many(4_000, &|_| number(h, 480)),
        "huge_floats" => many(4_000, &|i| Ok(Value::Float(1.234_567_890_123e300 * (i + 1) as f64))),
        "floats" => many(4_000, &|i| Ok(Value::Float(1.0 / (i + 3) as f64))),
        "numbers" => many(30_000, &|i| Ok(Value::Int(i as i64 * 7_919 % 1_000_003))),
        "texts" => many(4_000, &|i| h.str(&format!("{}{}", "t".repeat(58), i % 9))),
        "letters" => many(10_000, &|_| h.str("\u{e9}")),
        "keys" => many(4_000, &|i| h.keyword(&format!("key-{i}"))),
        "pairs" => many(4_000, &|i| h.vector(&[Value::Int(i as i64), Value::Int(-(i as i64))])),
        "rows" => many(2_000, &id),
        "vectors" => many(4_000, &|i| h.vector(&[h.str("a-b")?, Value::Int((i % 2) as i64), Value::Nil])),
        "colliding_keys" => many(500, &|i| h.str(&colliding().nth(i).unwrap_or_default())),
        "names" => many(100, &|i| h.keyword(&format!("{}{i:02}", "a-name-".repeat(8)))),
        "path" => many(1_000, &|i| h.keyword(&format!("p{}", i % 10))),
        "deep" => nested(h, 5_000, |h, v| h.vector(&[v])),
        "shared" => nested(h, 30, |h, v| h.vector(&[v, v])),
        _ => return None,
    })
}

fn maps_of<'h>(h: &'h Heap, kind: &str) -> Res<Value<'h>> {
    match kind {
        "big" => number(h, 1_100_000),
        "map" => h.map((0..5_000).map(|i| (Value::Int(i), Value::Int(i))).collect::<Vec<_>>().into_iter()),
        "set" => h.set((0..5_000).map(Value::Int).collect::<Vec<_>>().into_iter()),
        "colliding" => {
            let keys = colliding().take(500).map(|k| Ok((h.str(&k)?, Value::Nil))).collect::<Res<Vec<_>>>()?;
            h.map(keys.into_iter())
        }
        "wide_keys" => {
            let key = |i: usize| h.str(&format!("{}{i:02}", "long-key_".repeat(20_000)));
            let keys = (0..16).map(|i| Ok((key(i)?, Value::Int(1)))).collect::<Res<Vec<_>>>()?;
            h.map(keys.into_iter())
        }
        // All of one length: each is compared with a name that is looked for.
        "wide" => {
            let key = |i: usize| h.str(&format!("{}{i:02}", "a_name_".repeat(8)));
            let keys = (0..31).map(|i| Ok((key(i)?, Value::Int(1)))).collect::<Res<Vec<_>>>()?;
            h.map(keys.into_iter())
        }
        "short" => {
            let keys = (10..41).map(|i| Ok((h.str(&format!("a{i}"))?, Value::Int(1)))).collect::<Res<Vec<_>>>()?;
            h.map(keys.into_iter())
        }
        // Each of these names is found by reading all others to their ends.
        "wide_keywords" => {
            let key = |i: usize| h.keyword(&format!("{}-_{i:02}", "long-key_".repeat(2_000)));
            let keys = (0..16).map(|i| Ok((key(i)?, Value::Int(1)))).collect::<Res<Vec<_>>>()?;
            h.map(keys.into_iter())
        }
        "spellings" => {
            let key =
                |i: usize| h.keyword(&format!("{}{i:02}", if i.is_multiple_of(2) { "a-" } else { "a_" }.repeat(31)));
            let maps = (0..500).map(|_| {
                let keys = (0..16).map(|i| Ok((key(i)?, Value::Int(1)))).collect::<Res<Vec<_>>>()?;
                h.map(keys.into_iter())
            });
            h.vector(&maps.collect::<Res<Vec<_>>>()?)
        }
        "mixed" => {
            let name = |i: usize| {
                if i.is_multiple_of(2) { h.keyword(&format!("a-{i}")) } else { h.str(&format!("a_{}", i - 1)) }
            };
            let keys = (0..4_000).map(|i| Ok((name(i)?, Value::Nil))).collect::<Res<Vec<_>>>()?;
            h.map(keys.into_iter())
        }
        other => panic!("no values called {other}"),
    }
}

fn worst_values() -> Arc<Grant> {
    fn value<'h>(h: &'h Heap, kind: &str) -> Res<Value<'h>> {
        texts_of(h, kind).or_else(|| vectors_of(h, kind)).unwrap_or_else(|| maps_of(h, kind))
    }
    let grant = Grant::build(usize::MAX, |h, b| {
        for &kind in KINDS {
            b.data(kind, value(h, kind)?);
        }
        for &kind in TWINS {
            b.data(&format!("{kind}_too"), value(h, kind)?);
        }
        Ok(())
    });
    Arc::new(grant.expect("the worst values"))
}

/// The calls of a built-in: with all arguments of a kind, of two kinds, and with one bad one among usual ones.
fn calls(row: &Builtin) -> Vec<String> {
    let mut calls = Vec::new();
    let max = if row.max == MANY { row.min.max(3) } else { row.max.min(4) } as usize;
    let bad: Vec<String> =
        KINDS.iter().map(|kind| format!("data/{kind}")).chain(WRITTEN.iter().map(|&w| w.to_owned())).collect();
    for count in row.min as usize..=max {
        if count == 0 {
            calls.push(format!("({})", row.name));
            continue;
        }
        for worst in &bad {
            let twin = match worst.strip_prefix("data/") {
                Some(kind) if TWINS.contains(&kind) => format!("{worst}_too"),
                _ => worst.clone(),
            };
            let rest = format!(" {twin}").repeat(count - 1);
            calls.push(format!("({} {worst}{rest})", row.name));
            for place in 0..if count > 1 { count } else { 0 } {
                for usual in &USUAL[..if count == 2 { USUAL.len() } else { 1 }] {
                    let mut call = format!("({}", row.name);
                    for i in 0..count {
                        // Writing to a string cannot fail.
                        let _ = write!(call, " {}", if i == place { worst } else { *usual });
                    }
                    calls.push(call + ")");
                }
            }
        }
        if row.max == MANY && count == max {
            calls.extend(bad.iter().filter(|b| b.starts_with("data/")).map(|b| format!("(apply {} {b})", row.name)));
        }
    }
    calls
}

struct Measured {
    took: Duration,
    fuel: u64,
}

impl Measured {
    /// Nanoseconds for a unit.
    fn rate(&self) -> f64 {
        self.took.as_nanos() as f64 / (self.fuel + 20) as f64
    }
}

/// Runs a program. `None` when it is none, or there is too little memory for it.
fn run(source: &str, grant: &Arc<Grant>) -> Option<Measured> {
    let program = Program::compile(source, &ReadLimits::default()).ok()?;
    let settings = Settings {
        heap_bytes: 256_000_000,
        fuel: Some(FUEL),
        loop_iterations: 0,
        now_ms: Some(1_700_000_000_000),
        prints_bytes: 10_000,
        notes: true,
        ..Settings::default()
    };
    let mut machine = Machine::new(vec![grant.clone()], settings.clone());
    machine.load(Arc::new(program)).ok()?;
    let start = thread_time();
    let reply = |machine: &mut Machine| drop(machine.reply(|_| Ok(Value::Nil)));
    let ending = workers::to_end(&mut machine, &settings, u64::MAX / 2, &reply);
    let took = thread_time() - start;
    match ending {
        // What the failing instruction spent is not counted.
        Ending::Error(error) if error.reason == Reason::MemoryExceeded => None,
        Ending::Error(error) if error.reason == Reason::FuelExhausted => Some(Measured { took, fuel: FUEL }),
        _ => Some(Measured { took, fuel: machine.usage().fuel }),
    }
}

/// Makes a call as often as takes a moment, and measures that.
fn measure(call: &str, grant: &Arc<Grant>) -> Option<Measured> {
    const OFTEN: u128 = 5_000;
    let times = |n| format!("(loop [i 0] (if (< i {n}) (do {call} (recur (inc i)))))");
    let once = run(&times(1), grant)?;
    let more = LONG.as_nanos() / once.took.as_nanos().max(1);
    if more == 0 { Some(once) } else { run(&times((more + 1).min(OFTEN)), grant) }
}

/// The time of a loop for a unit: the best of some.
fn of_a_loop(grant: &Arc<Grant>) -> f64 {
    let rate = |_| run("(loop [i 0] (if (< i 100000) (recur (inc i))))", grant).map_or(f64::MAX, |m| m.rate());
    (0..3).map(rate).fold(f64::MAX, f64::min)
}

/// How many times a loop's time a unit of a call takes at best, if that is too much. The loop is measured beside it.
fn excess(call: &str, grant: &Arc<Grant>) -> Option<f64> {
    let mut least = f64::MAX;
    for _ in 0..ATTEMPTS {
        let run = measure(call, grant)?;
        let base = of_a_loop(grant);
        least = least.min(run.rate() / base);
        if least <= MAX || run.took < SHORT {
            return None;
        }
    }
    Some(least)
}

#[test]
fn a_unit_of_fuel_takes_no_longer_in_any_built_in() {
    let (grant, base) = {
        let grant = worst_values();
        let base = of_a_loop(&grant);
        (grant, base)
    };
    let told = std::env::var_os("RATES_TIMES").is_some();
    let only = std::env::var("RATES_ONLY").unwrap_or_default();
    let rows = all().iter().map(|row| (row.name, calls(row)));
    let programs = ("programs", PROGRAMS.iter().map(|&call| call.to_owned()).collect());
    let rows: Vec<(&str, Vec<String>)> =
        rows.chain([programs]).filter(|&(name, _)| only.is_empty() || name == only).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut failures, mut slow, mut counted) = (Vec::new(), Vec::new(), 0);
        while let Some((_, calls)) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let before = failures.len();
            for call in calls {
                if failures.len() >= before + TOLD {
                    break;
                }
                let Some(run) = measure(call, &grant) else { continue };
                if run.took < SHORT {
                    continue;
                }
                counted += 1;
                if run.rate() > base * MAX
                    && let Some(times) = excess(call, &grant)
                {
                    if told {
                        eprintln!("{times:>8.0} {:>12.2?} {:>9} {call}", run.took, run.fuel);
                    }
                    failures.push(format!("{call}: {times:.0} times the time of a loop"));
                }
                slow.push((run.rate() / base, run.took, run.fuel, call));
            }
        }
        (failures, slow, counted)
    };
    let (mut failures, mut slow, counted) = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut all = work();
        let other = other.join().expect("the other half");
        all.0.extend(other.0);
        all.1.extend(other.1);
        (all.0, all.1, all.2 + other.2)
    });
    if told {
        slow.sort_by(|a, b| b.0.total_cmp(&a.0));
        println!("{counted} calls; a unit of a loop takes {base:.1} ns; times that, time, fuel");
        for (times, took, fuel, call) in slow.iter().take(300) {
            println!("{times:>8.1} {took:>12.2?} {fuel:>9} {call}");
        }
    }
    assert!(counted > if only.is_empty() { 5_000 } else { 0 }, "{counted} calls take long enough");
    failures.sort();
    let shown = failures.iter().take(300).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} calls:\n{shown}", failures.len());
}
