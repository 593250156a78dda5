//! The table: a program, its limits, and how it must end.

use crate::cpu::timed;
use lisp_runtime::{Engine, Input, Limits, Outcome};
use std::fmt::Write as _;
use std::time::Duration;

/// Verdicts that several rows have in common.
const FULL: &[&str] = &["memory_exceeded"];
const LATE: &[&str] = &["timeout"];
const FULL_OR_LATE: &[&str] = &["memory_exceeded", "timeout"];
const LATE_OR_GIVEN_UP: &[&str] = &["timeout", "runtime_error"];
const CLEAN: &[&str] = &["ok", "memory_exceeded", "timeout", "result_limit_exceeded"];
const UNREADABLE: &[&str] = &["parse_error", "program_too_large", "symbol_limit_exceeded"];

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) source: String,
    pub(crate) limits: Limits,
    /// `ok`, or reasons of errors.
    pub(crate) expected: &'static [&'static str],
    /// Makes the JSON that is read as `data/given`.
    data: Option<fn() -> String>,
    /// Its peak of resident memory is measured too.
    hungry: bool,
}

impl Row {
    pub(crate) fn new(name: &'static str, source: impl Into<String>, expected: &'static [&'static str]) -> Row {
        let mut source: String = source.into();
        if source.contains("(text ") {
            let text = "(defn text [n s] (if (< (count s) n) (text n (str s s s s s s s s s s)) (subs s 0 n)))";
            source = format!("{text} {source}");
        }
        let limits = Limits::default().with_timeout_ms(200).with_fuel(0);
        Row { name, source, limits, expected, data: None, hungry: false }
    }

    /// The same with other limits.
    fn limits(mut self, change: impl FnOnce(Limits) -> Limits) -> Row {
        self.limits = change(self.limits);
        self
    }

    /// The same without a limit to the rounds of a loop.
    fn endless(self) -> Row {
        self.limits(|limits| limits.with_loop_iterations(0))
    }

    fn fuel(self, units: u64) -> Row {
        self.limits(|limits| limits.with_fuel(units))
    }

    fn given(mut self, json: fn() -> String) -> Row {
        self.data = Some(json);
        self
    }

    fn hungry(mut self) -> Row {
        self.hungry = true;
        self
    }

    /// Runs it within limits; returns the processor time of this thread besides.
    pub(crate) fn run(&self, limits: Limits) -> (Outcome, Duration) {
        let engine = Engine::builder().limits(limits).build().expect("an engine");
        let input = match &self.data {
            Some(json) => Input::new().json("given", json()),
            None => Input::new(),
        };
        // Neither making the data nor the clean-up is part of the run.
        timed(|| engine.eval(&self.source, input))
    }
}

pub(crate) fn came_to(outcome: &Outcome) -> &'static str {
    outcome.problem().map_or("ok", |problem| problem.reason().name())
}

