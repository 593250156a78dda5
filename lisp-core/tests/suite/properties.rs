//! Properties of whole programs: values print and read back, every text comes to an end, and collections and numbers
//! agree with the standard library's and num-bigint's.

use crate::common::Answer;
use lisp_core::compile::SPECIAL_FORMS;
use lisp_core::library;
use lisp_core::vm::{Grant, Machine, Settings};
use num_bigint::BigInt;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::sync::Arc;

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

fn run_with(settings: Settings, source: &str) -> Answer {
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
    crate::common::answer(&mut machine, source, 1_000)
}

/// What a program answers; it must be the same when the heap is compacted at every allocation.
fn run(source: &str) -> Answer {
    let answer = run_with(Settings::default(), source);
    let compacted = run_with(Settings { compact_every: Some(1), ..Settings::default() }, source);
    assert_eq!(answer, compacted, "compaction changes {source}");
    answer
}

/// Values as source text; the keys of a map are different texts of different values.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("nil".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        (-20i64..20).prop_map(|n| n.to_string()),
        "-?[1-9][0-9]{18,60}",
        float(),
        string(),
        "[a-z][a-z0-9*+!_?<>=-]{0,6}".prop_map(|name| format!(":{name}")),
        "[a-z][a-z0-9]{0,6}".prop_map(|name| format!("'{name}")),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| format!("[{}]", items.join(" "))),
            prop::collection::btree_set(inner.clone(), 0..6)
                .prop_map(|items| format!("#{{{}}}", items.into_iter().collect::<Vec<_>>().join(" "))),
            prop::collection::btree_map(inner.clone(), inner, 0..22).prop_map(|entries| {
                let entries: Vec<String> = entries.into_iter().map(|(k, v)| format!("{k} {v}")).collect();
                format!("{{{}}}", entries.join(", "))
            }),
        ]
    })
}

/// A float, as text. Whole ones are none of the integers above, which would be the same keys.
fn float() -> impl Strategy<Value = String> {
    let finite = any::<f64>().prop_filter("a number", |f| f.is_finite() && *f != 0.0);
    prop_oneof![
        finite.prop_map(|f| format!("{f:?}")),
        (100u8..200).prop_map(|n| format!("{n}.0")),
        Just("##Inf".to_owned())
    ]
}

fn string() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| quoted(&text))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out + "\""
}

/// Names and literals to make programs of.
fn token() -> impl Strategy<Value = String> {
    let rows = library::all().iter().flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied()));
    let names: Vec<&'static str> = rows.chain(SPECIAL_FORMS.iter().map(|form| form.name)).collect();
    let literals = [
        "nil",
        "true",
        "1",
        "-2",
        "2.5",
        "99999999999999999999",
        "##NaN",
        "\"a,b\"",
        "\"\"",
        ":a",
        "\"a\"",
        "[1 2 3]",
        "[]",
        "{:a 1}",
        "{\"a\" [1]}",
        "#{1 2}",
        "#\"a+\"",
        "%",
        "%2",
        "x",
        "y",
        "&",
        "_",
        ":as",
        ":keys",
        ":or",
        ":when",
        ":while",
        ":let",
        ":else",
        "'x",
        "'(x [1])",
        "#_1",
        ":>>",
        "e",
        "#'x",
        "data/x",
        "*1",
        "1e308",
        "\\a",
    ];
    prop_oneof![
        5 => prop::sample::select(names).prop_map(str::to_owned),
        4 => prop::sample::select(literals.to_vec()).prop_map(str::to_owned),
    ]
}

