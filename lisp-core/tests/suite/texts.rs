//! Functions of strings against plain ones over the characters that unicode-segmentation finds (a line's end of two bytes is
//! two): random texts of combining marks, joined emoji, flags, line ends, syllables of several letters, and parts of all these.

use lisp_core::compile::Program;
use lisp_core::heap::{Heap, Res, Value};
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::{Ending, Grant, Machine, Settings};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use unicode_segmentation::UnicodeSegmentation;

/// What a program answers, outside a heap.
#[derive(Clone, Debug, PartialEq)]
enum Plain {
    Nil,
    Bool(bool),
    Int(i64),
    Text(String),
    List(Vec<Plain>),
    Failed(&'static str),
    Other(&'static str),
}

use Plain::{Bool, Failed, Int, List, Nil, Text};

impl Plain {
    fn of(v: Value<'_>) -> Plain {
        match v {
            Value::Nil => Nil,
            Value::Bool(b) => Bool(b),
            Value::Int(i) => Int(i),
            Value::Str(s) => Text(s.text().to_owned()),
            Value::Vector(v) => List(v.items().iter().map(|&item| Plain::of(item)).collect()),
            other => Plain::Other(other.type_name()),
        }
    }
}

fn text(s: impl Into<String>) -> Plain {
    Text(s.into())
}

fn texts<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Plain {
    List(items.into_iter().map(|s| text(s.as_ref())).collect())
}

fn count(n: usize) -> Plain {
    Int(n as i64)
}

fn truth(b: bool) -> Plain {
    Bool(b)
}

/// Nil instead of nothing.
fn or_nil(items: &[&str]) -> Plain {
    if items.is_empty() { Nil } else { texts(items) }
}

fn characters<'s>(s: &'s str) -> Vec<&'s str> {
    let halves = |c: &'s str| if c == "\r\n" { vec![&c[..1], &c[1..]] } else { vec![c] };
    s.graphemes(true).flat_map(halves).collect()
}

/// The texts a program reads as `data/s`, `data/t` and `data/r`.
#[derive(Clone, Debug)]
struct Given {
    s: String,
    t: String,
    r: String,
}

fn run(given: &Given, source: &str, compact_every: Option<u64>) -> Plain {
    let grant = Grant::build(usize::MAX, |h: &Heap, b| -> Res<()> {
        b.data("s", h.str(&given.s)?);
        b.data("t", h.str(&given.t)?);
        b.data("r", h.str(&given.r)?);
        Ok(())
    });
    let settings = Settings { compact_every, ..Settings::default() };
    let mut machine = Machine::new(vec![Arc::new(grant.expect("texts"))], settings.clone());
    let program = Program::compile(source, &ReadLimits::default()).expect("a program");
    machine.load(Arc::new(program)).expect("its names are known");
    match crate::workers::to_end(&mut machine, &settings, u64::MAX / 2, &|_| {}) {
        Ending::Error(error) => Failed(error.reason.name()),
        _ => machine.with_result(|_, value| Plain::of(value)),
    }
}

/// Runs expressions in one program and compares what they come to, one by one.
fn check(given: &Given, wanted: &[(String, Plain)]) {
    let source: String = wanted.iter().map(|(source, _)| source.as_str()).collect::<Vec<_>>().join("\n");
    for compact_every in [None, Some(1)] {
        let List(got) = run(given, &format!("[{source}]"), compact_every) else {
            for (source, wanted) in wanted {
                assert_eq!(run(given, source, compact_every), *wanted, "{source} of {given:?}");
            }
            panic!("together they fail: {given:?}");
        };
        assert_eq!(got.len(), wanted.len());
        for ((source, wanted), got) in wanted.iter().zip(got) {
            assert_eq!(got, *wanted, "{source} of {given:?}, compacted at every {compact_every:?}");
        }
    }
}

/// Pieces of which some make one character with their neighbours.
const PIECES: &[&str] = &[
    "a",
    "b",
    "Z",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "\0",
    "9",
    "-",
    "é",
    "e\u{301}",
    "\u{301}",
    "\u{308}\u{323}",
    "ß",
    "ﬁ",
    "İ",
    "Σ",
    "σ",
    "ς",
    "ǆ",
    "👍",
    "👍🏽",
    "🏽",
    "👩\u{200d}👩\u{200d}👧",
    "👩",
    "\u{200d}",
    "❤\u{fe0f}",
    "🏳\u{fe0f}\u{200d}🌈",
    "🇩🇪",
    "🇩",
    "🇪",
    "각",
    "가",
    "\u{1100}\u{1161}\u{11a8}",
    "\u{1100}",
    "\u{1161}",
    "\u{11a8}",
    "क्षि",
    "क",
    "\u{94d}",
    "ष",
    "\u{e33}",
    "ก",
    "\u{600}",
    "\u{85}",
    "\u{a0}",
    "\u{2003}",
    "\u{2007}",
    "\u{2028}",
    "\u{3000}",
    "\u{1c}",
    "\u{feff}",
    "\u{10ffff}",
    "𝒜",
    "1\u{fe0f}\u{20e3}",
];

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ]
}