/// L1-L5: time, recursion, strings, sequences, integers.
fn growth() -> Vec<Row> {
    let squares = "(reduce (fn [x _] (* x x)) 3 (range 60))";
    let many_digits = "(count (str (reduce (fn [x _] (* x x)) 10 (range 20))))";
    vec![
        Row::new("L1 endless loop", "(loop [] (recur))", LATE).endless(),
        Row::new("L1 endless prelude loop", "(loop [] (reduce + (range 1000)) (recur))", LATE).endless(),
        Row::new("L1 endless worker", "(pmap (fn [_] (loop [] (recur))) [1])", LATE).endless(),
        Row::new("L2 endless tail call", "(defn f [x] (f (inc x))) (f 0)", FULL_OR_LATE).hungry(),
        Row::new("L2 endless recursion", "(defn f [x] (inc (f x))) (f 0)", FULL_OR_LATE).hungry(),
        Row::new("L2 endless recursion through map", "(defn f [x] (map f [x])) (f 0)", FULL_OR_LATE).hungry(),
        Row::new("L2 two functions", "(defn g [x] x) (def f (fn h [x] (+ 1 (h (g x))))) (f 1)", FULL_OR_LATE),
        Row::new("L2 a long composition", "((reduce comp identity (map (fn [_] inc) (range 200000))) 0)", CLEAN)
            .hungry(),
        Row::new("L2 a deep composition", "((reduce (fn [f _] (comp f inc)) identity (range 100000)) 0)", CLEAN)
            .hungry(),
        Row::new("L2 a deep partial", "((reduce (fn [f _] (partial f 1)) + (range 2000)))", CLEAN).hungry(),
        Row::new("L3 doubling strings", "(reduce (fn [s _] (str s s)) \"x\" (range 64))", FULL).hungry(),
        Row::new("L3 in a worker", "(pmap (fn [_] (reduce (fn [s _] (str s s)) \"x\" (range 64))) [1])", FULL),
        Row::new("L3 doubling by join", "(reduce (fn [s _] (join s [s s s])) \"xy\" (range 64))", FULL).hungry(),
        Row::new(
            "L3 growing by replace",
            "(reduce (fn [s _] (replace s \"x\" \"xx\")) \"x\" (range 64))",
            FULL_OR_LATE,
        )
        .hungry(),
        Row::new("L3 doubling vectors", "(reduce (fn [v _] (into v v)) [1] (range 64))", FULL).hungry(),
        Row::new("L3 concat", "(reduce (fn [v _] (concat v v)) [1] (range 64))", FULL).hungry(),
        Row::new("L4 a long range", "(range 1000000000000)", FULL).hungry(),
        Row::new("L4 a long range of floats", "(vec (range 1e9))", FULL).hungry(),
        // So little fuel that the memory cannot have been filled first.
        Row::new("L4 a long range, at once", "(range 1000000000000)", FULL).fuel(1_000),
        Row::new("L4 a long range of floats, at once", "(vec (range 1e9))", FULL).fuel(1_000),
        Row::new("L4 combinations, at once", "(combinations (range 40) 20)", FULL).fuel(1_000),
        Row::new("L4 a long map", "(count (map (fn [_] 1) (range 100000000)))", FULL).hungry(),
        Row::new("L4 combinations", "(combinations (range 40) 20)", FULL).hungry(),
        Row::new("L4 many small vectors", "(map (fn [i] [i]) (range 500000))", FULL).hungry(),
        Row::new("L4 many maps", "(map (fn [i] {:a i :b [i]}) (range 200000))", FULL).hungry(),
        Row::new("L4 many keys", "(reduce (fn [m i] (assoc m i [i])) {} (vec (range 500000)))", FULL_OR_LATE).hungry(),
        Row::new("L5 squares", squares, &["memory_exceeded", "timeout", "arithmetic_error", "type_error"]).hungry(),
        Row::new(
            "L5 shift",
            "(bit-shift-left 1 1000000000000)",
            &["ok", "memory_exceeded", "arithmetic_error", "type_error"],
        ),
        Row::new("L5 power", "(pow 9 (pow 9 9))", &["ok", "memory_exceeded", "arithmetic_error", "type_error"]),
        Row::new(
            "L5 a million digits",
            many_digits,
            &["ok", "memory_exceeded", "timeout", "arithmetic_error", "type_error"],
        ),
        Row::new(
            "L5 factorial",
            "(count (str (reduce * (range 1 100000))))",
            &["ok", "memory_exceeded", "timeout", "arithmetic_error", "type_error"],
        ),
        Row::new(
            "L5 the longest integer, shown",
            "(println (reduce (fn [x _] (* x x)) 10 (range 18)))",
            &["ok", "timeout"],
        )
        .hungry(),
        Row::new("L5 reading digits", "(parse-long (text 1000000 \"9\"))", CLEAN),
    ]
}

