//! Patterns against Java's: what searching, matching, splitting and replacing come to, for patterns of a grammar on texts that
//! have what patterns ask for. `patterns/README.md` says how the answers were made.

use crate::common::Answer;
use lisp_core::compile::Program;
use lisp_core::heap::{Heap, Res, Value};
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::{Ending, Grant, Machine, Settings};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

const TEXTS: &str = include_str!("patterns/texts.txt");
const JAVA: &str = include_str!("patterns/java.tsv");
const DIFFERENCES: &str = include_str!("patterns/differences.tsv");

/// Texts of each pattern.
const TEXTS_EACH: usize = 6;

/// What is done with a pattern and its texts.
const SOURCE: &str = "(let [p (re-pattern data/p)]
  (map (fn [t] [(re-seq p t) (re-matches p t) (split t p -1) (replace t p \"<$0>\")]) data/ts))";

/// A text without its `%hex;`.
fn unescaped(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('%') {
        let (hex, after) = after.split_once(';').expect("an escape ends");
        out.push_str(before);
        out.push(u32::from_str_radix(hex, 16).ok().and_then(char::from_u32).expect("a character"));
        rest = after;
    }
    out + rest
}

/// A text between quotes, or nil, as Java's program writes it.
fn quoted(value: Value<'_>, out: &mut String) {
    let Value::Str(text) = value else { return out.push_str("nil") };
    out.push('\'');
    for c in text.text().chars() {
        match c {
            '%' => out.push_str("%25;"),
            ' '..='~' => out.push(c),
            c => write!(out, "%{:x};", u32::from(c)).expect("a string takes all"),
        }
    }
    out.push('\'');
}

/// The groups of a match.
fn groups(value: Value<'_>, out: &mut String) {
    out.push_str(" [");
    match value {
        Value::Vector(groups) => {
            for (i, &group) in groups.items().iter().enumerate() {
                out.push_str(if i > 0 { " " } else { "" });
                quoted(group, out);
            }
        }
        other => quoted(other, out),
    }
    out.push(']');
}

fn items<'h>(value: Value<'h>) -> Vec<Value<'h>> {
    match value {
        Value::Vector(v) => v.items().to_vec(),
        other => panic!("a vector, not {}", other.type_name()),
    }
}

/// What a program answers for each text, as Java's program writes it.
fn written(value: Value<'_>) -> String {
    let mut out = String::new();
    for text in items(value) {
        let [seq, all, split, replaced] = items(text)[..] else { panic!("four answers for each text") };
        out.push_str("seq");
        items(seq).into_iter().for_each(|found| groups(found, &mut out));
        out.push_str("\nall");
        if !matches!(all, Value::Nil) {
            groups(all, &mut out);
        }
        out.push_str("\nsplit");
        for part in items(split) {
            out.push(' ');
            quoted(part, &mut out);
        }
        out.push_str("\nreplace ");
        quoted(replaced, &mut out);
        out.push('\n');
    }
    out
}

struct Asker {
    program: Arc<Program>,
    texts: Vec<String>,
}

impl Asker {
    fn new() -> Self {
        let program = Program::compile(SOURCE, &ReadLimits::default()).expect("a program");
        Asker { program: Arc::new(program), texts: TEXTS.lines().map(unescaped).collect() }
    }

    /// What the pattern of a row comes to, or the message of its error.
    fn answer(&self, pattern: &str, row: usize) -> Result<String, String> {
        let texts = (0..TEXTS_EACH).map(|k| self.texts[(row * 5 + k * (k + 7)) % self.texts.len()].as_str());
        let grant = Grant::build(usize::MAX, |h: &Heap, b| -> Res<()> {
            b.data("p", h.str(pattern)?);
            let texts = texts.clone().map(|text| h.str(text)).collect::<Res<Vec<_>>>()?;
            b.data("ts", h.vector(&texts)?);
            Ok(())
        });
        let settings = Settings::default();
        let mut machine = Machine::new(vec![Arc::new(grant.expect("texts"))], settings.clone());
        machine.load(self.program.clone()).expect("its names are known");
        match crate::workers::to_end(&mut machine, &settings, u64::MAX / 2, &|_| {}) {
            Ending::Error(error) => Err(error.message),
            _ => Ok(machine.with_result(|_, value| written(value))),
        }
    }
}

/// 30 bits of FNV-1a, in the characters from 0 to v.
fn digest(answer: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = answer.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (0..6).map(|i| char::from(b"0123456789abcdefghijklmnopqrstuv"[(hash >> (59 - 5 * i)) as usize & 31])).collect()
}

/// A pattern that Java refuses is refused, or is one of the notations that are read beyond Java's; all others come to the same,
/// but for those that are listed with the reason, and these do differ.
#[test]
fn patterns_come_to_what_they_come_to_in_java() {
    let asker = Asker::new();
    let listed: BTreeMap<&str, &str> = DIFFERENCES.lines().filter_map(|line| line.split_once('\t')).collect();
    let (mut wrong, mut different) = (Vec::new(), 0);
    for (row, line) in JAVA.lines().enumerate() {
        let (pattern, want) = line.rsplit_once('\t').expect("a pattern and a digest");
        let got = asker.answer(&unescaped(pattern), row);
        let same = match &got {
            Ok(got) => want != "!" && digest(got) == want,
            Err(message) => want == "!" && message.starts_with("invalid regular expression"),
        };
        different += usize::from(!same && listed.contains_key(pattern));
        if same == listed.contains_key(pattern) {
            let reason = listed.get(pattern).copied().unwrap_or("not listed");
            wrong.push(format!("{row}\t{pattern}\t{reason}\t{}", got.err().unwrap_or_default()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), JAVA.lines().count(), wrong.join("\n"));
    assert_eq!(different, listed.len(), "what is listed is in the file");
}

fn run(source: &str) -> Answer {
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), Settings::default());
    crate::common::answer(&mut machine, source, u64::MAX / 2)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A printed pattern is read back as one that means the same.
    #[test]
    fn patterns_print_and_read_back(pattern in "([ab\"\n\r]|\\\\[QE\"\\\\\nd]){0,8}", text in "[ab\"\\\\1\n\r]{0,8}") {
        let made = format!("(re-pattern {pattern:?})");
        if let Ok(literal) = run(&made) {
            let used = |p: &str| run(&format!("(let [p {p} t {text:?}] [p (re-seq p t) (replace t p \"<$0>\")])"));
            prop_assert_eq!(used(&literal), used(&made), "{}", literal);
        }
    }
}
