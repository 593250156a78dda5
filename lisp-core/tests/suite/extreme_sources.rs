//! Sources with numbers at the edges of every width, and with very many of anything: each is compiled and run, or refused with
//! an error and a next step. None makes the compiler panic, or make code that its own check refuses.

use lisp_core::compile::{Program, SPECIAL_FORMS};
use lisp_core::error::{Error, Reason};
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::{Grant, Machine, Settings};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Numbers as they are written: around the ends of what 8 to 64 bits hold, beyond any float, and of radices that are none.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "20",
    "21",
    "127",
    "128",
    "255",
    "256",
    "1000",
    "32767",
    "32768",
    "65535",
    "65536",
    "536870911",
    "536870912",
    "999999999",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "1e308",
    "1e309",
    "1e999999999",
    "1e-999999999",
    "1e99999999999999999999",
    "0.00000000000000000000000000000001e-400",
    "1.7976931348623157e308",
    "0x7fffffffffffffff",
    "0xffffffffffffffffffff",
    "36rZZZZZZZZZZZZZZZZZZZZ",
    "37r1",
    "1r0",
    "0r",
    "99999999999999999999r1",
    "2r2",
    "077",
    "08",
    "017777777777777777777777777777",
    "00000000000000000000000000000000000000001",
    "1/0",
    "9223372036854775808/9223372036854775807",
    "1M",
    "1e999999999M",
    "9999999999999999999N",
];

/// Where a number stands, at `N`.
const PLACES: &[&str] = &[
    "N",
    "-N",
    "+N",
    "--N",
    ".N",
    "N.",
    "N.N",
    "NeN",
    "Ne-N",
    "NrN",
    "N/N",
    "NN",
    "%N",
    "#(%N)",
    "#(+ %N %1)",
    "(fn [%N] 1)",
    "\\N",
    "\\uN",
    "\\oN",
    "\"\\uN\"",
    "\"\\N\"",
    ":N",
    "'N",
    "#'N",
    "*N",
    "##N",
    "#N",
    "[N -N]",
    "{N 1, -N 2}",
    "#{N -N}",
    "(let [{a N} [1 2]] a)",
    "(let [{a -N} \"ab\"] a)",
    "(case N N 1 -N 2 3)",
    "((fn [x] (+ x N)) 1)",
    "((fn [x] (- x N)) -1)",
    "((fn [x] (- x -N)) 1)",
    "((fn [x] (* x N)) -9)",
    "((fn [x] (if (< x N) 1 (if (> x -N) 2 3))) 1)",
    "(dotimes [i N] i)",
    "(loop [i 0] (if (< i N) (recur (inc i)) i))",
    "(reduce + (range N))",
    "(map inc (range -N N))",
    "(for [x (range N)] x)",
    "(nth [1] N)",
    "([1 2] N)",
    "(get \"ab\" N)",
    "(subs \"abc\" N)",
    "(subvec [1 2] 0 N)",
    "(take N [1 2])",
    "(drop -N [1 2])",
    "(partition N N [1 2 3])",
    "(bit-shift-left 1 N)",
    "(bit-shift-right -1 N)",
    "(format \"%Nd\" 1)",
    "(format \"%.Nf\" 1.5)",
    "(get-in [1] [N])",
    "(assoc [1] N 1)",
    "(repeat N 1)",
    "(char N)",
    "(parse-long \"N\")",
    "(update [1] N inc)",
    "(Math/pow 10 N)",
    "(quot N -1)",
    "(recur N)",
];

/// How many there are of something.
const COUNTS: &[usize] = &[0, 1, 19, 20, 21, 199, 200, 201, 248, 250, 251, 254, 255, 256, 257, 4_000, 33_000, 65_537];