/// L6, L7: sorts and regular expressions.
fn long_work() -> Vec<Row> {
    let room = |row: Row| row.endless().limits(|limits| limits.with_heap_bytes(150_000_000));
    let soon = |row: Row| room(row).limits(|limits| limits.with_timeout_ms(50));
    let regex = &["ok", "timeout", "memory_exceeded", "runtime_error", "invalid_form", "type_error"];
    vec![
        room(Row::new("L6 endless comparator", "(sort (fn [a b] (loop [] (recur))) (range 1000000))", LATE)),
        room(Row::new("L6 inconsistent comparator", "(count (sort (fn [a b] true) (range 1000000)))", CLEAN)),
        room(Row::new("L6 comparator of chance", "(count (sort (fn [a b] (odd? (+ a b))) (range 1000000)))", CLEAN)),
        room(Row::new(
            "L6 endless comparator of keys",
            "(sort-by - (fn [a b] (loop [] (recur))) (range 1000000))",
            LATE,
        )),
        soon(Row::new("L6 one long character", "(first (str \"e\" (text 6000000 \"\u{301}\")))", LATE)),
        soon(Row::new("L6 the case of a long text", "(count (upper-case (text 6000000 \"é\")))", LATE)),
        soon(Row::new("L6 the order of a large set", "(count (vec (set (range 400000))))", LATE)),
        room(Row::new("L6 comparator of texts", "(sort (fn [a b] \"x\") (range 1000000))", &["type_error"])),
        room(Row::new(
            "L6 natural order",
            "(count (sort (map (fn [i] (mod (* i 7919) 1000003)) (range 1000000))))",
            CLEAN,
        ))
        .limits(|limits| limits.with_timeout_ms(250)),
        room(Row::new(
            "L6 a set of vectors",
            "(count (set (map (fn [i] [(mod (* i 7919) 1000003) i]) (range 500000))))",
            CLEAN,
        ))
        .limits(|limits| limits.with_timeout_ms(250)),
        Row::new(
            "L6 compactions of much that is live",
            "(let [v (mapv (fn [i] {:id i}) (range 300000))] (loop [] (mapv (fn [i] [i]) (range 100000)) (recur)))",
            LATE,
        )
        .limits(|limits| limits.with_heap_bytes(60_000_000).with_timeout_ms(400))
        .endless(),
        Row::new("L7 nested plus", "(re-find #\"(a+)+$\" (str (text 100000 \"a\") \"!\"))", regex),
        Row::new("L7 nested star", "(re-find #\"(?:(?:a*)*)*b\" (text 100000 \"a\"))", regex),
        Row::new("L7 letters in two ways", "(re-find #\"(?:\\p{L}|\\p{L}\\p{L})+~\" (text 3000000 \"a\"))", regex),
        Row::new(
            "L7 many letters in two ways",
            "(map (fn [i] (re-find #\"(\\p{L}*)*~\" (text 1000 \"a\"))) (range 1000))",
            regex,
        ),
        Row::new("L7 many alternatives", "(re-find (re-pattern (join \"|\" (map str (range 100000)))) \"x\")", regex),
        Row::new(
            "L7 many alternatives in the source",
            format!("(re-find #\"{}\" \"x\")", (0..100_000).map(|i| i.to_string()).collect::<Vec<_>>().join("|")),
            &["invalid_form"],
        ),
        Row::new("L7 a huge count", "(re-find #\"a{1000000000}\" \"a\")", regex),
        Row::new("L7 counts of counts", "(re-find #\"((a{1,100}){1,100}){1,100}\" \"aaaa\")", regex),
        Row::new("L7 counts of classes", "(re-find #\"(\\w{1,100}\\s){1,50}x\" (text 20000 \"ab \"))", regex),
        Row::new("L7 every place", "(count (re-seq #\"a.*b|a\" (text 20000 \"a\")))", regex),
        soon(Row::new(
            "L7 many classes of both cases",
            "(map (fn [k] (re-find (re-pattern (str k \"(?i)\" (join (map (fn [i] (str \"\\\\p{L}\" i)) (range 700))))) \"abc\")) (range 100))",
            regex,
        )),
        soon(Row::new(
            "L7 ranges of both cases",
            "(re-find (re-pattern (str \"(?i)\" (join (map (fn [i] \"[\u{100}-\u{10ffff}]\") (range 300))))) \"abc\")",
            regex,
        )),
        soon(Row::new(
            "L7 as many classes as can be",
            "(map (fn [k] (re-find (re-pattern (str k (join (map (fn [i] (str \"\\\\p{L}[\\\\w-]\" i)) (range 70))))) \"abc\")) (range 1000))",
            regex,
        )),
        Row::new("L7 repeats of letters", "(re-find #\"\\p{L}*\\p{L}*\\p{L}*~\" (text 16000 \"a\"))", LATE_OR_GIVEN_UP),
        soon(Row::new("L7 groups of a long match", "(count (re-find #\"(a*)(b|$)\" (text 4000000 \"a\")))", regex)),
        soon(Row::new("L7 groups, undecided", "(re-find #\"((a)|(aa))+b\" (text 4000000 \"a\"))", regex)),
        soon(Row::new("L7 far ahead", "(count (re-seq #\"a.*b|a\" (text 200000 \"a\")))", LATE)),
        soon(Row::new("L7 far ahead, groups", "(count (re-seq #\"(a)(.*b)|a\" (text 7900 \"a\")))", regex)),
        soon(Row::new("L7 words beyond ASCII", "(count (re-seq #\"\\b(é+)x|é\" (text 200000 \"é \")))", regex)),
        soon(Row::new("L7 split", "(count (split (text 400000 \"ab\") #\"a.*c|b\"))", regex)),
        soon(Row::new("L7 replace", "(count (replace (text 400000 \"ab\") #\"(a)b\" \"c\"))", regex)),
        Row::new(
            "L7 many patterns",
            "(map (fn [i] (re-find (re-pattern (str \"\\\\w{1,\" (+ 1 (mod i 200)) \"}x\")) \"abc\")) (range 2000))",
            regex,
        ),
    ]
}

