//! What the tests of whole programs on a bare machine share: a case, a way to run it, and what came of it.

#![allow(dead_code, unreachable_pub, reason = "each test binary is a crate of its own and uses a part of it")]

use lisp_core::compile::Program;
use lisp_core::heap::{Heap, Map, TextBuf, Value};
use lisp_core::json::read;
use lisp_core::syntax::ReadLimits;
use lisp_core::text::pr_str;
use lisp_core::vm::{Ending, Grant, Machine, Settings, Usage};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program with what a host gives it.
pub struct Case {
    /// What to call it in a message.
    pub name: String,
    /// Its text.
    pub source: String,
    /// A JSON object with `context` (the data) and `memory`, if there is one.
    pub given: Option<String>,
}

impl Case {
    /// A program without data.
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Case {
        Case { name: name.into(), source: source.into(), given: None }
    }

    /// What the host grants; `None` when its JSON cannot be imported.
    fn grants(&self) -> Option<Vec<Arc<Grant>>> {
        let Some(given) = &self.given else { return Some(Vec::new()) };
        let grant = Grant::build(usize::MAX, |h, builder| {
            let given = read(h, given).map_err(|error| error.into_fault(lisp_core::Reason::ParseError))?;
            for (part, data) in [("context", true), ("memory", false)] {
                let Some(Value::Map(map)) = field(h, given, part) else { continue };
                for (key, value) in map.entries(h)?.iter() {
                    let key = key.as_str().unwrap_or_default();
                    if data { builder.data(key, value) } else { builder.define(key, value) }
                }
            }
            Ok(())
        });
        Some(vec![Arc::new(grant.ok()?)])
    }
}

/// The field of a JSON object.
pub fn field<'h>(h: &'h Heap, object: Value<'h>, name: &str) -> Option<Value<'h>> {
    let Value::Map(map) = object else { return None };
    Map::get_text(map, h, name, false).ok().flatten()
}

/// What came of a run, as far as it must not depend on the machine it ran on.
#[derive(Clone, Debug, PartialEq)]
pub struct Came {
    /// `value`, `return`, `fail`, or the error with its place and the calls on the way to it.
    pub ending: String,
    /// The value as text.
    pub text: String,
    /// The printed lines.
    pub prints: Vec<String>,
    /// Units of fuel.
    pub fuel: u64,
}

impl Came {
    /// Did the run end with this error?
    pub fn failed_with(&self, reason: &str) -> bool {
        self.ending.starts_with(reason)
    }

    /// Is there a value?
    pub fn succeeded(&self) -> bool {
        matches!(self.ending.as_str(), "value" | "return" | "fail")
    }
}

/// What comes of a program in every rhythm of compaction and slices, which must be the same.
pub fn steady(source: &str, settings: &Settings) -> Came {
    const WHOLE: u64 = u64::MAX / 2;
    let case = Case::new(source, source);
    let (plain, _) = run(&case, settings, WHOLE);
    for (compact_every, slice) in [(Some(1), WHOLE), (Some(3), 7), (None, 1), (None, 13)] {
        let (other, _) = run(&case, &Settings { compact_every, ..settings.clone() }, slice);
        assert_eq!(other, plain, "{source}: compacted at every {compact_every:?}, slices of {slice}");
    }
    plain
}

/// Compiles and runs a case in slices of fuel. A tool answers the vector of its arguments.
pub fn run(case: &Case, settings: &Settings, slice: u64) -> (Came, Usage) {
    let failed = |error: lisp_core::Error| {
        let came = Came { ending: error.to_string(), text: String::new(), prints: Vec::new(), fuel: 0 };
        (came, Usage::default())
    };
    match Program::compile(&case.source, &ReadLimits::default()) {
        Ok(program) => run_program(&Arc::new(program), case, settings, slice),
        Err(error) => failed(error),
    }
}