/// Something, as often as is asked for: texts around and between the parts, each made of its number at `N`.
const MANY: &[(&str, &str, &str)] = &[
    ("(+", " N", ")"),
    ("(str", " N", ")"),
    ("(let [f (fn [& r] 1)] (f", " N", "))"),
    ("(def f (fn [& r] 1)) (f", " N", ")"),
    ("(tool/t", " N", ")"),
    ("(:k", " {:k N}", ")"),
    ("(apply +", " N", " [1])"),
    ("(vector", " (inc N)", ")"),
    ("[", "(inc N) ", "]"),
    ("#{", "(inc N) ", "}"),
    ("{", ":kN (inc N) ", "}"),
    ("{", "(inc N) N ", "}"),
    ("[", "N.5 ", "]"),
    ("", "(inc N.5) ", ""),
    ("", "(str \"N\") ", ""),
    ("", "(:kN {:kN 1}) ", ""),
    ("", "{:a N.5} ", ""),
    ("", "(def aN N) ", ""),
    ("", "(defonce aN N) ", ""),
    ("", "(defn aN [] N) ", ""),
    ("", "data/aN ", ""),
    ("", "(tool/aN) ", ""),
    ("", "(fn [] N) ", ""),
    ("(fn [", "aN ", "] 1)"),
    ("(fn [", "[aN] ", "] 1)"),
    ("((fn [a & [", "bN ", "]] 1) 1)"),
    ("(letfn [", "(aN [] N) ", "] 1)"),
    ("(letfn [", "(aN [] (aN)) ", "] 1)"),
    ("(let [", "aN N ", "] 1)"),
    ("(let [", "aN (inc N) ", "] 1)"),
    ("(let [", "[aN] [N] ", "] 1)"),
    ("(let [[", "aN ", "] [1]] 1)"),
    ("(let [{:keys [", "aN ", "]} {:a1 1}] 1)"),
    ("(let [{", "aN N ", "} [1]] 1)"),
    ("(let [{", "aN :kN ", "} {:k1 1}] 1)"),
    ("(let [{:keys [a] :or {", "aN N ", "}} {}] a)"),
    ("(loop [", "aN N ", "] 1)"),
    ("(loop [i 0] (if (> i 1) i (recur", " N", ")))"),
    ("(case 1 ", "N :kN ", ")"),
    ("(case 1 (", "N ", ") 2)"),
    ("(case \"1\" ", "\"N\" N ", ")"),
    ("(cond ", "(= 1 N) N ", ")"),
    ("(condp = 1 ", "N N ", ")"),
    ("(condp = 1 ", "N :>> inc ", ")"),
    ("(and ", "N ", ")"),
    ("(or ", "false ", ")"),
    ("(or ", "unknownN ", ")"),
    ("(do ", "(inc N) ", ")"),
    ("(program ", "(inc N) ", ")"),
    ("(if true (do ", "(inc N) ", ") 2)"),
    ("(when (< (do ", "(inc N) ", ") 1) 2)"),
    ("(-> 1 ", "(+ N) ", ")"),
    ("(->> 1 ", "(+ N) ", ")"),
    ("(as-> 1 x ", "(+ x N) ", ")"),
    ("(.. \"a\"", " length", ")"),
    ("(.. \"a\"", " (concat \"N\")", ")"),
    ("(cond-> 1 ", "true (+ N) ", ")"),
    ("(some-> 1 ", "(+ N) ", ")"),
    ("(for [", "aN [N] ", "] 1)"),
    ("(for [x [1] ", ":when (< x N) ", "] 1)"),
    ("(doseq [x [1] ", ":let [aN N] ", "] 1)"),
    ("(try 1 ", "(catch Exception e N) ", ")"),
    ("", "(try (inc N) (catch Exception e N) (finally 2)) ", ""),
    ("(while (def a false) ", "N ", ")"),
    ("#(do ", "%1 ", ")"),
    ("#(do ", "%N ", ")"),
    ("'(", "aN ", ")"),
    ("(quote [", "\"N\" ", "])"),
    ("(fn ", "([] N) ", ")"),
    ("(map (fn [x] (+ x ", "N.5 ", ")) [1])"),
    ("(map #(+ % ", "N ", ") (range 3))"),
    ("(->> (range 3) ", "(map #(+ % N)) ", ")"),
    ("(->> (range 3) ", "(filter odd?) ", " (reduce +))"),
    ("\"", "N", "\""),
    ("[", "#\"aN\" ", "]"),
    ("", "#_ ", "1"),
    ("", "^:k ", "1"),
    ("", "'", "1"),
    ("", ";N\n", ""),
    ("", "\n", "("),
    ("", "λ", "("),
    ("#_\"", "λ\n", "\" ("),
    ("(ns a (:require ", "[clojure.string :as sN] ", "))"),
    ("(ns a (:require [clojure.string :as s :refer [", "join ", "]]))"),
    ("(import ", "java.time.LocalDate ", ")"),
    ("(declare ", "aN ", ")"),
    ("", "(", ""),
    ("", ")", ""),
    ("", "[{#{#(", ""),
    ("%", "9", ""),
    ("#(%", "9", ")"),
    ("1e", "9", ""),
    ("1.", "0", "1"),
    ("0x", "f", ""),
    ("36r", "Z", ""),
    ("\\u", "9", ""),
    ("\\", "a", ""),
    (":", "a", ""),
    ("a", "/a", ""),
];

/// A form inside itself, at `N`.
const NESTED: &[&str] = &[
    "(inc N)",
    "[N]",
    "{:a N}",
    "{N 1}",
    "#{N}",
    "(fn [] N)",
    "((fn [x] N) 1)",
    "(let [x 1] N)",
    "(let [f (fn [] N)] (f))",
    "(loop [x 1] N)",
    "(if true N 2)",
    "(if N 1 2)",
    "(cond N 1 :else 2)",
    "(case N 1 1)",
    "(do 1 N)",
    "(and 1 N)",
    "(for [x [1]] N)",
    "(map (fn [x] N) [1])",
    "(map #(do % N) [1])",
    "(dotimes [i 1] N)",
    "(try N (catch Exception e 1))",
    "(try 1 (finally N))",
    "(-> N inc)",
    "(->> [1] (map (fn [x] N)) (filter (fn [x] N)))",
    "(some-> N inc)",
    "(.. N length length length)",
    "(.. \"a\" (concat N) length length length)",
    "(cond-> 1 true (+ N))",
    "(letfn [(f [] N)] (f))",
    "(let [[a {:keys [b] :or {b N}}] [1 {}]] b)",
    "(quote N)",
    "'(a N)",
    "#_N 1",
    "^N a",
];