/// L8: source text.
fn sources() -> Vec<Row> {
    let long = |name, source: String, expected| {
        Row::new(name, source, expected).limits(|limits| limits.with_program_bytes(0).with_timeout_ms(1_000))
    };
    // Compiling them once took up to a minute.
    let soon = |name, source: String| {
        let expected = &["timeout", "program_too_large", "unbound_var", "unknown_tool", "ok"];
        Row::new(name, source, expected).limits(|limits| limits.with_symbols(0).with_timeout_ms(15))
    };
    let mut rows = vec![
        long("L8 quotes", "'".repeat(1_000_000), UNREADABLE),
        long("L8 quotation marks", "\"".repeat(1_000_000), &["ok", "memory_exceeded"]),
        Row::new("L8 a huge source", " ".repeat(100_000_000), UNREADABLE),
        long(
            "L8 a long string",
            format!("(count \"{}\")", "s".repeat(10_000_000)),
            &["ok", "parse_error", "memory_exceeded"],
        ),
        soon("L8 many steps", format!("(some-> 1 {})", "inc ".repeat(240_000))),
        soon("L8 many steps of a name", format!("(as-> 1 x {})", "(+ x 1) ".repeat(120_000))),
        soon("L8 many names in a pattern", format!("(let [{{:keys [{}]}} {{}}] a)", "a ".repeat(490_000))),
        soon("L8 many values captured", format!("(let [{0}] (fn [] {1}))", numbered("a", " 1 "), numbered("a", " "))),
        soon("L8 a long record", format!("(let [x 1] {{{}}})", numbered(":k", " x "))),
        soon(
            "L8 many defaults",
            format!("(let [{{:keys [{}] :or {{{}}}}} {{}}] 1)", numbered("a", " "), numbered("a", " 1 ")),
        ),
        soon("L8 many names unknown", numbered("k", " ")),
        soon("L8 many tools unknown", numbered("tool/t", " ")),
        soon("L8 many patterns", numbered("#\"(\\w{1,20}\\s){1,9}", "\" ")),
        long("L8 a long symbol", "s".repeat(10_000_000), &["parse_error", "unbound_var"]),
        long("L8 a long number", "9".repeat(10_000_000), UNREADABLE),
        long("L8 a long float", format!("1.{}", "9".repeat(10_000_000)), &["parse_error", "ok"]),
        long(
            "L8 a long keyword",
            format!("(count (name :{}))", "k".repeat(10_000_000)),
            &["ok", "parse_error", "memory_exceeded"],
        ),
        long("L8 a long comment", format!("1 ;{}", "c".repeat(10_000_000)), &["ok"]),
        long("L8 many forms", "1 ".repeat(500_000), &["ok", "memory_exceeded", "parse_error"]),
        long(
            "L8 many names",
            (0..200_000).fold(String::new(), |mut s, i| {
                let _ = write!(s, ":k{i} ");
                s
            }),
            UNREADABLE,
        ),
        long(
            "L8 a long vector",
            format!("(count [{}])", "1 ".repeat(500_000)),
            &["ok", "memory_exceeded", "parse_error", "invalid_form", "runtime_error"],
        ),
        long(
            "L8 a long call",
            format!("(+ {})", "1 ".repeat(500_000)),
            &["ok", "memory_exceeded", "parse_error", "invalid_form", "program_too_large"],
        ),
    ];
    for open in ["(", "[", "{", "#{", "#(", "(let [a ", "(-> ", "(if ", "(fn [] "] {
        let nested = open.repeat(1_000_000 / open.len());
        rows.push(Row::new("L8 nested and open", nested, UNREADABLE));
        rows.push(long("L8 a million, nested and open", open.repeat(1_000_000), &["parse_error"]));
    }
    let closed = format!("{}{}", "[".repeat(499_999), "]".repeat(499_999));
    rows.push(Row::new("L8 nested and closed", closed, UNREADABLE));
    let deep = |depth: usize| format!("{}1{}", "(+ 1 ".repeat(depth), ")".repeat(depth));
    rows.push(Row::new("L8 as deep as it goes", deep(90), &["ok", "parse_error"]));
    rows
}