/// Calls of random functions with random arguments.
fn soup() -> impl Strategy<Value = String> {
    token().prop_recursive(5, 60, 6, |inner| {
        let items = || prop::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            6 => (token(), items()).prop_map(|(name, items)| format!("({name} {})", items.join(" "))),
            2 => items().prop_map(|items| format!("[{}]", items.join(" "))),
            1 => items().prop_map(|items| format!("{{{}}}", items.join(" "))),
            1 => items().prop_map(|items| format!("#({})", items.join(" "))),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(fn [x & y] {a} {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(let [x {a} y {b}] [x y])")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(try {a} (catch Exception e {b}))")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(try {a} (finally {b}))")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(fn ([x] {a}) ([x & y] {b}))")),
            1 => (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("(letfn [(x [] {a}) (y [e] (x))] {b})")),
        ]
    })
}

/// Calls with as many arguments as the functions take.
fn calls() -> impl Strategy<Value = String> {
    let values = [
        "nil",
        "true",
        "0",
        "1",
        "3",
        "-2",
        "2.5",
        "##NaN",
        "##-Inf",
        "9223372036854775807",
        "99999999999999999999",
        "\"\"",
        "\"a,b c\"",
        "\"👍🏽é\"",
        "\"2024-02-29\"",
        "\"2024-01-01T10:00:00Z\"",
        "\"{\\\"a\\\": [1, null]}\"",
        "\"%5.2f %s\"",
        ":a",
        ":b",
        "[]",
        "[3 1 2]",
        "[[1 2] [3 nil]]",
        "[{:a 1} {\"a\" 2} {:b 3}]",
        "[nil \"x\" 1.5]",
        "{}",
        "{:a 1 :b [2]}",
        "{\"a\" {\"b\" 1}}",
        "{1 2 nil 3}",
        "#{}",
        "#{1 2 3}",
        "#\"(a)|b\"",
        "#\"\\p{L}.\"",
        "(range 30)",
        "(LocalDate/parse \"2024-02-29\")",
        "inc",
        "str",
        "odd?",
        "vector",
        "+",
        ">",
        "identity",
        "first",
        "(fn [& all] all)",
        "(fn [x] x)",
        "(fn [x y] [x y])",
        "(partial + 1)",
        "(comp inc first)",
        "(juxt :a :b)",
        "(fn [x] (return x))",
        "(fn f [x] (f [x]))",
        "[:a 0]",
        "\"a\"",
    ];
    let leaf = prop::sample::select(values.to_vec()).prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 4, |inner| {
        let row = 0..library::all().len();
        (row, 0usize..3, prop::collection::vec(inner, 8)).prop_map(|(row, more, args)| {
            let row = library::all()[row];
            let count = (row.min as usize + more).min(row.max as usize).min(args.len());
            format!("({} {})", row.name, args[..count].join(" "))
        })
    })
}

fn small(compact_every: Option<u64>) -> Settings {
    Settings {
        heap_bytes: 200_000,
        loop_iterations: 40,
        fuel: Some(30_000),
        prints_bytes: 2_000,
        compact_every,
        ..Settings::default()
    }
}