/// The same, looked after by a flag that nobody sets: built-ins are not cut at the end of a slice.
pub fn run_watched(case: &Case, settings: &Settings, slice: u64) -> (Came, Usage) {
    let program = Program::compile(&case.source, &ReadLimits::default()).expect("a program that compiles");
    run_machine(&Arc::new(program), case, settings, slice, true)
}

/// Runs a compiled case.
pub fn run_program(program: &Arc<Program>, case: &Case, settings: &Settings, slice: u64) -> (Came, Usage) {
    run_machine(program, case, settings, slice, false)
}

fn run_machine(program: &Arc<Program>, case: &Case, settings: &Settings, slice: u64, watched: bool) -> (Came, Usage) {
    let Some(grants) = case.grants() else {
        panic!("{}: the data of a case must be JSON", case.name);
    };
    let mut machine = Machine::new(grants, settings.clone());
    if let Err(error) = machine.load(program.clone()) {
        let came = Came { ending: error.to_string(), text: String::new(), prints: Vec::new(), fuel: 0 };
        return (came, Usage::default());
    }
    if watched {
        machine.watch(Arc::default());
    }
    // What does not fit ends the run: the next step says so.
    let ending = crate::workers::to_end(&mut machine, settings, slice, &|machine| {
        drop(machine.reply_from_call(|h, _, args| h.vector(args)));
    });
    let usage = machine.usage();
    let ending = match ending {
        Ending::Value => "value".to_owned(),
        Ending::Return => "return".to_owned(),
        Ending::Fail => "fail".to_owned(),
        Ending::Error(error) => {
            let calls = error.trace.as_ref().map_or(&[][..], |trace| &trace.calls);
            format!("{error} at {:?} by {calls:?}", error.span)
        }
    };
    let prints = machine.take_prints();
    let text = machine.with_result(|h, value| {
        h.unmetered(1 << 26, u64::MAX, || {
            let mut out = TextBuf::new(h);
            match pr_str(h, value, &mut out) {
                Ok(()) => out.into_string(),
                Err(fault) => format!("{fault:?}"),
            }
        })
    });
    (Came { ending, text, prints, fuel: usage.fuel }, usage)
}

/// The folder of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The examples of all built-ins.
pub fn builtin_examples() -> Vec<Case> {
    let rows = lisp_core::library::all().iter();
    rows.flat_map(|row| row.examples.iter().map(|(source, _)| Case::new(format!("example of {}", row.name), *source)))
        .collect()
}

/// The files of a folder with this extension, in order; none when there is no such folder.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == extension));
    paths.sort();
    paths
}

/// The programs of `examples/` with their data.
pub fn example_programs() -> Vec<Case> {
    files(&repository().join("examples"), "clj")
        .into_iter()
        .map(|path| {
            let source = fs::read_to_string(&path).expect("a program");
            let data = fs::read_to_string(path.with_extension("json")).unwrap_or_else(|_| "{}".to_owned());
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            let context = if data.trim_start().starts_with('{') { data } else { format!("{{\"{name}\": {data}}}") };
            Case { name, source, given: Some(format!("{{\"context\": {context}}}")) }
        })
        .collect()
}

/// The programs of `lisp-core/tests/cases`, one a line or one a paragraph; what they must answer is another test's.
pub fn case_files() -> Vec<Case> {
    let mut cases = Vec::new();
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"), "clj") {
        let text = fs::read_to_string(&path).expect("a file of cases");
        for (i, source) in text.split("\n\n").enumerate().filter(|(_, part)| !part.trim().is_empty()) {
            cases.push(Case::new(format!("{} {}", path.display(), i + 1), source));
        }
    }
    cases
}