/// Half a megabyte of `before0after before1after ...`.
fn numbered(before: &str, after: &str) -> String {
    let mut text = String::new();
    for i in 0.. {
        if text.len() > 480_000 {
            break;
        }
        let _ = write!(text, "{before}{i}{after}");
    }
    text
}

/// So many keys collide.
const MANY: usize = if cfg!(debug_assertions) { 5_000 } else { 100_000 };

/// Strings whose hashes are all the same: the last word undoes what the words before it did.
fn colliding(count: usize) -> String {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    const A: u64 = 0xA076_1D64_78BD_642F;
    const B: u64 = 0xE703_7ED1_A0B4_28DB;
    let mix = |word: u64| {
        let wide = u128::from(word ^ A) * u128::from(B);
        (wide as u64) ^ ((wide >> 64) as u64)
    };
    let mut json = String::from("[");
    let (mut found, mut i) = (0, 0u64);
    while found < count {
        // Eight digits.
        let word = (0..8).fold(0, |word, place| word << 8 | (0x30 + i / 10u64.pow(place) % 10));
        i += 1;
        // 16 bytes: the second word makes the state that the first one left zero.
        let second = (mix(16u64.wrapping_mul(K) ^ word) ^ A).to_le_bytes();
        if second.is_ascii() {
            json.push('"');
            for byte in word.to_le_bytes().into_iter().chain(second) {
                let _ = match byte {
                    0x20..0x7f if byte != b'"' && byte != b'\\' => write!(json, "{}", char::from(byte)),
                    _ => write!(json, "\\u{byte:04x}"),
                };
            }
            json.push_str("\",");
            found += 1;
        }
    }
    json.pop();
    json.push(']');
    json
}