/// Runs a program under small limits: it must not come to a fault of the interpreter, and to the same however often the
/// heap is compacted, unless memory runs out.
fn survives(source: &str) {
    let answers = [None, Some(1), Some(5)].map(|compact_every| run_with(small(compact_every), source));
    for answer in &answers {
        if let Err((reason, message)) = answer {
            assert_ne!(*reason, "host_fault", "{source}: {message}");
        }
    }
    let ran_out = |answer: &Answer| answer.as_ref().is_err_and(|(_, message)| message.contains("its budget is"));
    if !answers.iter().any(ran_out) {
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{source}: {answers:?}");
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn values_print_and_read_back(source in value()) {
        let printed = run(&source).expect("a value");
        let again = run(&printed);
        prop_assert_eq!(again.as_ref(), Ok(&printed), "{}", source);
        let same = run(&format!("(= {source} {printed})"));
        prop_assert_eq!(same, Ok("true".to_owned()), "{} and {}", source, printed);
        let read = run(&format!("(pr-str {source})")).expect("a text");
        prop_assert_eq!(run(&read), Ok(read));
    }

    #[test]
    fn every_text_comes_to_an_end(source in any::<String>()) {
        survives(&source);
    }

    #[test]
    fn every_row_of_signs_comes_to_an_end(source in "[()\\[\\]{}#'\"\\\\;:%&a1 .\n-]{0,40}") {
        survives(&source);
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn every_call_comes_to_an_end(source in calls()) {
        survives(&source);
    }

    #[test]
    fn every_program_comes_to_an_end(forms in prop::collection::vec(soup(), 1..4)) {
        survives(&forms.join("\n"));
    }
}

/// A program that makes value after value, each from earlier ones, and answers them all: earlier ones must be as they
/// were.
struct Versions<T> {
    bindings: String,
    models: Vec<T>,
}

impl<T> Versions<T> {
    fn new(source: &str, model: T) -> Self {
        Versions { bindings: format!("v0 {source}"), models: vec![model] }
    }

    /// The place of an earlier value, from any number.
    fn pick(&self, n: usize) -> usize {
        n % self.models.len()
    }

    fn push(&mut self, source: &str, model: T) {
        // Writing to a string cannot fail.
        let _ = write!(self.bindings, "\n v{} {source}", self.models.len());
        self.models.push(model);
    }

    fn check(&self, print: impl Fn(&T) -> String) {
        let names: Vec<String> = (0..self.models.len()).map(|i| format!("v{i}")).collect();
        let program = format!("(let [{}]\n [{}])", self.bindings, names.join(" "));
        let wanted: Vec<String> = self.models.iter().map(print).collect();
        assert_eq!(run(&program), Ok(format!("[{}]", wanted.join(" "))), "{program}");
    }
}

fn joined(items: impl IntoIterator<Item = impl Display>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(" ")
}

/// A step: which operation, on which earlier value, with which numbers.
type Op = (usize, usize, usize, i64);

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec((0usize..100, any::<usize>(), any::<usize>(), 0i64..40), 1..40)
}

fn vector_step(versions: &mut Versions<Vec<i64>>, (op, on, with, x): Op) {
    let (i, j) = (versions.pick(on), versions.pick(with));
    let (v, w) = (versions.models[i].clone(), versions.models[j].clone());
    let n = with % (v.len() + 1);
    let m = n + (on % (v.len() - n + 1));
    let changed = |change: &dyn Fn(&mut Vec<i64>)| {
        let mut v = v.clone();
        change(&mut v);
        v
    };
    let (source, model) = match op % 17 {
        0 | 1 => (format!("(conj v{i} {x})"), changed(&|v| v.push(x))),
        2 => (format!("(cons {x} v{i})"), changed(&|v| v.insert(0, x))),
        3 => (format!("(conj v{i} {x} {x})"), changed(&|v| v.extend([x, x]))),
        4 => (format!("(assoc v{i} {n} {x})"), changed(&|v| if n < v.len() { v[n] = x } else { v.push(x) })),
        5 => (format!("(rest v{i})"), v.iter().skip(1).copied().collect()),
        6 if !v.is_empty() => (format!("(pop v{i})"), v[..v.len() - 1].to_vec()),
        7 => (format!("(take {n} v{i})"), v[..n].to_vec()),
        8 => (format!("(drop {n} v{i})"), v[n..].to_vec()),
        9 => (format!("(subvec v{i} {n} {m})"), v[n..m].to_vec()),
        10 if v.len() + w.len() < 300 => (format!("(into v{i} v{j})"), [v.as_slice(), &w].concat()),
        11 if v.len() + w.len() < 300 => (format!("(concat v{i} v{j} [{x}])"), [v.as_slice(), &w, &[x]].concat()),
        12 => (format!("(reverse v{i})"), v.iter().rev().copied().collect()),
        13 => (format!("(sort > v{i})"), changed(&|v| v.sort_unstable_by(|a, b| b.cmp(a)))),
        14 => (format!("(filter odd? (map inc v{i}))"), v.iter().map(|x| x + 1).filter(|x| x % 2 != 0).collect()),
        15 => {
            let mut seen = BTreeSet::new();
            (format!("(distinct v{i})"), v.iter().copied().filter(|x| seen.insert(*x)).collect())
        }
        _ => (format!("(let [[_ & more] v{i}] (conj more {x}))"), v.iter().skip(1).copied().chain([x]).collect()),
    };
    versions.push(&source, model);
}

/// How a key is written: numbers, keywords and strings keep the order of the numbers.
fn key(kind: usize, k: i64) -> String {
    match kind {
        0 => k.to_string(),
        1 => format!(":k{k:02}"),
        _ => format!("\"k{k:02}\""),
    }
}

fn map_step(versions: &mut Versions<BTreeMap<i64, i64>>, kind: usize, (op, on, with, k): Op) {
    let (i, j) = (versions.pick(on), versions.pick(with));
    let (m, other) = (versions.models[i].clone(), versions.models[j].clone());
    let (x, name) = ((with % 10) as i64, key(kind, k));
    let changed = |change: &dyn Fn(&mut BTreeMap<i64, i64>)| {
        let mut m = m.clone();
        change(&mut m);
        m
    };
    let (source, model) = match op % 10 {
        0..=2 => {
            (format!("(assoc v{i} {name} {x} {} {x})", key(kind, k / 2)), changed(&|m| m.extend([(k, x), (k / 2, x)])))
        }
        3 => (format!("(dissoc v{i} {name})"), changed(&|m| _ = m.remove(&k))),
        4 => (format!("(merge v{i} v{j})"), changed(&|m| m.extend(other.clone()))),
        5 => (format!("(conj v{i} [{name} {x}])"), changed(&|m| _ = m.insert(k, x))),
        6 => (format!("(update v{i} {name} (fnil + 0) {x})"), changed(&|m| *m.entry(k).or_default() += x)),
        7 => {
            let keys: Vec<i64> = (k..k + 12).collect();
            let names = joined(keys.iter().map(|k| key(kind, *k)));
            let kept = m.iter().filter(|(k, _)| keys.contains(k)).map(|(k, v)| (*k, *v)).collect();
            (format!("(select-keys v{i} [{names}])"), kept)
        }
        8 => (
            format!("(merge-with + v{i} v{j})"),
            changed(&|m| other.iter().for_each(|(k, v)| *m.entry(*k).or_default() += v)),
        ),
        _ => (
            format!("(into {{}} (filter (fn [[_ v]] (odd? v)) (update-vals v{i} inc)))"),
            m.iter().map(|(k, v)| (*k, v + 1)).filter(|(_, v)| v % 2 != 0).collect(),
        ),
    };
    versions.push(&source, model);
}

fn set_step(versions: &mut Versions<BTreeSet<i64>>, (op, on, with, x): Op) {
    let (i, j) = (versions.pick(on), versions.pick(with));
    let (s, other) = (versions.models[i].clone(), versions.models[j].clone());
    let changed = |change: &dyn Fn(&mut BTreeSet<i64>)| {
        let mut s = s.clone();
        change(&mut s);
        s
    };
    let (source, model) = match op % 7 {
        0 | 1 => (format!("(conj v{i} {x} {})", x * 3), changed(&|s| s.extend([x, x * 3]))),
        2 => (format!("(disj v{i} {x})"), changed(&|s| _ = s.remove(&x))),
        3 => (format!("(union v{i} v{j})"), &s | &other),
        4 => (format!("(intersection v{i} v{j})"), &s & &other),
        5 => (format!("(difference v{i} v{j})"), &s - &other),
        _ => (format!("(into v{i} (range {x} {}))", x + 20), changed(&|s| s.extend(x..x + 20))),
    };
    versions.push(&source, model);
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn vectors_are_like_vec(ops in ops()) {
        let mut versions = Versions::new("[1 2 3]", vec![1, 2, 3]);
        ops.into_iter().for_each(|op| vector_step(&mut versions, op));
        versions.check(|v| format!("[{}]", joined(v)));
    }

    #[test]
    fn maps_are_like_btree_maps(kind in 0usize..3, ops in ops()) {
        let mut versions = Versions::new("{}", BTreeMap::new());
        ops.into_iter().for_each(|op| map_step(&mut versions, kind, op));
        versions.check(|m| format!("{{{}}}", joined(m.iter().map(|(k, v)| format!("{} {v}", key(kind, *k))))));
    }

    #[test]
    fn sets_are_like_btree_sets(ops in ops()) {
        let mut versions = Versions::new("#{}", BTreeSet::new());
        ops.into_iter().for_each(|op| set_step(&mut versions, op));
        versions.check(|s| format!("#{{{}}}", joined(s)));
    }
}

/// Integers of all sizes, many of them where 64 bits end.
fn integer() -> impl Strategy<Value = BigInt> {
    let edge = (prop::sample::select(vec![i64::MIN, i64::MAX, 0, 1 << 53, u32::MAX as i64]), -3i64..4)
        .prop_map(|(edge, off)| BigInt::from(edge) + off);
    let long = "-?[1-9][0-9]{0,60}".prop_map(|text| text.parse().expect("an integer"));
    prop_oneof![edge, any::<i64>().prop_map(BigInt::from), (-9i64..10).prop_map(BigInt::from), long]
}

fn sign(x: &BigInt) -> i32 {
    x.sign() as i32 - 1
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn integers_are_like_bigint(a in integer(), b in integer(), shift in 0usize..130) {
        let zero = BigInt::from(0);
        let mut wanted: Vec<(String, String)> = vec![
            (format!("(+ {a} {b})"), (&a + &b).to_string()),
            (format!("(- {a} {b})"), (&a - &b).to_string()),
            (format!("(* {a} {b})"), (&a * &b).to_string()),
            (format!("[(inc {a}) (dec {a}) (- {a}) (abs {a})]"), {
                let abs = if a < zero { -&a } else { a.clone() };
                format!("[{} {} {} {abs}]", &a + 1, &a - 1, -&a)
            }),
            (format!("[(max {a} {b}) (min {a} {b})]"), format!("[{} {}]", (&a).max(&b), (&a).min(&b))),
            (format!("[(< {a} {b}) (<= {a} {b}) (= {a} {b})]"), format!("[{} {} {}]", a < b, a <= b, a == b)),
            (format!("(compare {a} {b})"), format!("{}", a.cmp(&b) as i32)),
            (format!("[(bit-and {a} {b}) (bit-or {a} {b}) (bit-xor {a} {b})]"), {
                format!("[{} {} {}]", &a & &b, &a | &b, &a ^ &b)
            }),
            (format!("[(bit-shift-left {a} {shift}) (bit-shift-right {a} {shift})]"), {
                format!("[{} {}]", &a << shift, &a >> shift)
            }),
            (format!("(bit-not {a})"), (!&a).to_string()),
            (format!("[(pos? {a}) (neg? {a}) (zero? {a})]"), {
                format!("[{} {} {}]", sign(&a) > 0, sign(&a) < 0, sign(&a) == 0)
            }),
            (format!("(even? {a})"), (&a % 2 == zero).to_string()),
            (format!("(json/parse-string (str {a}))"), a.to_string()),
        ];
        if b == zero {
            for name in ["quot", "rem", "mod"] {
                let answer = run_with(Settings::default(), &format!("({name} {a} {b})"));
                prop_assert_eq!(answer.map_err(|e| e.0), Err("arithmetic_error"));
            }
        } else {
            let (quotient, remainder) = (&a / &b, &a % &b);
            let modulo = if remainder != zero && sign(&remainder) != sign(&b) { &remainder + &b } else { remainder.clone() };
            wanted.push((format!("[(quot {a} {b}) (rem {a} {b}) (mod {a} {b})]"), format!("[{quotient} {remainder} {modulo}]")));
        }
        for (program, answer) in wanted {
            prop_assert_eq!(run(&program), Ok(answer), "{}", program);
        }
    }
}

/// A step of a walk: as a form around a collection, and as a transducer.
fn walk_step() -> impl Strategy<Value = (String, String)> {
    let with_f = |name: &'static str, fs: &'static [&'static str]| {
        prop::sample::select(fs).prop_map(move |f| (format!("({name} {f} _)"), format!("({name} {f})")))
    };
    let number = |name: &'static str, from: u32, to: u32| {
        (from..to).prop_map(move |n| (format!("({name} {n} _)"), format!("({name} {n})")))
    };
    const MAPS: &[&str] = &["str", "vector", "(fn [x] [x x])", "(fn [x] (str x \".\"))"];
    const ASKS: &[&str] = &["some?", "vector?", "(fn [x] (even? (count (str x))))", "string?", "#{1 2 [3]}"];
    const CATS: &[&str] = &["vector", "(fn [x] [x [x] nil])", "(fn [x] (if (number? x) [] [x 1]))", "(fn [x] #{x 7})"];
    prop_oneof![
        with_f("map", MAPS),
        with_f("map-indexed", &["vector", "(fn [i x] (str i x))"]),
        with_f("filter", ASKS),
        with_f("remove", ASKS),
        with_f("keep", &["#{1 2 [3]}", "identity", "(fn [x] (when (vector? x) x))"]),
        with_f("keep-indexed", &["(fn [i x] (when (odd? i) x))"]),
        with_f("mapcat", CATS),
        with_f("take-while", ASKS),
        with_f("drop-while", ASKS),
        with_f("partition-by", ASKS),
        number("take", 0, 7),
        number("drop", 0, 4),
        number("take-nth", 1, 4),
        number("partition-all", 1, 4),
        Just(("(distinct _)".to_owned(), "(distinct)".to_owned())),
        Just(("(dedupe _)".to_owned(), "(dedupe)".to_owned())),
        Just(("(interpose :i _)".to_owned(), "(interpose :i)".to_owned())),
    ]
}