fn given_texts() -> impl Strategy<Value = Given> {
    let long = || prop_oneof![6 => prop::collection::vec(piece(), 0..14), 1 => prop::collection::vec("[a-c ]", 0..14)];
    // Often the second text is a part of the first, and not always one of whole characters.
    let part = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let other = prop_oneof![3 => prop::collection::vec(piece(), 0..3).prop_map(|v| Some(v.concat())), 4 => Just(None)];
    (long(), part, other, prop::collection::vec(piece(), 0..3)).prop_map(|(s, (from, to), other, r)| {
        let s: String = s.concat();
        let all: Vec<char> = s.chars().collect();
        let (from, to) = (from.index(all.len() + 1), to.index(all.len() + 1));
        let part = || all[from.min(to)..from.max(to).min(from.min(to) + 3)].iter().collect();
        Given { t: other.unwrap_or_else(part), r: r.concat(), s }
    })
}

fn parts_by_index(s: &str, n: i64, m: i64) -> Vec<(String, Plain)> {
    let g = characters(s);
    let len = g.len();
    let within = |i: i64| usize::try_from(i.max(0)).unwrap_or(0).min(len);
    // A negative number of elements counts from the end.
    let split = if n >= 0 { within(n) } else { len - within(-n) };
    let (front, back) = g.split_at(split);
    let (taken, dropped) = if n >= 0 { (front, back) } else { (back, front) };
    let sub =
        |from: i64, to: i64| if from < 0 || to <= from { String::new() } else { g[within(from)..within(to)].concat() };
    let at = |i: i64| usize::try_from(i).ok().and_then(|i| g.get(i)).map(|c| text(*c));
    let last = within(n);
    vec![
        (format!("(subs data/s {n})"), text(sub(n, i64::MAX))),
        (format!("(subs data/s {n} {m})"), text(sub(n, m))),
        (format!("(nth data/s {n})"), at(n).unwrap_or(Nil)),
        (format!("(nth data/s {n} 7)"), at(n).unwrap_or(Int(7))),
        (format!("(take {n} data/s)"), texts(taken)),
        (format!("(drop {n} data/s)"), texts(dropped)),
        (format!("(take-last {n} data/s)"), if last == 0 && n > 0 { Nil } else { texts(&g[len - last..]) }),
        (format!("(drop-last {n} data/s)"), texts(&g[..len - last])),
        (format!("(split-at {n} data/s)"), List(vec![texts(&g[..last]), texts(&g[last..])])),
        (format!("(nthrest data/s {n})"), texts(&g[last..])),
        (format!("(nthnext data/s {n})"), or_nil(&g[last..])),
        (format!("[(get data/s {n}) (get (vec data/s) {n})]"), List(vec![at(n).unwrap_or(Nil); 2])),
        (format!("(= data/s (str (subs data/s 0 {last}) (subs data/s {last})))"), truth(true)),
    ]
}