/// L9-L13: deep values, collisions, JSON, formats, prints.
fn values() -> Vec<Row> {
    let depth = 1_000_000;
    let deep = |name, end: &str, expected| {
        let source = format!("(let [v (loop [i 0 v []] (if (= i {depth}) v (recur (inc i) [v])))] {end})");
        Row::new(name, source, expected)
            .endless()
            .limits(|limits| limits.with_heap_bytes(300_000_000).with_timeout_ms(2_000))
    };
    let shared = |name, end: &str| {
        let source =
            format!("(let [v (reduce (fn [v _] [v v]) 1 (range 60)) w (reduce (fn [v _] [v v]) 1 (range 60))] {end})");
        Row::new(name, source, CLEAN)
    };
    vec![
        deep("L9 printed", "(count (pr-str v))", CLEAN),
        deep("L9 shown", "(println v)", CLEAN),
        deep("L9 compared", "(= v (loop [i 0 v []] (if (= i 1000000) v (recur (inc i) [v]))))", CLEAN),
        deep("L9 a key", "(count {v 1 [v] 2})", CLEAN),
        deep("L9 returned", "v", CLEAN),
        deep(
            "L9 generated",
            "(count (json/generate-string v))",
            &["memory_exceeded", "timeout", "result_limit_exceeded"],
        ),
        deep("L9 walked", "(count (postwalk identity v))", CLEAN),
        deep("L9 walked before", "(count (prewalk identity v))", CLEAN),
        deep("L9 flattened", "(count (flatten v))", CLEAN),
        deep("L9 sorted", "(count (sort [v [v] v]))", &["ok", "memory_exceeded", "timeout", "type_error"]),
        shared("L9 shared: returned", "v"),
        Row::new("L5 a long integer, returned", "(reduce (fn [x _] (* x x)) 7 (range 18))", LATE)
            .limits(|limits| limits.with_timeout_ms(50)),
        Row::new(
            "L5 long integers, returned",
            "(vec (map (fn [i] (+ i (reduce (fn [x _] (* x x)) 7 (range 16)))) (range 50)))",
            LATE,
        )
        .limits(|limits| limits.with_timeout_ms(100)),
        Row::new("L9 shared: returned in no time", "(reduce (fn [v _] [v v]) 1 (range 60))", LATE)
            .limits(|limits| limits.with_timeout_ms(10).with_result_bytes(100_000_000)),
        shared("L9 shared: printed", "(pr-str v)").hungry(),
        shared("L9 shared: compared", "(= v w)"),
        shared("L9 shared: a key", "{v 1}"),
        shared("L9 shared: flattened", "(flatten v)").hungry(),
        shared("L9 shared: walked", "(postwalk identity v)"),
        shared("L9 shared: generated", "(json/generate-string v)").hungry(),
        shared("L9 shared: shown", "(println v)").hungry(),
        Row::new("L10 functions as keys", "(count (reduce (fn [m i] (assoc m (fn [] i) i)) {} (range 100000)))", CLEAN),
        Row::new("L10 functions in a set", "(count (set (map (fn [i] (fn [] i)) (range 100000))))", CLEAN),
        Row::new("L10 colliding keys, added", "(count (reduce (fn [m s] (assoc m s 1)) {} data/given))", CLEAN)
            .given(|| colliding(1_000)),
        Row::new(
            "L10 as many as there may be, added",
            "(count (reduce (fn [m s] (assoc m s 1)) {} data/given))",
            CLEAN,
        )
        .given(|| colliding(MANY)),
        Row::new("L10 colliding keys, built", "(count (zipmap data/given data/given))", CLEAN)
            .given(|| colliding(MANY)),
        Row::new("L10 colliding keys, counted", "(count (frequencies data/given))", CLEAN).given(|| colliding(MANY)),
        Row::new("L10 colliding keys, from the host", "(count data/given)", CLEAN)
            .given(|| format!("{{{}:1}}", colliding(MANY).trim_matches(['[', ']']).replace("\",", "\":1,"))),
        Row::new("L10 colliding keys, from JSON text", "(count (json/parse-string data/given))", CLEAN).given(|| {
            let object = format!("{{{}:1}}", colliding(MANY).trim_matches(['[', ']']).replace("\",", "\":1,"));
            format!("\"{}\"", object.replace('\\', "\\\\").replace('"', "\\\""))
        }),
        Row::new("L10 colliding keys, in the language", "(count (into {} (map (fn [s] [s 1]) data/given)))", CLEAN)
            .given(|| colliding(MANY)),
        Row::new("L10 colliding keys, distinct", "(count (distinct data/given))", CLEAN).given(|| colliding(MANY)),
        Row::new("L10 colliding keys, grouped", "(count (group-by identity data/given))", CLEAN)
            .given(|| colliding(MANY)),
        Row::new("L10 colliding keys, inside keys", "(count (set (map (fn [s] [s {:a s}]) data/given)))", CLEAN)
            .given(|| colliding(MANY)),
        Row::new("L11 nested arrays", "(json/parse-string data/given)", &["ok", "memory_exceeded", "runtime_error"])
            .given(|| format!("\"{}\"", "[".repeat(1_000_000))),
        Row::new("L11 nested in the data", "(count data/given)", &["parse_error"]).given(|| "[".repeat(1_000_000)),
        Row::new("L11 a long number", "(json/parse-string (text 1000000 \"9\"))", CLEAN),
        Row::new("L11 a long number in the data", "(pos? data/given)", &["ok", "memory_exceeded", "parse_error"])
            .given(|| "9".repeat(1_000_000)),
        Row::new("L11 a long fraction", "(json/parse-string (str \"0.\" (text 1000000 \"9\") \"e-99999999\"))", CLEAN),
        Row::new(
            "L11 the same key",
            "(json/parse-string (str \"{\" (join \",\" (map (fn [_] \"\\\"a\\\":1\") (range 20000))) \"}\"))",
            CLEAN,
        ),
        Row::new(
            "L11 half a pair",
            "(json/parse-string \"[\\\"\\\\ud800\\\", \\\"\\\\udc00x\\\"]\")",
            &["ok", "runtime_error"],
        ),
        Row::new(
            "L12 a wide format",
            "(format \"%1000000000d\" 1)",
            &["memory_exceeded", "runtime_error", "type_error", "arithmetic_error"],
        )
        .hungry(),
        Row::new(
            "L12 a precise format",
            "(format \"%.999999999f\" 1.0)",
            &["memory_exceeded", "runtime_error", "type_error", "arithmetic_error"],
        )
        .hungry(),
        Row::new(
            "L12 a huge width",
            "(format \"%99999999999999999999d\" 1)",
            &["memory_exceeded", "runtime_error", "type_error", "arithmetic_error"],
        ),
        Row::new(
            "L13 long prints beyond ASCII",
            "(let [s (reduce (fn [s _] (str s s)) \"👩‍👩‍👧\" (range 16))] (loop [] (println s) (recur)))",
            LATE,
        )
        .endless(),
        Row::new("L13 endless prints", "(loop [i 0] (println i) (recur (inc i)))", LATE).endless().hungry(),
        Row::new("L13 endless empty prints", "(loop [] (println) (recur))", LATE).endless().hungry(),
        Row::new("L13 long prints", "(let [s (text 100000 \"x\")] (loop [] (println s) (recur)))", LATE)
            .endless()
            .hungry(),
        Row::new("L13 a huge print", "(println (range 500000))", &["ok", "memory_exceeded"]).hungry(),
        // The text is made before it is cut: the budget must hold it.
        Row::new("L13 ten megabytes", "(println data/given)", &["ok"])
            .given(|| {
                let row = format!("{{\"name\": \"{}\", \"list\": [1, 2, 3]}},", "n".repeat(60));
                format!("[{}1]", row.repeat(100_000))
            })
            .limits(|limits| limits.with_heap_bytes(64_000_000)),
        Row::new("L13 a large value", "(println (map (fn [i] {:i i}) (range 20000)))", &["ok", "memory_exceeded"])
            .hungry(),
    ]
}