proptest! {
    #![proptest_config(cases(60))]

    /// Functions of collections, transducers and endless sequences do the same with elements.
    #[test]
    fn walks_agree(steps in prop::collection::vec(walk_step(), 0..5), list in prop::collection::vec(0..6i64, 1..6)) {
        let list = format!("{list:?}").replace(',', "");
        let around = |source: &str| steps.iter().fold(source.to_owned(), |inner, (form, _)| form.replace('_', &inner));
        let xf: String = steps.iter().map(|(_, xf)| xf.as_str()).collect::<Vec<_>>().join(" ");
        let eager = run(&format!("(vec {})", around(&list)));
        prop_assert_eq!(&run(&format!("(into [] (comp {xf}) {list})")), &eager);
        prop_assert_eq!(&run(&format!("(vec (eduction {xf} {list}))")), &eager);
        prop_assert_eq!(&run(&format!("(transduce (comp {xf}) conj {list})")), &eager);
        if xf.contains("take-while") {
            // It may have no end.
            return Ok(());
        }
        // Of so many, the first do not depend on where they end.
        let long = format!("(into [] (take 200) (cycle {list}))");
        let (count, first) = (format!("(count {})", around(&long)), format!("(take 5 {})", around(&long)));
        let cycle = format!("(cycle {list})");
        if run(&count).is_ok_and(|count| count.parse::<usize>().is_ok_and(|count| count >= 40)) {
            let first = run(&first);
            prop_assert_eq!(&run(&format!("(take 5 {})", around(&cycle))), &first);
            prop_assert_eq!(&run(&format!("(take 5 (sequence (comp {xf}) {cycle}))")), &first);
        }
    }
}