/// The conformance cases beside the repository, when they are there.
pub fn conformance_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Beside the repository, or beside the folder that holds its work trees.
    let folders = ["../shared", "../../shared"].map(|shared| repository().join(shared).join("conformance/cases"));
    for path in folders.iter().flat_map(|folder| files(folder, "jsonl")) {
        let text = fs::read_to_string(&path).expect("a file of cases");
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let built = Grant::build(usize::MAX, |heap, _| {
                let case = read(heap, line).unwrap_or_else(|_| panic!("a case is JSON"));
                let part = |name| field(heap, case, name);
                let text = |name| match part(name) {
                    Some(Value::Str(s)) => s.text().to_owned(),
                    _ => String::new(),
                };
                let given = part("context").or(part("memory")).is_some();
                cases.push(Case { name: text("id"), source: text("src"), given: given.then(|| line.to_owned()) });
                Ok(())
            });
            assert!(built.is_ok());
        }
    }
    cases
}

/// Programs that hold what they build in all kinds of ways: growing vectors and their older versions, maps of both
/// kinds, builders inside frames, views, closures, deep stacks, texts, big integers, tools.
pub const PROGRAMS: &[(&str, &str)] = &[
    ("appending", "(reduce conj [] (range 300))"),
    (
        "appending to old versions",
        "(let [v (reduce conj [] (range 9))
               kept (map (fn [i] (conj (conj v i) (- i))) (range 40))
               short (map (fn [w] (conj (vec (take 3 w)) :end)) kept)]
           [(count kept) (last kept) (reduce conj v (range 30)) (first short) (conj (pop v) 7)])",
    ),
    (
        "both ends",
        "(let [v (reduce (fn [v i] (cons i (conj v i))) [] (range 40))
               tails (map (fn [i] (drop i v)) (range 40))]
           [(map count tails) (conj (last tails) :x) (cons :y (first tails)) (conj (rest [1]) 2 3 4 5 6)])",
    ),
    ("a map of many keys", "(reduce (fn [m i] (assoc m (str \"k\" (mod (* i 7) 61)) i)) {} (range 150))"),
    (
        "leaving a map",
        "(let [m (into {} (map (fn [i] [i (* i i)]) (range 50)))]
           (reduce dissoc m (range 0 50 3)))",
    ),
    ("groups", "(update-vals (group-by (fn [i] (mod (* i i) 37)) (range 200)) (fn [xs] [(count xs) (last xs)]))"),
    ("partitions", "(partition-by (fn [i] (quot i 7)) (range 100))"),
    ("distinct by", "(distinct-by (fn [i] [(mod i 25) :k]) (range 120))"),
    ("sorting by a comparator", "(sort (fn [a b] (> (mod (* a 7919) 101) (mod (* b 7919) 101))) (range 80))"),
    ("sorting by a key", "(map first (sort-by second (map (fn [i] [i (mod (* i 7919) 101)]) (range 80))))"),
    ("frequencies", "(frequencies (map (fn [i] {:a (mod i 20) :b [(mod i 3)]}) (range 150)))"),
    ("deep recursion", "(defn f [n] (if (= n 0) [] (conj (f (dec n)) (str n)))) (count (f 200))"),
    ("a deep value", "(reduce (fn [v i] [i v]) [] (range 150))"),
    ("texts", "(reduce (fn [s i] (str s i \",\")) \"\" (range 120))"),
    ("words", "(frequencies (re-seq #\"\\w+\" (apply str (map (fn [i] (str \"w\" (mod i 11) \" \")) (range 80)))))"),
    ("big integers", "(reduce * (range 1 120))"),
    (
        "functions",
        "(let [adders (map (fn [i] (fn [x] (+ x i))) (range 40))
               all (apply comp adders)
               each (apply juxt adders)]
           [(all 1) (each 2) ((partial apply +) (each 3))])",
    ),
    (
        "for",
        "(for [x (range 12) y (range x) :when (odd? (+ x y)) :let [k (keyword (str \"k\" x))]] {k [x y] :sum (+ x y)})",
    ),
    (
        "tools and prints",
        "(doseq [i (range 20)] (println i (tool/echo {:i i :text (str \"t\" i)})))
         (map (fn [i] (tool/echo i [i])) (range 20))",
    ),
    ("walks", "(postwalk (fn [x] (if (number? x) (inc x) x)) (map (fn [i] {:i i :v [i [i]]}) (range 40)))"),
    ("merging", "(merge-with + {:a 1} (zipmap (map (fn [i] (mod i 19)) (range 60)) (range 60)) {3 4 :a 5})"),
    ("nested updates", "(reduce (fn [m i] (update-in m [(mod i 5) (mod i 20)] (fnil conj []) i)) {} (range 100))"),
    ("sets", "(reduce (fn [s i] (if (even? i) (conj s (mod i 40)) (disj s (mod i 30)))) #{} (range 150))"),
    (
        "JSON",
        "(json/parse-string (json/generate-string (map (fn [i] {:id i :tags [\"a\" (str i)] :x 0.5}) (range 40))))",
    ),
    (
        "workers answer parts of their parent's values",
        "(let [v (vec (range 60)) m (zipmap (range 40) (map str (range 40))) s \"a text of the parent\"
               r (pmap (fn [i] [(subvec v i (+ i 5)) (conj v i) (get m i) (assoc m i :new) (subs s 0 i) (nth v i)]) (range 12))
               again (map (fn [[a b c d e f]] [(conj a :x) (peek b) c (count d) (str e f)]) r)]
           [(count r) again (first r)])",
    ),
    (
        "workers answer functions and what they made",
        "(let [k 3
               fs (pmap (fn [i] (let [t (str \"t\" i)] (fn [x] (str t (* x i k))))) (range 20))
               g (str (range 50))
               more (pmap (fn [f] {:of (f 2) :list (map f (range 3)) :set #{(f 1)} :big (reduce *' (range 1 30))}) fs)]
           [(map #(% 7) fs) (count g) more])",
    ),
    (
        "workers that call workers",
        "(defn deep [n] (if (zero? n) [n] (pmap (fn [i] [i (deep (dec n))]) (range 2))))
         (let [before (str (range 20)) a (deep 4) garbage (map str (range 100))] [(deep 3) a before (count garbage)])",
    ),
    (
        "workers define nothing and print in order",
        "(def x 1)
         (defn show [i] (def x i) (println i x) x)
         [(pmap show [5 6 7]) x (pcalls #(show 8) (fn [] x)) x (apply pmap [vector [1 2] [3 4 5]])]",
    ),
    (
        "errors that are caught",
        "(defn f [n acc] (if (= n 0) (throw (ex-info (str \"at \" (count acc)) {:acc (take 3 acc)})) (cons n (f (dec n) (conj acc (str n))))))
         (def kept [])
         (defn tried [i]
           (try (if (odd? i) (f i []) (map (fn [x] (/ x (- i x))) (range 9)))
                (catch ExceptionInfo e [(ex-message e) (ex-data e)])
                (catch ArithmeticException e [i (:reason e)])
                (finally (def kept (conj kept [i (str i)])))))
         [(map tried (range 12)) kept (reduce (fn [a i] (try (+ a (/ 6 i)) (catch Exception e (+ a 0.5)))) 0 [1 0 2 0 3])
          (pmap tried (range 4)) (try (sort-by (fn [i] (f i [])) [2 1]) (catch Exception e (ex-data e)))]",
    ),
    (
        "functions of several arities that know each other",
        "(letfn [(even ([n] (even n [])) ([n v] (if (= n 0) [true (count v)] (odd (dec n) (conj v (str n))))))
                 (odd ([n] (odd n [])) ([n v] (if (= n 0) [false (last v)] (even (dec n) (conj v n)))))]
           [(map even (range 12)) (odd 40) (map (fn [f i] (f i)) [even odd] [5 6])])",
    ),
    (
        "workers with much garbage",
        "(pmap (fn [i] (reduce (fn [acc j] (let [w (map str (range 20))] (if (zero? (mod j 10)) (conj acc (last w)) acc))) [i] (range 60)))
               (range 6))",
    ),
];

/// [`PROGRAMS`] as cases.
pub fn programs() -> Vec<Case> {
    PROGRAMS.iter().map(|(name, source)| Case::new(*name, *source)).collect()
}