fn whole(s: &str) -> Vec<(String, Plain)> {
    let g = characters(s);
    let first = |n: usize| g.get(n).map_or(Nil, |c| text(*c));
    let reversed: Vec<&str> = g.iter().rev().copied().collect();
    let mut seen = BTreeSet::new();
    let distinct: Vec<&str> = g.iter().copied().filter(|c| seen.insert(*c)).collect();
    let mut deduped = g.clone();
    deduped.dedup();
    let mut sorted = g.clone();
    sorted.sort_by_key(|c| c.encode_utf16().collect::<Vec<_>>());
    let times = |c: &str| g.iter().filter(|other| **other == c).count();
    [
        ("(count data/s)", count(g.len())),
        ("(count (seq data/s))", count(g.len())),
        ("(= data/s (apply str (seq data/s)))", truth(true)),
        ("(= (.length data/s) (count (re-seq #\"(?s).\" data/s)))", truth(s.chars().all(|c| c.len_utf16() == 1))),
        ("(empty? data/s)", truth(g.is_empty())),
        ("(char? data/s)", truth(g.len() == 1)),
        ("(first data/s)", first(0)),
        ("(second data/s)", first(1)),
        ("(last data/s)", g.last().map_or(Nil, |c| text(*c))),
        ("(rest data/s)", texts(g.iter().skip(1))),
        ("(next data/s)", or_nil(g.get(1..).unwrap_or_default())),
        ("(butlast data/s)", or_nil(&g[..g.len().saturating_sub(1)])),
        ("(seq data/s)", or_nil(&g)),
        ("(vec data/s)", texts(&g)),
        ("(map identity data/s)", texts(&g)),
        ("(map-indexed (fn [i c] [i c]) data/s)", {
            List(g.iter().enumerate().map(|(i, c)| List(vec![count(i), text(*c)])).collect())
        }),
        ("(filter char? data/s)", texts(&g)),
        ("(reverse data/s)", texts(&reversed)),
        ("(apply str (reverse data/s))", text(reversed.concat())),
        ("(join (reverse data/s))", text(reversed.concat())),
        ("(join data/s (vec data/s))", text(g.join(s))),
        ("(reduce str \"\" data/s)", text(s)),
        ("(distinct data/s)", texts(&distinct)),
        ("(dedupe data/s)", texts(&deduped)),
        ("(sort data/s)", texts(&sorted)),
        ("(sort-by identity data/s)", texts(&sorted)),
        (
            "(let [m (frequencies data/s)] (map (fn [c] (m c)) (distinct data/s)))",
            List(distinct.iter().map(|c| count(times(c))).collect()),
        ),
        ("(count (group-by identity data/s))", count(distinct.len())),
        ("(interpose \"|\" data/s)", texts(g.join("\u{1}|\u{1}").split('\u{1}').filter(|_| !g.is_empty()))),
        ("(split data/s \"\")", texts(&g)),
        ("(replace data/s \"\" \"|\")", text(g.iter().fold("|".to_owned(), |out, c| out + c + "|"))),
        ("(.length data/s)", count(s.encode_utf16().count())),
    ]
    .map(|(source, plain)| (source.to_owned(), plain))
    .into()
}

/// Where one text stands in the other, by trying every byte.
fn places(s: &str, t: &str) -> Vec<usize> {
    (0..=s.len()).filter(|&at| s.as_bytes()[at..].starts_with(t.as_bytes())).collect()
}

fn search(Given { s, t, r }: &Given, from: i64) -> Vec<(String, Plain)> {
    let g = characters(s);
    let start: usize = g.iter().take(usize::try_from(from.max(0)).unwrap_or(0)).map(|c| c.len()).sum();
    let found = places(s, t);
    // An index is the number of characters before; what begins inside a character has none.
    let bytes: Vec<usize> = (0..=g.len()).map(|i| g[..i].concat().len()).collect();
    let of_characters: Vec<usize> = found.iter().copied().filter(|at| bytes.contains(at)).collect();
    let index = |at: Option<&usize>| at.map_or(Nil, |at| count(bytes.iter().position(|byte| byte == at).unwrap()));
    let of_nothing = |from: i64| Int(from.max(0).min(g.len() as i64));
    let nothing = t.is_empty();
    let units = |at: Option<&usize>| at.map_or(Int(-1), |&at| count(s[..at].encode_utf16().count()));
    let mut parts = Vec::new();
    let mut replaced = String::new();
    let mut rest = 0;
    while let Some(&at) = found.iter().find(|&&at| at >= rest && !nothing) {
        parts.push(&s[rest..at]);
        replaced = replaced + &s[rest..at] + r;
        rest = at + t.len();
    }
    parts.push(&s[rest..]);
    replaced += &s[rest..];
    let split = match characters(t).len() {
        0 => ("(vec data/s)".to_owned(), texts(&g)),
        1 => ("(split data/s data/t)".to_owned(), texts(parts)),
        _ => ("(count data/t)".to_owned(), count(characters(t).len())),
    };
    vec![
        split,
        ("(index-of data/s data/t)".to_owned(), if nothing { Int(0) } else { index(of_characters.first()) }),
        (
            format!("(index-of data/s data/t {from})"),
            if nothing { of_nothing(from) } else { index(of_characters.iter().find(|at| **at >= start)) },
        ),
        ("(last-index-of data/s data/t)".to_owned(), if nothing { count(g.len()) } else { index(of_characters.last()) }),
        (
            format!("(last-index-of data/s data/t {from})"),
            if nothing { of_nothing(from) } else { index(of_characters.iter().rfind(|at| **at <= start)) },
        ),
        (
            "(every? (fn [i] (or (nil? i) (starts-with? (subs data/s i) data/t))) [(index-of data/s data/t) (last-index-of data/s data/t)])".to_owned(),
            truth(true),
        ),
        ("(includes? data/s data/t)".to_owned(), truth(!found.is_empty())),
        ("(starts-with? data/s data/t)".to_owned(), truth(found.first() == Some(&0))),
        ("(ends-with? data/s data/t)".to_owned(), truth(found.iter().any(|at| at + t.len() == s.len()))),
        (
            "(if (= data/t \"\") \"\" (replace data/s data/t data/r))".to_owned(),
            text(if nothing { String::new() } else { replaced }),
        ),
        ("(.indexOf data/s data/t)".to_owned(), units(found.first())),
        ("(.lastIndexOf data/s data/t)".to_owned(), units(found.last())),
        ("(count (str data/s data/t))".to_owned(), count(characters(&format!("{s}{t}")).len())),
        ("(= data/s data/t)".to_owned(), truth(s == t)),
    ]
}