/// L14, L15: parallel calls.
fn parallel() -> Vec<Row> {
    let depths = "(pmap (fn [_] (pmap (fn [_] (pmap inc (range 100))) (range 100))) (range 100))";
    let beside = |endless, failing| {
        format!("(pmap (fn [i] (cond (= i {endless}) (loop [] (recur)) (= i {failing}) (/ 1 0) :else i)) (range 100))")
    };
    vec![
        Row::new("L14 workers of workers of workers", depths, &["memory_exceeded", "timeout"]),
        Row::new("L15 one worker fails", "(pmap (fn [x] (if (= x 50) (/ 1 0) x)) (range 100))", &["pmap_error"]),
        Row::new("L15 a failure behind an endless worker", beside(0, 1), LATE).endless(),
        Row::new("L15 a failure before an endless worker", beside(1, 0), &["pmap_error"]).endless(),
        Row::new("L15 two calls, one endless", "(pcalls #(loop [] (recur)) #(inc nil))", LATE).endless(),
        Row::new("L15 endless workers", "(pmap (fn [_] (loop [] (recur))) (range 100))", LATE).endless(),
    ]
}

/// L16, L18, L20: definitions, garbage, odd texts.
fn others() -> Vec<Row> {
    let definitions = (0..100_000).fold(String::new(), |mut s, i| {
        let _ = write!(s, "(def v{i} {i})");
        s
    });
    let rounds = if cfg!(debug_assertions) { 6_000 } else { 62_500 };
    let garbage = format!("(loop [i 0] (if (< i {rounds}) (do (vec (range 1000)) (recur (inc i))) :done))");
    let mut rows = vec![
        Row::new("L16 many definitions", definitions.as_str(), UNREADABLE)
            .limits(|limits| limits.with_program_bytes(0)),
        Row::new("L16 many definitions and names", definitions, CLEAN)
            .limits(|limits| limits.with_program_bytes(0).with_symbols(0).with_timeout_ms(1_000)),
        Row::new("L16 a large definition", "(def x (vec (range 10000000)))", FULL).hungry(),
        Row::new(
            "L16 many large definitions",
            "(def a (vec (range 200000))) (def b (vec (range 200000))) (def c (vec (range 400000)))",
            FULL,
        )
        .hungry(),
        Row::new("L18 a gigabyte of garbage", garbage, &["ok"])
            .endless()
            .hungry()
            .limits(|limits| limits.with_timeout_ms(60_000)),
    ];
    let odd = [
        "\u{feff}1",
        "\0",
        "\"\u{202e}\u{0}\"",
        "#\"(\"",
        "#\"\\\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "1e999",
        "-0.0",
        "{##NaN 1}",
        "#{##NaN ##NaN}",
        "{-0.0 1 0.0 2 0 3}",
        "99999999999999999999999999",
        "1/0",
        "\\",
        "#",
        "##",
        "##Foo",
        ":",
        "::a",
        "@",
        "^",
        "~",
        "`",
        "#_",
        "(",
        ")",
        "[}",
        "{:a}",
        "#{1 1}",
        "\"",
        "\u{200b}",
        "(fn [& &] 1)",
        "(let [x] x)",
        "\u{1f469}\u{200d}\u{1f469}",
        "'",
        "#'",
        "%",
        "#(% %2 #(%))",
        "(def)",
        "(defn)",
        "(recur)",
        "(loop)",
        "data/",
        "tool/",
        "/",
        "(/ 0)",
        "..",
        "0x",
        "1r2",
        "1N",
        "1M",
        "+1",
        "-",
        "--1",
        "(. x y)",
        "#inst \"x\"",
    ];
    let any = &[
        "ok",
        "parse_error",
        "invalid_form",
        "invalid_arity",
        "invalid_placeholder",
        "unbound_var",
        "duplicate_key",
        "runtime_error",
        "arithmetic_error",
        "type_error",
        "unsupported_method",
        "unsupported_pattern",
        "unknown_tool",
        "arity_error",
    ];
    rows.extend(odd.into_iter().map(|source| Row::new("L20 odd text", source, any)));
    rows
}

pub(crate) fn rows() -> Vec<Row> {
    [growth(), long_work(), sources(), values(), parallel(), others()].into_iter().flatten().collect()
}

/// Those whose memory is measured. None of them has a long source, which would be counted to the process itself.
pub(crate) fn hungry_rows() -> Vec<Row> {
    [growth(), values(), others()].into_iter().flatten().filter(|row| row.hungry).collect()
}