/// Compiles a source, and runs it for a while; the error it ends in.
fn error_of(source: &str) -> Option<Error> {
    let settings = Settings { fuel: Some(20_000), heap_bytes: 10_000_000, ..Settings::default() };
    let program = match Program::compile(source, &ReadLimits { names: 0, ..ReadLimits::default() }) {
        Ok(program) => program,
        Err(error) => {
            assert!(error.hint.is_some(), "an error of the compiler without a next step: {error}");
            return Some(error);
        }
    };
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings.clone());
    match machine.load(Arc::new(program)) {
        Err(error) => Some(error),
        Ok(()) => {
            let no_tools = |machine: &mut Machine| {
                machine.reply_error(Error::new(Reason::ToolError, "there are no tools here"));
            };
            match crate::workers::to_end(&mut machine, &settings, 20_000, &no_tools) {
                lisp_core::vm::Ending::Error(error) => Some(*error),
                _ => None,
            }
        }
    }
}

/// Those of the sources that break the interpreter, and how.
fn broken(sources: impl Iterator<Item = String>) -> Vec<String> {
    let mut broken = Vec::new();
    for source in sources {
        let fault = match catch_unwind(AssertUnwindSafe(|| error_of(&source))) {
            Ok(error) => error.filter(|error| error.reason == Reason::HostFault).map(|error| error.to_string()),
            Err(panic) => Some(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned())),
        };
        if let Some(fault) = fault {
            let mut shown = String::new();
            let _ = write!(shown, "{} ({} bytes): {fault}", source.chars().take(80).collect::<String>(), source.len());
            broken.push(shown);
        }
    }
    broken
}

#[test]
fn numbers_of_any_size_stand_anywhere() {
    let sources =
        PLACES.iter().flat_map(|place| NUMBERS.iter().map(|number| place.replace('N', &number.replace('N', "\u{1}"))));
    let broken = broken(sources.map(|source| source.replace('\u{1}', "N")));
    assert!(broken.is_empty(), "{} sources:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn there_may_be_very_many_of_anything() {
    let many = |&(front, part, back): &(&str, &str, &str), count: usize| {
        let mut source = front.to_owned();
        (0..count).for_each(|n| source.push_str(&part.replace('N', &n.to_string())));
        source + back
    };
    let sources = MANY.iter().flat_map(|shape| COUNTS.iter().map(move |count| many(shape, *count)));
    let broken = broken(sources.filter(|source| source.len() <= ReadLimits::default().source_bytes));
    assert!(broken.is_empty(), "{} sources:\n{}", broken.len(), broken.join("\n"));
}

/// What any special form may be given, very often.
const PARTS: &[&str] =
    &[" x", " 1", " (inc 1)", " (.length)", " length", " true (inc 1)", " [x 1]", " ([x] 1)", " :k", " _ :when"];

/// What comes before it.
const FIRST_PARTS: &[&str] = &["", " 1", " \"a\"", " x", " [x 1]", " = 1", " [x [1]]"];

#[test]
fn every_special_form_may_have_very_many_parts() {
    let sources = SPECIAL_FORMS.iter().flat_map(|form| {
        let starts = FIRST_PARTS.iter().flat_map(|first| PARTS.iter().map(move |part| (first, part)));
        let forms = starts.flat_map(move |(first, part)| {
            [300, 6_000].map(|count| format!("({}{first}{})", form.name, part.repeat(count)))
        });
        forms.chain(
            [[300, 6_000].map(|count| format!("({} [{}] 1)", form.name, "x 1 ".repeat(count)))].into_iter().flatten(),
        )
    });
    let broken = broken(sources);
    assert!(broken.is_empty(), "{} sources:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn forms_may_be_nested_as_deep_as_the_reader_takes() {
    let nested = |shape: &str, depth: usize| (0..depth).fold("1".to_owned(), |inner, _| shape.replace('N', &inner));
    // A shape that has two inside doubles with each level.
    let deepest = |shape: &str| if shape.matches('N').count() > 1 { 6 } else { 65 };
    let depths = [1, 2, 4, 5, 6, 15, 16, 17, 31, 32, 33, 62, 63, 64, 65];
    let sources = NESTED.iter().flat_map(|shape| {
        depths.iter().filter(move |depth| **depth <= deepest(shape)).map(move |depth| nested(shape, *depth))
    });
    let broken = broken(sources);
    assert!(broken.is_empty(), "{} sources:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn a_placeholder_beyond_the_last_is_refused_by_its_number() {
    for number in ["0", "21", "255", "256", "65536", "536870911", "536870912", "4294967296", "99999999999999999999"] {
        for source in [format!("%{number}"), format!("(map #(+ % %{number}) [1])"), format!("(fn [x] %{number})")] {
            let error = Program::compile(&source, &ReadLimits::default()).expect_err(&source);
            assert_eq!(error.reason, Reason::InvalidPlaceholder, "{source}: {error}");
            assert!(error.message.contains("%1 to %20"), "{source}: {error}");
        }
    }
}