/// Java's white space: Unicode's without spaces that do not break, and with four separators.
fn is_space(c: char) -> bool {
    let unbroken = matches!(c, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}');
    c.is_whitespace() && !unbroken || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn dropped(s: &str, is: impl Fn(char) -> bool) -> &str {
    let mut rest = s;
    while let Some(c) = rest.chars().next().filter(|c| is(*c)) {
        rest = &rest[c.len_utf8()..];
    }
    rest
}

fn dropped_from_end(s: &str, is: impl Fn(char) -> bool) -> &str {
    let mut rest = s;
    while let Some(c) = rest.chars().next_back().filter(|c| is(*c)) {
        rest = &rest[..rest.len() - c.len_utf8()];
    }
    rest
}

/// Lines end in a newline, with or without a carriage return; empty ones at the end are none.
fn lines(s: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    let mut rest = s.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' => lines.push(std::mem::take(&mut line)),
            _ => line.push(c),
        }
    }
    lines.push(line);
    while lines.last().is_some_and(String::is_empty) && !s.is_empty() {
        lines.pop();
    }
    lines
}

fn changed(s: &str, width: usize) -> Vec<(String, Plain)> {
    let g = characters(s);
    let fill = " ".repeat((width + 1).saturating_sub(g.len()));
    let cut = &g[..width.min(g.len())];
    let cut_fill = " ".repeat(width.max(1) - cut.len());
    vec![
        ("(trim data/s)".to_owned(), text(dropped(dropped_from_end(s, is_space), is_space))),
        ("(triml data/s)".to_owned(), text(dropped(s, is_space))),
        ("(trimr data/s)".to_owned(), text(dropped_from_end(s, is_space))),
        ("(trim-newline data/s)".to_owned(), text(dropped_from_end(s, |c| c == '\n' || c == '\r'))),
        ("(blank? data/s)".to_owned(), truth(s.chars().all(is_space))),
        ("(split-lines data/s)".to_owned(), texts(lines(s))),
        ("(upper-case data/s)".to_owned(), text(s.to_uppercase())),
        ("(lower-case data/s)".to_owned(), text(s.to_lowercase())),
        ("(.trim data/s)".to_owned(), text(dropped(dropped_from_end(s, |c| c <= ' '), |c| c <= ' '))),
        (format!("(format \"%{}s\" data/s)", width + 1), text(format!("{fill}{s}"))),
        (format!("(format \"%-{}s|\" data/s)", width + 1), text(format!("{s}{fill}|"))),
        (format!("(format \"%.{width}s\" data/s)"), text(cut.concat())),
        (format!("(format \"%{}.{width}s\" data/s)", width.max(1)), text(cut_fill + &cut.concat())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parts_are_counted_by_characters(given in given_texts(), n in -4i64..20, m in -4i64..20) {
        let mut wanted = whole(&given.s);
        wanted.extend(parts_by_index(&given.s, n, m));
        check(&given, &wanted);
    }

    #[test]
    fn texts_are_searched_and_changed(given in given_texts(), from in -4i64..20, width in 0usize..12) {
        let mut wanted = search(&given, from);
        wanted.extend(changed(&given.s, width));
        check(&given, &wanted);
    }
}

/// What has an answer for vectors only, or for single characters only, is refused.
#[test]
fn what_is_no_index_or_character_is_refused() {
    let given = Given { s: "e\u{301}🇩🇪".to_owned(), t: "ab".to_owned(), r: String::new() };
    for source in ["(get data/s :a)", "(split data/s data/t)", "(assoc data/s 0 \"x\")", "(subs data/s 1.5)"] {
        assert!(matches!(run(&given, source, None), Failed("type_error" | "runtime_error")), "{source}");
    }
}

/// A character of two units that ends the first of the pieces in which long texts are gone through.
#[test]
fn units_are_counted_over_the_pieces_of_a_long_text() {
    let given = Given { s: format!("{}😀aaaaaaaaaax", "é".repeat(32_766)), t: "x".to_owned(), r: String::new() };
    for (source, wanted) in [
        ("(.indexOf data/s data/t 32766)", 32_778),
        ("(.indexOf data/s data/t 32767)", 32_778),
        ("(.indexOf data/s data/t 32768)", 32_778),
        ("(.length (.substring data/s 32768))", 11),
    ] {
        assert_eq!(run(&given, source, None), Int(wanted), "{source}");
    }
    assert_eq!(run(&given, "(.substring data/s 32767)", None), Failed("invalid_java_string"));
}
